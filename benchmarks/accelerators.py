"""The signatures `encode` and `decode_step` of a run on accelerators: on a GPU by WebGPU, and in integers for NPUs.

    python benchmarks/accelerators.py webgpu RUN --source test.en [--sentences 1000]
    pip install ai-edge-quantizer
    python benchmarks/accelerators.py integers RUN --source test.en --reference test.de --calibration train.en

Both write a file of these two signatures: they have no loops, so that an accelerator can take all of their operations.
The host has the loop of the search. `webgpu` runs it in Chromium with LiteRT.js (npm loads it) and counts the
translations that are the same in Python. With `--on-processor`, the processor computes WebGPU (by SwiftShader), which
says nothing about the speed of a GPU. `integers` quantizes weights and activations and compares BLEU.
"""

import argparse
import json
import shutil
import subprocess
import tempfile
import threading
import time
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import numpy as np
from ai_edge_litert.interpreter import Interpreter

from keras_transformer.export.tflite import steps_file
from keras_transformer.export.web import NPM_CI, SOURCES
from keras_transformer.search.decoder import length_penalty_divisor
from keras_transformer.search.settings import LENGTH_MARGIN
from keras_transformer.text.lines import read_lines
from keras_transformer.text.special_ids import END_TOKEN_ID, START_TOKEN_ID
from keras_transformer.translation.evaluation import corpus_scores
from keras_transformer.translation.translator import Translator

STEPS = ("encode", "decode_step")
LENGTH = 64

FLAGS = ["--no-sandbox", "--enable-unsafe-webgpu", "--enable-features=Vulkan"]
PAGE = """<meta charset="utf-8">
<script type="importmap">{"imports": {"@litertjs/core": "./node_modules/@litertjs/core/dist/index.js",
 "@litertjs/wasm-utils": "./node_modules/@litertjs/wasm-utils/dist/index.js"}}</script>
<script type="module">
import { getWebGpuDevice, loadAndCompile, loadLiteRt, Tensor } from "@litertjs/core";
const free = (tensors) => Object.values(tensors).forEach((tensor) => tensor.delete());
let model;
window.load = async () => {
  await loadLiteRt("./node_modules/@litertjs/core/wasm/");
  model = await loadAndCompile("steps.tflite", { accelerator: "webgpu", gpuOptions: { precision: "fp32" } });
  const { vendor, architecture } = getWebGpuDevice()?.adapterInfo ?? {};
  return { whole: model.isFullyAccelerated, adapter: `${vendor} ${architecture}` };
};
const divisor = (length, { length_penalty, length_penalty_type }) =>
  (length_penalty_type === "power" ? length : (5 + length) / 6) ** length_penalty;
/** Beam search. Caches stay on the GPU, and logits come from it. */
window.translate = async (ids, most, beams, settings, start, end) => {
  // The placeholders follow the end token. Those of the source are written once each, and no others.
  const placeholders = Array.from({ length: settings.num_placeholders }, (_, i) => end + 1 + i);
  const integers = (values, shape = [values.length]) => new Tensor(Int32Array.from(values), shape);
  const sources = { token_ids: integers(ids, [1, ids.length]) }, cross = await model.run("encode", sources);
  free(sources);
  const kept = Object.fromEntries(Object.entries(cross).map(([name, tensor]) => [`${name}_in`, tensor]));
  const inputs = model.signatures.decode_step.getInputDetails();
  const best = (paths) => paths.sort((a, b) => b.score - a.score);
  let cache = {}, live = [{ tokens: [], score: 0, beam: 0 }], ended = [];
  for (const { name, shape } of inputs) {
    if (name.startsWith("self_")) cache[name] = new Tensor(new Float32Array(shape.reduce((a, b) => a * b)), shape);
  }
  const rows = inputs.find(({ name }) => name === "self_keys").shape[0], heads = rows / beams / settings.blocks;
  for (let position = 0; position < most && live.length; position++) {
    const each = Array.from({ length: beams }, (_, i) => live[i] ?? live[0]);
    const given = { token: integers(each.map(({ tokens }) => tokens.at(-1) ?? start)), position: integers([position]) };
    if (beams > 1) {
      const row = (block, beam, head) => (block * beams + each[beam].beam) * heads + head;
      const of = (i) => row(Math.floor(i / heads / beams), Math.floor(i / heads) % beams, i % heads);
      given.cache_rows = integers(Array.from({ length: rows }, (_, i) => of(i)));
    }
    const { logits, ...next } = await model.run("decode_step", { ...given, ...cache, ...kept });
    const values = await logits.data(), size = values.length / beams, found = [];
    for (const [beam, { tokens, score }] of live.entries()) {
      const own = values.subarray(beam * size, (beam + 1) * size), largest = own.reduce((a, b) => Math.max(a, b));
      const total = largest + Math.log(own.reduce((sum, x) => sum + Math.exp(x - largest), 0));
      const missing = placeholders.filter((id) => ids.includes(id) && !tokens.includes(id));
      for (const id of placeholders) if (!missing.includes(id)) own[id] = -Infinity;
      if (missing.length) own[end] = -Infinity;
      const order = Array.from(own.keys()).sort((a, b) => own[b] - own[a]).slice(0, 2 * beams);
      for (const token of order) found.push({ tokens: [...tokens, token], score: score + own[token] - total, beam });
    }
    free({ logits, ...given, ...cache });
    cache = Object.fromEntries(Object.entries(next).map(([name, tensor]) => [name.replace("next_", ""), tensor]));
    const chosen = best(found).slice(0, 2 * beams);
    const done = ({ tokens }) => tokens.at(-1) === end || position + 1 === most;
    const finished = chosen.slice(0, beams).filter(done);
    ended.push(...finished.map((path) => ({ ...path, score: path.score / divisor(position + 1, settings) })));
    ended = best(ended).slice(0, beams);
    live = chosen.filter((path) => !done(path)).slice(0, beams);
    const reachable = Math.max(...[most, position + 2].map((length) => live[0]?.score / divisor(length, settings)));
    if (ended.length && reachable <= ended[0].score) break;
  }
  free({ ...cache, ...cross });
  return ended[0].tokens;
};
</script>"""


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("kind", choices=("webgpu", "integers"))
    parser.add_argument("run")
    parser.add_argument("--source", required=True, help="file of sentences")
    parser.add_argument("--reference", help="file of their translations")
    parser.add_argument("--calibration", help="file of sentences that show how large activations are")
    parser.add_argument("--sentences", type=int, default=1000)
    parser.add_argument("--on-processor", action="store_true", help="WebGPU on the processor, also where a GPU is")
    parser.add_argument("--num-beams", type=int, help="default: that of the run")
    arguments = parser.parse_args()
    if arguments.kind == "integers" and not (arguments.reference and arguments.calibration):
        parser.error("integers needs --reference and --calibration")
    options = {} if arguments.num_beams is None else {"num_beams": arguments.num_beams}
    translator = Translator.load(arguments.run, max_source_length=LENGTH, jit_compile=False, **options)
    sources = read_lines(arguments.source)[: arguments.sentences]
    if arguments.kind == "webgpu":
        webgpu(translator, sources, ["--use-webgpu-adapter=swiftshader"] if arguments.on_processor else [])
    else:
        references = read_lines(arguments.reference)[: arguments.sentences]
        integers(translator, sources, references, read_lines(arguments.calibration)[:20])


