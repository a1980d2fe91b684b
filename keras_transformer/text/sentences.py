"""Splits texts into sentences and joins translations: the same in Python, in a TensorFlow graph and in other languages.

The specification is a list of pairs, `rules`: a pattern and what replaces each match. They are applied in order. They
use only what Python's `regex`, RE2 (TensorFlow), JavaScript and Java have in common: no look-around, and no `\\b`,
`\\s`, `^` or `$`. So the rules put marks into the text, and later rules take some of them away. Other languages get the
rules from the export.

A separator is what stands between sentences: spaces, line breaks, indentation, bullets. It is never translated.
docs/text-rules.md describes the rules in words. This file needs only `regex` and can be copied into applications.
"""

import functools
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import regex

# Marks. A text that has these characters gets spaces instead. TAG stands for the ">>" of a language tag.
CUT, BEGIN, END, WRAP, ITEM, TAG = "\x01", "\x02", "\x03", "\x04", "\x05", "\x06"

TO_CUTS = (f"[{BEGIN}{END}]", CUT)

SPACE = "[ \t\r\x04\u00a0\u1680\u2000-\u200a\u202f\u205f\u3000]"
LETTER = r"\p{L}"
# Line feed, vertical tab, form feed, next line, and the separators of lines and paragraphs.
LINE_END = "[\n\v\f\x85\u2028\u2029]"
IN_LINE = LINE_END.replace("[", "[^")
# Ends of sentences before a space: Latin, Greek, Arabic, Devanagari, Armenian, Ethiopic, Burmese, Khmer.
STOP = "[.!?…‼⁇⁈⁉‽;؟۔।॥։።፧።။៕]".replace(";", "\u037e")

WIDE_STOP = "[。！？｡]"  # Chinese and Japanese put no space after them.

CLOSE = "(?:[\"'”’“‘»«›‹)\\]}*_]|[\u00a0\u202f ]»)"
WIDE_CLOSE = "[」』）”’》〉】]"
OPEN = "[\"'“”„‚«»‹›‘’(\\[{*_¿¡–—-]"
INITIAL = r"[\p{Ll}A-HJ-ZÀ-ÞĀ-ɏͰ-ϿЀ-ӿ]"  # Not I: "So did I. Then we left."
BULLET = "(?:[-*+•‣◦⁃–—·▪●○■□✓✔]|#{1,6}|[0-9]{1,3}[.)]|[a-z]\\)|\\([0-9a-z]{1,3}\\))"

# A line with at least this many characters is taken as wrapped: the next line continues it.
WRAPPED_FROM = 50

# Abbreviations that no sentence ends with. Single letters need no entry ("z. B.", "J. R. R. Tolkien").
ABBREVIATIONS = (
    # English
    "Mr|Mrs|Ms|Messrs|Dr|Drs|Prof|Rev|Hon|St|Sr|Jr|Gen|Col|Maj|Capt|Cmdr|Lt|Sgt|Cpl|Gov|Sen|Rep|Pres|Supt|Det|Insp|"
    "Adm|Mt|vs|cf|viz|approx|incl|excl|resp|esp|Fig|Figs|Eq|Eqs|Sec|Ch|Vol|Ed|Eds|Univ|Dept|Ave|Blvd|eg|ie|"
    # German
    "bzw|ca|evtl|ggf|bspw|inkl|exkl|zzgl|vgl|Vgl|sog|gem|lt|Hr|Fr|Frl|Dipl|Ing|Mag|Abb|Tab|Kap|Str|allg|bes|einschl|"
    # French
    "Mme|Mmes|Mlle|Mlles|MM|Me|Mgr|env|av|apr|chap|fig|"
    # Czech
    "tzv|tj|např|resp|popř|příp|zejm|vč|pí|Ing|Mgr|MUDr|JUDr|PhDr|RNDr|Bc|doc|prof|gen|plk|sv|ul|nám|"
    # Spanish and Italian
    "Sra|Srta|Dra|Ud|Uds|Sig|Sigg|Dott|Avv|pág"
)
# Abbreviations that no sentence ends with if a number follows ("No. 5").
BEFORE_NUMBERS = (
    "No|Nos|no|nos|Tel|tel|Nr|Nrn|nr|p|pp|pg|S|Bd|Art|art|Abs|Anm|Aufl|Jg|Zi|Ziff|n°|vol|núm|č|čl|odst|str|"
    "Jan|Feb|Apr|Aug|Sep|Sept|Oct|Okt|Nov|Dec|Dez"
)
# Languages whose ordinal numbers end with a full stop ("am 3. Mai"), in ISO 639-1 and 639-3.
_ORDINALS = """cs da de et fi hr hu is lv nb nn no pl sk sl sr tr
ces dan deu ekk est fin hrv hun isl lav lvs nob nno nor pol slk slv srp tur"""
ORDINALS = frozenset(_ORDINALS.split())


