"""From sentence pairs to token ids: in memory or, for large corpora, in a folder on disk.

The ids of one side are concatenated in one array, with two bytes each if the vocabulary has at most 65,536
ids. The arrays of a folder are mapped into memory: the system reads what a batch needs, and keeps what it has room for.
So a corpus may be larger than the memory, and the same order of batches is possible as in memory.

A folder is named by its content: texts, tokenizers and settings. It is written block by block, in the order of the
lines. If the process is killed, the next one resumes after the last recorded block.
"""

import contextlib
import hashlib
import json
import multiprocessing
import os
import re
import shutil
import signal
import threading
import time
from collections import deque
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from itertools import chain, islice
from pathlib import Path
from typing import NamedTuple

import numpy as np

from keras_transformer.files import BusyError, FileError, locked, write_json
from keras_transformer.text.placeholders import protect_pair

# Lines that a process tokenizes at once, and the seconds between two records of how far the work is.
from keras_transformer.text.sentencepiece_tokenizer import SentencePieceTokenizer
from keras_transformer.text.special_ids import END_TOKEN_ID

# Lines that a process tokenizes at once, and the seconds between two records of how far the work is.
LINES_PER_BLOCK, SECONDS_PER_RECORD = 10_000, 5
# The file that a complete folder has, and the one that an incomplete folder has.
COMPLETE, INCOMPLETE = "pairs.json", "progress.json"
COLUMNS = ("source", "target", "source_ends", "target_ends")
# Why pairs are left out, or cut.
EMPTY, OVER_LONG = "with an empty side", "over-long"


class Ragged(Sequence):
    """Rows of ids in one array; `ragged[i]` is row i, an integer array.

    Args:
        values: the rows, concatenated, an array (N,).
        ends: where each row ends in `values`, an int64 array (B,).

    Example:
        >>> ragged = Ragged.of([[5, 6, 3], [7, 3]])
        >>> ragged[1].tolist(), ragged.lengths.tolist()
        ([7, 3], [3, 2])
    """

    def __init__(self, values, ends):
        self.values, self.ends = values, ends

    @classmethod
    def of(cls, rows, dtype="int32"):
        """A `Ragged` from lists of ids."""
        values = np.fromiter(chain.from_iterable(rows), dtype)
        return cls(values, np.cumsum([len(row) for row in rows], dtype="int64"))

    def __len__(self):
        return len(self.ends)

    def __getitem__(self, row):
        row = range(len(self.ends))[row]
        return self.values[self.ends[row - 1] if row else 0 : self.ends[row]]

    @property
    def lengths(self):
        """The number of ids of each row, int32."""
        lengths = np.empty(len(self.ends), "int32")
        lengths[:1] = self.ends[:1]
        np.subtract(self.ends[1:], self.ends[:-1], out=lengths[1:], casting="unsafe")
        return lengths


def lengths_of(rows):
    """The lengths of a `Ragged` or of a list of rows, int32."""
    return rows.lengths if isinstance(rows, Ragged) else np.array([len(row) for row in rows], "int32")


class LeftOut(NamedTuple):
    """Pairs that were dropped or cut for the same reason.

    Attributes:
        count: their number.
        samples: three from the whole text, as lists: the number of the line, source, target.
    """

    count: int = 0
    samples: Sequence = ()

    def and_more(self, count, samples):
        """This and `count` more pairs, of which some are given as `samples`."""
        # Multiples of a number mix the lines, so the same three are chosen however the text is divided into blocks.
        samples = sorted([*self.samples, *samples], key=lambda sample: sample[0] * 2654435761 % 2**32)[:3]
        return LeftOut(self.count + count, sorted(samples))


def left_out_by(reasons, before=None):
    """`LeftOut` by reason, added to those `before`; `reasons` are (reason or None, (line number, pair))."""
    found = dict(before or {})
    for reason, (number, pair) in reasons:
        if reason:
            sample = [number, *(text[:200] for text in pair)]
            found[reason] = found.get(reason, LeftOut()).and_more(1, [sample])
    return found


class EncodedPairs(NamedTuple):
    """Token ids of sentence pairs.

    Attributes:
        source: `Ragged` or list of integer arrays, each with the end token at the end.
        target: the same for the targets.
        left_out: `LeftOut` by reason: `"with an empty side"`, dropped; `"over-long"`, dropped or cut.
    """

    source: Sequence
    target: Sequence
    left_out: dict = {}

    def about_left_out(self, over_long="drop"):
        """What was dropped or cut, as a list of phrases."""
        cut = {OVER_LONG} if over_long == "cut" else ()
        return [
            f"{count:,} {reason} {'cut' if reason in cut else 'dropped'} "
            f"(line {', '.join(f'{number:,}' for number, *_ in samples)}{', ...' if count > len(samples) else ''})"
            for reason, (count, samples) in self.left_out.items()
        ]

    @classmethod
    def open(cls, folder):
        """The pairs of a complete folder, mapped into memory."""
        folder = Path(folder)
        content = json.loads((folder / COMPLETE).read_text(encoding="utf-8"))
        columns = {name: _mapped(folder / name, content["types"][name]) for name in COLUMNS}
        sides = [_Mapped(folder, side, columns[side], columns[f"{side}_ends"]) for side in ("source", "target")]
        return cls(*sides, {reason: LeftOut(*value) for reason, value in content["left_out"].items()})


