"""From teacher to student: the teacher's text, the student's weights and loss, and the command."""

import json
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from arrays import checkpoint_arrays
from trainings import STUDENT, phrases, side_by_side

from keras_transformer.__main__ import main
from keras_transformer.training.run import Run
from keras_transformer.translation.translator import Translator

# The command.


@pytest.fixture(scope="module")
def text(tmp_path_factory):
    """Files of a text to translate and of its references."""
    return side_by_side(tmp_path_factory.mktemp("text"), "text", phrases()[:30])


def test_distill_backward_makes_tagged_sources_for_the_other_direction(golden, text, tmp_path):
    argv = ["distill", str(golden.run_dir), "--source", text[0], "--run-dir", str(tmp_path / "run")]
    argv += ["--direction", "backward", "--vocabulary-size", "200", "--no-export", *STUDENT, "--epochs", "1"]
    assert main(argv) == 0
    config = Run(tmp_path / "run").config()
    assert (config.data.source_language, config.data.target_language) == ("de", "en")
    assert config.tokenizer.vocabulary_from is None and config.tokenizer.vocabulary_size == 200
    (pairs,) = (tmp_path / "run-text").glob("pairs-best-*")
    sides = [(pairs / f"train.{side}").read_text().splitlines() for side in ("source", "target")]
    assert all(source.startswith("<BT> ") for source in sides[0])
    assert set(sides[1]) <= set(Path(text[0]).read_text().splitlines())
    real = [(pairs / f"real.{side}").read_text().splitlines()[0] for side in ("source", "target")]
    assert tuple(real) == phrases()[0][::-1]


def test_a_teacher_of_several_directions_has_students_of_one(two_way, tmp_path, capsys):
    argv = ["distill", str(two_way.run_dir), "--run-dir", str(tmp_path / "run"), "--target-language", "en"]
    argv += [*STUDENT, "--epochs", "1", "--num-beams", "1", "--real-weight", "0", "--no-export"]
    assert main(argv) == 0
    config = Run(tmp_path / "run").config()
    assert config.data.all_directions() == ["de-en"] and len(config.data.train) == 1
    (pairs,) = (tmp_path / "run-text").glob("pairs-best-*")
    german = (pairs / "train.source").read_text(encoding="utf-8").splitlines()
    english = (pairs / "train.target").read_text(encoding="utf-8").splitlines()
    known = {de: en for en, de in two_way.texts}
    assert all(known.get(de, en) == en for de, en in zip(german, english, strict=True))
    assert Translator.load(tmp_path / "run").codec.target_language == "en"
    with pytest.raises(SystemExit, match="2"):
        main([*argv[:4], "--target-language", "fr"])
    assert "--target-language must be one of de, en. Received: fr" in capsys.readouterr().err


def test_a_kill_in_each_phase_changes_nothing(golden, text, tmp_path):
    """Of the translations, the training and the exports: `--resume` ends with the same text and weights."""
    flags = ["--source", text[0], "--reference", text[1], *STUDENT, "--num-beams", "1"]
    call = [sys.executable, "-m", "keras_transformer", "distill", str(golden.run_dir), *flags]
    whole, killed = tmp_path / "whole", tmp_path / "killed"
    assert subprocess.run([*call, "--run-dir", str(whole), "--no-export"], timeout=600).returncode == 0
    marks = (
        tmp_path / "killed-text" / "settings.json",
        killed / "checkpoints" / "epoch-00001.npz",
        killed / "export" / "saved_model",
    )
    for mark in marks:
        process = subprocess.Popen([*call, "--run-dir", str(killed), "--resume"])
        while not mark.exists() and process.poll() is None:
            time.sleep(0.02)
        process.send_signal(signal.SIGKILL)
        process.wait()
    assert subprocess.run([*call, "--run-dir", str(killed), "--resume"], timeout=600).returncode == 0
    files = [path.relative_to(tmp_path / "whole-text") for path in (tmp_path / "whole-text").rglob("*.*")]
    for name in (name for name in files if (tmp_path / "whole-text" / name).is_file()):
        assert (tmp_path / "whole-text" / name).read_bytes() == (tmp_path / "killed-text" / name).read_bytes(), name
    arrays = [checkpoint_arrays(run, 2) for run in (whole, killed)]
    assert arrays[0].keys() == arrays[1].keys()
    for name, array in arrays[0].items():
        np.testing.assert_array_equal(array, arrays[1][name], err_msg=name)
    rows = json.loads((killed / "report" / "report.json").read_text())
    assert [row["run"] for row in rows] == ["run"] * 4 + ["killed"] * 4
    files = {path.name for path in (killed / "report").iterdir()}
    assert files == {"report.md", "report.json", "report.png", "export.json"}
    assert {path.name for path in (killed / "export").iterdir()} == {"saved_model", "tflite", "tflite-int8"}
