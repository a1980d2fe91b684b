"""The commands as a user calls them: what they print, write and refuse."""

import abc
import contextlib
import errno
import gzip
import json
import os
import pty
import re
import shutil
import signal
import subprocess
import sys
import time
from itertools import takewhile
from pathlib import Path
from random import Random

import numpy as np
import pytest
from arrays import checkpoint_arrays

import train_keras
from keras_transformer import runs
from keras_transformer.__main__ import main
from keras_transformer.command_line import user_errors
from keras_transformer.config import ConfigError, DataConfig, RunConfig
from keras_transformer.data import encode_pairs
from keras_transformer.datasets import Corpus, ParallelText
from keras_transformer.runs import SETTING_UP, Run

ROOT = Path(__file__).parent.parent


def run(*arguments, module="keras_transformer"):
    """A command in a process of its own."""
    call = [sys.executable, "-m", module, *map(str, arguments)]
    return subprocess.run(call, capture_output=True, text=True, timeout=300)


def said(stderr):
    """What a command printed itself: TensorFlow prints lines of its own when it is imported."""
    own = re.compile(r"WARNING: All log messages before absl|[IWE]\d{4} \d\d:|To enable the following instructions")
    return [line for line in stderr.splitlines() if not own.match(line)]


# The run folder.


def test_a_run_folder_holds_everything(golden):
    names = {path.name for path in golden.run_dir.iterdir()}
    assert names - {"confidence.json"} == {  # Without a wrong word in the validation text, nothing is calibrated.
        "checkpoints", "config.json", "export", "log.csv", "model.keras", "scores.json", "tensorboard",
        "tokenizer.spm", "versions.json",
    }  # fmt: skip
    scores = json.loads((golden.run_dir / "scores.json").read_text())
    assert scores["after_training"]["bleu"] > 90
    assert list(scores) == ["after_training"]  # An untrained model is not scored.
    assert "version:" in scores["after_training"]["bleu_signature"]
    log = (golden.run_dir / "log.csv").read_text().splitlines()
    assert log[0].split(",")[:4] == ["epoch", "loss", "perplexity", "token_accuracy"]
    assert len(log) == 7
    assert "keras" in json.loads((golden.run_dir / "versions.json").read_text())


# translate


def test_a_pipe_is_answered_line_by_line(golden):
    """Whoever writes a line gets its translation before writing the next."""
    call = [sys.executable, "-m", "keras_transformer", "translate", str(golden.run_dir)]
    texts = [golden.texts[0], "", golden.texts[1]]
    with subprocess.Popen(call, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1) as process:
        for text, translation in zip(texts, golden.translator.translate(texts), strict=True):
            print(text, file=process.stdin, flush=True)
            assert process.stdout.readline() == translation + "\n"
        process.stdin.close()
        assert process.stdout.read() == ""
    assert process.returncode == 0


def test_a_terminal_is_asked_for_sentences(golden, monkeypatch, capfd):
    keyboard, terminal = pty.openpty()
    os.write(keyboard, f"{golden.texts[0]}\n\x04".encode())  # The last one is Ctrl-D.
    before = os.dup(0)
    try:
        os.dup2(terminal, 0)
        with open(terminal) as stdin:
            monkeypatch.setattr(sys, "stdin", stdin)
            assert main(["translate", str(golden.run_dir)]) == 0
    finally:
        os.dup2(before, 0)
        os.close(before)
        os.close(keyboard)
    printed = capfd.readouterr()
    assert printed.out.splitlines()[-2:] == [f"> {golden.translator.translate(golden.texts[:1])[0]}", "> "]
    assert said(printed.err) == ["Type a sentence and press Enter; Ctrl-D ends."]


def test_translate_reads_and_writes_files(golden, tmp_path, monkeypatch):
    monkeypatch.setattr("keras_transformer.text.READ_SIZE", 50)  # A large file is translated in parts.
    source, target = tmp_path / "in.txt", tmp_path / "out.txt"
    source.write_text("\n".join(golden.texts), encoding="utf-8")
    assert main(["translate", str(golden.run_dir), "--input", str(source), "--output", str(target)]) == 0
    assert target.read_text(encoding="utf-8").splitlines() == golden.translator.translate(golden.texts)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["in.txt", "out.txt"]


def test_translate_keeps_a_document_together(golden, tmp_path, capsys):
    source, target = tmp_path / "in.txt", tmp_path / "out.txt"
    document = f"\ufeff- {golden.texts[0]} {golden.texts[1]}\r\n\r\n  {golden.texts[2]}\n\n"
    source.write_bytes(document.encode())
    flags = ["translate", str(golden.run_dir), "--document", "--input", str(source)]
    assert main([*flags, "--output", str(target)]) == 0
    a, b, c = golden.translator.translate(golden.texts[:3])
    assert target.read_bytes().decode() == f"- {a} {b}\r\n\r\n  {c}\n\n"
    with pytest.raises(SystemExit, match="2"):
        main([*flags, "--scores"])
    assert "--document writes one text, so it takes none of --scores" in capsys.readouterr().err
    source.write_bytes(b"One.\nTwo \xff.")
    with pytest.raises(SystemExit, match="2"):
        main(flags)
    assert f"{source}, line 2: not UTF-8 (byte 0xff). Convert it" in capsys.readouterr().err


