"""Training speed: one optimizer step, compared with the alternatives in one run.

    python benchmarks/train_step.py                              # batches of 64 x 32 tokens without padding
    python benchmarks/train_step.py --data-dir path/to/multi30k  # and real sentences in length buckets

All peers get the same batches, sizes, dropout, label smoothing (keras-hub: none), Adam and clipping. Each has its own
process, and they take turns, round after round, so that a slow minute of the machine affects all of them. Every round
has new real batches, as in `fit`: a benchmark that repeats a few shapes hides what the memory of a new shape costs.
Tokens are those of the target, without padding. GFLOP/s counts the matrix products of the padded batch, the backward
pass as twice the forward pass. For comparison, the fastest matrix product of this machine is measured before and after.
"kernel" is the share of the processor time that the operating system takes, most of it for new pages of memory. "ours"
runs with the allocator that `train_keras.py` chooses, "ours, system allocator" without; "keeps memory" gives the same
allocator to keras-hub, and to PyTorch the settings of glibc that come closest to it. Needs `pip install torch`.
"""

import argparse
import itertools
import json
import math
import os
import statistics
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
from decode import Worker

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")

PEERS = (
    "ours", "ours, system allocator", "ours, XLA", "ours, bfloat16",
    "torch", "torch, keeps memory", "torch, compiled", "torch, bfloat16",
    "keras-hub", "keras-hub, keeps memory", "keras-hub, XLA", "keras-hub, bfloat16",
)  # fmt: skip
# Environment variables by which a process keeps memory that it has used.
TENSORFLOW_KEEPS = {"TF_CPU_ALLOCATOR_USE_BFC": "true"}
GLIBC_KEEPS = {"MALLOC_MMAP_THRESHOLD_": str(2**33), "MALLOC_TRIM_THRESHOLD_": str(2**33), "MALLOC_ARENA_MAX": "1"}


def main(argv=None):
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--presets", default="tiny,base", metavar="NAMES", help="(default: tiny,base)")
    parser.add_argument("--peers", default=";".join(PEERS), metavar="NAMES", help=f"of: {';'.join(PEERS)}")
    parser.add_argument("--rows", type=int, default=64, metavar="N", help="sentences of a batch (default: 64)")
    parser.add_argument("--length", type=int, default=32, metavar="N", help="tokens of a sentence (default: 32)")
    parser.add_argument("--vocabulary-size", type=int, default=8000, metavar="N", help="(default: 8000)")
    parser.add_argument("--data-dir", metavar="DIR", help="folder of Multi30k, to measure real batches, too")
    parser.add_argument("--batches", type=int, default=6, metavar="N", help="real batches of a round (default: 6)")
    parser.add_argument(
        "--tokens-per-batch", type=int, default=2048, metavar="N", help="of real batches (default: 2048)"
    )
    parser.add_argument("--rounds", type=int, default=5, metavar="N", help="timed rounds of all peers (default: 5)")
    parser.add_argument("--json", metavar="FILE", help="also write the figures to this file")
    arguments = parser.parse_args(argv)
    with tempfile.TemporaryDirectory() as folder:
        cells = {f"{arguments.rows} x {arguments.length}": fixed(arguments)}
        if arguments.data_dir:
            cells["Multi30k"] = real(arguments)
        rows = []
        for preset in arguments.presets.split(","):
            for title, batches in cells.items():
                path = Path(folder, f"{len(rows)}.npz")
                np.savez(path, *(side for batch in batches for side in batch))
                rows += measure(f"{preset}, {title}", preset, str(path), batches, arguments)
    if arguments.json:
        Path(arguments.json).write_text(json.dumps(rows, indent=2) + "\n", encoding="utf-8")
    return 0


def fixed(arguments):
    """One batch of random ids without padding: source, decoder input, labels."""
    shape = arguments.rows, arguments.length
    rng = np.random.default_rng(0)
    return [tuple(rng.integers(4, arguments.vocabulary_size, shape).astype("int32") for _ in range(3))]


def real(arguments):
    """Batches of Multi30k's training set, as `train_keras.py` makes them."""
    from keras_transformer.data.batches import encode_pairs, make_batches
    from keras_transformer.data.corpora import multi30k
    from keras_transformer.text.tokenizer import Tokenizer

    pairs = multi30k(arguments.data_dir).train[0].pairs
    tokenizer = Tokenizer.train([text for pair in pairs for text in pair], arguments.vocabulary_size)
    encoded = encode_pairs(pairs, tokenizer, tokenizer, max_length=128)
    count = arguments.batches * (
        2 * arguments.rounds + 1
    )  # First a set to compile; per round one to warm up, one timed.
    dataset = make_batches(encoded, arguments.tokens_per_batch, shuffle=True).dataset.take(count)
    return [
        (inputs["encoder_token_ids"], inputs["decoder_token_ids"], labels)
        for inputs, labels, _ in dataset.as_numpy_iterator()
    ]


