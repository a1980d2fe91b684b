"""Encoder and decoder blocks, side by side.

Reference: "Attention Is All You Need" (Vaswani et al., 2017), section 3.1 and figure 1 (post-norm);
"On Layer Normalization in the Transformer Architecture" (Xiong et al., 2020) for pre-norm.

    post-norm:  x = LayerNorm(x + Dropout(Sublayer(x)))        (`normalize_first=False`, the paper)
    pre-norm:   x = x + Dropout(Sublayer(LayerNorm(x)))        (`normalize_first=True`)
"""

import keras

from keras_transformer.attention import MultiHeadAttention


@keras.saving.register_keras_serializable(package="keras_transformer")
class FeedForward(keras.layers.Layer):
    """Two dense layers with an activation between, the same at every position (section 3.3).

        FFN(x) = activation(x W1 + b1) W2 + b2

    Args:
        intermediate_dim: width between the two layers.
        activation: any Keras activation. Defaults to `"relu"`.
        **kwargs: `name`, `dtype`, `trainable`.

    Call arguments:
        inputs: (..., D).

    Returns:
        (..., D).

    Example:
        >>> FeedForward(intermediate_dim=32, activation="gelu")(np.ones((2, 5, 8), "float32")).shape
        TensorShape([2, 5, 8])
    """

    def __init__(self, intermediate_dim, activation="relu", **kwargs):
        super().__init__(**kwargs)
        self.supports_masking = True
        self.intermediate_dim = intermediate_dim
        self.activation = keras.activations.get(activation)
        self.intermediate_dense = keras.layers.Dense(
            intermediate_dim, activation=self.activation, dtype=self.dtype_policy, name="intermediate"
        )

    def build(self, inputs_shape):
        self.intermediate_dense.build(inputs_shape)
        self.output_dense = keras.layers.Dense(inputs_shape[-1], dtype=self.dtype_policy, name="output")
        self.output_dense.build((*inputs_shape[:-1], self.intermediate_dim))

    def call(self, inputs):
        return self.output_dense(self.intermediate_dense(inputs))

    def get_config(self):
        return {
            **super().get_config(),
            "intermediate_dim": self.intermediate_dim,
            "activation": keras.activations.serialize(self.activation),
        }


class _Block(keras.layers.Layer):
    """What both blocks share: their arguments, their sublayers and the residual connection around each."""

    feed_forward_class = FeedForward  # A subclass may have another.

    def __init__(
        self,
        num_heads,
        intermediate_dim,
        dropout=0.0,
        attention_dropout=0.0,
        activation="relu",
        normalize_first=False,
        layer_norm_epsilon=1e-6,
        **kwargs,
    ):
        super().__init__(**kwargs)
        if num_heads < 1:
            raise ValueError(f"`num_heads` must be at least 1. Received: num_heads={num_heads}.")
        self.supports_masking = True
        self.num_heads = num_heads
        self.intermediate_dim = intermediate_dim
        self.dropout = dropout
        self.attention_dropout = attention_dropout
        self.activation = keras.activations.get(activation)
        self.normalize_first = normalize_first
        self.layer_norm_epsilon = layer_norm_epsilon
        self.feed_forward = self.feed_forward_class(
            intermediate_dim, self.activation, dtype=self.dtype_policy, name="feed_forward"
        )
        self.feed_forward_norm = self._norm("feed_forward_norm")
        self.dropout_layer = keras.layers.Dropout(dropout, dtype=self.dtype_policy, name="dropout")

    def _norm(self, name):
        return keras.layers.LayerNormalization(epsilon=self.layer_norm_epsilon, dtype=self.dtype_policy, name=name)

    def _attention(self, hidden_dim, name):
        if hidden_dim % self.num_heads:
            fits = next(n for n in range(self.num_heads, 0, -1) if hidden_dim % n == 0)
            raise ValueError(
                "`hidden_dim` must be divisible by `num_heads`: every head gets an equal share. "
                f"Received: hidden_dim={hidden_dim}, num_heads={self.num_heads}. Try num_heads={fits}."
            )
        return MultiHeadAttention(
            self.num_heads,
            hidden_dim // self.num_heads,
            dropout=self.attention_dropout,
            dtype=self.dtype_policy,
            name=name,
        )

    def _enter(self, x, norm):
        """What a sublayer reads."""
        return norm(x) if self.normalize_first else x

    def _leave(self, x, update, norm, training=None):
        """Adds what a sublayer said to what it read: dropout, residual connection, normalisation."""
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
        }


_BLOCK_ARGS = """
    Args:
        num_heads: number of attention heads; must divide the width of the input.
        intermediate_dim: width of the feed-forward sublayer.
        dropout: rate in [0, 1) on the output of every sublayer (section 5.4). Defaults to 0.
        attention_dropout: rate in [0, 1) on the attention scores. Defaults to 0.
        activation: any Keras activation, for the feed-forward sublayer. Defaults to `"relu"`.
        normalize_first: pre-norm if True, post-norm as in the paper if False. Defaults to False.
        layer_norm_epsilon: Defaults to 1e-6.
        **kwargs: `name`, `dtype`, `trainable`.
"""


