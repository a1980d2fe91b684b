"""Who may import whom: the design's import law, read from the source, plus what importing the package loads.

And what lies in the repository, and in the installed package.
"""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "keras_transformer"
ANYTHING = ("__init__", "__main__", "commands")


FILES = sorted(path.stem for path in PACKAGE.glob("*.py") if path.stem not in ANYTHING)


@pytest.mark.parametrize(
    ("statement", "absent"),
    [
        ("import keras_transformer", ["keras", "tensorflow", "numpy"]),
        ("import keras_transformer.config", ["keras", "tensorflow", "numpy"]),
        ("import keras_transformer.search", ["keras", "tensorflow", "numpy"]),
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


def test_keras_can_be_imported_without_pyplot():
    """Afterwards pyplot can be imported, and what is loaded already stays."""
    code = (
        "import sys\nfrom keras_transformer import commands\n"
        "with commands._without('matplotlib.pyplot'): import keras\n"
        "print('matplotlib.pyplot' in sys.modules)\nimport matplotlib.pyplot\n"
        "with commands._without('matplotlib.pyplot'): import matplotlib.pyplot\n"
    )
    assert run(code) == ["False"]


def run(code, *arguments):
    done = subprocess.run([sys.executable, "-c", code, *map(str, arguments)], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-3000:]
    return done.stdout.strip().splitlines()


def registered_classes():
    """What the source registers with Keras."""
    names = set()
    for path in PACKAGE.glob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ClassDef) and any("register_keras" in ast.unparse(x) for x in node.decorator_list):
                names.add(f"keras_transformer>{node.name}")
    return names


@pytest.mark.parametrize(
    "statements",
    [
        "import keras_transformer, keras",
        "import keras_transformer as kt; kt.FeedForward",
        "import keras_transformer.config; import keras",
        *(
            pytest.param(statements, marks=pytest.mark.slow)
            for statements in (
                "import keras, keras_transformer",
                "import keras_transformer; from keras.saving import load_model",
                "import keras_transformer.blocks",
                "import keras_transformer.masks",
            )
        ),
    ],
)
def test_an_import_of_the_package_registers_every_class_with_keras(statements):
    code = f"{statements}\nimport keras\nprint(*keras.saving.get_custom_objects(), sep='\\n')"
    assert registered_classes() <= set(run(code))


def test_an_import_that_fails_is_tried_again():
    """Of Keras, too: here its first import finds no backend."""
    code = (
        "import os, keras_transformer\nos.environ['KERAS_BACKEND'] = 'none'\n"
        "try:\n    import keras\nexcept ValueError:\n    os.environ['KERAS_BACKEND'] = 'jax'\n"
        "import sys\nfor name in [name for name in sys.modules if name.startswith('keras.')]: del sys.modules[name]\n"
        "import keras\nprint(*keras.saving.get_custom_objects(), sep='\\n')"
    )
    assert registered_classes() <= set(run(code))


def test_saved_models_of_every_class_load_in_a_fresh_process(tmp_path):
    import keras
    import numpy as np

    import keras_transformer as kt

    x, y = keras.Input((3, 8)), keras.Input((5, 8))
    ids = keras.Input((3,), dtype="int32")
    sizes = {"num_heads": 2, "intermediate_dim": 7}
    models = {
        "embedding": keras.Model(ids, kt.PositionalEmbedding(11, 8)(ids)),
        "attention": keras.Model([x, y], kt.MultiHeadAttention(2, 4)(x, y)),
        "feed_forward": keras.Model(x, kt.FeedForward(7)(x)),
        "encoder_block": keras.Model(x, kt.EncoderBlock(**sizes)(x)),
        "decoder_block": keras.Model([x, y], kt.DecoderBlock(**sizes)(x, y)),
        "transformer": kt.Transformer(11, num_layers=1, hidden_dim=8, **sizes),
    }
    schedule = keras.optimizers.Adam(kt.InverseSquareRootSchedule(0.1))
    metrics = [kt.Perplexity(), kt.TokenAccuracy()]
    models["transformer"].compile(schedule, kt.LabelSmoothedCrossEntropy(), weighted_metrics=metrics)
    arrays = [np.random.default_rng(0).normal(size=(2, 3, 8)), np.random.default_rng(1).normal(size=(2, 5, 8))]
    token_ids = np.array([[4, 2, 9], [3, 0, 0]], "int32")
    expected = {}
    for name, model in models.items():
        model.save(tmp_path / f"{name}.keras")
        inputs = [token_ids] * 2 if name == "transformer" else token_ids if name == "embedding" else arrays
        inputs = arrays[0] if name in ("feed_forward", "encoder_block") else inputs
        np.savez(tmp_path / f"{name}.npz", *(inputs if isinstance(inputs, list) else [inputs]))
        expected[name] = keras.ops.convert_to_numpy(model(inputs))
    code = """if True:
        import sys, keras_transformer, keras, numpy as np
        for name in sys.argv[2:]:
            model = keras.saving.load_model(f"{sys.argv[1]}/{name}.keras")
            inputs = list(np.load(f"{sys.argv[1]}/{name}.npz").values())
            np.save(f"{sys.argv[1]}/{name}.npy", model(inputs if len(inputs) > 1 else inputs[0]))
            if model.compiled:
                metrics = [type(metric).__name__ for metric in model._compile_metrics._user_weighted_metrics]
                print(type(model.loss).__name__, type(model.optimizer._learning_rate).__name__, *metrics)
        """
    (printed,) = run(code, tmp_path, *models)
    assert printed == "LabelSmoothedCrossEntropy InverseSquareRootSchedule Perplexity TokenAccuracy"
    for name in models:
        np.testing.assert_allclose(np.load(tmp_path / f"{name}.npy"), expected[name], atol=1e-6)


def test_nothing_that_is_built_lies_in_the_repository():
    """Text that people write, and pictures."""
    done = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True)
    if done.returncode:
        pytest.skip("not a checkout of git")
    tracked = [ROOT / name for name in done.stdout.split("\0") if name]
    for path in filter(Path.is_file, tracked):
        assert path.suffix not in (".wasm", ".ipynb", ".map") and "node_modules" not in path.parts, path
        if path.suffix != ".png":
            assert max(map(len, path.read_text(encoding="utf-8").splitlines()), default=0) < 1000, path
        assert path.stat().st_size < 100_000, path
