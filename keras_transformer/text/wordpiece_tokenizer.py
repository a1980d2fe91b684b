"""Tokenizers of the kind `wordpiece`."""

import re
import unicodedata
from collections.abc import Iterable, Sequence
from functools import cached_property
from typing import Any

from keras_transformer.text.special_ids import UNKNOWN_TOKEN_ID, without_special
from keras_transformer.text.tokenizer import AUTOMATIC_VOCABULARY_SIZE, Tokenizer, TokenizerError, list_of_texts


class WordPieceTokenizer(Tokenizer):
    """`wordpiece`, by keras-nlp and tensorflow-text; cased.

    Args:
        vocabulary: the list of pieces; the first four are the special ones.
    """

    suffix = ".vocab"
    kind = "wordpiece"
    SPECIAL = ("[PAD]", "[UNK]", "[START]", "[END]")
    # Spaces that WordPiece adds and people do not write: before . , ! ? ; : ) ] and %, after ( and [, around ' and -.
    _SPACING = ((r" ([.,!?;:)\]%])", r"\1"), (r"([(\[]) ", r"\1"), (r" ?(['’-]) ?", r"\1"))

    def __init__(self, vocabulary: Sequence[str]):
        if tuple(vocabulary[:4]) != self.SPECIAL:
            raise TokenizerError(f"A WordPiece vocabulary must begin with {self.SPECIAL}. Received: {vocabulary[:4]}.")
        if len(set(vocabulary)) != len(vocabulary) or "" in vocabulary:
            raise TokenizerError("The pieces of a WordPiece vocabulary must be unique and not empty.")
        self.vocabulary = list(vocabulary)
        self.vocabulary_size = len(self.vocabulary)

    @classmethod
    def _train(cls, texts, vocabulary_size):
        import keras_nlp
        import tensorflow as tf

        wanted = vocabulary_size or AUTOMATIC_VOCABULARY_SIZE
        try:
            texts = [unicodedata.normalize("NFC", text) for text in texts]
            vocabulary = keras_nlp.tokenizers.compute_word_piece_vocabulary(
                tf.data.Dataset.from_tensor_slices(texts).batch(1000),
                vocabulary_size=wanted,
                lowercase=False,
                reserved_tokens=list(cls.SPECIAL),
            )
        except StopIteration as error:  # The learner found no word.
            raise TokenizerError("WordPiece could not learn a vocabulary: the text has no words.") from error
        # The learner may miss the size by a little. Less than half of it means that the text has no more pieces.
        if vocabulary_size and len(vocabulary) < wanted / 2:
            raise TokenizerError(
                "`vocabulary_size` is too large for this text: every piece must occur in it. Received: "
                f"vocabulary_size={vocabulary_size} for {len(texts):,} sentences. Try {len(vocabulary)}."
            )
        return cls(vocabulary)

    @classmethod
    def _load(cls, path):
        return cls(path.read_text(encoding="utf-8").split("\n"))

    def _serialized(self):
        return "\n".join(self.vocabulary).encode("utf-8")

    # Python calls the graph methods eagerly. There is one implementation, so the ids cannot differ.

    def tokenize(self, texts: Sequence[str]) -> list[list[int]]:
        texts = list_of_texts(texts)
        return self.graph_tokenize(texts).to_list() if texts else []

    def detokenize(self, token_ids: Iterable[Iterable[int]]) -> list[str]:
        import tensorflow as tf

        rows = [[int(i) for i in ids] for ids in token_ids]
        ids = tf.ragged.constant(rows, tf.int32, ragged_rank=1)
        return [text.decode("utf-8") for text in self.graph_detokenize(ids).numpy()] if rows else []

    def pieces(self, token_ids: Iterable[int]) -> list[str]:
        return [self.vocabulary[int(i)] for i in token_ids]

    @cached_property
    def _graph_tokenizer(self):
        import tensorflow as tf
        import tensorflow_text

        with tf.init_scope():  # Not in the graph that happens to be traced first: it would die with that graph.
            normalizer = tensorflow_text.FastBertNormalizer()  # Control characters become spaces; case stays.
            tokenizer = tensorflow_text.FastWordpieceTokenizer(
                self.vocabulary,
                unknown_token=self.SPECIAL[UNKNOWN_TOKEN_ID],
                token_out_type=tf.int32,
                support_detokenization=True,
            )
        return normalizer, tokenizer

    def graph_tokenize(self, text: Any) -> Any:
        import tensorflow_text

        normalizer, tokenizer = self._graph_tokenizer
        return tokenizer.tokenize(normalizer.normalize(tensorflow_text.normalize_utf8(text, "NFC")))

    def graph_detokenize(self, token_ids: Any) -> Any:
        import tensorflow as tf

        _, tokenizer = self._graph_tokenizer
        token_ids = without_special(token_ids)
        known = (token_ids >= 0) & (token_ids < self.vocabulary_size)  # The kernel reads out of bounds.
        text = tokenizer.detokenize(tf.where(known, token_ids, UNKNOWN_TOKEN_ID))
        text = tf.strings.regex_replace(text, re.escape(self.SPECIAL[UNKNOWN_TOKEN_ID]), "⁇")
        for pattern, replacement in self._SPACING:
            text = tf.strings.regex_replace(text, pattern, replacement)
        return text