@keras.saving.register_keras_serializable(package="keras_transformer")
class EncoderBlock(_Block):
    __doc__ = f"""Self-attention, then feed-forward (section 3.1).
    {_BLOCK_ARGS}
    Call arguments:
        encoder_sequence: (B, S, D).
        mask: padding mask (B, S), True = real token. Keras fills it with the mask that the sequence carries.
        return_attention_scores: whether to return the attention scores too. Defaults to False.
        training: whether dropout is active.

    Returns:
        (B, S, D) with the mask of the input, or a pair of that and the attention scores (B, N, S, S).

    Example:
        >>> EncoderBlock(num_heads=2, intermediate_dim=32)(np.ones((2, 5, 8), "float32")).shape
        TensorShape([2, 5, 8])
    """

    def build(self, encoder_sequence_shape):
        self.self_attention = self._attention(encoder_sequence_shape[-1], "self_attention")
        self.self_attention.build(encoder_sequence_shape)
        self.self_attention_norm = self._norm("self_attention_norm")
        for layer in (self.self_attention_norm, self.feed_forward, self.feed_forward_norm):
            layer.build(encoder_sequence_shape)

    def call(self, encoder_sequence, mask=None, return_attention_scores=False, training=None):
        x = encoder_sequence
        update = self.self_attention(
            self._enter(x, self.self_attention_norm),
            mask=mask,
            return_attention_scores=return_attention_scores,
            training=training,
        )
        update, scores = update if return_attention_scores else (update, None)
        x = self._leave(x, update, self.self_attention_norm, training)
        x = self._feed_forward(x, training)
        return (x, scores) if return_attention_scores else x


@keras.saving.register_keras_serializable(package="keras_transformer")
class DecoderBlock(_Block):
    __doc__ = f"""Causal self-attention, cross-attention to the encoder, feed-forward (section 3.1).
    {_BLOCK_ARGS}
    Call arguments:
        decoder_sequence: (B, T, D).
        encoder_sequence: (B, S, D'), the output of the encoder.
        decoder_sequence_mask, encoder_sequence_mask: padding masks (B, T) and (B, S), True = real token. Keras fills
            them with the masks that the sequences carry.
        return_attention_scores: whether to return the attention scores too. Defaults to False.
        training: whether dropout is active.

    Returns:
        (B, T, D) with the mask of the decoder sequence, or a triple of that, the self-attention scores (B, N, T, T)
        and the cross-attention scores (B, N, T, S).

    Example:
        >>> block = DecoderBlock(num_heads=2, intermediate_dim=32)
        >>> block(np.ones((2, 4, 8), "float32"), np.ones((2, 5, 8), "float32")).shape
        TensorShape([2, 4, 8])
    """

    def build(self, decoder_sequence_shape, encoder_sequence_shape):
        self.self_attention = self._attention(decoder_sequence_shape[-1], "self_attention")
        self.self_attention.build(decoder_sequence_shape)
        self.self_attention_norm = self._norm("self_attention_norm")
        self.cross_attention = self._attention(decoder_sequence_shape[-1], "cross_attention")
        self.cross_attention.build(decoder_sequence_shape, encoder_sequence_shape)
        self.cross_attention_norm = self._norm("cross_attention_norm")
        for layer in (
            self.self_attention_norm,
            self.cross_attention_norm,
            self.feed_forward,
            self.feed_forward_norm,
        ):
            layer.build(decoder_sequence_shape)

    def call(
        self,
        decoder_sequence,
        encoder_sequence,
        decoder_sequence_mask=None,
        encoder_sequence_mask=None,
        return_attention_scores=False,
        training=None,
    ):
        x = decoder_sequence
        update = self.self_attention(
            self._enter(x, self.self_attention_norm),
            mask=decoder_sequence_mask,
            use_causal_mask=True,
            return_attention_scores=return_attention_scores,
            training=training,
        )
        update, self_scores = update if return_attention_scores else (update, None)
        x = self._leave(x, update, self.self_attention_norm, training)
        update = self.cross_attention(
            self._enter(x, self.cross_attention_norm),
            encoder_sequence,
            value_mask=encoder_sequence_mask,
            return_attention_scores=return_attention_scores,
            training=training,
        )
        update, cross_scores = update if return_attention_scores else (update, None)
        x = self._leave(x, update, self.cross_attention_norm, training)
        x = self._feed_forward(x, training)
        return (x, self_scores, cross_scores) if return_attention_scores else x

    def decode_step(
        self, x, cache, cross_cache, cache_update_index, self_bias, cross_bias, num_beams=1, in_place=False
    ):
        """One new position through the block; see `MultiHeadAttention.decode_step` and `.cross_step`.

        Args:
            x: (B * K, D).
            cache: keys (B * N, H, L * K) and values (B * N, L * K, H) of the positions so far.
            cross_cache: keys (B * N, H, S) and values (B * N, S, H) of the encoder sequence.
            cache_update_index: scalar integer.
            self_bias: float32 (L * K,) or (B, 1, K, L * K), or None.
            cross_bias: float32 (B * N, 1, S).
            num_beams: K, an integer. Defaults to 1.
            in_place: see `update_cache`. Defaults to False.

        Returns:
            (B * K, D) and the updated cache.
        """
        update, cache = self.self_attention.decode_step(
            self._enter(x, self.self_attention_norm), cache, cache_update_index, self_bias, num_beams, in_place
        )
        x = self._leave(x, update, self.self_attention_norm)
        update = self.cross_attention.cross_step(
            self._enter(x, self.cross_attention_norm), *cross_cache, cross_bias, num_beams
        )
        x = self._leave(x, update, self.cross_attention_norm)
        return self._feed_forward(x), cache
