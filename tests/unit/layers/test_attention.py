"""Multi-head attention: parity with Keras' layer, masks that are never lost, cached steps."""

import json
import re

import keras
import numpy as np
import pytest
from arrays import copy_attention, embed, keras_mask, random, randomize, symbolic_like, to_numpy
from keras import ops

from keras_transformer.layers.attention import CHANGED_CONTEXT, MultiHeadAttention
from keras_transformer.layers.caches import FixedCache
from keras_transformer.layers.masks import bias

B, T, S, N, H, H_VALUE, D, D_VALUE, D_KEY, V = 2, 5, 7, 3, 11, 31, 13, 17, 23, 19
POLICIES = ("float32", "mixed_bfloat16", "mixed_float16")
QUERY_IDS = np.array([[3, 8, 5, 9, 2], [4, 7, 6, 0, 0]], "int32")
VALUE_IDS = np.array([[5, 9, 4, 0, 0, 0, 0], [6, 3, 8, 2, 7, 0, 0]], "int32")


def make(cross=False, query_width=D, seed=0, key=False, **kwargs):
    layer = MultiHeadAttention(**{"num_heads": N, "key_dim": H, **kwargs})
    shapes = [(None, None, query_width), (None, None, D_VALUE), (None, None, D_KEY)]
    layer.build(*shapes[: 3 if key else 2 if cross else 1])
    return randomize(layer, seed)


def input_and_weight_gradients(layer, x, *args, **kwargs):
    """Gradients of sum(output * constants) with respect to `x` and every weight, as NumPy arrays."""

    def loss(outputs):
        output = ops.cast(outputs[0] if isinstance(outputs, tuple) else outputs, "float32")
        return ops.sum(output * random(*output.shape, seed=99))

    x = ops.convert_to_tensor(x)
    weights = [w.value for w in layer.trainable_variables]
    if keras.backend.backend() == "tensorflow":
        import tensorflow as tf

        with tf.GradientTape() as tape:
            tape.watch(x)
            value = loss(layer(x, *args, **kwargs))
        gradients = tape.gradient(value, [x, *weights])
    else:
        import jax

        others = [w.value for w in layer.non_trainable_variables]

        def function(x, weights):
            return loss(layer.stateless_call(weights, others, x, *args, **kwargs)[0])

        gradient, weight_gradients = jax.grad(function, argnums=(0, 1))(x, weights)
        gradients = [gradient, *weight_gradients]
    return [to_numpy(g) for g in gradients]


# Parity with Keras


KINDS = ("self", "cross", "key")
PAIR_MASKS = {
    "": None,
    "TS": (T, S),
    "1S": (1, S),
    "BTS": (B, T, S),
    "1TS": (1, T, S),
    "B1S": (B, 1, S),
    "BNTS": (B, N, T, S),
    "B1TS": (B, 1, T, S),
    "1N1S": (1, N, 1, S),
}


def pair_of_layers(kind, **settings):
    """Keras' layer and ours, with the same weights."""
    theirs = keras.layers.MultiHeadAttention(N, H, **settings)
    widths = {"self": (D, D), "cross": (D, D_VALUE), "key": (D, D_VALUE, D_KEY)}[kind]
    theirs.build(*[(None, None, width) for width in widths])
    ours = make(cross=kind == "cross", key=kind == "key", **settings)
    copy_attention(randomize(theirs), ours)
    return theirs, ours


def inputs_of(kind, query_ids, value_ids, key_ids=None):
    """Tensors that carry masks, for the Keras layer and for ours. Two copies, because the Keras layer removes masks."""
    query = embed(query_ids, D)
    if kind == "self":
        return [query, query], [embed(query_ids, D)]

    def others():
        key = [embed(value_ids if key_ids is None else key_ids, D_KEY, seed=2)] if kind == "key" else []
        return [embed(value_ids, D_VALUE, seed=1), *key]

    return [query, *others()], [embed(query_ids, D), *others()]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("padding", [False, True], ids=["full", "padding"])
@pytest.mark.parametrize("pair_mask", PAIR_MASKS.values(), ids=PAIR_MASKS)
@pytest.mark.parametrize("causal", [False, True], ids=["", "causal"])
def test_equals_the_keras_layer(kind, padding, pair_mask, causal):
    query_ids, value_ids = (ids if padding else np.maximum(ids, 1) for ids in (QUERY_IDS, VALUE_IDS))
    value_ids = query_ids if kind == "self" else value_ids
    theirs, ours = pair_of_layers(kind)
    settings, expected_settings = {"use_causal_mask": causal}, {"use_causal_mask": causal}
    if pair_mask:
        pair = np.random.default_rng(3).random((*pair_mask[:-1], value_ids.shape[1])) < 0.6
        pair[..., 0] = True  # Every query may attend to one real key.
        settings["attention_mask"] = expected_settings["attention_mask"] = pair
        if pair.ndim == 4:  # Keras would combine it wrongly with the other masks, so they are combined here.
            visible = np.tril(np.ones((T, value_ids.shape[1]), bool)) if causal else True
            expected_settings = {"attention_mask": pair & visible & (value_ids != 0)[:, None, None]}
    expected_inputs, inputs = inputs_of(kind, query_ids, value_ids)
    if pair_mask and pair.ndim == 4:
        expected_inputs = [ops.convert_to_tensor(to_numpy(x)) for x in expected_inputs]
    expected, expected_scores = theirs(*expected_inputs, return_attention_scores=True, **expected_settings)
    output, scores = ours(*inputs, return_attention_scores=True, **settings)
    fused = ours(*inputs, **settings)
    real = query_ids != 0
    assert scores.shape == expected_scores.shape == (B, N, T, value_ids.shape[1])
    np.testing.assert_allclose(to_numpy(output)[real], to_numpy(expected)[real], atol=1e-5)
    np.testing.assert_allclose(to_numpy(fused)[real], to_numpy(expected)[real], atol=1e-5)
    per_query = [np.swapaxes(to_numpy(x), 1, 2)[real] for x in (scores, expected_scores)]
    np.testing.assert_allclose(*per_query, atol=1e-5)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("causal", [False, True], ids=["", "causal"])