def measure(title, preset, path, batches, arguments):
    """Times all peers in turn; prints the table and returns its rows."""
    peers = [peer for peer in arguments.peers.split(";") if len(batches) == 1 or not compiles(peer)]
    steps = min(arguments.batches, len(batches))
    workers = {peer: start(peer) for peer in peers}
    for worker in workers.values():
        worker.ask("prepare", prepare, preset, path, steps, arguments.vocabulary_size)
    before = peak_gflops()
    times, memory, kernel = {peer: [] for peer in peers}, {}, {peer: [] for peer in peers}
    for _ in range(arguments.rounds):
        for peer, worker in workers.items():
            seconds, memory[peer], share = worker.ask("time")
            times[peer].append(seconds)
            kernel[peer].append(share)
    for worker in workers.values():
        worker.process.terminate()
    peak = max(before, peak_gflops())
    timed = [batch for begin in range(2 * steps, len(batches), 2 * steps) for batch in batches[begin : begin + steps]]
    timed = timed or batches
    tokens = sum(int(np.count_nonzero(labels)) for *_, labels in timed) * steps / len(timed)
    flop = sum(flop_of_step(preset, arguments.vocabulary_size, source, labels) for source, _, labels in timed)
    flop *= steps / len(timed)
    reference = statistics.median(times.get("torch", [math.nan]))
    print(f"\n{title}, vocabulary {arguments.vocabulary_size:,}; matrix products: {peak:.0f} GFLOP/s")
    print(f"{'':26}{'ms a step':>11}{'min':>8}{'max':>8}{'tok/s':>8}{'GFLOP/s':>9}{'MiB':>7}{'kernel':>8}{'ratio':>7}")
    rows = []
    for peer, values in times.items():
        median = statistics.median(values)
        row = {
            "cell": title,
            "peer": peer,
            "ms": [1e3 * x / steps for x in (median, min(values), max(values))],
            "tokens_per_second": tokens / median,
            "gflops": flop / median / 1e9,
            "peak_gflops": peak,
            "peak_memory_mib": memory[peer],
            "kernel_share": statistics.median(kernel[peer]),
            "ratio": reference / median,
        }
        rows.append(row)
        ms = "".join(f"{x:{width}.0f}" for x, width in zip(row["ms"], (11, 8, 8), strict=True))
        print(
            f"  {peer:24}{ms}{row['tokens_per_second']:8.0f}{row['gflops']:9.0f}"
            f"{row['peak_memory_mib']:7.0f}{row['kernel_share']:8.1%}{row['ratio']:7.2f}",
            flush=True,
        )
    return rows


def start(peer):
    """A worker in the environment of its peer, which its libraries read when they are loaded."""
    ours = peer.startswith("ours") and not peer.endswith("system allocator")
    keeps = TENSORFLOW_KEEPS if ours or peer.startswith("keras-hub") else GLIBC_KEEPS
    environment = keeps if ours or peer.endswith("keeps memory") else {}
    os.environ.update(environment)
    worker = Worker(peer)
    for name in environment:
        del os.environ[name]
    return worker


def compiles(peer):
    """Whether a peer compiles every shape of a batch; real batches have too many shapes for that."""
    return peer.endswith(("XLA", "compiled"))


def peak_gflops():
    """The speed of the fastest of some large products of float32 matrices, by NumPy's BLAS."""
    a, b = np.ones((2, 2048, 2048), "float32")
    seconds = []
    for _ in range(5):
        began = time.perf_counter()
        a @ b
        seconds.append(time.perf_counter() - began)
    return 2 * 2048**3 / min(seconds) / 1e9


def flop_of_step(preset, vocabulary_size, source, labels):
    """Multiplications and additions of the matrix products of one step, padding included."""
    from keras_transformer.training.presets import PRESETS

    sizes = PRESETS[preset]
    dim, layers, (rows, s), t = sizes["hidden_dim"], sizes["num_layers"], source.shape, labels.shape[1]
    feed_forward = 2 * dim * sizes["intermediate_dim"]
    encoder = s * (4 * dim**2 + feed_forward) + 2 * s * s * dim
    decoder = t * (6 * dim**2 + feed_forward) + 2 * s * dim**2 + 2 * (t * t + t * s) * dim
    return 3 * 2 * rows * (layers * (encoder + decoder) + t * dim * vocabulary_size)


def prepare(peer, preset, path, steps, vocabulary_size):
    """A function that takes a step with each of the next batches."""
    from keras_transformer.training.presets import PRESETS

    with np.load(path) as file:
        arrays = [file[name] for name in file.files]
    batches = list(zip(arrays[::3], arrays[1::3], arrays[2::3], strict=True))
    sizes = PRESETS[preset]
    if peer.startswith("torch"):
        import torch

        dtype = torch.bfloat16 if "bfloat16" in peer else None
        call = torch_steps(sizes, batches, vocabulary_size, compiled="compiled" in peer, dtype=dtype)
    else:
        call = keras_steps(peer, sizes, batches, vocabulary_size)
    order = itertools.cycle(range(len(batches)))
    return lambda: [call(next(order)) for _ in range(steps)], steps, lambda found: 0