def test_translate_prints_scores_and_n_best(golden, tmp_path, capsys):
    source = tmp_path / "in.txt"
    source.write_text(golden.texts[0], encoding="utf-8")
    flags = ["--input", str(source), "--num-hypotheses", "3", "--num-beams", "3", "--scores"]
    assert main(["translate", str(golden.run_dir), *flags]) == 0
    rows = [line.split("\t") for line in capsys.readouterr().out.splitlines()]
    expected = golden.translator.translate(golden.texts[:1], num_beams=3, num_hypotheses=3, return_scores=True)[0]
    assert rows == [[f"{hypothesis.score:.4f}", hypothesis.text] for hypothesis in expected]


def test_lines_that_are_no_text_or_too_long_are_reported_and_counted(golden, tmp_path):
    source, target = tmp_path / "in.txt.gz", tmp_path / "out.txt"
    lines = [golden.texts[0].encode(), "naïve".encode("latin-1"), b"", b"a\0b", b"dog " * 200, golden.texts[1].encode()]
    source.write_bytes(gzip.compress(b"\n".join(lines)))
    done = run("translate", golden.run_dir, "--input", source, "--output", target)
    assert done.returncode == 1, done.stderr
    assert said(done.stderr) == [
        f"{source}, line 2: not UTF-8 (byte 0xef, column 3); an empty line is written.",
        f"{source}, line 4: a NUL byte; this is not a text file; an empty line is written.",
        f"{source}, line 5: more than 128 tokens; only its beginning was translated.",
        f"{source}: 2 lines in all: an empty line is written.",
        f"{source}: 1 line in all: only its beginning was translated.",
    ]
    first, last, cut = (translation.text for translation in golden.translator.translate(
        [*golden.texts[:2], "dog " * 200], return_scores=True
    ))  # fmt: skip
    assert target.read_text(encoding="utf-8") == f"{first}\n\n\n\n{cut}\n{last}\n"


def test_input_that_ends_early_gives_no_output(golden, tmp_path, capsys):
    source, target = tmp_path / "in.txt.gz", tmp_path / "out.txt"
    source.write_bytes(gzip.compress(b"a sentence\n" * 999)[:-12])
    with pytest.raises(SystemExit, match="2"):
        main(["translate", str(golden.run_dir), "--input", str(source), "--output", str(target)])
    assert f"Cannot read {source} after line 9" in capsys.readouterr().err
    assert sorted(path.name for path in tmp_path.iterdir()) == ["in.txt.gz"]


