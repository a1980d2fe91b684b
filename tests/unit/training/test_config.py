"""Settings: what wins over what, flags made from fields, JSON round trip, errors that name the setting."""

import argparse
import dataclasses
import inspect
import json
import os
import types
import typing

import pytest

from keras_transformer.commands.flags import FlagParser, add_flags
from keras_transformer.training.config import (
    CHANGEABLE,
    SECTIONS,
    ConfigError,
    RunConfig,
    read_config_file,
    section_settings,
)
from keras_transformer.training.fit import check_sizes
from keras_transformer.training.presets import PRESETS, RECIPES
from keras_transformer.training.sections import ModelConfig, TrainingConfig

FIELDS = [
    pytest.param(section, f, id=f"{section}.{f.name}")
    for section, cls in SECTIONS.items()
    for f in dataclasses.fields(cls)
    if f.metadata["flag"]
]


def test_learned_positions_have_the_length_of_the_texts():
    """The sizes of a run are checked before its text is read."""
    check_sizes(RunConfig.make({"position_type": "learned"}))


def parse(*argv, sections=tuple(SECTIONS)):
    parser = FlagParser()
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
    if f.name in ("freeze", "encoder_layers", "decoder_layers"):
        value = "encoder" if f.name == "freeze" else "0,1"
        return value, value
    if choices:
        value = next(choice for choice in choices if choice != f.default)
        return value, value
    number = 0.375 if all(rule.holds(0.375) for rule in f.metadata["rules"]) else 1.375
    text = "/abc" if f.metadata["path"] else "abc"
    return {int: ("13", 13), float: (str(number), number), str: (text, text)}[kind(section, f)]


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
    config = RunConfig.make({"preset": preset, "train": [["a", "b"]]})
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
def test_wider_models_learn_in_smaller_steps(preset):
    rate = RunConfig.make({"preset": preset}).peak_learning_rate()
    assert rate * PRESETS[preset]["hidden_dim"] == pytest.approx(0.0025 * PRESETS["tiny"]["hidden_dim"])
    assert RunConfig.make({"preset": preset, "hidden_dim": 64}).peak_learning_rate() == pytest.approx(0.005)
    tuned = RunConfig.make({"init_from": "run"}, init=RunConfig.make({"preset": preset}))
    assert tuned.peak_learning_rate() == pytest.approx(rate / 5)
    assert RunConfig.make({"preset": preset, "learning_rate": 0.5}).peak_learning_rate() == 0.5


def test_other_tokenizers_draw_no_segmentations_unless_told():
    assert RunConfig.make({"dataset": "multi30k"}).training.subword_sampling
    assert RunConfig.make({"dataset": "multi30k", "tokenizer": "bpe"}).training.subword_sampling == 0
    assert RunConfig.make({"tokenizer": "bpe"}, {"dataset": "multi30k"}).training.subword_sampling == 0
    assert RunConfig.make({"dataset": "multi30k", "subword_sampling": 0.0}).training.subword_sampling == 0


def test_many_directions_have_a_lower_learning_rate():
    def rate(*directions):
        return RunConfig.make({"dataset": "multi30k", "directions": [list(directions)]}).peak_learning_rate()

    six = rate("en-de", "en-fr", "en-cs", "de-en", "fr-en", "cs-en")
    assert rate("en-de") == rate("en-de", "de-en") == 0.0025 and six == pytest.approx(0.0025 / 3)
    own = [[f"a{i}", "b", f"direction=en-{code}"] for i, code in enumerate(("de", "fr", "cs", "it"))]
    assert RunConfig.make({"train": own}).peak_learning_rate() == 0.00125


def test_settings_of_older_runs_that_are_gone_are_left_out_of_their_files_only(tmp_path):
    content = RunConfig.make({}).to_dict()
    content["training"] |= {"ema_momentum": 0.999, "warmup_steps": 2000}
    path = write(tmp_path / "config.json", content)
    assert RunConfig.of_file(path) == RunConfig.make({})
    with pytest.raises(ConfigError, match="No such setting: ema_momentum, warmup_steps"):
        read_config_file(path)


def test_own_files_have_no_recipe():
    config = RunConfig.make({"train": [["a", "b"]]})
    assert config.training == TrainingConfig()
    assert config.model.dropout == PRESETS["tiny"]["dropout"]


