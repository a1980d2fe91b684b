/**
 * A search in single steps, with heads off, source tokens hidden and positions moved: what it did, and the attention.
 *
 * Without changes it finds what the model's own search finds, which is that of `keras_transformer/search/`. There is one
 * exception: a shortlist is not used.
 */

import { Tensor } from "@litertjs/core";
import { free, int32, zeros } from "./translator.js";

const IMPOSSIBLE = -1e9; // The log probability of tokens that a translation may not have.
const range = (length) => Array.from({ length }, (_, i) => i);

/**
 * @param model a `Translator`
 * @param {string} text one sentence
 * @param {string} [language] one of `settings.languages`
 * @param changes `Changes` of `library.d.ts`
 * @param between is called, and awaited, before each step; its error ends the work
 * @returns `Explanation` of `library.d.ts`
 */
export async function explain(model, text, language, changes = {}, between = () => {}) {
  const shapes = model.shapes("explain_step");
  if (!shapes) throw new Error("This model has no signatures that explain it: those that `export web` writes have them.");
  const { settings, source_length, target_length, end_token_id, languages } = model.settings;
  const source = await model.encode(text, language), sources = range(source.ids.length);
  const of_encoder = model.shapes("explain_encode").heads, of_decoder = shapes.heads.slice(1);
  const found = {
    source: model.labels(source, source.kept),
    tags: Number(Object.values(languages).includes(source.ids[0])),
    heads: { encoder: of_encoder, decoder: of_decoder, cross: of_decoder },
    keyDim: shapes.self_keys[1],
    numBeams: changes.numBeams ?? settings.num_beams,
    lengthPenalty: changes.lengthPenalty ?? settings.length_penalty,
  };
  // A sentence of nothing but placeholders, or of nothing at all, is not translated.
  if (sources.length === 1 || source.unchanged !== null) return { ...found, hypotheses: [], steps: [] };

  const factors = Object.fromEntries(Object.entries(found.heads).map(([kind, [layers, heads]]) => [kind, new Float32Array(layers * heads).fill(1)]));
  for (const [kind, layer, head] of changes.off ?? []) factors[kind][layer * found.heads[kind][1] + head] = 0;
  const place = (position) => Math.min(Math.max(position, 0), Math.max(source_length, target_length) - 1);
  const ids = source.ids.map((id, i) => (changes.hidden?.includes(i) ? 0 : id));
  // A hidden placeholder is not one that a translation lacks.
  const parts = source.kept.parts.map((part, i) => (ids.includes(end_token_id + 1 + i) ? part : ""));
  const { encoder_scores, ...cross } = await model.run("explain_encode", {
    token_ids: model.sourceTensor(ids),
    heads: new Tensor(factors.encoder, found.heads.encoder),
    positions: int32(Int32Array.from(range(source_length), (i) => place(changes.positions?.[i] ?? i))),
  });
  const encoderScores = encoder_scores.toTypedArray();
  free({ encoder_scores });
  const given = Object.fromEntries(Object.entries(cross).map(([name, one]) => [`${name}_in`, one]));
  const step = (token, position, caches) => model.run("explain_step", {
    token: int32([token]),
    position: int32([position]),
    heads: new Tensor(Float32Array.of(...factors.decoder, ...factors.cross), shapes.heads),
    positions: new Tensor(Int32Array.of(place(position + (changes.shift ?? 0))), [1, 1]),
  }, { ...given, ...caches });
  const empty = { self_keys: zeros(shapes.self_keys), self_values: zeros(shapes.self_values) };
  const { hypotheses, steps } = await search(model, source.ids, ids, found, step, empty, between).finally(() => free(cross));

  const row = (values, width, length, index) => Array.from(values.subarray(index * width, index * width + length));
  const eachHead = (kind, make) => range(found.heads[kind][0]).map((layer) => range(found.heads[kind][1]).map((head) => make(layer * found.heads[kind][1] + head)));
  const best = path(hypotheses[0]);
  found.attention = {
    encoder: eachHead("encoder", (head) => sources.map((s) => row(encoderScores, source_length, sources.length, head * source_length + s))),
    decoder: eachHead("decoder", (head) => best.map(({ scores }, t) => row(scores.self, target_length, t + 1, head))),
    cross: eachHead("cross", (head) => best.map(({ scores }) => row(scores.cross, source_length, sources.length, head))),
  };
  return { ...found, ...(await inWords(model, hypotheses, steps, { ...source.kept, parts })) };
}

/** A prefix from its first token on. */
function path(prefix) {
  return prefix ? [...path(prefix.before), prefix] : [];
}

/**
 * Greedy search for one beam, else beam search.
 *
 * @param ids those of the source, with 0 for hidden tokens
 * @param step runs one step of the decoder: `step(token, position, caches)`
 * @param empty the caches of the first step
 * @returns `{hypotheses, steps}` of prefixes
 */
