"""Leaves out pairs of lines that are probably not translations of each other, and counts them by reason.

The rules are those of the usual tools: the hard rules of Bicleaner ("Bifixer and Bicleaner: two open-source tools to
clean your parallel data", Ramírez-Sánchez et al., 2020) and clean-corpus-n of Moses, with wider limits. What is wanted
for a corpus depends on the corpus: look at the samples.
"""

import collections
import contextlib
import functools
import gzip
import hashlib
import itertools
import math
from collections import Counter
from collections.abc import Iterable
from itertools import islice
from typing import Any

import numpy as np
import regex

from keras_transformer.data.storage import EMPTY, LINES_PER_BLOCK, left_out_by, none_left
from keras_transformer.data.workers import in_background
from keras_transformer.files import output_file

# Version of the rules: what was cleaned by others is cleaned again.
RULES = 3
DUPLICATE = "that were there before"
TOO_LONG = "with too many characters"
RATIO = "with sides of very different lengths"
COPY = "with a copy of the source"
NO_WORDS = "with few letters"
SCRIPT = "in another script"
LANGUAGE = "in another language"

# Languages that are not written in Latin script, and the scripts of others that may be in a text.
SCRIPTS = {
    **dict.fromkeys(("be", "bg", "kk", "ky", "mk", "mn", "ru", "tg", "uk"), "Cyrillic"),
    **dict.fromkeys(("ar", "fa", "ps", "sd", "ug", "ur"), "Arabic"),
    **dict.fromkeys(("hi", "mr", "ne", "sa"), "Devanagari"),
    **dict.fromkeys(("bo", "dz"), "Tibetan"),
    **{"am": "Ethiopic", "as": "Bengali", "bn": "Bengali", "el": "Greek", "gu": "Gujarati", "he": "Hebrew"},
    **{"hy": "Armenian", "ka": "Georgian", "km": "Khmer", "kn": "Kannada", "ko": "Hangul", "lo": "Lao"},
    **{"ml": "Malayalam", "my": "Myanmar", "or": "Oriya", "pa": "Gurmukhi", "si": "Sinhala", "ta": "Tamil"},
    **{"te": "Telugu", "th": "Thai", "yi": "Hebrew", "zh": "Han", "ja": r"Han}\p{Hiragana}\p{Katakana"},
}
# Languages that are written in more than one script.
ANY_SCRIPT = {"az", "bs", "ku", "sh", "sr", "tt", "uz"}

# A character of Chinese and Japanese is a word, also beside a Latin one.
_WORDS_TO_COMPARE = regex.compile(
    r"(?V1)[\p{Han}\p{Hiragana}\p{Katakana}ー]|[\p{L}\p{M}--[\p{Han}\p{Hiragana}\p{Katakana}ー]]+|\p{N}+"
)
_HAN, _SYLLABLES = map(regex.compile, (r"\p{Han}", r"[\p{Hiragana}\p{Katakana}\p{Hangul}ー]"))
# Vowel signs are letters.
_SPACES, _LETTERS, _PARTS = map(regex.compile, (r"\s+", r"[\p{L}\p{M}]", r"[\p{L}\p{M}\p{N}]+"))
# Without the punctuation around them. What is inside is often what a translation changes: "PDF version", "PDF-Version".
_WORDS = regex.compile(r"[\p{L}\p{N}](?:\S*[\p{L}\p{N}])?")


# The smallest share of equal pairs of words among all pairs of two texts that are nearly the same.
NEARLY = 0.7


