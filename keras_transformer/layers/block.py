"""What encoder and decoder blocks share: arguments, sublayers, and the residual connection around each sublayer.

Reference: "Attention Is All You Need" (Vaswani et al., 2017), section 3.1 and figure 1 (post-norm);
"On Layer Normalization in the Transformer Architecture" (Xiong et al., 2020) for pre-norm.

    post-norm:  x = LayerNorm(x + Dropout(Sublayer(x)))        (`normalize_first=False`, the paper)
    pre-norm:   x = x + Dropout(Sublayer(LayerNorm(x)))        (`normalize_first=True`)
"""

import inspect
from typing import Any

import keras

from keras_transformer.layers.attention import MultiHeadAttention
from keras_transformer.layers.base import (
    Activation,
    DenseLayers,
    Initializer,
    Regularizer,
    even_shares,
    positive_integer,
    positive_number,
    rate,
)
from keras_transformer.layers.feed_forward import DENSE_ARGS, FeedForward


class Block(DenseLayers):
    """Code that both blocks share: arguments, sublayers and the residual connection around each sublayer."""

    # A subclass may set other classes, such as `keras.layers.RMSNormalization`.
    feed_forward_class, norm_class = FeedForward, keras.layers.LayerNormalization

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

    @classmethod
    def make_norm(cls, epsilon: float, dtype: Any, name: str) -> keras.layers.Layer:
        """A normalisation of the blocks' class, as the blocks have it: also for after the last block."""
        norm = cls.norm_class(epsilon=epsilon, dtype=dtype, name=name)
        norm.supports_masking = True  # It changes no length; `RMSNormalization` would drop the mask.
        return norm

    def _norm(self, name):
        return self.make_norm(self.layer_norm_epsilon, self.dtype_policy, name)

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


BLOCK_ARGS = f"""
    Args:
        num_heads: number of attention heads; must divide the width of the input.
        intermediate_dim: width of the feed-forward sublayer.
        dropout: rate in [0, 1) on the output of every sublayer (section 5.4). Defaults to 0.
        attention_dropout: rate in [0, 1) on the attention scores. Defaults to 0.
        activation: any Keras activation, for the feed-forward sublayer. Defaults to `"relu"`.
        normalize_first: pre-norm if True, post-norm as in the paper if False. Defaults to False.
        layer_norm_epsilon: Defaults to 1e-6.
        seed: of every dropout; give each block its own. Defaults to None: that of `keras.utils.set_random_seed`.
        {DENSE_ARGS}
"""
