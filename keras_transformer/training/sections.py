"""The settings of a run in sections: frozen dataclasses that check their values."""

import functools
import math
import os
import re
from dataclasses import dataclass

from keras_transformer.settings import (
    AT_LEAST_0,
    AT_LEAST_1,
    LAYOUTS,
    LONG_PAIRS,
    MONITORS,
    POSITION_TYPES,
    POSITIVE,
    RATE,
    SEED,
    STRATEGIES,
    TIE_EMBEDDINGS,
    TOKENIZER_KINDS,
    ConfigError,
    Rule,
    Settings,
    changeable,
    setting,
)

# Parts of a model that `freeze` can name.
PARTS = ("embeddings", "encoder", "decoder")
# Training texts of more bytes than this are tokenized into files instead of memory.
LARGE_TEXT = 64 << 20
# Settings that name the user's own texts. If they are given, they replace the data set.
OWN_FILES = ("train", "val", "test")
# The settings of `keras_transformer.data.cleaning.Cleaner`.
CLEANING = "source_language", "target_language", "max_characters", "max_character_ratio", "identify_languages"

# Languages that are written without spaces. sacreBLEU's tokenizer of Japanese needs another package.
CHINESE = {"zh", "zho", "cmn", "lzh", "wuu", "yue"}
WITHOUT_SPACES = {"bo", "dz", "ja", "km", "lo", "my", "th", "bod", "dzo", "jpn", "khm", "lao", "mya", "tha"}

# Numbers of layers, separated by commas.
LAYERS = Rule(lambda value: re.fullmatch(r"(\d+(,\d+)*)?", value), "numbers separated by commas, such as 0,2")

_DIRECTION = re.compile("[A-Za-z]+(_[A-Za-z0-9]+)*-[A-Za-z]+(_[A-Za-z0-9]+)*")


def directions(name, value):
    """A tuple of directions, such as `("en-de", "de-en")`, from a list of them or of lists of them.

    Raises:
        ConfigError: one of them has another form, or comes twice.
    """
    found = [direction for part in value for direction in (part if isinstance(part, list | tuple) else [part])]
    for direction in found:
        if not isinstance(direction, str) or not _DIRECTION.fullmatch(direction) or found.count(direction) > 1:
            raise ConfigError(
                f"`{name}` must be different pairs of language codes, such as en-de en-fr zh_TW-en, with an underscore "
                f"before a region. Received: {direction!r}."
            )
    return tuple(found)


def corpora(name, value, others=("weight",)):
    """A tuple of dictionaries with source, target, name, direction and others, from lists of words or dictionaries.

    Raises:
        ConfigError: a corpus has another form.
    """
    all_corpora, keys = [], ("source", "target", "name", "direction", *others)
    for corpus in value:
        try:
            if not isinstance(corpus, dict):
                source, target, *options = corpus
                corpus = {"source": source, "target": target, **dict(option.split("=", 1) for option in options)}
            corpus = {"name": None, "direction": None, **dict.fromkeys(others, 1.0), **corpus}
            if corpus.keys() != set(keys):
                raise ValueError(f"unknown: {', '.join(corpus.keys() - set(keys))}")
            for other in others:
                corpus[other] = float(corpus[other])
                if not 0 < corpus[other] < math.inf:
                    raise ValueError(f"{other} must be positive")
            for side in ("source", "target"):
                corpus[side] = os.path.abspath(corpus[side])
            if corpus["direction"] is not None:
                directions("direction", [corpus["direction"]])
        except (TypeError, ValueError) as error:
            options = " and ".join(["name=NAME", "direction=SOURCE-TARGET", *(f"{other}=W" for other in others)])
            raise ConfigError(
                f"`{name}` must be SOURCE TARGET, optionally followed by {options}. Received: {corpus!r} ({error})."
            ) from error
        all_corpora.append({key: corpus[key] for key in keys})
    return tuple(all_corpora)


def _unweighted(help):
    """The setting of texts that have no weights, because no training draws from them by size."""
    return changeable((), help, convert=functools.partial(corpora, others=()), metavar="FILE")


