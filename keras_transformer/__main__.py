"""The command line: `python -m keras_transformer COMMAND`; see `--help`."""

import argparse
import contextlib
import json
import math
import os
import shlex
import socket
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

from keras_transformer.config import (
    CLEANING,
    FAMILIES,
    PICTURES,
    PICTURES_WITHOUT_RUN,
    PRESETS,
    RunConfig,
    add_flags,
    section_settings,
    user_errors,
)
from keras_transformer.files import output_file
from keras_transformer.placeholders import Glossary
from keras_transformer.runs import Run

# Pairs that are aligned for a shortlist, at most: a tiny model aligns 29,000 in a minute.
SHORTLIST_PAIRS = 100_000
# A worker notices after a time-out of TensorFlow that another one is gone. If they never connected, it waits forever.
GRACE_SECONDS = 60
# Test sentences that show what quantisation costs: they take a minute with a base model.
BLEU_SENTENCES = 200


def main(argv=None):
    argv = sys.argv[1:] if argv is None else argv
    if argv[:1] == ["train"]:  # train_keras.py parses its own flags.
        import train_keras

        return train_keras.main(argv[1:])
    arguments = parser().parse_args(argv)
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
    output = vars(arguments).get("output")
    one_file = output and arguments.function is not plot and (not os.path.exists(output) or os.path.isfile(output))
    before = one_file and _changed(output)

    def hint():
        if one_file and _changed(output) == before:
            return f"{output} was not changed."
        return "Go on with the same command and --resume." if arguments.function is distill else ""

    with user_errors(hint):
        return arguments.function(arguments)


def _changed(path):
    """When a file was written, and which one it is; None if there is none."""
    with contextlib.suppress(OSError):
        found = os.stat(path)
        return found.st_mtime_ns, found.st_ino
    return None


def parser():
    """The parser of all commands but `train`."""
    top = argparse.ArgumentParser(prog="python -m keras_transformer", description="A Transformer that translates.")
    commands = top.add_subparsers(title="commands", metavar="COMMAND", required=True)
    commands.add_parser("train", help="train a translator (the same as train_keras.py)", add_help=False)
    one = _command(commands, "launch", launch, "run a training script as several workers on this machine")
    one.add_argument("--workers", type=_positive, default=2, metavar="N", help="processes (default: 2)")
    one.add_argument("script", help="such as train_keras.py")
    one.add_argument("arguments", nargs=argparse.REMAINDER, help="its flags, such as --strategy multi_worker")
    _clean_flags(_command(commands, "clean", clean, "leave out pairs of a corpus that are probably no translations"))
    _import_flags(_command(commands, "import", import_, "make a run of a public model, such as OPUS-MT"))
    _distill_flags(_command(commands, "distill", distill, "train a small, fast student on what a teacher translates"))
    _translate_flags(_command(commands, "translate", translate, "translate a file, a pipe, or what you type"))
    _score_flags(_command(commands, "score", score, "score a run with sacreBLEU (BLEU and chrF)"))
    _shortlist_flags(_command(commands, "shortlist", shortlist, "find the target tokens that each sentence may need"))
    _plot_flags(_command(commands, "plot", plot, "draw positions, masks, attention, training and search"))
    _explore_flags(_command(commands, "explore", explore, "write a page that shows what every attention head looks at"))
    _report_flags(_command(commands, "report", report, "compare runs and their exports: quality, time and size"))
    one = commands.add_parser("export", help="export a run for deployment", description="Export a run for deployment.")
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
        help="html or xml: translate a document and keep its markup; needs lxml (default: text)",
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
        one = _command(targets, name, export, help)
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

    one = _command(targets, "verify", verify, "compare an export with the run it was made from")
    one.add_argument("path", help="version folder of a SavedModel, such as RUN/export/saved_model/1, or TFLite folder")
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


def _load(arguments):
    """The translator of a run. A folder without a model and wrong settings are reported before TensorFlow is loaded."""
    Run(arguments.run).check_trained()
    settings = section_settings("decoding", vars(arguments))
    if getattr(arguments, "target_language", None):
        settings["target_language"] = arguments.target_language
    if getattr(arguments, "glossary", None):
        settings["glossary"] = Glossary.load(arguments.glossary)
    from keras_transformer.translator import Translator

    return Translator.load([arguments.run, *getattr(arguments, "ensemble", ())], **settings)


