"""Texts into sentences and back: the vectors of sentences.json, in Python and in a graph.

tests/integration/test_web.py runs the same vectors in JavaScript.
"""

import pytest
import tensorflow as tf
from texts import LANGUAGES, SENTENCES, random_sentences

from keras_transformer import sentences


def in_graph(texts, language=None):
    rows = tf.function(lambda x: sentences.graph_split(x, language))(tf.constant(texts, tf.string, [len(texts)]))
    return [[part.decode() for part in row.numpy()] for row in rows]


@pytest.mark.parametrize("one", SENTENCES, ids=[one["name"] for one in SENTENCES])
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
    texts = [one["text"] for one in SENTENCES if one.get("language", "") == language]
    assert in_graph(texts, language) == [sentences.split(text, language) for text in texts]


@pytest.mark.parametrize("language", ["en", "de"])
def test_no_character_of_a_text_is_lost(language):
    texts = random_sentences(3000)
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
    texts = random_sentences(300, seed=1)
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
