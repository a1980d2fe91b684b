"""What importing the package loads and registers, what a fresh process loads, and what lies in the repository."""

import ast
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "keras_transformer"


def run(code, *arguments, **environment):
    """The lines that Python code prints in a process of its own."""
    call = [sys.executable, "-W", "error::UserWarning", "-c", code, *map(str, arguments)]
    done = subprocess.run(call, capture_output=True, text=True, env={**os.environ, **environment})
    assert done.returncode == 0, done.stderr[-3000:]
    return done.stdout.strip().splitlines()


def test_importing_loads_no_more_than_is_used():
    """In one process: what the last of some imports has not loaded, none of them loads."""
    light = ("keras", "tensorflow", "numpy")
    steps = [
        ("import keras_transformer", light),
        ("import keras_transformer.training.config", light),
        ("import keras_transformer.search.settings", light),
        ("import train_keras", light),
        ("import keras_transformer.export.serving.client", light),
        ("import keras_transformer.export.run_tflite", ("keras", "tensorflow", "sentencepiece")),
        ("keras_transformer.Transformer", ("tensorflow_text", "sentencepiece", "sacrebleu")),
    ]
    code = [f"{step}\nprint([name for name in {absent!r} if name in sys.modules])" for step, absent in steps]
    assert run("import sys\n" + "\n".join(code)) == ["[]"] * len(steps)


def test_without_tensorflow_models_train_and_translate_on_jax():
    """As where tensorflow-text does not exist: here the import of both is refused."""
    code = """if True:
        import sys

        class Refused:
            def find_spec(self, name, path=None, target=None):
                if name.split(".")[0] in ("tensorflow", "tensorflow_text", "keras_nlp", "keras_hub"):
                    raise ModuleNotFoundError(name)

        sys.meta_path.insert(0, Refused())
        import numpy as np
        import keras_transformer as kt

        tokenizer = kt.Tokenizer.train(["a small dog", "a small cat", "a big dog"] * 9, vocabulary_size=17)
        model = kt.Transformer(17, num_layers=1, num_heads=2, hidden_dim=8, intermediate_dim=8)
        model.compile(loss=kt.LabelSmoothedCrossEntropy(0.1))
        ids = np.array([[5, 6, 3], [7, 8, 3]], "int32")
        model.fit({"encoder_token_ids": ids, "decoder_token_ids": ids}, ids, verbose=0)
        print(len(kt.Translator(model, tokenizer, num_beams=2).translate(["a big cat", ""])))
        """
    assert run(code, KERAS_BACKEND="jax") == ["2"]


def registered_classes():
    """What the source registers with Keras."""
    names = set()
    for path in PACKAGE.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ClassDef) and any("register_keras" in ast.unparse(x) for x in node.decorator_list):
                names.add(f"keras_transformer>{node.name}")
    return names


ORDERS = [
    "import keras_transformer, keras",
    "import keras, keras_transformer",
    "import keras_transformer; from keras.saving import load_model",
    "import keras_transformer as kt; kt.FeedForward",
    "import keras_transformer.training.config; import keras",
    "import keras_transformer.layers.encoder_block",
    "import keras_transformer.layers.masks",
    # An import that fails is tried again; of Keras, too: here its first import finds no backend.
    """if True:
        import os, sys, keras_transformer
        backend, os.environ["KERAS_BACKEND"] = os.environ["KERAS_BACKEND"], "none"
        try:
            import keras
        except ValueError:
            os.environ["KERAS_BACKEND"] = backend
        for name in [name for name in sys.modules if name.startswith("keras.")]:
            del sys.modules[name]
        import keras
    """,
]


def test_an_import_of_the_package_registers_every_class_with_keras():
    """In any order, each in a process of its own that has loaded the backend."""
    code = """if True:
        import os, sys, jax
        for statements in sys.argv[1:]:
            if not os.fork():
                exec(statements)
                import keras
                print(*keras.saving.get_custom_objects(), flush=True)
                os._exit(0)
            assert os.wait()[1] == 0, statements
        """
    found = run(code, *ORDERS, KERAS_BACKEND="jax")
    assert [registered_classes() - set(line.split()) for line in found] == [set()] * len(ORDERS)


