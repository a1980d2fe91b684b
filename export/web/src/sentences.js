/**
 * Splits texts into sentences and joins translations, by the rules in `translator.json`.
 *
 * The same as `keras_transformer/text/sentences.py`, which has the rules and says what they do.
 */

export class Sentences {
  /** @param specification what Python's `specification` returns; another value is an error */
  constructor(specification) {
    const { before, rules, unwrap, after_cut, join, to_cuts } = specification;
    const pair = ([pattern, replacement]) => [new RegExp(pattern, "gu"), replacement.replace(/\\(\d)/gu, "$$$1")];
    Object.assign(this, specification, { pairs: { before, rules, unwrap, after_cut, join, to_cuts } });
    for (const [name, pairs] of Object.entries(this.pairs)) this.pairs[name] = pairs.map(pair);
  }

  #replaced(text, name) {
    return this.pairs[name].reduce((before, [pattern, replacement]) => before.replace(pattern, replacement), text);
  }

  /** Separators and sentences of a text, in turn. */
  split(text) {
    const [[first, last], [begin, end]] = [this.frame, this.cut_off];
    const marked = this.#replaced(first + this.#replaced(text, "before") + last, "rules");
    return marked.slice(begin, -end).split(this.cut);
  }

  /** A sentence as the model gets it: without line breaks. */
  plain(sentence) {
    return this.#replaced(sentence, "unwrap");
  }

  /** Cuts sentences in two until `fits`, a function that may be asynchronous, is true for each one. */
  async fitted(parts, fits) {
    const found = [];
    for (const [i, part] of parts.entries()) found.push(...(i % 2 ? await this.#fittedSentence(part, fits) : [part]));
    return found;
  }

  async #fittedSentence(sentence, fits) {
    const characters = Array.from(sentence), count = characters.length;
    if (count < 2 || (await fits(this.plain(sentence)))) return [sentence];
    let place = Math.floor(count / 2), best = [false, Infinity];
    for (let i = 1; i < count; i++) {
      const before = characters[i - 1], space = this.spaces.includes(characters[i]), distance = Math.abs(2 * i - count);
      const ends = this.wide_clause_ends.includes(before) || (space && this.clause_ends.includes(before));
      const clause = ends && 2 * distance <= count;
      if (!clause && !space) continue;
      const better = clause === best[0] ? distance < best[1] : clause;
      if (better) [place, best] = [i, [clause, distance]];
    }
    const [first, second] = [characters.slice(0, place).join(""), characters.slice(place).join("")];
    const cut = this.#replaced(first + this.cut + second, "after_cut").split(this.cut);
    return (await this.fitted(["", ...cut, ""], fits)).slice(1, -1);
  }

  /** The parts with translations for sentences, and a space where nothing stood between two sentences. */
  spaced(parts) {
    const text = parts.map((part, i) => (i % 2 ? this.begin + this.#replaced(part, "before") + this.end : part)).join("");
    return this.#replaced(this.#replaced(text, "join"), "to_cuts").split(this.cut);
  }
}
