"""Subword tokenizers with one interface, which give the same ids in Python and inside a TensorFlow graph.

- `unigram` (SentencePiece, the default): the only kind whose ids are the same in Python, in a SavedModel, on a device
  and in a browser. "Subword Regularization" (Kudo, 2018).
- `bpe` (SentencePiece): "Neural Machine Translation of Rare Words with Subword Units" (Sennrich et al., 2016).
- `wordpiece` (keras-nlp / tensorflow-text): splits at spaces and punctuation first. It does not store the spaces around
  punctuation; `detokenize` sets them by rules.

Special ids are the same for all kinds: 0 padding, 1 unknown, 2 start, 3 end. `tokenize` never adds them. If there are
placeholders, they have the ids from 4 on; see `keras_transformer.placeholders`.

A model of several target languages has a tag for each, such as `>>de<<`. It stands before the source and says into
which language the model translates ("Google's Multilingual Neural Machine Translation System", Johnson et al., 2017,
section 3). The tags that `Tokenizer.train` makes are never found in a text, also not if somebody writes them there:
their ids are put before those of the text.
"""

import io
import math
import re
import unicodedata
from bisect import bisect
from functools import cached_property, lru_cache
from itertools import accumulate, takewhile
from pathlib import Path
from random import Random
from types import MappingProxyType

from keras_transformer.files import output_file
from keras_transformer.placeholders import placeholder
from keras_transformer.sentencepiece_model import BPE, CONTROL, UNIGRAM, message_class

PAD_TOKEN_ID, UNKNOWN_TOKEN_ID, START_TOKEN_ID, END_TOKEN_ID = range(4)
FIRST_PLACEHOLDER_ID = END_TOKEN_ID + 1
KINDS = ("unigram", "bpe", "wordpiece")

# The pieces of tags. Imported models find theirs in texts, behind the space that SentencePiece puts at the beginning.
LANGUAGE_TAG = re.compile(r"\u2581?>>([^<>\s]+)<<")

# Number of ids of a vocabulary without a given size. Small texts give fewer.
AUTOMATIC_VOCABULARY_SIZE = 8000
# The last private-use character of Unicode: no text has it.
_UNKNOWN_CHARACTER = "\U0010fffd"


def shifted_right(target_ids):
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


class TokenizerError(ValueError):
    """A tokenizer that cannot be trained or loaded as asked."""


