"""Every setting of a run: frozen dataclasses, JSON beside the weights, command-line flags made from the fields.

What wins over what: a flag, then the `--config` file, then the data set's recipe, then the preset, then the default.
A file that names a preset and a data set, as the config.json of a run does, says only what differs from what these two
give. So with another `--dataset` or `--preset`, what its author chose stays, and the rest is that of the new one.
A data set's name on the command line also replaces the file's own texts.
"""

import argparse
import contextlib
import dataclasses
import json
import math
import numbers
import os
import signal
import sys
import types
import typing
from dataclasses import dataclass, field
from pathlib import Path

# Settings that name the user's own texts; where there are such, they are the data set.
OWN_FILES = ("train_source", "train_target", "val_source", "val_target", "test_source", "test_target")
# What `plot` draws, and which of it needs no trained run.
PICTURES = ("positions", "embeddings", "masks", "attention", "schedule", "curves", "beam")
PICTURES_WITHOUT_RUN = ("positions", "masks", "schedule")


class ConfigError(ValueError):
    """A setting that does not exist or cannot be."""


def _setting(default, help, choices=None, also=(), changeable=False):
    """A field and its flag. With another value, finished epochs would be other ones: `--resume` refuses it."""
    metadata = {"help": help, "choices": choices, "also": also, "changeable": changeable}
    return field(default=default, metadata=metadata)


def _changeable(*args, **kwargs):
    """A field that `--resume` may change: what finished epochs are does not depend on it."""
    return _setting(*args, **kwargs, changeable=True)


@dataclass(frozen=True)
class ModelConfig:
    """The arguments of `keras_transformer.Transformer`; vocabulary sizes come from the tokenizers."""

    num_layers: int = _setting(4, "encoder blocks")
    num_decoder_layers: int | None = _setting(None, "decoder blocks (default: as many as encoder blocks)")
    num_heads: int = _setting(4, "attention heads; must divide --hidden-dim")
    hidden_dim: int = _setting(128, "width of the model")
    intermediate_dim: int = _setting(256, "width of the feed-forward sublayers")
    dropout: float = _setting(0.1, "rate in [0, 1) on embeddings and on every sublayer's output")
    attention_dropout: float = _setting(0.0, "rate in [0, 1) on the attention scores")
    activation: str = _setting("relu", "any Keras activation, for the feed-forward sublayers")
    normalize_first: bool = _setting(False, "pre-norm instead of the paper's post-norm")
    layer_norm_epsilon: float = _setting(1e-6, "added to the variance in layer normalisation")
    tie_embeddings: str = _setting(
        "all",
        "which of the two embeddings and the output projection are one matrix (separate vocabularies: target)",
        ("all", "target", "none"),
    )
    position_type: str = _setting("sinusoidal", "kind of positions", ("sinusoidal", "learned"))
    dtype: str = _setting(
        "float32", "dtype policy", ("float32", "mixed_bfloat16", "mixed_float16"), also=("--dtype-policy",)
    )


@dataclass(frozen=True)
class DataConfig:
    """Where the sentence pairs come from and how they become batches."""

    dataset: str = _setting(
        "phrasebook", "phrasebook: embedded; multi30k: downloaded, or read from --data-dir", ("phrasebook", "multi30k")
    )
    data_dir: str | None = _changeable(None, "folder with the Multi30k files (default: download and cache)")
    variant: str = _setting("", "Multi30k text: empty for raw, lc.norm.tok for the lower-cased, tokenised form")
    test_set: str = _changeable("test_2016_flickr", "Multi30k test set")
    source_language: str = _setting("en", "language code of the source, a part of Multi30k's file names")
    target_language: str = _setting("de", "language code of the target")
    train_source: str | None = _changeable(None, "own training text, one sentence a line, .gz too")
    train_target: str | None = _changeable(None, "its translation, line by line")
    val_source: str | None = _changeable(None, "own validation text")
    val_target: str | None = _changeable(None, "its translation")
    test_source: str | None = _changeable(None, "own test text (default: the validation text)")
    test_target: str | None = _changeable(None, "its translation")
    max_length: int = _setting(128, "longest sentence, in tokens, the end token included")
    over_long: str = _setting("drop", "what becomes of longer training pairs", ("drop", "cut"))
    tokens_per_batch: int = _setting(4096, "padded target tokens of a batch; source tokens, up to twice as many")
    bleu_tokenize: str | None = _changeable(
        None, "sacreBLEU's tokenizer (default: none for lc.norm.tok, which is tokenised, else 13a)"
    )

    def sacrebleu_tokenizer(self):
        """What BLEU is to be computed with: on tokenised text, nothing may split it again."""
        return self.bleu_tokenize or ("none" if self.variant == "lc.norm.tok" else "13a")


