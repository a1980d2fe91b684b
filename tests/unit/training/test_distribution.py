"""The same training on one device, on two and in two processes."""

import json
import re

import keras
import numpy as np
import pytest

from keras_transformer.models.distributed_fit import DistributedFit
from keras_transformer.training.distribution import distribute, make_strategy

on_tensorflow = pytest.mark.skipif(
    keras.backend.backend() != "tensorflow", reason="tf.distribute and our accumulation of gradients need TensorFlow"
)

# What a caller may ask for.


def test_one_device_is_the_default(monkeypatch):
    monkeypatch.delenv("TF_CONFIG", raising=False)
    with distribute() as strategy:
        assert getattr(strategy, "num_replicas_in_sync", 1) == 1  # On JAX there is no strategy.


@pytest.mark.parametrize(
    ("kind", "message"),
    [
        ("two", r"`strategy` must be one of \('auto', 'one', 'mirrored', 'multi_worker'\). Received: 'two'"),
        ("mirrored", "needs at least two devices of one machine"),
        ("multi_worker", "neither TF_CONFIG nor Slurm's variables"),
    ],
)
def test_strategies_that_cannot_be(kind, message, monkeypatch):
    monkeypatch.delenv("TF_CONFIG", raising=False)
    with pytest.raises(ValueError, match=message):
        make_strategy(kind)


@pytest.mark.parametrize(
    ("cluster", "kind", "index"), [({}, "worker", 0), ({"worker": ["a:1"]}, "worker", 5), ({"worker": ["a:1"]}, "x", 0)]
)
def test_a_worker_that_is_not_in_the_cluster_is_an_error(monkeypatch, cluster, kind, index):
    description = json.dumps({"cluster": cluster, "task": {"type": kind, "index": index}})
    monkeypatch.setenv("TF_CONFIG", description)
    with pytest.raises(ValueError, match=rf"TF_CONFIG must list the workers, .*Received: {re.escape(description)}\."):
        make_strategy("multi_worker")


@pytest.mark.parametrize("steps", [0, 1.5, True])
def test_no_batch_is_split_into_less_than_one_part(steps):
    match = f"`gradient_accumulation_steps` must be an integer of at least 1. Received: .*={steps}"
    with pytest.raises(ValueError, match=match):
        dense_model(gradient_accumulation_steps=steps)


def dense_model(train_step=None, **arguments):
    """y = w x, compiled; with a `train_step` of its own if one is given."""

    class Plain(DistributedFit, keras.Model):
        def __init__(self):
            super().__init__()
            self.dense = keras.layers.Dense(V, kernel_initializer="ones")

        def call(self, x):
            return self.dense(x)

    if train_step is not None:
        Plain.train_step = train_step
    model = Plain()
    model.compile("sgd", **{"loss": "mse", "jit_compile": False, "gradient_accumulation_steps": 2, **arguments})
    return model


V = 5


@on_tensorflow
def test_a_weight_without_a_gradient_stays_as_it_is():
    class Unused(DistributedFit, keras.Model):
        def __init__(self):
            super().__init__()
            self.used, self.unused = keras.layers.Dense(V), keras.layers.Dense(V)

        def call(self, x):
            self.unused(x)
            return self.used(x)

    model = Unused()
    model.compile("sgd", "mse", jit_compile=False, gradient_accumulation_steps=2)
    x = np.ones((4, 3), "float32")
    model(x)
    before = [layer.get_weights() for layer in (model.used, model.unused)]
    with pytest.warns(UserWarning, match="Gradients do not exist for variables"):
        model.fit(x, np.ones((4, V), "float32"), verbose=0)
    after = [layer.get_weights() for layer in (model.used, model.unused)]
    assert not np.array_equal(before[0][0], after[0][0])
    np.testing.assert_array_equal(before[1][0], after[1][0])


def sparse(**arguments):
    return keras.losses.SparseCategoricalCrossentropy(from_logits=True, **arguments)