@functools.lru_cache
def rules(language: str | None = None) -> tuple[tuple[str, str], ...]:
    """The pairs (pattern, replacement) that mark the sentences of a text between two line breaks.

    Args:
        language: code of the text's language, such as `"de"`, `"de-AT"` or `"deu_Latn"`. It only decides whether a
            number with a full stop is an ordinal number. Defaults to None: it is not.
    """
    no_letter = r"[^\p{L}\p{N}]"
    pairs = [
        (">>([A-Za-z][A-Za-z0-9_-]{1,20}<<)", f"{TAG}\\1"),  # No quoted mail.
        # Line breaks. A line that begins with a bullet is an item.
        (f"({LINE_END}[ \t>]*)({BULLET}[ \t]+)", f"\\1{ITEM}\\2"),
        (f"({IN_LINE}{{{WRAPPED_FROM}}})\n", f"\\1{WRAP}"),
        # ... but an empty line, an item or a tag begins a new sentence,
        (f"{WRAP}([ \t\r>]*(?:{LINE_END}|[{ITEM}{TAG}]))", "\n\\1"),
        (f":{WRAP}([ \t]*>)", ":\n\\1"),  # ... and so does a quoted mail.
        # Where a sentence may end.
        (f"({STOP}{CLOSE}*)({SPACE})", f"\\1{CUT}\\2"),
        (f"({WIDE_STOP}+{WIDE_CLOSE}*)", f"\\1{CUT}"),
        # A space is missing: "It rained.We went home." Addresses and names of files have no capital and word there.
        (
            f"((?:{LINE_END}|[ {CUT}{WRAP}\"'“„(]){LETTER}*\\p{{Ll}}{{2}}[.!?])"
            f"(\\p{{Lu}}{LETTER}*(?:{LINE_END}|[ ,;:!?]))",
            f"\\1{CUT}\\2",
        ),
        # Where it does not end: before a small letter or a comma,
        (f"{CUT}((?:{SPACE}|>)+(?:{OPEN} ?)*[\\p{{Ll}},;:)])", "\\1"),
        # ... after an abbreviation or an initial,
        (f"({no_letter}(?:{ABBREVIATIONS})\\.){CUT}", "\\1"),
        (f"((?:{no_letter}(?:{BEFORE_NUMBERS})|[a-z]str)\\.){CUT}({SPACE}+[0-9])", "\\1\\2"),
        (f"([^\\p{{L}}\\p{{N}}'’]{INITIAL}\\.){CUT}", "\\1"),
        # ... after the number of an item.
        (f"((?:{CUT}{SPACE}+|{ITEM})[0-9]{{1,3}}\\.){CUT}", "\\1"),
    ]
    if regex.split("[-_]", (language or "").lower())[0] in ORDINALS:
        pairs.append((r"([^\p{L}\p{N}.,:][0-9]{1,2}\.)" + CUT, "\\1"))
    prefix = f"(?:[ \t\r>\u00a0\u3000]*(?:{ITEM}{BULLET}[ \t]+)?)"
    pairs += [
        # The separators.
        (f"{CUT}?({SPACE}*(?:{LINE_END}{prefix})+)|{CUT}((?:{WRAP}[ \t\r>]*|{SPACE})*)", f"{END}\\1\\2{BEGIN}"),
        (ITEM, ""),
        (WRAP, "\n"),
        (TAG, ">>"),
        # What has no letter and no digit belongs to the separator: there is nothing to translate.
        (f"{BEGIN}([^{BEGIN}{END}{LETTER}\\p{{N}}]*){END}", "\\1"),
        TO_CUTS,
    ]
    return tuple(pairs)


# Before the rules: marks in a text become spaces. After them: line breaks in a sentence become spaces.
NO_MARKS = ("[\x01-\x06]", " ")
UNWRAP = ("[ \t\r]*\n[ \t\r>]*", " ")
# Line breaks around the text give the rules a beginning and an end. Of what they make, these characters are cut off:
# "\x01\n" at the beginning and "\n\n\x01" at the end.
FRAME = ("\n", "\n\n")
CUT_OFF = (2, 3)

# Where a sentence that is too long is cut in two: after these characters, or at a space.
CLAUSE_ENDS, WIDE_CLAUSE_ENDS, SPACES = ",;:–—)", "、，；：", " \t\r\n\u00a0\u3000"
AFTER_CUT = (f"{CUT}([{SPACES}>]*)", f"{CUT}\\1{CUT}")

