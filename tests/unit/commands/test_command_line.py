"""The commands as a user calls them: what they print, write and refuse."""

import abc
import json
import logging
import os
import re
import signal
import sys
import time

import numpy as np
import pytest
from trainings import own_files

import train_keras
from keras_transformer.__main__ import main
from keras_transformer.commands.flags import user_errors
from keras_transformer.commands.train import makes_the_run_folder
from keras_transformer.training.config import ConfigError, RunConfig
from keras_transformer.training.run import SETTING_UP, Run
from keras_transformer.training.sections import DataConfig


def said(stderr):
    """What a command printed itself: TensorFlow prints lines of its own when it is imported."""
    own = re.compile(r"WARNING: All log messages before absl|[IWE]\d{4} \d\d:|To enable the following instructions")
    return [line for line in stderr.splitlines() if not own.match(line)]


def test_an_interruption_waits_for_a_check_of_a_type():
    # TensorFlow's C++ code makes many of them, and forgets an interruption in one.
    ended = []

    class Checked(metaclass=abc.ABCMeta):  # noqa: B024 (its check is what counts)
        @classmethod
        def __subclasshook__(cls, other):
            os.kill(os.getpid(), signal.SIGINT)
            return True

    with pytest.raises(SystemExit, match="130"), user_errors():
        ended.append(isinstance(3, Checked))
        time.sleep(60)
    assert ended == [True]
    assert signal.getsignal(signal.SIGALRM) is signal.SIG_DFL and signal.getitimer(signal.ITIMER_REAL) == (0, 0)


def test_without_a_command_all_of_them_are_listed(capsys):
    assert main([]) == 2
    assert "translate a file, a pipe, or what you type" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"train_target": b"one line\n"}, "must have the same number of lines"),
        ({"train_source": b""}, "train_source is empty"),
        ({"train_source": b"caf\xe9\n" * 60}, "train_source, line 1: not UTF-8"),
        ({"train_source": b"\x7fELF\0\0\0\n" * 60}, "a NUL byte; this is not a text file"),
        ({"train_source": b"\x1f\x8bnot really gzip"}, "Cannot read"),
        ({"train_source": b"\n" * 60}, "is empty"),
        ({"train_source": b"x\n\n", "train_target": b"\ny\n"}, "hold no pair"),
    ],
)
def test_training_text_that_cannot_be_used(tmp_path, capsys, changes, message):
    with pytest.raises(SystemExit, match="2"):
        train_keras.main([*own_files(tmp_path, **changes), "--run-dir", str(tmp_path / "run")])
    assert message in capsys.readouterr().err


