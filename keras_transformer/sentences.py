"""Splits texts into sentences and joins translations: the same in Python, in a TensorFlow graph and in JavaScript.

The specification is a list of pairs, `rules`: a pattern and what replaces each match. They are applied in order. They
use only what Python's `regex`, RE2 (TensorFlow) and JavaScript have in common: no look-around, and no `\\b`, `\\s`, `^`
or `$`. So the rules put marks into the text, and later rules take some of them away. JavaScript gets the rules from the
export.

A separator is what stands between sentences: spaces, line breaks, indentation, bullets. It is never translated.
docs/documents.md describes the rules in words. This file needs only `regex` and can be copied into applications.
"""

import functools

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
WIDE_STOP = "[。！？｡]"  # Chinese and Japanese put no space behind them.
CLOSE = "(?:[\"'”’“‘»«›‹)\\]}*_]|[\u00a0\u202f ]»)"
WIDE_CLOSE = "[」』）”’》〉】]"
OPEN = "[\"'“”„‚«»‹›‘’(\\[{*_¿¡–—-]"
INITIAL = r"[\p{Ll}A-HJ-ZÀ-ÞĀ-ɏͰ-ϿЀ-ӿ]"  # Not I: "So did I. Then we left."
BULLET = "(?:[-*+•‣◦⁃–—·▪●○■□✓✔]|#{1,6}|[0-9]{1,3}[.)]|[a-z]\\)|\\([0-9a-z]{1,3}\\))"
# A line with as many characters is taken as wrapped: the next line goes on with it.
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
def rules(language=None):
    """The pairs (pattern, replacement) that mark the sentences of a text between two line breaks.

    Args:
        language: code of the text's language, such as `"de"`, `"de-AT"` or `"deu_Latn"`. It only decides whether a
            number with a full stop is an ordinal number. Defaults to None: it is not.
    """
    no_letter = r"[^\p{L}\p{N}]"
    found = [
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
        # ... behind an abbreviation or an initial,
        (f"({no_letter}(?:{ABBREVIATIONS})\\.){CUT}", "\\1"),
        (f"((?:{no_letter}(?:{BEFORE_NUMBERS})|[a-z]str)\\.){CUT}({SPACE}+[0-9])", "\\1\\2"),
        (f"([^\\p{{L}}\\p{{N}}'’]{INITIAL}\\.){CUT}", "\\1"),
        # ... behind the number of an item.
        (f"((?:{CUT}{SPACE}+|{ITEM})[0-9]{{1,3}}\\.){CUT}", "\\1"),
    ]
    if regex.split("[-_]", (language or "").lower())[0] in ORDINALS:
        found.append((r"([^\p{L}\p{N}.,:][0-9]{1,2}\.)" + CUT, "\\1"))
    prefix = f"(?:[ \t\r>\u00a0\u3000]*(?:{ITEM}{BULLET}[ \t]+)?)"
    found += [
        # The separators.
        (f"{CUT}?({SPACE}*(?:{LINE_END}{prefix})+)|{CUT}((?:{WRAP}[ \t\r>]*|{SPACE})*)", f"{END}\\1\\2{BEGIN}"),
        (ITEM, ""),
        (WRAP, "\n"),
        (TAG, ">>"),
        # What has no letter and no digit belongs to the separator: there is nothing to translate.
        (f"{BEGIN}([^{BEGIN}{END}{LETTER}\\p{{N}}]*){END}", "\\1"),
        TO_CUTS,
    ]
    return tuple(found)


