"""The commands as a user calls them: what they print, write and refuse."""

import contextlib
import gzip
import io
import json
import os
import pty
import re
import shutil
import signal
import subprocess
import sys
import time
from types import ModuleType, SimpleNamespace

import pytest
from arrays import checkpoint_arrays
from trainings import SMALL, own_files

import train_keras
from keras_transformer.__main__ import main
from keras_transformer.data.batches import encode_pairs
from keras_transformer.data.corpora import Corpus, ParallelText
from keras_transformer.text.accelerators import with_accelerator
from keras_transformer.training import fit
from keras_transformer.training.checkpoints import PREEMPTED
from keras_transformer.training.config import RunConfig
from keras_transformer.training.prepare import variation
from keras_transformer.training.run import SETTING_UP
from keras_transformer.translation.evaluation import corpus_scores

pytestmark = pytest.mark.usefixtures("loaded_once")


def said(stderr):
    """What a command printed itself: TensorFlow prints lines of its own when it is imported."""
    own = re.compile(r"WARNING: All log messages before absl|[IWE]\d{4} \d\d:|To enable the following instructions")
    return [line for line in stderr.splitlines() if not own.match(line)]


# The run folder.


def test_a_run_folder_holds_everything(finished):
    names = {path.name for path in finished.iterdir()}
    assert names - {"confidence.json"} == {  # Without a wrong word in the validation text, nothing is calibrated.
        "README.md", "checkpoints", "config.json", "export", "log.csv", "model.keras", "scores.json", "tensorboard",
        "tokenizer.spm", "versions.json",
    }  # fmt: skip
    scores = json.loads((finished / "scores.json").read_text())
    assert scores["after_training"]["bleu"] > 90
    # An untrained model is not scored, and without --test the validation texts are the test.
    assert list(scores) == ["after_training"]
    assert "version:" in scores["after_training"]["bleu_signature"]
    log = (finished / "log.csv").read_text().splitlines()
    assert log[0].split(",")[:4] == ["epoch", "loss", "perplexity", "token_accuracy"]
    assert len(log) == 1 + 8  # Epochs.
    assert "keras" in json.loads((finished / "versions.json").read_text())


# translate


def test_a_pipe_is_answered_line_by_line_without_pyplot(golden):
    """Whoever writes a line gets its translation before writing the next.

    Keras imports pyplot where it is installed, which takes half a second. Afterwards, others can import it.
    """
    code = """if True:
        import sys
        from keras_transformer.__main__ import main
        print(main(sys.argv[1:]), "keras" in sys.modules, "matplotlib.pyplot" in sys.modules)
        import matplotlib.pyplot
    """
    call = [sys.executable, "-c", code, "translate", str(golden.run_dir)]
    texts = [golden.texts[0], "", golden.texts[1]]
    with subprocess.Popen(call, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1) as process:
        for text, translation in zip(texts, golden.translator.translate(texts), strict=True):
            print(text, file=process.stdin, flush=True)
            assert process.stdout.readline() == translation + "\n"
        process.stdin.close()
        assert process.stdout.read() == "0 True False\n"
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
    monkeypatch.setattr("keras_transformer.text.lines.READ_SIZE", 50)  # A large file is translated in parts.
    source, target = tmp_path / "in.txt", tmp_path / "out.txt"
    source.write_text("\n".join(golden.texts), encoding="utf-8")
    pyplot = ModuleType("matplotlib.pyplot")
    monkeypatch.setitem(sys.modules, "matplotlib.pyplot", pyplot)
    assert main(["translate", str(golden.run_dir), "--input", str(source), "--output", str(target)]) == 0
    assert sys.modules["matplotlib.pyplot"] is pyplot  # Who has loaded it keeps it.
    assert target.read_text(encoding="utf-8").splitlines() == golden.translator.translate(golden.texts)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["in.txt", "out.txt"]


