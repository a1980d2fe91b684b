"""Checkpoints, and resuming from them, with a model that is small enough to train in a test."""

import errno
import json
import zipfile
from types import SimpleNamespace

import keras
import numpy as np
import pytest
from arrays import seed_weights

from keras_transformer.models.transformer import Transformer
from keras_transformer.training import checkpoints
from keras_transformer.training import run as runs
from keras_transformer.training.losses import LabelSmoothedCrossEntropy
from keras_transformer.training.metrics import Perplexity
from keras_transformer.training.run import Run
from keras_transformer.training.schedules import make_optimizer, make_schedule

T, V = 5, 11
ON_JAX = keras.backend.backend() == "jax"


def small(dtype="float32", width=7, **settings):
    """A model with weights, a random state, and the optimizer of our trainings."""
    seed_weights(1)
    layers = [
        keras.layers.Embedding(V, width, dtype=dtype),
        keras.layers.Dropout(0.3, dtype=dtype),
        keras.layers.Dense(V, dtype=dtype),
    ]
    # Without a graph where possible: tracing one takes longer than a training of a few steps. JAX needs its compiler.
    settings = {"run_eagerly": not ON_JAX, **settings}
    return compile_(keras.Sequential([keras.Input((None,), dtype="int32"), *layers]), **settings)


def small_transformer(dtype="float32"):
    seed_weights(1)
    model = Transformer(V, num_layers=1, num_heads=1, hidden_dim=6, intermediate_dim=7, dropout=0.3, dtype=dtype)
    return compile_(model, run_eagerly=not ON_JAX)


def small_in_a_graph(dtype="float32"):
    return small(dtype, run_eagerly=False)


def compile_(model, **settings):
    optimizer = make_optimizer(make_schedule(0.01, 20))
    model.compile(optimizer, **{"loss": LabelSmoothedCrossEntropy(), "jit_compile": ON_JAX, **settings})
    return model


def fit(model, callbacks, epochs, initial_epoch=0, rows=9, first=0):
    """Trains on `rows` rows, three in a batch, without the `first` batches; returns the history."""
    random = np.random.default_rng(0)
    ids = random.integers(1, V, (rows, T)).astype("int32")

    def data(ids):
        inputs = {"encoder_token_ids": ids, "decoder_token_ids": ids} if isinstance(model, Transformer) else ids
        return inputs, ids, np.ones(ids.shape, "float32")

    inputs, labels, weights = data(ids[3 * first :])
    return model.fit(inputs, labels, sample_weight=weights, validation_data=data(ids[:3]), batch_size=3, epochs=epochs,
                     initial_epoch=initial_epoch, shuffle=False, verbose=0, callbacks=callbacks).history  # fmt: skip


def state_of(model):
    """What training changes: weights, random states of dropout, and what the optimizer remembers."""
    return [checkpoints.to_numpy(v) for v in (*model.variables, *model.optimizer.variables)]


@pytest.mark.parametrize(
    ("model", "dtype"),
    [(small, "float32"), (small, "mixed_float16"), (small_in_a_graph, "float32"), (small_transformer, "float32")],
)
def test_resumed_training_ends_with_the_same_weights(tmp_path, model, dtype):
    """Three epochs at once equal two and then one, bit for bit: weights, optimizer, random states of dropout."""
    straight, resumed = model(dtype), model(dtype)
    fit(straight, [checkpoints.RunCheckpoint(Run(tmp_path))], epochs=3, rows=6)
    (tmp_path / "checkpoints" / "epoch-00003.npz").unlink()  # As if it had been killed in the third epoch.
    keras.utils.set_random_seed(99)  # The global random state of the process must not matter.
    checkpoint = checkpoints.RunCheckpoint(Run(tmp_path))
    assert checkpoint.restore(resumed) == (2, 0)
    fit(resumed, [checkpoint], epochs=3, initial_epoch=2, rows=6)
    for a, b in zip(state_of(straight), state_of(resumed), strict=True):
        np.testing.assert_array_equal(a, b)
    assert checkpoint.state["epoch"] == 3


class Killed(keras.callbacks.Callback):
    """Ends a training after some batches."""

    def __init__(self, batches):
        super().__init__()
        self.batches = batches

    def on_train_batch_end(self, batch, logs=None):
        self.batches -= 1
        if not self.batches:
            raise KeyboardInterrupt


