"""Subword tokenizers with one interface, which give the same ids in Python and inside a TensorFlow graph.

- `unigram` (SentencePiece, the default): the only kind whose ids are the same in Python, in a SavedModel, on a device
  and in a browser. "Subword Regularization" (Kudo, 2018).
- `bpe` (SentencePiece): "Neural Machine Translation of Rare Words with Subword Units" (Sennrich et al., 2016).
- `wordpiece` (keras-nlp / tensorflow-text): splits at spaces and punctuation first. It does not store the spaces around
  punctuation; `detokenize` sets them by rules.

Special ids are the same for all kinds: 0 padding, 1 unknown, 2 start, 3 end. `tokenize` never adds them. If there are
placeholders, they have the ids from 4 on; see `keras_transformer.text.placeholders`.

A model of several target languages has a tag for each, such as `>>de<<`. It stands before the source and says into
which language the model translates ("Google's Multilingual Neural Machine Translation System", Johnson et al., 2017,
section 3). The tags that `Tokenizer.train` makes never match in a text, even if a user types one: their ids are
put before those of the text.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from random import Random
from types import MappingProxyType
from typing import Any

from keras_transformer.files import output_file
from keras_transformer.settings import TOKENIZER_KINDS

# Number of ids of a vocabulary without a given size. Small texts give fewer.
AUTOMATIC_VOCABULARY_SIZE = 8000

# The pieces of tags. Imported models find theirs in texts, after the space that SentencePiece puts at the beginning.
LANGUAGE_TAG = re.compile(r"\u2581?>>([^<>\s]+)<<")


class TokenizerError(ValueError):
    """A tokenizer that cannot be trained or loaded as asked."""


class Tokenizer:
    """The interface of all kinds of tokenizers.

    Your own subclass needs `vocabulary_size`, `tokenize`, `detokenize` and `pieces`. For saving and loading it also
    needs a unique `suffix`, by which `load` finds the class; `_serialized`, which returns the content of its file as
    bytes; and the class method `_load`, which makes a tokenizer from the path of such a file.

    Attributes:
        kind: one of `keras_transformer.settings.TOKENIZER_KINDS`, or the name of your own kind.
        vocabulary_size: number of ids, including the four special ones.
        num_placeholders: number of placeholders among the ids. Defaults to 0.
        languages: a dict, the id of the tag of each target language. Defaults to an empty one.
        hidden_languages: those of them whose tags no text contains. Defaults to an empty dict.
        suffix: of the file that `save` writes.

    Example:
        >>> tokenizer = Tokenizer.train(["a small dog", "a small cat", "a big dog"] * 9, vocabulary_size=17)
        >>> ids = tokenizer.tokenize(["a small cat"])
        >>> tokenizer.detokenize(ids)
        ['a small cat']
    """

    kind: str
    vocabulary_size: int
    suffix: str | None = None
    num_placeholders: int = 0
    languages: Mapping[str, int] = MappingProxyType({})
    hidden_languages: Mapping[str, int] = MappingProxyType({})

    @staticmethod
    def train(
        texts: Iterable[str],
        vocabulary_size: int | None = None,
        kind: str = "unigram",
        seed: int = 0,
        num_placeholders: int = 0,
        languages: Sequence[str] = (),
    ) -> "Tokenizer":
        """Learns a vocabulary.

        Args:
            texts: an iterable of strings; for a shared vocabulary, the sentences of both languages.
            vocabulary_size: number of ids, or `None` for 8,000, or fewer if the text is too small for that. WordPiece
                may learn somewhat fewer than this number.
            kind: one of `keras_transformer.settings.TOKENIZER_KINDS`. Defaults to `"unigram"`.
            seed: for the choice of sentences from a very large text. Defaults to 0.
            num_placeholders: number of placeholders, which belong to `vocabulary_size`; not for WordPiece, which splits
                them. Defaults to 0.
            languages: codes of target languages, such as `["de", "fr"]`. Each gets a tag, which belongs to
                `vocabulary_size`; not for WordPiece. Defaults to none.

        Raises:
            TokenizerError: there is no text, or it does not fit `vocabulary_size`.
        """
        if kind not in TOKENIZER_KINDS:
            raise TokenizerError(f"`kind` of a tokenizer must be one of {TOKENIZER_KINDS}. Received: kind={kind!r}.")
        if vocabulary_size is not None and vocabulary_size < 8:
            raise TokenizerError(
                "`vocabulary_size` must be at least 8: four ids are special, and words need pieces. "
                f"Received: vocabulary_size={vocabulary_size}. 8,000 suits most corpora."
            )
        if kind == "wordpiece" and num_placeholders:
            raise TokenizerError(
                "WordPiece has no placeholders: it splits them at their brackets. "
                f"Received: num_placeholders={num_placeholders}. Use kind='unigram', or num_placeholders=0."
            )
        if kind == "wordpiece" and languages:
            raise TokenizerError(
                "WordPiece has no language tags: it splits them. "
                f"Received: languages={list(languages)}. Use kind='unigram', or one direction."
            )
        if isinstance(texts, str):
            raise TokenizerError("`texts` must be an iterable of sentences. Received: one string.")
        texts = [text for text in texts if text.strip()]
        if not texts:
            raise TokenizerError("A tokenizer needs text to learn from. Received: only empty sentences, or none.")
        if kind == "wordpiece":
            from keras_transformer.text.wordpiece_tokenizer import WordPieceTokenizer

            return WordPieceTokenizer._train(texts, vocabulary_size)
        from keras_transformer.text.sentencepiece_tokenizer import SentencePieceTokenizer

        return SentencePieceTokenizer._train(texts, vocabulary_size, kind, seed, num_placeholders, tuple(languages))

    @staticmethod
    def load(path: Path | str) -> "Tokenizer":
        """Reads a tokenizer that `save` wrote: `NAME.spm` (SentencePiece), `NAME.vocab` (WordPiece), or your own kind.

        Args:
            path: the file, with or without its suffix.

        Raises:
            TokenizerError: there is no such file, or it cannot be read.
        """
        # So that these subclasses exist.
        from keras_transformer.text import sentencepiece_tokenizer, wordpiece_tokenizer  # noqa: F401

        path = Path(path)
        # A class with an inherited suffix does not replace its parent. Of a class that a notebook defines twice, the
        # newer one is used.
        classes = {cls.suffix: cls for cls in _subclasses(Tokenizer) if vars(cls).get("suffix") is not None}
        for cls in classes.values():
            file = cls._file(path)
            if file.is_file():
                try:
                    return cls._load(file)
                except (RuntimeError, ValueError) as error:
                    raise TokenizerError(f"{file} cannot be used as a tokenizer: {error}") from error
        stem = path.with_suffix("") if path.suffix in classes else path
        raise TokenizerError(
            f"No tokenizer at {path}: none of {', '.join(f'{stem}{suffix}' for suffix in classes)} is a file. For a "
            "tokenizer of your own, import its class first."
        )

    @classmethod
    def _file(cls, path):
        """The path with the suffix."""
        return path if path.suffix == cls.suffix else path.with_name(f"{path.name}{cls.suffix}")

    def save(self, path: Path | str) -> Path:
        """Writes `path` + `suffix` and returns that file's path."""
        if self.suffix is None:
            raise TokenizerError(
                "To be saved, a tokenizer needs a `suffix`: `Tokenizer.load` finds the class by it. "
                f"Received: {type(self).__name__} without one. Give the class a suffix, `_serialized` and `_load`."
            )
        file = self._file(Path(path))
        with output_file(file, "wb") as opened:
            opened.write(self._serialized())
        return file

    def _serialized(self):
        """The content of the file, as bytes."""
        raise NotImplementedError(f"{type(self).__name__} cannot be saved: it has no `_serialized`.")

    @classmethod
    def _load(cls, path):
        """A tokenizer from the path of a file that `save` wrote."""
        raise NotImplementedError(f"{cls.__name__} cannot be loaded: it has no `_load`.")

    def tokenize(self, texts: Sequence[str]) -> list[list[int]]:
        """A list of strings -> a list of lists of ids."""
        raise NotImplementedError

    def tag(self, target_language: str | None) -> list[int]:
        """The ids that a source begins with: a list with the id of the language's tag; `[]` for None.

        Raises:
            ValueError: the tokenizer has no tag for the language.
        """
        if target_language is None:
            return []
        if target_language not in self.languages:
            raise ValueError(
                "`target_language` must be one of the model's target languages. "
                f"Received: {target_language!r}. The model has: {', '.join(self.languages) or 'one, without a tag'}."
            )
        return [self.languages[target_language]]

    def sample(self, texts: Sequence[str], alpha: float, seed: int) -> list[list[int]]:
        """`tokenize`, but the segmentation of every word is drawn at random: subword regularisation.

        A word's segmentation is drawn from its best 64, in proportion to their probabilities to the power of alpha. So
        a small alpha gives many small pieces ("Subword Regularization", Kudo, 2018, section 3). Only for unigram.

        Args:
            texts: a list of strings.
            alpha: in (0, 1).
            seed: the same seed gives the same ids, also in another process.
        """
        return self.resample(self.tokenize(texts), alpha, Random(seed))

    def resample(self, token_ids: Sequence[Sequence[int]], alpha: float, random: Random) -> list[list[int]]:
        """`sample`, from ids of `tokenize`: a list of lists of ids -> a list of lists of ids."""
        raise TokenizerError(
            "Segmentations can be drawn at random only for unigram tokenizers: other kinds have no probabilities for "
            f"them. Received: kind={self.kind!r}."
        )

    def detokenize(self, token_ids: Iterable[Iterable[int]]) -> list[str]:
        """A list of lists of ids -> a list of strings. Special ids are left out; the unknown id becomes "⁇"."""
        raise NotImplementedError

    def pieces(self, token_ids: Iterable[int]) -> list[str]:
        """A list of ids -> the list of their pieces, for pictures and alignments."""
        raise NotImplementedError

    def graph_tokenize(self, text: Any) -> Any:
        """`tokenize` as TensorFlow ops: strings (B,) -> RaggedTensor (B, None) of int32."""
        raise NotImplementedError

    def graph_detokenize(self, token_ids: Any) -> Any:
        """`detokenize` as TensorFlow ops: int32 (B, L) -> strings (B,)."""
        raise NotImplementedError

    def graph_resources(self) -> list[Any]:
        """TensorFlow objects that a SavedModel must track so that the graph methods work in it."""
        return []


