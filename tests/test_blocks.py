"""Feed-forward, encoder and decoder blocks; and the contract that every layer of the package keeps."""

import inspect
import json

import keras
import keras_hub
import numpy as np
import pytest
from arrays import embed, keras_mask, random, randomize, to_numpy
from keras import ops

from keras_transformer.attention import MultiHeadAttention
from keras_transformer.blocks import DecoderBlock, EncoderBlock, FeedForward
from keras_transformer.embeddings import PositionalEmbedding
from keras_transformer.masks import bias

B, T, S, N, H, F, D_ENCODER, V = 2, 5, 7, 3, 11, 13, 17, 19
D = N * H
EVEN_D = 22
POLICIES = ("float32", "mixed_bfloat16", "mixed_float16")
DECODER_IDS = np.array([[3, 8, 5, 9, 2], [4, 7, 6, 0, 0]], "int32")
ENCODER_IDS = np.array([[5, 9, 4, 0, 0, 0, 0], [6, 3, 8, 2, 7, 0, 0]], "int32")


def make_encoder(seed=0, **kwargs):
    block = EncoderBlock(**{"num_heads": N, "intermediate_dim": F, **kwargs})
    block.build((None, None, D))
    return randomize(block, seed)


def make_decoder(seed=0, **kwargs):
    block = DecoderBlock(**{"num_heads": N, "intermediate_dim": F, **kwargs})
    block.build((None, None, D), (None, None, D_ENCODER))
    return randomize(block, seed)


def weight_gradients(layer, *args):
    """Path of every trainable weight -> its gradient of sum(output * constants), or None."""

    def loss(output):
        return ops.sum(ops.cast(output, "float32") * random(*output.shape, seed=99))

    weights = [w.value for w in layer.trainable_variables]
    if keras.backend.backend() == "tensorflow":
        import tensorflow as tf

        with tf.GradientTape() as tape:
            value = loss(layer(*args))
        gradients = tape.gradient(value, weights)
        gradients = [g if g is None else tf.convert_to_tensor(g) for g in gradients]
    else:
        import jax

        others = [w.value for w in layer.non_trainable_variables]
        gradients = jax.grad(lambda weights: loss(layer.stateless_call(weights, others, *args)[0]))(weights)
    paths = [w.path for w in layer.trainable_variables]
    return {path: g if g is None else to_numpy(g) for path, g in zip(paths, gradients, strict=True)}


# Parity with keras_hub


def copy_attention(source, target):
    """From `keras.layers.MultiHeadAttention` to ours: (D, N, H) kernels side by side as (D, parts * N * H)."""

    def side_by_side(*denses):
        kernels = [to_numpy(dense.kernel).reshape(dense.kernel.shape[0], N * H) for dense in denses]
        return [np.concatenate(kernels, axis=1), np.concatenate([to_numpy(dense.bias).ravel() for dense in denses])]

    query, key, value = source.query_dense, source.key_dense, source.value_dense
    if target.is_self_attention:
        target.query_key_value_dense.set_weights(side_by_side(query, key, value))
    else:
        target.query_dense.set_weights(side_by_side(query))
        target.key_value_dense.set_weights(side_by_side(key, value))
    kernel = to_numpy(source.output_dense.kernel)
    target.output_dense.set_weights([kernel.reshape(N * H, -1), to_numpy(source.output_dense.bias)])


def copy_block(source, target):
    copy_attention(source._self_attention_layer, target.self_attention)
    pairs = [
        (source._self_attention_layer_norm, target.self_attention_norm),
        (source._feedforward_intermediate_dense, target.feed_forward.intermediate_dense),
        (source._feedforward_output_dense, target.feed_forward.output_dense),
        (source._feedforward_layer_norm, target.feed_forward_norm),
    ]
    if isinstance(target, DecoderBlock):
        copy_attention(source._cross_attention_layer, target.cross_attention)
        pairs.append((source._cross_attention_layer_norm, target.cross_attention_norm))
    for theirs, ours in pairs:
        ours.set_weights([to_numpy(w) for w in theirs.weights])
    assert source.count_params() == target.count_params()


