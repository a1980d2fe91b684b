"""The tree of a source over its translation: each inline element goes to the words that are aligned with its words."""

import bisect
import functools
import html as entities
import itertools
import re
from collections.abc import Iterator
from typing import Any, NamedTuple

from keras_transformer.text.markup_tree import CDATA, CHARACTER, LINE_BREAK, Node, with_values

# The characters that XML does not have.
CONTROL = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\ud800-\udfff\ufffe\uffff]")


class Aligned(NamedTuple):
    """A translated text.

    Attributes:
        text: a string.
        origins: for each character, the index of the character of the source that it comes from, or None.
        nearest: for each character of the source, the index of the character that is most likely to come from it, or
            None. For elements whose characters are no origin. Defaults to none.
    """

    text: str
    origins: list[int | None]
    nearest: list[int | None] | None = None


# Texts.


class _Inline:
    """Inline markup, or the whole of a text, over the characters `begin` to `end` of a source.

    `place` counts it in its parent.
    """

    def __init__(self, node, begin, place=0):
        self.node, self.begin, self.end, self.place, self.children = node, begin, begin, place, []
        self.is_break = node.like_html and node.name == "br"
        self.is_piece = node.is_piece and not self.is_break
        self.is_open = not (self.is_break or self.is_piece)


class _Source(NamedTuple):
    """A text between two elements that are not inline.

    Attributes:
        text: what is translated. Line breaks are spaces, as in a browser.
        raw: for each character, how it is written.
        tree: `_Inline`.
        run: the node whose contents are replaced by the translation.
        is_literal: whether there are no entities in it.
    """

    text: str
    raw: list[str]
    tree: _Inline
    run: Node
    is_literal: bool


def sources_of(root: Node, target_language: str) -> Iterator[_Source]:
    """Yields the `_Source`s. The elements that are translated get the language of the translation."""
    nodes = [(root, True, False)]
    while nodes:
        node, translate, is_foreign = nodes.pop()
        translate = translate if node.translate is None else node.translate
        is_foreign = node.is_foreign if node.lang else is_foreign
        is_translated = translate and not is_foreign
        if is_translated:
            _set_language(node, target_language)
        contents, inside = [], []
        for inline, group in itertools.groupby(node.contents, functools.partial(_joins, node)):
            group = list(group)
            if inline and is_translated:
                run = Node("")
                run.contents = group
                source, pieces = _source(run, node.name == CDATA, target_language)
                inside += pieces
                if any(map(str.isalnum, source.text)):
                    yield source
                group = [run]
            else:
                inside += [part for part in group if isinstance(part, Node)]
            contents += group
        node.contents = contents
        nodes += [(part, translate, is_foreign) for part in reversed(inside)]


def _joins(parent, part):
    """Whether a part of the contents of an element can stand inside a text there."""
    return isinstance(part, str) or (part.inline and (part.like_html or parent.has_words))


def _set_language(node, language):
    if node.lang and language:
        node.open = with_values(node.open, lambda name, value: language if name in ("lang", "xml:lang") else value)


def _source(run, is_literal, target_language):
    """The `_Source` of inline contents, and the nodes that are one piece of it."""
    text, raw, pieces, tree = [], [], [], _Inline(run, 0)

    def walk(contents, inline):
        for part in contents:
            if isinstance(part, str):
                for character, written in zip(part, part, strict=True) if is_literal else _characters(part):
                    text.append(character)
                    raw.append(written)
                continue
            child = _Inline(part, len(text), len(inline.children))
            inline.children.append(child)
            if child.is_break:
                text.extend(LINE_BREAK)
                raw.extend(LINE_BREAK)
            elif child.is_open:
                _set_language(part, target_language)
                walk(part.contents, child)
            else:
                pieces.append(part)
            child.end = len(text)

    walk(run.contents, tree)
    tree.end = len(text)
    return _Source("".join(text), raw, tree, run, is_literal), pieces


