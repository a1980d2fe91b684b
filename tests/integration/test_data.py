"""Batches: every pair once, a budget of tokens, weight for real tokens only, the same batches for the same seed."""

import subprocess
import sys
import time
from pathlib import Path


def test_processes_in_the_background_end_with_the_one_that_started_them(tmp_path):
    """Even if it is killed."""
    script = tmp_path / "script.py"
    script.write_text(
        "import os, time\n"
        "from keras_transformer.data.encoding import in_background\n"
        "def work(number):\n"
        "    return os.getpid()\n"
        "if __name__ == '__main__':\n"
        "    with in_background(work, 2) as made:\n"
        "        print(*set(made(range(50))), flush=True)\n"
        "        time.sleep(600)\n"
    )
    with subprocess.Popen([sys.executable, str(script)], stdout=subprocess.PIPE, text=True) as process:
        workers = [Path(f"/proc/{number}") for number in process.stdout.readline().split()]
        assert workers and all(path.exists() for path in workers)
        process.kill()
    deadline = time.monotonic() + 30
    while any(path.exists() for path in workers) and time.monotonic() < deadline:
        time.sleep(0.1)
    assert not any(path.exists() for path in workers)


def test_processes_in_the_background_can_be_left_while_they_hand_over_results(tmp_path):
    """Python's `multiprocessing.Pool` hangs here: it terminates a process that holds a lock."""
    script = tmp_path / "script.py"
    script.write_text(
        "from itertools import repeat\n"
        "from keras_transformer.data.encoding import in_background\n"
        "def work(data):\n"
        "    return data\n"
        "if __name__ == '__main__':\n"
        "    for _ in range(8):\n"
        "        with in_background(work, 2) as made:\n"
        "            next(made(repeat(bytes(3 << 20))))\n"
        "    print('done')\n"
    )
    done = subprocess.run([sys.executable, str(script)], stdout=subprocess.PIPE, text=True, timeout=60)
    assert done.stdout == "done\n"
