"""The files of `examples/` run and do what they say, with less text and fewer epochs; tests/slow has their defaults."""

import itertools
import re
import runpy
import sys
from pathlib import Path

import hub as hubs
import keras
import pytest
import sacrebleu
from texts import worded
from trainings import phrases, side_by_side

from keras_transformer.text.tokenizer import Tokenizer
from keras_transformer.training.run import Run
from keras_transformer.translation.translator import Translator

EXAMPLES = Path(__file__).parents[2] / "examples"


@pytest.fixture
def run(tmp_path, monkeypatch, capsys):
    """`run(name, *flags)` runs an example in an empty folder; what it printed, and its variables."""
    (tmp_path / "empty").mkdir()
    monkeypatch.chdir(tmp_path / "empty")
    for name in ("COMPILE_AFTER", "COMPILE_AFTER_IDLE"):  # Nothing is compiled while tests run.
        monkeypatch.setattr(f"keras_transformer.translation.batched_search.{name}", 1000.0)

    def run(name, *flags):
        monkeypatch.setattr(sys, "argv", [name, *map(str, flags)])
        variables = runpy.run_path(str(EXAMPLES / f"{name}.py"), run_name="__main__")
        return capsys.readouterr().out, variables

    return run


def numbers(pattern, printed):
    return [float(number) for number in re.findall(pattern, printed)]


@pytest.mark.parametrize("path", sorted(EXAMPLES.glob("*.py")), ids=lambda path: path.name)
def test_an_example_is_short(path):
    limit = 250 if path.name == "translation_in_one_file.py" else 80
    assert len(path.read_text(encoding="utf-8").splitlines()) < limit


def test_a_translator_is_trained_from_two_text_files(run, tmp_path):
    text = side_by_side(tmp_path, "text", worded())  # Of its pairs, 141 are different.
    printed, variables = run("train_from_scratch", "--train", *text, "--epochs", 5)
    assert "127 pairs to train with, 14 held out" in printed
    first, *_, last = numbers(r"val_perplexity: ([\d.]+)", printed)
    assert last < first / 2
    references = [reference for _, reference in variables["held_out"]]
    bleu = sacrebleu.corpus_bleu(variables["translations"], [references]).score
    assert f"BLEU: {bleu:.1f}\n" in printed
    saved = Translator(keras.saving.load_model("translator.keras"), Tokenizer.load("translator"), jit_compile=False)
    sources, translations = zip(*re.findall(r"^(.+)\n    (.+)$", printed, re.MULTILINE), strict=True)
    assert len(sources) == 3 and saved.translate(sources) == list(translations)


def test_one_model_translates_in_several_directions(run, tmp_path):
    english, german = side_by_side(tmp_path, "text", worded(), ("en", "de"))
    flags = ["--train", english, german, "en-de", "--train", german, english, "de-en"]
    printed, variables = run("several_directions", *flags, "--epochs", 5)
    assert "tags: {'de': 4, 'en': 5}" in printed
    assert re.findall(r"^(.*): .* -> .*$", printed, re.MULTILINE)[-2:] == ["en-de", "de-en"]
    first, *_, last = numbers(r" perplexity: ([\d.]+)", printed)
    assert last < first / 2
    assert len(numbers(r"BLEU of 14 sentences: ([\d.]+)", printed)) == 2
    sources, _ = zip(*variables["held_out"]["de-en"], strict=True)
    saved = Translator(keras.saving.load_model("directions.keras"), Tokenizer.load("directions"), jit_compile=False)
    assert saved.translate(sources, target_language="en") == variables["translations"]


def test_blocks_get_other_parts(run):
    printed, variables = run("custom_blocks", "--epochs", 1)  # It compares cached search and full pass itself.
    rows = re.findall(r"^(\w+): ([\d,]+) weights, validation loss ([\d.]+)$", printed, re.MULTILINE)
    assert [name for name, *_ in rows] == ["Transformer", "GatedTransformer"]
    usual, changed = (int(count.replace(",", "")) for _, count, _ in rows)
    assert abs(usual - changed) < 0.01 * usual
    assert all(2 < float(loss) < 5 for *_, loss in rows)
    loaded = variables["translator"].model
    parts = {type(layer).__name__ for block in loaded.decoder_blocks for layer in block._flatten_layers()}
    assert {"SwiGLU", "RMSNormalization"} < parts and "LayerNormalization" not in parts
    assert printed.count(" -> ") == 3


def test_a_forecast_is_better_than_naive_ones(run):
    printed, _ = run("time_series", "--epochs", 5)
    last_day, last_week, model = numbers(r"mean absolute error, .*: ([\d.]+)", printed)
    assert model < 0.9 * last_week < last_day


# Fine-tuning.


def test_a_run_is_fine_tuned_by_low_rank_updates(golden, run, tmp_path):
    known = itertools.permutations(phrases()[:16], 2)
    text = side_by_side(tmp_path, "text", [(f"{a} {b}", f"{c} {d}".lower()) for (a, c), (b, d) in known])
    flags = ["--model", golden.run_dir, "--train", *text, "--lora-rank", 4, "--epochs", 10]
    printed, variables = run("fine_tune_a_public_model", *flags)
    before, after = numbers(r"BLEU of 24 held-out sentences (?:before|after): ([\d.]+)", printed)
    assert after > before + 10
    tuned = Translator.load("runs/fine-tuned", jit_compile=False)
    sources = list(variables["sources"])[:4]
    assert tuned.translate(sources) == variables["translator"].translate(sources)
    assert tuned.model.count_params() == golden.model.count_params()
    assert Run("runs/fine-tuned").made_from()[-1] == {"name": "text.source", "license": None}
    with pytest.raises(SystemExit, match="2"):
        run("fine_tune_a_public_model", *flags)


def test_a_model_of_the_hub_is_fine_tuned_by_its_name(run, tmp_path, monkeypatch):
    pytest.importorskip("transformers")
    from public_models import transformers_folder

    transformers_folder(tmp_path / "model")
    text, name = side_by_side(tmp_path, "text", phrases()[:40]), "Helsinki-NLP/opus-mt-en-de"
    with hubs.running() as server:
        hubs.use(monkeypatch, server.url, tmp_path / "cache")
        server.repositories[name] = {path.name: path.read_bytes() for path in (tmp_path / "model").iterdir()}
        printed, _ = run("fine_tune_a_public_model", "--train", *text, "--epochs", 2)
        origin = f"{name}@{server.commit(name)}"
    first, last = numbers(r"loss: ([\d.]+)", printed)
    assert last < first
    assert [one["name"] for one in Run("runs/fine-tuned").made_from()] == [origin, "text.source"]
    old, new = Run("runs/opus-mt-en-de").model(), Run("runs/fine-tuned").model()
    changed = [(a.numpy() != b.numpy()).any() for a, b in zip(old.weights, new.weights, strict=True)]
    frozen = [weight.path.startswith("embedding/") for weight in new.weights]
    assert changed == [not one for one in frozen]
