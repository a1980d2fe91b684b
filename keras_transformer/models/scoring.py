"""How probable given translations are."""

from keras import ops

from keras_transformer.layers.base import Tensor, take_rows
from keras_transformer.text.special_ids import PAD_TOKEN_ID


def token_log_probs(logits: Tensor, labels: Tensor, begins_with_tag: bool = False) -> Tensor:
    """The log probability of each token of given translations.

    Args:
        logits: (B, T, V), from a full forward pass.
        labels: int32 (B, T), the translations, padded.
        begins_with_tag: whether each begins with the tag of its language, see `source_language_token_id` of
            `Transformer`. As in the search, the tag does not count. Defaults to False.

    Returns:
        float32 (B, T), 0 for padding and tags.
    """
    logits = ops.cast(logits, "float32")
    rows, labels_of_rows = ops.reshape(logits, (-1, logits.shape[-1])), ops.reshape(labels, (-1, 1))
    chosen = ops.reshape(take_rows(rows, labels_of_rows), ops.shape(labels))
    log_probs = ops.where(labels == PAD_TOKEN_ID, 0.0, chosen - ops.logsumexp(logits, axis=-1))
    return ops.pad(log_probs[:, 1:], [[0, 0], [1, 0]]) if begins_with_tag else log_probs
