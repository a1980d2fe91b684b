/**
 * Translates in a thread of its own, so that the page never freezes.
 *
 * Takes messages `{id, kind, ...}`. Sends `{id, progress}` messages, then `{id, result}` or `{id, error}`.
 */

import { alignedTranslation } from "./alignment.js";
import { Translator } from "./translator.js";

const here = new URL(".", self.location.href).href;
let translator; // A promise.
const newest = {}; // The id of the last request of a kind; earlier translations are stopped.
const STREAMED = 20; // Of longer texts, whole sentences are shown, not the pieces of a sentence as they come.
let queue = Promise.resolve();

const requests = {
  async load({ folder }, progress) {
    const began = performance.now();
    await translator?.then((model) => model.delete(), () => {});
    translator = Translator.load(here + folder, `${here}litert/`, (loaded) => progress({ loaded }));
    const loaded = await translator;
    return { seconds: (performance.now() - began) / 1000, settings: loaded.settings };
  },

  /** The numbers of sentences and of tokens. */
  async count({ text, ...request }) {
    await otherMessages(request);
    const model = await translator, sentences = sentencesOf(await model.split(text, () => otherMessages(request)));
    let tokens = 0;
    for (const one of sentences) tokens += (await model.encode(one, null)).ids.length - 1;
    return { sentences: sentences.length, tokens };
  },

  async translate({ text, language, ...request }, progress) {
    const model = await translator, times = {}, sentences = [];
    const parts = await model.split(text, () => otherMessages(request));
    const timed = async (name, work) => {
      const began = performance.now();
      const result = await work();
      times[name] = (times[name] ?? 0) + performance.now() - began;
      return result;
    };
    progress({ parts });
    for (const [index, sentence] of sentencesOf(parts).entries()) {
      const source = await model.encode(sentence, language), { ids, kept, unchanged } = source;
      if (parts.length <= 2 * STREAMED + 1 && unchanged === null) {
        await timed("greedy", async () => {
          const tokens = [];
          for await (const token of model.steps(ids)) {
            tokens.push(token);
            progress({ index, text: await model.decode(tokens, kept) });
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
      progress({ index, hypothesis: hypotheses[0], done: true });
    }
    const best = sentences.map(({ hypotheses }) => hypotheses[0].text);
    const translated = model.sentences.spaced(parts.map((part, i) => (i % 2 ? best[(i - 1) / 2] : part)));
    return { sentences, separators: translated.filter((_, i) => i % 2 === 0), times };
  },

  /** Texts translated with alignments; progress is the number of finished ones. */
  async align({ texts, language, ...request }, progress) {
    const model = await translator, found = [];
    for (const text of texts) {
      await otherMessages(request);
      found.push(await alignedTranslation(model, text, language));
      progress(found.length);
    }
    return found;
  },

  /** The attention of a hypothesis, and its `words`. */
  async attention({ source, hypothesis }) {
    const model = await translator;
    const words = hypothesis.words ?? (await model.words(source, hypothesis));
    return { ...(await model.attention(source, hypothesis)), words };
  },
};

/** The sentences among separators and sentences in turn. */
const sentencesOf = (parts) => parts.filter((_, i) => i % 2);

const channel = new MessageChannel();

class Superseded extends Error {}

/** Lets other messages be handled; unlike a timer, this has no delay. A later request of the same kind is an error. */
async function otherMessages({ id, kind }) {
  await new Promise((resolve) => {
    channel.port1.onmessage = resolve;
    channel.port2.postMessage(null);
  });
  if (id !== newest[kind]) throw new Superseded();
}

self.onmessage = ({ data }) => {
  const { id, kind } = data;
  newest[kind] = id;
  queue = queue.then(async () => {
    try {
      self.postMessage({ id, result: await requests[kind](data, (progress) => self.postMessage({ id, progress })) });
    } catch (error) {
      if (error instanceof Superseded) self.postMessage({ id, result: { superseded: true } });
      else self.postMessage({ id, error: error.message ?? String(error) });
    }
  });
};
