"""Every setting of a run: frozen dataclasses, JSON beside the weights; `command_line` makes flags of the fields.

Priority: a flag overrides the `--config` file, then come the data set's recipe, the preset and the default. If a file
names a preset and a data set, as the config.json of a run does, only its differences from these two are used. So with
another `--dataset` or `--preset`, chosen settings stay, and the others come from the new recipe or preset. A data set
that is named on the command line also replaces the file's own texts.
"""

import dataclasses
import functools
import json
import math
import os
import re
from dataclasses import dataclass
from pathlib import Path

from keras_transformer.search.settings import SearchSettings
from keras_transformer.settings import (
    AT_LEAST_0,
    AT_LEAST_1,
    POSITIVE,
    RATE,
    SEED,
    ConfigError,
    Rule,
    Settings,
    changeable,
    checked,
    flat_name,
    one_of,
    setting,
)

# Parts of a model that `freeze` can name.
PARTS = ("embeddings", "encoder", "decoder")
# Training texts of more bytes than this are tokenized into files instead of memory.
LARGE_TEXT = 64 << 20
# Settings that name the user's own texts. If they are given, they replace the data set.
OWN_FILES = (
    *("train", "train_source", "train_target", "val", "val_source", "val_target"),
    *("test", "test_source", "test_target"),
)
# The settings of `keras_transformer.data.cleaning.Cleaner`.
CLEANING = "source_language", "target_language", "max_characters", "max_character_ratio", "identify_languages"


# Numbers of layers, separated by commas.
LAYERS = Rule(lambda value: re.fullmatch(r"(\d+(,\d+)*)?", value), "numbers separated by commas, such as 0,2")

_DIRECTION = re.compile("[A-Za-z]+(_[A-Za-z0-9]+)*-[A-Za-z]+(_[A-Za-z0-9]+)*")


def directions(name, value):
    """A tuple of directions, such as `("en-de", "de-en")`, from a list of them or of lists of them.

    Raises:
        ConfigError: one of them has another form, or comes twice.
    """
    found = [one for part in value for one in (part if isinstance(part, list | tuple) else [part])]
    for one in found:
        if not isinstance(one, str) or not _DIRECTION.fullmatch(one) or found.count(one) > 1:
            raise ConfigError(
                f"`{name}` must be different pairs of language codes, such as en-de en-fr zh_TW-en. Received: {one!r}."
            )
    return tuple(found)


def corpora(name, value, others=("weight",)):
    """A tuple of dictionaries with source, target, name, direction and others, from lists of words or dictionaries.

    Raises:
        ConfigError: a corpus has another form.
    """
    found, keys = [], ("source", "target", "name", "direction", *others)
    for one in value:
        try:
            if not isinstance(one, dict):
                source, target, *options = one
                one = {"source": source, "target": target, **dict(option.split("=", 1) for option in options)}
            one = {"name": None, "direction": None, **dict.fromkeys(others, 1.0), **one}
            if one.keys() != set(keys):
                raise ValueError(f"unknown: {', '.join(one.keys() - set(keys))}")
            for other in others:
                one[other] = float(one[other])
                if not 0 < one[other] < math.inf:
                    raise ValueError(f"{other} must be positive")
            for side in ("source", "target"):
                one[side] = os.path.abspath(one[side])
            if one["direction"] is not None:
                directions("direction", [one["direction"]])
        except (TypeError, ValueError) as error:
            options = " and ".join(["name=NAME", "direction=SOURCE-TARGET", *(f"{other}=W" for other in others)])
            raise ConfigError(
                f"`{name}` must be SOURCE TARGET, optionally followed by {options}. Received: {one!r} ({error})."
            ) from error
        found.append({key: one[key] for key in keys})
    return tuple(found)


