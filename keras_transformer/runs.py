"""What lies in a run folder, the folder that `train_keras.py` writes."""

from pathlib import Path

from keras_transformer.config import SECTIONS, ConfigError, read_json
from keras_transformer.files import MANIFEST, FileError, foreign_files

SETTING_UP = ".setting-up"  # Where a new run is written before it takes the place of an old one.
FILES = {"config.json", "versions.json", "log.csv", "scores.json", "model.keras", "explorer.html"}
FOLDERS = {"checkpoints", "tensorboard", "export", SETTING_UP}
TOKENIZERS = {"tokenizer", "source_tokenizer", "target_tokenizer"}


def is_run(folder):
    """Whether a folder has the `config.json` of a run, or, where that is damaged, its `versions.json`.

    Many other things have a file named `config.json`.
    """
    return any(
        keys <= _keys(Path(folder) / name)
        for name, keys in {"config.json": SECTIONS.keys(), "versions.json": {"keras", "sentencepiece"}}.items()
    )


def _keys(path):
    try:
        return read_json(path).keys()
    except ConfigError:
        return set()


def check_replaceable(folder):
    """Raises a `FileError` unless a folder holds a run and nothing else, so that nothing is lost but the run."""
    folder = Path(folder)
    if not is_run(folder):
        raise FileError(
            f"{folder} is not replaced: only a run is, and there is no config.json of one. Choose another --run-dir."
        )
    foreign = _foreign(folder)
    if foreign:
        raise FileError(
            f"{folder} is not replaced: no training wrote {foreign[0]}, and it would be deleted with the run. "
            "Move it away, or choose another --run-dir."
        )


def _foreign(folder):
    """What is in a run folder and neither training nor an export wrote."""
    found = []
    for path in sorted(folder.iterdir()):
        if path.is_symlink():
            own = False
        elif path.is_dir():
            own = path.name in FOLDERS
            found += _foreign_exports(path) if path.name == "export" else []
        else:
            own = path.name in FILES or path.stem in TOKENIZERS or path.name.startswith(".writing-")
        found += [] if own else [path]
    return found


def _foreign_exports(folder):
    if (folder / MANIFEST).is_file():
        return [folder / name for name in foreign_files(folder)]
    found = []
    for path in sorted(folder.iterdir()):
        inside = path.is_dir() and not path.is_symlink()
        found += _foreign_exports(path) if inside else [path]
    return found
