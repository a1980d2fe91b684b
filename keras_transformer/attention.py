"""Multi-head scaled dot-product attention.

Reference: "Attention Is All You Need" (Vaswani et al., 2017), section 3.2.
Axes: B batch, T target (query), S source (key and value), N heads, H key_dim, D model width.
"""

import keras
from keras import ops

from keras_transformer import masks


@keras.saving.register_keras_serializable(package="keras_transformer")
class MultiHeadAttention(keras.layers.Layer):
    """softmax(Q K^T / sqrt(key_dim)) V in `num_heads` subspaces, with Keras masks.

    `attention(x)` is self-attention: queries, keys and values come out of one matrix product.
    `attention(query, value)` is cross-attention, with keys and values out of one product. Which of the two it is, is
    fixed by the first call, since it decides the shapes of the weights.

    Unlike `keras.layers.MultiHeadAttention` this layer never removes the Keras mask of its inputs, so a second layer
    that reads the same tensor still sees it. The output carries the mask of the query.

    Args:
        num_heads: N.
        key_dim: H, the width of one head.
        dropout: rate in [0, 1) on the attention scores. Defaults to 0.
        kernel_initializer: Defaults to `"glorot_uniform"`; on the fused projection this is Xavier with gain
            1/sqrt(2) for each of its three parts.
        use_bias: whether the projections have biases. Defaults to True.
        **kwargs: `name`, `dtype`, `trainable`.

    Call arguments:
        query: (B, T, D).
        value: (B, S, D'), or `None` for self-attention.
        mask, query_mask, value_mask: padding masks (B, L), True = real token. Keras fills those that are not given
            with the masks that the tensors carry: `mask` when the layer is called with one tensor, the others when
            it is called with several. The mask of the values keeps padding from being attended to.
        attention_mask: boolean (B, T, S), True = attend.
        use_causal_mask: whether position t sees only positions up to t. Defaults to False.
        return_attention_scores: whether to return the attention scores too. Defaults to False.
        training: whether dropout is active.

    Returns:
        (B, T, D), or a pair of that and the attention scores (B, N, T, S). A query that may attend to nothing gets
        scores of zero and a context of zeros, never NaN.

    Example:
        >>> attention = MultiHeadAttention(num_heads=2, key_dim=4)
        >>> attention(np.ones((1, 5, 8), "float32"), use_causal_mask=True).shape
        TensorShape([1, 5, 8])
    """

    def __init__(self, num_heads, key_dim, dropout=0.0, kernel_initializer="glorot_uniform", use_bias=True, **kwargs):
        super().__init__(**kwargs)
        if num_heads < 1 or key_dim < 1:
            raise ValueError(
                f"`num_heads` and `key_dim` must be at least 1. Received: num_heads={num_heads}, key_dim={key_dim}."
            )
        self.supports_masking = True
        self.num_heads = num_heads
        self.key_dim = key_dim
        self.dropout = dropout
        self.use_bias = use_bias
        self.kernel_initializer = keras.initializers.get(kernel_initializer)
        self.dropout_layer = keras.layers.Dropout(dropout, dtype=self.dtype_policy, name="dropout")

    def _dense(self, units, name):
        return keras.layers.Dense(
            units,
            use_bias=self.use_bias,
            # A copy: an initializer with a seed must not give two weights the same values.
            kernel_initializer=self.kernel_initializer.clone(),
            dtype=self.dtype_policy,
            name=name,
        )

    def build(self, query_shape, value_shape=None):
        width = self.num_heads * self.key_dim
        if value_shape is None:
            self.query_key_value_dense = self._dense(3 * width, "query_key_value")
            self.query_key_value_dense.build(query_shape)
        else:
            self.query_dense = self._dense(width, "query")
            self.query_dense.build(query_shape)
            self.key_value_dense = self._dense(2 * width, "key_value")
            self.key_value_dense.build(value_shape)
        self.is_self_attention = value_shape is None
        self.output_dense = self._dense(query_shape[-1], "output")
        self.output_dense.build((*query_shape[:-1], width))

    def call(
        self,
        query,
        value=None,
        mask=None,
        query_mask=None,
        value_mask=None,
        attention_mask=None,
        use_causal_mask=False,
        return_attention_scores=False,
        training=None,
    ):
        if value is None:
            if not self.is_self_attention:
                raise ValueError(
                    f"`value` must be given to layer {self.name!r}: it was built for cross-attention. "
                    "Received: value=None. Call `attention(query, value)`."
                )
            query, key, value = self._project(self.query_key_value_dense, query)
            value_mask = next((m for m in (mask, value_mask, query_mask) if m is not None), None)
        else:
            if self.is_self_attention:
                raise ValueError(
                    f"`value` may not be given to layer {self.name!r}: it was built for self-attention, by a call "
                    "with one tensor. Received: a value. Make another layer for cross-attention."
                )
            (query,) = self._project(self.query_dense, query)
            key, value = self._project(self.key_value_dense, value)
        causal_mask = masks.causal_mask(ops.shape(query)[1]) if use_causal_mask else None
        attention_mask = masks.combine(value_mask, attention_mask, causal_mask)
        if attention_mask is not None:
            attention_mask = attention_mask[:, None]  # (B, 1, T, S): the same for every head
        # The fused attention of JAX has no float16 on CPUs.
        if return_attention_scores or (training and self.dropout) or self.compute_dtype == "float16":
            context, scores = self._attend(query, key, value, attention_mask, training)
        else:
            context, scores = ops.dot_product_attention(query, key, value, mask=attention_mask), None
            if attention_mask is not None:
                # Where everything is masked, softmax is uniform over the padding: this makes it nothing.
                some = ops.swapaxes(ops.any(attention_mask, axis=-1, keepdims=True), 1, 2)  # (B, T, 1, 1)
                context = ops.where(some, context, ops.zeros_like(context))
        output = self.output_dense(self._merge_heads(context))
        return (output, scores) if return_attention_scores else output

    def _project(self, dense, x):
        """(B, L, D) -> one (B, L, N, H) for each of query, key, value that `dense` holds."""
        x = dense(x)
        batch, length = ops.shape(x)[:2]
        parts = x.shape[-1] // (self.num_heads * self.key_dim)
        parts = ops.split(x, parts, axis=-1) if parts > 1 else [x]
        return [ops.reshape(part, (batch, length, self.num_heads, self.key_dim)) for part in parts]

    def _merge_heads(self, context):
        batch, length = ops.shape(context)[:2]
        return ops.reshape(context, (batch, length, self.num_heads * self.key_dim))

    def _attend(self, query, key, value, attention_mask, training):
        """The formula itself, for when the scores are wanted or dropped out. Softmax runs in float32."""
        logits = ops.einsum("btnh,bsnh->bnts", query * self.key_dim**-0.5, key)
        scores = _softmax(ops.cast(logits, "float32"), attention_mask)
        scores = ops.cast(scores, self.compute_dtype)
        context = ops.einsum("bnts,bsnh->btnh", self.dropout_layer(scores, training=training), value)
        return context, scores

    # Cached decoding: one position at a time, on tensors (B * K, D) without a time axis. The K beams of a sentence are
    # neighbours; what they cached stays where it is, and masks say whose it is now. Caches have one axis for sentences
    # and heads, and are stored as the products read them: where a reshape or a transposition stands between the write
    # and the product, XLA copies all of a cache at every step.

    def init_cache(self, batch_size, length, num_beams=1):
        """An empty cache for `decode_step`: keys (B * N, H, L * K) and values (B * N, L * K, H), zeros."""
        rows, size = batch_size * self.num_heads, length * num_beams
        key = ops.zeros((rows, self.key_dim, size), self.compute_dtype)
        return key, ops.zeros((rows, size, self.key_dim), self.compute_dtype)

    def project_value(self, value):
        """Keys (B * N, H, S) and values (B * N, S, H) of (B, S, D'), computed once per sentence for `cross_step`."""
        length = ops.shape(value)[1]
        key, value = self._project(self.key_value_dense, value)
        key = ops.reshape(ops.transpose(key, (0, 2, 3, 1)), (-1, self.key_dim, length))
        return key, ops.reshape(ops.swapaxes(value, 1, 2), (-1, length, self.key_dim))

    def decode_step(self, query, cache, cache_update_index, attention_mask, in_place=False):
        """Self-attention of one new position to itself and the cached ones.

        Args:
            query: (B * K, D), the new position of every beam.
            cache: keys (B * N, H, L * K) and values (B * N, L * K, H).
            cache_update_index: the new position's index, a scalar integer.
            attention_mask: boolean, broadcasts to (B, N, K, L * K): which of the cached positions of which beams each
                beam attends to, the new one included.
            in_place: see `update_cache`. Defaults to False.

        Returns:
            (B * K, D) and the updated cache.
        """
        batch = ops.shape(cache[0])[0] // self.num_heads
        x = ops.reshape(self.query_key_value_dense(query), (batch, -1, 3 * self.num_heads, self.key_dim))
        query, key, value = (self._merge_rows(part) for part in ops.split(ops.swapaxes(x, 1, 2), 3, axis=1))
        key = update_cache(cache[0], ops.swapaxes(key, 1, 2), cache_update_index, 2, in_place)
        value = update_cache(cache[1], value, cache_update_index, 1, in_place)
        return self._step(query, key, value, attention_mask), (key, value)

    def cross_step(self, query, key, value, attention_mask):
        """Cross-attention of one new position, for one or several beams per sentence.

        Args:
            query: (B * K, D): the K beams of a sentence are neighbours and read its keys together.
            key, value: (B * N, H, S) and (B * N, S, H) from `project_value`.
            attention_mask: boolean (B, 1, 1, S), True at the real tokens of the source.

        Returns:
            (B * K, D).
        """
        batch = ops.shape(key)[0] // self.num_heads
        query = ops.reshape(self.query_dense(query), (batch, -1, self.num_heads, self.key_dim))
        return self._step(self._merge_rows(ops.swapaxes(query, 1, 2)), key, value, attention_mask)

    def _merge_rows(self, x):
        """(B, N, K, H) -> (B * N, K, H)."""
        return ops.reshape(x, (-1, ops.shape(x)[2], self.key_dim))

    def _step(self, query, key, value, attention_mask):
        """(B * N, K, H) queries on (B * N, H, S) keys and (B * N, S, H) values -> (B * K, D)."""
        num_beams, length = ops.shape(query)[1], ops.shape(value)[1]
        logits = ops.reshape(ops.matmul(query, key), (-1, self.num_heads, num_beams, length))
        scores = _softmax(ops.cast(logits, "float32") * self.key_dim**-0.5, attention_mask)
        scores = ops.reshape(ops.cast(scores, self.compute_dtype), (-1, num_beams, length))
        context = ops.reshape(ops.matmul(scores, value), (-1, self.num_heads, num_beams, self.key_dim))
        return self.output_dense(ops.reshape(ops.swapaxes(context, 1, 2), (-1, self.num_heads * self.key_dim)))

    def get_config(self):
        return {
            **super().get_config(),
            "num_heads": self.num_heads,
            "key_dim": self.key_dim,
            "dropout": self.dropout,
            "kernel_initializer": keras.initializers.serialize(self.kernel_initializer),
            "use_bias": self.use_bias,
        }


def _softmax(logits, attention_mask):
    """Softmax over the last axis; what is masked gets exactly 0, also where everything is masked. Float32."""
    if attention_mask is None:
        return ops.softmax(logits, axis=-1)
    scores = ops.softmax(ops.where(attention_mask, logits, -1e9), axis=-1)
    return ops.where(attention_mask, scores, 0.0)


def update_cache(cache, update, index, axis, in_place=False):
    """Writes the K slices `update` at position `index` of a cache that has L * K of them on `axis`, 1 or 2 of three.

    With `in_place`, compiled code writes the one position and leaves the others where they are. On TensorFlow that is
    an XLA op, which a stock TensorFlow Serving refuses to run; without it the whole cache is written anew.
    """
    num_beams, size = ops.shape(update)[axis], ops.shape(cache)[axis]
    if in_place:
        start = [ops.zeros_like(index)] * 3
        start[axis] = index * num_beams
        return ops.slice_update(cache, start, update)
    slots = ops.arange(size, dtype="int32")
    here = ops.logical_and(slots >= index * num_beams, slots < (index + 1) * num_beams)
    here = here if axis == 2 else here[:, None]
    return ops.where(here, ops.take(update, slots % num_beams, axis=axis), cache)