def test_a_training_resumed_within_an_epoch_ends_with_the_same_weights_and_metrics(tmp_path):
    """Two epochs of five batches, killed in batch 4 of the second; the last checkpoint is that of batch 2."""

    def model():
        return small(weighted_metrics=[Perplexity()])

    straight = model()
    wanted = fit(straight, [], epochs=2, rows=15)
    with pytest.raises(KeyboardInterrupt):
        fit(model(), [Killed(9), checkpoints.RunCheckpoint(Run(tmp_path), every_steps=2)], epochs=2, rows=15)
    resumed, checkpoint = model(), checkpoints.RunCheckpoint(Run(tmp_path))
    epochs, steps = checkpoint.restore(resumed)
    assert (epochs, steps) == (1, 2)
    found = fit(resumed, [checkpoint], epochs=2, initial_epoch=1, rows=15, first=steps)
    for a, b in zip(state_of(straight), state_of(resumed), strict=True):
        np.testing.assert_array_equal(a, b)
    assert {name: values[-1:] for name, values in wanted.items()} == found
    assert checkpoint.run.checkpoints()[0].name == "epoch-00002.npz"


def test_the_last_step_of_an_epoch_has_no_checkpoint_of_its_own(tmp_path, monkeypatch):
    """Resuming from it, no step of the epoch would be left, and Keras takes 0 steps as no limit."""
    monkeypatch.setattr(runs, "NUM_CHECKPOINTS", 99)
    fit(small(), [checkpoints.RunCheckpoint(Run(tmp_path), every_steps=1)], epochs=1, rows=12)  # 4 steps.
    names = [path.name for path in Run(tmp_path).checkpoints()]
    assert names == ["epoch-00001.npz", *(f"epoch-00000-step-0000000{step}.npz" for step in (3, 2, 1))]


class Clock(keras.callbacks.Callback):
    """A clock that a batch puts forward by one minute."""

    def __init__(self, monkeypatch):
        super().__init__()
        self.seconds = 5000.0
        monkeypatch.setattr(checkpoints, "time", SimpleNamespace(monotonic=lambda: self.seconds))

    def on_train_batch_end(self, batch, logs=None):
        self.seconds += 60


def test_checkpoints_count_the_minutes_of_earlier_parts(tmp_path, monkeypatch):
    monkeypatch.setattr(runs, "NUM_CHECKPOINTS", 99)
    clock = Clock(monkeypatch)  # Five steps an epoch: five minutes.
    fit(small(), [clock, checkpoints.RunCheckpoint(Run(tmp_path), every_steps=2)], epochs=1, rows=15)
    names = [path.name for path in Run(tmp_path).checkpoints()]
    assert names == ["epoch-00001.npz", *(f"epoch-00000-step-0000000{step}.npz" for step in (4, 2))]
    minutes = []
    for name in names:
        resumed, checkpoint = small(), checkpoints.RunCheckpoint(Run(tmp_path))
        _, steps = checkpoint.restore(resumed)
        minutes.append(checkpoint.state["minutes"])
        (tmp_path / "checkpoints" / name).unlink()
    assert minutes == [5, 4, 2]
    fit(resumed, [clock, checkpoint], epochs=1, rows=15, first=steps)
    assert checkpoint.state["minutes"] == 5


def test_a_checkpoint_of_an_older_version_is_the_end_of_an_epoch(tmp_path):
    """It does not say how many steps of the next epoch are finished."""
    fit(small(), [checkpoints.RunCheckpoint(Run(tmp_path))], epochs=1)
    (path,) = Run(tmp_path).checkpoints()
    arrays = dict(np.load(path))
    state = json.loads(arrays["state"].tobytes())
    del state["step"]
    np.savez(path, **{**arrays, "state": np.frombuffer(json.dumps(state).encode(), "uint8")})
    assert checkpoints.RunCheckpoint(Run(tmp_path)).restore(small()) == (1, 0)


def test_no_checkpoint_is_saved_of_useless_weights_within_an_epoch(tmp_path):
    checkpoint = checkpoints.RunCheckpoint(Run(tmp_path), every_steps=1)
    fit(small(loss=lambda labels, logits: keras.ops.sum(logits) * float("nan")), [checkpoint], epochs=1)
    assert not checkpoint.run.checkpoints()