def old_run(folder):
    """What a run that was trained, and one that was killed while it was set up, leave in a folder."""
    for name in ("config.json", "model.keras", "checkpoints/epoch-0009.npz", f"{SETTING_UP}/tokenizer.spm"):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(json.dumps(RunConfig().to_dict()) if name == "config.json" else "old")
    return folder


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (["--data-dir", "/does/not/exist", "--dataset", "multi30k"], "`--data-dir` must be a folder"),
        (
            ["--preset", "huge"],
            "`preset` must be one of ('tiny', 'small', 'base', 'big', 'mobile', 'mobile-base'). Received: 'huge'",
        ),
        (["--epochs", "x"], "invalid int value: 'x'"),
        (
            ["--no-such-flag"],
            "error: unrecognized arguments: --no-such-flag. All flags: python -m keras_transformer train --help all",
        ),
        (["--epochz=3"], "error: unrecognized arguments: --epochz=3. Did you mean --epochs? All flags: "),
        (["--dropout", "1.5"], "`dropout` must be in [0, 1). Received: 1.5"),
        (["--hidden-dim", "10", "--num-heads", "3"], "`hidden_dim` must be divisible by `num_heads`"),
        (["--hidden-dim", "9", "--num-heads", "3"], "`hidden_dim` must be an even number"),
        (["--activation", "rele"], "rele"),
        (["--train", "a.en"], "`train` must be SOURCE TARGET, optionally followed by name=NAME"),
        (["--train", "none", "none"], "/none: No such file"),
        (["--num-beams", "0"], "`num_beams` must be at least 1"),
        (["--config", "missing.json"], "Cannot read the config file missing.json"),
        (["--vocabulary-size", "100000"], "`vocabulary_size` is too large for this text"),
        (["--max-length", "2"], "all were dropped. Received: pairs 60 over-long; max_length=2"),
        (["--separate-vocabularies", "--tie-embeddings", "all"], "`tie_embeddings='all'` needs one vocabulary"),
        (["--subword-sampling", "1"], "`subword_sampling` must be in [0, 1). Received: 1.0"),
        (["--subword-sampling", "0.1", "--tokenizer", "bpe"], "`subword_sampling` needs a unigram tokenizer"),
        (["--subword-sampling-passes", "3"], "`subword_sampling_passes` has no effect without `subword_sampling`"),
        (["--teacher-weight", "0.3"], "`teacher_weight` has no effect without `teacher`. Received: teacher_weight=0.3"),
        (["--teacher-weight", "0"], "`teacher_weight` must be in (0, 1]. Received: 0.0"),
        (["--general-weight", "2"], "`general_weight` has no effect without `general`"),
        (["--identify-languages"], "`identify_languages` has no effect without `clean`"),
        (["--decoder-layers", "0,1"], "`decoder_layers` has no effect without `layers_from`"),
        (["--bleu-tokenize", "foo"], "and installed. Received: 'foo'. sacreBLEU says: 'foo'."),
        (["--shortlist", "500"], "`shortlist` needs alignments, which a trained model makes. Received: shortlist=500"),
    ],
)
def test_flags_that_cannot_be_and_the_run_that_was_to_be_replaced(tmp_path, capsys, flags, message):
    run_dir = old_run(tmp_path / "run")
    files = [] if {"--dataset"} & set(flags) else own_files(tmp_path)
    with pytest.raises(SystemExit, match="2"):
        train_keras.main([*files, *flags, "--run-dir", str(run_dir), "--overwrite"])
    assert message in capsys.readouterr().err
    left = {str(path.relative_to(run_dir)) for path in run_dir.rglob("*") if path.is_file()}
    assert left - {f"{SETTING_UP}/tokenizer.spm"} == {
        "config.json", "model.keras", "checkpoints/epoch-0009.npz"
    }  # fmt: skip
    assert json.loads((run_dir / "config.json").read_text()) == RunConfig().to_dict()


@pytest.mark.parametrize(
    "flags", [["--num-heads", "3"], ["--hidden-dim", "6", "--num-heads", "2", "--activation", "rele"]]
)
def test_sizes_that_do_not_fit_are_found_before_the_text_is_read(tmp_path, capsys, flags):
    files = ["--train", "no file", "no file", "--val", "no file", "no file"]
    with pytest.raises(SystemExit, match="2"):
        train_keras.main([*files, *flags, "--run-dir", str(tmp_path / "run")])
    assert re.search("rele|must be divisible by `num_heads`", capsys.readouterr().err)


def test_without_a_run_there_is_nothing_to_resume(tmp_path, capsys):
    with pytest.raises(SystemExit, match="2"):
        train_keras.main(["--resume", "--run-dir", str(tmp_path / "run")])
    assert "has no run to resume" in capsys.readouterr().err


@pytest.mark.parametrize("flags", [[], ["--overwrite"], ["--resume"]])
def test_a_run_that_another_process_trains_is_left_alone(tmp_path, capsys, flags):
    run_dir = tmp_path / "run" if flags else tmp_path / "new"
    before = [(path, path.stat().st_mtime_ns) for path in sorted(old_run(tmp_path / "run").rglob("*"))]
    with Run(run_dir).claimed(overwrite=True), pytest.raises(SystemExit, match="2"):
        train_keras.main(
            [*own_files(tmp_path), "--run-dir", str(run_dir)] if not flags else [*flags, "--run-dir", str(run_dir)]
        )
    assert said(capsys.readouterr().err) == [
        f"error: {run_dir} is being written by another process. Wait until it has finished."
    ]
    assert [(path, path.stat().st_mtime_ns) for path in sorted((tmp_path / "run").rglob("*"))] == before


def test_an_interrupted_set_up_leaves_the_old_run_and_does_not_offer_to_resume_it(tmp_path, monkeypatch, capsys):
    def interrupt(data):
        raise KeyboardInterrupt

    monkeypatch.setattr("keras_transformer.training.prepare.load_corpus", interrupt)
    before = sorted(old_run(tmp_path).rglob("*"))
    with pytest.raises(SystemExit, match="130"):
        train_keras.main(["--run-dir", str(tmp_path), "--overwrite"])
    assert said(capsys.readouterr().err) == ["Interrupted. Nothing was trained."]
    left = [path for path in before if SETTING_UP not in str(path)]
    assert sorted(tmp_path.rglob("*")) == left


