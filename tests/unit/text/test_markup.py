"""HTML in, HTML out: the same elements, whatever the translation and its alignment."""

import collections
import functools
import random
from xml.etree import ElementTree

import html5lib
import pytest
from texts import HTML_WORDS, random_html, shuffled

from keras_transformer.text import markup_tree
from keras_transformer.text.lines import read_text
from keras_transformer.text.markup import translate_html, translate_xml
from keras_transformer.text.markup_alignment import Aligned


def identity(texts):
    return [Aligned(text, list(range(len(text)))) for text in texts]


def parents(root):
    """How often each element of a tree, with its attributes, has each parent."""
    return collections.Counter(
        (str(element.tag), tuple(element.items()), str(above.tag), tuple(above.items()))
        for above in root.iter()
        for element in above
    )


def parsed(html):
    """A fragment as a browser reads it."""
    return html5lib.parseFragment(html, namespaceHTMLElements=False)


def test_an_element_is_never_lost_invented_or_moved_out_of_its_parent():
    generator = random.Random(0)
    for seed in range(3000):
        html = random_html(generator)
        found = translate_html(html, shuffled(seed))
        assert parents(parsed(found)) == parents(parsed(html)), (html, found)


def test_the_same_text_gives_the_same_html():
    generator = random.Random(1)
    for _ in range(1000):
        html = random_html(generator)
        assert translate_html(html, identity) == html


def reversed_words(texts):
    """Words in the reversed order, each aligned with itself."""
    results = []
    for text in texts:
        found, origins, place = [], [], 0
        words = text.split(" ")
        for word in words:
            found.insert(0, word)
            origins.insert(0, list(range(place, place + len(word))))
            place += len(word) + 1
        flat = [x for i, part in enumerate(origins) for x in ([None] if i else []) + part]
        results.append(Aligned(" ".join(found), flat))
    return results


@pytest.mark.parametrize(
    ("html", "expected"),
    [
        ("one <b>two</b> three", "three <b>two</b> one"),
        ("one <b>two three</b>", "<b>three two</b> one"),
        ("<i>one</i> <b>two</b>", "<b>two</b> <i>one</i>"),
        ("a <b>b <i>c</i> d</b> e", "e <b>d <i>c</i> b</b> a"),
        ('a <a href="x?a=1&amp;b=2" class="c">b</a>', '<a href="x?a=1&amp;b=2" class="c">b</a> a'),
        ("<p>a b</p><ul><li>c d</li></ul>", "<p>b a</p><ul><li>d c</li></ul>"),
        ("a <code>b c</code> d", "<code>b c</code> d a"),
        ("a <img><img> b", "<img><img> b  a"),
        ("一 <img> 二", "<img>二  一"),  # Not in Chinese.
        ('a <span translate="no">b  c</span>', 'a <span translate="no">b c</span>'),
        ("<pre>a b</pre><script>a < b</script><style>a b</style>",) * 2,
        ("a &lt; b &amp; ü &nbsp;", "&nbsp; ü &amp; b &lt; a"),
        ("<p>a <!-- c d --> b</p>", "<p><!-- c d --> b a</p>"),
        ("a b<b> c d</div>e f", "b a<b>d c </div>f e"),
        ("", ""),
        ("<p>a b<p>c d<b>e f", "<p>b a<p>d c<b>f e"),
        ("</b>a b", "</b>b a"),
        ("<tr><td>a b</td></tr>", "<tr><td>b a</td></tr>"),
        ("a<0> b", "b a&lt;0>"),
        (" \n ", " \n "),
        ("<title>a b</title>", "<title>b a</title>"),
        ("a b<b", "b a<b"),
        ("a b <!-- c", "b a <!-- c"),
        ("a \ud83d b", "b \ufffd a"),
        ("a b</body></html> c d", "b a</body></html>d c"),
    ],
)
def test_elements_go_where_their_words_go(html, expected):
    found = translate_html(html, reversed_words)
    assert " ".join(found.split()) == " ".join(expected.split())


def test_deep_nesting_is_kept():
    for name in ("b", "div"):
        html = f"<{name}>" * 3000 + "a <i>b</i>" + f"</{name}>" * 3000
        assert translate_html(html, identity) == html
        assert "<i>b</i> a" in translate_html(html, reversed_words)
        assert translate_xml(html, identity) == html


