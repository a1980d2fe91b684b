// Writes the page without models: `npm ci && node build.js FOLDER`. `python -m keras_transformer export web` runs this
// and adds the models.

import { build } from "esbuild";
import { cpSync } from "node:fs";

const output = process.argv[2];
cpSync("page", output, { recursive: true });
const settings = { bundle: true, target: "es2022", charset: "utf8", outdir: output };
await build({ ...settings, entryPoints: { translator: "src/library.js" }, format: "esm" });
// A classic script: LiteRT.js loads its WebAssembly by `importScripts`, which a module worker does not have.
await build({ ...settings, entryPoints: ["src/worker.js"], format: "iife" });
cpSync("src/library.d.ts", `${output}/translator.d.ts`);
cpSync("LICENSE.litert", `${output}/litert/LICENSE`);
// A browser loads one of these two: the second one if it has no relaxed SIMD, as Safari. LiteRT's variants with threads
// and for WebGPU (JSPI) are never loaded.
for (const variant of ["", "compat_"]) {
  for (const suffix of ["js", "wasm"]) {
    const file = `litert_wasm_${variant}internal.${suffix}`;
    cpSync(`node_modules/@litertjs/core/wasm/${file}`, `${output}/litert/${file}`);
  }
}
