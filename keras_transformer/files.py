"""Files and folders that appear complete or not at all, and the rules for what may be replaced.

A file that a command writes replaces a regular file of that name, as `>` in a shell does, but only when it is complete.
A folder that a command writes replaces only a folder that such a command wrote and that contains nothing else. Each of
these folders has a list of its files with their hashes, `MANIFEST`.
"""

import contextlib
import errno
import hashlib
import io
import json
import logging
import os
import re
import shutil
import stat
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import IO, Any

try:
    import fcntl
except ImportError:  # Windows, where nothing is locked.
    fcntl = None

logger = logging.getLogger(__name__)

# A file in every folder that `new_folder` wrote: the names of its files and their SHA-256, and facts about the folder.
MANIFEST = "export.json"
README = "README.md"
# The last line of a README. With another hash, somebody changed it.
_MARK = re.compile(r"<!-- Written by keras_transformer: ([0-9a-f]{12}) -->\n\Z")
# Paths of files that this process already has open: they are written to, not replaced.
_OPEN_FILES = ("/dev/stdout", "/dev/stderr", "/dev/fd/", "/proc/")


class FileError(ValueError):
    """A file or folder that cannot be written or may not be replaced."""


class InputError(ValueError):
    """Something that is read cannot be used. Whatever its cause, it is no error of a file that is written meanwhile."""


class BusyError(FileError):
    """A folder that another process writes."""


@contextlib.contextmanager
def output_file(path: str | Path, mode: str = "w") -> Iterator[IO]:
    """A file that appears, complete, when the block ends without an error; otherwise the old file stays.

    A regular file keeps its mode. A link stays, and its target is replaced. /dev/stdout and everything that is not a
    regular file, such as a device or a named pipe, is written to directly.

    Args:
        path: the file's path.
        mode: `"w"` for UTF-8 text or `"wb"`. Defaults to `"w"`.

    Yields:
        The open file.

    Raises:
        OSError: the file cannot be written; the error names the file.
    """
    path = Path(path)
    real = Path(os.path.realpath(path))
    try:
        old = real.stat()
    except FileNotFoundError:
        old = None
    is_regular = old is None or stat.S_ISREG(old.st_mode)
    if str(path).startswith(_OPEN_FILES) or not is_regular:
        with _opened(_NamedFile(path, path, "a" if is_regular else "w"), mode) as file:
            yield file
        return
    if old and not os.access(real, os.W_OK):
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(path))
    temporary = real.with_name(f".writing-{real.name}")
    with contextlib.ExitStack() as stack:
        folder = os.open(real.parent, os.O_RDONLY | os.O_DIRECTORY)
        stack.callback(os.close, folder)
        temporary.unlink(missing_ok=True)
        try:  # A file without a name vanishes when the process is killed.
            descriptor, nameless = os.open(real.parent, os.O_TMPFILE | os.O_RDWR, 0o666), True
        except OSError as error:
            if error.errno not in (errno.EOPNOTSUPP, errno.EISDIR, errno.EINVAL):  # Not every file system has them.
                raise
            descriptor, nameless = os.open(temporary, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o666), False
        stack.callback(temporary.unlink, missing_ok=True)
        if old:
            os.fchmod(descriptor, stat.S_IMODE(old.st_mode))
        with _opened(_NamedFile(descriptor, path), mode) as file:
            yield file
            file.flush()
            os.fsync(descriptor)
            if nameless:
                # With `src_dir_fd`, Python follows the link of /proc to the file; without it, it links the link itself.
                source = f"/proc/self/fd/{descriptor}"
                os.link(source, temporary.name, src_dir_fd=folder, dst_dir_fd=folder, follow_symlinks=True)
            os.replace(temporary, real)


class _NamedFile(io.FileIO):
    """A file whose write errors name it, for example on a full disk."""

    def __init__(self, file, path, mode="w"):
        super().__init__(file, mode)
        self.path = path

    def write(self, data):
        try:
            return super().write(data)
        except OSError as error:
            error.filename = str(self.path)
            raise


@contextlib.contextmanager
def _opened(raw, mode):
    file = io.BufferedWriter(raw)
    try:
        with io.TextIOWrapper(file, encoding="utf-8", newline="\n") if mode == "w" else file as opened:
            yield opened
    except Exception as error:
        _raise_cause(error, raw.path)
        raise


def _raise_cause(error, path):
    """Raises the `OSError` that caused an error: closing a file that could not be written can raise other errors."""
    cause = None if isinstance(error, InputError) else error
    while cause and not isinstance(cause, OSError):
        cause = cause.__cause__ or cause.__context__
    if cause is not None:
        raise OSError(cause.errno or 0, cause.strerror or str(cause), str(path)) from error


