"""Translates HTML and XML: the text changes, everything else stays as it was written.

A source is cut into tags, comments and texts. What is not translated is in the output character by character: tags with
their attributes, entities, scripts, comments, templates, line ends. Every element is in the output once, inside the
same parent. Inline elements, such as `b` and `a`, go to the words that the model aligns with theirs. A tag without its
counterpart stays where it is, and ends the text.

HTML defines which elements are inline. In XML, an element is inline if it stands next to words. Elements of XHTML, SVG
and MathML in XML follow the rules of HTML.
"""

import bisect
import codecs
import collections
import functools
import html as entities
import itertools
import re
from typing import NamedTuple
from xml.parsers import expat


def _names(names):
    return frozenset(names.split())


# Elements inside a sentence. All others, except those of `OPAQUE`, begin a new text.
INLINE = _names(
    "a abbr acronym b bdi bdo big cite data del dfn em font i ins label mark nobr q s small span strike strong sub sup "
    "textpath time tspan tt u"
)
# Elements inside a sentence that are one piece of it. What is in them is translated on its own.
OPAQUE = _names(
    "area audio base br button canvas code embed iframe img input kbd link map math meta meter noscript object output "
    "picture progress ruby samp script select style svg template textarea var video wbr"
)
# Elements whose text is not translated.
KEPT = _names("code iframe kbd listing math noembed noframes plaintext pre ruby samp script style textarea var xmp")
# Attributes of XML, and the value with which nothing in an element is translated. The second one is that of Android.
KEPT_IN_XML = {
    "translate": "no",
    "translatable": "false",
    # "Internationalization Tag Set 2.0", section 8.1.
    "http://www.w3.org/2005/11/its}translate": "no",
    "http://www.w3.org/XML/1998/namespace}space": "preserve",
}
_LANG = "http://www.w3.org/XML/1998/namespace}lang"
_LIKE_HTML = _names("http://www.w3.org/1999/xhtml http://www.w3.org/2000/svg http://www.w3.org/1998/Math/MathML")
# The number of an annotation: the model does not see it.
_NOTE = re.compile(r"\s*\[\w{1,3}\]\s*")
# More inline elements in each other are not taken as inline.
MAX_DEPTH = 100
CDATA = "#cdata"  # The name of the node of such a section.
LINE_BREAK = "\n\n"  # For a `br`: it always ends a sentence.
# The characters that XML does not have.
CONTROL = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\ud800-\udfff\ufffe\uffff]")
_ENTITY = r"&(?:#\d{1,9}|#x[0-9a-f]{1,8}|[a-z]\w{0,39});?"  # Bounded, because Python refuses to read long numbers.
_CHARACTER = re.compile(rf"\r\n|{_ENTITY}|.", re.IGNORECASE | re.DOTALL)