class Tokenizer:
    """The interface of all kinds of tokenizers.

    Your own subclass needs `vocabulary_size`, `tokenize`, `detokenize` and `pieces`. For saving and loading it also
    needs a unique `suffix`, by which `load` finds the class; `_serialized`, which returns the content of its file as
    bytes; and the class method `_load`, which makes a tokenizer from the path of such a file.

    Attributes:
        kind: one of `KINDS`, or the name of your own kind.
        vocabulary_size: number of ids, including the four special ones.
        num_placeholders: number of placeholders among the ids. Defaults to 0.
        languages: a dict, the id of the tag of each target language. Defaults to an empty one.
        hidden_languages: those of them whose tags no text contains. Defaults to an empty dict.
        suffix: of the file that `save` writes.
        runs_on_devices: whether its graph methods are operations of TFLite. Defaults to False.

    Example:
        >>> tokenizer = Tokenizer.train(["a small dog", "a small cat", "a big dog"] * 9, vocabulary_size=17)
        >>> ids = tokenizer.tokenize(["a small cat"])
        >>> tokenizer.detokenize(ids)
        ['a small cat']
    """

    suffix = None
    num_placeholders = 0
    languages = hidden_languages = MappingProxyType({})
    runs_on_devices = False

    @staticmethod
    def train(texts, vocabulary_size=None, kind="unigram", seed=0, num_placeholders=0, languages=()):
        """Learns a vocabulary.

        Args:
            texts: an iterable of strings; for a shared vocabulary, the sentences of both languages.
            vocabulary_size: number of ids, or `None` for 8,000, or fewer if the text is too small for that. WordPiece
                may learn somewhat fewer than this number.
            kind: one of `KINDS`. Defaults to `"unigram"`.
            seed: for the choice of sentences from a very large text. Defaults to 0.
            num_placeholders: number of placeholders, which belong to `vocabulary_size`; not for WordPiece, which splits
                them. Defaults to 0.
            languages: codes of target languages, such as `["de", "fr"]`. Each gets a tag, which belongs to
                `vocabulary_size`; not for WordPiece. Defaults to none.

        Returns:
            A `Tokenizer`.

        Raises:
            TokenizerError: there is no text, or it does not fit `vocabulary_size`.
        """
        if kind not in KINDS:
            raise TokenizerError(f"`kind` of a tokenizer must be one of {KINDS}. Received: kind={kind!r}.")
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
            return WordPieceTokenizer._train(texts, vocabulary_size)
        return SentencePieceTokenizer._train(texts, vocabulary_size, kind, seed, num_placeholders, tuple(languages))

    @staticmethod
    def load(path):
        """Reads a tokenizer that `save` wrote: `NAME.spm` (SentencePiece), `NAME.vocab` (WordPiece), or your own kind.

        Args:
            path: the file, with or without its suffix.

        Raises:
            TokenizerError: there is no such file, or it cannot be read.
        """
        path, classes = Path(path), {}
        for cls in _subclasses(Tokenizer):
            if vars(cls).get("suffix") is not None:  # A class with an inherited suffix does not replace its parent.
                classes[cls.suffix] = cls  # Notebooks may define a class twice; the newer one is used.
        for cls in classes.values():
            file = path if path.suffix == cls.suffix else path.with_name(path.name + cls.suffix)
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

    def save(self, path):
        """Writes `path` + `suffix` and returns that file's path."""
        if self.suffix is None:
            raise TokenizerError(
                "To be saved, a tokenizer needs a `suffix`: `Tokenizer.load` finds the class by it. "
                f"Received: {type(self).__name__} without one. Give the class a suffix, `_serialized` and `_load`."
            )
        path = Path(path)
        file = path if path.suffix == self.suffix else path.with_name(path.name + self.suffix)
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

    def tokenize(self, texts):
        """A list of strings -> a list of lists of ids."""
        raise NotImplementedError

    def tag(self, target_language):
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

    def sample(self, texts, alpha, seed):
        """`tokenize`, but the segmentation of every word is drawn at random: subword regularisation.

        A word's segmentation is drawn from its best 64, in proportion to their probabilities to the power of alpha. So
        a small alpha gives many small pieces ("Subword Regularization", Kudo, 2018, section 3). Only for unigram.

        Args:
            texts: a list of strings.
            alpha: in (0, 1).
            seed: the same seed gives the same ids, also in another process.
        """
        return self.resample(self.tokenize(texts), alpha, Random(seed))

    def resample(self, token_ids, alpha, random):
        """`sample`, from ids of `tokenize`: a list of lists of ids -> a list of lists of ids.

        Args:
            token_ids: a list of lists of ids.
            alpha: see `sample`.
            random: a `random.Random`.
        """
        raise TokenizerError(
            "Segmentations can be drawn at random only for unigram tokenizers: other kinds have no probabilities for "
            f"them. Received: kind={self.kind!r}."
        )

    def detokenize(self, token_ids):
        """A list of lists of ids -> a list of strings. Special ids are left out; the unknown id becomes "⁇"."""
        raise NotImplementedError

    def pieces(self, token_ids):
        """A list of ids -> the list of their pieces, for pictures and alignments."""
        raise NotImplementedError

    def graph_tokenize(self, text):
        """`tokenize` as TensorFlow ops: strings (B,) -> RaggedTensor (B, None) of int32."""
        raise NotImplementedError

    def graph_detokenize(self, token_ids):
        """`detokenize` as TensorFlow ops: int32 (B, L) -> strings (B,)."""
        raise NotImplementedError

    def graph_resources(self):
        """TensorFlow objects that a SavedModel must track so that the graph methods work in it."""
        return []


def _subclasses(cls):
    """All direct and indirect subclasses, the oldest first."""
    return [class_ for sub in cls.__subclasses__() for class_ in (sub, *_subclasses(sub))]


def _sentences(texts):
    """`texts` as a list. A single string is an error: it would be read as a list of characters."""
    if isinstance(texts, str):
        raise TypeError(f"`texts` must be a list of strings. Received: one string, {texts[:40]!r}. Pass [text].")
    return list(texts)


