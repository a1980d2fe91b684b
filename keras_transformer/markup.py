"""Translates HTML and XML: the text changes, the markup stays.

Every element of the input is in the output once, with its attributes and its parent. Inline elements, such as `b` and
`a`, go to the words that the model aligns with theirs. Needs lxml: `pip install "keras_transformer[html]"`.

HTML says which elements are inline. In XML, those are that stand beside words.
"""

import bisect
import difflib
import functools
import itertools
import re
from collections.abc import Callable
from typing import NamedTuple

from keras_transformer.placeholders import restored

# Elements inside a sentence. All others, except those of `OPAQUE`, begin a new text.
_INLINE = """a abbr acronym b bdi bdo big cite data del dfn em font i ins label mark nobr q s small span strike strong
sub sup time tt u"""
# Elements inside a sentence that are kept as they are, with all that is in them.
_OPAQUE = """area audio base br button canvas code embed iframe img input kbd link map math meta meter noscript object
output picture progress ruby samp script select style svg template textarea var video wbr"""
INLINE, OPAQUE = frozenset(_INLINE.split()), frozenset(_OPAQUE.split())
# In XML: the attributes of an element that is kept as it is. "Internationalization Tag Set 2.0", section 8.1.
KEPT = {
    "translate": "no",
    "{http://www.w3.org/2005/11/its}translate": "no",
    "{http://www.w3.org/XML/1998/namespace}space": "preserve",
}
# The characters that XML, and so lxml, does not have.
CONTROL = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\ud800-\udfff\ufffe\uffff]")
_COMMENT = "<!--(?:(?!-->).)*-->"
_DOCUMENT = re.compile(rf"(?:\s|{_COMMENT})*<(?:!doctype|html|head|body)(?=[\s/>])", re.IGNORECASE | re.DOTALL)
# A tag without its end, and an end of the body or the document that is not at the end; the parser drops what follows.
_UNFINISHED = re.compile(r"<(?=[a-z/][^<>]*\Z)", re.IGNORECASE)
_EARLY_END = re.compile(
    rf"({_COMMENT}|<(script|style|textarea|title)\b.*?</\2\s*>)|</(?:body|html)\s*>"
    rf"(?!(?:\s|{_COMMENT}|</(?:body|html)\s*>)*\Z)",
    re.IGNORECASE | re.DOTALL,
)
LINE_BREAK = "\n\n"  # For a `br`: it always ends a sentence.


class Aligned(NamedTuple):
    """A translated text.

    Attributes:
        text: a string.
        origins: for each character, the index of the character of the source that it comes from, or None.
        nearest: for each character of the source, the index of the character that is most likely to come from it, or
            None. For elements whose characters are no origin. Defaults to none.
    """

    text: str
    origins: list
    nearest: list | None = None


class Target:
    """A translation, and where the characters of each part of the source went."""

    def __init__(self, text, origins, nearest=None):
        self.text, self.origins, self.nearest = text, origins, nearest or []
        self._places = sorted((origin, i) for i, origin in enumerate(origins) if origin is not None)

    def span(self, begin, end):
        """An interval with all characters that come from `begin` to `end` of the source, or None."""
        first, last = (bisect.bisect_left(self._places, (place,)) for place in (begin, end))
        places = [i for _, i in self._places[first:last]]
        return (min(places), max(places) + 1) if places else None

    def nearest_word(self, begin, end):
        """The interval of the word that is most likely to come from `begin` to `end` of the source, or None."""
        place = next((place for place in self.nearest[begin:end] if place is not None), None)
        words = re.finditer(r"\w+", self.text) if place is not None else ()
        return next((word.span() for word in words if word.start() <= place < word.end()), None)


class Inline:
    """An inline element, or the whole of a text, over the characters `begin` to `end` of a source."""

    def __init__(self, element, begin, is_kept):
        self.element, self.begin, self.end, self.is_kept, self.children = element, begin, begin, is_kept, []