@pytest.mark.parametrize(
    "call", [["translate"], ["score"], ["export", "saved_model"], ["plot", "curves"], ["explore"], None]
)
def test_a_damaged_run_is_named_by_every_command(tmp_path, capsys, call):
    run_dir = old_run(tmp_path / "run")
    (run_dir / "config.json").write_text('{"preset": "tiny"}')
    with pytest.raises(SystemExit, match="2"):
        if call:
            main([*call, str(run_dir)])
        else:
            train_keras.main(["--run-dir", str(run_dir), "--resume"])
    message = f"error: {run_dir}/config.json must have the sections of a run."
    assert capsys.readouterr().err.splitlines()[-1].startswith(message)


def test_only_a_run_is_overwritten(tmp_path, capsys):
    (tmp_path / "config.json").write_text("{}")
    (tmp_path / "thesis.txt").write_text("years of work")
    with pytest.raises(SystemExit, match="2"):
        train_keras.main(["--run-dir", str(tmp_path), "--overwrite"])
    assert f"{tmp_path} is not replaced: only the folder of a run is" in capsys.readouterr().err
    assert (tmp_path / "thesis.txt").read_text() == "years of work"


def test_a_run_folder_that_cannot_be_written(tmp_path, capsys):
    (tmp_path / "file").write_text("")
    with pytest.raises(SystemExit, match="2"):
        train_keras.main(["--run-dir", str(tmp_path / "file" / "run")])
    assert "Not a directory" in capsys.readouterr().err


@pytest.mark.parametrize("command", [["translate"], ["score"], ["export", "saved_model"]])
def test_a_folder_that_is_no_run(tmp_path, capsys, command):
    with pytest.raises(SystemExit, match="2"):
        main([*command, str(tmp_path)])
    assert "is not the folder of a trained run" in capsys.readouterr().err


WORKER_3 = {"TF_CONFIG": '{"task": {"type": "worker", "index": 3}}'}
WORKER_0 = {"TF_CONFIG": '{"cluster": {"worker": ["a:1", "b:1"]}, "task": {"type": "worker", "index": 0}}'}
WITH_CHIEF = '{"cluster": {"chief": ["a:1"], "worker": ["b:1"]}, "task": {"type": "%s", "index": 0}}'


@pytest.mark.parametrize(
    ("strategy", "environment", "first"),
    [
        ("auto", {}, True),
        ("auto", WORKER_3, False),
        ("multi_worker", WORKER_3, False),
        ("multi_worker", WORKER_0, True),
        ("multi_worker", {"TF_CONFIG": WITH_CHIEF % "chief"}, True),
        ("multi_worker", {"TF_CONFIG": WITH_CHIEF % "worker"}, False),
        ("multi_worker", {"SLURM_PROCID": "2"}, False),
        ("multi_worker", {"SLURM_PROCID": "0"}, True),
        ("auto", {"SLURM_PROCID": "2"}, True),  # One of several trainings that have nothing to do with each other.
        ("one", {**WORKER_3, "SLURM_PROCID": "2"}, True),
    ],
)
def test_which_worker_makes_the_run_folder(strategy, environment, first, monkeypatch):
    for name in ("TF_CONFIG", "SLURM_PROCID"):
        monkeypatch.delenv(name, raising=False)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    assert makes_the_run_folder(strategy) is first


def test_a_wrong_description_of_the_cluster_is_named(tmp_path, monkeypatch, capsys):
    for wrong in ('{"cluster"', "[]", '{"task": {"index": 0}}'):
        monkeypatch.setenv("TF_CONFIG", wrong)
        with pytest.raises(SystemExit, match="2"):
            train_keras.main(["--strategy", "multi_worker", "--run-dir", str(tmp_path / "run")])
        message = "error: The environment variable TF_CONFIG must be a JSON object with a `task` that has a `type`"
        assert message in (error := capsys.readouterr().err) and f"Received: {wrong}." in error
    assert not (tmp_path / "run").exists()


def test_a_mistyped_flag_of_a_command_is_named_with_the_one_that_was_meant(capsys):
    with pytest.raises(SystemExit, match="2"):
        main(["translate", "run", "--num-bems", "3"])
    assert capsys.readouterr().err == (
        "error: unrecognized arguments: --num-bems 3. Did you mean --num-beams? All flags: "
        "python -m keras_transformer translate --help\n"
    )