@dataclass(frozen=True)
class ModelConfig(Settings):
    """The arguments of `keras_transformer.Transformer`; vocabulary sizes come from the tokenizers."""

    num_layers: int = setting(4, "encoder blocks", AT_LEAST_1)
    num_decoder_layers: int | None = setting(None, "decoder blocks (default: as many as encoder blocks)", AT_LEAST_1)
    num_heads: int = setting(4, "attention heads; must divide --hidden-dim", AT_LEAST_1)
    hidden_dim: int = setting(128, "width of the model", AT_LEAST_1)
    intermediate_dim: int = setting(256, "width of the feed-forward sublayers", AT_LEAST_1)
    dropout: float = setting(0.1, "rate in [0, 1) on embeddings and on every sublayer's output", RATE)
    attention_dropout: float = setting(0.0, "rate in [0, 1) on the attention scores", RATE)
    activation: str = setting("relu", "any Keras activation, for the feed-forward sublayers")
    normalize_first: bool = setting(True, "pre-norm, which learns faster than the paper's post-norm")
    layer_norm_epsilon: float = setting(1e-6, "added to the variance in layer normalisation", POSITIVE)
    tie_embeddings: str = setting(
        "all",
        "which of the two embeddings and the output projection are one matrix (separate vocabularies: target)",
        choices=TIE_EMBEDDINGS,
    )
    position_type: str = setting("sinusoidal", "kind of positions", choices=POSITION_TYPES)
    # What published models have: their imports set it, and a file of settings can.
    layout: str = setting("interleaved", "order of the sines and cosines of positions", choices=LAYOUTS, flag=False)
    max_wavelength: float = setting(10000.0, "of sinusoidal positions, divided by 2 pi", POSITIVE, flag=False)
    first_position: int = setting(0, "sinusoidal position of the first token", AT_LEAST_0, flag=False)
    scale_embeddings: bool = setting(True, "multiply token embeddings by the square root of the width", flag=False)
    output_bias: bool = setting(False, "a bias in the output projection", flag=False)
    source_language_token_id: int | None = setting(None, "see `Transformer`", flag=False)
    dtype: str = setting(
        "float32", "dtype policy", choices=("float32", "mixed_bfloat16", "mixed_float16"), also=("--dtype-policy",)
    )