@pytest.mark.slow
def test_a_full_disk_and_a_closed_pipe_end_a_translation_in_one_line(golden, tmp_path):
    call = [sys.executable, "-m", "keras_transformer", "translate", str(golden.run_dir)]
    for flags, name in (([], "standard output"), (["--output", "/dev/full"], "/dev/full")):
        with open("/dev/full", "w") as full:
            done = subprocess.run([*call, *flags], input="a dog\n", stdout=full, stderr=subprocess.PIPE, text=True)
        assert done.returncode == 2
        assert said(done.stderr) == [f"error: Cannot use {name}: No space left on device."]
    with subprocess.Popen(call, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        process.stdin.write(b"a dog\n")
        process.stdin.flush()
        assert process.stdout.readline()
        process.stdout.close()
        process.stdin.write(b"a dog\n" * 9)
        process.stdin.close()
        assert said(process.stderr.read().decode()) == []
    assert process.returncode == 128 + signal.SIGPIPE


def test_an_output_replaces_nothing_that_the_command_reads(golden, tmp_path, capsys):
    source, link = tmp_path / "in.txt", tmp_path / "link"
    source.write_text("a dog\n")
    link.symlink_to(source)
    files = {path: path.read_bytes() for path in (source, golden.run_dir / "model.keras")}
    run, text = str(golden.run_dir), str(source)
    for argv in (
        ["translate", run, "--input", text, "--output", str(link)],
        ["translate", run, "--input", text, "--document", "--output", text],
        ["translate", run, "--input", text, "--output", str(golden.run_dir / "model.keras")],
        ["score", run, "--source", text, "--reference", text, "--log-probs", text],
    ):
        with pytest.raises(SystemExit, match="2"):
            main(argv)
        assert f"must not replace what the command reads. Received: {argv[-1]} for both." in capsys.readouterr().err
    assert files == {path: path.read_bytes() for path in files}
    other = golden.run_dir / "translations.txt"  # Not a file of the run, so it may be there.
    other.write_text("old")
    assert main(["translate", run, "--input", text, "--output", str(other)]) == 0
    assert other.read_text() != "old"
    other.unlink()


def test_a_flag_has_one_name(golden, capsys):
    # `--max-length` would be short for `--max-length-ratio`, which means something else.
    with pytest.raises(SystemExit, match="2"):
        main(["translate", str(golden.run_dir), "--max-length", "3"])
    assert "unrecognized arguments: --max-length 3." in capsys.readouterr().err


@pytest.mark.parametrize(("number", "status"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_an_import_that_is_interrupted_ends_the_process(tmp_path, number, status):
    # TensorFlow crashes, hangs or forgets the interruption if an exception cuts its import off.
    (tmp_path / "interrupted.py").write_text(
        f"import os\ntry:\n    os.kill(os.getpid(), {int(number)})\nexcept:\n    pass\n"
    )
    code = (
        "from keras_transformer.command_line import user_errors\nwith user_errors('A hint.'):\n    import interrupted"
    )
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(tmp_path), os.environ.get("PYTHONPATH", "")])}
    done = subprocess.run([sys.executable, "-c", code], stderr=subprocess.PIPE, text=True, env=environment)
    word = "Terminated" if number == signal.SIGTERM else "Interrupted"
    assert (done.returncode, done.stderr) == (status, f"{word}. A hint.\n")


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


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_a_translation_that_is_interrupted_leaves_the_old_file(golden, tmp_path, number):
    target, pipe = tmp_path / "out.txt", tmp_path / "pipe"
    target.write_text("old")
    os.mkfifo(pipe)
    call = [sys.executable, "-m", "keras_transformer", "translate", str(golden.run_dir)]
    flags = ["--input", str(pipe), "--output", str(target)]
    # The pipe opens when the process does so, too; then it waits for lines.
    with subprocess.Popen([*call, *flags], stderr=subprocess.PIPE, text=True) as process, open(pipe, "w"):
        time.sleep(1)
        process.send_signal(number)
        printed = process.stderr.read()
    assert process.returncode == {signal.SIGINT: 130, signal.SIGTERM: 143, signal.SIGKILL: -9}[number]
    word = "Terminated" if number == signal.SIGTERM else "Interrupted"
    assert said(printed) == ([] if number == signal.SIGKILL else [f"{word}. {target} was not changed."])
    assert target.read_text() == "old"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["out.txt", "pipe"]


def test_a_translation_does_not_load_pyplot(golden, tmp_path):
    """Keras imports it where it is installed, which takes half a second."""
    source = tmp_path / "in.txt"
    source.write_text("a dog\n")
    code = "import sys; from keras_transformer.__main__ import main; print(main(sys.argv[1:]), *sys.modules)"
    call = [sys.executable, "-c", code, "translate", str(golden.run_dir), "--input", str(source)]
    _, last = subprocess.run(call, capture_output=True, text=True, check=True).stdout.splitlines()
    status, *modules = last.split()
    assert status == "0"
    assert "keras" in modules
    assert "matplotlib.pyplot" not in modules


def test_a_prefix_that_is_not_utf_8(golden):
    call = [sys.executable, "-m", "keras_transformer", "translate", str(golden.run_dir), "--prefix", b"caf\xe9"]
    done = subprocess.run(call, input=b"a dog\n", capture_output=True)
    assert done.returncode == 2
    assert b"argument --prefix: must be UTF-8, not b'caf\\xe9'" in done.stderr


def test_translate_prints_alignments_and_keeps_a_prefix(golden, tmp_path, capsys):
    source = tmp_path / "in.txt"
    source.write_text(golden.texts[0] + "\n\n", encoding="utf-8")
    prefix = golden.translator.translate(golden.texts[5:6])[0].split()[0]
    flags = ["--input", str(source), "--alignments", "--prefix", prefix, "--num-beams", "1"]
    assert main(["translate", str(golden.run_dir), *flags]) == 0
    first, second = capsys.readouterr().out.splitlines()
    text, alignment = first.split("\t")
    assert text.startswith(prefix)
    assert [int(pair.split("-")[1]) for pair in alignment.split()] == list(range(len(alignment.split())))
    assert second == "\t"


# score


