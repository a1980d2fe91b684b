"""The same training on one device, on two and in two processes; what happens when one of them dies."""

import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from keras_transformer.config import TrainingConfig
from keras_transformer.distribution import STRATEGIES, distribute, make_strategy

SCRIPT = Path(__file__).with_name("distributed_training.py")
# Everything that could get in each other's way, in few trainings.
CASES = {
    "plain": {},
    "clip, EMA, ragged, XLA": {"clip_norm": 0.1, "ema_momentum": 0.9, "rows": 13, "jit_compile": True},
    "accumulate, clip, ragged": {"accumulate": 3, "clip_norm": 0.1, "rows": 13},
    "float16": {"dtype": "mixed_float16", "accumulate": 2},
    "bfloat16": {"dtype": "mixed_bfloat16", "jit_compile": True, "rows": 13},
}
# Weights move by 0.01 a step; what half precision rounds away differs with the order of additions.
TOLERANCE = {"float16": 1e-3, "bfloat16": 3e-2}


def train(kind, folder, cases, **environment):
    """Runs the script, on two workers if it is for several, and returns the arrays and the history of each case."""
    folder.mkdir()
    call = [str(SCRIPT), kind, json.dumps(cases), str(folder)]
    if kind == "multi_worker":
        call = ["-m", "keras_transformer", "launch", "--workers", "2", *call]
    environment = {**os.environ, "TF_CPP_MIN_LOG_LEVEL": "2", **environment}
    done = subprocess.run([sys.executable, *call], env=environment, capture_output=True, text=True, timeout=500)
    assert done.returncode == 0, (done.stdout + done.stderr)[-3000:]
    found = {}
    for name in cases:
        with np.load(folder / f"{name}.npz") as file:
            history = json.loads(str(file["history"]))
            found[name] = [file[key].astype("float64") for key in file.files if key != "history"], history
    return found


def without_accumulation(case):
    return {key: value for key, value in case.items() if key != "accumulate"}


@pytest.fixture(scope="module")
def one(tmp_path_factory):
    """On one device, by Keras' own training step."""
    cases = {name: without_accumulation(case) for name, case in CASES.items()}
    return train("one", tmp_path_factory.mktemp("one") / "x", cases)


@pytest.mark.parametrize("kind", ["one", "mirrored", "multi_worker"])
def test_every_strategy_ends_with_the_weights_of_one_device(kind, one, tmp_path):
    """Also of the optimizer, and with the same losses and metrics."""
    cases = {name: case for name, case in CASES.items() if kind != "one" or "accumulate" in case}
    for name, (arrays, history) in train(kind, tmp_path / "x", cases).items():
        expected, expected_history = one[name]
        tolerance = TOLERANCE.get(name, 1e-5)
        for a, b in zip(arrays, expected, strict=True):
            np.testing.assert_allclose(a, b, atol=tolerance, rtol=0, err_msg=name)
        assert history.keys() == expected_history.keys() == {"loss", "perplexity", "val_loss", "val_perplexity"}
        for key, values in history.items():
            np.testing.assert_allclose(values, expected_history[key], rtol=tolerance, err_msg=f"{name}, {key}")


def test_jax_with_two_devices_ends_with_the_weights_of_one(tmp_path):
    cases = {"jax": {"clip_norm": 0.1}}
    found = []
    for devices in (1, 2):
        environment = {"KERAS_BACKEND": "jax", "XLA_FLAGS": f"--xla_force_host_platform_device_count={devices}"}
        found.append(train("auto", tmp_path / str(devices), cases, **environment)["jax"])
    (arrays, history), (expected, expected_history) = found
    for a, b in zip(arrays, expected, strict=True):
        np.testing.assert_allclose(a, b, atol=1e-5)
    np.testing.assert_allclose(history["val_loss"], expected_history["val_loss"], rtol=1e-5)


# Two workers of the training script.

FLAGS = """--num-layers 1 --num-heads 1 --hidden-dim 8 --intermediate-dim 8 --num-beams 1 --dropout 0
 --tokens-per-batch 60 --steps-per-epoch 2 --strategy multi_worker""".split()  # noqa: SIM905


@pytest.fixture
def files(tmp_path):
    """Flags that name a small corpus, whose sentences have different lengths."""
    flags = []
    for name in ("train_source", "train_target", "val_source", "val_target"):
        path = tmp_path / name
        path.write_text("a small dog\na cat\na big dog and a small cat\n" * (20 if "train" in name else 1))
        flags += [f"--{name.replace('_', '-')}", path]
    return flags


def launch(*flags):
    call = [sys.executable, "-m", "keras_transformer", "launch", "train_keras.py", *map(str, flags)]
    return subprocess.Popen(call, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)


