"""The same training on one device, on two and in two processes."""

import functools
import itertools
import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

SCRIPT = Path(__file__).parents[1].joinpath("distributed_training.py")
FAST_TO_COMPILE = "--xla_backend_optimization_level=0"
# Few trainings, each with several features that could disturb each other.
CASES = {
    "clip, EMA, ragged, XLA": {"clip_norm": 0.1, "ema_momentum": 0.9, "rows": 13, "jit_compile": True},
    "accumulate, clip, EMA, ragged, teacher": {
        **{"gradient_accumulation_steps": 3, "clip_norm": 0.1, "ema_momentum": 0.9, "rows": 13},
        "teacher_weight": 0.3,
    },
    # Adam divides by the size of a gradient. With a small epsilon it makes whole steps of the rounding of small ones.
    "float16": {"dtype": "mixed_float16", "gradient_accumulation_steps": 2, "epsilon": 1e-2},
}
QUICK = "accumulate, clip, EMA, ragged, teacher"
# Weights move by 0.01 a step. Rounding in half precision depends on the order of additions.
TOLERANCE = {"float16": 1e-3}


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


def without_accumulation(case):
    return {key: value for key, value in case.items() if key != "gradient_accumulation_steps"}


@pytest.fixture(scope="module")
def one(tmp_path_factory):
    """A function: what a case gives on one device, by Keras' own training step."""

    @functools.cache
    def trained(name):
        folder = tmp_path_factory.mktemp("one") / "x"
        return train("one", folder, {name: without_accumulation(CASES[name])})["one", name]

    return trained


@pytest.mark.parametrize(
    ("kind", "names"),
    [
        ("multi_worker", [QUICK]),
        pytest.param("multi_worker", [name for name in CASES if name != QUICK], marks=pytest.mark.slow),
        pytest.param("mirrored", list(CASES), marks=pytest.mark.slow),
        pytest.param("one", [n for n in CASES if "gradient_accumulation_steps" in CASES[n]], marks=pytest.mark.slow),
    ],
    ids=["multi_worker", "multi_worker, other cases", "mirrored", "one"],
)
def test_every_strategy_ends_with_the_weights_of_one_device(kind, names, one, tmp_path):
    """Also of the optimizer, and with the same losses and metrics."""
    cases = {name: CASES[name] for name in names}
    for (_, name), (arrays, history) in train(kind, tmp_path / "x", cases).items():
        expected, expected_history = one(name)
        tolerance = TOLERANCE.get(name, 1e-5)
        for a, b in zip(arrays, expected, strict=True):
            np.testing.assert_allclose(a, b, atol=tolerance, rtol=0, err_msg=name)
        assert history.keys() == expected_history.keys() == {"loss", "perplexity", "val_loss", "val_perplexity"}
        for key, values in history.items():
            np.testing.assert_allclose(values, expected_history[key], rtol=tolerance, err_msg=f"{name}, {key}")
