"""Tokenizers of the kinds `unigram` and `bpe`."""

import io
import math
import re
from bisect import bisect
from collections.abc import Iterable, Sequence
from functools import cached_property, lru_cache
from itertools import accumulate, takewhile
from random import Random
from typing import Any

from keras_transformer.text.placeholders import placeholder
from keras_transformer.text.sentencepiece_model import BPE, CONTROL, UNIGRAM, message_class
from keras_transformer.text.special_ids import (
    END_TOKEN_ID,
    FIRST_PLACEHOLDER_ID,
    PAD_TOKEN_ID,
    START_TOKEN_ID,
    UNKNOWN_TOKEN_ID,
    without_special,
)
from keras_transformer.text.tokenizer import (
    AUTOMATIC_VOCABULARY_SIZE,
    LANGUAGE_TAG,
    Tokenizer,
    TokenizerError,
    list_of_texts,
)

# The last private-use character of Unicode: no text has it.
_UNKNOWN_CHARACTER = "\U0010fffd"


class SentencePieceTokenizer(Tokenizer):
    """`unigram` and `bpe`, by the sentencepiece library.

    Args:
        model: the serialized SentencePiece model, bytes.
    """

    suffix = ".spm"

    def __init__(self, model: bytes):
        import sentencepiece

        if not model:
            raise TokenizerError("A SentencePiece model is never empty. Received: 0 bytes.")
        self.model = model
        self._processor = sentencepiece.SentencePieceProcessor(model_proto=model)
        self.kind = {UNIGRAM: "unigram", BPE: "bpe"}[message_class().FromString(model).trainer_spec.model_type]
        self.vocabulary_size = self._processor.vocab_size()
        special = tuple(getattr(self._processor, name)() for name in ("pad_id", "unk_id", "bos_id", "eos_id"))
        if special != (PAD_TOKEN_ID, UNKNOWN_TOKEN_ID, START_TOKEN_ID, END_TOKEN_ID):
            raise TokenizerError(
                "A SentencePiece model must have pad 0, unk 1, bos 2, eos 3: the model and the exports rely on them. "
                f"Received: {special}. Train it with `Tokenizer.train`."
            )
        pieces = self.pieces(range(FIRST_PLACEHOLDER_ID, self.vocabulary_size))
        is_placeholder = (piece == placeholder(number) for number, piece in enumerate(pieces))
        self.num_placeholders = sum(takewhile(bool, is_placeholder))
        tags = {i: LANGUAGE_TAG.fullmatch(piece) for i, piece in enumerate(pieces, FIRST_PLACEHOLDER_ID)}
        self.languages = {tag[1]: i for i, tag in tags.items() if tag}
        self.hidden_languages = {name: i for name, i in self.languages.items() if self._processor.is_control(i)}
        # Limited, because a large corpus has many words, and each entry holds up to 64 segmentations.
        self._segmentations = lru_cache(maxsize=50_000)(self._find_segmentations)

    @classmethod
    def _train(cls, texts, vocabulary_size, kind, seed, num_placeholders, languages=()):
        size = vocabulary_size or AUTOMATIC_VOCABULARY_SIZE
        others = kind, seed, num_placeholders, languages
        try:
            return cls(_learn(texts, size, *others, exact=vocabulary_size is not None))
        except RuntimeError as error:
            possible = _possible_size(str(error))
            if possible is None:
                raise TokenizerError(f"SentencePiece could not learn a vocabulary: {error}") from error
            if vocabulary_size is None:
                return cls(_learn(texts, possible, *others, exact=False))
            too = "large" if possible < size else "small"
            if too == "small":  # The text may give fewer pieces than the proposed size.
                possible = min(possible, cls._train(texts, None, *others).vocabulary_size)
            raise TokenizerError(
                f"`vocabulary_size` is too {too} for this text: there must be room for every character, and every "
                f"piece must occur in it. Received: vocabulary_size={vocabulary_size} for {len(texts):,} sentences. "
                f"Try {possible}."
            ) from error

    @classmethod
    def _load(cls, path):
        return cls(path.read_bytes())

    def _serialized(self):
        return self.model

    def tokenize(self, texts: Sequence[str]) -> list[list[int]]:
        # For a list of texts, SentencePiece starts threads: that takes longer than 64 texts do, and 4 ms on busy cores.
        return [self._processor.encode(text) for text in list_of_texts(texts)]

    def resample(self, token_ids: Sequence[Sequence[int]], alpha: float, random: Random) -> list[list[int]]:
        if self.kind != "unigram":
            return super().resample(token_ids, alpha, random)
        # SentencePiece's own sampling is not used: its random numbers differ between processes even with a fixed seed.
        draw, pieces, rows = random.random, self._all_pieces, []
        for ids in token_ids:
            row = []
            for word in "".join([pieces[i] for i in ids]).split("\u2581")[1:]:
                segmentations, cumulated = self._segmentations(word, alpha)
                row += segmentations[bisect(cumulated, draw() * cumulated[-1])]
            rows.append(row)
        return rows

    @cached_property
    def _all_pieces(self):
        """The pieces of all ids. The unknown token is a character that is unknown, too."""
        pieces = self.pieces(range(self.vocabulary_size))
        pieces[UNKNOWN_TOKEN_ID] = _UNKNOWN_CHARACTER
        return pieces

    @cached_property
    def _scores(self):
        """The log probabilities of all ids."""
        return [self._processor.get_score(i) for i in range(self.vocabulary_size)]

    def __reduce__(self):  # For the processes that tokenize large corpora.
        return type(self), (self.model,)

    def _find_segmentations(self, word, alpha):
        """The best segmentations of a word, and the running sum of their probabilities to the power of alpha."""
        # A piece never crosses a word boundary, so each word can be drawn separately.
        segmentations = self._processor.nbest_encode(word, nbest_size=64) or [[]]

        def placeholders(ids):
            return [i for i in ids if 0 <= i - FIRST_PLACEHOLDER_ID < self.num_placeholders]

        if whole := placeholders(segmentations[0]):  # Only the best segmentation surely takes them as a whole.
            segmentations = [ids for ids in segmentations if placeholders(ids) == whole]
        scores = [alpha * sum([self._scores[i] for i in ids]) for ids in segmentations]
        largest = max(scores)
        return segmentations, list(accumulate(math.exp(score - largest) for score in scores))

    def detokenize(self, token_ids: Iterable[Iterable[int]]) -> list[str]:
        return [self._processor.decode([int(i) for i in ids]) for ids in token_ids]

    def pieces(self, token_ids: Iterable[int]) -> list[str]:
        return [self._processor.id_to_piece(int(i)) for i in token_ids]

    @cached_property
    def _graph_tokenizer(self):
        import tensorflow as tf
        import tensorflow_text

        with tf.init_scope():  # Not in the graph that happens to be traced first: it would die with that graph.
            return tensorflow_text.SentencepieceTokenizer(self.model)

    def graph_tokenize(self, text: Any) -> Any:
        return self._graph_tokenizer.tokenize(text)

    def graph_detokenize(self, token_ids: Any) -> Any:
        return self._graph_tokenizer.detokenize(without_special(token_ids))

    def graph_resources(self) -> list[Any]:
        return [self._graph_tokenizer]


