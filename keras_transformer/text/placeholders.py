"""Keeps parts of a text that must not change: the model sees a placeholder, and its translation gets the part back.

Such parts are addresses, `{name}` and `%s`, code, numbers with units, long numbers, emoji, and the terms of a glossary.
In a text they become the tokens `⟦0⟧`, `⟦1⟧`, ...; a vocabulary has the first 8 of them, after the special tokens. The
search writes each placeholder of a sentence exactly once (`keras_transformer.search.decoder`). A model learns where to
write them because, in training, words and their translations are replaced by the same placeholder in a share of the
pairs.

What is kept is found by `RULES`, which use only what Python's `regex`, RE2 (TensorFlow), JavaScript and Java have in
common, as `keras_transformer.text.sentences` explains. Other languages get them from the export. This file needs only
`regex` and can be copied into applications.

References: "Addressing the Rare Word Problem in Neural Machine Translation" (Luong et al., 2015) replaces words by
numbered tokens; "Lexically Constrained Decoding" (Hokamp and Liu, 2017) is the other way to use terms.
"""

import functools
from collections import Counter
from collections.abc import Sequence
from typing import Any, NamedTuple

import regex

PLACEHOLDER = r"⟦([0-9]{1,4})⟧"
# Number of placeholders of a vocabulary.
NUM_PLACEHOLDERS = 8

# Marks: CUT stands before and after each kept part. A text that has these characters gets spaces instead.
CUT, BEGIN, END = "\x01", "\x02", "\x03"

_NOT_IN_ADDRESSES = ' \t\r\n\u00a0\u3000<>"“”„«»`{}'
_UNITS = (
    "km/h|km²|km|cm²|cm|mm²|mm|µm|nm|m²|m³|m/s|kg|mg|µg|g|ml|dl|cl|hl|l|ms|min|kHz|MHz|GHz|Hz|kWh|kW|MW|mAh|"
    "kB|KB|MB|GB|TB|kbit|Mbit|°C|°F|°|%%?|‰|hPa|kJ|kcal|dB|px|€|\\$|£|¥|m"
)
_EMOJI = "\U0001f000-\U0001faff\u2600-\u27bf\u2b05-\u2b55\u231a-\u23ff"
# Signs that are emoji if U+FE0F follows: arrows and the like.
_SIGNS = "\u203c\u2049\u2122\u2139\u2194-\u2199\u21a9\u21aa\u24c2\u25aa-\u25c0\u25fb-\u25fe\u2934\u2935\u3030\u303d"

