"""The command line: `python -m keras_transformer train|translate|score|export`."""

import argparse
import contextlib
import itertools
import os
import sys
from pathlib import Path

from keras_transformer.config import user_errors

# Lines that are translated together: enough to fill batches of similar lengths, little enough to keep memory constant.
CHUNK = 2048


def main(argv=None):
    argv = sys.argv[1:] if argv is None else argv
    if argv[:1] == ["train"]:  # Its flags are train_keras.py's own.
        import train_keras

        return train_keras.main(argv[1:])
    arguments = parser().parse_args(argv)
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
    with user_errors():
        return arguments.function(arguments)


def parser():
    """The parser of all commands but `train`."""
    top = argparse.ArgumentParser(prog="python -m keras_transformer", description="A Transformer that translates.")
    commands = top.add_subparsers(title="commands", metavar="COMMAND", required=True)
    commands.add_parser("train", help="train a translator (the same as train_keras.py)", add_help=False)

    def command(name, function, help):
        one = commands.add_parser(name, help=help, description=help[0].upper() + help[1:] + ".")
        one.set_defaults(function=function)
        return one

    def search_flags(one):
        one.add_argument("run", help="folder of a trained run, such as runs/phrasebook-tiny")
        one.add_argument("--num-beams", type=_positive, metavar="N", help="beams; 1 is greedy (default: the run's)")
        one.add_argument("--length-penalty", type=float, metavar="X", help="divides scores by ((5 + length) / 6)^X")

    one = command("translate", translate, "translate a file, a pipe, or what you type")
    search_flags(one)
    one.add_argument("--input", metavar="FILE", help="text, one sentence a line, .gz too (default: standard input)")
    one.add_argument("--output", metavar="FILE", help="where the translations go (default: standard output)")
    one.add_argument("--num-hypotheses", type=_positive, default=1, metavar="N", help="best translations per line")
    one.add_argument("--scores", action="store_true", help="put the score and a tab before every translation")

    one = command("score", score, "score a run with sacreBLEU (BLEU and chrF)")
    search_flags(one)
    one.add_argument("--source", metavar="FILE", help="text to translate (default: the run's test set)")
    one.add_argument("--reference", metavar="FILE", help="its translation, line by line")
    one.add_argument("--output", metavar="FILE", help="where the translations go (default: nowhere)")

    one = command("export", export, "export a run for deployment")
    one.add_argument("target", choices=["saved_model"], help="saved_model: for TensorFlow Serving")
    search_flags(one)
    one.add_argument("--output", metavar="DIR", help="folder of the servable (default: RUN/export/saved_model)")
    one.add_argument("--overwrite", action="store_true", help="replace the newest version instead of adding one")
    return top


def _positive(text):
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError(f"must be at least 1, not {number}")
    return number


def _load(arguments):
    from keras_transformer.translator import Translator

    settings = {"num_beams": arguments.num_beams, "length_penalty": arguments.length_penalty}
    return Translator.load(arguments.run, **{key: value for key, value in settings.items() if value is not None})


def translate(arguments):
    from keras_transformer.datasets import read_lines

    lines = read_lines(arguments.input) if arguments.input else None
    translator = _load(arguments)
    with _output(arguments.output) as output:
        if lines is None and sys.stdin.isatty():
            print("Type a sentence and press Enter; Ctrl-D ends.", file=sys.stderr)
        chunks = _chunks(lines) if lines is not None else _stdin_chunks()
        for chunk in chunks:
            found = translator.translate(chunk, num_hypotheses=arguments.num_hypotheses, return_scores=True)
            for hypotheses in found:
                for hypothesis in hypotheses if arguments.num_hypotheses > 1 else [hypotheses]:
                    before = f"{hypothesis.score:.4f}\t" if arguments.scores else ""
                    print(before + hypothesis.text, file=output, flush=lines is None)
    return 0


def _chunks(lines):
    lines = iter(lines)
    while chunk := list(itertools.islice(lines, CHUNK)):
        yield chunk


def _stdin_chunks():
    """Lines of standard input: one by one from a keyboard, in chunks from a pipe."""
    if not sys.stdin.isatty():
        sys.stdin.reconfigure(encoding="utf-8")
        yield from _chunks(line.rstrip("\n") for line in sys.stdin)
        return
    with contextlib.suppress(EOFError, KeyboardInterrupt):
        while True:
            yield [input("> ")]


@contextlib.contextmanager
def _output(path):
    """Standard output, or a file that appears under its name only when it is complete."""
    if path is None:
        yield sys.stdout
        return
    path = Path(path)
    temporary = path.with_name(f".writing-{path.name}")
    with open(temporary, "w", encoding="utf-8") as file:
        yield file
    os.replace(temporary, path)


def score(arguments):
    from keras_transformer.config import DataConfig, read_config_file
    from keras_transformer.datasets import load_corpus, read_parallel
    from keras_transformer.scoring import corpus_scores

    if bool(arguments.source) != bool(arguments.reference):
        raise ValueError("--source and --reference go together. Received: one of them.")
    translator = _load(arguments)
    if arguments.source:
        text = read_parallel(arguments.source, arguments.reference)
    else:
        settings = read_config_file(Path(arguments.run) / "config.json")
        names = DataConfig.__dataclass_fields__
        text = load_corpus(DataConfig(**{key: settings[key] for key in names if key in settings})).test
    sources, references = zip(*text.pairs, strict=True)
    translations = translator.translate(sources)
    if arguments.output:
        with _output(arguments.output) as output:
            output.writelines(line + "\n" for line in translations)
    print(f"{text.name}, {len(sources):,} sentences:\n{corpus_scores(translations, references)}")
    return 0


def export(arguments):
    from keras_transformer.export.saved_model import export_saved_model

    output = arguments.output or Path(arguments.run) / "export" / "saved_model"
    print(export_saved_model(_load(arguments), output, overwrite=arguments.overwrite))
    return 0


if __name__ == "__main__":
    sys.exit(main())