# The syntax of HTML: https://html.spec.whatwg.org/multipage/parsing.html
_S = " \t\n\f\r"
_NAME, _EQUALS = rf"[^{_S}/>][^{_S}/>=]*+", f"[{_S}]*+=[{_S}]*+"
_VALUE = rf""""[^"]*+(?:"|\Z)|'[^']*+(?:'|\Z)|[^{_S}>"'][^{_S}>]*+|"""
_ATTRIBUTE = re.compile(f"[{_S}/]*+({_NAME})(?:{_EQUALS}({_VALUE}))?+")
_TAG = re.compile(
    f"<(/?)([a-z][^{_S}/>]*+)((?:[{_S}/]*+{_NAME}(?:{_EQUALS}(?:{_VALUE}))?+)*+)([{_S}/]*+)>", re.IGNORECASE
)
_COMMENT = re.compile(r"<!---?>|<!--.*?(?:--!?>|\Z)", re.DOTALL)
_UNFINISHED = re.compile("</?[a-z]", re.IGNORECASE)
_MARKUP = re.compile(r"<(?=[a-z/!?%])|\{%", re.IGNORECASE)
_TEMPLATES = {"<?": "?>", "<%": "%>", "{%": "%}"}  # PHP and the like; a browser reads them as text or comments.
# In a script, `<!-- <script> </script> -->` is text: that `</script>` does not end it.
_SCRIPT = re.compile(rf"<!---?>|<!--|-->|</?script(?=[{_S}/>])", re.IGNORECASE)
_SCRIPT_STATES = {(0, "<!--"): 1, (1, "-->"): 0, (1, "<script"): 2, (2, "-->"): 0, (2, "</script"): 1}
_VOID = _names(
    "area base basefont bgsound br col embed frame hr image img input keygen link meta param source track wbr"
)
_RAW = _names("iframe noembed noframes plaintext script style textarea title xmp")  # No tags are in these.
_HTML_IN_SVG = _names("annotation-xml desc foreignobject mi mn mo ms mtext title")
_BLOCKS = """address article aside blockquote center details dialog dir div dl fieldset figcaption figure footer form h1
h2 h3 h4 h5 h6 header hgroup hr main menu nav ol p pre search section summary table ul"""
# The elements that the start of another one ends.
_ENDED = {
    name: _names(ended)
    for names, ended in (
        (_BLOCKS, "p"),
        ("li", "li p"),
        ("dt dd", "dt dd p"),
        ("option", "option"),
        ("optgroup", "option optgroup"),
        ("td th", "td th p"),
        ("tr", "tr td th p"),
        ("tbody thead tfoot", "tbody thead tfoot tr td th p caption colgroup"),
    )
    for name in names.split()
}
# Encodings that browsers read as larger ones: https://encoding.spec.whatwg.org
_LARGER = {"ascii": "cp1252", "iso8859-1": "cp1252", "iso8859-9": "cp1254", "gb2312": "gb18030", "gbk": "gb18030"}
_LARGER |= {"shift_jis": "cp932", "euc_kr": "cp949", "tis-620": "cp874"}
_ASCII = rb"+AGE- \x61 ~{!!~} <"  # What UTF-7, escapes and HZ read as something else.
_XML_DECLARATION = re.compile(r"(\ufeff?\s*<\?xml\s[^>]*?\bencoding\s*=\s*[\"'])([^\"']*)")
_CHARSET = re.compile(r"(charset\s*=\s*[\"']?)([^\s;\"']+)", re.IGNORECASE)


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


def translate_html(html, translate, source_language=None, target_language=None):
    """Translates an HTML document or fragment.

    Text of `KEPT` elements and of those with `translate="no"`, `class="notranslate"` or a `lang` that is neither that
    of the sources nor that of the `html` element is not translated. The others get the `lang` of the translation, if
    they have one; a declared encoding becomes UTF-8.

    Args:
        html: a string.
        translate: a function from a list of strings to a list of `Aligned`, such as `aligned_translations` of a
            translator.
        source_language: code of the language of the sources, such as `"en"`. Defaults to None: that of `html`.
        target_language: code of the language of the translations. Defaults to None: each `lang` stays.

    Returns:
        A string.
    """
    # Half surrogate pairs, which Python may have, are no text.
    html = html.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return _translated(_HtmlTree(html, source_language).root(), translate, target_language)


def translate_xml(xml, translate, source_language=None, target_language=None):
    """Translates an XML document.

    An element is inline if it stands beside words and its own elements do so, too; others begin a new text. Elements
    with an attribute of `KEPT_IN_XML` or of another language do not change, nor do comments, processing instructions,
    entities and the document type. `xml:lang` and the declared encoding change as in HTML. What is in a CDATA section
    is translated as HTML if it has tags.

    Args:
        xml: a string.
        translate, source_language, target_language: see `translate_html`.

    Returns:
        A string.

    Raises:
        ValueError: the document is not well-formed.
    """
    return _translated(_xml_tree(xml, source_language), translate, target_language)


def _translated(root, translate, target_language):
    sources = list(_sources(root, re.sub("[^A-Za-z0-9]+", "-", target_language or "")))
    translations = translate([source.text for source in sources])
    for source, translation in zip(sources, translations, strict=True):
        target = _Target(source, translation)
        source.run.contents = _placed(source.tree, target, 0, len(target.text))
    return _written(root)


# Reading and writing.


