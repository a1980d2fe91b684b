"""The exports of today in other versions of what runs them, and this package with other versions of Keras.

`pytest -m compat` makes a virtual environment for each, which downloads several GB. docs/deployment.md has the table.
"""

import json
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.compat

ANSWERS, ROOT = Path(__file__).with_name("answers.py"), Path(__file__).parents[2]
# TensorFlow and tensorflow-text of TensorFlow Serving 2.19 and 2.20, the newest release, and of the next one.
SERVERS = (("2.19.1", "2.19.0"), ("2.20.0", "2.20.1"), ("2.21.0", "2.21.1"))
LITERT = {"float32": ("2.0.3", "2.1.6", "2.2.0", "2.3.0"), "int8": ("2.1.6", "2.2.0", "2.3.0")}
# Runs translate with all of them. Training needs 3.15.
KERAS, TRAINS = ("3.13.2", "3.14.1", "3.15.1"), ("3.15.1",)


def environment(folder, *packages):
    """The Python of a new virtual environment with these packages."""
    subprocess.run([sys.executable, "-m", "venv", str(folder)], check=True)
    python = folder / "bin" / "python"
    subprocess.run([str(python), "-m", "pip", "install", "-q", *packages], check=True)
    return python


def answers(python, kind, folder, sentences):
    call = [str(python), str(ANSWERS), kind, str(folder), str(sentences)]
    done = subprocess.run(call, capture_output=True, text=True, timeout=900)
    assert done.returncode == 0, done.stderr[-3000:]
    return json.loads(done.stdout)


def same(found, expected):
    """Whether two values of JSON are equal; floats to 1e-4."""
    if isinstance(expected, dict):
        return found.keys() == expected.keys() and all(same(found[name], expected[name]) for name in expected)
    if isinstance(expected, list):
        return len(found) == len(expected) and all(map(same, found, expected))
    return found == pytest.approx(expected, rel=1e-4, abs=1e-4) if isinstance(expected, float) else found == expected


def different(found, expected):
    """The names of answers that differ."""
    assert found.keys() == expected.keys()
    return [name for name in expected if not same(found[name], expected[name])]


@pytest.fixture(scope="module")
def sentences(origin, tmp_path_factory):
    file = tmp_path_factory.mktemp("texts") / "sentences.json"
    texts = [*origin.texts, "", "Straße 日本 🙂", "I see {name}.", "a dog " * 100, "One. Two! (three)\n\n- four"]
    file.write_text(json.dumps(texts), encoding="utf-8")
    return file


@pytest.mark.parametrize(("tensorflow", "text"), SERVERS)
def test_a_saved_model_in_a_session_of_another_tensorflow(servable, sentences, tmp_path, tensorflow, text):
    python = environment(tmp_path / "env", f"tensorflow=={tensorflow}", f"tensorflow-text=={text}")
    expected = answers(sys.executable, "saved_model", servable, sentences)
    assert len(expected) == 12
    assert different(answers(python, "saved_model", servable, sentences), expected) == []


@pytest.mark.parametrize(
    ("quantize", "version"), [(kind, one) for kind, versions in LITERT.items() for one in versions]
)
def test_a_file_in_another_litert(tflite, sentences, tmp_path, quantize, version):
    python = environment(tmp_path / "env", f"ai-edge-litert=={version}")
    expected = answers(sys.executable, "tflite", tflite / quantize, sentences)
    assert different(answers(python, "tflite", tflite / quantize, sentences), expected) == []


@pytest.mark.parametrize("version", KERAS)
def test_a_run_in_another_keras(golden, tmp_path, version):
    """It translates with the same scores, and trains if this Keras can."""
    packages = [
        "tensorflow==2.21.0",
        "tensorflow-text==2.21.1",
        "regex",
        "sacrebleu",
        "sentencepiece",
        "tensorboard",
        "tqdm",
    ]
    python = environment(tmp_path / "env", f"keras=={version}", *packages)
    texts = [str(tmp_path / side) for side in ("texts", "translations")]
    for path, lines in zip(texts, (golden.texts, golden.translator.translate(golden.texts)), strict=True):
        Path(path).write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")

    def command(python, *arguments):
        call = [str(python), "-m", "keras_transformer", *arguments]
        done = subprocess.run(call, capture_output=True, text=True, timeout=900, cwd=ROOT)
        assert done.returncode == 0, done.stderr[-3000:]
        return [line.split("\t") for line in done.stdout.splitlines()]

    translate = ["translate", str(golden.run_dir), "--scores", "--input", texts[0]]
    found, expected = command(python, *translate), command(sys.executable, *translate)
    assert [text for _, text in found] == [text for _, text in expected]
    assert [float(score) for score, _ in found] == pytest.approx([float(score) for score, _ in expected], abs=2e-4)
    if version in TRAINS:
        flags = ["--epochs", "1", "--steps-per-epoch", "3", "--no-export", "--run-dir", str(tmp_path / "run")]
        command(python, "train", "--init-from", str(golden.run_dir), "--train", *texts, "--val", *texts, *flags)
