/**
 * A SentencePiece model (unigram or BPE) in plain JavaScript. It gives the same ids as the SentencePiece library.
 *
 * "SentencePiece: A simple and language independent subword tokenizer and detokenizer" (Kudo and Richardson, 2018).
 * Reads the `.spm` file itself: a protocol buffer, `ModelProto` of sentencepiece_model.proto.
 */

const SPACE = "▁";
const NORMAL = 1, UNKNOWN = 2, CONTROL = 3, USER_DEFINED = 4, UNUSED = 5, BYTE = 6;
const UNIGRAM = 1, BPE = 2;
const UNKNOWN_PENALTY = 10; // As in the library: an unknown character scores this much below the worst piece.

const utf8 = new TextDecoder("utf-8", { ignoreBOM: true });
const toBytes = new TextEncoder();
const float32 = Math.fround; // The library adds scores in 32 bits; other sums would decide ties differently.

export class SentencePiece {
  /** @param {ArrayBuffer} model the content of a `.spm` file */
  constructor(model) {
    const file = fields(new Uint8Array(model));
    const pieces = (file.get(1) ?? []).map(fields);
    if (pieces.length === 0) throw new Error("This is not a SentencePiece model: it has no pieces.");
    this.pieces = pieces.map((piece) => utf8.decode(last(piece, 1, new Uint8Array())));
    this.scores = pieces.map((piece) => last(piece, 2, 0));
    this.types = pieces.map((piece) => last(piece, 3, NORMAL));
    // With byte fallback, unknown characters are written as the pieces <0x00> to <0xFF> of their bytes.
    this.bytes = new Map(this.pieces.flatMap((piece, id) => (this.types[id] === BYTE ? [[parseInt(piece.slice(1, -1)), id]] : [])));
    this.byteOf = new Map([...this.bytes].map(([byte, id]) => [id, byte]));
    const trainer = fields(last(file, 2, new Uint8Array()));
    this.unknownSurface = trainer.has(44) ? utf8.decode(last(trainer, 44)) : " ⁇ ";
    this.modelType = last(trainer, 3, UNIGRAM);
    if (this.modelType !== UNIGRAM && this.modelType !== BPE) {
      throw new Error("SentencePiece models must be unigram or BPE.");
    }
    const normalizer = fields(last(file, 3, new Uint8Array()));
    this.charsmap = charsmap(last(normalizer, 2, new Uint8Array()));
    this.addDummyPrefix = last(normalizer, 3, 1) !== 0;
    this.removeExtraSpaces = last(normalizer, 4, 1) !== 0;

    this.unknownId = this.types.indexOf(UNKNOWN);
    const found = (kinds) => this.pieces.map((piece, id) => [piece, id]).filter(([, id]) => kinds.includes(this.types[id]));
    this.ids = new Map(found([NORMAL, USER_DEFINED, UNUSED]));
    this.userDefined = found([USER_DEFINED]).map(([piece]) => piece).sort((a, b) => b.length - a.length);
    const scores = this.scores.filter((_, id) => this.types[id] === NORMAL);
    this.minScore = scores.reduce((a, b) => Math.min(a, b), Infinity);
    this.longest = [...this.ids.keys()].reduce((most, piece) => Math.max(most, [...piece].length), 0);
  }

  /** The ids of a text, without start or end. */
  encode(text) {
    const characters = this.#split(this.normalize(text));
    const found = this.modelType === UNIGRAM ? this.#viterbi(characters) : this.#merge(characters);
    if (this.bytes.size > 0) {
      const bytes = (text) => [...toBytes.encode(text)].map((byte) => this.bytes.get(byte));
      return found.flatMap(([id, text]) => (id === this.unknownId ? bytes(text) : [id]));
    }
    const ids = found.map(([id]) => id);
    return ids.filter((id, i) => id !== this.unknownId || ids[i - 1] !== id); // Consecutive unknown tokens become one.
  }

  /** The text of ids, without special ids. */
  decode(ids) {
    let text = "", bytes = [];
    ids = ids.filter((id) => this.types[id] !== CONTROL);
    for (const [i, id] of ids.entries()) {
      if (this.types[id] === BYTE) {
        bytes.push(this.byteOf.get(id));
        if (this.types[ids[i + 1]] === BYTE) continue;
        text += characters(bytes);
        bytes = [];
        continue;
      }
      if (this.types[id] === UNKNOWN) {
        text += this.unknownSurface;
        continue;
      }
      let piece = this.pieces[id];
      if (text === "" && (this.addDummyPrefix || this.removeExtraSpaces) && piece.startsWith(SPACE)) piece = piece.slice(1);
      text += piece.replaceAll(SPACE, " ");
    }
    return text;
  }

