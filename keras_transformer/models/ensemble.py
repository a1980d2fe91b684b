"""Several models that translate together, in one search.

Reference: "Sequence to Sequence Learning with Neural Networks" (Sutskever et al., 2014), section 3.6.
"""

from collections.abc import Sequence
from typing import Any

from keras import ops

from keras_transformer.layers.base import Tensor
from keras_transformer.models.transformer import AttentionScores, Transformer


class Ensemble:
    """Models of the same vocabulary; the logits of a token are the mean of their log probabilities.

    `Translator` and the search take it in place of a `Transformer`. The models may have different sizes. It cannot be
    exported: distil it into one model (`python -m keras_transformer distill`).

    Args:
        models: a list of `Transformer`s with the same vocabulary sizes.

    Attributes:
        models: see above.
        vocabulary_size, target_vocabulary_size: those of the models.
        max_length: the smallest number of learned positions; None if no model has any.
        source_language_token_id: that of the models.
        variables: those of all models.

    Raises:
        ValueError: there is no model, or the sizes differ.

    Example:
        >>> models = [Transformer(11, num_layers=1, num_heads=1, hidden_dim=n, intermediate_dim=8) for n in (4, 8)]
        >>> Ensemble(models)((np.array([[5, 3]]), np.array([[2, 6, 7]]))).shape
        TensorShape([1, 3, 11])
    """

    def __init__(self, models: Sequence[Transformer]):
        self.models = list(models)
        sizes = [(model.vocabulary_size, model.target_vocabulary_size) for model in self.models]
        if len(set(sizes)) != 1:
            raise ValueError(
                "The models of an ensemble must have the same vocabulary: it adds up the log probabilities of a token. "
                f"Received: models with the vocabulary sizes {sizes}. Train them with --vocabulary-from."
            )
        self.vocabulary_size, self.target_vocabulary_size = sizes[0]
        self.max_length = min((model.max_length for model in self.models if model.max_length), default=None)
        self.source_language_token_id = self.models[0].source_language_token_id
        self.variables = [variable for model in self.models for variable in model.variables]

    def __call__(self, inputs):
        """Logits (B, T, V); the arguments are those of a `Transformer`."""
        return _mean([model(inputs) for model in self.models])

    def attention_scores(self, encoder_token_ids: Tensor, decoder_token_ids: Tensor) -> AttentionScores:
        """The `AttentionScores` of the blocks of all models. Heads are averaged: models may have different numbers."""
        of_models = [model.attention_scores(encoder_token_ids, decoder_token_ids) for model in self.models]
        kinds = zip(*of_models, strict=True)
        return AttentionScores(*([ops.mean(x, axis=1, keepdims=True) for one in kind for x in one] for kind in kinds))

    def start_decoding(self, *args, **kwargs) -> Any:
        """The decoder of a batch of sources, see `Transformer.start_decoding`."""
        return _Decoder([model.start_decoding(*args, **kwargs) for model in self.models])


class _Decoder:
    """The decoders of all models: the decoder of a search, see `keras_transformer.search.decoder`."""

    def __init__(self, decoders):
        self.decoders, self.cache = decoders, [decoder.cache for decoder in decoders]

    def step(self, token_ids, cache, index, ancestors=None):
        answers = [
            decoder.step(token_ids, own_cache, index, ancestors)
            for decoder, own_cache in zip(self.decoders, cache, strict=True)
        ]
        return _mean([logits for logits, _ in answers]), [own_cache for _, own_cache in answers]

    def lengthen(self, cache, max_length):
        return [
            decoder.lengthen(own_cache, max_length) for decoder, own_cache in zip(self.decoders, cache, strict=True)
        ]


def _mean(logits):
    """The mean of the log probabilities, (..., V) each."""
    log_probs = [ops.log_softmax(ops.cast(x, "float32"), axis=-1) for x in logits]
    return ops.mean(ops.stack(log_probs), axis=0)