# What `plot` draws, and the kinds that need no trained run.
PICTURES = ("positions", "embeddings", "masks", "attention", "schedule", "curves", "beam")
PICTURES_WITHOUT_RUN = ("positions", "masks", "schedule")


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
    normalize_first: bool = setting(False, "pre-norm instead of the paper's post-norm")
    layer_norm_epsilon: float = setting(1e-6, "added to the variance in layer normalisation", POSITIVE)
    tie_embeddings: str = setting(
        "all",
        "which of the two embeddings and the output projection are one matrix (separate vocabularies: target)",
        choices=("all", "target", "none"),
    )
    position_type: str = setting("sinusoidal", "kind of positions", choices=("sinusoidal", "learned"))
    layout: str = setting(
        "interleaved", "order of the sines and cosines of positions", choices=("interleaved", "concatenated")
    )
    max_wavelength: float = setting(10000.0, "largest wavelength of sinusoidal positions, divided by 2 pi", POSITIVE)
    first_position: int = setting(0, "sinusoidal position of the first token", AT_LEAST_0)
    scale_embeddings: bool = setting(True, "multiply token embeddings by the square root of the width")
    output_bias: bool = setting(False, "a bias in the output projection")
    source_language_token_id: int | None = setting(None, "see `Transformer`; only imported models have it", flag=False)
    dtype: str = setting(
        "float32", "dtype policy", choices=("float32", "mixed_bfloat16", "mixed_float16"), also=("--dtype-policy",)
    )


@dataclass(frozen=True)
class DataConfig(Settings):
    """Where the sentence pairs come from and how they become batches."""

    dataset: str = setting(
        "phrasebook",
        "phrasebook: embedded; multi30k: downloaded, or read from --data-dir; none: only own files",
        choices=("phrasebook", "multi30k", "none"),
    )
    data_dir: str | None = changeable(None, "folder with the Multi30k files (default: download and cache)", path=True)
    variant: str = setting("", "Multi30k text: empty for raw, lc.norm.tok for the lower-cased, tokenised form")
    test_set: str = changeable("test_2016_flickr", "Multi30k test set")
    source_language: str = setting("en", "language code of the source, for Multi30k's file names and for whole texts")
    target_language: str = setting("de", "language code of the target")
    directions: tuple = setting(
        (),
        "directions of one model, such as en-de en-fr de-en; each of your own texts has direction= instead",
        convert=directions,
        metavar="SOURCE-TARGET",
    )
    train_source: str | None = changeable(None, "own training text, one sentence per line, plain or .gz", path=True)
    train_target: str | None = changeable(None, "its translation, line by line", path=True)
    val_source: str | None = changeable(None, "own validation text", path=True)
    val_target: str | None = changeable(None, "its translation", path=True)
    test_source: str | None = changeable(None, "own test text (default: the validation text)", path=True)
    test_target: str | None = changeable(None, "its translation", path=True)
    max_length: int = setting(128, "longest sentence, in tokens, the end token included", AT_LEAST_1)
    general_source: str | None = changeable(
        None, "general text that is mixed into every pass, so that fine-tuning does not forget", path=True
    )
    general_target: str | None = changeable(None, "its translation, line by line", path=True)
    general_weight: float = setting(1.0, "pairs of the general text per own pair", POSITIVE)
    general_test_source: str | None = changeable(None, "general test text, scored before and after training", path=True)
    general_test_target: str | None = changeable(None, "its translation", path=True)
    train: tuple = changeable(
        (),
        "SOURCE TARGET [name=NAME] [weight=W] [direction=en-de]: own training text, any number of times; a pass has W "
        "times its pairs (default: 1)",
        convert=corpora,
        metavar="FILE",
    )
    val: tuple = changeable(
        (),
        "SOURCE TARGET [name=NAME] [direction=en-de]: own validation text, any number of times",
        convert=functools.partial(corpora, others=()),
        metavar="FILE",
    )
    test: tuple = changeable(
        (),
        "SOURCE TARGET [name=NAME] [direction=en-de]: own test text, any number of times",
        convert=functools.partial(corpora, others=()),
        metavar="FILE",
    )
    corpus_temperature: float = setting(
        1.0,
        "T of at least 1: the share of a corpus in a pass is its size to the power of 1 / T, so that small ones come "
        "more often",
        AT_LEAST_1,
    )
    clean: bool = setting(False, "leave out pairs that are probably no translations; see keras_transformer clean")
    max_characters: int = setting(1000, "cleaning: longest line, in characters", AT_LEAST_1)
    max_character_ratio: float = setting(
        3.0, "cleaning: largest ratio of the two sides, in characters (plus 20 characters)", AT_LEAST_1
    )
    identify_languages: bool = setting(
        False, "cleaning: leave out lines in another language; needs pip install lingua-language-detector"
    )
    over_long: str = setting("drop", "what to do with longer training pairs", choices=("drop", "cut"))
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
        None, "sacreBLEU's tokenizer (default: none for lc.norm.tok, which is tokenised; 13a for other text)"
    )

    def all_directions(self):
        """The directions of the training texts, in order, such as `["en-de", "de-en"]`; empty for one without a tag."""
        return list(dict.fromkeys([*self.directions, *(one["direction"] for one in self.train if one["direction"])]))

    def target_languages(self):
        """The target languages of these directions, in order; the first is the default of a translator."""
        return list(dict.fromkeys(direction.split("-")[1] for direction in self.all_directions()))

    def language_of_sources(self):
        """The language code of the sources, for whole texts; None if several directions have different ones."""
        sources = {direction.split("-")[0] for direction in self.all_directions()} or {self.source_language}
        return sources.pop() if len(sources) == 1 else None

    def sacrebleu_tokenizer(self):
        """sacreBLEU's tokenizer for this text: tokenised text must not be split again."""
        return self.bleu_tokenize or ("none" if self.variant == "lc.norm.tok" else "13a")