TRANSFORMERS = {
    "transformer": {},
    "pre_norm": {"normalize_first": True, "num_decoder_layers": 3, "activation": "gelu", "dtype": "mixed_bfloat16",
                 "name": "mine"},
    "learned": {"position_type": "learned", "max_length": 11, "tie_embeddings": "none", "target_vocabulary_size": 19,
                "attention_dropout": 0.25, "layer_norm_epsilon": 1e-3},
    "tied_target": {"tie_embeddings": "target", "target_vocabulary_size": 19},
    "as_opus_mt": {"layout": "concatenated", "max_wavelength": 99.5, "scale_embeddings": False, "output_bias": True},
}  # fmt: skip


def test_a_fresh_process_gives_exactly_the_same_with_saved_models_of_every_class_and_with_a_run(golden, tmp_path):
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
    }
    generator = np.random.default_rng(1)
    for name, settings in TRANSFORMERS.items():
        if name == "tied_target":
            settings = {**settings, "activation": keras.activations.silu}
        models[name] = model = kt.Transformer(11, num_layers=1, hidden_dim=8, **sizes, **settings)
        # Biases, normalisations and positions are not at their initial values.
        model.set_weights([w + 0.1 * generator.normal(size=w.shape).astype("float32") for w in model.get_weights()])
    optimizer = keras.optimizers.Adam(kt.InverseSquareRootSchedule(0.1))
    metrics = [kt.Perplexity(), kt.TokenAccuracy()]
    models["transformer"].compile(optimizer, kt.LabelSmoothedCrossEntropy(), weighted_metrics=metrics)
    optimizer.build(models["transformer"].trainable_variables)
    arrays = [np.random.default_rng(0).normal(size=(2, 3, 8)), np.random.default_rng(1).normal(size=(2, 5, 8))]
    token_ids = np.array([[4, 2, 9], [3, 0, 0]], "int32")
    expected = {}
    for name, model in models.items():
        model.save(tmp_path / f"{name}.keras")
        inputs = [token_ids] * 2 if name in TRANSFORMERS else token_ids if name == "embedding" else arrays
        inputs = arrays[0] if name in ("feed_forward", "encoder_block") else inputs
        np.savez(tmp_path / f"{name}.npz", *(inputs if isinstance(inputs, list) else [inputs]))
        expected[name] = keras.ops.convert_to_numpy(keras.ops.cast(model(inputs), "float32"))
    code = """if True:
        import sys, keras_transformer, keras, numpy as np
        for name in sys.argv[4:]:
            model = keras.saving.load_model(f"{sys.argv[1]}/{name}.keras", safe_mode=True)
            inputs = list(np.load(f"{sys.argv[1]}/{name}.npz").values())
            output = model(inputs if len(inputs) > 1 else inputs[0])
            np.save(f"{sys.argv[1]}/{name}.npy", keras.ops.convert_to_numpy(keras.ops.cast(output, "float32")))
            print(type(model).__module__, type(model).__name__, model.dtype_policy.name)
            if model.compiled:
                config = model.get_compile_config()
                parts = config["loss"], config["optimizer"]["config"]["learning_rate"], *config["weighted_metrics"]
                print(*(part["class_name"] for part in parts))
        print(keras_transformer.Translator.load(sys.argv[2]).translate([sys.argv[3]]))
        """
    printed = run(code, tmp_path, golden.run_dir, golden.texts[0], *models)
    assert printed.pop() == str(golden.translator.translate(golden.texts[:1]))
    compiled = printed.pop(1 + list(models).index("transformer"))
    assert compiled == "LabelSmoothedCrossEntropy InverseSquareRootSchedule Perplexity TokenAccuracy"
    assert printed == [f"{type(m).__module__} {type(m).__name__} {m.dtype_policy.name}" for m in models.values()]
    for name in models:
        np.testing.assert_array_equal(np.load(tmp_path / f"{name}.npy"), expected[name], err_msg=name)


def test_nothing_that_is_built_lies_in_the_repository():
    """Text that people write, and pictures."""
    done = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True)
    if done.returncode:
        pytest.skip("not a checkout of git")
    tracked = [ROOT / name for name in done.stdout.split("\0") if name]
    for path in filter(Path.is_file, tracked):
        # A test compares the notebook of a script with it: Colab opens notebooks alone.
        built = path.suffix in (".wasm", ".map") or (path.suffix == ".ipynb" and not path.with_suffix(".py").exists())
        assert not built and "node_modules" not in path.parts, path
        if path.suffix != ".png":
            assert max(map(len, path.read_text(encoding="utf-8").splitlines()), default=0) < 1000, path
        assert path.stat().st_size < 100_000, path
