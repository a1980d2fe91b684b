"""A trained translator in the forms that other runtimes take."""

from keras_transformer.files import FileError


class ExportError(FileError):
    """An export that cannot be written."""
