"""Schedule, optimizer, and compiled models in files."""

import dataclasses
import math
from types import SimpleNamespace

import keras
import numpy as np
import pytest
from arrays import seed_weights

from keras_transformer.models.distributed_fit import DistributedFit
from keras_transformer.models.transformer import Transformer
from keras_transformer.training import checkpoints
from keras_transformer.training.config import RunConfig
from keras_transformer.training.fit import TimeLeft, compiled_model
from keras_transformer.training.losses import LabelSmoothedCrossEntropy
from keras_transformer.training.metrics import Perplexity, TokenAccuracy
from keras_transformer.training.schedules import InverseSquareRootSchedule, make_optimizer, make_schedule

B, T, V = 3, 5, 11


def test_schedule_is_the_papers_equation_and_peaks_at_warmup_steps():
    hidden_dim, warmup_steps = 512, 40
    schedule = InverseSquareRootSchedule((hidden_dim * warmup_steps) ** -0.5, warmup_steps)
    rates = [float(schedule(iterations)) for iterations in range(200)]
    paper = [hidden_dim**-0.5 * min(step**-0.5, step * warmup_steps**-1.5) for step in range(1, 201)]
    np.testing.assert_allclose(rates, paper, rtol=1e-5)
    assert int(np.argmax(rates)) + 1 == warmup_steps


@pytest.mark.parametrize(("steps", "ratio"), [(200, 0.08), (200, 0.0), (7, 0.5), (1, 0.08), (3, 0.99)])
def test_the_schedule_of_a_run_is_a_ramp_and_half_a_cosine(steps, ratio):
    """Keras' `CosineDecay`: its warm-up and its decay begin where the formulas say, and no step has a rate of 0."""
    schedule, warmup = make_schedule(0.3, steps, ratio), max(1, round(ratio * steps))
    ramp = [0.3 / warmup + (0.3 - 0.3 / warmup) * i / warmup for i in range(warmup)]
    fall = [0.15 * (1 + math.cos(math.pi * i / max(1, steps - warmup))) for i in range(steps - warmup)]
    rates = [float(schedule(i)) for i in range(steps)]
    np.testing.assert_allclose(rates, ramp + fall, rtol=1e-4, atol=1e-7)
    assert min(rates) > 0
    if fall:
        assert float(schedule(steps)) == pytest.approx(0, abs=1e-7)


@pytest.mark.parametrize(
    ("settings", "peak"), [({}, 0.04), ({"init_from": "run"}, 0.008), ({"learning_rate": 0.1}, 0.1)], ids=str
)
def test_the_schedule_of_a_compiled_model_ends_with_its_last_epoch(settings, peak):
    config = RunConfig.make({"epochs": 3, "hidden_dim": 8, "num_heads": 2, "num_layers": 1, "warmup_ratio": 0.5})
    config = dataclasses.replace(config, training=dataclasses.replace(config.training, **settings))
    model = compiled_model(config, [SimpleNamespace(vocabulary_size=V)], steps_per_epoch=20)
    assert model.optimizer._learning_rate.get_config() == make_schedule(peak, 60, 0.5).get_config()


@pytest.mark.parametrize("peak", [None, 0.0, -1e-3, float("nan")])
def test_schedule_without_a_peak_is_an_error(peak):
    with pytest.raises(ValueError, match=f"`peak` must be positive: .* Received: peak={peak}"):
        InverseSquareRootSchedule(peak, 10)


@pytest.mark.parametrize(("minutes", "limit"), [(None, False), (1e6, False), (1e-9, True)])
def test_time_left_counts_the_time_limit(messages, minutes, limit):
    time_left = TimeLeft(minutes)
    time_left.set_params({"epochs": 3})
    time_left.on_train_begin()
    time_left.on_epoch_begin(0)
    time_left.on_epoch_end(0)
    time_left.on_epoch_begin(1)
    (line,) = messages().splitlines()
    assert line.startswith("2 epochs to go, about ") and ("; the time limit ends training" in line) is limit