class _Node:
    """An element, or other markup, such as a comment or a tag without its counterpart.

    Attributes:
        open, close: its tags, as they are written; `close` is None if there is no end tag.
        name: that of the element, in small letters, or "".
        contents: strings, as they are written, and nodes.
        like_html: whether the rules of HTML hold.
        lang: its language, or None.
        is_foreign: whether this is another language than that of the sources.
        translate: whether the element says that it is translated; None if it says nothing.
        inline: whether it can stand inside a sentence.
        has_words: whether there are words in it and outside of its own elements.
        depth: how many inline elements are in each other.
        plain: the first characters of its text.
    """

    def __init__(self, open_, name="", attributes=None, like_html=True, inline=False):
        self.open, self.close, self.name, self.contents = open_, "", name, []
        self.like_html, self.inline, self.has_words, self.depth, self.plain = like_html, inline, False, 0, ""
        attributes = attributes or {}
        lang = attributes.get("lang", attributes.get(_LANG, attributes.get("xml:lang")))
        self.lang, self.is_foreign = lang, False
        said = attributes.get("translate", "?").lower()
        if like_html and "notranslate" in attributes.get("class", "").split():
            said = "no"
        if said == "no" or (not like_html and any(attributes.get(key) == no for key, no in KEPT_IN_XML.items())):
            self.translate = False
        else:
            self.translate = True if said in ("yes", "") else False if like_html and name in KEPT else None

    @property
    def is_piece(self):
        """Whether it is one piece of a sentence, whatever is in it."""
        return not self.name or self.translate is False or self.is_foreign or (self.like_html and self.name in OPAQUE)

    def end(self, close):
        """Tells the node that it is complete."""
        self.close = close
        nodes = [part for part in self.contents if isinstance(part, _Node)]
        self.has_words = any(isinstance(part, str) and any(map(str.isalnum, part)) for part in self.contents)
        self.plain = "".join(part[:9] if isinstance(part, str) else part.plain for part in self.contents)[:9]
        if self.like_html and self.name in INLINE and _NOTE.fullmatch(self.plain):
            self.translate = False
        self.depth = 0 if self.is_piece else 1 + max((node.depth for node in nodes), default=0)
        self.inline = close is not None and self.depth <= MAX_DEPTH
        all_inline = all(node.inline for node in nodes)
        if not self.like_html:
            self.inline &= all_inline and (self.has_words or sum(node.name != "" for node in nodes) < 2)
        elif self.name not in OPAQUE:
            self.inline &= self.name in INLINE and (self.is_piece or all_inline)


class _Tree:
    """Makes a tree of nodes. `path` has those that are open, from the root."""

    def __init__(self, source_language):
        primary = _primary(source_language or "")
        self.path = [_Node("")]
        self.languages = {primary} if len(primary) == 2 else set()  # Codes of three letters are not those of pages.
        self.knows_root = False

    def add(self, content):
        if content:
            self.path[-1].contents.append(content)

    def add_element(self, node, is_root, is_open=True):
        if is_root and not self.knows_root:
            self.knows_root = True
            self.languages |= {_primary(node.lang)} if node.lang else set()
        node.is_foreign = bool(node.lang and self.languages) and _primary(node.lang) not in self.languages
        self.add(node)
        if is_open:
            self.path.append(node)
        else:
            node.end("")

    def end(self, close=None):
        node = self.path.pop()
        node.end(close)
        return node

    def root(self):
        """The root, when all was read."""
        while len(self.path) > 1:
            self.end()
        return self.path[0]


def _primary(language):
    return re.split("[-_]", language.strip().lower())[0]