@pytest.mark.parametrize(
    ("argv", "hint"),
    [
        (["train", "--train-source", "A"], "--train-source A. --train-source is now --train A B. All flags: "),
        (["train", "--general-test-target=A"], "=A. --general-test-target is now --general-test A B. All flags: "),
        (["train", "--accumulate", "2"], "2. --accumulate is now --gradient-accumulation-steps. All flags: "),
        (["translate", "run", "--decoding-max-length=9"], "--decoding-max-length is now --max-target-length. All "),
        (["export", "saved_model", "run", "--xla"], "--xla. --xla is now --jit-compile. All flags: "),
        (["translate", "run", "--train-source", "A"], "arguments: --train-source A. All flags: "),  # It never had it.
    ],
)
def test_a_flag_that_was_renamed_is_named_with_its_new_name(capsys, argv, hint):
    with pytest.raises(SystemExit, match="2"):
        main(argv)
    error = capsys.readouterr().err
    assert error.startswith("error: unrecognized arguments: --") and hint in error


# Errors within a command.


@pytest.mark.parametrize("error", [ConfigError("`epochs` must be int."), OSError("disk full"), ValueError("no")])
def test_user_errors_are_one_line_on_stderr_and_exit_2(capsys, error):
    with pytest.raises(SystemExit) as caught, user_errors():
        raise error
    assert caught.value.code == 2
    assert caught.value.__cause__ is error
    assert capsys.readouterr() == ("", f"error: {error}\n")


def test_too_little_memory_is_one_line(capsys):
    with pytest.raises(SystemExit, match="2"), user_errors():
        np.empty(2**59, "uint8")
    assert re.fullmatch(r"error: The memory is not enough for this\. Unable to allocate .+\n", capsys.readouterr().err)


def test_pictures_need_matplotlib_before_anything_is_loaded(tmp_path, monkeypatch, capsys):
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    with pytest.raises(SystemExit, match="2"):
        main(["plot", "attention", str(tmp_path / "no run")])
    assert capsys.readouterr().err == "error: Matplotlib is not installed. Try: pip install matplotlib\n"


@pytest.mark.parametrize("target", ["saved_model", "tflite", "web"])
def test_an_export_without_tensorflow_says_what_works(monkeypatch, capsys, target):
    """As where `pip install` leaves TensorFlow out."""
    monkeypatch.setattr("keras_transformer.commands.export.load", lambda arguments: None)
    for name in [name for name in sys.modules if name.startswith("keras_transformer.export.")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "tensorflow", None)
    with pytest.raises(SystemExit, match="2"):
        main(["export", target, "run", "--output", "folder"])
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith("error: TensorFlow or tensorflow-text is not installed, and this needs both.")
    assert line.endswith("there, models train and translate on JAX, with KERAS_BACKEND=jax.")


def test_an_output_that_cannot_hold_a_character_says_how_to_change_it(capsys):
    with pytest.raises(SystemExit), user_errors():
        "schön".encode("ascii")
    assert "Received: 'ö', and an output in ascii. Set PYTHONIOENCODING=utf-8" in capsys.readouterr().err


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


def test_help_of_training_shows_fifteen_flags_and_on_request_all(capsys):
    shown = {}
    for argv in (["--help"], ["--help", "all"]):
        with pytest.raises(SystemExit, match="0"):
            train_keras.main(argv)
        text = capsys.readouterr().out
        shown[len(argv)] = set(re.findall(r"^  (--[a-z][\w-]*)", text, re.MULTILINE))
        assert "`--help all` shows the other" in " ".join(text.split()) or len(argv) == 2
    assert len(shown[1]) == 15 and {"--train", "--val", "--epochs", "--run-dir"} <= shown[1] < shown[2]
    assert len(shown[2]) > 80


def test_what_the_library_logs_is_printed_once_within_a_command_and_not_after_it(capsys):
    logger = logging.getLogger("keras_transformer.training.run")
    with user_errors(), user_errors():
        logger.info("so far %d pairs", 3)
        logger.warning("a warning")
        logger.debug("a detail")
    logger.info("later")
    output = capsys.readouterr()
    assert (output.out, output.err) == ("so far 3 pairs\n", "a warning\n")
