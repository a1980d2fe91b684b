"""Checkpoints, and resuming from them, with a model that is small enough to train in a test."""

import errno
import zipfile

import keras
import numpy as np
import pytest

from keras_transformer import checkpoints, runs, training
from keras_transformer.losses import LabelSmoothedCrossEntropy, Perplexity
from keras_transformer.model import Transformer
from keras_transformer.runs import Run

B, T, V = 3, 5, 11
DTYPES = ("float32", "mixed_bfloat16", "mixed_float16")


def tiny(ema_momentum=None, dtype="float32"):
    keras.utils.set_random_seed(1)
    model = Transformer(V, num_layers=1, num_heads=1, hidden_dim=6, intermediate_dim=7, dropout=0.3, dtype=dtype)
    model.compile(
        optimizer=training.make_optimizer(training.InverseSquareRootSchedule(0.01, 3), ema_momentum=ema_momentum),
        loss=LabelSmoothedCrossEntropy(),
        jit_compile=False,
    )
    return model


def fit(model, callback, epochs, initial_epoch=0):
    random = np.random.default_rng(0)
    ids = random.integers(1, V, (12, T)).astype("int32")
    inputs = {"encoder_token_ids": ids, "decoder_token_ids": ids}
    model.fit(inputs, ids, sample_weight=np.ones((12, T), "float32"), validation_split=0.25, batch_size=3,
              epochs=epochs, initial_epoch=initial_epoch, shuffle=False, verbose=0, callbacks=[callback])  # fmt: skip


def weights_of(model):
    return [checkpoints.to_numpy(v) for v in checkpoints._variables(model).values()]


@pytest.mark.parametrize(
    ("ema_momentum", "dtype"),
    [
        (None, "float32"),
        (0.9, "mixed_float16"),
        pytest.param(0.9, "float32", marks=pytest.mark.slow),
        pytest.param(None, "mixed_float16", marks=pytest.mark.slow),
    ],
)
def test_resumed_training_ends_with_the_same_weights(tmp_path, ema_momentum, dtype):
    """Three epochs at once equal two and then one, bit for bit: weights, optimizer, random states of dropout."""
    (tmp_path / "a").mkdir()
    (tmp_path / "b").mkdir()
    straight = tiny(ema_momentum, dtype)
    fit(straight, checkpoints.RunCheckpoint(Run(tmp_path / "a")), epochs=3)
    fit(tiny(ema_momentum, dtype), checkpoints.RunCheckpoint(Run(tmp_path / "b")), epochs=2)
    resumed = tiny(ema_momentum, dtype)
    keras.utils.set_random_seed(99)  # The global random state of the process must not matter.
    checkpoint = checkpoints.RunCheckpoint(Run(tmp_path / "b"))
    assert checkpoint.restore(resumed) == (2, 0)
    fit(resumed, checkpoint, epochs=3, initial_epoch=2)
    for a, b in zip(weights_of(straight), weights_of(resumed), strict=True):
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


@pytest.mark.parametrize(
    "settings", [{"every_steps": 2}, pytest.param({"every_minutes": 1e-9}, marks=pytest.mark.slow)], ids=str
)
def test_a_training_resumed_within_an_epoch_ends_with_the_same_weights_and_metrics(tmp_path, settings):
    """Two epochs of five batches, killed in batch 4 of the second; the last checkpoint is that of batch 2 or 3."""
    ids = np.random.default_rng(0).integers(1, V, (15, T)).astype("int32")

    def run(model, callbacks, first=0, **more):
        inputs = {"encoder_token_ids": ids[first:], "decoder_token_ids": ids[first:]}
        ones = np.ones_like(ids[first:], "float32")
        validation = ({"encoder_token_ids": ids, "decoder_token_ids": ids}, ids, np.ones_like(ids, "float32"))
        return model.fit(inputs, ids[first:], sample_weight=ones, validation_data=validation, batch_size=3, verbose=0,
                         shuffle=False, callbacks=callbacks, **more).history  # fmt: skip

    def model():
        model = tiny(0.9)
        model.compile(optimizer=model.optimizer, loss=model.loss, weighted_metrics=[Perplexity()])
        return model

    (tmp_path / "checkpoints").mkdir()
    straight = model()
    wanted = run(straight, [], epochs=2)
    with pytest.raises(KeyboardInterrupt):
        checkpoint = checkpoints.RunCheckpoint(Run(tmp_path), **settings)
        run(model(), [Killed(9), checkpoint], epochs=2)
    resumed, checkpoint = model(), checkpoints.RunCheckpoint(Run(tmp_path))
    epochs, steps = checkpoint.restore(resumed)
    assert (epochs, steps) == (1, 2 if "every_steps" in settings else 3)
    found = run(resumed, [checkpoint], first=3 * steps, epochs=2, initial_epoch=1)
    for a, b in zip(weights_of(straight), weights_of(resumed), strict=True):
        np.testing.assert_array_equal(a, b)
    assert {name: values[-1:] for name, values in wanted.items()} == found
    assert checkpoint.run.checkpoints()[0].name == "epoch-00002.npz"