# What belongs to the emoji before it: joiners, variants, the signs after a joiner, and the tags of a flag.
_MORE = "\ufe0f\u200d\u20e3\u2194\u2195\U000e0020-\U000e007f"
# Bounded repetitions, so that a long list of numbers or a message without an end does not take long.
_NUMBER = "[0-9]+(?:[.,:/–-][0-9]+){0,5}"
_BRACES = r"(?:[^{}]|\{(?:[^{}]|\{(?:[^{}]|\{[^{}]*\})*\})*\})*"  # Pairs of braces, up to four deep.
_FILE = r"[\p{L}\p{N}._@+~-]"
KEPT = (
    PLACEHOLDER.replace("(", "(?:"),  # So that nobody can write a placeholder.
    f"[a-z][a-z0-9+.-]{{1,20}}://[^{_NOT_IN_ADDRESSES}]*[^{_NOT_IN_ADDRESSES}.,;:!?)\\]'…]",
    f"www\\.[A-Za-z0-9-]+\\.[^{_NOT_IN_ADDRESSES}]*[^{_NOT_IN_ADDRESSES}.,;:!?)\\]'…]",
    r"[\p{L}0-9._%+-]+@[A-Za-z0-9-]+(?:\.[A-Za-z0-9-]+)+",
    "`[^`\n]+`",
    # Tags; with a space only if they have an attribute: "a<b and c>d" has none.
    "</?[\\p{L}\\p{N}][^<> \n]*(?: [^<>=\n]*=[^<>\n]*| ?/)?>",
    # Variables, and whole ICU messages: "{n, plural, one {# coat} other {# coats}}".
    rf"\{{[^{{}},\n]{{1,60}},[ \n]*(?:plural|select|selectordinal|choice)[ \n]*,{_BRACES}\}}",
    r"[$%#@]?\{\{?[^{}⟦⟧\n]{0,60}\}?\}|\[\[[^\[\]\n]{1,60}\]\]",
    r"\$\([A-Za-z0-9_.]{1,60}\)|\$\[[A-Za-z0-9_.]{1,60}\]|\$[A-Za-z_][A-Za-z0-9_]*\$?",
    r"(?:\$[0-9]{1,2}){2,9}\$?|\$[0-9]{1,2}\$",  # "$1$", "$1$2$3"; an amount such as "$1,000.50" is below.
    # "%PRODUCTNAME"; printf and strftime, also "%1$-5.2lf", "%(name)s", "%<PRIu64>" and a "%%" after them; Qt's "%1".
    r"%[A-Z][A-Z0-9_]+%?",
    r"%(?:\([^() \n]{1,60}\)|[0-9]+\$)?[-+0#']*(?:[0-9]+|\*)?(?:\.(?:[0-9]+|\*)?)?(?:hh?|ll?|[qjztLw])?"
    r"(?:[A-Za-z@]|<PRI[A-Za-z0-9]+>)(?:%%)?",
    r"%%|%L?[0-9]{1,2}%{0,2}",
    r"\\[nrt]",
    r"[@#][\p{L}_][\p{L}\p{N}_]+",
    f"[€$£¥] ?{_NUMBER}",
    f"{_NUMBER}[ \u00a0\u202f]?(?:{_UNITS})",
    # Telephone numbers; versions, dates and the like, of three numbers or more; times; long numbers.
    r"\+[0-9]{1,3}(?:[ ./-]?(?:\([0-9]+\)|[0-9]{2,})){2,6}",
    r"[vV]?[0-9]+(?:[-./:][0-9]+){2,20}(?:[.,][0-9]+)?(?:[-+.]?[A-Za-z]+[0-9]+(?:[:.+-][0-9]+)*Z?)?",
    "[0-9]+:[0-9]+|[0-9]{4,}(?:[-./][0-9]+)?|[0-9]+[-/][0-9]{4,}",
    # Paths.
    rf"(?:~|\.\.?)?(?:/{_FILE}*[\p{{L}}\p{{N}}_-])+/?|[A-Z]:\\(?:{_FILE}|\\)*",
    f"(?:[0-9#*]\ufe0f?\u20e3|[{_SIGNS}]\ufe0f|[{_EMOJI}])(?:[{_EMOJI}{_MORE}]|[{_SIGNS}]\ufe0f|[0-9#*]\ufe0f?\u20e3)*",
)
NO_MARKS = (f"[{CUT}{BEGIN}{END}]", " ")
RULES = (
    NO_MARKS,
    (f"({'|'.join(KEPT)})", f"{BEGIN}\\1{END}"),
    # Not part of a longer word: "100%increase", "5 men", "A4711", "and/or".
    (f"{BEGIN}([0-9vV+][^{BEGIN}{END}]*){END}([\\p{{L}}\\p{{N}}])", "\\1\\2"),
    (f"([\\p{{L}}\\p{{N}}]){BEGIN}((?:[0-9vV]|[A-Z]:)[^{BEGIN}{END}]*){END}", "\\1\\2"),
    (f"([\\p{{L}}\\p{{N}}.…!?)}}>’”»*_%<-]|\\]){BEGIN}([~./][^{BEGIN}{END}]*){END}", "\\1\\2"),
    (f"[{BEGIN}{END}]", CUT),
)
# Every part that is kept has one of these. Most sentences have none, and this is found much faster.
_MAY_BE_KEPT = f"[⟦@`<{{%#€$£¥0-9/\\\\\ufe0f\u20e3{_EMOJI}{CUT}{BEGIN}{END}]|www\\.|\\[\\["
# A text of nothing but placeholders and signs is not translated: there are no words.
NO_WORDS = r"[^\p{L}\p{N}]*"
MARK_PLACEHOLDERS = (PLACEHOLDER, f"{CUT}\\1{CUT}")
NO_PLACEHOLDERS = (PLACEHOLDER, "[\\1]")
# A part gets a space where it would touch one of these and touched none in the source. Languages without spaces have
# no letters of two cases.
_CASED = r"\p{Lu}\p{Ll}\p{N}"
TOUCHED = (f"[{_CASED}.…%⟧]", f"[{_CASED}⟦]")
APART = (
    (f"{END}{BEGIN}", " "),
    (f"([{_CASED}.…%]){BEGIN}", "\\1 "),
    (f"{END}([.,:;!?]?)([{_CASED}])", "\\1 \\2"),
    (f"[{BEGIN}{END}]", ""),
)


class Protected(NamedTuple):
    """A text with placeholders.

    Attributes:
        text: what the model translates.
        parts: a tuple of strings: what the placeholders 0, 1, ... stand for.
    """

    text: str
    parts: tuple[str, ...]


def specification() -> dict[str, Any]:
    """The rules as JSON takes them; placeholders.js and Texts.java read them."""
    pairs = {"rules": RULES, "mark": [MARK_PLACEHOLDERS], "other": [NO_PLACEHOLDERS], "apart": APART}
    return {**pairs, "touched": TOUCHED, "no_words": NO_WORDS, "cut": CUT, "begin": BEGIN, "end": END}


def placeholder(number: int) -> str:
    """The token of a placeholder."""
    return f"⟦{number}⟧"


