"""Settings: what wins over what, flags made from fields, JSON round trip, errors that name the setting."""

import argparse
import dataclasses
import inspect
import json
import types
import typing

import pytest

from keras_transformer.config import (
    PRESETS,
    RECIPES,
    SECTIONS,
    ConfigError,
    DataConfig,
    ModelConfig,
    RunConfig,
    TrainingConfig,
    add_flags,
    read_config_file,
    user_errors,
)

FIELDS = [
    pytest.param(section, f, id=f"{section}.{f.name}")
    for section, cls in SECTIONS.items()
    for f in dataclasses.fields(cls)
]


def parse(*argv, sections=tuple(SECTIONS)):
    parser = argparse.ArgumentParser()
    add_flags(parser, *sections)
    return vars(parser.parse_args(argv))


def kind(section, f):
    """The type of a field, without None."""
    hint = typing.get_type_hints(SECTIONS[section])[f.name]
    return next(t for t in typing.get_args(hint) or (hint,) if t is not types.NoneType)


def flag(f):
    return "--" + f.name.replace("_", "-")


def other_value(section, f):
    """A legal value that is not the default, as the command line spells it, and as Python has it."""
    choices = f.metadata["choices"]
    if choices:
        value = next(choice for choice in choices if choice != f.default)
        return value, value
    return {int: ("13", 13), float: ("0.375", 0.375), str: ("abc", "abc")}[kind(section, f)]


def write(path, content):
    path.write_text(json.dumps(content), encoding="utf-8")
    return path


# What wins over what.


def test_the_default_is_the_tiny_preset_on_the_phrasebook():
    config = RunConfig.make({})
    assert config.preset == "tiny"
    assert config.data.dataset == "phrasebook"
    assert config.model.hidden_dim == PRESETS["tiny"]["hidden_dim"]
    assert config.training.epochs == RECIPES["phrasebook"]["epochs"]


@pytest.mark.parametrize("preset", PRESETS)
def test_a_preset_wins_over_defaults(preset):
    config = RunConfig.make({"preset": preset, "train_source": "a", "train_target": "b"})
    sizes = dataclasses.asdict(config.model)
    assert config.preset == preset
    assert {name: sizes[name] for name in PRESETS[preset]} == PRESETS[preset]
    assert config.model.attention_dropout == ModelConfig().attention_dropout


def test_a_recipe_wins_over_the_preset():
    assert PRESETS["big"]["dropout"] != RECIPES["phrasebook"]["dropout"]
    assert RunConfig.make({"preset": "big"}).model.dropout == RECIPES["phrasebook"]["dropout"]


@pytest.mark.parametrize("dataset", RECIPES)
def test_a_recipe_wins_over_defaults(dataset):
    flat = RunConfig.make({"dataset": dataset}).flat()
    assert {name: flat[name] for name in RECIPES[dataset]} == RECIPES[dataset]


@pytest.mark.parametrize("preset", PRESETS)
def test_wider_presets_learn_in_smaller_steps(preset):
    size, data = {"preset": preset}, {"dataset": "multi30k"}
    wider = PRESETS[preset]["hidden_dim"] / PRESETS["tiny"]["hidden_dim"]
    for layers in ([{**size, **data}], [size, data], [data, size]):
        assert RunConfig.make(*layers).training.learning_rate == RECIPES["multi30k"]["learning_rate"] / wider
    assert RunConfig.make({"preset": preset, "learning_rate": 0.5}).training.learning_rate == 0.5


def test_other_tokenizers_draw_no_segmentations_unless_told():
    assert RunConfig.make({"dataset": "multi30k"}).training.subword_sampling
    assert RunConfig.make({"dataset": "multi30k", "tokenizer": "bpe"}).training.subword_sampling == 0
    assert RunConfig.make({"tokenizer": "bpe"}, {"dataset": "multi30k"}).training.subword_sampling == 0
    assert RunConfig.make({"dataset": "multi30k", "subword_sampling": 0.0}).training.subword_sampling == 0


def test_own_files_have_no_recipe():
    config = RunConfig.make({"train_source": "a", "train_target": "b"})
    assert config.training == TrainingConfig()
    assert config.model.dropout == PRESETS["tiny"]["dropout"]


