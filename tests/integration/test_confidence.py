"""How likely words are right: the alignment with a reference, the calibration, and what translators do with it."""

import dataclasses

import numpy as np
import pytest

from keras_transformer import Translator
from keras_transformer.__main__ import main
from keras_transformer.files import write_json
from keras_transformer.text.confidence import (
    Calibration,
    ranking,
    word_log_probs,
)
from keras_transformer.training.run import Run
from keras_transformer.translation.documents import token_spans
from keras_transformer.translation.learning import calibrate, judged_words

CALIBRATION = Calibration(a=0.7, b=1.0, d=-1.0, num_words=10, right=0.5)


@pytest.fixture
def translator(golden, monkeypatch):
    """That of the golden run; its calibration is for one test."""
    monkeypatch.setattr(golden.translator, "calibration", None)
    return golden.translator


def test_confidences_of_translations(golden, translator):
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


def test_wrong_words_are_less_sure(golden, translator):
    """References with wrong words: the golden model is sure of all words, and some are wrong."""
    references = translator.translate(golden.texts)
    sources = [*golden.texts, *(text[::-1] for text in golden.texts)]  # Backwards, they are no sentences.
    calibration = calibrate(translator, sources, references * 2)
    assert translator.calibration == calibration and 0.4 < calibration.right < 0.9
    log_probs, right = judged_words(translator, sources, references * 2)
    assert ranking(calibration(log_probs), right) > 0.8
    with pytest.raises(ValueError, match="must have the same length"):
        calibrate(translator, sources, references)


def test_a_run_keeps_its_calibration(golden, tmp_path, capsys):
    run = tmp_path / "run"
    run.mkdir()
    for path in golden.run_dir.iterdir():
        (run / path.name).symlink_to(path)
    config = Run(run).config()
    config = dataclasses.replace(config, search=config.search.replace(num_beams=1))
    (run / "config.json").unlink()  # The link.
    write_json(run / "config.json", config.to_dict())
    assert golden.translator.calibration is None  # It was loaded from such a run.
    reference = tmp_path / "reference"
    translations = golden.translator.translate(golden.texts, num_beams=1)
    reference.write_text("\n".join([*translations[:8], *translations[:8]]) + "\n")  # The second half is wrong.
    (tmp_path / "source").write_text("\n".join(golden.texts) + "\n")
    files = ["--source", str(tmp_path / "source"), "--reference", str(reference)]
    assert main(["score", str(run), *files, "--calibrate"]) == 0
    assert "confidence: fitted to" in (told := capsys.readouterr().out) and "AUC" not in told  # Of the same words.
    assert main(["score", str(run), *files]) == 0
    assert "right, " in (told := capsys.readouterr().out) and "ranking (AUC)" in told
    (tmp_path / "right").write_text("\n".join(translations) + "\n")
    assert main(["score", str(run), *files[:3], str(tmp_path / "right")]) == 0  # Without a word to tell apart.
    assert "AUC" not in capsys.readouterr().out
    assert Run(run).calibration() == Translator.load(run).calibration != None  # noqa: E711
    assert main(["translate", str(run), "--input", str(tmp_path / "source"), "--confidence"]) == 0
    rows = [line.split("\t") for line in capsys.readouterr().out.splitlines()]
    assert all(0 < float(number) < 1 for number, _ in rows) and len(rows) == len(golden.texts)
    (run / "confidence.json").write_text('{"a": 1}')
    with pytest.raises(ValueError, match=r"confidence.json is not what a run writes: it needs a, b, d"):
        Run(run).calibration()