def protect(text: str, count: int = NUM_PLACEHOLDERS, glossary: Any = None) -> Protected:
    """Replaces what must not change by placeholders.

    Args:
        text: a string.
        count: number of placeholders; further parts stay in the text, but `⟦1⟧` becomes `[1]`. Defaults to 8.
        glossary: `Glossary`; its terms are replaced, too, and their translations are the parts. Defaults to None.

    Example:
        >>> protect("Dear {name}, write to <a@b.org>.")
        Protected(text='Dear ⟦0⟧, write to ⟦1⟧.', parts=('{name}', '<a@b.org>'))
    """
    if not count:
        return Protected(text, ())
    written, parts = [], []
    for i, piece in enumerate(glossary.cut(text) if glossary else [text]):
        # Terms and their translations alternate with what is between them.
        pairs = [piece] if i % 2 else [(part, part) for part in kept_pieces(piece)]
        for j, (source, target) in enumerate(pairs):
            if (i % 2 or j % 2) and len(parts) < count:
                written.append(placeholder(len(parts)))
                parts.append(target)
            else:
                written.append(_replaced(source, NO_PLACEHOLDERS) if "⟦" in source else source)
    return Protected("".join(written), tuple(parts))


def restored(text: str, parts: Sequence[str], complete: bool = True, source: str = "") -> str:
    """A translation with its parts in the places of the placeholders.

    Args:
        text: a string.
        parts: of `protect`; an empty one is not in the source that the model got.
        complete: whether parts that the translation lacks come at its end. Defaults to True.
        source: the text of `protect`. A part that touched no letter, digit or full stop there gets a space where it
            would touch one. Defaults to "": no spaces are added.

    Example:
        >>> restored("Liebe ⟦0⟧!", ("{name}",))
        'Liebe {name}!'
    """
    if not parts:
        return text
    for name in map(placeholder, range(len(parts) if source else 0)):
        before, after = (compiled(pattern).search(source) for pattern in (TOUCHED[0] + name, name + TOUCHED[1]))
        text = text.replace(name, (not before) * BEGIN + name + (not after) * END)
    pieces = _replaced(text, *APART, MARK_PLACEHOLDERS).split(CUT)
    numbers = [int(number) for number in pieces[1::2]]
    pieces[1::2] = [parts[number] if number < len(parts) else "" for number in numbers]
    missing = [f" {part}" for i, part in enumerate(parts) if part and complete and i not in numbers]
    return "".join(pieces + missing)


def lost(text: str, translation: str, glossary: Any = None) -> tuple[str, ...]:
    """A tuple of the parts of a text that must not change and that its translation does not have.

    Example:
        >>> lost("{n} of {total}", "{total}")
        ('{n}',)
    """
    pieces = glossary.cut(text)[::2] if glossary else [text]
    parts = Counter(part for piece in pieces for part in kept_pieces(piece)[1::2])
    return tuple((parts - Counter(kept_pieces(translation)[1::2])).elements()) if parts else ()


def has_words(text: str) -> bool:
    """Whether a text has letters or digits outside of placeholders."""
    return not compiled(NO_WORDS).fullmatch(compiled(PLACEHOLDER).sub("", text))


def protect_target(text: str, parts: Sequence[str]) -> str:
    """A target whose source has the given parts: each of them becomes its placeholder where the target has it.

    Example:
        >>> protect_target("5 kg {x} für 10 €", ("{x}", "5 kg"))
        '⟦1⟧ ⟦0⟧ für 10 €'
    """
    pieces, free = kept_pieces(text), list(enumerate(parts))
    for i in range(1, len(pieces), 2):
        match = next(((number, part) for number, part in free if part == pieces[i]), None)
        if match:
            free.remove(match)
        pieces[i] = placeholder(match[0]) if match else _replaced(pieces[i], NO_PLACEHOLDERS)
    return "".join(pieces)


def protect_pair(source: str, target: str, count: int = NUM_PLACEHOLDERS) -> tuple[str, str]:
    """A pair in which what both sides have became the same placeholders.

    Example:
        >>> protect_pair("5 kg of {x}", "5 kg {x} für 10 €")
        ('⟦0⟧ of ⟦1⟧', '⟦0⟧ ⟦1⟧ für 10 €')
    """
    protected = protect(source, count)
    target = protect_target(target, protected.parts)
    for i, part in enumerate(protected.parts):
        if placeholder(i) not in target:
            source = _replaced(part, NO_PLACEHOLDERS)
            protected = protected._replace(text=protected.text.replace(placeholder(i), source))
    return protected.text, target


def kept_pieces(text: str) -> list[str]:
    """A text, cut before and after each part that is kept: the odd pieces are these parts."""
    return _replaced(text, *RULES).split(CUT) if compiled(_MAY_BE_KEPT).search(text) else [text]


compiled = functools.cache(regex.compile)  # The cache of `regex` takes longer than most searches.


def _replaced(text, *pairs):
    for pattern, replacement in pairs:
        text = compiled(pattern).sub(replacement, text)
    return text
