"""Promises that hold end to end, through the public API, on a tiny trained model; and the contract of every layer."""

import keras
import numpy as np
import pytest

trained = pytest.mark.skipif(keras.backend.backend() != "tensorflow", reason="trained and exported on TensorFlow")

# A sentence of the training text and the exact translation that every way to translate must give.
SENTENCE, TRANSLATION = "Tomorrow I have to invite the doctor.", "Morgen muss ich den Arzt einladen."


@trained
@pytest.mark.parametrize("num_beams", [1, 4])
def test_the_golden_sentence_by_search(golden, num_beams):
    assert golden.translator.translate([SENTENCE], num_beams=num_beams) == [TRANSLATION]


@trained
def test_other_texts_in_the_batch_never_change_a_translation(golden):
    """A sentence gets the same translation and score alone and in a batch with longer ones, where it is padded."""
    alone = golden.translator.translate([SENTENCE], return_scores=True)[0]
    long = " ".join(golden.texts)
    together = golden.translator.translate([long, SENTENCE, "", long], return_scores=True)[1]
    assert together.text == alone.text
    np.testing.assert_allclose(together.score, alone.score, rtol=1e-4)


@trained
@pytest.mark.parametrize(
    "texts",
    [[], [""], ["", ""], ["a"], ["one"], ["word " * 500], ["?!"], ["\n"], ["😀"], ["\x00"], ["\u202eabc"]],
    ids=repr,
)
def test_odd_texts_get_one_string_each(golden, texts):
    translations = golden.translator.translate(texts, return_scores=True)
    assert len(translations) == len(texts)
    assert all(isinstance(translation.text, str) for translation in translations)
