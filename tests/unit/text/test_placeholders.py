"""What must not change in a translation: found by the same rules everywhere, and restored exactly.

test_placeholders_in_graphs.py does the same in TensorFlow's graphs, translation/test_placeholders.py in translations.
In tests/integration, test_web.py and test_device_examples.py run `PARTS` and random texts in JavaScript and Java.
"""

import random

import pytest
from texts import PARTS, TOUCHING, random_parts, worded

from keras_transformer.data import masking
from keras_transformer.data.masking import mask_words
from keras_transformer.text import placeholders
from keras_transformer.text.glossary import Glossary
from keras_transformer.text.placeholders import protect, protect_pair, restored


@pytest.mark.parametrize(("text", "wanted", "parts"), PARTS)
def test_vectors(text, wanted, parts):
    assert protect(text) == (wanted, tuple(parts))


def test_a_long_list_of_numbers_takes_no_time():
    text = ",".join(["7"] * 20_000)
    assert protect(text) == (text, ())


def test_the_parts_come_back_exactly():
    for text in random_parts(3000):
        found = protect(text, 99)
        assert restored(*found) == "".join(" " if c in "\x01\x02\x03" else c for c in text)
        assert protect(found.text, 99).parts == tuple(f"⟦{i}⟧" for i in range(len(found.parts)))  # Nothing is left.


@pytest.mark.parametrize(
    ("text", "parts", "wanted"),
    [
        ("⟦1⟧ und ⟦0⟧", ("{a}", "{b}"), "{b} und {a}"),
        ("Hallo", ("{a}", "", "{c}"), "Hallo {a} {c}"),  # The second one is not in the source that was read.
        ("⟦7⟧!", ("{a}",), "! {a}"),
        ("⟦0⟧", (), "⟦0⟧"),
    ],
)
def test_restored(text, parts, wanted):
    assert restored(text, parts) == wanted


@pytest.mark.parametrize(("source", "translation", "wanted"), TOUCHING)
def test_a_part_does_not_touch_what_it_did_not_touch_in_the_source(source, translation, wanted):
    text, parts = protect(source)
    assert restored(translation, parts, source=text) == wanted


def test_lost_parts_are_those_of_the_source_that_a_translation_lacks():
    assert placeholders.lost("Save %s", "%%s") == ("%s",)
    assert placeholders.lost("coat {n}", "{n}", Glossary({"coat": "Mantel"})) == ()


def test_a_pair_keeps_what_both_sides_have():
    assert protect_pair("{a} {b} {a} 5 kg", "5 kg {a} %s {a}") == ("⟦0⟧ {b} ⟦2⟧ ⟦3⟧", "⟦3⟧ ⟦0⟧ %s ⟦2⟧")
    assert protect_pair("⟦4⟧ {a}", "x ⟦5⟧") == ("[4] {a}", "x [5]")


# Terms.


def test_terms():
    glossary = Glossary({"coat": "Mantel", "red coat": "Rotmantel", "Apple": "Apple", "straße": "road"})
    found = glossary.cut("Red  coat, coat, coats; an apple, Apple, STRASSE")
    assert found[1::2] == [("Red  coat", "Rotmantel"), ("coat", "Mantel"), ("Apple", "Apple")]
    assert "".join(part if isinstance(part, str) else part[0] for part in found) == (
        "Red  coat, coat, coats; an apple, Apple, STRASSE"
    )
    assert protect("A coat for {name}", glossary=glossary) == ("A ⟦0⟧ for ⟦1⟧", ("Mantel", "{name}"))
    assert Glossary({}).cut("a") == ["a"]


def test_terms_change_no_part_that_is_kept():
    terms = {"cat": "Katze", "org": "Org", "count": "Zahl", "Windows 2000": "W2K", "5 kg": "10 Pfund", "a 5": "x"}
    glossary = Glossary(terms)
    text = "cat@x.org: {count} cats, a cat at https://x.org/cat, Windows 2000, 2000, a 5 kg cat"
    found = protect(text, 9, glossary)
    assert found.text == "⟦0⟧: ⟦1⟧ cats, a ⟦2⟧ at ⟦3⟧, ⟦4⟧, ⟦5⟧, a ⟦6⟧ ⟦7⟧"
    kept = ("cat@x.org", "{count}", "Katze", "https://x.org/cat", "W2K", "2000", "10 Pfund", "Katze")
    assert found.parts == kept
    assert glossary.lacking("Write to cat@x.org", "Schreib an cat@x.org") is None


@pytest.mark.parametrize(("term", "text"), [("ışık", "Işık"), ("\u00b5m-scale", "\u039cm-scale")])
def test_letters_whose_capitals_are_those_of_other_letters(term, text):
    assert Glossary({term: "x"}).cut(f"{text}, {term}")[1::2] == [(text, "x"), (term, "x")]


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        ("a\tb\nc\n", "line 2: a line must be a term, one tab and its translation. Received: 'c'"),
        ("a\tb\tc\n", "line 1: a line must be"),
        ("a\t \n", "line 1: a line must be"),
        ("a\tb\na\tc\n", "A term must have one translation. Received: 'a' with 'b' and with 'c'"),
    ],
)
def test_a_wrong_glossary_names_the_line(tmp_path, lines, message):
    path = tmp_path / "terms.tsv"
    path.write_text(lines)
    with pytest.raises(ValueError, match=message):
        Glossary.load(path)


def test_a_glossary_that_is_no_utf_8_is_named(tmp_path):
    path = tmp_path / "terms.tsv"
    path.write_bytes("dog\tDäckel".encode("latin-1"))
    with pytest.raises(ValueError, match=r"terms\.tsv must be UTF-8 text\. Received: 'utf-8' codec can't decode byte"):
        Glossary.load(path)


def test_a_glossary_file(tmp_path):
    path = tmp_path / "terms.tsv"
    path.write_text("# English\tGerman\n\ndog\tDackel\r\n", encoding="utf-8-sig")
    assert Glossary.load(path).terms == {"dog": "Dackel"}


# Training.


def test_words_that_translate_each_other():
    words = masking.word_pairs(worded())
    assert {("dog", "Hund"), ("cat", "Katze"), ("birds", "Vögel"), ("house", "Haus"), ("sees", "sieht")} <= words
    assert not {("dog", "Katze"), ("sees", "Hund")} & words
    assert masking.word_pairs(worded()[:2]) == set()  # Too few to learn from.


def test_words_become_the_same_placeholders_on_both_sides():
    words, generator, count = masking.word_pairs(worded()), random.Random(0), 0
    for source, target in worded() + [("{a} Anna likes the dog", "{a} Anna mag den Hund")] * 50:
        pair = mask_words(*protect_pair(source, target), words, generator)
        names = [sorted(placeholders.regex.findall(placeholders.PLACEHOLDER, text)) for text in pair]
        assert names[0] == names[1] and len(set(names[0])) == len(names[0]) >= 1
        count += len(names[0])
    assert count > 260
    assert mask_words("x y", "z", words, generator) is None