@pytest.mark.parametrize("normalize_first", [False, True], ids=["post-norm", "pre-norm"])
@pytest.mark.parametrize("activation", ["relu", "gelu"])
@pytest.mark.parametrize("padding", [False, True], ids=["full", "padding"])
def test_encoder_block_equals_keras_hub(normalize_first, activation, padding):
    ids = ENCODER_IDS if padding else np.maximum(ENCODER_IDS, 1)
    settings = {"activation": activation, "normalize_first": normalize_first, "layer_norm_epsilon": 1e-3}
    theirs, ours = keras_hub.layers.TransformerEncoder(F, N, **settings), make_encoder(**settings)
    theirs.build((None, None, D))
    copy_block(randomize(theirs), ours)
    expected, output = theirs(embed(ids, D)), ours(embed(ids, D))
    np.testing.assert_allclose(to_numpy(output)[ids != 0], to_numpy(expected)[ids != 0], atol=1e-5)
    np.testing.assert_array_equal(keras_mask(output), keras_mask(expected))
    np.testing.assert_array_equal(keras_mask(output), ids != 0)


@pytest.mark.parametrize("normalize_first", [False, True], ids=["post-norm", "pre-norm"])
@pytest.mark.parametrize("activation", ["relu", "gelu"])
@pytest.mark.parametrize("padding", [False, True], ids=["full", "padding"])
def test_decoder_block_equals_keras_hub(normalize_first, activation, padding):
    decoder_ids = DECODER_IDS if padding else np.maximum(DECODER_IDS, 1)
    encoder_ids = ENCODER_IDS if padding else np.maximum(ENCODER_IDS, 1)
    settings = {"activation": activation, "normalize_first": normalize_first, "layer_norm_epsilon": 1e-3}
    theirs, ours = keras_hub.layers.TransformerDecoder(F, N, **settings), make_decoder(**settings)
    theirs.build((None, None, D), (None, None, D_ENCODER))
    copy_block(randomize(theirs), ours)
    x, encoded, real = embed(decoder_ids, D), embed(encoder_ids, D_ENCODER, seed=1), decoder_ids != 0
    # Explicit masks for theirs: its attention warns about tensors that carry one.
    masks = {"decoder_padding_mask": real, "encoder_padding_mask": encoder_ids != 0}
    expected = theirs(to_numpy(x), to_numpy(encoded), **masks)
    output = ours(x, encoded)
    np.testing.assert_allclose(to_numpy(output)[real], to_numpy(expected)[real], atol=1e-5)
    np.testing.assert_array_equal(keras_mask(output), real)


# Formulas


@pytest.mark.parametrize("activation", ["relu", "gelu", keras.activations.silu])
def test_feed_forward_is_activation_between_two_affine_maps(activation):
    layer = FeedForward(F, activation)
    layer.build((None, None, D))
    randomize(layer)
    x = random(B, T, D)
    w1, b1, w2, b2 = (to_numpy(w) for w in layer.weights)
    assert [w.shape for w in (w1, b1, w2, b2)] == [(D, F), (F,), (F, D), (D,)]
    hidden = to_numpy(keras.activations.get(activation)(ops.convert_to_tensor(x @ w1 + b1)))
    np.testing.assert_allclose(to_numpy(layer(x)), hidden @ w2 + b2, atol=1e-5)


def test_feed_forward_treats_every_position_alike_and_keeps_the_mask():
    layer, x = FeedForward(F), embed(DECODER_IDS, D)
    output = layer(x)
    np.testing.assert_allclose(to_numpy(output)[:, 3], to_numpy(layer(to_numpy(x)[:, 3])), atol=1e-5)
    np.testing.assert_array_equal(keras_mask(output), DECODER_IDS != 0)


