"""Feed-forward, encoder and decoder blocks."""

import re

import keras
import keras_hub
import numpy as np
import pytest
from arrays import copy_attention, embed, keras_mask, random, randomize, symbolic_like, to_numpy
from keras import ops

from keras_transformer.layers.decoder_block import DecoderBlock
from keras_transformer.layers.encoder_block import EncoderBlock
from keras_transformer.layers.feed_forward import FeedForward
from keras_transformer.layers.masks import bias

B, T, S, N, H, F, D_ENCODER = 2, 5, 7, 3, 11, 13, 17
D = N * H
DECODER_IDS = np.array([[3, 8, 5, 9, 2], [4, 7, 6, 0, 0]], "int32")
ENCODER_IDS = np.array([[5, 9, 4, 0, 0, 0, 0], [6, 3, 8, 2, 7, 0, 0]], "int32")


def make_encoder(seed=0, **kwargs):
    block = EncoderBlock(**{"num_heads": N, "intermediate_dim": F, **kwargs})
    block.build((None, None, D))
    return randomize(block, seed)


def make_decoder(seed=0, alone=False, **kwargs):
    block = DecoderBlock(**{"num_heads": N, "intermediate_dim": F, **kwargs})
    block.build((None, None, D), *([] if alone else [(None, None, D_ENCODER)]))
    return randomize(block, seed)


# Parity with keras_hub


def copy_block(source, target):
    copy_attention(source._self_attention_layer, target.self_attention)
    pairs = [
        (source._self_attention_layer_norm, target.self_attention_norm),
        (source._feedforward_intermediate_dense, target.feed_forward.intermediate_dense),
        (source._feedforward_output_dense, target.feed_forward.output_dense),
        (source._feedforward_layer_norm, target.feed_forward_norm),
    ]
    if source._cross_attention_layer if isinstance(target, DecoderBlock) else None:
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
    # Explicit masks for the keras_hub block, because its attention warns about tensors that carry masks.
    masks = {"decoder_padding_mask": real, "encoder_padding_mask": encoder_ids != 0}
    expected = theirs(to_numpy(x), to_numpy(encoded), **masks)
    output = ours(x, encoded)
    np.testing.assert_allclose(to_numpy(output)[real], to_numpy(expected)[real], atol=1e-5)
    np.testing.assert_array_equal(keras_mask(output), real)


@pytest.mark.parametrize("normalize_first", [False, True], ids=["post-norm", "pre-norm"])
@pytest.mark.parametrize("causal", [False, True], ids=["", "causal"])
@pytest.mark.parametrize("padding", [False, True], ids=["full", "padding"])
def test_decoder_only_block_equals_keras_hub(normalize_first, causal, padding):
    ids = DECODER_IDS if padding else np.maximum(DECODER_IDS, 1)
    settings = {"activation": "gelu", "normalize_first": normalize_first, "layer_norm_epsilon": 1e-3}
    theirs, ours = keras_hub.layers.TransformerDecoder(F, N, **settings), make_decoder(alone=True, **settings)
    theirs.build((None, None, D))
    copy_block(randomize(theirs), ours)
    x, real = embed(ids, D), ids != 0
    expected = to_numpy(theirs(to_numpy(x), decoder_padding_mask=real, use_causal_mask=causal))
    output = ours(x, use_causal_mask=causal)
    np.testing.assert_allclose(to_numpy(output)[real], expected[real], atol=1e-5)
    np.testing.assert_array_equal(keras_mask(output), real)


