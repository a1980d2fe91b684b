"""What a `Translator` returns: translations with their scores, sentences, alignments and confidence."""

from typing import NamedTuple

import numpy as np


class Attention(NamedTuple):
    """The cross-attention of one translation.

    Attributes:
        source_tokens: S strings, the last one the end token.
        target_tokens: T strings.
        scores: cross-attention scores, float32 (layers, N, T, S). Row t belongs to the step that wrote token t.
        num_tags: number of language tags that the source begins with, 0 or 1. They align with nothing.
    """

    source_tokens: list
    target_tokens: list
    scores: np.ndarray
    num_tags: int = 0

    def alignment(self, layer: int | None = None) -> list:
        """For each target token, the index of the source token with the largest score, averaged over heads.

        Args:
            layer: index of the decoder block. Defaults to all; see `mean_scores`.
        """
        return [self.num_tags + int(i) for i in self.mean_scores(layer)[:, self.num_tags :].argmax(axis=-1)]

    def mean_scores(self, layer: int | None = None) -> np.ndarray:
        """Scores (T, S), averaged over heads and layers.

        Args:
            layer: index of the decoder block. Defaults to all, each with the fourth power of its agreement as a weight:
                the share of target tokens that are also the target token with the largest score of their source token.
                Which layer aligns best differs from model to model, and this share tells it without references.
        """
        scores = self.scores.mean(axis=1)  # (layers, T, S)
        if layer is not None:
            return scores[layer]
        weights = self.agreement() ** 4 + 1e-6
        return np.tensordot(weights / weights.sum(), scores, axes=1)

    def agreement(self) -> np.ndarray:
        """The agreement of each layer, from 0 to 1, see `mean_scores`; tags and end tokens do not count."""
        scores = self.scores.mean(axis=1)[:, :-1, self.num_tags : -1]
        if not scores.size:
            return np.ones(len(scores))
        forward, backward = scores.argmax(axis=2), scores.argmax(axis=1)  # (layers, T - 1), (layers, S - 1)
        back = np.take_along_axis(backward, forward, axis=1)
        return (back == np.arange(back.shape[1])).mean(axis=1)


class Translation(NamedTuple):
    """A translation.

    Attributes:
        text: a string.
        score: the sum of log probabilities divided by the length penalty; 0 for an empty source.
        token_ids: its tokens, including the end token if there is one.
        attention: `Attention`, if it was requested.
        truncated: whether the source had more tokens than `max_source_length`, so that only its beginning was
            translated.
        parts: what the placeholders 0, 1, ... among `token_ids` stand for; see `keras_transformer.text.placeholders`.
        confidence: `keras_transformer.text.confidence.Confidence`, if it was requested.
        lost: parts of the source that must not change and that the translation does not have. There are some if the
            source has more of them than the vocabulary has placeholders. Without placeholders, nothing is looked for.
    """

    text: str
    score: float
    token_ids: tuple = ()
    attention: Attention | None = None
    truncated: bool = False
    parts: tuple = ()
    confidence: object = None
    lost: tuple = ()


class SentenceTranslation(NamedTuple):
    """A sentence of a text, and its translation.

    Attributes:
        source_span: where the sentence is in the source: the places of its first character and after its last one.
        target_span: where its translation is in the translated text.
        translation: `Translation`.
    """

    source_span: tuple
    target_span: tuple
    translation: Translation


class TextTranslation(NamedTuple):
    """A translated text.

    Attributes:
        text: a string.
        sentences: a list of `SentenceTranslation`s.
    """

    text: str
    sentences: list


class TargetScore(NamedTuple):
    """How probable a given translation is.

    Attributes:
        log_prob: its log probability, the sum of `token_log_probs`.
        tokens: strings, the last one the end token.
        token_log_probs: the log probability of each token, given the tokens before it.
        truncated: whether the source had more tokens than `max_source_length`, so that only its beginning was read.
    """

    log_prob: float
    tokens: list
    token_log_probs: list
    truncated: bool = False
