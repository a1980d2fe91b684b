"""Parallel text: the embedded phrasebook, Multi30k, and the user's own files."""

from pathlib import Path
from typing import NamedTuple

from keras_transformer.phrasebook import phrasebook
from keras_transformer.text import DataError, read_lines

# Raw text of Multi30k, task 1 (Elliott et al., 2016, "Multi30K: Multilingual English-German Image Descriptions").
MULTI30K_URL = "https://github.com/multi30k/dataset/raw/master/data/task1/raw/"
MULTI30K_SHA256 = {
    "test_2016_flickr.de.gz": "9204244e408ccb38d2a55cfcd344df15005fc42a07a6e55ca6c52b6ababb8cc8",
    "test_2016_flickr.en.gz": "611d361c6334bc7246101d48097c13cf5c4413c5befc793cc629934359d532d9",
    "train.de.gz": "726e39b2fa9eb9ffb6dc763fb35a179f80fae06ffc5d28b6ace5faa883de28a6",
    "train.en.gz": "d79cfa999dd4c51d2cb42499b6796d5a882c3a8a961923c25a898c90f8bbd56f",
    "val.de.gz": "f0cba2f995189cf5770f29a8a9a537a3ad3f51657ad873405082ff6863a5e75a",
    "val.en.gz": "14f7d25ddd868909a9213e361768460edcacdd6ab9d1e77b92560dc10c10dc28",
}


class ParallelText(NamedTuple):
    """Sentence pairs, and how many were dropped.

    Attributes:
        pairs: list of (source, target).
        num_empty: number of pairs that were dropped because a side was empty.
        name: where the pairs come from, for messages.
        line_numbers: the line number of each pair in its files, from 1 on. Defaults to None: the pairs are all lines.
    """

    pairs: list
    num_empty: int
    name: str
    line_numbers: list | None = None

    def line(self, index):
        """The line number of pair `index`."""
        return self.line_numbers[index] if self.line_numbers else index + 1


class Corpus(NamedTuple):
    """The three splits, each a `ParallelText`; for fine-tuning also general text to train and to test with."""

    train: ParallelText
    validation: ParallelText
    test: ParallelText
    general: ParallelText | None = None
    general_test: ParallelText | None = None


def load_corpus(data):
    """Reads the corpus that a `keras_transformer.config.DataConfig` names.

    Raises:
        DataError: see `read_parallel` and `multi30k`.
    """
    general = {}
    for name in ("general", "general_test"):
        paths = getattr(data, f"{name}_source"), getattr(data, f"{name}_target")
        if any(paths) != all(paths):
            flags = " and ".join(f"--{name.replace('_', '-')}-{side}" for side in ("source", "target"))
            raise DataError(f"{flags} must be given together. Received: source={paths[0]}, target={paths[1]}.")
        if all(paths):
            general[name] = read_parallel(*paths)
    return _splits(data)._replace(**general)


def _splits(data):
    splits = ("train", "val", "test")
    own = {split: (getattr(data, f"{split}_source"), getattr(data, f"{split}_target")) for split in splits}
    if any(path for paths in own.values() for path in paths):
        for split, paths in own.items():
            if any(paths) != all(paths) or (split != "test" and not all(paths)):
                raise DataError(
                    "Own files come in pairs, for training and for validation: --train-source, --train-target, "
                    f"--val-source, --val-target. Received for {split}: source={paths[0]}, target={paths[1]}."
                )
        train, validation = read_parallel(*own["train"]), read_parallel(*own["val"])
        return Corpus(train, validation, read_parallel(*own["test"]) if all(own["test"]) else validation)
    if data.dataset == "none":
        raise DataError(
            "This run has no data set of its own, because its model was imported. Received: dataset='none'. Name the "
            "text: --source and --reference to score, --text to draw, --train-source and the like to train."
        )
    if data.dataset == "multi30k":
        return multi30k(data.data_dir, data.source_language, data.target_language, data.test_set, data.variant)
    return Corpus(*(ParallelText(pairs, 0, f"phrasebook {name}") for name, pairs in phrasebook().items()))


def read_parallel(source_path, target_path):
    """Reads two files, plain or gzip, whose lines are translations of each other.

    Pairs with an empty side are dropped and counted.

    Raises:
        DataError: a file cannot be read, is empty or is not UTF-8, or the numbers of lines differ.
    """
    source, target = read_lines(source_path), read_lines(target_path)
    if len(source) != len(target):
        raise DataError(
            "Parallel files must have the same number of lines: line n of one translates line n of the other. "
            f"Received: {source_path} with {len(source):,} lines, {target_path} with {len(target):,}."
        )
    numbered = [(i, pair) for i, pair in enumerate(zip(source, target, strict=True), 1) if all(pair)]
    if not numbered:
        raise DataError(f"{source_path} and {target_path} hold no pair: each line is empty in at least one of them.")
    line_numbers, pairs = map(list, zip(*numbered, strict=True))
    return ParallelText(pairs, len(source) - len(pairs), f"{source_path}, {target_path}", line_numbers)


def multi30k(data_dir=None, source="en", target="de", test_set="test_2016_flickr", variant=""):
    """Multi30k: 29,000 training pairs of image descriptions, 1,014 for validation, 1,000 and more for testing.

    Args:
        data_dir: folder with the files, named like `train.en.gz` or `train.en`. By default they are downloaded from
            the data set's public repository, checked, and cached in `~/.keras/datasets/multi30k`.
        source, target: language codes. Default to `"en"`, `"de"`.
        test_set: name of the test set. Defaults to `"test_2016_flickr"`.
        variant: `""` for raw text, or `"lc.norm.tok"` for the data set's lower-cased, tokenised form.

    Raises:
        DataError: a file is missing, or must be downloaded and has no known checksum.
    """

    def read(split):
        return read_parallel(*(_multi30k_file(data_dir, split, variant, language) for language in (source, target)))

    return Corpus(read("train"), read("val"), read(test_set))


def _multi30k_file(data_dir, split, variant, language):
    stem = ".".join(part for part in (split, variant, language) if part)
    if data_dir is not None:
        folder = Path(data_dir)
        if not folder.is_dir():
            raise DataError(f"`--data-dir` must be a folder with the Multi30k files. Received: {folder}.")
        for path in (folder / f"{stem}.gz", folder / stem):
            if path.is_file():
                return path
        raise DataError(f"{folder} has neither {stem}.gz nor {stem}.")
    name = f"{stem}.gz"
    if name not in MULTI30K_SHA256:
        raise DataError(
            f"{name} cannot be downloaded: only files with a known checksum are. Known: {', '.join(MULTI30K_SHA256)}. "
            "Download it yourself and pass --data-dir."
        )
    import keras

    try:
        return keras.utils.get_file(
            name,
            MULTI30K_URL + name,
            file_hash=MULTI30K_SHA256[name],
            hash_algorithm="sha256",
            cache_subdir="datasets/multi30k",
        )
    except Exception as error:  # get_file raises a bare Exception for every problem of a download.
        raise DataError(
            f"{name} could not be downloaded: {str(error).rstrip('.')}. Download the files yourself and pass "
            "--data-dir, or train on the embedded corpus with --dataset phrasebook."
        ) from error