def padded(ids, length=LENGTH):
    return np.array([ids + [0] * (length - len(ids))], "int32")


def most_tokens(translator, ids, length=LENGTH):
    """The maximum number of tokens of a translation, the end token included."""
    return min(length, int(translator.settings.max_length_ratio * len(ids) + LENGTH_MARGIN))


def webgpu(translator, sources, flags):
    from playwright.sync_api import sync_playwright

    rows, settings = translator.codec.source_ids(sources), translator.settings
    given = {name: getattr(settings, name) for name in ("length_penalty", "length_penalty_type")}
    given["blocks"] = len(translator.model.decoder_blocks)
    given["num_placeholders"] = translator.codec.num_placeholders
    wanted = translator.translate(sources, max_target_length=LENGTH, return_scores=True)
    with tempfile.TemporaryDirectory() as folder:
        for file in ("package.json", "package-lock.json"):
            shutil.copy(SOURCES / file, folder)
        subprocess.run(NPM_CI, cwd=folder, check=True, stdout=subprocess.DEVNULL)
        (Path(folder) / "index.html").write_text(PAGE, encoding="utf-8")
        (Path(folder) / "steps.tflite").write_bytes(steps_file(translator, LENGTH, LENGTH))
        server = ThreadingHTTPServer(("127.0.0.1", 0), lambda *request: Handler(*request, directory=folder))
        threading.Thread(target=server.serve_forever, daemon=True).start()
        with sync_playwright() as playwright:
            browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=[*FLAGS, *flags])
            page = browser.new_page()
            page.on("console", lambda message: print(message.text) if "ERROR" in message.text else None)
            page.goto(f"http://127.0.0.1:{server.server_port}/")
            page.wait_for_function("'load' in window")
            print(page.evaluate("load()"), flush=True)
            began, same, steps = time.perf_counter(), 0, 0
            for i, (ids, best) in enumerate(zip(rows, wanted, strict=True), 1):
                inputs = [padded(ids)[0].tolist(), most_tokens(translator, ids), settings.num_beams, given]
                found = page.evaluate("(given) => translate(...given)", [*inputs, START_TOKEN_ID, END_TOKEN_ID])
                same, steps = same + (tuple(found) == best.token_ids), steps + len(found)
                if i % 100 == 0 or i == len(rows):
                    seconds = (time.perf_counter() - began) / steps
                    print(
                        f"{same} of {i} translations are the same; {1e3 * seconds:.1f} ms a step, all in all",
                        flush=True,
                    )
        server.shutdown()


class Handler(SimpleHTTPRequestHandler):
    def log_message(self, *args):
        pass


