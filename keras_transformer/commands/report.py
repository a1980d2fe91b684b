"""Compare runs and their exports: quality, time and size."""

import argparse
from pathlib import Path

from keras_transformer.training.run import Run


def add_arguments(parser: argparse.ArgumentParser) -> None:
    flag = parser.add_argument
    flag("runs", nargs="+", metavar="RUN", help="folder of a trained run; several with commas between are an ensemble")
    help = "test text; can be repeated (default: the test texts of the last run)"
    flag("--text", nargs=2, action="append", metavar=("SOURCE", "REFERENCE"), help=help)
    flag("--browser", action="store_true", help="measure the page, too; needs Chromium and pip install playwright")
    flag("--output", metavar="DIR", help="folder to write (default: report/ in the last run)")


def run(arguments: argparse.Namespace) -> int:
    for folder in ",".join(arguments.runs).split(","):
        Run(folder).check_trained()
    from keras_transformer.export.report import write_report

    folder = Path(arguments.output or Run(arguments.runs[-1]).report_folder)
    write_report(arguments.runs, folder, arguments.text or (), arguments.browser)
    return 0
