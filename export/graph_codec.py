"""What a text becomes before the model sees it, and after, in a TensorFlow graph: `Codec` for strings (B,)."""

from typing import NamedTuple

import tensorflow as tf

from keras_transformer.search.search import placeholders_of
from keras_transformer.text.graph import graph_has_words, graph_protect, graph_protect_target, graph_restored
from keras_transformer.text.special_ids import PAD_TOKEN_ID, UNKNOWN_TOKEN_ID, without_special
from keras_transformer.translation.codec import Codec


class Sentences(NamedTuple):
    """Texts as the model gets them; see `keras_transformer.translation.codec.Sentence`.

    Attributes:
        ids: ragged int32 (B, None): tags and tokens, cut, without end tokens.
        text: string (B,), with placeholders; "" for a text without them. None for given ids.
        parts: string (B, N), "" for a part whose placeholder was cut; None if the vocabulary has no placeholders.
        unchanged: bool (B,), whether there is nothing to translate but such parts.
        truncated: bool (B,).
    """

    ids: tf.RaggedTensor
    text: tf.Tensor | None
    parts: tf.Tensor | None
    unchanged: tf.Tensor
    truncated: tf.Tensor


class GraphCodec:
    """`Codec` as TensorFlow operations, with the same words."""

    def __init__(self, codec: Codec):
        self.codec = codec
        self.languages = codec.source_tokenizer.languages

    def encode(self, text: tf.Tensor, target_language: tf.Tensor | None = None) -> Sentences:
        """`Sentences` of strings (B,) and of their target languages (B,), by default the codec's."""
        text, parts = self._protected(text)
        ids = self.codec.source_tokenizer.graph_tokenize(text)
        if target_language is not None or self.codec.target_language is not None:
            ids = self._tagged(ids, target_language)
        sentences = self._cut(ids)
        if parts is None:
            return sentences._replace(text=tf.fill(tf.shape(text), ""))
        text = tf.where(parts[:, 0] == "", "", text)
        unchanged = (text != "") & ~graph_has_words(text)
        present = placeholders_of(sentences.ids.to_tensor(PAD_TOKEN_ID), self.codec.num_placeholders)
        parts = tf.where(present | unchanged[:, None], parts, "")
        return Sentences(sentences.ids, text, parts, unchanged, sentences.truncated & ~unchanged)

    def encode_ids(self, token_ids: tf.Tensor) -> Sentences:
        """`Sentences` of given token ids (B, S)."""
        return self._cut(without_special(known_ids(token_ids, self.codec.source_tokenizer.vocabulary_size)))

    def _cut(self, ids):
        limit = self.codec.max_source_length - 1
        return Sentences(ids[:, :limit], None, None, tf.zeros([ids.nrows()], tf.bool), ids.row_lengths() > limit)

    def _protected(self, text):
        count = self.codec.num_placeholders
        return graph_protect(text, count) if count else (text, None)

    def _tagged(self, ids, target_language):
        """Ragged token ids with the tags of languages (B,), or of the codec's language, before them."""
        tags = tf.fill([ids.nrows()], self.languages.get(self.codec.target_language, 0))
        if target_language is not None:
            for language, tag in self.languages.items():
                tags = tf.where(target_language == language, tag, tags)
        tagged = (tags > 0) & (ids.row_lengths() > 0)  # A text without tokens is not translated.
        tags = tf.RaggedTensor.from_row_lengths(tf.boolean_mask(tags, tagged), tf.cast(tagged, ids.row_splits.dtype))
        return tf.concat([tags, ids], axis=1)

    def used_language(self, target_language: tf.Tensor) -> tf.Tensor:
        """The languages (B,) that `encode` takes for these."""
        known = tf.reduce_any(target_language[:, None] == list(self.languages), axis=1)
        return tf.where(known, target_language, self.codec.target_language or "")

    def fits(self, text: tf.Tensor) -> tf.Tensor:
        """Whether each text has few enough tokens, also with a tag before them: bool (B,)."""
        lengths = self.codec.source_tokenizer.graph_tokenize(self._protected(text)[0]).row_lengths()
        return lengths + bool(self.languages) < self.codec.max_source_length

    def encode_targets(
        self, targets: tf.Tensor, sources: tf.Tensor, sentences: Sentences, max_length: int
    ) -> tf.RaggedTensor:
        """Ragged token ids of translations (B,) of the texts `sources` (B,), cut, without end tokens."""
        if self.codec.num_placeholders:
            targets = graph_protect_target(targets, self._protected(sources)[1])
        ids = self.codec.target_tokenizer.graph_tokenize(targets)
        if self.codec.begins_with_tag:
            ids = tf.concat([sentences.ids[:, :1], ids], axis=1)
        return ids[:, : max_length - 1]

    def decode(self, token_ids: tf.Tensor, sentences: Sentences) -> tf.Tensor:
        """The translations (B, K) of `Sentences` from token ids (B, K, L)."""
        batch_size, count, _ = tf.unstack(tf.shape(token_ids))
        token_ids = tf.reshape(token_ids, [batch_size * count, -1])
        texts = self.codec.target_tokenizer.graph_detokenize(token_ids)
        if sentences.parts is not None:
            source, parts, unchanged = (
                tf.repeat(x, count, axis=0) for x in (sentences.text, sentences.parts, sentences.unchanged)
            )
            texts = graph_restored(tf.where(unchanged, source, texts), parts, source)
        return tf.reshape(texts, [batch_size, count])


def known_ids(token_ids: tf.Tensor, vocabulary_size: int) -> tf.Tensor:
    """Ids, with the unknown token for ids outside the vocabulary: with these, kernels would read foreign memory.

    An error instead would also fail the requests of other clients that a server puts into the same batch.
    """
    known = (token_ids >= 0) & (token_ids < vocabulary_size)
    return tf.where(known, token_ids, UNKNOWN_TOKEN_ID)
