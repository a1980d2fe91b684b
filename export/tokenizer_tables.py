"""Tables of a SentencePiece model for `tokenizer_graph`: tries and pairs of symbols as arrays.

"An efficient digital search algorithm by using a double-array structure" (Aoe, 1989): the rows of a sparse matrix lie
in one array, shifted so that no two of their entries meet. Equal parts of a trie are stored once.
"""

from collections.abc import Callable, Iterable, Mapping
from typing import NamedTuple

import numpy as np

# The label of a unit that holds a value. The others are bytes; 0 is the label of an empty unit.
VALUE = 256
LABEL_BITS = 9


class Trie(NamedTuple):
    """A double array. From the state s, the byte b leads to the unit s + b, if the label of that unit is b.

    Attributes:
        units: int32 (slots,): the next state, and in the last 9 bits the label. The unit s + 256 of a state that ends a
            word holds the word's value in place of a state, with the label 256. State 0 leads nowhere.
        root: the first state.
        depth: the length of the longest word.
    """

    units: np.ndarray
    root: int
    depth: int


class Pairs(NamedTuple):
    """What two symbols become: `merged[begins[left] + right]`, if `lefts` is `left` there.

    The first and the last slot are empty. They stand for all places outside of the arrays.

    Attributes:
        begins: int32 (symbols,), may be negative.
        lefts: int16 or int32 (slots,), -1 where there is no pair.
        merged: int16 or int32 (slots,).
    """

    begins: np.ndarray
    lefts: np.ndarray
    merged: np.ndarray


class Nodes:
    """The nodes of tries, each different one once: `children[node]` is a tuple of pairs (label, node or value)."""

    def __init__(self):
        self.children = [()]
        self._numbers = {(): 0}

    def node(self, children: Iterable[tuple[int, int]]) -> int:
        """The number of the node with these children."""
        children = tuple(sorted(children))
        number = self._numbers.setdefault(children, len(self.children))
        if number == len(self.children):
            self.children.append(children)
        return number

    def of_words(self, words: Mapping[bytes, int]) -> int:
        """The root of a trie of words without zero bytes."""
        keys = sorted(words)

        def below(low, high, depth):
            children = []
            if low < high and len(keys[low]) == depth:
                children.append((VALUE, words[keys[low]]))
                low += 1
            while low < high:
                end, label = low + 1, keys[low][depth]
                while end < high and keys[end][depth] == label:
                    end += 1
                children.append((label, below(low, end, depth + 1)))
                low = end
            return self.node(children)

        return below(0, len(keys), 0)

    def of_charsmap(self, charsmap: bytes, value: Callable[[bytes], int]) -> int:
        """The root of the rules of a SentencePiece model's normalizer, by the values of the replacements.

        Args:
            charsmap: `precompiled_charsmap`: a double array of the library darts-clone (Yata, 2008), and the
                replacements, each ended by a zero byte.
        """
        size = int.from_bytes(charsmap[:4], "little")
        units = np.frombuffer(charsmap[4 : 4 + size], "<u4").tolist()
        texts, known = charsmap[4 + size :], {}

        def offset(unit):
            return (unit >> 10) << ((unit & 512) >> 6)

        def below(place, is_end):
            if (place, is_end) not in known:
                children = []
                if is_end:
                    begin = units[place] & 0x7FFFFFFF
                    children.append((VALUE, value(texts[begin : texts.index(0, begin)])))
                for label in range(1, 256):
                    at = place ^ label
                    if at < len(units) and units[at] & 0x800000FF == label:
                        children.append((label, below(at ^ offset(units[at]), units[at] >> 8 & 1)))
                known[place, is_end] = self.node(children)
            return known[place, is_end]

        return below(offset(units[0]), 0) if units else 0

    def with_word(self, node: int, word: bytes, value: int) -> int:
        """The root of a trie with one more word, and without all words that begin with it."""
        if not word:
            return self.node([(VALUE, value)])
        children = dict(self.children[node])
        children[word[0]] = self.with_word(children.get(word[0], 0), word[1:], value)
        return self.node(children.items())

    def depth(self, root: int) -> int:
        """The length of the longest word of a trie."""
        known = {}

        def depth(node):
            if node not in known:
                known[node] = max(
                    (1 + depth(child) for label, child in self.children[node] if label != VALUE), default=0
                )
            return known[node]

        return depth(root)

    def trie(self, root: int) -> Trie:
        """The double array of a trie."""
        nodes, todo = {root}, [root]
        while todo:
            new = {child for label, child in self.children[todo.pop()] if label != VALUE} - nodes
            nodes |= new
            todo += new
        nodes -= {0}
        shifts = _Shifts(reserved=VALUE + 1, distinct=True)
        places = {0: 0}
        for node in sorted(nodes, key=lambda node: (-len(self.children[node]), node)):
            places[node] = shifts.place([label for label, _ in self.children[node]])
        units = np.zeros(max(places.values()) + VALUE + 1, np.int32)
        for node in nodes:
            for label, child in self.children[node]:
                units[places[node] + label] = (child if label == VALUE else places[child]) << LABEL_BITS | label
        return Trie(units, places[root], self.depth(root))


def make_pairs(pairs: Mapping[tuple[int, int], int], symbols: int) -> Pairs:
    """The `Pairs` of a number of symbols; symbol 0 is in no pair."""
    rows = {}
    for left, right in sorted(pairs):
        rows.setdefault(left, []).append(right)
    shifts, begins = _Shifts(reserved=1, distinct=False), np.zeros(symbols, np.int32)
    for left, rights in sorted(rows.items(), key=lambda row: -len(row[1])):
        begins[left] = shifts.place(rights)
    # More than a few: TFLite takes a limit of 6 for the function ReLU6, which has no integers.
    end = max(16, 2 + max((int(begins[left]) + right for left, right in pairs), default=0))
    kind = np.int16 if symbols < 2**15 else np.int32
    lefts, merged = np.full(end, -1, kind), np.zeros(end, kind)
    for (left, right), symbol in pairs.items():
        lefts[begins[left] + right], merged[begins[left] + right] = left, symbol
    return Pairs(begins, lefts, merged)


class _Shifts:
    """Where sparse rows can lie in one array.

    Args:
        reserved: number of slots at the beginning that stay empty.
        distinct: whether each row must begin at a place of its own, above 0. Then the column of an entry is enough to
            know its row.
    """

    def __init__(self, reserved: int, distinct: bool):
        self.free, self.used, self.distinct = np.ones(2**16, bool), np.zeros(2**16, bool), distinct
        self.free[:reserved] = False
        # Rows with more entries begin to search where the last one of their size was placed, so that no gap is tried
        # again and again. Short ones fill the gaps.
        self.first = [reserved] * 9

    def place(self, labels: list[int]) -> int:
        """The place of a row with entries in the given columns, in rising order."""
        kind, columns = min(len(labels), 8), np.array(labels)
        while True:
            first = self.first[kind]
            while first + 4096 + columns[-1] >= len(self.free):
                self.free = np.concatenate([self.free, np.ones_like(self.free)])
                self.used = np.concatenate([self.used, np.zeros_like(self.used)])
            begins = np.flatnonzero(self.free[first : first + 4096])[:512] + first - columns[0]
            if self.distinct:
                begins = begins[begins > 0]
                begins = begins[~self.used[begins]]
            fits = self.free[begins[:, None] + columns].all(axis=1)
            if fits.any():
                break
            self.first[kind] += 512
        begin = int(begins[fits.argmax()])
        self.free[begin + columns] = False
        if self.distinct:
            self.used[begin] = True
        return begin
