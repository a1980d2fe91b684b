"""Multi-head scaled dot-product attention.

Reference: "Attention Is All You Need" (Vaswani et al., 2017), section 3.2.
Axes: B batch, T target (query), S source (key and value), N heads, H key_dim, D model width.
"""

from collections.abc import Callable
from contextvars import ContextVar
from typing import Any

import keras
from keras import ops

from keras_transformer.layers import masks
from keras_transformer.layers.base import (
    Constraint,
    DenseLayers,
    Initializer,
    Regularizer,
    Shape,
    Tensor,
    at_least_float32,
    carry_mask,
    positive_integer,
    rate,
    shape_of,
)
from keras_transformer.layers.caches import Cache, empty_cache

# `export.explain` sets it while it traces: a function that gets a layer, the contexts (..., N * value_dim) of all its
# heads and its attention scores, and returns the contexts that are projected. Other threads do not see it: they may use
# the same layer.
CHANGED_CONTEXT: ContextVar[Callable | None] = ContextVar("changed_context", default=None)


@keras.saving.register_keras_serializable(package="keras_transformer")
class MultiHeadAttention(DenseLayers):
    """softmax(Q K^T / sqrt(key_dim)) V in `num_heads` subspaces, with Keras masks.

    `attention(x)` is self-attention: one matrix product gives queries, keys and values.
    `attention(query, value)` is cross-attention: one product gives keys and values.
    `attention(query, value, key)` takes the keys from a third tensor, with three products.
    The first call fixes which of the three it is, because it sets the shapes of the weights. Arguments are in the order
    of `keras.layers.MultiHeadAttention`. Two of its arguments are missing: `attention_axes`, because a sequence has one
    axis here, and `flash_attention`, because Keras chooses fused attention itself. Unlike the Keras layer, this layer
    never removes the Keras mask of its inputs, so a second layer that reads the same tensor still sees it. The output
    carries the mask of the query.

    Args:
        num_heads: number of heads, N.
        key_dim: H, the width of one head for queries and keys.
        value_dim: the width of one head for values. Defaults to `key_dim`.
        dropout: rate in [0, 1) on the attention scores. Defaults to 0.
        use_bias: whether the projections have biases. Defaults to True.
        output_shape: the width of the output. Defaults to the width of the query.
        kernel_initializer: Defaults to `"glorot_uniform"`. On the fused projection this is Xavier with gain 1/sqrt(2)
            for each of the three parts.
        bias_initializer: Defaults to `"zeros"`.
        kernel_regularizer, bias_regularizer, kernel_constraint, bias_constraint: for every projection. Default to None.
        seed: of the dropout. Defaults to None: that of `keras.utils.set_random_seed`.
        **kwargs: `name`, `dtype`, `trainable`, and `activity_regularizer` for the output.

    Call arguments:
        query: (B, T, D).
        value: (B, S, D'), or `None` for self-attention.
        key: (B, S, D''). Defaults to `value`.
        query_mask, value_mask, key_mask: padding masks (B, L), True = real token. If a mask is not given and the layer
            is called with several tensors, Keras fills it with the mask that the tensor carries. Queries attend to keys
            where both `value_mask` and `key_mask` are True. The output carries `query_mask`. In self-attention
            `query_mask` is also the mask of the keys, unless `value_mask` or `key_mask` is given.
        attention_mask: boolean (T, S), (B, T, S) or (B, N, T, S), True = attend. Only padding masks hide values that
            are not finite: 0 * NaN is NaN, so a key that some query sees must be finite for all of them.
        return_attention_scores: whether to return the attention scores too. Defaults to False.
        training: whether dropout is active.
        use_causal_mask: whether position t sees only positions up to t. Defaults to False.
        mask: padding mask (B, T) of queries and keys, for self-attention only, where it replaces `query_mask`. Keras
            fills it when the layer is called with one tensor.

    Returns:
        (B, T, D), or that and the attention scores (B, N, T, S). If all keys of a query are masked, its attention
        scores and its context are zeros, never NaN. What padding holds, even NaN or infinity, changes nothing.

    Raises:
        ValueError: for sequences that do not have three axes, masks that do not fit them, and calls of another kind
            than the first.

    Example:
        >>> attention = MultiHeadAttention(num_heads=2, key_dim=4)
        >>> attention(np.ones((1, 5, 8), "float32"), use_causal_mask=True).shape
        TensorShape([1, 5, 8])
    """

    def __init__(
        self,
        num_heads: int,
        key_dim: int,
        value_dim: int | None = None,
        dropout: float = 0.0,
        use_bias: bool = True,
        output_shape: int | None = None,
        kernel_initializer: Initializer = "glorot_uniform",
        bias_initializer: Initializer = "zeros",
        kernel_regularizer: Regularizer = None,
        bias_regularizer: Regularizer = None,
        kernel_constraint: Constraint = None,
        bias_constraint: Constraint = None,
        seed: int | None = None,
        **kwargs,
    ):
        super().__init__(kernel_initializer, bias_initializer, kernel_regularizer, bias_regularizer, **kwargs)
        self.num_heads = positive_integer("num_heads", num_heads)
        self.key_dim = positive_integer("key_dim", key_dim)
        self.value_dim = self.key_dim if value_dim is None else positive_integer("value_dim", value_dim)
        self._dims = self.key_dim, self.key_dim, self.value_dim  # Of one head: of its query, key and value.
        self.dropout = rate("dropout", dropout)
        self.use_bias = use_bias
        if isinstance(output_shape, (tuple, list)) and len(output_shape) == 1:
            (output_shape,) = output_shape
        # Keras reads an attribute `output_shape` when it prints the summary of a model.
        self._output_shape = None if output_shape is None else positive_integer("output_shape", output_shape)
        self.kernel_constraint = keras.constraints.get(kernel_constraint)
        self.bias_constraint = keras.constraints.get(bias_constraint)
        self.seed = seed
        self.dropout_layer = keras.layers.Dropout(self.dropout, seed=seed, dtype=self.dtype_policy, name="dropout")
        self._built_by = None

    def _projection(self, units, name, shape):
        layer = keras.layers.Dense(
            units,
            use_bias=self.use_bias,
            kernel_constraint=self.kernel_constraint,
            bias_constraint=self.bias_constraint,
            name=name,
            **self._dense_settings(),
        )
        layer.build(shape)
        return layer

    def build(self, query_shape: Shape, value_shape: Shape | None = None, key_shape: Shape | None = None):
        self._build_for(query=query_shape, value=value_shape, key=key_shape)
        self._built_by = _kind(value_shape, key_shape)
        keys, values = self.num_heads * self.key_dim, self.num_heads * self.value_dim
        if self._built_by == SELF:
            self.query_key_value_dense = self._projection(2 * keys + values, "query_key_value", query_shape)
        else:
            self.query_dense = self._projection(keys, "query", query_shape)
        if self._built_by == CROSS:
            self.key_value_dense = self._projection(keys + values, "key_value", value_shape)
        elif self._built_by == CROSS_WITH_KEY:
            self.key_dense = self._projection(keys, "key", key_shape)
            self.value_dense = self._projection(values, "value", value_shape)
        self.output_dense = self._projection(self._output_shape or query_shape[-1], "output", (None, None, values))

    def compute_output_shape(
        self, query_shape: Shape, value_shape: Shape | None = None, key_shape: Shape | None = None
    ) -> Shape:
        _kind(value_shape, key_shape)
        self._check_sequences(query=query_shape, value=value_shape, key=key_shape)
        return (*query_shape[:-1], self._output_shape or query_shape[-1])

    def call(
        self,
        query: Tensor,
        value: Tensor | None = None,
        key: Tensor | None = None,
        query_mask: Tensor | None = None,
        value_mask: Tensor | None = None,
        key_mask: Tensor | None = None,
        attention_mask: Tensor | None = None,
        return_attention_scores: bool = False,
        training: bool | None = None,
        use_causal_mask: bool = False,
        mask: Tensor | None = None,
    ):
        padding_masks = {"mask": mask, "query_mask": query_mask, "value_mask": value_mask, "key_mask": key_mask}
        self._check_call(query, value, key, attention_mask=attention_mask, **padding_masks)
        value_mask = _both(value_mask, key_mask)  # Of keys and values.
        if value is None:
            # Keras fills `query_mask` with the mask that the tensor carries; an explicit `mask` replaces it.
            query_mask, value_mask = query_mask if mask is None else mask, _both(mask, value_mask)
            padding_mask = query_mask
            if value_mask is None:
                value_mask = query_mask
            elif query_mask is not None:
                padding_mask = ops.logical_or(query_mask, value_mask)
            causal_mask = masks.causal_mask(ops.shape(query)[1]) if use_causal_mask else None
            query = masks.without_padding(query, padding_mask)
            query, key, value = self._to_heads(self.query_key_value_dense, query, self._dims)
        else:
            causal_mask = masks.causal_mask(ops.shape(query)[1], ops.shape(value)[1]) if use_causal_mask else None
            value = masks.without_padding(value, value_mask)
            (query,) = self._to_heads(self.query_dense, masks.without_padding(query, query_mask), self._dims[:1])
            if key is None:
                key, value = self._to_heads(self.key_value_dense, value, self._dims[1:])
            else:
                (key,) = self._to_heads(self.key_dense, masks.without_padding(key, value_mask), self._dims[1:2])
                (value,) = self._to_heads(self.value_dense, value, self._dims[2:])
        attention_mask = masks.combine(value_mask, attention_mask, causal_mask)
        # Keras has fused attention on JAX only. It has no dropout, does not return scores, does not take float16 on
        # CPUs, and needs one width for keys and values.
        plain = return_attention_scores or (training and self.dropout) or self.compute_dtype == "float16"
        if plain or self.key_dim != self.value_dim or keras.backend.backend() != "jax":
            context, scores = self._attend(query, key, value, attention_mask, training)
        else:
            context, scores = ops.dot_product_attention(query, key, value, mask=attention_mask), None
            if attention_mask is not None:
                # Where all keys are masked, softmax is uniform over the padding: such contexts become zeros.
                some = ops.swapaxes(ops.any(attention_mask, axis=-1, keepdims=True), 1, 2)  # (B, T, N, 1)
                context = ops.where(some, context, ops.zeros_like(context))
        batch, length = ops.shape(context)[:2]
        output = self._project(ops.reshape(context, (batch, length, self.num_heads * self.value_dim)), scores)
        carry_mask(output, query_mask)
        return (output, scores) if return_attention_scores else output

    def _check_call(self, query, value=None, key=None, **given):
        """Checks what `build` cannot: the masks, and every call after the first."""
        kind, shapes = _kind(value, key), (shape_of(query), shape_of(value), shape_of(key))
        self._check_sequences(**dict(zip(("query", "value", "key"), shapes, strict=True)))
        self._check_built_by(kind)
        _check_masks(self.num_heads, given, *shapes)

    def _check_built_by(self, kind):
        if kind != self._built_by:
            raise ValueError(
                f"Layer {self.name!r} was built by a call {self._built_by}, which set the shapes of its weights. "
                f"Received: a call {kind}, or decoding that needs one. Create another layer for it."
            )

    def _to_heads(self, dense, x, dims, padding_mask=None):
        """(B, L, D) -> one (B, L, N, dim) for each of dims. They are zero where the padding mask (B, L) is False."""
        # The sizes are those of x: tf2onnx merges a reshape to sizes of the product with that in the product, wrongly.
        batch, length = ops.shape(x)[:2]
        x = masks.without_padding(dense(x), padding_mask)
        parts = zip(_parts(x, dims, self.num_heads), dims, strict=True)
        return [ops.reshape(part, (batch, length, self.num_heads, dim)) for part, dim in parts]

    def _attend(self, query, key, value, attention_mask, training):
        """The formula of attention, with softmax in at least float32.

        Heads are moved to the front once. An einsum would move them in every product, forward and backward.
        """
        query = ops.swapaxes(query * self.key_dim**-0.5, 1, 2)  # (B, N, T, H)
        logits = ops.matmul(query, ops.transpose(key, (0, 2, 3, 1)))
        scores = _masked_softmax(at_least_float32(logits), attention_mask)
        scores = ops.cast(scores, self.compute_dtype)
        context = ops.matmul(self.dropout_layer(scores, training=training), ops.swapaxes(value, 1, 2))
        return ops.swapaxes(context, 1, 2), scores

    # Cached decoding: one position at a time, on tensors (B * K, D) without a time axis. The K beams of a sentence are
    # adjacent rows. Masks are numbers to add, computed once for all blocks: without XLA the time of a step depends on
    # the number of its operations.

    def init_cache(self, batch_size: Any, length: Any = 0, num_beams: int = 1, cache: str = "growing") -> Cache:
        """An empty cache for `decode_step`.

        Args:
            batch_size: B, an integer or a scalar integer tensor.
            length: number of positions in a fixed cache. Defaults to 0, for a growing cache.
            num_beams: K, an integer. Defaults to 1.
            cache: `"growing"` or `"fixed"`, see `keras_transformer.layers.caches`. Defaults to `"growing"`.

        Returns:
            A `GrowingCache` or a `FixedCache`.
        """
        rows = batch_size * self.num_heads
        return empty_cache(cache, rows, self.key_dim, self.value_dim, length * num_beams, self.compute_dtype)

    def project_value(self, value: Tensor, value_mask: Tensor | None) -> tuple[Tensor, Tensor]:
        """Keys (B * N, H, S) and values (B * N, S, H) of (B, S, D'), computed once per sentence for `cross_step`.

        Both are zero where the padding mask (B, S) is False, so that a sentence of padding only has no effect.
        """
        self._check_built_by(CROSS)
        length = ops.shape(value)[1]
        key, value = self._to_heads(self.key_value_dense, value, self._dims[1:], value_mask)
        key = ops.reshape(ops.transpose(key, (0, 2, 3, 1)), (-1, self.key_dim, length))
        return key, ops.reshape(ops.swapaxes(value, 1, 2), (-1, length, self.value_dim))

    def decode_step(
        self, query: Tensor, cache: Any, cache_update_index: Tensor, mask_bias: Tensor | None = None, num_beams: int = 1
    ) -> tuple[Tensor, Cache]:
        """Self-attention of one new position to itself and the cached positions.

        Args:
            query: (B * K, D), the new position of every beam.
            cache: from `init_cache`, or from the step before.
            cache_update_index: the new position's index, a scalar integer.
            mask_bias: float32, (L * K,) or (B * N, K, L * K): `masks.bias` of the cache's `mask`, for each head.
                Defaults to None: attend to all cached positions.
            num_beams: K, an integer. Defaults to 1.

        Returns:
            (B * K, D) and the updated cache.
        """
        self._check_built_by(SELF)
        query, key, value = _split_heads(self.query_key_value_dense(query), self._dims, self.num_heads, num_beams)
        key = ops.swapaxes(key, 1, 2) if num_beams > 1 else ops.reshape(key, (-1, self.key_dim, 1))
        cache = cache.write(key, value, cache_update_index)
        return self._step(query, cache.keys, cache.values, mask_bias, num_beams), cache

    def cross_step(
        self, query: Tensor, key: Tensor, value: Tensor, mask_bias: Tensor | None, num_beams: int = 1
    ) -> Tensor:
        """Cross-attention of one new position, for one or several beams per sentence.

        Args:
            query: (B * K, D): the K beams of a sentence are adjacent rows and share its keys.
            key, value: (B * N, H, S) and (B * N, S, H) from `project_value`.
            mask_bias: float32 (B * N, 1, S): `masks.bias` of the padding mask of the source.
            num_beams: K, an integer. Defaults to 1.

        Returns:
            (B * K, D).
        """
        self._check_built_by(CROSS)
        (query,) = _split_heads(self.query_dense(query), self._dims[:1], self.num_heads, num_beams)
        return self._step(query, key, value, mask_bias, num_beams)

    def _step(self, query, key, value, mask_bias, num_beams):
        """(B * N, K, H) queries on (B * N, H, S) keys and (B * N, S, H) values -> (B * K, D)."""
        logits = at_least_float32(ops.matmul(query, key)) * self.key_dim**-0.5
        scores = _softmax(logits if mask_bias is None else ops.add(logits, mask_bias))
        context = ops.matmul(ops.cast(scores, self.compute_dtype), value)
        if num_beams > 1:
            context = ops.swapaxes(ops.reshape(context, (-1, self.num_heads, num_beams, self.value_dim)), 1, 2)
        return self._project(ops.reshape(context, (-1, self.num_heads * self.value_dim)), scores)

    def _project(self, context, scores):
        """Contexts of all heads (..., N * value_dim) -> (..., D)."""
        changed = CHANGED_CONTEXT.get()
        return self.output_dense(changed(self, context, scores) if changed else context)

    def get_config(self):
        names = "num_heads", "key_dim", "value_dim", "dropout", "use_bias", "seed"
        return {
            **super().get_config(),
            **{name: getattr(self, name) for name in names},
            "output_shape": self._output_shape,
            "kernel_constraint": keras.constraints.serialize(self.kernel_constraint),
            "bias_constraint": keras.constraints.serialize(self.bias_constraint),
        }


