"""Masks: boolean, True = attend."""

import keras
import numpy as np
import pytest
from keras import ops

from keras_transformer.masks import causal_mask, combine, padding_mask

B, T, S = 2, 3, 5


def random_mask(*shape, seed=0):
    return np.random.default_rng(seed).random(shape) < 0.5


def dtype_of(x):
    return keras.backend.standardize_dtype(x.dtype)


@pytest.mark.parametrize("convert", [list, np.array, ops.convert_to_tensor], ids=["list", "numpy", "tensor"])
def test_padding_mask_is_true_at_real_tokens(convert):
    mask = padding_mask(convert([[7, 5, 0], [4, 0, 0]]))
    assert dtype_of(mask) == "bool"
    np.testing.assert_array_equal(ops.convert_to_numpy(mask), [[True, True, False], [True, False, False]])


def test_padding_mask_uses_the_given_pad_token_id_and_no_other():
    mask = padding_mask([[7, 0, 3, 3]], pad_token_id=3)
    np.testing.assert_array_equal(ops.convert_to_numpy(mask), [[True, True, False, False]])


def test_padding_mask_marks_a_pad_id_between_real_tokens_too():
    np.testing.assert_array_equal(ops.convert_to_numpy(padding_mask([[7, 0, 3]])), [[True, False, True]])


@pytest.mark.parametrize("shape", [(), (0,), (5,), (2, 3, 5)])
def test_padding_mask_keeps_any_shape(shape):
    assert tuple(padding_mask(np.zeros(shape, "int32")).shape) == shape


@pytest.mark.parametrize("length", [1, 2, 7])
def test_causal_mask_is_the_lower_triangle_with_its_diagonal(length):
    mask = causal_mask(length)
    assert dtype_of(mask) == "bool"
    np.testing.assert_array_equal(ops.convert_to_numpy(mask), np.tril(np.ones((1, length, length), bool)))


def test_causal_mask_takes_a_length_known_only_at_run_time():
    mask = causal_mask(ops.convert_to_tensor(4, dtype="int32"))
    np.testing.assert_array_equal(ops.convert_to_numpy(mask), np.tril(np.ones((1, 4, 4), bool)))


@pytest.mark.parametrize("masks", [(), (None,), (None, None, None)])
def test_combine_of_no_restriction_is_none(masks):
    assert combine(*masks) is None


def test_combine_spreads_a_padding_mask_over_all_queries():
    padding = random_mask(B, S)
    mask = combine(padding)
    assert dtype_of(mask) == "bool"
    np.testing.assert_array_equal(ops.convert_to_numpy(mask), padding[:, None, :])


def test_combine_leaves_a_single_attention_mask_as_it_is():
    attention = random_mask(B, T, S)
    np.testing.assert_array_equal(ops.convert_to_numpy(combine(None, attention, None)), attention)


@pytest.mark.parametrize("shape", [(B, T, S), (1, T, S), (B, 1, S), (1, 1, S)])
def test_combine_allows_only_what_every_mask_allows(shape):
    padding, attention = random_mask(B, S, seed=1), random_mask(*shape, seed=2)
    expected = np.logical_and(padding[:, None, :], attention)
    for masks in ((padding, attention), (attention, padding), (padding, None, attention)):
        np.testing.assert_array_equal(ops.convert_to_numpy(combine(*masks)), expected)


def test_combine_of_padding_attention_and_causal_masks():
    padding, attention = random_mask(B, T, seed=3), random_mask(B, T, T, seed=4)
    mask = ops.convert_to_numpy(combine(padding, attention, causal_mask(T)))
    for b in range(B):
        for t in range(T):
            for s in range(T):
                assert mask[b, t, s] == (padding[b, s] and attention[b, t, s] and s <= t)


@pytest.mark.parametrize("dtype", ["int32", "float32", "uint8"])
def test_combine_gives_bool_for_masks_of_zeros_and_ones(dtype):
    padding, attention = random_mask(B, S, seed=5), random_mask(B, T, S, seed=6)
    mask = combine(padding.astype(dtype), attention.astype(dtype))
    assert dtype_of(mask) == "bool"
    np.testing.assert_array_equal(ops.convert_to_numpy(mask), padding[:, None, :] & attention)