# Joining: if nothing stood between two sentences, a space does, except after a Chinese or Japanese full stop.
JOIN = (f"([^{BEGIN}。！？｡、，」』）]){END}{BEGIN}", f"\\1{END} {BEGIN}")


def specification(language: str | None = None) -> dict[str, Any]:
    """All that splits and joins texts of a language, as JSON takes it; sentences.js and Texts.java read it."""
    return {
        "before": [NO_MARKS],
        "rules": rules(language),
        "unwrap": [UNWRAP],
        "after_cut": [AFTER_CUT],
        "join": [JOIN],
        "to_cuts": [TO_CUTS],
        "frame": FRAME,
        "cut_off": CUT_OFF,
        "cut": CUT,
        "begin": BEGIN,
        "end": END,
        "spaces": SPACES,
        "clause_ends": CLAUSE_ENDS,
        "wide_clause_ends": WIDE_CLAUSE_ENDS,
    }


def split(text: str, language: str | None = None) -> list[str]:
    """Splits a text of a language; see `rules`.

    Returns:
        A list of strings, separators and sentences in turn. The first and the last one are separators and may be empty.
        Together they are the text, in which U+0001 to U+0006 became spaces.

    Example:
        >>> split("- I met Dr. Ross. He left!\\n")
        ['- ', 'I met Dr. Ross.', ' ', 'He left!', '\\n']
    """
    marked = _replaced(FRAME[0] + without_marks(text) + FRAME[1], *rules(language))
    return marked[CUT_OFF[0] : -CUT_OFF[1]].split(CUT)


def plain(sentence: str) -> str:
    """A sentence as the model gets it: line breaks, and the marks of a quoted mail after them, become spaces.

    Example:
        >>> plain("a long\\n> line")
        'a long line'
    """
    return _replaced(sentence, UNWRAP)


def fitted(parts: Sequence[str], fits: Callable[[list[str]], Iterable[bool]]) -> list[str]:
    """Cuts sentences that are too long for a model in two, until every part fits.

    A sentence is cut after the clause that ends nearest to the sentence's middle, if one ends in its middle half.
    Otherwise it is cut at the space nearest to the middle; without a space, in the middle. Of two equal places it is
    the first one. All counts are of characters.

    Args:
        parts: separators and sentences in turn, from `split`.
        fits: a function from a list of `plain` sentences to a list of bool.

    Returns:
        `parts` with shorter sentences.

    Example:
        >>> fitted(["", "One two, three four five", ""], lambda texts: [len(text) < 16 for text in texts])
        ['', 'One two,', ' ', 'three four five', '']
    """
    does_fit, shorter = iter(fits([plain(sentence) for sentence in parts[1::2]])), []
    for i, part in enumerate(parts):
        if i % 2 == 0 or next(does_fit) or len(part) < 2:
            shorter.append(part)
        else:  # Only the two shorter sentences are tried again.
            shorter += fitted(["", *_cut_in_two(part), ""], fits)[1:-1]
    return shorter


def _cut_in_two(sentence):
    """[first part, separator, second part] of a sentence of at least two characters."""
    count = len(sentence)
    clauses, spaces = [], []
    for i in range(1, count):
        before, here = sentence[i - 1], sentence[i]
        if here in SPACES:
            spaces.append(i)
        in_the_middle = 2 * abs(2 * i - count) <= count
        if in_the_middle and (before in WIDE_CLAUSE_ENDS or (before in CLAUSE_ENDS and here in SPACES)):
            clauses.append(i)
    place = min(clauses or spaces or [count // 2], key=lambda i: abs(2 * i - count))
    return _replaced(sentence[:place] + CUT + sentence[place:], AFTER_CUT).split(CUT)


def without_marks(text: str) -> str:
    """A text in which U+0001 to U+0006 became spaces."""
    return _replaced(text, NO_MARKS)


def joined(parts: Iterable[str]) -> str:
    """The text of separators and translated sentences, in turn.

    If nothing stood between two sentences, a space does, except after a Chinese or Japanese full stop.

    Example:
        >>> joined(["", "Es regnet.", "", "Wir gehen.", "\\n"])
        'Es regnet. Wir gehen.\\n'
    """
    return "".join(spaced(parts))


def spaced(parts: Iterable[str]) -> list[str]:
    """`parts` with the spaces that `joined` adds, as separators."""
    marked = "".join(BEGIN + part + END if i % 2 else part for i, part in enumerate(parts))
    return _replaced(marked, JOIN, TO_CUTS).split(CUT)


_compiled = functools.cache(regex.compile)  # The cache of `regex` takes longer than most searches.


def _replaced(text, *pairs):
    for pattern, replacement in pairs:
        text = _compiled(pattern).sub(replacement, text)
    return text
