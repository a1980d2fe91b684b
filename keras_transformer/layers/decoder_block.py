"""The decoder block; `keras_transformer.layers.block` has what both blocks share."""

from typing import Any

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
class DecoderBlock(Block):
    __doc__ = f"""Causal self-attention, cross-attention to the encoder, feed-forward (section 3.1).

    `block(decoder_sequence, encoder_sequence)` is the block of the paper. `block(decoder_sequence)` has no
    cross-attention, as in decoder-only models. The first call fixes which of the two it is.
    {BLOCK_ARGS}
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

    def compute_output_shape(self, decoder_sequence_shape: Shape, encoder_sequence_shape: Shape | None = None) -> Shape:
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

    def decode_step(
        self,
        x: Tensor,
        cache: Any,
        cache_update_index: Tensor,
        cross_cache: Any = None,
        self_bias: Tensor | None = None,
        cross_bias: Tensor | None = None,
        num_beams: int = 1,
    ) -> tuple[Tensor, Any]:
        """One new position through the block; see `MultiHeadAttention.decode_step` and `.cross_step`.

        Args:
            x: (B * K, D).
            cache: a `GrowingCache` or a `FixedCache`, see `keras_transformer.layers.caches`.
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
