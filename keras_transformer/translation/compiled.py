"""Compiled functions of a model: one per input shape, or one graph for all shapes.

XLA compiles for static shapes and takes seconds for each shape. To keep the shapes few, a batch is padded to one of
`BATCH_SIZES` and its sources to one of `SOURCE_LENGTHS`. JAX always compiles per shape; TensorFlow without XLA has one
graph, and one for a single row. `AutoCompiled` begins without XLA and lets XLA compile, in the background, the shapes
that it spends much time with.
"""

import functools
import logging
import threading
import time

import keras

# Batch sizes that XLA compiles for. Without XLA, the last one is the maximum batch size.
BATCH_SIZES = (1, 8, 32)
SOURCE_LENGTHS = (8, 16, 24, 32, 48, 64, 96, 128)
# A full forward pass keeps the logits of all positions in memory, so its batches are smaller.
FORWARD_ROWS = BATCH_SIZES[-1] // 4
# Seconds without XLA after which a shape is compiled: for calls of several batches, and for calls of one. Compiling
# takes 5 to 15 seconds of a core and saves about half of the time of a batch. Several batches keep all cores busy, so
# XLA waits until about as much was lost as compiling costs. One batch leaves cores idle: compiling delays nothing.
COMPILE_AFTER, COMPILE_AFTER_IDLE = 15.0, 2.0
# Maximum number of shapes that `AutoCompiled` compiles in the background, and of shapes that it counts.
MOST_COMPILED, MOST_COUNTED = 24, 256
_compiling = threading.Lock()  # One background compilation at a time in a process: it needs a core.


def batches(rows, jit_compile):
    """Cuts a list into batches; for XLA, of sizes that need little padding to one of `BATCH_SIZES`."""
    _, medium, large = BATCH_SIZES
    while rows:
        size = medium if jit_compile and len(rows) <= large // 2 else large
        yield rows[:size]
        rows = rows[size:]