@dataclass(frozen=True)
class TokenizerConfig:
    """How text becomes token ids."""

    tokenizer: str = _setting("unigram", "kind of subword tokenizer", ("unigram", "bpe", "wordpiece"))
    vocabulary_size: int | None = _setting(
        None, "token ids per vocabulary (default: 8,000 or what the text supports, whichever is less)"
    )
    separate_vocabularies: bool = _setting(False, "one vocabulary per language instead of a shared one")


@dataclass(frozen=True)
class TrainingConfig:
    """The recipe: section 5 of the paper unless said otherwise."""

    epochs: int = _changeable(30, "passes over the training pairs at most")
    steps_per_epoch: int | None = _setting(
        None, "batches until the next validation and checkpoint, which are then an epoch (default: one pass)"
    )
    max_minutes: float | None = _changeable(None, "stop after the epoch in which they are over (default: never)")
    learning_rate: float | None = _setting(
        None,
        "peak learning rate; a data set's is for the tiny preset, and for others divided by how much wider they are "
        "(default: the paper's, (hidden_dim * warmup_steps)^-0.5)",
    )
    warmup_steps: int = _setting(4000, "optimizer steps until the learning rate peaks")
    label_smoothing: float = _setting(0.1, "probability mass in [0, 1) spread over the vocabulary")
    clip_norm: float | None = _setting(1.0, "largest global norm of the gradient (0: no clipping)")
    ema_momentum: float | None = _setting(
        None, "validate and keep an exponential moving average of the weights, e.g. 0.998 (default: the weights)"
    )
    monitor: str = _setting("val_loss", "what chooses the best epoch", ("val_loss", "val_bleu"))
    patience: int | None = _changeable(None, "stop after this many epochs without a better one (default: never)")
    subword_sampling: float = _setting(
        0.0, "subword regularisation: alpha in (0, 1) of segmentations drawn anew in every pass; 0 for none"
    )
    subword_sampling_passes: int | None = _setting(
        None,
        "passes with drawn segmentations; later ones have those of translation "
        "(default: five eighths of --epochs; with --steps-per-epoch all)",
    )
    strategy: str = _changeable(
        "auto",
        "devices: one, mirrored (all of this machine), multi_worker (TF_CONFIG or Slurm), auto (what there is)",
        ("auto", "one", "mirrored", "multi_worker"),
    )
    gradient_accumulation_steps: int = _changeable(
        1, "micro-batches that a batch is split into, with one update: saves memory"
    )
    xla: bool = _changeable(False, "compile the training step with XLA; every new batch shape is compiled anew")
    seed: int = _setting(0, "seeds weights, dropout, batch order and tokenizer sampling")


