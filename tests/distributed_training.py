"""Trainings of a small model, for tests/test_distribution.py: `... STRATEGY,... CASES_AS_JSON FOLDER`.

In processes of their own, because logical devices and collectives are set up before anything else uses TensorFlow. The
same batches whatever the strategy; within each, the first rows are long and the last ones short, so that replicas hold
different numbers of real tokens.
"""

import json
import sys

import keras
import numpy as np

from keras_transformer.checkpoints import to_numpy
from keras_transformer.distribution import distribute, is_chief
from keras_transformer.losses import LabelSmoothedCrossEntropy, Perplexity
from keras_transformer.model import Transformer
from keras_transformer.training import add_teacher, make_optimizer

V, S, T = 23, 7, 9


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
    ema_momentum=None,
    dtype=None,
    rows=16,
    batch_size=4,
    dropout=0.0,
    teacher_weight=0,
    epsilon=1e-4,
    **compile_arguments,
):
    """The trained model and its history."""
    keras.utils.set_random_seed(3)
    sizes = {"num_layers": 1, "num_heads": 2, "hidden_dim": 8, "intermediate_dim": 12}
    model = Transformer(V, **sizes, dropout=dropout, dtype=dtype)
    optimizer = make_optimizer(0.01, clip_norm, ema_momentum)
    # The bias of the keys has no gradient but rounding errors, and with the paper's 1e-9 Adam makes steps of them.
    optimizer.epsilon = epsilon
    compile_arguments = {"jit_compile": False, **compile_arguments}
    model.compile(optimizer, LabelSmoothedCrossEntropy(), weighted_metrics=[Perplexity()], **compile_arguments)
    if teacher_weight:
        add_teacher(model, Transformer(V, **{**sizes, "num_layers": 2}), teacher_weight)
    inputs, labels, weights = arrays = batches(rows, batch_size)
    settings = {"epochs": 2, "verbose": 0, "shuffle": False}
    if keras.backend.backend() == "tensorflow":
        import tensorflow as tf

        data = tf.data.Dataset.from_tensor_slices(arrays).batch(batch_size)
        return model, model.fit(data, validation_data=data, **settings).history
    data = {"sample_weight": weights, "batch_size": batch_size}
    return model, model.fit(inputs, labels, validation_data=arrays, **data, **settings).history


def main(kinds, cases, folder):
    if kinds == "mirrored":
        import tensorflow as tf

        cpu = tf.config.list_physical_devices("CPU")[0]
        tf.config.set_logical_device_configuration(cpu, [tf.config.LogicalDeviceConfiguration()] * 2)
    for kind in kinds.split(","):
        with distribute(kind) as strategy:
            for name, options in json.loads(cases).items():
                model, history = train(**options)
                arrays = [to_numpy(v) for v in model.weights + model.optimizer.variables]
                if is_chief(strategy):
                    numbers = {key: [float(value) for value in values] for key, values in history.items()}
                    np.savez(f"{folder}/{kind}, {name}.npz", *arrays, history=json.dumps(numbers))


if __name__ == "__main__":
    main(*sys.argv[1:])
