"""Texts into sentences and back in a graph, as in Python."""

import pytest
import tensorflow as tf
from texts import LANGUAGES, SENTENCES, random_sentences

from keras_transformer.text import graph, placeholders, sentences


def in_graph(texts, language=None):
    rows = tf.function(lambda x: graph.graph_split(x, language))(tf.constant(texts, tf.string, [len(texts)]))
    return [[part.decode() for part in row.numpy()] for row in rows]


@pytest.mark.parametrize("language", LANGUAGES)
def test_vectors_in_a_graph(language):
    texts = [one["text"] for one in SENTENCES if one.get("language", "") == language]
    assert in_graph(texts, language) == [sentences.split(text, language) for text in texts]


@pytest.mark.parametrize("language", ["en", "de"])
def test_random_texts_in_a_graph(language):
    texts = random_sentences(3000)
    assert in_graph(texts, language) == [sentences.split(text, language) for text in texts]


def test_bytes_that_are_not_utf_8_are_split_in_a_graph():
    assert in_graph([b"caf\xe9. \xff Ja.", b""]) == [["", "caf\ufffd.", " ", "\ufffd Ja.", ""], [""]]


def test_no_text_at_all_is_split_in_a_graph():
    assert in_graph([]) == []


@pytest.mark.parametrize("most", [1, 3, 12])
def test_long_sentences_are_cut_and_joined_in_a_graph(most):
    texts = random_sentences(300, seed=1)
    parts = [sentences.fitted(sentences.split(text), lambda x: [len(one) <= most for one in x]) for text in texts]
    found = graph.graph_fitted(
        graph.graph_split(tf.constant(texts)), lambda x: tf.strings.length(x, unit="UTF8_CHAR") <= most
    )
    assert [[part.decode() for part in row.numpy()] for row in found] == parts
    # Joined again around other sentences.
    translated = [["<" + x + ">." if i % 2 else x for i, x in enumerate(row)] for row in parts]
    flat = [x for row in translated for x in row[1::2]]
    joined = graph.graph_joined(found, tf.constant(flat)).numpy()
    assert [text.decode() for text in joined] == [sentences.joined(row) for row in translated]


def test_sentences_and_placeholders_are_cut_at_the_same_mark():
    """`graph` cuts both in one place; their modules are copied alone, so each declares it."""
    assert sentences.CUT == placeholders.CUT
