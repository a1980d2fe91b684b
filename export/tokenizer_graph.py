"""SentencePiece as built-in operations of TFLite: UTF-8 to token ids and back, with the ids of the library.

"SentencePiece: A simple and language independent subword tokenizer and detokenizer" (Kudo and Richardson, 2018). Texts
are vectors of bytes, padded with zeros. Most is computed for all bytes at once. Only the best segmentation takes one
step for each byte (unigram) or each merge (BPE). TFLite copies what a loop carries in each step, so the loops carry
little, and tables are constants inside of them.
"""

from collections import Counter

import numpy as np
import tensorflow as tf

from keras_transformer.export.tokenizer_tables import LABEL_BITS, VALUE, Nodes, make_pairs
from keras_transformer.text.sentencepiece_model import (
    BPE,
    BYTE,
    CONTROL,
    NORMAL,
    UNIGRAM,
    UNKNOWN,
    UNUSED,
    USER_DEFINED,
    message_class,
)

_SPACE = ord(" ")
_MARK = "▁".encode()  # How SentencePiece writes a space. Here it is one byte, a space.
_REPLACEMENT = "\ufffd".encode()
_UNKNOWN_PENALTY = 10  # As in the library: an unknown character scores this much below the worst piece.
# Of a character, by its first byte; 0 for other bytes of a character.
_LENGTHS = np.repeat(np.int32([1, 0, 2, 3, 4]), [0x80, 0x40, 0x20, 0x10, 0x10])
_NEVER = np.float32(-1e30)
_RULE_BITS, _SURFACE_BITS = 6, 8  # Of the sizes of texts.
CANNOT = "The tokenizer cannot be written as operations of TFLite (a SavedModel can have it): it has"