@on_tensorflow
@pytest.mark.parametrize("reduction", ["sum_over_batch_size", "mean", "mean_with_sample_weight"])
@pytest.mark.parametrize("weighted", [False, True])
def test_parts_of_a_batch_add_up_for_every_kind_of_mean(reduction, weighted):
    """Seven rows in two parts, weights that differ: the weights after a step are those of the whole batch."""
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(7, 3, 2)).astype("float32"), rng.integers(0, V, (7, 3))
    weights = {"sample_weight": rng.integers(0, 4, (7, 3)).astype("float32")} if weighted else {}
    found = []
    for steps in (1, 2):
        model = dense_model(loss=sparse(reduction=reduction), gradient_accumulation_steps=steps)
        model.fit(x, y, **weights, batch_size=7, verbose=0)
        found.append(model.get_weights()[0])
    assert np.abs(found[0] - 1).max() > 1e-3
    np.testing.assert_allclose(found[1], found[0], atol=1e-6)


@on_tensorflow
@pytest.mark.parametrize(
    ("arguments", "match"),
    [
        ({"ignore_class": 0}, r"may not have `ignore_class`.*Crossentropy\(ignore_class=0\). Pass sample weights"),
        ({"reduction": "sum"}, r"a loss must be a mean.*Received: reduction='sum'"),
        ({"reduction": None}, r"a loss must be a mean.*Received: reduction=None"),
    ],
)
def test_losses_whose_parts_do_not_add_up_are_errors(arguments, match):
    dense_model(loss=sparse(**arguments), gradient_accumulation_steps=1)
    with pytest.raises(ValueError, match=match):
        dense_model(loss=sparse(**arguments))


@on_tensorflow
def test_a_mask_without_sample_weights_is_an_error():
    class Masked(DistributedFit, keras.Model):
        def __init__(self):
            super().__init__()
            self.embedding = keras.layers.Embedding(V, V, mask_zero=True)

        def call(self, x):
            return self.embedding(x)

    model = Masked()
    model.compile("sgd", sparse(), jit_compile=False, gradient_accumulation_steps=2)
    ids = np.array([[1, 0, 0], [1, 2, 3]])
    with pytest.raises(ValueError, match=r"carries a Keras mask.*Received: no sample weights"):
        model.fit(ids, ids, verbose=0)
    model.compile("sgd", sparse(reduction="mean_with_sample_weight"), jit_compile=False, gradient_accumulation_steps=2)
    model.fit(ids, ids, sample_weight=(ids != 0) * 1.0, verbose=0)


@on_tensorflow
def test_weights_per_output_are_an_error():
    class Two(DistributedFit, keras.Model):
        def __init__(self):
            super().__init__()
            self.dense = keras.layers.Dense(V)

        def call(self, x):
            return self.dense(x), self.dense(x)

    model, mean = Two(), "mean_with_sample_weight"
    losses = [sparse(reduction=mean), sparse(reduction=mean)]
    model.compile("sgd", losses, jit_compile=False, gradient_accumulation_steps=2)
    x, y = np.ones((4, 3), "float32"), np.ones(4, "int32")
    with pytest.raises(ValueError, match=r"one array of weights and one kind of mean.*Received: 2 arrays of weights"):
        model.fit(x, (y, y), sample_weight=(np.ones(4), np.ones(4)), verbose=0)


@on_tensorflow
def test_a_train_step_that_does_not_call_ours_is_an_error():
    def own(self, data):
        return {"loss": 0.0}

    def ours(self, data):
        return DistributedFit.train_step(self, data)

    dense_model(own, gradient_accumulation_steps=1)
    dense_model(ours)
    with pytest.raises(ValueError, match=r"Received: Plain.train_step, which does not call super\(\).train_step"):
        dense_model(own)


@on_tensorflow
def test_the_training_step_is_traced_once():
    """TensorFlow traces a function that makes variables twice: the optimizer has to have its own before."""
    traces = []

    def counted(self, data):
        traces.append(data)
        return DistributedFit.train_step(self, data)

    model, x = dense_model(counted, gradient_accumulation_steps=1), np.ones((4, 3), "float32")
    model(x)
    model.compile("adam", "mse", jit_compile=False)
    model.fit(x, np.ones((4, V), "float32"), batch_size=2, verbose=0)
    assert len(traces) == 1


def test_a_model_that_makes_its_weights_in_the_first_step_learns():
    class Late(DistributedFit, keras.Model):
        def __init__(self):
            super().__init__()
            self.dense = keras.layers.Dense(1)

        def call(self, x):
            return self.dense(x)

    model = Late()
    model.compile("sgd", "mse", jit_compile=False)
    x = np.arange(8, dtype="float32")[:, None] / 8
    losses = model.fit(x, 3 * x, epochs=5, verbose=0).history["loss"]
    assert losses[-1] < losses[0]
