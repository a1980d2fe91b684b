"""The whole model: its size, its masks, its cache, its files."""

import subprocess
import sys

import keras
import numpy as np
from arrays import to_numpy

from keras_transformer.model import Transformer

B, T, S, D, F, V, V_TARGET = 3, 5, 7, 22, 13, 23, 19
SMALL = {
    "vocabulary_size": V,
    "num_layers": 1,
    "num_heads": 2,
    "hidden_dim": D,
    "intermediate_dim": F,
    "dropout": 0.0,
}
SOURCE = np.array([[5, 9, 4, 3, 8, 6, 2], [6, 3, 8, 2, 0, 0, 0], [7, 2, 0, 0, 0, 0, 0]], "int32")
TARGET = np.array([[1, 8, 5, 9, 4], [1, 7, 6, 0, 0], [1, 3, 9, 7, 0]], "int32")


def make(seed=1, **settings):
    """A small model whose biases, normalisations and positions are not at their initial values."""
    keras.utils.set_random_seed(seed)
    model = Transformer(**{**SMALL, **settings})
    generator = np.random.default_rng(seed)
    model.set_weights([w + 0.1 * generator.normal(size=w.shape).astype("float32") for w in model.get_weights()])
    return model


def logits(model, source=SOURCE, target=TARGET):
    return to_numpy(model({"encoder_token_ids": source, "decoder_token_ids": target}))


# Saving

SAVED = [
    {},
    {
        "normalize_first": True,
        "num_layers": 1,
        "num_decoder_layers": 3,
        "activation": "gelu",
        "dtype": "mixed_bfloat16",
        "name": "mine",
    },
    {
        "position_type": "learned",
        "max_length": 11,
        "tie_embeddings": "none",
        "target_vocabulary_size": V_TARGET,
        "attention_dropout": 0.25,
        "layer_norm_epsilon": 1e-3,
    },
    {"tie_embeddings": "target", "target_vocabulary_size": V_TARGET, "activation": keras.activations.silu},
    {"layout": "concatenated", "max_wavelength": 99.5, "scale_embeddings": False, "output_bias": True},
]

RELOAD = """
import sys
import keras
import numpy as np
import keras_transformer.model
data = np.load(sys.argv[1])
inputs = {name: data[name] for name in ("encoder_token_ids", "decoder_token_ids")}
for path in sys.argv[2:]:
    model = keras.saving.load_model(path, safe_mode=True)
    output = keras.ops.convert_to_numpy(keras.ops.cast(model(inputs), "float32"))
    np.save(path + ".npy", output)
    print(type(model).__module__, type(model).__name__, model.dtype_policy.name)
"""


def test_a_saved_model_gives_exactly_the_same_logits_in_a_new_process(tmp_path):
    np.savez(tmp_path / "inputs.npz", encoder_token_ids=SOURCE, decoder_token_ids=TARGET)
    models, paths = [make(**settings) for settings in SAVED], []
    for i, model in enumerate(models):
        paths.append(str(tmp_path / f"{i}.keras"))
        model.save(paths[-1])
    command = [sys.executable, "-W", "error::UserWarning", "-c", RELOAD, str(tmp_path / "inputs.npz"), *paths]
    done = subprocess.run(command, capture_output=True, text=True, timeout=100)
    assert done.returncode == 0, done.stderr[-3000:]
    expected = [f"keras_transformer.model Transformer {m.dtype_policy.name}" for m in models]
    assert done.stdout.strip().splitlines()[-len(models) :] == expected
    for model, path in zip(models, paths, strict=True):
        np.testing.assert_array_equal(np.load(path + ".npy"), logits(model))
