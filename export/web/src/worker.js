/**
 * Translates in a thread of its own, so that the page never freezes.
 *
 * Takes messages `{id, kind, ...}`, the first one of the kind `load`, and `{cancel: id}`. Sends `{id, progress}` messages,
 * then `{id, result}` or `{id, error}`.
 */

import { alignedTranslation } from "./alignment.js";
import { explain } from "./explain.js";
import { Translator } from "./translator.js";

const running = new Set(); // The ids of requests that were not cancelled.
const STREAMED = 20; // Of longer texts, whole sentences are shown, not the pieces of a sentence as they come.
let model, queue = Promise.resolve();

const requests = {
  async load({ folder, litert }, progress) {
    model = await Translator.load(folder, litert, progress);
    return model.settings;
  },

  /** The numbers of sentences and of tokens. */
  async count({ text, ...request }) {
    await otherMessages(request);
    const sentences = sentencesOf(await model.split(text, () => otherMessages(request)));
    let tokens = 0;
    for (const one of sentences) tokens += (await model.encode(one, null)).ids.length - 1;
    return { sentences: sentences.length, tokens };
  },

  async translate({ text, targetLanguage, ...request }, progress) {
    const times = {}, sentences = [];
    const parts = await model.split(text, () => otherMessages(request));
    const timed = async (name, work) => {
      const began = performance.now();
      const result = await work();
      times[name] = (times[name] ?? 0) + performance.now() - began;
      return result;
    };
    progress({ parts });
    for (const [index, sentence] of sentencesOf(parts).entries()) {
      const source = await model.encode(sentence, targetLanguage), { ids, kept, unchanged } = source;
      if (parts.length <= 2 * STREAMED + 1 && unchanged === null) {
        await timed("greedy", async () => {
          const tokens = [];
          for await (const token of model.steps(ids)) {
            tokens.push(token);
            progress({ index, sentence: await model.decode(tokens, kept) });
            await otherMessages(request);
          }
        });
      }
      await otherMessages(request);
      // A sentence of nothing that the tokenizer keeps has an empty translation, as in Python.
      const search = ids.length > 1 && unchanged === null;
      const hypotheses = search ? await timed("search", () => model.translate(ids, kept)) : [{ ids: [], pieces: [], text: unchanged ?? "", score: 0 }];
      hypotheses[0].words = await timed("confidence", () => model.words(source, hypotheses[0]));
      sentences.push({ ...source, source: sentence, hypotheses });
      progress({ index, hypothesis: hypotheses[0] });
    }
    const best = sentences.map(({ hypotheses }) => hypotheses[0].text);
    const translated = model.sentences.spaced(parts.map((part, i) => (i % 2 ? best[(i - 1) / 2] : part)));
    return { text: translated.join(""), sentences, separators: translated.filter((_, i) => i % 2 === 0), times };
  },

  /** Texts translated with alignments. */
  async align({ texts, targetLanguage, ...request }, progress) {
    const found = [];
    for (const text of texts) {
      found.push(await alignedTranslation(model, text, targetLanguage, () => otherMessages(request)));
      progress({ finished: found.length, total: texts.length });
    }
    return found;
  },

  /** The attention of a hypothesis, and its `words`. */
  async attention({ source, hypothesis }) {
    const words = hypothesis.words ?? (await model.words(source, hypothesis));
    return { ...(await model.attention(source, hypothesis)), words };
  },

  /** A search with changes; see `explain.js`. */
  async explain({ text, changes, targetLanguage, ...request }) {
    return explain(model, text, targetLanguage, changes, () => otherMessages(request));
  },
};

/** The sentences among separators and sentences in turn. */
const sentencesOf = (parts) => parts.filter((_, i) => i % 2);

const channel = new MessageChannel();

/** Lets other messages be handled; unlike a timer, this has no delay. If the request was cancelled, this is an error. */
async function otherMessages({ id }) {
  await new Promise((resolve) => {
    channel.port1.onmessage = resolve;
    channel.port2.postMessage(null);
  });
  if (!running.has(id)) throw new Error("cancelled");
}

self.onmessage = ({ data }) => {
  const { id, kind, cancel } = data;
  if (cancel) return running.delete(cancel);
  running.add(id);
  queue = queue.then(async () => {
    if (!running.has(id)) return;
    try {
      self.postMessage({ id, result: await requests[kind](data, (progress) => self.postMessage({ id, progress })) });
    } catch (error) {
      self.postMessage({ id, error: error.message ?? String(error) });
    }
    running.delete(id);
  });
};