@dataclass(frozen=True)
class DecodingConfig:
    """How a trained model translates."""

    num_beams: int = _changeable(4, "beams of the search; 1 is greedy search")
    length_penalty: float = _changeable(0.6, "scores are divided by ((5 + length) / 6)^this")
    decoding_max_length: int | None = _changeable(
        None, "most tokens of a translation (default: see --max-length-ratio)"
    )
    max_length_ratio: float = _changeable(2.0, "most tokens of a translation, per source token; 16 more are allowed")
    min_length: int = _changeable(0, "least tokens of a translation, the end token included")
    no_repeat_ngram_size: int = _changeable(0, "no so many tokens in a row occur twice (0: no such rule)")
    repetition_penalty: float = _changeable(1.0, "log probabilities of tokens that occurred are multiplied by this")
    allow_unknown: bool = _changeable(False, "let translations have the unknown token, written as ⁇")
    sampling: bool = _changeable(False, "draw tokens at random instead of searching for the best")
    temperature: float = _changeable(1.0, "sampling: log probabilities are divided by this")
    top_k: int = _changeable(0, "sampling: only so many of the most probable tokens (0: all)")
    top_p: float = _changeable(1.0, "sampling: only the most probable tokens that together have this probability")
    sampling_seed: int = _changeable(0, "sampling: seed of the drawing")

    def search_settings(self):
        """The arguments of `Translator` that these are; two have a longer name here, beside all other settings."""
        return {_SEARCH_NAMES.get(key, key): value for key, value in dataclasses.asdict(self).items()}

    @classmethod
    def search_flags(cls, given):
        """Those of `search_settings` that a dictionary of flags, these and others, names."""
        given = {key: _checked(cls, key, value) for key, value in given.items() if key in cls.__dataclass_fields__}
        settings = cls(**given).search_settings()
        return {name: settings[name] for name in (_SEARCH_NAMES.get(key, key) for key in given)}


_SEARCH_NAMES = {"decoding_max_length": "max_length", "sampling_seed": "seed"}


def checked_search_setting(name, value):
    """`value`, as the type of the search setting of that name, or a ConfigError that names it."""
    names = {short: long for long, short in _SEARCH_NAMES.items()}
    return _checked(DecodingConfig, names.get(name, name), value, name)


SECTIONS = {
    "model": ModelConfig,
    "data": DataConfig,
    "tokenizer": TokenizerConfig,
    "training": TrainingConfig,
    "decoding": DecodingConfig,
}
# What `--resume` may change.
CHANGEABLE = {f.name for section in SECTIONS.values() for f in dataclasses.fields(section) if f.metadata["changeable"]}

# Sizes; `base` and `big` are the paper's (table 3), `tiny` is the usual one for Multi30k.
PRESETS = {
    "tiny": {"num_layers": 4, "num_heads": 4, "hidden_dim": 128, "intermediate_dim": 256, "dropout": 0.3},
    "small": {"num_layers": 6, "num_heads": 4, "hidden_dim": 256, "intermediate_dim": 1024, "dropout": 0.2},
    "base": {"num_layers": 6, "num_heads": 8, "hidden_dim": 512, "intermediate_dim": 2048, "dropout": 0.1},
    "big": {"num_layers": 6, "num_heads": 16, "hidden_dim": 1024, "intermediate_dim": 4096, "dropout": 0.3},
}