class _HtmlTree(_Tree):
    """`charset` is the first encoding that a `meta` names."""

    def __init__(self, html, source_language=None):
        super().__init__(source_language)
        self.charset = None
        # For each open element, the place in `path` of the last one that is not inline, and whether it is in SVG.
        self.around = [(0, False)]
        self.places = collections.defaultdict(list)  # Of the open elements with a name.
        self._read(html)

    def _read(self, html):
        place, last = 0, {end: html.rfind(end) for end in _TEMPLATES.values()}
        while match := _MARKUP.search(html, place):
            begin = match.start()
            self.add(html[place:begin])
            template, tag = _TEMPLATES.get(html[begin : begin + 2]), _TAG.match(html, begin)
            if template and last[template] > begin:
                place = html.index(template, begin) + 2
                self.add(_Node(_declaration_in_utf8(html[begin:place])))
            elif html.startswith("<!--", begin):
                place = _COMMENT.match(html, begin).end()
                self.add(_Node(html[begin:place], inline=True))
            elif tag:
                place = tag.end()
                slash, name, attributes, tail = tag.groups()
                if slash:
                    self._end_tag(name.lower(), tag[0])
                elif self._start_tag(name.lower(), _attributes(attributes), "/" in tail, tag[0]):
                    end = _end_of_raw_text(html, name.lower(), place)
                    self.add(html[place:end])
                    place = end
            else:
                place = _end_of_no_tag(html, begin, self.around[-1][1])
                self.add(html[begin:place] if place == begin + 1 else _Node(html[begin:place]))
        self.add(html[place:])

    def _start_tag(self, name, attributes, slash, tag):
        """Returns whether raw text follows."""
        ended = _ENDED.get(name, ())
        if name == "a" and self.places["a"] and self.places["a"][-1] > self.around[-1][0]:
            self._end_at(self.places["a"][-1])
        while self.path[self.around[-1][0]].name in ended:
            self._end_at(self.around[-1][0])
        block, in_svg = self.around[-1]
        in_svg = name in ("svg", "math") or (in_svg and self.path[-1].name not in _HTML_IN_SVG)
        if name == "meta":
            tag, charset = _meta_in_utf8(tag, attributes)
            self.charset = self.charset or charset
        is_open = not (slash if in_svg else name in _VOID)
        self.add_element(_Node(tag, name, attributes), name == "html", is_open)
        if is_open:
            here = len(self.path) - 1
            self.places[name].append(here)
            self.around.append((block if name in INLINE else here, in_svg))
        return is_open and not in_svg and name in _RAW

    def _end_tag(self, name, tag):
        least = self.around[-1][0] if name in INLINE else 0
        # Browsers put what follows the end of the body into it.
        if self.places[name] and self.places[name][-1] > least and name not in ("body", "html"):
            self._end_at(self.places[name][-1], tag)
        else:
            self.add(_Node(tag))

    def _end_at(self, place, close=None):
        """Ends the element at a place in `path`, and those in it."""
        while len(self.path) > place + 1:
            self.end()
        self.end(close)

    def end(self, close=None):
        self.around.pop()
        self.places[self.path[-1].name].pop()
        return super().end(close)


def _end_of_no_tag(html, begin, in_svg):
    """The end of what begins like a tag but is not a tag: a `<!...>`, an unfinished tag, or a single character."""
    if html[begin : begin + 2] in ("{%", "<%"):
        return begin + 1
    if _UNFINISHED.match(html, begin):
        return len(html)  # Browsers show nothing of it.
    end = "]]>" if in_svg and html.startswith("<![CDATA[", begin) else ">"
    place = html.find(end, begin)
    return len(html) if place < 0 else place + len(end)


def _end_of_raw_text(html, name, place):
    if name == "plaintext":
        return len(html)
    if name != "script":
        match = re.compile(rf"</{name}(?=[{_S}/>])", re.IGNORECASE).search(html, place)
        return match.start() if match else len(html)
    state = 0
    for mark in _SCRIPT.finditer(html, place):
        if state < 2 and mark[0].lower() == "</script":
            return mark.start()
        state = _SCRIPT_STATES.get((state, mark[0].lower()), state)
    return len(html)


def _attributes(text):
    """The attributes of a tag of HTML: a dict; of several with the same name, the first counts."""
    attributes = {}
    for name, value in _ATTRIBUTE.findall(text):
        value = value[1:-1] if value[:1] in ("'", '"') else value
        value = re.sub(_ENTITY, lambda match: entities.unescape(match[0]), value, flags=re.IGNORECASE)
        attributes.setdefault(name.lower(), value)
    return attributes


def _with_values(tag, change):
    """A tag whose attributes have other values: `change(name, value)`, as they are written, without the quotes."""

    def changed(match):
        value = match[2] or ""
        quote = value[:1] if value[:1] in ("'", '"') else ""
        value = value[1:-1] if quote else value
        begin = len(match[0]) - len(value) - len(quote)
        return match[0][:begin] + (change(match[1].lower(), value) if value else "") + quote

    name = re.match(rf"<[^{_S}/>]+", tag)[0]
    return name + _ATTRIBUTE.sub(changed, tag[len(name) :])


# Encodings: what is read as text is written as UTF-8.


def declared_encoding(data, is_html):
    """The encoding of the bytes of a document: that of a byte order mark, else the declared one, else UTF-8.

    Raises:
        ValueError: Python has no such encoding, or it is not one of pages.
    """
    for mark, name in (
        (codecs.BOM_UTF8, "utf-8"),
        (codecs.BOM_UTF16_LE, "utf-16-le"),
        (codecs.BOM_UTF16_BE, "utf-16-be"),
    ):
        if data.startswith(mark):
            return name
    start = data[:8192].decode("latin-1")  # Browsers look for it in the first 1024 bytes.
    declaration = _XML_DECLARATION.match(start)
    name = declaration[2] if declaration else _HtmlTree(start).charset if is_html else None
    try:
        codec = codecs.lookup((name or "utf-8").strip().lower().removeprefix("x-").replace("windows-", "cp")).name
        codec = "utf-8" if codec.startswith("utf-16") else _LARGER.get(codec, codec)
        if _ASCII.decode(codec).encode() == _ASCII:
            return codec
    except (LookupError, ValueError):
        pass
    raise ValueError(
        "The declared encoding of a document must be one of text in which ASCII means itself: in others, text could "
        f"become tags. Received: {name!r}. Convert the document to UTF-8, and declare that."
    )