class SentencePieceTokenizer(Tokenizer):
    """`unigram` and `bpe`, by the sentencepiece library.

    Args:
        model: the serialized SentencePiece model, bytes.
    """

    suffix = ".spm"

    def __init__(self, model):
        import sentencepiece

        if not model:
            raise TokenizerError("A SentencePiece model is never empty. Received: 0 bytes.")
        self.model = model
        self._processor = sentencepiece.SentencePieceProcessor(model_proto=model)
        self.kind = {UNIGRAM: "unigram", BPE: "bpe"}[message_class().FromString(model).trainer_spec.model_type]
        self.vocabulary_size = self._processor.vocab_size()
        # FastSentencepiece always does a Viterbi segmentation: right for unigram, silently wrong for BPE and for models
        # that write an unknown character as bytes.
        self.runs_on_devices = self.kind == "unigram" and not any(
            self._processor.is_byte(list(range(self.vocabulary_size)))
        )
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
        self._graph = None
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

    def tokenize(self, texts):
        return self._processor.encode(_sentences(texts))

    def resample(self, token_ids, alpha, random):
        if self.kind != "unigram":
            return super().resample(token_ids, alpha, random)
        # SentencePiece's own sampling is not used: its random numbers differ between processes even with a fixed seed.
        random, pieces, rows = random.random, self._all_pieces, []
        for ids in token_ids:
            row = []
            for word in "".join([pieces[i] for i in ids]).split("\u2581")[1:]:
                segmentations, cumulated = self._segmentations(word, alpha)
                row += segmentations[bisect(cumulated, random() * cumulated[-1])]
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

    def detokenize(self, token_ids):
        rows = [[int(i) for i in ids] for ids in token_ids]
        return self._processor.decode(rows) if rows else []  # SentencePiece would read [] as one empty text.

    def pieces(self, token_ids):
        return [self._processor.id_to_piece(int(i)) for i in token_ids]

    def _graph_tokenizer(self):
        if self._graph is None:
            import tensorflow as tf
            import tensorflow_text

            # FastSentencepiece is a constant in the graph and runs on devices.
            fast, plain = tensorflow_text.FastSentencepieceTokenizer, tensorflow_text.SentencepieceTokenizer
            cls = fast if self.runs_on_devices else plain
            with tf.init_scope():  # Not in the graph that happens to be traced first: it would die with that graph.
                self._graph = cls(self.model)
        return self._graph

    def graph_tokenize(self, text):
        return self._graph_tokenizer().tokenize(text)

    def graph_detokenize(self, token_ids):
        import tensorflow as tf

        if not self.runs_on_devices:
            return self._graph_tokenizer().detokenize(without_special(token_ids))
        if isinstance(token_ids, tf.RaggedTensor):
            token_ids = token_ids.to_tensor(PAD_TOKEN_ID)
        for tag in self.hidden_languages.values():
            token_ids = tf.where(token_ids == tag, PAD_TOKEN_ID, token_ids)
        token_ids = tf.pad(token_ids, [[0, 0], [0, 1]], constant_values=PAD_TOKEN_ID)  # A column to take, also of none.
        # At the beginning of a text, SentencePiece removes all spaces, but FastSentencepiece removes one space only: it
        # keeps the second of two spaces and removes that of " ⁇ ". So we remove all special and space tokens before the
        # text, and put one space token before it if it begins with " ⁇ ". All these operations exist in TFLite.
        space = self._processor.piece_to_id("▁")
        front = tf.cumsum(tf.cast(~(_is_special(token_ids) | (token_ids == space)), tf.int32), axis=1) == 0
        begin = 1 + tf.reduce_sum(tf.cast(front, tf.int32), axis=1, keepdims=True)
        end = tf.zeros_like(token_ids)
        token_ids = tf.concat([end[:, :1] + space, tf.where(front, space, token_ids), end, end[:, :1]], axis=1)
        unknown = tf.gather(token_ids, begin, axis=1, batch_dims=1) == UNKNOWN_TOKEN_ID
        places = begin - tf.cast(unknown, tf.int32) + tf.range(tf.shape(end)[1] + 1)
        return self._graph_tokenizer().detokenize(tf.gather(token_ids, places, axis=1, batch_dims=1))

    def graph_resources(self):
        return [] if self.runs_on_devices else [self._graph_tokenizer()]


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
        # With these three settings the fast implementations in the graph and on devices give the same ids.
        normalization_rule_name="nmt_nfkc",
        byte_fallback=False,
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
    if not match:
        return None
    return int(match[1]) if match[1] else int(match[2]) + 64  # More than the single characters, for longer pieces.