@pytest.mark.parametrize(
    "settings", [{"value_dim": H_VALUE}, {"output_shape": 29}, {"value_dim": 1, "output_shape": 1}]
)
def test_other_widths_of_values_and_output_equal_the_keras_layer(kind, causal, settings):
    theirs, ours = pair_of_layers(kind, **settings)
    expected_inputs, inputs = inputs_of(kind, QUERY_IDS, QUERY_IDS if kind == "self" else VALUE_IDS)
    # With scores, because on JAX the Keras layer needs one width without them.
    expected = to_numpy(theirs(*expected_inputs, use_causal_mask=causal, return_attention_scores=True)[0])
    assert expected.shape == (B, T, settings.get("output_shape", D))
    real = QUERY_IDS != 0
    output = to_numpy(ours(*inputs, use_causal_mask=causal))
    np.testing.assert_allclose(output[real], expected[real], atol=1e-5)
    assert ours.compute_output_shape(*[x.shape for x in inputs]) == expected.shape


@pytest.mark.parametrize("dtype", ["bool", "int32", "uint8", "float32", "float16"])
def test_masks_may_be_zeros_and_ones_of_any_dtype(dtype):
    layer, pair, padding = make(cross=True), np.tril(np.ones((T, S))), np.arange(S) < np.array([[4], [6]])
    query, value = random(B, T, D), random(B, S, D_VALUE)
    expected = layer(query, value, value_mask=padding, attention_mask=pair.astype(bool))
    output = layer(query, value, value_mask=padding.astype(dtype), attention_mask=pair.astype(dtype))
    np.testing.assert_array_equal(to_numpy(output), to_numpy(expected))


def test_key_mask_and_value_mask_both_restrict_attention():
    key_ids = np.array([[0, 2, 2, 2, 2, 2, 2], [2, 2, 2, 0, 2, 2, 2]])
    theirs, ours = pair_of_layers("key")
    expected_inputs, inputs = inputs_of("key", QUERY_IDS, VALUE_IDS, key_ids)
    expected = to_numpy(theirs(*expected_inputs))
    output, scores = ours(*inputs, return_attention_scores=True)
    np.testing.assert_allclose(to_numpy(output)[QUERY_IDS != 0], expected[QUERY_IDS != 0], atol=1e-5)
    visible = np.broadcast_to(((VALUE_IDS != 0) & (key_ids != 0))[:, None, None], scores.shape)
    np.testing.assert_array_equal(to_numpy(scores) != 0, visible)


@pytest.mark.parametrize("kind", KINDS)
def test_a_key_mask_also_restricts_attention_without_a_key(kind):
    _, ours = pair_of_layers(kind)
    _, inputs = inputs_of(kind, np.maximum(QUERY_IDS, 1), np.maximum(VALUE_IDS, 1))
    mask = (QUERY_IDS if kind == "self" else VALUE_IDS) != 0
    scores = to_numpy(ours(*inputs, key_mask=mask, return_attention_scores=True)[1])
    np.testing.assert_array_equal(scores != 0, np.broadcast_to(mask[:, None, None], scores.shape))


def test_keys_decide_the_scores_and_values_the_context():
    layer, query, value, key = make(key=True), random(B, T, D), random(B, S, D_VALUE), random(B, S, D_KEY)
    output, scores = (to_numpy(x) for x in layer(query, value, key, return_attention_scores=True))
    other, same_scores = (to_numpy(x) for x in layer(query, value + 1, key, return_attention_scores=True))
    np.testing.assert_array_equal(same_scores, scores)
    assert np.abs(other - output).max() > 0.1
    _, other_scores = layer(query, value, key[:, ::-1], return_attention_scores=True)
    assert np.abs(to_numpy(other_scores) - scores).max() > 0.1


def test_an_attention_mask_is_not_read_as_a_padding_mask_if_batch_and_length_are_equal():
    layer, x, mask = make(), random(T, T, D), np.tril(np.ones((T, T), bool))
    expected = to_numpy(layer(x, use_causal_mask=True))
    np.testing.assert_allclose(to_numpy(layer(x, attention_mask=mask)), expected, atol=1e-6)
    assert np.abs(to_numpy(layer(x, mask=mask)) - expected).max() > 0.1


# Keras fills masks, and no mask is lost