@dataclass(frozen=True)
class TokenizerConfig(Settings):
    """How text becomes token ids."""

    vocabulary_from: str | None = setting(
        None, "run folder whose vocabulary this run takes: for ensembles, and for students of a teacher", path=True
    )
    tokenizer: str = setting("unigram", "kind of subword tokenizer", choices=("unigram", "bpe", "wordpiece"))
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
    """The recipe; the values are those of section 5 of the paper, with exceptions for small corpora."""

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
    teacher_weight: float = setting(0.5, "weight in [0, 1) of the teacher's distribution in the loss", RATE)
    epochs: int = changeable(30, "maximum number of passes over the training pairs", AT_LEAST_1)
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
    checkpoint_minutes: float | None = changeable(
        None,
        "save a checkpoint also when the last one is this many minutes old (default: at the end of epochs)",
        POSITIVE,
    )
    max_minutes: float | None = changeable(
        None, "time limit; training stops after the epoch that reaches it (default: none)", POSITIVE
    )
    learning_rate: float | None = setting(
        None,
        "peak learning rate; recipes give the tiny preset's rate; wider presets scale it by 128 / hidden_dim, and more "
        "than two --directions by 2 / their number (default: the paper's, (hidden_dim * warmup_steps)^-0.5)",
        POSITIVE,
    )
    warmup_steps: int = setting(4000, "optimizer steps until the learning rate peaks", AT_LEAST_1)
    label_smoothing: float = setting(0.1, "probability mass in [0, 1) spread over the vocabulary", RATE)
    clip_norm: float | None = setting(1.0, "largest global norm of the gradient (0: no clipping)", AT_LEAST_0)
    ema_momentum: float | None = setting(
        None,
        "validate and keep an exponential moving average of the weights, e.g. 0.998; 0 for none (default: the weights)",
        RATE,
    )
    monitor: str = setting("val_loss", "metric that chooses the best epoch", choices=("val_loss", "val_bleu"))
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
        choices=("auto", "one", "mirrored", "multi_worker"),
    )
    gradient_accumulation_steps: int = changeable(
        1, "parts that a batch is split into, with one update for all: saves memory", AT_LEAST_1
    )
    jit_compile: bool = changeable(False, "compile the training step with XLA, once for every batch shape")
    seed: int = setting(0, "seed of weights, dropout, batch order and tokenizer sampling", SEED)


SECTIONS = {
    "model": ModelConfig,
    "data": DataConfig,
    "tokenizer": TokenizerConfig,
    "training": TrainingConfig,
    "decoding": SearchSettings,
}
# What `--resume` may change.
CHANGEABLE = {
    flat_name(f) for section in SECTIONS.values() for f in dataclasses.fields(section) if f.metadata["changeable"]
}

# Families of public models, and their modules in `keras_transformer.transfer.importing`.
FAMILIES = {"opus-mt": "opus_mt", "m2m-100": "m2m_100", "nllb": "m2m_100"}