def clean(arguments):
    """Writes the pairs of two files that are probably translations of each other, and prints a report."""
    from keras_transformer.cleaning import Cleaner, clean_files
    from keras_transformer.config import DataConfig
    from keras_transformer.datasets import parallel_files
    from keras_transformer.encoding import Progress, report

    names = *CLEANING, "workers"
    data = DataConfig(**section_settings("data", {name: vars(arguments)[name] for name in names if name in arguments}))
    text, outputs = (
        parallel_files(arguments.source, arguments.target),
        (arguments.output_source, arguments.output_target),
    )
    if os.path.realpath(outputs[0]) == os.path.realpath(outputs[1]):
        raise ValueError(f"--output-source and --output-target must be two files. Received: {outputs[0]} twice.")
    workers = data.workers or os.cpu_count()
    kept, left_out = clean_files(text, Cleaner.of(data), outputs, workers, Progress(text.name))
    dropped = sum(one.count for one in left_out.values())
    print(f"{text.name}: {kept:,} pairs kept, {dropped:,} left out")
    print("\n".join(report(left_out)))
    return 0


def import_(arguments):
    from keras_transformer.text import read_lines

    run = Run(arguments.run_dir)
    if not run.is_free():
        run.claim(arguments.overwrite)  # Before the model is read, which takes seconds; `write` does it again.
    names = arguments.trim_source, arguments.trim_target
    corpus = tuple(read_lines(name) if name else None for name in names)
    trim = arguments.trim_vocabulary or any(names)
    from keras_transformer import importing

    names = "source_language", "target_language"
    languages = {name: getattr(arguments, name) for name in names if getattr(arguments, name)}
    if languages and arguments.family == "opus-mt":
        raise importing.ModelImportError(
            "--source-language and --target-language are for m2m-100 and nllb: an OPUS-MT model has its languages, or "
            f"tags in its sources. Received: {' and '.join(languages.values())}."
        )
    imported = importing.read(arguments.family, arguments.folder, trim, corpus, **languages)
    print("\n".join(importing.report(imported)), flush=True)
    if trim:
        whole = importing.read(arguments.family, arguments.folder, **languages)
        print("\n".join(importing.trim_report(whole, imported, corpus[0])), flush=True)
    importing.write(imported, run, arguments.overwrite)
    print(f"Run folder: {run}\nTo translate with it:")
    print(f"  python -m keras_transformer translate {shlex.quote(str(run))} --input FILE")
    return 0


def distill(arguments):
    """Lets teachers translate a text, trains a student with it, exports it and compares both; all can be resumed."""
    os.environ.setdefault("TF_CPU_ALLOCATOR_USE_BFC", "true")  # As train_keras.py, before TensorFlow is imported.
    import train_keras
    from keras_transformer import distilling

    names = RunConfig().flat()
    work = distilling.Distillation(arguments, {key: value for key, value in vars(arguments).items() if key in names})
    resume = arguments.resume and work.run.config_file.is_file()
    run, config = train_keras.configure(
        work.flags, {} if resume else work.settings(), work.run.folder, resume, arguments.overwrite
    )
    if not resume:
        from keras_transformer.model import Transformer

        Transformer(8, **vars(config.model))  # Sizes that do not fit are an error now, not after hours.
        print("\n".join(work.write_text()), flush=True)
    status = train_keras.train(run, config, resume, export=not arguments.no_export)
    if status or arguments.no_export:
        return status
    from keras_transformer.export.report import write_report
    from keras_transformer.export.tflite import export_tflite
    from keras_transformer.translator import Translator

    translator = Translator.load(run.folder)
    for quantize in ("none", "int8"):
        folder, _ = export_tflite(translator, run.export_folder("tflite", quantize), quantize, overwrite=True)
        print(folder, flush=True)
    ensemble = [",".join(arguments.teachers)] if len(arguments.teachers) > 1 else []
    # A teacher that made sources translates in the other direction.
    teachers = [] if work.backward else [*ensemble, *arguments.teachers]
    write_report([*teachers, str(run)], run.report_folder)
    return 0


def report(arguments):
    for folder in ",".join(arguments.runs).split(","):
        Run(folder).check_trained()
    from keras_transformer.export.report import write_report

    folder = Path(arguments.output or Run(arguments.runs[-1]).report_folder)
    write_report(arguments.runs, folder, arguments.text or (), arguments.browser)
    return 0


