"""Encoder and decoder blocks, side by side.

Reference: "Attention Is All You Need" (Vaswani et al., 2017), section 3.1 and figure 1 (post-norm);
"On Layer Normalization in the Transformer Architecture" (Xiong et al., 2020) for pre-norm.

    post-norm:  x = LayerNorm(x + Dropout(Sublayer(x)))        (`normalize_first=False`, the paper)
    pre-norm:   x = x + Dropout(Sublayer(LayerNorm(x)))        (`normalize_first=True`)
"""

import inspect

import keras

from keras_transformer.attention import MultiHeadAttention
from keras_transformer.base import (
    Activation,
    DenseLayers,
    Initializer,
    Regularizer,
    Shape,
    Tensor,
    carry_mask,
    even_shares,
    positive_integer,
    positive_number,
    rate,
    shape_of,
)
from keras_transformer.masks import check_attention_mask, check_padding_mask, combine, without_padding

_DENSE_ARGS = """kernel_initializer: of every dense layer. Defaults to `"glorot_uniform"`.
        bias_initializer: of every dense layer. Defaults to `"zeros"`.
        kernel_regularizer, bias_regularizer: of every dense layer. Default to None.
        **kwargs: `name`, `dtype`, `trainable`, and `activity_regularizer` for the output."""


@keras.saving.register_keras_serializable(package="keras_transformer")
class FeedForward(DenseLayers):
    __doc__ = f"""Two dense layers with an activation between, the same at every position (section 3.3).

        FFN(x) = activation(x W1 + b1) W2 + b2

    Args:
        intermediate_dim: width between the two layers.
        activation: any Keras activation. Defaults to `"relu"`.
        {_DENSE_ARGS}

    Call arguments:
        inputs: (..., D).
        mask: padding mask (...), True = real. Keras fills it with the mask that the inputs carry.

    Returns:
        (..., D).

    Example:
        >>> FeedForward(intermediate_dim=32, activation="gelu")(np.ones((2, 5, 8), "float32")).shape
        TensorShape([2, 5, 8])
    """

    def __init__(
        self,
        intermediate_dim: int,
        activation: Activation = "relu",
        kernel_initializer: Initializer = "glorot_uniform",
        bias_initializer: Initializer = "zeros",
        kernel_regularizer: Regularizer = None,
        bias_regularizer: Regularizer = None,
        **kwargs,
    ):
        super().__init__(kernel_initializer, bias_initializer, kernel_regularizer, bias_regularizer, **kwargs)
        self.intermediate_dim = positive_integer("intermediate_dim", intermediate_dim)
        self.activation = keras.activations.get(activation)
        self.intermediate_dense = keras.layers.Dense(
            self.intermediate_dim, activation=self.activation, name="intermediate", **self._dense_settings()
        )

    def build(self, inputs_shape: Shape):
        self.intermediate_dense.build(inputs_shape)
        self.output_dense = keras.layers.Dense(inputs_shape[-1], name="output", **self._dense_settings())
        self.output_dense.build((*inputs_shape[:-1], self.intermediate_dim))

    def compute_output_shape(self, inputs_shape: Shape):
        return tuple(inputs_shape)

    def call(self, inputs: Tensor, mask: Tensor | None = None):
        return self.output_dense(self.intermediate_dense(without_padding(inputs, mask)))

    def get_config(self):
        return {
            **super().get_config(),
            "intermediate_dim": self.intermediate_dim,
            "activation": keras.activations.serialize(self.activation),
        }


