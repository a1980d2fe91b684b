"""Export a run for deployment."""

import argparse
import contextlib
import sys
from pathlib import Path

from keras_transformer.commands.common import add_search_flags, load, positive
from keras_transformer.files import check_unchanged
from keras_transformer.training.run import Run

# Test sentences that show what quantization costs: they take a minute with a base model.
BLEU_SENTENCES = 200


def add_arguments(parser: argparse.ArgumentParser) -> None:
    targets = parser.add_subparsers(title="targets", metavar="TARGET", required=True)

    overwrite = "replace the newest version instead of adding one"
    flag = _add_target(targets, saved_model, "a SavedModel for TensorFlow Serving", overwrite)
    help = "hypotheses that `translate_nbest` returns (default: the number of beams)"
    flag("--num-hypotheses", type=positive, metavar="K", help=help)
    help = "let XLA compile the search; the server must be started with XLA"
    flag("--jit-compile", action="store_true", help=help)

    flag = _add_target(targets, ctranslate2, "a model folder for CTranslate2", suffix=True)
    flag("--quantize", default="float32", metavar="TYPE", help="how weights are stored, such as int8")

    flag = _add_target(targets, tflite, "TFLite files for devices", suffix=True)
    help = "none (float32), float16, int8 (dynamic range) or int8-per-channel (larger; for models that lose quality "
    flag("--quantize", default="none", metavar="TYPE", help=help + "with int8) (default: none)")
    _add_lengths(flag)

    flag = _add_target(targets, web, "a web page that translates in the browser")
    help = "models to choose from on the page: none (float32), float16, int8 (default: none int8)"
    flag("--quantize", nargs="+", default=["none", "int8"], metavar="TYPE", help=help)
    _add_lengths(flag)
    flag("--serve", action="store_true", help="serve the page on 127.0.0.1 until Ctrl-C")
    flag("--port", type=int, default=8000, metavar="N", help="port of --serve (default: 8000)")

    flag = _add_command(targets, verify, "compare an export with the run it was made from").add_argument
    flag("path", help="folder of an export; of a SavedModel the version folder, RUN/export/saved_model/1")
    flag("run", help="folder of the trained run")


def _add_command(targets, function, help):
    command = targets.add_parser(function.__name__, help=help, description=help[0].upper() + help[1:] + ".")
    command.set_defaults(function=function)
    return command


def _add_target(targets, function, help, overwrite="replace an earlier export", suffix=False):
    """Adds a target; returns the function that adds its other flags. `suffix`: its folder names the type of weights."""
    name, command = function.__name__, _add_command(targets, function, help)
    add_search_flags(command)
    where = f"{name}, or {name}-TYPE with --quantize" if suffix else name
    command.add_argument("--output", metavar="DIR", help=f"folder to write (default: RUN/export/{where})")
    command.add_argument("--overwrite", action="store_true", help=overwrite)
    return command.add_argument


def _add_lengths(flag):
    for side in ("source", "target"):
        help = f"maximum number of tokens of a {side}, the end token included (default: 64)"
        flag(f"--{side}-length", type=positive, default=64, metavar="N", help=help)


def _folder(arguments, quantize="none"):
    return arguments.output or Run(arguments.run).export_folder(arguments.function.__name__, quantize)


def saved_model(arguments: argparse.Namespace) -> int:
    translator = load(arguments)
    from keras_transformer.export.saved_model import export_saved_model

    settings = arguments.overwrite, arguments.num_hypotheses, arguments.jit_compile
    print(export_saved_model(translator, _folder(arguments), *settings))
    return 0


def ctranslate2(arguments: argparse.Namespace) -> int:
    translator = load(arguments)
    from keras_transformer.export.ctranslate2 import export_ctranslate2

    quantize = arguments.quantize
    print(export_ctranslate2(translator, _folder(arguments, quantize), quantize, arguments.overwrite))
    return 0


def tflite(arguments: argparse.Namespace) -> int:
    translator = load(arguments)
    from keras_transformer.export.tflite import export_tflite

    quantize, lengths = arguments.quantize, (arguments.source_length, arguments.target_length)
    settings = quantize, arguments.overwrite, *lengths
    folder, same = export_tflite(translator, _folder(arguments, quantize), *settings)
    print_loss_by_quantization(quantize, same, folder, translator, arguments.run)
    print(folder)
    return 0


def web(arguments: argparse.Namespace) -> int:
    translator = load(arguments)
    from keras_transformer.export.web import export_web, server

    lengths = {"source_length": arguments.source_length, "target_length": arguments.target_length}
    with contextlib.ExitStack() as stack:
        if arguments.serve:  # Before the export, which takes minutes: the port may be in use.
            site = stack.enter_context(server(_folder(arguments), arguments.port))
        folder, shares = export_web(translator, _folder(arguments), arguments.quantize, arguments.overwrite, **lengths)
        for name, same in shares.items():
            print_loss_by_quantization(name, same, folder / "models" / name, translator, arguments.run)
        print(folder, flush=True)
        if arguments.serve:
            host, port = site.server_address
            print(f"Open http://{host}:{port} in a browser. Ctrl-C ends.", file=sys.stderr, flush=True)
            with contextlib.suppress(KeyboardInterrupt):
                site.serve_forever()
    return 0


def verify(arguments: argparse.Namespace) -> int:
    check_unchanged(arguments.path)  # Before the model is loaded, which takes seconds.
    translator = load(arguments)
    from keras_transformer.export.verify import verify

    for folder, same, line in verify(arguments.path, translator):
        print_loss_by_quantization(folder.name, same, folder, translator, arguments.run)
        print(line)
    return 0


def print_loss_by_quantization(name: str, same: float, folder: Path, translator, run: str) -> None:
    """Prints how many translations quantisation changed, and what BLEU it cost."""
    from keras_transformer.data.corpora import DataError, one_test_set
    from keras_transformer.export.verify import tflite_bleu

    if same == 1:
        return
    print(f"{name}: {same:.0%} of made-up sentences are translated as in Python.", file=sys.stderr)
    try:
        data = Run(run).config().data
        test = one_test_set(data, translator.codec.target_language)
    except (DataError, OSError) as error:
        print(f"BLEU was not compared, because the test set of the run cannot be read: {error}", file=sys.stderr)
        return
    pairs = test.pairs[:BLEU_SENTENCES]
    tokenize = data.sacrebleu_tokenizer(test.target_language or translator.codec.target_language)
    bleu, python_bleu = tflite_bleu(folder, translator, pairs, tokenize)
    scores = f"BLEU {bleu:.1f}, Python {python_bleu:.1f}, {bleu - python_bleu:+.1f}"
    print(f"{name}: {scores} ({len(pairs)} sentences of {test.name})", file=sys.stderr)
