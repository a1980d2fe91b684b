"""Words that become placeholders in training, so that a model learns where to write them."""

import itertools
from collections import Counter
from collections.abc import Collection, Iterable
from random import Random

import regex

from keras_transformer.text.placeholders import NUM_PLACEHOLDERS, compiled, placeholder

_WORD = regex.compile(r"\p{L}[\p{L}\p{N}'’-]*")


def word_pairs(pairs: Iterable[tuple[str, str]], at_least: int = 0.5, most: int = 100_000) -> set:
    """Words that translate each other, as a set of (source word, target word), learned by counting.

    Two words are a pair if each has its largest Dice coefficient with the other, 2 n(s, t) / (n(s) + n(t)), where n is
    a number of sentence pairs. "Translating Collocations for Bilingual Lexicons" (Smadja et al., 1996), section 3.

    Args:
        pairs: an iterable of (source, target).
        at_least: the smallest coefficient. Defaults to 0.5.
        most: number of pairs that are read, from the beginning. Defaults to 100,000.
    """
    sources, targets, both = Counter(), Counter(), Counter()
    for source, target in itertools.islice(pairs, most):
        words = [set(_WORD.findall(text)) for text in (source, target)]
        sources.update(words[0])
        targets.update(words[1])
        both.update(itertools.product(*words))
    best = {}
    for (source, target), count in both.items():
        if count >= 5:
            dice = 2 * count / (sources[source] + targets[target])
            for key, value in ((0, source), (dice, target)), ((1, target), (dice, source)):
                best[key[0], key[1]] = max(best.get((key[0], key[1]), (0, "")), value)
    return {
        (word, other)
        for (side, word), (dice, other) in best.items()
        if side == 0 and dice >= at_least and best[1, other][1] == word
    }


def mask_words(
    source: str, target: str, words: Collection, rng: Random, count: int = NUM_PLACEHOLDERS
) -> tuple[str, ...] | None:
    """A pair in which one or two words become placeholders, and their translations the same ones; or None.

    Args:
        source, target: from `protect_pair`.
        words: from `word_pairs`. Capitalised words that both sides have are replaced, too.
        rng: a `random.Random`.
        count: number of placeholders.

    Returns:
        (source, target), or None if no word can be replaced.
    """
    sides = [compiled(f"({_WORD.pattern})").split(text) for text in (source, target)]
    places = [{}, {}]
    for side, where in zip(sides, places, strict=True):
        for i in range(1, len(side), 2):
            where[side[i]] = None if side[i] in where else i  # None: twice.
    free = [number for number in range(count) if placeholder(number) not in source]
    same = [(word, word) for word in places[0] if word[0].isupper()]
    found = sorted(
        (places[0][a], places[1][b])
        for a, b in {*same, *((a, b) for a, b in itertools.product(*places) if (a, b) in words)}
        if places[0].get(a) is not None and places[1].get(b) is not None
    )
    if not found or not free:
        return None
    rng.shuffle(found)
    for i, j in found[: rng.choice((1, 1, 2))]:
        if free:
            sides[0][i] = sides[1][j] = placeholder(free.pop(rng.randrange(len(free))))
    return tuple(map("".join, sides))
