"""A run folder is what `train_keras.py` writes. Only this module knows the files in it.

::

    README.md                         for people: what the model is, its data, scores and limits
    config.json, versions.json        settings; packages, and checksums of the texts
    tokenizer.spm                     or source_tokenizer.spm and target_tokenizer.spm
    model.keras                       the best model
    checkpoints/epoch-00007.npz       the state for resuming, after 7 epochs; the newest two are kept
    checkpoints/epoch-00007-step-00000250.npz   the same, 250 steps later
    log.csv, tensorboard/             metrics of every epoch
    scores.json                       BLEU and chrF of the test set after training; before it, with --init-from
    confidence.json                   how likely words of a certain probability are right
    shortlist.npz                     the target tokens that are often aligned with each source token
    export/TARGET/, explorer.html, report/   the output of `export`, `explore` and `report`, unless --output is given
    export/TARGET-int8/               the same as export/TARGET/, with weights stored as int8
"""

import logging
import platform
import shutil
import zipfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from importlib import metadata
from pathlib import Path
from typing import Any

from keras_transformer import hub
from keras_transformer.files import (
    MANIFEST,
    README,
    FileError,
    foreign_files,
    is_generated,
    locked,
    output_file,
    remove,
    write_json,
)
from keras_transformer.text.tokenizer import TOKENIZER_NAMES, Tokenizer, load_tokenizers, save_tokenizers
from keras_transformer.training.config import SECTIONS, ConfigError, RunConfig, read_json

logger = logging.getLogger(__name__)

PACKAGES = ("tensorflow", "tensorflow-text", "keras", "keras-nlp", "sentencepiece", "sacrebleu", "numpy")
SETTING_UP = ".setting-up"  # Where a new run is written before it takes the place of an old one.
_FILES = {"config.json", "versions.json", "log.csv", "scores.json", "confidence.json", "shortlist.npz"}
_FILES |= {"model.keras", "explorer.html"}
_FOLDERS = {"checkpoints", "tensorboard", "export", "report", SETTING_UP}
# What translating needs of a published run.
_USED = ("config.json", "versions.json", "model.keras", "scores.json", "confidence.json", "shortlist.npz")
_USED += tuple(f"{name}.*" for name in TOKENIZER_NAMES)
NUM_CHECKPOINTS = 2
# Version of what training steps depend on: batches, cleaning, the learning rate. A resumed run must have begun with it.
BATCHES = 4