# Before the rules: marks in a text become spaces. Behind them: line breaks in a sentence become spaces.
NO_MARKS = ("[\x01-\x06]", " ")
UNWRAP = ("[ \t\r]*\n[ \t\r>]*", " ")
# Line breaks around the text give the rules a beginning and an end. Of what they make, these characters are cut off:
# "\x01\n" at the beginning and "\n\n\x01" at the end.
FRAME = ("\n", "\n\n")
CUT_OFF = (2, 3)
# Where a sentence that is too long is cut in two: behind these characters, or at a space.
CLAUSE_ENDS, WIDE_CLAUSE_ENDS, SPACES = ",;:–—)", "、，；：", " \t\r\n\u00a0\u3000"
AFTER_CUT = (f"{CUT}([{SPACES}>]*)", f"{CUT}\\1{CUT}")
# Joining: if nothing stood between two sentences, a space does, except behind a Chinese or Japanese full stop.
JOIN = (f"([^{BEGIN}。！？｡、，」』）]){END}{BEGIN}", f"\\1{END} {BEGIN}")


def specification(language=None):
    """All that splits and joins texts of a language, as JSON takes it; web/src/sentences.js reads it."""
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


def split(text, language=None):
    """Splits a text.

    Args:
        text: a string.
        language: see `rules`.

    Returns:
        A list of strings, separators and sentences in turn. The first and the last one are separators and may be empty.
        Together they are the text, in which U+0001 to U+0006 became spaces.

    Example:
        >>> split("- I met Dr. Ross. He left!\\n")
        ['- ', 'I met Dr. Ross.', ' ', 'He left!', '\\n']
    """
    marked = _replaced(FRAME[0] + without_marks(text) + FRAME[1], *rules(language))
    return marked[CUT_OFF[0] : -CUT_OFF[1]].split(CUT)


def plain(sentence):
    """A sentence as the model gets it: line breaks, and the marks of a quoted mail behind them, become spaces.

    Example:
        >>> plain("a long\\n> line")
        'a long line'
    """
    return _replaced(sentence, UNWRAP)


