"""Exports of a trained translator for other runtimes."""

from keras_transformer.files import FileError


class ExportError(FileError):
    """An export that cannot be written."""


def check_exportable(translator, settings):
    """Raises an `ExportError` for an `Ensemble`, and for `SearchSettings` that cannot be exported."""
    if not hasattr(translator.model, "decoder_blocks"):
        raise ExportError(
            "An ensemble cannot be exported: it would need the memory and the time of all its models. Received: a "
            "translator of several. Distil it into one: python -m keras_transformer distill."
        )
    if settings.sampling:
        raise ExportError(
            "Sampling cannot be exported: an export must give the same answer each time. Received: sampling=True."
        )
    translator.check_shortlist(settings)
