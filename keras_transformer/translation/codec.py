"""What a text becomes before the model sees it, and after: placeholders, token ids, the tag of the target language."""

import reprlib
from collections.abc import Sequence
from functools import cached_property
from typing import Any, NamedTuple

from keras_transformer.text.placeholders import has_words, protect, protect_target, restored
from keras_transformer.text.special_ids import END_TOKEN_ID, FIRST_PLACEHOLDER_ID
from keras_transformer.text.tokenizer import Tokenizer


class Sentence(NamedTuple):
    """A text as the model gets it.

    Attributes:
        ids: token ids: the tag of the target language, if the vocabulary has tags; those of the text, cut at
            `max_source_length`; and the end token. Only the end token if the text has no tokens.
        text: the text with placeholders.
        parts: a tuple of strings: what the placeholders 0, 1, ... stand for.
        unchanged: the text, if it consists of such parts, so that there is nothing to translate; else None.
        truncated: whether the text had more tokens, and only its beginning is translated.
    """

    ids: list
    text: str
    parts: tuple
    unchanged: str | None
    truncated: bool

    @property
    def present_parts(self) -> tuple[str, ...]:
        """The parts; "" for those whose placeholders are not among the ids, because these were cut."""
        return tuple(part if FIRST_PLACEHOLDER_ID + i in self.ids else "" for i, part in enumerate(self.parts))


class Codec:
    """Texts to token ids, and token ids to texts, for one pair of tokenizers.

    Args:
        source_tokenizer, target_tokenizer: `keras_transformer.Tokenizer`s, may be the same.
        max_source_length: maximum number of source tokens, the tag and the end token included.
        target_language: code of the language that texts are translated into unless `encode` is given another; None if
            the vocabulary has no tags, or if the texts begin with theirs.
        begins_with_tag: whether translations begin with the tag, too; see `source_language_token_id` of `Transformer`.
    """

    def __init__(
        self,
        source_tokenizer: Tokenizer,
        target_tokenizer: Tokenizer,
        max_source_length: int,
        target_language: str | None = None,
        begins_with_tag: bool = False,
    ):
        self.source_tokenizer, self.target_tokenizer = source_tokenizer, target_tokenizer
        self.max_source_length, self.target_language = max_source_length, target_language
        self.begins_with_tag = begins_with_tag
        self.num_placeholders = min(source_tokenizer.num_placeholders, target_tokenizer.num_placeholders)
        source_tokenizer.tag(target_language)  # Raises an error if there is no such language.

    def check_sizes(self, model: Any) -> None:
        """Raises a ValueError unless the vocabularies of the tokenizers have the sizes of the model's."""
        for side, tokenizer, size in (
            ("source", self.source_tokenizer, model.vocabulary_size),
            ("target", self.target_tokenizer, model.target_vocabulary_size),
        ):
            if tokenizer.vocabulary_size != size:
                raise ValueError(
                    f"The {side} tokenizer and the model must have the same vocabulary. Received: a tokenizer with "
                    f"{tokenizer.vocabulary_size} ids, a model with {size}. Use the tokenizer that the model was "
                    "trained with."
                )

    @property
    def tokenizers(self) -> list[Tokenizer]:
        """A list with the shared tokenizer, or with those of source and target."""
        source, target = self.source_tokenizer, self.target_tokenizer
        return [source] if source is target else [source, target]

    @cached_property
    def hidden_tags(self) -> tuple[int, ...]:
        """Ids of the tags that a translation never contains."""
        return tuple(self.target_tokenizer.hidden_languages.values())

    def languages(self, target_language: str | Sequence[str] | None, count: int) -> list:
        """A list with the target language of each of `count` texts, from one language or a list, or None."""
        if target_language is None or isinstance(target_language, str):
            return [target_language or self.target_language] * count
        if len(target_language) != count:
            raise ValueError(
                "`target_language` must be one language, or a list with one per text. "
                f"Received: {len(target_language)} languages for {count} texts."
            )
        return [language or self.target_language for language in target_language]

    def encode(
        self,
        texts: Sequence[str],
        target_language: str | Sequence[str] | None = None,
        glossaries: Sequence | None = None,
    ) -> list[Sentence]:
        """A list of one `Sentence` per text.

        Args:
            texts: a list of strings.
            target_language: see `Translator.translate`.
            glossaries: for each text a `keras_transformer.Glossary` or None. Defaults to none.
        """
        tags = [self.source_tokenizer.tag(language) for language in self.languages(target_language, len(texts))]
        if self.begins_with_tag and not all(tags):
            raise ValueError(
                "A model of many languages needs `target_language`, the language to translate into. Received: None. "
                f"The model has: {', '.join(self.source_tokenizer.languages)}."
            )
        glossaries = glossaries or [None] * len(texts)
        protected = [
            protect(text, self.num_placeholders, glossary) for text, glossary in zip(texts, glossaries, strict=True)
        ]
        rows = self.source_tokenizer.tokenize([text for text, _ in protected])
        sentences, most = [], self.max_source_length - 1
        for (text, parts), tag, ids in zip(protected, tags, rows, strict=True):
            ids = tag + ids if ids else ids  # A text without tokens gets no tag: it is not translated.
            unchanged = restored(text, parts) if parts and not has_words(text) else None
            truncated = len(ids) > most and unchanged is None
            sentences.append(Sentence([*ids[:most], END_TOKEN_ID], text, parts, unchanged, truncated))
        return sentences

    def source_ids(self, texts: Sequence[str], target_language: str | None = None) -> list[list[int]]:
        """Token ids of each text as the model gets them."""
        return [sentence.ids for sentence in self.encode(texts, target_language)]

    def fits(self, texts: Sequence[str]) -> list[bool]:
        """Whether each text has few enough tokens, also with a tag before them: a list of bool."""
        rows = self.source_tokenizer.tokenize([protect(text, self.num_placeholders).text for text in texts])
        return [len(ids) + bool(self.source_tokenizer.languages) < self.max_source_length for ids in rows]

    def encode_targets(
        self, targets: Sequence[str], sentences: Sequence[Sentence], max_length: int | None = None
    ) -> list[list[int]]:
        """Token ids of given translations of `Sentence`s, the end token last; cut at `max_length` tokens."""
        rows = self._protected_targets(targets, [sentence.parts for sentence in sentences])
        if self.begins_with_tag:
            rows = [sentence.ids[:-1][:1] + ids for sentence, ids in zip(sentences, rows, strict=True)]
        return [[*ids[: max_length and max_length - 1], END_TOKEN_ID] for ids in rows]

    def encode_prefixes(self, prefixes, sentences):
        """Token ids of the beginnings that the translations of `Sentence`s must have."""
        return self._protected_targets(prefixes, [sentence.present_parts for sentence in sentences])

    def _protected_targets(self, targets, parts):
        if self.num_placeholders:
            targets = list(map(protect_target, targets, parts))
        return self.target_tokenizer.tokenize(targets)

    def decode(self, rows: Sequence, sentences: Sequence[Sentence]) -> list[str]:
        """The translations of `Sentence`s from their token ids: a list of strings."""
        texts = self.target_tokenizer.detokenize([[i for i in ids if i != END_TOKEN_ID] for ids in rows])
        return [
            restored(text, sentence.present_parts, source=sentence.text)
            for text, sentence in zip(texts, sentences, strict=True)
        ]

    def pieces(self, token_ids: Sequence[int], parts: Sequence[str], of_source: bool = False) -> list:
        """The pieces of token ids, those of a translation by default; the pieces of placeholders are their parts."""
        tokenizer = self.source_tokenizer if of_source else self.target_tokenizer
        by_id = {FIRST_PLACEHOLDER_ID + i: part for i, part in enumerate(parts)}
        pieces = tokenizer.pieces(token_ids)
        return [by_id.get(int(i), piece) for i, piece in zip(token_ids, pieces, strict=True)]