def test_the_last_step_of_an_epoch_has_no_checkpoint_of_its_own(tmp_path, monkeypatch):
    """Resuming from it, no step of the epoch would be left, and Keras takes 0 steps as no limit."""
    monkeypatch.setattr(runs, "NUM_CHECKPOINTS", 99)
    fit(tiny(), checkpoints.RunCheckpoint(Run(tmp_path), every_steps=1), epochs=1)  # 3 steps.
    names = [path.name for path in Run(tmp_path).checkpoints()]
    assert names == ["epoch-00001.npz", "epoch-00000-step-00000002.npz", "epoch-00000-step-00000001.npz"]


def test_a_momentum_of_0_keeps_no_averages():
    assert not tiny(0.0).optimizer.use_ema and tiny(0.5).optimizer.ema_momentum == 0.5


def test_no_checkpoint_is_saved_of_useless_weights_within_an_epoch(tmp_path):
    model, checkpoint = tiny(), checkpoints.RunCheckpoint(Run(tmp_path), every_steps=1)
    model.compile(optimizer=model.optimizer, loss=lambda labels, logits: keras.ops.sum(logits) * float("nan"))
    fit(model, checkpoint, epochs=1)
    assert not checkpoint.run.checkpoints()


def test_the_checkpoint_before_a_damaged_one_is_used(tmp_path, capsys):
    fit(tiny(), checkpoints.RunCheckpoint(Run(tmp_path)), epochs=2)
    newest = tmp_path / "checkpoints" / "epoch-00002.npz"
    content = newest.read_bytes()
    middle = len(content) // 2
    overwritten = content[:middle] + bytes(400) + content[middle + 400 :]  # Longer than any header: data is damaged.
    for damaged in (content[:middle], overwritten, b""):
        newest.write_bytes(damaged)
        assert checkpoints.RunCheckpoint(Run(tmp_path)).restore(tiny()) == (1, 0)
        assert "is damaged" in capsys.readouterr().out


def test_only_the_newest_two_checkpoints_are_kept_and_no_half_written_file(tmp_path):
    fit(tiny(), checkpoints.RunCheckpoint(Run(tmp_path)), epochs=3)
    names = sorted(path.name for path in (tmp_path / "checkpoints").iterdir())
    assert names == ["epoch-00002.npz", "epoch-00003.npz"]
    assert not list(tmp_path.glob(".writing-*"))


def test_a_checkpoint_of_another_model_is_an_error(tmp_path):
    fit(tiny(), checkpoints.RunCheckpoint(Run(tmp_path)), epochs=1)
    other = Transformer(V, num_layers=2, num_heads=1, hidden_dim=6, intermediate_dim=7)
    other.compile(optimizer=training.make_optimizer(0.1), loss=LabelSmoothedCrossEntropy())
    with pytest.raises(ValueError, match="is from another model or optimizer: resume with the settings"):
        checkpoints.RunCheckpoint(Run(tmp_path)).restore(other)


def test_without_checkpoints_training_begins_at_epoch_0(tmp_path):
    assert checkpoints.RunCheckpoint(Run(tmp_path)).restore(tiny()) == (0, 0)


SAVEZ, ZIP = (np, "savez"), (zipfile.ZipFile, "open")


def no_room(*args, **kwargs):
    raise OSError(errno.ENOSPC, "No space left on device")


def no_room_and_closing_fails(*args, **kwargs):
    try:
        no_room()
    finally:
        raise ValueError("Can't close the ZIP file while there is an open writing handle on it.")


@pytest.mark.parametrize(
    ("writer", "path", "fails"),
    [
        (SAVEZ, "checkpoints/epoch-00001.npz", no_room),
        (ZIP, "model.keras", no_room_and_closing_fails),
        pytest.param(SAVEZ, "checkpoints/epoch-00001.npz", no_room_and_closing_fails, marks=pytest.mark.slow),
        pytest.param(ZIP, "model.keras", no_room, marks=pytest.mark.slow),
    ],
    ids=["checkpoint", "model", "checkpoint, closing fails", "model, no room"],
)
def test_a_full_disk_is_an_error_with_the_files_name_and_leaves_nothing_half_written(
    tmp_path, monkeypatch, writer, path, fails
):
    with monkeypatch.context() as patch, pytest.raises(OSError, match="No space left on device") as caught:
        patch.setattr(*writer, fails)
        fit(tiny(), checkpoints.RunCheckpoint(Run(tmp_path)), epochs=1)
    assert (caught.value.errno, caught.value.filename) == (errno.ENOSPC, str(tmp_path / path))
    left = {str(file.relative_to(tmp_path)) for file in tmp_path.rglob("*") if file.is_file()}
    assert left == ({"model.keras"} if path.startswith("checkpoints") else set())
    checkpoint = checkpoints.RunCheckpoint(Run(tmp_path))
    assert checkpoint.restore(tiny()) == (0, 0)
    fit(tiny(), checkpoint, epochs=1)


