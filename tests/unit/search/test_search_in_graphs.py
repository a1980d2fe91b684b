"""The search of a batch in a graph that XLA compiled; limits as tensors."""

import keras
import numpy as np
import pytest
from keras import ops

from keras_transformer.model import Transformer
from keras_transformer.search import SearchSettings, search


@pytest.mark.parametrize("settings", [{}, {"max_length_ratio": 1.7}, {"max_length_ratio": 0}, {"max_length": 20}])
def test_limits_of_tensors_are_those_of_arrays(settings):
    settings, lengths = SearchSettings(**settings), np.array([1, 3, 128], "int32")
    limits = settings.limits(ops.convert_to_tensor(lengths))
    assert keras.backend.standardize_dtype(limits.dtype) == "int32"
    assert ops.convert_to_numpy(limits).tolist() == settings.limits(lengths).tolist()


@pytest.mark.skipif(keras.backend.backend() != "tensorflow", reason="reads what TensorFlow hands to XLA")
@pytest.mark.parametrize("rows", [1, 2])
def test_xla_writes_one_position_of_a_cache_and_copies_none(rows):
    """A step is slow if XLA copies the caches. That depends on the shapes: one sentence was copied, two were not."""
    import tensorflow as tf

    model = Transformer(19, num_layers=1, num_heads=2, hidden_dim=22, intermediate_dim=13)
    length = 17

    def translate(token_ids, limits):
        return search(model, token_ids, limits, length, SearchSettings(num_beams=1), jit_compile=True)

    inputs = tf.fill((rows, 7), 5), tf.fill((rows,), length)
    compiled = tf.function(translate, jit_compile=True, autograph=False)
    hlo = compiled.experimental_get_compiler_ir(*inputs)(stage="optimized_hlo")
    loops = [text for text in hlo.split("\n}") if "dynamic-update-slice" in text and "ENTRY" not in text]
    assert loops
    for shape in (f"f32[{rows * 2},11,{length}]", f"f32[{rows * 2},{length},11]"):
        assert any(shape in text for text in loops)
        assert not [line for text in loops for line in text.splitlines() if shape in line and " copy(" in line]
