"""Every setting of a run: frozen dataclasses, JSON beside the weights; `commands.flags` makes flags of the fields.

Priority: a flag overrides the `--config` file, then come the data set's recipe, the preset and the default. If a file
names a preset and a data set, as the config.json of a run does, only its differences from these two are used. So with
another `--dataset` or `--preset`, chosen settings stay, and the others come from the new recipe or preset. A data set
that is named on the command line also replaces the file's own texts.
"""

import dataclasses
import json
import math
from collections import ChainMap
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from pathlib import Path

from keras_transformer.search.settings import SearchSettings
from keras_transformer.settings import ConfigError, checked, one_of
from keras_transformer.training.presets import (
    FINE_TUNING,
    FINE_TUNING_RATE,
    LOW_RANK_RATE,
    OWN_TO_FINE_TUNING,
    PEAK_RATE,
    PRESETS,
    RECIPES,
)
from keras_transformer.training.sections import (
    OWN_FILES,
    DataConfig,
    ModelConfig,
    TokenizerConfig,
    TrainingConfig,
)

SECTIONS = {
    "model": ModelConfig,
    "data": DataConfig,
    "tokenizer": TokenizerConfig,
    "training": TrainingConfig,
    "search": SearchSettings,
}


def _names(*sections):
    """The names of the settings in these sections; a name is in one section only."""
    return {f.name for section in sections for f in dataclasses.fields(SECTIONS[section])}


# What `--resume` may change.
CHANGEABLE = {f.name for s in SECTIONS.values() for f in dataclasses.fields(s) if f.metadata["changeable"]}