class Steps:
    """Beam search with a `steps_file` of a translator: K beams, of all settings only the length penalty."""

    def __init__(self, file, translator, source_length=LENGTH, target_length=LENGTH):
        self.source_length, self.target_length = source_length, target_length
        self.translator, self.settings, self.num_beams = translator, translator.settings, translator.settings.num_beams
        interpreter = Interpreter(model_content=bytes(file), num_threads=2)
        self.encode, self.decode_step = map(interpreter.get_signature_runner, STEPS)
        inputs = self.decode_step.get_input_details()
        self.empty = {name: np.zeros(x["shape"], x["dtype"]) for name, x in inputs.items() if name.startswith("self_")}
        self.placeholders = [END_TOKEN_ID + 1 + i for i in range(translator.codec.num_placeholders)]
        blocks = len(translator.model.decoder_blocks)
        rows = np.arange(len(self.empty["self_keys"]), dtype="int32")
        self.rows = rows.reshape(blocks, self.num_beams, -1)  # Blocks, beams, heads.

    def translate(self, ids):
        """The translation of token ids, and all inputs of the signatures on the way."""
        source, count = padded(ids, self.source_length), self.num_beams
        cross = {f"{name}_in": value for name, value in self.encode(token_ids=source).items()}
        given, most = [("encode", {"token_ids": source})], most_tokens(self.translator, ids, self.target_length)
        live, ended, cache = [((), 0.0, 0)], [], self.empty  # Tokens, score, and the beam that they continue.
        for position in range(most):
            beams = [*live, *[live[0]] * (count - len(live))]
            tokens = [path[-1] if path else START_TOKEN_ID for path, _, _ in beams]
            step = {"token": np.array(tokens, "int32"), "position": np.array([position], "int32"), **cache, **cross}
            if count > 1:
                step["cache_rows"] = self.rows[:, [beam for _, _, beam in beams]].reshape(-1)
            given.append(("decode_step", step))
            outputs = self.decode_step(**step)
            logits = outputs.pop("logits").astype("float64")
            cache = {name.replace("next_", ""): value for name, value in outputs.items()}
            log_probs = logits - np.logaddexp.reduce(logits, axis=1, keepdims=True)
            found = []
            for beam, (path, score, _) in enumerate(live):
                # Placeholders of the source are written once each, and no others.
                missing = {id for id in self.placeholders if id in ids and id not in path}
                log_probs[beam, [id for id in self.placeholders if id not in missing]] = -np.inf
                log_probs[beam, END_TOKEN_ID] += -np.inf if missing else 0
                order = np.argsort(-log_probs[beam], kind="stable")[: 2 * count]
                found += [((*path, int(token)), score + log_probs[beam, token], beam) for token in order]
            found = sorted(found, key=lambda path: -path[1])[: 2 * count]
            done = [path[-1] == END_TOKEN_ID or position + 1 == most for path, _, _ in found]
            finished = [path for path, ends in zip(found[:count], done, strict=False) if ends]
            ended += [(path, score / self.divisor(position + 1)) for path, score, _ in finished]
            ended = sorted(ended, key=lambda path: -path[1])[:count]
            live = [path for path, ends in zip(found, done, strict=True) if not ends][:count]
            if not live or (ended and max(live[0][1] / self.divisor(n) for n in (most, position + 2)) <= ended[0][1]):
                break
        return ended[0][0], given

    def divisor(self, length):
        return length_penalty_divisor(length, self.settings.length_penalty, self.settings.length_penalty_type)


def integers(translator, sources, references, calibration):
    from ai_edge_quantizer import calibrator, quantizer, recipe
    from ai_edge_quantizer.utils.qsv_utils import min_max_update

    file = steps_file(translator, LENGTH, LENGTH)
    steps, examples = Steps(file, translator), {name: [] for name in STEPS}
    for ids in translator.codec.source_ids(calibration):
        for name, inputs in steps.translate(ids)[1]:
            examples[name].append(inputs)
    files = {"float32": file}
    for name in ("static_wi8_ai16", "static_wi8_ai8"):
        quantized = quantizer.Quantizer(bytearray(file), getattr(recipe, name)())
        # Not `quantized.calibrate`: it takes moving averages of the smallest and the largest number, and what is beyond
        # them is cut off. The products of attention do not survive that.
        ranges = calibrator.Calibrator(bytearray(file), num_threads=2, qsv_update_func=min_max_update)
        ranges.calibrate(examples, quantized._recipe_manager)
        files[name] = quantized.quantize(ranges.get_model_qsvs()).quantized_model
    rows, found = translator.codec.source_ids(sources), {}
    for name, content in files.items():
        steps = Steps(content, translator)
        ids = [steps.translate(row)[0] for row in rows]
        found[name] = translator.target_tokenizer.detokenize(ids)
        scores = corpus_scores(found[name], references)
        same = sum(map(str.__eq__, found[name], found["float32"])) / len(rows)
        bleu = {"BLEU": scores.bleu, "interval": scores.bleu_interval}
        print(json.dumps({"file": name, "MB": len(content) / 1e6, **bleu, "same": same}), flush=True)


if __name__ == "__main__":
    main()
