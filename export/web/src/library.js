/**
 * Translates in the browser, in a worker of its own, with a model that `keras_transformer export web` or `export tflite`
 * wrote. In a page, this file is `translator.js`, and `worker.js` and `litert/` lie beside it.
 *
 * `README.md` has a page that uses it; `library.d.ts` has the types and says what everything means.
 */

import { translateMarkup } from "./markup.js";

export async function createTranslator(folder, options) {
  const lack = missing();
  if (lack) throw new Error(lack);
  const address = new URL(folder, document.baseURI);
  address.search = address.hash = "";
  return Translator.load(address.href.replace(/\/+$/, ""), options);
}

export function languageName(code, into = "en") {
  try {
    return new Intl.DisplayNames(into, { type: "language" }).of(code.replaceAll("_", "-"));
  } catch {
    return code; // Not a code of a language.
  }
}

/** A message about what this browser lacks, or an empty string. */
function missing() {
  const simd = Uint8Array.of(0, 97, 115, 109, 1, 0, 0, 0, 1, 5, 1, 96, 0, 1, 123, 3, 2, 1, 0, 10, 10, 1, 8, 0, 65, 0, 253, 15, 253, 98, 11);
  const found = typeof Worker === "function" && typeof WebAssembly === "object" && WebAssembly.validate(simd);
  return found ? "" : "This browser is too old: translating needs web workers and WebAssembly with SIMD, as in Chrome 91, Firefox 89 or Safari 16.4 and later.";
}

/**
 * The addresses of LiteRT's script and WebAssembly, for browsers without and with relaxed SIMD. Bundlers find files whose
 * addresses are written like these, and copy them.
 */
const litert = () => [
  [new URL("litert/litert_wasm_compat_internal.js", import.meta.url), new URL("litert/litert_wasm_compat_internal.wasm", import.meta.url)].map(String),
  [new URL("litert/litert_wasm_internal.js", import.meta.url), new URL("litert/litert_wasm_internal.wasm", import.meta.url)].map(String),
];

class Translator {
  #worker;
  #calls = new Map();
  #count = 0;
  #ended; // The error that ended the worker.

  static async load(folder, { onProgress, signal } = {}) {
    const translator = new Translator();
    try {
      translator.settings = await translator.#ask("load", { folder, litert: litert() }, { onProgress, signal });
    } catch (error) {
      translator.close();
      throw error;
    }
    return translator;
  }

  constructor() {
    this.#worker = new Worker(new URL("worker.js", import.meta.url));
    this.#worker.onmessage = ({ data: { id, progress, result, error } }) => {
      const call = this.#calls.get(id);
      if (!call) return; // It was aborted.
      if (progress !== undefined) return call.onProgress(progress);
      this.#calls.delete(id);
      if (error !== undefined) call.reject(new Error(error));
      else call.resolve(result);
    };
    this.#worker.onerror = (event) => this.#end(new Error(`The translator stopped: ${event.message || "its script could not be loaded"}.`));
  }

  /** Sends a request to the worker; `onProgress` is called with each progress message before the answer. */
  #ask(kind, content, { targetLanguage, onProgress = () => {}, signal } = {}) {
    return new Promise((resolve, reject) => {
      signal?.throwIfAborted();
      const { texts = "text" in content ? [content.text] : [] } = content;
      if (!Array.isArray(texts)) throw new TypeError(`texts must be an array of strings. Received: ${texts}.`);
      for (const text of texts) {
        if (typeof text !== "string") throw new TypeError(`A text must be a string. Received: ${text}.`);
      }
      if (this.#ended) throw this.#ended;
      if (targetLanguage && !this.languages.includes(targetLanguage)) {
        const known = this.languages.join(", ") || "one, without a name";
        throw new RangeError(`targetLanguage must be one of the model's languages. Received: ${targetLanguage}. The model has: ${known}.`);
      }
      const id = ++this.#count;
      this.#worker.postMessage({ id, kind, targetLanguage: targetLanguage || undefined, ...content });
      const abort = () => {
        if (this.#calls.delete(id)) this.#worker.postMessage({ cancel: id });
        reject(signal.reason);
      };
      const last = (settle) => (value) => {
        signal?.removeEventListener("abort", abort);
        settle(value);
      };
      this.#calls.set(id, { resolve: last(resolve), reject: last(reject), onProgress });
      signal?.addEventListener("abort", abort);
    });
  }

  get languages() {
    return [...new Set(this.directions.map(({ target }) => target).filter(Boolean))];
  }

  get directions() {
    const { directions = [], languages, source_language: source = null, translation_language = null } = this.settings;
    const trained = directions.map((direction) => direction.split("-")).map(([source, target]) => ({ source, target }));
    // An imported model has languages that no run was trained for.
    const others = Object.keys(languages).filter((code) => !trained.some(({ target }) => target === code));
    const found = [...trained, ...others.map((target) => ({ source, target }))];
    return found.length ? found : [{ source, target: translation_language }];
  }

  async translate(text, options = {}) {
    const parts = [], translations = [];
    const onProgress = (event) => {
      if (event.parts) {
        for (const [i, part] of event.parts.entries()) { // Too many for arguments of `push`.
          parts.push(part);
          translations.push(i % 2 ? "" : part);
        }
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
