"""What lies in a run folder, what is taken for a run, and what may be replaced."""

import json
import re

import pytest

from keras_transformer.data.corpora import Corpus, ParallelText
from keras_transformer.files import FileError
from keras_transformer.text.tokenizer import TokenizerError
from keras_transformer.training.config import RunConfig
from keras_transformer.training.prepare import prepare
from keras_transformer.training.run import SETTING_UP, Run

CONFIG = RunConfig.make({"vocabulary_size": 17, "num_placeholders": 0})
TEXT = ParallelText([("a small dog", "a big dog"), ("a small cat", "a big cat")] * 9, "text")
CORPUS = Corpus([TEXT], [TEXT], [TEXT])


def fill(folder, **files):
    """Files of a run, and others: their contents by name, None for the settings of a run."""
    for name, content in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(json.dumps(CONFIG.to_dict()) if content is None else content)
    return Run(folder)


def names(folder):
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file())


def set_up(run, config=CONFIG, corpus=CORPUS, is_chief=True):
    with run.set_up(is_chief, lambda: None) as prepared:
        prepare(prepared, config, corpus)
        assert len(prepared.tokenizers()) == 1
    return run


def test_a_new_run_appears_when_all_of_it_is_right(tmp_path):
    run = Run(tmp_path / "run")
    assert run.is_free() and not run.exists()
    with pytest.raises(TokenizerError):
        set_up(run, RunConfig.make({"vocabulary_size": 1000}))
    assert names(tmp_path) == []
    set_up(run)
    assert names(run.folder) == ["config.json", "tokenizer.spm", "versions.json"]
    assert run.exists() and not run.is_free()
    assert run.config() == CONFIG
    assert run.tokenizers()[0].vocabulary_size == 17


def test_an_old_run_is_deleted_when_the_new_one_is_set_up(tmp_path):
    old = {"config.json": None, "model.keras": "old", "checkpoints/epoch-00009.npz": "old", f"{SETTING_UP}/a": "left"}
    run = fill(tmp_path, **old)
    with pytest.raises(TokenizerError):
        set_up(run, RunConfig.make({"vocabulary_size": 1000}))
    assert names(tmp_path) == ["checkpoints/epoch-00009.npz", "config.json", "model.keras"]
    set_up(run)
    assert names(tmp_path) == ["config.json", "tokenizer.spm", "versions.json"]


def test_what_appears_while_a_run_is_set_up_is_kept(tmp_path):
    run = fill(tmp_path, **{"config.json": None})
    with pytest.raises(FileError, match=r"no training wrote .*thesis\.txt"), run.set_up(True, lambda: None) as prepared:
        prepare(prepared, CONFIG, CORPUS)
        (tmp_path / "thesis.txt").write_text("years of work")
    assert names(tmp_path) == ["config.json", "thesis.txt"]
    new = Run(tmp_path / "new")
    with new.set_up(True, lambda: None) as prepared:
        prepare(prepared, CONFIG, CORPUS)
        (new.folder / "cache").mkdir()
        (new.folder / "cache" / "ids").write_text("hours of work")
    assert {"cache/ids", "config.json", "tokenizer.spm"} < {*names(new.folder)}


def test_an_export_with_other_weights_has_a_folder_of_its_own(tmp_path):
    """Or a report would take one for the other."""
    calls = [("tflite",), ("tflite", "none"), ("ctranslate2", "float32"), ("tflite", "int8")]
    folders = [Run(tmp_path).export_folder(*call).relative_to(tmp_path).as_posix() for call in calls]
    assert folders == ["export/tflite", "export/tflite", "export/ctranslate2", "export/tflite-int8"]


