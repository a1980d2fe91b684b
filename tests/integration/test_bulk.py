"""Bulk translation on Beam's runner for one machine, once in a process of its own."""

import gzip
import importlib
import re
import runpy
import subprocess
import sys

import pytest
from trainings import phrases

from keras_transformer.commands import bulk
from keras_transformer.data.cleaning import Cleaner
from keras_transformer.data.corpora import parallel_files
from keras_transformer.data.encoding import encode_pairs, encoded_in
from keras_transformer.training.run import Run


def run(*arguments):
    """The exit status of the command."""
    with pytest.raises(SystemExit) as ended:
        sys.exit(bulk.main(list(map(str, arguments))))
    return ended.value.code


def test_files_are_translated_as_the_translator_does(golden, tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(bulk, "CHUNK_SIZE", 7)
    files = {"b.txt": [*golden.texts, "", golden.texts[0]], "a.txt": golden.texts[:1], "empty.txt": []}
    for name, lines in files.items():
        (tmp_path / name).write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    bad = golden.texts[1].encode() + b"\ncaf\xe9\n" + golden.texts[0].encode()
    (tmp_path / "c.txt.gz").write_bytes(gzip.compress(bad))
    files["c.txt"] = [golden.texts[1], "", golden.texts[0]]
    (tmp_path / "cut.txt.gz").write_bytes(gzip.compress(b"a dog\n" * 30)[:-12])
    (tmp_path / "long.txt").write_text("word\n" + "word " * 300, encoding="utf-8")
    files["long.txt"] = ["word", "word " * 300]
    output = tmp_path / "out"
    assert run("--run", golden.run_dir, "--input", tmp_path / "*.txt*", "--output", output, "--num-beams", 1) == 1
    assert f"3 lines in {output}/errors.txt say what could not be translated." in capsys.readouterr().err
    assert {path.name for path in output.iterdir()} == {*files, "errors.txt"}
    for name, lines in files.items():
        expected = golden.translator.translate(lines, num_beams=1, return_scores=True)
        assert (output / name).read_text(encoding="utf-8").splitlines() == [found.text for found in expected]
    errors = sorted((output / "errors.txt").read_text(encoding="utf-8").splitlines())
    assert errors[:2] == [
        f"{tmp_path}/c.txt.gz, line 2: not UTF-8 (byte 0xe9, column 4); an empty line is written.",
        f"{tmp_path}/long.txt, line 2: more than 128 tokens; only its beginning was translated.",
    ]
    early = r"Cannot read .*cut\.txt\.gz after line [\d,]+: .* Nothing of this file is written\."
    assert len(errors) == 3 and re.fullmatch(early, errors[2])
    assert run("--run", golden.run_dir, "--input", tmp_path / "b.txt", "--output", output) == 2
    assert "already has b.txt: nothing is overwritten" in capsys.readouterr().err


def test_corpora_are_tokenized_for_training(golden, tmp_path, capsys):
    """Training then finds their ids."""
    pairs = phrases()
    flags, texts = [], []
    for name, lines in (("a", pairs[:40]), ("b", [*pairs[40:90], ("", "x"), pairs[40]])):
        paths = [tmp_path / f"{name}.{side}" for side in ("en", "de")]
        for path, side in zip(paths, zip(*lines, strict=True), strict=True):
            path.write_text("".join(f"{text}\n" for text in side), encoding="utf-8")
        flags += ["--train", *paths]
        texts.append(parallel_files(*paths))
    flags = ["--run", golden.run_dir, *flags]
    call = [
        sys.executable,
        "-m",
        "keras_transformer.commands.bulk",
        *flags,
        "--cache-dir",
        tmp_path / "cache",
        "--clean",
    ]
    done = subprocess.run(list(map(str, call)), capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    assert f"{texts[0].name}: 40 pairs\n" in done.stdout
    assert f"{texts[1].name}: 50 pairs, 1 with an empty side dropped (line 51), 1 that were there before" in done.stdout
    assert done.stdout.endswith(f"All 2 are in {tmp_path / 'cache'}.\n")
    data, again = Run(golden.run_dir).config().data, []
    for text in texts:
        settings = data.max_length, data.over_long, Cleaner.of(data)
        found = encoded_in(tmp_path / "cache", text, [golden.tokenizer] * 2, *settings, progress=again.append)
        wanted = encode_pairs(list(text), *[golden.tokenizer] * 2, data.max_length)
        assert [ids.tolist() for ids in found.target] == [ids.tolist() for ids in wanted.target][: len(found.target)]
    assert again == []
    assert run(*flags) == 2
    assert capsys.readouterr().err.endswith(
        "error: the following arguments are required: --cache-dir. "
        "All flags: python -m keras_transformer.commands.bulk --help\n"
    )


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (["--input", "{tmp}/nothing-*"], "--input matches no file"),
        (["--input", "{tmp}/*/same.txt"], "must differ. Received twice: same.txt"),
        (["--input", "{tmp}/1/same.txt", "--run", "{tmp}"], "is not the folder of a trained run"),
        (["--input", "{tmp}/1/same.txt", "--num-beams", "0"], "`num_beams` must be at least 1"),
    ],
)
def test_what_cannot_be_done_is_said_before_anything_is_written(golden, tmp_path, capsys, flags, message):
    for folder in ("1", "2"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "same.txt").write_text("a\n", encoding="utf-8")
    flags = [flag.format(tmp=tmp_path) for flag in flags]
    assert run("--run", golden.run_dir, "--output", tmp_path / "out", *flags) == 2
    assert message in capsys.readouterr().err
    assert not list(tmp_path.glob("out/*"))


def test_without_beam_a_library_call_and_a_command_say_what_is_missing(monkeypatch):
    monkeypatch.setitem(sys.modules, "apache_beam", None)
    monkeypatch.delitem(sys.modules, "keras_transformer.commands.bulk", raising=False)
    message = r"Apache Beam is not installed\. Try: pip install apache-beam"
    with pytest.raises(ImportError, match=message):
        importlib.import_module("keras_transformer.commands.bulk")
    with pytest.raises(SystemExit, match=f"error: {message}"):
        runpy.run_module("keras_transformer.commands.bulk", run_name="__main__")
