"""The contract of every layer: config, shapes, dtypes, gradients, masks, files."""

import inspect
import json

import keras
import numpy as np
import pytest
from arrays import keras_mask, random, randomize, to_numpy
from keras import ops

import keras_transformer as kt

# Name -> (class, arguments other than the defaults, shapes of the inputs)

B, T, S, N, H, F, D_ENCODER, V = 2, 5, 7, 3, 11, 13, 17, 19
D, EVEN_D, D_KEY = N * H, 22, 23
POLICIES = ("float32", "mixed_bfloat16", "mixed_float16")
DENSE = {
    "kernel_initializer": "he_normal",
    "bias_initializer": "random_normal",
    "kernel_regularizer": "l2",
    "bias_regularizer": "l1",
}
ATTENTION = {"num_heads": N, "key_dim": H, "dropout": 0.25, "seed": 3}
BLOCK = {
    "num_heads": N,
    "intermediate_dim": F,
    "dropout": 0.25,
    "attention_dropout": 0.125,
    "activation": "gelu",
    "normalize_first": True,
    "layer_norm_epsilon": 1e-3,
    "seed": 3,
    **DENSE,
}
LAYERS = {
    "positions": (
        kt.PositionalEmbedding,
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
        kt.PositionalEmbedding,
        {"vocabulary_size": V, "hidden_dim": EVEN_D, "position_type": "learned", "max_length": 29},
        [(B, T)],
    ),
    "self-attention": (kt.MultiHeadAttention, {**ATTENTION, "use_bias": False}, [(B, T, D)]),
    "cross-attention": (
        kt.MultiHeadAttention,
        {**ATTENTION, **DENSE, "kernel_constraint": "max_norm", "bias_constraint": "non_neg"},
        [(B, T, D), (B, S, D_ENCODER)],
    ),
    "attention with keys": (
        kt.MultiHeadAttention,
        {**ATTENTION, "value_dim": 29, "output_shape": 31},
        [(B, T, D), (B, S, D_ENCODER), (B, S, D_KEY)],
    ),
    "feed-forward": (kt.FeedForward, {"intermediate_dim": F, "activation": "gelu", **DENSE}, [(B, T, D)]),
    "encoder block": (kt.EncoderBlock, BLOCK, [(B, T, D)]),
    "decoder block": (kt.DecoderBlock, BLOCK, [(B, T, D), (B, S, D_ENCODER)]),
    "decoder block alone": (kt.DecoderBlock, BLOCK, [(B, T, D)]),
}
every_layer = pytest.mark.parametrize(("cls", "settings", "shapes"), LAYERS.values(), ids=LAYERS)


def weight_gradients(layer, *args, real=True, **kwargs):
    """Path of every trainable weight -> its gradient of sum(output * constants) where `real`, or None."""

    def loss(output):
        return ops.sum(ops.where(real, ops.cast(output, "float32"), 0.0) * random(*output.shape, seed=99))

    weights = [w.value for w in layer.trainable_variables]
    if keras.backend.backend() == "tensorflow":
        import tensorflow as tf

        with tf.GradientTape() as tape:
            value = loss(layer(*args, **kwargs))
        gradients = tape.gradient(value, weights)
        gradients = [g if g is None else tf.convert_to_tensor(g) for g in gradients]
    else:
        import jax

        others = [w.value for w in layer.non_trainable_variables]
        gradients = jax.grad(lambda weights: loss(layer.stateless_call(weights, others, *args, **kwargs)[0]))(weights)
    paths = [w.path for w in layer.trainable_variables]
    return {path: g if g is None else to_numpy(g) for path, g in zip(paths, gradients, strict=True)}


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
    # Of `__init__`: for a class, early versions of Python 3.11 give the signature of Keras' `__new__`.
    arguments = set(inspect.signature(cls.__init__).parameters) - {"self", "kwargs"}
    assert arguments <= set(config)
    copy = cls.from_config(json.loads(json.dumps(config)))
    assert copy.get_config() == config
    assert (copy.name, copy.dtype_policy.name, copy.trainable) == ("mine", "mixed_bfloat16", False)
    for name, value in settings.items():  # Names of functions and classes are serialized in a longer form.
        said = json.dumps(config[name]).lower().replace("_", "")
        assert config[name] == value or value.replace("_", "") in said, name


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