def test_score_prints_bleu_of_the_test_set_and_of_files(golden, tmp_path, capsys):
    expected = json.loads((golden.run_dir / "scores.json").read_text())["after_training"]
    assert main(["score", str(golden.run_dir)]) == 0
    printed = capsys.readouterr().out
    assert f"BLEU {expected['bleu']:.2f}  ({expected['bleu_signature']})" in printed
    assert f"chrF {expected['chrf']:.2f}" in printed
    source, reference = tmp_path / "s", tmp_path / "r"
    source.write_text("\n".join(golden.texts), encoding="utf-8")
    reference.write_text("\n".join(golden.translator.translate(golden.texts)), encoding="utf-8")
    files = ["--source", str(source), "--reference", str(reference)]
    assert main(["score", str(golden.run_dir), *files]) == 0
    assert "BLEU 100.00  (nrefs:1|case:mixed|eff:no|tok:13a|" in capsys.readouterr().out
    output = tmp_path / "log_probs"
    flags = [*files, "--bleu-tokenize", "none", "--log-probs", str(output)]
    assert main(["score", str(golden.run_dir), *flags]) == 0
    assert "BLEU 100.00  (nrefs:1|case:mixed|eff:no|tok:none|" in capsys.readouterr().out
    rows = [line.split("\t") for line in output.read_text(encoding="utf-8").splitlines()]
    references = reference.read_text(encoding="utf-8").splitlines()
    for row, found in zip(rows, golden.translator.score(golden.texts, references), strict=True):
        assert float(row[0]) == pytest.approx(found.log_prob, abs=1e-3)
        assert [token.split(" ")[0] for token in row[1:]] == found.tokens
    # Line n of the output belongs to line n of the text, also behind a line without a reference.
    source.write_text("\n".join([golden.texts[1], *golden.texts[:1]]), encoding="utf-8")
    reference.write_text("\n" + references[0], encoding="utf-8")
    assert main(["score", str(golden.run_dir), *files, "--output", str(output)]) == 0
    assert output.read_text(encoding="utf-8").split("\n") == ["", references[0], ""]
    written = output.read_bytes()
    flags = [*files, "--output", str(output), "--log-probs", str(tmp_path / "nowhere" / "x")]
    with pytest.raises(SystemExit, match="2"):
        main(["score", str(golden.run_dir), *flags])
    assert "was not changed" not in capsys.readouterr().err and output.read_bytes() == written


# export


@pytest.mark.slow
def test_export_prints_the_folder_it_wrote(golden, tmp_path, capsys):
    output = tmp_path / "servable"
    flags = ["--num-beams", "2", "--output", str(output)]
    assert main(["export", "saved_model", str(golden.run_dir), *flags]) == 0
    assert capsys.readouterr().out.strip() == str(output / "1")
    metadata = json.loads((output / "1" / "metadata.json").read_text())
    assert metadata["settings"]["num_beams"] == 2
    assert metadata["run_config"]["preset"] == "tiny"
    assert metadata["run_scores"]["after_training"]["bleu"] > 0


@pytest.mark.slow
def test_verify_says_whether_an_export_gives_the_answers_of_a_run(golden, tmp_path, capsys):
    exported = golden.run_dir / "export" / "saved_model" / "1"
    assert main(["export", "verify", str(exported), str(golden.run_dir)]) == 0
    assert "gives Python's answers: " in capsys.readouterr().out
    changed = shutil.copytree(exported, tmp_path / "changed")
    weights = changed / "variables" / "variables.data-00000-of-00001"
    weights.write_bytes(weights.read_bytes()[:-9] + bytes(9))
    for folder, message in (
        (tmp_path, "is not an export: it has no export.json"),
        (changed, f"{weights.name} has changed"),
    ):
        with pytest.raises(SystemExit):
            main(["export", "verify", str(folder), str(golden.run_dir)])
        assert message in capsys.readouterr().err


# Help and mistakes.


@pytest.mark.parametrize("command", ["train", "translate", "score", "export"])
def test_help_is_there_for_every_command(command):
    done = run(command, "--help")
    assert done.returncode == 0
    assert "usage:" in done.stdout


def test_without_a_command_all_of_them_are_listed(capsys):
    assert main([]) == 2
    assert "translate a file, a pipe, or what you type" in capsys.readouterr().err


def write(path, content):
    path.write_bytes(content)
    return str(path)


SMALL = ["--num-layers", "1", "--num-heads", "1", "--hidden-dim", "8", "--intermediate-dim", "8", "--num-beams", "1"]