class GraphTokenizer:
    """A SentencePiece model in graphs for TFLite.

    Args:
        model: the serialized SentencePiece model, bytes.

    Raises:
        ValueError: the model has what these operations cannot express.
    """

    def __init__(self, model: bytes):
        file = message_class().FromString(model)
        _check(file)
        self.kind, rules = file.trainer_spec.model_type, file.normalizer_spec
        self.add_space = rules.add_dummy_prefix
        pieces = [piece.piece.replace(_MARK, b" ") for piece in file.pieces]
        types = [piece.type for piece in file.pieces]
        self.unknown_id, nodes = types.index(UNKNOWN), Nodes()
        self.byte_ids = np.zeros(256, np.int32)
        self.byte_of = np.full(len(types), -1, np.int32)
        for i, kind in enumerate(types):
            if kind == BYTE:
                self.byte_of[i] = int(pieces[i][1:-1], 16)
                self.byte_ids[self.byte_of[i]] = i
        self.has_bytes = BYTE in types

        # Normalization. A piece that the user defined stays as it is, whatever the other rules say.
        own = {piece for piece, kind in zip(pieces, types, strict=True) if kind == USER_DEFINED}
        texts = _Slices(_RULE_BITS)
        texts.number(_REPLACEMENT)
        root = nodes.of_charsmap(rules.precompiled_charsmap, texts.number)
        for piece in sorted(own):
            text = piece.replace(b" ", _MARK)
            root = nodes.with_word(root, text, texts.number(text))
        if any(b"  " in text for text in texts.known):
            raise ValueError(f"{CANNOT} a rule that writes two spaces.")
        if len(texts.bytes) << _RULE_BITS + LABEL_BITS >= 2**31:
            raise ValueError(f"{CANNOT} rules that write more than 65,535 different bytes: {len(texts.bytes):,}.")
        self.rules, self.replacements = nodes.trie(root), bytes(texts.bytes)

        # Pieces.
        scores = np.array([piece.score for piece in file.pieces], np.float32)
        normal = scores[[kind == NORMAL for kind in types]]
        self.unknown_score = normal.min() - np.float32(_UNKNOWN_PENALTY)
        for i, kind in enumerate(types):
            if kind == USER_DEFINED and self.kind != BPE:  # As in version 0.2.3 of the library, the oldest allowed.
                scores[i] = np.float32(0.1 * (len(file.pieces[i].piece) - 1))
        self.scores = scores
        used = (NORMAL, USER_DEFINED, UNUSED) if self.kind == BPE else (NORMAL, USER_DEFINED)
        ids = {pieces[i]: i for i, kind in enumerate(types) if kind in used}
        self.is_unused = np.array([kind == UNUSED for kind in types])
        if self.kind == BPE:
            self._prepare_merges(ids, own, nodes)
        else:
            self.pieces = nodes.trie(nodes.of_words(ids))

        # Back to text.
        unknown = file.trainer_spec.unk_surface
        surfaces = _Slices(_SURFACE_BITS)
        surfaces.number(_REPLACEMENT)
        numbers = []
        for i, (piece, kind) in enumerate(zip(pieces, types, strict=True)):
            text = {UNKNOWN: unknown, CONTROL: b"", BYTE: bytes([max(0, self.byte_of[i])])}.get(kind, piece)
            # The last bit says whether the piece begins with a space, which it loses at the beginning of a text.
            numbers.append(surfaces.number(text) * 2 + (kind not in (UNKNOWN, BYTE) and text[:1] == b" "))
        self.numbers, self.surfaces = np.array(numbers, np.int32), bytes(surfaces.bytes)
        self.longest = max(map(len, surfaces.known))

    def _prepare_merges(self, ids, own, nodes):
        """Symbols are pieces and the characters that pieces are made of. 0 is any other character."""
        single = {character.encode() for text in ids if text not in own for character in text.decode()}
        texts = {*ids, *single}
        cuts = [
            (text[:cut], text[cut:], text)
            for text in ids
            for cut in range(1, len(text))
            if {text[:cut], text[cut:]} <= texts and not {text[:cut], text[cut:]} & own
        ]
        # Symbols that are often on the right get small numbers, so that rows of pairs are short.
        often = Counter(right for _, right, _ in cuts)
        symbols = {text: i for i, text in enumerate(sorted(texts, key=lambda text: (-often[text], text)), 1)}
        self.ids_of_symbols = np.full(len(symbols) + 1, self.unknown_id, np.int32)
        self.scores_of_symbols = np.full(len(symbols) + 1, _NEVER)
        for text, i in ids.items():
            self.ids_of_symbols[symbols[text]], self.scores_of_symbols[symbols[text]] = i, self.scores[i]
        self.pairs = make_pairs({(symbols[x], symbols[y]): symbols[text] for x, y, text in cuts}, len(symbols) + 1)
        self.characters = nodes.trie(nodes.of_words({text: symbols[text] for text in single | own}))

    def encode(self, text: tf.Tensor, length: int) -> tuple[tf.Tensor, tf.Tensor, tf.Tensor, tf.Tensor]:
        """Token ids of a text.

        Args:
            text: bytes, int32 (N,), padded with 0.
            length: the number of ids to return.

        Returns:
            The token ids, int32 (length,), cut or padded with 0; the number of bytes of the text up to the end of each
            token, int32 (length,); the number of tokens of what was read; and whether the text fills all N bytes or,
            normalized, has more, so that its end may be missing.
        """
        is_full = text[-1] != 0
        text, size, origins, is_cut = self.normalize(text)
        ids, begins, taken, count = (self._merged if self.kind == BPE else self._best)(text, size)
        places, origins_of_tokens = tf.range(ids.shape[0]), tf.gather(origins, begins)
        unknown = ids == self.unknown_id
        if self.has_bytes:  # Unknown characters are written as their bytes.
            space = tf.gather(tf.pad(text, [[0, 1]]), begins) == _SPACE
            sizes = tf.where(unknown, tf.where(space, len(_MARK), taken), 1)
            source = tf.concat([ids, tf.gather(self.byte_ids, text), self.byte_ids[list(_MARK)]], 0)
            begins = tf.where(space, text.shape[0], begins)
            begins = tf.where(unknown, ids.shape[0] + begins, places)
        else:  # Unknown tokens in a row are one.
            sizes = 1 - _int(unknown) * _earlier(_int(unknown), 1)
            source, begins = ids, places
        ids, total, tokens = _joined(source, begins, sizes * _int(places < count), length + 1)
        # A token ends where the next one begins. If several tokens are bytes of one character, all but the last end
        # before it.
        following = tf.range(1, length + 1)
        ends = tf.where(following < total, tf.gather(origins_of_tokens, tokens[1:]), tf.gather(origins, size))
        return ids[:-1], ends * _int(following <= total), total, is_full | is_cut

    def normalize(self, text: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor, tf.Tensor, tf.Tensor]:
        """The text as the pieces are written.

        Args:
            text: bytes, int32 (N,), padded with 0.

        Returns:
            The normalized bytes, int32 (N,), spaces as one byte; their number; for each of them the place in the text
            where its character begins, then the place where the last one ends, int32 (N + 1,); and whether they were
            cut.
        """
        count = text.shape[0]
        places = tf.range(count)
        size = tf.reduce_max((places + 1) * _int(text != 0))
        rule, taken = _longest(self.rules, text)
        valid = utf8_lengths(text)
        copied = (taken == 0) & (valid > 0)
        taken = tf.where(taken > 0, taken, tf.maximum(valid, 1))
        starts = _walk(_until(places + taken, size, count), 0, count)
        begins, sizes = _split(rule, _RULE_BITS)
        # Bytes that are no character are replaced, but at the end of a full text they are the rest of a cut character.
        wrong = len(_REPLACEMENT) * _int((places < count - 3) | (text[-1] == 0))
        sizes = tf.where(rule > 0, sizes, tf.where(copied, valid, wrong)) * _int(places < size)
        begins = tf.where(copied, places + len(self.replacements), begins)
        source = tf.concat([_array(self.replacements), tf.cast(text, tf.uint8)], 0)
        begins, sizes = (tf.gather(tf.pad(values, [[0, 1]]), starts) for values in (begins, sizes))
        end = size
        text, size, units = _joined(source, begins, sizes, count)
        origins = tf.where(places < size, tf.gather(starts, units), end)

        space, mark = text == _SPACE, _int(text == _MARK[0])
        for i, byte in enumerate(_MARK[1:], 1):
            mark *= _int(_later(text, i) == byte)
        # No spaces at the beginning and at the end, and one at a time. A character "▁" is a space that stays.
        kept = (places < size) & ~(space & (_earlier(_int(space), 1, 1) > 0))
        kept &= (_earlier(mark, 1) + _earlier(mark, 2)) == 0
        text = tf.where(mark > 0, _SPACE, text)
        last = tf.reduce_max((places + 1) * _int(kept & (text != _SPACE)))
        kept = _int(kept & (places < last))
        end = tf.gather(tf.concat([origins, [end]], 0), last)
        if self.add_space:
            text, kept = tf.concat([[_SPACE], text], 0), tf.concat([[tf.minimum(last, 1)], kept], 0)
            origins = tf.concat([[0], origins], 0)
        text, total, units = _joined(text, tf.range(text.shape[0]), kept, count)
        origins = tf.concat([tf.where(places < total, tf.gather(origins, units), end), [end]], 0)
        # Only whole characters.
        lengths = tf.gather(_LENGTHS, text)
        whole = tf.reduce_max((places + lengths) * _int((lengths > 0) & (places + lengths <= count)))
        return text, tf.minimum(total, whole), origins, (size > count) | (total > count)

    def _best(self, text, size):
        """Unigram: the segmentation with the largest sum of scores.

        Returns:
            The ids of its pieces, int32 (N + 1,), where they begin, how many bytes they have, and their number.
        """
        trie, count = self.pieces, text.shape[0]
        longest = max(4, trie.depth)
        units = tf.constant(trie.units)
        lengths = tf.gather(_LENGTHS, text)
        # With each byte, the length of the character that ends there, or 0.
        text += 256 * sum(n * _int(_earlier(lengths, n - 1) == n) for n in (1, 2, 3, 4))
        taken = np.arange(longest, 0, -1, np.int32)  # The longest first: of two equal sums, the library takes it.

        def body(place, states, best, chosen):
            ended, byte = _split(tf.gather(text, place), 8)
            below, label = _split(tf.gather(units, states + byte), LABEL_BITS)
            states = below * _int(label == byte)
            piece, label = _split(tf.gather(units, states + VALUE), LABEL_BITS)
            ends = label == VALUE
            piece = tf.where(ends, piece, self.unknown_id)
            score = tf.where(taken == ended, self.unknown_score, _NEVER)
            sums = tf.where(ends, _exactly(self.scores, piece), score) + best
            slot = tf.argmax(sums, output_type=tf.int32)
            row = tf.gather(piece * 256 + taken, [slot])
            chosen = tf.tensor_scatter_nd_update(chosen, [[place]], row)
            states = tf.concat([tf.slice(states, [1], [longest - 1]), [trie.root]], 0)
            best = tf.concat([tf.slice(best, [1], [longest - 1]), tf.gather(sums, [slot])], 0)
            return place + 1, states, best, chosen

        states, best = np.zeros(longest, np.int32), np.full(longest, _NEVER)
        states[-1], best[-1] = trie.root, 0
        start = 0, states, best, tf.zeros([count], tf.int32)
        chosen = tf.while_loop(lambda place, *_: place < size, body, start)[-1]
        ids, taken = _split(tf.concat([[0], chosen], 0), 8)  # By the place after the piece.
        ends = _walk(tf.range(count + 1) - taken, size, 0)
        number = tf.reduce_sum(_int(ends > 0))
        ends = tf.gather(ends, tf.maximum(number - 1 - tf.range(count + 1), 0))
        ids, taken = tf.gather(ids, ends), tf.gather(taken, ends)
        return ids, ends - taken, taken, number

    def _merged(self, text, size):
        """BPE: joins the neighbours whose joint piece has the largest score, leftmost first, while there are some.

        Returns:
            What `_best` returns; the numbers of bytes are those of unknown characters alone.
        """
        count = text.shape[0]
        symbols, taken = _longest(self.characters, text)
        lengths = tf.where(taken > 0, taken, tf.maximum(tf.gather(_LENGTHS, text), 1))
        places = tf.range(count + 1)
        starts = _walk(_until(places[:-1] + lengths, size, count), 0, count)
        number = tf.reduce_sum(_int(starts < size))
        symbols = tf.gather(tf.pad(symbols * _int(taken > 0), [[0, 1]]), starts) * _int(places < number)
        # Neighbours, by their numbers. The last one stands for both ends of the text.
        after = tf.where(places + 1 < number, places + 1, count)
        before = tf.where((places > 0) & (places < number), places - 1, count)
        pairs = self.pairs

        def joint(left, right):
            """What symbols become together, or 0; and its score."""
            slot = tf.clip_by_value(tf.gather(pairs.begins, left) + right, 0, len(pairs.lefts) - 1)
            symbol = _int(tf.gather(pairs.merged, slot)) * _int(_int(tf.gather(pairs.lefts, slot)) == left)
            return symbol, _exactly(self.scores_of_symbols, symbol)

        def body(symbols, after, before, joints, values, *leaves):
            left = tf.argmax(values, output_type=tf.int32)
            right, previous, symbol = tf.gather(after, left), tf.gather(before, left), tf.gather(joints, [left])
            following = tf.gather(after, right)
            symbols = tf.tensor_scatter_nd_update(symbols, [[left]], symbol)
            after = tf.tensor_scatter_nd_update(after, [[left]], [following])
            before = tf.tensor_scatter_nd_update(before, [[following]], [left])
            around = tf.gather(symbols, [previous, following])
            new, value = joint(tf.concat([around[:1], symbol], 0), tf.concat([symbol, around[1:]], 0))
            places = tf.stack([previous, left, right])[:, None]
            joints = tf.tensor_scatter_nd_update(joints, places, tf.concat([new, [0]], 0))
            values = tf.tensor_scatter_nd_update(values, places, tf.concat([value, [_NEVER]], 0))
            if leaves:  # What an unused piece was made of stays. The library keeps one split for all equal pieces.
                unused = tf.gather(self.is_unused, tf.gather(self.ids_of_symbols, symbol))
                new = symbol, [following]
                new = [tf.where(unused, tf.gather(old, [left]), x) for old, x in zip(leaves, new, strict=True)]
                leaves = [tf.tensor_scatter_nd_update(old, [[left]], x) for old, x in zip(leaves, new, strict=True)]
            return symbols, after, before, joints, values, *leaves

        joints, values = joint(symbols, tf.gather(symbols, after))
        leaves = [symbols, after] if self.is_unused.any() else []
        start = symbols, after, before, joints, values, *leaves
        state = tf.while_loop(lambda *state: tf.reduce_max(state[4]) > _NEVER, body, start)
        symbols, after = state[-2:] if leaves else state[:2]
        left = _walk(after, tf.where(number > 0, 0, count), count)
        begins = tf.gather(starts, left)
        taken = tf.gather(tf.pad(lengths, [[0, 1]]), begins)
        return (
            tf.gather(self.ids_of_symbols, tf.gather(symbols, left)),
            begins,
            taken,
            tf.reduce_sum(_int(left < count)),
        )

    def decode(self, token_ids: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
        """Token ids, int32 (K, L), in any places among special ones, as texts.

        Returns:
            The texts, bytes int32 (K, M), padded with 0; and the number of bytes up to the end of each token, int32
            (K, L).
        """
        count, length = token_ids.shape
        most = length * self.longest
        numbers, space = _split(tf.gather(self.numbers, token_ids), 1)
        begins, sizes = _split(numbers, _SURFACE_BITS)
        # Pieces before which there is no text lose their space.
        some = _int(sizes > space)
        space *= _int(tf.cumsum(some, axis=1) == some)
        begins, sizes = begins + space, sizes - space
        if self.has_bytes:
            # A column of zeros separates the rows.
            values = tf.pad(tf.gather(self.byte_of, token_ids), [[0, 0], [0, 1]])
            lengths = utf8_lengths(tf.reshape(tf.maximum(values, 0), [-1]))
            whole = sum(_int(_earlier(lengths, n) > n) for n in range(4))
            wrong = (values >= 0) & (tf.reshape(whole, values.shape) == 0)
            wrong = tf.slice(wrong, [0, 0], [count, length])
            begins, sizes = tf.where(wrong, 0, begins), tf.where(wrong, len(_REPLACEMENT), sizes)
        # Each row ends with a slice of zeros, which fills it.
        zeros, ends = tf.concat([_array(self.surfaces), tf.zeros([most], tf.uint8)], 0), tf.cumsum(sizes, axis=1)
        sizes = tf.concat([sizes, most - tf.reduce_sum(sizes, axis=1, keepdims=True)], 1)
        begins = tf.pad(begins, [[0, 0], [0, 1]], constant_values=len(self.surfaces))
        text, _, _ = _joined(zeros, tf.reshape(begins, [-1]), tf.reshape(sizes, [-1]), count * most)
        return tf.reshape(text, [count, most]), ends


def _check(file):
    """Raises a ValueError for a model with something that the operations of this module lack."""
    problems = {
        "spaces that are not written as ▁ (escape_whitespaces=false)": not file.normalizer_spec.escape_whitespaces,
        "spaces at the end of pieces (treat_whitespace_as_suffix=true)": file.trainer_spec.treat_whitespace_as_suffix,
        "spaces that are kept (remove_extra_whitespaces=false)": not file.normalizer_spec.remove_extra_whitespaces,
        "a denormalizer": bool(file.denormalizer_spec.precompiled_charsmap),
        "a kind other than unigram and BPE": file.trainer_spec.model_type not in (UNIGRAM, BPE),
        "no unknown piece": not any(piece.type == UNKNOWN for piece in file.pieces),
        "no normal piece": not any(piece.type == NORMAL for piece in file.pieces),
        "pieces with a space (U+0020)": any(
            b" " in piece.piece for piece in file.pieces if piece.type not in (UNKNOWN, CONTROL)
        ),
    }
    for problem, is_there in problems.items():
        if is_there:
            raise ValueError(f"{CANNOT} {problem}.")


class _Slices:
    """Different texts in one array of bytes. A text's number says where it begins and, in its last bits, its size."""

    def __init__(self, size_bits):
        self.size_bits, self.bytes, self.known = size_bits, bytearray(), {}

    def number(self, text):
        """The number of a text, which is put into the array if it is new."""
        if text not in self.known:
            if len(text) >> self.size_bits:
                text = text.decode(errors="replace")
                raise ValueError(f"{CANNOT} a text of more than {2**self.size_bits - 1} bytes: {text[:40]!r}.")
            self.known[text] = len(self.bytes) << self.size_bits | len(text)
            self.bytes += text
        return self.known[text]


def _array(text):
    return np.frombuffer(text, np.uint8)


def _int(condition):
    return tf.cast(condition, tf.int32)


def _later(values, count):
    """The values that are `count` places later (N,)."""
    # `tf.slice` takes a tenth of the time of a slice with brackets, which may have strides.
    return tf.pad(tf.slice(values, [count], [values.shape[0] - count]), [[0, count]])


def _earlier(values, count, first=0):
    """The values that are `count` places earlier (N,), after `first`."""
    return tf.pad(tf.slice(values, [0], [values.shape[0] - count]), [[count, 0]], constant_values=first)


def _exactly(table, rows):
    """Rows of a table of float32. It is stored as integers, because the converter rounds large tables of floats."""
    return tf.bitcast(tf.gather(tf.constant(table.view(np.int32)), rows), tf.float32)


def _split(values, bits):
    """The numbers before and in the last bits of other numbers."""
    before = tf.bitwise.right_shift(values, bits)
    return before, values - before * 2**bits


def _longest(trie, text):
    """For each of the bytes (N,): the value of the longest word that begins there, and its length, 0 without a word."""
    units, count = tf.constant(trie.units), text.shape[0]

    def body(depth, states, rest, found, taken):
        below, label = _split(tf.gather(units, states + rest), LABEL_BITS)
        states = below * _int(label == rest)
        value, label = _split(tf.gather(units, states + VALUE), LABEL_BITS)
        ends = label == VALUE
        return depth + 1, states, _later(rest, 1), tf.where(ends, value, found), tf.where(ends, depth, taken)

    zeros = tf.zeros([count], tf.int32)
    start = 1, tf.fill([count], trie.root), text, zeros, zeros
    return tf.while_loop(lambda _, states, *__: tf.reduce_max(states) > 0, body, start)[-2:]


def utf8_lengths(text: tf.Tensor) -> tf.Tensor:
    """For each of the bytes int32 (N,): the length of the valid character that begins there, or 0."""
    second = _later(text, 1)
    trails = [(x >= 0x80) & (x <= 0xBF) for x in (second, _later(text, 2), _later(text, 3))]
    lowest = tf.where(text == 0xE0, 0xA0, tf.where(text == 0xF0, 0x90, 0x80))
    highest = tf.where(text == 0xED, 0x9F, tf.where(text == 0xF4, 0x8F, 0xBF))
    two = (text >= 0xC2) & (text <= 0xF4) & (second >= lowest) & (second <= highest)
    three = two & (text >= 0xE0) & trails[1]
    four = three & (text >= 0xF0) & trails[2]
    whole = [text < 0x80, two & (text < 0xE0), three & (text < 0xF0), four]
    return tf.add_n([length * _int(x) for length, x in enumerate(whole, 1)])


def _until(follow, size, last):
    """The places (N + 1,) that follow each place of a text, `last` after its end."""
    return tf.concat([tf.where(follow < size, follow, last), [last]], 0)


def _walk(follow, first, last):
    """The places on the way from `first` to `last`, from each place i to `follow[i]`: int32 (N,), `last` repeated.

    The n-th place is `follow` applied n times. Each step doubles how far `follow` leads, so there are few steps.
    """
    count = follow.shape[0]
    numbers = np.arange(count, dtype=np.int32)
    bits = np.array([numbers >> i & 1 for i in range(count.bit_length())], bool)

    def body(step, power, follow, places):
        places = tf.where(tf.gather(bits, step), tf.gather(follow, places), places)
        return step + 1, power * 2, tf.gather(follow, follow), places

    start = 0, 1, follow, tf.fill([count], first)
    _, power, _, places = tf.while_loop(lambda step, power, follow, _: tf.gather(follow, first) != last, body, start)
    return tf.where(numbers < power, places, last)


def _joined(source, begins, sizes, width):
    """Slices of `source`, one after the other: int32 (width,), cut or padded with 0.

    Also returns their total size, and the number of the slice at each place (width,).
    """
    ends = tf.cumsum(sizes)
    starts, total = ends - sizes, tf.reduce_max(ends)
    marks = tf.scatter_nd(tf.minimum(starts, width)[:, None], tf.ones_like(starts), [width + 1])
    # Of slices without a size that begin in one place, the last one has that place.
    slices = tf.cumsum(tf.slice(marks, [0], [width])) - 1
    places = tf.range(width)
    inside = _int(places < total)
    places = (tf.gather(begins - starts, slices) + places) * inside
    return tf.cast(tf.gather(source, places), tf.int32) * inside, total, slices