@pytest.mark.parametrize("causal", [False, True], ids=["", "causal"])
def test_attention_masks_of_the_blocks_equal_keras_hub(causal):
    rng = np.random.default_rng(0)
    self_pairs, cross_pairs, encoder_pairs = (rng.random(shape) < 0.6 for shape in ((B, T, T), (B, T, S), (B, S, S)))
    for pairs in (self_pairs, cross_pairs, encoder_pairs):
        pairs[:, :, 0] = True
    x, encoded, real = embed(DECODER_IDS, D), embed(ENCODER_IDS, D_ENCODER, seed=1), DECODER_IDS != 0
    masks = {"decoder_attention_mask": self_pairs, "encoder_attention_mask": cross_pairs, "use_causal_mask": causal}
    theirs, ours = keras_hub.layers.TransformerDecoder(F, N, layer_norm_epsilon=1e-6), make_decoder()
    theirs.build((None, None, D), (None, None, D_ENCODER))
    copy_block(randomize(theirs), ours)
    padding = {"decoder_padding_mask": real, "encoder_padding_mask": ENCODER_IDS != 0}
    expected = to_numpy(theirs(to_numpy(x), to_numpy(encoded), **padding, **masks))
    np.testing.assert_allclose(to_numpy(ours(x, encoded, **masks))[real], expected[real], atol=1e-5)

    theirs, ours = keras_hub.layers.TransformerEncoder(F, N, layer_norm_epsilon=1e-6), make_encoder()
    theirs.build((None, None, D))
    copy_block(randomize(theirs), ours)
    x, real = embed(ENCODER_IDS, D), ENCODER_IDS != 0
    expected = to_numpy(theirs(to_numpy(x), padding_mask=real, attention_mask=encoder_pairs))
    np.testing.assert_allclose(to_numpy(ours(x, attention_mask=encoder_pairs))[real], expected[real], atol=1e-5)


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


def test_feed_forward_computes_each_position_alone_and_keeps_the_mask():
    layer, x = FeedForward(F), embed(DECODER_IDS, D)
    output, everywhere = layer(x), to_numpy(layer(to_numpy(x)))
    np.testing.assert_allclose(everywhere[:, 3], to_numpy(layer(to_numpy(x)[:, 3])), atol=1e-5)
    np.testing.assert_array_equal(to_numpy(output)[DECODER_IDS != 0], everywhere[DECODER_IDS != 0])
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
    np.testing.assert_allclose(output[mask], to_numpy(x)[mask], atol=1e-5)


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
    np.testing.assert_allclose(output[DECODER_IDS != 0], to_numpy(x)[DECODER_IDS != 0], atol=1e-5)


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
def test_explicit_masks_replace_carried_masks(normalize_first):
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
    cache = block.self_attention.init_cache(B)
    cross_cache = block.cross_attention.project_value(ops.convert_to_tensor(encoded), mask)
    cross_bias = ops.repeat(bias(mask)[:, None], N, axis=0)
    for t in range(T):
        output, cache = block.decode_step(ops.convert_to_tensor(x[:, t]), cache, t, cross_cache, cross_bias=cross_bias)
        np.testing.assert_allclose(to_numpy(output), expected[:, t], atol=1e-5)


@pytest.mark.parametrize("normalize_first", [False, True], ids=["post-norm", "pre-norm"])
def test_three_ways_to_make_a_decoder_only_block_are_equal(normalize_first):
    encoder = make_encoder(normalize_first=normalize_first)
    decoder = make_decoder(alone=True, normalize_first=normalize_first)
    decoder.set_weights(encoder.get_weights())
    x = embed(DECODER_IDS, D)
    expected = to_numpy(decoder(x))
    np.testing.assert_allclose(to_numpy(encoder(x, use_causal_mask=True)), expected, atol=1e-6)
    pairs = np.tril(np.ones((T, T), bool))
    for mask in (pairs, ops.convert_to_tensor(pairs), pairs[None], pairs[None, None].astype("float32")):
        np.testing.assert_allclose(to_numpy(encoder(x, attention_mask=mask)), expected, atol=1e-6)
    assert np.abs(to_numpy(decoder(x, use_causal_mask=False)) - expected).max() > 0.1
    np.testing.assert_allclose(to_numpy(decoder(x, use_causal_mask=False)), to_numpy(encoder(x)), atol=1e-6)


def test_cached_steps_of_a_decoder_only_block_equal_the_full_call():
    block, x = make_decoder(alone=True), random(B, T, D)
    expected, cache = to_numpy(block(x)), block.self_attention.init_cache(B)
    for t in range(T):
        output, cache = block.decode_step(ops.convert_to_tensor(x[:, t]), cache, t)
        np.testing.assert_allclose(to_numpy(output), expected[:, t], atol=1e-5)


