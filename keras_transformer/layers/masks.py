"""Attention masks as pure functions of tensors.

One convention everywhere: a mask is boolean and `True` means "attend to this". A *padding mask* has shape (B, L) and is
`True` at real tokens; an *attention mask* has shape (T, S), (B, T, S) or (B, N, T, S), as in Keras, and is `True` where
query t may attend to key s. Axes of size 1 broadcast. Zeros and ones of any dtype are read as `False` and `True`.

Reference: "Attention Is All You Need" (Vaswani et al., 2017), section 3.2.3.
"""

from functools import reduce

from keras import ops

from keras_transformer.layers.base import Shape, Tensor


def padding_mask(token_ids: Tensor, pad_token_id: int = 0) -> Tensor:
    """Marks the real tokens of a padded batch.

    Args:
        token_ids: integer tensor of any shape, usually (B, L).
        pad_token_id: the id that fills up short rows. Defaults to 0.

    Returns:
        A boolean tensor of the same shape, `True` = real token.

    Example:
        >>> np.asarray(padding_mask([[7, 5, 0], [4, 0, 0]])).tolist()
        [[True, True, False], [True, False, False]]
    """
    return ops.not_equal(token_ids, pad_token_id)


def causal_mask(length: int | Tensor, value_length: int | Tensor | None = None) -> Tensor:
    """Lets position t attend to positions 0..t and none later (the paper's "masking out illegal connections").

    Args:
        length: T, an integer or a scalar integer tensor.
        value_length: S, an integer or a scalar integer tensor. Defaults to T.

    Returns:
        A boolean tensor of shape (1, T, S), `True` where s <= t. If S = T, it is the lower triangle and the diagonal.

    Example:
        >>> np.asarray(causal_mask(3))[0].tolist()
        [[True, False, False], [True, True, False], [True, True, True]]
    """
    positions = ops.arange(length, dtype="int32")
    value_positions = positions if value_length is None else ops.arange(value_length, dtype="int32")
    return ops.expand_dims(positions, (0, 2)) >= value_positions


def combine(padding_mask: Tensor | None, *attention_masks: Tensor | None) -> Tensor | None:
    """One mask that is `True` only where every given mask is.

    Args:
        padding_mask: (B, S), `True` at real *keys*, for all heads and queries. `None`: all keys are real.
        *attention_masks: each (T, S), (B, T, S) or (B, N, T, S), or `None`.

    Returns:
        One boolean attention mask of four axes, which broadcasts to (B, N, T, S), or `None` if all masks are `None`.

    Example:
        >>> np.asarray(combine(padding_mask([[7, 5, 0]]), causal_mask(3)))[0, 0].tolist()
        [[True, False, False], [True, True, False], [True, True, False]]
    """
    masks = [ops.convert_to_tensor(mask, dtype="bool") for mask in attention_masks if mask is not None]
    masks = [ops.expand_dims(mask, _NEW_AXES[len(mask.shape)]) for mask in masks]
    if padding_mask is not None:
        masks = [ops.expand_dims(ops.convert_to_tensor(padding_mask, dtype="bool"), (1, 2)), *masks]
    return reduce(ops.logical_and, masks) if masks else None


# The axes that an attention mask lacks, by the number of axes it has. Not `mask[:, None]`: LiteRT has no built-in
# operation for a new axis in an index of a tensor whose size is not known.
_NEW_AXES = {2: (0, 1), 3: (1,), 4: ()}


def without_padding(x: Tensor, padding_mask: Tensor | None) -> Tensor:
    """x with zeros in place of what padding holds, so that a product with it is zero: 0 * NaN and 0 * inf are not.

    Args:
        x: (B, L, D).
        padding_mask: (B, L), `True` = real token. `None`: all tokens are real.

    Returns:
        (B, L, D). The gradient at padding is exactly zero.

    Example:
        >>> np.asarray(without_padding(np.array([[[1.0], [np.nan]]]), [[True, False]])).tolist()
        [[[1.0], [0.0]]]
    """
    if padding_mask is None:
        return x
    real = ops.expand_dims(ops.convert_to_tensor(padding_mask, dtype="bool"), -1)
    return ops.where(real, x, ops.zeros((), x.dtype))


def check_padding_mask(name: str, mask: Tensor | None, sequence_shape: Shape) -> None:
    """Raises a ValueError unless the static shape of `mask` broadcasts to (B, L) of `sequence_shape` (B, L, D)."""
    if mask is None:
        return
    shape = _shape(mask)
    if not _broadcasts(shape, sequence_shape[:2]):
        raise ValueError(
            f"`{name}` must be a padding mask of shape (batch, length), like its sequence: True = real token. "
            f"Received: shape={shape} for a sequence of shape {tuple(sequence_shape)}. "
            "Masks of pairs of positions are passed as attention masks."
        )


def check_attention_mask(name: str, mask: Tensor | None, scores_shape: Shape) -> None:
    """Raises a ValueError unless the static shape of `mask` broadcasts to `scores_shape` (B, N, T, S)."""
    if mask is None:
        return
    shape, (batch, _, *pair) = _shape(mask), scores_shape
    allowed = {2: pair, 3: (batch, *pair), 4: scores_shape}
    if len(shape) not in allowed or not _broadcasts(shape, allowed[len(shape)]):
        raise ValueError(
            f"`{name}` must have shape (T, S), (B, T, S) or (B, N, T, S), or 1 in place of a size: True = query t may "
            f"attend to key s. Received: shape={shape} for (B, N, T, S)={tuple(scores_shape)}. "
            "Padding masks (B, S) have separate arguments, such as `mask`."
        )


def _shape(mask):
    return tuple(mask.shape if hasattr(mask, "shape") else ops.convert_to_tensor(mask).shape)


def _broadcasts(shape, onto):
    """Whether `shape` may broadcast to `onto`, both of the same rank. `None` is a size that is not known yet."""
    return len(shape) == len(onto) and all(
        size in (None, 1) or other in (None, size) for size, other in zip(shape, onto, strict=True)
    )


def bias(mask: Tensor) -> Tensor:
    """The number to add to each attention logit: softmax then gives masked keys exactly 0, if any key is not masked.

    Args:
        mask: boolean tensor of any shape, `True` = attend.

    Returns:
        float32 of the same shape: 0 where `True`, -1e9 where `False`.

    Example:
        >>> np.asarray(bias(padding_mask([[7, 0]]))).tolist()
        [[0.0, -1000000000.0]]
    """
    return ops.where(mask, 0.0, -1e9)