def _characters(written):
    """Yields the characters of a text, and how each of them is written. White space is a space."""
    for match in CHARACTER.finditer(written):
        characters = entities.unescape(match[0]) if match[0][0] == "&" else match[0]
        if match[0] in ("\t", "\n", "\f", "\r", "\r\n") or CONTROL.match(match[0]):
            yield " ", match[0]
        elif len(characters) == 1:
            yield characters, match[0]
        else:
            yield from zip(characters, characters, strict=True)


# The tree over the translation.


class Target:
    """A translation: how its characters are written, and where those of each part of the source went."""

    def __init__(self, source: _Source, translation: Aligned):
        self.text, self.origins, self.nearest = translation.text, translation.origins, translation.nearest or []
        self.source = source.text
        self.written = [self._written(source, i) for i in range(len(self.text))]
        known = [(origin, i) for i, origin in enumerate(self.origins) if origin is not None]
        self._places, origins, self._known = sorted(known), [origin for origin, _ in known], [i for _, i in known]
        self._highest_before = list(itertools.accumulate(origins, max))
        self._lowest_after = list(itertools.accumulate(reversed(origins), min))[::-1]
        self._words = [word.span() for word in re.finditer(r"\w+", self.text)]

    def _written(self, source, i):
        """How a character is written: as in the source, where it comes from there."""
        character, origin = self.text[i], self.origins[i]
        if character == ">" and self.text[max(i - 2, 0) : i] == "]]":
            return " >" if source.is_literal else "&gt;"
        here = "" if origin is None else source.text[origin]
        if character == here == "\n":
            return ""  # The `br` itself stands here.
        raw = source.raw[origin] if here == character or (character == " " and here.isspace()) else None
        # What begins like an entity or a tag could become one before another character.
        if raw is not None and (raw[:1] not in ("&", "<") or raw[-1] == ";" or self.text[i + 1 : i + 2] == " "):
            return raw
        return character if source.is_literal else entities.escape(character, quote=False)

    def written_between(self, begin: int, end: int, previous: "_Inline | None", following: "_Inline | None") -> str:
        """The written characters between two children, with the spaces that pieces have there in the source.

        At the beginning and at the end there is one child only; the other is None.
        """
        text = "".join(self.written[begin:end])
        if previous and following and (begin, previous.end) == (end, following.begin):
            return text  # Nothing is between them in the source, either.
        if previous and previous.is_piece and self._lacks_space(begin, previous.end):
            text = " " + text
        if following and following.is_piece and self._lacks_space(end - 1, following.begin - 1):
            text += " "
        return text

    def _lacks_space(self, place, source_place):
        """Whether the source has a space at one place, and the translation a letter or the like at another."""
        if min(place, source_place) < 0 or self.source[source_place : source_place + 1] not in (" ", "\n"):
            return False
        character = self.text[place : place + 1]
        is_wide = "\u2e80" <= character <= "\u9fff"  # Chinese and Japanese have no spaces.
        return not is_wide and (character.isalnum() or character in {*".,;:!?)"})

    def span(self, begin: int, end: int) -> tuple[int, int] | None:
        """An interval with all characters that come from `begin` to `end` of the source, or None."""
        first, last = (bisect.bisect_left(self._places, (place,)) for place in (begin, end))
        places = [i for _, i in self._places[first:last]]
        return (min(places), max(places) + 1) if places else None

    def nearest_word(self, begin: int, end: int) -> tuple[int, int] | None:
        """The interval of the word that is most likely to come from `begin` to `end` of the source, or None."""
        place = next((place for place in self.nearest[begin:end] if place is not None), None)
        if place is None:
            return None
        number = bisect.bisect_right(self._words, (place, len(self.text)))
        return next((word for word in self._words[max(number - 1, 0) : number] if place < word[1]), None)

    def between(self, begin: int) -> tuple[int, int, bool]:
        """Two places, and whether all between them are alike; all others separate more characters from their side.

        The side of a character is before or after `begin` of the source.
        """
        counts = [bisect.bisect_left(origins, begin) for origins in (self._highest_before, self._lowest_after)]
        return self._gap(counts[0])[0], self._gap(counts[1])[1], counts[0] == counts[1]

    def gap(self, place: int) -> tuple[int, int]:
        """The first and the last place that only characters without an origin separate from one."""
        return self._gap(bisect.bisect_left(self._known, place))

    def _gap(self, count):
        """The same, after the first `count` characters with an origin."""
        first = self._known[count - 1] + 1 if count else 0
        return first, self._known[count] if count < len(self._known) else len(self.text)


