"""HTML in, HTML out: the same elements, whatever the translation and its alignment."""

import collections
import random

import lxml.html
import pytest

from keras_transformer import markup
from keras_transformer.__main__ import main
from keras_transformer.markup import Aligned, translate_html, translate_xml
from keras_transformer.translator import Translator

WORDS = ["dog", "cat", "sees", "the", "a.", "Red", "house,", "5", "&amp;", "&lt;b&gt;", "café", "😀", "Then!"]
ATTRIBUTES = ["", ' class="x y"', ' title="a &quot;b&quot; &lt;i&gt;"', ' href="?a=1&amp;b=2"', ' data-x=""']


def identity(texts):
    return [Aligned(text, list(range(len(text)))) for text in texts]


def shuffled(seed):
    """Words in another order, some lost, some new, all aligned at random."""
    generator = random.Random(seed)

    def translate(texts):
        results = []
        for text in texts:
            words = generator.sample(text.split(" "), len(text.split(" ")))
            words = [word for word in words if generator.random() < 0.8] + ["new"] * generator.randrange(3)
            found = " ".join(words)
            origins = [generator.choice([None, *range(len(text))]) for _ in found]
            results.append(Aligned(found, origins))
        return results

    return translate


def tree(generator, depth=0):
    """A random fragment. Elements are nested as HTML allows, so that the parser changes nothing."""
    parts = []
    for _ in range(generator.randrange(5)):
        kind = generator.random()
        attributes = generator.choice(ATTRIBUTES)
        if kind < 0.5 or depth > 4:
            parts.append(
                " ".join(generator.choices(WORDS, k=generator.randrange(5))) + generator.choice([" ", "\n  ", ""])
            )
        elif kind < 0.6:
            parts.append(generator.choice(["<br>", f"<img{attributes}>", "<!-- a <b> -->", "<code>x  &lt; y</code>"]))
        elif kind < 0.65:
            parts.append(f'<span translate="no"{attributes}>{tree(generator, depth + 3)}</span>')
        elif kind < 0.9:
            name = generator.choice(["b", "i", "span", "em", "sub"])
            parts.append(f"<{name}{attributes}>{tree(generator, depth + 1)}</{name}>")
        else:
            name = generator.choice(["div", "section"])
            parts.append(f"<{name}{attributes}>{tree(generator, depth + 1)}</{name}>")
    return "".join(parts)


def parents(html):
    """How often each element, with its attributes, has each parent."""
    root = lxml.html.fragment_fromstring(html, create_parent="main")
    found = collections.Counter()
    for element in root.iter():
        if element is not root:
            above = element.getparent()
            found[str(element.tag), tuple(element.items()), str(above.tag), tuple(above.items())] += 1
    return found


def written(html):
    """A fragment as lxml writes it."""
    return translate_html(html, identity)


def test_an_element_is_never_lost_invented_or_moved_out_of_its_parent():
    generator = random.Random(0)
    for seed in range(3000):
        html = tree(generator)
        found = translate_html(html, shuffled(seed))
        assert parents(found) == parents(html), (html, found)
        assert written(found) == found  # It is balanced.


def test_the_same_text_gives_the_same_html():
    generator = random.Random(1)
    for _ in range(1000):
        html = tree(generator)
        root = lxml.html.fragment_fromstring(f"<div>{html}</div>")
        assert (
            translate_html(html, identity)
            == lxml.html.tostring(root, encoding="unicode")[len("<div>") : -len("</div>")]
        )


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
        ("a <code>b c</code> d", "<code>b c</code>d a"),
        ('a <span translate="no">b  c</span>', 'a<span translate="no">b c</span>'),
        ("<pre>a b</pre><script>a < b</script><style>a b</style>",) * 2,
        ("a &lt; b &amp; ü &nbsp;", "\xa0 ü &amp; b &lt; a"),
        ("<p>a <!-- c d --> b</p>", "<p><!-- c d -->b a</p>"),
        ("a <b>b</div> c", "c <b>b</b> a"),
        ("", ""),
        ("<p>a <b>b", "<p><b>b</b> a</p>"),
        ("</b>a b", "b a"),
        ("<tr><td>a b</td></tr>", "<tr><td>b a</td></tr>"),
        ("a<0> b", "b a&lt;0&gt;"),
        (" \n ", " \n "),
        ("<title>a b</title>", "<title>b a</title>"),
        ("a<b", "a&lt;b"),
        ("a b <!-- c", "b a<!-- c-->"),
        ("a \ud83d b", "b \ufffd a"),
        ("a b</body></html> c d", "d c b a"),
    ],
)
def test_elements_go_where_their_words_go(html, expected):
    found = translate_html(html, reversed_words)
    assert " ".join(found.split()) == " ".join(expected.split())


def test_deep_nesting_is_kept_or_refused():
    html = "<b>" * 300 + "a" + "</b>" * 300
    assert translate_html(html, identity) == html
    with pytest.raises(ValueError, match="nested too deeply"):
        translate_html("<b>" * 3000 + "a" + "</b>" * 3000, identity)


def test_a_document_keeps_its_type_and_head():
    head = '<head><meta charset="utf-8"><title>a b</title></head>'
    html = f'<!DOCTYPE html>\n<html lang="en">{head}<body><p>c d</p></body></html>'
    assert translate_html(html, reversed_words) == html.replace("a b", "b a").replace("c d", "d c")