def with_explicit_masks(layer, inputs, **kwargs):
    """The same call on tensors that carry no masks."""
    plain = [ops.convert_to_tensor(to_numpy(x)) for x in inputs]
    assert all(keras_mask(x) is None for x in plain)
    return to_numpy(layer(*plain, **kwargs))


def test_mask_of_one_tensor_is_filled():
    layer, x = make(), embed(QUERY_IDS, D)
    expected = with_explicit_masks(layer, [x], mask=QUERY_IDS != 0)
    np.testing.assert_allclose(to_numpy(layer(x)), expected, atol=1e-6)
    assert np.abs(expected - with_explicit_masks(layer, [x]))[1].max() > 1e-2


def test_masks_of_two_tensors_are_filled():
    layer, query, value = make(cross=True), embed(QUERY_IDS, D), embed(VALUE_IDS, D_VALUE)
    expected = with_explicit_masks(layer, [query, value], value_mask=VALUE_IDS != 0)
    real = QUERY_IDS != 0
    np.testing.assert_allclose(to_numpy(layer(query, value))[real], expected[real], atol=1e-6)
    assert np.abs(expected - with_explicit_masks(layer, [query, value]))[real].max() > 1e-2


def test_mask_is_filled_when_the_attention_mask_is_a_second_tensor():
    layer, x = make(), embed(QUERY_IDS, D)
    pair = ops.convert_to_tensor(np.tril(np.ones((B, T, T), bool), 1))
    expected = with_explicit_masks(layer, [x], mask=QUERY_IDS != 0, attention_mask=pair)
    np.testing.assert_allclose(to_numpy(layer(x, attention_mask=pair)), expected, atol=1e-6)
    assert np.abs(expected - with_explicit_masks(layer, [x], attention_mask=pair))[1].max() > 1e-2


def test_query_mask_restricts_no_key_in_cross_attention():
    layer, query, value = make(cross=True), embed(QUERY_IDS, D), random(B, S, D_VALUE)
    output, expected = to_numpy(layer(query, value)), with_explicit_masks(layer, [query, value])
    np.testing.assert_allclose(output[QUERY_IDS != 0], expected[QUERY_IDS != 0], atol=1e-6)


@pytest.mark.parametrize("as_tensor", [False, True], ids=["numpy", "tensor"])
def test_an_explicit_mask_replaces_the_carried_mask(as_tensor):
    layer, x = make(), embed(QUERY_IDS, D)
    given = np.array([[True, False, True, True, False], [True, False, False, False, True]])
    expected = with_explicit_masks(layer, [x], mask=given)
    output = layer(x, mask=ops.convert_to_tensor(given) if as_tensor else given)
    np.testing.assert_allclose(to_numpy(output), expected, atol=1e-6)


@pytest.mark.parametrize("scores", [False, True])
def test_inputs_keep_their_masks_and_the_output_carries_the_mask_of_the_query(scores):
    x, query, value = embed(QUERY_IDS, D), embed(QUERY_IDS, D), embed(VALUE_IDS, D_VALUE)
    for layer, inputs in ((make(), [x]), (make(cross=True), [query, value])):
        output = layer(*inputs, return_attention_scores=scores)
        output = output[0] if scores else output
        np.testing.assert_array_equal(keras_mask(output), QUERY_IDS != 0)
        for tensor, ids in zip(inputs, (QUERY_IDS, VALUE_IDS), strict=False):
            np.testing.assert_array_equal(keras_mask(tensor), ids != 0)


def test_every_reader_of_one_tensor_sees_its_mask_in_a_functional_model():
    ids = keras.Input((None,), dtype="int32"), keras.Input((None,), dtype="int32")
    query = keras.layers.Embedding(V, D, mask_zero=True)(ids[0])
    value = keras.layers.Embedding(V, D_VALUE, mask_zero=True)(ids[1])
    layers = [MultiHeadAttention(N, H) for _ in range(3)]
    model = keras.Model(ids, [layer(query, value, return_attention_scores=True)[1] for layer in layers])
    for scores in model([QUERY_IDS, VALUE_IDS]):
        scores = to_numpy(scores)
        np.testing.assert_array_equal(scores != 0, np.broadcast_to((VALUE_IDS != 0)[:, None, None], scores.shape))


def test_keras_own_layer_hides_the_mask_from_the_second_reader():
    """The reason for our own layer. When this test fails, Keras has fixed its layer."""
    query, value = embed(QUERY_IDS, D), embed(VALUE_IDS, D_VALUE)
    first, second = (
        keras.layers.MultiHeadAttention(N, H)(query, value, return_attention_scores=True)[1] for _ in range(2)
    )
    padding = np.broadcast_to((VALUE_IDS == 0)[:, None, None], first.shape)
    real = np.broadcast_to((QUERY_IDS != 0)[:, None, :, None], first.shape)
    assert np.all(to_numpy(first)[padding & real] == 0)
    assert np.all(to_numpy(second)[padding & real] > 0.01)
    assert keras_mask(query) is None and keras_mask(value) is None