@contextlib.contextmanager
def output_path(path: Path) -> Iterator[Path]:
    """`output_file` for libraries that open files themselves: yields a temporary path with the same suffix."""
    temporary = path.with_name(f".writing-{path.name}")
    try:
        yield temporary
        with open(temporary, "rb") as file:
            os.fsync(file.fileno())
        os.replace(temporary, path)
    except BaseException as error:
        temporary.unlink(missing_ok=True)
        if isinstance(error, Exception):  # Not Ctrl-C.
            _raise_cause(error, path)
        raise


@contextlib.contextmanager
def full_disk_named(path: str | Path) -> Iterator[None]:
    """A context in which TensorFlow writes below `path`: its full-disk error becomes an `OSError` with the path."""
    try:
        yield
    except Exception as error:
        if isinstance(error, OSError) or os.strerror(errno.ENOSPC) not in str(error):
            raise
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(path)) from error


def cache_folder(*names: str) -> Path:
    """A folder for what can be made again, beside Keras' own: in `keras_transformer` of `$KERAS_HOME` or `~/.keras`."""
    return Path(os.environ.get("KERAS_HOME") or Path.home() / ".keras", "keras_transformer", *names)


def remove(path: Path) -> None:
    """Removes a file, a link or a whole folder; the target of a link stays."""
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink()


def write_json(path: str | Path, content: Any) -> None:
    """Writes a JSON file; a reader sees either the old or the new content."""
    with output_file(path) as file:
        file.write(json.dumps(content, indent=2, ensure_ascii=False) + "\n")


def save_readme(folder: Path, text: str) -> None:
    """Writes the README of a folder, with a mark. One that somebody changed stays."""
    path = folder / README
    if path.exists() and not is_generated(path):
        logger.info(f"{path} was changed by hand, and stays as it is.")
        return
    with output_file(path) as file:
        file.write(f"{text}<!-- Written by keras_transformer: {_digest(text)} -->\n")


def is_generated(path: Path) -> bool:
    """Whether a README is as `save_readme` wrote it."""
    text = path.read_text(encoding="utf-8", errors="replace") if path.is_file() else ""
    mark = _MARK.search(text)
    return bool(mark) and mark[1] == _digest(text[: mark.start()])


def _digest(text):
    return hashlib.sha256(text.encode()).hexdigest()[:12]


@contextlib.contextmanager
def new_folder(path: str | Path, overwrite: bool = False, facts: dict | None = None) -> Iterator[Path]:
    """A temporary folder that replaces `path` when the block ends without an error, and is removed otherwise.

    Args:
        path: the folder to write. It may exist if it is empty.
        overwrite: whether to replace a folder that this function wrote. Defaults to False.
        facts: what `MANIFEST` shall say about the folder, by name; the block may add to it. Defaults to nothing.

    Yields:
        The path of the temporary folder, which is empty.

    Raises:
        FileError: `path` cannot be written to, or has content that may not be replaced.
    """
    path = Path(os.path.realpath(path))
    temporary, old = path.with_name(f".writing-{path.name}"), path.with_name(f".replaced-{path.name}")
    try:
        if old.exists() and not path.exists():  # A process was killed between the two renames below.
            old.rename(path)
        _check_replaceable(path, overwrite)
        shutil.rmtree(old, ignore_errors=True)
        path.parent.mkdir(parents=True, exist_ok=True)
        with _working_folder(temporary):
            yield temporary
            content = {"made_by": "keras_transformer", **(facts or {}), "files": hashes(temporary)}
            write_json(temporary / MANIFEST, content)
            _check_replaceable(path, overwrite)  # Again: it may have changed while this was written.
            if path.exists():
                path.rename(old)
            temporary.rename(path)
        shutil.rmtree(old, ignore_errors=True)
    except OSError as error:
        reason = (
            error.args[0][0][2] if isinstance(error, shutil.Error) else error.strerror or error
        )  # Of the first file.
        raise FileError(f"Cannot write to {path}: {reason}.") from error


def cached_folder(path: str | Path, write: Callable[[Path], None]) -> Path:
    """A folder that is written by the first call and reused by later calls.

    If another process of this machine is writing into the same cache, this call waits for it, and for the programs that
    inherited its lock. An incomplete folder, such as an unfinished copy, is written again.

    Args:
        path: the folder. Its parent folder must contain only folders that this function wrote.
        write: a function that takes the path of an empty folder and fills it.

    Returns:
        `path`, as a `Path`.

    Raises:
        FileError: `path` cannot be written to, or has other content.
    """
    path = Path(path)
    if _is_complete(path):
        return path
    with contextlib.ExitStack() as stack:
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            lock = os.open(path.parent, os.O_RDONLY)
            stack.callback(os.close, lock)
            # Programs that `write` starts inherit the lock: they may still write after this process is killed.
            os.set_inheritable(lock, True)
            if fcntl:
                _lock(lock, fcntl.LOCK_EX)
        except OSError as error:
            raise FileError(f"Cannot write to {path}: {error.strerror}.") from error
        if not _is_complete(path):
            for left in path.parent.glob(".writing-*"):  # Left by killed processes.
                shutil.rmtree(left, ignore_errors=True)
            with new_folder(path, overwrite=True) as temporary:
                write(temporary)
    return path