def filled_shapes(num_rows, length, max_length=None):
    """The shapes that a batch of sources can be padded to for XLA: (rows, tokens), with the fewest tokens first.

    Args:
        num_rows: number of sources in the batch.
        length: number of tokens of the longest source.
        max_length: number of learned positions of the model. Defaults to None, no limit.
    """
    rows = next(size for size in BATCH_SIZES if size >= num_rows)
    lengths = [n for n in SOURCE_LENGTHS if n >= length] or [-(-length // 64) * 64]
    most = max(length, max_length) if max_length else lengths[-1]
    return [(rows, n) for n in dict.fromkeys(min(n, most) for n in lengths)]


def compile_function(model, function, jit_compile):
    """Compiles `function(inputs, *static)` with the backend.

    Args:
        model: the model whose variables the function reads.
        function: takes a dict of arrays by name, then integers. For XLA and JAX the integers are Python integers during
            tracing, so each value is compiled separately. Otherwise they are scalar tensors.
        jit_compile: whether XLA compiles the function. JAX always uses XLA.
    """
    return (_jax if keras.backend.backend() == "jax" else _tensorflow)(model, function, jit_compile)


def _jax(model, function, jit_compile):
    import jax

    def stateless(values, inputs, *static):
        with keras.StatelessScope(state_mapping=zip(model.variables, values, strict=True)):
            return function(inputs, *static)

    compiled = jax.jit(stateless, static_argnums=(2,))
    return lambda inputs, *static: compiled([v.value for v in model.variables], inputs, *static)


def _tensorflow(model, function, jit_compile):
    import tensorflow as tf

    graphs, tracing = {}, threading.Lock()

    def traced(inputs, static, rows):
        """The graph for the shapes of the inputs; without XLA, for `rows` of any length."""
        if jit_compile:
            arrays = {name: tf.TensorSpec(x.shape, x.dtype) for name, x in inputs.items()}
            graph = tf.function(lambda inputs: function(inputs, *static), jit_compile=True, autograph=False)
            return graph.get_concrete_function(arrays)
        arrays = {name: tf.TensorSpec([rows] + [None] * (x.ndim - 1), x.dtype) for name, x in inputs.items()}
        graph = tf.function(lambda *arguments: function(*arguments), autograph=False)
        return graph.get_concrete_function(arrays, *(tf.TensorSpec((), tf.int32) for _ in static))

    def call(inputs, *static):
        # XLA compiles for static shapes, and a Python integer is static; without XLA one graph serves all.
        key = _shapes(inputs, *static) if jit_compile else (*inputs, None)
        if not jit_compile and key not in graphs and len(next(iter(inputs.values()))) == 1:
            key = (*inputs, 1)  # A graph for one row is made in half of the time: most programs begin with one text.
        if key not in graphs:
            with tracing:
                if key not in graphs:  # Another thread may have been faster.
                    graphs[key] = traced(inputs, static, key[-1])
        # To find the graph, a `tf.function` would hash the weights: half a millisecond for each call.
        return graphs[key](inputs) if jit_compile else graphs[key](inputs, *static)

    return call


def _shapes(inputs, *static):
    """What XLA compiles for: the shape of each input and the Python integers."""
    return *((name, *x.shape) for name, x in inputs.items()), *static


class AutoCompiled:
    """A function without XLA and with XLA, which compiles in the background the shapes that it spends much time with.

    Until XLA is ready for a shape, or for a longer one that the arguments can be padded to, the function without XLA
    answers. So no call waits for XLA. Both compute the same; sums may differ in the last digits.

    Args:
        model: the model whose variables the function reads.
        function: `function(inputs, *static, jit_compile)`, see `compile_function`.
    """

    def __init__(self, model, function):
        self._plain = compile_function(model, functools.partial(function, jit_compile=False), jit_compile=False)
        self._xla = compile_function(model, functools.partial(function, jit_compile=True), jit_compile=True)
        self._ready, self._seconds, self._num_compiled = set(), {}, 0

    def __call__(self, arguments, shapes, jit_compile="auto", compile_after=COMPILE_AFTER):
        """Calls the function.

        Args:
            arguments: `arguments(shape)` returns inputs and integers that are padded to a shape; `arguments(None)`
                returns them without padding.
            shapes: the shapes that they can be padded to, the best first, see `filled_shapes`.
            jit_compile: True for XLA, False for no XLA, or `"auto"`: XLA if it is ready. Defaults to `"auto"`.
            compile_after: for `"auto"`, the seconds of calls without XLA after which a shape is compiled. Defaults to
                `COMPILE_AFTER`.
        """
        if not jit_compile:
            return self._plain(*arguments(None))
        padded = arguments(shapes[0])
        key = _shapes(*padded)
        if jit_compile != "auto":
            result = self._xla(*padded)
            self._ready.add(key)
            return result
        if key in self._ready:
            return self._xla(*padded)
        for longer in map(arguments, shapes[1:]):
            if _shapes(*longer) in self._ready:
                return self._xla(*longer)
        # The first call of a shape may include tracing, and others may wait for it.
        known, began = key in self._seconds, time.perf_counter()
        result = self._plain(*arguments(None))
        seconds = time.perf_counter() - began
        self._count(key, padded, seconds if known else 0.0, compile_after)
        return result

    def _count(self, key, padded, seconds, compile_after):
        """Counts the time of a call; starts the compilation of its shape if it pays and nothing else is compiled."""
        if len(self._seconds) >= MOST_COUNTED and key not in self._seconds:
            self._seconds.clear()
        self._seconds[key] = spent = self._seconds.get(key, 0.0) + seconds
        pays = spent > compile_after and self._num_compiled < MOST_COMPILED
        if pays and key not in self._ready and _compiling.acquire(blocking=False):
            # Not a daemon: Python must wait for it at the end. A process that ends within TensorFlow may crash.
            threading.Thread(target=self._compile, args=(key, padded), name="XLA").start()

    def _compile(self, key, padded):
        try:
            self._xla(*padded)
            self._ready.add(key)
            self._num_compiled += 1
        except Exception as error:
            self._seconds[key] = float("-inf")
            logging.getLogger(__name__).warning("XLA cannot compile this function; it runs without XLA. %s", error)
        finally:
            _compiling.release()
