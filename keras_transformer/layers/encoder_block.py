"""The encoder block; `keras_transformer.layers.block` has what both blocks share."""

import keras

from keras_transformer.layers.base import (
    Shape,
    Tensor,
    carry_mask,
    shape_of,
)
from keras_transformer.layers.block import BLOCK_ARGS, Block
from keras_transformer.layers.masks import check_attention_mask, check_padding_mask, combine, without_padding


@keras.saving.register_keras_serializable(package="keras_transformer")
class EncoderBlock(Block):
    __doc__ = f"""Self-attention, then feed-forward (section 3.1).
    {BLOCK_ARGS}
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

    def compute_output_shape(self, encoder_sequence_shape: Shape) -> Shape:
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