def own_files(folder, **changes):
    """Flags for training on small own files; `changes` replaces the content of some."""
    flags = []
    for name in ("train_source", "train_target", "val_source", "val_target"):
        content = changes.get(name, b"a small dog\na small cat\na big dog\n" * 20)
        flags += [f"--{name.replace('_', '-')}", write(folder / name, content)]
    return flags


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
            "error: unrecognized arguments: --no-such-flag. All flags: python -m keras_transformer train --help",
        ),
        (["--epochz=3"], "error: unrecognized arguments: --epochz=3. Did you mean --epochs? All flags: "),
        (["--dropout", "1.5"], "`dropout` must be in [0, 1). Received: 1.5"),
        (["--hidden-dim", "10", "--num-heads", "3"], "`hidden_dim` must be divisible by `num_heads`"),
        (["--hidden-dim", "9", "--num-heads", "3"], "`hidden_dim` must be an even number"),
        (["--activation", "rele"], "rele"),
        (["--train-source", "a.en"], "Own files come in pairs"),
        (["--train-target", "none"], "/none: No such file"),
        (["--num-beams", "0"], "`num_beams` must be at least 1"),
        (["--config", "missing.json"], "Cannot read the config file missing.json"),
        (["--vocabulary-size", "100000"], "`vocabulary_size` is too large for this text"),
        (["--max-length", "2"], "all were dropped. Received: pairs 60 over-long; max_length=2"),
        (["--separate-vocabularies", "--tie-embeddings", "all"], "`tie_embeddings='all'` needs one vocabulary"),
        (["--subword-sampling", "1"], "`subword_sampling` must be in [0, 1). Received: 1.0"),
        (["--subword-sampling", "0.1", "--tokenizer", "bpe"], "`subword_sampling` needs a unigram tokenizer"),
        (["--subword-sampling-passes", "3"], "`subword_sampling_passes` needs `subword_sampling`"),
        (["--teacher-weight", "0.3"], "`teacher_weight` has no effect without `teacher`. Received: teacher_weight=0.3"),
        (["--identify-languages"], "`identify_languages` has no effect without `clean`"),
        (["--decoder-layers", "0,1"], "`decoder_layers` has no effect without `layers_from`"),
        (["--bleu-tokenize", "foo"], "and installed. Received: 'foo'. sacreBLEU says: 'foo'."),
        (["--shortlist", "500"], "`shortlist` needs alignments, which a trained model makes. Received: shortlist=500"),
    ],
)
def test_flags_that_cannot_be_and_the_run_that_was_to_be_replaced(tmp_path, capsys, flags, message):
    run_dir = old_run(tmp_path / "run")
    files = [] if {"--dataset", "--train-source"} & set(flags) else own_files(tmp_path)
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

    monkeypatch.setattr("keras_transformer.datasets.load_corpus", interrupt)
    before = sorted(old_run(tmp_path).rglob("*"))
    with pytest.raises(SystemExit, match="130"):
        train_keras.main(["--run-dir", str(tmp_path), "--overwrite"])
    assert said(capsys.readouterr().err) == ["Interrupted. Nothing was trained."]
    left = [path for path in before if SETTING_UP not in str(path)]
    assert sorted(tmp_path.rglob("*")) == left


def small_run(folder, *flags):
    """Two epochs on small own files; the run folder."""
    recipe = "--tokens-per-batch 60 --epochs 2 --steps-per-epoch 3 --no-export"
    argv = [*own_files(folder), *SMALL, *recipe.split(), *flags, "--run-dir", str(folder / "run")]
    return folder / "run", train_keras.main(argv)


def test_a_run_goes_on_with_other_settings_where_they_make_no_other_run(tmp_path, capsys):
    run_dir, status = small_run(tmp_path)
    assert status == 0
    log = (run_dir / "log.csv").read_bytes()
    with open(run_dir / "log.csv", "ab") as file:  # As if killed between the log and the checkpoint.
        file.write(b"2,9.0,9.0,9.0,9.0,9.0,9.0\r\n3,9.0")
    flags = ["--resume", "--run-dir", str(run_dir)]
    capsys.readouterr()
    for name, value in (("learning-rate", "0.5"), ("hidden-dim", "16"), ("preset", "small")):
        with pytest.raises(SystemExit, match="2"):
            train_keras.main([*flags, f"--{name}", value])
        assert f"`{name.replace('-', '_')}` must stay as the run began" in capsys.readouterr().err
    assert train_keras.main([*flags, "--num-beams", "3", "--epochs", "3", "--no-export"]) == 0
    assert "changed settings: epochs 2 -> 3, num_beams 1 -> 3" in capsys.readouterr().out
    config = json.loads((run_dir / "config.json").read_text())
    assert (config["decoding"]["num_beams"], config["training"]["epochs"]) == (3, 3)
    scores = json.loads((run_dir / "scores.json").read_text())
    assert list(scores) == ["after_training"]
    rows = (run_dir / "log.csv").read_bytes()
    assert rows.startswith(log)
    assert [row.split(b",")[0] for row in rows.splitlines()] == [b"epoch", b"0", b"1", b"2"]
    # All epochs are done: it is scored again. The same text under another name is the same run, another text is not.
    other = tmp_path / "other"
    other.write_bytes((tmp_path / "train_source").read_bytes())
    assert train_keras.main([*flags, "--num-beams", "2", "--train-source", str(other), "--no-export"]) == 0
    assert "after training" in capsys.readouterr().out
    assert json.loads((run_dir / "config.json").read_text())["decoding"]["num_beams"] == 2
    assert (run_dir / "log.csv").read_bytes() == rows
    other.write_bytes(other.read_bytes().replace(b"dog", b"cow"))
    capsys.readouterr()
    with pytest.raises(SystemExit, match="2"):
        train_keras.main(flags)
    assert "The training text must be the one that the run" in capsys.readouterr().err


