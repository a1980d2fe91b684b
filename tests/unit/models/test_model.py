"""The whole model: its size, its masks, its cache, its files."""

import itertools
import json

import keras
import numpy as np
import pytest
from arrays import seed_weights, to_numpy
from keras import ops

from keras_transformer.layers.decoder_block import DecoderBlock
from keras_transformer.layers.embeddings import positional_encoding
from keras_transformer.layers.encoder_block import EncoderBlock
from keras_transformer.models.transformer import Transformer
from keras_transformer.search.shortlist import ShortlistDecoder
from keras_transformer.training.losses import LabelSmoothedCrossEntropy
from keras_transformer.training.presets import PRESETS

B, T, S, D, F, V, V_TARGET = 3, 5, 7, 22, 13, 23, 19
SMALL = {
    "vocabulary_size": V,
    "num_layers": 1,
    "num_heads": 2,
    "hidden_dim": D,
    "intermediate_dim": F,
    "dropout": 0.0,
}
# Arguments of `compile`. To trace a graph takes longer than a few steps without one. JAX is slow without its compiler.
STEPS = {"jit_compile": True} if keras.backend.backend() == "jax" else {"run_eagerly": True, "jit_compile": False}
POLICIES = ("float32", "mixed_bfloat16", "mixed_float16")
# JAX has float64 only by a setting of the process.
EVERY_POLICY = (*POLICIES, "bfloat16", *["float64"] * (keras.backend.backend() == "tensorflow"))
# Largest difference that rounding explains between two ways to compute the same logits, which are about 3 in size.
TOLERANCES = {"float32": 1e-5, "mixed_bfloat16": 0.15, "mixed_float16": 0.02, "bfloat16": 0.15, "float64": 1e-6}
SOURCE = np.array([[5, 9, 4, 3, 8, 6, 2], [6, 3, 8, 2, 0, 0, 0], [7, 2, 0, 0, 0, 0, 0]], "int32")
TARGET = np.array([[1, 8, 5, 9, 4], [1, 7, 6, 0, 0], [1, 3, 9, 7, 0]], "int32")


class RMSEncoderBlock(EncoderBlock):
    norm_class = keras.layers.RMSNormalization


class RMSDecoderBlock(DecoderBlock):
    norm_class = keras.layers.RMSNormalization


@keras.saving.register_keras_serializable(package="test")
class RMSTransformer(Transformer):
    encoder_block_class, decoder_block_class = RMSEncoderBlock, RMSDecoderBlock


def make(seed=1, cls=Transformer, **settings):
    """A small model whose biases, normalisations and positions are not at their initial values."""
    seed_weights(seed)
    model = cls(**{**SMALL, **settings})
    generator = np.random.default_rng(seed)
    model.set_weights([w + 0.1 * generator.normal(size=w.shape).astype("float32") for w in model.get_weights()])
    return model


def logits(model, source=SOURCE, target=TARGET):
    return to_numpy(model({"encoder_token_ids": source, "decoder_token_ids": target}))


def pad(token_ids, columns):
    return np.pad(token_ids, ((0, 0), (0, columns)))


def weight_gradients(model, inputs):
    """Path of every trainable weight -> its gradient of sum(logits * constants), or None."""

    def loss(output):
        constants = np.random.default_rng(99).normal(size=output.shape).astype("float32")
        return ops.sum(ops.cast(output, "float32") * constants)

    weights = [w.value for w in model.trainable_variables]
    if keras.backend.backend() == "tensorflow":
        import tensorflow as tf

        with tf.GradientTape() as tape:
            value = loss(model(inputs))
        gradients = [g if g is None else tf.convert_to_tensor(g) for g in tape.gradient(value, weights)]
    else:
        import jax

        others = [w.value for w in model.non_trainable_variables]

        gradients = jax.grad(lambda weights: loss(model.stateless_call(weights, others, inputs)[0]))(weights)
    paths = [w.path for w in model.trainable_variables]
    return {path: g if g is None else to_numpy(g) for path, g in zip(paths, gradients, strict=True)}


# Size


def expected_parameters(
    vocabulary_size,
    num_layers,
    hidden_dim,
    intermediate_dim,
    target_vocabulary_size=None,
    num_decoder_layers=None,
    normalize_first=False,
    tie_embeddings="all",
    learned_positions=0,
    **_,
):
    """The sizes of table 3 from formulas: weights and biases of every matrix, scale and shift of every norm."""
    d, f, target = hidden_dim, intermediate_dim, target_vocabulary_size or vocabulary_size
    attention, feed_forward, norm = 4 * (d * d + d), d * f + f + f * d + d, 2 * d
    encoder = num_layers * (attention + feed_forward + 2 * norm)
    decoder = (num_decoder_layers or num_layers) * (2 * attention + feed_forward + 3 * norm)
    tables = 1 if tie_embeddings == "all" else 2
    matrices = {"all": vocabulary_size, "target": vocabulary_size + target, "none": vocabulary_size + 2 * target}
    embeddings = matrices[tie_embeddings] * d + tables * learned_positions * d
    return encoder + decoder + embeddings + (2 * norm if normalize_first else 0)


