"""Keeps parts of a text that must not change: the model sees a placeholder, and its translation gets the part back.

Such parts are addresses, `{name}` and `%s`, code, numbers with units, long numbers, emoji, and the terms of a glossary.
In a text they become the tokens `⟦0⟧`, `⟦1⟧`, ...; a vocabulary has the first 8 of them, behind the special tokens. The
search writes each placeholder of a sentence exactly once (`keras_transformer.decoding`). A model learns where to write
them because, in training, words and their translations are replaced by the same placeholder in a share of the pairs.

What is kept is found by `RULES`, which use only what Python's `regex`, RE2 (TensorFlow) and JavaScript have in common,
as `keras_transformer.sentences` explains. JavaScript gets them from the export. This file needs only `regex` and can be
copied into applications.

References: "Addressing the Rare Word Problem in Neural Machine Translation" (Luong et al., 2015) replaces words by
numbered tokens; "Lexically Constrained Decoding" (Hokamp and Liu, 2017) is the other way to use terms.
"""

import functools
import itertools
from collections import Counter
from typing import NamedTuple

import regex

PLACEHOLDER = r"⟦([0-9]{1,4})⟧"
# Number of placeholders of a vocabulary.
NUM_PLACEHOLDERS = 8
# Marks: CUT stands before and behind each kept part. A text that has these characters gets spaces instead.
CUT, BEGIN, END = "\x01", "\x02", "\x03"

_NOT_IN_ADDRESSES = ' \t\r\n\u00a0\u3000<>"“”„«»`{}'
_UNITS = (
    "km/h|km²|km|cm²|cm|mm²|mm|µm|nm|m²|m³|m/s|kg|mg|µg|g|ml|dl|cl|hl|l|ms|min|kHz|MHz|GHz|Hz|kWh|kW|MW|mAh|"
    "kB|KB|MB|GB|TB|kbit|Mbit|°C|°F|°|%%?|‰|hPa|kJ|kcal|dB|px|€|\\$|£|¥|m"
)
_EMOJI = "\U0001f000-\U0001faff\u2600-\u27bf\u2b05-\u2b55\u231a-\u23ff"
# Signs that are emoji if U+FE0F follows: arrows and the like.
_SIGNS = "\u203c\u2049\u2122\u2139\u2194-\u2199\u21a9\u21aa\u24c2\u25aa-\u25c0\u25fb-\u25fe\u2934\u2935\u3030\u303d"
# What belongs to the emoji before it: joiners, variants, the signs behind a joiner, and the tags of a flag.
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
    parts: tuple


def specification():
    """The rules as JSON takes them; web/src/placeholders.js reads them."""
    pairs = {"rules": RULES, "mark": [MARK_PLACEHOLDERS], "other": [NO_PLACEHOLDERS], "apart": APART}
    return {**pairs, "touched": TOUCHED, "no_words": NO_WORDS, "cut": CUT, "begin": BEGIN, "end": END}


def placeholder(number):
    return f"⟦{number}⟧"


def protect(text, count=NUM_PLACEHOLDERS, glossary=None):
    """Replaces what must not change by placeholders.

    Args:
        text: a string.
        count: number of placeholders; further parts stay in the text, but `⟦1⟧` becomes `[1]`. Defaults to 8.
        glossary: `Glossary`; its terms are replaced, too, and their translations are the parts. Defaults to None.

    Returns:
        `Protected`.

    Example:
        >>> protect("Dear {name}, write to <a@b.org>.")
        Protected(text='Dear ⟦0⟧, write to ⟦1⟧.', parts=('{name}', '<a@b.org>'))
    """
    if not count:
        return Protected(text, ())
    pieces = glossary.cut(text) if glossary else [text]
    found, parts = [], []
    for i, piece in enumerate(pieces):
        # Terms and their translations alternate with what is between them.
        pairs = [piece] if i % 2 else [(part, part) for part in _kept(piece)]
        for j, (source, target) in enumerate(pairs):
            if (i % 2 or j % 2) and len(parts) < count:
                found.append(placeholder(len(parts)))
                parts.append(target)
            else:
                found.append(_replaced(source, NO_PLACEHOLDERS) if "⟦" in source else source)
    return Protected("".join(found), tuple(parts))


