"""Files and folders that are complete or absent, and what may be replaced."""

import json
import os
import stat
import threading
from hashlib import sha256

import pytest

from keras_transformer import files
from keras_transformer.files import (
    MANIFEST,
    FileError,
    cache_folder,
    cached_folder,
    check_unchanged,
    foreign_files,
    new_folder,
    output_file,
)


def names(folder):
    return sorted(path.name for path in folder.iterdir())


# Files.


@pytest.fixture(params=[True, False], ids=["nameless file", "named file"])
def either_way(request, monkeypatch):
    """File systems that have files without a name, and those that have not, such as NFS."""
    if not request.param:
        opened = os.open

        def refuse(path, flags, *arguments, **keywords):
            if flags & os.O_TMPFILE == os.O_TMPFILE:
                raise OSError(95, "Operation not supported")
            return opened(path, flags, *arguments, **keywords)

        monkeypatch.setattr(os, "open", refuse)


def test_a_file_appears_when_it_is_complete(tmp_path, either_way):
    path = tmp_path / "out.txt"
    with output_file(path) as file:
        file.write("Grüße\n")
        file.flush()
        assert not path.exists()
    assert path.read_bytes() == "Grüße\n".encode()
    assert names(tmp_path) == ["out.txt"]


def test_a_file_that_is_not_finished_leaves_the_old_one(tmp_path, either_way):
    path = tmp_path / "out.txt"
    path.write_text("old")
    with pytest.raises(KeyboardInterrupt), output_file(path) as file:
        file.write("new")
        raise KeyboardInterrupt
    assert path.read_text() == "old"
    assert names(tmp_path) == ["out.txt"]


def test_a_file_keeps_its_mode_and_a_link_stays_a_link(tmp_path, either_way):
    path, link = tmp_path / "out.txt", tmp_path / "link"
    path.write_text("old")
    path.chmod(0o600)
    link.symlink_to("out.txt")
    with output_file(link) as file:
        file.write("new")
    assert link.is_symlink()
    assert path.read_text() == "new"
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert names(tmp_path) == ["link", "out.txt"]


def test_a_new_file_has_the_mode_that_the_user_asks_for(tmp_path, either_way):
    before = os.umask(0o027)
    try:
        with output_file(tmp_path / "out.bin", "wb") as file:
            file.write(b"\0")
    finally:
        os.umask(before)
    assert stat.S_IMODE((tmp_path / "out.bin").stat().st_mode) == 0o640


def test_what_a_killed_process_has_left_is_replaced(tmp_path, either_way):
    (tmp_path / ".writing-out.txt").write_text("half")
    with output_file(tmp_path / "out.txt") as file:
        file.write("whole")
    assert names(tmp_path) == ["out.txt"]


def test_a_pipe_is_written_to(tmp_path):
    pipe, found = tmp_path / "pipe", []
    os.mkfifo(pipe)
    reader = threading.Thread(target=lambda: found.append(pipe.read_text()))
    reader.start()
    with output_file(pipe) as file:
        file.write("line\n")
    reader.join(timeout=30)
    assert found == ["line\n"]
    assert stat.S_ISFIFO(pipe.stat().st_mode)


def test_a_full_device_is_named_and_stays_a_device():
    with pytest.raises(OSError, match="No space left on device") as error, output_file("/dev/full") as file:
        file.write("x")
    assert error.value.filename == "/dev/full"
    assert stat.S_ISCHR(os.stat("/dev/full").st_mode)


@pytest.mark.parametrize("place", ["folder", "missing/out.txt", "file/out.txt"])
def test_places_where_no_file_can_be(tmp_path, place):
    (tmp_path / "folder").mkdir()
    (tmp_path / "file").write_text("old")
    with pytest.raises(OSError, match=r"Is a directory|No such file|Not a directory") as error:
        output_file(tmp_path / place).__enter__()
    assert error.value.filename
    assert names(tmp_path) == ["file", "folder"]


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write anywhere")
def test_a_file_that_may_not_be_written_is_not_replaced(tmp_path):
    path = tmp_path / "out.txt"
    path.write_text("old")
    path.chmod(0o400)
    with pytest.raises(PermissionError):
        output_file(path).__enter__()


def test_json_is_replaced_as_a_whole(tmp_path):
    files.write_json(tmp_path / "a.json", {"ä": 1})
    with pytest.raises(TypeError):
        files.write_json(tmp_path / "a.json", {"ä": object()})
    assert json.loads((tmp_path / "a.json").read_text(encoding="utf-8")) == {"ä": 1}
    assert names(tmp_path) == ["a.json"]


