"""Loss, schedule, metrics, optimizer and checkpoints."""

import errno
import math
import zipfile

import keras
import numpy as np
import pytest
from keras import ops

from keras_transformer import runs, training
from keras_transformer.distribution import DistributedFit
from keras_transformer.model import Transformer
from keras_transformer.runs import Run

B, T, V = 3, 5, 11


def logits_labels_weights(seed=0):
    random = np.random.default_rng(seed)
    weights = np.ones((B, T), "float32")
    weights[1, 3:] = 0
    weights[2, 1:] = 0
    return random.normal(size=(B, T, V)).astype("float32") * 3, random.integers(0, V, (B, T)), weights


@pytest.mark.parametrize("label_smoothing", [0.0, 0.1, 0.3])
def test_smoothed_loss_equals_the_keras_loss_on_one_hot_labels(label_smoothing):
    logits, labels, weights = logits_labels_weights()
    ours = training.LabelSmoothedCrossEntropy(label_smoothing)(labels, logits, sample_weight=weights)
    theirs = keras.losses.CategoricalCrossentropy(from_logits=True, label_smoothing=label_smoothing, reduction="none")
    per_token = ops.convert_to_numpy(theirs(np.eye(V, dtype="float32")[labels], logits))
    np.testing.assert_allclose(float(ours), (per_token * weights).sum() / weights.sum(), rtol=1e-5)


def gradient_of(function, array):
    """d function / d array, on every backend."""
    if keras.backend.backend() == "jax":
        import jax

        return np.asarray(jax.grad(function)(array))
    import tensorflow as tf

    array = tf.convert_to_tensor(array)
    with tf.GradientTape() as tape:
        tape.watch(array)
        value = function(array)
    return tape.gradient(value, array).numpy()


@pytest.mark.parametrize("label_smoothing", [0.0, 0.1])
@pytest.mark.parametrize("dtype", ["float32", "float16"])
def test_the_custom_gradient_equals_the_automatic_gradient(label_smoothing, dtype):
    """The reference is Keras' cross-entropy on one-hot labels, with automatic gradients, at every logit."""
    logits, labels, weights = logits_labels_weights()
    logits = logits.astype(dtype)
    plain = keras.losses.CategoricalCrossentropy(from_logits=True, label_smoothing=label_smoothing, reduction="none")

    def theirs(logits):
        per_token = plain(np.eye(V, dtype="float32")[labels], ops.cast(logits, "float32"))
        return ops.sum(per_token * weights) / weights.sum()

    ours = training.LabelSmoothedCrossEntropy(label_smoothing)
    found = gradient_of(lambda logits: ours(labels, logits, sample_weight=weights), logits)
    assert found.dtype == dtype
    np.testing.assert_allclose(found, gradient_of(theirs, logits), atol=1e-7 if dtype == "float32" else 1e-4)
    assert np.abs(found[weights == 0]).max() == 0


@pytest.mark.parametrize("jit_compile", [False, True])
def test_loss_gradient_and_metrics_stay_finite_with_extreme_logits(jit_compile):
    """With logits of +-1e4 a step changes the weights by finite numbers."""
    inputs = keras.Input((None, V))
    model = keras.Model(inputs, keras.layers.Dense(V, use_bias=False, kernel_initializer="identity")(inputs))
    model.compile(
        keras.optimizers.SGD(1e-6),
        training.LabelSmoothedCrossEntropy(),
        weighted_metrics=[training.TokenAccuracy(), training.Perplexity()],
        jit_compile=jit_compile,
    )
    _, labels, weights = logits_labels_weights()
    logits = np.where(np.eye(V)[labels] > 0, 1e4, -1e4).astype("float32")
    logs = model.train_on_batch(logits, labels, sample_weight=weights, return_dict=True)
    assert logs["token_accuracy"] == 1
    assert logs["perplexity"] == pytest.approx(1)
    assert np.isfinite(logs["loss"])
    assert np.isfinite(model.get_weights()[0]).all()
    assert not np.array_equal(model.get_weights()[0], np.eye(V))