@pytest.mark.parametrize("normalize_first", [False, True], ids=["post-norm", "pre-norm"])
def test_encoder_block_is_the_formula_of_its_sublayers(normalize_first):
    block = make_encoder(normalize_first=normalize_first)
    x, mask = random(B, S, D), ENCODER_IDS != 0
    output = to_numpy(block(x, mask=mask))

    def attention(y):
        return block.self_attention(y, mask=mask)

    if normalize_first:
        x = x + attention(block.self_attention_norm(x))
        x = x + block.feed_forward(block.feed_forward_norm(x))
    else:
        x = block.self_attention_norm(x + attention(x))
        x = block.feed_forward_norm(x + block.feed_forward(x))
    np.testing.assert_allclose(output, to_numpy(x), atol=1e-5)


@pytest.mark.parametrize("normalize_first", [False, True], ids=["post-norm", "pre-norm"])
def test_decoder_block_is_the_formula_of_its_sublayers(normalize_first):
    block = make_decoder(normalize_first=normalize_first)
    x, encoded = random(B, T, D), random(B, S, D_ENCODER)
    masks = {"decoder_sequence_mask": DECODER_IDS != 0, "encoder_sequence_mask": ENCODER_IDS != 0}
    output = to_numpy(block(x, encoded, **masks))

    def self_attention(y):
        return block.self_attention(y, mask=DECODER_IDS != 0, use_causal_mask=True)

    def cross_attention(y):
        return block.cross_attention(y, encoded, value_mask=ENCODER_IDS != 0)

    if normalize_first:
        x = x + self_attention(block.self_attention_norm(x))
        x = x + cross_attention(block.cross_attention_norm(x))
        x = x + block.feed_forward(block.feed_forward_norm(x))
    else:
        x = block.self_attention_norm(x + self_attention(x))
        x = block.cross_attention_norm(x + cross_attention(x))
        x = block.feed_forward_norm(x + block.feed_forward(x))
    np.testing.assert_allclose(output, to_numpy(x), atol=1e-5)


def test_post_norm_output_is_normalised_and_pre_norm_output_is_not():
    x = random(B, S, D)
    outputs = {}
    for normalize_first in (False, True):
        block = EncoderBlock(N, F, normalize_first=normalize_first)
        outputs[normalize_first] = to_numpy(block(10 * x)).std(-1)
    np.testing.assert_allclose(outputs[False], 1, atol=1e-3)
    assert outputs[True].min() > 5


@pytest.mark.parametrize("setting", ["dropout", "attention_dropout"])
@pytest.mark.parametrize("make", [make_encoder, make_decoder])
def test_each_dropout_acts_in_training_only(make, setting):
    inputs = [random(B, T, D)] + ([random(B, S, D_ENCODER)] if make is make_decoder else [])
    expected = to_numpy(make()(*inputs))
    block = make(**{setting: 0.5})
    np.testing.assert_allclose(to_numpy(block(*inputs, training=False)), expected, atol=1e-5)
    assert np.abs(to_numpy(block(*inputs, training=True)) - expected).max() > 1e-2


# Masks


def test_two_stacked_encoder_blocks_ignore_padding():
    first, second = make_encoder(), make_encoder(seed=50)
    x = embed(ENCODER_IDS, D)
    output = second(first(x))
    np.testing.assert_array_equal(keras_mask(output), ENCODER_IDS != 0)
    for row, length in enumerate((ENCODER_IDS != 0).sum(-1)):
        alone = second(first(to_numpy(x)[row : row + 1, :length]))
        np.testing.assert_allclose(to_numpy(output)[row : row + 1, :length], to_numpy(alone), atol=1e-5)
    assert keras_mask(x) is not None