def test_attention_scores_of_a_decoder_only_block():
    output, scores = make_decoder(alone=True)(embed(DECODER_IDS, D), return_attention_scores=True)
    visible = np.tril(np.ones((T, T), bool)) & (DECODER_IDS != 0)[:, None, None]
    np.testing.assert_array_equal(to_numpy(scores) != 0, np.broadcast_to(visible, (B, N, T, T)))
    assert tuple(output.shape) == (B, T, D)


@pytest.mark.parametrize("argument", ["mask", "own"])
@pytest.mark.parametrize("make", [make_encoder, lambda: make_decoder(alone=True)], ids=["encoder", "decoder"])
def test_the_output_carries_an_explicit_mask(make, argument):
    block, given = make(), DECODER_IDS > 3
    own = "encoder_sequence_mask" if isinstance(block, EncoderBlock) else "decoder_sequence_mask"
    for x in (embed(DECODER_IDS, D), random(B, T, D)):
        output = block(x, **{own if argument == "own" else argument: given})
        np.testing.assert_array_equal(keras_mask(output), given)
        expected = block(to_numpy(x), mask=given)
        np.testing.assert_allclose(to_numpy(output), to_numpy(expected), atol=1e-6)


def test_an_attention_mask_does_not_make_a_block_lose_the_mask_of_its_sequence():
    block, x = make_encoder(), embed(ENCODER_IDS, D)
    pairs = ops.convert_to_tensor(np.tril(np.ones((S, S), bool), 2))
    output, scores = block(x, attention_mask=pairs, return_attention_scores=True)
    visible = to_numpy(pairs).astype(bool) & (ENCODER_IDS != 0)[:, None, None]
    np.testing.assert_array_equal(to_numpy(scores) != 0, np.broadcast_to(visible, scores.shape))
    np.testing.assert_array_equal(keras_mask(output), ENCODER_IDS != 0)


@pytest.mark.parametrize("block", [EncoderBlock, DecoderBlock, FeedForward])
def test_settings_of_the_dense_layers_reach_each_of_them(block):
    sizes = {"intermediate_dim": F} if block is FeedForward else {"num_heads": N, "intermediate_dim": F}
    layer = block(
        **sizes,
        kernel_initializer=keras.initializers.Constant(3.0),
        bias_initializer=keras.initializers.Constant(2.0),
        kernel_regularizer=keras.regularizers.L1(0.5),
        bias_regularizer=keras.regularizers.L1(0.25),
    )
    layer.build(*[(None, None, D), (None, None, D_ENCODER)][: 2 if block is DecoderBlock else 1])
    losses = []
    for weight in layer.weights:
        if weight.path.split("/")[-1] in ("kernel", "bias"):
            is_kernel = len(weight.shape) == 2
            assert np.all(to_numpy(weight) == (3 if is_kernel else 2)), weight.path
            losses.append((1.5 if is_kernel else 0.5) * np.prod(weight.shape))
    assert len(losses) == {FeedForward: 4, EncoderBlock: 8, DecoderBlock: 14}[block]
    np.testing.assert_allclose(sorted(map(float, layer.losses)), sorted(losses), rtol=1e-6)


# Misuse


@pytest.mark.parametrize(
    ("num_heads", "width", "fits", "wider"), [(7, D, "1 or 3 or 11", 35), (2, 3, "1 or 3", 4), (4, 1, "1", 4)]
)
def test_the_width_must_be_divisible_by_num_heads(num_heads, width, fits, wider):
    match = (
        r"The width of `{}`, its last axis, must be divisible by `num_heads`: every head gets an equal share\. "
        rf"Received: shape=\({B}, {T}, {width}\), num_heads={num_heads}\. Use num_heads={fits}, or make the input "
        rf"{wider} wide, for example with `keras.layers.Dense\({wider}\)`"
    )
    x = random(B, T, width)
    with pytest.raises(ValueError, match=match.replace("{}", "encoder_sequence")):
        EncoderBlock(num_heads, F)(x)
    with pytest.raises(ValueError, match=match.replace("{}", "decoder_sequence")):
        DecoderBlock(num_heads, F)(x, random(B, S, D_ENCODER))