# The kinds of call, as error messages name them.
SELF, CROSS, CROSS_WITH_KEY = "`attention(query)`", "`attention(query, value)`", "`attention(query, value, key)`"


def _kind(value, key):
    """The kind of a call, from its tensors or their shapes."""
    if value is None and key is not None:
        raise ValueError(
            "`key` needs `value`: each key selects a value. Received: a key, but value=None. "
            "Call `attention(query, value, key)`."
        )
    return SELF if value is None else CROSS if key is None else CROSS_WITH_KEY


def _check_masks(num_heads, given, query_shape, value_shape, key_shape):
    """Checks the masks among the arguments of a call, and that keys and values have the same length."""
    if value_shape is not None and given.get("mask") is not None:
        raise ValueError(
            "`mask` is for self-attention, `attention(x, mask=...)`: with several sequences it is unclear whose "
            "padding it marks. Received: `mask` together with `value`. Use `value_mask` for the padding of the "
            "values, `key_mask` for that of the keys, `query_mask` for that of the query."
        )
    value_shape = query_shape if value_shape is None else value_shape
    key_shape = value_shape if key_shape is None else key_shape
    if None not in (key_shape[1], value_shape[1]) and key_shape[1] != value_shape[1]:
        raise ValueError(
            "`key` and `value` must have the same length: each key has its value. "
            f"Received: key of shape {tuple(key_shape)}, value of shape {tuple(value_shape)}."
        )
    shapes = {"mask": query_shape, "query_mask": query_shape, "value_mask": value_shape, "key_mask": key_shape}
    for name, shape in shapes.items():
        masks.check_padding_mask(name, given.get(name), shape)
    pairs = (query_shape[0], num_heads, query_shape[1], key_shape[1])
    masks.check_attention_mask("attention_mask", given.get("attention_mask"), pairs)


