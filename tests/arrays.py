"""Random arrays and weights for the tests of the layers."""

import random as python_random

import keras
import numpy as np
from keras import ops


def to_numpy(x):
    return ops.convert_to_numpy(ops.cast(x, "float32"))


def checkpoint_arrays(run_dir, epochs):
    """The variables in the checkpoint after `epochs` epochs, by name."""
    with np.load(run_dir / "checkpoints" / f"epoch-{epochs:05d}.npz") as file:
        return {name: file[name] for name in file.files if name != "state"}


def random(*shape, seed=0):
    return np.random.default_rng(seed).normal(size=shape).astype("float32")


def symbolic_like(x):
    return keras.Input(batch_shape=x.shape, dtype=str(x.dtype))


def randomize(layer, seed=0):
    """Gives every weight random values, also biases and normalisations, whose zeros and ones could hide mistakes."""
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


def copy_attention(source, target):
    """Copies `keras.layers.MultiHeadAttention` to ours: (D, N, H) kernels joined to one (D, parts * N * H)."""

    def side_by_side(*denses):
        kernels = [to_numpy(dense.kernel).reshape(dense.kernel.shape[0], -1) for dense in denses]
        return [np.concatenate(kernels, axis=1), np.concatenate([to_numpy(dense.bias).ravel() for dense in denses])]

    query, key, value = source.query_dense, source.key_dense, source.value_dense
    fused = {
        "query_key_value_dense": (query, key, value),
        "key_value_dense": (key, value),
        "query_dense": (query,),
        "key_dense": (key,),
        "value_dense": (value,),
    }
    for name, parts in fused.items():
        if hasattr(target, name):
            getattr(target, name).set_weights(side_by_side(*parts))
    kernel = to_numpy(source.output_dense.kernel)
    target.output_dense.set_weights([kernel.reshape(-1, kernel.shape[-1]), to_numpy(source.output_dense.bias)])
    assert source.count_params() == target.count_params()


def seed_weights(seed):
    """Layers that are made from now on have the same weights each time: Keras draws their seeds with `random`.

    `keras.utils.set_random_seed` would also make TensorFlow forget its kernels, which costs a quarter of the time.
    """
    python_random.seed(seed)