# Settings that have no effect without another one.
DEPENDENT = {
    "identify_languages": "clean",
    "encoder_layers": "layers_from",
    "decoder_layers": "layers_from",
    "teacher_weight": "teacher",
    "subword_sampling_passes": "subword_sampling",
    "general_weight": "general",
    "lora_rank": "init_from",
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
    search: SearchSettings = SearchSettings()

    @classmethod
    def make(
        cls,
        settings: Mapping,
        file: Mapping | None = None,
        init: "RunConfig | None" = None,
        vocabulary: "RunConfig | None" = None,
        layers: "RunConfig | None" = None,
    ) -> "RunConfig":
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
        file = _chosen(file or {}, init)
        if "dataset" in settings and "train" not in settings:
            file = {key: value for key, value in file.items() if key not in OWN_FILES}
        # With the same weights, pre-norm and post-norm blocks compute different things.
        blocks = {"normalize_first": layers.model.normalize_first} if layers else {}
        needed = {} if vocabulary is None else vocabulary.of_vocabulary()
        config = cls.of_flat(_resolved(ChainMap(settings, file, blocks, needed), init))
        if init is not None:
            config.check_fits(init)
        if vocabulary is not None:
            config.check_same(vocabulary, needed, "whose vocabulary it takes")
        if layers is not None:
            config.check_same(layers, blocks, "whose blocks it begins with")
        return config

    def of_vocabulary(self) -> dict:
        """The flat settings of the vocabulary."""
        names = _names("tokenizer") - {"vocabulary_from"}
        return {name: value for name, value in self.flat().items() if name in names}

    def check_fits(self, init: "RunConfig") -> None:
        """Raises a ConfigError unless the weights and the vocabulary of the run `init` fit this config."""
        fixed = _names("model", "tokenizer") - {*OWN_TO_FINE_TUNING, "vocabulary_from"}
        if init.model.position_type == "learned":
            fixed.add("max_length")
        self.check_same(init, fixed, "that is fine-tuned")

    def check_same(self, run: "RunConfig", fixed: Collection[str], which: str) -> None:
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
    def of_flat(cls, flat: Mapping) -> "RunConfig":
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

    def check(self, before_training: bool = False) -> None:
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
        if (self.training.lora_rank or 0) > self.model.hidden_dim:
            raise ConfigError(
                "`lora_rank` must be at most `hidden_dim`: no matrix has a higher rank. Received: "
                f"lora_rank={self.training.lora_rank}, hidden_dim={self.model.hidden_dim}. Usual are 4 to 64."
            )
        if self.tokenizer.separate_vocabularies and self.model.tie_embeddings == "all":
            # Checked here: the model knows only the sizes, and two vocabularies can have the same size.
            raise ConfigError(
                "`tie_embeddings='all'` needs one vocabulary: source and target share a matrix. Received: "
                "separate_vocabularies=True. Use tie_embeddings='target', or a shared vocabulary."
            )
        if not before_training:
            return
        alpha = self.training.subword_sampling
        if alpha and self.tokenizer.tokenizer != "unigram":
            raise ConfigError(
                "`subword_sampling` needs a unigram tokenizer: others have no probabilities to draw segmentations by. "
                f"Received: subword_sampling={alpha}, tokenizer={self.tokenizer.tokenizer!r}. Leave out one of them."
            )
        values, usual = self.flat(), RunConfig().flat()
        for name, needed in DEPENDENT.items():
            if values[name] != usual[name] and not values[needed]:
                raise ConfigError(
                    f"`{name}` has no effect without `{needed}`. Received: {name}={values[name]!r} alone."
                )
        if self.data.bleu_tokenize:
            check_bleu_tokenizer(self.data.bleu_tokenize)

    @classmethod
    def of_file(cls, path: str | Path) -> "RunConfig":
        """The settings of a run, from its `config.json`.

        Raises:
            ConfigError: the file is missing or is not what a run writes.
        """
        try:
            content = _read(path)
            missing = [name for name in SECTIONS if not isinstance(content.get(name), dict)]
            if missing or "preset" not in content:
                raise ConfigError(
                    f"{path} must have the sections of a run. Missing: {', '.join(missing or ['preset'])}."
                )
            # Of older runs, whose models still translate.
            for gone in ("ema_momentum", "warmup_steps", "checkpoint_minutes"):
                content["training"].pop(gone, None)
            return cls.of_flat(_flat(path, content))
        except ConfigError as error:
            message = str(error) if str(path) in str(error) else f"{path}: {error}"
            raise ConfigError(f"{message} Restore it from a copy, or train again with --overwrite.") from error

    def resumed(self, settings: Mapping) -> "RunConfig":
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
            if [text[key] for text in new[name]] != [text[key] for text in old[name]] and name not in others:
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

    def peak_learning_rate(self) -> float:
        """The highest learning rate: the one that was chosen, or that of the model's width and number of directions.

        With Adam, wider models need smaller steps ("Tensor Programs V", Yang et al., 2022, table 3). With more than two
        directions, a batch has fewer pairs of each, so its gradient is noisier: with the rate of one direction, a model
        of six did not learn to read its source.
        """
        recipe = self.training
        rate = LOW_RANK_RATE if recipe.lora_rank else FINE_TUNING_RATE if recipe.init_from else PEAK_RATE
        rate /= self.model.hidden_dim * max(1, len(self.data.all_directions()) / 2)
        return recipe.learning_rate or rate

    def to_dict(self) -> dict:
        """Nested plain values, as in `config.json`."""
        return json.loads(json.dumps(dataclasses.asdict(self)))

    def flat(self) -> dict:
        """All settings in one dictionary, as `make` takes them."""
        flat = {"preset": self.preset}
        for name in SECTIONS:
            flat |= vars(getattr(self, name))
        return flat


def _sections(flat):
    """The sections of a flat dictionary; each setting is checked by itself."""
    one_of("preset", flat.get("preset", "tiny"), PRESETS)
    sections = {name: section(**section_settings(name, flat)) for name, section in SECTIONS.items()}
    if unknown := flat.keys() - _names(*SECTIONS) - {"preset"}:
        raise ConfigError(f"No such setting: {', '.join(sorted(unknown))}. `--help all` lists all of them.")
    return sections


def section_settings(name: str, flat: Mapping) -> dict:
    """The settings of one section in a flat dictionary, such as all flags: checked values by field name.

    Raises:
        ConfigError: a value is invalid.
    """
    section = SECTIONS[name]
    return {f.name: checked(section, f, flat[f.name]) for f in dataclasses.fields(section) if f.name in flat}


# Where the settings come from that nobody chose. Each layer is a dictionary; the first that has a setting decides.


def _resolved(chosen, init=None):
    """The settings that differ from the fields' defaults: those that were chosen, then those of the layers below."""
    if init is not None:
        return ChainMap(chosen, _inherited(init), FINE_TUNING)
    return ChainMap(chosen, _recipe(chosen), _preset(chosen), _tied(chosen))


def _inherited(init):
    """What fine-tuning takes from the run `init`. The new run has its own tokenizer, and no shortlist yet."""
    names = _names("model", "tokenizer", "search") - {"vocabulary_from", "shortlist"}
    names |= {"preset", "max_length", "source_language", "target_language", "bleu_tokenize"}
    return {name: value for name, value in init.flat().items() if name in names}


def _recipe(chosen):
    """The recipe of the data set, adapted to the tokenizer."""
    recipe = dict(RECIPES[one_of("dataset", chosen.get("dataset", "phrasebook"), RECIPES)])
    if chosen.get("train"):  # There is no recipe for own text.
        return {}
    if chosen.get("tokenizer", "unigram") != "unigram":
        recipe.pop("subword_sampling", None)  # Other tokenizers have no probabilities of segmentations.
    return recipe


def _preset(chosen):
    return PRESETS[one_of("preset", chosen.get("preset", "tiny"), PRESETS)]


def _tied(chosen):
    return {"tie_embeddings": "target"} if chosen.get("separate_vocabularies") else {}


def _chosen(file, init=None):
    """The chosen settings of a file: if it names a preset and a data set, those that differ from what these give.

    A list of chosen names in config.json would not do: an edit of another value there would have no effect.
    """
    if not {"preset", "dataset"} <= file.keys():
        return file
    if init is not None:
        given = RunConfig.of_flat(_resolved({}, init)).flat()
        return {key: value for key, value in file.items() if key == "dataset" or value != given.get(key)}
    kept = {"preset", "dataset", "tokenizer", *OWN_FILES}  # The values of the other settings depend on these.
    named = {key: file[key] for key in kept & file.keys()}
    drawn = {key: file[key] for key in ("epochs", "steps_per_epoch", "subword_sampling") if key in file}
    given = RunConfig.of_flat(_resolved(named)).flat()
    of_epochs = RunConfig.of_flat(_resolved({**named, **drawn}))
    given["subword_sampling_passes"] = of_epochs.training.subword_sampling_passes
    return {key: value for key, value in file.items() if key in kept or key not in given or value != given[key]}


def read_config_file(path: str | Path) -> dict:
    """Settings of a JSON file, flat: a `config.json` of a run, or any part of one.

    Raises:
        ConfigError: the file is missing, is not a JSON object, or has an unknown setting or an invalid value.
    """
    return _flat(path, _read(path))


def read_json(path: str | Path) -> dict:
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


# Names of settings in older files, and those in the section of the search, which was called "decoding".
_RENAMED = {"accumulate": "gradient_accumulation_steps", "xla": "jit_compile"}
_RENAMED |= {"decoding_max_length": "max_target_length"}
_RENAMED_IN_SEARCH = {"max_length": "max_target_length", "seed": "sampling_seed"}


def _read(path):
    """`read_json`; the section of the search in older runs gets its name of today."""
    content = read_json(path)
    sections = [content[name] for name in ("decoding", "search") if isinstance(content.get(name), dict)]
    if sections:
        content.pop("decoding", None)
        content["search"] = {
            _RENAMED_IN_SEARCH.get(k, k): value for section in sections for k, value in section.items()
        }
    return content


def _flat(path, content):
    flat = {}
    for key, value in content.items():
        flat |= value if key in SECTIONS and isinstance(value, dict) else {key: value}
    flat = {_RENAMED.get(key, key): value for key, value in flat.items()}
    for name in (*OWN_FILES, "general", "general_test"):  # Older runs have settings for each side.
        sides = [flat.pop(f"{name}_{side}", None) for side in ("source", "target")]
        if all(sides):
            flat[name] = [sides, *flat.get(name, ())]
    try:
        _sections(flat)
    except ConfigError as error:
        raise ConfigError(f"{path}: {error}") from error
    return flat


def check_bleu_tokenizer(name: str) -> None:
    """Raises a ConfigError unless sacreBLEU has a tokenizer of this name, and what it needs is installed."""
    import sacrebleu

    try:
        sacrebleu.BLEU(tokenize=name)
    except Exception as error:  # Each of sacreBLEU's tokenizers has errors of its own.
        raise ConfigError(
            f"`bleu_tokenize` must be one of sacreBLEU's {', '.join(map(str, sacrebleu.BLEU.TOKENIZERS))}, and "
            f"installed. Received: {name!r}. sacreBLEU says: {' '.join(str(error).split())}."
        ) from error
