"""The benchmarks that this machine cannot be measured with still run, small."""

import json
import subprocess
import sys
from pathlib import Path

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
