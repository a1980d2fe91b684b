"""Lines of files and pipes: what is text, what is not, and what is said of it."""

import gzip
import io
import os

import pytest
from texts import names, write

from keras_transformer.text import lines as text
from keras_transformer.text.lines import DataError, Line, Problems, decoded, lines, read_lines
from keras_transformer.translation.results import Translation

WHOLE = Translation("", 0.0)


def flat(content, name="a.txt"):
    return [line for found in lines(io.BufferedReader(io.BytesIO(content)), name) for line in found]


@pytest.mark.parametrize("read_size", [1, 2, 3, 7, 1 << 17])
def test_lines_are_the_same_however_they_arrive(read_size, monkeypatch):
    monkeypatch.setattr(text, "READ_SIZE", read_size)
    content = "\ufeffeins\r\n\n zwei\u2028drei \n\x85vier\n\n".encode() + b"caf\xe9\nlast"
    assert flat(content) == [
        Line("eins"), Line(""), Line("zwei\u2028drei"), Line("vier"), Line(""),
        Line("", "not UTF-8 (byte 0xe9, column 4)"), Line("last"),
    ]  # fmt: skip


@pytest.mark.parametrize(("content", "count"), [(b"", 0), (b"\n", 1), (b"a", 1), (b"a\n", 1), (b"a\n\n", 2)])
def test_a_newline_ends_a_line(content, count):
    assert len(flat(content)) == count


@pytest.mark.parametrize("read_size", [3, 1 << 17])
def test_a_line_without_an_end_does_not_fill_the_memory(read_size, monkeypatch):
    monkeypatch.setattr(text, "READ_SIZE", read_size)
    monkeypatch.setattr(text, "LONGEST_LINE", 10)
    problem = f"over {1 << 20:,} bytes long"
    assert flat(b"x" * 11 + b"\na\n" + b"y" * 10 + b"\n" + b"z" * 99) == [
        Line("", problem), Line("a"), Line("y" * 10), Line("", problem),
    ]  # fmt: skip


def test_a_byte_order_mark_belongs_to_the_first_line_alone():
    assert decoded("\ufeffa".encode(), 1) == Line("a")
    assert decoded("\ufeffa".encode(), 2) == Line("\ufeffa")


@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-le", "utf-16-be"])
def test_utf_16_is_refused(encoding):
    content = ("" if encoding == "utf-16" else "\ufeff") + "Der Hund\n"
    with pytest.raises(DataError, match=r"a\.txt is UTF-16, not UTF-8\. Convert it, .*iconv -f UTF-16"):
        flat(content.encode(encoding))


def test_a_nul_byte_is_no_text():
    assert flat("a\n".encode("utf-16-le")) == [Line("", "a NUL byte; this is not a text file")] * 2


PACKED = gzip.compress(b"".join(b"%d sentences\n" % i for i in range(9999)))