def without_special(token_ids):
    """(B, L) or ragged -> ragged, without padding, start and end tokens."""
    import tensorflow as tf

    if not isinstance(token_ids, tf.RaggedTensor):
        token_ids = tf.RaggedTensor.from_tensor(token_ids)
    return tf.ragged.boolean_mask(token_ids, ~_is_special(token_ids))


def _is_special(token_ids):
    return (token_ids == PAD_TOKEN_ID) | (token_ids == START_TOKEN_ID) | (token_ids == END_TOKEN_ID)


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

    def __init__(self, vocabulary):
        if tuple(vocabulary[:4]) != self.SPECIAL:
            raise TokenizerError(f"A WordPiece vocabulary must begin with {self.SPECIAL}. Received: {vocabulary[:4]}.")
        if len(set(vocabulary)) != len(vocabulary) or "" in vocabulary:
            raise TokenizerError("The pieces of a WordPiece vocabulary must be unique and not empty.")
        self.vocabulary = list(vocabulary)
        self.vocabulary_size = len(self.vocabulary)
        self._graph = None

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

    def tokenize(self, texts):
        texts = _sentences(texts)
        return self.graph_tokenize(texts).to_list() if texts else []

    def detokenize(self, token_ids):
        import tensorflow as tf

        rows = [[int(i) for i in ids] for ids in token_ids]
        ids = tf.RaggedTensor.from_row_lengths(
            tf.constant([i for row in rows for i in row], tf.int32), [len(row) for row in rows]
        )
        return [text.decode("utf-8") for text in self.graph_detokenize(ids).numpy()] if rows else []

    def pieces(self, token_ids):
        return [self.vocabulary[int(i)] for i in token_ids]

    def _graph_tokenizer(self):
        if self._graph is None:
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
            self._graph = normalizer, tokenizer
        return self._graph

    def graph_tokenize(self, text):
        import tensorflow_text

        normalizer, tokenizer = self._graph_tokenizer()
        return tokenizer.tokenize(normalizer.normalize(tensorflow_text.normalize_utf8(text, "NFC")))

    def graph_detokenize(self, token_ids):
        import tensorflow as tf

        _, tokenizer = self._graph_tokenizer()
        token_ids = without_special(token_ids)
        known = (token_ids >= 0) & (token_ids < self.vocabulary_size)  # The kernel reads out of bounds.
        text = tokenizer.detokenize(tf.where(known, token_ids, UNKNOWN_TOKEN_ID))
        text = tf.strings.regex_replace(text, re.escape(self.SPECIAL[UNKNOWN_TOKEN_ID]), "⁇")
        for pattern, replacement in self._SPACING:
            text = tf.strings.regex_replace(text, pattern, replacement)
        return text


# File names in a folder: first that of a shared tokenizer, then those of source and target.
TOKENIZER_NAMES = ("tokenizer", "source_tokenizer", "target_tokenizer")


def load_tokenizers(folder, separate_vocabularies):
    """A list of the tokenizers in a folder: the shared one, or those of source and target."""
    names = TOKENIZER_NAMES[1:] if separate_vocabularies else TOKENIZER_NAMES[:1]
    return [Tokenizer.load(Path(folder) / name) for name in names]


def save_tokenizers(folder, tokenizers):
    """Writes tokenizers into a folder, so that `load_tokenizers` finds them.

    Returns:
        The names of the files, the source first.
    """
    names = TOKENIZER_NAMES[1:] if len(tokenizers) > 1 else TOKENIZER_NAMES[:1]
    return [tokenizer.save(Path(folder) / name).name for name, tokenizer in zip(names, tokenizers, strict=True)]