class _Mapped(Ragged):
    """A `Ragged` of a folder. Another process that gets it maps the same files."""

    def __init__(self, folder, side, values, ends):
        super().__init__(values, ends)
        self.folder, self.side = folder, side

    def __reduce__(self):
        return _side, (self.folder, self.side)


def _side(folder, side):
    return getattr(EncodedPairs.open(folder), side)


def _mapped(path, dtype):
    """The array in a file, as a plain array: pieces of a `memmap` are slow to make. A map cannot be empty."""
    return np.memmap(path, dtype, "r").view(np.ndarray) if path.stat().st_size else np.empty(0, dtype)


def encode_pairs(
    pairs,
    source_tokenizer,
    target_tokenizer,
    max_length,
    over_long="drop",
    folder=None,
    workers=1,
    progress=None,
    cleaner=None,
    target_language=None,
    tagged_targets=False,
):
    """Tokenizes pairs and adds the end token.

    If the vocabularies have placeholders, what must not change becomes placeholders: see `placeholders.protect_pair`.
    Pairs with an empty side are dropped.

    Args:
        pairs: an iterable of (source, target).
        source_tokenizer, target_tokenizer: a `keras_transformer.Tokenizer` each, may be the same.
        max_length: maximum number of tokens of a sequence, including the end token.
        over_long: `"drop"` leaves out pairs with a longer side. `"cut"` shortens that side to `max_length`; its last
            token is then not the end token, so that the model does not learn to stop there.
        folder: where to write the ids; it must not exist. Defaults to None: they stay in memory.
        workers: number of processes. More than one need SentencePiece tokenizers, and a script that begins its work
            under `if __name__ == "__main__":`. Defaults to 1, this process.
        progress: a function that is called with the number of pairs that have been read. Defaults to None.
        cleaner: a `keras_transformer.data.cleaning.Cleaner`, which says what else is dropped. Defaults to None.
        target_language: one of `source_tokenizer.languages`, whose tag every source begins with. Defaults to None: no
            tag.
        tagged_targets: whether targets begin with this tag, too; see `source_language_token_id` of `Transformer`.
            Defaults to False.

    Returns:
        `EncodedPairs`.

    Raises:
        ValueError: no pair is left, or `over_long` has another value.
    """
    if over_long not in ("drop", "cut"):
        raise ValueError(f"`over_long` must be 'drop' or 'cut'. Received: {over_long!r}.")
    tokenizers = source_tokenizer, target_tokenizer
    if not all(isinstance(tokenizer, SentencePieceTokenizer) for tokenizer in tokenizers):
        workers = 1
    tag = source_tokenizer.tag(target_language)
    encode = _Encoder(tokenizers, max_length, over_long, cleaner, (tag, tag if tagged_targets else []))
    with _store(folder, encode.dtype) as store, in_background(encode, workers) as encoded:
        lines = islice(enumerate(pairs, 1), store.num_lines, None)
        for block in encoded(iter(lambda: list(islice(lines, LINES_PER_BLOCK)), [])):
            store.add(block)
            if progress:
                progress(store.num_lines)
        if not store.num_lines:
            raise ValueError("There must be sentence pairs to encode. Received: none.")
        if not store.num_rows:
            raise ValueError(
                f"{none_left(store.left_out)}; max_length={max_length}. Over-long ones need a larger max_length, or "
                "over_long='cut'."
            )
        return store.finished()


