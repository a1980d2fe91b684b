"""Translation of many files with Ray's processes."""

import contextlib
import gzip
import os
import re
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pyarrow
import pytest
from pyarrow import parquet

from keras_transformer.__main__ import main


def command(*arguments):
    """The exit status of the command, in this process."""
    with pytest.raises(SystemExit) as ended:
        sys.exit(main(["bulk", *map(str, arguments)]))
    return ended.value.code


def parents(pid):
    """The numbers of a process and of all above it."""
    while pid:
        yield pid
        pid = int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])


def kill_a_worker(command, after):
    """Kills one of the processes that translate for `command`, when a file is there; whether there was one."""
    deadline = time.monotonic() + 120
    while time.monotonic() < deadline and command.poll() is None:
        for path in Path("/proc").glob("[0-9]*/cmdline") if after.exists() else ():
            with contextlib.suppress(OSError):
                pid = int(path.parent.name)
                if path.read_bytes().startswith(b"ray::Worker.translate") and command.pid in parents(pid):
                    os.kill(pid, signal.SIGKILL)
                    return True
        time.sleep(0.01)
    return False


def test_files_are_translated_as_the_translator_does_although_a_worker_is_killed(golden, tmp_path):
    def translated(texts):
        return [found.text for found in golden.translator.translate(texts, num_beams=1, return_scores=True)]

    texts = [*golden.texts, "", golden.texts[0]]
    # Empty lines cost little time, and 128 KiB of them are a chunk.
    many = [texts[i // 9000] if i % 9000 == 0 else "" for i in range(9000 * 16)] * 5
    files = {"b.txt": texts, "a.txt": golden.texts[:1], "empty.txt": [], "z.txt": many}
    for name, lines in files.items():
        (tmp_path / name).write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    bad = golden.texts[1].encode() + b"\ncaf\xe9\n" + golden.texts[0].encode()
    (tmp_path / "c.txt.gz").write_bytes(gzip.compress(bad))
    files["c.txt"] = [golden.texts[1], "", golden.texts[0]]
    (tmp_path / "cut.txt.gz").write_bytes(gzip.compress(b"a dog\n" * 30)[:-12])
    (tmp_path / "long.txt").write_text("word\n" + "word " * 300, encoding="utf-8")
    files["long.txt"] = ["word", "word " * 300]
    (tmp_path / "crc.txt.gz").write_bytes(gzip.compress(b"a dog\n" * 30)[:-8] + bytes(8))
    rows = [*texts, *[""] * 5000, texts[0], None]  # Several chunks.
    table = pyarrow.table({"id": [*range(len(rows))], "said": pyarrow.array(rows, pyarrow.large_string())})
    parquet.write_table(table, tmp_path / "d.parquet")
    parquet.write_table(table.slice(0, 0), tmp_path / "none.parquet")
    (tmp_path / "no.parquet").write_bytes(b"PAR1")
    bad = pyarrow.Array.from_buffers(pyarrow.string(), 1, [None, *pyarrow.array([b"caf\xe9"]).buffers()[1:]])
    parquet.write_table(pyarrow.table({"said": bad}), tmp_path / "not_utf_8.parquet")
    parquet.write_table(pyarrow.table({"said": [1]}), tmp_path / "numbers.parquet")
    parquet.write_table(pyarrow.table({"text": ["a"]}), tmp_path / "other.parquet")
    output = tmp_path / "out"
    output.mkdir()
    (output / "a.txt").write_text("as it was", encoding="utf-8")
    flags = ["--input", *sorted(tmp_path.glob("*.*")), "--output", output, "--num-beams", 1, "--workers", 2]
    call = [sys.executable, "-m", "keras_transformer", "bulk", golden.run_dir, *flags, "--column", "said"]
    with subprocess.Popen([*map(str, call)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        killed = []
        killing = threading.Thread(target=lambda: killed.append(kill_a_worker(process, output / "b.txt")))
        killing.start()
        out, err = process.communicate(timeout=300)
        killing.join()
    assert process.returncode == 1, err
    assert killed == [True]
    assert out.startswith(f"{output}/a.txt is there already.\n")  # Then Ray tells of the death.
    assert (output / "a.txt").read_text(encoding="utf-8") == "as it was"
    assert {path.name for path in output.iterdir()} == {*files, "d.parquet", "none.parquet"}
    for name in {*files} - {"a.txt"}:
        assert (output / name).read_text(encoding="utf-8").splitlines() == translated(files[name])
    added = table.append_column("translation", [translated([text or "" for text in rows])])
    assert parquet.read_table(output / "d.parquet").equals(added)
    assert parquet.read_table(output / "none.parquet").equals(added.slice(0, 0))
    assert f"{tmp_path}/c.txt.gz, line 2: not UTF-8 (byte 0xe9, column 4); an empty line is written.\n" in err
    assert f"{tmp_path}/long.txt, line 2: more than 128 tokens; only its beginning was translated.\n" in err
    assert re.search(r"Cannot read .*cut\.txt\.gz after line [\d,]+: .* Nothing of this file is written\.\n", err)
    for name, problem in (
        ("crc.txt.gz", "CRC check failed"),
        ("no.parquet", ""),
        ("not_utf_8.parquet", "can't decode byte 0xe9"),
        ("numbers.parquet", "the column said must have strings, not int64"),
        ("other.parquet", "must have the column of --column, .* and the columns text"),
    ):
        assert re.search(rf"{name}.*{problem}.* Nothing of this file is written\.\n", err), name
    assert "Traceback" not in err


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (["{golden}", "--input", "{tmp}/nothing"], "Cannot read {tmp}/nothing: No such file or directory"),
        (["{golden}", "--input", "{tmp}/1/same.txt", "{tmp}/2/same.txt"], "must differ. Received twice: same.txt"),
        (["{tmp}", "--input", "{tmp}/1/same.txt"], "is not the folder of a trained run"),
        (["{golden}", "--input", "{tmp}/1/same.txt", "--num-beams", "0"], "`num_beams` must be at least 1"),
    ],
)
def test_what_cannot_be_done_is_said_before_anything_is_written(golden, tmp_path, capsys, flags, message):
    for folder in ("1", "2"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "same.txt").write_text("a\n", encoding="utf-8")
    places = {"tmp": tmp_path, "golden": golden.run_dir}
    assert command(*(flag.format(**places) for flag in flags), "--output", tmp_path / "out") == 2
    assert message.format(**places) in capsys.readouterr().err
    assert not list(tmp_path.glob("out/*"))


def test_it_ends_as_every_command_does(golden, tmp_path):
    """Ray's processes are nobody else's to connect to, and SIGTERM is answered as everywhere."""
    for name, count in (("a.txt", 1), ("b.txt", 200_000)):
        (tmp_path / name).write_text("a small dog\n" * count, encoding="utf-8")
    paths = [str(tmp_path / name) for name in ("a.txt", "b.txt")]
    call = ["bulk", str(golden.run_dir), "--input", *paths, "--output", str(tmp_path / "out")]
    call = [sys.executable, "-m", "keras_transformer", *call]
    with subprocess.Popen(call, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        deadline = time.monotonic() + 120
        while not list(tmp_path.glob("out/*")) and time.monotonic() < deadline:
            time.sleep(0.1)
        addresses = listening_addresses(process.pid)
        process.terminate()
        _, err = process.communicate(timeout=60)
    assert process.returncode == 143
    assert err.endswith(
        f"Terminated. The files in {tmp_path}/out are complete. The same command translates the others.\n"
    )
    assert [path.name for path in tmp_path.glob("out/*")] == ["a.txt"]
    assert addresses and addresses <= {"0100007F", "0" * 24 + "0100007F", "0" * 16 + "FFFF00000100007F"}, addresses


def listening_addresses(pid):
    """Where a process and those below it listen, as /proc/net/tcp writes addresses."""
    inodes = set()
    for path in Path("/proc").glob("[0-9]*/fd/*"):
        with contextlib.suppress(OSError):
            if (target := os.readlink(path)).startswith("socket:[") and pid in parents(int(path.parts[2])):
                inodes.add(target[8:-1])
    tables = [path for path in Path("/proc/net").glob("tcp*") if path.name in ("tcp", "tcp6")]  # One without IPv6.
    rows = [line.split() for path in tables for line in path.read_text().splitlines()[1:]]
    return {row[1].split(":")[0] for row in rows if row[3] == "0A" and row[9] in inodes}


def test_without_ray_the_command_says_what_to_install(golden, tmp_path, capsys, monkeypatch):
    monkeypatch.setitem(sys.modules, "ray", None)
    (tmp_path / "a.txt").write_text("a\n", encoding="utf-8")
    assert command(golden.run_dir, "--input", tmp_path / "a.txt", "--output", tmp_path / "out") == 2
    assert "ray must be installed. Try: pip install ray" in capsys.readouterr().err
