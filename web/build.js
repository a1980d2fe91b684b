// Writes the page that `python -m keras_transformer export web` copies: `npm ci && npm run build [-- FOLDER]`.

import { build } from "esbuild";
import { cpSync, mkdirSync, rmSync } from "node:fs";

const output = process.argv[2] ?? "../export/site";
rmSync(output, { recursive: true, force: true });
mkdirSync(`${output}/litert`, { recursive: true });
// Classic scripts: LiteRT.js loads its WebAssembly by `importScripts`, which a module worker does not have.
await build({
  entryPoints: ["src/page.js", "src/worker.js"],
  bundle: true,
  format: "iife",
  target: "es2022",
  charset: "utf8",
  legalComments: "none",
  outdir: output,
});
for (const name of ["index.html", "page.css"]) cpSync(`src/${name}`, `${output}/${name}`);
cpSync("LICENSE.litert", `${output}/litert/LICENSE`);
for (const variant of ["", "compat_"]) { // The second one where there is no relaxed SIMD, as in Safari.
  for (const suffix of ["js", "wasm"]) {
    const file = `litert_wasm_${variant}internal.${suffix}`;
    cpSync(`node_modules/@litertjs/core/wasm/${file}`, `${output}/litert/${file}`);
  }
}