@pytest.mark.parametrize("dtype", ["float32", "mixed_bfloat16"])
@every_layer
def test_symbolic_shape_equals_eager_shape_with_open_dimensions(cls, settings, shapes, dtype):
    layer, inputs = cls(**{**settings, "dtype": dtype}), symbolic(shapes)
    output = layer(*inputs)
    eager = layer(*sample(shapes))
    assert tuple(eager.shape) == (B, T, output.shape[-1])
    assert output.shape == (None, None, eager.shape[-1])
    assert output.dtype == keras.backend.standardize_dtype(eager.dtype)
    if len(shapes[0]) == 3:
        for same in (layer, cls(**settings)):  # One is built, one is not.
            assert same.compute_output_shape(*shapes) == tuple(eager.shape)
            assert same.compute_output_shape(*[x.shape for x in inputs]) == output.shape


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
@pytest.mark.parametrize("policy", [*POLICIES, "bfloat16", "float16", "float64"])
def test_dtype_policy_gives_the_dtypes_of_output_and_weights(cls, settings, shapes, policy):
    if (policy, keras.backend.backend()) == ("float64", "jax"):
        pytest.skip("JAX has float64 only by a setting of the process")
    layer = cls(**settings, dtype=policy)
    output = layer(*sample(shapes))
    compute_dtype = keras.dtype_policies.get(policy).compute_dtype
    assert keras.backend.standardize_dtype(output.dtype) == compute_dtype
    assert {w.dtype for w in layer.weights} == {layer.variable_dtype}
    expected = cls(**settings)
    expected(*sample(shapes))
    expected.set_weights(layer.get_weights())
    expected = to_numpy(expected(*sample(shapes)))
    tolerance = {"float32": 1e-6, "float64": 1e-6, "bfloat16": 2**-5, "float16": 2**-8}[compute_dtype] * np.abs(
        expected
    ).max()
    np.testing.assert_allclose(to_numpy(output), expected, atol=tolerance)


@pytest.mark.skipif(keras.backend.backend() != "tensorflow", reason="JAX has float64 only by a setting of the process")
@every_layer
def test_gradients_in_float64_are_exact(cls, settings, shapes):
    """The derivative along a random direction of all weights and inputs is the difference quotient."""
    import tensorflow as tf

    layer = cls(**settings, dtype="float64")
    inputs = [
        tf.cast(x, x.dtype if x.dtype == "int32" else "float64") for x in map(ops.convert_to_tensor, sample(shapes))
    ]
    start_index = {"start_index": tf.constant(7)} if cls is kt.PositionalEmbedding else {}
    constants = random(*layer(*inputs, **start_index).shape, seed=99).astype("float64")
    randomize(layer)
    variables = [w.value for w in layer.trainable_variables] + [tf.Variable(x) for x in inputs if x.dtype == "float64"]
    inputs = variables[len(layer.trainable_variables) :] or inputs
    starts = [variable.numpy() for variable in variables]
    directions = [random(*variable.shape, seed=i).astype("float64") for i, variable in enumerate(variables)]

    def loss(distance=0.0):
        for variable, start, direction in zip(variables, starts, directions, strict=True):
            variable.assign(start + distance * direction)
        return ops.sum(layer(*inputs, **start_index) * constants)

    with tf.GradientTape() as tape:
        value = loss()
    gradients = map(tf.convert_to_tensor, tape.gradient(value, variables))
    found = sum(ops.sum(gradient * direction) for gradient, direction in zip(gradients, directions, strict=True))
    np.testing.assert_allclose(found, (loss(1e-6) - loss(-1e-6)) / 2e-6, rtol=1e-8)


@every_layer
def test_the_names_of_weights_are_unique(cls, settings, shapes):
    layer = cls(**settings)
    layer(*sample(shapes))
    paths = [w.path for w in layer.weights]
    assert len(set(paths)) == len(paths)


@every_layer
def test_a_layer_is_built_again_from_its_build_config(cls, settings, shapes):
    layer = cls(**settings)
    expected = layer(*sample(shapes))
    copy = cls.from_config(layer.get_config())
    copy.build_from_config(json.loads(json.dumps(layer.get_build_config())))
    copy.set_weights(layer.get_weights())
    np.testing.assert_array_equal(to_numpy(copy(*sample(shapes))), to_numpy(expected))