def test_flag_over_file_over_recipe_over_preset_over_default(tmp_path):
    file = read_config_file(write(tmp_path / "c.json", {"training": {"epochs": 5, "warmup_ratio": 0.5}}))
    flags = parse("--epochs", "7")
    config = RunConfig.make(flags, file)
    recipe = RECIPES["phrasebook"]
    assert config.training.epochs == 7  # Flag.
    assert config.training.warmup_ratio == 0.5  # File.
    assert config.data.tokens_per_batch == recipe["tokens_per_batch"]  # Recipe.
    assert config.model.num_layers == PRESETS["tiny"]["num_layers"]  # Preset.
    assert config.training.label_smoothing == TrainingConfig().label_smoothing  # Default.


def test_a_flag_that_is_given_its_default_still_wins():
    """A flag is known by having been given, not by its value."""
    default = next(f.default for f in dataclasses.fields(TrainingConfig) if f.name == "epochs")
    assert RunConfig.make(parse("--epochs", str(default)), {"epochs": 3}).training.epochs == default


@pytest.mark.parametrize("changed", [{"dataset": "multi30k"}, {"preset": "small"}, {"tokenizer": "bpe"}])
@pytest.mark.parametrize("begun_with", [{}, {"dataset": "multi30k"}, {"preset": "base"}])
def test_what_a_run_did_not_choose_follows_another_data_set_or_preset(tmp_path, begun_with, changed):
    """A config.json names every setting, those of its own recipe and preset too: they are no choice."""
    file = read_config_file(write(tmp_path / "config.json", RunConfig.make(begun_with).to_dict()))
    assert RunConfig.make(changed, file) == RunConfig.make({**begun_with, **changed})
    assert RunConfig.make({}, file) == RunConfig.make(begun_with)


def test_what_a_run_chose_stays_with_another_data_set_and_preset(tmp_path):
    chosen = {"epochs": 41, "hidden_dim": 64, "learning_rate": None, "warmup_ratio": 0.5}
    file = read_config_file(write(tmp_path / "config.json", RunConfig.make(chosen).to_dict()))
    config = RunConfig.make({"dataset": "multi30k", "preset": "small"}, file)
    assert config == RunConfig.make({"dataset": "multi30k", "preset": "small", **chosen})
    assert config.data.tokens_per_batch == RECIPES["multi30k"]["tokens_per_batch"]


def test_a_part_of_a_config_wins_over_the_recipe_of_a_data_set_that_is_named(tmp_path):
    """Such a file was written by hand: all that it says is a choice."""
    recipe = RECIPES["phrasebook"]
    file = read_config_file(write(tmp_path / "c.json", {"epochs": recipe["epochs"], "warmup_ratio": 0.08}))
    config = RunConfig.make({"dataset": "multi30k"}, file)
    assert (config.training.epochs, config.training.warmup_ratio) == (recipe["epochs"], 0.08)
    assert config.data.tokens_per_batch == RECIPES["multi30k"]["tokens_per_batch"]


def test_a_data_set_that_is_named_replaces_the_texts_of_a_run_with_own_ones(tmp_path):
    own = RunConfig.make({"train": [["a", "b"]], "val": [["c", "d"]]})
    file = read_config_file(write(tmp_path / "config.json", own.to_dict()))
    assert RunConfig.make({"dataset": "multi30k"}, file) == RunConfig.make({"dataset": "multi30k"})
    other = RunConfig.make({"train": [["e", "f"]]}, file)
    assert (other.data.train[0]["source"], other.training) == (os.path.abspath("e"), TrainingConfig())
    assert other.data.val == own.data.val


def test_texts_of_older_runs_have_a_setting_for_each_side(tmp_path):
    content = RunConfig().to_dict()
    for name in ("train", "val", "general", "general_test"):
        del content["data"][name]
        content["data"] |= {f"{name}_source": f"/{name}.en", f"{name}_target": f"/{name}.de"}
    content["data"] |= {"test_source": None, "test_target": None}
    data = RunConfig.of_file(write(tmp_path / "config.json", content)).data
    assert data.train[0]["source"] == "/train.en" and data.train[0]["weight"] == 1.0
    assert [data.val[0]["target"], data.general[0]["source"], data.general_test[0]["target"], data.test] == [
        *("/val.de", "/general.en", "/general_test.de", ()),
    ]


