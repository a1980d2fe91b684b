"""The flags of a training, and the run and settings that follow from them."""

import argparse
import json
import os
import shlex
import sys
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Any

from keras_transformer.commands.flags import FlagParser, add_flags, user_errors
from keras_transformer.training.config import CHANGEABLE, ConfigError, RunConfig, read_config_file
from keras_transformer.training.presets import PRESETS
from keras_transformer.training.run import Run

# The settings that `--help` shows; `--help all` shows all.
COMMON = ("dataset", "data_dir", "target_language", "train", "val", "test", "directions", "vocabulary_size", "epochs")
COMMON += ("num_beams",)
# Settings that name a trained run.
OTHER_RUNS = ("init_from", "vocabulary_from", "layers_from", "teacher")


def makes_the_run_folder(strategy: str) -> bool:
    """Whether this process is the first of several workers, or the only one. Works before TensorFlow is imported."""
    try:
        config = json.loads(os.environ.get("TF_CONFIG") or "{}")
        task = config.get("task", {})
        kind, index = (task["type"], int(task["index"])) if task else (None, None)
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        raise ConfigError(
            "The environment variable TF_CONFIG must be a JSON object with a `task` that has a `type` and an `index`. "
            f"Received: {os.environ['TF_CONFIG']}."
        ) from error
    if strategy not in ("auto", "multi_worker"):
        return True
    if task:  # The chief is the task of that name, or else the first worker.
        return kind == "chief" or (index == 0 and "chief" not in config.get("cluster", {}))
    return strategy == "auto" or int(os.environ.get("SLURM_PROCID", 0)) == 0


def parse(argv: list[str] | None) -> tuple[Run, RunConfig, bool, bool, bool]:
    """The `Run`, its `RunConfig`, and whether to resume, to overwrite and to export."""
    argv = sys.argv[1:] if argv is None else argv
    short = bool({"-h", "--help"} & set(argv)) and "all" not in argv
    parser = FlagParser(
        prog="python -m keras_transformer train",
        all_flags="--help all",
        usage="%(prog)s [FLAGS]",
        description="Trains a translator, scores it on held-out sentences and exports a SavedModel. Without flags: "
        "on the embedded corpus, in a few minutes.",
        epilog="These are the flags that most people use; `--help all` shows the other "
        f"{len(RunConfig().flat()) - len(COMMON)}, and which of them override which."
        if short
        else "Priority of settings: a flag overrides --config, then come the data set's recipe, the preset and the "
        "default. `--config RUN/config.json --dataset NAME` (or --preset NAME) keeps what was chosen for that run; "
        "settings that came from its recipe or preset are taken from the new ones. With --resume, the run's own "
        "settings are used. These may be changed: "
        + ", ".join("--" + name.replace("_", "-") for name in sorted(CHANGEABLE))
        + "; other changes would make it another run.",
    )
    flag = parser.add_argument
    flag("--run-dir", metavar="DIR", help="run folder to write (default: runs/DATASET-PRESET)")
    flag("--preset", default=argparse.SUPPRESS, help=f"size of the model: {', '.join(PRESETS)}")
    flag("--config", metavar="FILE", help="JSON file of settings, such as the config.json of a run")
    help = "continue the run in the run folder, exactly; auto: begin it if the folder has none"
    flag("--resume", nargs="?", const="always", choices=("always", "auto"), metavar="auto", help=help)
    flag("--overwrite", action="store_true", help="replace the run in the run folder")
    help = argparse.SUPPRESS if short else "write no SavedModel at the end"
    flag("--no-export", action="store_true", help=help)
    add_flags(parser, "data", "tokenizer", "model", "training", "search", shown=COMMON if short else None)
    flags = vars(parser.parse_args(argv))
    names = ("run_dir", "config", "resume", "overwrite", "no_export")
    run_dir, file, resume, overwrite, no_export = (flags.pop(name) for name in names)
    with user_errors():
        if resume == "auto" and not run_dir:
            raise ConfigError("--resume auto needs --run-dir, the folder to look into. Received: no --run-dir.")
        begun = resume == "auto" and Run(run_dir).config_file.is_file()
        settings = read_config_file(file) if file and not begun else {}  # The run began with these.
        resume = resume == "always" or begun
        run, config = configure(flags, settings, run_dir, resume)
    return run, config, resume, overwrite, not no_export


def claimed(run: Run, config: RunConfig, resume: bool, overwrite: bool) -> AbstractContextManager:
    """The context in which this process may write the run; see `Run.claimed`. Of several workers, the first writes."""
    return run.claimed(overwrite, resume) if makes_the_run_folder(config.training.strategy) else nullcontext()


def configure(
    flags: dict[str, Any], file: dict[str, Any], run_dir: Path | str | None = None, resume: bool = False
) -> tuple[Run, RunConfig]:
    """The `Run` and its `RunConfig`, from settings of the command line and of a file; writes nothing.

    Raises:
        ConfigError: a setting is invalid, or there is no run to resume.
    """
    if not resume or not run_dir:
        others = {name: Run(other) for name in OTHER_RUNS if (other := {**file, **flags}.get(name)) and not resume}
        for name, other in others.items():
            other.check_trained(for_vocabulary=name == "vocabulary_from")
        init, vocabulary, layers = (others[name].config() if name in others else None for name in OTHER_RUNS[:3])
        config = RunConfig.make(flags, file, init, vocabulary, layers)
        dataset = "own" if config.data.train else config.data.dataset
        run_dir = run_dir or Path("runs", f"{dataset}-{config.preset}")
        for other in others.values():
            Run(run_dir).check_other_than(other)
    run = Run(run_dir)
    if resume:
        run.check_resumable()
        config = run.config().resumed({**file, **flags})
    config.check(before_training=True)
    if config.search.shortlist and not (resume and run.shortlist_file.is_file()):
        raise ConfigError(
            "`shortlist` needs alignments, which a trained model makes. "
            f"Received: shortlist={config.search.shortlist}. Train without it; then try "
            f"`python -m keras_transformer shortlist {quoted(run)}`, and this flag with --resume."
        )
    return run, config


def quoted(path: Run | Path | str) -> str:
    """A path as a word of a shell's command."""
    return shlex.quote(str(path))


def command(run: Run) -> str:
    """The command that resumes a run."""
    return f"python -m keras_transformer train --run-dir {quoted(run)} --resume"