def _utf8(name):
    """UTF-8 instead of another encoding."""
    return name if re.fullmatch("utf-?8", name, re.IGNORECASE) else "UTF-8"


def _declaration_in_utf8(declaration):
    return _XML_DECLARATION.sub(lambda match: match[1] + _utf8(match[2]), declaration, count=1)


def _meta_in_utf8(tag, attributes):
    """A `meta` that names UTF-8 as the encoding, and the one that it named, or None."""
    name = "charset"
    charset = attributes.get(name)
    if charset is None and attributes.get("http-equiv", "").lower() == "content-type":
        name, match = "content", _CHARSET.search(attributes.get("content", ""))
        charset = match and match[2]
    if not charset:
        return tag, None

    def change(attribute, value):
        if attribute != name:
            return value
        return _utf8(value) if name == "charset" else _CHARSET.sub(lambda match: match[1] + _utf8(match[2]), value)

    return _with_values(tag, change), charset.strip()


def _xml_tree(xml, source_language=None):
    declaration, body = re.fullmatch(r"(\ufeff?(?:<\?xml\s[^>]*\?>\s*)?)(.*)", xml, re.DOTALL).groups()
    tree, events = _Tree(source_language), []
    # Entities are not replaced: then they cannot grow, and no file is read.
    parser = expat.ParserCreate("utf-8", "}")

    def handler(kind):
        return lambda *values: events.append((parser.CurrentByteIndex, kind, values))

    parser.StartElementHandler, parser.EndElementHandler = handler("start"), handler("end")
    parser.StartCdataSectionHandler, parser.EndCdataSectionHandler = handler("cdata"), handler("end")
    parser.CharacterDataHandler, parser.DefaultHandler = handler("text"), handler("other")
    try:
        data = body.encode()
        parser.Parse(data, True)
    except (expat.ExpatError, UnicodeEncodeError) as error:
        raise ValueError(f"XML must be well-formed, and this is not: {error}.") from error
    tree.add(_Node(_declaration_in_utf8(declaration)))
    for (begin, kind, values), (end, *_) in itertools.pairwise([*events, (len(data), "end", ())]):
        raw = data[begin:end].decode()
        if kind == "text":
            tree.add(raw)
        elif kind == "other":
            tree.add(_Node(raw, inline=True))
        elif kind == "cdata":
            tree.add_element(_Node(raw, CDATA, like_html=False), False)
        elif kind == "start":
            *namespace, name = values[0].split("}")
            like_html, attributes = bool(namespace) and namespace[0] in _LIKE_HTML, values[1]
            if like_html and name == "meta":
                raw, _ = _meta_in_utf8(raw, attributes)
            tree.add_element(_Node(raw, name.lower() if like_html else name, attributes, like_html), True)
        else:
            node = tree.end(raw)
            if node.name == CDATA:
                node.inline = False
                text = "".join(node.contents)
                if _TAG.search(text):
                    node.name, node.contents = "html", [_HtmlTree(text, source_language).root()]
    return tree.root()


def _written(root):
    parts, nodes = [], [root]
    while nodes:
        part = nodes.pop()
        if isinstance(part, str):
            parts.append(part)
        else:
            parts.append(part.open)
            nodes += [part.close or "", *reversed(part.contents)]
    return "".join(parts)


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
    raw: list
    tree: _Inline
    run: _Node
    is_literal: bool


def _sources(root, target_language):
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
                run = _Node("")
                run.contents = group
                source, pieces = _source(run, node.name == CDATA, target_language)
                inside += pieces
                if any(map(str.isalnum, source.text)):
                    yield source
                group = [run]
            else:
                inside += [part for part in group if isinstance(part, _Node)]
            contents += group
        node.contents = contents
        nodes += [(part, translate, is_foreign) for part in reversed(inside)]


