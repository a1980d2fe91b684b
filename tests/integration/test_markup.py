"""HTML in, HTML out: the same elements, whatever the translation and its alignment."""

import codecs
import re

import pytest

from keras_transformer.__main__ import main
from keras_transformer.translation import documents
from keras_transformer.translation.translator import Translator

pytestmark = pytest.mark.usefixtures("loaded_once")


@pytest.mark.parametrize(
    ("data", "kind", "error"),
    [
        (b"<meta charset=x-none>", "html", r"ASCII means itself: .* Received: 'x-none'"),
        (b"<meta charset=hex>", "html", r"ASCII means itself: .* Received: 'hex'"),
        (b"<meta charset=utf-7>+ADw-script+AD4-", "html", r"text could become tags. Received: 'utf-7'"),
        (b"\n<p>\xfc</p>", "html", r"page, line 2: not UTF-8 \(byte 0xfc\). Convert it"),
        (b"<meta charset=ms932>\xfc\xfc", "html", r"page, line 1: not cp932, its encoding \(byte 0xfc\)"),
        (codecs.BOM_UTF16_LE + b"a\0", "document", r"page is UTF-16, not UTF-8. Convert it, .*iconv -f UTF-16"),
    ],
)
def test_encodings_that_cannot_be_read(data, kind, error, golden, tmp_path, capsys):
    (tmp_path / "page").write_bytes(data)
    with pytest.raises(SystemExit, match="2"):
        main(["translate", str(golden.run_dir), "--format", kind, "--input", str(tmp_path / "page")])
    assert re.search(error, capsys.readouterr().err)


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
    source.write_bytes(f'<html lang=en><meta charset="latin1">\r\n<b>{one}</b><!-- \u00fc -->\n'.encode("latin1"))
    assert main(["translate", str(golden.run_dir), "--format", "html", "--input", str(source)]) == 0
    wanted = f'<html lang=de><meta charset="UTF-8">\r\n<b>{first}</b><!-- \u00fc -->\n'
    assert capsys.readouterr().out == wanted
    source.write_text(f"<p>{one} {' '.join(f'{{p{i}}}' for i in range(10))}</p>", encoding="utf-8")
    assert main(["translate", str(golden.run_dir), "--format", "html", "--input", str(source)]) == 1
    assert f"{source}: 1 translations lack parts that must not change" in capsys.readouterr().err


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
    (text,) = documents.aligned_translations(golden.translator, [" ".join(golden.texts[:3]) + " "])
    assert len(text.origins) == len(text.text)
    assert all(origin is not None for letter, origin in zip(text.text, text.origins, strict=True) if letter.isalnum())


def test_html_takes_no_glossary(golden):
    with pytest.raises(ValueError, match="Markup is translated without a glossary"):
        Translator(golden.model, golden.tokenizer, glossary={"cat": "Katze"}).translate_html("<b>cat</b>")
