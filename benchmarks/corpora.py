"""Large corpora: what preparing, planning, reading and training cost, in seconds and in memory.

    python benchmarks/corpora.py make FOLDER --data-dir MULTI30K --pairs 10000000
    python benchmarks/corpora.py prepare FOLDER
    python benchmarks/corpora.py read FOLDER
    python benchmarks/corpora.py train FOLDER
    python benchmarks/corpora.py peers FOLDER          # pip install grain array_record

`make` writes new sentence pairs: one or two random pairs of Multi30k's training text, in which up to three words and
their translations are replaced by other words that translate each other. `prepare` does what the training script does
before the first batch: checksum, tokenizer, token ids, words for placeholders. `read` plans a pass and makes batches.
`train` measures the same steps with the ids on disk and in memory. `peers` reads batches of random pairs from an
ArrayRecord file, alone and through Grain, and from our folder.

Memory is that of the process (RssAnon) and the part of files that the system keeps for it (RssFile), which it gives
back when others need it.
"""

import argparse
import itertools
import os
import random
import time
from pathlib import Path

import numpy as np
import regex

WORD = regex.compile(r"\p{L}+")
FLAGS = {"pairs": 10_000_000, "batches": 2_000, "steps": 150}


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("what", choices=("make", "prepare", "read", "train", "peers"))
    parser.add_argument("folder", type=Path)
    parser.add_argument("--data-dir", help="folder of Multi30k")
    for name, value in FLAGS.items():
        parser.add_argument(f"--{name}", type=int, default=value)
    arguments = parser.parse_args()
    {"make": make, "prepare": prepare, "read": read, "train": train, "peers": peers}[arguments.what](arguments)


class Timer:
    """Prints what a block took, and the memory behind it."""

    def __init__(self, what):
        self.what = what

    def __enter__(self):
        self.began = time.monotonic()
        return self

    def __exit__(self, *error):
        self.seconds = time.monotonic() - self.began
        print(f"{self.what}: {self.seconds:.1f} s, {memory()}", flush=True)


def memory(process="self"):
    lines = Path(f"/proc/{process}/status").read_text().splitlines()
    values = {line.split(":")[0]: int(line.split()[1]) / 2**20 for line in lines if line.startswith(("Rss", "VmHWM"))}
    return f"{values['RssAnon']:.2f} GiB own, {values['RssFile']:.2f} GiB of files, at most {values['VmHWM']:.2f}"


def make(arguments):
    from keras_transformer.data.corpora import multi30k
    from keras_transformer.data.masking import word_pairs

    pairs, rng = list(multi30k(arguments.data_dir).train[0]), random.Random(0)
    words = sorted(word_pairs(pairs))
    others = dict(words)
    cut = []
    for pair in pairs:
        sides = [regex.split(rf"({WORD.pattern})", text) for text in pair]
        places = [{word: i for i, word in enumerate(side)} for side in sides]
        slots = [(i, places[1][others[word]]) for word, i in places[0].items() if others.get(word) in places[1]]
        cut.append((*sides, slots))
    arguments.folder.mkdir(parents=True, exist_ok=True)
    with (
        Timer(f"{arguments.pairs:,} pairs"),
        open(arguments.folder / "train.en", "w") as source,
        open(arguments.folder / "train.de", "w") as target,
    ):
        for _ in range(arguments.pairs):
            texts = [[], []]
            for one, other, slots in rng.choices(cut, k=rng.randrange(1, 3)):
                sides = [[*one], [*other]]
                for i, j in rng.sample(slots, min(len(slots), 3)):
                    sides[0][i], sides[1][j] = rng.choice(words)
                for text, side in zip(texts, sides, strict=True):
                    text.append("".join(side))
            source.write(" ".join(texts[0]) + "\n")
            target.write(" ".join(texts[1]) + "\n")
    for name in ("train.en", "train.de"):
        print(f"{name}: {(arguments.folder / name).stat().st_size / 2**30:.2f} GiB")


def text_of(arguments):
    from keras_transformer.data.corpora import parallel_files

    return parallel_files(arguments.folder / "train.en", arguments.folder / "train.de")


def tokenizer_of(arguments):
    from keras_transformer.text.tokenizer import Tokenizer

    return Tokenizer.load(arguments.folder / "tokenizer")


def store_of(arguments):
    from keras_transformer.data.encoding import COMPLETE
    from keras_transformer.data.storage import EncodedPairs

    return EncodedPairs.open(next((arguments.folder / "cache").glob(f"*/{COMPLETE}")).parent)


def prepare(arguments):
    from keras_transformer.data.encoding import encoded_in
    from keras_transformer.data.masking import word_pairs
    from keras_transformer.text.tokenizer import Tokenizer
    from keras_transformer.training.prepare import some_pairs

    text, folder = text_of(arguments), arguments.folder
    if not (folder / "tokenizer.spm").exists():
        with Timer("pairs for the tokenizer"):
            sides = zip(*some_pairs(text, 0), strict=True)
        with Timer("tokenizer"):
            Tokenizer.train(itertools.chain(*sides), None, num_placeholders=8).save(folder / "tokenizer")
    tokenizers = [tokenizer_of(arguments)] * 2
    with Timer("checksum"):
        text.checksum()
    with Timer("token ids"):
        pairs = encoded_in(folder / "cache", text, tokenizers, 128, workers=os.cpu_count())
    with Timer("words for placeholders"):
        word_pairs(text)
    tokens = [len(side.values) for side in pairs[:2]]
    size = sum(path.stat().st_size for path in (folder / "cache").rglob("*") if path.is_file())
    print(f"{len(pairs.source):,} pairs, {sum(tokens):,} tokens, {size / 2**30:.2f} GiB, {pairs.about_left_out()}")