@pytest.mark.slow
def test_a_run_that_goes_on_is_exported_with_its_new_settings(tmp_path):
    run_dir, _ = small_run(tmp_path)
    assert train_keras.main(["--resume", "--run-dir", str(run_dir), "--num-beams", "3", "--epochs", "3"]) == 0
    assert json.loads((run_dir / "export/saved_model/1/metadata.json").read_text())["settings"]["num_beams"] == 3


@pytest.mark.slow
def test_many_corpora_that_are_cleaned_and_kept_on_disk(tmp_path, capsys):
    """The same weights as with the token ids in memory; a second run finds the ids and tokenizes nothing."""
    flags = own_files(tmp_path, train_target=b"ein kleiner hund\neine kleine katze\nein grosser hund\n" * 20)
    paths = [
        write(tmp_path / "more_source", b"a dog\n\n1 2 3 4\nthe small dog\n"),
        write(tmp_path / "more_target", b"ein hund\nx\n5 6\nder hund\n"),
    ]
    flags += ["--train", *paths, "weight=5", "name=more", "--clean", *SMALL, "--tokens-per-batch", "30"]
    flags += ["--epochs", "1", "--no-export", "--subword-sampling", "0.3"]
    for folder, more in (("memory", []), ("disk", ["cache"]), ("again", ["cache"])):
        cached = [x for name in more for x in ("--cache-dir", str(tmp_path / name), "--workers", "2")]
        assert train_keras.main([*flags, *cached, "--run-dir", str(tmp_path / folder)]) == 0
        said = capsys.readouterr().out
        assert "train_target: 3 pairs\n  57 that were there before, such as" in said
        assert (
            "more: 2 pairs\n  1 with an empty side, such as\n    line 2:   |  x\n  1 with few letters, such as" in said
        )
        assert "more: 10 pairs in every pass (76.9%)" in said
    weights = [checkpoint_arrays(tmp_path / folder, 1) for folder in ("memory", "disk", "again")]
    for other in weights[1:]:
        assert {name: x.tobytes() for name, x in other.items()} == {name: x.tobytes() for name, x in weights[0].items()}
    assert len(list((tmp_path / "cache").iterdir())) == 2


def test_a_training_without_a_number_ends_with_a_message_and_status_1(tmp_path, capsys):
    run_dir, status = small_run(tmp_path, "--learning-rate", "1e30", "--warmup-steps", "1", "--clip-norm", "0")
    assert status == 1
    message = capsys.readouterr().err
    assert "error: no epoch ended with a val_loss that is a number" in message
    assert f"{run_dir} holds no finished epochs. Begin again with --overwrite" in message
    assert not (run_dir / "model.keras").exists()
    assert small_run(tmp_path, "--overwrite")[1] == 0


@pytest.mark.slow
def test_a_full_disk_ends_training_with_the_file_and_the_way_to_go_on(tmp_path, monkeypatch, capsys):
    def no_room(*args, **kwargs):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with monkeypatch.context() as patch, pytest.raises(SystemExit, match="2"):
        patch.setattr("numpy.savez", no_room)
        small_run(tmp_path)
    run_dir = tmp_path / "run"
    assert capsys.readouterr().err.splitlines()[-2:] == [
        f"error: Cannot use {run_dir}/checkpoints/epoch-00001.npz: No space left on device. Resume with:",
        f"  python -m keras_transformer train --run-dir {run_dir} --resume",
    ]
    assert train_keras.main(["--run-dir", str(run_dir), "--resume", "--no-export"]) == 0
    assert list(json.loads((run_dir / "scores.json").read_text())) == ["after_training"]


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


def test_a_run_folder_that_exists_is_never_overwritten_by_itself(golden, tmp_path, capsys):
    kept = (golden.run_dir / "model.keras").read_bytes()
    with pytest.raises(SystemExit, match="2"):
        train_keras.main(["--run-dir", str(golden.run_dir)])
    assert "a run folder is not overwritten by default" in capsys.readouterr().err
    assert (golden.run_dir / "model.keras").read_bytes() == kept


def test_only_a_run_is_overwritten(tmp_path, capsys):
    (tmp_path / "config.json").write_text("{}")
    (tmp_path / "thesis.txt").write_text("years of work")
    with pytest.raises(SystemExit, match="2"):
        train_keras.main(["--run-dir", str(tmp_path), "--overwrite"])
    assert f"{tmp_path} is not replaced: only the folder of a run is" in capsys.readouterr().err
    assert (tmp_path / "thesis.txt").read_text() == "years of work"