def check_texts(name: str, texts: Sequence[str]) -> list[str]:
    """`texts` as a list of strings.

    Raises:
        TypeError: it is one string, or not all are strings.
        ValueError: a string is not valid Unicode.
    """
    if isinstance(texts, str):
        raise TypeError(f"`{name}` must be a list of strings. Received: one string. Pass [text].")
    texts = list(texts)
    for index, text in enumerate(texts):
        if not isinstance(text, str):
            raise TypeError(
                f"`{name}` must be a list of strings. Received: {text!r} at {name}[{index}]. "
                "Pass '' for a line without text, and decode bytes as UTF-8."
            )
        check_unicode(f"{name}[{index}]", text)
    return texts


def check_pairs(first, second, names, rule):
    """Two lists of strings of the same length; `rule` says in an error why they must be."""
    first, second = check_texts(names[0], first), check_texts(names[1], second)
    if len(first) != len(second):
        raise ValueError(
            f"`{names[0]}` and `{names[1]}` must have the same length: {rule}. "
            f"Received: {len(first)} {names[0]}, {len(second)} {names[1]}."
        )
    return first, second


def check_unicode(name, text):
    """Raises a ValueError if a string has half of a surrogate pair."""
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise ValueError(
            f"`{name}` must be valid Unicode. Received: half of a surrogate pair, {text[error.start]!r}, at "
            f"{error.start} of {reprlib.repr(text)}. Replace it: text.encode(errors='replace').decode()."
        ) from error
