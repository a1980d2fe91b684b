"""The training script on two devices and as two workers: what it writes, and what happens when a worker dies.

Apart from tests/test_distribution.py, so that the two, which wait much, run at the same time.
"""

import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from arrays import checkpoint_arrays

FLAGS = """--num-layers 1 --num-heads 1 --hidden-dim 8 --intermediate-dim 8 --num-beams 1 --dropout 0
 --tokens-per-batch 60 --steps-per-epoch 2 --strategy multi_worker""".split()  # noqa: SIM905


@pytest.fixture
def files(tmp_path):
    """Flags that name a small corpus, whose sentences have different lengths."""
    flags = []
    for split in ("train", "val"):
        flags.append(f"--{split}")
        for side in ("source", "target"):
            path = tmp_path / f"{split}_{side}"
            path.write_text("a small dog\na cat\na big dog and a small cat\n" * (20 if split == "train" else 1))
            flags.append(path)
    return flags


def launch(*flags):
    call = [sys.executable, "-m", "keras_transformer", "launch", "train_keras.py", *map(str, flags)]
    return subprocess.Popen(call, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)


def test_a_killed_worker_ends_the_others_and_all_go_on_later(tmp_path, files):
    """kill -9 of the second worker: the first says so and stops; resumed by both, it is as if nothing had happened."""
    killed, straight = tmp_path / "killed", tmp_path / "straight"
    epochs = 100  # It must not end before it is killed. All have as many, because the learning rate depends on them.
    with launch(*files, *FLAGS, "--epochs", epochs, "--run-dir", killed) as process:
        deadline = time.monotonic() + 300
        while not list(killed.glob("checkpoints/epoch-*.npz")) and time.monotonic() < deadline:
            time.sleep(0.1)
        children = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
        os.kill(int(children[1]), signal.SIGKILL)
        output = process.stdout.read()
    assert process.returncode == 1
    assert "another worker is gone or out of reach" in output
    assert f"--run-dir {killed} --resume" in output
    assert "retracing" not in output
    resume = "--strategy", "multi_worker", "--run-dir", killed, "--resume", "--no-export"
    with launch(*resume) as process:
        output = process.stdout.read()
    assert process.returncode == 0, output[-3000:]
    assert "[0] resuming: " in output
    assert "[1] model:" in output
    with launch(*files, *FLAGS, "--epochs", epochs, "--run-dir", straight, "--no-export") as process:
        output = process.stdout.read()
    assert process.returncode == 0, output[-3000:]
    found, expected = (checkpoint_arrays(run_dir, epochs) for run_dir in (killed, straight))
    for a, b in zip(found.values(), expected.values(), strict=True):
        np.testing.assert_allclose(a, b, atol=1e-6)


def test_the_training_script_runs_on_two_devices_and_resumes(tmp_path, files):
    """Checkpoints, scores and the export of a model whose variables have two copies."""
    code = (
        "import sys, tensorflow as tf, train_keras\n"
        "cpu = tf.config.list_physical_devices('CPU')[0]\n"
        "tf.config.set_logical_device_configuration(cpu, [tf.config.LogicalDeviceConfiguration()] * 2)\n"
        "sys.exit(train_keras.main(sys.argv[1:]))"
    )
    straight, resumed = tmp_path / "straight", tmp_path / "resumed"

    def run(*flags):
        call = [sys.executable, "-c", code, *map(str, flags)]
        done = subprocess.run(call, capture_output=True, text=True, timeout=300)
        assert done.returncode == 0, done.stderr[-3000:]
        assert "split among 2 replicas" in done.stdout
        return done.stdout

    run(*files, *FLAGS, "--strategy", "mirrored", "--epochs", "3", "--run-dir", straight)
    shutil.copytree(straight, resumed)
    (resumed / "checkpoints" / "epoch-00003.npz").unlink()  # As if it had been killed in its last epoch.
    assert "resuming: 2 of 3 epochs" in run("--run-dir", resumed, "--resume", "--no-export")
    found, expected = (checkpoint_arrays(run_dir, 3) for run_dir in (resumed, straight))
    for a, b in zip(found.values(), expected.values(), strict=True):
        np.testing.assert_array_equal(a, b)
