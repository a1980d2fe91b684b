"""Ids of the special tokens, the same for all tokenizers: 0 padding, 1 unknown, 2 start, 3 end, then placeholders."""

from typing import Any

PAD_TOKEN_ID, UNKNOWN_TOKEN_ID, START_TOKEN_ID, END_TOKEN_ID = range(4)
FIRST_PLACEHOLDER_ID = END_TOKEN_ID + 1


def shifted_right(target_ids: Any) -> Any:
    """The input of the decoder for targets: the start token, then all tokens of the target except the last.

    Args:
        target_ids: the ids of one target, a list or tuple; or a TensorFlow tensor (B, T).

    Returns:
        A list; or a tensor (B, T).
    """
    if isinstance(target_ids, list | tuple):
        return [START_TOKEN_ID, *target_ids[:-1]]
    import tensorflow as tf

    return tf.concat([tf.fill([tf.shape(target_ids)[0], 1], START_TOKEN_ID), target_ids[:, :-1]], axis=1)


def without_special(token_ids: Any) -> Any:
    """(B, L) or ragged -> ragged, without padding, start and end tokens."""
    import tensorflow as tf

    if not isinstance(token_ids, tf.RaggedTensor):
        token_ids = tf.RaggedTensor.from_tensor(token_ids)
    special = (token_ids == PAD_TOKEN_ID) | (token_ids == START_TOKEN_ID) | (token_ids == END_TOKEN_ID)
    return tf.ragged.boolean_mask(token_ids, ~special)
