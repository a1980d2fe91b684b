"""What is wrong with translations that can be seen without a reference: lost numbers, copies, loops, lengths."""

import re
from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

from keras_transformer.data.cleaning import far_apart
from keras_transformer.text.placeholders import kept_pieces

# The same words four times and more, or the same letters six times. In scripts from Thai on, which have no spaces,
# words begin and end anywhere.
_LOOP = re.compile(
    "(?<![^\\W\u0e00-\U0003ffff])([^\\W_].{0,200}?)(?:[\\s,.;]*\\1){3,}(?![^\\W\u0e00-\U0003ffff])"
    r"|([^\W\d_]{1,4}?)\2{5,}"
)
_NUMBER, _LETTERS = re.compile(r"\d+"), re.compile(r"[^\W\d_]+")
_SEPARATOR = re.compile(r"(?<=\d)[.,](?=\d)")  # "3.5 km" is "3,5 km" in German.


class Checks(NamedTuple):
    """Counts of translations.

    Attributes:
        texts: all of them.
        numbers, numbers_kept: runs of digits in the sources, and those that the translations have; without those of
            `parts`.
        parts, parts_kept: the same for what must not change; see `keras_transformer.text.placeholders`.
        copies: translations that are their source, of three words and more.
        loops: those that say something four times in a row, or letters six times, which their sources do not.
        lengths: those that are far longer or shorter than their source; see `data.cleaning.far_apart`.
        length_ratio: characters of all translations by those of all sources.
    """

    texts: int
    numbers: int
    numbers_kept: int
    parts: int
    parts_kept: int
    copies: int
    loops: int
    lengths: int
    length_ratio: float

    def __str__(self):
        def share(kept, count):
            return f"{kept / count:.1%} of {count:,}" if count else "there are none"

        return (
            f"checks: numbers kept: {share(self.numbers_kept, self.numbers)}; placeholders kept: "
            f"{share(self.parts_kept, self.parts)}; copies of the source: {self.copies:,}; loops: {self.loops:,}; "
            f"far too long or short: {self.lengths:,}; length: {self.length_ratio:.2f} of the sources"
        )


def checks(sources: Sequence[str], translations: Sequence[str]) -> Checks:
    """Counts what can be wrong with translations.

    Args:
        sources, translations: lists of strings of the same length.

    Example:
        >>> found = checks(["Press {key} 2 times.", "Do not stop."], ["Drücken Sie {key}.", "Do not stop."])
        >>> found.numbers_kept, found.parts_kept, found.copies
        (0, 1, 1)
    """
    counts, pairs = Counter(), list(zip(sources, translations, strict=True))
    for source, translation in pairs:
        pieces = kept_pieces(source), kept_pieces(translation)
        parts = [[_SEPARATOR.sub(".", part) for part in side[1::2]] for side in pieces]
        numbers = [_NUMBER.findall(" ".join(side[::2])) for side in pieces]
        for name, (wanted, here) in (("numbers", numbers), ("parts", parts)):
            counts[name] += len(wanted)
            counts[f"{name}_kept"] += (Counter(wanted) & Counter(here)).total()
        counts["copies"] += source == translation and len(_LETTERS.findall(source)) > 2
        counts["loops"] += bool(_LOOP.search(translation)) and not _LOOP.search(source)
        counts["lengths"] += far_apart(source, translation)
    lengths = [sum(map(len, side)) for side in (sources, translations)]
    named = {name: counts[name] for name in Checks._fields[1:-1]}
    return Checks(len(pairs), **named, length_ratio=lengths[1] / max(1, lengths[0]))