@dataclass(frozen=True)
class DataConfig(Settings):
    """Where the sentence pairs come from and how they become batches."""

    dataset: str = setting(
        "phrasebook",
        "phrasebook: embedded; libreoffice, multi30k: downloaded, or read from --data-dir; none: only own files",
        choices=("phrasebook", "libreoffice", "multi30k", "none"),
    )
    data_dir: str | None = changeable(None, "folder with the data set's files (default: download and cache)", path=True)
    variant: str = setting("", "Multi30k text: empty for raw, lc.norm.tok for the lower-cased, tokenised form")
    test_set: str = changeable("test_2016_flickr", "Multi30k test set")
    source_language: str = setting("en", "language code of the source, for the files of a data set and for whole texts")
    target_language: str = setting("de", "language code of the target")
    directions: tuple = setting(
        (),
        "directions of one model, such as en-de en-fr de-en; each of your own texts has direction= instead",
        convert=directions,
        metavar="SOURCE-TARGET",
    )
    max_length: int = setting(128, "longest sentence, in tokens, the end token included", AT_LEAST_1)
    general_weight: float = setting(1.0, "pairs of the general text per own pair", POSITIVE)
    train: tuple = changeable(
        (),
        "SOURCE TARGET [name=NAME] [weight=W] [direction=en-de]: own training text, any number of times; a pass has W "
        "times its pairs (default: 1)",
        convert=corpora,
        metavar="FILE",
    )
    val: tuple = _unweighted("SOURCE TARGET [name=NAME] [direction=en-de]: own validation text, any number of times")
    test: tuple = _unweighted(
        "SOURCE TARGET [name=NAME] [direction=en-de]: own test text, any number of times (default: --val)"
    )
    general: tuple = _unweighted(
        "SOURCE TARGET: general text that is mixed into every pass, so that fine-tuning does not forget"
    )
    general_test: tuple = _unweighted("SOURCE TARGET: general test text, scored before and after training")
    corpus_temperature: float = setting(
        1.0,
        "T of at least 1: the share of a corpus in a pass is its size to the power of 1 / T, so that small ones come "
        "more often",
        AT_LEAST_1,
    )
    clean: bool = setting(False, "leave out pairs that are probably no translations; see keras_transformer clean")
    max_characters: int = setting(1000, "cleaning: longest line, in characters", AT_LEAST_1)
    max_character_ratio: float = setting(
        3.0, "cleaning: largest ratio of the two sides, in letters (plus 20; a Chinese character is 3)", AT_LEAST_1
    )
    identify_languages: bool = setting(
        False, "cleaning: leave out lines in another language; needs pip install lingua-language-detector"
    )
    over_long: str = setting("drop", "what to do with longer training pairs", choices=LONG_PAIRS)
    tokens_per_batch: int = setting(
        4096, "padded target tokens of a batch; source tokens may be up to twice as many", AT_LEAST_1
    )
    cache_dir: str | None = changeable(
        None,
        "folder for the token ids of large training texts, which later runs use again (default: texts of more than "
        f"{LARGE_TEXT >> 20} MiB in ~/.keras/keras_transformer, others in memory)",
        path=True,
    )
    workers: int | None = changeable(
        None,
        "processes that make the batches and tokenize large texts (default: one per 4 cores; all cores)",
        AT_LEAST_1,
    )
    bleu_tokenize: str | None = changeable(
        None,
        "sacreBLEU's tokenizer (default: none for lc.norm.tok, which is tokenised; zh for Chinese; char for Japanese "
        "and others without spaces; 13a for other text)",
    )

    def all_directions(self) -> list[str]:
        """The directions of the training texts, in order, such as `["en-de", "de-en"]`; empty for one without a tag."""
        return list(dict.fromkeys([*self.directions, *(text["direction"] for text in self.train if text["direction"])]))

    def target_languages(self) -> list[str]:
        """The target languages of these directions, in order; the first is the default of a translator."""
        return list(dict.fromkeys(direction.split("-")[1] for direction in self.all_directions()))

    def language_of_sources(self) -> str | None:
        """The language code of the sources, for whole texts; None if several directions have different ones."""
        sources = {direction.split("-")[0] for direction in self.all_directions()} or {self.source_language}
        return sources.pop() if len(sources) == 1 else None

    def sacrebleu_tokenizer(self, target_language: str | None = None) -> str:
        """sacreBLEU's tokenizer for text in a language, by default that of this text: the first target.

        Tokenised text must not be split again; text without spaces must be.
        """
        if self.bleu_tokenize or self.variant == "lc.norm.tok":
            return self.bleu_tokenize or "none"
        language = target_language or next(iter(self.target_languages()), self.target_language) or ""
        language = re.split("[-_]", language.lower())[0]
        return "zh" if language in CHINESE else "char" if language in WITHOUT_SPACES else "13a"


@dataclass(frozen=True)
class TokenizerConfig(Settings):
    """How text becomes token ids."""

    vocabulary_from: str | None = setting(
        None, "run folder whose vocabulary this run takes: for ensembles, and for students of a teacher", path=True
    )
    tokenizer: str = setting("unigram", "kind of subword tokenizer", choices=TOKENIZER_KINDS)
    vocabulary_size: int | None = setting(
        None, "token ids per vocabulary (default: 8,000, or fewer if the text has too few words)", AT_LEAST_1
    )
    separate_vocabularies: bool = setting(False, "one vocabulary per language instead of a shared one")
    num_placeholders: int | None = setting(
        None,
        "tokens that stand for what must not change: addresses, {name}, numbers with units, emoji, terms of a glossary "
        "(default: 8; none for wordpiece)",
        AT_LEAST_0,
        Rule(lambda value: value <= 99, "at most 99"),
    )