class Script(keras.callbacks.Callback):
    """Replaces the logs of each epoch by given ones, such as those of a failing training."""

    def __init__(self, losses, val_losses):
        super().__init__()
        self.losses, self.val_losses = losses, val_losses

    def on_epoch_end(self, epoch, logs=None):
        logs["loss"], logs["val_loss"] = self.losses[epoch], self.val_losses[epoch]


def fit_scripted(folder, losses, val_losses=None, **kwargs):
    model, callback = tiny(), checkpoints.RunCheckpoint(Run(folder), **kwargs)
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


def test_patience_stops_after_epochs_without_a_better_model(tmp_path, capsys):
    epochs, _ = fit_scripted(tmp_path, [3.0, 1.0, 2.0, 2.0, 0.5], patience=2)
    assert epochs == 4
    assert "Stopped: 2 epochs without a better val_loss." in capsys.readouterr().out


@pytest.mark.parametrize("monitor", ["val_loss", "val_bleu"])
@pytest.mark.parametrize("bad", [float("nan"), float("inf"), -float("inf")])
def test_a_value_that_is_not_a_number_is_never_the_best(tmp_path, monkeypatch, monitor, bad):
    monkeypatch.setattr(
        Script, "on_epoch_end", lambda self, epoch, logs: logs.update(loss=1.0, **{monitor: values[epoch]})
    )
    values = [bad, 3.0, bad]
    epochs, state = fit_scripted(tmp_path, values, monitor=monitor)
    assert (epochs, state["best"], state["best_epoch"]) == (3, 3.0, 1)


def test_epochs_with_nan_values_count_as_not_better(tmp_path, capsys):
    nan = float("nan")
    epochs, state = fit_scripted(tmp_path, [1.0] * 5, [nan] * 5, patience=3)
    assert (epochs, state["best"], state["best_epoch"]) == (3, None, None)
    assert "Stopped: 3 epochs without a better val_loss." in capsys.readouterr().out
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


def test_a_loss_that_is_not_a_number_stops_and_saves_nothing(tmp_path, capsys):
    epochs, state = fit_scripted(tmp_path, [3.0, float("nan"), 1.0])
    assert (epochs, state["epoch"]) == (2, 1)
    assert "Stopped: the loss is nan. Try a lower --learning-rate" in capsys.readouterr().out


def test_time_limit_stops_at_the_end_of_the_epoch(tmp_path, capsys):
    epochs, _ = fit_scripted(tmp_path, [3.0, 2.0], max_minutes=1e-9)
    assert epochs == 1
    assert "minutes are over" in capsys.readouterr().out


class SaveAtEpochEnd(keras.callbacks.Callback):
    """Saves during training, because Keras itself puts the averages into the model when `fit` ends."""

    def __init__(self, path):
        super().__init__()
        self.path = path

    def on_epoch_end(self, epoch, logs=None):
        self.raw = self.model.get_weights()
        checkpoints.save_model(self.model, self.path)
        self.raw_after = self.model.get_weights()
        with checkpoints.averaged_weights(self.model):
            self.averaged = self.model.get_weights()


@pytest.mark.parametrize("dtype", DTYPES)
def test_saved_model_is_without_optimizer_and_has_the_averaged_weights(tmp_path, dtype):
    callback = SaveAtEpochEnd(tmp_path / "m.keras")
    model = tiny(ema_momentum=0.5, dtype=dtype)
    fit(model, callback, epochs=1)
    for averaged, final in zip(callback.averaged, model.get_weights(), strict=True):
        np.testing.assert_array_equal(averaged, final)  # Keras puts the averages into the model when `fit` ends.
    loaded = keras.saving.load_model(tmp_path / "m.keras")
    assert not getattr(loaded, "optimizer", None)
    everything = (callback.raw, callback.raw_after, callback.averaged, loaded.get_weights())
    for raw, raw_after, averaged, saved in zip(*everything, strict=True):
        np.testing.assert_array_equal(raw, raw_after)
        np.testing.assert_array_equal(averaged, saved)
    assert any(not np.array_equal(a, b) for a, b in zip(callback.raw, callback.averaged, strict=True))