class Source(NamedTuple):
    """A text between two elements that are not inline.

    Attributes:
        text: what is translated. Line breaks are spaces, as in a browser.
        raw: the same, with the line breaks of the HTML.
        breaks: the indices of the characters that stand for a `br`.
        tree: `Inline`.
        put: a function that takes the strings and elements that come where the text was.
    """

    text: str
    raw: str
    breaks: set
    tree: Inline
    put: Callable


def translate_html(html, translate):
    """Translates an HTML document or fragment.

    Args:
        html: a string.
        translate: a function from a list of strings to a list of `Aligned`, such as `aligned_translations` of a
            translator.

    Returns:
        A string.

    Raises:
        ImportError: lxml is not installed.
        ValueError: the elements are nested too deeply.
    """
    return _translated(*_parsed(html), _HTML, translate)


def translate_xml(xml, translate):
    """Translates an XML document.

    An element is inline if it stands beside words and its own elements do so, too; others begin a new text. Elements
    with `translate="no"`, `its:translate="no"` or `xml:space="preserve"` do not change, nor do comments, processing
    instructions, entities and the document type.

    Args:
        xml: a string.
        translate: see `translate_html`.

    Returns:
        A string.

    Raises:
        ImportError: lxml is not installed.
        ValueError: the document is not well-formed, or the elements are nested too deeply.
    """
    return _translated(*_parsed_xml(xml), _XML, translate)


def _translated(root, write, kind, translate):
    try:
        filled = []
        sources = [] if kind.is_kept(root) else list(_sources(root, filled, kind))
        translations = translate([source.text for source in sources])
        for source, translation in zip(sources, translations, strict=True):
            target = Target(_with_spaces(source, translation), translation.origins, translation.nearest)
            source.put(_placed(source.tree, target, 0, len(target.text)))
    except RecursionError as error:
        raise ValueError("The elements are nested too deeply.") from error
    for element, groups in filled:
        _fill(element, [one for group in groups for one in group])
    return write()


# Reading and writing.


def _parsed(html):
    """The root of the input, and a function without arguments that returns the output."""
    try:
        import lxml.html
    except ImportError as error:
        raise ImportError('HTML needs lxml. Try: pip install "keras_transformer[html]"') from error
    # Without `huge_tree`, the parser drops what is nested more than 256 times.
    parser = lxml.html.HTMLParser(huge_tree=True, default_doctype=False)
    html = CONTROL.sub("\ufffd", html.replace("\r\n", "\n"))
    before, html = re.fullmatch(r"(\ufeff?(?:\s*<\?xml\s[^>]*\?>)?)(.*)", html, re.DOTALL).groups()
    html = _EARLY_END.sub(lambda match: match[1] or "", _UNFINISHED.sub("&lt;", html))
    if _DOCUMENT.match(html):
        root = lxml.html.document_fromstring(html, parser=parser)
        end = re.search(r"(?:</html\s*>(\s*))?\Z", html, re.IGNORECASE)[1] or ""  # lxml drops it.
        return root, lambda: before + lxml.html.tostring(root.getroottree(), encoding="unicode") + end
    # Without the `div`, the parser would drop spaces at the ends and put text that stands alone into a paragraph. Its
    # end is not written, because an unfinished comment would contain it.
    body = lxml.html.document_fromstring(f"<html><body><div>{html}", parser=parser).find("body")
    _, div, *others = _contents(body)
    tag, root = len("<div>"), lxml.html.Element("div")
    _fill(root, [*_contents(div), *others])
    return root, lambda: before + lxml.html.tostring(root, encoding="unicode", with_tail=False)[tag : -tag - 1]


