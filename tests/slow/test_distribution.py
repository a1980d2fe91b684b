"""The same training on one device, on two and in two processes."""

import itertools
import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np

SCRIPT = Path(__file__).parents[1].joinpath("distributed_training.py")
FAST_TO_COMPILE = "--xla_backend_optimization_level=0"


def train(kinds, folder, cases, **environment):
    """Runs the script, on two workers if it is for several, and returns the arrays and the history of each case."""
    folder.mkdir()
    call = [str(SCRIPT), kinds, json.dumps(cases), str(folder)]
    if kinds == "multi_worker":
        call = ["-m", "keras_transformer", "launch", "--workers", "2", *call]
    environment = {**os.environ, "TF_CPP_MIN_LOG_LEVEL": "2", "XLA_FLAGS": FAST_TO_COMPILE, **environment}
    done = subprocess.run([sys.executable, *call], env=environment, capture_output=True, text=True, timeout=500)
    assert done.returncode == 0, (done.stdout + done.stderr)[-3000:]
    found = {}
    for kind, name in itertools.product(kinds.split(","), cases):
        with np.load(folder / f"{kind}, {name}.npz") as file:
            history = json.loads(str(file["history"]))
            found[kind, name] = [file[key].astype("float64") for key in file.files if key != "history"], history
    return found


def test_jax_with_two_devices_ends_with_the_weights_of_one(tmp_path):
    # With as many threads as cores, two devices can wait for each other on a busy machine until XLA gives up.
    flags = f"{FAST_TO_COMPILE} --xla_force_host_platform_device_count=2"
    environment = {"KERAS_BACKEND": "jax", "XLA_FLAGS": flags, "NPROC": "8", "PJRT_NPROC": "8"}
    found = train("one,auto", tmp_path / "x", {"jax": {"clip_norm": 0.1}}, **environment)
    (arrays, history), (expected, expected_history) = found["auto", "jax"], found["one", "jax"]
    for a, b in zip(arrays, expected, strict=True):
        np.testing.assert_allclose(a, b, atol=1e-5)
    np.testing.assert_allclose(history["val_loss"], expected_history["val_loss"], rtol=1e-5)
