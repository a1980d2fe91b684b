"""Train a small, fast student on what a teacher translates."""

import argparse
import os

from keras_transformer.commands.common import positive
from keras_transformer.commands.flags import add_flags
from keras_transformer.commands.train import claimed, configure
from keras_transformer.settings import SELECTIONS
from keras_transformer.training.config import RunConfig
from keras_transformer.training.presets import PRESETS


def add_arguments(parser: argparse.ArgumentParser) -> None:
    flag = parser.add_argument
    parser.usage = "%(prog)s [TEACHER ...] --run-dir DIR [FLAGS]"
    help = "run folder; several translate as an ensemble; none with --source, --translations and --val"
    flag("teachers", nargs="*", metavar="TEACHER", help=help)
    flag("--run-dir", required=True, metavar="DIR", help="run folder of the student to write")
    flag("--preset", default="mobile", help=f"size of the student: {', '.join(PRESETS)} (default: mobile)")
    flag("--source", metavar="FILE", help="text to translate (default: the teacher's training text)")
    help = "its translation, line by line, if there is one (default: that of the text)"
    flag("--reference", metavar="FILE", help=help)
    flag("--text-dir", metavar="DIR", help="folder for the teacher's translations (default: RUN-DIR-text)")
    help = "translations that were made elsewhere, such as with bulk or by a language model, line by line; of several "
    flag("--translations", nargs="+", metavar="FILE", help=help + "files, the one is taken that --select chooses")
    flag("--num-hypotheses", type=positive, metavar="N", help="translations per line to select from")
    help = (
        "which to train with: the most probable one, or of files the one that the others agree with most; the nearest "
    )
    help += "to the reference; or all (default: best; chrf with several and references)"
    flag("--select", choices=SELECTIONS, help=help)
    flag("--teacher-beams", type=positive, metavar="N", help="beams of the teacher (default: its own)")
    help = "share of the translations with the lowest scores that is left out (default: 0)"
    flag("--drop-worst", type=float, default=0.0, metavar="X", help=help)
    help = "how often people's translations come in a pass; 0 for none (default: 1)"
    flag("--real-weight", type=float, default=1.0, metavar="W", help=help)
    help = "backward: the teacher translates target text into sources, which get the tag <BT> (default: forward)"
    flag("--direction", choices=("forward", "backward"), default="forward", help=help)
    flag("--resume", action="store_true", help="continue what was begun with the same flags")
    flag("--overwrite", action="store_true", help="replace the run in the run folder")
    flag("--no-export", action="store_true", help="write no exports and no report at the end")
    add_flags(parser, "data", "tokenizer", "model", "training", "search")


def run(arguments: argparse.Namespace) -> int:
    """Lets teachers translate a text, trains a student with it, exports it and compares both; all can be resumed."""
    os.environ.setdefault("TF_CPU_ALLOCATOR_USE_BFC", "true")  # As train_keras.py, before TensorFlow is imported.
    import train_keras
    from keras_transformer.transfer import distilling

    names = RunConfig().flat()
    work = distilling.Distillation(arguments, {key: value for key, value in vars(arguments).items() if key in names})
    resume = arguments.resume and work.run.config_file.is_file()
    run, config = configure(work.flags, {} if resume else work.settings(), work.run.folder, resume)
    with claimed(run, config, resume, arguments.overwrite):
        if not resume:
            from keras_transformer.training.fit import check_sizes

            check_sizes(config)  # Now, and not after hours of translation.
            print("\n".join(work.write_text()), flush=True)
        status = train_keras.train(run, config, resume, export=not arguments.no_export)
    if status or arguments.no_export:
        return status
    from keras_transformer.export.report import write_report
    from keras_transformer.export.tflite import export_tflite
    from keras_transformer.translation.translator import Translator

    translator = Translator.load(run.folder)
    for quantize in ("none", "int8"):
        folder, _ = export_tflite(translator, run.export_folder("tflite", quantize), quantize, overwrite=True)
        print(folder, flush=True)
    ensemble = [",".join(arguments.teachers)] if len(arguments.teachers) > 1 else []
    # A teacher that made sources translates in the other direction.
    teachers = [] if work.backward else [*ensemble, *arguments.teachers]
    write_report([*teachers, str(run)], run.report_folder)
    return 0


def hint(arguments: argparse.Namespace) -> str:
    return "Go on with the same command and --resume."
