"""What others read of a model's decoder: step by step in a search, or all at once for given translations."""

from typing import Any

import keras
from keras import ops

from keras_transformer.layers.base import Tensor, take_rows
from keras_transformer.text.special_ids import PAD_TOKEN_ID


class Decoder:
    """A model and the sources that it translates: the decoder of a search, see `keras_transformer.search.decoder`.

    Args:
        model: a `Transformer`.
        encoder_token_ids, max_length, num_beams, cache, output_kernel: see `Transformer.start_decoding`.

    Attributes:
        cache: the cache of the first step, a dict with `self`, from `Transformer.init_cache`, and `cross`, from
            `Transformer.init_cross_cache`.
    """

    def __init__(
        self,
        model: Any,
        encoder_token_ids: Tensor,
        max_length: Any,
        num_beams: int = 1,
        cache: str = "growing",
        output_kernel: Tensor | None = None,
    ):
        self.model, self.num_beams = model, num_beams
        # A TensorFlow loop accepts a growing size only if its static size is unknown, so this 0 is computed.
        length = ops.sum(encoder_token_ids[:0]) if cache == "growing" else max_length
        self.cache = {
            "self": model.init_cache(ops.shape(encoder_token_ids)[0], length, num_beams, cache),
            "cross": model.init_cross_cache(*model.encode(encoder_token_ids)),
        }
        if cache == "fixed":
            # Zeros that are computed from the input: a file for devices would store constant ones.
            zero = ops.cast(ops.sum(encoder_token_ids) * 0, model.compute_dtype)
            self.cache["self"] = keras.tree.map_structure(
                lambda x: ops.broadcast_to(zero, ops.shape(x)), self.cache["self"]
            )
        # XLA and devices choose a layout for the product themselves. A single row needs no other one.
        rows = None if encoder_token_ids.shape[0] is None else encoder_token_ids.shape[0] * num_beams
        if output_kernel is None and cache == "growing" and rows != 1:
            output_kernel = model.decoder_embedding.output_kernel()
        self.output_kernel = output_kernel

    def step(self, token_ids: Tensor, cache: Any, index: Tensor, ancestors: Tensor | None = None) -> tuple[Tensor, Any]:
        """Logits (B * K, V) of the next token, and the cache for the next step; see `Transformer.decode_step`."""
        hidden, cache = self.hidden_step(token_ids, cache, index, ancestors)
        return self.model.decoder_embedding.project(hidden, self.output_kernel), cache

    def hidden_step(
        self, token_ids: Tensor, cache: Any, index: Tensor, ancestors: Tensor | None = None
    ) -> tuple[Tensor, Any]:
        """`step` without the projection: hidden states (B * K, D), and the cache for the next step."""
        hidden, new = self.model.decode_hidden(token_ids, cache["self"], index, cache["cross"], ancestors)
        return hidden, {**cache, "self": new}

    def lengthen(self, cache: Any, max_length: int) -> Any:
        """The cache with room for `max_length` positions."""
        return {**cache, "self": [block.lengthen(max_length, self.num_beams) for block in cache["self"]]}


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
