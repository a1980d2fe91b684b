"""Texts into sentences and back: the vectors of sentences.json.

In tests/integration, test_sentences.py does the same in TensorFlow's graphs, test_web.py in JavaScript, and
test_device_examples.py in Java.
"""

import pytest
from texts import SENTENCES, random_sentences

from keras_transformer.text import sentences


@pytest.mark.parametrize("one", SENTENCES, ids=[one["name"] for one in SENTENCES])
def test_vectors(one):
    parts = sentences.split(one["text"], one.get("language"))
    assert parts[1::2] == one["sentences"]
    assert "".join(parts) == sentences.without_marks(one["text"])


@pytest.mark.parametrize("code", ["de", "DE", "de-AT", "deu", "deu_Latn"])
def test_a_language_has_many_codes(code):
    text = "Am 3. Mai kam der 1. FC Bayern."
    assert sentences.split(text, code) == ["", text, ""] != sentences.split(text, "eng_Latn")


@pytest.mark.parametrize("language", ["en", "de"])
def test_no_character_of_a_text_is_lost(language):
    texts = random_sentences(3000)
    found = [sentences.split(text, language) for text in texts]
    for text, parts in zip(texts, found, strict=True):
        assert "".join(parts) == sentences.without_marks(text)
        assert len(parts) % 2 == 1
        assert all(any(c.isalnum() for c in sentence) for sentence in parts[1::2])


@pytest.mark.parametrize("most", [1, 3, 12])
def test_long_sentences_are_cut(most):
    for text in random_sentences(300, seed=1):
        parts = sentences.fitted(sentences.split(text), lambda x: [len(one) <= most for one in x])
        assert "".join(parts) == sentences.without_marks(text)
        assert all(len(sentences.plain(sentence)) <= most for sentence in parts[1::2])


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