# What a data set needs otherwise than the defaults: small corpora want other steps and rates than the paper's 4.5 M.
# Learning rates are those of the tiny preset.
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
        "length_penalty": 1.0,  # On validation up to 0.5 BLEU over 0.6: hypotheses are short.
    },
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
    decoding: DecodingConfig = DecodingConfig()

    @classmethod
    def make(cls, settings, file=None):
        """A config from settings of the command line and those of a file, both flat: see the top of this module."""
        file = _said(file or {})
        if "dataset" in settings and not settings.keys() & {"train_source", "train_target"}:
            file = {key: value for key, value in file.items() if key not in OWN_FILES}
        return cls.of_flat(_completed({**file, **settings}))

    @classmethod
    def of_flat(cls, flat):
        """A config from one flat dictionary; settings that it does not name have the fields' defaults.

        Raises:
            ConfigError: a setting that does not exist or cannot be.
        """
        sections = _sections(flat)
        if sections["tokenizer"].separate_vocabularies and sections["model"].tie_embeddings == "all":
            # The model knows sizes alone, and two vocabularies can have one size.
            raise ConfigError(
                "`tie_embeddings='all'` needs one vocabulary: source and target share a matrix. Received: "
                "separate_vocabularies=True. Use tie_embeddings='target', or a shared vocabulary."
            )
        recipe = sections["training"]
        if recipe.subword_sampling and not recipe.steps_per_epoch and recipe.subword_sampling_passes is None:
            # As a number, so that a run that goes on for more epochs does not begin to draw again.
            passes = math.ceil(5 / 8 * recipe.epochs)
            sections["training"] = dataclasses.replace(recipe, subword_sampling_passes=passes)
        return cls(preset=flat.get("preset", "tiny"), **sections)

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
        """These settings of a run with others that it is to go on with, flat.

        Raises:
            ConfigError: one of them would make it another run.
        """
        config = self.of_flat({**self.flat(), **settings})
        old, new = self.flat(), config.flat()
        others = [name for name in settings if new[name] != old[name] and name not in CHANGEABLE]
        if others:
            raise ConfigError(
                f"{', '.join(f'`{name}`' for name in others)} must stay as the run began: with another value, its "
                "finished epochs would be other ones. "
                f"Received: {', '.join(f'{name}={new[name]!r} (the run has {old[name]!r})' for name in others)}. Leave "
                f"out {', '.join('--' + name.replace('_', '-') for name in others)}, or begin another run: --overwrite "
                "instead of --resume, or another --run-dir."
            )
        return config

    def to_dict(self):
        """Nested plain values, as in `config.json`."""
        return dataclasses.asdict(self)

    def flat(self):
        """All settings in one dictionary, as `make` takes them."""
        flat = {"preset": self.preset}
        for name in SECTIONS:
            flat.update(dataclasses.asdict(getattr(self, name)))
        return flat


def _sections(flat):
    """The sections of a flat dictionary, in which each setting was checked alone."""
    flat = dict(flat)
    _one_of("preset", flat.pop("preset", "tiny"), PRESETS)
    sections = {}
    for name, section in SECTIONS.items():
        fields = [f.name for f in dataclasses.fields(section)]
        sections[name] = section(**{key: _checked(section, key, flat.pop(key)) for key in fields if key in flat})
    if flat:
        raise ConfigError(f"No such setting: {', '.join(sorted(flat))}. `--help` lists all of them.")
    return sections


def _completed(settings):
    """`settings`, and what the preset and the data set that they name give where they say nothing."""
    preset = _one_of("preset", settings.get("preset", "tiny"), PRESETS)
    dataset = _one_of("dataset", settings.get("dataset", "phrasebook"), RECIPES)
    own = settings.get("train_source") or settings.get("train_target")  # Nobody knows what these need.
    completed = {**PRESETS[preset], **({} if own else _recipe(dataset, preset, settings)), **settings}
    if completed.get("separate_vocabularies"):
        completed.setdefault("tie_embeddings", "target")
    return completed


def _recipe(dataset, preset, settings):
    """What the data set needs, as the preset and the tokenizer want it."""
    recipe = dict(RECIPES[dataset])
    # With Adam, wider models want smaller steps ("Tensor Programs V", Yang et al., 2022, table 3).
    recipe["learning_rate"] *= PRESETS["tiny"]["hidden_dim"] / PRESETS[preset]["hidden_dim"]
    if settings.get("tokenizer", "unigram") != "unigram":
        recipe.pop("subword_sampling", None)  # Others know no probabilities to draw segmentations by.
    return recipe


