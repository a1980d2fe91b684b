"""Caches of keys and values: writing, masks and lengthening."""

import numpy as np
import pytest
from arrays import random, to_numpy
from keras import ops

from keras_transformer.layers.caches import FixedCache, GrowingCache, empty_cache

ROWS, H, H_VALUE, L, K = 6, 11, 13, 5, 3


def written(cache, steps, num_beams=K):
    """The cache after some steps, and the keys and values that these steps wrote, concatenated."""
    keys = [random(ROWS, H, num_beams, seed=t) for t in range(steps)]
    values = [random(ROWS, num_beams, H_VALUE, seed=t + 50) for t in range(steps)]
    for t in range(steps):
        index = ops.convert_to_tensor(t, "int32")
        cache = cache.write(ops.convert_to_tensor(keys[t]), ops.convert_to_tensor(values[t]), index)
    return cache, np.concatenate(keys, axis=2), np.concatenate(values, axis=1)


def test_a_growing_cache_holds_what_was_written():
    cache, keys, values = written(empty_cache("growing", ROWS, H, H_VALUE, 0, "float32"), 4)
    assert isinstance(cache, GrowingCache)
    np.testing.assert_array_equal(to_numpy(cache.keys), keys)
    np.testing.assert_array_equal(to_numpy(cache.values), values)
    assert cache.lengthen(7, K) is cache


@pytest.mark.parametrize("max_length", [L, 7])
def test_a_fixed_cache_holds_what_was_written_and_zeros(max_length):
    """On TensorFlow the op that writes slices is an XLA op. It gives the same result without XLA."""
    cache, keys, values = written(empty_cache("fixed", ROWS, H, H_VALUE, L * K, "float32"), 4)
    cache = cache.lengthen(max_length, K)
    assert isinstance(cache, FixedCache)
    more = (max_length - 4) * K
    np.testing.assert_array_equal(to_numpy(cache.keys), np.pad(keys, [(0, 0), (0, 0), (0, more)]))
    np.testing.assert_array_equal(to_numpy(cache.values), np.pad(values, [(0, 0), (0, more), (0, 0)]))


def test_one_beam_attends_to_the_written_positions():
    assert empty_cache("growing", ROWS, H, H_VALUE, 0, "float32").mask(2) is None
    mask = empty_cache("fixed", ROWS, H, H_VALUE, L, "float32").mask(2)
    assert to_numpy(mask).astype(bool).tolist() == [True, True, True, False, False]


def test_each_beam_attends_to_the_slices_of_its_ancestors():
    ancestors = np.full((2, K, L), -1, "int32")
    ancestors[..., :3] = np.random.default_rng(0).integers(0, K, (2, K, 3))
    expected = np.zeros((2, 1, K, L, K), bool)
    for b, k, position in np.ndindex(2, K, 3):
        expected[b, 0, k, position, ancestors[b, k, position]] = True
    expected = expected.reshape(2, 1, K, L * K)
    for kind, size in (("fixed", L * K), ("growing", 0)):
        mask = empty_cache(kind, ROWS, H, H_VALUE, size, "float32").mask(2, ops.convert_to_tensor(ancestors))
        np.testing.assert_array_equal(
            to_numpy(mask).astype(bool), expected[..., : 3 * K if kind == "growing" else L * K]
        )


def test_later_positions_are_masked_with_any_ancestors():
    mask = empty_cache("fixed", ROWS, H, H_VALUE, L * K, "float32").mask(1, ops.zeros((1, K, L), "int32"))
    assert not to_numpy(mask).reshape(K, L, K)[:, 2:].any()


def test_another_kind_of_cache_is_an_error():
    with pytest.raises(ValueError, match=r"`cache` must be one of \('growing', 'fixed'\)\. Received: 'static'"):
        empty_cache("static", ROWS, H, H_VALUE, 0, "float32")
