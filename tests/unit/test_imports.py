"""Who may import whom: the design's import law, read from the source, plus what importing the package loads.

And what lies in the repository, and in the installed package.
"""

import ast
import runpy
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "keras_transformer"

# The floors of the house, the lowest first: a folder imports from itself and from those before it.
FLOORS = (
    "files",
    "hub",
    "settings",
    "layers",
    "text",
    "models",
    "search",
    "data",
    "training",
    "translation",
    "transfer",
)
FLOORS += ("pictures", "commands")
# What each may load beyond the standard library, NumPy and Keras.
LIBRARIES = {
    "files": set(),
    "hub": {"huggingface_hub"},
    "settings": set(),
    "layers": {"tensorflow"},  # Keras has no gather that is one operation of a graph.
    "text": {"regex", "sentencepiece", "google", "tensorflow", "tensorflow_text", "keras_nlp"},
    "models": {"tensorflow"},  # Where several devices train together.
    "search": set(),
    "data": {"regex", "lingua", "tensorflow"},
    "training": {"tensorflow", "sacrebleu"},
    "translation": {"sacrebleu", "tensorflow", "jax"},
    # keras-hub brings tokenizers, and TensorFlow ml_dtypes.
    "transfer": {
        "sacrebleu",
        "sentencepiece",
        "google",
        "safetensors",
        "torch",
        "yaml",
        "h5py",
        "tokenizers",
        "ml_dtypes",
    },
    "pictures": {"matplotlib"},
    "commands": {"tqdm", "pyarrow", "ray", "train_keras"},
}
# To be copied to where none of the package is.
ALONE = (
    "export/serving/client.py",
    "export/run_tflite.py",
    "keras_transformer/text/sentences.py",
    "keras_transformer/text/placeholders.py",
)


def imports(path):
    """Modules that a file imports, at any depth: dotted names."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            found |= {node.module} | {f"{node.module}.{alias.name}" for alias in node.names}
    return found


def own(path):
    """The folders and files of the package from which a file imports."""
    return {name.split(".")[1] for name in imports(path) if name.startswith("keras_transformer.")}


def files_of(floor):
    return [PACKAGE / f"{floor}.py"] if (PACKAGE / f"{floor}.py").exists() else sorted((PACKAGE / floor).rglob("*.py"))


def test_every_folder_has_its_place_and_says_what_lives_there():
    names = {path.stem for path in PACKAGE.iterdir() if path.suffix in ("", ".py")} - {"__pycache__"}
    assert names == {"__init__", "__main__", "_registration", *FLOORS}
    for folder in (path for path in PACKAGE.iterdir() if path.is_dir() and path.name != "__pycache__"):
        assert ast.get_docstring(ast.parse((folder / "__init__.py").read_text(encoding="utf-8"))), folder


@pytest.mark.parametrize("floor", FLOORS)
def test_a_folder_imports_only_from_those_before_it_and_loads_only_its_libraries(floor):
    allowed = set(FLOORS[: FLOORS.index(floor) + 1])
    for path in files_of(floor):
        exports = {"export"} if floor == "commands" else set()
        assert own(path) & {*FLOORS, "export"} <= allowed | exports, path
        libraries = {name.split(".")[0] for name in imports(path)} - set(sys.stdlib_module_names)
        assert libraries - {"keras_transformer", "numpy", "keras"} <= LIBRARIES[floor], path


def test_exports_build_on_translators_and_what_is_copied_needs_nothing_of_the_package():
    for path in (ROOT / "export").rglob("*.py"):
        assert not own(path) & {"commands", "transfer"}, path
    for path in ALONE:
        assert own(ROOT / path) == set(), path


@pytest.mark.parametrize(
    ("name", "hint"),
    [
        ("TransformerEncoder", "EncoderBlock"),
        ("TransformerDecoder", "DecoderBlock"),
        ("Transformers", "Transformer"),
        ("SinePositionEncoding", "PositionalEmbedding"),
    ],
)
def test_names_that_there_are_not_lead_to_those_that_there_are(name, hint):
    import keras_transformer

    with pytest.raises(AttributeError, match=rf"has no attribute '{name}'\. Did you mean '{hint}'\?"):
        getattr(keras_transformer, name)
    with pytest.raises(AttributeError, match=r"has no attribute 'xyz'\.$"):
        _ = keras_transformer.xyz


def test_all_public_names_exist():
    import keras_transformer

    assert all(hasattr(keras_transformer, name) for name in keras_transformer.__all__)


def test_an_installed_package_has_every_file_that_is_not_python(monkeypatch):
    given = {}
    monkeypatch.setitem(
        sys.modules, "setuptools", SimpleNamespace(setup=given.update, find_packages=lambda include: include)
    )
    runpy.run_path(str(ROOT / "setup.py"))
    installed, found = set(), set()
    for package, patterns in given["package_data"].items():
        folder = ROOT / package.replace("keras_transformer.export", "export").replace(".", "/")
        installed |= {path for pattern in patterns for path in folder.glob(pattern) if path.is_file()}
    for folder in (PACKAGE, ROOT / "export"):
        found |= {path for path in folder.rglob("*") if path.is_file() and path.suffix not in (".py", ".pyc")}
    assert {path for path in found if "node_modules" not in path.parts} == installed
    assert len(installed) > 10
