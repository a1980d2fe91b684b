"""The benchmarks that this machine cannot be measured with still run, small."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

BENCHMARKS = Path(__file__).parent.parent / "benchmarks"


@pytest.mark.slow
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


def test_flop_of_a_step_are_six_for_every_weight_and_token():
    """Without attention's products, which grow with the square of the length: 2 forward, 4 backward."""
    import numpy as np

    sys.path.insert(0, str(BENCHMARKS))
    try:
        from train_step import flop_of_step
    finally:
        sys.path.remove(str(BENCHMARKS))
    from keras_transformer.config import PRESETS
    from keras_transformer.model import Transformer

    model = Transformer(8000, **PRESETS["tiny"])
    matrices = sum(int(np.prod(w.shape)) for w in model.trainable_weights if len(w.shape) == 2)
    one = np.zeros((1, 1))
    assert abs(flop_of_step("tiny", 8000, one, one) / (6 * matrices) - 1) < 0.01