  /** The text as the model reads it: characters replaced by the model's table, spaces joined and written as "▁". */
  normalize(text) {
    const bytes = toBytes.encode(text);
    let result = "", atSpace = this.removeExtraSpaces, begun = false;
    for (let i = 0; i < bytes.length; ) {
      let [part, length] = this.#replacement(bytes, i);
      i += length;
      if (!begun) {
        if (this.removeExtraSpaces && part === " ") continue;
        begun = true;
        if (this.addDummyPrefix) result += SPACE;
      }
      if (atSpace) part = part.replace(/^ +/, "");
      if (part === "") continue;
      result += part.replaceAll(" ", SPACE);
      atSpace = this.removeExtraSpaces && part.endsWith(" ");
    }
    return this.removeExtraSpaces ? result.replace(/▁+$/, "") : result;
  }

  /** The replacement of the table's longest match at byte `start`, and the number of bytes that it replaces. */
  #replacement(bytes, start) {
    for (const piece of this.userDefined) {
      const wanted = toBytes.encode(piece);
      if (wanted.every((byte, i) => bytes[start + i] === byte)) return [piece, wanted.length];
    }
    const { trie, texts } = this.charsmap;
    let found = -1, length = 0;
    if (trie.length > 0) { // A double array, as darts-clone stores it.
      const offset = (unit) => (unit >>> 10) << ((unit & 512) >>> 6);
      let node = offset(trie[0]);
      for (let i = start; i < bytes.length; i++) {
        node ^= bytes[i];
        const unit = trie[node];
        if (unit === undefined || ((unit & 0x800000ff) >>> 0) !== bytes[i]) break;
        node ^= offset(unit);
        if ((unit >>> 8) & 1) [found, length] = [trie[node] & 0x7fffffff, i + 1 - start];
      }
    }
    if (found >= 0) return [utf8.decode(texts.subarray(found, texts.indexOf(0, found))), length];
    const first = bytes[start];
    length = first < 0x80 ? 1 : first < 0xe0 ? 2 : first < 0xf0 ? 3 : 4; // Valid: TextEncoder wrote it.
    return [utf8.decode(bytes.subarray(start, start + length)), length];
  }

  /** The characters of a text; user-defined pieces are not split. */
  #split(text) {
    if (this.userDefined.length === 0) return [...text];
    const parts = [];
    for (let i = 0; i < text.length; i += parts.at(-1).length) {
      const piece = this.userDefined.find((piece) => text.startsWith(piece, i));
      parts.push(piece ?? String.fromCodePoint(text.codePointAt(i)));
    }
    return parts;
  }

  /** Unigram: the segmentation with the largest sum of scores. */
  #viterbi(characters) {
    const size = characters.length;
    const best = new Float32Array(size + 1), from = new Int32Array(size + 1).fill(-1), ids = new Int32Array(size + 1);
    const unknown = float32(this.minScore - UNKNOWN_PENALTY);
    const offer = (start, end, score, id) => {
      const total = float32(score + best[start]);
      if (from[end] !== -1 && total <= best[end]) return;
      [best[end], from[end], ids[end]] = [total, start, id];
    };
    for (let start = 0; start < size; start++) {
      let piece = "", single = false;
      for (let end = start + 1; end <= Math.min(size, start + this.longest); end++) {
        piece += characters[end - 1];
        const id = this.ids.get(piece);
        if (id === undefined || this.types[id] === UNUSED) continue;
        const length = toBytes.encode(piece).length;
        offer(start, end, this.types[id] === USER_DEFINED ? float32(0.1 * (length - 1)) : this.scores[id], id);
        single ||= end === start + 1;
      }
      if (!single) offer(start, start + 1, unknown, this.unknownId);
    }
    const path = [];
    for (let end = size; end > 0; end = from[end]) path.push([ids[end], characters.slice(from[end], end).join("")]);
    return path.reverse();
  }

  /** BPE: joins the neighbours whose joint piece has the largest score, leftmost first, until no pair forms a piece. */
  #merge(characters) {
    const symbols = characters.map((text, i) => ({ text, previous: i - 1, next: i + 1 < characters.length ? i + 1 : -1 }));
    const frozen = new Set(this.userDefined);
    const parts = new Map(); // The two parts of each unused piece, which is split again at the end.
    const agenda = new Heap((a, b) => a.score > b.score || (a.score === b.score && a.left < b.left));
    const propose = (left, right) => {
      if (left === -1 || right === -1 || frozen.has(symbols[left].text) || frozen.has(symbols[right].text)) return;
      const piece = symbols[left].text + symbols[right].text, id = this.ids.get(piece);
      if (id === undefined) return;
      agenda.push({ left, right, score: this.scores[id], size: piece.length });
      if (this.types[id] === UNUSED) parts.set(piece, [symbols[left].text, symbols[right].text]);
    };
    for (let i = 1; i < symbols.length; i++) propose(i - 1, i);
    for (let top = agenda.pop(); top !== undefined; top = agenda.pop()) {
      const left = symbols[top.left], right = symbols[top.right];
      // One of the two was joined with another in the meantime.
      if (left.text === "" || right.text === "" || left.text.length + right.text.length !== top.size) continue;
      left.text += right.text;
      right.text = "";
      left.next = right.next;
      if (right.next !== -1) symbols[right.next].previous = top.left;
      propose(left.previous, top.left);
      propose(top.left, left.next);
    }
    const resolve = (text) => {
      const id = this.ids.get(text) ?? this.unknownId;
      return this.types[id] === UNUSED && parts.has(text) ? parts.get(text).flatMap(resolve) : [[id, text]];
    };
    return symbols.filter((symbol) => symbol.text !== "").flatMap((symbol) => resolve(symbol.text));
  }
}