def fitted(parts, fits):
    """Cuts sentences that are too long for a model in two, until every part fits.

    A sentence is cut behind the clause that ends nearest to the sentence's middle, if one ends in its middle half.
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
    good, found = iter(fits([plain(sentence) for sentence in parts[1::2]])), []
    for i, part in enumerate(parts):
        if i % 2 == 0 or next(good) or len(part) < 2:
            found.append(part)
        else:  # Only the two shorter sentences are tried again.
            found += fitted(["", *_cut_in_two(part), ""], fits)[1:-1]
    return found


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


def without_marks(text):
    """A text in which U+0001 to U+0006 became spaces."""
    return _replaced(text, NO_MARKS)


def joined(parts):
    """The text of separators and translated sentences, in turn.

    If nothing stood between two sentences, a space does, except behind a Chinese or Japanese full stop.

    Example:
        >>> joined(["", "Es regnet.", "", "Wir gehen.", "\\n"])
        'Es regnet. Wir gehen.\\n'
    """
    return "".join(spaced(parts))


def spaced(parts):
    """`parts` with the spaces that `joined` adds, as separators."""
    marked = "".join(BEGIN + part + END if i % 2 else part for i, part in enumerate(parts))
    return _replaced(marked, JOIN, TO_CUTS).split(CUT)


_compiled = functools.cache(regex.compile)  # The cache of `regex` takes longer than most searches.


def _replaced(text, *pairs):
    for pattern, replacement in pairs:
        text = _compiled(pattern).sub(replacement, text)
    return text


# The same in a TensorFlow graph.


def graph_split(text, language=None):
    """`split` of strings (B,): a ragged tensor (B, None). Bytes that are not UTF-8 become U+FFFD."""
    import tensorflow as tf

    text = tf.strings.unicode_transcode(text, "UTF-8", "UTF-8")
    text = FRAME[0] + _graph_replaced(text, NO_MARKS) + FRAME[1]
    marked = _graph_replaced(text, *rules(language))
    return tf.strings.split(_graph_without(marked, *CUT_OFF), CUT)


def graph_plain(sentences):
    """`plain` of strings of any shape."""
    return _graph_replaced(sentences, UNWRAP)


def graph_fitted(parts, fits):
    """`fitted` of the result of `graph_split`; `fits` takes strings (N,) and returns bool (N,)."""
    import tensorflow as tf

    def cut(text, _):
        parts = tf.strings.split(text, CUT)
        places = sentence_places(parts)
        sentences = tf.gather(parts.flat_values, places)
        more_than_one = tf.strings.length(sentences, unit="UTF8_CHAR") > 1
        long = tf.where(~fits(graph_plain(sentences)) & more_than_one)[:, 0]
        shorter = _graph_cut_in_two(tf.gather(sentences, long))
        flat = tf.tensor_scatter_nd_update(parts.flat_values, tf.gather(places, long)[:, None], shorter)
        return marked(parts.with_flat_values(flat)), tf.size(long) > 0

    def marked(parts):
        # `separator=CUT` would leave out the first marks of a row that begins with empty strings.
        text = tf.strings.reduce_join(parts.with_flat_values(parts.flat_values + CUT), axis=-1)
        return tf.ensure_shape(_graph_without(text, 0, 1), [None])

    text = marked(parts)
    text, _ = tf.while_loop(lambda text, go_on: go_on, cut, (text, tf.constant(True)))
    return tf.strings.split(text, CUT)


def _graph_cut_in_two(sentences):
    """`_cut_in_two` of strings (N,), with `CUT` between the three parts."""
    import tensorflow as tf

    characters = tf.strings.unicode_split(sentences, "UTF-8")  # (N, None)
    count = tf.cast(characters.row_lengths(), tf.int32)[:, None]
    here = characters.to_tensor("")
    here = tf.concat([here, tf.fill([tf.shape(here)[0], 1], "")], axis=1)  # (N, C); C is never 0
    place = tf.range(tf.shape(here)[1])
    before = tf.roll(here, 1, axis=1)
    inside = (place >= 1) & (place < count)
    space = inside & tf.strings.regex_full_match(here, f"[{SPACES}]")
    clause = tf.strings.regex_full_match(before, f"[{CLAUSE_ENDS}]") & space
    clause |= tf.strings.regex_full_match(before, f"[{WIDE_CLAUSE_ENDS}]") & inside
    distance = tf.abs(2 * place - count)
    clause &= 2 * distance <= count

    def nearest(allowed, otherwise):
        found = tf.argmin(tf.where(allowed, distance, 2**30), axis=1, output_type=tf.int32)
        return tf.where(tf.reduce_any(allowed, axis=1), found, otherwise)

    at = nearest(clause, nearest(space, count[:, 0] // 2))
    first = tf.strings.substr(sentences, tf.zeros_like(at), at, unit="UTF8_CHAR")
    second = tf.strings.substr(sentences, at, count[:, 0] - at, unit="UTF8_CHAR")
    return _graph_replaced(first + CUT + second, AFTER_CUT)


def sentence_places(parts):
    """The places (N,) of the sentences among the flat values of the result of `graph_split`."""
    import tensorflow as tf

    return tf.where(tf.ragged.range(parts.row_lengths()).flat_values % 2 == 1)[:, 0]


def graph_joined(parts, translations):
    """`joined` of the result of `graph_split`, in which `translations` (N,) take the places of the sentences."""
    import tensorflow as tf

    marked = BEGIN + _graph_replaced(translations, NO_MARKS) + END
    flat = tf.tensor_scatter_nd_update(parts.flat_values, sentence_places(parts)[:, None], marked)
    text = tf.strings.reduce_join(parts.with_flat_values(flat), axis=-1)
    return _graph_replaced(text, JOIN, (f"[{BEGIN}{END}]", ""))


def _graph_replaced(text, *pairs):
    import tensorflow as tf

    for pattern, replacement in pairs:
        text = tf.strings.regex_replace(text, pattern, replacement)
    return text


def _graph_without(text, first, last):
    """Strings (B,) without so many bytes at the beginning and at the end."""
    import tensorflow as tf

    length = tf.strings.length(text) - first - last
    return tf.strings.substr(text, tf.fill(tf.shape(length), first), length)
