"""The files of `examples/`, as a user runs them, print what their docstrings promise."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parents[2] / "examples"


@pytest.fixture
def printed(tmp_path):
    """`printed(name)`: what an example prints, run in an empty folder without arguments."""

    def run(name):
        call = [sys.executable, str(EXAMPLES / f"{name}.py")]
        done = subprocess.run(call, cwd=tmp_path, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        print(done.stdout)
        return done.stdout

    return run


def numbers(pattern, printed):
    return [float(number) for number in re.findall(pattern, printed)]


def test_translation_in_one_file(printed):
    text = printed("translation_in_one_file")
    (bleu,) = numbers(r"BLEU = ([\d.]+)", text)
    assert bleu > 90
    saved_model, device = text.splitlines()[-2:]
    assert saved_model == device


def test_training_from_scratch(printed):
    (bleu,) = numbers(r"BLEU: ([\d.]+)", printed("train_from_scratch"))
    assert bleu > 80


def test_several_directions(printed):
    scores = numbers(r"BLEU of 200 sentences: ([\d.]+)", printed("several_directions"))
    assert len(scores) == 2 and min(scores) > 75


def test_custom_blocks(printed):
    usual, changed = numbers(r"validation loss ([\d.]+)", printed("custom_blocks"))
    assert changed < usual < 2.5


def test_time_series(printed):
    _, last_week, model = numbers(r"mean absolute error, .*: ([\d.]+)", printed("time_series"))
    assert model < 0.85 * last_week