def translate(arguments):
    from tqdm import tqdm

    from keras_transformer.text import Problems, lines, open_input

    if arguments.document or arguments.format != "text":
        return _translate_document(arguments)
    name = arguments.input or "standard input"
    problems, count = Problems(name), 0
    with open_input(arguments.input) as file, contextlib.ExitStack() as stack:
        translator = _load(arguments)
        output = stack.enter_context(_output(arguments.output))  # Opened only when the model is loaded.
        # disable=None: tqdm shows no bar unless standard error is a terminal.
        progress = stack.enter_context(tqdm(unit=" lines", disable=True if file.isatty() else None))
        for chunk in _typed() if file.isatty() else lines(file, name):
            translations = translator.translate(
                [line.text for line in chunk],
                num_hypotheses=arguments.num_hypotheses,
                return_scores=True,
                return_attention=arguments.alignments,
                return_confidence=arguments.confidence,
                prefixes=[arguments.prefix] * len(chunk) if arguments.prefix else None,
            )
            for line, hypotheses in zip(chunk, translations, strict=True):
                hypotheses = hypotheses if arguments.num_hypotheses > 1 else [hypotheses]
                for hypothesis in hypotheses:
                    print(_row(hypothesis, arguments), file=output)
                count += 1
                problems.add_line(count, line, hypotheses[0].truncated and translator.max_source_length)
            output.flush()
            progress.update(len(chunk))
    return int(problems.summary())