class Recorder(keras.layers.Layer):
    """Records which masks Keras fills in for a layer with the arguments of ours."""

    def __init__(self):
        super().__init__()
        self.supports_masking = True

    def call(self, query, value=None, key=None, query_mask=None, value_mask=None, key_mask=None, other=None, mask=None):
        masks = {"query_mask": query_mask, "value_mask": value_mask, "key_mask": key_mask, "mask": mask}
        self.filled = {name for name, value in masks.items() if value is not None}
        return query


@pytest.mark.parametrize("symbolic", [False, True], ids=["eager", "symbolic"])
def test_keras_fills_mask_for_one_tensor_and_argument_masks_for_several(symbolic):
    recorder = Recorder()
    if symbolic:
        layer = keras.layers.Embedding(V, D, mask_zero=True)
        query, value, key = (layer(keras.Input((None,), dtype="int32")) for _ in range(3))
    else:
        query, value, key = embed(QUERY_IDS, D), embed(VALUE_IDS, D), embed(VALUE_IDS, D)
    recorder(query)
    assert recorder.filled == {"mask"}
    recorder(query, value)
    assert recorder.filled == {"query_mask", "value_mask"}
    recorder(query, value, key)
    assert recorder.filled == {"query_mask", "value_mask", "key_mask"}
    # A mask counts as a second tensor, too: the carried mask of the first is then filled in as `query_mask`.
    mask = ops.convert_to_tensor(QUERY_IDS != 0)
    recorder(query, other=mask)
    assert recorder.filled == {"query_mask"}
    recorder(query, mask=mask)
    assert recorder.filled == {"query_mask", "mask"}


@pytest.mark.parametrize("argument", ["mask", "query_mask", "value_mask", "key_mask"])
def test_every_explicit_mask_of_self_attention_masks_keys_and_replaces_the_carried_mask(argument):
    layer, x, plain = make(), embed(QUERY_IDS, D), random(B, T, D)
    given = np.array([[True, False, True, True, False], [True, False, False, False, True]])
    visible = np.broadcast_to(given[:, None, None], (B, N, T, T))
    for tensor in (x, plain):
        output, scores = layer(tensor, **{argument: given}, return_attention_scores=True)
        np.testing.assert_array_equal(to_numpy(scores) != 0, visible)
        if argument in ("mask", "query_mask"):
            np.testing.assert_array_equal(keras_mask(output), given)
        elif tensor is x:
            np.testing.assert_array_equal(keras_mask(output), QUERY_IDS != 0)
        else:
            assert keras_mask(output) is None


def test_self_attention_attends_only_where_all_explicit_masks_are_true():
    layer, x = make(), random(B, T, D)
    masks = [np.arange(T) != i for i in np.array([[[0], [1]], [[2], [1]], [[3], [4]]])]
    scores = layer(x, mask=masks[0], value_mask=masks[1], key_mask=masks[2], return_attention_scores=True)[1]
    visible = np.broadcast_to((masks[0] & masks[1] & masks[2])[:, None, None], scores.shape)
    np.testing.assert_array_equal(to_numpy(scores) != 0, visible)


def test_the_output_of_cross_attention_carries_an_explicit_query_mask():
    layer, value, given = make(cross=True), random(B, S, D_VALUE), QUERY_IDS > 3
    for query in (embed(QUERY_IDS, D), random(B, T, D)):
        np.testing.assert_array_equal(keras_mask(layer(query, value, query_mask=given)), given)


def test_plus_drops_a_mask():
    assert keras_mask(embed(QUERY_IDS, D) + embed(QUERY_IDS, D)) is None


@pytest.mark.parametrize(
    "layer",
    [
        lambda x: keras.layers.Add()([x, x]),
        lambda x: keras.layers.LayerNormalization()(x),
        lambda x: keras.layers.Dense(23)(x),
        lambda x: keras.layers.Dropout(0.5)(x),
    ],
    ids=["Add", "LayerNormalization", "Dense", "Dropout"],
)
def test_keras_layers_keep_a_mask(layer):
    np.testing.assert_array_equal(keras_mask(layer(embed(QUERY_IDS, D))), QUERY_IDS != 0)


# Scores


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("cross", [False, True], ids=["self", "cross"])
def test_rows_of_scores_sum_to_one_and_masked_keys_get_exactly_zero(cross, policy):
    layer = make(cross, dtype=policy)
    inputs = [embed(QUERY_IDS, D)] + ([embed(VALUE_IDS, D_VALUE)] if cross else [])
    scores = to_numpy(layer(*inputs, return_attention_scores=True)[1])
    mask = np.broadcast_to(((VALUE_IDS if cross else QUERY_IDS) != 0)[:, None, None, :], scores.shape)
    np.testing.assert_allclose(scores.sum(-1), 1, atol=1e-6 if policy == "float32" else 2e-2)
    assert np.all(scores[~mask] == 0)
    assert np.all(scores[mask] >= 0) and np.any(scores[mask] > 0.3)


@pytest.mark.parametrize(
    ("policy", "tolerance"), [("float32", 1e-5), ("mixed_bfloat16", 0.15), ("mixed_float16", 0.02)]
)
@pytest.mark.parametrize("cross", [False, True], ids=["self", "cross"])
@pytest.mark.parametrize("causal", [False, True], ids=["", "causal"])
def test_fused_path_equals_the_path_with_scores(cross, causal, policy, tolerance):
    layer = make(cross, dtype=policy)
    inputs = [embed(QUERY_IDS, D)] + ([embed(VALUE_IDS[:, :T], D_VALUE)] if cross else [])
    fused = layer(*inputs, use_causal_mask=causal)
    output, _ = layer(*inputs, use_causal_mask=causal, return_attention_scores=True)
    assert keras.backend.standardize_dtype(fused.dtype) == layer.compute_dtype
    np.testing.assert_allclose(to_numpy(fused), to_numpy(output), atol=tolerance)


