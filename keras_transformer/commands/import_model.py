"""Make a run of a public model, such as OPUS-MT."""

import argparse
import os
import shlex

from keras_transformer.training.run import Run
from keras_transformer.transfer import FAMILIES


def add_arguments(parser: argparse.ArgumentParser) -> None:
    flag = parser.add_argument
    help = "opus-mt: any Marian model; m2m-100 or nllb: models of many languages"
    flag("family", choices=tuple(FAMILIES), metavar="FAMILY", help=help)
    help = (
        "OWNER/NAME or OWNER/NAME@REVISION at the Hugging Face hub; or a folder of transformers (config.json, ...) or "
    )
    flag("model", metavar="MODEL", help=help + "of a Marian release (decoder.yml, ...)")
    for side, what in (("source", "the language of all sources"), ("target", "the language to translate into")):
        flag(f"--{side}-language", metavar="CODE", help=f"for m2m-100 and nllb: {what}, such as en or eng_Latn")
    flag("--run-dir", required=True, metavar="DIR", help="run folder to write, such as runs/opus-en-de")
    flag("--overwrite", action="store_true", help="replace the run in the run folder")
    help = "source and target get vocabularies of their own, with only the pieces that each can have"
    flag("--trim-vocabulary", action="store_true", help=help)
    for side in ("source", "target"):
        flag(f"--trim-{side}", metavar="FILE", help=f"text of the {side}: keep only the pieces that it needs")


def run(arguments: argparse.Namespace) -> int:
    from keras_transformer.text.lines import read_lines

    run = Run(arguments.run_dir)
    if not run.is_free():
        with run.claimed(arguments.overwrite):
            pass  # Before the model is read, which takes seconds; `write` checks again.
    names = arguments.trim_source, arguments.trim_target
    corpus = tuple(read_lines(name) if name else None for name in names)
    trim = arguments.trim_vocabulary or any(names)
    from keras_transformer.transfer import importing
    from keras_transformer.transfer.importing import report

    names = "source_language", "target_language"
    languages = {name: getattr(arguments, name) for name in names if getattr(arguments, name)}
    if languages and arguments.family == "opus-mt":
        raise importing.ModelImportError(
            "--source-language and --target-language are for m2m-100 and nllb: an OPUS-MT model has its languages, or "
            f"tags in its sources. Received: {' and '.join(languages.values())}."
        )
    if arguments.family != "opus-mt" and len(languages) < 2 and not os.path.exists(arguments.model):
        raise importing.ModelImportError(  # Before gigabytes are downloaded.
            f"{arguments.family} needs --source-language and --target-language, such as en or eng_Latn. Received: "
            f"{' '.join(languages.values()) or 'none'}."
        )
    imported = importing.read(arguments.family, arguments.model, trim, corpus, **languages)
    print("\n".join(report.summary(imported)), flush=True)
    importing.write(imported, run, arguments.overwrite)
    if trim:
        whole = importing.read(arguments.family, imported.folder, **languages)
        print("\n".join(report.trim_report(whole, imported, corpus[0])), flush=True)
    print(f"Run folder: {run}\nTo translate with it:")
    print(f"  python -m keras_transformer translate {shlex.quote(str(run))} --input FILE")
    return 0