def test_loss_is_the_mean_over_real_tokens():
    """Neither the values at padding nor the amount of padding change the loss."""
    logits, labels, weights = logits_labels_weights()
    loss = training.LabelSmoothedCrossEntropy(0.1)
    before = float(loss(labels, logits, sample_weight=weights))
    logits[weights == 0] = 50.0
    wider = [np.pad(x, [(0, 0), (0, 4)] + [(0, 0)] * (x.ndim - 2)) for x in (labels, logits, weights)]
    np.testing.assert_allclose(float(loss(labels, logits, sample_weight=weights)), before, rtol=1e-6)
    np.testing.assert_allclose(float(loss(wider[0], wider[1], sample_weight=wider[2])), before, rtol=1e-6)


def test_loss_does_not_depend_on_the_keras_mask():
    """Logits with and without a Keras mask give the same loss: only the sample weights matter."""
    _, labels, weights = logits_labels_weights()
    embedding = keras.layers.Embedding(V, 7, mask_zero=True)
    head = keras.layers.Dense(V)  # Dense keeps the mask, our projection drops it. Users may use either.
    inputs = keras.Input((None,), dtype="int32")
    masked = keras.Model(inputs, head(embedding(inputs)))
    token_ids = np.where(weights > 0, labels % (V - 1) + 1, 0)
    masked.compile(loss=training.LabelSmoothedCrossEntropy(0.1), jit_compile=False)
    loss = masked.evaluate(token_ids, labels, sample_weight=weights, verbose=0)
    plain = ops.convert_to_numpy(masked(token_ids))
    expected = float(training.LabelSmoothedCrossEntropy(0.1)(labels, plain, sample_weight=weights))
    np.testing.assert_allclose(loss, expected, rtol=1e-5)


@pytest.mark.parametrize("jit_compile", [False, True])
@pytest.mark.parametrize("label", [V, V + 3, -1, -100])
def test_a_label_outside_the_vocabulary_makes_loss_gradient_and_perplexity_nan(label, jit_compile):
    """Without the check, some backends give a number: the value at an index from the end, or at the nearest index."""
    inputs = keras.Input((None, V))
    model = keras.Model(inputs, keras.layers.Dense(V)(inputs))
    loss, metrics = training.LabelSmoothedCrossEntropy(), [training.Perplexity()]
    model.compile("sgd", loss, weighted_metrics=metrics, jit_compile=jit_compile)
    logits, labels, _ = logits_labels_weights()
    labels[1, 2] = label
    logs = model.train_on_batch(logits, labels, return_dict=True)
    assert np.isnan(logs["loss"]) and np.isnan(logs["perplexity"])
    assert np.isnan(model.get_weights()[0]).all()
    eager = training.LabelSmoothedCrossEntropy()(labels, logits)
    assert np.isnan(float(eager))


def test_the_loss_always_takes_logits():
    with pytest.raises(TypeError, match=r"always takes logits.*Received: from_logits=True. Leave it out"):
        training.LabelSmoothedCrossEntropy(from_logits=True)


def test_perplexity_is_the_exponential_of_the_unsmoothed_cross_entropy():
    logits, labels, weights = logits_labels_weights()
    metric = training.Perplexity()
    metric.update_state(labels, logits, sample_weight=weights)
    cross_entropy = float(training.LabelSmoothedCrossEntropy(0.0)(labels, logits, sample_weight=weights))
    np.testing.assert_allclose(float(metric.result()), math.exp(cross_entropy), rtol=1e-5)


def test_token_accuracy_counts_real_tokens_only():
    logits, labels, weights = logits_labels_weights()
    metric = training.TokenAccuracy()
    metric.update_state(labels, logits, sample_weight=weights)
    right = (logits.argmax(-1) == labels) * weights
    np.testing.assert_allclose(float(metric.result()), right.sum() / weights.sum(), rtol=1e-6)


@pytest.mark.parametrize("label_smoothing", [-0.1, 1.0])
def test_label_smoothing_out_of_range_is_an_error(label_smoothing):
    with pytest.raises(ValueError, match=r"`label_smoothing` must be in \[0, 1\)"):
        training.LabelSmoothedCrossEntropy(label_smoothing)