def _parsed_xml(xml):
    """`_parsed` for XML."""
    try:
        from lxml import etree
    except ImportError as error:
        raise ImportError('XML needs lxml. Try: pip install "keras_transformer[html]"') from error
    # Entities are kept as they are: they are not read from files, and cannot grow.
    parser = etree.XMLParser(resolve_entities=False, no_network=True, huge_tree=True, strip_cdata=False)
    pattern = r"(\ufeff?(?:<\?xml\s[^>]*\?>\s*)?)(.*)"
    declaration, body = re.fullmatch(pattern, xml.replace("\r\n", "\n"), re.DOTALL).groups()
    try:
        root = etree.fromstring(body.encode(), parser=parser)
    except (etree.XMLSyntaxError, UnicodeEncodeError) as error:
        raise ValueError(f"XML must be well-formed, and this is not: {getattr(error, 'msg', error)}.") from error
    declaration = re.sub(r"encoding=([\"']).*?\1", 'encoding="UTF-8"', declaration)
    end = re.search(r"\s*$", body)[0]  # lxml drops it.
    return root, lambda: declaration + etree.tostring(root.getroottree(), encoding="unicode") + end


class _Kind(NamedTuple):
    """What HTML and XML say about elements.

    Attributes:
        is_kept: a function of an element.
        inline: a function of an element; returns a function of its children that says which are inline.
    """

    is_kept: Callable
    inline: Callable


def _is_kept_in_xml(element):
    return not isinstance(element.tag, str) or any(element.get(name) == value for name, value in KEPT.items())


def _inline_in_xml(parent):
    words = _has_words(parent)
    return lambda child: not isinstance(child.tag, str) or (words and _is_part_of_a_sentence(child))


def _has_words(element):
    """Whether there are words in an element and outside of its own elements."""
    return any(isinstance(one, str) and any(map(str.isalnum, one)) for one in _contents(element))


def _is_part_of_a_sentence(element):
    children = [child for child in element if isinstance(child.tag, str)]
    return (len(children) < 2 or _has_words(element)) and all(map(_is_part_of_a_sentence, children))


def _is_kept(element):
    """Whether an element is kept with all that is in it; also comments."""
    if not isinstance(element.tag, str):
        return True
    return element.get("translate") == "no" or element.tag in OPAQUE or element.tag == "pre"


def _is_inline(element):
    """Whether an element stands inside a text."""
    if not isinstance(element.tag, str) or element.tag in OPAQUE:
        return True
    if element.tag not in INLINE:
        return False
    return element.get("translate") == "no" or all(_is_inline(child) for child in element)


_HTML, _XML = _Kind(_is_kept, lambda parent: _is_inline), _Kind(_is_kept_in_xml, _inline_in_xml)


def _contents(element):
    """Strings and elements in an element, in order."""
    found = [element.text or ""]
    for child in element:
        found += [child, child.tail or ""]
    return found


def _fill(element, contents):
    """Replaces what is in an element by strings and elements."""
    for child in list(element):
        element.remove(child)
    element.text, last = "", None
    for one in contents:
        if not isinstance(one, str):
            one.tail = ""
            element.append(one)
            last = one
        elif last is None:
            element.text += one
        else:
            last.tail += one
    element.text = element.text or None  # So that XML has `<br/>`, not `<br></br>`.


def _sources(element, filled, kind):
    """Yields the `Source`s in an element. Appends each element and the groups of its contents to `filled`."""
    is_inline = kind.inline(element)
    contents = itertools.groupby(_contents(element), lambda one: isinstance(one, str) or is_inline(one))
    kinds, groups = zip(*((inline, list(group)) for inline, group in contents), strict=True)
    groups = list(groups)
    filled.append((element, groups))
    for number, inline in enumerate(kinds):
        if not inline:
            for child in groups[number]:
                if not kind.is_kept(child):
                    yield from _sources(child, filled, kind)
            continue
        source = _source(groups[number], functools.partial(groups.__setitem__, number), kind)
        if any(character.isalnum() for character in source.text):
            yield source


def _source(contents, put, kind):
    """The `Source` of inline contents."""
    raw, breaks, tree = [], set(), Inline(None, 0, False)

    def walk(contents, node):
        for one in contents:
            if isinstance(one, str):
                raw.extend(one)
                continue
            is_break = kind is _HTML and one.tag == "br"
            child = Inline(one, len(raw), is_break or kind.is_kept(one))
            node.children.append(child)
            if is_break:
                raw.extend(LINE_BREAK)
                breaks.update(range(child.begin, len(raw)))
            elif not child.is_kept:
                walk(_contents(one), child)
            child.end = len(raw)

    walk(contents, tree)
    tree.end = len(raw)
    text = "".join(" " if x in "\t\n\r\f" and i not in breaks else x for i, x in enumerate(raw))
    return Source(text, "".join(raw), breaks, tree, put)