@pytest.mark.parametrize(
    ("policy", "cross"), [*((policy, False) for policy in POLICIES), ("float32", True)], ids=[*POLICIES, "cross"]
)
@pytest.mark.parametrize("scores", [False, True], ids=["fused", "scores"])
def test_a_query_with_all_keys_masked_gets_zeros_and_finite_gradients(scores, cross, policy):
    layer = make(cross, dtype=policy)
    keys = S if cross else T
    pair = np.ones((B, T, keys), bool)
    pair[1] = False  # a sentence of padding only
    pair[0, 2] = False  # one query
    empty = ~pair.any(-1)
    x, others = random(B, T, D), [random(B, S, D_VALUE, seed=1)] if cross else []
    kwargs = {"attention_mask": pair, "return_attention_scores": scores}
    output = layer(x, *others, **kwargs)
    if scores:
        output, weights = output
        assert np.all(np.swapaxes(to_numpy(weights), 1, 2)[empty] == 0)
    bias = to_numpy(ops.cast(layer.output_dense.bias, layer.compute_dtype))  # The context is zero; the bias remains.
    np.testing.assert_array_equal(to_numpy(output)[empty], np.broadcast_to(bias, (empty.sum(), D)))
    assert np.all(np.isfinite(to_numpy(output)))
    gradients = input_and_weight_gradients(layer, x, *others, **kwargs)
    assert all(np.all(np.isfinite(g)) for g in gradients)
    assert all(np.any(g != 0) for g in gradients)
    if not cross:
        assert np.all(gradients[0][1] == 0)


@pytest.mark.parametrize("policy", POLICIES)
def test_a_sentence_of_padding_only_changes_no_other_sentence(policy):
    layer = make(cross=True, dtype=policy)
    query, value = random(B, T, D), random(B, S, D_VALUE)
    mask = np.stack([np.ones(S, bool), np.zeros(S, bool)])
    output = to_numpy(layer(query, value, value_mask=mask))
    np.testing.assert_allclose(output[:1], to_numpy(layer(query[:1], value[:1])), atol=1e-5)


def test_dropout_on_scores_acts_in_training_only():
    layer = make(dropout=0.5)
    plain = make()
    x = random(B, T, D)
    expected = to_numpy(plain(x))
    np.testing.assert_allclose(to_numpy(layer(x)), expected, atol=1e-5)
    np.testing.assert_allclose(to_numpy(layer(x, training=False)), expected, atol=1e-5)
    first, second = to_numpy(layer(x, training=True)), to_numpy(layer(x, training=True))
    assert np.abs(first - expected).max() > 1e-2
    assert np.abs(first - second).max() > 1e-2


def test_dropout_returns_the_scores_before_they_are_dropped():
    _, scores = make(dropout=0.5)(random(B, T, D), return_attention_scores=True, training=True)
    np.testing.assert_allclose(to_numpy(scores).sum(-1), 1, atol=1e-6)


def test_training_without_dropout_is_the_same_as_inference():
    layer, x = make(), random(B, T, D)
    np.testing.assert_array_equal(to_numpy(layer(x, training=True)), to_numpy(layer(x)))


# One position at a time


@pytest.mark.parametrize("value_dim", [H, H_VALUE])
@pytest.mark.parametrize("index_as_tensor", [False, True], ids=["int", "tensor"])
def test_cached_steps_equal_the_causal_call(index_as_tensor, value_dim):
    layer, x, length = make(value_dim=value_dim), random(B, T, D), 7
    expected = to_numpy(layer(x, use_causal_mask=True))
    fixed, growing = layer.init_cache(B, length, cache="fixed"), layer.init_cache(B)
    for t in range(T):
        x_t, index = ops.convert_to_tensor(x[:, t]), ops.convert_to_tensor(t, dtype="int32") if index_as_tensor else t
        mask_bias = bias(np.arange(length) <= t)
        output, fixed = layer.decode_step(x_t, fixed, ops.convert_to_tensor(t), mask_bias)
        assert [tuple(part.shape) for part in fixed] == [(B * N, H, length), (B * N, length, value_dim)]
        np.testing.assert_allclose(to_numpy(output), expected[:, t], atol=1e-5)
        output, growing = layer.decode_step(x_t, growing, index)
        assert [tuple(part.shape) for part in growing] == [(B * N, H, t + 1), (B * N, t + 1, value_dim)]
        np.testing.assert_allclose(to_numpy(output), expected[:, t], atol=1e-5)
    assert not to_numpy(fixed[0])[..., T:].any()
    assert not to_numpy(fixed[1])[:, T:].any()


