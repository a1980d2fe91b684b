"""The command line: `python -m keras_transformer COMMAND`; see `--help`."""

import argparse
import functools
import os
import sys

from keras_transformer.commands import commands
from keras_transformer.commands.flags import FlagParser, add_flags, file_stamp, user_errors
from keras_transformer.training.config import CLEANING, FAMILIES, PICTURES, PICTURES_WITHOUT_RUN, PRESETS


def main(argv=None):
    argv = sys.argv[1:] if argv is None else argv
    if argv[:1] == ["train"]:  # train_keras.py parses its own flags.
        import train_keras

        return train_keras.main(argv[1:])
    if not argv:
        parser().print_help(sys.stderr)
        return 2
    arguments = parser().parse_args(argv)
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
    function, output = arguments.function, vars(arguments).get("output")
    one_file = output and function is not commands.plot and (not os.path.exists(output) or os.path.isfile(output))
    before = one_file and file_stamp(output)

    def hint():
        if one_file and file_stamp(output) == before:
            return f"{output} was not changed."
        return "Go on with the same command and --resume." if function is commands.distill else ""

    with user_errors(hint):
        return function(arguments)


def parser():
    """The parser of all commands but `train`."""
    top = FlagParser(prog="python -m keras_transformer", description="A Transformer that translates.")
    among = top.add_subparsers(title="commands", metavar="COMMAND", required=True)
    command = functools.partial(_command, among)
    among.add_parser("train", help="train a translator (the same as train_keras.py)", add_help=False)
    one = command("launch", commands.launch, "run a training script as several workers on this machine")
    one.add_argument("--workers", type=_positive, default=2, metavar="N", help="processes (default: 2)")
    one.add_argument("script", help="such as train_keras.py")
    one.add_argument("arguments", nargs=argparse.REMAINDER, help="its flags, such as --strategy multi_worker")
    _clean_flags(command("clean", commands.clean, "leave out pairs of a corpus that are probably no translations"))
    _import_flags(command("import", commands.import_, "make a run of a public model, such as OPUS-MT"))
    _distill_flags(command("distill", commands.distill, "train a small, fast student on what a teacher translates"))
    _translate_flags(command("translate", commands.translate, "translate a file, a pipe, or what you type"))
    _score_flags(command("score", commands.score, "score a run with sacreBLEU (BLEU and chrF)"))
    _shortlist_flags(command("shortlist", commands.shortlist, "find the target tokens that each sentence may need"))
    _plot_flags(command("plot", commands.plot, "draw positions, masks, attention, training and search"))
    _explore_flags(command("explore", commands.explore, "write a page that shows what every attention head looks at"))
    _report_flags(command("report", commands.report, "compare runs and their exports: quality, time and size"))
    one = among.add_parser("export", help="export a run for deployment", description="Export a run for deployment.")
    _export_targets(one.add_subparsers(title="targets", metavar="TARGET", required=True))
    return top


def _command(among, name, function, help):
    one = among.add_parser(name, help=help, description=help[0].upper() + help[1:] + ".")
    one.set_defaults(function=function)
    return one


def _clean_flags(one):
    one.add_argument("source", help="text, one sentence per line, plain or .gz")
    one.add_argument("target", help="its translation, line by line")
    for side in ("source", "target"):
        one.add_argument(f"--output-{side}", required=True, metavar="FILE", help=f"file for the {side}s that are kept")
    add_flags(one, "data", only=(*CLEANING, "workers"))


def _import_flags(one):
    one.add_argument(
        "family",
        choices=tuple(FAMILIES),
        metavar="FAMILY",
        help="opus-mt: any Marian model; m2m-100 or nllb: models of many languages",
    )
    one.add_argument(
        "folder", help="folder of transformers (config.json, ...) or of a Marian release (decoder.yml, ...)"
    )
    for side, more in (("source", "the language of all sources"), ("target", "the language to translate into")):
        one.add_argument(
            f"--{side}-language", metavar="CODE", help=f"for m2m-100 and nllb: {more}, such as en or eng_Latn"
        )
    one.add_argument("--run-dir", required=True, metavar="DIR", help="run folder to write, such as runs/opus-en-de")
    one.add_argument("--overwrite", action="store_true", help="replace the run in the run folder")
    one.add_argument(
        "--trim-vocabulary",
        action="store_true",
        help="source and target get vocabularies of their own, with only the pieces that each can have",
    )
    for side in ("source", "target"):
        one.add_argument(
            f"--trim-{side}", metavar="FILE", help=f"text of the {side}: keep only the pieces that it needs"
        )