class _Block(DenseLayers):
    """Code that both blocks share: arguments, sublayers and the residual connection around each sublayer."""

    feed_forward_class = FeedForward  # A subclass may set another class.

    def __init__(
        self,
        num_heads: int,
        intermediate_dim: int,
        dropout: float = 0.0,
        attention_dropout: float = 0.0,
        activation: Activation = "relu",
        normalize_first: bool = False,
        layer_norm_epsilon: float = 1e-6,
        kernel_initializer: Initializer = "glorot_uniform",
        bias_initializer: Initializer = "zeros",
        kernel_regularizer: Regularizer = None,
        bias_regularizer: Regularizer = None,
        seed: int | None = None,
        **kwargs,
    ):
        super().__init__(kernel_initializer, bias_initializer, kernel_regularizer, bias_regularizer, **kwargs)
        self.num_heads = positive_integer("num_heads", num_heads)
        self.intermediate_dim = positive_integer("intermediate_dim", intermediate_dim)
        self.dropout = rate("dropout", dropout)
        self.attention_dropout = rate("attention_dropout", attention_dropout)
        self.activation = keras.activations.get(activation)
        self.normalize_first = normalize_first
        self.layer_norm_epsilon = positive_number("layer_norm_epsilon", layer_norm_epsilon)
        self.feed_forward = self.feed_forward_class(
            self.intermediate_dim, self.activation, name="feed_forward", **self._dense_settings()
        )
        self.feed_forward_norm = self._norm("feed_forward_norm")
        self.seed = seed
        self.dropout_layer = keras.layers.Dropout(self.dropout, seed=seed, dtype=self.dtype_policy, name="dropout")

    def __call__(self, *args, **kwargs):
        # Those of keras-hub. Not in `call`: Keras binds the arguments before.
        for name in {"padding_mask", "decoder_padding_mask", "encoder_padding_mask"} & kwargs.keys():
            taken = inspect.signature(self.call).parameters
            if name not in taken:
                ours = ", ".join(f"`{mask}`" for mask in taken if mask.endswith("sequence_mask"))
                raise TypeError(
                    "A padding mask has the name of the argument that it belongs to, so that Keras fills it. "
                    f"Received: `{name}`. Here it is {ours}."
                )
        return super().__call__(*args, **kwargs)

    def _norm(self, name):
        return keras.layers.LayerNormalization(epsilon=self.layer_norm_epsilon, dtype=self.dtype_policy, name=name)

    def _attention(self, argument, shape, name):
        hidden_dim = shape[-1]
        if hidden_dim % self.num_heads:
            fits, wider = even_shares(hidden_dim, self.num_heads)
            raise ValueError(
                f"The width of `{argument}`, its last axis, must be divisible by `num_heads`: every head gets an equal "
                f"share. Received: shape={tuple(shape)}, num_heads={self.num_heads}. "
                f"Use num_heads={fits}, or make the input {wider} wide, for example with "
                f"`keras.layers.Dense({wider})`."
            )
        return MultiHeadAttention(
            self.num_heads,
            hidden_dim // self.num_heads,
            dropout=self.attention_dropout,
            # Another seed for each dropout: the same one would drop the same places.
            seed=None if self.seed is None else self.seed + 1_000_003 * (1 + (name == "cross_attention")),
            name=name,
            **self._dense_settings(),
        )

    def _enter(self, x, norm):
        """The input of a sublayer."""
        return norm(x) if self.normalize_first else x

    def _leave(self, x, update, norm, training=None):
        """Dropout on the output of a sublayer, then residual connection and normalisation."""
        x = x + self.dropout_layer(update, training=training)
        return x if self.normalize_first else norm(x)

    def _feed_forward(self, x, training=None):
        update = self.feed_forward(self._enter(x, self.feed_forward_norm))
        return self._leave(x, update, self.feed_forward_norm, training)

    def get_config(self):
        return {
            **super().get_config(),
            "num_heads": self.num_heads,
            "intermediate_dim": self.intermediate_dim,
            "dropout": self.dropout,
            "attention_dropout": self.attention_dropout,
            "activation": keras.activations.serialize(self.activation),
            "normalize_first": self.normalize_first,
            "layer_norm_epsilon": self.layer_norm_epsilon,
            "seed": self.seed,
        }


_BLOCK_ARGS = f"""
    Args:
        num_heads: number of attention heads; must divide the width of the input.
        intermediate_dim: width of the feed-forward sublayer.
        dropout: rate in [0, 1) on the output of every sublayer (section 5.4). Defaults to 0.
        attention_dropout: rate in [0, 1) on the attention scores. Defaults to 0.
        activation: any Keras activation, for the feed-forward sublayer. Defaults to `"relu"`.
        normalize_first: pre-norm if True, post-norm as in the paper if False. Defaults to False.
        layer_norm_epsilon: Defaults to 1e-6.
        seed: of every dropout; give each block its own. Defaults to None: that of `keras.utils.set_random_seed`.
        {_DENSE_ARGS}
"""