class Cleaner:
    """The rules for a pair of languages.

    Args:
        source_language, target_language: codes such as `"de"`, for the rules about scripts and languages. A code may
            have a region, `"zh-TW"`. Default to None: no rule.
        max_characters: longer lines are left out. Defaults to 1,000.
        max_ratio: largest ratio of the two sides, as in `far_apart`. Defaults to 3.
        identify: whether to leave out lines in another language. Needs `pip install lingua-language-detector` and both
            languages. Defaults to False.

    Raises:
        ValueError: a language is not known to the identifier, or it is not installed.

    Example:
        >>> Cleaner("en", "de").reason(1, "The dog sleeps here.", "The dog sleeps here.")
        'with a copy of the source'
    """

    def __init__(
        self,
        source_language: str | None = None,
        target_language: str | None = None,
        max_characters: int = 1000,
        max_ratio: float = 3.0,
        identify: bool = False,
    ):
        self.languages = source_language, target_language
        self.max_characters, self.max_ratio, self.identify = max_characters, max_ratio, identify
        self.duplicates = None
        if identify:
            _identifier(self.languages)

    @classmethod
    def of(cls, data: Any, direction: str | None = None) -> "Cleaner":
        """The `Cleaner` for the languages of a `DataConfig`, or for a direction such as "en-de"."""
        languages = direction.split("-") if direction else (data.source_language, data.target_language)
        return cls(*languages, data.max_characters, data.max_character_ratio, data.identify_languages)

    def find_duplicates(self, lines: Iterable) -> None:
        """Reads all pairs once, so that later `reason` finds pairs that were there before.

        This needs 8 bytes of memory a pair, and later one bit.
        """
        hashes = np.fromiter((_hash(pair) for pair in lines), "uint64")
        duplicates = np.ones(len(hashes), bool)
        duplicates[np.unique(hashes, return_index=True)[1]] = False
        self.duplicates = np.packbits(duplicates)

    def reason(self, number: int, source: str, target: str) -> str | None:
        """Why a pair is left out, or None. `number` is that of its line, from 1 on."""
        if not source or not target:
            return EMPTY
        if max(len(source), len(target)) > self.max_characters:
            return TOO_LONG
        if far_apart(source, target, self.max_ratio):
            return RATIO
        sides = source, target
        words = [_WORDS.findall(side) for side in sides]
        if words[0] == words[1] and len(_PARTS.findall(source)) > 2:
            return COPY
        letters = [len(_LETTERS.findall(side)) for side in sides]
        if any(2 * n < len(_SPACES.sub("", side)) for n, side in zip(letters, sides, strict=True)):
            return NO_WORDS
        for n, side, language in zip(letters, sides, self.languages, strict=True):
            pattern = _script(language)
            if pattern and 2 * len(pattern.findall(side)) < n:
                return SCRIPT
        place = number - 1
        if self.duplicates is not None and self.duplicates[place >> 3] >> (7 - (place & 7)) & 1:
            return DUPLICATE
        if self.identify:
            detector, wanted = _identifier(self.languages)
            for n, side, language in zip(letters, sides, wanted, strict=True):
                # Short texts are often names. The identifier is surer of what is wrong than of what is right.
                if n >= 20 and detector.compute_language_confidence(side, language) < 0.005:
                    return LANGUAGE
        return None

    def settings(self) -> list:
        """What the result depends on, for JSON."""
        return [RULES, *self.languages, self.max_characters, self.max_ratio, self.identify]


def far_apart(source: str, target: str, ratio: float = 3.0) -> bool:
    """Whether one text is much longer than the other: more than `ratio` times as many characters, and 20.

    A Chinese character counts as three, a Japanese or Korean syllable as two.

    Example:
        >>> far_apart("Yes", "Ja, das ist in der Tat wirklich so")
        True
        >>> far_apart("Specifies whether the handles should be displayed.", "指定是否显示图柄。")
        False
    """
    letters = size_of(source), size_of(target)
    return max(letters) > ratio * min(letters) + 20


def size_of(text: str) -> int:
    """The number of letters that a text would have in Latin script, as `far_apart` counts them."""
    return len(text) + 2 * len(_HAN.findall(text)) + len(_SYLLABLES.findall(text))


def near_duplicates(texts: Iterable[str], others: Iterable[str]) -> list[bool]:
    """Whether each text is nearly one of the others: they share at least 70 % of their pairs of neighbouring words.

    Case, punctuation and the values of numbers do not count. Only texts that share one of their rarest pairs are
    compared, which misses none ("A Primitive Operator for Similarity Joins in Data Cleaning", Chaudhuri et al., 2006).

    Args:
        texts, others: strings.

    Example:
        >>> near_duplicates(["Press F2 to edit the cell.", "The cell."], ["Press F5 to edit the cell"])
        [True, False]
    """
    sets = list(dict.fromkeys(map(_pairs_of_words, others)))
    frequency = Counter(itertools.chain.from_iterable(sets))
    index = collections.defaultdict(list)

    def rarest(pairs):
        count = len(pairs) - math.ceil(NEARLY * len(pairs)) + 1
        return sorted(pairs, key=lambda pair: (frequency[pair], pair))[:count]

    for pairs in sets:
        for pair in rarest(pairs):
            index[pair].append(pairs)

    def is_near(pairs):
        compared = itertools.chain.from_iterable(index.get(pair, ()) for pair in rarest(pairs))
        return any(len(pairs & other) >= NEARLY * len(pairs | other) for other in compared)

    return [is_near(_pairs_of_words(text)) for text in texts]


