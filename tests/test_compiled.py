"""Compiled functions: few shapes with XLA, one graph without it."""

import keras
import numpy as np
import pytest
from keras import ops

from keras_transformer.compiled import BATCH_SIZES, SOURCE_LENGTHS, batches, compile_function, filled_shape


@pytest.mark.parametrize(
    ("count", "jit_compile", "expected"),
    [
        (0, True, []),
        (3, True, [3]),
        (16, True, [8, 8]),
        (17, True, [17]),
        (41, True, [32, 8, 1]),
        (41, False, [32, 9]),
        (16, False, [16]),
    ],
)
def test_batches_are_cut_so_that_they_need_little_padding(count, jit_compile, expected):
    cut = list(batches(list(range(count)), jit_compile))
    assert [len(batch) for batch in cut] == expected
    assert [i for batch in cut for i in batch] == list(range(count))


@pytest.mark.parametrize(
    ("shape", "max_length", "expected"),
    [
        ((1, 1), None, (1, 8)),
        ((2, 8), None, (8, 8)),
        ((9, 9), None, (32, 16)),
        ((32, 128), None, (32, 128)),
        ((8, 129), None, (8, 192)),
        ((8, 17), 20, (8, 20)),  # At most the number of learned positions ...
        ((8, 23), 20, (8, 23)),  # ... but a longer source is not cut here.
    ],
)
def test_a_batch_is_padded_to_one_of_few_shapes(shape, max_length, expected):
    assert filled_shape(*shape, max_length) == expected


def test_there_are_24_shapes():
    shapes = {filled_shape(rows, length) for rows in range(1, 33) for length in range(1, 129)}
    assert shapes == {(rows, length) for rows in BATCH_SIZES for length in SOURCE_LENGTHS}
    assert len(shapes) == 24


@pytest.mark.parametrize("jit_compile", [False, True])
def test_a_function_is_traced_once_for_each_shape_and_number_or_once_for_all(jit_compile):
    model = keras.Sequential([keras.Input((3,)), keras.layers.Dense(2, use_bias=False)])
    traced = []

    def function(inputs, factor):
        traced.append((inputs["x"].shape[0], factor if jit_compile else None))
        return model(inputs["x"]) * ops.cast(factor, "float32")

    call = compile_function(model, function, jit_compile)
    kernel = np.arange(6, dtype="float32").reshape(3, 2)
    model.layers[0].kernel.assign(kernel)  # The compiled function must read the current weights.
    for rows, factor in ((5, 2), (7, 2), (5, 2), (5, 11)):
        x = np.random.default_rng(rows).normal(size=(rows, 3)).astype("float32")
        np.testing.assert_allclose(ops.convert_to_numpy(call({"x": x}, factor)), x @ kernel * factor, rtol=1e-5)
    assert traced == ([(5, 2), (7, 2), (5, 11)] if jit_compile else [(None, None)])