@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"normalize_first": True},
        {"num_layers": 1, "num_decoder_layers": 3},
        {"tie_embeddings": "target", "target_vocabulary_size": V_TARGET},
        {"tie_embeddings": "none", "target_vocabulary_size": V_TARGET},
        {"position_type": "learned", "max_length": 11},
        {"position_type": "learned", "max_length": 11, "tie_embeddings": "none"},
        {"layout": "concatenated", "max_wavelength": 99.5, "scale_embeddings": False},
    ],
    ids=lambda settings: " ".join(f"{key}={value}" for key, value in settings.items()) or "default",
)
def test_parameter_count_is_the_formula(settings):
    expected = expected_parameters(**{**SMALL, **settings}, learned_positions=settings.get("max_length", 0))
    model = Transformer(**{**SMALL, **settings})
    assert model.count_params() == expected
    assert sum(int(np.prod(w.shape)) for w in model.trainable_weights) == expected


@pytest.mark.parametrize(
    ("preset", "vocabulary_size", "low", "high"),
    [
        ("tiny", 9_700, 2.5e6, 2.7e6),
        ("tiny", 10_000, 2.5e6, 2.7e6),
        ("base", 37_000, 63e6, 65e6),
        ("big", 37_000, 210e6, 215e6),
    ],
)
def test_presets_have_the_published_sizes(preset, vocabulary_size, low, high):
    assert low < expected_parameters(vocabulary_size, **PRESETS[preset]) < high


@pytest.mark.parametrize("preset", ["tiny", "small"])
def test_presets_build_at_their_size(preset):
    model = Transformer(97, **PRESETS[preset])
    assert model.count_params() == expected_parameters(97, **PRESETS[preset])


def test_the_defaults_are_the_base_model():
    model = Transformer(37_000)
    assert model.count_params() == expected_parameters(37_000, **PRESETS["base"]) == 63_082_496
    config = model.get_config()
    assert {key: config[key] for key in PRESETS["base"]} == PRESETS["base"]


# Which matrices are shared


def embedding_matrices(model):
    return sorted(tuple(w.shape) for w in model.weights if w.name in ("embeddings", "reverse_embeddings"))


def test_tie_all_has_one_matrix():
    model = make(tie_embeddings="all")
    assert model.encoder_embedding is model.decoder_embedding
    assert embedding_matrices(model) == [(V, D)]


def test_tie_target_has_a_source_matrix_and_a_target_matrix():
    model = make(tie_embeddings="target", target_vocabulary_size=V_TARGET)
    assert embedding_matrices(model) == [(V_TARGET, D), (V, D)]
    before = logits(model)
    matrix = model.decoder_embedding.token_embedding.embeddings
    changed = to_numpy(matrix)
    changed[17] += 1  # No sentence has this token, so only its logit can change.
    matrix.assign(changed)
    assert sorted(set(np.nonzero(np.abs(logits(model) - before) > 1e-6)[-1])) == [17]


def test_tie_none_has_three_matrices():
    model = make(tie_embeddings="none", target_vocabulary_size=V_TARGET)
    assert embedding_matrices(model) == sorted([(V, D), (V_TARGET, D), (D, V_TARGET)])
    before = logits(model)
    matrix = model.decoder_embedding.token_embedding.embeddings
    changed = to_numpy(matrix)
    changed[17] += 1
    matrix.assign(changed)
    np.testing.assert_array_equal(logits(model), before)
    matrix = model.decoder_embedding.token_embedding.reverse_embeddings
    changed = to_numpy(matrix)
    changed[:, 17] += 1
    matrix.assign(changed)
    assert sorted(set(np.nonzero(np.abs(logits(model) - before) > 1e-6)[-1])) == [17]


@pytest.mark.parametrize("tie_embeddings", ["target", "none"])
def test_logits_are_over_the_target_vocabulary(tie_embeddings):
    model = Transformer(**{**SMALL, "target_vocabulary_size": V_TARGET, "tie_embeddings": tie_embeddings})
    assert model.output.shape == (None, None, V_TARGET)
    assert logits(model, source=np.full((B, S), V - 1, "int32")).shape == (B, T, V_TARGET)
    assert np.all(np.isfinite(logits(model)))


# Errors


