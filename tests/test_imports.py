"""Who may import whom: the design's import law, read from the source, plus what importing the package loads."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
PACKAGE = ROOT / "keras_transformer"

# Edges inside the package. The core comes first, in reading order; it knows Keras and NumPy and nothing else.
ALLOWED = {
    "base": set(),
    "masks": {"base"},
    "embeddings": set(),
    "attention": {"base", "masks"},
    "blocks": {"base", "masks", "attention"},
    "distribution": set(),
    "model": {"masks", "embeddings", "blocks", "distribution"},
    "decoding": set(),
    "config": set(),
    "files": set(),
    "text": set(),
    "runs": {"config", "files"},
    "tokenizers": set(),
    "phrasebook_lexicon": set(),
    "phrasebook_grammar": {"phrasebook_lexicon"},
    "phrasebook": {"phrasebook_lexicon", "phrasebook_grammar"},
    "datasets": {"phrasebook", "text"},
    "data": {"tokenizers"},
    "training": set(),
    "scoring": set(),
    "translator": {"model", "decoding", "tokenizers", "config"},
    "bulk": {"translator", "config", "text"},
    "visualize": set(),
    "pictures": {
        *(
            "visualize",
            "embeddings",
            "tokenizers",
            "decoding",
            "translator",
            "training",
            "config",
            "datasets",
            "scoring",
        ),
    },
}
CORE = ("base", "masks", "embeddings", "attention", "blocks", "model", "decoding")
# What each file outside the core may load beyond the standard library, NumPy and Keras.
HEAVY = {
    "config": set(),
    "files": set(),
    "text": set(),
    "runs": set(),
    "phrasebook_lexicon": set(),
    "phrasebook_grammar": set(),
    "phrasebook": set(),
    "tokenizers": {"sentencepiece", "google", "tensorflow_text", "tensorflow", "keras_nlp"},
    "datasets": set(),
    "data": {"tensorflow"},
    "training": set(),
    "distribution": {"tensorflow"},
    "scoring": {"sacrebleu"},
    "translator": {"tensorflow", "jax"},
    "bulk": {"apache_beam"},
    "visualize": {"matplotlib"},
    "pictures": set(),
}
ANYTHING = ("__init__", "__main__")


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
    return {name.split(".")[1] for name in imports(path) if name.startswith("keras_transformer.")}


def foreign(path):
    names = {name.split(".")[0] for name in imports(path)}
    return names - set(sys.stdlib_module_names) - {"keras_transformer", "numpy", "keras"}


FILES = sorted(path.stem for path in PACKAGE.glob("*.py") if path.stem not in ANYTHING)


def test_every_file_has_its_place_in_the_law():
    assert set(FILES) == set(ALLOWED)


@pytest.mark.parametrize("name", FILES)
def test_edges_within_the_package(name):
    modules = {path.stem for path in PACKAGE.glob("*.py")} | {"export"}
    assert own(PACKAGE / f"{name}.py") & modules <= ALLOWED[name] | {name}


@pytest.mark.parametrize("name", FILES)
def test_what_a_file_loads_from_outside(name):
    allowed = set() if name in CORE else HEAVY[name]
    assert foreign(PACKAGE / f"{name}.py") <= allowed


def test_exports_build_on_the_translator_and_nobody_builds_on_exports():
    for name in ("serving/client.py", "run_tflite.py"):  # To be copied to where none of the package is.
        assert not own(ROOT / "export" / name)
    allowed = {"translator", "config", "tokenizers", "decoding", "embeddings", "export", "files"}
    for path in (ROOT / "export").glob("*.py"):  # The verification says in BLEU what quantisation costs.
        assert own(path) <= allowed | ({"scoring"} if path.stem == "verify" else set())
    for name in FILES:
        assert "export" not in own(PACKAGE / f"{name}.py")


@pytest.mark.parametrize(
    ("statement", "absent"),
    [
        ("import keras_transformer.config", ["keras", "tensorflow", "numpy"]),
        ("import keras_transformer; keras_transformer.Transformer", ["tensorflow_text", "sentencepiece", "sacrebleu"]),
        ("import train_keras", ["keras", "tensorflow", "numpy"]),
        ("import keras_transformer.export.serving.client", ["keras", "tensorflow", "numpy"]),
        ("import keras_transformer.export.run_tflite", ["keras", "tensorflow", "sentencepiece"]),
    ],
)
def test_importing_loads_no_more_than_is_used(statement, absent):
    code = f"{statement}\nimport sys\nprint([name for name in {absent!r} if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