async function search(model, sourceIds, ids, { numBeams, lengthPenalty }, step, empty, between) {
  const { start_token_id, end_token_id: end, num_placeholders, begins_with_tag, settings } = model.settings;
  const placeholders = range(num_placeholders).map((i) => end + 1 + i), limit = model.limit(sourceIds), steps = [];
  const divisor = (length) => (settings.length_penalty_type === "power" ? length : (5 + length) / 6) ** lengthPenalty;
  let live = [{ token: start_token_id, total: 0, logProb: 0 }], hypotheses = [], caches = [empty];

  /** The best continuations of a prefix, by the settings of the search; see `adjust` in Python. */
  function continuations(prefix, parent, position, logProbs, scores) {
    const next = (token, total, logProb = total) => ({ token, parent, scores, before: position ? prefix : undefined, total: prefix.total + total, logProb: prefix.logProb + logProb });
    if (begins_with_tag && position === 0) return [next(sourceIds[0], 0)]; // It was not chosen, so it costs nothing.
    const tokens = position ? path(prefix).map(({ token }) => token) : [], adjusted = logProbs.slice();
    for (const token of new Set(tokens)) adjusted[token] *= settings.repetition_penalty;
    const size = settings.no_repeat_ngram_size, newest = tokens.slice(tokens.length - size + 1).join();
    for (let i = size - 1; size > 0 && i < tokens.length; i++) {
      if (tokens[i] !== end && tokens.slice(i - size + 1, i).join() === newest) adjusted[tokens[i]] = IMPOSSIBLE;
    }
    const missing = placeholders.filter((id) => ids.includes(id) && !tokens.includes(id));
    for (const id of placeholders) if (!missing.includes(id)) adjusted[id] += IMPOSSIBLE;
    if (missing.length > 0 || position + 1 < settings.min_length) adjusted[end] += IMPOSSIBLE;
    return largest(adjusted, 2 * numBeams).map((token) => next(token, adjusted[token], logProbs[token]));
  }

  try {
    for (let position = 0; ; position++) {
      const candidates = [], used = caches;
      caches = [];
      try {
        for (const [parent, prefix] of live.entries()) {
          await between();
          const { log_probs, self_scores, cross_scores, ...next } = await step(prefix.token, position, used[prefix.parent ?? 0]);
          caches.push({ self_keys: next.next_self_keys, self_values: next.next_self_values });
          const scores = { self: self_scores.toTypedArray(), cross: cross_scores.toTypedArray() };
          candidates.push(...continuations(prefix, parent, position, log_probs.toTypedArray(), scores));
          free({ log_probs, self_scores, cross_scores });
        }
      } finally {
        used.forEach(free);
      }
      candidates.sort((one, other) => other.total - one.total);
      const length = position + 1, going = [], ended = [];
      for (const [rank, one] of candidates.slice(0, 2 * numBeams).entries()) {
        if (one.token !== end && length < limit) going.push(one);
        // Only among the best K: otherwise a search with one beam would end where greedy search continues.
        else if (rank < numBeams && one.total > IMPOSSIBLE / 2) ended.push(Object.assign(one, { rank: one.total / divisor(length), divisor: divisor(length) }));
      }
      live = going.slice(0, numBeams).filter(({ total }) => total > IMPOSSIBLE / 2);
      steps.push({ live, ended });
      hypotheses = [...hypotheses, ...ended].sort((one, other) => other.rank - one.rank).slice(0, numBeams);
      if (live.length === 0 || (numBeams === 1 && ended.length > 0)) break;
      const reachable = Math.max(live[0].total / divisor(limit), live[0].total / divisor(length + 1));
      if (hypotheses.length === numBeams && reachable <= hypotheses.at(-1).rank) break;
    }
  } finally {
    caches.forEach(free);
  }
  return { hypotheses, steps };
}

/** The indices of the largest values, the largest first. */
function largest(values, count) {
  const found = [];
  for (const [i, value] of values.entries()) {
    if (found.length === count && value <= values[found.at(-1)]) continue;
    const place = found.findIndex((j) => values[j] < value);
    found.splice(place < 0 ? found.length : place, 0, i);
    found.length = Math.min(found.length, count);
  }
  return found;
}

/** Hypotheses and steps with what their tokens stand for. */
async function inWords(model, hypotheses, steps, kept) {
  const unique = [...new Set(steps.flatMap(({ live, ended }) => [...live, ...ended].map(({ token }) => token)))], names = new Map();
  // A text loses the space that it begins with, so the first token of each is not one that is asked for.
  for (let i = 0; i < unique.length; i += model.settings.target_length - 1) {
    const ids = unique.slice(i, i + model.settings.target_length - 1);
    const [, ...pieces] = await model.detokenize([unique[0], ...ids]);
    model.labels({ ids, pieces }, kept).forEach((label, j) => names.set(ids[j], label));
  }
  const best = new Set(path(hypotheses[0])), found = [];
  for (const one of hypotheses) {
    const ids = path(one).map(({ token }) => token), { logProb, divisor } = one;
    const text = model.placeholders.restored((await model.detokenize(ids)).join(""), kept);
    found.push({ text, tokens: ids.map((id) => names.get(id)), logProb, divisor, score: logProb / divisor });
  }
  const told = (prefix) => ({ token: names.get(prefix.token), logProb: prefix.logProb, parent: prefix.parent, best: best.has(prefix) });
  return { hypotheses: found, steps: steps.map(({ live, ended }) => ({ live: live.map(told), ended: ended.map(told) })) };
}
