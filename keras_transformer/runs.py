"""A run folder, the folder that `train_keras.py` writes. Only this module knows what lies in it.

config.json, versions.json        settings; packages, and checksums of the texts
tokenizer.spm                     or source_tokenizer.spm and target_tokenizer.spm
model.keras                       the best model
checkpoints/epoch-00007.npz       what is needed to go on, after the newest two epochs
log.csv, tensorboard/             metrics of every epoch
scores.json                       BLEU and chrF of the test set, before and after training
export/TARGET/, explorer.html     what `export` and `explore` write unless told otherwise
"""

import hashlib
import json
import platform
import shutil
import zipfile
from contextlib import contextmanager
from importlib import metadata
from pathlib import Path

from keras_transformer.config import SECTIONS, ConfigError, RunConfig, read_json
from keras_transformer.files import MANIFEST, FileError, foreign_files, output_file, remove, write_json
from keras_transformer.tokenizers import TOKENIZER_NAMES, Tokenizer, load_tokenizers, save_tokenizers

PACKAGES = ("tensorflow", "tensorflow-text", "keras", "keras-nlp", "sentencepiece", "sacrebleu", "numpy")
SETTING_UP = ".setting-up"  # Where a new run is written before it takes the place of an old one.
_FILES = {"config.json", "versions.json", "log.csv", "scores.json", "model.keras", "explorer.html"}
_FOLDERS = {"checkpoints", "tensorboard", "export", SETTING_UP}
NUM_CHECKPOINTS = 2