def final_weights(run_dir, epochs):
    with np.load(run_dir / "checkpoints" / f"epoch-{epochs:05d}.npz") as file:
        return [file[name] for name in file.files if name != "state"]


def test_a_killed_worker_ends_the_others_and_all_go_on_later(tmp_path, files):
    """kill -9 of the second worker: the first says so and stops; resumed by both, it is as if nothing had happened."""
    killed, straight = tmp_path / "killed", tmp_path / "straight"
    with launch(*files, *FLAGS, "--epochs", 4000, "--run-dir", killed) as process:
        deadline = time.monotonic() + 300
        while not list(killed.glob("checkpoints/epoch-*.npz")) and time.monotonic() < deadline:
            time.sleep(0.1)
        children = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
        os.kill(int(children[1]), signal.SIGKILL)
        output = process.stdout.read()
    assert process.returncode == 1
    assert "another worker is gone or out of reach" in output
    assert f"--run-dir {killed} --resume" in output
    done = max(int(re.findall(r"\d+", path.stem)[-1]) for path in killed.glob("checkpoints/epoch-*.npz"))
    epochs = done + 2
    with launch("--strategy", "multi_worker", "--run-dir", killed, "--resume", "--epochs", epochs) as process:
        output = process.stdout.read()
    assert process.returncode == 0, output[-3000:]
    assert "[0] resuming: " in output
    assert "[1] model:" in output
    with launch(*files, *FLAGS, "--epochs", epochs, "--run-dir", straight) as process:
        output = process.stdout.read()
    assert process.returncode == 0, output[-3000:]
    for a, b in zip(final_weights(killed, epochs), final_weights(straight, epochs), strict=True):
        np.testing.assert_allclose(a, b, atol=1e-6)


def test_the_training_script_runs_on_two_devices_and_resumes(tmp_path, files):
    """Checkpoints, averaged weights, scores and the export of a model whose variables have two copies."""
    code = (
        "import sys, tensorflow as tf, train_keras\n"
        "cpu = tf.config.list_physical_devices('CPU')[0]\n"
        "tf.config.set_logical_device_configuration(cpu, [tf.config.LogicalDeviceConfiguration()] * 2)\n"
        "sys.exit(train_keras.main(sys.argv[1:]))"
    )
    common = ["--strategy", "mirrored", "--ema-momentum", "0.9"]
    straight, resumed = tmp_path / "straight", tmp_path / "resumed"
    for flags in (
        [*files, *FLAGS, *common, "--epochs", "3", "--run-dir", straight],
        [*files, *FLAGS, *common, "--epochs", "2", "--run-dir", resumed],
        ["--epochs", "3", "--run-dir", resumed, "--resume"],
    ):
        call = [sys.executable, "-c", code, *map(str, flags)]
        done = subprocess.run(call, capture_output=True, text=True, timeout=300)
        assert done.returncode == 0, done.stderr[-3000:]
        assert "split among 2 replicas" in done.stdout
    for a, b in zip(final_weights(straight, 3), final_weights(resumed, 3), strict=True):
        np.testing.assert_array_equal(a, b)


# What a caller may ask for.


def test_the_flag_has_the_strategies_of_the_library():
    assert TrainingConfig.__dataclass_fields__["strategy"].metadata["choices"] == STRATEGIES


def test_one_device_is_the_default(monkeypatch):
    monkeypatch.delenv("TF_CONFIG", raising=False)
    with distribute() as strategy:
        assert strategy.num_replicas_in_sync == 1


@pytest.mark.parametrize(
    ("kind", "message"),
    [
        ("two", r"`strategy` must be one of \('auto', 'one', 'mirrored', 'multi_worker'\). Received: 'two'"),
        ("mirrored", "needs at least two devices of one machine"),
        ("multi_worker", "neither TF_CONFIG nor Slurm's variables"),
    ],
)
def test_strategies_that_cannot_be(kind, message, monkeypatch):
    monkeypatch.delenv("TF_CONFIG", raising=False)
    with pytest.raises(ValueError, match=message):
        make_strategy(kind)


def test_a_cluster_without_workers_is_an_error(monkeypatch):
    monkeypatch.setenv("TF_CONFIG", '{"task": {"type": "worker", "index": 0}}')
    with pytest.raises(ValueError, match="TF_CONFIG must name the workers"):
        make_strategy("multi_worker")


def test_no_batch_is_split_into_less_than_one_part():
    from keras_transformer.model import Transformer

    model = Transformer(9, num_layers=1, num_heads=1, hidden_dim=4, intermediate_dim=4)
    with pytest.raises(ValueError, match="`accumulate` must be at least 1"):
        model.compile("sgd", "mse", accumulate=0)
