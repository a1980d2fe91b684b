// Writes the page without models, which `python -m keras_transformer export web` completes:
// `npm ci && node build.js FOLDER`.

import { build } from "esbuild";
import { cpSync } from "node:fs";

const output = process.argv[2];
cpSync("page", output, { recursive: true });
// A classic script: LiteRT.js loads its WebAssembly by `importScripts`, which a module worker does not have.
await build({
  entryPoints: ["src/worker.js"],
  bundle: true,
  format: "iife",
  target: "es2022",
  charset: "utf8",
  outdir: output,
});
cpSync("LICENSE.litert", `${output}/litert/LICENSE`);
// A browser loads one of two: the second where there is no relaxed SIMD, as in Safari. Those with threads and for WebGPU
// (JSPI) are never asked for.
for (const variant of ["", "compat_"]) {
  for (const suffix of ["js", "wasm"]) {
    const file = `litert_wasm_${variant}internal.${suffix}`;
    cpSync(`node_modules/@litertjs/core/wasm/${file}`, `${output}/litert/${file}`);
  }
}