def _translate_document(arguments):
    from tqdm import tqdm

    from keras_transformer.text import read_text

    others = {"--scores": arguments.scores, "--alignments": arguments.alignments, "--prefix": arguments.prefix}
    others["--confidence"] = arguments.confidence
    others["--num-hypotheses"] = arguments.num_hypotheses > 1
    received = [name for name, given in others.items() if given]
    if received:
        name = "--document" if arguments.document else f"--format {arguments.format}"
        raise ValueError(f"{name} writes one text, so it takes none of {', '.join(others)}. Received: {received[0]}.")
    text = read_text(arguments.input)
    translator = _load(arguments)
    if arguments.format != "text":
        translate_markup = translator.translate_html if arguments.format == "html" else translator.translate_xml
        with _output(arguments.output) as output:
            output.write(translate_markup(text))
        return 0
    parts = translator.split_text(text)
    with _output(arguments.output) as output, tqdm(total=len(parts) // 2, unit=" sentences", disable=None) as progress:
        translations = []
        for translation in translator.stream_sentences(parts):
            translations.append(translation)
            progress.update()
        output.write(translator.join_text(parts, translations).text)
    return 0


def _row(translation, arguments):
    """One line of output: score, translation and alignment, separated by tabs."""
    row = [f"{translation.score:.4f}"] if arguments.scores else []
    row += [f"{translation.confidence.sentence:.2f}"] if arguments.confidence else []
    row.append(translation.text)
    if arguments.alignments:
        places = translation.attention.alignment() if translation.attention else []
        row.append(" ".join(f"{source}-{target}" for target, source in enumerate(places)))
    return "\t".join(row)


def _typed():
    from keras_transformer.text import Line

    print("Type a sentence and press Enter; Ctrl-D ends.", file=sys.stderr)
    with contextlib.suppress(EOFError, KeyboardInterrupt):
        while True:
            yield [Line(input("> "))]


def _output(path):
    """Standard output, or a file that appears only when it is complete."""
    return contextlib.nullcontext(sys.stdout) if path is None else output_file(path)


def launch(arguments):
    """Starts the workers with their `TF_CONFIG`; when one fails, the others have `GRACE_SECONDS` to end."""
    with contextlib.ExitStack() as stack:
        sockets = [stack.enter_context(socket.socket()) for _ in range(arguments.workers)]
        for one in sockets:
            one.bind(("127.0.0.1", 0))
        addresses = [f"127.0.0.1:{one.getsockname()[1]}" for one in sockets]
    processes = []
    for index in range(arguments.workers):
        config = {"cluster": {"worker": addresses}, "task": {"type": "worker", "index": index}}
        environment = {**os.environ, "TF_CONFIG": json.dumps(config), "PYTHONUNBUFFERED": "1"}
        call = [sys.executable, arguments.script, *arguments.arguments]
        processes.append(
            subprocess.Popen(call, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        )

    def show(index):
        with processes[index].stdout as lines:
            for line in lines:
                print(f"[{index}] {line}", end="", flush=True)
        if processes[index].wait():
            print(f"[{index}] ended with {processes[index].returncode}", flush=True)

    threads = [threading.Thread(target=show, args=(index,), daemon=True) for index in range(arguments.workers)]
    for thread in threads:
        thread.start()
    deadline = math.inf
    while any(thread.is_alive() for thread in threads) and time.monotonic() < deadline:
        try:
            time.sleep(0.1)
            stop = any(process.poll() for process in processes)
        except KeyboardInterrupt:  # The workers are interrupted, too, and save what they have.
            stop = True
        if stop and deadline == math.inf:
            deadline = time.monotonic() + GRACE_SECONDS
    for process in processes:
        process.kill()  # TensorFlow's workers ignore SIGTERM.
    for thread in threads:
        thread.join()
    return int(any(process.returncode for process in processes))


def score(arguments):
    from keras_transformer.datasets import load_corpus, read_parallel

    if bool(arguments.source) != bool(arguments.reference):
        raise ValueError("--source and --reference must be given together. Received: one of them.")
    if arguments.ensemble and arguments.calibrate:
        raise ValueError("--calibrate writes into the run, and is for one model. Received: --ensemble, too.")
    translator = _load(arguments)
    if arguments.source:
        texts = [read_parallel(arguments.source, arguments.reference)]
    else:
        texts = load_corpus(Run(arguments.run).config().data).test
        if arguments.target_language:
            texts = [text for text in texts if text.target_language in (None, arguments.target_language)]
    if not texts:
        raise ValueError(
            f"The run has no test set in that language. Received: --target-language {arguments.target_language}. Name "
            "a text with --source and --reference."
        )
    of_one = {"--output": arguments.output, "--log-probs": arguments.log_probs, "--calibrate": arguments.calibrate}
    received = [name for name, given in of_one.items() if given]
    if len(texts) > 1 and received:
        raise ValueError(
            f"The run has {len(texts)} test sets, and {', '.join(of_one)} are for one. Received: {received[0]}. Name "
            "the text with --source, --reference and --target-language."
        )
    for text in texts:
        _score_text(arguments, translator, text)
    return 0


def _score_text(arguments, translator, text):
    from keras_transformer.scoring import corpus_scores
    from keras_transformer.text import Problems, over_long

    numbers = [number for number, pair in enumerate(text.lines, 1) if all(pair)]
    sources, references = zip(*text.pairs, strict=True)
    translations = translator.translate(sources, target_language=text.target_language, return_scores=True)
    problems = Problems(text.name)
    for number, translation in zip(numbers, translations, strict=True):
        if translation.truncated:
            problems.add(number, *over_long(translator.max_source_length))
    problems.summary()
    texts = [translation.text for translation in translations]

    def write(path, rows):
        """Line n belongs to line n of the text. It is empty if that has an empty side."""
        rows = iter(rows)
        with output_file(path) as output:
            output.writelines((next(rows) if all(pair) else "") + "\n" for pair in text.lines)

    def scored(one):
        tokens = (f"{token} {x:.4f}" for token, x in zip(one.tokens, one.token_log_probs, strict=True))
        return "\t".join([f"{one.log_prob:.4f}", *tokens])

    if arguments.output:
        write(arguments.output, texts)
    if arguments.log_probs:
        write(arguments.log_probs, map(scored, translator.score(sources, references, text.target_language)))
    tokenize = arguments.bleu_tokenize or Run(arguments.run).config().data.sacrebleu_tokenizer()
    print(f"{text}, {len(sources):,} sentences:\n{corpus_scores(texts, references, tokenize)}")
    if arguments.calibrate:
        Run(arguments.run).save_calibration(translator.calibrate(sources, references, text.target_language))
    if arguments.confidence or arguments.calibrate:
        _print_confidence(translator, sources, references, text.target_language)


def _print_confidence(translator, sources, references, target_language):
    from keras_transformer.confidence import calibration_error, ranking

    translator.check_calibrated()
    log_probs, right = translator.judged_words(sources, references, target_language)
    found = translator.calibration(log_probs)
    print(
        f"confidence: {len(right):,} words, {sum(right) / len(right):.1%} right, {found.mean():.1%} expected; "
        f"calibration error {calibration_error(found, right):.3f}, ranking (AUC) {ranking(found, right):.3f}"
    )


def shortlist(arguments):
    """Learns the shortlist of a run from alignments of its training text."""
    from keras_transformer.datasets import load_corpus, parallel_files
    from keras_transformer.runs import some_pairs

    if bool(arguments.source) != bool(arguments.target):
        raise ValueError("--source and --target must be given together. Received: one of them.")
    arguments.shortlist = 0  # A run whose settings ask for one cannot be loaded without it.
    run, translator = Run(arguments.run), _load(arguments)
    if arguments.source:
        texts = [parallel_files(arguments.source, arguments.target)]
    else:
        texts = load_corpus(run.config().data).train
    pairs = some_pairs(((*pair, text.target_language) for text in texts for pair in text), 0, SHORTLIST_PAIRS)
    found = translator.learn_shortlist(*map(list, zip(*pairs, strict=True)))
    found.save(run.shortlist_file)
    print(f"{run.shortlist_file}: from {len(pairs):,} pairs. Use it with --shortlist 500.")
    return 0


def plot(arguments):
    translator, text, reference = _load(arguments) if arguments.run else None, arguments.text, None
    from keras_transformer.pictures import draw, example_sentences

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


def explore(arguments):
    from keras_transformer.text import read_lines

    texts = [*(arguments.text or ()), *(filter(None, read_lines(arguments.input)) if arguments.input else ())]
    translator = _load(arguments)
    from keras_transformer.pictures import example_sentences, explorer

    texts = texts or [source for source, _ in example_sentences(translator, 5)]
    path = Path(arguments.output or Run(arguments.run).explorer_file)
    with output_file(path) as output:
        output.write(explorer(translator, texts, f"Attention in {Path(arguments.run).name}"))
    print(path)
    return 0


def export(arguments):
    quantize = arguments.quantize if arguments.quantized else "none"
    output = arguments.output or Run(arguments.run).export_folder(arguments.target, quantize)
    translator = _load(arguments)
    if arguments.target == "ctranslate2":
        from keras_transformer.export.ctranslate2 import export_ctranslate2

        print(export_ctranslate2(translator, output, arguments.quantize, arguments.overwrite))
    elif arguments.target == "tflite":
        from keras_transformer.export.tflite import export_tflite

        lengths = arguments.source_length, arguments.target_length
        folder, same = export_tflite(
            translator, output, arguments.quantize, arguments.overwrite, *lengths, arguments.text_file
        )
        _report(arguments.quantize, same, folder, translator, arguments.run)
        print(folder)
    elif arguments.target == "web":
        from keras_transformer.export.web import export_web, server

        lengths = {"source_length": arguments.source_length, "target_length": arguments.target_length}
        with contextlib.ExitStack() as stack:
            if arguments.serve:  # Before the export, which takes minutes: the port may be in use.
                site = stack.enter_context(server(output, arguments.port))
            folder, shares = export_web(translator, output, arguments.quantize, arguments.overwrite, **lengths)
            for name, same in shares.items():
                _report(name, same, folder / "models" / name, translator, arguments.run)
            print(folder, flush=True)
            if arguments.serve:
                host, port = site.server_address
                print(f"Open http://{host}:{port} in a browser. Ctrl-C ends.", file=sys.stderr, flush=True)
                with contextlib.suppress(KeyboardInterrupt):
                    site.serve_forever()
    else:
        from keras_transformer.export.saved_model import export_saved_model

        print(
            export_saved_model(translator, output, arguments.overwrite, arguments.num_hypotheses, arguments.jit_compile)
        )
    return 0


def _report(name, same, folder, translator, run):
    """Prints how many translations quantisation changed, and what BLEU it cost."""
    from keras_transformer.datasets import DataError, one_test_set
    from keras_transformer.export.verify import tflite_bleu

    if same == 1:
        return
    print(f"{name}: {same:.0%} of made-up sentences are translated as in Python.", file=sys.stderr)
    try:
        data = Run(run).config().data
        test = one_test_set(data, translator.target_language)
    except (DataError, OSError) as error:
        print(f"BLEU was not compared, because the test set of the run cannot be read: {error}", file=sys.stderr)
        return
    bleu = tflite_bleu(folder, translator, test.pairs[:BLEU_SENTENCES], data.sacrebleu_tokenizer())
    print(
        f"{name}: BLEU {bleu[0]:.1f}, Python {bleu[1]:.1f}, {bleu[0] - bleu[1]:+.1f} "
        f"({min(BLEU_SENTENCES, len(test.pairs))} sentences of {test.name})",
        file=sys.stderr,
    )


def verify(arguments):
    translator, path = _load(arguments), Path(arguments.path)
    from keras_transformer.export.verify import verify_saved_model, verify_tflite

    if (path / "translator.json").is_file():
        same = verify_tflite(path, translator)
        _report(path.name, same, path, translator, arguments.run)
        print(f"{path} translates {same:.0%} of made-up sentences as {arguments.run} does.")
        return 0
    count = verify_saved_model(path, translator)
    print(f"{path} gives the answers of {arguments.run}: {count} sentences, every signature.")
    return 0


if __name__ == "__main__":
    sys.exit(main())