def _subclasses(cls):
    """All direct and indirect subclasses, the oldest first."""
    return [class_ for sub in cls.__subclasses__() for class_ in (sub, *_subclasses(sub))]


def list_of_texts(texts: Iterable[str]) -> list[str]:
    """`texts` as a list. A single string is an error: it would be read as a list of characters."""
    if isinstance(texts, str):
        raise TypeError(f"`texts` must be a list of strings. Received: one string, {texts[:40]!r}. Pass [text].")
    return list(texts)


# File names in a folder: first that of a shared tokenizer, then those of source and target.
TOKENIZER_NAMES = ("tokenizer", "source_tokenizer", "target_tokenizer")


def load_tokenizers(folder: Path | str, separate_vocabularies: bool) -> list[Tokenizer]:
    """A list of the tokenizers in a folder: the shared one, or those of source and target."""
    names = TOKENIZER_NAMES[1:] if separate_vocabularies else TOKENIZER_NAMES[:1]
    return [Tokenizer.load(Path(folder) / name) for name in names]


def save_tokenizers(folder: Path | str, tokenizers: Sequence[Tokenizer]) -> None:
    """Writes tokenizers into a folder for `load_tokenizers`."""
    names = TOKENIZER_NAMES[1:] if len(tokenizers) > 1 else TOKENIZER_NAMES[:1]
    for name, tokenizer in zip(names, tokenizers, strict=True):
        tokenizer.save(Path(folder) / name)
