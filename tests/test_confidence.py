"""How likely words are right: the alignment with a reference, the calibration, and what translators do with it."""

import numpy as np
import pytest

from keras_transformer import Transformer, Translator
from keras_transformer.__main__ import main
from keras_transformer.confidence import (
    Calibration,
    CalibrationError,
    calibration_error,
    ranking,
    right_words,
    word_log_probs,
)
from keras_transformer.markup import token_spans
from keras_transformer.runs import Run
from keras_transformer.tokenizers import END_TOKEN_ID

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


def test_confidences_of_translations(golden):
    translator = Translator(golden.model, golden.tokenizer, jit_compile=False)
    with pytest.raises(ValueError, match="Confidences need a calibration"):
        translator.translate(golden.texts, return_confidence=True)
    translator.calibration = CALIBRATION
    texts = [golden.texts[0], "", "{x}", f"{golden.texts[1]} {{x}}"]
    rows = translator.translate(texts, num_hypotheses=2, return_confidence=True)
    scores = translator.score(texts[:1], [rows[0][0].text])[0]
    words = rows[0][0].confidence.words
    assert [rows[0][0].text[i:j] for i, j, _ in words] == rows[0][0].text.rstrip(".!?").replace(",", "").split()
    assert rows[0][0].confidence.sentence == pytest.approx(np.mean([c for _, _, c in words]))
    spans = token_spans(golden.tokenizer, rows[0][0].token_ids[:-1], rows[0][0].text)
    log_probs = [x for _, _, x in word_log_probs(rows[0][0].text, spans, scores.token_log_probs)]
    assert CALIBRATION(log_probs) == pytest.approx([c for _, _, c in words], abs=1e-4)
    assert [row[0].confidence for row in rows[1:3]] == [(1.0, []), (1.0, [])]
    assert all(row.confidence for row in rows[3])


def test_an_empty_translation_has_no_words(golden):
    """Also of a text with words: the end token comes first."""
    sizes = {"num_layers": 1, "num_heads": 1, "hidden_dim": 8, "intermediate_dim": 8}
    model = Transformer(golden.tokenizer.vocabulary_size, **sizes, output_bias=True)
    (bias,) = [weight for weight in model.weights if weight.name == "output_bias"]
    bias.assign(np.where(np.arange(bias.shape[0]) == END_TOKEN_ID, 100.0, 0.0))
    translator = Translator(model, golden.tokenizer, jit_compile=False)
    translator.calibration = CALIBRATION
    (found,) = translator.translate(golden.texts[:1], return_confidence=True)
    assert (found.text, found.token_ids, found.confidence) == ("", (END_TOKEN_ID,), (1.0, []))
    assert translator.judged_words(golden.texts[:1], ["a"]) == ([], [])


def test_wrong_words_are_less_sure(golden):
    """References with wrong words: the golden model is sure of all words, and some are wrong."""
    translator = Translator(golden.model, golden.tokenizer, jit_compile=False)
    references = translator.translate(golden.texts)
    sources = [*golden.texts, *(text[::-1] for text in golden.texts)]  # Backwards, they are no sentences.
    calibration = translator.calibrate(sources, references * 2)
    assert translator.calibration == calibration and 0.4 < calibration.right < 0.9
    log_probs, right = translator.judged_words(sources, references * 2)
    assert ranking(calibration(log_probs), right) > 0.8
    with pytest.raises(ValueError, match="must have the same length"):
        translator.calibrate(sources, references)


def test_a_run_keeps_its_calibration(golden, tmp_path, capsys):
    run = tmp_path / "run"
    run.mkdir()
    for path in golden.run_dir.iterdir():
        if path.name != "confidence.json":  # Some processors learn the text by heart; then there is none.
            (run / path.name).symlink_to(path)
    assert Translator.load(run).calibration is None
    reference = tmp_path / "reference"
    translations = golden.translator.translate(golden.texts)
    reference.write_text("\n".join([*translations[:8], *translations[:8]]) + "\n")  # The second half is wrong.
    (tmp_path / "source").write_text("\n".join(golden.texts) + "\n")
    files = ["--source", str(tmp_path / "source"), "--reference", str(reference)]
    assert main(["score", str(run), *files, "--calibrate"]) == 0
    assert "right, " in (told := capsys.readouterr().out) and "ranking (AUC)" in told
    assert Run(run).calibration() == Translator.load(run).calibration != None  # noqa: E711
    assert main(["translate", str(run), "--input", str(tmp_path / "source"), "--confidence"]) == 0
    rows = [line.split("\t") for line in capsys.readouterr().out.splitlines()]
    assert all(0 < float(number) < 1 for number, _ in rows) and len(rows) == len(golden.texts)
    (run / "confidence.json").write_text('{"a": 1}')
    with pytest.raises(ValueError, match=r"confidence.json is not what a run writes: it needs a, b, d"):
        Run(run).calibration()
