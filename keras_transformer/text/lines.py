"""Lines of text from files and pipes: UTF-8, one sentence per line, plain or gzip.

All commands read text with this module, so that they report a problem in the same words. Only a newline ends a line.
The other characters at which `str.splitlines` splits occur inside sentences: splitting there would shift all later
lines.
"""

import codecs
import contextlib
import gzip
import io
import os
import stat
import sys
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

from keras_transformer.files import InputError

# Number of bytes per read: enough lines to fill batches of similar lengths, in constant memory.
READ_SIZE = 1 << 17
# Longer lines, in bytes, are refused: they are not sentences, and a file without newlines would fill the memory.
LONGEST_LINE = 1 << 20
# Number of problems of one file that are printed; the others are only counted.
PRINTED_PROBLEMS = 10

_TOO_LONG = f"over {LONGEST_LINE:,} bytes long"
EMPTY_LINE = "an empty line is written"  # What is done with a line that is not valid text.


class DataError(InputError):
    """Text that cannot be used; the message names the file and, if possible, the line."""


class Line(NamedTuple):
    """A line of a file.

    Attributes:
        text: the line without surrounding spaces; empty if there is a problem.
        problem: why it is not valid text, or None.
    """

    text: str
    problem: str | None = None


def lines(file: BinaryIO, name: Path | str) -> Iterator[list[Line]]:
    """Yields lists of `Line`s: many lines of a file at once, but from a pipe only those that have arrived.

    Args:
        file: a binary file with `read1`, plain or gzip.
        name: the name of the file, for messages.

    Raises:
        DataError: the file cannot be read to its end, or is UTF-16.
    """
    count, rest, skipping = 0, b"", False
    with _reading(name, " after line 0"):
        unpacked = _unpacked(file)
        _check_no_utf_16(unpacked.peek(2), name)
    while True:
        with _reading(name, f" after line {count:,}"):  # For example a gzip file that is cut off.
            data = unpacked.read1(READ_SIZE)
        *whole, rest = (rest + data).split(b"\n")
        if not data and (rest or skipping):
            whole, rest = [rest], b""
        batch = []
        for line in whole:
            count += 1
            batch.append(Line("", _TOO_LONG) if skipping else decoded(line, count))
            skipping = False
        if len(rest) > LONGEST_LINE:
            rest, skipping = b"", True
        elif skipping:
            rest = b""
        if batch:
            yield batch
        if not data:
            return


def decoded(line: bytes, number: int) -> Line:
    """`Line` number `number` of a UTF-8 file, from its bytes. A byte order mark is removed from the first line."""
    if len(line) > LONGEST_LINE:
        return Line("", _TOO_LONG)
    if b"\0" in line:
        return Line("", "a NUL byte; this is not a text file")
    try:
        return Line(line.decode("utf-8-sig" if number == 1 else "utf-8").strip())
    except UnicodeDecodeError as error:
        byte, column = error.object[error.start], error.start + 1
        return Line("", f"not UTF-8 (byte {byte:#04x}, column {column})")


def read_lines(path: Path | str) -> list[str]:
    """All lines of a file, stripped of surrounding spaces: see `stream_lines`."""
    return list(stream_lines(path))


def stream_lines(path: Path | str) -> Iterator[str]:
    """Yields the lines of a file, stripped of surrounding spaces.

    Raises:
        DataError: the file cannot be read, is empty, or has a line that is not valid text; the message names the line.
    """
    number, has_text = 0, False
    with open_input(path) as file:
        for batch in lines(file, path):
            for number, line in enumerate(batch, number + 1):  # noqa: B020 (continues after the last batch)
                if line.problem:
                    advice = "; if it has another encoding, convert it, for example with: iconv -f ISO-8859-1 -t UTF-8"
                    advice = advice if line.problem.startswith("not UTF-8") else ""
                    raise DataError(f"{path}, line {number}: {line.problem}. Correct the file{advice}.")
                has_text = has_text or bool(line.text)
                yield line.text
        pipe = stat.S_ISFIFO(os.fstat(file.fileno()).st_mode)
    if not has_text:
        advice = " It is a pipe, which can be read only once. Write it to a file." if pipe else ""
        raise DataError(f"{path} is empty: it must have one sentence per line.{advice}")


