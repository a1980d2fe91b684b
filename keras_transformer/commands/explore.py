"""Write a page that shows what every attention head looks at."""

import argparse
from pathlib import Path

from keras_transformer.commands.common import add_language_flag, load, text
from keras_transformer.files import output_file
from keras_transformer.training.run import Run


def add_arguments(parser: argparse.ArgumentParser) -> None:
    flag = parser.add_argument
    flag("run", help="folder of a trained run, such as runs/phrasebook-tiny")
    flag("--text", type=text, action="append", help="a sentence; can be repeated (default: five of the test set)")
    add_language_flag(parser)
    flag("--input", metavar="FILE", help="file of sentences, one per line")
    flag("--output", metavar="FILE", help="the page (default: RUN/explorer.html)")


def run(arguments: argparse.Namespace) -> int:
    from keras_transformer.text.lines import read_lines

    texts = [*(arguments.text or ()), *filter(None, read_lines(arguments.input) if arguments.input else ())]
    translator = load(arguments)
    from keras_transformer.pictures.drawing import example_sentences, explorer

    texts = texts or [source for source, _ in example_sentences(translator, 5)]
    path = Path(arguments.output or Run(arguments.run).explorer_file)
    with output_file(path) as output:
        output.write(explorer(translator, texts, f"Attention in {Path(arguments.run).name}"))
    print(path)
    return 0
