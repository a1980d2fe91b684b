"""HTML and XML as trees of what is written: tags, texts and all else, character by character."""

import codecs
import collections
import html as entities
import itertools
import re
from collections.abc import Callable, Mapping
from types import MappingProxyType
from xml.parsers import expat

# The number of an annotation: the model does not see it.
_NOTE = re.compile(r"\s*\[\w{1,3}\]\s*")


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

# More inline elements in each other are not taken as inline.
MAX_DEPTH = 100
CDATA = "#cdata"  # The name of the node of such a section.
LINE_BREAK = "\n\n"  # For a `br`: it always ends a sentence.

_ENTITY = r"&(?:#\d{1,9}|#x[0-9a-f]{1,8}|[a-z]\w{0,39});?"  # Bounded, because Python refuses to read long numbers.

CHARACTER = re.compile(rf"\r\n|{_ENTITY}|.", re.IGNORECASE | re.DOTALL)

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


# Reading and writing.


class Node:
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

    def __init__(
        self,
        open_: str,
        name: str = "",
        attributes: Mapping[str, str] = MappingProxyType({}),
        like_html: bool = True,
        inline: bool = False,
    ):
        self.open, self.close, self.name, self.contents = open_, "", name, []
        self.like_html, self.inline, self.has_words, self.depth, self.plain = like_html, inline, False, 0, ""
        self.lang = attributes.get("lang", attributes.get(_LANG, attributes.get("xml:lang")))
        self.is_foreign = False
        said = attributes.get("translate", "?").lower()
        if like_html and "notranslate" in attributes.get("class", "").split():
            said = "no"
        if said == "no" or (not like_html and any(attributes.get(key) == no for key, no in KEPT_IN_XML.items())):
            self.translate = False
        else:
            self.translate = True if said in ("yes", "") else False if like_html and name in KEPT else None

    @property
    def is_piece(self) -> bool:
        """Whether it is one piece of a sentence, whatever is in it."""
        return not self.name or self.translate is False or self.is_foreign or (self.like_html and self.name in OPAQUE)

    def end(self, close: str | None) -> None:
        """Tells the node that it is complete."""
        self.close = close
        nodes = [part for part in self.contents if isinstance(part, Node)]
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
        self.path = [Node("")]
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

    def root(self) -> Node:
        """The root, when all was read."""
        while len(self.path) > 1:
            self.end()
        return self.path[0]


def _primary(language):
    return re.split("[-_]", language.strip().lower())[0]


class HtmlTree(_Tree):
    """`charset` is the first encoding that a `meta` names."""

    def __init__(self, html: str, source_language: str | None = None):
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
                self.add(Node(_declaration_in_utf8(html[begin:place])))
            elif html.startswith("<!--", begin):
                place = _COMMENT.match(html, begin).end()
                self.add(Node(html[begin:place], inline=True))
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
                self.add(html[begin:place] if place == begin + 1 else Node(html[begin:place]))
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
        self.add_element(Node(tag, name, attributes), name == "html", is_open)
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
            self.add(Node(tag))

    def _end_at(self, place, close=None):
        """Ends the element at a place in `path`, and those in it."""
        while len(self.path) > place + 1:
            self.end()
        self.end(close)

    def end(self, close: str | None = None) -> Node:
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


def with_values(tag: str, change: Callable[[str, str], str]) -> str:
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


def declared_encoding(data: bytes, is_html: bool) -> str:
    """The encoding of the bytes of a document: that of a byte order mark, else the declared one, else UTF-8.

    Raises:
        ValueError: Python has no such encoding, or it is not one of pages.
    """
    marks = {"utf-8": codecs.BOM_UTF8, "utf-16-le": codecs.BOM_UTF16_LE, "utf-16-be": codecs.BOM_UTF16_BE}
    for name, mark in marks.items():
        if data.startswith(mark):
            return name
    start = data[:8192].decode("latin-1")  # Browsers look for it in the first 1024 bytes.
    declaration = _XML_DECLARATION.match(start)
    name = declaration[2] if declaration else HtmlTree(start).charset if is_html else None
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

    return with_values(tag, change), charset.strip()


def xml_tree(xml: str, source_language: str | None = None) -> Node:
    """The tree of an XML document.

    Raises:
        ValueError: the document is not well-formed.
    """
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
    tree.add(Node(_declaration_in_utf8(declaration)))
    for (begin, kind, values), (end, *_) in itertools.pairwise([*events, (len(data), "end", ())]):
        raw = data[begin:end].decode()
        if kind == "text":
            tree.add(raw)
        elif kind == "other":
            tree.add(Node(raw, inline=True))
        elif kind == "cdata":
            tree.add_element(Node(raw, CDATA, like_html=False), False)
        elif kind == "start":
            *namespace, name = values[0].split("}")
            like_html, attributes = bool(namespace) and namespace[0] in _LIKE_HTML, values[1]
            if like_html and name == "meta":
                raw, _ = _meta_in_utf8(raw, attributes)
            tree.add_element(Node(raw, name.lower() if like_html else name, attributes, like_html), True)
        else:
            node = tree.end(raw)
            if node.name == CDATA:
                node.inline = False
                text = "".join(node.contents)
                if _TAG.search(text):
                    node.name, node.contents = "html", [HtmlTree(text, source_language).root()]
    return tree.root()


def written_out(root: Node) -> str:
    """The text of a tree."""
    written, left = [], [root]
    while left:
        part = left.pop()
        if isinstance(part, str):
            written.append(part)
        else:
            written.append(part.open)
            left += [part.close or "", *reversed(part.contents)]
    return "".join(written)