def restored(text, parts, complete=True, source=""):
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
        before, after = (_compiled(pattern).search(source) for pattern in (TOUCHED[0] + name, name + TOUCHED[1]))
        text = text.replace(name, (not before) * BEGIN + name + (not after) * END)
    found = _replaced(text, *APART, MARK_PLACEHOLDERS).split(CUT)
    numbers = [int(number) for number in found[1::2]]
    found[1::2] = [parts[number] if number < len(parts) else "" for number in numbers]
    missing = [f" {part}" for i, part in enumerate(parts) if part and complete and i not in numbers]
    return "".join(found + missing)


def lost(text, translation, glossary=None):
    """A tuple of the parts of a text that must not change and that its translation does not have.

    Example:
        >>> lost("{n} of {total}", "{total}")
        ('{n}',)
    """
    pieces = glossary.cut(text)[::2] if glossary else [text]
    parts = Counter(part for piece in pieces for part in _kept(piece)[1::2])
    return tuple((parts - Counter(_kept(translation)[1::2])).elements()) if parts else ()


def has_words(text):
    """Whether a text has letters or digits outside of placeholders."""
    return not _compiled(NO_WORDS).fullmatch(_compiled(PLACEHOLDER).sub("", text))


def protect_target(text, parts):
    """A target whose source has the given parts: each of them becomes its placeholder where the target has it.

    Example:
        >>> protect_target("5 kg {x} für 10 €", ("{x}", "5 kg"))
        '⟦1⟧ ⟦0⟧ für 10 €'
    """
    found, free = _kept(text), list(enumerate(parts))
    for i in range(1, len(found), 2):
        match = next((one for one in free if one[1] == found[i]), None)
        if match:
            free.remove(match)
        found[i] = placeholder(match[0]) if match else _replaced(found[i], NO_PLACEHOLDERS)
    return "".join(found)


def protect_pair(source, target, count=NUM_PLACEHOLDERS):
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


def _kept(text):
    """A text, cut before and behind each part that is kept: the odd pieces are these parts."""
    return _replaced(text, *RULES).split(CUT) if _compiled(_MAY_BE_KEPT).search(text) else [text]


_compiled = functools.cache(regex.compile)  # The cache of `regex` takes longer than most searches.


def _replaced(text, *pairs):
    for pattern, replacement in pairs:
        text = _compiled(pattern).sub(replacement, text)
    return text


# Terms.