def _joins(parent, part):
    """Whether a part of the contents of an element can stand inside a text there."""
    return isinstance(part, str) or (part.inline and (part.like_html or parent.has_words))


def _set_language(node, language):
    if node.lang and language:
        node.open = _with_values(node.open, lambda name, value: language if name in ("lang", "xml:lang") else value)


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
    for match in _CHARACTER.finditer(written):
        characters = entities.unescape(match[0]) if match[0][0] == "&" else match[0]
        if match[0] in ("\t", "\n", "\f", "\r", "\r\n") or CONTROL.match(match[0]):
            yield " ", match[0]
        elif len(characters) == 1:
            yield characters, match[0]
        else:
            yield from zip(characters, characters, strict=True)


# The tree over the translation.


class _Target:
    """A translation: how its characters are written, and where those of each part of the source went."""

    def __init__(self, source, translation):
        self.text, self.origins, self.nearest = translation.text, translation.origins, translation.nearest or []
        self.source = source.text
        self.written = [self._written(source, i) for i in range(len(self.text))]
        self._places = sorted((origin, i) for i, origin in enumerate(self.origins) if origin is not None)
        self._known = [i for i, origin in enumerate(self.origins) if origin is not None]
        known = [self.origins[i] for i in self._known]
        self._highest_before = list(itertools.accumulate(known, max))
        self._lowest_after = list(itertools.accumulate(reversed(known), min))[::-1]
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

    def written_between(self, begin, end, previous, following):
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

    def span(self, begin, end):
        """An interval with all characters that come from `begin` to `end` of the source, or None."""
        first, last = (bisect.bisect_left(self._places, (place,)) for place in (begin, end))
        places = [i for _, i in self._places[first:last]]
        return (min(places), max(places) + 1) if places else None

    def nearest_word(self, begin, end):
        """The interval of the word that is most likely to come from `begin` to `end` of the source, or None."""
        place = next((place for place in self.nearest[begin:end] if place is not None), None)
        if place is None:
            return None
        number = bisect.bisect_right(self._words, (place, len(self.text)))
        return next((word for word in self._words[max(number - 1, 0) : number] if place < word[1]), None)

    def between(self, begin):
        """Two places, and whether all between them are alike; all others separate more characters from their side.

        The side of a character is before or after `begin` of the source.
        """
        counts = [bisect.bisect_left(origins, begin) for origins in (self._highest_before, self._lowest_after)]
        return self._gap(counts[0])[0], self._gap(counts[1])[1], counts[0] == counts[1]

    def gap(self, place):
        """The first and the last place that only characters without an origin separate from one."""
        return self._gap(bisect.bisect_left(self._known, place))

    def _gap(self, count):
        """The same, after the first `count` characters with an origin."""
        return (
            self._known[count - 1] + 1 if count else 0,
            self._known[count] if count < len(self._known) else len(self.text),
        )


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


def _placed(inline, target, begin, end):
    """Strings and nodes for the characters `begin` to `end` of a translation, which belong to inline markup."""
    spans, free = [], _Free(begin, end)
    without_span = []
    for child in sorted(inline.children, key=lambda child: child.begin - child.end):  # The longest first.
        span = _best_span(child, target, free)
        if span is not None:
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
            child.node.contents = _placed(child, target, first, last)
        place, previous = last, child
    return [*contents, target.written_between(place, end, previous, None)]


def _best_span(child, target, free):
    """The interval with the most characters from the child and the fewest others, or None."""
    around = target.span(child.begin, child.end)
    if around is None:
        return None
    best, most = None, 0
    for begin, end in free.intervals[free.near(*around)]:
        begin, end = max(begin, around[0]), min(end, around[1])
        start, total = begin, 0
        for i in range(begin, end):
            origin = target.origins[i]
            if origin is not None:
                total += 1 if child.begin <= origin < child.end else -1
            if total <= 0:
                start, total = i + 1, 0
            elif total > most:
                best, most = (start, i + 1), total
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
    best, most, quality, reached = otherwise, (), 0, first
    for begin, end in free.intervals[here]:
        for place in range(max(begin, first), min(end, last) + 1):
            for origin in target.origins[reached:place]:
                quality += 0 if origin is None else 1 if origin < child.begin else -1
            reached = place
            inside_a_word = place > 0 and target.text[place - 1 : place + 1].isalnum()
            if (quality, not inside_a_word) > most:
                best, most = place, (quality, not inside_a_word)
                if all_alike and not inside_a_word:
                    return best
    return best