@dataclass(frozen=True)
class TrainingConfig(Settings):
    """The recipe."""

    init_from: str | None = setting(
        None,
        "fine-tune: run folder whose architecture, vocabulary, search settings and weights this run begins with",
        path=True,
    )
    freeze: str = setting(
        "",
        "parts that are not trained, separated by commas: embeddings, encoder, decoder",
        Rule(lambda value: not value or set(value.split(",")) < set(PARTS), f"some but not all of {', '.join(PARTS)}"),
    )
    lora_rank: int | None = setting(
        None,
        "fine-tune by low-rank updates alone: products of two matrices of this width, which are added to those of "
        "dense layers and token embeddings (default: none, all weights)",
        AT_LEAST_1,
    )
    layers_from: str | None = setting(
        None,
        "run folder with whose weights this run begins where shapes fit: embeddings, and blocks spread evenly over its "
        "own",
        path=True,
    )
    encoder_layers: str = setting(
        "", "numbers of the encoder blocks of --layers-from, one for each block of this run, such as 0,2", LAYERS
    )
    decoder_layers: str = setting("", "the same for the decoder blocks", LAYERS)
    teacher: str | None = setting(
        None,
        "word-level distillation: run folder of a model whose distribution over the tokens is learned, too",
        path=True,
    )
    teacher_weight: float = setting(
        0.5,
        "weight in (0, 1] of the teacher's distribution in the loss",
        Rule(lambda value: 0 < value <= 1, "in (0, 1]"),
    )
    epochs: int = changeable(30, "passes over the training pairs; the learning rate falls to zero in them", AT_LEAST_1)
    steps_per_epoch: int | None = setting(
        None,
        "batches of an epoch, after which there is validation and a checkpoint (default: one pass)",
        AT_LEAST_1,
    )
    checkpoint_steps: int | None = changeable(
        None,
        "save a checkpoint also every this many batches of an epoch (default: at the end of epochs)",
        AT_LEAST_1,
    )
    max_minutes: float | None = changeable(
        None,
        "time limit; training stops after the epoch that reaches it, at a learning rate that may still be high "
        "(default: none)",
        POSITIVE,
    )
    learning_rate: float | None = setting(
        None,
        "peak learning rate, from which it falls to zero at the end of --epochs (default: 0.32 / hidden_dim, "
        "0.064 with --init-from, 1.28 with --lora-rank; with more than two --directions times 2 / their number)",
        POSITIVE,
    )
    warmup_ratio: float = setting(0.08, "share in [0, 1) of all steps until the learning rate peaks", RATE)
    label_smoothing: float = setting(0.1, "probability mass in [0, 1) spread over the vocabulary", RATE)
    clip_norm: float | None = setting(1.0, "largest global norm of the gradient (0: no clipping)", AT_LEAST_0)
    monitor: str = setting("val_loss", "metric that chooses the best epoch", choices=MONITORS)
    patience: int | None = changeable(
        None, "stop after this many epochs without improvement (default: never)", AT_LEAST_1
    )
    subword_sampling: float = setting(
        0.0, "subword regularisation: alpha in (0, 1) of segmentations sampled in every pass; 0 for none", RATE
    )
    subword_sampling_passes: int | None = setting(
        None,
        "passes with sampled segmentations; later passes use those of translation "
        "(default: five eighths of --epochs; with --steps-per-epoch all)",
        AT_LEAST_1,
    )
    placeholder_share: float = setting(
        0.1, "share in [0, 1) of the training pairs in which words become placeholders, drawn in every pass", RATE
    )
    strategy: str = changeable(
        "auto",
        "devices: one, mirrored (all of this machine), multi_worker (TF_CONFIG or Slurm), auto (what is available)",
        choices=STRATEGIES,
    )
    gradient_accumulation_steps: int = changeable(
        1, "parts that a batch is split into, with one update for all: saves memory", AT_LEAST_1
    )
    jit_compile: bool = changeable(False, "compile the training step with XLA, once for every batch shape")
    seed: int = setting(0, "seed of weights, dropout, batch order and tokenizer sampling", SEED)