def _distill_flags(one):
    one.usage = "%(prog)s TEACHER [TEACHER ...] --run-dir DIR [FLAGS]"
    one.add_argument("teachers", nargs="+", metavar="TEACHER", help="run folder; several translate as an ensemble")
    one.add_argument("--run-dir", required=True, metavar="DIR", help="run folder of the student to write")
    one.add_argument("--preset", default="mobile", help=f"size of the student: {', '.join(PRESETS)} (default: mobile)")
    one.add_argument("--source", metavar="FILE", help="text to translate (default: the teacher's training text)")
    one.add_argument(
        "--reference", metavar="FILE", help="its translation, line by line, if there is one (default: that of the text)"
    )
    one.add_argument(
        "--text-dir", metavar="DIR", help="folder for the teacher's translations (default: RUN-DIR with -text behind)"
    )
    one.add_argument(
        "--translations", metavar="FILE", help="translations that were made elsewhere, such as with bulk, line by line"
    )
    one.add_argument("--num-hypotheses", type=_positive, metavar="N", help="translations per line to select from")
    one.add_argument(
        "--select",
        choices=("best", "chrf", "bleu", "all"),
        help="which to train with: the most probable one, the nearest to the reference, or all (default: best; chrf "
        "with --num-hypotheses and references)",
    )
    one.add_argument("--teacher-beams", type=_positive, metavar="N", help="beams of the teacher (default: its own)")
    one.add_argument(
        "--drop-worst",
        type=float,
        default=0.0,
        metavar="X",
        help="share of the translations with the lowest scores that is left out (default: 0)",
    )
    one.add_argument(
        "--real-weight",
        type=float,
        default=1.0,
        metavar="W",
        help="how often people's translations come in a pass; 0 for none (default: 1)",
    )
    one.add_argument(
        "--direction",
        choices=("forward", "backward"),
        default="forward",
        help="backward: the teacher translates target text into sources, which get the tag <BT> (default: forward)",
    )
    one.add_argument("--resume", action="store_true", help="continue what was begun with the same flags")
    one.add_argument("--overwrite", action="store_true", help="replace the run in the run folder")
    one.add_argument("--no-export", action="store_true", help="write no exports and no report at the end")
    add_flags(one, "data", "tokenizer", "model", "training", "decoding")


def _search_flags(one):
    one.usage = "%(prog)s RUN [FLAGS]"
    one.add_argument("run", help="folder of a trained run, such as runs/phrasebook-tiny")
    add_flags(one, "decoding")
    _language_flag(one)


def _language_flag(one):
    one.add_argument(
        "--target-language",
        metavar="CODE",
        help="for a model of several directions (default: the target of its first direction)",
    )


def _ensemble_flag(one):
    one.add_argument(
        "--ensemble",
        nargs="+",
        default=[],
        metavar="RUN",
        help="more runs of the same vocabulary that translate with it",
    )


def _translate_flags(one):
    _search_flags(one)
    _ensemble_flag(one)
    one.add_argument(
        "--input", metavar="FILE", help="text, one sentence per line, plain or .gz (default: standard input)"
    )
    one.add_argument("--output", metavar="FILE", help="file for the translations (default: standard output)")
    one.add_argument("--num-hypotheses", type=_positive, default=1, metavar="N", help="best translations per line")
    one.add_argument("--scores", action="store_true", help="write the score and a tab before every translation")
    one.add_argument(
        "--confidence",
        action="store_true",
        help="write the share of words that are probably right, from 0 to 1, and a tab before every translation",
    )
    one.add_argument(
        "--alignments",
        action="store_true",
        help="write a tab and source-target pairs of token indices after every translation",
    )
    one.add_argument("--prefix", type=_text, metavar="TEXT", help="text that every translation must begin with")
    one.add_argument(
        "--document",
        action="store_true",
        help="translate the input as one text: split it into sentences, keep line breaks and bullets",
    )
    one.add_argument(
        "--format",
        choices=("text", "html", "xml"),
        default="text",
        help="html or xml: translate a document and keep its markup (default: text)",
    )
    one.add_argument(
        "--glossary",
        metavar="FILE",
        help="terms that are always translated in the same way: a term, a tab and its translation in every line",
    )


def _score_flags(one):
    _search_flags(one)
    _ensemble_flag(one)
    one.add_argument("--source", metavar="FILE", help="text to translate (default: the run's test set)")
    one.add_argument("--reference", metavar="FILE", help="its translation, line by line")
    one.add_argument("--output", metavar="FILE", help="file for the translations (default: none)")
    one.add_argument("--bleu-tokenize", metavar="NAME", help="sacreBLEU's tokenizer (default: the run's)")
    one.add_argument(
        "--log-probs", metavar="FILE", help="file for the model's log probabilities of each reference and its tokens"
    )
    one.add_argument(
        "--confidence", action="store_true", help="print how well the confidence of words tells right from wrong ones"
    )
    one.add_argument(
        "--calibrate",
        action="store_true",
        help="fit the confidence to this text and store it in the run, as training does with the validation text",
    )