@every_layer
@pytest.mark.parametrize("policy", ["float32", "mixed_float16"])
def test_a_model_of_the_layer_is_fitted_saved_and_loaded(cls, settings, shapes, policy, tmp_path):
    inputs = symbolic(shapes)
    model = keras.Model(inputs, keras.layers.Dense(1)(cls(**settings, dtype=policy)(*inputs)))
    before = [to_numpy(w) for w in model.trainable_weights]
    on_jax = keras.backend.backend() == "jax"
    # TensorFlow makes a graph for one of the policies only, and XLA compiles none: both take longer than the step.
    eagerly = policy != "float32" and not on_jax
    model.compile(keras.optimizers.SGD(0.1), "mse", jit_compile=on_jax, run_eagerly=eagerly)
    history = model.fit(sample(shapes), random(B, T, 1), batch_size=B, epochs=1, verbose=0)
    assert np.isfinite(history.history["loss"][0])
    moved = [np.any(to_numpy(w) != old) for w, old in zip(model.trainable_weights, before, strict=True)]
    assert sum(moved) > len(moved) / 2
    assert all(np.all(np.isfinite(to_numpy(w))) for w in model.weights)
    model.save(tmp_path / "model.keras")
    loaded = keras.saving.load_model(tmp_path / "model.keras")
    expected = model.predict_on_batch(sample(shapes))
    np.testing.assert_array_equal(loaded.predict_on_batch(sample(shapes)), expected)


sequence_layers = {name: layer for name, layer in LAYERS.items() if len(layer[2][0]) == 3}
every_sequence_layer = pytest.mark.parametrize(
    ("cls", "settings", "shapes"), sequence_layers.values(), ids=sequence_layers
)
every_layer_of_one_sequence = pytest.mark.parametrize(
    ("cls", "settings", "shapes"),
    [layer for layer in sequence_layers.values() if len(layer[2]) == 1],
    ids=[name for name, layer in sequence_layers.items() if len(layer[2]) == 1],
)


@pytest.mark.parametrize("name", [name for name, (_, settings, _) in sequence_layers.items() if "dropout" in settings])
def test_a_seed_decides_what_is_dropped(name):
    cls, settings, shapes = LAYERS[name]
    outputs = []
    for seed in (7, 7, 8):
        layer = cls(**{**settings, "seed": seed})
        layer(*sample(shapes))
        outputs.append(to_numpy(randomize(layer)(*sample(shapes), training=True)))
    np.testing.assert_array_equal(outputs[0], outputs[1])
    assert np.any(outputs[0] != outputs[2])


@every_sequence_layer
@pytest.mark.parametrize("policy", POLICIES)
def test_the_values_and_the_amount_of_padding_change_nothing(cls, settings, shapes, policy):
    """Neither the values at masked positions nor the number of masked positions change the output."""
    layer = cls(**settings, dtype=policy)
    layer(*sample(shapes))
    randomize(layer)
    real = [np.arange(shape[1]) < np.array([[shape[1] - 2], [shape[1] - 3]]) for shape in shapes]

    def run(inputs, masks):
        tensors = [ops.convert_to_tensor(x) for x in inputs]
        for tensor, mask in zip(tensors, masks, strict=True):
            tensor._keras_mask = ops.convert_to_tensor(mask)
        output = layer(*tensors)
        np.testing.assert_array_equal(keras_mask(output), masks[0])
        return to_numpy(output)[:, :T][real[0]]

    inputs = sample(shapes)
    expected = run(inputs, real)
    assert expected.size and np.abs(expected).max() > 0.01
    others = [np.where(mask[..., None], x, 100 * x + 7) for x, mask in zip(inputs, real, strict=True)]
    np.testing.assert_array_equal(run(others, real), expected)
    longer = [np.pad(x, ((0, 0), (0, 4), (0, 0)), constant_values=9) for x in inputs]
    tolerance = {"float32": 1e-5, "mixed_bfloat16": 0.1, "mixed_float16": 0.02}[policy]
    np.testing.assert_allclose(
        run(longer, [np.pad(mask, ((0, 0), (0, 4))) for mask in real]), expected, atol=tolerance, rtol=tolerance
    )