@contextlib.contextmanager
def _working_folder(folder):
    """An empty folder that this process has locked; if the block fails, it is removed."""
    folder.mkdir(exist_ok=True)
    with locked(folder):
        for left in folder.iterdir():  # Left by a killed process.
            remove(left)
        try:
            yield
        except BaseException:
            shutil.rmtree(folder, ignore_errors=True)
            raise


def _lock(descriptor, operation):
    """Locks a folder, where its file system can."""
    try:
        fcntl.flock(descriptor, operation)
    except OSError as error:
        if error.errno not in (errno.EBADF, errno.ENOLCK, errno.EOPNOTSUPP):
            raise


@contextlib.contextmanager
def locked(folder: str | Path) -> Iterator[None]:
    """A context in which no other process can lock the folder.

    The folder itself is locked, which leaves no file in it and ends with the process. On systems and file systems that
    cannot lock a folder, such as Windows and NFS, nothing is locked.

    Raises:
        BusyError: another process has locked it.
    """
    if fcntl is None:
        yield
        return
    lock = os.open(folder, os.O_RDONLY)
    try:
        try:
            _lock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            raise BusyError(f"{folder} is being written by another process. Wait until it has finished.") from error
        yield
    finally:
        os.close(lock)


def _check_replaceable(path, overwrite):
    """Raises a `FileError` unless a folder may be written at `path`."""
    file = next((place for place in (path, *path.parents) if place.exists() and not place.is_dir()), None)
    if file:
        raise FileError(f"{file} is a file, and a folder is to be written there. Choose another place.")
    if not path.exists() or not any(path.iterdir()):
        return
    foreign = foreign_files(path)
    if foreign and overwrite:
        raise FileError(
            f"{path} is not replaced: only folders of exports are, and no export wrote {foreign[0]}. "
            "Choose another place, or move that folder away."
        )
    if not overwrite:
        other = "choose another --output" if foreign else "replace it with --overwrite, or choose another --output"
        raise FileError(f"{path} exists: it is not replaced by default. {other[0].upper()}{other[1:]}.")


def foreign_files(folder: str | Path) -> list[str]:
    """The files of a folder that its manifest does not list: all files, if it has no manifest."""
    folder = Path(folder)
    manifest = _manifest(folder)
    listed = {MANIFEST, *manifest["files"]} if manifest else set()
    return [name for name in _names(folder) if name not in listed]


def _names(folder):
    """The names of all files and links of a folder and of the folders in it."""
    return sorted(str(file.relative_to(folder)) for file in folder.rglob("*") if file.is_symlink() or not file.is_dir())


def hashes(folder: Path) -> dict[str, str]:
    """The SHA-256 of each file of a folder, by name, without that of `MANIFEST`."""
    return {name: sha256(folder / name) for name in _names(folder) if name != MANIFEST}


def check_unchanged(folder: str | Path) -> dict:
    """What the manifest of an exported folder says.

    Raises:
        FileError: the folder has no hashes, or its files are not those that were written.
    """
    folder = Path(folder)
    manifest = _manifest(folder)
    if manifest is None:
        raise FileError(
            f"{folder} is not an export: it has no {MANIFEST}, the list of its files. Pass the folder of an export, "
            "or of a SavedModel the version folder."
        )
    if not isinstance(manifest["files"], dict):
        raise FileError(f"{folder} has no hashes of its files: an earlier version exported it. Export it again.")
    changes = [f"{name} {what}" for name, what in _changes(folder, manifest)]
    changes += [f"{name} was added" for name in foreign_files(folder)]
    if changes:
        more = f", and {len(changes) - 1} more" if len(changes) > 1 else ""
        raise FileError(f"The files of {folder} are not those of the export: {changes[0]}{more}. Export it again.")
    return manifest


def _changes(folder, manifest):
    """Names of files of a manifest that are not as they were written, and what is different."""
    for name, digest in manifest["files"].items():
        if not (folder / name).is_file():
            yield name, "is missing"
        elif Path(name).name != README and sha256(folder / name) != digest:  # People complete a README.
            yield name, "has changed"


def sha256(path: str | Path) -> str:
    """The SHA-256 of a file, in hexadecimal digits."""
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _is_complete(folder):
    """Whether a folder has all files of its manifest, unchanged."""
    manifest = _manifest(folder)
    return bool(manifest) and isinstance(manifest["files"], dict) and not any(_changes(folder, manifest))


def _manifest(folder):
    """The content of a folder's manifest, or None if it has none."""
    try:
        content = json.loads((folder / MANIFEST).read_text(encoding="utf-8"))
        names = content["files"]
        is_own = content["made_by"] == "keras_transformer" and all(isinstance(name, str) for name in names)
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        return None
    return content if is_own else None