@pytest.mark.parametrize(
    ("settings", "match"),
    [
        ({"tie_embeddings": "both"}, r"`tie_embeddings` must be one of .*'none'.*Received: 'both'"),
        (
            {"target_vocabulary_size": V_TARGET},
            rf"`tie_embeddings='all'` needs one vocabulary.*vocabulary_size={V}, target_vocabulary_size={V_TARGET}",
        ),
        (
            {"num_heads": 3},
            r"`hidden_dim` must be divisible by `num_heads`.*=22, num_heads=3\. Use num_heads=1 or 2, or hidden_dim=24",
        ),
        ({"num_heads": 1, "hidden_dim": 21}, r"`hidden_dim` must be an even number.*hidden_dim=21.*hidden_dim=22"),
        ({"position_type": "rotary"}, r"`position_type` must be one of .*Received: 'rotary'"),
        ({"position_type": "learned"}, r"`max_length` must be given for learned positions.*max_length=None"),
        ({"dropout": 1.5}, r"`dropout` must be a number in \[0, 1\).*dropout=1\.5"),
        ({"attention_dropout": -0.1}, r"`attention_dropout` must be a number in .*=-0\.1"),
        *(
            ({name: value}, f"`{name}` must be a positive integer. Received: {name}={value}")
            for name in ("vocabulary_size", "num_layers", "num_decoder_layers", "num_heads", "intermediate_dim")
            for value in (0, 2.0, True)
        ),
        ({"hidden_dim": 22.0}, r"`hidden_dim` must be a positive integer. Received: hidden_dim=22\.0"),
        ({"target_vocabulary_size": 0}, "`target_vocabulary_size` must be a positive integer"),
        ({"max_length": 7.5}, "`max_length` must be a positive integer"),
        ({"first_position": -1}, "`first_position` must be 0 or more"),
        *(
            ({"source_language_token_id": i}, f"must be an id of the source vocabulary.*source_language_token_id={i}")
            for i in (0, V)
        ),
        ({"activation": "no_such"}, "no_such"),
        ({"dtype": "float31"}, "float31"),
    ],
    ids=lambda value: None if isinstance(value, str) else " ".join(f"{k}={v}" for k, v in value.items()),
)
def test_invalid_settings_are_an_error(settings, match):
    with pytest.raises((ValueError, TypeError), match=match):
        Transformer(**{**SMALL, **settings})


@pytest.mark.parametrize("side", ["source", "target"])
def test_a_sequence_longer_than_the_learned_positions_is_an_error(side):
    model = make(position_type="learned", max_length=S)
    long = {side: pad(SOURCE, 1)}
    with pytest.raises(ValueError, match=r"may not be longer than `max_length`.*Received: 8 positions, max_length=7"):
        logits(model, **long)


def test_sinusoidal_positions_have_no_maximum_length():
    model = make(max_length=S)
    assert np.all(np.isfinite(logits(model, np.ones((1, 307), "int32"), np.ones((1, 211), "int32"))))


# Padding and causality

norms = pytest.mark.parametrize("normalize_first", [False, True], ids=["post-norm", "pre-norm"])


@norms
@pytest.mark.parametrize("cls", [Transformer, RMSTransformer])
def test_padding_never_changes_a_result(cls, normalize_first):
    model = make(cls=cls, num_layers=3, normalize_first=normalize_first)
    real = TARGET != 0
    expected = logits(model)
    padded = logits(model, pad(SOURCE, 4), pad(TARGET, 6))
    np.testing.assert_allclose(padded[:, :T][real], expected[real], atol=1e-5)
    s, t = (SOURCE[1] != 0).sum(), real[1].sum()
    alone = logits(model, SOURCE[1:2, :s], TARGET[1:2, :t])
    np.testing.assert_allclose(alone[0], expected[1, :t], atol=1e-5)


@norms
def test_the_vector_of_the_pad_token_does_not_matter(normalize_first):
    model = make(num_layers=3, normalize_first=normalize_first, tie_embeddings="none")
    expected = logits(model)[TARGET != 0]
    for embedding in (model.encoder_embedding, model.decoder_embedding):
        matrix = to_numpy(embedding.token_embedding.embeddings)
        matrix[0] += 100
        embedding.token_embedding.embeddings.assign(matrix)
    np.testing.assert_allclose(logits(model)[TARGET != 0], expected, atol=1e-5)


@pytest.mark.parametrize("policy", POLICIES)
def test_a_source_of_padding_only_gives_finite_logits(policy):
    assert np.all(np.isfinite(logits(make(dtype=policy), source=np.zeros_like(SOURCE))))


@norms
def test_a_target_token_changes_no_logits_before_it_and_all_after_it(normalize_first):
    model = make(num_layers=3, normalize_first=normalize_first)
    source, target = SOURCE[:1], TARGET[:1]
    before = logits(model, source, target)
    for j in range(T):
        changed = target.copy()
        changed[:, j] = 20
        after = logits(model, source, changed)
        np.testing.assert_allclose(after[:, :j], before[:, :j], atol=1e-6)
        assert np.abs(after[:, j:] - before[:, j:]).max(axis=(0, 2)).min() > 1e-3


@norms
def test_every_source_token_changes_all_logits(normalize_first):
    model = make(normalize_first=normalize_first)
    source, target = SOURCE[:1], TARGET[:1]
    before = logits(model, source, target)
    for j in range(S):
        changed = source.copy()
        changed[:, j] = 20
        assert np.abs(logits(model, changed, target) - before).max(axis=(0, 2)).min() > 1e-4


def test_inputs_are_read_by_name_in_any_order():
    model = make()
    inputs = {"decoder_token_ids": TARGET, "encoder_token_ids": SOURCE}
    np.testing.assert_allclose(to_numpy(model(inputs)), logits(model), atol=1e-6)


