"""Export a run for deployment."""

import argparse
import contextlib
import sys

from keras_transformer.commands.common import add_search_flags, load, positive
from keras_transformer.files import check_unchanged
from keras_transformer.training.run import Run

# Test sentences that show what quantization costs: they take a minute with a base model.
BLEU_SENTENCES = 200


def add_arguments(parser):
    targets = parser.add_subparsers(title="targets", metavar="TARGET", required=True)

    def target(name, function, help, overwrite="replace an earlier export", quantized=False):
        where = f"{name}, or {name}-TYPE with --quantize" if quantized else name
        command = targets.add_parser(name, help=help, description=help[0].upper() + help[1:] + ".")
        command.set_defaults(function=function, target=name)
        add_search_flags(command)
        command.add_argument("--output", metavar="DIR", help=f"folder to write (default: RUN/export/{where})")
        command.add_argument("--overwrite", action="store_true", help=overwrite)
        return command

    def add_lengths(command):
        for side in ("source", "target"):
            help = f"maximum number of tokens of a {side}, the end token included (default: 64)"
            command.add_argument(f"--{side}-length", type=positive, default=64, metavar="N", help=help)

    replace_newest = "replace the newest version instead of adding one"
    command = target("saved_model", saved_model, "a SavedModel for TensorFlow Serving", replace_newest)
    command.add_argument(
        "--num-hypotheses",
        type=positive,
        metavar="K",
        help="hypotheses that `translate_nbest` returns (default: the number of beams)",
    )
    command.add_argument(
        "--jit-compile", action="store_true", help="let XLA compile the search; the server must be started with XLA"
    )

    command = target("ctranslate2", ctranslate2, "a model folder for CTranslate2", quantized=True)
    command.add_argument("--quantize", default="float32", metavar="TYPE", help="how weights are stored, such as int8")

    command = target("tflite", tflite, "TFLite files for devices", quantized=True)
    command.add_argument(
        "--quantize",
        default="none",
        metavar="TYPE",
        help="none (float32), float16, int8 (dynamic range) or int8-per-channel (larger; for models that lose quality "
        "with int8) (default: none)",
    )
    command.add_argument(
        "--text-file",
        action=argparse.BooleanOptionalAction,
        help="also write translator_text.tflite, which takes and returns strings (default: only for unigram)",
    )
    add_lengths(command)

    command = target("web", web, "a web page that translates in the browser")
    command.add_argument(
        "--quantize",
        nargs="+",
        default=["none", "int8"],
        metavar="TYPE",
        help="models to choose from on the page: none (float32), float16, int8 (default: none int8)",
    )
    add_lengths(command)
    command.add_argument("--serve", action="store_true", help="serve the page on 127.0.0.1 until Ctrl-C")
    command.add_argument("--port", type=int, default=8000, metavar="N", help="port of --serve (default: 8000)")

    help = "compare an export with the run it was made from"
    command = targets.add_parser("verify", help=help, description=help[0].upper() + help[1:] + ".")
    command.set_defaults(function=verify)
    command.add_argument(
        "path", help="folder of an export; of a SavedModel the version folder, RUN/export/saved_model/1"
    )
    command.add_argument("run", help="folder of the trained run")


def _folder(arguments, quantize="none"):
    return arguments.output or Run(arguments.run).export_folder(arguments.target, quantize)


def saved_model(arguments):
    translator = load(arguments)
    from keras_transformer.export.saved_model import export_saved_model

    settings = arguments.overwrite, arguments.num_hypotheses, arguments.jit_compile
    print(export_saved_model(translator, _folder(arguments), *settings))
    return 0


def ctranslate2(arguments):
    translator = load(arguments)
    from keras_transformer.export.ctranslate2 import export_ctranslate2

    folder = _folder(arguments, arguments.quantize)
    print(export_ctranslate2(translator, folder, arguments.quantize, arguments.overwrite))
    return 0


def tflite(arguments):
    translator = load(arguments)
    from keras_transformer.export.tflite import export_tflite

    folder, settings = _folder(arguments, arguments.quantize), (arguments.quantize, arguments.overwrite)
    lengths = arguments.source_length, arguments.target_length
    folder, same = export_tflite(translator, folder, *settings, *lengths, arguments.text_file)
    print_loss_by_quantization(arguments.quantize, same, folder, translator, arguments.run)
    print(folder)
    return 0


def web(arguments):
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


def verify(arguments):
    check_unchanged(arguments.path)  # Before the model is loaded, which takes seconds.
    translator = load(arguments)
    from keras_transformer.export import verify

    for folder, same, line in verify.verify(arguments.path, translator):
        print_loss_by_quantization(folder.name, same, folder, translator, arguments.run)
        print(line)
    return 0


def print_loss_by_quantization(name, same, folder, translator, run):
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
    bleu = tflite_bleu(folder, translator, test.pairs[:BLEU_SENTENCES], data.sacrebleu_tokenizer())
    print(
        f"{name}: BLEU {bleu[0]:.1f}, Python {bleu[1]:.1f}, {bleu[0] - bleu[1]:+.1f} "
        f"({min(BLEU_SENTENCES, len(test.pairs))} sentences of {test.name})",
        file=sys.stderr,
    )