def test_schedule_is_the_papers_equation_and_peaks_at_warmup_steps():
    hidden_dim, warmup_steps = 512, 40
    schedule = training.InverseSquareRootSchedule(training.paper_learning_rate(hidden_dim, warmup_steps), warmup_steps)
    rates = [float(schedule(iterations)) for iterations in range(200)]
    paper = [hidden_dim**-0.5 * min(step**-0.5, step * warmup_steps**-1.5) for step in range(1, 201)]
    np.testing.assert_allclose(rates, paper, rtol=1e-5)
    assert int(np.argmax(rates)) + 1 == warmup_steps


def test_schedule_without_warmup_steps_is_an_error():
    with pytest.raises(ValueError, match="`warmup_steps` must be at least 1"):
        training.InverseSquareRootSchedule(1.0, 0)


@pytest.mark.parametrize(
    "part",
    [
        training.LabelSmoothedCrossEntropy(0.2),
        training.InverseSquareRootSchedule(0.3, 7),
        training.Perplexity(),
        training.TokenAccuracy(),
    ],
    ids=lambda part: type(part).__name__,
)
def test_parts_survive_keras_serialization(part):
    copy = keras.saving.deserialize_keras_object(keras.saving.serialize_keras_object(part))
    assert type(copy) is type(part)
    assert copy.get_config() == part.get_config()


def test_optimizer_has_the_papers_constants_and_clips_by_global_norm():
    optimizer = training.make_optimizer(0.1, clip_norm=0.5)
    config = optimizer.get_config()
    assert (config["beta_1"], config["beta_2"], config["epsilon"], config["global_clipnorm"]) == (0.9, 0.98, 1e-9, 0.5)
    assert training.make_optimizer(0.1, clip_norm=0).global_clipnorm is None


# A compiled model in a `.keras` file


@keras.saving.register_keras_serializable(package="tests")
class OwnModel(DistributedFit, keras.Model):
    """A model as a user may write it."""

    def __init__(self, **kwargs):
        super().__init__(**kwargs)
        self.embedding, self.dense = keras.layers.Embedding(V, 6), keras.layers.Dense(V)

    def build(self, shape):
        self.embedding.build(shape)
        self.dense.build((*shape, 6))

    def call(self, ids):
        return self.dense(self.embedding(ids))


ON_TENSORFLOW = pytest.mark.skipif(keras.backend.backend() != "tensorflow", reason="TensorFlow accumulates")


@pytest.mark.parametrize(
    ("steps", "dtype"),
    [
        (1, "float32"),
        pytest.param(2, "mixed_float16", marks=[ON_TENSORFLOW, pytest.mark.slow]),
        pytest.param(2, "float32", marks=[ON_TENSORFLOW, pytest.mark.slow]),
        pytest.param(1, "mixed_float16", marks=pytest.mark.slow),
    ],
)
@pytest.mark.parametrize("kind", ["transformer", "own"])
def test_a_saved_compiled_model_continues_training_exactly(kind, steps, dtype, tmp_path):
    """Three epochs at once equal two epochs, saving, loading and one more epoch, with ModelCheckpoint.

    This checks weights and optimizer. There is no dropout, because Keras files hold no random states (the files of
    `RunCheckpoint` do).
    """
    ids = np.random.default_rng(0).integers(1, V, (12, T)).astype("int32")
    inputs = {"encoder_token_ids": ids, "decoder_token_ids": ids} if kind == "transformer" else ids

    def fit(model, epochs, **settings):
        weights = np.ones(ids.shape, "float32")
        model.fit(inputs, ids, sample_weight=weights, batch_size=4, epochs=epochs, shuffle=False, verbose=0, **settings)

    def begin():
        keras.utils.set_random_seed(1)
        sizes = {"num_layers": 1, "num_heads": 1, "hidden_dim": 6, "intermediate_dim": 7, "dropout": 0.0}
        model = Transformer(V, **sizes, dtype=dtype) if kind == "transformer" else OwnModel(dtype=dtype)
        optimizer = training.make_optimizer(training.InverseSquareRootSchedule(0.01, 3))
        loss, metrics = training.LabelSmoothedCrossEntropy(0.2), [training.Perplexity(), training.TokenAccuracy()]
        extra = {"gradient_accumulation_steps": steps} if steps > 1 else {}
        jit_compile = keras.backend.backend() == "jax"
        model.compile(optimizer, loss, weighted_metrics=metrics, jit_compile=jit_compile, **extra)
        return model

    straight, stopped = begin(), begin()
    fit(straight, 3)
    fit(stopped, 2, callbacks=[keras.callbacks.ModelCheckpoint(tmp_path / "m.keras")])
    keras.utils.set_random_seed(99)
    loaded = keras.saving.load_model(tmp_path / "m.keras")
    assert loaded.get_compile_config()["gradient_accumulation_steps"] == steps
    assert loaded.loss.label_smoothing == 0.2
    fit(loaded, 1)
    found, expected = ([*model.weights, *model.optimizer.variables] for model in (loaded, straight))
    for a, b in zip(found, expected, strict=True):
        np.testing.assert_array_equal(training.to_numpy(a), training.to_numpy(b))
    assert loaded.evaluate(inputs, ids, verbose=0, return_dict=True).keys() == {"loss", "perplexity", "token_accuracy"}