def test_cache_positions_after_the_step_do_not_matter():
    layer, x, length = make(), random(B, 2, D), 5
    clean = layer.init_cache(B, length, cache="fixed")
    dirty = FixedCache(*(ops.convert_to_tensor(random(*part.shape, seed=i)) for i, part in enumerate(clean)))
    outputs = []
    for cache in (clean, dirty):
        for t in range(2):
            new, index, mask_bias = (
                ops.convert_to_tensor(x[:, t]),
                ops.convert_to_tensor(t),
                bias(np.arange(length) <= t),
            )
            output, cache = layer.decode_step(new, cache, index, mask_bias)
        outputs.append(to_numpy(output))
    np.testing.assert_array_equal(*outputs)


@pytest.mark.parametrize("value_dim", [H, H_VALUE])
def test_beams_attend_to_the_cache_rows_that_the_mask_allows(value_dim):
    """Beams exchange their prefixes at every step. Each must equal the causal call on its current prefix."""
    layer, beams, length = make(value_dim=value_dim), 3, 4
    rng = np.random.default_rng(0)
    x = random(B, length, beams, D)  # The input of each row at each position.
    ancestors = np.full((B, beams, length), -1)
    fixed, growing = layer.init_cache(B, length, beams, "fixed"), layer.init_cache(B, num_beams=beams)
    for t in range(length):
        ancestors[:, :, t] = np.arange(beams)
        mask = (ancestors[..., None] == np.arange(beams)).reshape(B, beams, length * beams)
        mask = np.repeat(mask, N, axis=0)  # For each head.
        new, index = ops.convert_to_tensor(x[:, t].reshape(B * beams, D)), ops.convert_to_tensor(t)
        output, fixed = layer.decode_step(new, fixed, index, bias(mask), beams)
        grown, growing = layer.decode_step(new, growing, index, bias(mask[..., : (t + 1) * beams]), beams)
        np.testing.assert_allclose(to_numpy(grown), to_numpy(output), atol=1e-5)
        own = np.stack([[x[b, range(t + 1), row[: t + 1]] for row in ancestors[b]] for b in range(B)])
        expected = to_numpy(layer(own.reshape(B * beams, t + 1, D), use_causal_mask=True))[:, -1]
        np.testing.assert_allclose(to_numpy(output), expected, atol=1e-5)
        ancestors = np.take_along_axis(ancestors, rng.integers(0, beams, (B, beams))[..., None], axis=1)


@pytest.mark.parametrize("value_dim", [H, H_VALUE])
@pytest.mark.parametrize("beams", [1, 3])
def test_cross_step_equals_the_full_call_for_every_beam(beams, value_dim):
    layer = make(cross=True, value_dim=value_dim)
    queries, value, mask = random(B * beams, T, D), random(B, S, D_VALUE), VALUE_IDS != 0
    expected = to_numpy(layer(queries, np.repeat(value, beams, 0), value_mask=np.repeat(mask, beams, 0)))
    key, projected = layer.project_value(ops.convert_to_tensor(value), mask)
    mask_bias = ops.repeat(bias(mask)[:, None], N, axis=0)
    assert (tuple(key.shape), tuple(projected.shape)) == ((B * N, H, S), (B * N, S, value_dim))
    for t in range(T):
        output = layer.cross_step(ops.convert_to_tensor(queries[:, t]), key, projected, mask_bias, beams)
        np.testing.assert_allclose(to_numpy(output), expected[:, t], atol=1e-5)


@pytest.mark.parametrize("policy", POLICIES)
def test_cross_step_of_a_sentence_of_padding_only_is_the_bias(policy):
    layer = make(cross=True, dtype=policy)
    query = ops.cast(random(B, D), layer.compute_dtype)
    nothing = np.zeros((B, S), bool)
    key, value = layer.project_value(ops.cast(random(B, S, D_VALUE), layer.compute_dtype), nothing)
    output = layer.cross_step(query, key, value, ops.repeat(bias(nothing)[:, None], N, axis=0))
    expected = to_numpy(ops.cast(layer.output_dense.bias, layer.compute_dtype))
    np.testing.assert_array_equal(to_numpy(output), np.broadcast_to(expected, (B, D)))


@pytest.mark.parametrize("policy", POLICIES)
def test_the_cache_has_the_compute_dtype(policy):
    layer = make(dtype=policy)
    assert {keras.backend.standardize_dtype(part.dtype) for part in layer.init_cache(B, S)} == {layer.compute_dtype}


# Weights, configuration, misuse


@pytest.mark.parametrize("use_bias", [False, True])
def test_every_projection_has_its_weights(use_bias):
    biases = [(3 * N * H,), (D,)] if use_bias else []
    shapes = [tuple(w.shape) for w in make(use_bias=use_bias).weights]
    assert sorted(shapes) == sorted([(D, 3 * N * H), (N * H, D), *biases])
    biases = [(N * H,), (2 * N * H,), (D,)] if use_bias else []
    shapes = [tuple(w.shape) for w in make(cross=True, use_bias=use_bias).weights]
    assert sorted(shapes) == sorted([(D, N * H), (D_VALUE, 2 * N * H), (N * H, D), *biases])


def test_an_initializer_with_a_seed_is_used_for_every_projection():
    layer = MultiHeadAttention(N, H, kernel_initializer=keras.initializers.RandomNormal(stddev=0.25, seed=7))
    layer.build((None, None, N * H))
    query_key_value, output = (to_numpy(w) for w in layer.weights if len(w.shape) == 2)
    for kernel in (query_key_value, output):
        assert kernel.std() == pytest.approx(0.25, rel=0.1)


