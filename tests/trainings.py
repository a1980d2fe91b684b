"""Small texts that tests train on, and the flags of small trainings."""

import functools

from texts import write

from keras_transformer.data.phrasebook import phrasebook

SMALL = ["--num-layers", "1", "--num-heads", "1", "--hidden-dim", "8", "--intermediate-dim", "8", "--num-beams", "1"]
SIZES_OF_STUDENT = "--num-layers 2 --num-decoder-layers 1 --num-heads 2 --hidden-dim 64 --intermediate-dim 96"
STUDENT = [*SIZES_OF_STUDENT.split(), "--epochs", "2"]


made_phrasebook = functools.cache(phrasebook)  # It takes a second to make.


def phrases(split="train"):
    """The pairs of a split of the phrasebook, not to be changed."""
    return made_phrasebook()[split]


def own_files(folder, **changes):
    """Flags for training on small own files; `changes` replaces the content of some."""
    flags = []
    for split in ("train", "val"):
        names = [f"{split}_source", f"{split}_target"]
        contents = [changes.get(name, b"a small dog\na small cat\na big dog\n" * 20) for name in names]
        flags += [f"--{split}", *(str(write(folder / name, x)) for name, x in zip(names, contents, strict=True))]
    return flags


def side_by_side(folder, split, pairs, names=("source", "target")):
    """Writes pairs into two files of a folder, `split.name`; their paths."""
    texts = ["".join(text + "\n" for text in side) for side in zip(*pairs, strict=True)]
    return [str(write(folder / f"{split}.{name}", text)) for name, text in zip(names, texts, strict=True)]


def files(folder, **splits):
    """Flags for texts written to `folder`: a list of pairs by the name of the split."""
    flags = []
    for split, pairs in splits.items():
        flags += [f"--{split.replace('_', '-')}", *side_by_side(folder, split, pairs)]
    return flags


def fine_tune(golden, folder, *flags, **splits):
    """The run folder of a training that begins with the weights of the golden run, and its status."""
    import train_keras

    folder.mkdir(exist_ok=True)
    splits = {"train": phrases()[100:140], "val": phrases()[140:150], **splits}
    common = f"--init-from {golden.run_dir} --epochs 2 --tokens-per-batch 100 --no-export --num-beams 1"
    argv = [*files(folder, **splits), *common.split(), *flags, "--run-dir", str(folder / "run")]
    return folder / "run", train_keras.main(argv)
