"""Leave out pairs of a corpus that are probably no translations."""

import contextlib
import os
import sys

from keras_transformer.commands.common import check_outputs
from keras_transformer.commands.flags import add_flags
from keras_transformer.training.config import section_settings
from keras_transformer.training.sections import CLEANING


def add_arguments(parser):
    parser.add_argument("source", help="text, one sentence per line, plain or .gz")
    parser.add_argument("target", help="its translation, line by line")
    for side in ("source", "target"):
        parser.add_argument(
            f"--output-{side}", required=True, metavar="FILE", help=f"file for the {side}s that are kept"
        )
    add_flags(parser, "data", only=(*CLEANING, "workers"))


def run(arguments):
    """Writes the pairs of two files that are probably translations of each other, and prints a report."""
    from keras_transformer.data.cleaning import Cleaner, clean_files
    from keras_transformer.data.corpora import parallel_files
    from keras_transformer.data.encoding import Progress
    from keras_transformer.data.storage import report
    from keras_transformer.training.sections import DataConfig

    names = *CLEANING, "workers"
    data = DataConfig(**section_settings("data", {name: vars(arguments)[name] for name in names if name in arguments}))
    text, outputs = (
        parallel_files(arguments.source, arguments.target),
        (arguments.output_source, arguments.output_target),
    )
    if os.path.realpath(outputs[0]) == os.path.realpath(outputs[1]):
        raise ValueError(f"--output-source and --output-target must be two files. Received: {outputs[0]} twice.")
    check_outputs(outputs, (arguments.source, arguments.target))
    workers = data.workers or os.cpu_count()
    with contextlib.redirect_stdout(sys.stderr):  # An output may be /dev/stdout.
        kept, left_out = clean_files(text, Cleaner.of(data), outputs, workers, Progress(text.name))
        dropped = sum(one.count for one in left_out.values())
        print("\n".join([f"{text.name}: {kept:,} pairs kept, {dropped:,} left out", *report(left_out)]))
    return 0