@pytest.mark.parametrize("block", [EncoderBlock, DecoderBlock])
@pytest.mark.parametrize("argument", ["num_heads", "intermediate_dim"])
@pytest.mark.parametrize("value", [0, -2, 2.0, True, None])
def test_sizes_must_be_positive_integers(block, argument, value):
    match = rf"`{argument}` must be a positive integer. Received: {argument}={value!r}\."
    with pytest.raises(ValueError, match=match):
        block(**{"num_heads": N, "intermediate_dim": F, argument: value})
    if argument == "intermediate_dim":
        with pytest.raises(ValueError, match=match):
            FeedForward(value)


@pytest.mark.parametrize("argument", ["dropout", "attention_dropout"])
@pytest.mark.parametrize("value", [-0.1, 1.0, 2, False, "0.1"])
def test_dropout_must_be_a_rate(argument, value):
    match = rf"`{argument}` must be a number in \[0, 1\).*Received: {argument}={re.escape(repr(value))}\."
    with pytest.raises(ValueError, match=match):
        EncoderBlock(N, F, **{argument: value})


@pytest.mark.parametrize("value", [0, -1e-6, float("nan"), float("inf"), None, "1e-6"])
def test_layer_norm_epsilon_must_be_above_zero(value):
    match = rf"`layer_norm_epsilon` must be a number above 0. Received: layer_norm_epsilon={re.escape(repr(value))}\."
    with pytest.raises(ValueError, match=match):
        DecoderBlock(N, F, layer_norm_epsilon=value)


@pytest.mark.parametrize("build", [False, True], ids=["first call", "later call"])
@pytest.mark.parametrize("shape", [(B, D), (B, 3, T, D)])
@pytest.mark.parametrize("normalize_first", [False, True], ids=["post-norm", "pre-norm"])
def test_sequences_have_three_axes(shape, build, normalize_first):
    match = r"`{}` must have shape \(batch, length, width\).*" + rf"shape={re.escape(str(shape))}.*TimeDistributed"
    x, odd = random(B, T, D), random(*shape)
    settings = {"normalize_first": normalize_first}
    encoder = make_encoder(**settings) if build else EncoderBlock(N, F, **settings)
    with pytest.raises(ValueError, match=match.replace("{}", "encoder_sequence")):
        encoder(odd)
    decoder = make_decoder(**settings) if build else DecoderBlock(N, F, **settings)
    with pytest.raises(ValueError, match=match.replace("{}", "decoder_sequence")):
        decoder(odd, random(B, S, D_ENCODER))
    with pytest.raises(ValueError, match=match.replace("{}", "encoder_sequence")):
        decoder(x, odd)


@pytest.mark.parametrize("build", [False, True], ids=["first call", "later call"])
def test_a_list_of_two_sequences_is_an_error(build):
    decoder = make_decoder() if build else DecoderBlock(N, F)
    with pytest.raises(ValueError, match=r"`decoder_sequence` must be one tensor.*Received: 2 of them in a list"):
        decoder([random(B, T, D), random(B, S, D_ENCODER)])


def test_widths_must_equal_those_of_the_first_call():
    with pytest.raises(ValueError, match=rf"`encoder_sequence` must have width {D}, .*shape=\(2, 5, 30\)"):
        make_encoder()(random(B, T, 30))
    with pytest.raises(ValueError, match=rf"`encoder_sequence` must have width {D_ENCODER}, .*shape=\(2, 7, 30\)"):
        make_decoder()(random(B, T, D), random(B, S, 30))