def test_the_checkpoint_before_a_damaged_one_is_used(tmp_path, messages):
    fit(small(), [checkpoints.RunCheckpoint(Run(tmp_path))], epochs=2)
    newest = tmp_path / "checkpoints" / "epoch-00002.npz"
    content = newest.read_bytes()
    middle = len(content) // 2
    overwritten = content[:middle] + bytes(400) + content[middle + 400 :]  # Longer than any header: data is damaged.
    for damaged in (content[:middle], overwritten, b""):
        newest.write_bytes(damaged)
        assert checkpoints.RunCheckpoint(Run(tmp_path)).restore(small()) == (1, 0)
        assert "is damaged" in messages()


def test_only_the_newest_two_checkpoints_are_kept_and_no_half_written_file(tmp_path):
    fit(small(), [checkpoints.RunCheckpoint(Run(tmp_path))], epochs=3)
    names = sorted(path.name for path in (tmp_path / "checkpoints").iterdir())
    assert names == ["epoch-00002.npz", "epoch-00003.npz"]
    assert not list(tmp_path.glob(".writing-*"))


def test_a_checkpoint_of_another_model_is_an_error(tmp_path):
    fit(small(), [checkpoints.RunCheckpoint(Run(tmp_path))], epochs=1)
    more = small()  # Its optimizer has a third variable for each weight.
    more.compile(keras.optimizers.Adam(use_ema=True), "mse")
    for other in (small(width=6), more):
        with pytest.raises(ValueError, match="is from another model or optimizer: resume with the settings"):
            checkpoints.RunCheckpoint(Run(tmp_path)).restore(other)


def test_without_checkpoints_training_begins_at_epoch_0(tmp_path):
    assert checkpoints.RunCheckpoint(Run(tmp_path)).restore(small()) == (0, 0)


SAVEZ, ZIP = (np, "savez"), (zipfile.ZipFile, "open")


def no_room(*args, **kwargs):
    raise OSError(errno.ENOSPC, "No space left on device")


def no_room_and_closing_fails(*args, **kwargs):
    try:
        no_room()
    finally:
        raise ValueError("Can't close the ZIP file while there is an open writing handle on it.")


@pytest.mark.parametrize("fails", [no_room, no_room_and_closing_fails])
@pytest.mark.parametrize(
    ("writer", "path"), [(SAVEZ, "checkpoints/epoch-00001.npz"), (ZIP, "model.keras")], ids=["checkpoint", "model"]
)
def test_a_full_disk_is_an_error_with_the_files_name_and_leaves_nothing_half_written(
    tmp_path, monkeypatch, writer, path, fails
):
    with monkeypatch.context() as patch, pytest.raises(OSError, match="No space left on device") as caught:
        patch.setattr(*writer, fails)
        fit(small(), [checkpoints.RunCheckpoint(Run(tmp_path))], epochs=1)
    assert (caught.value.errno, caught.value.filename) == (errno.ENOSPC, str(tmp_path / path))
    left = {str(file.relative_to(tmp_path)) for file in tmp_path.rglob("*") if file.is_file()}
    assert left == ({"model.keras"} if path.startswith("checkpoints") else set())
    checkpoint = checkpoints.RunCheckpoint(Run(tmp_path))
    assert checkpoint.restore(small()) == (0, 0)
    fit(small(), [checkpoint], epochs=1)


class Script(keras.callbacks.Callback):
    """Replaces the logs of each epoch by given ones, such as those of a failing training."""

    def __init__(self, losses, val_losses):
        super().__init__()
        self.losses, self.val_losses = losses, val_losses

    def on_epoch_end(self, epoch, logs=None):
        logs["loss"], logs["val_loss"] = self.losses[epoch], self.val_losses[epoch]


def fit_scripted(folder, losses, val_losses=None, **kwargs):
    model, callback = small(), checkpoints.RunCheckpoint(Run(folder), **kwargs)
    script = keras.callbacks.CallbackList([Script(losses, val_losses or losses), callback], model=model)
    script.on_train_begin()
    model.stop_training = False
    epochs = 0
    for epoch in range(len(losses)):
        script.on_epoch_end(epoch, {})
        epochs += 1
        if model.stop_training:
            break
    script.on_train_end()
    return epochs, callback.state


def test_the_best_epoch_has_the_lowest_loss(tmp_path):
    epochs, state = fit_scripted(tmp_path, [3.0, 1.0, 2.0])
    assert (epochs, state["best"], state["best_epoch"]) == (3, 1.0, 1)
    assert (tmp_path / "model.keras").is_file()