def _shortlist_flags(one):
    one.add_argument("run", help="folder of a trained run; shortlist.npz is written into it")
    one.add_argument("--source", metavar="FILE", help="text to align (default: the run's training text)")
    one.add_argument("--target", metavar="FILE", help="its translation, line by line")


def _plot_flags(one):
    one.add_argument("kind", choices=(*PICTURES, "all"), help=f"one of: {', '.join(PICTURES)}, all", metavar="KIND")
    one.add_argument("run", nargs="?", help=f"folder of a trained run (not for {', '.join(PICTURES_WITHOUT_RUN)})")
    one.add_argument(
        "--text", type=_text, help="the sentence that the pictures show (default: one of the run's test set)"
    )
    _language_flag(one)
    one.add_argument("--output", default="pictures", metavar="DIR", help="folder for the pictures (default: pictures)")
    one.add_argument("--format", default="png", choices=("png", "svg", "pdf"), help="(default: png; animations: gif)")


def _explore_flags(one):
    one.add_argument("run", help="folder of a trained run, such as runs/phrasebook-tiny")
    one.add_argument(
        "--text", type=_text, action="append", help="a sentence; can be repeated (default: five of the test set)"
    )
    _language_flag(one)
    one.add_argument("--input", metavar="FILE", help="file of sentences, one per line")
    one.add_argument("--output", metavar="FILE", help="the page (default: RUN/explorer.html)")


def _report_flags(one):
    one.add_argument(
        "runs", nargs="+", metavar="RUN", help="folder of a trained run; several with commas between are an ensemble"
    )
    one.add_argument(
        "--text",
        nargs=2,
        action="append",
        metavar=("SOURCE", "REFERENCE"),
        help="test text; can be repeated (default: the test texts of the last run)",
    )
    one.add_argument(
        "--browser", action="store_true", help="measure the page, too; needs Chromium and pip install playwright"
    )
    one.add_argument("--output", metavar="DIR", help="folder to write (default: report/ in the last run)")


def _export_targets(targets):
    def target(name, help, overwrite, quantized=False):
        where = f"{name}, or {name}-TYPE with --quantize" if quantized else name
        one = _command(targets, name, commands.export, help)
        one.set_defaults(target=name, quantized=quantized)
        _search_flags(one)
        one.add_argument("--output", metavar="DIR", help=f"folder to write (default: RUN/export/{where})")
        one.add_argument("--overwrite", action="store_true", help=overwrite)
        return one

    def lengths(one):
        for side in ("source", "target"):
            help = f"maximum number of tokens of a {side}, the end token included (default: 64)"
            one.add_argument(f"--{side}-length", type=_positive, default=64, metavar="N", help=help)

    replace_newest = "replace the newest version instead of adding one"
    one = target("saved_model", "a SavedModel for TensorFlow Serving", replace_newest)
    one.add_argument(
        "--num-hypotheses",
        type=_positive,
        metavar="K",
        help="hypotheses that `translate_nbest` returns (default: the number of beams)",
    )
    one.add_argument(
        "--jit-compile", action="store_true", help="let XLA compile the search; the server must be started with XLA"
    )
    one = target("ctranslate2", "a model folder for CTranslate2", "replace an earlier export", quantized=True)
    one.add_argument("--quantize", default="float32", metavar="TYPE", help="how weights are stored, such as int8")

    one = target("tflite", "TFLite files for devices", "replace an earlier export", quantized=True)
    one.add_argument(
        "--quantize",
        default="none",
        metavar="TYPE",
        help="none (float32), float16, int8 (dynamic range) or int8-per-channel (larger; for models that lose quality "
        "with int8) (default: none)",
    )
    one.add_argument(
        "--text-file",
        action=argparse.BooleanOptionalAction,
        help="also write translator_text.tflite, which takes and returns strings (default: only for unigram)",
    )
    lengths(one)

    one = target("web", "a web page that translates in the browser", "replace an earlier export")
    one.add_argument(
        "--quantize",
        nargs="+",
        default=["none", "int8"],
        metavar="TYPE",
        help="models to choose from on the page: none (float32), float16, int8 (default: none int8)",
    )
    lengths(one)
    one.add_argument("--serve", action="store_true", help="serve the page on 127.0.0.1 until Ctrl-C")
    one.add_argument("--port", type=int, default=8000, metavar="N", help="port of --serve (default: 8000)")

    one = _command(targets, "verify", commands.verify, "compare an export with the run it was made from")
    one.add_argument("path", help="folder of an export; of a SavedModel the version folder, RUN/export/saved_model/1")
    one.add_argument("run", help="folder of the trained run")


def _positive(text):
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError(f"must be at least 1, not {number}")
    return number


def _text(text):
    try:
        text.encode()
    except UnicodeEncodeError as error:  # Python keeps bytes that are not UTF-8 as surrogates.
        raise argparse.ArgumentTypeError(f"must be UTF-8, not {os.fsencode(text)!r}") from error
    return text


if __name__ == "__main__":
    sys.exit(main())