def test_a_document_keeps_its_type_and_head():
    head = '<head><meta charset="utf-8"><title>a b</title></head>'
    html = f'<!DOCTYPE html>\n<html lang="en">{head}<body><p>c d</p></body></html>'
    assert translate_html(html, reversed_words) == html.replace("a b", "b a").replace("c d", "d c")


@pytest.mark.parametrize(
    "html",
    [
        "<html><body>a b</body></html>\n",  # It gets no type.
        "<!-- x --><!-- y -->\n<html><body>a b</body></html>",
        "<body class=x><p>a</p></body>",
        "<head><title>a</title></head>b",
        "\ufeff<!DOCTYPE html>\n<html><body>a</body></html>",
        '<?xml version="1.0"?><html><body>a</body></html>',
        "<html><body>a</body></html> b",
        "<html><body><script>'</body>'</script>a</body></html>\n<!-- b -->\n",
        "<header>a</header>",
        "<p>a\r\nb\x0cc\x00d</p>\r\n",
        '<a href="{{ url_for(\'x\') }}" NAME=\'ü b\' *ngIf="a > b" data-x="</body> a"disabled>b &mdash; c & d</a>',
        "<p>a<br/>b<wbr>c<img src=x /></p><svg viewBox='0 0 1 1'><linearGradient id=a /><title/>a</svg>",
        "a<![if !IE]>b<![endif]><!-->c<!--->d<!-- e --!>f</p>g</br>",
    ],
)
def test_what_is_not_translated_stays_as_it_was_written(html):
    assert translate_html(html, identity) == html


@pytest.mark.parametrize(
    ("html", "expected"),
    [
        # What is in a piece of a sentence is translated on its own.
        ("a <button>b c</button> d", "<button>c b</button> d a"),
        ("<select><option>a b<option>c d</select>", "<select><option>b a<option>d c</select>"),
        ("<noscript><p>a b</p></noscript><label>c d</label>", "<noscript><p>b a</p></noscript><label>d c</label>"),
        ("<svg><text>a <tspan>b</tspan></text><path/></svg>", "<svg><text><tspan>b</tspan> a</text><path/></svg>"),
        ("<object><p>a b</p></object><template>c d</template>", "<object><p>b a</p></object><template>d c</template>"),
        ("<kbd>a b</kbd><samp>a b</samp><var>a b</var><ruby>a b<rt>c d</ruby><textarea>a b</textarea>",) * 2,
        ("<xmp>a b</xmp><plaintext>a b <p>c d",) * 2,
        ("<script>'<!--<script>a b</script> c d'</script>a b", "<script>'<!--<script>a b</script> c d'</script>b a"),
        ("<svg><script>a b</script><style>a b</style></svg>",) * 2,
        # Attributes say what is translated.
        ('<p translate="NO">a b <b translate>c d</b></p>', '<p translate="NO">a b <b translate>d c</b></p>'),
        ("<p class='x notranslate'>a b</p>",) * 2,
        ("<code translate=yes>c d</code>", "<code translate=yes>d c</code>"),
        (f"<p translate='&#110;o' title='&#{'9' * 5000};'>a b</p>",) * 2,
        ("<li translate=no>a b<li>c d", "<li translate=no>a b<li>d c"),
        # The number of an annotation stays after its word.
        ('a b<sup><a href="#1">[1]</a></sup>', 'b a<sup><a href="#1">[1]</a></sup>'),
        # Templates stay where they are.
        ("<?php if (a > b) { ?>a b<% c %>{% if d %}e f", "<?php if (a > b) { ?>b a<% c %>{% if d %}f e"),
        # The characters of the source that would become an entity or a tag elsewhere.
        ("lt; R&D & a<1", "a&lt;1 & R&amp;D lt;"),
        ("a&#8364; b&copy c&mdash;", "c&mdash; b&copy a&#8364;"),
        ("<a>b c<a>d e</a>", "<a>c b<a>e d</a>"),
    ],
)
def test_what_is_translated(html, expected):
    assert translate_html(html, reversed_words).replace("  ", " ") == expected