def test_two_stacked_decoder_blocks_ignore_the_padding_of_one_encoder_sequence():
    first, second = make_decoder(), make_decoder(seed=50)
    x, encoded = embed(DECODER_IDS, D), embed(ENCODER_IDS, D_ENCODER)
    output = second(first(x, encoded), encoded)
    np.testing.assert_array_equal(keras_mask(output), DECODER_IDS != 0)
    np.testing.assert_array_equal(keras_mask(encoded), ENCODER_IDS != 0)
    lengths = zip((DECODER_IDS != 0).sum(-1), (ENCODER_IDS != 0).sum(-1), strict=True)
    for row, (t, s) in enumerate(lengths):
        x_alone, encoded_alone = to_numpy(x)[row : row + 1, :t], to_numpy(encoded)[row : row + 1, :s]
        alone = second(first(x_alone, encoded_alone), encoded_alone)
        np.testing.assert_allclose(to_numpy(output)[row : row + 1, :t], to_numpy(alone), atol=1e-5)


@pytest.mark.parametrize("normalize_first", [False, True], ids=["post-norm", "pre-norm"])
def test_masks_that_are_given_win_over_masks_that_are_carried(normalize_first):
    x, encoded = embed(DECODER_IDS, D), embed(ENCODER_IDS, D_ENCODER)
    mask = np.array([[True, False, True, True, False], [True, False, False, True, True]])
    encoder_mask = np.roll(ENCODER_IDS != 0, 2, axis=1)
    block = make_decoder(normalize_first=normalize_first)
    given = {"decoder_sequence_mask": mask, "encoder_sequence_mask": encoder_mask}
    expected = block(to_numpy(x), to_numpy(encoded), **given)
    np.testing.assert_allclose(to_numpy(block(x, encoded, **given)), to_numpy(expected), atol=1e-5)
    block = make_encoder(normalize_first=normalize_first)
    np.testing.assert_allclose(to_numpy(block(x, mask=mask)), to_numpy(block(to_numpy(x), mask=mask)), atol=1e-5)


def test_decoder_block_is_causal():
    block, encoded, x = make_decoder(), random(B, S, D_ENCODER), random(B, T, D)
    before = to_numpy(block(x, encoded))
    for t in range(T):
        changed = x.copy()
        changed[:, t] += 1
        after = to_numpy(block(changed, encoded))
        np.testing.assert_allclose(after[:, :t], before[:, :t], atol=1e-6)
        assert np.abs(after[:, t:] - before[:, t:]).max(axis=(0, 2)).min() > 1e-3


def test_attention_scores_of_the_encoder_block():
    block, x = make_encoder(), embed(ENCODER_IDS, D)
    output, scores = block(x, return_attention_scores=True)
    np.testing.assert_allclose(to_numpy(output), to_numpy(block(x)), atol=1e-5)
    np.testing.assert_array_equal(keras_mask(output), ENCODER_IDS != 0)
    assert tuple(scores.shape) == (B, N, S, S)
    np.testing.assert_array_equal(to_numpy(scores) != 0, np.broadcast_to(ENCODER_IDS[:, None, None] != 0, scores.shape))


def test_attention_scores_of_the_decoder_block():
    block, x, encoded = make_decoder(), embed(DECODER_IDS, D), embed(ENCODER_IDS, D_ENCODER)
    output, self_scores, cross_scores = block(x, encoded, return_attention_scores=True)
    np.testing.assert_allclose(to_numpy(output), to_numpy(block(x, encoded)), atol=1e-5)
    np.testing.assert_array_equal(keras_mask(output), DECODER_IDS != 0)
    assert tuple(self_scores.shape) == (B, N, T, T) and tuple(cross_scores.shape) == (B, N, T, S)
    visible = np.tril(np.ones((T, T), bool)) & (DECODER_IDS != 0)[:, None, None]
    np.testing.assert_array_equal(to_numpy(self_scores) != 0, np.broadcast_to(visible, self_scores.shape))
    visible = (ENCODER_IDS != 0)[:, None, None]
    np.testing.assert_array_equal(to_numpy(cross_scores) != 0, np.broadcast_to(visible, cross_scores.shape))