@pytest.mark.parametrize(
    ("files", "message"),
    [
        ({"thesis.txt": "mine"}, "only the folder of a run is, and it has no config.json"),
        ({"config.json": "{}", "thesis.txt": "mine"}, "only the folder of a run is, and it has no config.json"),
        ({"config.json": '{"model_type": "marian"}'}, "only the folder of a run is, and it has no config.json"),
        ({"config.json": None, "thesis.txt": "mine"}, r"no training wrote .*thesis\.txt"),
        ({"config.json": None, "export/tflite/notes.txt": "mine"}, r"no training wrote .*export/tflite/notes\.txt"),
        ({"config.json": None, "mine/a": "mine"}, "no training wrote .*mine"),
        ({"config.json": None, "README.md": "mine"}, r"no training wrote .*README\.md"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, dict) else None,
)
def test_only_a_run_is_replaced_and_only_with_nothing_else_in_it(tmp_path, files, message):
    with pytest.raises(FileError, match=f"{re.escape(str(tmp_path))} is not replaced: {message}"):
        fill(tmp_path, **files).check_replaceable()


def test_a_link_in_a_run_is_no_part_of_it(tmp_path):
    run = fill(tmp_path / "run", **{"config.json": None})
    (run.folder / "checkpoints").symlink_to(tmp_path)
    with pytest.raises(FileError, match=r"no training wrote .*checkpoints"):
        run.check_replaceable()


def test_a_run_whose_settings_are_damaged_is_a_run(tmp_path):
    run = fill(tmp_path, **{"config.json": "{", "versions.json": '{"keras": "3", "sentencepiece": "0"}'})
    assert run.exists()
    run.check_replaceable()


def test_a_run_goes_on_with_the_text_that_it_began_with(tmp_path):
    run = set_up(Run(tmp_path))
    run.check_text(CORPUS)
    other = ParallelText(TEXT.pairs[1:], "text")
    run.check_text(CORPUS._replace(test=[other]))
    with pytest.raises(ValueError, match=r"The validation text must be the one that the run in .* began with"):
        run.check_text(CORPUS._replace(validation=[other]))


def test_a_run_of_another_version_is_not_resumed(tmp_path):
    run = set_up(Run(tmp_path))
    versions = json.loads((tmp_path / "versions.json").read_text())
    (tmp_path / "versions.json").write_text(json.dumps({**versions, "batches": 1}))
    with pytest.raises(ValueError, match=r"was begun with another version of this package.*Train again with --overwr"):
        run.check_text(CORPUS)


def test_what_a_kill_has_left_half_written_is_removed_and_new_settings_are_kept(tmp_path, messages):
    run = set_up(Run(tmp_path))
    left = ("checkpoints/.writing-epoch-00001.npz", ".writing-model.keras")
    fill(tmp_path, **dict.fromkeys(left, "half"))
    config = CONFIG.resumed({"num_beams": 2})
    run.go_on(config, 0)
    assert messages().endswith("changed settings: num_beams 4 -> 2\n")
    assert run.config() == config
    assert not set(left) & set(names(tmp_path))


def test_scores_are_kept(tmp_path):
    run = Run(tmp_path)
    assert run.scores() == {}
    run.save_scores({"before_training": {"bleu": 1.5}})
    assert run.scores() == {"before_training": {"bleu": 1.5}}


def test_the_log_loses_the_rows_of_epochs_that_are_computed_again(tmp_path):
    log = tmp_path / "log.csv"
    Run(tmp_path).trim_log(3)  # There is no log yet.
    log.write_bytes(b"epoch,loss\r\n0,3.5\r\n1,2.5\r\n2,1.5\r\n3,0.")
    Run(tmp_path).trim_log(3)
    assert log.read_bytes() == b"epoch,loss\r\n0,3.5\r\n1,2.5\r\n2,1.5\r\n"
    Run(tmp_path).trim_log(1)
    assert log.read_bytes() == b"epoch,loss\r\n0,3.5\r\n"
    log.write_bytes(b"")
    Run(tmp_path).trim_log(1)
    assert log.read_bytes() == b""
    assert [path.name for path in tmp_path.iterdir()] == ["log.csv"]


def test_a_run_that_could_not_begin_leaves_no_folder(tmp_path):
    with pytest.raises(ValueError, match="no text"), Run(tmp_path / "runs" / "new").claimed():
        raise ValueError("no text")
    assert not (tmp_path / "runs" / "new").exists()
    (tmp_path / "mine").mkdir()
    with Run(tmp_path / "mine").claimed():
        pass
    assert (tmp_path / "mine").is_dir()  # It was there before.
    with Run(tmp_path / "new").claimed():
        (tmp_path / "new" / "file").touch()
    assert (tmp_path / "new" / "file").is_file()