@pytest.mark.parametrize(
    "content",
    [PACKED[:-4], PACKED[: len(PACKED) // 2], PACKED[:12], PACKED[:-8] + b"\0" * 8, PACKED + b"more"],
    ids=["no length", "half", "header", "wrong checksum", "more behind it"],
)
def test_a_damaged_gzip_file_is_named_with_the_line_that_was_reached(content, tmp_path):
    path = tmp_path / "a.gz"
    path.write_bytes(content)
    with pytest.raises(DataError, match="Cannot read " + names(path) + r".* after line [\d,]+: \w"):
        read_lines(path)


def test_a_pipe_gives_what_has_arrived():
    reader, writer = os.pipe()
    with open(reader, "rb") as file:
        found = lines(file, "pipe")
        os.write(writer, b"eins\nzw")
        assert next(found) == [Line("eins")]
        os.write(writer, b"ei\ndrei\n")
        assert next(found) == [Line("zwei"), Line("drei")]
        os.close(writer)
        assert list(found) == []


# Whole files.


@pytest.mark.parametrize("compress", [False, True], ids=["plain", "gzip"])
@pytest.mark.parametrize(
    ("content", "lines"),
    [
        ("eins\nzwei\n", ["eins", "zwei"]),
        ("eins\nzwei", ["eins", "zwei"]),
        ("eins\r\nzwei\r\n", ["eins", "zwei"]),
        ("\ufeffeins\nzwei\n", ["eins", "zwei"]),
        ("  eins \t\nzwei\u00a0\n", ["eins", "zwei"]),
        ("eins\n\nzwei\n", ["eins", "", "zwei"]),
        ("\n\neins\n\n", ["", "", "eins", ""]),
        ("a\u2028b\x85c\x0bd\x0ce\x1cf\n", ["a\u2028b\x85c\x0bd\x0ce\x1cf"]),
        ("a\rb\n", ["a\rb"]),
        ("Grüße 日本 👨‍👩‍👧\n", ["Grüße 日本 👨‍👩‍👧"]),
        ("u\u0308\n", ["u\u0308"]),
    ],
    ids=["end", "no end", "CRLF", "BOM", "blanks", "empty line", "empty ends", "other breaks", "CR", "scripts", "NFD"],
)
def test_lines_end_at_newlines_alone(tmp_path, content, lines, compress):
    assert read_lines(write(tmp_path / "file", content, compress)) == lines


def test_gzip_is_known_by_its_content_not_by_its_name(tmp_path):
    assert read_lines(write(tmp_path / "packed", "a\n", compress=True)) == ["a"]
    assert read_lines(write(tmp_path / "plain.gz", "a\n")) == ["a"]


def test_a_path_may_be_a_string(tmp_path):
    assert read_lines(str(write(tmp_path / "file", "a\n"))) == ["a"]


@pytest.mark.parametrize("compress", [False, True], ids=["plain", "gzip"])
def test_invalid_utf8_is_answered_with_file_line_and_byte(tmp_path, compress):
    path = write(tmp_path / "file", b"eins\nf" + "ü".encode("latin-1") + b"nf\n", compress)
    with pytest.raises(DataError, match=names(path) + r".*, line 2: not UTF-8 \(byte 0xfc, column 2\).*iconv"):
        read_lines(path)


def test_the_byte_is_right_behind_a_byte_order_mark_too(tmp_path):
    path = write(tmp_path / "file", b"\xef\xbb\xbfab\xff\n")
    with pytest.raises(DataError, match=r"line 1: not UTF-8 \(byte 0xff, column 3"):
        read_lines(path)


def test_a_nul_byte_is_answered_with_file_and_line(tmp_path):
    path = write(tmp_path / "file", "eins\nzw\0ei\n")
    problem = r".*, line 2: a NUL byte; this is not a text file\. Correct the file\.$"  # No other encoding helps.
    with pytest.raises(DataError, match=names(path) + problem):
        read_lines(path)


@pytest.mark.parametrize("compress", [False, True], ids=["plain", "gzip"])
@pytest.mark.parametrize("content", ["", "\n", " \r\n\t\n"])
def test_an_empty_file_is_refused(tmp_path, content, compress):
    path = write(tmp_path / "file", content, compress)
    with pytest.raises(DataError, match=names(path) + ".* is empty: it must have one sentence per line"):
        read_lines(path)


def test_a_pipe_that_is_read_again_is_named():
    """As `<(zcat a.gz)` in a shell, which a command reads twice."""
    read, write = os.pipe()
    with open(write, "wb") as file:
        file.write(b"a dog\n")
    path = f"/dev/fd/{read}"
    assert read_lines(path) == ["a dog"]
    with pytest.raises(DataError, match=f"{path} is empty.* It is a pipe.* Write it to a file"):
        read_lines(path)
    os.close(read)


def test_a_missing_file_is_named(tmp_path):
    with pytest.raises(
        DataError, match="Cannot read " + names(tmp_path / "no.en") + r".*: No such file or directory\."
    ):
        read_lines(tmp_path / "no.en")


def test_a_folder_is_no_file(tmp_path):
    with pytest.raises(DataError, match="Cannot read " + names(tmp_path) + r".*: Is a directory\."):
        read_lines(tmp_path)


# Messages.


def test_problems_are_printed_at_first_and_counted_to_the_end(capsys):
    problems = Problems("a.txt")
    for number in range(1, 30):
        problems.add_line(number, Line("", "not UTF-8") if number % 2 else Line("a"), WHOLE, 128)
    problems.add_line(30, Line("long"), WHOLE._replace(truncated=True), 128)
    assert problems.summary() is True
    *printed, empty, cut = capsys.readouterr().err.splitlines()
    assert printed[0] == "a.txt, line 1: not UTF-8; an empty line is written."
    assert len(printed) == text.PRINTED_PROBLEMS
    assert empty == "a.txt: 15 lines in all: an empty line is written."
    assert cut == "a.txt: 1 line in all: only its beginning was translated."


def test_without_problems_nothing_is_printed(capsys):
    problems = Problems("a.txt")
    problems.add_line(1, Line("a"), WHOLE, 128)
    assert problems.summary() is False
    assert capsys.readouterr().err == ""
