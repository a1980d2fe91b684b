"""Functions of a model, compiled: one for each shape of their inputs, or one graph for all shapes.

XLA compiles for static shapes and takes seconds for each. So shapes are few: a batch is filled up to one of
`BATCH_SIZES`, its sources to one of `SOURCE_LENGTHS`. JAX always compiles so; TensorFlow without XLA has one graph.
"""

import functools

import keras

# Batches that are compiled for; without XLA, the last one is the most sentences of a batch.
BATCH_SIZES = (1, 8, 32)
SOURCE_LENGTHS = (8, 16, 24, 32, 48, 64, 96, 128)
# A full forward pass has logits of all positions of all rows at once: fewer rows at a time.
FORWARD_ROWS = BATCH_SIZES[-1] // 4


def batches(rows, jit_compile):
    """Cuts a list into batches; for XLA into such that little is added to fill up one of `BATCH_SIZES`."""
    _, medium, large = BATCH_SIZES
    while rows:
        size = medium if jit_compile and len(rows) <= large // 2 else large
        yield rows[:size]
        rows = rows[size:]


def filled_shape(num_rows, length, max_length=None):
    """The shape that a batch of sources is filled up to for XLA: rows, tokens.

    Args:
        num_rows: sources of the batch.
        length: tokens of the longest one.
        max_length: positions that the model has learned. Defaults to None, no such limit.
    """
    filled = next((n for n in SOURCE_LENGTHS if n >= length), -(-length // 64) * 64)
    filled = min(filled, max(length, max_length)) if max_length else filled
    return next(size for size in BATCH_SIZES if size >= num_rows), filled


def compile_function(model, function, jit_compile):
    """`function(inputs, *static)` as a compiled function of the backend.

    Args:
        model: the model whose variables it reads.
        function: of a dict of arrays by name and of integers. For XLA and JAX, the latter are Python's when it is
            traced, so that it is compiled for each; else they are scalar tensors.
        jit_compile: whether XLA compiles it; JAX always does.
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
            # TensorFlow counts tracings by function and warns of many, which are meant. A partial is its own.
            own = functools.partial(function)
            graph = tf.function(own, input_signature=signature, jit_compile=jit_compile or None, autograph=False)
            graphs.setdefault(key, graph)  # Another thread may have been faster.
        return graphs[key](inputs, *static)

    return call