def test_an_uncompiled_model_is_loaded_uncompiled(tmp_path):
    model = Transformer(V, num_layers=1, num_heads=1, hidden_dim=6, intermediate_dim=7)
    model.save(tmp_path / "m.keras")
    assert not keras.saving.load_model(tmp_path / "m.keras").compiled


def test_the_compile_config_holds_the_requested_values():
    """The effective values may differ: with replicas, XLA is off in Keras and on in our step."""
    model = tiny()
    model.compile("adam", training.LabelSmoothedCrossEntropy(), jit_compile="auto")
    assert model.get_compile_config()["jit_compile"] == "auto"


# Checkpoints, with a model that is small enough to train in a test.


DTYPES = ("float32", "mixed_bfloat16", "mixed_float16")


def tiny(ema_momentum=None, dtype="float32"):
    keras.utils.set_random_seed(1)
    model = Transformer(V, num_layers=1, num_heads=1, hidden_dim=6, intermediate_dim=7, dropout=0.3, dtype=dtype)
    model.compile(
        optimizer=training.make_optimizer(training.InverseSquareRootSchedule(0.01, 3), ema_momentum=ema_momentum),
        loss=training.LabelSmoothedCrossEntropy(),
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
    return [training.to_numpy(v) for v in training._variables(model).values()]


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
    fit(straight, training.RunCheckpoint(Run(tmp_path / "a")), epochs=3)
    fit(tiny(ema_momentum, dtype), training.RunCheckpoint(Run(tmp_path / "b")), epochs=2)
    resumed = tiny(ema_momentum, dtype)
    keras.utils.set_random_seed(99)  # The global random state of the process must not matter.
    checkpoint = training.RunCheckpoint(Run(tmp_path / "b"))
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
        model.compile(optimizer=model.optimizer, loss=model.loss, weighted_metrics=[training.Perplexity()])
        return model

    (tmp_path / "checkpoints").mkdir()
    straight = model()
    wanted = run(straight, [], epochs=2)
    with pytest.raises(KeyboardInterrupt):
        checkpoint = training.RunCheckpoint(Run(tmp_path), **settings)
        run(model(), [Killed(9), checkpoint], epochs=2)
    resumed, checkpoint = model(), training.RunCheckpoint(Run(tmp_path))
    epochs, steps = checkpoint.restore(resumed)
    assert (epochs, steps) == (1, 2 if "every_steps" in settings else 3)
    found = run(resumed, [checkpoint], first=3 * steps, epochs=2, initial_epoch=1)
    for a, b in zip(weights_of(straight), weights_of(resumed), strict=True):
        np.testing.assert_array_equal(a, b)
    assert {name: values[-1:] for name, values in wanted.items()} == found
    assert checkpoint.run.checkpoints()[0].name == "epoch-00002.npz"


@pytest.mark.parametrize("kind", [training.LabelSmoothedCrossEntropy, training.Perplexity, training.TokenAccuracy])
def test_a_weight_of_a_sentence_is_that_of_its_tokens(kind):
    function = kind()
    rng = np.random.default_rng(0)
    logits, labels = rng.normal(size=(3, 4, V)).astype("float32"), rng.integers(0, V, (3, 4))
    weights = np.array([[1.0], [0.0], [2.0]], "float32")
    wanted = float(function(labels, logits, sample_weight=np.repeat(weights, 4, axis=1)))
    for given in (weights, weights[:, 0]):
        if isinstance(function, keras.metrics.Metric):
            function.reset_state()
        assert float(function(labels, logits, sample_weight=given)) == pytest.approx(wanted, rel=1e-6)
    for wrong in (labels.T, labels[:1, :1], labels[:, :3], np.zeros((3, 4, V), "int32")):
        with pytest.raises(ValueError, match=r"Labels must have the shape of the logits without their last axis\. Rec"):
            function(wrong, logits)


def test_the_last_step_of_an_epoch_has_no_checkpoint_of_its_own(tmp_path, monkeypatch):
    """Resuming from it, no step of the epoch would be left, and Keras takes 0 steps as no limit."""
    monkeypatch.setattr(runs, "NUM_CHECKPOINTS", 99)
    fit(tiny(), training.RunCheckpoint(Run(tmp_path), every_steps=1), epochs=1)  # 3 steps.
    names = [path.name for path in Run(tmp_path).checkpoints()]
    assert names == ["epoch-00001.npz", "epoch-00000-step-00000002.npz", "epoch-00000-step-00000001.npz"]


def test_a_momentum_of_0_keeps_no_averages():
    assert not tiny(0.0).optimizer.use_ema and tiny(0.5).optimizer.ema_momentum == 0.5


def test_no_checkpoint_is_saved_of_useless_weights_within_an_epoch(tmp_path):
    model, checkpoint = tiny(), training.RunCheckpoint(Run(tmp_path), every_steps=1)
    model.compile(optimizer=model.optimizer, loss=lambda labels, logits: keras.ops.sum(logits) * float("nan"))
    fit(model, checkpoint, epochs=1)
    assert not checkpoint.run.checkpoints()


def test_the_checkpoint_before_a_damaged_one_is_used(tmp_path, capsys):
    fit(tiny(), training.RunCheckpoint(Run(tmp_path)), epochs=2)
    newest = tmp_path / "checkpoints" / "epoch-00002.npz"
    content = newest.read_bytes()
    middle = len(content) // 2
    overwritten = content[:middle] + bytes(400) + content[middle + 400 :]  # Longer than any header: data is damaged.
    for damaged in (content[:middle], overwritten, b""):
        newest.write_bytes(damaged)
        assert training.RunCheckpoint(Run(tmp_path)).restore(tiny()) == (1, 0)
        assert "is damaged" in capsys.readouterr().out


def test_only_the_newest_two_checkpoints_are_kept_and_no_half_written_file(tmp_path):
    fit(tiny(), training.RunCheckpoint(Run(tmp_path)), epochs=3)
    names = sorted(path.name for path in (tmp_path / "checkpoints").iterdir())
    assert names == ["epoch-00002.npz", "epoch-00003.npz"]
    assert not list(tmp_path.glob(".writing-*"))


def test_a_checkpoint_of_another_model_is_an_error(tmp_path):
    fit(tiny(), training.RunCheckpoint(Run(tmp_path)), epochs=1)
    other = Transformer(V, num_layers=2, num_heads=1, hidden_dim=6, intermediate_dim=7)
    other.compile(optimizer=training.make_optimizer(0.1), loss=training.LabelSmoothedCrossEntropy())
    with pytest.raises(ValueError, match="is from another model or optimizer: resume with the settings"):
        training.RunCheckpoint(Run(tmp_path)).restore(other)


def test_without_checkpoints_training_begins_at_epoch_0(tmp_path):
    assert training.RunCheckpoint(Run(tmp_path)).restore(tiny()) == (0, 0)


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
        fit(tiny(), training.RunCheckpoint(Run(tmp_path)), epochs=1)
    assert (caught.value.errno, caught.value.filename) == (errno.ENOSPC, str(tmp_path / path))
    left = {str(file.relative_to(tmp_path)) for file in tmp_path.rglob("*") if file.is_file()}
    assert left == ({"model.keras"} if path.startswith("checkpoints") else set())
    checkpoint = training.RunCheckpoint(Run(tmp_path))
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
    model, callback = tiny(), training.RunCheckpoint(Run(folder), **kwargs)
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
        checkpoint = training.RunCheckpoint(Run(tmp_path), **kwargs)
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
        training.save_model(self.model, self.path)
        self.raw_after = self.model.get_weights()
        with training.averaged_weights(self.model):
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
