"""The benchmarks that this machine cannot be measured with still run, small."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"


def test_the_gpu_benchmark_runs_small_on_a_cpu(tmp_path):
    sizes = {"preset": "tiny", "rows": 4, "length": 6, "vocabulary-size": 50, "steps": 2, "rounds": 2}
    sizes = [f"--{name}={value}" for name, value in sizes.items()]
    flags = [*sizes, "--peers", "ours, bfloat16;ours, float32", "--json", str(tmp_path / "rows.json")]
    call = [sys.executable, str(BENCHMARKS / "gpu.py"), *flags]
    done = subprocess.run(call, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr[-3000:]
    rows = json.loads((tmp_path / "rows.json").read_text())
    assert [row["peer"] for row in rows] == ["ours, bfloat16", "ours, float32"]
    assert all(row["tokens_per_second"] > 0 and row["peak_tflops"] > row["tflops"] > 0 for row in rows)
    assert "ours, bfloat16" in done.stdout


@pytest.mark.parametrize("change", ["none", "averages", "linear", "muon", "rms", "gated", "rdrop"])
def test_every_change_of_the_recipe_trains_and_is_scored(change, tmp_path):
    small = "--num-layers 1 --hidden-dim 32 --intermediate-dim 64 --num-heads 2 --num-beams 1 --max-target-length 5"
    call = [
        sys.executable,
        BENCHMARKS / "recipe.py",
        change,
        "--steps",
        "4",
        *small.split(),
        "--run-dir",
        tmp_path / "run",
    ]
    done = subprocess.run(call, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr[-3000:]
    assert "minutes of processor time; validation perplexity " in done.stdout and "phrasebook validation" in done.stdout