def _said(file):
    """What a file says: of one that names a preset and a data set, what differs from what these two give."""
    if not {"preset", "dataset"} <= file.keys():
        return file
    kept = {"preset", "dataset", "tokenizer", *OWN_FILES}  # On these, what the others are by themselves depends.
    named = {key: value for key, value in file.items() if key in kept}
    drawn = {key: file[key] for key in ("epochs", "steps_per_epoch", "subword_sampling") if key in file}
    given = RunConfig.of_flat(_completed(named)).flat()
    given["subword_sampling_passes"] = RunConfig.of_flat(
        _completed({**named, **drawn})
    ).training.subword_sampling_passes
    return {key: value for key, value in file.items() if key in kept or key not in given or value != given[key]}


def _one_of(name, value, choices):
    if value not in tuple(choices):
        raise ConfigError(f"`{name}` must be one of {tuple(choices)}. Received: {value!r}.")
    return value


def _types(section, name):
    hint = typing.get_type_hints(section)[name]
    return typing.get_args(hint) if isinstance(hint, types.UnionType) else (hint,)


def _checked(section, field_name, value, name=None):
    """`value`, as the field's type, or a ConfigError that names the setting."""
    name = name or field_name
    allowed = _types(section, field_name)
    if isinstance(value, numbers.Real) and not isinstance(value, bool):  # NumPy's, too.
        integral = isinstance(value, numbers.Integral)
        value = int(value) if integral and int in allowed else float(value) if float in allowed else value
    if type(value) not in allowed:
        expected = " or ".join("null" if t is types.NoneType else t.__name__ for t in allowed)
        raise ConfigError(f"`{name}` must be {expected}. Received: {value!r}.")
    choices = next(f for f in dataclasses.fields(section) if f.name == field_name).metadata["choices"]
    if choices:
        _one_of(name, value, choices)
    _check_number(name, value)
    return value


def _check_number(name, value):
    """Raises a ConfigError unless a number, or None, is what a setting of that name may be."""
    for names, holds, rule in _RULES:
        if name in names and value is not None and not holds(value):
            raise ConfigError(f"`{name}` must be {rule}. Received: {value!r}.")
    if isinstance(value, float) and not math.isfinite(value):
        raise ConfigError(f"`{name}` must be a finite number. Received: {value!r}.")


_COUNTS = (
    "num_layers num_decoder_layers num_heads hidden_dim intermediate_dim epochs warmup_steps num_beams max_length "
    "tokens_per_batch patience decoding_max_length vocabulary_size steps_per_epoch gradient_accumulation_steps "
    "subword_sampling_passes"
)
_RULES = (
    (_COUNTS.split(), lambda value: value >= 1, "at least 1"),
    (["num_beams"], lambda value: value <= 256, "at most 256: each beam takes memory for logits and caches of its own"),
    (
        ("dropout", "attention_dropout", "label_smoothing", "ema_momentum", "subword_sampling"),
        lambda value: 0 <= value < 1,
        "in [0, 1)",
    ),
    (
        ["learning_rate", "max_minutes", "layer_norm_epsilon", "repetition_penalty"],
        lambda value: value > 0,
        "positive",
    ),
    (["temperature"], lambda value: value > 0, "positive; for the most probable token use num_beams=1"),
    (
        ["clip_norm", "max_length_ratio", "min_length", "no_repeat_ngram_size", "top_k"],
        lambda value: value >= 0,
        "at least 0",
    ),
    (("top_p",), lambda value: 0 < value <= 1, "in (0, 1]"),
    (("seed", "sampling_seed"), lambda value: 0 <= value < 2**32, "between 0 and 2^32 - 1"),
)


