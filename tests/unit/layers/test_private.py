"""Each name of Keras and TensorFlow that is not public does what this package relies on."""

from types import SimpleNamespace

import keras
import numpy as np
import pytest
from keras import ops

from keras_transformer.layers import private
from keras_transformer.layers.encoder_block import EncoderBlock

on_tensorflow = pytest.mark.skipif(keras.backend.backend() != "tensorflow", reason="tf.distribute is TensorFlow's")


class Reader(keras.layers.Layer):
    """Its output is its mask."""

    supports_masking = True

    def call(self, x, mask=None):
        return x * 0 if mask is None else ops.cast(mask, "float32")


def compiled():
    model = keras.Sequential([keras.Input((3,)), keras.layers.Dense(1)])
    model.compile(loss="mean_squared_error")
    return model


def test_a_mask_that_is_set_reaches_the_next_layer():
    x = ops.ones((2, 3))
    assert private.mask_of(x) is None
    private.set_mask(x, [[True, False, True], [False, False, True]])
    assert ops.convert_to_numpy(private.mask_of(x)).tolist() == [[True, False, True], [False, False, True]]
    assert ops.convert_to_numpy(Reader()(x)).tolist() == [[1, 0, 1], [0, 0, 1]]


def test_sublayers_are_those_at_any_depth():
    block = EncoderBlock(num_heads=2, intermediate_dim=8)
    block.build((None, None, 4))
    inside = private.sublayers(block)
    assert block in inside and block.self_attention.output_dense in inside and block.feed_forward_norm in inside


def test_the_loss_is_that_of_compute_loss_also_without_its_newest_argument():
    class Model(keras.Model):
        def call(self, x):
            return x

        def compute_loss(self, x=None, y=None, y_pred=None, sample_weight=None):
            return ops.sum(y - y_pred)

    model = Model()
    model.compile()
    assert float(private.compute_loss(model, y=ops.ones(3), y_pred=ops.zeros(3), training=True)) == 3.0


def test_a_tracked_loss_is_the_mean_that_fit_shows():
    model = compiled()
    model.evaluate(np.zeros((1, 3)), np.zeros((1, 1)), verbose=0)
    model.reset_metrics()
    private.track_loss(model, 2.0, 1)
    private.track_loss(model, 5.0, 2)
    assert float(model.get_metrics_result()["loss"]) == 4.0


@on_tensorflow
def test_fit_and_evaluate_call_maybe_symbolic_build_with_the_data():
    calls = []

    class Model(keras.Sequential):
        def _maybe_symbolic_build(self, iterator=None, data_batch=None):
            calls.append(iterator is not None)
            super()._maybe_symbolic_build(iterator=iterator, data_batch=data_batch)

    model = Model([keras.layers.Dense(1)])
    model.compile(loss="mean_squared_error")
    model.fit(np.zeros((2, 3)), np.zeros((2, 1)), verbose=0)
    model.evaluate(np.zeros((2, 3)), np.zeros((2, 1)), verbose=0)
    assert calls == [True, True]


@on_tensorflow
def test_an_optimizer_sums_gradients_over_replicas_unless_they_are_summed():
    optimizer, weight = keras.optimizers.SGD(1.0), keras.Variable(3.0)
    asked = []
    optimizer._all_reduce_sum_gradients = lambda pairs: asked.append(True) or pairs
    optimizer.apply_gradients([(ops.ones(()), weight)])
    assert asked == [True] and float(weight) == 2.0  # Keras asks this function.
    private.take_summed_gradients(optimizer)
    optimizer.apply_gradients([(ops.ones(()), weight)])
    assert asked == [True] and float(weight) == 1.0
    inner = keras.optimizers.SGD(1.0)
    inner._all_reduce_sum_gradients = lambda pairs: pytest.fail("summed again")
    private.take_summed_gradients(keras.optimizers.LossScaleOptimizer(inner))
    assert inner._all_reduce_sum_gradients([1]) == [1]


@on_tensorflow
def test_a_model_knows_the_strategy_that_it_was_made_in():
    import tensorflow as tf

    strategy = tf.distribute.OneDeviceStrategy("/cpu:0")
    with strategy.scope():
        model = keras.Sequential([keras.layers.Dense(1)])
    assert private.strategy_of(model) is strategy
    assert private.in_multi_worker_mode(strategy) is private.in_multi_worker_mode(None) is False
    worker = tf.distribute.MultiWorkerMirroredStrategy()  # Of one worker: without TF_CONFIG it is as one machine.
    assert private.in_multi_worker_mode(worker) is False
    several = SimpleNamespace(_in_multi_worker_mode=lambda: True)
    assert private.in_multi_worker_mode(SimpleNamespace(extended=several)) is True