def test_inputs_may_be_a_list_a_tuple_or_two_arguments():
    """The source comes first. Keras itself would use the sorted names of the dict."""
    model = make()
    for inputs in ([SOURCE, TARGET], (SOURCE, TARGET)):
        np.testing.assert_allclose(to_numpy(model(inputs)), logits(model), atol=1e-6)
        np.testing.assert_allclose(to_numpy(model(inputs, training=False)), logits(model), atol=1e-6)
    np.testing.assert_allclose(to_numpy(model(SOURCE, TARGET)), logits(model), atol=1e-6)
    np.testing.assert_allclose(to_numpy(model(SOURCE, TARGET, training=False)), logits(model), atol=1e-6)


def test_a_list_or_a_tuple_of_inputs_trains_evaluates_and_predicts_as_a_dict_does():
    found = []
    for x in ([SOURCE, TARGET], (SOURCE, TARGET), {"encoder_token_ids": SOURCE, "decoder_token_ids": TARGET}):
        model = make()
        model.compile("sgd", keras.losses.SparseCategoricalCrossentropy(from_logits=True), **STEPS)
        loss = model.fit(x, TARGET, verbose=0, shuffle=False).history["loss"]
        found.append([*loss, model.evaluate(x, TARGET, verbose=0), model.predict(x, verbose=0).sum()])
    for one in found[:2]:
        np.testing.assert_allclose(one, found[2], rtol=1e-5)


def test_a_list_of_symbolic_inputs_makes_a_larger_functional_model(tmp_path):
    source, target = keras.Input((None,), dtype="int32"), keras.Input((None,), dtype="int32")
    both = make(), make()  # Keras gives them different names, which a functional model needs.
    model = keras.Model([source, target], keras.layers.Add()([inner(source, target) for inner in both]))
    model.save(tmp_path / "model.keras")
    loaded = keras.saving.load_model(tmp_path / "model.keras")
    expected = sum(map(logits, both))
    for found in (model, loaded):
        np.testing.assert_allclose(to_numpy(found([SOURCE, TARGET])), expected, atol=1e-5)


@pytest.mark.parametrize(
    "inputs", [SOURCE, [SOURCE], [SOURCE, TARGET, TARGET], "a dog"], ids=["one", "[one]", "3", "text"]
)
def test_invalid_inputs_are_an_error(inputs):
    with pytest.raises(ValueError, match=r"takes the token ids of source and target: a dict with.*Received: "):
        make()(inputs)


def test_dropout_is_active_in_training_only():
    model = make(dropout=0.5)
    inputs = {"encoder_token_ids": SOURCE, "decoder_token_ids": TARGET}
    np.testing.assert_array_equal(to_numpy(model(inputs, training=False)), logits(model))
    assert np.abs(to_numpy(model(inputs, training=True)) - logits(model)).max() > 1e-2


# The output bias, positions and scale


def draw_output_bias(model):
    bias = model.decoder_embedding.bias
    if bias is not None:
        bias.assign(np.random.default_rng(0).normal(size=bias.shape))


@pytest.mark.parametrize("tie_embeddings", ["all", "target", "none"])
def test_output_bias_is_added_to_the_logits_and_is_a_weight_of_the_decoder_embedding(tie_embeddings):
    model = make(tie_embeddings=tie_embeddings, output_bias=True)
    plain = make(tie_embeddings=tie_embeddings)
    assert model.count_params() == plain.count_params() + V
    bias = model.decoder_embedding.bias
    assert bias.shape == (V,) and plain.decoder_embedding.bias is None
    if tie_embeddings != "all":
        assert model.encoder_embedding.bias is None
    bias.assign(np.zeros(V))
    before = logits(model)
    draw_output_bias(model)
    np.testing.assert_allclose(logits(model), before + to_numpy(bias), atol=1e-5)


def test_layout_wavelength_and_scale_reach_both_embeddings():
    model = make(tie_embeddings="target", layout="concatenated", max_wavelength=99.5, scale_embeddings=False)
    for layer in (model.encoder_embedding, model.decoder_embedding):
        expected = to_numpy(layer.token_embedding.embeddings)[TARGET] + positional_encoding(
            T, SMALL["hidden_dim"], max_wavelength=99.5, layout="concatenated"
        )
        np.testing.assert_allclose(to_numpy(layer(TARGET)), expected, atol=1e-6)


def test_the_first_position_reaches_both_embeddings():
    model = make(tie_embeddings="target", first_position=2)
    for layer in (model.encoder_embedding, model.decoder_embedding):
        embeddings = to_numpy(layer.token_embedding.embeddings)[TARGET] * D**0.5
        expected = embeddings + positional_encoding(2 + T, D)[2:]
        np.testing.assert_allclose(to_numpy(layer(TARGET)), expected, atol=1e-5)


def test_the_encoder_reads_the_source_language_in_place_of_the_first_token():
    plain = make(num_layers=2)
    model = Transformer(**{**SMALL, "num_layers": 2}, source_language_token_id=11)
    model.set_weights(plain.get_weights())
    replaced = SOURCE.copy()
    replaced[:, 0] = 11
    np.testing.assert_array_equal(logits(model), logits(plain, replaced))
    np.testing.assert_array_equal(to_numpy(model.encode(SOURCE)[0]), to_numpy(plain.encode(replaced)[0]))
    for mine, other in zip(
        model.attention_scores(SOURCE, TARGET), plain.attention_scores(replaced, TARGET), strict=True
    ):
        np.testing.assert_array_equal(to_numpy(mine[1]), to_numpy(other[1]))
    padding = np.zeros_like(SOURCE)  # Padding stays padding.
    np.testing.assert_array_equal(to_numpy(model.encode(padding)[1]), padding.astype(bool))


