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

# Edges inside the package. The core comes first, in reading order; it knows Keras and NumPy and nothing else.
ALLOWED = {
    "base": set(),
    "masks": {"base"},
    "embeddings": {"base"},
    "caches": {"base"},
    "attention": {"base", "masks", "caches"},
    "blocks": {"base", "masks", "attention"},
    "distribution": set(),
    "model": {"base", "masks", "embeddings", "blocks", "distribution"},
    "ensemble": {"model"},
    "decoding": {"base"},
    "settings": set(),
    "shortlist": {"base", "files", "tokenizers"},
    "search": {"settings", "tokenizers", "decoding", "shortlist"},
    "config": {"settings", "search"},
    "command_line": {"config", "settings"},
    "files": set(),
    "text": set(),
    "sentences": set(),
    "placeholders": set(),
    "confidence": set(),
    "markup": {"placeholders"},
    "runs": {"config", "files", "placeholders", "tokenizers", "confidence", "shortlist"},
    "sentencepiece_model": set(),
    "tokenizers": {"files", "placeholders", "sentencepiece_model"},
    "phrasebook_lexicon": set(),
    "phrasebook_grammar": {"phrasebook_lexicon"},
    "phrasebook": {"phrasebook_lexicon", "phrasebook_grammar"},
    "datasets": {"phrasebook", "text"},
    "encoding": {"files", "placeholders", "tokenizers"},
    "cleaning": {"encoding", "files"},
    "data": {"encoding", "placeholders", "tokenizers"},
    "losses": {"base"},
    "checkpoints": {"files"},
    "training": {"losses", "checkpoints"},
    "scoring": set(),
    "compiled": set(),
    "translations": set(),
    "translator": {
        *("translations", "model", "ensemble", "decoding", "search", "shortlist", "settings", "compiled"),
        *("tokenizers", "runs", "sentences", "placeholders", "markup", "confidence"),
    },
    "distilling": {
        *("translator", "config", "settings", "search", "text", "runs", "datasets", "encoding", "cleaning", "files"),
        *("tokenizers", "decoding"),
    },
    "bulk": {"translator", "command_line", "config", "text", "runs", "datasets", "encoding", "cleaning"},
    "visualize": set(),
    "pictures": {
        *("visualize", "embeddings", "tokenizers", "decoding", "translations", "translator", "training", "config"),
        *("search", "datasets", "scoring"),
    },
}
CORE = ("base", "masks", "embeddings", "caches", "attention", "blocks", "model", "ensemble", "decoding")
# What each file outside the core may load beyond the standard library, NumPy and Keras.
HEAVY = {
    "settings": set(),
    "shortlist": set(),
    "search": set(),
    "config": set(),
    "command_line": set(),
    "files": set(),
    "text": set(),
    "sentences": {"regex", "tensorflow"},
    "placeholders": {"regex", "tensorflow"},
    "confidence": {"regex"},
    "markup": set(),
    "runs": set(),
    "phrasebook_lexicon": set(),
    "phrasebook_grammar": set(),
    "phrasebook": set(),
    "sentencepiece_model": {"google"},
    "tokenizers": {"sentencepiece", "tensorflow_text", "tensorflow", "keras_nlp"},
    "datasets": set(),
    "encoding": set(),
    "cleaning": {"regex", "lingua"},
    "data": {"tensorflow"},
    "losses": set(),
    "checkpoints": set(),
    "training": set(),
    "distribution": {"tensorflow"},
    "scoring": {"sacrebleu"},
    "compiled": {"tensorflow", "jax"},
    "translations": set(),
    "translator": set(),
    "distilling": {"sacrebleu"},
    "bulk": {"apache_beam"},
    "visualize": {"matplotlib"},
    "pictures": set(),
}
ANYTHING = ("__init__", "__main__", "commands")


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
    # TensorFlow in `base`: Keras has no gather that is one operation of a graph.
    allowed = {"tensorflow"} if name == "base" else set() if name in CORE else HEAVY[name]
    assert foreign(PACKAGE / f"{name}.py") <= allowed


def test_exports_build_on_the_translator_and_nobody_builds_on_exports():
    # To be copied to where none of the package is; the second one with the last two.
    for path in ("export/serving/client.py", "export/run_tflite.py"):
        assert own(ROOT / path) == set()
    for name in ("sentences", "placeholders"):
        assert own(PACKAGE / f"{name}.py") == set()
    allowed = {
        "translations",
        "translator",
        "search",
        "sentences",
        "placeholders",
        "markup",
        "compiled",
        "config",
        "tokenizers",
        "decoding",
        "embeddings",
        "export",
        "files",
        "caches",
    }
    # Two of them say in BLEU what an export is worth.
    more = {"verify": {"scoring"}, "report": {"scoring", "datasets", "runs", "visualize"}}
    for path in (ROOT / "export").glob("*.py"):
        assert own(path) <= allowed | more.get(path.stem, set())
    for name in FILES:
        assert "export" not in own(PACKAGE / f"{name}.py")


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
    monkeypatch.setitem(sys.modules, "setuptools", SimpleNamespace(setup=given.update))
    runpy.run_path(str(ROOT / "setup.py"))
    installed, found = set(), set()
    for package, patterns in given["package_data"].items():
        folder = ROOT / package.removeprefix("keras_transformer.").replace(".", "/")
        installed |= {path for pattern in patterns for path in folder.glob(pattern) if path.is_file()}
        found |= {path for path in folder.rglob("*") if path.is_file() and path.suffix not in (".py", ".pyc")}
    assert {path for path in found if "node_modules" not in path.parts} == installed
    assert len(installed) > 10
