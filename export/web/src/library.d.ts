/**
 * Translates in the browser, in a worker, with a model that keras_transformer exported. The README of these sources shows a
 * page of one's own.
 *
 * All that is asked of a translator is done in turn. Promises are rejected with an `Error` that says what is wrong, or, after
 * an abort, with the reason of the signal: a `DOMException` with the name `AbortError`.
 */

/**
 * Loads a model.
 *
 * @param folder The address of a folder with `translator.tflite` and `translator.json`: what `export tflite` writes, or
 *   `models/NAME` in what `export web` writes. Relative addresses are relative to the page.
 */
export function createTranslator(folder: string | URL, options?: Options<Loaded>): Promise<Translator>;

/** The name of a language of a model, such as "German" for `de`; `into` is the code of the language of the name. */
export function languageName(code: string, into?: string): string;

export interface Options<Progress> {
  /** Ends the work when it is aborted. */
  signal?: AbortSignal;
  onProgress?: (progress: Progress) => void;
}

export interface TranslationOptions<Progress> extends Options<Progress> {
  /** One of `languages`. By default that of the export. */
  targetLanguage?: string | null;
}

/** Bytes of the model; `total` is missing if the server does not say it, or compresses the file. */
export interface Loaded {
  loaded: number;
  total?: number;
}

export interface Translator {
  /** The content of `translator.json`. */
  readonly settings: Readonly<Record<string, any>>;
  /** The codes of the languages into which the model translates, such as `de`, as far as they are known. */
  readonly languages: string[];
  /** From which language into which; null is unknown. */
  readonly directions: Array<{ source: string | null; target: string | null }>;

  /** Translates a text of any length, sentence by sentence. */
  translate(text: string, options?: TranslationOptions<TranslationProgress>): Promise<Translation>;
  /** The numbers of sentences and of tokens of a text. */
  count(text: string, options?: Options<never>): Promise<{ sentences: number; tokens: number }>;
  /** Translates texts, and says from where in a text each character of its translation comes. */
  align(texts: string[], options?: TranslationOptions<Finished>): Promise<Aligned[]>;
  /**
   * Translates what is in an element or a fragment, in place: the texts change, the markup stays. If this fails or is
   * aborted, nothing changes.
   */
  translateMarkup(node: Element | DocumentFragment, options?: TranslationOptions<Finished>): Promise<void>;
  /** Where each attention head looked in a sentence, by default when its best hypothesis was written. */
  attention(sentence: Sentence, hypothesis?: Hypothesis, options?: Options<never>): Promise<Attention>;
  /** Translates one sentence step by step, with changes of the model. The model must be one of `export web`. */
  explain(text: string, changes?: Changes, options?: TranslationOptions<never>): Promise<Explanation>;
  /** Ends the worker and frees its memory. What it still works on is aborted. */
  close(): void;
}

export interface Translation {
  text: string;
  sentences: Sentence[];
  /** What stands before, between and after the translated sentences: one more than there are sentences. */
  separators: string[];
  /** Milliseconds: `greedy` for the sentences as they grow, `search` for beam search, `confidence` for `words`. */
  times: { greedy?: number; search?: number; confidence?: number };
}

export interface Sentence {
  source: string;
  /** Token ids, the end token last, and the part of the sentence that each one stands for. */
  ids: number[];
  pieces: string[];
  /** The best translations that the search found, the best first. */
  hypotheses: Hypothesis[];
}

export interface Hypothesis {
  text: string;
  /** The log probability divided by the length penalty. */
  score: number;
  ids: number[];
  pieces: string[];
  /**
   * `[begin, end, confidence]` of each word: how likely it is right, from 0 to 1. Of the best hypothesis; empty if the run
   * has no calibration. `attention` says it of others.
   */
  words?: Array<[number, number, number]>;
}

/** Comes once before the first sentence, then for each piece of a translation, and with the hypothesis when it is found. */
export interface TranslationProgress {
  /** What is translated so far. */
  readonly text: string;
  /** Separators and sentences of the source, in turn. */
  parts: string[];
  /** Which sentence, from 0; missing before the first one. */
  index?: number;
  /** What there is of the sentence's translation. Texts of more than 20 sentences come in whole sentences alone. */
  sentence?: string;
  hypothesis?: Hypothesis;
}

/** Numbers of texts. */
export interface Finished {
  finished: number;
  total: number;
}

export interface Aligned {
  text: string;
  /** For each character (UTF-16 code unit) of the translation, its place in the source, or null. */
  origins: Array<number | null>;
  /** For each character of the source, the place in the translation that is most likely to come from it, or null. */
  nearest: Array<number | null>;
}

export interface Attention {
  /** What the tokens stand for. The first `tags` of the source are language tags. */
  source: string[];
  target: string[];
  tags: number;
  layers: number;
  heads: number;
  /** `scores[layer][head][t][s]`: the weight of source token s when target token t was written. */
  scores: Float32Array[][][];
  words: Array<[number, number, number]>;
}

/** What is not as the model was trained and exported. */
export interface Changes {
  /** Heads that are off. */
  off?: Array<[kind: Kind, layer: number, head: number]>;
  /** Indices of source tokens that all attention ignores. */
  hidden?: number[];
  /** Other positions of source tokens, by their indices. */
  positions?: Record<number, number>;
  /** What is added to the position of each target token. */
  shift?: number;
  numBeams?: number;
  lengthPenalty?: number;
}

/** Encoder self-attention, decoder self-attention, cross-attention. */
export type Kind = "encoder" | "decoder" | "cross";

export interface Explanation {
  /** What the source tokens stand for. The first `tags` of them are language tags. */
  source: string[];
  tags: number;
  /** The numbers of layers and of heads. */
  heads: Record<Kind, [layers: number, heads: number]>;
  /** The width of a head. */
  keyDim: number;
  numBeams: number;
  lengthPenalty: number;
  /** The best first; none if there is nothing to translate. The score is `logProb / divisor`. */
  hypotheses: Array<{ text: string; tokens: string[]; logProb: number; divisor: number; score: number }>;
  /** For each step of the search, the prefixes that are alive after it and those that ended in it. */
  steps: Array<{ live: Prefix[]; ended: Prefix[] }>;
  /** Of the best hypothesis, `[layer][head][row][column]`; missing without one. */
  attention?: Record<Kind, number[][][][]>;
}

export interface Prefix {
  /** The newest token. */
  token: string;
  logProb: number;
  /** Which of the live prefixes of the step before it continues. */
  parent: number;
  /** Whether the best hypothesis begins with it. */
  best: boolean;
}