# Sizes: `base` and `big` are those of the paper (table 3), `tiny` is common for Multi30k. The mobile ones are students:
# translating runs the encoder once and the decoder for every token, so a shallow decoder saves most of the time
# ("Deep Encoder, Shallow Decoder", Kasai et al., 2021). They are pre-norm: a deep post-norm encoder learns
# slowly at first ("Learning Deep Transformer Models for Machine Translation", Wang et al., 2019).
PRESETS = {
    "tiny": {"num_layers": 4, "num_heads": 4, "hidden_dim": 128, "intermediate_dim": 256, "dropout": 0.3},
    "small": {"num_layers": 6, "num_heads": 4, "hidden_dim": 256, "intermediate_dim": 1024, "dropout": 0.2},
    "base": {"num_layers": 6, "num_heads": 8, "hidden_dim": 512, "intermediate_dim": 2048, "dropout": 0.1},
    "big": {"num_layers": 6, "num_heads": 16, "hidden_dim": 1024, "intermediate_dim": 4096, "dropout": 0.3},
    "mobile": {
        **{"num_layers": 6, "num_decoder_layers": 2, "num_heads": 4},
        **{"hidden_dim": 128, "intermediate_dim": 256, "dropout": 0.1, "normalize_first": True},
    },
    "mobile-base": {
        **{"num_layers": 6, "num_decoder_layers": 2, "num_heads": 8},
        **{"hidden_dim": 256, "intermediate_dim": 1024, "dropout": 0.1, "normalize_first": True},
    },
}

# The settings in which a data set differs from the defaults: small corpora need other steps and rates than the paper's
# 4.5 million pairs. Learning rates are those of the tiny preset.
RECIPES = {
    "phrasebook": {
        "epochs": 10,
        "learning_rate": 3e-3,
        "warmup_steps": 200,
        "dropout": 0.1,
        "tokens_per_batch": 2048,
    },
    "multi30k": {
        "vocabulary_size": 5000,
        "epochs": 75,
        "learning_rate": 5e-3,
        "warmup_steps": 2000,
        "dropout": 0.15,
        "ema_momentum": 0.999,
        "subword_sampling": 0.5,
        "tokens_per_batch": 4096,
        "num_beams": 5,
        "length_penalty": 1.0,  # On validation up to 0.5 BLEU better than 0.6, because hypotheses are too short.
    },
    "none": {},
}
# How fine-tuning differs from the defaults. A higher learning rate forgets more; see docs/training.md.
FINE_TUNING = {"epochs": 5, "learning_rate": 5e-4, "warmup_steps": 100, "tokens_per_batch": 2048}
# What a fine-tuned model may have of its own; the rest of its architecture and its vocabulary are given.
OWN_TO_FINE_TUNING = ("dropout", "attention_dropout", "dtype")

# Settings that have no effect without another one.
DEPENDENT = {
    "identify_languages": "clean",
    "encoder_layers": "layers_from",
    "decoder_layers": "layers_from",
    "teacher_weight": "teacher",
}


