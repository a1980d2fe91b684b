/**
 * Translations of whole texts, and from which character of the source each of their characters comes.
 *
 * The same as `aligned_translations` in `keras_transformer/translation/documents.py`, which says what it does, but here the
 * tokenizer says where tokens are in the source. Places are counted in UTF-16 code units.
 */

const isLetter = (character) => /[\p{L}\p{N}]/u.test(character);
const isSpace = (character) => /\s/u.test(character);
const range = (length) => Array.from({ length }, (_, i) => i);
const largest = (values) => values.reduce((best, value, i) => (value > values[best] ? i : best), 0);

/** The attention of all layers and heads as one matrix; layers weigh by how well they agree in both directions. */
export function meanScores({ heads, tags, scores }) {
  const layers = scores.map((rows) => rows[0].map((row, t) => Array.from(row, (_, s) => rows.reduce((sum, head) => sum + head[t][s], 0) / heads)));
  const weights = layers.map((rows) => agreement(rows, tags) ** 4 + 1e-6), total = weights.reduce((a, b) => a + b, 0);
  // Tags align with nothing.
  return layers[0].map((row, t) => row.map((_, s) => (s < tags ? 0 : layers.reduce((sum, rows, i) => sum + (weights[i] / total) * rows[t][s], 0))));
}

function agreement(rows, tags) {
  const inner = rows.slice(0, -1).map((row) => row.slice(tags, -1)); // Tags and end tokens do not count.
  if (inner.length === 0 || inner[0].length === 0) return 1;
  const forward = inner.map(largest), backward = inner[0].map((_, s) => largest(inner.map((row) => row[s])));
  return forward.filter((s, t) => backward[s] === t).length / inner.length;
}

/** Where each token is in a text: `[begin, end]`, from the beginnings of the text up to the end of each token. */
export function tokenSpans(beginnings, text) {
  let ends = beginnings.map((_, i) => Math.max(...beginnings.slice(0, i + 1).map(({ length }) => length)));
  const whole = beginnings.at(-1) ?? "";
  if (whole !== text) {
    const places = corresponding(whole, text);
    ends = ends.map((end) => places[end]);
  }
  return ends.map((end, i) => [ends[i - 1] ?? 0, end]);
}

/** For each place in one text, the place in another one, by their longest common subsequence. */
function corresponding(one, other) {
  const [n, m] = [one.length, other.length];
  const common = range(n + 1).map(() => new Uint16Array(m + 1));
  for (let i = n - 1; i >= 0; i--) {
    for (let j = m - 1; j >= 0; j--) {
      common[i][j] = one[i] === other[j] ? common[i + 1][j + 1] + 1 : Math.max(common[i + 1][j], common[i][j + 1]);
    }
  }
  const places = new Array(n + 1).fill(m);
  for (let i = 0, j = 0; i < n && j < m; ) {
    if (one[i] === other[j]) {
      places[i++] = j++;
      places[i] = j;
    } else if (common[i + 1][j] >= common[i][j + 1]) i++;
    else j++;
  }
  for (let i = n - 1; i >= 0; i--) places[i] = Math.min(places[i], places[i + 1]);
  return places;
}

/** Origins and nearest characters of a sentence; `scores` is null if it was not translated. */
function originsOf(source, text, sourceSpans, targetSpans, scores) {
  const origins = new Array(text.length).fill(null), nearest = new Array(source.length).fill(null);
  if (!scores) return [origins, nearest];
  scores = scores.slice(0, targetSpans.length).map((row) => row.slice(0, sourceSpans.length));
  const places = ([begin, end]) => range(end - begin).map((i) => begin + i);
  const lettersOf = targetSpans.map((span) => places(span).filter((i) => isLetter(text[i])));
  for (const [s, span] of sourceSpans.entries()) {
    let best;
    for (const [t, letters] of lettersOf.entries()) if (letters.length && (best === undefined || scores[t][s] > scores[best][s])) best = t;
    if (best !== undefined) for (const i of places(span)) nearest[i] = isLetter(source[i]) ? lettersOf[best][0] : null;
  }
  for (const [t, [begin, end]] of targetSpans.entries()) {
    const letters = places(sourceSpans[largest(scores[t])]).filter((i) => !isSpace(source[i]));
    for (let i = begin; i < end; i++) {
      if (letters.length && !isSpace(text[i])) origins[i] = letters.length === end - begin ? letters[i - begin] : letters[0];
    }
  }
  for (let i = 1; i <= Math.min(text.length, source.length); i++) {
    if (isLetter(text.at(-i)) || isLetter(source.at(-i))) break; // The marks at the end belong together.
    origins[text.length - i] = source.length - i;
  }
  for (const { 0: word, index } of text.matchAll(/[\p{L}\p{N}_]+/gu)) {
    const inside = origins.slice(index, index + word.length).filter((origin) => origin !== null);
    if (!inside.length) continue;
    const times = (x) => inside.filter((y) => y === x).length;
    const most = inside.reduce((best, x) => (times(x) > times(best) ? x : best));
    origins.fill(most, index, index + word.length);
  }
  return [origins, nearest];
}

/** Translates a text: `{text, origins, nearest}`, see `Aligned` in Python. `between` is awaited before each sentence. */
export async function alignedTranslation(model, text, language, between) {
  const parts = await model.split(text, between), found = [];
  for (const sentence of parts.filter((_, i) => i % 2)) {
    await between();
    const source = await model.encode(sentence, language), { ids, kept, unchanged } = source;
    const search = ids.length > 1 && unchanged === null;
    const best = search ? (await model.translate(ids, kept))[0] : { ids: [], text: unchanged ?? "" };
    const attention = best.ids.length ? await model.attention(source, best) : null;
    const spansOf = ({ pieces }, text) => tokenSpans(model.beginnings(pieces, kept), text);
    const spans = attention && [spansOf(source, sentence), spansOf(best, best.text)];
    found.push({ source: sentence, text: best.text, spans, scores: attention && meanScores(attention) });
  }
  const joined = model.sentences.spaced(parts.map((part, i) => (i % 2 ? found[(i - 1) / 2].text : part)));
  const whole = joined.join(""), origins = new Array(whole.length).fill(null), nearest = new Array(text.length).fill(null);
  let place = 0, end = 0, from = 0;
  for (const [i, part] of joined.entries()) {
    const original = parts[i] ?? "";
    if (i % 2 === 0) {
      // What stands between two sentences comes from the end of what stood there.
      const last = i === joined.length - 1 ? text.length : from + original.length;
      for (let back = 1; back <= part.length; back++) origins[place + part.length - back] = Math.max(last - back, 0);
    } else {
      const { source, spans, scores } = found[(i - 1) / 2];
      const [here, near] = originsOf(source, part, spans?.[0], spans?.[1], scores);
      here.forEach((origin, j) => (origins[place + j] = origin === null ? null : from + origin));
      near.forEach((target, j) => (nearest[from + j] = target === null ? null : place + target));
    }
    place += part.length;
    from += original.length;
  }
  return { text: whole, origins, nearest };
}
