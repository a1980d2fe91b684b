"""What the page's explainer computes: the encoder and a step of the decoder with heads off and positions moved.

A head that is off contributes nothing: its context is zero before the output projection (section 3.2.2). A source token
is hidden without any of this: its id becomes 0, padding, and all attention ignores it.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import tensorflow as tf

from keras_transformer.layers.attention import CHANGED_CONTEXT, MultiHeadAttention
from keras_transformer.layers.embeddings import POSITIONS


@contextmanager
def changed(layers: Sequence[MultiHeadAttention], heads: tf.Tensor, positions: tf.Tensor) -> Iterator[list[tf.Tensor]]:
    """While it lasts, heads of attention layers are switched, and tokens have other positions.

    It is for traces by `keras_transformer.export.tflite`, where positions are rows of a table.

    Args:
        layers: the attention layers, in the order of their calls; no other ones may be called.
        heads: float32 (layers, N), by which the context of each head is multiplied: 1 is on, 0 is off.
        positions: int32 (B, L), the position of each embedded token.

    Yields:
        A list that gets the attention scores of each layer as it is called, float32.
    """
    scores, factors = [], dict(zip(layers, tf.unstack(heads), strict=True))

    def change(layer, context, scores_of_layer):
        scores.append(tf.cast(scores_of_layer, tf.float32))
        return context * tf.cast(tf.repeat(factors[layer], layer.value_dim), context.dtype)

    tokens = CHANGED_CONTEXT.set(change), POSITIONS.set(positions)
    try:
        yield scores
    finally:
        CHANGED_CONTEXT.reset(tokens[0])
        POSITIONS.reset(tokens[1])
