"""Parallel text: the embedded phrasebook, LibreOffice's help, Multi30k, and the user's own files."""

import functools
import hashlib
import itertools
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

from keras_transformer.data.libreoffice import libreoffice, paragraphs
from keras_transformer.data.phrasebook import phrasebook
from keras_transformer.text.lines import DataError, read_bytes, stream_lines

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


class ParallelText:
    """Two texts whose lines are translations of each other.

    Args:
        lines: (source, target) of every line, a list or another iterable that can be iterated again. It may be larger
            than the memory.
        name: where the lines come from, for messages.
        weight: how often its pairs come in a pass. Defaults to 1.
        direction: of a model of several directions, such as `"en-de"`. Defaults to None.
        method: the method of a `Translator` that translates its sources: `"translate"`, `"translate_text"` or
            `"translate_html"`. Defaults to `"translate"`.
        segments: for whole texts, a function that takes a source, a target or a translation, and returns a dict of the
            strings that are scored. Those of one key belong together. Defaults to None: each target is scored.

    Attributes:
        lines, name, weight, direction, method, segments: see above.
        target_language: that of the direction; None if there is no direction.
        num_bytes: size of its files; 0 if there are none.
    """

    def __init__(
        self,
        lines: Any,
        name: str,
        weight: float = 1.0,
        direction: str | None = None,
        method: str = "translate",
        segments: Callable[[str], dict[Any, str]] | None = None,
    ):
        self.lines, self.name, self.weight, self.direction = lines, name, weight, direction
        self.method, self.segments = method, segments

    def __str__(self):
        return f"{self.name} {self.direction}" if self.direction else self.name

    def __iter__(self):
        """The pairs: the lines that have text on both sides."""
        return (pair for pair in self.lines if all(pair))

    @functools.cached_property
    def pairs(self) -> list[tuple[str, str]]:
        """All pairs, a list; for texts that fit into memory."""
        return list(self)

    @property
    def unit(self) -> str:
        """What is scored, for messages."""
        return "paragraphs" if self.segments else "sentences"

    @property
    def target_language(self) -> str | None:
        return self.direction and self.direction.split("-")[1]

    @property
    def num_bytes(self) -> int:
        return getattr(self.lines, "num_bytes", 0)

    def checksum(self) -> str:
        """SHA-256 of the text; file names do not matter."""
        if isinstance(self.lines, FileLines):
            return self.lines.checksum()
        sides = ("".join(f"{pair[side]}\n" for pair in self.lines) for side in (0, 1))
        return _joined(hashlib.sha256(side.encode()) for side in sides)


def _joined(hashes):
    return hashlib.sha256(b"".join(one.digest() for one in hashes)).hexdigest()


class FileLines:
    """(source, target) of every line of two files, plain or gzip; they are read again in every iteration.

    Args:
        source_path, target_path: the files.

    Raises (in an iteration):
        DataError: a file cannot be read, is empty or is not UTF-8, or is a pipe that was read before; or the numbers of
            lines differ.
    """

    def __init__(self, source_path, target_path):
        self.paths, self._was_read = (source_path, target_path), False

    @property
    def num_bytes(self):
        return sum(Path(path).stat().st_size for path in self.paths)

    def _check(self):
        """Raises an error before a pipe is read again: a named one would wait for ever."""
        if self._was_read and (pipes := [path for path in self.paths if Path(path).is_fifo()]):
            raise DataError(f"{pipes[0]} is a pipe, which can be read only once. Write it to a file.")
        self._was_read = True

    def __iter__(self):
        self._check()
        sides = [stream_lines(path) for path in self.paths]
        for number, pair in enumerate(itertools.zip_longest(*sides)):
            if None in pair:
                longer, counts = 1 - pair.index(None), [number, number]
                counts[longer] += 1 + sum(1 for _ in sides[longer])
                raise DataError(
                    "Parallel files must have the same number of lines: line n of one translates line n of the other. "
                    f"Received: {self.paths[0]} with {counts[0]:,} lines, {self.paths[1]} with {counts[1]:,}."
                )
            yield pair

    def checksum(self):
        self._check()
        hashes = [hashlib.sha256(), hashlib.sha256()]
        for one, path in zip(hashes, self.paths, strict=True):
            for data in read_bytes(path):
                one.update(data)
        return _joined(hashes)