@pytest.mark.parametrize("normalize_first", [False, True], ids=["post-norm", "pre-norm"])
def test_cached_steps_equal_the_full_call(normalize_first):
    block, x, encoded = make_decoder(normalize_first=normalize_first), random(B, T, D), random(B, S, D_ENCODER)
    mask = ENCODER_IDS != 0
    expected = to_numpy(block(x, encoded, encoder_sequence_mask=mask))
    cache = block.self_attention.init_cache(B, 0)
    cross_cache = block.cross_attention.project_value(ops.convert_to_tensor(encoded), mask)
    cross_bias = ops.repeat(bias(mask)[:, None], N, axis=0)
    for t in range(T):
        output, cache = block.decode_step(ops.convert_to_tensor(x[:, t]), cache, cross_cache, t, None, cross_bias)
        np.testing.assert_allclose(to_numpy(output), expected[:, t], atol=1e-5)


# Misuse


@pytest.mark.parametrize(("num_heads", "fits"), [(7, 3), (2, 1), (12, 11), (100, 33)])
def test_hidden_dim_must_be_divisible_by_num_heads(num_heads, fits):
    match = (
        "`hidden_dim` must be divisible by `num_heads`: every head gets an equal share. "
        rf"Received: hidden_dim={D}, num_heads={num_heads}\. Try num_heads={fits}\."
    )
    with pytest.raises(ValueError, match=match):
        EncoderBlock(num_heads, F)(random(B, S, D))
    with pytest.raises(ValueError, match=match):
        DecoderBlock(num_heads, F)(random(B, T, D), random(B, S, D_ENCODER))


@pytest.mark.parametrize("block", [EncoderBlock, DecoderBlock])
@pytest.mark.parametrize("num_heads", [0, -2])
def test_num_heads_must_be_positive(block, num_heads):
    shapes = [(None, None, D)] * (2 if block is DecoderBlock else 1)
    with pytest.raises(ValueError, match=rf"`num_heads`.* must be at least 1.*Received: num_heads={num_heads}"):
        block(num_heads, F).build(*shapes)


# The contract of every layer: (class, arguments other than the defaults, shapes of the inputs)

LAYERS = {
    "positions": (
        PositionalEmbedding,
        {
            "vocabulary_size": V,
            "hidden_dim": EVEN_D,
            "position_type": "sinusoidal",
            "max_length": 29,
            "max_wavelength": 37.5,
            "layout": "concatenated",
            "dropout": 0.25,
            "pad_token_id": 4,
            "tie_weights": True,
        },
        [(B, T)],
    ),
    "learned positions": (
        PositionalEmbedding,
        {"vocabulary_size": V, "hidden_dim": EVEN_D, "position_type": "learned", "max_length": 29},
        [(B, T)],
    ),
    "self-attention": (
        MultiHeadAttention,
        {"num_heads": N, "key_dim": H, "dropout": 0.25, "kernel_initializer": "he_normal", "use_bias": False},
        [(B, T, 23)],
    ),
    "cross-attention": (MultiHeadAttention, {"num_heads": N, "key_dim": H}, [(B, T, 23), (B, S, D_ENCODER)]),
    "feed-forward": (FeedForward, {"intermediate_dim": F, "activation": "gelu"}, [(B, T, D)]),
    "encoder block": (
        EncoderBlock,
        {
            "num_heads": N,
            "intermediate_dim": F,
            "dropout": 0.25,
            "attention_dropout": 0.125,
            "activation": "gelu",
            "normalize_first": True,
            "layer_norm_epsilon": 1e-3,
        },
        [(B, T, D)],
    ),
    "decoder block": (
        DecoderBlock,
        {
            "num_heads": N,
            "intermediate_dim": F,
            "dropout": 0.25,
            "attention_dropout": 0.125,
            "activation": "gelu",
            "normalize_first": True,
            "layer_norm_epsilon": 1e-3,
        },
        [(B, T, D), (B, S, D_ENCODER)],
    ),
}
every_layer = pytest.mark.parametrize(("cls", "settings", "shapes"), LAYERS.values(), ids=LAYERS)


def sample(shapes):
    if len(shapes[0]) == 2:
        return [np.random.default_rng(0).integers(1, V, shapes[0]).astype("int32")]
    return [random(*shape, seed=i) for i, shape in enumerate(shapes)]