class Run:
    """A run folder.

    Args:
        folder: its path.

    Attributes:
        name: its name, for people; that of the folder.
        folder: its path, a `Path`; and below it `config_file`, `model_file` (the best model), `log_file` (CSV, metrics
            of every epoch), `shortlist_file`, `explorer_file`, `report_folder` and `tensorboard_folder`.
    """

    def __init__(self, folder: str | Path):
        self.folder = Path(folder)
        self.name = self.folder.resolve().name
        self.config_file, self.model_file = self.folder / "config.json", self.folder / "model.keras"
        self.log_file, self.shortlist_file = self.folder / "log.csv", self.folder / "shortlist.npz"
        self.explorer_file, self.report_folder = self.folder / "explorer.html", self.folder / "report"
        self.tensorboard_folder = self.folder / "tensorboard"

    def __str__(self):
        return str(self.folder)

    def export_folder(self, target: str, quantize: str = "none") -> Path:
        """The default folder of an export: `export/tflite`; `export/tflite-int8` for weights stored as int8."""
        return self.folder / "export" / (target if quantize in ("none", "float32") else f"{target}-{quantize}")

    # Reading a run.

    def exists(self) -> bool:
        """Whether the folder has the `config.json` of a run or, if that is damaged, its `versions.json`.

        The content is checked, because many other programs write a file named `config.json`.
        """
        marks = {"config.json": SECTIONS.keys() - {"search"}, "versions.json": {"keras", "sentencepiece"}}
        return any(keys <= _read(self.folder / name).keys() for name, keys in marks.items())

    def is_free(self) -> bool:
        """Whether a new run can begin here: the folder has at most the leftovers of a killed process's set-up."""
        if not self.folder.is_dir():
            return not self.folder.exists()
        first = {SETTING_UP, "versions.json"}  # What is there before config.json.
        return all(path.name in first or path.stem in TOKENIZER_NAMES for path in self.folder.iterdir())

    def config(self) -> RunConfig:
        """Its `RunConfig`.

        Raises:
            ConfigError: the file is missing or is not what a run writes.
        """
        return RunConfig.of_file(self.config_file)

    def tokenizers(self) -> list[Tokenizer]:
        """Its tokenizers: one for a shared vocabulary, or source and target.

        Raises:
            ValueError: a file is missing or damaged.
        """
        # Two files may have one vocabulary: an imported model splits source and target differently.
        two = any(self.folder.glob("source_tokenizer.*")) and not any(self.folder.glob("tokenizer.*"))
        with _damage_named(self.folder):
            return load_tokenizers(self.folder, two or self.config().tokenizer.separate_vocabularies)

    def model(self) -> Any:
        """Its best model, a `Transformer` that is not compiled.

        Raises:
            ValueError: the file is damaged.
        """
        import keras

        with _damage_named(self.model_file):
            if not zipfile.is_zipfile(self.model_file):
                raise ValueError("a `.keras` file is a zip file, and this is not one, or its end is missing.")
            return keras.saving.load_model(self.model_file, compile=False)

    def check_trained(self, for_vocabulary: bool = False) -> None:
        """Raises a FileNotFoundError unless the folder has a trained model.

        Args:
            for_vocabulary: whether only its tokenizers are wanted, which a run has from its beginning. Defaults to
                False.
        """
        if self.folder.parts[:1] == ("hf:",):
            name, _, revision = "/".join(self.folder.parts[1:]).partition("@")
            version = f" --revision {revision}" if revision else ""
            raise FileNotFoundError(
                "A command needs the folder of a run. Received: the name of a published one. Download it with "
                f"`hf download {name}{version} --local-dir runs/{name.split('/')[-1]}`, and give that folder."
            )
        for file in (self.config_file,) if for_vocabulary else (self.config_file, self.model_file):
            if not file.is_file():
                raise FileNotFoundError(
                    f"{self} is not the folder of a trained run: it has no {file.name}. Train one with "
                    "`python -m keras_transformer train`, or look for its folder under runs/."
                )

    def has_vocabulary_of(self, other: "Run") -> bool:
        """Whether another `Run` has the same tokenizers."""
        return [t._serialized() for t in self.tokenizers()] == [t._serialized() for t in other.tokenizers()]

    def check_other_than(self, other: "Run") -> None:
        """Raises a ConfigError if this run, which is to be written, is also one that it is made from."""
        if self.folder.resolve() == other.folder.resolve():
            raise ConfigError(
                f"A run cannot be made from itself: it would replace what it reads. Received: {self} for both. Choose "
                "another --run-dir."
            )

    def check_vocabulary_of(self, other: "Run") -> None:
        """Raises a ValueError unless another `Run` has the same tokenizers."""
        if not self.has_vocabulary_of(other):
            raise ValueError(
                "Models that work together must have the same vocabulary: an id must mean the same token in all. "
                f"Received: {self} and {other} with different ones. Train one with --vocabulary-from {other}."
            )

    def checkpoints(self) -> list[Path]:
        """The files of its checkpoints, the newest first."""
        return sorted((self.folder / "checkpoints").glob("epoch-*.npz"), key=lambda path: path.stem, reverse=True)

    def versions(self) -> dict:
        """The content of versions.json, a dictionary; empty without the file."""
        return _read(self.folder / "versions.json")

    def made_from(self) -> list[dict]:
        """The models and texts that it was made from, dicts with "name" and "license" or None, if that is not known."""
        return self.versions().get("made from", [{"name": self.name, "license": None}])

    def scores(self) -> dict:
        """The content of scores.json, a dictionary; empty without the file."""
        return _read(self.folder / "scores.json")

    def calibration(self) -> Any:
        """The `keras_transformer.text.confidence.Calibration` in confidence.json, or None.

        Raises:
            ConfigError: the file is not what a run writes.
        """
        from keras_transformer.text.confidence import Calibration

        path = self.folder / "confidence.json"
        content = _read(path)
        try:
            return Calibration(**content) if content else None
        except TypeError as error:
            raise ConfigError(
                f"{path} is not what a run writes: it needs {', '.join(Calibration._fields)}. Delete it, and "
                "calibrate again with `python -m keras_transformer score RUN --calibrate`."
            ) from error

    def shortlist(self) -> Any:
        """Its `keras_transformer.search.shortlist.Shortlist`, or None.

        Raises:
            ValueError: the file is damaged.
        """
        from keras_transformer.search.shortlist import Shortlist

        return Shortlist.load(self.shortlist_file) if self.shortlist_file.is_file() else None

    # Writing a run.

    @contextmanager
    def set_up(self, is_chief: bool, barrier: Callable[[], None]) -> "Iterator[Run]":
        """A temporary folder for a new run: it replaces the old run when the block ends without an error.

        So an old run is deleted only after texts, vocabulary and sizes are known to fit together.

        Args:
            is_chief: whether this process writes; only one of several workers does.
            barrier: a function that returns when all workers have called it.

        Yields:
            A `Run` in the folder.
        """
        folder = self.folder / SETTING_UP
        try:
            if is_chief:
                shutil.rmtree(folder, ignore_errors=True)  # Left by a killed process.
                folder.mkdir(parents=True)
            yield Run(folder)
            barrier()  # All workers have read it.
            if is_chief:
                self._replace_by(folder)
        finally:
            if is_chief:
                shutil.rmtree(folder, ignore_errors=True)

    def _replace_by(self, folder):
        old = set(self.folder.iterdir()) - {folder, self.config_file}
        if self.exists():
            self.check_replaceable()  # Again: the folder may have changed in the meantime.
        else:  # What else is there came in the meantime, such as the cache of the texts.
            old = {path for path in old if path.stem in TOKENIZER_NAMES}
        # config.json is never missing, and is replaced last: it marks the folder as a run that --overwrite may replace,
        # also after a kill.
        for path in old:
            remove(path)
        for new in sorted(folder.iterdir(), key=lambda path: path.name == self.config_file.name):
            new.replace(self.folder / new.name)

    def write(self, config: RunConfig, tokenizers: Sequence[Tokenizer], facts: dict) -> None:
        """Writes the tokenizers, the versions with further facts such as checksums, and the settings."""
        from keras_transformer.data.corpora import origins  # It loads NumPy.

        save_tokenizers(self.folder, tokenizers)
        versions = {"python": platform.python_version()}
        for name in PACKAGES:
            with suppress(metadata.PackageNotFoundError):  # Not every platform has TensorFlow.
                versions[name] = metadata.version(name)
        versions["batches"] = BATCHES
        recipe = config.training
        others = filter(None, (recipe.init_from, config.tokenizer.vocabulary_from, recipe.layers_from, recipe.teacher))
        made_from = [part for other in map(Run, others) for part in other.made_from()] + origins(config.data)
        versions["made from"] = [part for i, part in enumerate(made_from) if part not in made_from[:i]]
        write_json(self.folder / "versions.json", {**versions, **facts})
        write_json(self.config_file, config.to_dict())

    def check_text(self, corpus: Any) -> None:
        """Raises a ConfigError unless a resumed run has the text that it began with."""
        begun_with = self.versions()
        if begun_with.get("batches") != BATCHES:
            raise ConfigError(
                f"The run in {self} was begun with another version of this package, which trains differently: it "
                "cannot be resumed. Train again with --overwrite, or resume it with that version."
            )
        for name, checksum in checksums(corpus).items():
            if checksum != begun_with.get(name):
                raise ConfigError(
                    f"The {name} must be the one that the run in {self} began with: finished epochs used it. "
                    "Received: another text. Put the old files back, or start a run with --overwrite."
                )

    def go_on(self, config: RunConfig, epochs_done: int) -> None:
        """Prepares a resumed run: removes incomplete files and later log rows, writes and logs changed settings."""
        for left in [*self.folder.glob(".writing-*"), *self.folder.glob("checkpoints/.writing-*")]:
            left.unlink()
        self.trim_log(epochs_done)
        old, new = self.config().flat(), config.flat()
        changes = [f"{name} {old[name]} -> {new[name]}" for name in new if new[name] != old[name]]
        if changes:
            write_json(self.config_file, config.to_dict())
            logger.info("changed settings: %s", ", ".join(changes))

    def trim_log(self, epochs: int) -> None:
        """Removes the rows of later epochs and an incomplete row from the log."""
        if not self.log_file.is_file():
            return
        header, *rows = self.log_file.read_bytes().splitlines(keepends=True) or [b""]
        whole = [row for row in rows if row.endswith(b"\n") and row.split(b",")[0].isdigit()]
        with output_file(self.log_file, "wb") as file:
            file.write(header + b"".join(row for row in whole if int(row.split(b",")[0]) < epochs))

    def save_scores(self, scores: dict) -> None:
        write_json(self.folder / "scores.json", scores)

    def save_calibration(self, calibration: Any) -> None:
        write_json(self.folder / "confidence.json", calibration._asdict())

    def save_checkpoint(self, epoch: int, step: int, write: Callable) -> None:
        """Writes the checkpoint of these epochs and steps with `write(file)`; removes all but the newest two."""
        name = f"epoch-{epoch:05d}" + (f"-step-{step:08d}" if step else "")
        path = self.folder / "checkpoints" / f"{name}.npz"
        path.parent.mkdir(exist_ok=True)
        with output_file(path, "wb") as file:
            write(file)
        for old in self.checkpoints()[NUM_CHECKPOINTS:]:
            old.unlink()

    # Replacing a run.

    @contextmanager
    def claimed(self, overwrite: bool = False, resume: bool = False) -> Iterator[None]:
        """A context in which no other process writes this run: training and imports happen in it.

        Args:
            overwrite: whether a new run may replace the one in the folder. Defaults to False.
            resume: whether the run in the folder is continued. Defaults to False, a new run.

        Raises:
            ConfigError: something is there, and neither `overwrite` nor `resume` is True; or there is no run to resume.
            FileError: another process writes this run, or the folder is not a run, or contains other files.
        """
        with ExitStack() as stack:
            is_new = not self.folder.exists()
            if self.folder.is_dir() or is_new:
                self.folder.mkdir(parents=True, exist_ok=True)
                stack.enter_context(locked(self.folder))
            if is_new:  # If nothing was written, nothing stays.
                stack.callback(self._remove_if_empty)
            if resume:
                self.check_resumable()
            elif not self.is_free():
                if not overwrite:
                    raise ConfigError(
                        f"{self} exists: a run folder is not overwritten by default. Continue that run with --resume, "
                        "replace it with --overwrite, or choose another --run-dir."
                    )
                self.check_replaceable()  # `set_up` replaces it later, when everything else is known to be right.
            yield

    def _remove_if_empty(self):
        with suppress(OSError):
            self.folder.rmdir()

    def check_resumable(self) -> None:
        """Raises a ConfigError unless the folder holds a run that training can continue."""
        if not self.config_file.is_file():
            raise ConfigError(f"{self} has no run to resume: it has no config.json. Start one without --resume.")

    def check_replaceable(self) -> None:
        """Raises a `FileError` unless the folder holds a run and nothing else, so that no other file is deleted."""
        if not self.exists():
            raise FileError(
                f"{self} is not replaced: only the folder of a run is, and it has no config.json of a run. "
                "Choose another --run-dir."
            )
        foreign = self._foreign()
        if foreign:
            raise FileError(
                f"{self} is not replaced: no training wrote {foreign[0]}, and it would be deleted with the run. "
                "Move it away, or choose another --run-dir."
            )

    def own_files(self) -> list[Path]:
        """The files in the folder that a training writes; none if there is no folder."""
        return [path for path in self.folder.glob("*") if path.is_file() and _is_own(path)]

    def _foreign(self):
        """The files in the folder that neither training nor an export wrote."""
        foreign = []
        for path in sorted(self.folder.iterdir()):
            if path.is_symlink():
                is_own = False
            elif path.is_dir():
                is_own = path.name in _FOLDERS
                foreign += _foreign_exports(path) if path.name in ("export", "report") else []
            else:
                is_own = _is_own(path)
            foreign += [] if is_own else [path]
        return foreign