@keras.saving.register_keras_serializable(package="keras_transformer")
class EncoderBlock(_Block):
    __doc__ = f"""Self-attention, then feed-forward (section 3.1).
    {_BLOCK_ARGS}
    Call arguments:
        encoder_sequence: (B, S, D).
        mask: padding mask (B, S), True = real token. Keras fills it with the mask that the sequence carries.
        attention_mask: boolean (S, S), (B, S, S) or (B, N, S, S), True = attend.
        use_causal_mask: whether position s sees only positions up to s. Defaults to False.
        return_attention_scores: whether to return the attention scores too. Defaults to False.
        training: whether dropout is active.
        encoder_sequence_mask: the same as `mask`, which replaces it. Keras fills it when the call has other tensors.

    Returns:
        (B, S, D) with the mask of the input, or that and the attention scores (B, N, S, S).

    Raises:
        ValueError: for a sequence that does not have three axes, a width that `num_heads` does not divide, or masks
            that do not fit.

    Example:
        >>> EncoderBlock(num_heads=2, intermediate_dim=32)(np.ones((2, 5, 8), "float32")).shape
        TensorShape([2, 5, 8])
    """

    def build(self, encoder_sequence_shape: Shape):
        self._build_for(encoder_sequence=encoder_sequence_shape)
        self.self_attention = self._attention("encoder_sequence", encoder_sequence_shape, "self_attention")
        self.self_attention.build(encoder_sequence_shape)
        self.self_attention_norm = self._norm("self_attention_norm")
        for layer in (self.self_attention_norm, self.feed_forward, self.feed_forward_norm):
            layer.build(encoder_sequence_shape)

    def compute_output_shape(self, encoder_sequence_shape: Shape):
        self._check_sequences(encoder_sequence=encoder_sequence_shape)
        return tuple(encoder_sequence_shape)

    def call(
        self,
        encoder_sequence: Tensor,
        mask: Tensor | None = None,
        attention_mask: Tensor | None = None,
        use_causal_mask: bool = False,
        return_attention_scores: bool = False,
        training: bool | None = None,
        encoder_sequence_mask: Tensor | None = None,
    ):
        self._check_call(encoder_sequence, mask, attention_mask, encoder_sequence_mask)
        padding_mask = encoder_sequence_mask if mask is None else mask
        x = without_padding(encoder_sequence, padding_mask)
        update = self.self_attention(
            self._enter(x, self.self_attention_norm),
            # Not as `mask`: padding is zero already, and the layer would make it so once more.
            attention_mask=combine(padding_mask, attention_mask),
            return_attention_scores=return_attention_scores,
            training=training,
            use_causal_mask=use_causal_mask,
        )
        update, scores = update if return_attention_scores else (update, None)
        x = self._leave(x, update, self.self_attention_norm, training)
        x = self._feed_forward(x, training)
        carry_mask(x, padding_mask)
        return (x, scores) if return_attention_scores else x

    def _check_call(self, encoder_sequence, mask=None, attention_mask=None, encoder_sequence_mask=None, **_):
        """Checks what `build` cannot: the masks, and every call after the first."""
        shape = shape_of(encoder_sequence)
        self._check_sequences(encoder_sequence=shape)
        check_padding_mask("mask", mask, shape)
        check_padding_mask("encoder_sequence_mask", encoder_sequence_mask, shape)
        check_attention_mask("attention_mask", attention_mask, (shape[0], self.num_heads, shape[1], shape[1]))


