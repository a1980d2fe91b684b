"""What is wrong with translations that can be seen without a reference: lost numbers, copies, loops, remarks."""

import re
from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

from keras_transformer.data.cleaning import far_apart
from keras_transformer.text.placeholders import kept_pieces, lost

# The same words four times and more, or the same letters six times. In scripts from Thai on, which have no spaces,
# words begin and end anywhere.
_LOOP = re.compile(
    "(?<![^\\W\u0e00-\U0003ffff])([^\\W_].{0,200}?)(?:[\\s,.;]*\\1){3,}(?![^\\W\u0e00-\U0003ffff])"
    r"|([^\W\d_]{1,4}?)\2{5,}"
)
_NUMBER, _LETTERS = re.compile(r"\d+"), re.compile(r"[^\W\d_]+")
_SEPARATOR = re.compile(r"(?<=\d)[.,](?=\d)")  # "3.5 km" is "3,5 km" in German.
# Numbers and dates, which other languages write in another way; the words of a message; amounts and percentages.
_LOCAL = re.compile(r"[\d+€£¥-]|[vV]\d|\{[^{},]*,\s*(?:plural|select|selectordinal|choice)\b")
_AMOUNT = re.compile(r"[$%] ?\d[\d.,]*")
# "Translate" in several languages; at the beginning, before a colon, it introduces a translation.
_TRANSLATE = (
    r"(?:\btranslat|\b(?:über|ueber)setz|\bvertal|\btrad[uo][cçirtz]|översätt|oversett|oversæt|\b(?:prze)?tłumacz|překl"
    r"|přelož|preklad|перев[её]?[до]|переклад|μετάφρ|μεταφρ|käänn|fordít|çevir|翻[译譯訳]|번역|ترجم|תרגום|अनुवाद|terjemah"
    "|bản dịch)"
)
_INTRODUCTION = re.compile(f".{{0,60}}?{_TRANSLATE}[^:：]{{0,40}}[:：]", re.IGNORECASE)
# What else a language model says beside a translation.
_REMARK = re.compile(
    r"```|\*\*|</?think|\bas an ai\b|\blanguage model|\bsprachmodell|\b(?:a|the) translation\b"
    r"|\btranslate (?:this|that|the)\b"
    r"|\bi (?:can(?:no|['’])t|am unable to|['’]m unable to) (?:assist|comply|fulfil|help with th)",
    re.IGNORECASE,
)
_OF_SOURCE = re.compile(f"{_REMARK.pattern}|{_TRANSLATE}", re.IGNORECASE)
COLON = re.compile("[:：]")
_QUOTES = "\"'“”„«»‘’‚‹›「」『』《》〈〉"
_DASHES = "-–—"  # What speech begins with in some languages.

# What can be wrong with a translation that was made elsewhere.
LOST, LOOP, REMARK, QUOTED = (
    *("without a placeholder of the source", "with a loop", "with a remark about the translation"),
    "in quotation marks, without any in the source",
)


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


def problem(source: str, translation: str) -> str | None:
    """What makes a translation no example to learn from, or None: the first of `LOST`, `LOOP`, `REMARK` and `QUOTED`.

    Example:
        >>> problem("A dog sleeps.", "Here is the translation: Ein Hund schläft.")
        'with a remark about the translation'
        >>> problem("Press {key} at 3.5 V.", "Drücken Sie {key} bei 3,5 V.")
    """
    if not source or not translation:
        return None
    if any(_must_stay(part, translation) for part in lost(source, translation)):
        return LOST
    if _LOOP.search(translation) and not _LOOP.search(source):
        return LOOP
    is_introduced = _INTRODUCTION.match(translation) and not COLON.search(source)
    if is_introduced or (_REMARK.search(translation) and not _OF_SOURCE.search(source)):
        return REMARK
    ends = {translation[0], translation[-1]} <= set(_QUOTES)
    return QUOTED if ends and not {source[0], source[-1]} & set(_QUOTES + _DASHES) else None


def _must_stay(part, translation):
    """Whether a part that a translation lacks may not be written in another way."""
    if _AMOUNT.fullmatch(part):
        return re.sub(r"\D", "", part) not in re.sub(r"(?<=\d)[.,\s](?=\d)", "", translation)
    return not _LOCAL.match(part)
