"""Trainings of a small model, for test_distribution.py: `... STRATEGY,... CASES_AS_JSON FOLDER`.

In processes of their own, because logical devices and collectives are set up before anything else uses TensorFlow. The
same batches whatever the strategy; within each, the first rows are long and the last ones short, so that replicas hold
different numbers of real tokens.
"""

import itertools
import json
import os
import subprocess
import sys
import tempfile
from contextlib import nullcontext

import keras
import numpy as np

from keras_transformer.models.distributed_fit import DistributedFit
from keras_transformer.models.transformer import Transformer
from keras_transformer.training.checkpoints import to_numpy
from keras_transformer.training.distribution import distribute, is_chief
from keras_transformer.training.initialization import add_teacher
from keras_transformer.training.losses import LabelSmoothedCrossEntropy
from keras_transformer.training.metrics import Perplexity
from keras_transformer.training.schedules import make_optimizer

V, S, T = 23, 7, 9
FAST_TO_COMPILE = "--xla_backend_optimization_level=0"


class Bigrams(DistributedFit, keras.Model):
    """Each token from the one before it: the smallest model with what a training step asks of a `Transformer`."""

    def __init__(self, vocabulary_size, hidden_dim, dtype=None):
        super().__init__(dtype=dtype)
        self.vocabulary_size = self.target_vocabulary_size = vocabulary_size
        # No `keras.layers.Embedding`: on one device, its sparse gradients have another norm.
        self.embedding = keras.layers.Dense(hidden_dim, dtype=dtype)
        self.dense = keras.layers.Dense(vocabulary_size, dtype=dtype)

    def call(self, inputs):
        return self.dense(self.embedding(keras.ops.one_hot(inputs["decoder_token_ids"], self.vocabulary_size)))


def batches(rows, batch_size):
    """Inputs, labels and weights as arrays, and for TensorFlow as a data set."""
    rng = np.random.default_rng(0)
    source, labels = rng.integers(1, V, (rows, S)).astype("int32"), rng.integers(1, V, (rows, T)).astype("int32")
    for i in range(rows):
        if i % batch_size >= batch_size / 2:
            source[i, 3:], labels[i, 2:] = 0, 0
    decoder = np.pad(labels, [(0, 0), (1, 0)])[:, :-1]
    decoder[:, 0] = 2
    return {"encoder_token_ids": source, "decoder_token_ids": decoder}, labels, (labels != 0).astype("float32")


def train(
    clip_norm=1.0,
    dtype=None,
    rows=16,
    batch_size=4,
    teacher_weight=0,
    epsilon=1e-4,
    bigrams=False,
    begin=None,
    **compile_arguments,
):
    """The arrays of the trained model and of its optimizer, and its history; `begin` is a file of such arrays."""
    keras.utils.set_random_seed(3)
    kind, sizes = Bigrams, {"hidden_dim": 8}
    if not bigrams:
        kind, sizes = Transformer, {**sizes, "num_layers": 1, "num_heads": 2, "intermediate_dim": 12, "dropout": 0.0}
    model = kind(V, **sizes, dtype=dtype)
    optimizer = make_optimizer(0.01, clip_norm)
    # The bias of the keys has no gradient but rounding errors, and with the paper's 1e-9 Adam makes steps of them.
    optimizer.epsilon = epsilon
    compile_arguments = {"jit_compile": False, **compile_arguments}
    model.compile(optimizer, LabelSmoothedCrossEntropy(), weighted_metrics=[Perplexity()], **compile_arguments)
    if teacher_weight:
        deeper = {} if bigrams else {"num_layers": 2}
        add_teacher(model, kind(V, **{**sizes, **deeper}), teacher_weight)
    if begin:
        model.optimizer.build(model.trainable_variables)
        with np.load(begin) as file:
            arrays = [file[name] for name in file.files if name != "history"]
        for variable, array in zip(model.weights + model.optimizer.variables, arrays, strict=True):
            variable.assign(array)
    inputs, labels, weights = arrays = batches(rows, batch_size)
    settings = {"epochs": 2, "verbose": 0, "shuffle": False}
    if keras.backend.backend() == "tensorflow":
        import tensorflow as tf

        data = tf.data.Dataset.from_tensor_slices(arrays).batch(batch_size)
        history = model.fit(data, validation_data=data, **settings).history
    else:
        data = {"sample_weight": weights, "batch_size": batch_size}
        history = model.fit(inputs, labels, validation_data=arrays, **data, **settings).history
    history = {key: [float(value) for value in values] for key, values in history.items()}
    if isinstance(keras.distribution.distribution(), keras.distribution.ModelParallel):
        assert_divided_and_saved(model)
    return [to_numpy(v).astype("float64") for v in model.weights + model.optimizer.variables], history


