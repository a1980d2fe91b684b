"""How likely words are right: the alignment with a reference, the calibration, and what translators do with it."""

import numpy as np
import pytest

from keras_transformer import Transformer, Translator
from keras_transformer.text.confidence import (
    Calibration,
    CalibrationError,
    calibration_error,
    ranking,
    right_words,
    word_log_probs,
)
from keras_transformer.text.special_ids import END_TOKEN_ID
from keras_transformer.text.tokenizer import Tokenizer
from keras_transformer.translation.learning import judged_words

CALIBRATION = Calibration(a=0.7, b=1.0, d=-1.0, num_words=10, right=0.5)


def generated(count=20_000, seed=0):
    """Log probabilities, and words that are right as often as another calibration says."""
    rng = np.random.default_rng(seed)
    log_probs = np.log(rng.uniform(0.01, 0.999, count))
    return log_probs, rng.uniform(size=count) < CALIBRATION(log_probs)


def test_a_calibration_finds_how_often_words_are_right():
    log_probs, right = generated()
    found = Calibration.fit(log_probs, right)
    assert np.allclose(found[:3], CALIBRATION[:3], atol=0.1)
    assert (found.num_words, found.right) == (20_000, right.mean())
    assert calibration_error(found(log_probs), right) < 0.02 < calibration_error(np.exp(log_probs), right)
    assert abs(found(log_probs).mean() - right.mean()) < 1e-3


@pytest.mark.parametrize("log_prob", [0.0, -1e-12, -50.0, -np.inf])
def test_a_confidence_is_a_probability(log_prob):
    assert 0 < CALIBRATION([log_prob])[0] < 1
    assert np.isfinite(Calibration.fit([log_prob, log_prob, -1.0, -1.0], [1, 0, 1, 0])(log_prob)).all()


def test_a_more_probable_word_is_never_less_likely_to_be_right():
    generator, probs = np.random.default_rng(0), np.linspace(0.001, 0.999, 99)
    for _ in range(50):
        log_probs, right = np.log(generator.uniform(size=8)), generator.permutation([1, 1, 1, 0, 0, 0, 1, 0])
        found = Calibration.fit(log_probs, right)
        assert found.a >= 0 and found.b >= 0 and (np.diff(found(np.log(probs))) >= 0).all()


@pytest.mark.parametrize("right", [[1, 1], [0, 0], []])
def test_a_calibration_needs_both_kinds(right):
    with pytest.raises(CalibrationError, match=f"and words that are wrong. Received: {len(right)} words"):
        Calibration.fit(np.full(len(right), -1.0), right)


@pytest.mark.parametrize(
    ("text", "reference", "wanted"),
    [
        ("a b c", "a b c", [1, 1, 1]),
        ("a b c", "a x c", [1, 0, 1]),
        ("a b c", "b c", [0, 1, 1]),
        ("c a b", "a b c", [0, 1, 1]),  # Only words in the same order.
        ("a a", "a", [1, 0]),
        ("a", "", [0]),
        ("", "a", []),
        ("Don't, Ü-Wagen!", "don't Ü-Wagen", [0, 1]),
    ],
)
def test_right_words(text, reference, wanted):
    found = right_words(text, reference)
    assert sum(found) == sum(wanted) if text == "a a" else found == [bool(x) for x in wanted]


def test_ranking_counts_pairs():
    rng = np.random.default_rng(0)
    confidences, right = rng.integers(0, 6, 40) / 5, rng.integers(0, 2, 40) > 0
    pairs = [(a > b) + (a == b) / 2 for a in confidences[right] for b in confidences[~right]]
    assert ranking(confidences, right) == pytest.approx(np.mean(pairs))


def test_a_word_has_the_log_probability_of_its_tokens():
    text = "Ein Boot, ja."
    spans = [(0, 3), (3, 6), (6, 8), (8, 9), (9, 12), (12, 13)]
    found = word_log_probs(text, spans, [-1.0, -2.0, -3.0, -4.0, -5.0, -6.0])
    assert found == [(0, 3, -1.0), (4, 8, -5.0), (10, 12, -5.0)]
    assert word_log_probs("Ein", [], []) == []


def test_an_empty_translation_has_no_words():
    """Also of a text with words: the end token comes first."""
    tokenizer = Tokenizer.train(["a small dog", "a small cat", "a big dog"] * 9, vocabulary_size=17)
    sizes = {"num_layers": 1, "num_heads": 1, "hidden_dim": 8, "intermediate_dim": 8}
    model = Transformer(17, **sizes, output_bias=True)
    (bias,) = [weight for weight in model.weights if weight.name == "output_bias"]
    bias.assign(np.where(np.arange(17) == END_TOKEN_ID, 100.0, 0.0))
    translator = Translator(model, tokenizer, num_beams=1, jit_compile=False)
    translator.calibration = CALIBRATION
    (found,) = translator.translate(["a small dog"], return_confidence=True)
    assert (found.text, found.token_ids, found.confidence) == ("", (END_TOKEN_ID,), (1.0, []))
    assert judged_words(translator, ["a small dog"], ["a"]) == ([], [])
