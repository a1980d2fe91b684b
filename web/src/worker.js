/**
 * Translates in a thread of its own, so that the page never freezes.
 *
 * Takes messages `{id, kind, ...}`. Sends `{id, progress}` messages, then `{id, result}` or `{id, error}`.
 */

import { Translator } from "./translator.js";

const here = new URL(".", self.location.href).href;
let translator; // A promise.
let newest = 0; // The id of the last request for a translation; earlier ones are stopped.
let queue = Promise.resolve();

const requests = {
  async load({ folder }, progress) {
    const began = performance.now();
    await translator?.then((model) => model.delete(), () => {});
    translator = Translator.load(here + folder, `${here}litert/`, (loaded) => progress({ loaded }));
    const loaded = await translator;
    return { seconds: (performance.now() - began) / 1000, longest: loaded.longest, settings: loaded.settings };
  },

  async count({ text }) {
    return (await translator).source.encode(text).length;
  },

  async translate({ id, text }, progress) {
    const model = await translator;
    const { ids, truncated } = model.encode(text);
    if (ids.length <= 1) return { empty: true }; // Empty input gives empty output.
    const times = {};
    const timed = async (name, work) => {
      const began = performance.now();
      const result = await work();
      times[name] = performance.now() - began;
      return result;
    };
    await timed("greedy", async () => {
      const tokens = [];
      for await (const token of model.steps(ids)) {
        tokens.push(token);
        progress({ text: model.decode(tokens) });
        await otherMessages();
        if (id !== newest) break;
      }
    });
    if (id !== newest) return { superseded: true };
    const hypotheses = await timed("search", () => model.translate(ids));
    const attention = await timed("attention", () => model.attention(ids, hypotheses[0].ids));
    return { ids, truncated, hypotheses, attention, times };
  },

  async attention({ source, target }) {
    return (await translator).attention(source, target);
  },
};

const channel = new MessageChannel();

/** Lets other messages be handled; unlike a timer, this has no delay. */
function otherMessages() {
  return new Promise((resolve) => {
    channel.port1.onmessage = resolve;
    channel.port2.postMessage(null);
  });
}

self.onmessage = ({ data }) => {
  const { id, kind } = data;
  if (kind === "translate") newest = id;
  queue = queue.then(async () => {
    try {
      self.postMessage({ id, result: await requests[kind](data, (progress) => self.postMessage({ id, progress })) });
    } catch (error) {
      self.postMessage({ id, error: error.message ?? String(error) });
    }
  });
};