@pytest.mark.parametrize("cache", ["growing", "fixed"])
def test_a_search_adds_the_output_bias(cache):
    model = make(output_bias=True)
    draw_output_bias(model)
    decoder = model.start_decoding(SOURCE, T, cache=cache)
    step_logits, _ = decoder.step(ops.convert_to_tensor(TARGET[:, 0]), decoder.cache, ops.convert_to_tensor(0))
    real = TARGET[:, 0] != 0
    np.testing.assert_allclose(to_numpy(step_logits)[real], logits(model)[real, 0], atol=1e-5)


# Cached decoding


DECODED = {
    "post-norm": {"num_layers": 2},
    "RMS normalisation": {"cls": RMSTransformer, "normalize_first": True},
    "pre-norm, 1 and 3 layers": {"normalize_first": True, "num_layers": 1, "num_decoder_layers": 3},
    "learned positions": {
        "position_type": "learned",
        "max_length": 11,
        "tie_embeddings": "none",
        "target_vocabulary_size": V_TARGET,
    },
    "output bias": {
        "layout": "concatenated",
        "max_wavelength": 99.5,
        "scale_embeddings": False,
        "output_bias": True,
        "first_position": 2,
        "source_language_token_id": 11,
    },
}


@pytest.mark.parametrize(
    ("name", "policy"),
    [*[(name, "float32") for name in DECODED], *zip(itertools.cycle(DECODED), EVERY_POLICY[1:], strict=False)],
)
def test_cached_steps_equal_the_full_forward_pass(name, policy):
    model = make(dtype=policy, **DECODED[name])
    draw_output_bias(model)
    expected = logits(model)
    encoder_sequence, mask = model.encode(SOURCE)
    np.testing.assert_array_equal(ops.convert_to_numpy(mask), SOURCE != 0)
    cache, cross_cache = model.init_cache(B), model.init_cross_cache(encoder_sequence, mask)
    assert len(cache) == len(cross_cache[0]) == len(model.decoder_blocks)
    for t in range(T):
        index = t if t % 2 else ops.convert_to_tensor(t, dtype="int32")
        step_logits, cache = model.decode_step(ops.convert_to_tensor(TARGET[:, t]), cache, index, cross_cache)
        real = TARGET[:, t] != 0
        np.testing.assert_allclose(to_numpy(step_logits)[real], expected[real, t], atol=TOLERANCES[policy])


@pytest.mark.parametrize("cache", ["growing", "fixed"])
def test_start_decoding_gives_the_full_forward_pass_for_every_beam(cache):
    model, beams = make(), 2
    targets = np.random.default_rng(0).integers(1, V, (B * beams, T)).astype("int32")
    expected = logits(model, np.repeat(SOURCE, beams, axis=0), targets)
    decoder = model.start_decoding(SOURCE, 2, num_beams=beams, cache=cache)
    cache = decoder.cache
    ancestors = np.broadcast_to(np.arange(beams, dtype="int32")[:, None], (B, beams, T))
    for t in range(T):
        length = T if t >= 2 else 2  # The first cache is too short and must be lengthened.
        if t == 2:
            cache = decoder.lengthen(cache, T)
        newest, index = ops.convert_to_tensor(targets[:, t]), ops.convert_to_tensor(t)
        step_logits, cache = decoder.step(newest, cache, index, ancestors[:, :, :length])
        np.testing.assert_allclose(to_numpy(step_logits), expected[:, t], atol=1e-5)


@pytest.mark.parametrize("cache", ["growing", "fixed"])
def test_beams_read_the_cache_of_their_ancestors(cache):
    """Beams exchange their prefixes: the logits must equal a full forward pass over each beam's own prefix."""
    model, beams = make(), 3
    rng = np.random.default_rng(1)
    targets = rng.integers(1, V, (B, beams, T)).astype("int32")  # The token that each row reads at each position.
    ancestors = np.full((B, beams, T), -1, "int32")
    decoder = model.start_decoding(SOURCE, T, num_beams=beams, cache=cache)
    cache = decoder.cache
    for t in range(T):
        ancestors[:, :, t] = np.arange(beams)
        newest = ops.convert_to_tensor(targets[:, :, t].reshape(-1))
        step_logits, cache = decoder.step(newest, cache, ops.convert_to_tensor(t), ancestors)
        own = np.stack([[targets[b, row[: t + 1], range(t + 1)] for row in ancestors[b]] for b in range(B)])
        expected = logits(model, np.repeat(SOURCE, beams, axis=0), own.reshape(B * beams, t + 1))[:, -1]
        np.testing.assert_allclose(to_numpy(step_logits), expected, atol=1e-5)
        ancestors = np.take_along_axis(ancestors, rng.integers(0, beams, (B, beams))[..., None], axis=1)


