"""Random arrays and weights for the tests of the layers."""

import keras
import numpy as np
from keras import ops


def to_numpy(x):
    return ops.convert_to_numpy(ops.cast(x, "float32"))


def checkpoint_arrays(run_dir, epochs):
    """What the checkpoint after so many epochs holds: variables by name."""
    with np.load(run_dir / "checkpoints" / f"epoch-{epochs:05d}.npz") as file:
        return {name: file[name] for name in file.files if name != "state"}


def random(*shape, seed=0):
    return np.random.default_rng(seed).normal(size=shape).astype("float32")


def randomize(layer, seed=0):
    """Gives every weight, biases and normalisations too, values that a mistake cannot hide behind."""
    layer.set_weights([0.4 * random(*w.shape, seed=seed + i) for i, w in enumerate(layer.weights)])
    return layer


def embed(ids, width, seed=0):
    """Random vectors (B, L, width) that carry the Keras mask `ids != 0`."""
    layer = keras.layers.Embedding(19, width, mask_zero=True)
    layer.build((None, None))
    return randomize(layer, seed)(ids)


def keras_mask(x):
    mask = getattr(x, "_keras_mask", None)
    return None if mask is None else ops.convert_to_numpy(mask)
