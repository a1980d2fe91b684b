"""What is in a table is found, and nothing else."""

from random import Random

import numpy as np
import pytest

from keras_transformer.export.tokenizer_tables import VALUE, Nodes, make_pairs


def value(trie, word):
    """The value of a word, as the graph finds it, or None."""
    state = trie.root
    for label in [*word, VALUE]:
        below, found = divmod(int(trie.units[state + label]), 2 * VALUE)
        if found != label:
            return None
        state = below
    return state


def test_a_trie_has_its_words_and_no_others():
    random = Random(0)
    words = {bytes(random.choices(range(1, 256), k=random.randrange(1, 9))): i for i in range(500)}
    words |= {b"a": 0, b"ab": 1, b"abc": 2**22 - 1, "한국".encode(): 5}
    nodes = Nodes()
    trie = nodes.trie(nodes.of_words(words))
    assert {word: value(trie, word) for word in words} == words
    assert trie.depth == max(map(len, words))
    others = {word[:-1] for word in words} | {word + b"x" for word in words} | {bytes([i]) for i in range(1, 256)}
    assert all(value(trie, word) is None for word in others - set(words))
    assert not trie.units[: VALUE + 1].any()  # State 0 leads nowhere.


def test_a_word_takes_the_place_of_words_that_begin_with_it():
    nodes = Nodes()
    root = nodes.with_word(nodes.of_words({b"ab": 1, b"abc": 2, b"b": 3}), b"ab", 9)
    trie = nodes.trie(root)
    assert [value(trie, word) for word in (b"ab", b"abc", b"b", b"a")] == [9, None, 3, None]
    assert nodes.trie(nodes.of_words({})).depth == 0


@pytest.mark.parametrize(("symbols", "kind"), [(300, np.int16), (40_000, np.int32)])
def test_pairs_are_found_and_no_others(symbols, kind):
    random = Random(1)
    pairs = {
        (random.randrange(1, symbols), random.randrange(1, symbols)): random.randrange(symbols) for _ in range(999)
    }
    begins, lefts, merged = make_pairs(pairs, symbols)
    assert lefts.dtype == merged.dtype == kind and lefts[0] == lefts[-1] == -1

    def joint(left, right):
        slot = np.clip(begins[left] + right, 0, len(lefts) - 1)
        return merged[slot] if lefts[slot] == left else None

    others = [(random.randrange(symbols), random.randrange(symbols)) for _ in range(5000)]
    for pair in [*pairs, *others]:
        assert joint(*pair) == pairs.get(pair)