@pytest.mark.parametrize(
    ("html", "expected"),
    [
        ('<html lang="en-US"><p>a b</p><p LANG=en>c d</p>', '<html lang="de"><p>b a</p><p LANG=de>d c</p>'),
        ('<p lang="fr">a b <i lang="en">c d</i></p>', '<p lang="fr">a b <i lang="de">d c</i></p>'),
        ("<p>a <i lang='fr'>b c</i> d</p>", "<p><i lang='fr'>b c</i> d a</p>"),
        # The page knows its language better.
        ('<html lang="fr"><p>a b</p><p lang="en">a b</p>', '<html lang="de"><p>b a</p><p lang="de">b a</p>'),
        ('<p lang="">a b</p>', '<p lang="">b a</p>'),
    ],
)
def test_the_language_of_a_page(html, expected):
    assert translate_html(html, reversed_words, "en", "de").replace("  ", " ") == expected
    assert translate_html(html, identity, "en") == html
    xml = '<d xml:lang="en"><p>a b</p><p xml:lang="fr">a b</p></d>'
    wanted = '<d xml:lang="deu-Latn"><p>b a</p><p xml:lang="fr">a b</p></d>'
    assert translate_xml(xml, reversed_words, "eng_Latn", "deu_Latn") == wanted


META = '<meta http-equiv="Content-Type" content="text/html; charset={}">'


@pytest.mark.parametrize(
    ("html", "codec"),
    [
        (META.format("iso-8859-1"), "cp1252"),
        ("<META CHARSET='windows-1251'>", "cp1251"),
        ("<meta charset=Shift_JIS>", "cp932"),
        ("<meta charset=x-sjis>", "cp932"),
        ("<meta charset=windows-874>", "cp874"),
        ('<?xml version="1.0" encoding="ISO-8859-2"?><html>', "iso8859-2"),
        (
            '<!-- <meta charset="latin1"> --><script>\'<meta charset="latin1">\'</script><meta charset="koi8-r">',
            "koi8-r",
        ),
        ('<meta charset="utf-16">', "utf-8"),
        ("<meta name=charset content=latin1>", "utf-8"),
    ],
)
def test_the_declared_encoding_is_read_and_becomes_utf_8(html, codec):
    assert markup_tree.declared_encoding(html.encode(), True) == codec
    found = translate_html(html, identity)
    assert markup_tree.declared_encoding(found.encode(), True) == "utf-8"
    assert translate_html(found, identity) == found


def test_encodings_of_files(tmp_path):
    def read(text, encoding, is_html=True):
        (tmp_path / "page").write_bytes(text.encode(encoding))
        return read_text(tmp_path / "page", functools.partial(markup_tree.declared_encoding, is_html=is_html))

    page = f"<!-- \u00fc\u20ac -->{META}\r\n<p>a</p>"
    assert read(page.format("latin1"), "cp1252") == page.format("latin1")
    for encoding in ("utf-8", "utf-16-le", "utf-16-be"):  # The mark stays: it also says that the output is UTF-8.
        assert read("\ufeff" + page, encoding) == "\ufeff" + page
    xml = '<?xml version="1.0" encoding="ISO-8859-1"?>\r\n<meta charset="koi8-r"/><!-- \u00fc -->'
    assert read(xml, "latin1", is_html=False) == xml
    assert read(xml[45:], "utf-8", is_html=False) == xml[45:]


def test_many_elements_at_one_place_take_no_time():
    html = "<!-- wp:paragraph -->\n<p>a b</p>\n<!-- /wp:paragraph -->\n\n" * 99 + "<!-- x -->" * 99
    assert translate_html(html, identity) == html
    for one in ("<!-- x -->", "<br>", '<img src="x">', "<b></b>", "<b>a</b> ", "a<img> "):
        assert translate_html(one * 4000 + "a", identity) == one * 4000 + "a"
    for one in ("<!-- a", "</body> a", "<a", "<script>", "<i></p>", "<p", "<svg><![CDATA[", "{% ", "<? ", "<a b='"):
        assert translate_html(one * 20_000, identity) == one * 20_000


