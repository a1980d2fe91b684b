"""A trained translator in the forms that other runtimes take."""

import contextlib
import os
import shutil
from pathlib import Path


class ExportError(ValueError):
    """An export that cannot be written."""


@contextlib.contextmanager
def new_folder(path, overwrite):
    """A temporary folder beside `path` that takes its place when the block ends well, and vanishes when it does not.

    Raises:
        ExportError: the place cannot be written to, or something is there and `overwrite` is False.
    """
    path = Path(path)
    if path.exists() and not overwrite:
        raise ExportError(f"{path} exists. Replace it with --overwrite, or choose another --output.")
    temporary = path.with_name(f".writing-{path.name}")
    try:
        shutil.rmtree(temporary, ignore_errors=True)
        temporary.mkdir(parents=True)
        yield temporary
        if path.exists():
            old = path.with_name(f".replaced-{path.name}")
            shutil.rmtree(old, ignore_errors=True)  # Of an export that was killed here.
            os.replace(path, old)
            os.replace(temporary, path)
            shutil.rmtree(old)
        else:
            os.replace(temporary, path)
    except OSError as error:
        raise ExportError(f"Cannot write to {path}: {error.strerror or error}.") from error
    finally:
        shutil.rmtree(temporary, ignore_errors=True)
