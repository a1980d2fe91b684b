"""Attention masks as pure functions of tensors.

One convention everywhere: a mask is boolean and `True` means "attend to this". A *padding mask* has shape (B, L) and is
`True` at real tokens; an *attention mask* has shape (B, T, S) and is `True` where query t may look at key s.

Reference: "Attention Is All You Need" (Vaswani et al., 2017), section 3.2.3.
"""

from functools import reduce

from keras import ops


def padding_mask(token_ids, pad_token_id=0):
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


def causal_mask(length):
    """Lets position t see positions 0..t and nothing later (the paper's "masking out illegal connections").

    Args:
        length: T, an integer or a scalar integer tensor.

    Returns:
        A boolean tensor of shape (1, T, T): the lower triangle with its diagonal.

    Example:
        >>> np.asarray(causal_mask(3))[0].tolist()
        [[True, False, False], [True, True, False], [True, True, True]]
    """
    positions = ops.arange(length, dtype="int32")
    return (positions[:, None] >= positions[None, :])[None]


def combine(*masks):
    """Allows only what every given mask allows.

    Args:
        *masks: boolean tensors, or `None` for "no restriction". A padding mask (B, S) says which *keys* are real and
            is spread over all queries; attention masks have shape (B, T, S), where B and T may be 1.

    Returns:
        One boolean attention mask that broadcasts to (B, T, S), or `None` when nothing restricts anything.

    Example:
        >>> np.asarray(combine(padding_mask([[7, 5, 0]]), causal_mask(3))).tolist()
        [[[True, False, False], [True, True, False], [True, True, False]]]
    """
    masks = [ops.cast(mask, "bool") for mask in masks if mask is not None]
    masks = [mask[:, None, :] if len(mask.shape) == 2 else mask for mask in masks]
    return reduce(ops.logical_and, masks) if masks else None


def bias(mask):
    """What to add to attention logits, so that softmax gives exactly 0 wherever something else may be attended to.

    Args:
        mask: boolean tensor of any shape, `True` = attend.

    Returns:
        float32 of the same shape: 0 where `True`, -1e9 where `False`.

    Example:
        >>> np.asarray(bias(padding_mask([[7, 0]]))).tolist()
        [[0.0, -1000000000.0]]
    """
    return ops.where(mask, 0.0, -1e9)
