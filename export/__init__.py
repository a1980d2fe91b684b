"""Exports of a trained translator for other runtimes."""

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from keras_transformer.files import FileError

if TYPE_CHECKING:  # `run_tflite` does without Keras.
    from keras_transformer.search.settings import SearchSettings
    from keras_transformer.translation.translator import Translator


class ExportError(FileError):
    """An export that cannot be written."""


def check_exportable(translator: "Translator", settings: "SearchSettings") -> None:
    """Raises an `ExportError` for an `Ensemble`, a quantized model, and `SearchSettings` that cannot be exported."""
    if not hasattr(translator.model, "decoder_blocks"):
        raise ExportError(
            "An ensemble cannot be exported: it would need the memory and the time of all its models. Received: a "
            "translator of several. Distil it into one: python -m keras_transformer distill."
        )
    from keras_transformer.layers.private import sublayers

    modes = {layer.quantization_mode for layer in sublayers(translator.model)} - {None}
    if modes:
        raise ExportError(
            "Exports quantize the weights themselves, so they must be floats. Received: a model with layers quantized "
            f"to {', '.join(sorted(modes))}. Export the model as it was before, with quantize='int8'."
        )
    if settings.sampling:
        raise ExportError(
            "Sampling cannot be exported: an export must give the same answer each time. Received: sampling=True."
        )
    from keras_transformer.translation.learning import check_shortlist  # With Keras, which `run_tflite` does without.

    check_shortlist(settings, translator.shortlist)


def describe(
    folder: Path,
    translator: "Translator",
    use: str,
    functions: Mapping[str, Any] | None = None,
    max_length: int | None = None,
) -> None:
    """Writes the README of an export; see `keras_transformer.translation.readme.write_readme`.

    `max_length` defaults to the translator's.
    """
    from keras_transformer.translation.readme import write_readme

    max_length = max_length or translator.codec.max_source_length
    write_readme(folder, translator.run, translator.model.count_params(), max_length, use, functions)
