"""Texts into sentences and back: the vectors of sentences.json, in Python and in a graph.

tests/test_web.py runs the same vectors in JavaScript.
"""

import json
import random
from pathlib import Path

import numpy as np
import pytest
import tensorflow as tf

from keras_transformer import sentences

VECTORS = json.loads(Path(__file__).with_name("sentences.json").read_text(encoding="utf-8"))
LANGUAGES = sorted({one.get("language", "") for one in VECTORS})
# What rules act on, so that random texts of it are hard.
ALPHABET = [
    *"aAbI1.!?…,;:()\"'“”«»„-–—>#*\n\n\r\t    \u00a0\u3000。！」、",
    "Dr",
    "No",
    "z",
    "long ",
    "word" * 12,
    "😀",
    "str",
]
ALPHABET += ["\x01", "\x02", "\x03", "\x04", "\x05", "e\u0301", "\u2028", "שלום ", "\x00"]
ALPHABET += ["\x06", "\v", "\f", "\x85", "\u2029", ">>deu<<", ">>"]


def in_graph(texts, language=None):
    rows = tf.function(lambda x: sentences.graph_split(x, language))(tf.constant(texts, tf.string, [len(texts)]))
    return [[part.decode() for part in row.numpy()] for row in rows]


def random_texts(count, seed=0):
    generator = random.Random(seed)
    return ["".join(generator.choices(ALPHABET, k=generator.randrange(60))) for _ in range(count)]


@pytest.mark.parametrize("one", VECTORS, ids=[one["name"] for one in VECTORS])
def test_vectors(one):
    parts = sentences.split(one["text"], one.get("language"))
    assert parts[1::2] == one["sentences"]
    assert "".join(parts) == sentences.without_marks(one["text"])


@pytest.mark.parametrize("code", ["de", "DE", "de-AT", "deu", "deu_Latn"])
def test_a_language_has_many_codes(code):
    text = "Am 3. Mai kam der 1. FC Bayern."
    assert sentences.split(text, code) == ["", text, ""] != sentences.split(text, "eng_Latn")


@pytest.mark.parametrize("language", LANGUAGES)
def test_vectors_in_a_graph(language):
    texts = [one["text"] for one in VECTORS if one.get("language", "") == language]
    assert in_graph(texts, language) == [sentences.split(text, language) for text in texts]


@pytest.mark.parametrize("language", ["en", "de"])
def test_no_character_of_a_text_is_lost(language):
    texts = random_texts(3000)
    found = [sentences.split(text, language) for text in texts]
    for text, parts in zip(texts, found, strict=True):
        assert "".join(parts) == sentences.without_marks(text)
        assert len(parts) % 2 == 1
        assert all(any(c.isalnum() for c in sentence) for sentence in parts[1::2])
    assert in_graph(texts, language) == found


def test_bytes_that_are_not_utf_8_are_split_in_a_graph():
    assert in_graph([b"caf\xe9. \xff Ja.", b""]) == [["", "caf\ufffd.", " ", "\ufffd Ja.", ""], [""]]


def test_no_text_at_all_is_split_in_a_graph():
    assert in_graph([]) == []


@pytest.mark.parametrize("most", [1, 3, 12])
def test_long_sentences_are_cut_alike(most):
    texts = random_texts(300, seed=1)
    parts = [sentences.fitted(sentences.split(text), lambda x: [len(one) <= most for one in x]) for text in texts]
    graph = sentences.graph_fitted(
        sentences.graph_split(tf.constant(texts)), lambda x: tf.strings.length(x, unit="UTF8_CHAR") <= most
    )
    assert [[part.decode() for part in row.numpy()] for row in graph] == parts
    for text, row in zip(texts, parts, strict=True):
        assert "".join(row) == sentences.without_marks(text)
        assert all(len(sentences.plain(sentence)) <= most for sentence in row[1::2])
    # Joined again around other sentences.
    translated = [["<" + x + ">." if i % 2 else x for i, x in enumerate(row)] for row in parts]
    flat = [x for row in translated for x in row[1::2]]
    joined = sentences.graph_joined(graph, tf.constant(flat)).numpy()
    assert [text.decode() for text in joined] == [sentences.joined(row) for row in translated]


@pytest.mark.parametrize(
    ("sentence", "parts"),
    [
        ("One two three, four five six", ["One two three,", " ", "four five six"]),
        ("One, two three four five six", ["One, two three", " ", "four five six"]),  # The clause ends too early.
        ("One two", ["One", " ", "two"]),
        ("abcdefg", ["abc", "", "defg"]),
        ("今天下雨，我们回家", ["今天下雨，", "", "我们回家"]),
        ("1,000,000 or more", ["1,000,000", " ", "or more"]),
    ],
)
def test_where_a_long_sentence_is_cut(sentence, parts):
    found = sentences.fitted(["", sentence, ""], lambda texts: [len(text) < len(sentence) for text in texts])
    assert found[1:-1] == parts


def test_what_stands_between_translations():
    assert sentences.joined(["- ", "Eins.", "\n\n", "Zwei.", ""]) == "- Eins.\n\nZwei."
    assert sentences.joined(["", "It rains.", "", "We go.", ""]) == "It rains. We go."
    assert sentences.joined(["", "下雨。", "", "我们走。", ""]) == "下雨。我们走。"
    assert sentences.joined(["", "", "", "Zwei.", ""]) == "Zwei."
    assert sentences.joined([" "]) == " "


def test_spans(golden):
    text = "  " + golden.texts[0] + "\n\n- " + golden.texts[1] + " " + golden.texts[2] + "\n"
    found = golden.translator.translate_text(text, return_sentences=True)
    translations = golden.translator.translate(golden.texts[:3])
    assert found.text == f"  {translations[0]}\n\n- {translations[1]} {translations[2]}\n"
    assert golden.translator.translate_text(text) == found.text
    for sentence, source, target in zip(found.sentences, golden.texts, translations, strict=False):
        assert text[slice(*sentence.source_span)] == source
        assert found.text[slice(*sentence.target_span)] == target == sentence.translation.text


def test_a_long_sentence_is_cut_and_nothing_is_lost(golden):
    long = ", and ".join(text.rstrip(".") for text in golden.texts * 3) + "."
    found = golden.translator.translate_text(long, return_sentences=True)
    assert len(found.sentences) > 1
    assert not any(sentence.translation.truncated for sentence in found.sentences)
    assert "".join(long[slice(*sentence.source_span)] + " " for sentence in found.sentences).strip() == long


def test_a_text_is_one_string(golden):
    with pytest.raises(TypeError, match=r"`text` must be one string. Received: \['a'\]. For a list"):
        golden.translator.translate_text(["a"])
    with pytest.raises(TypeError, match=r"`text` must be one string. Received: b'<p>'"):
        golden.translator.translate_html(b"<p>")
    for wrong in ({"num_hypotheses": 2}, {"prefixes": ["x"]}):
        with pytest.raises(ValueError, match=r"A whole text has one translation and no prefixes\. Received: "):
            golden.translator.translate_text("a", **wrong)


def test_the_signature_translates_a_text_as_python_does(golden, served):
    long = ", and ".join(golden.texts * 2)
    texts = [" ".join(golden.texts[:3]), "- " + "\n\n- ".join(golden.texts[3:5]) + "\n", "", " \n", long]
    found = served("translate_document", text=np.array([text.encode() for text in texts], object))["translation"]
    assert [text.decode() for text in found] == [golden.translator.translate_text(text) for text in texts]
