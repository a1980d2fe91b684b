"""Run a training script as several workers on this machine."""

import argparse
import contextlib
import json
import math
import os
import socket
import subprocess
import sys
import threading
import time

from keras_transformer.commands.common import positive

# A worker notices after a time-out of TensorFlow that another one is gone. If they never connected, it waits forever.
GRACE_SECONDS = 60


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--workers", type=positive, default=2, metavar="N", help="processes (default: 2)")
    parser.add_argument("script", help="such as train_keras.py")
    parser.add_argument("arguments", nargs=argparse.REMAINDER, help="its flags, such as --strategy multi_worker")


def run(arguments: argparse.Namespace) -> int:
    """Starts the workers with their `TF_CONFIG`; when one fails, the others have `GRACE_SECONDS` to end."""
    with contextlib.ExitStack() as stack:
        sockets = [stack.enter_context(socket.socket()) for _ in range(arguments.workers)]
        for listener in sockets:
            listener.bind(("127.0.0.1", 0))
        addresses = [f"127.0.0.1:{listener.getsockname()[1]}" for listener in sockets]
    processes = []
    for index in range(arguments.workers):
        config = {"cluster": {"worker": addresses}, "task": {"type": "worker", "index": index}}
        environment = {**os.environ, "TF_CONFIG": json.dumps(config), "PYTHONUNBUFFERED": "1"}
        call, output = [sys.executable, arguments.script, *arguments.arguments], subprocess.PIPE
        processes.append(subprocess.Popen(call, env=environment, stdout=output, stderr=subprocess.STDOUT, text=True))

    def show(index):
        with processes[index].stdout as lines:
            for line in lines:
                print(f"[{index}] {line}", end="", flush=True)
        if processes[index].wait():
            print(f"[{index}] ended with {processes[index].returncode}", flush=True)

    threads = [threading.Thread(target=show, args=(index,), daemon=True) for index in range(arguments.workers)]
    for thread in threads:
        thread.start()
    deadline = math.inf
    while any(thread.is_alive() for thread in threads) and time.monotonic() < deadline:
        try:
            time.sleep(0.1)
            stop = any(process.poll() for process in processes)
        except KeyboardInterrupt:  # Ctrl-C also reaches the workers, and they save their state.
            stop = True
        if stop and deadline == math.inf:
            deadline = time.monotonic() + GRACE_SECONDS
    for process in processes:
        process.kill()  # TensorFlow's workers ignore SIGTERM.
    for thread in threads:
        thread.join()
    return int(any(process.returncode for process in processes))