def keras_steps(peer, sizes, batches, vocabulary_size):
    """The training function of `model.fit`, for our model or a model of keras-hub's layers."""
    import keras
    import tensorflow as tf

    from keras_transformer.models.transformer import Transformer
    from keras_transformer.training.losses import LabelSmoothedCrossEntropy
    from keras_transformer.training.schedules import make_optimizer

    keras.utils.set_random_seed(0)
    keras.config.set_dtype_policy("mixed_bfloat16" if "bfloat16" in peer else "float32")
    if peer.startswith("ours"):
        model = Transformer(vocabulary_size, **sizes)
        loss = LabelSmoothedCrossEntropy()
    else:
        model, loss = keras_hub_model(sizes, vocabulary_size), keras.losses.SparseCategoricalCrossentropy(True)
    model.compile(make_optimizer(1e-4), loss, jit_compile=peer.endswith("XLA"))
    data = [
        ({"encoder_token_ids": source, "decoder_token_ids": decoder}, labels, (labels != 0).astype("float32"))
        for source, decoder, labels in batches
    ]
    data = [tf.data.Dataset.from_tensors(one).repeat() for one in data]
    iterators = [iter(one) for one in data]
    model.make_train_function()

    return lambda index: float(model.train_function(iterators[index])["loss"])


def keras_hub_model(sizes, vocabulary_size):
    import keras
    import keras_nlp

    hidden_dim = sizes["hidden_dim"]
    settings = {key: sizes[key] for key in ("intermediate_dim", "num_heads", "dropout")}
    embedding = keras_nlp.layers.TokenAndPositionEmbedding(vocabulary_size, 512, hidden_dim, mask_zero=True)
    source = keras.Input((None,), dtype="int32", name="encoder_token_ids")
    target = keras.Input((None,), dtype="int32", name="decoder_token_ids")
    dropout = keras.layers.Dropout(sizes["dropout"])
    x = dropout(embedding(source))
    for _ in range(sizes["num_layers"]):
        x = keras_nlp.layers.TransformerEncoder(**settings)(x)
    y = dropout(embedding(target))
    for _ in range(sizes["num_layers"]):
        y = keras_nlp.layers.TransformerDecoder(**settings)(y, x)
    logits = embedding.token_embedding(y, reverse=True)
    return keras.Model({"encoder_token_ids": source, "decoder_token_ids": target}, logits)


def torch_steps(sizes, batches, vocabulary_size, compiled, device="cpu", dtype=None):
    """`torch.nn.Transformer` with tied embeddings and sinusoidal positions, in PyTorch's own training loop."""
    import torch

    from keras_transformer.layers.embeddings import positional_encoding

    torch.manual_seed(0)
    dim, dropout = sizes["hidden_dim"], sizes["dropout"]

    class Model(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.embedding = torch.nn.Embedding(vocabulary_size, dim)
            torch.nn.init.normal_(self.embedding.weight, std=dim**-0.5)
            layers = sizes["num_layers"]
            self.transformer = torch.nn.Transformer(
                dim, sizes["num_heads"], layers, layers, sizes["intermediate_dim"], dropout, batch_first=True
            )
            self.dropout = torch.nn.Dropout(dropout)
            self.register_buffer("positions", torch.from_numpy(positional_encoding(512, dim)))

        def embed(self, ids):
            return self.dropout(self.embedding(ids) * dim**0.5 + self.positions[: ids.shape[1]])

        def forward(self, source, target):
            length = target.shape[1]
            later = torch.triu(torch.ones(length, length, dtype=torch.bool, device=target.device), 1)
            padding = {"src_key_padding_mask": source == 0, "tgt_key_padding_mask": target == 0}
            masks = {"tgt_mask": later, "tgt_is_causal": True, "memory_key_padding_mask": source == 0, **padding}
            hidden = self.transformer(self.embed(source), self.embed(target), **masks)
            return hidden @ self.embedding.weight.T

    model = Model().to(device)
    forward = torch.compile(model) if compiled else model
    optimizer = torch.optim.Adam(model.parameters(), 1e-4, (0.9, 0.98), 1e-9)
    cross_entropy = torch.nn.CrossEntropyLoss(ignore_index=0, label_smoothing=0.1)
    data = [tuple(torch.from_numpy(side).long().to(device) for side in batch) for batch in batches]

    def step(source, target, labels):
        optimizer.zero_grad()
        with torch.autocast(device, dtype, enabled=dtype is not None):
            logits = forward(source, target)
        loss = cross_entropy(logits.float().view(-1, vocabulary_size), labels.view(-1))
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        return loss

    return lambda index: step(*data[index]).item()


if __name__ == "__main__":
    sys.exit(main())