class Corpus(NamedTuple):
    """Lists of `ParallelText`s to train, to validate and to test with, and for fine-tuning also two general ones.

    A text to train with may be larger than the memory.
    """

    train: list
    validation: list
    test: list
    general: ParallelText | None = None
    general_test: ParallelText | None = None


def load_corpus(data: Any) -> Corpus:
    """Reads the corpus that a `keras_transformer.training.sections.DataConfig` names.

    Raises:
        DataError: see `read_parallel`, `multi30k` and `libreoffice`.
    """
    general = {}
    for name in ("general", "general_test"):
        if len(texts := getattr(data, name)) > 1:
            raise DataError(f"--{name.replace('_', '-')} names one text. Received: {len(texts)}. Join the files.")
        for text in texts:
            files = text["source"], text["target"]
            general[name] = (parallel_files if name == "general" else read_parallel)(*files)
    corpus = _splits(data)._replace(**general)
    if general and corpus.train[0].direction:
        raise DataError(
            "General text has no direction, so a model of several directions cannot use it. Received: "
            f"{general.popitem()[1].name}. Name it with --train SOURCE TARGET direction=SOURCE-TARGET weight=W."
        )
    return corpus


# What the data sets are, and the licences of their texts; None where it is not clear.
_ORIGINS = {
    "phrasebook": ("the phrasebook of keras_transformer, sentences that a grammar generates: a self-test", "mit"),
    "libreoffice": ("the help and the messages of LibreOffice, as Debian packages them", "mpl-2.0"),
    "multi30k": ("Multi30k, captions of photographs", None),
}


def origins(data: Any) -> list[dict]:
    """What the training text of a `DataConfig` is, dicts with "name" and "license"; None if that is not known."""
    found = [_ORIGINS[data.dataset]] if data.dataset in _ORIGINS and not data.train else []
    # Names alone: where the files lie is nobody's business.
    found += [(text["name"] or Path(text["source"]).name, None) for text in (*data.train, *data.general)]
    return [{"name": name, "license": license} for name, license in found]


def one_test_set(data, target_language):
    """The corpus' first test text in a target language; its first one if none is in it."""
    tests = load_corpus(data).test
    return next((text for text in tests if text.target_language == target_language), tests[0])


def _splits(data):
    if data.train or data.val or data.test:
        return _own_texts(data)
    if data.dataset == "none":
        raise DataError(
            "This run has no data set of its own, because its model was imported. Received: dataset='none'. Name the "
            "text: --source and --reference to score, --text to draw, --train and --val to train."
        )
    if data.dataset == "phrasebook":
        asked = data.directions or [f"{data.source_language}-{data.target_language}"]
        if not {"en-de", "de-en"}.issuperset(asked):
            raise DataError(
                f"The phrasebook has the directions en-de and de-en. Received: {' '.join(asked)}. For other "
                "languages use --dataset libreoffice or multi30k, or your own texts."
            )
        if data.data_dir:
            raise DataError(f"The phrasebook needs no files. Received: --data-dir {data.data_dir}. Leave it out.")
    if data.variant and data.dataset != "multi30k":
        raise DataError(f"--variant is for --dataset multi30k. Received: variant={data.variant!r}. Leave it out.")
    if data.test_set != type(data).test_set and data.dataset != "multi30k":
        raise DataError(f"--test-set is for --dataset multi30k. Received: test_set={data.test_set!r}. Leave it out.")
    load = {"multi30k": _multi30k, "libreoffice": _libreoffice, "phrasebook": _phrasebook}[data.dataset]
    if not data.directions:
        return load(data, data.source_language, data.target_language)
    corpora = []
    for direction in data.directions:
        corpus = load(data, *direction.split("-"))
        for text in itertools.chain.from_iterable(corpus[:3]):
            text.direction = direction
        corpora.append(corpus[:3])
    return Corpus(*(list(itertools.chain.from_iterable(texts)) for texts in zip(*corpora, strict=True)))