def test_schedule_without_warmup_steps_is_an_error():
    with pytest.raises(ValueError, match="`warmup_steps` must be at least 1"):
        InverseSquareRootSchedule(1.0, 0)


@pytest.mark.parametrize(
    "part",
    [
        LabelSmoothedCrossEntropy(0.2),
        InverseSquareRootSchedule(0.3, 7),
        Perplexity(),
        TokenAccuracy(),
    ],
    ids=lambda part: type(part).__name__,
)
def test_parts_survive_keras_serialization(part):
    copy = keras.saving.deserialize_keras_object(keras.saving.serialize_keras_object(part))
    assert type(copy) is type(part)
    assert copy.get_config() == part.get_config()


def test_optimizer_has_the_papers_constants_and_clips_by_global_norm():
    optimizer = make_optimizer(0.1, clip_norm=0.5)
    config = optimizer.get_config()
    assert (config["beta_1"], config["beta_2"], config["epsilon"], config["global_clipnorm"]) == (0.9, 0.98, 1e-9, 0.5)
    assert make_optimizer(0.1, clip_norm=0).global_clipnorm is None


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
    ("kind", "steps", "dtype"),
    [
        ("transformer", 1, "float32"),
        ("own", 1, "float32"),
        pytest.param("own", 2, "mixed_float16", marks=ON_TENSORFLOW),
    ],
)
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
        seed_weights(1)
        sizes = {"num_layers": 1, "num_heads": 1, "hidden_dim": 6, "intermediate_dim": 7, "dropout": 0.0}
        model = Transformer(V, **sizes, dtype=dtype) if kind == "transformer" else OwnModel(dtype=dtype)
        optimizer = make_optimizer(InverseSquareRootSchedule(0.01, 3))
        loss, metrics = LabelSmoothedCrossEntropy(0.2), [Perplexity(), TokenAccuracy()]
        extra = {"gradient_accumulation_steps": steps} if steps > 1 else {}
        on_jax = (
            keras.backend.backend() == "jax"
        )  # It needs its compiler. TensorFlow traces one graph, of a Transformer.
        extra["run_eagerly"] = kind == "own" and not on_jax
        model.compile(optimizer, loss, weighted_metrics=metrics, jit_compile=on_jax, **extra)
        return model

    straight = begin()
    fit(straight, 3, callbacks=[keras.callbacks.ModelCheckpoint(tmp_path / "{epoch}.keras")])
    keras.utils.set_random_seed(99)
    loaded = keras.saving.load_model(tmp_path / "2.keras")
    assert loaded.get_compile_config().get("gradient_accumulation_steps", 1) == steps
    assert loaded.loss.label_smoothing == 0.2
    fit(loaded, 1)
    found, expected = ([*model.weights, *model.optimizer.variables] for model in (loaded, straight))
    for a, b in zip(found, expected, strict=True):
        np.testing.assert_array_equal(checkpoints.to_numpy(a), checkpoints.to_numpy(b))
    assert loaded.evaluate(inputs, ids, verbose=0, return_dict=True).keys() == {"loss", "perplexity", "token_accuracy"}


def test_an_uncompiled_model_is_loaded_uncompiled(tmp_path):
    model = Transformer(V, num_layers=1, num_heads=1, hidden_dim=6, intermediate_dim=7)
    model.save(tmp_path / "m.keras")
    assert not keras.saving.load_model(tmp_path / "m.keras").compiled


def test_the_compile_config_holds_the_requested_values():
    """The effective values may differ: with replicas, XLA is off in Keras and on in our step."""
    model = Transformer(V, num_layers=1, num_heads=1, hidden_dim=6, intermediate_dim=7)
    model.compile("adam", LabelSmoothedCrossEntropy(), jit_compile="auto")
    assert model.get_compile_config()["jit_compile"] == "auto"