@keras.saving.register_keras_serializable(package="keras_transformer")
class DecoderBlock(_Block):
    __doc__ = f"""Causal self-attention, cross-attention to the encoder, feed-forward (section 3.1).

    `block(decoder_sequence, encoder_sequence)` is the block of the paper. `block(decoder_sequence)` has no
    cross-attention, as in decoder-only models. The first call fixes which of the two it is.
    {_BLOCK_ARGS}
    Call arguments:
        decoder_sequence: (B, T, D).
        encoder_sequence: (B, S, D'), the output of the encoder, or `None` for a block without cross-attention.
        decoder_sequence_mask: padding mask (B, T), True = real token. Keras fills it with the mask that the sequence
            carries.
        decoder_attention_mask: for the self-attention, boolean (T, T), (B, T, T) or (B, N, T, T), True = attend.
        encoder_sequence_mask: padding mask (B, S), filled by Keras in the same way.
        encoder_attention_mask: for the cross-attention, boolean (T, S), (B, T, S) or (B, N, T, S), True = attend.
        use_causal_mask: whether position t sees only positions up to t. Defaults to True.
        return_attention_scores: whether to return the attention scores too. Defaults to False.
        training: whether dropout is active.
        mask: the same as `decoder_sequence_mask`, which it replaces; only for a block without cross-attention. Keras
            fills it when the block is called with one tensor.

    Returns:
        (B, T, D) with the mask of the decoder sequence; or that, the self-attention scores (B, N, T, T) and, if the
        block has cross-attention, the cross-attention scores (B, N, T, S).

    Raises:
        ValueError: for sequences that do not have three axes, a width that `num_heads` does not divide, masks that do
            not fit, and calls of another kind than the first.

    Example:
        >>> block = DecoderBlock(num_heads=2, intermediate_dim=32)
        >>> block(np.ones((2, 4, 8), "float32"), np.ones((2, 5, 8), "float32")).shape
        TensorShape([2, 4, 8])
    """

    cross_attention, cross_attention_norm = None, None  # Made by `build` if there is an encoder sequence.

    def build(self, decoder_sequence_shape: Shape, encoder_sequence_shape: Shape | None = None):
        self._build_for(decoder_sequence=decoder_sequence_shape, encoder_sequence=encoder_sequence_shape)
        self.self_attention = self._attention("decoder_sequence", decoder_sequence_shape, "self_attention")
        self.self_attention.build(decoder_sequence_shape)
        self.self_attention_norm = self._norm("self_attention_norm")
        self.self_attention_norm.build(decoder_sequence_shape)
        if encoder_sequence_shape is not None:
            self.cross_attention = self._attention("decoder_sequence", decoder_sequence_shape, "cross_attention")
            self.cross_attention.build(decoder_sequence_shape, encoder_sequence_shape)
            self.cross_attention_norm = self._norm("cross_attention_norm")
            self.cross_attention_norm.build(decoder_sequence_shape)
        for layer in (self.feed_forward, self.feed_forward_norm):
            layer.build(decoder_sequence_shape)

    def compute_output_shape(self, decoder_sequence_shape: Shape, encoder_sequence_shape: Shape | None = None):
        self._check_sequences(decoder_sequence=decoder_sequence_shape, encoder_sequence=encoder_sequence_shape)
        return tuple(decoder_sequence_shape)

    def call(
        self,
        decoder_sequence: Tensor,
        encoder_sequence: Tensor | None = None,
        decoder_sequence_mask: Tensor | None = None,
        decoder_attention_mask: Tensor | None = None,
        encoder_sequence_mask: Tensor | None = None,
        encoder_attention_mask: Tensor | None = None,
        use_causal_mask: bool = True,
        return_attention_scores: bool = False,
        training: bool | None = None,
        mask: Tensor | None = None,
    ):
        masks = {
            "decoder_sequence_mask": decoder_sequence_mask,
            "decoder_attention_mask": decoder_attention_mask,
            "encoder_sequence_mask": encoder_sequence_mask,
            "encoder_attention_mask": encoder_attention_mask,
            "mask": mask,
        }
        self._check_call(decoder_sequence, encoder_sequence, **masks)
        padding_mask = decoder_sequence_mask if mask is None else mask
        x, scores = without_padding(decoder_sequence, padding_mask), ()
        update = self.self_attention(
            self._enter(x, self.self_attention_norm),
            attention_mask=combine(padding_mask, decoder_attention_mask),
            return_attention_scores=return_attention_scores,
            training=training,
            use_causal_mask=use_causal_mask,
        )
        if return_attention_scores:
            update, *scores = update
        x = self._leave(x, update, self.self_attention_norm, training)
        if encoder_sequence is not None:
            update = self.cross_attention(
                self._enter(x, self.cross_attention_norm),
                encoder_sequence,
                value_mask=encoder_sequence_mask,
                attention_mask=encoder_attention_mask,
                return_attention_scores=return_attention_scores,
                training=training,
            )
            if return_attention_scores:
                update, cross_scores = update
                scores = (*scores, cross_scores)
            x = self._leave(x, update, self.cross_attention_norm, training)
        x = self._feed_forward(x, training)
        carry_mask(x, padding_mask)
        return (x, *scores) if return_attention_scores else x

    def _check_call(self, decoder_sequence, encoder_sequence=None, **given):
        """Checks what `build` cannot: the masks, and every call after the first."""
        shape, encoder_shape = shape_of(decoder_sequence), shape_of(encoder_sequence)
        self._check_sequences(decoder_sequence=shape, encoder_sequence=encoder_shape)
        if (encoder_sequence is None) != (self.cross_attention is None):
            built, received = ("without", "with") if self.cross_attention is None else ("with", "without")
            raise ValueError(
                f"Layer {self.name!r} was built by a call {built} `encoder_sequence`, which decided whether it has "
                f"cross-attention. Received: a call {received} it. Create another block for the other kind of call."
            )
        if encoder_sequence is not None and given.get("mask") is not None:
            raise ValueError(
                "`mask` is for blocks that read one sequence: with two it is unclear whose padding it marks. "
                "Received: `mask` together with `encoder_sequence`. Use `decoder_sequence_mask` or "
                "`encoder_sequence_mask`."
            )
        if encoder_sequence is None:
            of_encoder = "encoder_sequence_mask", "encoder_attention_mask"
            wrong = [name for name in of_encoder if given.get(name) is not None]
            if wrong:
                raise ValueError(
                    f"`{wrong[0]}` is a mask of `encoder_sequence`, and the block was called without one. "
                    f"Received: {', '.join(wrong)}. Use `decoder_sequence_mask` or `decoder_attention_mask`."
                )
        check_padding_mask("mask", given.get("mask"), shape)
        for name, other in (("decoder", shape), ("encoder", encoder_shape)):
            if other is not None:
                check_padding_mask(f"{name}_sequence_mask", given.get(f"{name}_sequence_mask"), other)
                pairs = (shape[0], self.num_heads, shape[1], other[1])
                check_attention_mask(f"{name}_attention_mask", given.get(f"{name}_attention_mask"), pairs)

    def decode_step(self, x, cache, cache_update_index, cross_cache=None, self_bias=None, cross_bias=None, num_beams=1):
        """One new position through the block; see `MultiHeadAttention.decode_step` and `.cross_step`.

        Args:
            x: (B * K, D).
            cache: a `GrowingCache` or a `FixedCache`, see `keras_transformer.caches`.
            cache_update_index: scalar integer.
            cross_cache: keys (B * N, H, S) and values (B * N, S, H) of the encoder sequence. Defaults to None, for a
                block without cross-attention.
            self_bias: float32 (L * K,) or (B * N, K, L * K). Defaults to None: attend to all cached positions.
            cross_bias: float32 (B * N, 1, S). Defaults to None, for a block without cross-attention.
            num_beams: K, an integer. Defaults to 1.

        Returns:
            (B * K, D) and the updated cache.
        """
        update, cache = self.self_attention.decode_step(
            self._enter(x, self.self_attention_norm), cache, cache_update_index, self_bias, num_beams
        )
        x = self._leave(x, update, self.self_attention_norm)
        if self.cross_attention is not None:
            update = self.cross_attention.cross_step(
                self._enter(x, self.cross_attention_norm), *cross_cache, cross_bias, num_beams
            )
            x = self._leave(x, update, self.cross_attention_norm)
        return self._feed_forward(x), cache