def read_config_file(path):
    """Settings of a JSON file, flat: a `config.json` of a run, or any part of one.

    Raises:
        ConfigError: the file is missing, is not a JSON object, or has a setting that does not exist or cannot be.
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
        raise ConfigError(f"{path} must hold a JSON object of settings. Received: lists in lists, too many.") from error
    if not isinstance(content, dict):
        raise ConfigError(f"{path} must hold a JSON object of settings. Received: {type(content).__name__}.")
    return content


# What config.json called a setting in older runs.
_RENAMED = {"accumulate": "gradient_accumulation_steps"}


def _flat(path, content):
    flat = {}
    for key, value in content.items():
        flat.update(value if key in SECTIONS and isinstance(value, dict) else {key: value})
    flat = {_RENAMED.get(key, key): value for key, value in flat.items()}
    try:
        _sections(flat)
    except ConfigError as error:
        raise ConfigError(f"{path}: {error}") from error
    return flat


def add_flags(parser, *sections):
    """Adds one flag per field of the named sections, grouped; flags that are not given stay out of the result."""
    for name in sections:
        group = parser.add_argument_group(f"{name} settings")
        for f in dataclasses.fields(SECTIONS[name]):
            flags = ["--" + f.name.replace("_", "-"), *f.metadata["also"]]
            text = f.metadata["help"]
            kwargs = {"dest": f.name, "default": argparse.SUPPRESS}
            if bool in _types(SECTIONS[name], f.name):
                group.add_argument(*flags, action=argparse.BooleanOptionalAction, help=text, **kwargs)
                continue
            if f.default is not None and f.default != "":
                text += f" (default: {f.default}{_changed_by(f.name)})"
            elif _changed_by(f.name):
                text = f"{text[:-1]}{_changed_by(f.name)})"  # These say themselves what None means.
            kind = next(t for t in _types(SECTIONS[name], f.name) if t is not types.NoneType)
            metavar = None if f.metadata["choices"] else {int: "N", float: "X", str: "TEXT"}[kind]
            group.add_argument(*flags, type=kind, choices=f.metadata["choices"], metavar=metavar, help=text, **kwargs)


def _changed_by(name):
    """Which presets and recipes replace a default, for `--help`."""
    changes = {**PRESETS, **RECIPES}
    changed = [f"{key}: {values[name]}" for key, values in changes.items() if name in values]
    return "; " + ", ".join(changed) if changed else ""


@contextlib.contextmanager
def user_errors(hint=""):
    """Around a command: what the user did, or can mend, ends it with one line instead of a traceback.

    The exit status is 2 for an error, 130 for Ctrl-C, 143 for SIGTERM and 141 for a closed pipe, as in a shell.

    Args:
        hint: what to do next, a string or a function that returns it; printed behind an interruption or an error of
            a file. Defaults to nothing.
    """
    before = None
    with contextlib.suppress(ValueError):  # Only the main thread can.
        before = signal.signal(signal.SIGTERM, _terminate)
    try:
        yield
        sys.stdout.flush()  # What fails here fails in the middle of Python's exit otherwise.
    except BrokenPipeError as error:  # Who read our output has enough of it, such as `head`.
        _close_standard_output()
        raise SystemExit(128 + signal.SIGPIPE) from error
    except (ValueError, OSError, ImportError) as error:
        if isinstance(error, ImportError) and "pip install" not in str(error):
            raise  # A package that is missing has such a message; this one is broken.
        message = str(error)
        if isinstance(error, OSError) and error.strerror:
            message = f"Cannot use {error.filename or 'standard output'}: {error.strerror}. {_text(hint)}".rstrip()
            _close_standard_output()
        print(f"error: {message}", file=sys.stderr)
        raise SystemExit(2) from error
    except KeyboardInterrupt as error:
        terminated = isinstance(error, _Terminated)
        print(f"{'Terminated' if terminated else 'Interrupted'}. {_text(hint)}".rstrip(), file=sys.stderr)
        raise SystemExit(128 + (signal.SIGTERM if terminated else signal.SIGINT)) from error
    finally:
        if before is not None:
            signal.signal(signal.SIGTERM, before)


def _text(hint):
    return hint() if callable(hint) else hint


class _Terminated(KeyboardInterrupt):
    """SIGTERM; who cleans up after Ctrl-C cleans up after this."""


def _terminate(number, frame):
    raise _Terminated


def _close_standard_output():
    """Keeps Python from writing what is left once more when it exits, and from failing at it."""
    with contextlib.suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