def assert_divided_and_saved(model):
    """Matrices are divided, with their moments, and a saved model is loaded onto the same devices."""
    weights = [w for w in model.weights + model.optimizer.variables if len(w.shape) == 2]
    assert len(weights) == 3 * 12 and not any(w.value.sharding.is_fully_replicated for w in weights)
    with tempfile.TemporaryDirectory() as folder:
        model.save(f"{folder}/model.keras")
        loaded = keras.saving.load_model(f"{folder}/model.keras")
    for a, b in zip(model.weights, loaded.weights, strict=True):
        assert a.value.sharding == b.value.sharding
        np.testing.assert_array_equal(to_numpy(a), to_numpy(b))


def without_accumulation(case):
    return {key: value for key, value in case.items() if key != "gradient_accumulation_steps"}


def train_in_processes(kinds, folder, cases, **environment):
    """Runs this file, on two workers if it is for several, and returns the arrays and the history of each case."""
    folder.mkdir()
    call = [__file__, kinds, json.dumps(cases), str(folder)]
    if kinds == "multi_worker":
        call = ["-m", "keras_transformer", "launch", "--workers", "2", *call]
    environment = {**os.environ, "TF_CPP_MIN_LOG_LEVEL": "2", "XLA_FLAGS": FAST_TO_COMPILE, **environment}
    done = subprocess.run([sys.executable, *call], env=environment, capture_output=True, text=True, timeout=500)
    assert done.returncode == 0, (done.stdout + done.stderr)[-3000:]
    found = {}
    for kind, name in itertools.product(kinds.split(","), cases):
        with np.load(folder / f"{kind}, {name}.npz") as file:
            history = json.loads(str(file["history"]))
            found[kind, name] = [file[key] for key in file.files if key != "history"], history
    return found


def assert_same(found, expected, tolerance=1e-5, name=""):
    """The same weights, also of the optimizer, and the same losses and metrics."""
    (arrays, history), (expected, expected_history) = found, expected
    for a, b in zip(arrays, expected, strict=True):
        np.testing.assert_allclose(a, b, atol=tolerance, rtol=0, err_msg=name)
    assert history.keys() == expected_history.keys() == {"loss", "perplexity", "val_loss", "val_perplexity"}
    for key, values in history.items():
        np.testing.assert_allclose(values, expected_history[key], rtol=tolerance, err_msg=f"{name}, {key}")


def main(kinds, cases, folder):
    if kinds == "mirrored":
        import tensorflow as tf

        cpu = tf.config.list_physical_devices("CPU")[0]
        tf.config.set_logical_device_configuration(cpu, [tf.config.LogicalDeviceConfiguration()] * 2)
    for kind in kinds.split(","):
        if kind == "model_parallel":
            mesh = keras.distribution.DeviceMesh((2, 4), ("batch", "model"), keras.distribution.list_devices())
            layout_map = Transformer.get_layout_map(mesh)
            keras.distribution.set_distribution(
                keras.distribution.ModelParallel(layout_map=layout_map, batch_dim_name="batch")
            )
        with nullcontext() if kind == "model_parallel" else distribute(kind) as strategy:
            for name, options in json.loads(cases).items():
                arrays, history = train(**options)
                if is_chief(strategy):
                    np.savez(f"{folder}/{kind}, {name}.npz", *arrays, history=json.dumps(history))


if __name__ == "__main__":
    main(*sys.argv[1:])