def batches_of(arguments, pairs, sampling=0.0, share=0.0, workers=1):
    from keras_transformer.data.batches import Variation, make_batches
    from keras_transformer.data.masking import word_pairs

    vary = Variation([tokenizer_of(arguments)] * 2, 128, sampling, None, share)
    if share:
        vary.words = word_pairs(text_of(arguments), most=20_000)
    return make_batches(pairs, 4096, shuffle=True, vary=vary, workers=workers)


def read(arguments):
    import tensorflow as tf

    print(f"before: {memory()}")
    pairs = store_of(arguments)
    for name, settings in {
        "as they are": {},
        "placeholders in a tenth": {"share": 0.1},
        "segmentations drawn": {"sampling": 0.5},
        "segmentations drawn, 2 processes": {"sampling": 0.5, "workers": 2},
    }.items():
        with Timer(f"{name}: plan"):
            batches = batches_of(arguments, pairs, **settings)
        iterator = iter(batches.dataset)
        with Timer("  first batch"):
            next(iterator)
        count, tokens = arguments.batches // (1 if not settings else 10), 0
        with Timer(f"  {count:,} batches") as timer:
            for _ in range(count):
                tokens += int(tf.size(next(iterator)[1]))
        print(f"  {count / timer.seconds:.0f} batches a second, {tokens / count:,.0f} padded target tokens each")


def train(arguments):
    import keras

    from keras_transformer.data.storage import EncodedPairs, Ragged
    from keras_transformer.models.transformer import Transformer
    from keras_transformer.training.losses import LabelSmoothedCrossEntropy
    from keras_transformer.training.presets import PRESETS
    from keras_transformer.training.schedules import make_optimizer

    disk = store_of(arguments)
    few = 1_000_000  # So many pairs fit into memory anywhere.
    few = [Ragged(side.values[: side.ends[few - 1]], side.ends[:few]) for side in disk[:2]]
    memory_pairs = EncodedPairs(*(Ragged(np.array(side.values), np.array(side.ends)) for side in few))
    model = Transformer(tokenizer_of(arguments).vocabulary_size, **PRESETS["tiny"])
    model.compile(make_optimizer(1e-3), LabelSmoothedCrossEntropy())
    iterators = {
        "in memory": iter(batches_of(arguments, memory_pairs).dataset),
        "on disk": iter(batches_of(arguments, EncodedPairs(*few)).dataset),
    }
    seconds = {name: [] for name in iterators}
    for step in range(arguments.steps + 10):
        for name, iterator in iterators.items():  # One after the other, so that both see the same machine.
            began = time.monotonic()
            model.train_on_batch(*next(iterator))
            if step >= 10:
                seconds[name].append(time.monotonic() - began)
    for name, times in seconds.items():
        print(f"{name}: median {np.median(times) * 1000:.1f} ms a step, mean {np.mean(times) * 1000:.1f} ms")
    ratio = np.sum(seconds["on disk"]) / np.sum(seconds["in memory"])
    print(f"on disk / in memory: {ratio:.3f} over {arguments.steps} steps of the same batches; {memory()}")
    keras.backend.clear_session()
    with Timer("whole corpus: batches"):
        whole = batches_of(arguments, disk)
    model.fit(whole.dataset, steps_per_epoch=arguments.steps, shuffle=False, verbose=2)
    print(f"after {arguments.steps} steps of {len(disk.source):,} pairs: {memory()}")


def peers(arguments):
    import grain
    from array_record.python.array_record_module import ArrayRecordWriter

    few, rng = 1_000_000, np.random.default_rng(0)
    pairs, path = store_of(arguments), arguments.folder / "pairs.array_record"
    with Timer(f"ArrayRecord: {few:,} pairs written"):
        writer = ArrayRecordWriter(str(path), "group_size:1")
        for source, target in itertools.islice(zip(*pairs[:2], strict=True), few):
            writer.write(np.uint16(len(source)).tobytes() + source.tobytes() + target.tobytes())
        writer.close()
    ours = sum(side.values.itemsize * side.ends[few - 1] + 8 * few for side in pairs[:2])
    print(f"ArrayRecord {path.stat().st_size / 2**20:.0f} MiB, arrays {ours / 2**20:.0f} MiB")

    def decoded(record):
        values = np.frombuffer(record, "uint16")
        return values[1 : 1 + values[0]], values[1 + values[0] :]

    source = grain.sources.ArrayRecordDataSource([str(path)])
    plan = [rng.integers(0, few, 150).tolist() for _ in range(arguments.batches)]
    with Timer(f"arrays: {len(plan):,} batches of 150 random pairs"):
        for rows in plan:
            _ = [(pairs.source[row], pairs.target[row]) for row in rows]
    with Timer("ArrayRecord"):
        for rows in plan:
            _ = [decoded(record) for record in source.__getitems__(rows)]
    dataset = grain.MapDataset.source(plan).map(lambda rows: [decoded(r) for r in source.__getitems__(rows)])
    with Timer("ArrayRecord and Grain, 16 threads"):
        for _ in dataset.to_iter_dataset():
            pass
    path.unlink()


if __name__ == "__main__":
    main()
