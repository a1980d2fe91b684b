"""Public models and published runs by name, from the Hugging Face hub or a compatible one (`HF_ENDPOINT`).

A name is `OWNER/NAME`, or `OWNER/NAME@REVISION` for a branch, a tag or a commit. Files lie in the hub's own cache
(`HF_HOME`), which other programs share. Without a network, or with `HF_HUB_OFFLINE=1`, only the cache is read.
"""

import hashlib
import os
import re
from collections.abc import Sequence
from pathlib import Path

from keras_transformer.files import FileError

PREFIX = "hf://"
_PART = r"[\w-][\w.-]*"
_NAME = re.compile(rf"({_PART}/{_PART})(?:@({_PART}(?:/{_PART})*))?", re.ASCII)


def is_name(text: str) -> bool:
    """Whether a text may be the name of a model, with or without `hf://` before it."""
    return bool(_NAME.fullmatch(text.removeprefix(PREFIX)))


def downloaded(name: str, files: Sequence[str], *alternatives: Sequence[str]) -> Path:
    """The folder of a model or run: what the cache lacks is downloaded, with progress.

    A download whose connection is cut usually resumes; if that fails several times, this ends with an error. Files that
    are complete are kept for the next call.

    Args:
        name: `OWNER/NAME` or `OWNER/NAME@REVISION`, with or without `hf://` before it.
        files: patterns of the files to download; a pattern may match nothing.
        *alternatives: groups of further patterns; only the first group with a match is downloaded.

    Returns:
        A folder of the cache.

    Raises:
        FileError: the name is not one; there is no such model or revision; it is not in the cache, and the hub cannot
            be reached; a file does not match the hub's checksum; the disk is full.
        ImportError: huggingface_hub is not installed.
    """
    match = _NAME.fullmatch(name.removeprefix(PREFIX))
    if not match:
        raise FileError(
            "A model of the hub must be named OWNER/NAME, or OWNER/NAME@REVISION for a branch, tag or commit. "
            f"Received: {name!r}. Copy the name from the page of the model."
        )
    try:
        from huggingface_hub import snapshot_download
    except ImportError as error:
        raise ImportError("huggingface_hub is not installed. Try: pip install huggingface_hub") from error
    repository, revision = match.groups()
    commit = revision
    for alternative in alternatives or [()]:
        patterns = [*files, *alternative]
        try:
            folder = Path(snapshot_download(repository, revision=commit, allow_patterns=patterns))
        except Exception as error:  # Of huggingface_hub, the client that it uses, and the disk: too many kinds to name.
            raise _explained(error, repository, revision) from error
        commit = folder.name  # The same one in the next round.
        if any(any(folder.glob(pattern)) for pattern in alternative):
            break
    for file in {file for pattern in patterns for file in folder.glob(pattern)}:
        _check(file, repository)
    return folder


def _check(file, repository):
    """Raises a FileError if a file does not match the hub's checksum; it is deleted, so that it is tried again.

    huggingface_hub itself compares only sizes. A file of a model is a link to a content, which the cache names by the
    checksum that the hub gave: SHA-256 for large files, that of Git for others. Where a file system has no links,
    nothing is compared.
    """
    if not file.is_symlink():
        return
    content = file.parent / os.readlink(file)
    git = hashlib.sha1(b"blob %d\0" % content.stat().st_size, usedforsecurity=False)
    make = {64: hashlib.sha256, 40: lambda: git}.get(len(content.name))
    if not make:
        return
    with open(content, "rb") as opened:
        found = hashlib.file_digest(opened, make).hexdigest()
    if found == content.name:
        return
    for path in (content.resolve(), content, file):  # The second one may be a link to a content that models share.
        path.unlink(missing_ok=True)
    raise FileError(
        f"{file.name} of {repository} must have the hub's checksum, {content.name[:12]}... "
        f"Received: {found[:12]}... The file was deleted: try again to download it."
    )


def _explained(error, repository, revision):
    """A FileError with the rule, what was received and the repair."""
    from huggingface_hub import constants, errors

    endpoint, cache = constants.ENDPOINT, constants.HF_HUB_CACHE
    received = str(error).strip().partition("\n")[0].rstrip(".")[:200]
    if isinstance(error, errors.RevisionNotFoundError):
        return FileError(
            f"The revision must be a branch, a tag or a commit of {repository}. Received: {revision}. Leave it out for "
            "the newest."
        )
    if isinstance(error, errors.GatedRepoError):
        return FileError(
            f"{repository} is only for those who accepted its conditions. Accept them at {endpoint}/{repository}, and "
            "run `hf auth login`."
        )
    if (
        isinstance(error, errors.RepositoryNotFoundError)
        or getattr(getattr(error, "response", None), "status_code", 0) == 401
    ):
        return FileError(
            f"A model must be a folder or a public model at {endpoint}. Received: {repository}. Check the name; for a "
            "private model, run `hf auth login`."
        )
    if "space left" in received or "Disk quota" in received:
        return FileError(
            f"{repository} does not fit on the disk of {cache}. Make room and try again, or set HF_HOME to a folder on "
            "another disk."
        )
    version = f" --revision {revision}" if revision else ""
    repair = "Try again: files that are complete are kept. Or"
    if constants.HF_HUB_OFFLINE:
        received, repair = "HF_HUB_OFFLINE=1, which forbids downloads", "Unset it. Or"
    return FileError(
        f"{repository} could not be downloaded from {endpoint}, and is not complete in {cache}. Received: {received}. "
        f"{repair} run `hf download {repository}{version} --local-dir "
        f"{repository.split('/')[1]}` where there is a network, and give the path of that folder."
    )