def encoded_in(cache, text, tokenizers, max_length, over_long="drop", cleaner=None, tagged_targets=False, **settings):
    """`encode_pairs` into a folder of a cache; or what the cache already has of the same text and tokenizers.

    Args:
        cache: the folder of the cache.
        text: a `keras_transformer.data.corpora.ParallelText`.
        tokenizers: that of the source and that of the target.
        max_length, over_long, cleaner, tagged_targets, settings: see `encode_pairs`. The target language is that of the
            text.
    """
    rules, language = cleaner.settings() if cleaner else None, text.target_language
    about = [2, text.checksum(), max_length, over_long, rules, language, *["tagged targets"] * tagged_targets]
    key = hashlib.sha256(json.dumps(about).encode())
    for tokenizer in tokenizers:
        key.update(hashlib.sha256(tokenizer._serialized()).digest())
    folder = Path(cache) / key.hexdigest()[:24]
    if cleaner and not (folder / COMPLETE).is_file():
        cleaner.find_duplicates(text.lines)
    waiting = False
    while not (folder / COMPLETE).is_file():
        try:
            settings |= {"cleaner": cleaner, "target_language": language, "tagged_targets": tagged_targets}
            encode_pairs(text.lines, *tokenizers, max_length, over_long, folder, **settings)
        except BusyError:  # Other workers of a training need the same. After a kill, this process continues.
            if not waiting:
                print(f"{text.name}: waiting for another process that tokenizes it into {folder}", flush=True)
            waiting = True
            time.sleep(1)
    return EncodedPairs.open(folder)


class Progress:
    """Prints every few seconds how many lines of a text are tokenized."""

    def __init__(self, name, seconds=10):
        self.name, self.seconds, self.began = name, seconds, time.monotonic()
        self.printed = self.began

    def __call__(self, num_lines):
        now = time.monotonic()
        if now - self.printed >= self.seconds:
            print(f"{self.name}: {num_lines:,} lines tokenized, {now - self.began:.0f} s", flush=True)
            self.printed = now


def report(left_out):
    """Lines of text about `LeftOut` by reason, with their samples, which must not move a terminal's cursor."""
    lines = []
    for reason, (count, samples) in left_out.items():
        lines.append(f"  {count:,} {reason}, such as")
        lines += [f"    line {number:,}: {source}  |  {target}" for number, source, target in samples]
    return [re.sub("[\x00-\x1f\x7f-\x9f]", " ", line) for line in lines]


def none_left(left_out):
    """For messages, if all pairs of a text were left out."""
    reasons = ", ".join(f"{one.count:,} {reason}" for reason, one in left_out.items())
    return f"No pair is left: all were dropped. Received: pairs {reasons}"


class _Block(NamedTuple):
    """The pairs of a block of lines: two arrays of ids, and two of where each row ends in them."""

    num_lines: int
    values: list
    ends: list
    left_out: dict


class _Encoder:
    """Makes a `_Block` of a list of (line number, (source, target))."""

    def __init__(self, tokenizers, max_length, over_long, cleaner, tags):
        self.tokenizers, self.max_length, self.over_long, self.cleaner = tokenizers, max_length, over_long, cleaner
        self.tags = tags
        self.dtype = "uint16" if max(t.vocabulary_size for t in tokenizers) <= 1 << 16 else "int32"

    def __call__(self, lines):
        reason = self.cleaner.reason if self.cleaner else lambda number, *pair: None if all(pair) else EMPTY
        reasons = [reason(number, *pair) for number, pair in lines]
        rows = [row for row, reason in enumerate(reasons) if reason is None]
        pairs = [lines[row][1] for row in rows]
        if count := num_placeholders(self.tokenizers):
            pairs = [protect_pair(*pair, count) for pair in pairs]
        sides = [
            [tag + ids for ids in tokenizer.tokenize([pair[side] for pair in pairs])]
            for side, (tokenizer, tag) in enumerate(zip(self.tokenizers, self.tags, strict=True))
        ]
        kept = [[], []]
        for row, *ids in zip(rows, *sides, strict=True):
            if max(map(len, ids)) >= self.max_length:
                reasons[row] = OVER_LONG
                if self.over_long == "drop":
                    continue
            for side, row in zip(kept, ids, strict=True):
                side.append([*row, END_TOKEN_ID][: self.max_length])
        rows, left_out = [Ragged.of(side, self.dtype) for side in kept], left_out_by(zip(reasons, lines, strict=True))
        return _Block(len(lines), [side.values for side in rows], [side.ends for side in rows], left_out)


def num_placeholders(tokenizers):
    """Number of placeholders that all of the tokenizers have."""
    return min(tokenizer.num_placeholders for tokenizer in tokenizers)


@contextlib.contextmanager
def in_background(function, workers):
    """Context: an ordered, lazy `map(function, elements)` over `workers` processes, or over one thread if it is 1.

    Only a few elements are taken ahead, so that memory stays small and `elements` may be endless.
    """
    if workers < 2:
        with ThreadPoolExecutor(1) as thread:
            yield lambda elements: ahead(lambda element: thread.submit(function, element).result, elements, 1)
        return
    # A process that is forked could inherit locks of TensorFlow's threads, so new ones are started. Unlike
    # `multiprocessing.Pool`, this ends by letting the processes finish what they do: one that is terminated while it
    # writes a result keeps a lock for ever, and the pool would wait for it.
    pool = ProcessPoolExecutor(workers, multiprocessing.get_context("spawn"), _begin, (function,))
    try:
        yield lambda elements: ahead(lambda element: pool.submit(_call, element).result, elements, 4 * workers)
    finally:
        pool.shutdown(cancel_futures=True)