def test_the_best_epoch_has_the_highest_bleu_if_that_is_monitored(tmp_path, monkeypatch):
    values = [1.0, 3.0, 2.0]
    monkeypatch.setattr(Script, "on_epoch_end", lambda self, epoch, logs: logs.update(loss=1.0, val_bleu=values[epoch]))
    epochs, state = fit_scripted(tmp_path, values, monitor="val_bleu")
    assert (epochs, state["best"], state["best_epoch"]) == (3, 3.0, 1)


def test_patience_stops_after_epochs_without_a_better_model(tmp_path, messages):
    epochs, _ = fit_scripted(tmp_path, [3.0, 1.0, 2.0, 2.0, 0.5], patience=2)
    assert epochs == 4
    assert "Stopped: 2 epochs without a better val_loss." in messages()


@pytest.mark.parametrize("monitor", ["val_loss", "val_bleu"])
@pytest.mark.parametrize("bad", [float("nan"), float("inf"), -float("inf")])
def test_a_value_that_is_not_a_number_is_never_the_best(tmp_path, monkeypatch, monitor, bad):
    monkeypatch.setattr(
        Script, "on_epoch_end", lambda self, epoch, logs: logs.update(loss=1.0, **{monitor: values[epoch]})
    )
    values = [bad, 3.0, bad]
    epochs, state = fit_scripted(tmp_path, values, monitor=monitor)
    assert (epochs, state["best"], state["best_epoch"]) == (3, 3.0, 1)


def test_epochs_with_nan_values_count_as_not_better(tmp_path, messages):
    nan = float("nan")
    epochs, state = fit_scripted(tmp_path, [1.0] * 5, [nan] * 5, patience=3)
    assert (epochs, state["best"], state["best_epoch"]) == (3, None, None)
    assert "Stopped: 3 epochs without a better val_loss." in messages()
    assert not (tmp_path / "model.keras").exists()


def test_reason_to_stop_follows_from_the_restored_state(tmp_path):
    _, state = fit_scripted(tmp_path, [1.0, 2.0, 2.0], patience=2)
    for kwargs, reason in (
        ({"patience": 2}, "2 epochs without a better val_loss"),
        ({"patience": 3}, None),
        ({"max_minutes": 1e-9}, "1e-09 minutes are over"),
        ({}, None),
    ):
        checkpoint = checkpoints.RunCheckpoint(Run(tmp_path), **kwargs)
        assert checkpoint.reason_to_stop() is None  # No epoch is finished yet.
        checkpoint.state = state
        assert checkpoint.reason_to_stop() == reason


def test_a_loss_that_is_not_a_number_stops_and_saves_nothing(tmp_path, messages):
    epochs, state = fit_scripted(tmp_path, [3.0, float("nan"), 1.0])
    assert (epochs, state["epoch"]) == (2, 1)
    assert "Stopped: the loss is nan. Try a lower --learning-rate" in messages()


def test_time_limit_stops_at_the_end_of_the_epoch(tmp_path, messages):
    epochs, _ = fit_scripted(tmp_path, [3.0, 2.0], max_minutes=1e-9)
    assert epochs == 1
    assert "minutes are over" in messages()


def test_the_saved_model_has_the_scale_of_low_rank_updates_and_nothing_frozen(tmp_path):
    model = Transformer(7, num_layers=1, num_heads=1, hidden_dim=8, intermediate_dim=8)
    model.decoder_embedding.trainable = False
    dense = model.decoder_blocks[0].feed_forward.intermediate_dense
    dense.enable_lora(2, lora_alpha=6)
    a, b = dense.lora_kernel_a, dense.lora_kernel_b
    b.assign(np.ones(b.shape))
    checkpoints.save_model(model, tmp_path / "m.keras")
    loaded = keras.saving.load_model(tmp_path / "m.keras")
    # Keras' rule.
    np.testing.assert_allclose(
        loaded.decoder_blocks[0].feed_forward.intermediate_dense.kernel, dense._kernel + 3.0 * (a @ b), atol=1e-6
    )
    assert loaded.decoder_embedding.trainable


@pytest.mark.parametrize("dtype", ["float32", "mixed_bfloat16", "mixed_float16"])
def test_the_saved_model_is_without_its_optimizer(tmp_path, dtype):
    model = small(dtype=dtype)
    fit(model, [], epochs=1)
    checkpoints.save_model(model, tmp_path / "m.keras")
    loaded = keras.saving.load_model(tmp_path / "m.keras")
    assert not getattr(loaded, "optimizer", None)
    for a, b in zip(model.get_weights(), loaded.get_weights(), strict=True):
        np.testing.assert_array_equal(a, b)
