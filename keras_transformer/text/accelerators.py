"""Accelerators of messages: the letter that is pressed with Alt, marked as in "_Open" and "E~xit".

A translation needs one of its own: "Ö_ffnen" or "_Öffnen". A model cannot know which letters are free, and people
forget the mark in one in fifteen translations of LibreOffice. So it is taken out of the source and put into the
translation by a rule.
"""

import re

from keras_transformer.text.placeholders import kept_pieces

# In brackets it is a mark of Chinese or Japanese. Before a digit, a tilde means "about".
_MARK = re.compile(r"\s*\(([_~][^\W\d_])\)|(?<![_~])([_~][^\W\d_])")
# A letter that has a key of its own: not those of Chinese, Japanese and Korean. And the beginning of a word.
_LETTER, _FIRST = "[^\\W\\d_\u1100-\u11ff\u2e80-\U0003ffff]", r"(?<![^\W_])"
_IDENTIFIER = re.compile(r"[A-Z0-9][_~][A-Z0-9]|[_~]\S*\.[^\W\d_]")
# In texts of several sentences, a mark inside a word is that of a name, such as `To_currency`.
_SENTENCES, _INSIDE = re.compile(r"[.!?]\s+\S"), re.compile(r"[^\W\d_][_~][^\W\d_]")
_UNIT = re.compile(r"\d[\d.,]*\s?[^\W\d_]+")
_END = re.compile(r"[\s.…:：。]*$")


def split_accelerator(text: str) -> tuple[str, str]:
    """A message without the mark of its accelerator, and the mark with its letter.

    A message with several marks, or with a name such as `MAX_SIZE` or `my_file.txt`, stays as it is, and so does a text
    of several sentences with a name such as `To_currency`. Marks in or beside
    placeholders do not count. A name such as `file_name` cannot be told from a message such as "Ein_fügen".

    Example:
        >>> split_accelerator("Save _as %FILE_NAME"), split_accelerator("MAX_SIZE")
        (('Save as %FILE_NAME', '_a'), ('MAX_SIZE', ''))
    """
    pieces = kept_pieces(text)
    found = [(i, match) for i in range(0, len(pieces), 2) for match in _MARK.finditer(pieces[i])]
    if len(found) != 1 or _IDENTIFIER.search(pieces[found[0][0]]):
        return text, ""
    i, match = found[0]
    mark = match[1] or match[2]
    letter = "" if match[1] else mark[1]
    if (i and not match.start()) or (_SENTENCES.search(text) and _INSIDE.search(text)):
        return text, ""
    pieces[i] = pieces[i][: match.start()] + letter + pieces[i][match.end() :]
    return "".join(pieces), mark


def with_accelerator(text: str, accelerator: str) -> str:
    """A translation with the mark of the source: at a word that begins with its letter, at the letter, or at any one.

    Where no letter can be pressed, as in Chinese, the letter of the source stands in brackets before the final dots.

    Args:
        text: a string.
        accelerator: the second result of `split_accelerator`.

    Example:
        >>> with_accelerator("Speichern als", "_a"), with_accelerator("Öffnen", "~o"), with_accelerator("打开", "_O")
        ('Speichern _als', '~Öffnen', '打开(_O)')
    """
    if not (accelerator and text):
        return text
    mark, letter = accelerator
    same = rf"(?i:{re.escape(letter)})"
    pieces = kept_pieces(text)
    units = [i for i, piece in enumerate(pieces) if i % 2 and _UNIT.fullmatch(piece)]
    for places in (range(0, len(pieces), 2), units):  # Not in placeholders; but "10 cm" is one only without the mark.
        for pattern in (_FIRST + same, same, _FIRST + _LETTER, _LETTER):
            for i in places:
                if match := re.search(pattern, pieces[i]):
                    pieces[i] = pieces[i][: match.start()] + mark + pieces[i][match.start() :]
                    return "".join(pieces)
    return _END.sub(lambda end: f"({accelerator.upper()}){end[0]}", text, count=1)
