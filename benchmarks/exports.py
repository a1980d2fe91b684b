"""Compares the exports of one trained run: BLEU, latency, size and memory on the same sentences.

    python benchmarks/exports.py runs/multi30k-tiny                                   # the run's own test set
    python benchmarks/exports.py runs/multi30k-tiny --source test.en --reference test.de

The forms run one after the other, each in its own process. All search without a length penalty, because CTranslate2's
formula is different. Latency is the median time for one sentence, tokenization included, over the first 100 sentences,
which were translated once before. MB are those of model and tokenizers. Memory is the peak of the process; for the
browser, of the page's process. `same` is the share of lines that are equal to those of the first form.
"""

import argparse
import contextlib
import json
import os
import shutil
import statistics
import sys
import tempfile
import time
from operator import eq
from pathlib import Path

from decode import CORES, peak_memory

from keras_transformer.export.report import (
    BROWSER_FORMS,
    TIMED,
    Form,
    browser_form,
    bytes_in,
    in_own_process,
    python_form,
    saved_model_form,
    tflite_form,
    timed,
)

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")


def main(argv=None):
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("run", help="folder of a trained run")
    parser.add_argument("--source", metavar="FILE", help="sentences (default: the run's test set)")
    parser.add_argument("--reference", metavar="FILE", help="their translations, line by line")
    parser.add_argument("--num-beams", type=int, default=4, metavar="N", help="(default: 4)")
    parser.add_argument("--forms", default=";".join(FORMS), metavar="NAMES", help=f"some of: {';'.join(FORMS)}")
    parser.add_argument("--json", metavar="FILE", help="also write the figures to this file")
    arguments = parser.parse_args(argv)
    print(f"{'':24}{'BLEU':>7}{'same':>8}{'ms':>8}{'MB':>8}{'MiB':>7}{'start s':>9}", flush=True)
    rows, first = [], None
    with tempfile.TemporaryDirectory() as folder:
        for name in arguments.forms.split(";"):
            in_own_process(export, name, folder, arguments)
            row, found = in_own_process(measure, name, folder, arguments)
            first = first or found
            row = {"form": name, **row, "same": sum(map(eq, first, found)) / len(found)}
            rows.append(row)
            print(
                f"{name:24}{row['bleu']:7.2f}{row['same']:8.1%}{row['ms']:8.2f}{row['size'] / 1e6:8.1f}"
                f"{row['peak_memory_mib']:7.0f}{row['start_seconds']:9.2f}",
                flush=True,
            )
    print(f"{len(first)} sentences; {row['signature']}")
    if arguments.json:
        Path(arguments.json).write_text(json.dumps(rows, indent=2) + "\n", encoding="utf-8")
    return 0


def export(name, folder, arguments):
    form, kind = FORMS[name]
    path = Path(folder) / form
    if form == "python" or (path / kind).exists():
        return
    from keras_transformer.translation.translator import Translator

    translator = Translator.load(arguments.run, num_beams=arguments.num_beams, length_penalty=0.0)
    if form == "saved_model":
        from keras_transformer.export.saved_model import export_saved_model

        shutil.move(export_saved_model(translator, path / "servable"), path / kind)
    elif form == "ctranslate2":
        from keras_transformer.export.ctranslate2 import export_ctranslate2

        export_ctranslate2(translator, path / kind, kind)
    elif form == "tflite":
        from keras_transformer.export.tflite import export_tflite

        export_tflite(translator, path / kind, kind)
    else:
        from keras_transformer.export.web import export_web

        path.mkdir(exist_ok=True)
        export_web(translator, path / kind, [kind])


def measure(name, folder, arguments):
    form, kind = FORMS[name]
    sources, references = sentences(arguments)
    began = time.perf_counter()
    with contextlib.ExitStack() as stack:
        path = Path(folder) / form / kind
        opened = OPENERS[form](arguments, path, kind, stack)
        opened.translate(sources[0])
        start = time.perf_counter() - began
        found = [opened.translate(text)[0] for text in sources]
        ms = 1e3 * statistics.median(opened.translate(text)[1] for text in sources[:TIMED])
        peak = peak_memory_of_the_page() if form == "web" else peak_memory(Path("/proc/self"))
    from keras_transformer.training.run import Run
    from keras_transformer.translation.evaluation import corpus_scores

    scores = corpus_scores(found, references, Run(arguments.run).config().data.sacrebleu_tokenizer())
    row = {
        "bleu": scores.bleu,
        "signature": scores.bleu_signature,
        "ms": ms,
        "size": opened.bytes,
        "peak_memory_mib": peak,
        "start_seconds": start,
    }
    return row, found


def sentences(arguments):
    from keras_transformer.data.corpora import load_corpus
    from keras_transformer.text.lines import read_lines
    from keras_transformer.training.run import Run

    if arguments.source:
        return read_lines(arguments.source), read_lines(arguments.reference)
    return tuple(zip(*load_corpus(Run(arguments.run).config().data).test[0].pairs, strict=True))


def peak_memory_of_the_page():
    """The peak memory, in MiB, of the browser's process that has the page."""
    peaks = []
    for process in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError, IndexError):  # The process may just have ended.
            if b"--type=renderer" in (process / "cmdline").read_bytes():
                peaks.append(peak_memory(process))
    return max(peaks)


def python(arguments, path, kind, stack):
    return python_form([arguments.run], num_beams=arguments.num_beams, length_penalty=0.0, jit_compile=kind == "xla")


def saved_model(arguments, path, kind, stack):
    return saved_model_form(path)


def tflite(arguments, path, kind, stack):
    return tflite_form(path)


def web(arguments, path, kind, stack):
    return stack.enter_context(browser_form(path, kind))


def ctranslate2(arguments, path, kind, stack):
    import ctranslate2 as theirs

    from keras_transformer.text.tokenizer import load_tokenizers
    from keras_transformer.training.run import Run

    translator = theirs.Translator(str(path), compute_type=kind, intra_threads=CORES)
    config = Run(arguments.run).config()
    tokenizers = load_tokenizers(arguments.run, config.tokenizer.separate_vocabularies)
    source, target = tokenizers[0], tokenizers[-1]
    ids_of = {piece: i for i, piece in enumerate(target.pieces(range(target.vocabulary_size)))}
    tag = source.tag(next(iter(config.data.target_languages()), None))

    def translate(text):
        pieces = source.pieces(tag + source.tokenize([text])[0])
        found = translator.translate_batch([pieces], beam_size=arguments.num_beams, length_penalty=0)
        return target.detokenize([[ids_of[piece] for piece in found[0].hypotheses[0]]])[0]

    return Form(timed(translate), lambda texts: list(map(translate, texts)), bytes_in(path))


# Name of each form: the function above, and its kind.
FORMS = {
    "Python": ("python", "graph"),
    "Python, XLA": ("python", "xla"),
    "SavedModel": ("saved_model", "graph"),
    "TFLite float32": ("tflite", "none"),
    "TFLite float16": ("tflite", "float16"),
    "TFLite int8": ("tflite", "int8"),
    **BROWSER_FORMS,
    "CTranslate2 float32": ("ctranslate2", "float32"),
    "CTranslate2 int8": ("ctranslate2", "int8"),
}


OPENERS = {"python": python, "saved_model": saved_model, "tflite": tflite, "ctranslate2": ctranslate2, "web": web}


if __name__ == "__main__":
    sys.exit(main())