def test_flag_over_file_over_recipe_over_preset_over_default(tmp_path):
    file = read_config_file(write(tmp_path / "c.json", {"training": {"epochs": 5, "warmup_steps": 50}}))
    flags = parse("--epochs", "7")
    config = RunConfig.make(flags, file)
    recipe = RECIPES["phrasebook"]
    assert config.training.epochs == 7  # Flag.
    assert config.training.warmup_steps == 50  # File.
    assert config.training.learning_rate == recipe["learning_rate"]  # Recipe.
    assert config.model.num_layers == PRESETS["tiny"]["num_layers"]  # Preset.
    assert config.training.label_smoothing == TrainingConfig().label_smoothing  # Default.


def test_a_flag_that_is_given_its_default_still_wins():
    """A flag is known by having been given, not by its value."""
    default = next(f.default for f in dataclasses.fields(TrainingConfig) if f.name == "epochs")
    assert RunConfig.make(parse("--epochs", str(default)), {"epochs": 3}).training.epochs == default


def test_flags_that_are_not_given_stay_out():
    assert parse() == {}


# Flags are made from the fields.


@pytest.mark.parametrize(("section", "f"), FIELDS)
def test_every_field_has_a_flag_with_a_help_text(section, f):
    parser = argparse.ArgumentParser(formatter_class=lambda prog: argparse.HelpFormatter(prog, width=1000))
    add_flags(parser, section)
    action = next(action for action in parser._actions if flag(f) in action.option_strings)
    assert action.dest == f.name
    assert len(action.help) >= 8
    assert f.metadata["help"].removesuffix(")") in parser.format_help()  # Where recipes differ, it goes on.


@pytest.mark.parametrize(
    ("section", "f"), [param for param in FIELDS if kind(*param.values) is not bool]
)  # fmt: skip
def test_a_flag_sets_its_field_alone(section, f):
    text, value = other_value(section, f)
    flags = parse(flag(f), text)
    assert flags == {f.name: value}
    assert type(flags[f.name]) is kind(section, f)
    changed = RunConfig.make(flags).flat()
    assert changed[f.name] == value
    if f.name not in ("dataset", "train_source", "train_target"):  # These three also choose the recipe.
        unchanged = RunConfig.make({}).flat()
        assert {name for name in changed if changed[name] != unchanged[name]} <= {f.name}


@pytest.mark.parametrize(("section", "f"), [param for param in FIELDS if kind(*param.values) is bool])
def test_a_bool_flag_has_a_no_form(section, f):
    assert parse(flag(f)) == {f.name: True}
    assert parse(flag(f).replace("--", "--no-", 1)) == {f.name: False}
    assert RunConfig.make(parse(flag(f)), {f.name: False}).flat()[f.name] is True
    assert RunConfig.make(parse(flag(f).replace("--", "--no-", 1)), {f.name: True}).flat()[f.name] is False


def test_there_are_bool_fields():
    assert {f.name for section, f in (p.values for p in FIELDS) if kind(section, f) is bool} >= {
        "xla",
        "normalize_first",
    }


def test_help_names_the_values_of_presets_and_recipes():
    parser = argparse.ArgumentParser(formatter_class=lambda prog: argparse.HelpFormatter(prog, width=1000))
    add_flags(parser, "model", "training")
    text = parser.format_help()
    assert f"small: {PRESETS['small']['hidden_dim']}" in text
    assert f"multi30k: {RECIPES['multi30k']['warmup_steps']}" in text
    assert f"(default: the weights; multi30k: {RECIPES['multi30k']['ema_momentum']})" in text


def test_only_the_named_sections_get_flags(capsys):
    with pytest.raises(SystemExit, match="2"):
        parse("--epochs", "3", sections=("model",))
    assert "unrecognized arguments: --epochs 3" in capsys.readouterr().err


def test_a_flag_with_a_bad_choice_is_refused_with_the_choices(capsys):
    with pytest.raises(SystemExit, match="2"):
        parse("--monitor", "bleu")
    message = capsys.readouterr().err
    assert "val_loss" in message
    assert "val_bleu" in message


# The fields themselves.


def test_no_two_sections_share_a_field_name():
    """Flags, files and `make` are flat."""
    names = [param.values[1].name for param in FIELDS]
    assert len(names) == len(set(names))
    assert "preset" not in names


def test_a_setting_named_like_its_section_is_told_apart(tmp_path):
    assert read_config_file(write(tmp_path / "c.json", {"tokenizer": "bpe"})) == {"tokenizer": "bpe"}
    assert read_config_file(write(tmp_path / "c.json", {"tokenizer": {"tokenizer": "bpe"}})) == {"tokenizer": "bpe"}


