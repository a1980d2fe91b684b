/**
 * Translates what is in a node: the text changes, the markup stays.
 *
 * The same as `keras_transformer/text/markup.py`, which says what it does.
 */

const range = (begin, end) => Array.from({ length: Math.max(end - begin, 0) }, (_, i) => begin + i);
const LINE_BREAK = "\n\n"; // For a `br`: it always ends a sentence.

/**
 * @param root an element or a fragment; it is changed
 * @param {{inline: string[], opaque: string[], kept: string[]}} kinds names of elements, from the export
 * @param {string[]} languages codes of the source and of the translation, or ""
 * @param translate an async function from texts to a list of `{text, origins, nearest}`; after an error, nothing is changed
 */
export async function translateMarkup(root, kinds, languages, translate) {
  const isOf = (kind, names = new Set(kinds[kind])) => (node) => names.has(node.localName.toLowerCase());
  const [inline, opaque, kept] = ["inline", "opaque", "kept"].map((kind) => isOf(kind));
  const primary = (code) => code.trim().toLowerCase().split(/[-_]/)[0];
  const [from, into] = [primary(languages[0]), languages[1].replace(/[^A-Za-z0-9]+/g, "-")], filled = [], renamed = [];
  const isElement = (node) => node.nodeType === Node.ELEMENT_NODE;
  const contentsOf = (node) => [...node.childNodes].map((child) => (child.nodeType === Node.TEXT_NODE ? child.data : child));
  const langOf = (node) => node.getAttribute("lang") ?? node.getAttribute("xml:lang");
  const isForeign = (node) => from.length === 2 && Boolean(langOf(node)) && primary(langOf(node)) !== from;

  /** Whether an element says that it is translated; undefined if it says nothing. */
  function said(node) {
    const value = node.classList.contains("notranslate") ? "no" : node.getAttribute("translate")?.toLowerCase();
    const isNote = inline(node) && /^\s*\[[\p{L}\p{N}_]{1,3}\]\s*$/u.test(node.textContent.slice(0, 9));
    if (value === "no" || isNote) return false;
    return value === "yes" || value === "" || (kept(node) ? false : undefined);
  }

  /** Whether a node is one piece of a sentence, whatever is in it. */
  const isPiece = (node) => !isElement(node) || said(node) === false || isForeign(node) || opaque(node);

  function isInline(node) {
    if (typeof node === "string" || !isElement(node) || opaque(node)) return true;
    return inline(node) && (isPiece(node) || contentsOf(node).every(isInline));
  }

  function setLanguage(node) {
    for (const name of ["lang", "xml:lang"]) if (into && isElement(node) && node.getAttribute(name)) node.setAttribute(name, into);
  }

  /** The texts in a node. What is done later goes to `filled`, its contents in groups, and to `renamed`. */
  function sources(node, translated = true, foreign = false) {
    const groups = [], isTranslated = translated && !foreign;
    for (const one of contentsOf(node)) {
      const kind = isInline(one);
      if (groups.at(-1)?.kind !== kind) groups.push({ kind, contents: [] });
      groups.at(-1).contents.push(one);
    }
    if (isTranslated) {
      renamed.push(node);
      filled.push([node, groups]);
    }
    return groups.flatMap((group) => {
      const source = group.kind && isTranslated && sourceOf(group);
      const inside = (source ? source.pieces : group.contents).filter((child) => typeof child !== "string" && isElement(child));
      const own = source && /[\p{L}\p{N}]/u.test(source.text) ? [source] : [];
      return [...own, ...inside.flatMap((child) => sources(child, said(child) ?? translated, langOf(child) ? isForeign(child) : foreign))];
    });
  }

  /** The text of inline contents, and where its elements are. */
  function sourceOf(group) {
    let raw = "";
    const breaks = new Set(), pieces = [], tree = { begin: 0, children: [] };
    (function walk(contents, node) {
      for (const one of contents) {
        if (typeof one === "string") {
          raw += one;
          continue;
        }
        const child = { element: one, begin: raw.length, children: [] };
        node.children.push(child);
        if (one.localName === "br") {
          raw += LINE_BREAK;
          for (const i of range(child.begin, raw.length)) breaks.add(i);
        } else if (isPiece(one)) {
          child.isAPiece = true;
          pieces.push(one);
        } else {
          child.isOpen = true;
          walk(contentsOf(one), child);
          renamed.push(one);
        }
        child.end = raw.length;
      }
    })(group.contents, tree);
    tree.end = raw.length;
    const text = raw.replace(/[\t\n\r\f]/g, (character, i) => (breaks.has(i) ? character : " "));
    return { text, raw, breaks, pieces, tree, group };
  }

  /** The translation with the line breaks of the markup; those of a `br` become U+0000, which `clean` leaves out. */
  function withSpaces({ raw, breaks }, { text, origins }) {
    return text.replace(/[\n ]/g, (character, i) => {
      const origin = origins[i];
      if (character === "\n") return origin !== null && breaks.has(origin) ? "\0" : character;
      return origin !== null && /\s/.test(raw[origin]) ? raw[origin] : character;
    });
  }

  const clean = (text) => text.replaceAll("\0", "");

  /** Strings and elements for the characters `begin` to `end` of a translation, which belong to a node. */
  function placed(node, target, begin, end) {
    const spans = [];
    let free = [[begin, end]];
    const take = (child, span) => {
      spans.push([...span, child]);
      const left = free.flatMap(([first, last]) => (span[1] < first || span[0] > last ? [[first, last]] : [[first, span[0]], [span[1], last]]));
      free = [...new Map(left.map((one) => [one.join(), one])).values()]; // Each of them once.
    };
    for (const child of [...node.children].sort((a, b) => a.begin - a.end - (b.begin - b.end))) {
      const span = bestSpan(child, target, free);
      if (span) take(child, span);
    }
    const taken = new Set(spans.map(([, , child]) => child));
    for (const child of node.children.filter((one) => !taken.has(one))) {
      let span = nearestWord(child, target);
      if (!span || !free.some(([first, last]) => first <= span[0] && span[1] <= last)) {
        const place = bestPlace(child, target, free, begin);
        span = [place, place];
      }
      take(child, span);
    }
    const order = new Map(node.children.map((child, i) => [child, i]));
    spans.sort((a, b) => a[0] - b[0] || a[1] - b[1] || order.get(a[2]) - order.get(b[2]));
    const contents = [];
    let place = begin, previous;
    for (const [first, last, child] of spans) {
      contents.push(textBetween(target, place, first, previous, child), child.element);
      if (child.isOpen) child.element.replaceChildren(...placed(child, target, first, last));
      place = last;
      previous = child;
    }
    return [...contents, textBetween(target, place, end, previous)];
  }

  /** The text between two children, if there are any, with the spaces that pieces have in the source. */
  function textBetween(target, begin, end, previous, following) {
    const text = clean(target.text.slice(begin, end));
    if (previous && following && begin === end && previous.end === following.begin) return text; // Nothing is between them in the source.
    const before = previous?.isAPiece && lacksSpace(target, begin, previous.end);
    const after = following?.isAPiece && lacksSpace(target, end - 1, following.begin - 1);
    return (before ? " " : "") + text + (after ? " " : "");
  }

  /** Whether the source has a space at one place, and the translation a letter or the like at another. */
  const lacksSpace = ({ source, text }, place, sourcePlace) =>
    /[ \n]/.test(source[sourcePlace] ?? "") && /[\p{L}\p{N}.,;:!?)]/u.test(text[place] ?? "") && !/[\u2e80-\u9fff]/.test(text[place]);

  /** The free interval with the most characters from the child and the fewest others, or null. */
  function bestSpan(child, { text, origins }, free) {
    const mine = (origin) => origin !== null && child.begin <= origin && origin < child.end;
    const first = origins.findIndex(mine), last = origins.findLastIndex(mine) + 1;
    if (first < 0) return null;
    let best = null, most = 0;
    for (let [begin, end] of free) {
      [begin, end] = [Math.max(begin, first), Math.min(end, last)];
      let start = begin, total = 0;
      for (let i = begin; i < end; i++) {
        if (origins[i] !== null) total += mine(origins[i]) ? 1 : -1;
        if (total <= 0) [start, total] = [i + 1, 0];
        else if (total > most) [best, most] = [[start, i + 1], total];
      }
    }
    return best && child.element.localName === "br" && clean(text.slice(...best)) ? null : best;
  }

  /** The word that is most likely to come from the child, or undefined. */
  function nearestWord(child, { text, nearest }) {
    const place = nearest.slice(child.begin, child.end).find((one) => one !== null);
    if (place === undefined) return undefined;
    const word = [...text.matchAll(/[\p{L}\p{N}_]+/gu)].find(({ 0: { length }, index }) => index <= place && place < index + length);
    return word && [word.index, word.index + word[0].length];
  }

  /** The free place with the most characters on that side of it on which they also were in the source. */
  function bestPlace(child, { text, origins }, free, otherwise) {
    const left = [0], right = [0];
    for (const origin of origins) {
      left.push(left.at(-1) + (origin !== null && origin < child.begin));
      right.push(right.at(-1) + (origin !== null && origin >= child.begin));
    }
    const quality = (place) => {
      const insideAWord = place > 0 && /^[\p{L}\p{N}]+$/u.test(text.slice(place - 1, place + 1));
      return 2 * (left[place] + right.at(-1) - right[place]) + !insideAWord;
    };
    const places = free.flatMap(([begin, end]) => range(begin, end + 1));
    return places.reduce((best, place) => (best === undefined || quality(place) > quality(best) ? place : best), undefined) ?? otherwise;
  }

  const found = sources(root), translations = await translate(found.map(({ text }) => text));
  for (const node of renamed) setLanguage(node);
  for (const [i, source] of found.entries()) {
    const target = { ...translations[i], text: withSpaces(source, translations[i]), source: source.text };
    source.group.contents = placed(source.tree, target, 0, target.text.length);
  }
  for (const [node, groups] of filled) node.replaceChildren(...groups.flatMap(({ contents }) => contents));
}
