"""The benchmarks that this machine cannot be measured with still run, small."""

import sys
from pathlib import Path

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"


def test_flop_of_a_step_are_six_for_every_weight_and_token():
    """Without attention's products, which grow with the square of the length: 2 forward, 4 backward."""
    import numpy as np

    sys.path.insert(0, str(BENCHMARKS))
    try:
        from train_step import flop_of_step
    finally:
        sys.path.remove(str(BENCHMARKS))
    from keras_transformer.models.transformer import Transformer
    from keras_transformer.training.presets import PRESETS

    model = Transformer(8000, **PRESETS["tiny"])
    matrices = sum(int(np.prod(w.shape)) for w in model.trainable_weights if len(w.shape) == 2)
    one = np.zeros((1, 1))
    assert abs(flop_of_step("tiny", 8000, one, one) / (6 * matrices) - 1) < 0.01
