/**
 * Keeps parts of a text that must not change: they become placeholders before the translation, and come back behind it.
 *
 * The same as `keras_transformer/text/placeholders.py`, which has the rules and says what they do.
 */

const pair = ([pattern, replacement]) => [new RegExp(pattern, "gu"), replacement.replace(/\\(\d)/gu, "$$$1")];
const replaced = (text, pairs) => pairs.reduce((before, [pattern, replacement]) => before.replace(pattern, replacement), text);

export class Placeholders {
  /**
   * @param specification what Python's `specification` returns; another value is an error
   * @param {number} count number of placeholders of the vocabulary
   */
  constructor({ rules, mark, other, apart, touched, no_words, cut, begin, end }, count) {
    Object.assign(this, { rules: rules.map(pair), mark: mark.map(pair), other: other.map(pair), apart: apart.map(pair) });
    Object.assign(this, { touched, cut, begin, end, count });
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

  /** A translation with the parts of what `protect` returned; those that it lacks come at its end, if `complete`. */
  restored(text, { text: source, parts }, complete = true) {
    if (parts.length === 0) return text;
    for (const name of parts.map((_, i) => `⟦${i}⟧`)) {
      const touches = [this.touched[0] + name, name + this.touched[1]].map((pattern) => new RegExp(pattern, "u").test(source));
      text = text.replaceAll(name, (touches[0] ? "" : this.begin) + name + (touches[1] ? "" : this.end));
    }
    const numbers = new Set();
    const pieces = replaced(text, [...this.apart, ...this.mark]).split(this.cut).map((piece, i) => {
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