class _Free:
    """The intervals of a translation that no element has taken, in order."""

    def __init__(self, begin, end):
        self.intervals = [(begin, end)]

    def near(self, begin, end):
        """The slice of the intervals that have a place from `begin` to `end`."""
        first = bisect.bisect_left(self.intervals, begin, key=lambda interval: interval[1])
        return slice(first, max(first, bisect.bisect_right(self.intervals, end, key=lambda interval: interval[0])))

    def take(self, begin, end):
        here = self.near(begin, end)
        parts = [part for a, b in self.intervals[here] for part in ((a, begin), (end, b)) if part[0] <= part[1]]
        self.intervals[here] = dict.fromkeys(parts)  # Each of them once.


def placed(inline: _Inline, target: Target, begin: int, end: int) -> list[Any]:
    """Strings and nodes for the characters `begin` to `end` of a translation, which belong to inline markup."""
    spans, without_span, free = [], [], _Free(begin, end)
    for child in sorted(inline.children, key=lambda child: child.begin - child.end):  # The longest first.
        if span := _best_span(child, target, free):
            spans.append((*span, child))
            free.take(*span)
        else:
            without_span.append(child)
    for child in sorted(without_span, key=lambda child: child.place):
        span = target.nearest_word(child.begin, child.end)
        if span is None or not any(a <= span[0] and span[1] <= b for a, b in free.intervals[free.near(*span)]):
            span = (_best_place(child, target, free, begin),) * 2
        spans.append((*span, child))
        free.take(*span)
    spans.sort(key=lambda span: (span[0], span[1], span[2].place))
    contents, place, previous = [], begin, None
    for first, last, child in spans:
        contents += [target.written_between(place, first, previous, child), child.node]
        if child.is_open:
            child.node.contents = placed(child, target, first, last)
        place, previous = last, child
    return [*contents, target.written_between(place, end, previous, None)]


def _best_span(child, target, free):
    """The interval with the most characters from the child and the fewest others, or None."""
    around = target.span(child.begin, child.end)
    if around is None:
        return None
    best, largest = None, 0
    for begin, end in free.intervals[free.near(*around)]:
        begin, end = max(begin, around[0]), min(end, around[1])
        start, total = begin, 0
        for i in range(begin, end):
            origin = target.origins[i]
            if origin is not None:
                total += 1 if child.begin <= origin < child.end else -1
            if total <= 0:
                start, total = i + 1, 0
            elif total > largest:
                best, largest = (start, i + 1), total
    if best and child.is_break and any(target.written[slice(*best)]):
        return None
    return best


def _best_place(child, target, free, otherwise):
    """The free place with the most characters on that side of it on which they also were in the source."""
    first, last, all_alike = target.between(child.begin)
    here = free.near(first, last)
    if here.start == here.stop:  # Then it is one of the nearest places before and after.
        here = slice(max(here.start - 1, 0), here.stop + 1)
        nearest = free.intervals[here]
        first = min(target.gap(nearest[0][1])[0], nearest[-1][0])
        last = max(target.gap(nearest[-1][0])[1], nearest[0][1])
        all_alike = False
    best, highest, quality, reached = otherwise, (), 0, first
    for begin, end in free.intervals[here]:
        for place in range(max(begin, first), min(end, last) + 1):
            for origin in target.origins[reached:place]:
                quality += 0 if origin is None else 1 if origin < child.begin else -1
            reached = place
            inside_a_word = place > 0 and target.text[place - 1 : place + 1].isalnum()
            if (quality, not inside_a_word) > highest:
                best, highest = place, (quality, not inside_a_word)
                if all_alike and not inside_a_word:
                    return best
    return best
