"""Leave out pairs of a corpus that are probably no translations."""

import argparse
import contextlib
import os
import sys

from keras_transformer.commands.common import check_outputs
from keras_transformer.commands.flags import add_flags
from keras_transformer.training.config import section_settings
from keras_transformer.training.sections import CLEANING


def add_arguments(parser: argparse.ArgumentParser) -> None:
    flag = parser.add_argument
    flag("source", help="text, one sentence per line, plain or .gz")
    flag("target", help="its translation, line by line")
    for side in ("source", "target"):
        flag(f"--output-{side}", required=True, metavar="FILE", help=f"file for the {side}s that are kept")
    add_flags(parser, "data", only=(*CLEANING, "workers"))


def run(arguments: argparse.Namespace) -> int:
    """Writes the pairs of two files that are probably translations of each other, and prints a report."""
    from keras_transformer.data.cleaning import Cleaner, clean_files
    from keras_transformer.data.corpora import parallel_files
    from keras_transformer.data.encoding import Progress
    from keras_transformer.data.storage import report
    from keras_transformer.training.sections import DataConfig

    data = DataConfig(**section_settings("data", vars(arguments)))
    text = parallel_files(arguments.source, arguments.target)
    outputs = arguments.output_source, arguments.output_target
    if os.path.realpath(outputs[0]) == os.path.realpath(outputs[1]):
        raise ValueError(f"--output-source and --output-target must be two files. Received: {outputs[0]} twice.")
    check_outputs(outputs, (arguments.source, arguments.target))
    with contextlib.redirect_stdout(sys.stderr):  # An output may be /dev/stdout.
        progress = Progress(text.name)
        kept, left_out = clean_files(text, Cleaner.of(data), outputs, data.workers or os.cpu_count(), progress)
        dropped = sum(pairs.count for pairs in left_out.values())
        print("\n".join([f"{text.name}: {kept:,} pairs kept, {dropped:,} left out", *report(left_out)]))
    return 0
