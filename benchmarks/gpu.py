"""Training speed on a GPU: Keras on the JAX backend compared with PyTorch's compiled Transformer, in one run.

    python benchmarks/gpu.py                        # base, batches of 256 x 64 tokens, on this machine's GPU
    python benchmarks/gpu.py --preset tiny --rows 8 --length 8 --vocabulary-size 100 --steps 2 --rounds 1     # small

Needs `pip install torch`, JAX and Keras, not TensorFlow. Each peer has its own process, and they take turns. `peak` is
the speed of the fastest matrix product of the same dtype, in the same process; `used` is the share of it that the peer
reaches.
"""

import argparse
import json
import os
import statistics
import sys
import time
from pathlib import Path

from decode import Worker
from train_step import fixed, flop_of_step, torch_steps

PEERS = ("ours, bfloat16", "ours, float32", "torch compiled, bfloat16", "torch compiled, float32")


def main(argv=None):
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--preset", default="base", help="tiny, small, base or big (default: base)")
    parser.add_argument("--peers", default=";".join(PEERS), metavar="NAMES", help=f"of: {';'.join(PEERS)}")
    parser.add_argument("--rows", type=int, default=256, metavar="N", help="sentences of a batch (default: 256)")
    parser.add_argument("--length", type=int, default=64, metavar="N", help="tokens of a sentence (default: 64)")
    parser.add_argument("--vocabulary-size", type=int, default=32000, metavar="N", help="(default: 32000)")
    parser.add_argument("--steps", type=int, default=20, metavar="N", help="steps of a round (default: 20)")
    parser.add_argument("--rounds", type=int, default=5, metavar="N", help="timed rounds of all peers (default: 5)")
    parser.add_argument("--json", metavar="FILE", help="also write the figures to this file")
    arguments = parser.parse_args(argv)
    # The peers' processes inherit this. Two of them share the memory of one device.
    os.environ.update(KERAS_BACKEND="jax", XLA_PYTHON_CLIENT_PREALLOCATE="false")
    workers = {peer: Worker(peer) for peer in arguments.peers.split(";")}
    ready = {peer: worker.ask("prepare", prepare, arguments) for peer, worker in workers.items()}
    times = {peer: [] for peer in workers}
    for _ in range(arguments.rounds):
        for peer, worker in workers.items():
            times[peer].append(worker.ask("time")[0])
    for worker in workers.values():
        worker.process.terminate()
    tokens = arguments.rows * arguments.length
    flop = flop_of_step(arguments.preset, arguments.vocabulary_size, *fixed(arguments)[0][::2])
    print(f"{arguments.preset}, {arguments.rows} x {arguments.length}, vocabulary {arguments.vocabulary_size:,}")
    print(f"{'':28}{'ms a step':>10}{'tok/s':>10}{'TFLOP/s':>9}{'peak':>7}{'used':>7}  device")
    rows = []
    for peer, values in times.items():
        seconds = statistics.median(values) / arguments.steps
        _, peak, device = ready[peer]
        row = {
            "peer": peer,
            "ms": 1e3 * seconds,
            "tokens_per_second": tokens / seconds,
            "tflops": flop / seconds / 1e12,
            "peak_tflops": peak / 1e12,
            "device": device,
        }
        rows.append(row)
        print(
            f"  {peer:26}{row['ms']:10.1f}{row['tokens_per_second']:10.0f}{row['tflops']:9.2f}{row['peak_tflops']:7.1f}"
            f"{row['tflops'] / row['peak_tflops']:7.0%}  {device}",
            flush=True,
        )
    if arguments.json:
        Path(arguments.json).write_text(json.dumps(rows, indent=2) + "\n", encoding="utf-8")
    return 0


def prepare(peer, arguments):
    """A function that takes some steps. It returns the device's peak and name where decode.py has tokens and texts."""
    make = torch_peer if peer.startswith("torch") else ours
    call, peak, device = make("bfloat16" in peer, arguments)
    return lambda: (call(), device)[1], arguments.steps, lambda _: peak


def ours(bfloat16, arguments):
    """`model.fit` on the JAX backend."""
    import jax
    import keras
    import numpy as np

    from keras_transformer.models.transformer import Transformer
    from keras_transformer.training.losses import LabelSmoothedCrossEntropy
    from keras_transformer.training.presets import PRESETS
    from keras_transformer.training.schedules import make_optimizer

    keras.utils.set_random_seed(0)
    dtype = "mixed_bfloat16" if bfloat16 else "float32"
    model = Transformer(arguments.vocabulary_size, **PRESETS[arguments.preset], dtype=dtype)
    model.compile(make_optimizer(1e-4), LabelSmoothedCrossEntropy(), jit_compile=True)
    arrays = [np.concatenate([side] * arguments.steps) for side in fixed(arguments)[0]]
    inputs = {"encoder_token_ids": arrays[0], "decoder_token_ids": arrays[1]}
    weights = np.ones(arrays[2].shape, "float32")

    def call():
        model.fit(inputs, arrays[2], sample_weight=weights, batch_size=arguments.rows, shuffle=False, verbose=0)

    device = jax.devices()[0]
    matrix = jax.numpy.ones(matrix_size(device.platform), "bfloat16" if bfloat16 else "float32")
    product = jax.jit(lambda a: a @ a)
    return call, peak(lambda: product(matrix).block_until_ready(), matrix), device.device_kind


def torch_peer(bfloat16, arguments):
    """`torch.nn.Transformer`, compiled, with autocast."""
    import torch

    from keras_transformer.training.presets import PRESETS

    name = "cuda" if torch.cuda.is_available() else "cpu"
    dtype = torch.bfloat16 if bfloat16 else None
    step = torch_steps(PRESETS[arguments.preset], fixed(arguments), arguments.vocabulary_size, True, name, dtype)
    matrix = torch.ones(matrix_size(name), dtype=dtype or torch.float32, device=name)

    def product():
        result = matrix @ matrix
        if name == "cuda":
            torch.cuda.synchronize()
        return result

    def call():
        return [step(0) for _ in range(arguments.steps)]

    return call, peak(product, matrix), torch.cuda.get_device_name() if name == "cuda" else "cpu"


def matrix_size(platform):
    return (1024, 1024) if platform == "cpu" else (8192, 8192)


def peak(product, matrix):
    """FLOP/s of the fastest of some products."""
    seconds = []
    for _ in range(6):
        began = time.perf_counter()
        product()
        seconds.append(time.perf_counter() - began)
    return 2 * matrix.shape[0] ** 3 / min(seconds)


if __name__ == "__main__":
    sys.exit(main())