class Heap {
  #items = [];
  #before;

  constructor(before) {
    this.#before = before;
  }

  push(item) {
    const items = this.#items;
    let i = items.push(item) - 1;
    for (let up; i > 0 && this.#before(item, items[(up = (i - 1) >> 1)]); i = up) items[i] = items[up];
    items[i] = item;
  }

  pop() {
    const items = this.#items, top = items[0], item = items.pop();
    if (items.length === 0) return top;
    let i = 0;
    for (let down; (down = 2 * i + 1) < items.length; i = down) {
      if (down + 1 < items.length && this.#before(items[down + 1], items[down])) down++;
      if (!this.#before(items[down], item)) break;
      items[i] = items[down];
    }
    items[i] = item;
    return top;
  }
}

/** The fields of a protocol buffer message: lists of numbers and bytes, by field number. */
function fields(bytes) {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  const found = new Map();
  let at = 0;
  const take = (length) => {
    if (at + length > bytes.length) throw new Error("The SentencePiece model is cut off.");
    return (at += length) - length;
  };
  const varint = () => {
    let value = 0;
    for (let scale = 1; ; scale *= 128) {
      const byte = bytes[take(1)];
      value += (byte & 127) * scale;
      if (byte < 128) return value;
    }
  };
  while (at < bytes.length) {
    const tag = varint(), kind = tag % 8;
    let value;
    if (kind === 0) value = varint();
    else if (kind === 1) value = view.getFloat64(take(8), true);
    else if (kind === 5) value = view.getFloat32(take(4), true);
    else if (kind === 2) {
      const length = varint(), start = take(length);
      value = bytes.subarray(start, start + length);
    } else throw new Error("This is not a SentencePiece model.");
    const number = Math.floor(tag / 8);
    if (!found.has(number)) found.set(number, []);
    found.get(number).push(value);
  }
  return found;
}

/** The text of UTF-8 bytes. As in the library, each byte that is not part of a character becomes "�". */
function characters(bytes) {
  let text = "";
  for (let i = 0; i < bytes.length; ) {
    const first = bytes[i], length = first < 0x80 ? 1 : first < 0xe0 ? 2 : first < 0xf0 ? 3 : 4;
    const part = utf8.decode(Uint8Array.from(bytes.slice(i, i + length)));
    const whole = [...part].length === 1 && toBytes.encode(part).length === length && part !== "\ufffd";
    text += whole ? part : "\ufffd";
    i += whole ? length : 1;
  }
  return text;
}

function last(message, number, otherwise) {
  return message.get(number)?.at(-1) ?? otherwise;
}

/** The table of the normalizer: a trie from characters to offsets in `texts`; each text ends with a zero byte. */
function charsmap(bytes) {
  if (bytes.length === 0) return { trie: new Uint32Array(), texts: bytes };
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  const size = view.getUint32(0, true);
  const trie = Uint32Array.from({ length: size / 4 }, (_, i) => view.getUint32(4 + 4 * i, true));
  return { trie, texts: bytes.subarray(4 + size) };
}