def test_a_run_that_begins_with_blocks_of_another_takes_their_normalisation():
    student, post_norm = {"preset": "mobile", "layers_from": "run"}, RunConfig.make({"normalize_first": False})
    assert RunConfig.make(student).model.normalize_first
    config = RunConfig.make(student, layers=post_norm)
    assert not config.model.normalize_first and config.model.num_decoder_layers == 2
    assert RunConfig.make({"layers_from": "run"}, layers=RunConfig.make({"preset": "mobile"})).model.normalize_first
    with pytest.raises(ConfigError, match=r"normalize_first=True \(the run has False\)\. Leave out --normalize-first"):
        RunConfig.make({**student, "normalize_first": True}, layers=post_norm)


# Going on with a run.


def test_the_passes_with_drawn_segmentations_are_a_number_that_more_epochs_do_not_move():
    run = RunConfig.make({"subword_sampling": 0.5, "epochs": 40})
    assert run.training.subword_sampling_passes == 25
    assert run.resumed({"epochs": 80}).training == dataclasses.replace(run.training, epochs=80)
    assert RunConfig.make({"epochs": 80}, run.flat()).training.subword_sampling_passes == 50  # Another run.
    assert RunConfig.make({"subword_sampling": 0.5, "steps_per_epoch": 7}).training.subword_sampling_passes is None


@pytest.mark.parametrize(
    ("section", "f"), [param for param in FIELDS if kind(*param.values) not in (bool, tuple)]
)  # fmt: skip
def test_a_run_goes_on_with_other_settings_or_says_that_it_would_be_another(section, f):
    run = RunConfig.make({})
    _, value = other_value(section, f)
    assert run.resumed({f.name: run.flat()[f.name]}) == run
    if f.name in CHANGEABLE:
        assert run.resumed({f.name: value}).flat() == {**run.flat(), f.name: value}
        return
    received = rf"{f.name}={value!r} \(the run has {run.flat()[f.name]!r}\)"
    with pytest.raises(ConfigError, match=f"`{f.name}` must stay as the run began.* Received: {received}. .*{flag(f)}"):
        run.resumed({f.name: value, "epochs": 99})


def test_search_and_length_of_training_may_change_and_sizes_text_and_rates_may_not():
    may_not = {f.name for _, f in (p.values for p in FIELDS)} - CHANGEABLE
    assert {"num_beams", "length_penalty", "epochs", "patience", "max_minutes", "strategy", "data_dir"} <= CHANGEABLE
    assert {"hidden_dim", "dropout", "dataset", "tokenizer", "learning_rate", "seed", "tokens_per_batch"} <= may_not
    with pytest.raises(ConfigError, match=r"`preset` must stay .*preset='big' \(the run has 'tiny'\)"):
        RunConfig.make({}).resumed({"preset": "big"})


def changed_run(folder, section=None, **changes):
    """A run folder whose config.json has other values, or, where they are None, lacks them."""
    content = RunConfig.make({}).to_dict()
    part = content[section] if section else content
    part.update(changes)
    for name in [name for name, value in part.items() if name in changes and value is None]:
        del part[name]
    write(folder / "config.json", content)
    return folder


def test_a_run_is_read_from_its_config(tmp_path):
    assert RunConfig.of_file(changed_run(tmp_path) / "config.json") == RunConfig.make({})
    assert RunConfig.of_file(changed_run(tmp_path, "data", max_length=17) / "config.json").data.max_length == 17
    assert RunConfig.of_file(changed_run(tmp_path, "search", top_k=None) / "config.json") == RunConfig.make(
        {}
    )  # Of an older version.


@pytest.mark.parametrize(
    ("section", "changes", "message"),
    [
        (
            "search",
            {"num_beams": 10**6},
            "`num_beams` must be at most 256: each beam needs memory.* Received: 1000000",
        ),
        ("data", {"max_length": "long"}, "`max_length` must be int. Received: 'long'"),
        ("model", {"width": 3}, "No such setting: width"),
        (None, {"tokenizer": None, "data": None}, "must have the sections of a run. Missing: data, tokenizer"),
        (None, {"search": [1]}, "must have the sections of a run. Missing: search"),
        (None, {"preset": None}, "must have the sections of a run. Missing: preset"),
        ("tokenizer", {"separate_vocabularies": True}, "`tie_embeddings='all'` needs one vocabulary"),
    ],
)
def test_a_damaged_config_of_a_run_is_named_with_the_repair(tmp_path, section, changes, message):
    with pytest.raises(ConfigError, match=rf"{tmp_path}/config\.json.*{message}.*Restore it from a copy, or train"):
        RunConfig.of_file(changed_run(tmp_path, section, **changes) / "config.json")


