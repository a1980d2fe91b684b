"""Token ids of sentence pairs, in memory or in files that are mapped into it."""

import contextlib
import json
import os
import re
import shutil
import time
from collections.abc import Iterable, Sequence
from itertools import chain
from pathlib import Path
from typing import NamedTuple

import numpy as np

from keras_transformer.files import FileError, locked, write_json

# Lines that a process tokenizes at once, and the seconds between two records of how far the work is.
LINES_PER_BLOCK, SECONDS_PER_RECORD = 10_000, 5
# The file that a complete folder has, and the one that an incomplete folder has.
COMPLETE, INCOMPLETE = "pairs.json", "progress.json"
# Why pairs are left out, or cut.
EMPTY, OVER_LONG = "with an empty side", "over-long"

COLUMNS = ("source", "target", "source_ends", "target_ends")


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

    def __init__(self, values: np.ndarray, ends: np.ndarray):
        self.values, self.ends = values, ends

    @classmethod
    def of(cls, rows: Iterable, dtype: str = "int32") -> "Ragged":
        """A `Ragged` from lists of ids."""
        values = np.fromiter(chain.from_iterable(rows), dtype)
        return cls(values, np.cumsum([len(row) for row in rows], dtype="int64"))

    def __len__(self):
        return len(self.ends)

    def __getitem__(self, row):
        row = range(len(self.ends))[row]
        return self.values[self.ends[row - 1] if row else 0 : self.ends[row]]

    @property
    def lengths(self) -> np.ndarray:
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

    def and_more(self, count: int, samples: Sequence) -> "LeftOut":
        """This and `count` more pairs, of which some are given as `samples`."""
        # Multiples of a number mix the lines, so the same three are chosen however the text is divided into blocks.
        samples = sorted([*self.samples, *samples], key=lambda sample: sample[0] * 2654435761 % 2**32)[:3]
        return LeftOut(self.count + count, sorted(samples))


def left_out_by(reasons, before=None):
    """`LeftOut` by reason, added to those `before`; `reasons` are (reason or None, (line number, pair))."""
    by_reason = dict(before or {})
    for reason, (number, pair) in reasons:
        if reason:
            sample = [number, *(text[:200] for text in pair)]
            by_reason[reason] = by_reason.get(reason, LeftOut()).and_more(1, [sample])
    return by_reason


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

    def about_left_out(self, over_long: str = "drop") -> list[str]:
        """What was dropped or cut, as a list of phrases."""
        cut = {OVER_LONG} if over_long == "cut" else ()
        return [
            f"{count:,} {reason} {'cut' if reason in cut else 'dropped'} "
            f"(line {', '.join(f'{number:,}' for number, *_ in samples)}{', ...' if count > len(samples) else ''})"
            for reason, (count, samples) in self.left_out.items()
        ]

    @classmethod
    def open(cls, folder: str | Path) -> "EncodedPairs":
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


def report(left_out):
    """Lines of text about `LeftOut` by reason, with their samples, which must not move a terminal's cursor."""
    lines = []
    for reason, (count, samples) in left_out.items():
        lines.append(f"  {count:,} {reason}, such as")
        lines += [f"    line {number:,}: {source}  |  {target}" for number, source, target in samples]
    return [re.sub("[\x00-\x1f\x7f-\x9f]", " ", line) for line in lines]


def none_left(left_out):
    """For messages, if all pairs of a text were left out."""
    reasons = ", ".join(f"{pairs.count:,} {reason}" for reason, pairs in left_out.items())
    return f"No pair is left: all were dropped. Received: pairs {reasons}"


class Block(NamedTuple):
    """The pairs of a block of lines: two arrays of ids, and two of where each row ends in them."""

    num_lines: int
    values: list
    ends: list
    left_out: dict


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
        self.files = {name: open(temporary / name, "ab") for name in COLUMNS}  # noqa: SIM115 (closed by `open_store`)
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
def open_store(folder, dtype):
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