@norms
def test_attention_scores_equal_those_of_each_block(normalize_first):
    model = make(normalize_first=normalize_first)
    found = model.attention_scores(SOURCE, TARGET)
    heads = model.decoder_blocks[0].num_heads
    for kind, shape in (("encoder", (S, S)), ("decoder", (T, T)), ("cross", (T, S))):
        layers = len(model.encoder_blocks if kind == "encoder" else model.decoder_blocks)
        assert [tuple(scores.shape) for scores in getattr(found, kind)] == [(B, heads, *shape)] * layers
    for scores in found.cross:
        scores = to_numpy(scores)
        np.testing.assert_allclose(scores.sum(axis=-1), 1.0, atol=1e-5)
        assert not scores[np.broadcast_to((SOURCE == 0)[:, None, None], scores.shape)].any()


@norms
def test_encode_equals_the_encoder_of_the_graph(normalize_first):
    model = make(normalize_first=normalize_first)
    last = model.encoder_norm or model.encoder_blocks[-1]
    encoder = keras.Model(model.input["encoder_token_ids"], last.output)
    sequence, _ = model.encode(SOURCE)
    np.testing.assert_allclose(to_numpy(sequence), to_numpy(encoder(SOURCE)), atol=1e-6)


# Saving

SAVED = [
    {},
    {
        "normalize_first": True,
        "num_layers": 1,
        "num_decoder_layers": 3,
        "activation": "gelu",
        "dtype": "mixed_bfloat16",
        "name": "mine",
    },
    {
        "position_type": "learned",
        "max_length": 11,
        "tie_embeddings": "none",
        "target_vocabulary_size": V_TARGET,
        "attention_dropout": 0.25,
        "layer_norm_epsilon": 1e-3,
    },
    {"tie_embeddings": "target", "target_vocabulary_size": V_TARGET, "activation": keras.activations.silu},
    {"layout": "concatenated", "max_wavelength": 99.5, "scale_embeddings": False, "output_bias": True},
]


@pytest.mark.parametrize("settings", SAVED, ids=["default", "pre-norm", "learned", "target", "output bias"])
def test_config_round_trip(settings):
    model = make(**settings)
    config = model.get_config()
    copy = Transformer.from_config(config)
    assert copy.get_config() == config
    assert {key: config[key] for key in settings if key not in ("dtype", "activation")} == {
        key: value for key, value in settings.items() if key not in ("dtype", "activation")
    }
    assert config["activation"] == (
        "silu" if callable(settings.get("activation")) else settings.get("activation", "relu")
    )
    assert copy.dtype_policy.name == settings.get("dtype", "float32")
    assert [w.path for w in copy.weights] == [w.path for w in model.weights]
    copy.set_weights(model.get_weights())
    np.testing.assert_array_equal(logits(copy), logits(model))


@keras.saving.register_keras_serializable(package="tests")
def cubed(x):
    return x**3


@pytest.mark.parametrize("activation", [keras.activations.gelu, cubed], ids=["Keras'", "registered"])
def test_the_config_of_a_callable_activation_is_json(activation, tmp_path):
    model = make(activation=activation)
    copy = Transformer.from_config(json.loads(json.dumps(model.get_config())))
    copy.set_weights(model.get_weights())
    np.testing.assert_array_equal(logits(copy), logits(model))
    model.save(tmp_path / "model.keras")
    np.testing.assert_array_equal(logits(keras.saving.load_model(tmp_path / "model.keras")), logits(model))
    assert np.abs(logits(make()) - logits(model)).max() > 1e-3


def test_configs_that_hold_the_pad_token_id_of_older_files_are_loaded():
    config = Transformer(**SMALL).get_config()
    assert Transformer.from_config({**config, "pad_token_id": 0}).get_config() == config
    with pytest.raises(ValueError, match=r"has no `pad_token_id`.*pad_token_id=4. Swap rows 0 and 4"):
        Transformer.from_config({**config, "pad_token_id": 4})


@pytest.mark.parametrize("policy", POLICIES)
def test_symbolic_and_eager_calls_have_the_same_shape_and_dtype(policy):
    model = make(dtype=policy, target_vocabulary_size=V_TARGET, tie_embeddings="target")
    inputs = {"encoder_token_ids": SOURCE, "decoder_token_ids": TARGET}
    shapes = {name: ids.shape for name, ids in inputs.items()}
    symbolic = model({name: keras.Input(shape[1:], dtype="int32") for name, shape in shapes.items()})
    eager = model(inputs)
    assert symbolic.shape == (None, T, V_TARGET) and tuple(eager.shape) == (B, T, V_TARGET)
    assert tuple(model.compute_output_shape(shapes)) == (B, T, V_TARGET)
    assert symbolic.dtype == keras.backend.standardize_dtype(eager.dtype) == model.dtype_policy.variable_dtype