def _own_texts(data):
    """The `Corpus` of the user's own files."""
    texts = {split: [corpus_text(text) for text in getattr(data, split)] for split in ("train", "val", "test")}
    if missing := [f"--{split} SOURCE TARGET" for split in ("train", "val") if not texts[split]]:
        raise DataError(
            "Own text is needed for training and for validation: --train SOURCE TARGET and --val SOURCE TARGET. "
            f"Missing: {' and '.join(missing)}."
        )
    everything = list(itertools.chain.from_iterable(texts.values()))
    for split in ("val", "test"):
        names = list(map(str, texts[split]))
        if twice := next((name for name in names if names.count(name) > 1), None):
            raise DataError(
                f"Each --{split} text needs a name of its own, because its scores are kept by name. "
                f"Received twice: {twice}. Add name=NAME."
            )
    without = [text.name for text in everything if not text.direction]
    if data.directions and not without:
        raise DataError(
            "Each own text has its direction, so --directions says nothing more. Received: "
            f"--directions {' '.join(data.directions)}. Leave it out."
        )
    if without and (data.directions or len(without) < len(everything)):
        raise DataError(
            "In a model of several directions, every text needs its direction: --train, --val and --test with SOURCE "
            f"TARGET direction=SOURCE-TARGET. Received none for: {', '.join(without)}."
        )
    tags = data.target_languages()
    unknown = [text for text in everything if text.direction and text.target_language not in tags]
    if unknown:
        raise DataError(
            f"The model learns only the target languages of its training texts, {', '.join(tags)}. Received: "
            f"{unknown[0].name} with direction={unknown[0].direction}."
        )
    validation, test = ([_read(text) for text in texts[split]] for split in ("val", "test"))
    return Corpus(texts["train"], validation, test or validation)


def corpus_text(corpus):
    """The `ParallelText` of an entry of the settings `train`, `val` and `test`."""
    text = parallel_files(corpus["source"], corpus["target"])
    return ParallelText(text.lines, corpus["name"] or text.name, corpus.get("weight", 1.0), corpus["direction"])


def _multi30k(data, source, target):
    corpus = multi30k(data.data_dir, source, target, data.test_set, data.variant)
    if data.directions:  # Its files are not named for directions.
        for split, (text,) in zip(("train", "val", data.test_set), corpus[:3], strict=True):
            text.name = f"multi30k {split}"
    return corpus


def _libreoffice(data, source, target):
    read = libreoffice(data.data_dir, source, target)

    def text(name, **kwargs):
        return ParallelText(getattr(read, name), f"libreoffice {name.replace('_', ' ')}", **kwargs)

    pages = text("pages", method="translate_text", segments=lambda page: dict(enumerate(page.split("\n\n"))))
    html = text("html", method="translate_html", segments=paragraphs)
    tests = [text("sentences"), text("test_messages"), pages, html]
    return Corpus([text("help"), text("messages")], [text("validation")], tests)


def _phrasebook(data, source, target):
    order = -1 if (source, target) == ("de", "en") else 1
    splits = phrasebook().items()
    return Corpus(*([ParallelText([pair[::order] for pair in pairs], f"phrasebook {name}")] for name, pairs in splits))


def parallel_files(source_path: str | Path, target_path: str | Path) -> ParallelText:
    """A `ParallelText` of two files, plain or gzip, whose lines are translations of each other. Nothing is read yet."""
    return ParallelText(FileLines(source_path, target_path), f"{source_path}, {target_path}")


def read_parallel(source_path: str | Path, target_path: str | Path) -> "ParallelText":
    """`parallel_files`, read at once.

    Raises:
        DataError: a file cannot be read, is empty or is not UTF-8, or the numbers of lines differ.
    """
    return _read(parallel_files(source_path, target_path))


def _read(text):
    """A text of files in memory."""
    text = ParallelText(list(text.lines), text.name, text.weight, text.direction)
    if not text.pairs:
        raise DataError(f"{text.name} hold no pair: each line is empty in at least one of them.")
    return text


def multi30k(
    data_dir: str | Path | None = None,
    source: str = "en",
    target: str = "de",
    test_set: str = "test_2016_flickr",
    variant: str = "",
) -> Corpus:
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
        return [read_parallel(*files(split))]

    def files(split):
        return [_multi30k_file(data_dir, split, variant, language) for language in (source, target)]

    return Corpus([parallel_files(*files("train"))], read("val"), read(test_set))


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