def test_overwrite_leaves_nothing_of_the_old_run(tmp_path):
    run_dir = old_run(tmp_path / "run")
    flags = [*own_files(tmp_path), *SMALL, "--epochs", "1", "--no-export", "--overwrite", "--run-dir", str(run_dir)]
    assert train_keras.main(flags) == 0
    # confidence.json is there if the model has learned any word.
    assert {path.name for path in run_dir.iterdir()} - {"confidence.json"} == {
        "checkpoints", "config.json", "log.csv", "model.keras", "scores.json", "tensorboard", "tokenizer.spm",
        "versions.json",
    }  # fmt: skip
    assert [path.name for path in (run_dir / "checkpoints").iterdir()] == ["epoch-00001.npz"]
    assert json.loads((run_dir / "config.json").read_text())["training"]["epochs"] == 1


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


def test_bad_flags_of_translate_and_score(golden, tmp_path, capsys):
    for flags, message in (
        (["translate", "--num-hypotheses", "5", "--num-beams", "2", "--input", __file__], "`num_hypotheses` must be"),
        (["translate", "--num-beams", "0"], "must be at least 1"),
        (["translate", "--input", str(tmp_path / "none")], "No such file"),
        (["score", "--source", "x"], "--source and --reference must be given together"),
    ):
        with pytest.raises(SystemExit, match="2"):
            main([flags[0], str(golden.run_dir), *flags[1:]])
        assert message in capsys.readouterr().err


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
    assert train_keras.makes_the_run_folder(strategy) is first


def test_a_wrong_description_of_the_cluster_is_named(tmp_path, monkeypatch, capsys):
    for wrong in ('{"cluster"', "[]", '{"task": {"index": 0}}'):
        monkeypatch.setenv("TF_CONFIG", wrong)
        with pytest.raises(SystemExit, match="2"):
            train_keras.main(["--strategy", "multi_worker", "--run-dir", str(tmp_path / "run")])
        message = "error: The environment variable TF_CONFIG must be a JSON object with a `task` that has a `type`"
        assert message in (error := capsys.readouterr().err) and f"Received: {wrong}." in error
    assert not (tmp_path / "run").exists()


def drawn_sources(golden, number, **settings):
    """The sources of some pairs as they are in a pass, and as they are without a `Variation`."""
    text = ParallelText([(text, text) for text in golden.texts], "texts")
    plain = encode_pairs(text.pairs, *[golden.tokenizer] * 2, 128)
    config = RunConfig.make({"subword_sampling": 0.1, "placeholder_share": 0.0, **settings})
    vary = train_keras.variation(Corpus([text], [text], [text]), [golden.tokenizer], config)
    pairs = list(zip(plain.source, plain.target, strict=True))
    seeds = range(1000 * number, 1000 * number + len(pairs))
    return [source for source, _ in vary(pairs, number, seeds)], [ids.tolist() for ids in plain.source]


def test_the_last_passes_have_the_segmentations_of_translation(golden):
    passes = [drawn_sources(golden, number, subword_sampling_passes=2) for number in range(4)]
    plain = passes[0][1]
    passes = [sources for sources, _ in passes]
    assert passes[0] != plain != passes[1] != passes[0]
    assert passes[2] == passes[3] == plain


@pytest.mark.parametrize(("steps_per_epoch", "drawn"), [(None, [0, 1, 2, 3, 4]), (9, [0, 1, 2, 3, 4, 5, 6, 7])])
def test_unless_told_five_eighths_of_the_epochs_draw_segmentations(golden, steps_per_epoch, drawn):
    settings = {"epochs": 8, "steps_per_epoch": steps_per_epoch}
    passes = [drawn_sources(golden, number, **settings) for number in range(8)]
    assert [number for number, (sources, plain) in enumerate(passes) if sources != plain] == drawn


# Resuming.


@pytest.mark.slow
def test_a_run_with_averages_goes_on_within_an_epoch_and_after_it(tmp_path, monkeypatch):
    """Keras ends `fit` with the averages in place of the weights, and the rest of an epoch is a `fit` of its own."""
    monkeypatch.setattr(runs, "NUM_CHECKPOINTS", 99)
    flags = ["--checkpoint-steps", "2", "--ema-momentum", "0.9", "--epochs", "3"]
    run_dir, status = small_run(tmp_path, *flags)
    assert status == 0
    wanted = checkpoint_arrays(run_dir, 3)
    checkpoints = Run(run_dir).checkpoints()
    assert "epoch-00001-step-00000002" in [path.stem for path in checkpoints]
    for path in checkpoints:
        if path.stem > "epoch-00001-step-00000002":
            path.unlink()
    assert train_keras.main(["--run-dir", str(run_dir), "--resume", "--no-export"]) == 0
    found = checkpoint_arrays(run_dir, 3)
    assert {name: array.tobytes() for name, array in found.items()} == {
        name: array.tobytes() for name, array in wanted.items()
    }


KILLS = int(os.environ.get("KILLS", 3))
EPOCHS = 10 * KILLS