def _parts(x, dims, num_heads):
    """(..., N * sum of dims) -> one (..., N * dim) for each."""
    if len(dims) == 1:
        return [x]
    if len(set(dims)) == 1:
        return ops.split(x, len(dims), axis=-1)
    return ops.split(x, [num_heads * sum(dims[:i]) for i in range(1, len(dims))], axis=-1)


def _split_heads(x, dims, num_heads, num_beams):
    """(B * K, N * sum of dims) -> one (B * N, K, dim) for each."""
    count = len(dims)
    if num_beams > 1 and len(set(dims)) == 1:  # All parts at once: fewer operations.
        x = ops.reshape(x, (-1, num_beams, count, num_heads, dims[0]))
        x = ops.reshape(ops.transpose(x, (2, 0, 3, 1, 4)), (count, -1, num_beams, dims[0]))  # (., B * N, K, dim)
        return ops.unstack(x, count, axis=0)
    parts = list(zip(_parts(x, dims, num_heads), dims, strict=True))
    if num_beams > 1:
        parts = [(ops.swapaxes(ops.reshape(part, (-1, num_beams, num_heads, dim)), 1, 2), dim) for part, dim in parts]
    return [ops.reshape(part, (-1, num_beams, dim)) for part, dim in parts]


def _both(mask, other):
    """The conjunction of two padding masks, each of which may be `None`; `None` if both are."""
    given = [ops.convert_to_tensor(m, dtype="bool") for m in (mask, other) if m is not None]
    return ops.logical_and(*given) if len(given) == 2 else given[0] if given else None


def _softmax(logits):
    """Softmax over the last axis. If this axis has size 1, it avoids the warning that Keras gives."""
    return ops.ones_like(logits) if logits.shape[-1] == 1 else ops.softmax(logits, axis=-1)


def _masked_softmax(logits, attention_mask):
    """Softmax over the last axis. Masked keys get exactly 0, also where all keys are masked."""
    if attention_mask is None:
        return _softmax(logits)
    return ops.where(attention_mask, _softmax(ops.where(attention_mask, logits, -1e9)), 0.0)
