"""Training that begins with the weights of another run."""

import re
import shutil
from contextlib import suppress

import numpy as np
import pytest
from keras import ops
from trainings import files, fine_tune, phrases

import train_keras
from keras_transformer.commands.train import parse
from keras_transformer.data.corpora import DataError, load_corpus
from keras_transformer.training import checkpoints
from keras_transformer.training.config import ConfigError, RunConfig
from keras_transformer.training.fit import layers_of
from keras_transformer.training.run import Run


def weights_by_part(model):
    parts = {part: layers_of(model, part) for part in ("embeddings", "encoder", "decoder")}
    return {
        part: [ops.convert_to_numpy(w) for layer in dict.fromkeys(layers) for w in layer.weights]
        for part, layers in parts.items()
    }


FREEZE = ["--freeze", "embeddings,encoder", "--dropout", "0.2"]


def test_a_run_begins_with_weights_vocabulary_and_settings_of_another(golden, tmp_path, capsys):
    run_dir, status = fine_tune(golden, tmp_path, *FREEZE, general=phrases()[:16], general_test=phrases()[:16])
    assert status == 0
    run = Run(run_dir)
    config, old = run.config(), Run(golden.run_dir).config()
    assert config.model.hidden_dim == old.model.hidden_dim and config.model.dropout == 0.2 != old.model.dropout
    assert config.peak_learning_rate() == pytest.approx(5e-4 * 128 / 64)
    assert run.tokenizers()[0].tokenize(golden.texts) == golden.tokenizer.tokenize(golden.texts)
    before, after = (weights_by_part(model) for model in (golden.model, run.model()))
    for part, changed in (("embeddings", False), ("encoder", False), ("decoder", True)):
        same = [np.array_equal(a, b) for a, b in zip(before[part], after[part], strict=True)]
        assert not any(same) if changed else all(same), part
    # Before training, the general text is the one that the golden model has learned by heart.
    scores = run.scores()
    assert scores["general_before_training"]["bleu"] > 90 > scores["before_training"]["bleu"]
    assert set(scores) == {f"{x}{when}_training" for x in ("", "general_") for when in ("before", "after")}
    table = capsys.readouterr().out.split("BLEU / chrF")[1].splitlines()
    assert table[0].split() == ["before", "after"] and "val.target" in table[1]
    after = scores["general_after_training"]
    assert f"{after['bleu']:.1f} ± {after['bleu_interval']:.1f} / " in table[2]


def test_low_rank_updates_are_trained_alone_and_saved_as_sums(golden, tmp_path):
    flags = "--lora-rank 2 --freeze embeddings --epochs 1 --dtype mixed_bfloat16"  # The sums are not rounded.
    run_dir, status = fine_tune(golden, tmp_path, *flags.split())
    assert status == 0
    assert Run(run_dir).config().peak_learning_rate() == pytest.approx(1.28 / 64)
    trained = Run(run_dir).model()
    assert [w.path for w in trained.weights] == [w.path for w in golden.model.weights]
    for old, new in zip(golden.model.weights, trained.weights, strict=True):
        change = ops.convert_to_numpy(new) - ops.convert_to_numpy(old)
        rank = np.linalg.matrix_rank(change, tol=1e-5) if new.path.endswith("/kernel") else int(change.any())
        assert rank == (2 if new.path.endswith("/kernel") else 0), new.path
    (checkpoint,) = Run(run_dir).checkpoints()
    with np.load(checkpoint) as file:  # The optimizer has its step, and two moments of each update.
        moments = [name for name in file.files if name.startswith("optimizer/")]
    assert len(moments) == 1 + 2 * 2 * sum(w.path.endswith("/kernel") for w in trained.weights)


@pytest.mark.parametrize("flag", ["--init-from", "--layers-from"])
def test_a_run_that_was_stopped_before_its_first_checkpoint_begins_with_the_same_weights(
    golden, tmp_path, monkeypatch, flag
):
    seen = []

    def stop(checkpoint, logs=None):
        seen.append(checkpoint.model.get_weights())
        raise KeyboardInterrupt

    monkeypatch.setattr(checkpoints.RunCheckpoint, "on_train_begin", stop)
    texts = files(tmp_path, train=phrases()[:20], val=phrases()[20:24])
    names = "num_layers", "num_heads", "hidden_dim", "intermediate_dim"
    sizes = [(f"--{name.replace('_', '-')}", str(golden.model.get_config()[name])) for name in names]
    more = ["--vocabulary-from", str(golden.run_dir), *sum(sizes, ())] if flag == "--layers-from" else []
    run = ["--no-export", "--num-beams", "1", "--run-dir", str(tmp_path / "run")]
    for argv in ([*texts, flag, str(golden.run_dir), *more, *run], [*run, "--resume"]):
        with suppress(KeyboardInterrupt, SystemExit):
            train_keras.main(argv)
    for a, b, c in zip(*seen, golden.model.get_weights(), strict=True):
        np.testing.assert_array_equal(a, c)
        np.testing.assert_array_equal(b, c)


def test_a_run_in_training_gives_its_vocabulary_and_nothing_else(golden, tmp_path):
    begun = tmp_path / "begun"
    shutil.copytree(golden.run_dir, begun, ignore=shutil.ignore_patterns("model.keras", "export", "checkpoints"))
    _, config, *_ = parse(["--vocabulary-from", str(begun), "--run-dir", str(tmp_path / "second")])
    assert config.tokenizer.vocabulary_from == str(begun)
    with pytest.raises(SystemExit, match="2"):
        parse(["--init-from", str(begun), "--run-dir", str(tmp_path / "third")])


def test_what_a_run_was_made_from_is_not_inherited():
    other = RunConfig.make({"vocabulary_from": "runs/x", "shortlist": 500, "num_beams": 2}, vocabulary=RunConfig())
    config = RunConfig.make({"init_from": "runs/y"}, init=other)
    assert (config.tokenizer.vocabulary_from, config.search.shortlist, config.search.num_beams) == (None, 0, 2)


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (["--hidden-dim", "32"], r"`hidden_dim` must be as in the run .*hidden_dim=32 \(the run has 64\)\. Leave out"),
        (["--tokenizer", "bpe"], "`tokenizer` must be as in the run"),
        (["--freeze", "decoder,head"], "`freeze` must be some but not all of embeddings, encoder, decoder"),
        (["--freeze", "embeddings,encoder,decoder"], "`freeze` must be some but not all"),
        (["--lora-rank", "65"], r"`lora_rank` must be at most `hidden_dim`.*lora_rank=65, hidden_dim=64"),
        (["--init-from", "nowhere"], "nowhere is not the folder of a trained run"),
    ],
)
def test_what_does_not_fit_the_weights_is_an_error(golden, tmp_path, capsys, flags, message):
    with pytest.raises(SystemExit, match="2"):
        fine_tune(golden, tmp_path, *flags)
    assert re.search(message, capsys.readouterr().err)


def test_general_text_is_one(tmp_path):
    config = RunConfig.make({"general_test": [["a", "b"], ["c", "d"]]})
    with pytest.raises(DataError, match=r"--general-test names one text\. Received: 2\. Join the files"):
        load_corpus(config.data)
    with pytest.raises(ConfigError, match="`general_weight` must be positive"):
        RunConfig.make({"general_weight": 0.0})