def test_model_fields_are_the_arguments_of_the_model():
    """All but those that the tokenizers and the data decide, and the name."""
    from keras_transformer.model import Transformer

    arguments = {name for name in inspect.signature(Transformer).parameters if name != "kwargs"}
    others = {"vocabulary_size", "target_vocabulary_size", "max_length", "pad_token_id", "name"}
    assert {f.name for f in dataclasses.fields(ModelConfig)} == arguments - others


@pytest.mark.parametrize("layer", [*PRESETS.values(), *RECIPES.values()])
def test_presets_and_recipes_name_only_settings(layer):
    assert set(layer) <= {param.values[1].name for param in FIELDS}


@pytest.mark.parametrize("preset", PRESETS)
def test_presets_can_be_built(preset):
    sizes = PRESETS[preset]
    assert sizes["hidden_dim"] % sizes["num_heads"] == 0


def test_a_config_cannot_be_changed():
    with pytest.raises(dataclasses.FrozenInstanceError, match="cannot assign to field 'epochs'"):
        RunConfig().training.epochs = 3


@pytest.mark.parametrize("name", ["learning_rate", "label_smoothing", "length_penalty", "clip_norm"])
def test_an_integer_is_taken_for_a_real_number(name):
    value = 0 if name == "label_smoothing" else 1
    stored = RunConfig.make({name: value}).flat()[name]
    assert stored == value
    assert type(stored) is float


# JSON.


@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"preset": "base", "dataset": "multi30k", "normalize_first": True, "learning_rate": 1},
        {"train_source": "a b.en", "train_target": "ä.de", "patience": 3, "vocabulary_size": None, "dropout": 0.3},
    ],
)
def test_config_json_gives_the_same_config_back(tmp_path, settings):
    config = RunConfig.make(settings)
    path = write(tmp_path / "config.json", config.to_dict())
    assert RunConfig.make(read_config_file(path)) == config
    assert RunConfig.make(config.flat()) == config


def test_a_file_may_be_nested_flat_or_both(tmp_path):
    content = {"preset": "small", "model": {"num_layers": 3}, "epochs": 4}
    assert read_config_file(write(tmp_path / "c.json", content)) == {"preset": "small", "num_layers": 3, "epochs": 4}


def test_null_in_a_file_undoes_a_recipe(tmp_path):
    path = write(tmp_path / "c.json", {"vocabulary_size": None, "dataset": "multi30k"})
    assert RECIPES["multi30k"]["vocabulary_size"] is not None
    assert RunConfig.make(read_config_file(path)).tokenizer.vocabulary_size is None


def test_separate_vocabularies_tie_the_target_alone_unless_told(tmp_path):
    assert RunConfig.make({"separate_vocabularies": True}).model.tie_embeddings == "target"
    assert RunConfig.make({"separate_vocabularies": True, "tie_embeddings": "none"}).model.tie_embeddings == "none"


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ('{"epochs": 3,\n "dropout" 0.1}', r"c\.json, line 2: not JSON: Expecting ':' delimiter"),
        ("", r"c\.json, line 1: not JSON"),
        ("[1, 2]", r"c\.json must hold a JSON object of settings\. Received: list"),
        ('"tiny"', r"c\.json must hold a JSON object of settings\. Received: str"),
    ],
)
def test_a_file_must_be_a_json_object(tmp_path, content, message):
    (tmp_path / "c.json").write_text(content, encoding="utf-8")
    with pytest.raises(ConfigError, match=message):
        read_config_file(tmp_path / "c.json")


def test_a_file_must_exist(tmp_path):
    with pytest.raises(ConfigError, match=r"Cannot read the config file .*no\.json: .*No such file"):
        read_config_file(tmp_path / "no.json")
    with pytest.raises(ConfigError, match=r"Cannot read the config file .*: .*[Dd]irectory"):
        read_config_file(tmp_path)


def test_a_file_must_be_utf8(tmp_path):
    (tmp_path / "c.json").write_bytes('{"data_dir": "Übung"}'.encode("latin-1"))
    with pytest.raises(ConfigError, match=r"Cannot read the config file .*c\.json: .*utf-8"):
        read_config_file(tmp_path / "c.json")


# Errors.


def test_an_unknown_setting_is_named():
    with pytest.raises(ConfigError, match=r"No such setting: d_model, epoch. `--help` lists all of them"):
        RunConfig.make({"epoch": 3, "d_model": 4, "epochs": 3})


def test_an_unknown_preset_is_answered_with_the_presets():
    with pytest.raises(ConfigError, match=r"`preset` must be one of \('tiny', .*\)\. Received: 'huge'"):
        RunConfig.make({"preset": "huge"})