@dataclass(frozen=True)
class RunConfig:
    """All settings of a run, in sections.

    Example:
        >>> config = RunConfig.make({"preset": "small", "epochs": 3})
        >>> config.model.hidden_dim, config.training.epochs, config.data.dataset
        (256, 3, 'phrasebook')
    """

    preset: str = "tiny"
    model: ModelConfig = ModelConfig()
    data: DataConfig = DataConfig()
    tokenizer: TokenizerConfig = TokenizerConfig()
    training: TrainingConfig = TrainingConfig()
    decoding: SearchSettings = SearchSettings()

    @classmethod
    def make(cls, settings, file=None, init=None, vocabulary=None, layers=None):
        """A config from flat settings of the command line and of a file; for priorities see the top of this module.

        Args:
            settings: of the command line.
            file: of a file. Defaults to None.
            init: the `RunConfig` of the run that is fine-tuned. Defaults to None.
            vocabulary: the `RunConfig` of the run whose vocabulary this one takes. Defaults to None.
            layers: the `RunConfig` of the run whose blocks this one begins with. Defaults to None.

        Raises:
            ConfigError: a setting is invalid, or differs from what the weights of `init`, the vocabulary or the blocks
                need.
        """
        file = _said(file or {}, init)
        if "dataset" in settings and not settings.keys() & {"train", "train_source", "train_target"}:
            file = {key: value for key, value in file.items() if key not in OWN_FILES}
        given = {**file, **settings}
        if vocabulary is not None:
            given = {**vocabulary.of_vocabulary(), **given}
        if layers is not None:  # With the same weights, pre-norm and post-norm blocks compute different things.
            given = {"normalize_first": layers.model.normalize_first, **given}
        config = cls.of_flat(_completed(given, init))
        if init is not None:
            config.check_fits(init)
        if vocabulary is not None:
            config.check_same(vocabulary, vocabulary.of_vocabulary(), "whose vocabulary it takes")
        if layers is not None:
            config.check_same(layers, {"normalize_first"}, "whose blocks it begins with")
        return config

    def of_vocabulary(self):
        """The flat settings of the vocabulary."""
        names = {flat_name(f) for f in dataclasses.fields(TokenizerConfig)} - {"vocabulary_from"}
        return {name: value for name, value in self.flat().items() if name in names}

    def check_fits(self, init):
        """Raises a ConfigError unless the weights and the vocabulary of the run `init` fit this config."""
        fixed = {flat_name(f) for name in ("model", "tokenizer") for f in dataclasses.fields(SECTIONS[name])}
        fixed -= set(OWN_TO_FINE_TUNING) | {"vocabulary_from"}
        if init.model.position_type == "learned":
            fixed.add("max_length")
        self.check_same(init, fixed, "that is fine-tuned")

    def check_same(self, run, fixed, which):
        """Raises a ConfigError unless the settings `fixed` are those of the config `run`, of the run `which`."""
        old, new = run.flat(), self.flat()
        others = sorted(name for name in fixed if old[name] != new[name])
        if others:
            raise ConfigError(
                f"{', '.join(f'`{name}`' for name in others)} must be as in the run {which}: its weights "
                "and its vocabulary need it. Received: "
                f"{', '.join(f'{name}={new[name]!r} (the run has {old[name]!r})' for name in others)}. Leave out "
                f"{', '.join('--' + name.replace('_', '-') for name in others)}."
            )

    @classmethod
    def of_flat(cls, flat):
        """A config from one flat dictionary; settings that it does not name have the fields' defaults.

        Raises:
            ConfigError: a setting does not exist or has an invalid value.
        """
        sections = _sections(flat)
        recipe = sections["training"]
        if recipe.subword_sampling and not recipe.steps_per_epoch and recipe.subword_sampling_passes is None:
            # Stored as a number, so that a run that is resumed with more epochs does not start to sample again.
            passes = math.ceil(5 / 8 * recipe.epochs)
            sections["training"] = dataclasses.replace(recipe, subword_sampling_passes=passes)
        config = cls(preset=flat.get("preset", "tiny"), **sections)
        config.check()
        return config

    def check(self, before_training=False):
        """All rules between settings; `before_training` adds those that only a training needs.

        Raises:
            ConfigError: two settings do not fit, or one has no effect without another.
        """
        for name, other in (("tokenizer", "vocabulary_from"), ("training", "layers_from")):
            if self.training.init_from and getattr(getattr(self, name), other):
                raise ConfigError(
                    "A run that is fine-tuned has the vocabulary and all weights of `init_from`. "
                    f"Received: `init_from` and `{other}`. Leave out --{other.replace('_', '-')}."
                )
        if self.tokenizer.separate_vocabularies and self.model.tie_embeddings == "all":
            # Checked here: the model knows only the sizes, and two vocabularies can have the same size.
            raise ConfigError(
                "`tie_embeddings='all'` needs one vocabulary: source and target share a matrix. Received: "
                "separate_vocabularies=True. Use tie_embeddings='target', or a shared vocabulary."
            )
        if not before_training:
            return
        alpha, passes = self.training.subword_sampling, self.training.subword_sampling_passes
        if alpha and self.tokenizer.tokenizer != "unigram":
            raise ConfigError(
                "`subword_sampling` needs a unigram tokenizer: others have no probabilities to draw segmentations by. "
                f"Received: subword_sampling={alpha}, tokenizer={self.tokenizer.tokenizer!r}. Leave out one of them."
            )
        if passes is not None and not alpha:
            raise ConfigError(
                "`subword_sampling_passes` needs `subword_sampling`: nothing is drawn without it. "
                f"Received: subword_sampling_passes={passes} alone. Try --subword-sampling 0.5."
            )
        values, usual = self.flat(), RunConfig().flat()
        for name, needed in DEPENDENT.items():
            if values[name] != usual[name] and not values[needed]:
                raise ConfigError(
                    f"`{name}` has no effect without `{needed}`. Received: {name}={values[name]!r} alone."
                )
        if tokenize := self.data.bleu_tokenize:
            import sacrebleu

            try:
                sacrebleu.BLEU(tokenize=tokenize)
            except Exception as error:  # Each of sacreBLEU's tokenizers has errors of its own.
                raise ConfigError(
                    f"`bleu_tokenize` must be one of sacreBLEU's {', '.join(map(str, sacrebleu.BLEU.TOKENIZERS))}, and "
                    f"installed. Received: {tokenize!r}. sacreBLEU says: {' '.join(str(error).split())}."
                ) from error

    @classmethod
    def of_file(cls, path):
        """The settings of a run, from its `config.json`.

        Raises:
            ConfigError: the file is missing or is not what a run writes.
        """
        try:
            content = read_json(path)
            missing = [name for name in SECTIONS if not isinstance(content.get(name), dict)]
            if missing or "preset" not in content:
                raise ConfigError(
                    f"{path} must have the sections of a run. Missing: {', '.join(missing or ['preset'])}."
                )
            return cls.of_flat(_flat(path, content))
        except ConfigError as error:
            message = str(error) if str(path) in str(error) else f"{path}: {error}"
            raise ConfigError(f"{message} Restore the file from a copy, or train again with --overwrite.") from error

    def resumed(self, settings):
        """The settings of a run that is resumed with changed settings.

        Args:
            settings: the changes, flat.

        Raises:
            ConfigError: one of them would make it another run.
        """
        config = self.of_flat({**self.flat(), **settings})
        old, new = self.flat(), config.flat()
        others = [name for name in settings if new[name] != old[name] and name not in CHANGEABLE]
        for name, key in (("train", "weight"), ("train", "direction"), ("val", "direction")):
            if [one[key] for one in new[name]] != [one[key] for one in old[name]] and name not in others:
                others.append(name)
        if others:
            raise ConfigError(
                f"{', '.join(f'`{name}`' for name in others)} must stay as the run began: its finished epochs used the "
                "old value. "
                f"Received: {', '.join(f'{name}={new[name]!r} (the run has {old[name]!r})' for name in others)}. Leave "
                f"out {', '.join('--' + name.replace('_', '-') for name in others)}, or start another run: use "
                "--overwrite instead of --resume, or another --run-dir."
            )
        return config

    def to_dict(self):
        """Nested plain values, as in `config.json`."""
        return json.loads(json.dumps(dataclasses.asdict(self)))

    def flat(self):
        """All settings in one dictionary, as `make` takes them."""
        flat = {"preset": self.preset}
        for name in SECTIONS:
            section = getattr(self, name)
            flat.update({flat_name(f): getattr(section, f.name) for f in dataclasses.fields(section)})
        return flat


