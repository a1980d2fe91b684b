// Writes the worker of the page that `python -m keras_transformer export web` copies, and the runtime that it loads:
// `npm ci && npm run build [-- FOLDER]`. The page itself, in export/site, needs no building.

import { build } from "esbuild";
import { cpSync, rmSync } from "node:fs";

const output = process.argv[2] ?? "../export/site";
rmSync(`${output}/litert`, { recursive: true, force: true });
// A classic script: LiteRT.js loads its WebAssembly by `importScripts`, which a module worker does not have.
await build({
  entryPoints: ["src/worker.js"],
  bundle: true,
  format: "iife",
  target: "es2022",
  charset: "utf8",
  legalComments: "none",
  outdir: output,
});
cpSync("LICENSE.litert", `${output}/litert/LICENSE`);
for (const variant of ["", "compat_"]) { // The second one where there is no relaxed SIMD, as in Safari.
  for (const suffix of ["js", "wasm"]) {
    const file = `litert_wasm_${variant}internal.${suffix}`;
    cpSync(`node_modules/@litertjs/core/wasm/${file}`, `${output}/litert/${file}`);
  }
}