CALLS = {"self": "(query)", "cross": "(query, value)", "key": "(query, value, key)"}


@pytest.mark.parametrize("symbolic", [False, True], ids=["eager", "symbolic"])
@pytest.mark.parametrize(("built", "called"), [(a, b) for a in KINDS for b in KINDS if a != b])
def test_all_calls_must_be_of_the_kind_of_the_first_call(built, called, symbolic):
    layer = make(cross=built == "cross", key=built == "key", name="mine")
    inputs = [random(B, T, D), random(B, S, D_VALUE), random(B, S, D_KEY)][: KINDS.index(called) + 1]
    inputs = [keras.Input(x.shape[1:]) for x in inputs] if symbolic else inputs
    match = (
        rf"Layer 'mine' was built by a call `attention{re.escape(CALLS[built])}`.*"
        rf"Received: a call `attention{re.escape(CALLS[called])}`.*Create another layer"
    )
    with pytest.raises(ValueError, match=match):
        layer(*inputs)


@pytest.mark.parametrize("kind", KINDS)
def test_cached_decoding_with_the_wrong_kind_of_layer_is_an_error(kind):
    layer = make(cross=kind == "cross", key=kind == "key")
    x = ops.convert_to_tensor(random(B, D))
    wrong = {
        "self": lambda: layer.decode_step(x, layer.init_cache(B), 0),
        "cross": lambda: layer.project_value(ops.convert_to_tensor(random(B, S, D_VALUE)), VALUE_IDS != 0),
        "cross step": lambda: layer.cross_step(x, None, None, None),
    }
    for name, step in wrong.items():
        if name.split()[0] != kind:
            with pytest.raises(ValueError, match=r"was built by a call.*or decoding that needs one"):
                step()


def test_a_key_needs_a_value():
    with pytest.raises(ValueError, match=r"`key` needs `value`.*Received: a key, but value=None"):
        MultiHeadAttention(N, H)(random(B, T, D), key=random(B, S, D_KEY))


def test_mask_in_cross_attention_is_an_error():
    with pytest.raises(ValueError, match=r"`mask` is for self-attention.*together with `value`.*Use `value_mask`"):
        make(cross=True)(random(B, T, D), random(B, S, D_VALUE), mask=VALUE_IDS != 0)


def test_keys_and_values_must_have_the_same_length():
    with pytest.raises(ValueError, match=r"`key` and `value` must have the same length.*\(2, 5, 23\).*\(2, 7, 17\)"):
        make(key=True)(random(B, T, D), random(B, S, D_VALUE), random(B, T, D_KEY))


@pytest.mark.parametrize(("value_length", "key_length"), [(None, S), (S, None)])
def test_an_open_length_may_be_that_of_the_other(value_length, key_length):
    query, value, key = keras.Input((T, D)), keras.Input((value_length, D_VALUE)), keras.Input((key_length, D_KEY))
    model = keras.Model([query, value, key], MultiHeadAttention(N, H)(query, value, key))
    assert model([random(B, T, D), random(B, S, D_VALUE), random(B, S, D_KEY)]).shape == (B, T, D)


@pytest.mark.parametrize("build", [False, True], ids=["first call", "later call"])
@pytest.mark.parametrize("shape", [(D,), (B, D), (B, 3, T, D)])
@pytest.mark.parametrize("argument", ["query", "value", "key"])
def test_sequences_have_three_axes(argument, shape, build):
    layer = make(key=True) if build else MultiHeadAttention(N, H)
    inputs = {"query": random(B, T, D), "value": random(B, S, D_VALUE), "key": random(B, S, D_KEY)}
    inputs[argument] = random(*shape)
    match = rf"`{argument}` must have shape \(batch, length, width\).*shape={re.escape(str(shape))}.*TimeDistributed"
    with pytest.raises(ValueError, match=match):
        layer(**inputs)
    with pytest.raises(ValueError, match=match):
        layer.compute_output_shape(*[x.shape for x in inputs.values()])


@pytest.mark.parametrize("argument", ["query", "value", "key"])
def test_widths_must_equal_those_of_the_first_call(argument):
    inputs = {"query": random(B, T, D), "value": random(B, S, D_VALUE), "key": random(B, S, D_KEY)}
    width = inputs[argument].shape[-1]
    inputs[argument] = inputs[argument][..., :-1]
    with pytest.raises(ValueError, match=rf"`{argument}` must have width {width}.*shape=\(2, ., {width - 1}\)"):
        make(key=True)(**inputs)


def test_the_width_must_be_known():
    with pytest.raises(ValueError, match=r"`query` must have a last axis of known size.*shape=\(None, None, None\)"):
        MultiHeadAttention(N, H)(keras.Input((None, None)))


def test_a_list_of_tensors_is_an_error():
    for layer in (MultiHeadAttention(N, H), make(cross=True)):
        with pytest.raises(
            ValueError, match=r"`query` must be one tensor.*Received: 2 of them in a list.*layer\(x, y\)"
        ):
            layer([random(B, T, D), random(B, S, D_VALUE)])


