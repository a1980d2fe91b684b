"""What several commands share: flags, the translator of a run, checks of files."""

import argparse
import contextlib
import os
import sys
from collections.abc import Iterable
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING

from keras_transformer.commands.flags import add_flags
from keras_transformer.files import output_file
from keras_transformer.text.glossary import Glossary
from keras_transformer.training.config import section_settings
from keras_transformer.training.run import Run

if TYPE_CHECKING:  # It loads Keras.
    from keras_transformer.translation.translator import Translator


def load(arguments: argparse.Namespace) -> "Translator":
    """The translator of a run. A folder without a model and wrong settings are reported before TensorFlow is loaded."""
    Run(arguments.run).check_trained()
    flags = vars(arguments)
    settings = section_settings("search", flags)
    if language := flags.get("target_language"):
        settings["target_language"] = language
    if glossary := flags.get("glossary"):
        settings["glossary"] = Glossary.load(glossary)
    # Where Matplotlib is installed, Keras imports it: half a second for nothing. `None` is Python's way to prevent it.
    sys.modules.setdefault("matplotlib.pyplot", None)
    try:
        from keras_transformer.translation.translator import Translator
    finally:
        if sys.modules["matplotlib.pyplot"] is None:
            del sys.modules["matplotlib.pyplot"]
    return Translator.load([arguments.run, *flags.get("ensemble", ())], **settings)


def check_outputs(outputs: Iterable[str | None], inputs: Iterable[str | None], runs: Iterable[str] = ()) -> None:
    """Raises an error if an output is one of the inputs, or a file of one of the runs. A path may be None."""
    files = {*map(os.path.realpath, filter(None, inputs))}
    files |= {os.path.realpath(file) for run in runs for file in Run(run).own_files()}
    if replaced := [path for path in outputs if path and os.path.realpath(path) in files]:
        raise ValueError(
            f"An output must not replace what the command reads. Received: {replaced[0]} for both. Choose another file."
        )


def open_output(path: str | None) -> AbstractContextManager:
    """Standard output, or a file that appears only when it is complete."""
    return contextlib.nullcontext(sys.stdout) if path is None else output_file(path)


def both_or_none(arguments: argparse.Namespace, first: str, second: str) -> None:
    """Raises an error if one of two flags is given without the other."""
    if bool(vars(arguments)[first]) != bool(vars(arguments)[second]):
        raise ValueError(f"--{first} and --{second} must be given together. Received: one of them.")


def add_search_flags(parser: argparse.ArgumentParser) -> None:
    parser.usage = "%(prog)s RUN [FLAGS]"
    parser.add_argument("run", help="folder of a trained run, such as runs/phrasebook-tiny")
    add_flags(parser, "search")
    add_language_flag(parser)


def add_language_flag(parser: argparse.ArgumentParser) -> None:
    help = "for a model of several directions (default: the target of its first direction)"
    parser.add_argument("--target-language", metavar="CODE", help=help)


def add_ensemble_flag(parser: argparse.ArgumentParser) -> None:
    help = "more runs of the same vocabulary that translate with it"
    parser.add_argument("--ensemble", nargs="+", default=[], metavar="RUN", help=help)


def positive(text: str) -> int:
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError(f"must be at least 1, not {number}")
    return number


def text(text: str) -> str:
    try:
        text.encode()
    except UnicodeEncodeError as error:  # Python keeps bytes that are not UTF-8 as surrogates.
        raise argparse.ArgumentTypeError(f"must be UTF-8, not {os.fsencode(text)!r}") from error
    return text
