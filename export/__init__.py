"""Exports of a trained translator for other runtimes."""

from keras_transformer.files import FileError


class ExportError(FileError):
    """An export that cannot be written."""