# Folders.


def write(path, overwrite=False, content="new"):
    with new_folder(path, overwrite) as temporary:
        (temporary / "deep").mkdir()
        (temporary / "deep" / "file").write_text(content)


def test_a_folder_appears_when_it_is_complete(tmp_path):
    path = tmp_path / "a" / "b"
    with new_folder(path) as temporary:
        (temporary / "file").write_text("new")
        assert not path.exists()
    assert names(path) == [MANIFEST, "file"]
    assert json.loads((path / MANIFEST).read_text())["files"] == {"file": sha256(b"new").hexdigest()}
    assert names(tmp_path / "a") == ["b"]


def test_a_folder_that_is_not_finished_leaves_the_old_one(tmp_path):
    path = tmp_path / "a"
    write(path, content="old")
    with pytest.raises(KeyboardInterrupt), new_folder(path, overwrite=True) as temporary:
        (temporary / "file").write_text("new")
        raise KeyboardInterrupt
    assert (path / "deep" / "file").read_text() == "old"
    assert names(tmp_path) == ["a"]


def test_a_folder_replaces_one_that_was_written_here(tmp_path):
    path = tmp_path / "a"
    write(path, content="old")
    with pytest.raises(FileError, match=r"exists: it is not replaced by default\. Replace it with --overwrite"):
        write(path)
    assert (path / "deep" / "file").read_text() == "old"
    write(path, overwrite=True)
    assert (path / "deep" / "file").read_text() == "new"
    assert names(tmp_path) == ["a"]


def test_an_empty_folder_may_be_there(tmp_path):
    write(tmp_path)
    assert (tmp_path / "deep" / "file").read_text() == "new"


@pytest.mark.parametrize("overwrite", [False, True])
@pytest.mark.parametrize(
    "manifest",
    [
        *(None, "{}", "[1]", "not JSON", '{"made_by": "me", "files": ["deep/thesis.txt"]}'),
        *(f'{{"made_by": "keras_transformer", "files": {files}}}' for files in ("[]", "3", "[{}]", "[3]")),
    ],
)
def test_nothing_of_anybody_else_is_replaced(tmp_path, overwrite, manifest):
    path = tmp_path / "a"
    (path / "deep").mkdir(parents=True)
    (path / "deep" / "thesis.txt").write_text("years of work")
    if manifest:
        (path / MANIFEST).write_text(manifest)
    with pytest.raises(FileError, match="no export wrote deep/thesis.txt" if overwrite else "Choose another --output"):
        write(path, overwrite)
    assert (path / "deep" / "thesis.txt").read_text() == "years of work"
    assert names(tmp_path) == ["a"]


def test_what_somebody_has_put_into_an_export_is_kept(tmp_path):
    path = tmp_path / "a"
    write(path)
    (path / "deep" / "notes.txt").write_text("mine")
    (path / "link").symlink_to("/")
    assert foreign_files(path) == ["deep/notes.txt", "link"]
    with pytest.raises(FileError, match=r"no export wrote deep/notes\.txt"):
        write(path, overwrite=True)
    (path / "deep" / "notes.txt").unlink()
    (path / "link").unlink()
    write(path, overwrite=True)


def test_a_folder_that_is_not_as_it_was_written_is_an_error(tmp_path):
    path = tmp_path / "a"
    write(path)
    assert check_unchanged(path)["made_by"] == "keras_transformer"
    manifest, file = (path / MANIFEST).read_text(), path / "deep" / "file"
    cases = {
        "a is not an export: it has no export.json": lambda: (path / MANIFEST).unlink(),
        "a has no hashes of its files: an earlier": lambda: (path / MANIFEST).write_text(
            '{"made_by": "keras_transformer", "bytes": 3, "files": ["deep/file"]}'
        ),
        r"a are not those of the export: deep/file has changed\. Export": lambda: file.write_text("old"),
        r"export: deep/file is missing, and 1 more\. Export": lambda: file.rename(path / "other"),
        r"export: link was added\. Export": lambda: (path / "link").symlink_to("deep"),
    }
    for message, change in cases.items():
        change()
        with pytest.raises(FileError, match=message):
            check_unchanged(path)
        for left in ("link", "other"):
            (path / left).unlink(missing_ok=True)
        (path / MANIFEST).write_text(manifest)
        file.write_text("new")
    check_unchanged(path)