def test_config_holds_the_default_policy_at_the_time_of_construction():
    keras.config.set_dtype_policy("mixed_bfloat16")
    try:
        config = Transformer(**SMALL).get_config()
    finally:
        keras.config.set_dtype_policy("float32")
    copy = Transformer.from_config(config)
    assert copy.dtype_policy.name == "mixed_bfloat16"
    assert copy.encoder_blocks[0].output.dtype == "bfloat16"


def test_serialized_model_is_json():
    model = make(**SAVED[1])
    serialized = json.loads(json.dumps(keras.saving.serialize_keras_object(model)))
    assert serialized["registered_name"] == "keras_transformer>Transformer"
    copy = keras.saving.deserialize_keras_object(serialized)
    assert copy.get_config() == model.get_config()


def test_weights_can_be_saved_and_loaded(tmp_path):
    model, other = make(), make(seed=2)
    model.save_weights(tmp_path / "model.weights.h5")
    assert np.abs(logits(other) - logits(model)).max() > 0.1
    other.load_weights(tmp_path / "model.weights.h5")
    np.testing.assert_array_equal(logits(other), logits(model))


def test_blocks_may_have_another_normalisation(tmp_path):
    model = make(cls=RMSTransformer, normalize_first=True)
    model.save(tmp_path / "model.keras")
    loaded = keras.saving.load_model(tmp_path / "model.keras")
    np.testing.assert_array_equal(logits(loaded), logits(model))
    norms = {name.rsplit("/", 2)[-2] for name in (w.path for w in model.weights) if name.endswith("/scale")}
    own = {"self_attention_norm", "cross_attention_norm", "feed_forward_norm"}
    assert norms == {*own, "encoder_norm", "decoder_norm"}
    assert not [w.path for w in model.weights if w.path.endswith("/gamma")]


def test_the_names_of_weights_are_unique():
    """Also over several layers; `test_contracts.py` has each layer alone."""
    paths = [w.path for w in make(tie_embeddings="none", normalize_first=True, num_layers=2).weights]
    assert len(set(paths)) == len(paths)


def test_summary_names_every_part():
    model, lines = make(normalize_first=True, num_decoder_layers=3), []
    model.summary(print_fn=lambda line, **_: lines.append(line), line_length=200)
    text = "\n".join(lines)
    names = ["encoder_token_ids", "decoder_token_ids", "embedding", "encoder_norm", "decoder_norm"]
    names += ["encoder_block_0"] + [f"decoder_block_{i}" for i in range(3)]
    assert [name for name in names if name not in text] == []
    assert f"{model.count_params():,}" in text


# Training


def test_gradients_reach_every_weight():
    model = make(tie_embeddings="none", position_type="learned", max_length=S, normalize_first=True)
    gradients = weight_gradients(model, {"encoder_token_ids": SOURCE, "decoder_token_ids": TARGET})
    assert len(gradients) == len(model.weights)
    for path, gradient in gradients.items():
        assert gradient is not None, path
        assert np.all(np.isfinite(gradient)), path
        assert np.any(gradient != 0), path


@pytest.mark.parametrize("policy", POLICIES)
def test_fit_lowers_the_loss_and_moves_every_weight(policy):
    model = make(dtype=policy, dropout=0.1, attention_dropout=0.1, normalize_first=True)
    loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    model.compile(keras.optimizers.Adam(3e-2), loss, **STEPS)
    inputs = {"encoder_token_ids": SOURCE, "decoder_token_ids": TARGET}
    labels = np.roll(TARGET, -1, axis=1)
    before = model.get_weights()
    history = model.fit(inputs, labels, sample_weight=(labels != 0) * 1.0, epochs=4, batch_size=B, verbose=0)
    losses = history.history["loss"]
    assert np.all(np.isfinite(losses))
    assert losses[-1] < 0.8 * losses[0]
    unchanged = [w.path for w, old in zip(model.weights, before, strict=True) if np.array_equal(to_numpy(w), old)]
    assert unchanged == []


def test_a_loaded_model_has_the_frozen_layers_of_the_saved_one(tmp_path):
    model = make()
    model.encoder_embedding.trainable = model.encoder_blocks[0].trainable = False
    model.compile(keras.optimizers.Adam(0.01), LabelSmoothedCrossEntropy(), **STEPS)
    ids = np.random.default_rng(0).integers(4, 11, (4, 5)).astype("int32")
    data = {"x": {"encoder_token_ids": ids, "decoder_token_ids": ids}, "y": ids, "sample_weight": np.ones((4, 5))}
    model.fit(**data, verbose=0)
    model.save(tmp_path / "model.keras")
    loaded = keras.saving.load_model(tmp_path / "model.keras")
    assert len(loaded.trainable_weights) == len(model.trainable_weights) < len(model.weights)
    for one in (model, loaded):
        one.fit(**data, verbose=0, shuffle=False)
    for a, b in zip(model.get_weights(), loaded.get_weights(), strict=True):
        np.testing.assert_allclose(a, b, atol=1e-6)
    frozen = Transformer.from_config(Transformer(trainable=False, **SMALL).get_config())
    assert frozen.trainable_weights == [] and Transformer.from_config(make().get_config()).trainable_weights != []


