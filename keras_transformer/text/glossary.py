"""Terms and the translations that they get."""

import functools
from collections import Counter
from collections.abc import Iterable, Mapping
from pathlib import Path

import regex

from keras_transformer.text.placeholders import kept_pieces


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

    def __init__(self, terms: Mapping[str, str] | Iterable[tuple[str, str]]):
        self.terms = {}
        for pair in terms.items() if isinstance(terms, Mapping) else terms:
            term, translation = (" ".join(side.split()) for side in pair)
            if not term or not translation:
                raise ValueError(f"A term and its translation must not be empty. Received: {(term, translation)}.")
            if self.terms.setdefault(term, translation) != translation:
                raise ValueError(
                    f"A term must have one translation. Received: {term!r} with {self.terms[term]!r} and with "
                    f"{translation!r}. Remove one of them."
                )

    @classmethod
    def load(cls, path: Path | str) -> "Glossary":
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
        return _whole_words(terms)

    def cut(self, text: str) -> list[str | tuple[str, str]]:
        """A list: text and pairs of a term, as the text has it, and its translation, in turn."""
        if not self.terms:
            return [text]
        spans, place = [], 0
        for i, part in enumerate(kept_pieces(text)):
            if i % 2:
                spans.append((place, place + len(part)))
            place += len(part)
        pieces, end, match = [], 0, self._pattern.search(text)
        while match:
            first, last = match.span()
            # A part that is kept may be in a term ("Windows 2000"), but no term may change such a part.
            if any(a < last and first < b and not first <= a < b <= last for a, b in spans):
                match = self._pattern.search(text, first + 1)
                continue
            pieces += [text[end:first], (match[0], self._spellings[" ".join(match[0].split())])]
            end = last
            match = self._pattern.search(text, end)
        return [*pieces, text[end:]]

    def lacking(self, text: str, translation: str) -> "Glossary | None":
        """The `Glossary` of those terms of a text whose translations are not in the given translation, or None.

        Example:
            >>> Glossary({"coat": "Mantel", "red": "rot"}).lacking("A red coat.", "Ein Mantel.").terms
            {'red': 'rot'}
        """
        missing = {}
        for (term, expected), count in Counter(self.cut(text)[1::2]).items():
            if len(_whole_words(regex.escape(expected)).findall(translation)) < count:
                missing[" ".join(term.split())] = expected
        return Glossary(missing) if missing else None


def _whole_words(pattern):
    return regex.compile(rf"(?<![\p{{L}}\p{{N}}])(?:{pattern})(?![\p{{L}}\p{{N}}])")