def _sections(flat):
    """The sections of a flat dictionary; each setting is checked by itself."""
    flat = dict(flat)
    one_of("preset", flat.pop("preset", "tiny"), PRESETS)
    sections = {}
    for name, section in SECTIONS.items():
        sections[name] = section(**section_settings(name, flat))
        flat = {key: value for key, value in flat.items() if key not in map(flat_name, dataclasses.fields(section))}
    if flat:
        raise ConfigError(f"No such setting: {', '.join(sorted(flat))}. `--help` lists all of them.")
    return sections


def section_settings(name, flat):
    """The settings of one section in a flat dictionary, such as all flags: checked values by field name.

    Raises:
        ConfigError: a value is invalid.
    """
    section = SECTIONS[name]
    given = [f for f in dataclasses.fields(section) if flat_name(f) in flat]
    return {f.name: checked(section, f, flat[flat_name(f)], flat_name(f)) for f in given}


def _completed(settings, init=None):
    """`settings`; those that are missing are taken from the preset and the recipe that they name, or from `init`."""
    if init is not None:
        recipe = {**FINE_TUNING}
        recipe["learning_rate"] *= PRESETS["tiny"]["hidden_dim"] / init.model.hidden_dim
        return {**recipe, **_inherited(init), **settings}
    preset = one_of("preset", settings.get("preset", "tiny"), PRESETS)
    dataset = one_of("dataset", settings.get("dataset", "phrasebook"), RECIPES)
    own = any(settings.get(name) for name in ("train", "train_source", "train_target"))  # There is no recipe for these.
    completed = {**PRESETS[preset], **({} if own else _recipe(dataset, preset, settings)), **settings}
    if completed.get("separate_vocabularies"):
        completed.setdefault("tie_embeddings", "target")
    return completed