def _learn(texts, vocabulary_size, kind, seed, num_placeholders, languages, exact):
    """A serialized SentencePiece model; with `exact=False`, the size is an upper bound."""
    import sentencepiece

    sentencepiece.set_random_generator_seed(seed)
    model, tags = io.BytesIO(), [f">>{language}<<" for language in languages]
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(texts),
        model_writer=model,
        model_type=kind,
        vocab_size=vocabulary_size,
        hard_vocab_limit=exact,
        pad_id=PAD_TOKEN_ID,
        unk_id=UNKNOWN_TOKEN_ID,
        bos_id=START_TOKEN_ID,
        eos_id=END_TOKEN_ID,
        user_defined_symbols=[placeholder(number) for number in range(num_placeholders)] + tags,
        character_coverage=1.0,
        input_sentence_size=2_000_000,
        shuffle_input_sentence=True,
        max_sentence_length=65_536,
        num_threads=1,  # More would make the model depend on the machine.
        minloglevel=2,
    )
    return _hidden(model.getvalue(), tags) if tags else model.getvalue()


def _hidden(model, tags):
    """A serialized model in which the pieces `tags` are control pieces, which no text contains."""
    parsed = message_class().FromString(model)
    for piece in parsed.pieces:
        if piece.piece.decode() in tags:
            piece.type = CONTROL
    return parsed.SerializeToString(deterministic=True)


def _possible_size(message):
    """The vocabulary size that SentencePiece proposes in an error message, or None."""
    match = re.search(r"value <= (\d+)|Vocabulary size is smaller than required_chars\. \d+ vs (\d+)", message)
    # More than the single characters, for longer pieces.
    return match and (int(match[1]) if match[1] else int(match[2]) + 64)