class Glossary:
    """Terms and their translations.

    A term is found as a whole word or as several. It may begin with a capital letter where the glossary has a small
    one; otherwise letters must be equal. Where several terms begin, the longest one is used. A word within an address
    or another part that is kept is no term.

    Args:
        terms: a dict, or pairs, of strings: the term and its translation.

    Raises:
        ValueError: a term or its translation is empty, or a term has two translations.

    Example:
        >>> Glossary({"coat": "Mantel"}).cut("A coat.")
        ['A ', ('coat', 'Mantel'), '.']
    """

    def __init__(self, terms):
        self.terms = {}
        for term, translation in terms.items() if isinstance(terms, dict) else terms:
            term, translation = " ".join(term.split()), " ".join(translation.split())
            if not term or not translation:
                raise ValueError(f"A term and its translation must not be empty. Received: {(term, translation)}.")
            if self.terms.setdefault(term, translation) != translation:
                raise ValueError(
                    f"A term must have one translation. Received: {term!r} with {self.terms[term]!r} and with "
                    f"{translation!r}. Remove one of them."
                )

    @classmethod
    def load(cls, path):
        """Reads a file with a term, a tab and its translation in each line. Empty lines and lines with # are left out.

        Raises:
            ValueError: a line has another form; the message names it.
        """
        with open(path, encoding="utf-8-sig") as file:
            try:
                lines = list(file)
            except UnicodeDecodeError as error:
                raise ValueError(f"{path} must be UTF-8 text. Received: {error}.") from error
        terms = []
        for number, line in enumerate(lines, 1):
            if not line.strip() or line.startswith("#"):
                continue
            terms.append(line.rstrip("\r\n").split("\t"))
            if len(terms[-1]) != 2 or not all(map(str.strip, terms[-1])):
                raise ValueError(
                    f"{path}, line {number}: a line must be a term, one tab and its translation. "
                    f"Received: {line.rstrip()[:80]!r}."
                )
        try:
            return cls(terms)
        except ValueError as error:
            raise ValueError(f"{path}: {error}") from error

    @functools.cached_property
    def _spellings(self):
        """The translations of the terms, also of those that begin with a capital letter instead of a small one."""
        spellings = dict(self.terms)
        for term, translation in self.terms.items():
            upper = term[0].upper()
            if term[0].islower() and len(upper) == 1:
                spellings.setdefault(upper + term[1:], translation)
        return spellings

    @functools.cached_property
    def _pattern(self):
        longest_first = sorted(self._spellings, key=len, reverse=True)
        terms = "|".join(r"\s+".join(map(regex.escape, term.split(" "))) for term in longest_first)
        return regex.compile(rf"(?<![\p{{L}}\p{{N}}])(?:{terms})(?![\p{{L}}\p{{N}}])")

    def cut(self, text):
        """A list: text and pairs of a term, as the text has it, and its translation, in turn."""
        if not self.terms:
            return [text]
        spans, place = [], 0
        for i, part in enumerate(_kept(text)):
            if i % 2:
                spans.append((place, place + len(part)))
            place += len(part)
        found, end, match = [], 0, self._pattern.search(text)
        while match:
            first, last = match.span()
            # A part that is kept may be in a term ("Windows 2000"), but no term may change such a part.
            if any(a < last and first < b and not first <= a < b <= last for a, b in spans):
                match = self._pattern.search(text, first + 1)
                continue
            found += [text[end:first], (match[0], self._spellings[" ".join(match[0].split())])]
            end = last
            match = self._pattern.search(text, end)
        return [*found, text[end:]]

    def lacking(self, text, translation):
        """The `Glossary` of those terms of a text whose translations are not in the given translation, or None.

        Example:
            >>> Glossary({"coat": "Mantel", "red": "rot"}).lacking("A red coat.", "Ein Mantel.").terms
            {'red': 'rot'}
        """
        wanted = Counter(self.cut(text)[1::2])
        missing = {}
        for (term, expected), count in wanted.items():
            whole_word = rf"(?<![\p{{L}}\p{{N}}]){regex.escape(expected)}(?![\p{{L}}\p{{N}}])"
            if len(regex.findall(whole_word, translation)) < count:
                missing[" ".join(term.split())] = expected
        return Glossary(missing) if missing else None


# Training.

_WORD = regex.compile(r"\p{L}[\p{L}\p{N}'’-]*")


def word_pairs(pairs, at_least=0.5, most=100_000):
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


def mask_words(source, target, words, rng, count=NUM_PLACEHOLDERS):
    """A pair in which one or two words become placeholders, and their translations the same ones; or None.

    Args:
        source, target: from `protect_pair`.
        words: from `word_pairs`. Capitalised words that both sides have are replaced, too.
        rng: a `random.Random`.
        count: number of placeholders.

    Returns:
        (source, target), or None if no word can be replaced.
    """
    sides = [_compiled(f"({_WORD.pattern})").split(text) for text in (source, target)]
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


# The same in a TensorFlow graph.


def graph_protect(text, count=NUM_PLACEHOLDERS):
    """`protect` of strings (B,): texts (B,), and their parts (B, count); "" where there is none."""
    import tensorflow as tf

    found = tf.strings.split(_graph_replaced(text, *RULES), CUT)
    place = tf.ragged.range(found.row_lengths())
    names = tf.constant([placeholder(number) for number in range(count)])
    number = place.flat_values // 2
    replaced = (place.flat_values % 2 == 1) & (number < count)
    name = tf.gather(names, tf.cast(tf.minimum(number, count - 1), tf.int32))
    flat = tf.where(replaced, name, _graph_replaced(found.flat_values, NO_PLACEHOLDERS))
    masked = tf.strings.reduce_join(found.with_flat_values(flat), axis=-1)
    return tf.ensure_shape(masked, [None]), found[:, 1::2].to_tensor("", shape=[None, count])


