/**
 * Translates in the browser, in a worker of its own, with a model that `keras_transformer export web` or `export tflite`
 * wrote. In a page, this file is `translator.js`, and `worker.js` and `litert/` lie beside it.
 *
 * `README.md` has a page that uses it; `library.d.ts` has the types and says what everything means.
 */

import { translateMarkup } from "./markup.js";

export async function createTranslator(folder, { onProgress, signal } = {}) {
  const lack = missing();
  if (lack) throw new Error(lack);
  const translator = new Translator(new Worker(new URL("worker.js", import.meta.url)));
  try {
    await translator.load(new URL(folder, document.baseURI).href.replace(/\/+$/, ""), { onProgress, signal });
  } catch (error) {
    translator.close();
    throw error;
  }
  return translator;
}

/** A message about what this browser lacks, or an empty string. */
function missing() {
  const simd = Uint8Array.of(0, 97, 115, 109, 1, 0, 0, 0, 1, 5, 1, 96, 0, 1, 123, 3, 2, 1, 0, 10, 10, 1, 8, 0, 65, 0, 253, 15, 253, 98, 11);
  const found = typeof Worker === "function" && typeof WebAssembly === "object" && WebAssembly.validate(simd);
  return found ? "" : "This browser is too old: translating needs web workers and WebAssembly with SIMD, as in Chrome 91, Firefox 89 or Safari 16.4 and later.";
}

class Translator {
  #worker;
  #calls = new Map();
  #count = 0;
  #ended; // The error that ended the worker.

  constructor(worker) {
    this.#worker = worker;
    worker.onmessage = ({ data: { id, progress, result, error } }) => {
      const call = this.#calls.get(id);
      if (!call) return; // It was aborted.
      if (progress !== undefined) return call.onProgress(progress);
      this.#calls.delete(id);
      if (error !== undefined) call.reject(new Error(error));
      else call.resolve(result);
    };
    worker.onerror = (event) => this.#end(new Error(`The translator stopped: ${event.message || "its script could not be loaded"}.`));
  }

  /** Sends a request to the worker; `onProgress` is called with each progress message before the answer. */
  #ask(kind, content, { targetLanguage, onProgress = () => {}, signal } = {}) {
    return new Promise((resolve, reject) => {
      signal?.throwIfAborted();
      if (this.#ended) throw this.#ended;
      if (targetLanguage && !this.languages.includes(targetLanguage)) {
        const known = this.languages.join(", ") || "one, which needs no name";
        throw new RangeError(`targetLanguage must be a language of the model. Received: ${targetLanguage}. The model has: ${known}.`);
      }
      const id = ++this.#count;
      this.#worker.postMessage({ id, kind, targetLanguage: targetLanguage || undefined, ...content });
      this.#calls.set(id, { resolve, reject, onProgress });
      signal?.addEventListener("abort", () => {
        if (this.#calls.delete(id)) this.#worker.postMessage({ cancel: id });
        reject(signal.reason);
      });
    });
  }

  async load(folder, options) {
    Object.assign(this, await this.#ask("load", { folder }, options));
  }

  get languages() {
    return Object.keys(this.settings.languages);
  }

  async translate(text, options = {}) {
    const parts = [], translations = [];
    const onProgress = (event) => {
      if (event.parts) {
        parts.push(...event.parts);
        translations.push(...event.parts.map((part, i) => (i % 2 ? "" : part)));
      } else translations[2 * event.index + 1] = event.hypothesis?.text ?? event.sentence;
      options.onProgress?.({ ...event, parts, get text() { return translations.join(""); } });
    };
    return this.#ask("translate", { text }, { ...options, onProgress });
  }

  async count(text, options) {
    return this.#ask("count", { text }, options);
  }

  async align(texts, options) {
    return this.#ask("align", { texts }, options);
  }

  async attention(source, hypothesis = source.hypotheses[0], options = {}) {
    return this.#ask("attention", { source, hypothesis }, options);
  }

  async explain(text, changes, options) {
    return this.#ask("explain", { text, changes }, options);
  }

  async translateMarkup(node, options = {}) {
    const { markup, source_language, translation_language } = this.settings;
    const languages = [source_language ?? "", options.targetLanguage || (translation_language ?? "")];
    await translateMarkup(node, markup, languages, (texts) => this.align(texts, options));
  }

  close() {
    this.#end(new DOMException("The translator was closed.", "AbortError"));
  }

  #end(error) {
    this.#ended ??= error;
    this.#worker.terminate();
    for (const { reject } of this.#calls.values()) reject(this.#ended);
    this.#calls.clear();
  }
}