def train_flags(folder, run_dir):
    recipe = f"--tokens-per-batch 60 --epochs {EPOCHS} --steps-per-epoch 7 --subword-sampling 0.3 --ema-momentum 0.9 "
    recipe += "--checkpoint-steps 3"
    return [*own_files(folder), *SMALL, *recipe.split(), "--no-export", "--run-dir", str(run_dir)]


def final_weights(run_dir):
    return {name: array.tobytes() for name, array in checkpoint_arrays(run_dir, EPOCHS).items()}


def writes_into(process, folder):
    """Whether a process has a file in a folder open for writing; it may have no name yet."""
    for descriptor in Path(f"/proc/{process.pid}/fd").iterdir():
        with contextlib.suppress(OSError):
            flags = Path(f"/proc/{process.pid}/fdinfo/{descriptor.name}").read_text().split("flags:")[1].split()[0]
            if descriptor.readlink().is_relative_to(folder) and int(flags, 8) & (os.O_WRONLY | os.O_RDWR):
                return True
    return False


# What the process is doing when it is killed, seen from outside; the rest of the time it is in a step or between two.
MOMENTS = {
    "writing a checkpoint": lambda process, run_dir: writes_into(process, run_dir / "checkpoints"),
    "writing the best model": lambda process, run_dir: (run_dir / ".writing-model.keras").exists(),
    "in a step": lambda process, run_dir: (run_dir / "config.json").exists(),
}


@pytest.mark.slow
def test_a_training_that_is_killed_again_and_again_ends_with_the_same_weights(tmp_path):
    """kill -9 at random moments, then --resume: every weight, optimizer and random state as if nothing had happened.

    After the second kill the newest checkpoint is cut, as by a full disk: the one before it is used. `KILLS=50 pytest`
    kills more often than the three times of every day.
    """
    random, cut = Random(0), None
    straight, killed = tmp_path / "straight", tmp_path / "killed"
    assert train_keras.main(train_flags(tmp_path, straight)) == 0
    for number in range(KILLS):
        moment = list(MOMENTS)[number % 3]
        flags = ["--run-dir", killed, "--resume"] if number else train_flags(tmp_path, killed)
        call = [sys.executable, "-m", "train_keras", *map(str, flags)]
        with subprocess.Popen(call, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as process:
            lines = list(takewhile(lambda line: not line.startswith("Epoch "), process.stdout))
            for _ in range(random.randrange(6)):  # Epochs.
                next((line for line in process.stdout if line.startswith("Epoch ")), None)
            deadline = time.monotonic() + random.uniform(0, 0.2)
            while process.poll() is None and (time.monotonic() < deadline or not MOMENTS[moment](process, killed)):
                time.sleep(0.0005)
            process.kill()
            process.wait()
        newest = Run(killed).checkpoints()[::-1]
        print(
            f"kill {number + 1}, {moment}: exit {process.returncode}, {newest[-1].stem if newest else 'no checkpoint'}"
        )
        assert not cut or any(line.startswith(f"{cut} is damaged") for line in lines)
        assert process.returncode == -signal.SIGKILL, "It was over before its moment came."
        cut = newest[-1] if number == 1 else None
        if cut:
            assert len(newest) == 2
            cut.write_bytes(cut.read_bytes()[:-100])
    done = run("--run-dir", killed, "--resume", "--no-export", module="train_keras")
    assert done.returncode == 0, done.stderr[-2000:]
    assert "resuming: " in done.stdout
    assert not (killed / "export").exists()
    assert final_weights(killed) == final_weights(straight)
    assert (killed / "log.csv").read_text() == (straight / "log.csv").read_text()


def test_ctrl_c_leaves_a_usable_run(tmp_path, monkeypatch, capsys):
    """Interrupted in its first epoch, the run folder translates."""
    import keras

    class Interrupt(keras.callbacks.Callback):
        def on_train_batch_end(self, batch, logs=None):
            raise KeyboardInterrupt

    monkeypatch.setattr("keras_transformer.training.TimeLeft", lambda minutes: Interrupt())
    with pytest.raises(SystemExit, match="130"):
        train_keras.main(train_flags(tmp_path, tmp_path / "run"))
    said = f"Interrupted. Resume with:\n  python -m keras_transformer train --run-dir {tmp_path / 'run'} --resume\n"
    assert capsys.readouterr().err.endswith(said)
    assert main(["translate", str(tmp_path / "run"), "--input", str(tmp_path / "val_source")]) == 0
    assert len(capsys.readouterr().out.splitlines()) == 60


def test_a_mistyped_flag_of_a_command_is_named_with_the_one_that_was_meant(capsys):
    with pytest.raises(SystemExit, match="2"):
        main(["translate", "run", "--num-bems", "3"])
    assert capsys.readouterr().err == (
        "error: unrecognized arguments: --num-bems 3. Did you mean --num-beams? All flags: "
        "python -m keras_transformer translate --help\n"
    )


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
