"""Positional encodings and the embedding layer that adds them."""

import json
from concurrent.futures import ThreadPoolExecutor

import keras
import numpy as np
import pytest
from arrays import keras_mask, to_numpy
from keras import ops

from keras_transformer.layers.embeddings import (
    NUM_POSITIONS,
    POSITIONS,
    PositionalEmbedding,
    positional_encoding,
    positional_rotation,
)

B, L, D, V = 3, 5, 14, 23
POLICIES = ("float32", "mixed_bfloat16", "mixed_float16")


def make_layer(**kwargs):
    return PositionalEmbedding(**{"vocabulary_size": V, "hidden_dim": D, **kwargs})


def random_ids(batch=B, length=L, seed=0):
    return np.random.default_rng(seed).integers(1, V, (batch, length)).astype("int32")


def silence_tokens(layer):
    """Sets every token's vector to zero, so that the layer's output is the position alone."""
    layer.token_embedding.embeddings.assign(np.zeros((V, layer.hidden_dim), "float32"))


def float64_table(positions, hidden_dim, max_wavelength, layout):
    """The formula of section 3.5, computed entry by entry in float64."""
    table = np.zeros((len(positions), hidden_dim))
    for i in range(hidden_dim // 2):
        angle = positions / float(max_wavelength) ** (2 * i / hidden_dim)
        sine, cosine = (2 * i, 2 * i + 1) if layout == "interleaved" else (i, hidden_dim // 2 + i)
        table[:, sine], table[:, cosine] = np.sin(angle), np.cos(angle)
    return table


# The table


def test_table_equals_the_worked_example():
    expected = [
        [0, 1, 0, 1],
        [0.84147098, 0.54030231, 0.09983342, 0.99500417],
        [0.90929743, -0.41614684, 0.19866933, 0.98006658],
        [0.14112001, -0.9899925, 0.29552021, 0.95533649],
    ]
    table = positional_encoding(4, 4, max_wavelength=100)
    assert table.dtype == "float32"
    np.testing.assert_allclose(table, expected, atol=1e-7)


@pytest.mark.parametrize("layout", ["interleaved", "concatenated"])
@pytest.mark.parametrize("offset", [1, 7, -3])
def test_an_offset_is_a_rotation_of_every_position(layout, offset):
    table = positional_encoding(20, D, layout=layout)
    matrix = positional_rotation(offset, D, layout=layout)
    for position in (3, 12):
        np.testing.assert_allclose(matrix @ table[position], table[position + offset], atol=1e-6)
    np.testing.assert_allclose(matrix @ matrix.T, np.eye(D), atol=1e-6)
    np.testing.assert_allclose(positional_rotation(-offset, D, layout=layout), matrix.T, atol=1e-7)


@pytest.mark.parametrize("layout", ["interleaved", "concatenated"])
@pytest.mark.parametrize("max_wavelength", [10000, 37.5])
def test_table_equals_the_formula_written_out(layout, max_wavelength):
    table = positional_encoding(101, D, max_wavelength, layout)
    np.testing.assert_allclose(table, float64_table(np.arange(101), D, max_wavelength, layout), atol=1e-7)


def test_layouts_are_permutations_of_each_other():
    interleaved, concatenated = positional_encoding(11, D), positional_encoding(11, D, layout="concatenated")
    np.testing.assert_array_equal(concatenated, np.concatenate([interleaved[:, 0::2], interleaved[:, 1::2]], axis=-1))


@pytest.mark.parametrize("offset", [0, 1, 7, 50])
def test_one_rotation_per_offset_takes_every_position_to_the_shifted_one(offset):
    """Section 3.5: PE(pos + k) is a linear function of PE(pos)."""
    length, table = 53, positional_encoding(53 + 50, D)
    rotation = np.zeros((D, D))
    for i in range(D // 2):
        angle = offset * 10000 ** (-2 * i / D)
        block = [[np.cos(angle), np.sin(angle)], [-np.sin(angle), np.cos(angle)]]
        rotation[2 * i : 2 * i + 2, 2 * i : 2 * i + 2] = block
    np.testing.assert_allclose(table[:length] @ rotation.T, table[offset : offset + length], atol=1e-6)


def test_table_of_no_positions_is_empty():
    assert positional_encoding(0, D).shape == (0, D)


@pytest.mark.parametrize("hidden_dim", [1, 7])
def test_hidden_dim_must_be_even_for_sinusoids(hidden_dim):
    match = rf"`hidden_dim` must be an even number.*Received: hidden_dim={hidden_dim}\. Try hidden_dim=\d*[02468]\."
    with pytest.raises(ValueError, match=match):
        positional_encoding(L, hidden_dim)
    with pytest.raises(ValueError, match=match):
        PositionalEmbedding(V, hidden_dim)


@pytest.mark.parametrize("max_wavelength", [0, -1.5])
def test_max_wavelength_must_be_positive(max_wavelength):
    match = f"`max_wavelength` must be positive. Received: max_wavelength={max_wavelength}"
    with pytest.raises(ValueError, match=match):
        positional_encoding(L, D, max_wavelength)
    with pytest.raises(ValueError, match=match):
        make_layer(max_wavelength=max_wavelength)


def test_layout_must_be_known():
    with pytest.raises(ValueError, match=r"`layout` must be one of .*Received: 'sines'"):
        positional_encoding(L, D, layout="sines")
    with pytest.raises(ValueError, match=r"`layout` must be one of .*Received: 'sines'"):
        make_layer(layout="sines")


# Positions known only at run time


@pytest.mark.parametrize("layout", ["interleaved", "concatenated"])
@pytest.mark.parametrize("max_wavelength", [10000, 37.5])
def test_run_time_sinusoids_equal_the_float64_table_up_to_position_65000(layout, max_wavelength):
    layer = make_layer(vocabulary_size=None, layout=layout, max_wavelength=max_wavelength)
    rows = to_numpy(layer(np.zeros((1, 65001, D), "float32"), start_index=ops.convert_to_tensor(0)))[0]
    expected = float64_table(np.arange(65001), D, max_wavelength, layout)
    np.testing.assert_allclose(rows, expected, atol=1e-6, rtol=0)


@pytest.mark.skipif(keras.backend.backend() != "tensorflow", reason="JAX has float64 only by a setting of the process")
@pytest.mark.parametrize("as_tensor", [False, True], ids=["int", "tensor"])
def test_positions_in_float64_are_exact(as_tensor):
    start = ops.convert_to_tensor(20000, dtype="int32") if as_tensor else 20000
    rows = make_layer(vocabulary_size=None, dtype="float64")(np.zeros((1, L, D)), start_index=start)[0]
    expected = float64_table(np.arange(20000, 20000 + L), D, 10000, "interleaved")
    np.testing.assert_allclose(ops.convert_to_numpy(rows), expected, atol=1e-10)


@pytest.mark.parametrize("position_type", ["sinusoidal", "learned"])
@pytest.mark.parametrize("layout", ["interleaved", "concatenated"])
@pytest.mark.parametrize("as_tensor", [False, True], ids=["int", "tensor"])
def test_start_index_gives_the_rows_of_the_full_sequence(position_type, layout, as_tensor):
    layer = make_layer(position_type=position_type, max_length=31, layout=layout)
    ids = random_ids(length=31)
    full = to_numpy(layer(ids))
    for start in (0, 1, 13, 31 - L):
        start_index = ops.convert_to_tensor(start, dtype="int32") if as_tensor else start
        part = to_numpy(layer(ids[:, start : start + L], start_index=start_index))
        np.testing.assert_allclose(part, full[:, start : start + L], atol=1e-6)


@pytest.mark.parametrize("as_tensor", [False, True], ids=["int", "tensor"])
def test_the_first_position_shifts_all_positions(as_tensor):
    layer = make_layer(first_position=3)
    layer(random_ids())
    silence_tokens(layer)
    start_index = ops.convert_to_tensor(5, dtype="int32") if as_tensor else 5
    expected = float64_table(np.arange(8, 8 + L), D, 10000, "interleaved")
    added = [layer(random_ids(), start_index=start_index), layer(random_ids(), positions=np.arange(5, 5 + L))]
    for rows in added:
        np.testing.assert_allclose(to_numpy(rows)[0], expected, atol=1e-6)
    with pytest.raises(ValueError, match=r"is for sinusoidal positions.*first_position=3, position_type='learned'"):
        make_layer(first_position=3, position_type="learned", max_length=31)


@pytest.mark.parametrize("start", [0, 2])
@pytest.mark.parametrize(
    "settings", [{}, {"first_position": 3}, {"layout": "concatenated"}, {"position_type": "learned", "max_length": 31}]
)
def test_positions_of_exports_are_rows_of_the_same_table(settings, start):
    layer, ids = make_layer(**settings), random_ids()
    expected = to_numpy(layer(ids, start_index=start))
    token = NUM_POSITIONS.set(L + start)
    try:
        np.testing.assert_allclose(to_numpy(layer(ids, start_index=start)), expected, atol=1e-6)
    finally:
        NUM_POSITIONS.reset(token)


@pytest.mark.parametrize("settings", [{"first_position": 3}, {"position_type": "learned", "max_length": 31}])
def test_positions_of_an_export_can_be_given(settings):
    layer, ids = make_layer(**settings), random_ids()
    positions = np.arange(ids.size, dtype="int32").reshape(ids.shape)[:, ::-1]
    expected = to_numpy(layer(ids, positions=positions))
    tokens = NUM_POSITIONS.set(ids.size), POSITIONS.set(positions)
    try:
        np.testing.assert_allclose(to_numpy(layer(ids)), expected, atol=1e-6)
    finally:
        NUM_POSITIONS.reset(tokens[0])
        POSITIONS.reset(tokens[1])


def test_an_export_does_not_change_what_other_threads_compute():
    layer, ids = make_layer(), random_ids()
    expected = to_numpy(layer(ids))
    token = NUM_POSITIONS.set(1)  # Too few for these ids.
    try:
        with ThreadPoolExecutor() as pool:
            np.testing.assert_array_equal(pool.submit(lambda: to_numpy(layer(ids))).result(), expected)
    finally:
        NUM_POSITIONS.reset(token)


def test_sinusoidal_positions_have_no_maximum_length():
    layer = make_layer(max_length=L)
    assert layer(random_ids(1, 4001)).shape == (1, 4001, D)
    silence_tokens(layer)
    added = to_numpy(layer(random_ids(1, 1), start_index=50_000))[0]
    np.testing.assert_allclose(added, float64_table(np.array([50_000]), D, 10000, "interleaved"), atol=1e-6)


# Explicit positions

ROWS = np.array([[0, 0, 1, 2, 3], [4, 5, 6, 0, 1], [0, 1, 0, 1, 2]], "int32")  # Left-padded and packed.


def position_rows(layer):
    """The rows that the layer adds at positions 0, 1, ..., 30."""
    if layer.position_type == "learned":
        return to_numpy(layer.position_table)
    return float64_table(np.arange(31), D, layer.max_wavelength, layer.layout)


@pytest.mark.parametrize("position_type", ["sinusoidal", "learned"])
@pytest.mark.parametrize("layout", ["interleaved", "concatenated"])
@pytest.mark.parametrize("rows", [ROWS, ROWS[1]], ids=["(B, L)", "(L,)"])
@pytest.mark.parametrize("as_tensor", [False, True], ids=["array", "tensor"])
def test_explicit_positions_are_the_rows_that_are_added(position_type, layout, rows, as_tensor):
    layer = make_layer(position_type=position_type, max_length=31, layout=layout)
    ids = random_ids()
    layer.build((None, None))
    silence_tokens(layer)
    added = layer(ids, positions=ops.convert_to_tensor(rows) if as_tensor else rows)
    expected = np.broadcast_to(position_rows(layer)[rows], (B, L, D))
    np.testing.assert_allclose(to_numpy(added), expected, atol=1e-6)


def test_left_padding_with_explicit_positions_equals_right_padding():
    layer = make_layer()
    left, right = np.array([[0, 0, 7, 4, 9]]), np.array([[7, 4, 9, 0, 0]])
    found = layer(left, positions=[[0, 0, 0, 1, 2]])
    np.testing.assert_allclose(to_numpy(found)[:, 2:], to_numpy(layer(right))[:, :3], atol=1e-6)
    np.testing.assert_array_equal(keras_mask(found), left != 0)


def test_positions_can_be_an_input_of_a_functional_model(tmp_path):
    ids, positions = keras.Input((None,), dtype="int32"), keras.Input((None,), dtype="int32")
    layer = make_layer()
    model = keras.Model([ids, positions], layer(ids, positions=positions))
    model.save(tmp_path / "model.keras")
    batch = [random_ids(), ROWS]
    expected = to_numpy(layer(batch[0], positions=ROWS))
    np.testing.assert_allclose(to_numpy(model(batch)), expected, atol=1e-6)
    np.testing.assert_allclose(to_numpy(keras.saving.load_model(tmp_path / "model.keras")(batch)), expected, atol=1e-6)


@pytest.mark.parametrize(
    ("positions", "match"),
    [
        (ROWS.astype("float32"), r"must be integers of shape \(B, L\) or \(L,\).*shape=\(3, 5\), dtype=float32"),
        (ROWS[None], r"must be integers of shape \(B, L\) or \(L,\).*shape=\(1, 3, 5\)"),
        (ROWS[:, :3], "must have one position per token. Received: 3 positions for 5 tokens"),
        (ROWS + 1, r"must be in \[0, max_length\).*Received: positions from 1 to 7, max_length=7"),
        (ROWS + 3, r"must be in \[0, max_length\).*Received: positions from 3 to 9, max_length=7"),
        (ROWS - 1, r"must be in \[0, max_length\).*Received: positions from -1 to 5, max_length=7"),
    ],
)
def test_invalid_positions_are_an_error(positions, match):
    layer = make_layer(position_type="learned", max_length=7)
    with pytest.raises(ValueError, match=match):
        layer(random_ids(), positions=positions)


def test_positions_and_start_index_exclude_each_other():
    with pytest.raises(ValueError, match=r"`positions` and `start_index` exclude each other.*start_index=2"):
        make_layer()(random_ids(), positions=ROWS, start_index=2)


# Positions alone


@pytest.mark.parametrize("position_type", ["sinusoidal", "learned"])
@pytest.mark.parametrize("policy", POLICIES)
def test_without_a_vocabulary_positions_are_added_to_features(position_type, policy):
    layer = make_layer(vocabulary_size=None, position_type=position_type, max_length=31, dtype=policy)
    features = np.random.default_rng(0).normal(size=(B, L, D)).astype("float32")
    found = layer(features, start_index=3)
    assert keras.backend.standardize_dtype(found.dtype) == layer.compute_dtype
    assert len(layer.weights) == (position_type == "learned")
    tolerance = {"float32": 1e-6, "mixed_bfloat16": 2**-6, "mixed_float16": 2**-9}[policy]
    np.testing.assert_allclose(to_numpy(found), features + position_rows(layer)[3 : 3 + L], atol=tolerance)


def test_features_keep_their_mask():
    layer = make_layer(vocabulary_size=None)
    masked = keras.layers.Masking()(np.pad(np.ones((B, L - 2, D), "float32"), [(0, 0), (0, 2), (0, 0)]))
    np.testing.assert_array_equal(keras_mask(layer(masked))[0], [1, 1, 1, 0, 0])
    assert keras_mask(layer(np.ones((B, L, D), "float32"))) is None


@pytest.mark.parametrize(
    "features", [np.ones((B, L, D + 1), "float32"), np.ones((B, D), "float32"), np.ones((B, L, D), "int32")]
)
def test_features_have_three_axes_and_are_floats(features):
    match = r"positions are added to floats of shape \(B, L, 14\). Received: shape=\(3, .*`vocabulary_size`"
    with pytest.raises(ValueError, match=match):
        make_layer(vocabulary_size=None)(features)


def test_projection_without_a_vocabulary_is_an_error():
    with pytest.raises(ValueError, match=r"has no vocabulary to project to. Received: vocabulary_size=None"):
        make_layer(vocabulary_size=None).project(np.ones((B, L, D), "float32"))


# Token ids


def test_sequential_without_an_input_accepts_ids_as_float32():
    """Keras then turns ids into float32; the mask must still be that of the ids."""
    ids = np.array([[300, 301, 0], [7, 0, 0]])
    layer = make_layer(vocabulary_size=302)
    seen = {}

    class Head(keras.layers.Layer):
        supports_masking = True

        def call(self, x, mask=None):
            seen["mask"] = mask
            return x

    model = keras.Sequential([layer, Head()])
    np.testing.assert_array_equal(to_numpy(model(ids)), to_numpy(layer(ids.astype("int32"))))
    np.testing.assert_array_equal(ops.convert_to_numpy(seen["mask"]), ids != 0)
    assert keras_mask(layer(ids.astype("float32"))).shape == ids.shape


def test_sequential_without_an_input_in_half_precision_is_an_error():
    model = keras.Sequential([make_layer(dtype="mixed_bfloat16")])
    with pytest.raises(ValueError, match=r"dtype=bfloat16. Declare the input with keras.Input\(..., dtype='int32'\)"):
        model(random_ids())
    model = keras.Sequential([keras.Input((None,), dtype="int32"), make_layer(dtype="mixed_bfloat16")])
    assert model(random_ids()).shape == (B, L, D)


def test_negative_ids_are_looked_up_as_in_keras():
    layer = make_layer(scale_embeddings=False)
    embedding = keras.layers.Embedding(V, D)
    ids = np.array([[3, -1, -V]])
    layer(ids), embedding(ids)
    embedding.set_weights([to_numpy(layer.token_embedding.embeddings)])
    rows = to_numpy(layer(ids)) - positional_encoding(3, D)
    np.testing.assert_allclose(rows, to_numpy(embedding(ids)), atol=1e-6)


@pytest.mark.skipif(keras.backend.backend() != "tensorflow", reason="JAX has no ragged tensors")
@pytest.mark.parametrize("settings", [{}, {"vocabulary_size": None}], ids=["ids", "features"])
def test_ragged_inputs_are_refused(settings):
    import tensorflow as tf

    ragged = tf.RaggedTensor.from_row_lengths([4, 9, 2] if not settings else tf.zeros((3, D)), [2, 1])
    with pytest.raises(ValueError, match=r"All rows must have the same length.*Received: a ragged .*\.to_tensor\(\)"):
        make_layer(**settings)(ragged)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_ids_of_half_precision_are_refused(dtype):
    with pytest.raises(ValueError, match=f"cannot represent all large ids. Received: dtype={dtype}. Declare the input"):
        make_layer()(ops.cast(random_ids(), dtype))


@pytest.mark.parametrize("shape", [(L,), (B, L, 1), (B, L, 2, 2)])
@pytest.mark.parametrize("symbolic", [False, True])
def test_ids_have_two_axes(shape, symbolic):
    ids = keras.KerasTensor(shape, "int32") if symbolic else np.ones(shape, "int32")
    with pytest.raises(ValueError, match=r"Token ids must have shape \(B, L\).*Received: shape=\("):
        make_layer()(ids)


# The layer


@pytest.mark.parametrize("layout", ["interleaved", "concatenated"])
def test_output_is_the_scaled_embedding_plus_the_position(layout):
    layer = make_layer(layout=layout)
    ids = random_ids()
    output = to_numpy(layer(ids))
    matrix = to_numpy(layer.token_embedding.embeddings)
    np.testing.assert_allclose(output, matrix[ids] * D**0.5 + positional_encoding(L, D, layout=layout), atol=1e-6)


def test_learned_output_is_the_scaled_embedding_plus_a_trained_row():
    layer = make_layer(position_type="learned", max_length=7)
    ids = random_ids()
    output = to_numpy(layer(ids))
    matrix, table = to_numpy(layer.token_embedding.embeddings), to_numpy(layer.position_table)
    assert table.shape == (7, D)
    assert any(weight is layer.position_table for weight in layer.trainable_weights)
    np.testing.assert_allclose(output, matrix[ids] * D**0.5 + table[:L], atol=1e-6)


def test_new_embeddings_have_unit_variance_after_the_scaling():
    layer = PositionalEmbedding(997, 64)
    layer.build((None, None))
    assert np.std(to_numpy(layer.token_embedding.embeddings) * 64**0.5) == pytest.approx(1, abs=0.02)


def test_a_functional_model_with_open_length_gives_the_same_as_the_layer():
    layer = make_layer()
    inputs = keras.Input((None,), dtype="int32")
    model = keras.Model(inputs, layer(inputs))
    for length in (L, 11):
        ids = random_ids(length=length)
        np.testing.assert_allclose(model.predict(ids, verbose=0), to_numpy(layer(ids)), atol=1e-6)


@pytest.mark.parametrize("position_type", ["sinusoidal", "learned"])
@pytest.mark.parametrize("start_index", [None, 2], ids=["static", "tensor"])
@pytest.mark.parametrize("pad_token_id", [0, 4])
def test_output_carries_the_mask_of_pad_token_id(pad_token_id, start_index, position_type):
    layer = make_layer(pad_token_id=pad_token_id, position_type=position_type, max_length=11)
    ids = np.array([[7, 4, 0], [4, 0, 9]], "int32")
    kwargs = {} if start_index is None else {"start_index": ops.convert_to_tensor(start_index)}
    mask = keras_mask(layer(ids, **kwargs))
    np.testing.assert_array_equal(mask, ids != pad_token_id)


@pytest.mark.parametrize("as_tensor", [False, True], ids=["int", "tensor"])
def test_neighbouring_positions_stay_different_in_bfloat16(as_tensor):
    """bfloat16 has 8 significant bits and rounds 301 to 300. So the float32 row is added, and the sum is cast once."""
    layer = make_layer(dtype="mixed_bfloat16")
    start = ops.convert_to_tensor(300, dtype="int32") if as_tensor else 300
    layer(random_ids(1, 2), start_index=start)
    silence_tokens(layer)
    output = layer(random_ids(1, 2), start_index=start)
    assert keras.backend.standardize_dtype(output.dtype) == "bfloat16"
    rows = to_numpy(output)[0]
    table = float64_table(np.array([300, 301]), D, 10000, "interleaved")
    assert np.abs(table[1] - table[0]).max() > 0.5
    assert np.abs(rows[1] - rows[0]).max() > 0.5
    np.testing.assert_allclose(rows, table, atol=2**-8)


@pytest.mark.parametrize("policy", POLICIES)
def test_learned_positions_are_kept_in_float32_and_the_sum_is_cast_once(policy):
    layer = make_layer(position_type="learned", max_length=L, dtype=policy)
    ids = random_ids()
    output = layer(ids)
    assert keras.backend.standardize_dtype(layer.position_table.dtype) == "float32"
    tokens = to_numpy(ops.cast(layer.token_embedding.embeddings, layer.compute_dtype))[ids]
    expected = ops.cast(tokens * np.float32(D**0.5) + to_numpy(layer.position_table), layer.compute_dtype)
    np.testing.assert_array_equal(to_numpy(output), to_numpy(expected))


def test_learned_positions_need_a_max_length():
    with pytest.raises(
        ValueError, match=r"`max_length` must be given for learned positions.*Received: max_length=None"
    ):
        make_layer(position_type="learned")


def test_learned_positions_begin_small():
    layer = make_layer(position_type="learned", max_length=997)
    layer.build((None, None))
    assert 0.01 < to_numpy(layer.position_table).std() < 0.03


@pytest.mark.parametrize(("length", "start_index"), [(8, 0), (8, np.int32(0)), (1, 7), (L, 3)])
def test_a_learned_position_beyond_max_length_is_an_error(length, start_index):
    layer = make_layer(position_type="learned", max_length=7)
    assert layer(random_ids(length=length - 1), start_index=start_index).shape == (B, length - 1, D)
    with pytest.raises(ValueError, match=r"may not be longer than `max_length`.*Received: 8 positions, max_length=7"):
        layer(random_ids(length=length), start_index=start_index)


def test_position_type_must_be_known():
    with pytest.raises(ValueError, match=r"`position_type` must be one of .*Received: 'rotary'"):
        make_layer(position_type="rotary")


def test_dropout_is_active_in_training_only():
    layer = make_layer(dropout=0.5)
    ids = random_ids(7, 11)
    plain = to_numpy(layer(ids))
    np.testing.assert_array_equal(to_numpy(layer(ids, training=False)), plain)
    dropped = to_numpy(layer(ids, training=True))
    zeros = dropped == 0
    assert 0.4 < zeros.mean() < 0.6
    np.testing.assert_allclose(dropped[~zeros], 2 * plain[~zeros], rtol=1e-5)


@pytest.mark.parametrize("name", ["vocabulary_size", "hidden_dim", "max_length"])
@pytest.mark.parametrize("value", [0, -3, 4.0, True, "6"])
def test_sizes_are_positive_integers(name, value):
    with pytest.raises(ValueError, match=f"`{name}` must be (a positive integer|an even number)"):
        make_layer(**{name: value})
    with pytest.raises(ValueError, match=f"`{name}` must be a positive integer"):
        make_layer(**{"position_type": "learned", "max_length": 7, name: value})


@pytest.mark.parametrize("rate", [1.0, -0.1, True, "0.1", float("nan")])
def test_dropout_is_a_rate(rate):
    with pytest.raises(ValueError, match=r"`dropout` must be a number in \[0, 1\)"):
        make_layer(dropout=rate)


def test_sizes_of_numpy_become_plain_integers():
    config = make_layer(vocabulary_size=np.int64(V), hidden_dim=np.int32(D)).get_config()
    assert type(config["vocabulary_size"]) is type(config["hidden_dim"]) is int


def test_initializer_and_regularizer_apply_to_the_token_embeddings():
    layer = make_layer(embeddings_initializer="ones", embeddings_regularizer=keras.regularizers.L2(0.5))
    layer(random_ids())
    np.testing.assert_array_equal(to_numpy(layer.token_embedding.embeddings), np.ones((V, D)))
    np.testing.assert_allclose(float(layer.losses[0]), 0.5 * V * D, rtol=1e-6)


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize(
    ("settings", "inputs"),
    [
        ({}, random_ids()),
        ({"position_type": "learned", "max_length": 7}, random_ids()),
        ({"vocabulary_size": None}, np.ones((B, L, D), "float32")),
        ({"vocabulary_size": None, "position_type": "learned", "max_length": 7}, np.ones((B, L, D), "float32")),
    ],
    ids=["ids", "ids, learned", "features", "features, learned"],
)
def test_the_layer_meets_the_contract_of_keras_layers(settings, inputs, policy):
    """Config round trip, symbolic == eager, the output's shape, a training step, under three dtype policies."""
    layer = make_layer(dropout=0.1, dtype=policy, **settings)
    copy = PositionalEmbedding.from_config(json.loads(json.dumps(layer.get_config())))
    assert copy.get_config() == layer.get_config()
    symbolic = keras.Input(inputs.shape[1:], dtype=str(inputs.dtype))
    output = layer(symbolic)
    eager = layer(inputs)
    assert output.shape == (None, L, D) and eager.shape == layer.compute_output_shape(inputs.shape) == (B, L, D)
    assert output.dtype == keras.backend.standardize_dtype(eager.dtype) == layer.compute_dtype
    model = keras.Model(symbolic, keras.layers.Dense(1, dtype=policy)(output))
    np.testing.assert_array_equal(to_numpy(keras.Model(symbolic, output)(inputs)), to_numpy(eager))
    on_jax = keras.backend.backend() == "jax"  # A graph on TensorFlow takes longer than the step.
    model.compile("adam", "mse", jit_compile=on_jax, run_eagerly=not on_jax)
    before = [to_numpy(w) for w in layer.trainable_weights]
    model.fit(inputs, np.ones((B, L, 1)), verbose=0)
    for weight, old in zip(layer.trainable_weights, before, strict=True):
        assert np.any(to_numpy(weight) != old), weight.path


# The projection to logits


def test_tied_projection_uses_the_embedding_matrix():
    layer = make_layer()
    layer.build((None, None))
    assert [tuple(weight.shape) for weight in layer.weights] == [(V, D)]
    hidden = np.random.default_rng(1).normal(size=(B, L, D)).astype("float32")
    expected = hidden @ to_numpy(layer.token_embedding.embeddings).T
    np.testing.assert_allclose(to_numpy(layer.project(hidden)), expected, atol=1e-5)


def test_untied_projection_uses_its_own_matrix():
    layer = make_layer(tie_weights=False)
    layer.build((None, None))
    assert sorted(tuple(weight.shape) for weight in layer.weights) == [(D, V), (V, D)]
    hidden = np.random.default_rng(1).normal(size=(B, L, D)).astype("float32")
    expected = hidden @ to_numpy(layer.token_embedding.reverse_embeddings)
    silence_tokens(layer)
    np.testing.assert_allclose(to_numpy(layer.project(hidden)), expected, atol=1e-5)
    assert np.abs(expected).max() > 0.1


def test_projection_of_one_position_without_a_time_axis():
    layer = make_layer()
    layer.build((None, None))
    hidden = np.random.default_rng(1).normal(size=(B, L, D)).astype("float32")
    np.testing.assert_allclose(to_numpy(layer.project(hidden[:, 2])), to_numpy(layer.project(hidden))[:, 2], atol=1e-5)


# Saving


CONFIG = {
    "vocabulary_size": V,
    "hidden_dim": D,
    "position_type": "learned",
    "max_length": 7,
    "max_wavelength": 37.5,
    "layout": "concatenated",
    "dropout": 0.25,
    "pad_token_id": 4,
    "scale_embeddings": False,
    "tie_weights": False,
    "output_bias": True,
    "embeddings_initializer": None,
    "embeddings_regularizer": None,
}


def test_config_holds_every_argument():
    config = PositionalEmbedding(**CONFIG, name="positions", dtype="mixed_bfloat16").get_config()
    assert {key: config[key] for key in CONFIG} == CONFIG
    copy = PositionalEmbedding.from_config(config)
    assert copy.get_config() == config
    assert copy.name == "positions" and copy.dtype_policy.name == "mixed_bfloat16"


@pytest.mark.parametrize("position_type", ["learned", "sinusoidal"])
def test_saved_and_loaded_layer_gives_the_same_output(position_type, tmp_path):
    inputs = keras.Input((None,), dtype="int32")
    model = keras.Model(inputs, PositionalEmbedding(**{**CONFIG, "position_type": position_type})(inputs))
    model.save(tmp_path / "model.keras")
    loaded = keras.saving.load_model(tmp_path / "model.keras")
    ids = random_ids()
    np.testing.assert_array_equal(to_numpy(loaded(ids)), to_numpy(model(ids)))


@pytest.mark.parametrize("tie_weights", [True, False], ids=["tied", "untied"])
def test_a_functional_model_with_a_projection_can_be_saved_and_loaded(tie_weights, tmp_path):
    inputs, layer = keras.Input((None,), dtype="int32"), make_layer(tie_weights=tie_weights)
    model = keras.Model(inputs, layer.project(layer(inputs)))
    model.save(tmp_path / "model.keras")
    loaded = keras.saving.load_model(tmp_path / "model.keras")
    ids = random_ids()
    assert loaded.count_params() == model.count_params()
    np.testing.assert_array_equal(to_numpy(loaded(ids)), to_numpy(model(ids)))