def test_low_rank_updates_train_search_and_are_saved_merged(tmp_path):
    """`enable_lora` of Keras' layers freezes a matrix and adds a product of two narrow ones; `save` adds them up."""
    model = make()
    layers = list(model.layers)
    for layer in layers:  # The parts of parts are appended while it runs.
        layers += [part for part in vars(layer).values() if isinstance(part, keras.layers.Layer)]
        if isinstance(layer, keras.layers.Dense | keras.layers.Embedding):
            layer.enable_lora(2)
    frozen = [w for w in model.weights if not w.trainable]
    before = [to_numpy(w) for w in (*frozen, *model.trainable_weights)]
    model.compile(keras.optimizers.Adam(0.01), LabelSmoothedCrossEntropy(), **STEPS)
    losses = model.fit([SOURCE, TARGET], TARGET, batch_size=B, epochs=2, verbose=0).history["loss"]
    assert losses[-1] < losses[0]
    unchanged = [
        np.array_equal(to_numpy(w), old) for w, old in zip((*frozen, *model.trainable_weights), before, strict=True)
    ]
    assert unchanged == [True] * len(frozen) + [False] * len(model.trainable_weights)
    decoder = model.start_decoding(SOURCE, T)
    step, _ = decoder.step(ops.convert_to_tensor(TARGET[:, 0]), decoder.cache, ops.convert_to_tensor(0))
    assert decoder.output_kernel is not None  # The matrix that a search lays out has the update too.
    np.testing.assert_allclose(to_numpy(step), logits(model)[:, 0], atol=1e-5)
    model.save(tmp_path / "model.keras")
    loaded = keras.saving.load_model(tmp_path / "model.keras", compile=False)
    assert [w.shape for w in loaded.weights] == [w.shape for w in make().weights]
    np.testing.assert_allclose(logits(loaded), logits(model), atol=1e-5)


@pytest.mark.parametrize("compiled", [False, True])
def test_keras_clones_the_graph_as_a_plain_model(compiled):
    """Keras makes a clone of a class with arguments of its own from the layers alone; it takes the inputs by name."""
    model = make()
    if compiled:
        model.compile(keras.optimizers.SGD(0.1), LabelSmoothedCrossEntropy(), jit_compile=False)
    clone = keras.models.clone_model(model)
    clone.set_weights(model.get_weights())
    assert not isinstance(clone, Transformer) and clone.compiled == compiled
    np.testing.assert_array_equal(logits(clone), logits(model))


def test_inner_outputs_make_models_of_their_own(tmp_path):
    model = make()
    encoder = keras.Model(model.input["encoder_token_ids"], model.encoder_blocks[-1].output)
    np.testing.assert_array_equal(to_numpy(encoder(SOURCE)), to_numpy(model.encode(SOURCE)[0]))
    encoder.save(tmp_path / "encoder.keras")
    loaded = keras.saving.load_model(tmp_path / "encoder.keras")
    np.testing.assert_array_equal(to_numpy(loaded(SOURCE)), to_numpy(encoder(SOURCE)))


def test_an_h5_file_loads_if_the_class_is_named(tmp_path):
    """Keras' older format stores the name of a model's class without its package, so it cannot know where it is."""
    model = make()
    model.save(tmp_path / "model.h5")
    loaded = keras.saving.load_model(tmp_path / "model.h5", custom_objects={"Transformer": Transformer})
    np.testing.assert_array_equal(logits(loaded), logits(model))


def test_a_model_is_quantized_by_its_exports_only():
    with pytest.raises(ValueError, match=r"A `Transformer` is not quantized in Python\. Received: mode='int8'"):
        make().quantize("int8")


@pytest.mark.parametrize("tie_embeddings", ["all", "none"])
@pytest.mark.parametrize("mode", ["int8", "int4"])
@pytest.mark.filterwarnings("ignore:Layer .* does not have a `quantize`", "ignore:__array__ implementation")  # Keras.
def test_a_search_of_a_model_that_was_quantized_from_outside_equals_its_forward_pass(mode, tie_embeddings):
    """`quantize` of a model around it leaves integers in `embeddings`; their scale is another weight."""
    model = make(output_bias=True, tie_embeddings=tie_embeddings)
    draw_output_bias(model)
    inputs = [keras.Input((None,), dtype="int32") for _ in range(2)]
    keras.Model(inputs, model(inputs)).quantize(mode)
    expected, beams = logits(model), 2
    decoder = model.start_decoding(SOURCE, T, num_beams=beams)
    cache, ancestors = decoder.cache, np.broadcast_to(np.arange(beams, dtype="int32")[:, None], (B, beams, T))
    for t in range(T):
        newest = ops.convert_to_tensor(np.repeat(TARGET[:, t], beams))
        step, cache = decoder.step(newest, cache, ops.convert_to_tensor(t), ancestors)
        real = TARGET[:, t] != 0
        np.testing.assert_allclose(to_numpy(step)[::beams][real], expected[real, t], atol=0.1)  # Rounded hidden states.
    with pytest.raises(ValueError, match=rf"A shortlist reads rows of .* Received: a layer quantized to {mode}\."):
        ShortlistDecoder(decoder, np.array([[1, 2]] * B))
