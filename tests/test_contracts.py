"""What must hold from end to end, through the public API, on one tiny model that is really trained."""

import subprocess
import sys

import numpy as np
import pytest
import tensorflow as tf

import keras_transformer as kt

# A sentence of the training text and its literal translation, asserted through every route.
SENTENCE, TRANSLATION = "Tomorrow I have to invite the doctor.", "Morgen muss ich den Arzt einladen."


@pytest.mark.parametrize("num_beams", [1, 4])
def test_the_golden_sentence_by_search(golden, num_beams):
    assert golden.translator.translate([SENTENCE], num_beams=num_beams) == [TRANSLATION]


def test_the_golden_sentence_in_a_fresh_process(golden):
    code = (
        f"import keras_transformer as kt; print(kt.Translator.load({str(golden.run_dir)!r}).translate([{SENTENCE!r}]))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == repr([TRANSLATION])


def test_the_golden_sentence_by_saved_model(golden):
    loaded = tf.saved_model.load(str(golden.run_dir / "export" / "saved_model" / "1"))
    answer = loaded.signatures["serving_default"](text=tf.constant([SENTENCE]))
    assert answer["translation"].numpy()[0].decode() == TRANSLATION


def test_company_never_changes_a_translation(golden):
    """A sentence gets the same translation and score alone, and beside longer ones that make it be padded."""
    alone = golden.translator.translate([SENTENCE], return_scores=True)[0]
    long = " ".join(golden.texts)
    together = golden.translator.translate([long, SENTENCE, "", long], return_scores=True)[1]
    assert together.text == alone.text
    np.testing.assert_allclose(together.score, alone.score, rtol=1e-4)


@pytest.mark.parametrize(
    "texts",
    [[], [""], ["", ""], ["a"], ["one"], ["word " * 500], ["?!"], ["\n"], ["😀"], ["\x00"], ["\u202eabc"]],
    ids=repr,
)
def test_odd_texts_get_one_string_each(golden, texts):
    found = golden.translator.translate(texts)
    assert len(found) == len(texts)
    assert all(isinstance(text, str) for text in found)


def test_public_names_are_what_the_package_says():
    assert all(hasattr(kt, name) for name in kt.__all__)
    with pytest.raises(AttributeError, match="has no attribute 'Transformers'"):
        _ = kt.Transformers
