/** Translates in the browser with an exported TFLite folder: `translator.tflite` and `translator.json`. */

import { loadAndCompile, loadLiteRt, supportsFeature, Tensor } from "@litertjs/core";
import { Placeholders } from "./placeholders.js";
import { Sentences } from "./sentences.js";

let runtime;

export class Translator {
  #model;
  #tokenized = new Map(); // While somebody types, most sentences stay the same.

  /**
   * @param {string} folder address of the folder
   * @param {string[][]} litert addresses of LiteRT's script and WebAssembly, without and with relaxed SIMD
   * @param onProgress called with `{loaded, total}`: the number of bytes of the model so far and, if the server says it, of all
   */
  static async load(folder, litert, onProgress = () => {}) {
    const translator = new Translator();
    [translator.settings, translator.sentences, translator.placeholders] = await settings(`${folder}/translator.json`);
    const bytes = await download(`${folder}/translator.tflite`, onProgress);
    const [script, wasm] = litert[Number(await supportsFeature("relaxedSimd"))];
    globalThis.Module = { locateFile: () => wasm };
    runtime ??= loadLiteRt(script).catch((error) => {
      runtime = undefined; // So that the next call tries again.
      throw new Error(`LiteRT's WebAssembly could not be started from ${script}: ${error.message ?? error}`);
    });
    await runtime;
    translator.#model = await loadAndCompile(bytes, { accelerator: "wasm" }).catch((error) => {
      throw new Error(`${folder}/translator.tflite cannot be used: ${error.message ?? error}.`);
    });
    const outputs = translator.#model.signatures.tokenize?.getOutputDetails() ?? [];
    if (!outputs.some(({ name }) => name === "ends")) {
      translator.delete();
      throw new Error(`${folder}/translator.tflite cannot be used: it has no tokenizer that says where tokens end. Export it again.`);
    }
    return translator;
  }

  delete() {
    this.#model.delete();
  }

  /** The maximum number of tokens of a sentence; `split` cuts longer sentences. */
  get longest() {
    return this.settings.source_length - 1;
  }

  /**
   * What the model gets for a sentence.
   *
   * @param {string} sentence
   * @param {string} [language] one of `settings.languages`, whose tag comes first
   * @returns `{ids, pieces, kept, unchanged}`: the token ids, the end token last; the part of the text that each one
   *   stands for; the sentence with placeholders and the parts that they stand for; and the sentence if it has nothing
   *   to translate, else null.
   */
  async encode(sentence, language = this.settings.target_language) {
    const { text, parts } = this.placeholders.protect(this.sentences.plain(sentence));
    const found = await this.#tokenize(text), tag = this.settings.languages[language];
    const tags = tag !== undefined && found.ids.length > 0 ? [tag] : [];
    const ids = [...[...tags, ...found.ids].slice(0, this.longest), this.settings.end_token_id];
    const pieces = [...[...tags.map(() => ""), ...found.pieces].slice(0, this.longest), ""];
    const present = parts.map((part, i) => (ids.includes(this.settings.end_token_id + 1 + i) ? part : ""));
    const words = parts.length === 0 || this.placeholders.hasWords(text);
    const unchanged = words ? null : this.placeholders.restored(text, { text, parts });
    return { ids, pieces, kept: { text, parts: present }, unchanged };
  }

  /**
   * Separators and sentences of a text, in turn. Every sentence fits into the model. `between` is called, and awaited,
   * before each sentence; its error ends the work.
   */
  async split(text, between = () => {}) {
    return this.sentences.fitted(this.sentences.split(text), async (sentence) => {
      await between();
      return this.#fits(sentence);
    });
  }

  async #fits(sentence) {
    const tag = Object.keys(this.settings.languages).length > 0; // With a tag before it, the sentence must fit, too.
    const { ids, truncated } = await this.#tokenize(this.placeholders.protect(sentence).text);
    return !truncated && ids.length + tag <= this.longest;
  }

  /** The ids of a text; the part of the text that each one stands for; and whether the text has more. */
  async #tokenize(text) {
    if (this.#tokenized.has(text)) return this.#tokenized.get(text);
    const { source_bytes, end_token_id } = this.settings, bytes = new Uint8Array(source_bytes);
    const { read } = new TextEncoder().encodeInto(text, bytes);
    const found = await this.run("tokenize", { text: new Tensor(bytes, [1, source_bytes]) });
    const ids = found.token_ids.toTypedArray(), count = ids.indexOf(end_token_id);
    const truncated = read < text.length || found.truncated.toTypedArray()[0] > 0;
    const tokens = { ids: Array.from(ids.subarray(0, count)), pieces: pieces(bytes, found.ends, count), truncated };
    free(found);
    if (this.#tokenized.size === MOST_TOKENIZED) this.#tokenized.clear();
    if (!truncated) this.#tokenized.set(text, tokens);
    return tokens;
  }

  /** The part of the translation that each of its token ids stands for. */
  async detokenize(ids) {
    const found = await this.run("detokenize", { translation_ids: this.#targetTensor(ids) });
    const parts = pieces(found.text.toTypedArray(), found.ends, ids.length);
    free(found);
    return parts;
  }

  /** The text of token ids, with the parts that placeholders stand for. */
  async decode(ids, kept = NOTHING_KEPT) {
    return this.placeholders.restored((await this.detokenize(ids)).join(""), kept, false);
  }

  /** The beginnings of a text, up to the end of each piece, with the parts that placeholders stand for. */
  beginnings(pieces, kept) {
    let text = "";
    return pieces.map((piece) => this.placeholders.restored((text += piece), kept, false));
  }

  /** The maximum number of tokens of a translation. */
  limit(sourceIds) {
    const { target_length, length_margin, settings } = this.settings;
    const limit = Math.floor(settings.max_length_ratio * sourceIds.length + length_margin);
    return Math.min(limit, settings.max_target_length ?? limit, target_length);
  }

  /** Greedy search as an async iterator of ids, to show a translation while it is made. */
  async *steps(sourceIds) {
    const { start_token_id, end_token_id, begins_with_tag } = this.settings, most = this.limit(sourceIds);
    const cross = await this.run("encode", { token_ids: this.sourceTensor(sourceIds) });
    let cache = {};
    try {
      for (const [name, shape] of Object.entries(this.shapes("decode_step"))) {
        if (name.startsWith("self_")) cache[name] = zeros(shape);
      }
      for (let position = 0, token = start_token_id; position < most && token !== end_token_id; position++) {
        const kept = { ...cache };
        for (const [name, tensor] of Object.entries(cross)) kept[`${name}_in`] = tensor;
        const { logits, ...next } = await this.run("decode_step", { token: int32([token]), position: int32([position]) }, kept);
        free(cache);
        cache = Object.fromEntries(Object.entries(next).map(([name, tensor]) => [name.replace("next_", ""), tensor]));
        token = begins_with_tag && position === 0 ? sourceIds[0] : argmax(logits.toTypedArray());
        logits.delete();
        yield token;
      }
    } finally {
      free(cache);
      free(cross);
    }
  }

  /** The translations of a text, best first: `{ids, pieces, text, score}`. */
  async translate(sourceIds, kept = NOTHING_KEPT) {
    const beam = "translate_beam" in this.#model.signatures;
    const found = await this.run(beam ? "translate_beam" : "translate", { token_ids: this.sourceTensor(sourceIds) });
    const ids = (beam ? found.hypothesis_ids : found.translation_ids).toTypedArray();
    const scores = (beam ? found.scores : found.score).toTypedArray();
    free(found);
    const { target_length, pad_token_id, no_hypothesis_score } = this.settings, rows = [];
    for (const [i, score] of scores.entries()) {
      if (score <= no_hypothesis_score) continue;
      const row = Array.from(ids.subarray(i * target_length, (i + 1) * target_length)).filter((id) => id !== pad_token_id);
      const pieces = await this.detokenize(row);
      rows.push({ ids: row, pieces, text: this.placeholders.restored(pieces.join(""), kept), score });
    }
    return rows;
  }

  /**
   * Where each head looked in the source, what `encode` returned, to write each token of a translation.
   *
   * @returns `{source, target, layers, heads, tags, scores}`: what tokens stand for, numbers, and
   *   `scores[layer][head][t]`, a Float32Array with one weight per source token. The first `tags` source tokens are
   *   language tags.
   */
  async attention(source, target) {
    const { source_length, target_length, languages } = this.settings;
    const inputs = { token_ids: this.sourceTensor(source.ids), translation_ids: this.#targetTensor(target.ids) };
    const found = await this.run("attention", inputs);
    const [{ shape }] = this.#model.signatures.attention.getOutputDetails();
    const [, layers, heads] = shape, values = found.scores.toTypedArray();
    free(found);
    const row = (layer, head, t) => {
      const start = ((layer * heads + head) * target_length + t) * source_length;
      return values.slice(start, start + source.ids.length);
    };
    const each = (count, make) => Array.from({ length: count }, (_, i) => make(i));
    return {
      source: this.labels(source, source.kept),
      target: this.labels(target, source.kept),
      layers,
      heads,
      tags: Number(Object.values(languages).includes(source.ids[0])),
      scores: each(layers, (layer) => each(heads, (head) => each(target.ids.length, (t) => row(layer, head, t)))),
    };
  }

  /**
   * How likely the words of a translation of a source, what `encode` returned, are right, as in
   * `keras_transformer/text/confidence.py`.
   *
   * @returns `[[begin, end, confidence], ...]`; nothing if the model was exported without a calibration
   */
  async words(source, { ids, pieces, text }) {
    const { confidence, end_token_id } = this.settings;
    if (!confidence || ids.length === 0) return [];
    const inputs = { token_ids: this.sourceTensor(source.ids), translation_ids: this.#targetTensor(ids) };
    const found = await this.run("score", inputs);
    const logProbs = found.token_log_probs.toTypedArray();
    free(found);
    const spans = [];
    for (const { length } of this.beginnings(pieces.slice(0, ids.filter((id) => id !== end_token_id).length), source.kept)) {
      const begin = spans.at(-1)?.[1] ?? 0;
      spans.push([begin, Math.max(begin, length)]);
    }
    const words = [];
    for (const { 0: word, index } of text.matchAll(WORD)) {
      const inside = spans.flatMap(([begin, end], i) => (begin < index + word.length && end > index ? [logProbs[i]] : []));
      if (inside.length > 0) words.push([index, index + word.length, calibrated(confidence, inside.reduce((a, b) => a + b))]);
    }
    return words;
  }

  /** What tokens are called in tables: `▁` stands for a space. */
  labels({ ids, pieces }, kept) {
    const { end_token_id, languages } = this.settings;
    const names = Object.fromEntries(Object.entries(languages).map(([code, id]) => [id, `>>${code}<<`]));
    names[end_token_id] = "</s>";
    for (const [i, part] of kept.parts.entries()) names[end_token_id + 1 + i] = part;
    return ids.map((id, i) => names[id] ?? pieces[i].replaceAll(" ", "▁"));
  }

  sourceTensor(ids) {
    return this.#padded(ids, this.settings.source_length);
  }

  #targetTensor(ids) {
    return this.#padded(ids, this.settings.target_length);
  }

  #padded(ids, length) {
    const padded = new Int32Array(length).fill(this.settings.pad_token_id);
    padded.set(ids);
    return int32(padded);
  }

  /** The shape of each input of a signature, by name; undefined if the model has no such signature. */
  shapes(name) {
    const details = this.#model.signatures[name]?.getInputDetails();
    return details && Object.fromEntries(details.map(({ name, shape }) => [name, Array.from(shape)]));
  }

  /** Runs a signature and frees `inputs`, but not `kept`. The caller must free the outputs. */
  async run(name, inputs, kept = {}) {
    try {
      return await this.#model.run(name, { ...inputs, ...kept });
    } finally {
      free(inputs);
    }
  }
}

const NOTHING_KEPT = { text: "", parts: [] };
const MOST_TOKENIZED = 10_000;
const WORD = /[\p{L}\p{N}][\p{L}\p{N}\p{M}'’-]*/gu;

function calibrated({ a, b, d }, logProb) {
  const prob = Math.min(Math.max(Math.exp(logProb), 1e-6), 1 - 1e-6);
  return 1 / (1 + Math.exp(-(a * Math.log(prob) - b * Math.log1p(-prob) + d)));
}

export const zeros = (shape) => new Tensor(new Float32Array(shape.reduce((a, b) => a * b)), shape);

export function int32(values) {
  return values.length === 1 ? new Tensor(Int32Array.from(values), [1]) : new Tensor(values, [1, values.length]);
}

/** The parts of a text that tokens stand for. A character of several tokens belongs to the last of them. */
function pieces(bytes, ends, count) {
  const decoder = new TextDecoder("utf-8", { ignoreBOM: true }), places = ends.toTypedArray().subarray(0, count);
  return Array.from(places, (end, i) => decoder.decode(bytes.subarray(places[i - 1] ?? 0, end), { stream: true }));
}

export function free(tensors) {
  for (const tensor of Object.values(tensors)) tensor.delete();
}

function argmax(values) {
  return values.reduce((best, value, i) => (value > values[best] ? i : best), 0);
}

async function get(address, hint = "") {
  const answer = await fetch(address).catch((error) => {
    throw new Error(`${address} could not be loaded (${error.message}). Is the server still running?`);
  });
  // Development servers send the page of an app for all that they do not have.
  const isPage = answer.headers.get("Content-Type")?.startsWith("text/html");
  const reason = answer.ok ? "the server sent a page instead" : `${answer.status} ${answer.statusText}`;
  if (!answer.ok || isPage) throw new Error(`${address} could not be loaded (${reason}).${hint}`);
  return answer;
}

/** The content of translator.json, after a check that the export wrote it, its `Sentences` and `Placeholders`. */
async function settings(address) {
  const answer = await get(address, " The folder of a model has this file; in a page, that is models/NAME.");
  try {
    const found = await answer.json();
    const whole = (name, least) => {
      if (!Number.isInteger(found?.[name]) || found[name] < least) throw new Error(`${name} must be a whole number from ${least} on`);
    };
    for (const name of ["source_length", "target_length", "source_bytes"]) whole(name, 1);
    for (const name of ["pad_token_id", "start_token_id", "end_token_id", "length_margin", "num_placeholders"]) whole(name, 0);
    const { settings, no_hypothesis_score, languages } = found;
    const numbered = languages instanceof Object && Object.values(languages).every(Number.isInteger);
    if (!numbered) throw new Error("languages must hold a number for each target language");
    if (!Number.isFinite(no_hypothesis_score)) throw new Error("no_hypothesis_score must be a number");
    if (!(settings?.max_length_ratio >= 0)) throw new Error("settings must have a max_length_ratio of at least 0");
    return [found, sentences(found), placeholders(found)];
  } catch (error) {
    throw new Error(`${address} cannot be used: ${error.message}.`);
  }
}

function sentences(found) {
  try {
    return new Sentences(found.sentences);
  } catch {
    throw new Error("sentences must hold the rules that split texts");
  }
}

function placeholders(found) {
  try {
    return new Placeholders(found.placeholders, found.num_placeholders);
  } catch {
    throw new Error("placeholders must hold the rules of what is not translated");
  }
}

async function download(address, onProgress) {
  const answer = await get(address), parts = [];
  // Of a compressed answer, the length is that of fewer bytes.
  const total = answer.headers.has("Content-Encoding") ? undefined : Number(answer.headers.get("Content-Length")) || undefined;
  let loaded = 0;
  for (const reader = answer.body.getReader(); ; ) {
    const { done, value } = await reader.read();
    if (done) break;
    parts.push(value);
    onProgress({ loaded: (loaded += value.length), total });
  }
  return new Uint8Array(await new Blob(parts).arrayBuffer());
}