@every_sequence_layer
@pytest.mark.parametrize("held", [np.nan, np.inf, 1e38])
def test_padding_may_hold_anything_forward_and_backward(cls, settings, shapes, held):
    """A score of zero does not hide what padding holds: 0 * NaN and 0 * inf are NaN."""
    layer = cls(**settings)
    inputs = sample(shapes)
    layer(*inputs)
    randomize(layer)
    real = [np.arange(shape[1]) < np.array([[shape[1] - 2], [shape[1] - 3]]) for shape in shapes]
    names = [f"{name}_mask" for name in inspect.signature(layer.call).parameters]
    masks = {"mask": real[0]} if len(shapes) == 1 else dict(zip(names, real, strict=False))

    def run(inputs):
        output = to_numpy(layer(*inputs, **masks))[real[0]]
        return [output, *weight_gradients(layer, *inputs, real=real[0][..., None], **masks).values()]

    expected = run(inputs)
    assert all(np.isfinite(array).all() for array in expected)
    inputs = [np.where(mask[..., None], x, np.float32(held)) for x, mask in zip(inputs, real, strict=True)]
    for array, expected_array in zip(run(inputs), expected, strict=True):
        np.testing.assert_array_equal(array, expected_array)


@every_layer_of_one_sequence
def test_the_layer_works_in_time_distributed(cls, settings, shapes):
    layer = cls(**settings)
    distributed = keras.layers.TimeDistributed(layer)
    x = random(B, 4, *shapes[0][1:])
    symbolic_output, output = distributed(keras.Input(x.shape[1:])), to_numpy(distributed(x))
    assert symbolic_output.shape[1:] == output.shape[1:]
    for i in range(4):
        np.testing.assert_allclose(output[:, i], to_numpy(layer(x[:, i])), atol=1e-5)


@pytest.mark.parametrize("symbolic_call", [False, True], ids=["eager", "symbolic"])
@pytest.mark.parametrize("name", [name for name in sequence_layers if name != "feed-forward"])
def test_shapes_of_attention_scores(name, symbolic_call):
    cls, settings, shapes = LAYERS[name]
    layer = cls(**settings)
    inputs = [keras.Input(batch_shape=shape) for shape in shapes] if symbolic_call else sample(shapes)
    output, *scores = layer(*inputs, return_attention_scores=True)
    other = shapes[-1][1]
    expected = [(B, N, T, T), (B, N, T, S)] if name == "decoder block" else [(B, N, T, other)]
    assert tuple(output.shape) == layer.compute_output_shape(*shapes)
    assert [tuple(x.shape) for x in scores] == expected


@keras.saving.register_keras_serializable(package="tests")
def doubled(x):
    return 2 * x


@keras.saving.register_keras_serializable(package="tests")
def all_halves(shape, dtype=None):
    return ops.full(shape, 0.5, dtype=dtype)


@keras.saving.register_keras_serializable(package="tests")
def nothing(x):
    return 0.0 * ops.sum(x)


@every_sequence_layer
def test_registered_functions_survive_json(cls, settings, shapes):
    functions = {"kernel_initializer": all_halves, "kernel_regularizer": nothing, "bias_regularizer": nothing}
    if "activation" in settings:
        functions["activation"] = doubled
    layer = cls(**{**settings, **functions})
    serialized = json.loads(json.dumps(keras.saving.serialize_keras_object(layer)))
    copy = keras.saving.deserialize_keras_object(serialized)
    for name, function in functions.items():
        assert getattr(copy, name) is function
    copy(*sample(shapes))
    kernels = [w for w in copy.weights if w.path.endswith("kernel")]
    assert kernels and all(np.all(to_numpy(w) == 0.5) for w in kernels)


def unregistered(x):
    return x


@pytest.mark.parametrize("name", ["feed-forward", "encoder block", "decoder block"])
def test_loading_a_layer_with_an_unregistered_function_names_the_function(name):
    cls, settings, _ = LAYERS[name]
    layer = cls(**{**settings, "activation": unregistered})
    serialized = json.loads(json.dumps(keras.saving.serialize_keras_object(layer)))
    with pytest.raises(TypeError, match="Could not locate function 'unregistered'"):
        keras.saving.deserialize_keras_object(serialized)
    found = keras.saving.deserialize_keras_object(serialized, custom_objects={"unregistered": unregistered})
    assert found.activation is unregistered


@every_sequence_layer
def test_an_activity_regularizer_sees_the_output_and_is_in_the_config(cls, settings, shapes):
    settings = {name: value for name, value in settings.items() if name not in DENSE}
    layer = cls(**settings, activity_regularizer=keras.regularizers.L2(0.5))
    layer = cls.from_config(json.loads(json.dumps(layer.get_config())))
    output = to_numpy(layer(*sample(shapes)))
    assert [float(loss) for loss in layer.losses] == [pytest.approx(0.5 * np.sum(output**2) / B, rel=1e-4)]