@pytest.mark.parametrize("content", ["", "{", "[" * 99999, "[1]", "null"])
def test_a_config_of_a_run_that_is_no_object_is_named_with_the_repair(tmp_path, content):
    (tmp_path / "config.json").write_text(content, encoding="utf-8")
    with pytest.raises(ConfigError, match=rf"{tmp_path}/config\.json.*Restore it from a copy"):
        RunConfig.of_file(tmp_path / "config.json")


def test_a_value_in_a_file_that_cannot_be_is_named_with_the_file(tmp_path):
    with pytest.raises(ConfigError, match=r"c\.json: `epochs` must be int. Received: 'x'"):
        read_config_file(write(tmp_path / "c.json", {"epochs": "x"}))


def test_flags_that_are_not_given_stay_out():
    assert parse() == {}


def test_older_files_have_other_names_for_the_search_and_its_settings(tmp_path):
    content = {"decoding": {"max_length": 7, "seed": 5}, "data": {"max_length": 9}}
    flat = read_config_file(write(tmp_path / "c.json", content))
    assert flat == {"max_target_length": 7, "sampling_seed": 5, "max_length": 9}
    long_names = {"decoding": {"decoding_max_length": 7, "sampling_seed": 5}, "data": {"max_length": 9}}
    assert read_config_file(write(tmp_path / "c.json", long_names)) == flat
    assert read_config_file(write(tmp_path / "c.json", {"decoding_max_length": 7})) == {"max_target_length": 7}
    both = {"decoding": {"max_length": 7}, "search": {"num_beams": 3, "seed": 5}}
    flat = {"max_target_length": 7, "num_beams": 3, "sampling_seed": 5}
    assert read_config_file(write(tmp_path / "c.json", both)) == flat
    whole = RunConfig.make(flat).to_dict()
    older = {**whole["search"], "max_length": 7, "seed": 5}
    del older["max_target_length"], older["sampling_seed"]
    write(
        tmp_path / "c.json", {**{name: value for name, value in whole.items() if name != "search"}, "decoding": older}
    )
    assert RunConfig.of_file(tmp_path / "c.json") == RunConfig.make(flat)


def test_flags_of_a_section_are_the_settings_of_its_class():
    flags = {**parse("--max-target-length", "7", "--num-beams", "2", sections=("search",)), "run": "runs/x"}
    assert section_settings("search", flags) == {"num_beams": 2, "max_target_length": 7}
    with pytest.raises(ConfigError, match=r"`max_target_length` must be at least 1\. Received: 0"):
        section_settings("search", {"max_target_length": 0})


# Flags are made from the fields.


@pytest.mark.parametrize(("section", "f"), FIELDS)
def test_every_field_has_a_flag_with_a_help_text(section, f):
    parser = argparse.ArgumentParser(formatter_class=lambda prog: argparse.HelpFormatter(prog, width=1000))
    add_flags(parser, section)
    assert len(f.metadata["help"]) >= 8
    assert f"  {flag(f)}" in parser.format_help()
    assert f.metadata["help"].removesuffix(")") in parser.format_help()  # Where recipes differ, more follows.


@pytest.mark.parametrize(
    ("section", "f"), [param for param in FIELDS if kind(*param.values) not in (bool, tuple)]
)  # fmt: skip
def test_a_flag_sets_its_field_alone(section, f):
    text, value = other_value(section, f)
    flags = parse(flag(f), text)
    assert flags == {f.name: value}
    assert type(flags[f.name]) is kind(section, f)
    changed = RunConfig.make(flags).flat()
    assert changed[f.name] == value
    if f.name != "dataset":  # It also chooses the recipe.
        unchanged = RunConfig.make({}).flat()
        follows = {"subword_sampling_passes"} if f.name == "subword_sampling" else set()
        assert {name for name in changed if changed[name] != unchanged[name]} <= {f.name} | follows


@pytest.mark.parametrize(("section", "f"), [param for param in FIELDS if kind(*param.values) is bool])
def test_a_bool_flag_has_a_no_form(section, f):
    assert parse(flag(f)) == {f.name: True}
    assert parse(flag(f).replace("--", "--no-", 1)) == {f.name: False}
    assert RunConfig.make(parse(flag(f)), {f.name: False}).flat()[f.name] is True
    assert RunConfig.make(parse(flag(f).replace("--", "--no-", 1)), {f.name: True}).flat()[f.name] is False


def test_there_are_bool_fields():
    assert {f.name for section, f in (p.values for p in FIELDS) if kind(section, f) is bool} >= {
        "jit_compile",
        "normalize_first",
    }


