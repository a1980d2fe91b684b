"""Compiled functions of a model: one per input shape, or one graph for all shapes.

XLA compiles for static shapes and takes seconds for each shape. To keep the shapes few, a batch is padded to one of
`BATCH_SIZES` and its sources to one of `SOURCE_LENGTHS`. JAX always compiles per shape; TensorFlow without XLA has one
graph.
"""

import functools

import keras

# Batch sizes that XLA compiles for. Without XLA, the last one is the maximum batch size.
BATCH_SIZES = (1, 8, 32)
SOURCE_LENGTHS = (8, 16, 24, 32, 48, 64, 96, 128)
# A full forward pass keeps the logits of all positions in memory, so its batches are smaller.
FORWARD_ROWS = BATCH_SIZES[-1] // 4


def batches(rows, jit_compile):
    """Cuts a list into batches; for XLA, of sizes that need little padding to one of `BATCH_SIZES`."""
    _, medium, large = BATCH_SIZES
    while rows:
        size = medium if jit_compile and len(rows) <= large // 2 else large
        yield rows[:size]
        rows = rows[size:]


def filled_shape(num_rows, length, max_length=None):
    """The shape that a batch of sources is padded to for XLA: rows, tokens.

    Args:
        num_rows: number of sources in the batch.
        length: number of tokens of the longest source.
        max_length: number of learned positions of the model. Defaults to None, no limit.
    """
    filled = next((n for n in SOURCE_LENGTHS if n >= length), -(-length // 64) * 64)
    filled = min(filled, max(length, max_length)) if max_length else filled
    return next(size for size in BATCH_SIZES if size >= num_rows), filled


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

    graphs = {}

    def call(inputs, *static):
        # XLA compiles for static shapes, and a Python integer is static; without XLA one graph serves all.
        key = tuple((name, *x.shape) if jit_compile else name for name, x in inputs.items()), jit_compile and static
        if key not in graphs:
            signature = None
            if not jit_compile:
                arrays = {name: tf.TensorSpec([None] * x.ndim, x.dtype) for name, x in inputs.items()}
                signature = [arrays, *(tf.TensorSpec((), tf.int32) for _ in static)]
            # TensorFlow warns if one function is traced often. Here this is intended, so each trace gets a new partial.
            own = functools.partial(function)
            graph = tf.function(own, input_signature=signature, jit_compile=jit_compile or None, autograph=False)
            graphs.setdefault(key, graph)  # Another thread may have been faster.
        return graphs[key](inputs, *static)

    return call