def test_the_first_call_decides_whether_a_decoder_block_has_cross_attention():
    x, encoded = random(B, T, D), random(B, S, D_ENCODER)
    with pytest.raises(
        ValueError, match=r"'mine' was built by a call without `encoder_sequence`.*Received: a call with"
    ):
        make_decoder(alone=True, name="mine")(x, encoded)
    with pytest.raises(
        ValueError, match=r"'mine' was built by a call with `encoder_sequence`.*Received: a call without"
    ):
        make_decoder(name="mine")(x)


@pytest.mark.parametrize("argument", ["encoder_sequence_mask", "encoder_attention_mask"])
def test_encoder_masks_without_an_encoder_sequence_are_an_error(argument):
    with pytest.raises(ValueError, match=rf"`{argument}` is a mask of `encoder_sequence`.*Received: {argument}"):
        make_decoder(alone=True)(random(B, T, D), **{argument: np.ones((B, S), bool)})


def test_mask_with_an_encoder_sequence_is_an_error():
    with pytest.raises(ValueError, match=r"`mask` is for blocks that read one sequence.*Use `decoder_sequence_mask`"):
        make_decoder()(random(B, T, D), random(B, S, D_ENCODER), mask=DECODER_IDS != 0)


@pytest.mark.parametrize(
    ("argument", "kind"),
    [
        ("decoder_sequence_mask", "a padding mask"),
        ("encoder_sequence_mask", "a padding mask"),
        ("decoder_attention_mask", "shape"),
        ("encoder_attention_mask", "shape"),
    ],
)
def test_masks_must_fit_and_the_error_names_the_argument_of_the_block(argument, kind):
    for placed in (np.asarray, symbolic_like):
        with pytest.raises(ValueError, match=rf"`{argument}` must .*{kind}.*Received: shape=\(2, 4\)"):
            make_decoder()(
                placed(random(B, T, D)), placed(random(B, S, D_ENCODER)), **{argument: placed(np.ones((2, 4), bool))}
            )


@pytest.mark.parametrize("argument", ["mask", "encoder_sequence_mask", "attention_mask"])
def test_masks_of_the_encoder_block_must_fit(argument):
    for placed in (np.asarray, symbolic_like):
        with pytest.raises(ValueError, match=rf"`{argument}` must .*Received: shape=\(2, 4\)"):
            make_encoder()(placed(random(B, T, D)), **{argument: placed(np.ones((2, 4), bool))})


# Subclasses.


class LateGate(FeedForward):
    """Its gate is built by the first call."""

    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        self.gate = keras.layers.Dense(self.intermediate_dim)

    def call(self, inputs):
        return self.output_dense(self.intermediate_dense(inputs) * self.gate(inputs))


class LateBlock(EncoderBlock):
    feed_forward_class = LateGate


class MeanBlock(EncoderBlock):
    def call(self, x):
        return ops.mean(super().call(x), axis=1)


def test_a_symbolic_call_builds_and_describes_subclasses():
    x = keras.Input((None, D))
    late = LateBlock(N, F)
    late(x)
    assert late.feed_forward.gate.built
    assert MeanBlock(N, F)(x).shape == (None, D)


@pytest.mark.parametrize(
    ("block", "name", "ours"),
    [
        (EncoderBlock, "padding_mask", "`encoder_sequence_mask`"),
        (DecoderBlock, "decoder_padding_mask", "`decoder_sequence_mask`, `encoder_sequence_mask`"),
        (DecoderBlock, "encoder_padding_mask", "`decoder_sequence_mask`, `encoder_sequence_mask`"),
    ],
)
def test_the_names_of_masks_in_keras_hub_lead_to_ours(block, name, ours):
    rule = rf"has the name of the argument that it .*Received: `{name}`\. Here it is {ours}\."
    with pytest.raises(TypeError, match=rule):
        block(N, F)(random(B, T, D), **{name: np.ones((B, T), bool)})


def test_a_block_may_have_an_argument_of_that_name():
    class Own(EncoderBlock):
        def call(self, encoder_sequence, padding_mask=None):
            return super().call(encoder_sequence, mask=padding_mask)

    assert Own(N, F)(random(B, T, D), padding_mask=np.ones((B, T), bool)).shape == (B, T, D)