@pytest.mark.parametrize(
    ("name", "value", "expected"),
    [
        ("epochs", "3", "int"),
        ("epochs", 3.0, "int"),
        ("epochs", None, "int"),
        ("epochs", True, "int"),
        ("dropout", "0.1", "float"),
        ("dropout", True, "float"),
        ("learning_rate", "fast", "float or null"),
        ("normalize_first", 1, "bool"),
        ("normalize_first", "yes", "bool"),
        ("data_dir", 3, "str or null"),
        ("num_decoder_layers", 2.5, "int or null"),
        ("tokenizer", None, "str"),
        ("monitor", ["val_loss"], "str"),
    ],
)
def test_a_wrong_type_is_refused(name, value, expected):
    with pytest.raises(ConfigError, match=f"`{name}` must be {expected}. Received: "):
        RunConfig.make({name: value})


@pytest.mark.parametrize(("name", "message"), [("dataset", "`dataset` must be one of"), ("preset", "`preset` must be")])
@pytest.mark.parametrize("value", [["tiny"], {"a": 1}])
def test_a_list_where_a_name_is_expected_is_refused(name, message, value):
    """These two are looked up in tables before their types are checked."""
    with pytest.raises(ConfigError, match=message):
        RunConfig.make({name: value})


@pytest.mark.parametrize(
    ("section", "f"), [param for param in FIELDS if param.values[1].metadata["choices"]]
)  # fmt: skip
def test_a_value_outside_the_choices_is_refused(section, f):
    with pytest.raises(ConfigError, match=rf"`{f.name}` must be one of \(.*'{f.metadata['choices'][0]}'.*'bad'"):
        RunConfig.make({f.name: "bad"})


@pytest.mark.parametrize(
    "name",
    [
        *("num_layers", "num_decoder_layers", "num_heads", "hidden_dim", "intermediate_dim", "epochs", "warmup_steps"),
        *("num_beams", "max_length", "tokens_per_batch", "patience", "decoding_max_length"),
    ],
)
@pytest.mark.parametrize("value", [0, -1])
def test_counts_are_at_least_one(name, value):
    with pytest.raises(ConfigError, match=f"`{name}` must be at least 1. Received: {value}"):
        RunConfig.make({name: value})
    assert RunConfig.make({name: 1}).flat()[name] == 1


@pytest.mark.parametrize("name", ["dropout", "attention_dropout", "label_smoothing", "ema_momentum"])
@pytest.mark.parametrize("value", [1.0, -0.1, float("nan"), 1])
def test_rates_are_in_0_1(name, value):
    with pytest.raises(ConfigError, match=rf"`{name}` must be in \[0, 1\)\. Received: "):
        RunConfig.make({name: value})
    assert RunConfig.make({name: 0.0}).flat()[name] == 0


@pytest.mark.parametrize("name", ["learning_rate", "max_minutes"])
@pytest.mark.parametrize("value", [0, -1e-3])
def test_rates_and_times_are_positive(name, value):
    with pytest.raises(ConfigError, match=f"`{name}` must be positive. Received: "):
        RunConfig.make({name: value})


# Within a command.


@pytest.mark.parametrize("error", [ConfigError("`epochs` must be int."), OSError("disk full"), ValueError("no")])
def test_user_errors_are_one_line_on_stderr_and_exit_2(capsys, error):
    with pytest.raises(SystemExit) as caught, user_errors():
        raise error
    assert caught.value.code == 2
    assert caught.value.__cause__ is error
    assert capsys.readouterr() == ("", f"error: {error}\n")


def test_an_error_of_the_file_system_names_the_file(tmp_path, capsys):
    with pytest.raises(SystemExit), user_errors():
        (tmp_path / "missing" / "file").read_text()
    assert capsys.readouterr().err == f"error: Cannot use {tmp_path}/missing/file: No such file or directory.\n"


def test_other_errors_keep_their_traceback():
    with pytest.raises(KeyError, match="a defect"), user_errors():
        raise KeyError("a defect")


def test_no_error_no_output(capsys):
    with user_errors():
        settings = DataConfig()
    assert settings.dataset == "phrasebook"
    assert capsys.readouterr() == ("", "")


def test_tokenised_text_is_scored_as_it_is():
    assert RunConfig.make({"dataset": "multi30k"}).data.sacrebleu_tokenizer() == "13a"
    assert RunConfig.make({"dataset": "multi30k", "variant": "lc.norm.tok"}).data.sacrebleu_tokenizer() == "none"
    assert RunConfig.make({"variant": "lc.norm.tok", "bleu_tokenize": "intl"}).data.sacrebleu_tokenizer() == "intl"
