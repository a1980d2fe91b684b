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
        num_heads: number of heads, N.
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
        # Keras has a fused attention on JAX alone, with no scores to return or to drop out, and no float16 on CPUs.
        plain = return_attention_scores or (training and self.dropout) or self.compute_dtype == "float16"
        if plain or keras.backend.backend() != "jax":
            context, scores = self._attend(query, key, value, attention_mask, training)
        else:
            context, scores = ops.dot_product_attention(query, key, value, mask=attention_mask), None
            if attention_mask is not None:
                # Where everything is masked, softmax is uniform over the padding: this makes it nothing.
                some = ops.swapaxes(ops.any(attention_mask, axis=-1, keepdims=True), 1, 2)  # (B, T, 1, 1)
                context = ops.where(some, context, ops.zeros_like(context))
        batch, length = ops.shape(context)[:2]
        output = self.output_dense(ops.reshape(context, (batch, length, self.num_heads * self.key_dim)))
        return (output, scores) if return_attention_scores else output

    def _project(self, dense, x):
        """(B, L, D) -> one (B, L, N, H) for each of query, key, value that `dense` holds."""
        x = dense(x)
        batch, length = ops.shape(x)[:2]
        parts = x.shape[-1] // (self.num_heads * self.key_dim)
        parts = ops.split(x, parts, axis=-1) if parts > 1 else [x]
        return [ops.reshape(part, (batch, length, self.num_heads, self.key_dim)) for part in parts]

    def _attend(self, query, key, value, attention_mask, training):
        """The formula itself. Softmax runs in float32.

        The heads come to the front once, and not by einsum, which would do it in every product, forward and backward.
        """
        query = ops.swapaxes(query * self.key_dim**-0.5, 1, 2)  # (B, N, T, H)
        logits = ops.matmul(query, ops.transpose(key, (0, 2, 3, 1)))
        scores = _masked_softmax(ops.cast(logits, "float32"), attention_mask)
        scores = ops.cast(scores, self.compute_dtype)
        context = ops.matmul(self.dropout_layer(scores, training=training), ops.swapaxes(value, 1, 2))
        return ops.swapaxes(context, 1, 2), scores

    # Cached decoding: one position at a time, on tensors (B * K, D) without a time axis. The K beams of a sentence are
    # neighbours; what they cached stays where it is, and masks say whose it is now. Caches have one axis for sentences
    # and heads, and are stored as the products read them: where a reshape or a transposition stands between the write
    # and the product, XLA copies all of a cache at every step. Masks come as numbers to add, made once for all blocks:
    # without XLA the time of a step is the number of its operations.

    def init_cache(self, batch_size, length, num_beams=1):
        """An empty cache for `decode_step`: keys (B * N, H, L * K) and values (B * N, L * K, H), zeros."""
        rows, size = batch_size * self.num_heads, length * num_beams
        key = ops.zeros((rows, self.key_dim, size), self.compute_dtype)
        return key, ops.zeros((rows, size, self.key_dim), self.compute_dtype)

    def project_value(self, value, value_mask):
        """Keys (B * N, H, S) and values (B * N, S, H) of (B, S, D'), computed once per sentence for `cross_step`.

        Values are zero where the padding mask (B, S) is False: of a sentence of padding only, nothing is seen.
        """
        length = ops.shape(value)[1]
        key, value = self._project(self.key_value_dense, value)
        value = ops.where(value_mask[:, :, None, None], value, ops.zeros_like(value))
        key = ops.reshape(ops.transpose(key, (0, 2, 3, 1)), (-1, self.key_dim, length))
        return key, ops.reshape(ops.swapaxes(value, 1, 2), (-1, length, self.key_dim))

    def decode_step(self, query, cache, cache_update_index, mask_bias=None, num_beams=1, in_place=False):
        """Self-attention of one new position to itself and the cached ones.

        Args:
            query: (B * K, D), the new position of every beam.
            cache: keys (B * N, H, L * K) and values (B * N, L * K, H).
            cache_update_index: the new position's index, a scalar integer.
            mask_bias: float32, see `masks.bias`, (L * K,) or (B, 1, K, L * K): which of the cached positions of which
                beams each beam attends to, the new one included. Defaults to None: all of them.
            num_beams: K, an integer. Defaults to 1.
            in_place: see `update_cache`. Defaults to False.

        Returns:
            (B * K, D) and the updated cache.
        """
        query, key, value = self._split_heads(self.query_key_value_dense(query), 3, num_beams)
        key = ops.swapaxes(key, 1, 2) if num_beams > 1 else ops.reshape(key, (-1, self.key_dim, 1))
        key = update_cache(cache[0], key, cache_update_index, 2, in_place)
        value = update_cache(cache[1], value, cache_update_index, 1, in_place)
        return self._step(query, key, value, mask_bias, num_beams), (key, value)

    def cross_step(self, query, key, value, mask_bias, num_beams=1):
        """Cross-attention of one new position, for one or several beams per sentence.

        Args:
            query: (B * K, D): the K beams of a sentence are neighbours and read its keys together.
            key, value: (B * N, H, S) and (B * N, S, H) from `project_value`.
            mask_bias: float32 (B * N, 1, S), see `masks.bias`: where the source has real tokens.
            num_beams: K, an integer. Defaults to 1.

        Returns:
            (B * K, D).
        """
        (query,) = self._split_heads(self.query_dense(query), 1, num_beams)
        return self._step(query, key, value, mask_bias, num_beams)

    def _split_heads(self, x, parts, num_beams):
        """(B * K, P * N * H) -> P tensors (B * N, K, H)."""
        x = ops.split(x, parts, axis=-1) if parts > 1 else [x]
        if num_beams > 1:
            x = [ops.swapaxes(ops.reshape(part, (-1, num_beams, self.num_heads, self.key_dim)), 1, 2) for part in x]
        return [ops.reshape(part, (-1, num_beams, self.key_dim)) for part in x]

    def _step(self, query, key, value, mask_bias, num_beams):
        """(B * N, K, H) queries on (B * N, H, S) keys and (B * N, S, H) values -> (B * K, D)."""
        logits = ops.cast(ops.matmul(query, key), "float32") * self.key_dim**-0.5
        if mask_bias is not None and len(mask_bias.shape) == 4:  # Differs from beam to beam, not from head to head.
            length = ops.shape(mask_bias)[-1]
            logits = ops.reshape(logits, (-1, self.num_heads, num_beams, length)) + mask_bias
            scores = ops.reshape(_softmax(logits), (-1, num_beams, length))
        else:
            scores = _softmax(logits if mask_bias is None else logits + mask_bias)
        context = ops.matmul(ops.cast(scores, self.compute_dtype), value)
        if num_beams > 1:
            context = ops.swapaxes(ops.reshape(context, (-1, self.num_heads, num_beams, self.key_dim)), 1, 2)
        return self.output_dense(ops.reshape(context, (-1, self.num_heads * self.key_dim)))

    def get_config(self):
        return {
            **super().get_config(),
            "num_heads": self.num_heads,
            "key_dim": self.key_dim,
            "dropout": self.dropout,
            "kernel_initializer": keras.initializers.serialize(self.kernel_initializer),
            "use_bias": self.use_bias,
        }


def _softmax(logits):
    """Softmax over the last axis, without the warning of Keras where that has one place."""
    return ops.ones_like(logits) if logits.shape[-1] == 1 else ops.softmax(logits, axis=-1)


def _masked_softmax(logits, attention_mask):
    """Softmax over the last axis; what is masked gets exactly 0, also where everything is masked. Float32."""
    if attention_mask is None:
        return _softmax(logits)
    return ops.where(attention_mask, _softmax(ops.where(attention_mask, logits, -1e9)), 0.0)


def update_cache(cache, update, index, axis, in_place=False):
    """Writes the K slices `update` at position `index` of a cache that has L * K of them on `axis`, 1 or 2 of three.

    With `in_place`, compiled code writes the one position and leaves the others where they are; the cache has room for
    all positions from the start. On TensorFlow that is an XLA op, which a stock TensorFlow Serving refuses to run.
    Without it the cache has the `index` positions so far and grows by one.
    """
    if not in_place:
        return ops.concatenate([cache, update], axis=axis)
    start = [ops.zeros_like(index)] * 3
    start[axis] = index * ops.shape(update)[axis]
    return ops.slice_update(cache, start, update)
