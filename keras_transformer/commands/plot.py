"""Draw positions, masks, attention, training and search."""

import argparse
import sys
import tempfile
from pathlib import Path

from keras_transformer.commands.common import add_language_flag, load, text
from keras_transformer.files import output_file
from keras_transformer.pictures import PICTURES, PICTURES_WITHOUT_RUN


def add_arguments(parser: argparse.ArgumentParser) -> None:
    flag = parser.add_argument
    flag("kind", choices=(*PICTURES, "all"), help=f"one of: {', '.join(PICTURES)}, all", metavar="KIND")
    flag("run", nargs="?", help=f"folder of a trained run (not for {', '.join(PICTURES_WITHOUT_RUN)})")
    flag("--text", type=text, help="the sentence that the pictures show (default: one of the run's test set)")
    add_language_flag(parser)
    flag("--output", default="pictures", metavar="DIR", help="folder for the pictures (default: pictures)")
    flag("--format", default="png", choices=("png", "svg", "pdf"), help="(default: png; animations: gif)")


def run(arguments: argparse.Namespace) -> int:
    from keras_transformer.pictures.figures import empty_figure

    empty_figure()  # An error if Matplotlib is missing, before TensorFlow is loaded.
    translator, text, reference = load(arguments) if arguments.run else None, arguments.text, None
    from keras_transformer.pictures.drawing import draw, example_sentences

    kinds = PICTURES if arguments.kind == "all" else (arguments.kind,)
    if arguments.run:
        if not text:
            ((text, reference),) = example_sentences(translator, 1)
        print(f"sentence: {text}", file=sys.stderr)
    elif arguments.kind == "all":
        left_out = [kind for kind in kinds if kind not in PICTURES_WITHOUT_RUN]
        print(f"left out, they need a trained run: {', '.join(left_out)}", file=sys.stderr)
        kinds = PICTURES_WITHOUT_RUN
    folder = Path(arguments.output)
    folder.mkdir(parents=True, exist_ok=True)
    for kind in kinds:
        for name, picture in draw(kind, translator, text, reference):
            still = hasattr(picture, "savefig")
            path = folder / f"{name}.{arguments.format if still else 'gif'}"
            with output_file(path, "wb") as file:
                picture.savefig(file, format=arguments.format) if still else file.write(_animated(picture))
            print(path, flush=True)
    return 0


def _animated(picture):
    """The bytes of a GIF; Matplotlib writes animations only to files with a name."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "animation.gif"
        picture.save(path, writer="pillow")
        return path.read_bytes()


def hint(arguments: argparse.Namespace) -> str:
    return ""