def graph_restored(text, parts, source):
    """`restored` of strings (B,) with the texts (B,) and the parts (B, count) of `graph_protect`."""
    import tensorflow as tf

    for name in map(placeholder, range(parts.shape[1])):
        for pattern, marked in ((TOUCHED[0] + name, BEGIN + name), (name + TOUCHED[1], name + END)):
            touches = tf.strings.regex_full_match(source, f"(?s).*{pattern}.*")
            text = tf.where(touches, text, _graph_replaced(text, (name, marked)))
    text = _graph_replaced(text, *APART)
    found = tf.strings.split(_graph_replaced(text, MARK_PLACEHOLDERS), CUT)
    place = tf.ragged.range(found.row_lengths())
    odd = tf.where(place.flat_values % 2 == 1)
    number = tf.strings.to_number(tf.gather(found.flat_values, odd[:, 0]), tf.int32)
    number = tf.minimum(tf.cast(number, tf.int64), tf.shape(parts, tf.int64)[1])  # The column for unknown numbers.
    columns = tf.pad(parts, [[0, 0], [0, 1]], constant_values="")
    at = tf.stack([tf.gather(found.value_rowids(), odd[:, 0]), number], axis=1)
    flat = tf.tensor_scatter_nd_update(found.flat_values, odd, tf.gather_nd(columns, at))
    text = tf.strings.reduce_join(found.with_flat_values(flat), axis=-1)
    written = tf.scatter_nd(at, tf.ones_like(number), tf.shape(columns, tf.int64))
    missing = tf.where((written == 0) & (columns != ""), " " + columns, "")
    return tf.ensure_shape(text, [None]) + tf.strings.reduce_join(missing, axis=-1)


def graph_protect_target(text, parts):
    """`protect_target` of strings (B,) with the parts (B, count) of their sources."""
    import tensorflow as tf

    found = tf.strings.split(_graph_replaced(text, *RULES), CUT)
    own = found[:, 1::2]
    given = own.to_tensor("")  # (B, T)
    # The second of two equal parts belongs to the second one of the source.
    here, there = _number_among_equals(given)[:, :, None], _number_among_equals(parts)[:, None]
    same = (given[:, :, None] == parts[:, None]) & (here == there) & (parts[:, None] != "")  # (B, T, count)
    names = tf.gather(tf.constant([placeholder(i) for i in range(parts.shape[1])]), tf.argmax(same, axis=2))
    names = tf.where(tf.reduce_any(same, axis=2), names, _graph_replaced(given, NO_PLACEHOLDERS))
    places = tf.where(tf.ragged.range(found.row_lengths()).flat_values % 2 == 1)
    names = tf.RaggedTensor.from_tensor(names, own.row_lengths()).flat_values
    return tf.strings.reduce_join(
        found.with_flat_values(tf.tensor_scatter_nd_update(found.flat_values, places, names)), axis=-1
    )


def _number_among_equals(strings):
    """For each of the strings (B, N), how many equal ones are before it in its row."""
    import tensorflow as tf

    same = tf.cast(strings[:, :, None] == strings[:, None], tf.int32)
    return tf.reduce_sum(tf.linalg.band_part(same, -1, 0), axis=2)


def graph_has_words(text):
    """`has_words` of strings (B,)."""
    import tensorflow as tf

    return ~tf.strings.regex_full_match(tf.strings.regex_replace(text, PLACEHOLDER, ""), NO_WORDS)


def _graph_replaced(text, *pairs):
    import tensorflow as tf

    for pattern, replacement in pairs:
        text = tf.strings.regex_replace(text, pattern, replacement)
    return text