def test_a_folder_of_an_earlier_version_is_replaced(tmp_path):
    """Its manifest lists names only."""
    path = tmp_path / "a"
    write(path, content="old")
    (path / MANIFEST).write_text('{"made_by": "keras_transformer", "bytes": 3, "files": ["deep/file"]}')
    write(path, overwrite=True)
    assert check_unchanged(path) and (path / "deep" / "file").read_text() == "new"


def test_a_file_is_not_replaced_by_a_folder(tmp_path):
    (tmp_path / "a").write_text("old")
    for overwrite in (False, True):
        with pytest.raises(FileError, match="/a is a file, and a folder is to be written there"):
            write(tmp_path / "a" / "1", overwrite=overwrite)
        with pytest.raises(FileError, match="a is a file, and a folder is to be written there"):
            write(tmp_path / "a", overwrite)
    assert (tmp_path / "a").read_text() == "old"


def test_a_link_to_a_folder_stays(tmp_path):
    write(tmp_path / "a", content="old")
    (tmp_path / "link").symlink_to("a")
    write(tmp_path / "link", overwrite=True)
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "a" / "deep" / "file").read_text() == "new"


def test_two_processes_do_not_write_one_folder(tmp_path):
    with new_folder(tmp_path / "a"), pytest.raises(FileError, match="is being written by another process"):
        write(tmp_path / "a")
    assert names(tmp_path) == ["a"]


def test_what_appears_meanwhile_is_kept(tmp_path):
    path = tmp_path / "a"
    with pytest.raises(FileError, match="exists"), new_folder(path):
        path.mkdir()
        (path / "thesis.txt").write_text("years of work")
    assert (path / "thesis.txt").read_text() == "years of work"
    assert names(tmp_path) == ["a"]


def test_a_kill_between_the_renames_loses_nothing(tmp_path):
    write(tmp_path / "a", content="old")
    (tmp_path / "a").rename(tmp_path / ".replaced-a")
    (tmp_path / ".writing-a").mkdir()
    with pytest.raises(FileError, match="exists"):
        write(tmp_path / "a")
    assert (tmp_path / "a" / "deep" / "file").read_text() == "old"
    write(tmp_path / "a", overwrite=True)
    assert names(tmp_path) == ["a"]


def test_a_full_disk_is_named(tmp_path):
    with pytest.raises(FileError, match=r"Cannot write to .*a: No space left on device\."), new_folder(tmp_path / "a"):
        raise OSError(28, "No space left on device")
    assert names(tmp_path) == []


# Caches.


def test_a_cached_folder_is_written_once_and_again_when_something_of_it_is_missing(tmp_path):
    path, times = tmp_path / "cache" / "a", []

    def write(folder):
        assert names(folder) == []
        (folder / "file").write_text("whole")
        times.append("written")

    damages = [
        lambda: None,
        lambda: (path / "file").unlink(),
        lambda: (path / "file").write_text("who"),  # The end of a copy is missing.
        lambda: (path / "file").write_text("while"),
        lambda: (path / "file").unlink() or (path / MANIFEST).unlink(),
        lambda: path.rename(tmp_path / "elsewhere"),
    ]
    for count, damage in enumerate(damages, start=1):
        damage()
        for _ in range(2):
            assert cached_folder(path, write) == path
            assert (path / "file").read_text() == "whole"
        assert len(times) == count
    assert names(tmp_path / "cache") == ["a"]


def test_a_cached_folder_with_something_of_anybody_else_is_kept(tmp_path):
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "thesis.txt").write_text("years of work")
    with pytest.raises(FileError, match=r"no export wrote thesis\.txt"):
        cached_folder(tmp_path / "a", lambda folder: None)
    assert (tmp_path / "a" / "thesis.txt").read_text() == "years of work"


def test_a_cached_folder_that_is_not_finished_is_not_there(tmp_path):
    def write(folder):
        (folder / "file").touch()
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        cached_folder(tmp_path / "a", write)
    assert names(tmp_path) == []


def test_what_killed_processes_have_left_in_a_cache_is_removed(tmp_path):
    (tmp_path / ".writing-older" / "deep").mkdir(parents=True)
    (tmp_path / ".writing-a").mkdir()
    cached_folder(tmp_path / "a", lambda folder: (folder / "file").touch())
    assert names(tmp_path) == ["a"]


@pytest.mark.parametrize("home", ["elsewhere", "", None])
def test_the_cache_is_in_the_folder_of_keras(home, tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("KERAS_HOME", raising=False)
    if home is not None:
        monkeypatch.setenv("KERAS_HOME", home and str(tmp_path / home))
    assert cache_folder("page", "x") == tmp_path / (home or ".keras") / "keras_transformer" / "page" / "x"