def test_translate_keeps_a_document_together(golden, tmp_path, capsys):
    source, target = tmp_path / "in.txt", tmp_path / "out.txt"
    document = f"\ufeff- {golden.texts[0]} {golden.texts[1]}\r\n\r\n  {golden.texts[2]}\n\n"
    source.write_bytes(document.encode())
    flags = ["translate", str(golden.run_dir), "--format", "document", "--input", str(source)]
    assert main([*flags, "--output", str(target)]) == 0
    a, b, c = golden.translator.translate(golden.texts[:3])
    assert target.read_bytes().decode() == f"- {a} {b}\r\n\r\n  {c}\n\n"
    with pytest.raises(SystemExit, match="2"):
        main([*flags, "--scores"])
    assert "--format document writes one text, so it takes none of --scores" in capsys.readouterr().err
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


def test_lines_that_are_no_text_or_too_long_are_reported_and_counted(golden, tmp_path, capsys):
    source, target = tmp_path / "in.txt.gz", tmp_path / "out.txt"
    lines = [golden.texts[0].encode(), "naïve".encode("latin-1"), b"", b"a\0b", b"dog " * 200, golden.texts[1].encode()]
    source.write_bytes(gzip.compress(b"\n".join(lines)))
    assert main(["translate", str(golden.run_dir), "--input", str(source), "--output", str(target)]) == 1
    assert said(capsys.readouterr().err) == [
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
    source.write_bytes(gzip.compress(b"a sentence\n" * 99)[:-12])
    with pytest.raises(SystemExit, match="2"):
        main(["translate", str(golden.run_dir), "--input", str(source), "--output", str(target)])
    assert f"Cannot read {source} after line " in capsys.readouterr().err
    assert sorted(path.name for path in tmp_path.iterdir()) == ["in.txt.gz"]


def test_an_output_replaces_nothing_that_the_command_reads(golden, tmp_path, capsys):
    source, link = tmp_path / "in.txt", tmp_path / "link"
    source.write_text("a dog\n")
    link.symlink_to(source)
    files = {path: path.read_bytes() for path in (source, golden.run_dir / "model.keras")}
    run, text = str(golden.run_dir), str(source)
    for argv in (
        ["translate", run, "--input", text, "--output", str(link)],
        ["translate", run, "--input", text, "--format", "document", "--output", text],
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


MOMENTS = {
    "a step": ("on_train_batch_begin", 9, "1 epochs and 3 steps"),
    "the last step": ("on_train_batch_end", 14, "2 epochs and 0 steps"),
    "validation": ("on_test_begin", 14, "2 epochs and 0 steps"),
}


@pytest.fixture(scope="module")
def straight(tmp_path_factory):
    """Flags of a small training, but for the folder of its run, and the last checkpoint of one that nobody ended."""
    folder = tmp_path_factory.mktemp("straight")
    (folder / "config.json").write_text(json.dumps(RunConfig.make({"preset": "small"}).to_dict()))
    recipe = "--preset tiny --tokens-per-batch 60 --epochs 3 --steps-per-epoch 7 --no-export --resume auto --run-dir"
    flags = [*own_files(folder), *SMALL, "--config", str(folder / "config.json"), *recipe.split()]
    assert train_keras.main([*flags, str(folder / "run")]) == 0
    return flags, checkpoint_arrays(folder / "run", 3)


@pytest.mark.parametrize(
    ("asked_by", "moment"),
    [(signal.SIGUSR1, "a step"), *((signal.SIGTERM, moment) for moment in MOMENTS)],
)
def test_a_training_that_is_asked_to_end_goes_on_with_the_same_command(
    straight, tmp_path, monkeypatch, capsys, asked_by, moment
):
    """After a step or a validation, with a checkpoint and a status of its own."""
    method, wanted, done = MOMENTS[moment]

    def ask(self, *arguments, **logs):
        if self.model.optimizer.iterations == wanted:
            os.kill(os.getpid(), asked_by)
            os.kill(os.getpid(), asked_by)  # As `timeout` does, to the process and to its group.

    monkeypatch.setattr(fit, "TimeLeft", type("Asks", (fit.TimeLeft,), {method: ask}))
    argv = [*straight[0], str(tmp_path / "run")]
    with pytest.raises(SystemExit) as ended:
        train_keras.main(argv)
    assert ended.value.code == PREEMPTED
    assert f"Ended by {asked_by.name}. {done} are in the checkpoint" in capsys.readouterr().out
    monkeypatch.undo()
    before = signal.getsignal(asked_by)
    assert train_keras.main(argv) == 0
    assert "resuming: " in capsys.readouterr().out and signal.getsignal(asked_by) == before
    found, expected = checkpoint_arrays(tmp_path / "run", 3), straight[1]
    assert {name: array.tobytes() for name, array in found.items()} == {
        name: array.tobytes() for name, array in expected.items()
    }


def test_a_run_that_is_resumed_if_there_is_one_needs_a_folder(capsys):
    with pytest.raises(SystemExit, match="2"):
        train_keras.main(["--resume", "auto"])
    assert "--resume auto needs --run-dir" in capsys.readouterr().err


@pytest.mark.parametrize(("number", "status"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_an_import_that_is_interrupted_ends_the_process(tmp_path, number, status):
    # TensorFlow crashes, hangs or forgets the interruption if an exception cuts its import off.
    (tmp_path / "interrupted.py").write_text(
        f"import os\ntry:\n    os.kill(os.getpid(), {int(number)})\nexcept:\n    pass\n"
    )
    code = (
        "from keras_transformer.commands.flags import user_errors\nwith user_errors('A hint.'):\n    import interrupted"
    )
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(tmp_path), os.environ.get("PYTHONPATH", "")])}
    done = subprocess.run([sys.executable, "-c", code], stderr=subprocess.PIPE, text=True, env=environment)
    word = "Terminated" if number == signal.SIGTERM else "Interrupted"
    assert (done.returncode, done.stderr) == (status, f"{word}. A hint.\n")


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


def test_messages_get_their_accelerators_back(golden, loaded_once, tmp_path, capsys):
    first, second = golden.texts[:2]
    source = tmp_path / "messages"
    source.write_text(f"_{first}\n{second}\n", encoding="utf-8")
    assert main(["translate", str(golden.run_dir), "--format", "messages", "--input", str(source)]) == 0
    lines, expected = capsys.readouterr().out.splitlines(), golden.translator.translate([first, second])
    assert lines == [with_accelerator(expected[0], f"_{first[0]}"), expected[1]] and lines[0].count("_") == 1


# score


def test_score_prints_bleu_of_files(golden, tmp_path, capsys):
    source, reference = tmp_path / "s", tmp_path / "r"
    source.write_text("\n".join(golden.texts), encoding="utf-8")
    reference.write_text("\n".join(golden.translator.translate(golden.texts)), encoding="utf-8")
    files = ["--source", str(source), "--reference", str(reference)]
    output = tmp_path / "log_probs"
    flags = [*files, "--bleu-tokenize", "none", "--log-probs", str(output)]
    assert main(["score", str(golden.run_dir), *flags]) == 0
    printed = capsys.readouterr().out
    assert "BLEU 100.00 ± 0.00  (nrefs:1|bs:1000|seed:12345|case:mixed|eff:no|tok:none|" in printed
    assert "\nchecks: numbers kept: " in printed
    rows = [line.split("\t") for line in output.read_text(encoding="utf-8").splitlines()]
    references = reference.read_text(encoding="utf-8").splitlines()
    for row, found in zip(rows, golden.translator.score(golden.texts, references), strict=True):
        assert float(row[0]) == pytest.approx(found.log_prob, abs=1e-3)
        assert [token.split(" ")[0] for token in row[1:]] == found.tokens
    # Each line of the output belongs to the line of the text with its number, even after one without a reference.
    source.write_text("\n".join([golden.texts[1], *golden.texts[:1]]), encoding="utf-8")
    reference.write_text("\n" + references[0], encoding="utf-8")
    assert main(["score", str(golden.run_dir), *files, "--output", str(output)]) == 0
    assert output.read_text(encoding="utf-8").split("\n") == ["", references[0], ""]
    written = output.read_bytes()
    flags = [*files, "--output", str(output), "--log-probs", str(tmp_path / "nowhere" / "x")]
    with pytest.raises(SystemExit, match="2"):
        main(["score", str(golden.run_dir), *flags])
    assert "was not changed" not in capsys.readouterr().err and output.read_bytes() == written


# Help and mistakes.


def test_score_compares_and_calls_a_metric(golden, loaded_once, tmp_path, capsys):
    expected = golden.translator.translate(golden.texts)
    files = {"s": golden.texts, "r": expected, "o": [line.upper() for line in expected]}
    for name, lines in files.items():
        (tmp_path / name).write_text("\n".join(lines), encoding="utf-8")
    metric = tmp_path / "metric"
    metric.write_text('#!/bin/sh\ncmp -s "$2" "$3"; echo $? of $(wc -l < "$1")\n')
    metric.chmod(0o755)
    flags = ["--source", str(tmp_path / "s"), "--reference", str(tmp_path / "r")]
    run = str(golden.run_dir)
    assert main(["score", run, *flags, "--compare", str(tmp_path / "o"), "--metric", str(metric)]) == 0
    printed = capsys.readouterr().out
    other = corpus_scores(files["o"], expected)
    assert f"difference of BLEU: {100 - other.bleu:+.2f}  (approximate randomization, p = 0.00" in printed
    assert [f"{metric}:\n{status} of {len(expected)}\n" in printed for status in (0, 1)] == [True, True]
    for script, said in (("#!/bin/sh\necho no model; exit 3", "status 3.*It said: no model"), ("#!/bin/sh", "nothing")):
        metric.write_text(script)
        with pytest.raises(SystemExit, match="2"):
            main(["score", run, *flags, "--metric", str(metric)])
        assert re.search(said, capsys.readouterr().err)
    metric.write_text("echo 1")
    with pytest.raises(SystemExit, match="2"):
        main(["score", run, *flags, "--metric", str(metric)])
    assert "Exec format error. Does its first line say" in capsys.readouterr().err
    assert main(["score", run, *flags, "--compare", run]) == 0
    assert "difference of chrF: +0.00  (approximate randomization, p = 1.000)" in capsys.readouterr().out
    (tmp_path / "o").write_text("one line")
    for wrong, message in (
        (
            ["--compare", str(tmp_path / "o")],
            f"--compare needs one translation of each line of the text. Received: {tmp_path / 'o'}",
        ),
        (["--compare", str(tmp_path / "nowhere")], "nowhere"),
        (["--compare", ""], "is not the folder of a trained run"),  # A variable of a shell that was not set.
        (["--compare", str(tmp_path)], "is not the folder of a trained run"),
        (["--metric", "no-such-program --flag"], "--metric must be a command that can be started"),
        (["--bleu-tokenize", "foo"], "`bleu_tokenize` must be one of sacreBLEU's"),
        (["--metric", "'a b"], "--metric must be a command that can be started, quoted as for a shell"),
        (["--metric", "false"], "must print its result and end with status 0. Received: status 1 of false"),
    ):
        with pytest.raises(SystemExit, match="2"):
            main(["score", run, *flags, *wrong])
        assert message in capsys.readouterr().err


@pytest.mark.parametrize("command", ["train", "translate", "score", "export"])
def test_help_is_there_for_every_command(command, capsys):
    with pytest.raises(SystemExit, match="0"):
        main([command, "--help"])
    assert capsys.readouterr().out.startswith(f"usage: python -m keras_transformer {command} ")


def old_run(folder):
    """What a run that was trained, and one that was killed while it was set up, leave in a folder."""
    for name in ("config.json", "model.keras", "checkpoints/epoch-0009.npz", f"{SETTING_UP}/tokenizer.spm"):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(json.dumps(RunConfig().to_dict()) if name == "config.json" else "old")
    return folder


@pytest.fixture(scope="module")
def small(tmp_path_factory):
    """A run of two epochs on small own files, written over what a training without a number and old runs have left.

    `failed` is what that training returned and said, and the names of its files.
    """
    folder = tmp_path_factory.mktemp("small")
    run_dir = old_run(folder / "run")
    recipe = "--tokens-per-batch 60 --epochs 2 --steps-per-epoch 3 --no-export --overwrite"
    argv = [*own_files(folder), *SMALL, *recipe.split(), "--run-dir", str(run_dir)]
    with contextlib.redirect_stderr(io.StringIO()) as said:
        status = train_keras.main([*argv, "--learning-rate", "1e30", "--warmup-ratio", "0", "--clip-norm", "0"])
    failed = status, said.getvalue(), {path.name for path in run_dir.iterdir()}
    old_run(run_dir)
    assert train_keras.main(argv) == 0
    return SimpleNamespace(folder=folder, run_dir=run_dir, failed=failed)


def test_a_run_goes_on_with_other_settings_where_they_make_no_other_run(small, tmp_path, capsys):
    run_dir = shutil.copytree(small.run_dir, tmp_path / "run")
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
    assert (config["search"]["num_beams"], config["training"]["epochs"]) == (3, 3)
    scores = json.loads((run_dir / "scores.json").read_text())
    assert list(scores) == ["after_training"]
    rows = (run_dir / "log.csv").read_bytes()
    assert rows.startswith(log)
    assert [row.split(b",")[0] for row in rows.splitlines()] == [b"epoch", b"0", b"1", b"2"]
    # All epochs are done: it is scored again. The same text under another name is the same run, another text is not.
    other = tmp_path / "other"
    other.write_bytes((small.folder / "train_source").read_bytes())
    assert (
        train_keras.main(
            [*flags, "--num-beams", "2", "--train", str(other), str(small.folder / "train_target"), "--no-export"]
        )
        == 0
    )
    assert "after training" in capsys.readouterr().out
    assert json.loads((run_dir / "config.json").read_text())["search"]["num_beams"] == 2
    assert (run_dir / "log.csv").read_bytes() == rows
    other.write_bytes(other.read_bytes().replace(b"dog", b"cow"))
    capsys.readouterr()
    with pytest.raises(SystemExit, match="2"):
        train_keras.main(flags)
    assert "The training text must be the one that the run" in capsys.readouterr().err


def test_a_training_without_a_number_ends_with_a_message_and_status_1(small):
    status, message, names = small.failed
    assert status == 1
    assert "error: no epoch ended with a val_loss that is a number" in message
    assert f"{small.run_dir} holds no finished epochs. Begin again with --overwrite" in message
    assert "config.json" in names and "model.keras" not in names


def test_a_run_folder_that_exists_is_never_overwritten_by_itself(golden, tmp_path, capsys):
    kept = (golden.run_dir / "model.keras").read_bytes()
    with pytest.raises(SystemExit, match="2"):
        train_keras.main(["--run-dir", str(golden.run_dir)])
    assert "a run folder is not overwritten by default" in capsys.readouterr().err
    assert (golden.run_dir / "model.keras").read_bytes() == kept


def test_overwrite_leaves_nothing_of_the_old_run(small):
    # confidence.json is there if the model has learned any word.
    assert {path.name for path in small.run_dir.iterdir()} - {"confidence.json"} == {
        "README.md", "checkpoints", "config.json", "log.csv", "model.keras", "scores.json", "tensorboard",
        "tokenizer.spm", "versions.json",
    }  # fmt: skip
    names = sorted(path.name for path in (small.run_dir / "checkpoints").iterdir())
    assert names == ["epoch-00001.npz", "epoch-00002.npz"]
    assert json.loads((small.run_dir / "config.json").read_text())["training"]["epochs"] == 2


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


def drawn_sources(golden, number, **settings):
    """The sources of some pairs as they are in a pass, and as they are without a `Variation`."""
    text = ParallelText([(text, text) for text in golden.texts], "texts")
    plain = encode_pairs(text.pairs, *[golden.tokenizer] * 2, 128)
    config = RunConfig.make({"subword_sampling": 0.1, "placeholder_share": 0.0, **settings})
    vary = variation(Corpus([text], [text], [text]), [golden.tokenizer], config)
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


def test_ctrl_c_leaves_a_usable_run(tmp_path, monkeypatch, capsys):
    """Interrupted in its first epoch, the run folder translates."""
    import keras

    class Interrupt(keras.callbacks.Callback):
        def on_train_batch_end(self, batch, logs=None):
            raise KeyboardInterrupt

    monkeypatch.setattr("keras_transformer.training.fit.TimeLeft", lambda minutes: Interrupt())
    argv = [*own_files(tmp_path), *SMALL, "--tokens-per-batch", "60", "--run-dir", str(tmp_path / "run")]
    with pytest.raises(SystemExit, match="130"):
        train_keras.main(argv)
    said = f"Interrupted. Resume with:\n  python -m keras_transformer train --run-dir {tmp_path / 'run'} --resume\n"
    assert capsys.readouterr().err.endswith(said)
    assert main(["translate", str(tmp_path / "run"), "--input", str(tmp_path / "val_source")]) == 0
    assert len(capsys.readouterr().out.splitlines()) == 60