def _inherited(init):
    """The settings that fine-tuning takes from the run `init`."""
    names = {flat_name(f) for name in ("model", "tokenizer", "decoding") for f in dataclasses.fields(SECTIONS[name])}
    names |= {"preset", "max_length", "source_language", "target_language", "bleu_tokenize"}
    names -= {"vocabulary_from", "shortlist"}  # The new run has its own tokenizer, and no shortlist yet.
    return {name: value for name, value in init.flat().items() if name in names}


def _recipe(dataset, preset, settings):
    """The recipe of the data set, adapted to the preset and the tokenizer."""
    recipe = dict(RECIPES[dataset])
    # With Adam, wider models need smaller steps ("Tensor Programs V", Yang et al., 2022, table 3).
    if "learning_rate" in recipe:
        recipe["learning_rate"] *= PRESETS["tiny"]["hidden_dim"] / PRESETS[preset]["hidden_dim"]
        # A batch has fewer pairs of each direction, so its gradient is noisier. With the rate of one direction, a model
        # of six did not learn to read its source; a model of two did.
        recipe["learning_rate"] /= max(1, len(directions("directions", settings.get("directions") or ())) / 2)
    if settings.get("tokenizer", "unigram") != "unigram":
        recipe.pop("subword_sampling", None)  # Other tokenizers have no probabilities of segmentations.
    return recipe


def _said(file, init=None):
    """The chosen settings of a file: if it names a preset and a data set, those that differ from what these give."""
    if not {"preset", "dataset"} <= file.keys():
        return file
    if init is not None:
        given = RunConfig.of_flat(_completed({}, init)).flat()
        return {key: value for key, value in file.items() if key == "dataset" or value != given.get(key)}
    kept = {"preset", "dataset", "tokenizer", *OWN_FILES}  # The values of the other settings depend on these.
    named = {key: value for key, value in file.items() if key in kept}
    drawn = {key: file[key] for key in ("epochs", "steps_per_epoch", "subword_sampling") if key in file}
    given = RunConfig.of_flat(_completed(named)).flat()
    given["subword_sampling_passes"] = RunConfig.of_flat(
        _completed({**named, **drawn})
    ).training.subword_sampling_passes
    return {key: value for key, value in file.items() if key in kept or key not in given or value != given[key]}


def read_config_file(path):
    """Settings of a JSON file, flat: a `config.json` of a run, or any part of one.

    Raises:
        ConfigError: the file is missing, is not a JSON object, or has an unknown setting or an invalid value.
    """
    return _flat(path, read_json(path))


def read_json(path):
    """The JSON object in a file.

    Raises:
        ConfigError: the file is missing or is not a JSON object.
    """
    try:
        content = json.loads(Path(path).read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else error
        raise ConfigError(f"Cannot read the config file {path}: {reason}.") from error
    except json.JSONDecodeError as error:
        raise ConfigError(f"{path}, line {error.lineno}: not JSON: {error.msg}.") from error
    except RecursionError as error:
        raise ConfigError(f"{path} must hold a JSON object of settings. Received: lists nested too deep.") from error
    if not isinstance(content, dict):
        raise ConfigError(f"{path} must hold a JSON object of settings. Received: {type(content).__name__}.")
    return content


# Names of settings in the config.json of older runs.
_RENAMED = {"accumulate": "gradient_accumulation_steps", "xla": "jit_compile"}


def _flat(path, content):
    flat = {}
    for key, value in content.items():
        if key in SECTIONS and isinstance(value, dict):
            names = {f.name: flat_name(f) for f in dataclasses.fields(SECTIONS[key])}
            flat.update({names.get(name, name): setting for name, setting in value.items()})
        else:
            flat[key] = value
    flat = {_RENAMED.get(key, key): value for key, value in flat.items()}
    try:
        _sections(flat)
    except ConfigError as error:
        raise ConfigError(f"{path}: {error}") from error
    return flat