def ahead(submit, elements, count):
    """The results for some elements, in order, of which `count` are being computed ahead.

    Args:
        submit: a function of an element that begins the work and returns a function that waits for the result.
        elements: an iterable, may be endless.
        count: an integer.
    """
    waiting = deque()
    for element in elements:
        waiting.append(submit(element))
        if len(waiting) > count:
            yield waiting.popleft()()
    while waiting:
        yield waiting.popleft()()


def _begin(function):
    global _function
    _function = function
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # After Ctrl-C, the main process ends this one.
    threading.Thread(target=_end_with_parent, daemon=True).start()


def _end_with_parent():
    """Ends this process when the one that started it is gone, even after a kill."""
    multiprocessing.parent_process().join()
    os._exit(1)


def _call(element):
    return _function(element)


class _Memory:
    """Collects blocks in memory."""

    def __init__(self, dtype):
        self.dtype, self.num_lines, self.num_rows, self.left_out = dtype, 0, 0, {}
        self.values, self.ends, self.sizes = ([], []), ([], []), [0, 0]

    def add(self, block):
        self.num_lines += block.num_lines
        self.num_rows += len(block.ends[0])
        for reason, new in block.left_out.items():
            self.left_out[reason] = self.left_out.get(reason, LeftOut()).and_more(*new)
        for i in (0, 1):
            self._append(i, block.values[i], block.ends[i] + self.sizes[i])
            self.sizes[i] += len(block.values[i])

    def _append(self, side, values, ends):
        self.values[side].append(values)
        self.ends[side].append(ends)

    def finished(self):
        sides = [Ragged(*map(np.concatenate, parts)) for parts in zip(self.values, self.ends, strict=True)]
        return EncodedPairs(*sides, self.left_out)


class _Folder(_Memory):
    """Writes blocks to a folder that another process may continue."""

    def __init__(self, dtype, folder, temporary):
        super().__init__(dtype)
        self.folder, self.temporary = folder, temporary
        self.types = {name: "int64" if name.endswith("ends") else dtype for name in COLUMNS}
        with contextlib.suppress(OSError, ValueError):
            content = json.loads((temporary / INCOMPLETE).read_text(encoding="utf-8"))
            self.num_lines, self.num_rows, self.sizes = content["num_lines"], content["num_rows"], content["sizes"]
            self.left_out = {reason: LeftOut(*value) for reason, value in content["left_out"].items()}
        self.files = {name: open(temporary / name, "ab") for name in COLUMNS}  # noqa: SIM115 (closed by `_store`)
        for name, file in self.files.items():  # What was written after the last record is written again.
            size = self.num_rows if name.endswith("ends") else self.sizes[COLUMNS.index(name)]
            file.truncate(size * np.dtype(self.types[name]).itemsize)
        self.recorded = time.monotonic()

    def _append(self, side, values, ends):
        self.files[COLUMNS[side]].write(values)
        self.files[COLUMNS[side + 2]].write(ends)

    def add(self, block):
        super().add(block)
        if time.monotonic() - self.recorded > SECONDS_PER_RECORD:
            self._record(INCOMPLETE)
            self.recorded = time.monotonic()

    def _record(self, name):
        for file in self.files.values():
            file.flush()
            if name == COMPLETE:
                os.fsync(file.fileno())
        names = ("num_lines", "num_rows", "sizes", "left_out", "types")
        write_json(self.temporary / name, {name: getattr(self, name) for name in names})

    def finished(self):
        self._record(COMPLETE)
        (self.temporary / INCOMPLETE).unlink(missing_ok=True)
        self.temporary.rename(self.folder)
        return EncodedPairs.open(self.folder)


@contextlib.contextmanager
def _store(folder, dtype):
    if folder is None:
        yield _Memory(dtype)
        return
    folder = Path(folder)
    temporary = folder.with_name(f".writing-{folder.name}")
    with contextlib.ExitStack() as stack:
        try:
            temporary.mkdir(parents=True, exist_ok=True)
            stack.enter_context(locked(temporary))
            store = _Folder(dtype, folder, temporary)
        except OSError as error:
            raise FileError(f"Cannot write to {folder}: {error.strerror}. Give another --cache-dir.") from error
        for file in store.files.values():
            stack.callback(file.close)
        try:
            yield store
        except OSError as error:
            error.filename = error.filename or str(folder)  # Python does not name a file that cannot be written.
            raise
        except ValueError:  # Invalid text: leave no partial folder to resume.
            shutil.rmtree(temporary, ignore_errors=True)
            raise