def test_help_names_the_values_of_presets_and_recipes():
    parser = argparse.ArgumentParser(formatter_class=lambda prog: argparse.HelpFormatter(prog, width=1000))
    add_flags(parser, "model", "training")
    text = parser.format_help()
    assert f"small: {PRESETS['small']['hidden_dim']}" in text
    assert f"multi30k: {RECIPES['multi30k']['epochs']}" in text


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
    from keras_transformer.models.transformer import Transformer

    arguments = set(inspect.signature(Transformer.__init__).parameters) - {"self", "kwargs"}
    others = {"vocabulary_size", "target_vocabulary_size", "max_length", "pad_token_id", "name"}
    assert {f.name for f in dataclasses.fields(ModelConfig)} == arguments - others


@pytest.mark.parametrize("layer", [*PRESETS.values(), *RECIPES.values()])
def test_presets_and_recipes_name_only_settings(layer):
    assert set(layer) <= {param.values[1].name for param in FIELDS}


@pytest.mark.parametrize("preset", PRESETS)
def test_the_heads_of_a_preset_share_its_width(preset):
    sizes = PRESETS[preset]
    assert sizes["hidden_dim"] % sizes["num_heads"] == 0


def test_a_config_cannot_be_changed():
    with pytest.raises(dataclasses.FrozenInstanceError, match="cannot assign to field 'epochs'"):
        RunConfig().training.epochs = 3


@pytest.mark.parametrize("section", SECTIONS.values())
def test_a_section_is_checked_however_it_is_made(section):
    f = next(f for f in dataclasses.fields(section) if type(f.default) is int or f.metadata["choices"])
    with pytest.raises(ConfigError, match=f"`{f.name}` must be .* Received: 2.5"):
        section(**{f.name: 2.5})


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
        {"preset": "base", "dataset": "multi30k", "normalize_first": False, "learning_rate": 1},
        {"train": [["a b.en", "ä.de"]], "patience": 3, "vocabulary_size": None, "dropout": 0.3},
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
    with pytest.raises(ConfigError, match=r"No such setting: d_model, epoch. `--help all` lists all of them"):
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
        *("num_layers", "num_decoder_layers", "num_heads", "hidden_dim", "intermediate_dim", "epochs"),
        *("num_beams", "max_length", "tokens_per_batch", "patience", "max_target_length"),
    ],
)
@pytest.mark.parametrize("value", [0, -1])
def test_counts_are_at_least_one(name, value):
    with pytest.raises(ConfigError, match=f"`{name}` must be at least 1. Received: {value}"):
        RunConfig.make({name: value})
    assert RunConfig.make({name: 1}).flat()[name] == 1


def test_beams_are_few_enough_for_memory():
    assert RunConfig.make({"num_beams": 256}).search.num_beams == 256
    with pytest.raises(ConfigError, match=r"`num_beams` must be at most 256: each beam needs memory.* Received: 257"):
        RunConfig.make({"num_beams": 257})


@pytest.mark.parametrize("name", ["dropout", "attention_dropout", "label_smoothing", "warmup_ratio"])
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


def test_tokenised_text_is_scored_as_it_is():
    assert RunConfig.make({"dataset": "multi30k"}).data.sacrebleu_tokenizer() == "13a"
    assert RunConfig.make({"dataset": "multi30k", "variant": "lc.norm.tok"}).data.sacrebleu_tokenizer() == "none"
    for code, expected in (
        ("zh-cn", "zh"),
        ("zh_TW", "zh"),
        ("ja", "char"),
        ("th", "char"),
        ("zho_Hans", "zh"),
        ("jpn_Jpan", "char"),
        ("ko", "13a"),
        ("fr", "13a"),
    ):
        assert RunConfig.make({"target_language": code}).data.sacrebleu_tokenizer() == expected
    both = RunConfig.make({"directions": ["en-zh", "en-de"]}).data
    assert [both.sacrebleu_tokenizer(language) for language in (None, "zh", "de")] == ["zh", "zh", "13a"]
    assert RunConfig.make({"directions": ["en-zh", "de-zh"]}).data.sacrebleu_tokenizer() == "zh"
    assert (
        RunConfig.make({"target_language": "ja", "bleu_tokenize": "ja-mecab"}).data.sacrebleu_tokenizer() == "ja-mecab"
    )
    assert RunConfig.make({"variant": "lc.norm.tok", "bleu_tokenize": "intl"}).data.sacrebleu_tokenizer() == "intl"
