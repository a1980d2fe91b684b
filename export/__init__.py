"""Exports of a trained translator for other runtimes."""

from keras_transformer.files import FileError


class ExportError(FileError):
    """An export that cannot be written."""


def check_one_model(translator):
    """Raises an `ExportError` for an `Ensemble`."""
    if not hasattr(translator.model, "decoder_blocks"):
        raise ExportError(
            "An ensemble cannot be exported: it would need the memory and the time of all its models. Received: a "
            "translator of several. Distil it into one: python -m keras_transformer distill."
        )