@pytest.mark.parametrize(
    ("xml", "expected"),
    [
        ("<p>one <b>two</b> three</p>", "<p>three <b>two</b> one</p>"),
        ("<d><p>a b</p><br>c d</br></d>", "<d><p>b a</p><br>d c</br></d>"),
        ("<d>\n  <p>a b</p>\n</d>", "<d>\n  <p>b a</p>\n</d>"),
        ("<p>a <ul><li>b c</li><li>d e</li></ul> f</p>", "<p> a<ul><li>c b</li><li>e d</li></ul>f </p>"),
        ("<p>a <x><y>b</y></x></p>", "<p><x><y>b</y></x> a</p>"),
        ('<d><p translate="no">a b</p><q xml:space="preserve">a b</q></d>',) * 2,
        ('<d xmlns:its="http://www.w3.org/2005/11/its" its:translate="no">a b</d>',) * 2,
        ('<d x="a &lt; b"><!-- a b --><?x a b?></d>',) * 2,
        ("<d>a &lt; b &amp; \xfc</d>", "<d>\xfc &amp; b &lt; a</d>"),
        ("<d><![CDATA[a < b & c]]></d>", "<d><![CDATA[c & b < a]]></d>"),
        (
            '<?xml version="1.0" encoding="ISO-8859-1"?>\n<d>a b</d>\n',
            '<?xml version="1.0" encoding="UTF-8"?>\n<d>b a</d>\n',
        ),
        ('<!DOCTYPE d [\n<!ENTITY e "x">\n]>\n<d>a<e>&e;</e></d>',) * 2,
        ("<d><![CDATA[<p>a <b>b</b></p>]]></d>", "<d><![CDATA[<p><b>b</b> a</p>]]></d>"),
        (
            '<r><s translatable="false">a b</s><s translate="no">c <t translate="yes">d e</t></s></r>',
            '<r><s translatable="false">a b</s><s translate="no">c <t translate="yes">e d</t></s></r>',
        ),
        (
            '<html xmlns="http://www.w3.org/1999/xhtml"><script>a b</script><p>c <b>d</b><code>a b</code></p></html>',
            '<html xmlns="http://www.w3.org/1999/xhtml"><script>a b</script><p><b>d</b> c<code>a b</code></p></html>',
        ),
        (
            '<s:svg xmlns:s="http://www.w3.org/2000/svg"><s:style>a b</s:style><s:text>c d</s:text></s:svg>',
            '<s:svg xmlns:s="http://www.w3.org/2000/svg"><s:style>a b</s:style><s:text>d c</s:text></s:svg>',
        ),
        ("<d>]] a&gt;</d>", "<d>a&gt; ]]</d>"),
        ("<d>\r\n<p\n a = 'x'  >a\r\nb</p ></d>\r\n", "<d>\r\n<p\n a = 'x'  >b a</p ></d>\r\n"),
        ('<d><p>a b<br/></p><q/><p>a<img src="x"/></p></d>', '<d><p>b a<br/></p><q/><p>a<img src="x"/></p></d>'),
    ],
)
def test_elements_of_xml_go_where_their_words_go(xml, expected):
    assert translate_xml(xml, reversed_words) == expected
    assert translate_xml(expected, identity) == expected  # Nothing else changes.


def test_an_element_of_xml_is_never_lost_invented_or_moved_out_of_its_parent():
    generator = random.Random(2)

    def xml(depth=0):
        parts = []
        for _ in range(generator.randrange(1, 5)):
            kind = generator.random()
            if kind < 0.5 or depth > 4:
                parts.append(
                    " ".join(generator.choices(HTML_WORDS, k=generator.randrange(4)))
                    + generator.choice([" ", "\n", ""])
                )
            elif kind < 0.55:
                parts.append(generator.choice(["<!-- a <b> -->", "<?a b?>", "<empty/>"]))
            else:
                name = generator.choice(["a", "b", "x:c"])
                attribute = generator.choice(["", ' k="1"', ' translate="no"', ' x:k="&lt;"'])
                parts.append(f"<{name}{attribute}>{xml(depth + 1)}</{name}>")
        return "".join(parts)

    for seed in range(1000):
        text = f'<d xmlns:x="x">{xml()}</d>'
        found = translate_xml(text, shuffled(seed))
        assert parents(ElementTree.fromstring(found)) == parents(ElementTree.fromstring(text)), (text, found)


@pytest.mark.parametrize("xml", ["", "a", "<a>", "<a></b>", "<a>&x;</a>", "<a b=c/>"])
def test_xml_that_is_not_well_formed_is_an_error(xml):
    with pytest.raises(ValueError, match=r"XML must be well-formed, and this is not: .*line 1"):
        translate_xml(xml, identity)
    with pytest.raises(ValueError, match=r"XML must be well-formed, and this is not: .*surrogates"):
        translate_xml("<a>\ud83d</a>", identity)


def test_entities_neither_grow_nor_read_files(tmp_path):
    (tmp_path / "secret").write_text("secret")
    inside = f'<!ENTITY a "xxxx"><!ENTITY b "&a;&a;"><!ENTITY f SYSTEM "file://{tmp_path}/secret">'
    found = translate_xml(f"<!DOCTYPE d [{inside}]><d>one &b; &f;</d>", identity)
    assert found.endswith("<d>one &b; &f;</d>")