def _pairs_of_words(text):
    words = ["0" if word.isdecimal() else word for word in _WORDS_TO_COMPARE.findall(text.casefold())]
    return frozenset(zip(["", *words], [*words, ""], strict=True))


def clean_files(text, cleaner, outputs, workers=1, progress=None):
    """Writes the pairs of a text that a `Cleaner` keeps to two files.

    Args:
        text: a `keras_transformer.data.corpora.ParallelText`.
        cleaner: a `Cleaner`.
        outputs: the paths of source and target; those that end with .gz are packed. They appear when they are complete.
        workers, progress: see `encoding.encode_pairs`.

    Returns:
        The number of pairs that were kept, and `encoding.LeftOut` by reason.

    Raises:
        ValueError: no pair is left.
    """
    cleaner.find_duplicates(text.lines)
    lines, kept, left_out = enumerate(text.lines, 1), 0, {}
    with contextlib.ExitStack() as stack:
        files = []
        for path in outputs:
            file, packed = stack.enter_context(output_file(path, "wb")), str(path).endswith(".gz")
            files.append(stack.enter_context(gzip.GzipFile(fileobj=file, mode="wb", mtime=0)) if packed else file)
        judged = stack.enter_context(in_background(functools.partial(_judged, cleaner), workers))
        for block, reasons in judged(iter(lambda: list(islice(lines, LINES_PER_BLOCK)), [])):
            for (_, pair), reason in zip(block, reasons, strict=True):
                if reason is None:
                    kept += 1
                    for file, line in zip(files, pair, strict=True):
                        file.write(f"{line}\n".encode())
            left_out = left_out_by(zip(reasons, block, strict=True), left_out)
            if progress:
                progress(block[-1][0])
        if not kept:
            raise ValueError(f"{none_left(left_out)}. Nothing is written. Look at the text.")
    return kept, left_out


def _judged(cleaner, block):
    return block, [cleaner.reason(number, *pair) for number, pair in block]


def _without_region(language):
    return regex.split("[-_]", language)[0]


def _hash(pair):
    return int.from_bytes(hashlib.blake2b("\t".join(pair).encode(), digest_size=8).digest(), "little")


@functools.cache
def _script(language):
    """A pattern for the letters of a language's script, such as the second part of `rus_Cyrl`; or None."""
    code, *parts = regex.split("[-_]", (language or "").lower())
    by_code = SCRIPTS.get(code, "Latin") if len(code) == 2 and code not in ANY_SCRIPT else None
    for script in filter(None, [*(part for part in parts if len(part) == 4), by_code]):
        with contextlib.suppress(regex.error):  # Hans, Jpan, 1996: no script that Unicode has by this name.
            return regex.compile(rf"[\p{{{script}}}]")
    return None


@functools.cache
def _identifier(languages):
    """A language identifier, and its names of two languages."""
    try:
        from lingua import IsoCode639_1, Language, LanguageDetectorBuilder
    except ImportError as error:
        raise ValueError(
            "To find lines in another language, install the identifier: pip install lingua-language-detector"
        ) from error
    codes = [_without_region(language or "none").upper() for language in languages]
    codes = ["NB" if code == "NO" else code for code in codes]
    unknown = [code.lower() for code in codes if not hasattr(IsoCode639_1, code)]
    if unknown:
        raise ValueError(
            f"Lines in another language are found for {len(Language.all())} languages, named by two letters. "
            f"Received: {', '.join(unknown)}. Set --source-language and --target-language, or leave out this rule."
        )
    # This mode needs 80 MiB instead of 1 GiB, and is five times as fast.
    detector = LanguageDetectorBuilder.from_all_languages().with_low_accuracy_mode().build()
    return detector, [Language.from_iso_code_639_1(getattr(IsoCode639_1, code)) for code in codes]