def run_of(name: str | Path) -> Run:
    """The `Run` of a folder; or of a name, `hf://OWNER/NAME`, in the hub's cache, to read only."""
    if not str(name).startswith(hub.PREFIX):
        return Run(name)
    run = Run(hub.downloaded(str(name), _USED))
    if not run.model_file.is_file():
        raise FileNotFoundError(
            f"{name} must be a published run. Received: a repository without {run.model_file.name}. If it is a "
            "model of transformers, import it: python -m keras_transformer import FAMILY OWNER/NAME --run-dir DIR."
        )
    run.name = str(name).removeprefix(hub.PREFIX).split("/")[1].split("@")[0]  # The folder's is that of a commit.
    return run


def _is_own(path):
    if path.name == README:
        return is_generated(path)
    return path.name in _FILES or path.stem in TOKENIZER_NAMES or path.name.startswith(".writing-")


def _foreign_exports(folder):
    if (folder / MANIFEST).is_file():
        return [folder / name for name in foreign_files(folder)]
    foreign = []
    for path in sorted(folder.iterdir()):
        inside = path.is_dir() and not path.is_symlink()
        foreign += _foreign_exports(path) if inside else [path]
    return foreign


def _read(path):
    """The JSON object in a file; empty if the file is missing or damaged."""
    try:
        return read_json(path)
    except ConfigError:
        return {}


def checksums(corpus):
    """SHA-256 of the training and validation text; file names do not matter."""
    texts = {"training text": corpus.train, "validation text": corpus.validation, "general text": [corpus.general]}
    return {
        name if number == 1 else f"{name} {number}": text.checksum()
        for name, several in texts.items()
        for number, text in enumerate(several, 1)
        if text
    }


@contextmanager
def _damage_named(path):
    """A context for reading a file of a run: the error names the file and a remedy in one line."""
    try:
        yield
    except (MemoryError, ConfigError):  # That of a config file says all of this itself.
        raise
    except Exception as error:  # Of zip, HDF5, JSON and Keras: too many kinds to name.
        reason = " ".join(str(error).split())[:200].rstrip(".")
        if str(path) not in reason:
            reason = (
                f"{path} cannot be loaded: it is damaged, or of other versions of the packages (see versions.json "
                f"beside it). Received: {type(error).__name__}: {reason}"
            )
        raise ValueError(f"{reason}. Restore it from a copy, or train again with --overwrite.") from error
