/**
 * Keeps parts of a text that must not change: they become placeholders before the translation, and come back behind it.
 *
 * The same as `keras_transformer/placeholders.py`, which has the rules and says what they do.
 */

const pair = ([pattern, replacement]) => [new RegExp(pattern, "gu"), replacement.replace(/\\(\d)/gu, "$$$1")];
const replaced = (text, pairs) => pairs.reduce((before, [pattern, replacement]) => before.replace(pattern, replacement), text);

export class Placeholders {
  /**
   * @param specification what Python's `specification` returns; another value is an error
   * @param {number} count number of placeholders of the vocabulary
   */
  constructor({ rules, mark, other, no_words, cut }, count) {
    Object.assign(this, { rules: rules.map(pair), mark: mark.map(pair), other: other.map(pair), cut, count });
    this.noWords = new RegExp(`^(?:${no_words})$`, "u");
  }

  /** A text with placeholders, and the parts that they stand for: `{text, parts}`. */
  protect(text) {
    if (this.count === 0) return { text, parts: [] };
    const parts = [];
    const pieces = replaced(text, this.rules).split(this.cut).map((piece, i) => {
      if (i % 2 === 0 || parts.length >= this.count) return replaced(piece, this.other);
      return `⟦${parts.push(piece) - 1}⟧`;
    });
    return { text: pieces.join(""), parts };
  }

  /** A translation with its parts; those that it lacks come at its end, unless `complete` is false. */
  restored(text, parts, complete = true) {
    if (parts.length === 0) return text;
    const numbers = new Set();
    const pieces = replaced(text, this.mark).split(this.cut).map((piece, i) => {
      if (i % 2 === 0) return piece;
      numbers.add(Number(piece));
      return parts[Number(piece)] ?? "";
    });
    const missing = parts.filter((part, i) => complete && part !== "" && !numbers.has(i)).map((part) => ` ${part}`);
    return [...pieces, ...missing].join("");
  }

  /** Whether a text has letters or digits outside of placeholders. */
  hasWords(text) {
    return !this.noWords.test(text.replace(this.mark[0][0], ""));
  }
}
