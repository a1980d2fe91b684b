"""Masks: boolean, True = attend."""

import re

import keras
import numpy as np
import pytest
from keras import ops

from keras_transformer.layers.masks import (
    bias,
    causal_mask,
    check_attention_mask,
    check_padding_mask,
    combine,
    padding_mask,
)

B, N, T, S = 2, 7, 3, 5


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
def test_causal_mask_is_the_lower_triangle_and_the_diagonal(length):
    mask = causal_mask(length)
    assert dtype_of(mask) == "bool"
    np.testing.assert_array_equal(ops.convert_to_numpy(mask), np.tril(np.ones((1, length, length), bool)))


def test_causal_mask_takes_a_length_known_only_at_run_time():
    mask = causal_mask(ops.convert_to_tensor(4, dtype="int32"))
    np.testing.assert_array_equal(ops.convert_to_numpy(mask), np.tril(np.ones((1, 4, 4), bool)))


@pytest.mark.parametrize(("length", "value_length"), [(3, 5), (5, 3), (1, 7)])
def test_causal_mask_of_two_lengths_compares_positions_from_the_start(length, value_length):
    expected = np.tril(np.ones((1, length, value_length), bool))
    np.testing.assert_array_equal(ops.convert_to_numpy(causal_mask(length, value_length)), expected)


@pytest.mark.parametrize("masks", [(None,), (None, None, None)])
def test_combine_of_no_masks_is_none(masks):
    assert combine(*masks) is None


def test_combine_applies_a_padding_mask_to_all_heads_and_queries():
    padding = random_mask(B, S)
    mask = combine(padding)
    assert dtype_of(mask) == "bool"
    np.testing.assert_array_equal(ops.convert_to_numpy(mask), padding[:, None, None, :])


SHAPES = [(T, S), (1, S), (B, T, S), (1, T, S), (B, 1, S), (1, 1, S), (B, N, T, S), (1, N, T, S), (B, 1, T, S)]


def read_as_keras_does(mask):
    """Expands a mask to (B, N, T, S): missing axes are added in front, and the axis of the heads after the batch."""
    return np.broadcast_to(mask[:, None] if mask.ndim == 3 else mask, (B, N, T, S))


@pytest.mark.parametrize("shape", SHAPES)
def test_combine_is_true_only_where_every_mask_is_true(shape):
    padding, attention, other = random_mask(B, S, seed=1), random_mask(*shape, seed=2), random_mask(1, T, S, seed=3)
    for masks in ((attention,), (attention, None), (None, attention), (attention, other), (other, attention)):
        for first in (None, padding):
            expected = np.ones((B, N, T, S), bool) if first is None else padding[:, None, None, :]
            for mask in masks:
                expected = expected & (True if mask is None else read_as_keras_does(mask))
            mask = ops.convert_to_numpy(combine(first, *masks))
            assert mask.ndim == 4
            np.testing.assert_array_equal(np.broadcast_to(mask, (B, N, T, S)), expected)


def test_combine_tells_a_mask_of_pairs_from_a_padding_mask_of_the_same_shape():
    mask = np.tril(np.ones((S, S), bool))  # As many sentences as positions.
    np.testing.assert_array_equal(ops.convert_to_numpy(combine(None, mask)), mask[None, None])
    np.testing.assert_array_equal(ops.convert_to_numpy(combine(mask)), mask[:, None, None])


def test_combine_of_padding_attention_and_causal_masks():
    padding, attention = random_mask(B, T, seed=3), random_mask(B, T, T, seed=4)
    mask = ops.convert_to_numpy(combine(padding, attention, causal_mask(T)))
    for b in range(B):
        for t in range(T):
            for s in range(T):
                assert mask[b, 0, t, s] == (padding[b, s] and attention[b, t, s] and s <= t)


@pytest.mark.parametrize("dtype", ["int32", "float32", "uint8"])
def test_combine_gives_bool_for_masks_of_zeros_and_ones(dtype):
    padding, attention = random_mask(B, S, seed=5), random_mask(B, T, S, seed=6)
    mask = combine(padding.astype(dtype), attention.astype(dtype))
    assert dtype_of(mask) == "bool"
    np.testing.assert_array_equal(ops.convert_to_numpy(mask)[:, 0], padding[:, None, :] & attention)


def test_combine_takes_lists():
    mask = ops.convert_to_numpy(combine([[True, False]], [[1, 1], [0, 1]]))
    np.testing.assert_array_equal(mask, [[[[True, False], [False, False]]]])


def test_bias_is_zero_where_the_mask_is_true():
    mask = random_mask(B, S)
    np.testing.assert_array_equal(ops.convert_to_numpy(bias(mask)), np.where(mask, 0.0, np.float32(-1e9)))


@pytest.mark.parametrize("shape", [(B, S), (1, S), (B, 1)])
def test_a_padding_mask_is_as_long_as_its_sequence(shape):
    check_padding_mask("value_mask", np.ones(shape, bool), (B, S, 11))
    check_padding_mask("value_mask", np.ones(shape, bool), (None, None, 11))
    check_padding_mask("value_mask", None, (B, S, 11))


@pytest.mark.parametrize("shape", [(S,), (B, T), (T, S), (B, 1, S), (B, T, S)])
def test_a_padding_mask_of_another_shape_is_refused(shape):
    match = (
        rf"`value_mask` must be a padding mask of shape \(batch, length\).*Received: shape=\({shape[0]}.*"
        rf"for a sequence of shape \({B}, {S}, 11\).*attention masks"
    )
    with pytest.raises(ValueError, match=match):
        check_padding_mask("value_mask", np.ones(shape, bool), (B, S, 11))


@pytest.mark.parametrize("shape", SHAPES)
def test_an_attention_mask_broadcasts_to_the_scores(shape):
    check_attention_mask("attention_mask", np.ones(shape, bool), (B, N, T, S))
    check_attention_mask("attention_mask", np.ones(shape, bool), (None, N, None, None))
    check_attention_mask("attention_mask", None, (B, N, T, S))


@pytest.mark.parametrize(
    "shape", [(), (S,), (B, S), (S, T), (N, T, S), (B, S, T), (B, N, T, 2), (B, T, N, S), (1, B, N, T, S)], ids=str
)
def test_an_attention_mask_of_another_shape_is_refused(shape):
    match = (
        r"`attention_mask` must have shape \(T, S\), \(B, T, S\) or \(B, N, T, S\).*"
        rf"Received: shape={re.escape(str(shape))} for \(B, N, T, S\)=\({B}, {N}, {T}, {S}\).*Padding masks \(B, S\)"
    )
    with pytest.raises(ValueError, match=match):
        check_attention_mask("attention_mask", np.ones(shape, bool), (B, N, T, S))