def symbolic(shapes):
    """Inputs with open batch and length."""
    dtype = "int32" if len(shapes[0]) == 2 else "float32"
    return [keras.Input((None, *shape[2:]), dtype=dtype) for shape in shapes]


@every_layer
def test_config_holds_every_argument(cls, settings, shapes):
    config = cls(**settings, name="mine", dtype="mixed_bfloat16", trainable=False).get_config()
    arguments = set(inspect.signature(cls).parameters) - {"kwargs"}
    assert arguments <= set(config)
    copy = cls.from_config(json.loads(json.dumps(config)))
    assert copy.get_config() == config
    assert (copy.name, copy.dtype_policy.name, copy.trainable) == ("mine", "mixed_bfloat16", False)
    for name, value in settings.items():
        if name not in ("activation", "kernel_initializer"):
            assert getattr(copy, name) == value, name


@every_layer
def test_serialized_and_deserialized_layer_computes_the_same(cls, settings, shapes):
    layer, inputs = cls(**settings), sample(shapes)
    output = layer(*inputs)
    serialized = keras.saving.serialize_keras_object(layer)
    assert serialized["registered_name"] == f"keras_transformer>{cls.__name__}"
    copy = keras.saving.deserialize_keras_object(json.loads(json.dumps(serialized)))
    copy(*inputs)
    copy.set_weights(layer.get_weights())
    np.testing.assert_array_equal(to_numpy(copy(*inputs)), to_numpy(output))


@every_layer
def test_symbolic_shape_equals_eager_shape_with_open_dimensions(cls, settings, shapes):
    layer, inputs = cls(**settings), symbolic(shapes)
    output = layer(*inputs)
    eager = layer(*sample(shapes))
    assert tuple(eager.shape) == (B, T, output.shape[-1])
    assert output.shape == (None, None, eager.shape[-1])
    assert output.dtype == keras.backend.standardize_dtype(eager.dtype)


@every_layer
def test_functional_model_over_the_layer_computes_the_same_for_any_size(cls, settings, shapes):
    layer, inputs = cls(**settings), symbolic(shapes)
    model = keras.Model(inputs, layer(*inputs))
    longer = [(3, shape[1] + 4, *shape[2:]) for shape in shapes]
    for some in (shapes, longer):
        values = sample(some)
        np.testing.assert_allclose(model.predict_on_batch(values), to_numpy(layer(*values)), atol=1e-5)


@every_layer
def test_gradients_reach_every_weight(cls, settings, shapes):
    layer = cls(**settings)
    inputs = sample(shapes)
    layer(*inputs)
    gradients = weight_gradients(layer, *inputs)
    assert len(gradients) == len(layer.weights) - len(layer.non_trainable_weights) > 0
    assert [path for path, gradient in gradients.items() if gradient is None or not np.any(gradient)] == []


@every_layer
@pytest.mark.parametrize("policy", POLICIES)
def test_dtype_policy_gives_the_output_dtype_and_float32_weights(cls, settings, shapes, policy):
    layer = cls(**settings, dtype=policy)
    output = layer(*sample(shapes))
    compute_dtype = keras.dtype_policies.get(policy).compute_dtype
    assert keras.backend.standardize_dtype(output.dtype) == compute_dtype
    assert {w.dtype for w in layer.weights} == {"float32"}
    expected = cls(**settings)
    expected(*sample(shapes))
    expected.set_weights(layer.get_weights())
    tolerance = {"float32": 1e-6, "bfloat16": 0.1, "float16": 0.01}[compute_dtype]
    np.testing.assert_allclose(to_numpy(output), to_numpy(expected(*sample(shapes))), atol=tolerance)


@every_layer
def test_the_names_of_weights_are_unique(cls, settings, shapes):
    layer = cls(**settings)
    layer(*sample(shapes))
    paths = [w.path for w in layer.weights]
    assert len(set(paths)) == len(paths)
