"""What must not change in a translation: a graph finds and restores the same parts as Python."""

import numpy as np
import pytest
import tensorflow as tf
from texts import PARTS, TOUCHING, random_parts, worded

from keras_transformer.text import graph, placeholders
from keras_transformer.text.placeholders import protect, protect_target, restored
from keras_transformer.text.special_ids import FIRST_PLACEHOLDER_ID
from keras_transformer.text.tokenizer import Tokenizer


def test_the_graph_does_the_same():
    texts = random_parts(3000) + [text for text, _, _ in PARTS]
    others = random_parts(len(texts), seed=1)
    others = [a if i % 2 else f"{b} {a}" for i, (a, b) in enumerate(zip(others, texts, strict=True))]

    @tf.function
    def in_a_graph(texts, others):
        masked, parts = graph.graph_protect(texts)
        target = graph.graph_protect_target(others, parts)
        whole = graph.graph_restored(masked, parts, masked)
        return (
            masked,
            parts,
            target,
            whole,
            graph.graph_restored(target, parts, masked),
            graph.graph_has_words(masked),
        )

    found = [x.numpy() for x in in_a_graph(tf.constant(texts), tf.constant(others))]
    for text, other, *row in zip(texts, others, *found, strict=True):
        *strings, has_words = [[x.decode() for x in one] if isinstance(one, np.ndarray) else one for one in row]
        mine = protect(text)
        target = protect_target(other, mine.parts)
        assert strings[0].decode() == mine.text
        assert strings[1] == [*mine.parts, *[""] * (8 - len(mine.parts))]
        assert strings[2].decode() == target
        assert strings[3].decode() == restored(*mine, source=mine.text)
        assert strings[4].decode() == restored(target, mine.parts, source=mine.text)
        assert has_words == placeholders.has_words(mine.text)


@pytest.mark.parametrize(("source", "translation", "wanted"), TOUCHING)
def test_a_part_does_not_touch_what_it_did_not_touch_in_the_source(source, translation, wanted):
    text = protect(source).text
    found = graph.graph_restored(tf.constant([translation]), graph.graph_protect([source])[1], [text])
    assert found.numpy()[0].decode() == wanted


@pytest.mark.parametrize("kind", ["unigram", "bpe"])
def test_tokenizers(kind):
    tokenizer = Tokenizer.train([text for pair in worded() for text in pair], None, kind, num_placeholders=8)
    assert tokenizer.num_placeholders == 8
    texts = ["the ⟦0⟧ sees ⟦7⟧.", "(⟦3⟧)⟦4⟧", "⟦8⟧", "a⟦1⟧b", "⟦"]
    ids = tokenizer.tokenize(texts)
    assert tokenizer.graph_tokenize(texts).to_list() == ids
    found = [[i - FIRST_PLACEHOLDER_ID for i in row if 0 <= i - FIRST_PLACEHOLDER_ID < 8] for row in ids]
    assert found == [[0, 7], [3, 4], [], [1], []]
    assert tokenizer.detokenize(ids)[0] == texts[0]
    if kind == "unigram":
        assert tokenizer.sample(texts[:2], 0.5, 0)[1] == ids[1]
    again = Tokenizer.train(["a b"] * 9, None)
    assert again.num_placeholders == 0
    with pytest.raises(ValueError, match="WordPiece has no placeholders"):
        Tokenizer.train(["a b"], None, "wordpiece", num_placeholders=8)


def test_the_rules_fit_into_the_memory_of_re2(capfd):
    """TensorFlow's RE2 takes a slow way for a pattern that is too large, and prints a line for each text.

    A bounded repetition such as `\\p{L}{1,64}` makes a pattern 64 times as large.
    """
    graph.graph_protect(
        tf.constant(["My sister is buying {count} coats for 5 kg at https://x.org and in Aachen: %d%%."])
    )
    assert "out of memory" not in capfd.readouterr().err
