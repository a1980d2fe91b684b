"""The commands as a user calls them: what they print, write and refuse."""

import contextlib
import errno
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from itertools import takewhile
from pathlib import Path
from random import Random

import pytest
from arrays import checkpoint_arrays
from texts import write
from trainings import SMALL, own_files

import train_keras
from keras_transformer.__main__ import main
from keras_transformer.training import run as runs
from keras_transformer.training.checkpoints import PREEMPTED
from keras_transformer.training.run import Run


def run(*arguments, module="keras_transformer"):
    """A command in a process of its own."""
    call = [sys.executable, "-m", module, *map(str, arguments)]
    return subprocess.run(call, capture_output=True, text=True, timeout=300)


def said(stderr):
    """What a command printed itself: TensorFlow prints lines of its own when it is imported."""
    own = re.compile(r"WARNING: All log messages before absl|[IWE]\d{4} \d\d:|To enable the following instructions")
    return [line for line in stderr.splitlines() if not own.match(line)]


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


# export


def test_export_prints_the_folder_it_wrote(golden, tmp_path, capsys):
    output = tmp_path / "servable"
    flags = ["--num-beams", "2", "--output", str(output)]
    assert main(["export", "saved_model", str(golden.run_dir), *flags]) == 0
    assert capsys.readouterr().out.strip() == str(output / "1")
    metadata = json.loads((output / "1" / "metadata.json").read_text())
    assert metadata["settings"]["num_beams"] == 2
    assert metadata["made_from"] == [{"name": "train.source", "license": None}]
    assert metadata["run_scores"]["after_training"]["bleu"] > 0


def test_verify_says_whether_an_export_gives_the_answers_of_a_run(origin, servable, tmp_path, capsys):
    assert main(["export", "verify", str(servable), str(origin.run_dir)]) == 0
    assert "gives Python's answers: " in capsys.readouterr().out
    changed = shutil.copytree(servable, tmp_path / "changed")
    weights = changed / "variables" / "variables.data-00000-of-00001"
    weights.write_bytes(weights.read_bytes()[:-9] + bytes(9))
    for folder, message in (
        (tmp_path, "is not an export: it has no export.json"),
        (changed, f"{weights.name} has changed"),
    ):
        with pytest.raises(SystemExit):
            main(["export", "verify", str(folder), str(origin.run_dir)])
        assert message in capsys.readouterr().err


def small_run(folder, *flags):
    """Two epochs on small own files; the run folder."""
    recipe = "--tokens-per-batch 60 --epochs 2 --steps-per-epoch 3 --no-export"
    argv = [*own_files(folder), *SMALL, *recipe.split(), *flags, "--run-dir", str(folder / "run")]
    return folder / "run", train_keras.main(argv)


def test_a_run_that_goes_on_is_exported_with_its_new_settings(tmp_path):
    run_dir, _ = small_run(tmp_path)
    assert train_keras.main(["--resume", "--run-dir", str(run_dir), "--num-beams", "3", "--epochs", "3"]) == 0
    assert json.loads((run_dir / "export/saved_model/1/metadata.json").read_text())["settings"]["num_beams"] == 3


def test_many_corpora_that_are_cleaned_and_kept_on_disk(tmp_path, capsys):
    """The same weights as with the token ids in memory; a second run finds the ids and tokenizes nothing."""
    flags = own_files(tmp_path, train_target=b"ein kleiner hund\neine kleine katze\nein grosser hund\n" * 20)
    paths = [
        str(write(tmp_path / "more_source", b"a dog\n\n1 2 3 4\nthe small dog\n")),
        str(write(tmp_path / "more_target", b"ein hund\nx\n5 6\nder hund\n")),
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


# Resuming.


def test_a_run_goes_on_within_an_epoch_and_after_it(tmp_path, monkeypatch):
    """The rest of an epoch is a `fit` of its own."""
    monkeypatch.setattr(runs, "NUM_CHECKPOINTS", 99)
    flags = ["--checkpoint-steps", "2", "--epochs", "3"]
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
    recipe = f"--tokens-per-batch 60 --epochs {EPOCHS} --steps-per-epoch 7 --subword-sampling 0.3 "
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


def test_a_training_that_is_killed_again_and_again_ends_with_the_same_weights(tmp_path):
    """kill -9 at random moments, then --resume: every weight, optimizer and random state as if nothing had happened.

    After the second kill the newest checkpoint is cut, as by a full disk: the one before it is used. `KILLS=50 pytest`
    kills more often than the three times of every day.
    """
    random, cut = Random(0), None
    straight, killed = tmp_path / "straight", tmp_path / "killed"
    # In a process of its own, too: the graphs of tests are not optimized, and round differently.
    assert run(*train_flags(tmp_path, straight), module="train_keras").returncode == 0
    for number in range(KILLS):
        moment = list(MOMENTS)[number % 3]
        flags = ["--run-dir", killed, "--resume"] if number else train_flags(tmp_path, killed)
        call = [sys.executable, "-m", "train_keras", *map(str, flags)]
        with subprocess.Popen(call, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as process:
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


def test_a_training_that_is_preempted_again_and_again_ends_with_the_same_weights(tmp_path):
    """SIGTERM and SIGUSR1 at random moments, then the same command with `--resume auto`."""
    random, straight, preempted = Random(0), tmp_path / "straight", tmp_path / "preempted"
    # In a process of its own, too: the graphs of tests are not optimized, and round differently.
    assert run(*train_flags(tmp_path, straight), module="train_keras").returncode == 0
    call = [sys.executable, "-m", "train_keras", *map(str, train_flags(tmp_path, preempted)), "--resume", "auto"]
    statuses = []
    for number in range(KILLS):
        asked_by = random.choice((signal.SIGTERM, signal.SIGUSR1))
        with subprocess.Popen(call, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
            epochs = random.randrange(1, 6) if number else 0  # The first time, before there is a checkpoint.
            for line in process.stdout:
                epochs -= line.startswith(("Epoch ", "batches: "))
                if epochs < 0:
                    break
            time.sleep(random.uniform(0, 0.5))
            process.send_signal(asked_by)
            process.communicate()
        statuses.append(process.returncode)
        newest = Run(preempted).checkpoints()
        print(f"{asked_by.name}: exit {process.returncode}, {newest[0].stem if newest else 'no checkpoint'}")
    # Before the first step, a signal does what it always does.
    assert set(statuses) <= {PREEMPTED, 143, -signal.SIGUSR1} and statuses.count(PREEMPTED) > KILLS // 2
    done = subprocess.run(call, capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stderr[-2000:]
    assert final_weights(preempted) == final_weights(straight)
    assert (preempted / "log.csv").read_text() == (straight / "log.csv").read_text()
