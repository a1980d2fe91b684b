"""Compiled functions: few shapes with XLA, one graph without it, and XLA in the background."""

import logging
import threading
from types import SimpleNamespace

import keras
import numpy as np
import pytest
from keras import ops

from keras_transformer.translation import compiled
from keras_transformer.translation.compiled import (
    BATCH_SIZES,
    SOURCE_LENGTHS,
    AutoCompiled,
    batches,
    compile_function,
    filled_shapes,
)


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
        ((1, 1), None, [(1, n) for n in SOURCE_LENGTHS]),
        ((2, 8), None, [(8, n) for n in SOURCE_LENGTHS]),
        ((9, 9), None, [(32, n) for n in SOURCE_LENGTHS[1:]]),
        ((32, 128), None, [(32, 128)]),
        ((8, 129), None, [(8, 192)]),
        ((8, 9), 20, [(8, 16), (8, 20)]),  # At most the number of learned positions ...
        ((8, 23), 20, [(8, 23)]),  # ... but a longer source is not cut here.
    ],
)
def test_a_batch_is_padded_to_one_of_few_shapes(shape, max_length, expected):
    assert filled_shapes(*shape, max_length) == expected


def test_there_are_24_shapes():
    shapes = {filled_shapes(rows, length)[0] for rows in range(1, 33) for length in range(1, 129)}
    assert shapes == {(rows, length) for rows in BATCH_SIZES for length in SOURCE_LENGTHS}
    assert len(shapes) == 24


needs_xla_apart = pytest.mark.skipif(keras.backend.backend() == "jax", reason="JAX always compiles")


@pytest.mark.parametrize("jit_compile", [pytest.param(False, marks=needs_xla_apart), True])
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


class Doubles:
    """An `AutoCompiled` function that doubles its input, and notes what it is traced for."""

    def __init__(self, fails=False):
        self.traced, self.fails = [], fails
        self.goes_on = threading.Event()
        self.function = AutoCompiled(keras.Sequential([keras.Input((3,)), keras.layers.Dense(2)]), self.double)

    def double(self, inputs, factor, jit_compile):
        self.traced.append((jit_compile, inputs["x"].shape[0] if jit_compile else None))
        if jit_compile:
            assert self.goes_on.wait(60)
            if self.fails:
                raise ValueError("no such operation")
        return inputs["x"] * factor

    def __call__(self, length, jit_compile="auto", compile_after=0.0):
        def arguments(size):
            x = np.zeros(size or length, "int32")
            x[:length] = 1
            return {"x": x}, 2

        sizes = [size for size in (4, 8, 16) if size >= length]
        result = ops.convert_to_numpy(self.function(arguments, sizes, jit_compile, compile_after))
        assert result[:length].tolist() == [2] * length
        assert not result[length:].any()
        return len(result)


def wait_for_compilation():
    for thread in threading.enumerate():
        if thread.name == "XLA":
            thread.join()


@needs_xla_apart
def test_a_graph_for_one_row_serves_until_there_is_one_for_all():
    traced = []

    def double(inputs):
        traced.append(inputs["x"].shape)
        return inputs["x"] * 2

    call = compile_function(keras.Sequential([keras.Input((3,)), keras.layers.Dense(2)]), double, jit_compile=False)
    for rows, columns in ((1, 5), (1, 7), (3, 5), (1, 11), (2, 7)):
        np.testing.assert_array_equal(call({"x": np.ones((rows, columns), "int32")}), np.full((rows, columns), 2))
    assert traced == [(1, None), (None, None)]


@needs_xla_apart
def test_a_shape_that_takes_much_time_is_compiled_in_the_background():
    doubles = Doubles()
    # The result has the size of the shape that was computed: the length itself without XLA.
    assert [doubles(7) for _ in range(5)] == [7] * 5  # XLA is not ready: it waits.
    doubles.goes_on.set()
    wait_for_compilation()
    assert doubles(7) == 8
    assert doubles(3) == 8  # Not compiled for itself, but it can be padded.
    assert doubles(9) == 9
    assert sorted(doubles.traced, key=str) == [(False, None), (True, 8)]


@needs_xla_apart
def test_the_time_of_a_shape_is_counted_without_its_first_call(monkeypatch):
    """The first call traces the function."""
    clock = iter([0, 100, 100, 103, 103, 106, 106, 109, 109, 112])
    monkeypatch.setattr(compiled, "time", SimpleNamespace(perf_counter=lambda: next(clock)))
    doubles = Doubles()
    doubles.goes_on.set()
    found = []
    for _ in range(5):
        found.append(doubles(7, compile_after=8.0))
        wait_for_compilation()
    assert found == [7, 7, 7, 7, 8]  # Compiled after three calls of three seconds.


@needs_xla_apart
def test_a_shape_of_a_call_with_xla_is_ready_for_later_calls():
    doubles = Doubles()
    doubles.goes_on.set()
    assert (doubles(5), doubles(5, jit_compile=True), doubles(5), doubles(5, jit_compile=False)) == (5, 8, 8, 5)


@needs_xla_apart
def test_one_compilation_runs_at_a_time_and_there_are_few(monkeypatch):
    monkeypatch.setattr(compiled, "MOST_COMPILED", 2)
    doubles = Doubles()
    for length in (3, 7, 15):
        for _ in range(3):
            doubles(length)
        assert [thread.name for thread in threading.enumerate()].count("XLA") == 1
    doubles.goes_on.set()
    wait_for_compilation()
    for length in (7, 15, 7, 15):  # Each took enough time; another compilation was running.
        doubles(length)
        wait_for_compilation()
    assert [doubles(length) for length in (3, 7, 15)] == [4, 8, 15]


@needs_xla_apart
@pytest.mark.parametrize("most", [2, 3])
def test_shapes_are_counted_in_bounded_memory(monkeypatch, most):
    """With room for two, the third shape takes the place of both. So none of three is ever called a second time."""
    monkeypatch.setattr(compiled, "MOST_COUNTED", most)
    doubles = Doubles()
    doubles.goes_on.set()
    for _ in range(9):
        for length in (3, 7, 15):
            doubles(length)
            wait_for_compilation()
    assert (doubles.traced == [(False, None)]) is (most == 2)


@needs_xla_apart
def test_a_compilation_that_fails_is_logged_once_and_changes_no_answer(caplog):
    doubles = Doubles(fails=True)
    doubles.goes_on.set()
    with caplog.at_level(logging.WARNING):
        for _ in range(3):
            assert [doubles(7) for _ in range(5)] == [7] * 5
            wait_for_compilation()
    assert [record.message for record in caplog.records] == [
        "XLA cannot compile this function; it runs without XLA. no such operation"
    ]