@pytest.mark.parametrize("argument", ["mask", "query_mask", "value_mask", "key_mask"])
def test_padding_masks_must_fit(argument):
    layer = make(cross=argument != "mask")
    inputs = [random(B, T, D), random(B, S, D_VALUE)][: 1 if argument == "mask" else 2]
    for placed in (np.asarray, symbolic_like):
        with pytest.raises(ValueError, match=rf"`{argument}` must be a padding mask.*Received: shape=\(2, 11\)"):
            layer(*map(placed, inputs), **{argument: placed(np.ones((B, 11), bool))})


def test_attention_masks_must_fit():
    match = r"`attention_mask` must have shape.*Received: shape=\(2, 7\) for \(B, N, T, S\)=\(2, 3, 5, 7\)"
    inputs = [random(B, T, D), random(B, S, D_VALUE), VALUE_IDS != 0]
    for placed in (np.asarray, symbolic_like):
        query, value, attention_mask = map(placed, inputs)
        with pytest.raises(ValueError, match=match):
            make(cross=True)(query, value, attention_mask=attention_mask)


@pytest.mark.parametrize("argument", ["num_heads", "key_dim", "value_dim", "output_shape"])
@pytest.mark.parametrize("value", [0, -1, 2.0, True, "2", (2, 3)])
def test_sizes_must_be_positive_integers(argument, value):
    match = rf"`{argument}` must be a positive integer. Received: {argument}={re.escape(repr(value))}\."
    with pytest.raises(ValueError, match=match):
        MultiHeadAttention(**{"num_heads": N, "key_dim": H, argument: value})


def test_sizes_may_be_numpy_integers():
    config = MultiHeadAttention(np.int64(N), np.int32(H), output_shape=(np.int64(D),)).get_config()
    assert json.loads(json.dumps(config)) == config
    assert (config["num_heads"], config["key_dim"], config["output_shape"]) == (N, H, D)


@pytest.mark.parametrize("dropout", [-0.1, 1, 1.5, float("nan"), True, "0.1", None])
def test_dropout_must_be_a_rate(dropout):
    match = rf"`dropout` must be a number in \[0, 1\).*Received: dropout={re.escape(repr(dropout))}"
    with pytest.raises(ValueError, match=match):
        MultiHeadAttention(N, H, dropout=dropout)


@pytest.mark.parametrize("kind", KINDS)
def test_settings_of_the_projections_reach_each_of_them(kind):
    layer = MultiHeadAttention(
        N,
        H,
        value_dim=H_VALUE,
        kernel_initializer=keras.initializers.Constant(-3.0),
        bias_initializer="ones",
        kernel_regularizer=keras.regularizers.L1(0.5),
        bias_regularizer=keras.regularizers.L1(0.25),
        kernel_constraint="non_neg",
        bias_constraint="unit_norm",
    )
    layer.build(*[(None, None, width) for width in (D, D_VALUE, D_KEY)][: KINDS.index(kind) + 1])
    losses = []
    for weight in layer.weights:
        is_kernel = len(weight.shape) == 2
        assert np.all(to_numpy(weight) == (-3 if is_kernel else 1))
        losses.append((1.5 if is_kernel else 0.25) * np.prod(weight.shape))
        assert isinstance(weight.constraint, keras.constraints.NonNeg if is_kernel else keras.constraints.UnitNorm)
    np.testing.assert_allclose(sorted(map(float, layer.losses)), sorted(losses), rtol=1e-6)


def test_projections_of_the_same_shape_have_different_initial_values():
    layer = MultiHeadAttention(N, H)
    layer.build((None, None, N * H), (None, None, N * H), (None, None, N * H))
    kernels = [to_numpy(weight) for weight in layer.weights if len(weight.shape) == 2]
    assert len(kernels) == 4
    for i, kernel in enumerate(kernels):
        assert all(np.abs(kernel - other).max() > 0.01 for other in kernels[:i])


# What exports change


def test_a_context_can_be_changed_in_the_full_pass_and_in_steps():
    layer, x = make(), random(B, T, D)
    without = make()
    without.output_dense.kernel.assign(without.output_dense.kernel * (np.arange(N * H) // H != 1)[:, None])
    seen = []

    def without_a_head(changed, context, scores):
        seen.append((changed, scores))
        return context * (np.arange(N * H) // H != 1)

    expected = to_numpy(without(x, use_causal_mask=True))
    token = CHANGED_CONTEXT.set(without_a_head)
    try:
        _, scores = layer(x, use_causal_mask=True, return_attention_scores=True)
        found, cache = to_numpy(layer(x, use_causal_mask=True)), layer.init_cache(B)
        steps = []
        for t in range(T):
            step, cache = layer.decode_step(x[:, t], cache, t)
            steps.append(to_numpy(step))
    finally:
        CHANGED_CONTEXT.reset(token)
    np.testing.assert_allclose(found, expected, atol=1e-5)
    np.testing.assert_allclose(np.stack(steps, axis=1), expected, atol=1e-5)
    assert all(changed is layer for changed, _ in seen)
    last = to_numpy(seen[-1][1]).reshape(B, N, T)  # The attention of the last step.
    np.testing.assert_allclose(last, to_numpy(scores)[:, :, -1], atol=1e-5)