# Translation with alignment.


def aligned_translations(translator, texts, **kwargs):
    """`Aligned` translations of texts; the alignment is that of `Attention.alignment`."""
    parts = [translator.split_text(text) for text in texts]
    sentences = [sentence for part in parts for sentence in part[1::2]]
    target_language = kwargs.get("target_language")
    found = iter(translator.stream(sentences, **{**kwargs, "return_attention": True}))
    results = []
    for text, part in zip(texts, parts, strict=True):
        here = list(itertools.islice(found, len(part) // 2))
        joined = translator.join_text(part, here)
        origins, nearest, place = [None] * len(joined.text), [None] * len(text), 0
        for sentence in joined.sentences:
            begin, end = sentence.target_span
            source_begin, source_end = sentence.source_span
            # What stands between two sentences comes from the end of what stood there.
            for back in range(begin - place):
                origins[begin - 1 - back] = max(source_begin - 1 - back, 0)
            source = text[source_begin:source_end]
            here_origins, here_nearest = _origins(translator, source, sentence.translation, target_language)
            for i, origin in enumerate(here_origins[: end - begin]):
                origins[begin + i] = None if origin is None else source_begin + origin
            for i, target in enumerate(here_nearest):
                nearest[source_begin + i] = None if target is None else begin + target
            place = end
        for back in range(len(joined.text) - place):
            origins[len(joined.text) - 1 - back] = len(text) - 1 - back
        results.append(Aligned(CONTROL.sub("\ufffd", joined.text), origins, nearest))
    return results


def _with_spaces(source, translation):
    """The text of a translation with the line breaks of the HTML between sentences.

    The line breaks that stand for a `br` become U+0000, which `_placed` leaves out.
    """

    def one(character, origin):
        if character == "\n" and origin in source.breaks:
            return "\0"
        between_sentences = character == " " and origin is not None and source.raw[origin].isspace()
        return source.raw[origin] if between_sentences else character

    return "".join(map(one, translation.text, translation.origins))


def _origins(translator, source, translation, target_language):
    """`origins` and `nearest` of a sentence; see `Aligned`."""
    text = translation.text
    if not translation.attention:
        return [None] * len(text), [None] * len(source)
    (source_ids,) = translator.encode_sources([source], target_language)
    parts = translation.parts
    source_spans = token_spans(translator.source_tokenizer, source_ids, source, parts)
    target_spans = token_spans(translator.target_tokenizer, translation.token_ids, text, parts)
    origins, nearest = [None] * len(text), [None] * len(source)
    scores = translation.attention.mean_scores()[: len(target_spans), : len(source_spans)]
    scores[:, : translation.attention.num_tags] = 0
    letters_of = [[i for i in range(*span) if text[i].isalnum()] for span in target_spans]
    for (first, last), column in zip(source_spans, scores.T, strict=True):
        best = max((i for i, letters in enumerate(letters_of) if letters), key=lambda i: column[i], default=None)
        if best is not None:
            nearest[first:last] = [letters_of[best][0] if x.isalnum() else None for x in source[first:last]]
    for (begin, end), token in zip(target_spans, scores.argmax(axis=1), strict=True):
        first, last = source_spans[token]
        letters = [i for i in range(first, last) if not source[i].isspace()]
        for i in range(begin, end):
            if letters and not text[i].isspace():
                origins[i] = letters[min(i - begin, len(letters) - 1)] if len(letters) == end - begin else letters[0]
    for i in range(1, min(len(text), len(source)) + 1):  # The marks at the end belong together.
        if text[-i].isalnum() or source[-i].isalnum():
            break
        origins[-i] = len(source) - i
    for word in re.finditer(r"\w+", text):  # All characters of a word go to the same place: that of most of them.
        inside = [origin for origin in origins[word.start() : word.end()] if origin is not None]
        if inside:
            most = max(inside, key=inside.count)
            origins[word.start() : word.end()] = [most] * len(word[0])
    return origins, nearest


def token_spans(tokenizer, ids, text, parts=()):
    """Where each token is in `text`: (begin, end). `parts` are those of a `Translation`."""
    prefixes = tokenizer.detokenize([list(ids[:count]) for count in range(1, len(ids) + 1)])
    prefixes = [restored(prefix, parts, complete=False) for prefix in prefixes]
    ends = list(itertools.accumulate(map(len, prefixes), max))
    whole = prefixes[-1] if prefixes else ""
    if whole != text:  # The tokenizer normalises texts.
        place = [len(text)] * (len(whole) + 1)
        for a, b, size in difflib.SequenceMatcher(None, whole, text, autojunk=False).get_matching_blocks():
            for i in range(size + (a < len(whole))):
                place[a + i] = b + i
        place = list(itertools.accumulate(reversed(place), min))[::-1]
        ends = [place[end] for end in ends]
    return list(zip([0, *ends[:-1]], ends, strict=True))


# The tree over the translation.


def _placed(node, translation, begin, end):
    """Strings and elements for the characters `begin` to `end` of a translation, which belong to a node."""
    spans, free = [], [(begin, end)]
    for child in sorted(node.children, key=lambda child: child.begin - child.end):  # The longest first.
        span = _best_span(child, translation, free)
        if span is not None:
            spans.append((*span, child))
            free = _without(free, span)
    taken = {id(child) for _, _, child in spans}
    for child in node.children:
        if id(child) not in taken:
            span = translation.nearest_word(child.begin, child.end)
            if span is None or not any(first <= span[0] and span[1] <= last for first, last in free):
                span = (_best_place(child, translation, free, begin),) * 2
            spans.append((*span, child))
            free = _without(free, span)
    order = {id(child): i for i, child in enumerate(node.children)}
    spans.sort(key=lambda span: (span[0], span[1], order[id(span[2])]))
    contents, place = [], begin
    for first, last, child in spans:
        contents += [translation.text[place:first].replace("\0", ""), child.element]
        if not child.is_kept:
            _fill(child.element, _placed(child, translation, first, last))
        place = last
    return [*contents, translation.text[place:end].replace("\0", "")]


def _without(free, span):
    """The parts of intervals that are left without another one in them, each of them once."""
    first, last = span
    parts = [[(begin, end)] if last < begin or first > end else [(begin, first), (last, end)] for begin, end in free]
    return list(dict.fromkeys(itertools.chain(*parts)))


def _best_span(child, translation, free):
    """The interval with the most characters from the child and the fewest others, or None."""
    around = translation.span(child.begin, child.end)
    if around is None:
        return None
    best, most = None, 0
    for begin, end in free:
        begin, end = max(begin, around[0]), min(end, around[1])
        start, total = begin, 0
        for i in range(begin, end):
            origin = translation.origins[i]
            if origin is not None:
                total += 1 if child.begin <= origin < child.end else -1
            if total <= 0:
                start, total = i + 1, 0
            elif total > most:
                best, most = (start, i + 1), total
    if best and child.element.tag == "br" and translation.text[slice(*best)].strip("\0"):
        return None
    return best


def _best_place(child, translation, free, otherwise):
    """The free place with the most characters on that side of it on which they also were in the source."""
    origins = translation.origins
    before = [origin is not None and origin < child.begin for origin in origins]
    behind = [origin is not None and origin >= child.begin for origin in origins]
    left, right = [0, *itertools.accumulate(before)], [0, *itertools.accumulate(behind)]
    places = [place for begin, end in free for place in range(begin, end + 1)]

    def quality(place):
        inside_a_word = place > 0 and translation.text[place - 1 : place + 1].isalnum()
        return left[place] + right[-1] - right[place], not inside_a_word

    return max(places, key=quality, default=otherwise)