def read_bytes(path: Path | str) -> Iterator[bytes]:
    """Yields the unpacked content of a file, plain or gzip, in pieces.

    Raises:
        DataError: the file cannot be read.
    """
    with open_input(path) as file, _reading(path):
        file = _unpacked(file)
        while data := file.read1(READ_SIZE):
            yield data


@contextlib.contextmanager
def _reading(name, place=""):
    """Raises a DataError instead of what a file that cannot be read raises."""
    try:
        yield
    except (OSError, EOFError, zlib.error) as error:
        reason = getattr(error, "strerror", None) or str(error).rstrip(".")
        raise DataError(f"Cannot read {name}{place}: {reason}.") from error


def read_text(path: Path | str | None = None, encoding_of: Callable[[bytes], str] | None = None) -> str:
    """The whole text of a file, or of standard input, unchanged.

    Args:
        path: Defaults to None: standard input.
        encoding_of: a function from bytes to the name of their encoding. Defaults to None: UTF-8; a byte order mark is
            left out.

    Raises:
        DataError: the file cannot be read, or is not in its encoding; the message names the line.
    """
    name = path or "standard input"
    with open_input(path) as file, _reading(name):
        data = _unpacked(file).read()
    if not encoding_of:
        _check_no_utf_16(data, name)
    encoding = encoding_of(data) if encoding_of else "utf-8-sig"
    try:
        return data.decode(encoding)
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        encoding = "UTF-8" if encoding.startswith("utf-8") else f"{encoding}, its encoding"
        problem = f"{name}, line {line}: not {encoding} (byte {data[error.start]:#04x})"
        raise DataError(f"{problem}. Convert it, for example with: iconv -f ISO-8859-1 -t UTF-8.") from error


def _check_no_utf_16(data, name):
    if data.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        raise DataError(f"{name} is UTF-16, not UTF-8. Convert it, for example with: iconv -f UTF-16 -t UTF-8.")


@contextlib.contextmanager
def open_input(path: Path | str | None = None) -> Iterator[BinaryIO]:
    """Standard input, or a file, in binary; not yet unpacked: a pipe would have to wait for its first byte.

    Raises:
        DataError: the file cannot be opened.
    """
    with _reading(path or "standard input"):
        file = open(0 if path is None else path, "rb", closefd=path is not None)  # noqa: SIM115 (closed below)
    with file:
        yield file


def _unpacked(file: Any) -> Any:
    """A binary file, unpacked if it is a gzip file."""
    file = file if hasattr(file, "peek") else io.BufferedReader(file)
    return gzip.open(file) if file.peek(2)[:2] == b"\x1f\x8b" else file


class Problems:
    """Prints the first problems with lines of a file, and counts all.

    Args:
        name: the name of the file.
    """

    def __init__(self, name: Path | str):
        self.name = name
        self.counts = {}

    def add_line(self, number: int, line: Line, translation: Any, limit: int) -> None:
        """Adds the problem of `Line` number `number` and its `Translation`, if any; `limit` is the model's limit."""
        if line.problem:
            self.add(number, line.problem, EMPTY_LINE)
        elif problem := problem_of(translation, limit):
            self.add(number, *problem)

    def add(self, number: int, what: str, done: str) -> None:
        """Adds a problem, `what`, of line `number`; `done` says what was done. Problems are counted by `done`."""
        self.counts[done] = self.counts.get(done, 0) + 1
        if sum(self.counts.values()) <= PRINTED_PROBLEMS:
            print(f"{self.name}, line {number}: {what}; {done}.", file=sys.stderr)

    def summary(self) -> bool:
        """Prints how many lines had problems; returns whether any had one."""
        for done, count in self.counts.items():
            print(f"{self.name}: {count:,} line{'s' if count > 1 else ''} in all: {done}.", file=sys.stderr)
        return bool(self.counts)


def problem_of(translation: Any, limit: int) -> tuple[str, str] | None:
    """`what` and `done` of `Problems.add` for a `Translation`, or None; `limit` is the model's limit of tokens."""
    if translation.truncated:
        return f"more than {limit} tokens", "only its beginning was translated"
    if translation.lost:
        names = ", ".join(map(repr, translation.lost[:5])) + ", ..." * (len(translation.lost) > 5)
        return f"not in the translation: {names}", "a part that must not change was lost"
    return None