@pytest.mark.parametrize(
    ("html", "expected"),
    [
        ("<html><body>a b</body></html>\n",) * 2,  # It gets no type.
        ("<!-- x --><!-- y -->\n<html><body>a b</body></html>", "<!-- x --><!-- y --><html><body>a b</body></html>"),
        ("<body class=x><p>a</p></body>", '<html><body class="x"><p>a</p></body></html>'),
        ("<head><title>a</title></head>b", "<html><head><title>a</title></head><body>b</body></html>"),
        ("\ufeff<!DOCTYPE html>\n<html><body>a</body></html>",) * 2,
        ('<?xml version="1.0"?><html><body>a</body></html>',) * 2,
        ("<html><body>a</body></html> b", "<html><body>a b</body></html>"),
        ("<html><body><script>'</body>'</script>a</body></html>\n<!-- b -->\n",) * 2,
        ("<header>a</header>",) * 2,
    ],
)
def test_nothing_of_a_document_is_lost(html, expected):
    assert "".join(translate_html(html, identity).split()) == "".join(expected.split())


def test_many_elements_at_one_place_take_no_time():
    html = "<!-- wp:paragraph -->\n<p>a b</p>\n<!-- /wp:paragraph -->\n\n" * 99 + "<!-- x -->" * 99
    assert translate_html(html, identity) == html
    for one in ("<!-- x -->", "<br>", '<img src="x">', "<b></b>"):
        assert translate_html(one * 99 + "a", identity) == one * 99 + "a"


def test_a_model_translates_html(golden, tmp_path, capsys):
    translator, (one, two) = golden.translator, golden.texts[:2]
    first, second = translator.translate([one, two])
    assert translator.translate_html(f"<p>{one} {two}</p>") == f"<p>{first} {second}</p>"
    assert translator.translate_html(f"{one}<br>{two}") == f"{first}<br>{second}"
    assert translator.translate_html(f"<ul>\n  <li>{one}</li>\n</ul>") == f"<ul>\n  <li>{first}</li>\n</ul>"
    assert translator.translate_html(f"<b>{one}</b> <i>{two}</i>") == f"<b>{first}</b> <i>{second}</i>"
    plain = f"{one} {two}\n\n"
    assert translator.translate_html(plain) == translator.translate_text(plain)
    source = tmp_path / "page.html"
    source.write_text(f"<b>{one}</b>\n", encoding="utf-8")
    assert main(["translate", str(golden.run_dir), "--format", "html", "--input", str(source)]) == 0
    assert capsys.readouterr().out == f"<b>{first}</b>\n"


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
        ("<d><![CDATA[a b]]></d>", "<d>b a</d>"),
        (
            '<?xml version="1.0" encoding="ISO-8859-1"?>\n<d>a b</d>\n',
            '<?xml version="1.0" encoding="UTF-8"?>\n<d>b a</d>\n',
        ),
        ('<!DOCTYPE d [\n<!ENTITY e "x">\n]>\n<d>a<e>&e;</e></d>',) * 2,
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
                    " ".join(generator.choices(WORDS, k=generator.randrange(4))) + generator.choice([" ", "\n", ""])
                )
            elif kind < 0.55:
                parts.append(generator.choice(["<!-- a <b> -->", "<?a b?>", "<empty/>"]))
            else:
                name = generator.choice(["a", "b", "x:c"])
                attribute = generator.choice(["", ' k="1"', ' translate="no"', ' x:k="&lt;"'])
                parts.append(f"<{name}{attribute}>{xml(depth + 1)}</{name}>")
        return "".join(parts)

    def parents_of(text):
        root, found = lxml.etree.fromstring(text), collections.Counter()
        for element in root.iter():
            above = element.getparent()
            found[
                str(element.tag), tuple(element.items()), above is not None and (above.tag, tuple(above.items()))
            ] += 1
        return found

    for seed in range(1000):
        text = f'<d xmlns:x="x">{xml()}</d>'
        found = translate_xml(text, shuffled(seed))
        assert parents_of(found) == parents_of(text), (text, found)


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


def test_a_model_translates_xml(golden, tmp_path, capsys):
    first, second = golden.translator.translate(golden.texts[:2])
    source = tmp_path / "page.xml"
    source.write_text(f"<d><p>{golden.texts[0]}</p>\n<p><b>{golden.texts[1]}</b></p></d>\n", encoding="utf-8")
    assert main(["translate", str(golden.run_dir), "--format", "xml", "--input", str(source)]) == 0
    assert capsys.readouterr().out == f"<d><p>{first}</p>\n<p><b>{second}</b></p></d>\n"
    source.write_text("<d>")
    with pytest.raises(SystemExit, match="2"):
        main(["translate", str(golden.run_dir), "--format", "xml", "--input", str(source)])
    assert "error: XML must be well-formed" in capsys.readouterr().err


def test_the_alignment_covers_every_letter(golden):
    (text,) = markup.aligned_translations(golden.translator, [" ".join(golden.texts[:3]) + " "])
    assert len(text.origins) == len(text.text)
    assert all(origin is not None for letter, origin in zip(text.text, text.origins, strict=True) if letter.isalnum())


def test_without_lxml_the_error_says_what_to_install(monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "lxml.html", None)
    with pytest.raises(ImportError, match=r'HTML needs lxml. Try: pip install "keras_transformer\[html\]"'):
        translate_html("<b>a</b>", identity)


def test_html_takes_no_glossary(golden):
    with pytest.raises(ValueError, match="Markup is translated without a glossary"):
        Translator(golden.model, golden.tokenizer, glossary={"cat": "Katze"}).translate_html("<b>cat</b>")