class Run:
    """A run folder.

    Args:
        folder: its path.

    Attributes:
        folder: its path, a `Path`.
    """

    def __init__(self, folder):
        self.folder = Path(folder)

    def __str__(self):
        return str(self.folder)

    @property
    def config_file(self):
        return self.folder / "config.json"

    @property
    def model_file(self):
        """The best model."""
        return self.folder / "model.keras"

    @property
    def log_file(self):
        """Metrics of every epoch, CSV."""
        return self.folder / "log.csv"

    @property
    def tensorboard_folder(self):
        return self.folder / "tensorboard"

    @property
    def explorer_file(self):
        return self.folder / "explorer.html"

    def export_folder(self, target):
        """Where an export goes unless told otherwise."""
        return self.folder / "export" / target

    # What is there.

    def exists(self):
        """Whether the folder has the `config.json` of a run or, where that is damaged, its `versions.json`.

        Many other things have a file named `config.json`.
        """
        marks = {"config.json": SECTIONS.keys(), "versions.json": {"keras", "sentencepiece"}}
        return any(keys <= _read(self.folder / name).keys() for name, keys in marks.items())

    def is_free(self):
        """Whether a new run can begin here: nothing is there but what a process that was killed was setting up."""
        return not self.folder.exists() or (
            self.folder.is_dir() and not set(self.folder.iterdir()) - {self.folder / SETTING_UP}
        )

    def config(self):
        """Its `RunConfig`.

        Raises:
            ConfigError: the file is missing or is not what a run writes.
        """
        return RunConfig.of_file(self.config_file)

    def tokenizers(self):
        """Its tokenizers: one for a shared vocabulary, or source and target.

        Raises:
            ValueError: a file is missing or damaged.
        """
        with _damage_named(self.folder):
            return load_tokenizers(self.folder, self.config().tokenizer.separate_vocabularies)

    def model(self):
        """Its best model, a `Transformer` that is not compiled.

        Raises:
            ValueError: the file is damaged.
        """
        import keras

        with _damage_named(self.model_file):
            if not zipfile.is_zipfile(self.model_file):
                raise ValueError("a `.keras` file is a zip file, and this is none, or its end is missing.")
            return keras.saving.load_model(self.model_file, compile=False)

    def check_trained(self):
        """Raises a FileNotFoundError unless there is a model that was trained."""
        for file in (self.config_file, self.model_file):
            if not file.is_file():
                raise FileNotFoundError(
                    f"{self} is not the folder of a trained run: it has no {file.name}. Train one with train_keras.py, "
                    "or look for its folder under runs/."
                )

    def checkpoints(self):
        """The files of its checkpoints, the newest first."""
        return sorted((self.folder / "checkpoints").glob("epoch-*.npz"), reverse=True)

    def scores(self):
        """What is known of its quality, a dictionary."""
        return _read(self.folder / "scores.json")

    # What training writes.

    @contextmanager
    def set_up(self, is_chief, barrier):
        """A folder for what setting up writes: it is the whole run when the block ends well, and nothing if not.

        An old run is deleted only then, when texts, vocabulary and sizes have turned out to go together.

        Args:
            is_chief: whether this process writes; of several workers one does.
            barrier: a function that returns when all workers have called it.

        Yields:
            A `Run` in the folder.
        """
        folder = self.folder / SETTING_UP
        try:
            if is_chief:
                shutil.rmtree(folder, ignore_errors=True)  # Of a process that was killed.
                folder.mkdir(parents=True)
            yield Run(folder)
            barrier()  # All workers have read it.
            if is_chief:
                self._replace_by(folder)
        finally:
            if is_chief:
                shutil.rmtree(folder, ignore_errors=True)

    def _replace_by(self, folder):
        if self.exists():
            self.check_replaceable()  # Again: setting up takes a while.
        # config.json is replaced, and last: with it, a folder is a run, and what a kill leaves can be overwritten.
        for old in set(self.folder.iterdir()) - {folder, self.config_file}:
            remove(old)
        for new in sorted(folder.iterdir(), key=lambda path: path.name == self.config_file.name):
            new.replace(self.folder / new.name)

    def prepare(self, config, corpus):
        """Trains the tokenizers and writes them, the versions and the settings."""
        settings = config.tokenizer
        sides = list(zip(*corpus.train.pairs, strict=True))
        texts = sides if settings.separate_vocabularies else [sides[0] + sides[1]]
        tokenizers = [
            Tokenizer.train(side, settings.vocabulary_size, settings.tokenizer, config.training.seed) for side in texts
        ]
        save_tokenizers(self.folder, tokenizers)
        versions = {"python": platform.python_version(), **{name: metadata.version(name) for name in PACKAGES}}
        write_json(self.folder / "versions.json", {**versions, **_checksums(corpus)})
        write_json(self.config_file, config.to_dict())
        print(f"tokenizer: {settings.tokenizer}, " + " and ".join(f"{t.vocabulary_size:,} ids" for t in tokenizers))

    def check_text(self, corpus):
        """Raises a ConfigError unless a run that goes on has the text that it began with."""
        begun_with = _read(self.folder / "versions.json")
        for name, checksum in _checksums(corpus).items():
            if checksum != begun_with.get(name, checksum):
                raise ConfigError(
                    f"The {name} must be that which the run in {self} began with: with another it is another run. "
                    "Received: a text with another checksum. Put the old files back, or begin a run with --overwrite."
                )

    def go_on(self, config, epochs_done):
        """Removes what a kill has left half-written or too much, and writes and prints the settings that are new."""
        for left in [*self.folder.glob(".writing-*"), *self.folder.glob("checkpoints/.writing-*")]:
            left.unlink()
        self.trim_log(epochs_done)
        old, new = self.config().flat(), config.flat()
        changes = [f"{name} {old[name]} -> {new[name]}" for name in new if new[name] != old[name]]
        if changes:
            write_json(self.config_file, config.to_dict())
            print(f"changed settings: {', '.join(changes)}")

    def trim_log(self, epochs):
        """Takes the rows of later epochs out of the log, and one that was not written to its end."""
        if not self.log_file.is_file():
            return
        header, *rows = self.log_file.read_bytes().splitlines(keepends=True) or [b""]
        whole = [row for row in rows if row.endswith(b"\n") and row.split(b",")[0].isdigit()]
        with output_file(self.log_file, "wb") as file:
            file.write(header + b"".join(row for row in whole if int(row.split(b",")[0]) < epochs))

    def save_scores(self, scores):
        write_json(self.folder / "scores.json", scores)

    def save_checkpoint(self, epoch, write):
        """Writes the checkpoint after an epoch, by `write(file)`, and removes all but the newest two."""
        path = self.folder / "checkpoints" / f"epoch-{epoch:05d}.npz"
        path.parent.mkdir(exist_ok=True)
        with output_file(path, "wb") as file:
            write(file)
        for old in self.checkpoints()[NUM_CHECKPOINTS:]:
            old.unlink()

    # What may be replaced.

    def check_replaceable(self):
        """Raises a `FileError` unless the folder holds a run and nothing else, so that nothing is lost but the run."""
        if not self.exists():
            raise FileError(
                f"{self} is not replaced: only a run is, and there is no config.json of one. Choose another --run-dir."
            )
        foreign = self._foreign()
        if foreign:
            raise FileError(
                f"{self} is not replaced: no training wrote {foreign[0]}, and it would be deleted with the run. "
                "Move it away, or choose another --run-dir."
            )

    def _foreign(self):
        """What is in the folder and neither training nor an export wrote."""
        foreign = []
        for path in sorted(self.folder.iterdir()):
            if path.is_symlink():
                own = False
            elif path.is_dir():
                own = path.name in _FOLDERS
                foreign += _foreign_exports(path) if path.name == "export" else []
            else:
                own = path.name in _FILES or path.stem in TOKENIZER_NAMES or path.name.startswith(".writing-")
            foreign += [] if own else [path]
        return foreign


def _foreign_exports(folder):
    if (folder / MANIFEST).is_file():
        return [folder / name for name in foreign_files(folder)]
    foreign = []
    for path in sorted(folder.iterdir()):
        inside = path.is_dir() and not path.is_symlink()
        foreign += _foreign_exports(path) if inside else [path]
    return foreign


def _read(path):
    """The JSON object in a file, an empty one if there is none."""
    try:
        return read_json(path)
    except ConfigError:
        return {}


def _checksums(corpus):
    """SHA-256 of the texts that a run learns from and chooses by, whatever the names of their files."""
    texts = {"training text": corpus.train, "validation text": corpus.validation}
    return {name: hashlib.sha256(json.dumps(text.pairs).encode()).hexdigest() for name, text in texts.items()}


@contextmanager
def _damage_named(path):
    """Within, a file of a run is read; if that fails, the error says in one line which and what can be done."""
    try:
        yield
    except MemoryError:
        raise
    except Exception as error:  # Of zip, HDF5, JSON and Keras: too many kinds to name.
        reason = " ".join(str(error).split())[:200].rstrip(".")
        if str(path) not in reason:
            reason = (
                f"{path} cannot be loaded: it is damaged, or of other versions of the packages (see versions.json "
                f"beside it). Received: {type(error).__name__}: {reason}"
            )
        raise ValueError(f"{reason}. Restore it from a copy, or train again with --overwrite.") from error
