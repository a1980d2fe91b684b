"""What is not public in Keras and TensorFlow and is used here: each name has a test.

`DistributedFit` overrides one more, `_maybe_symbolic_build`, which has a test, too. The upper bounds of versions in
pyproject.toml exist because of these names.
"""

from typing import Any

import keras


def set_mask(x: Any, mask: Any) -> None:
    """Attaches a Keras mask to a tensor, as Keras' own layers do: an attribute alone is lost on tensors of JAX."""
    keras.src.backend.set_keras_mask(x, keras.ops.convert_to_tensor(mask, dtype="bool"))


def mask_of(x: Any) -> Any:
    """The Keras mask that a tensor carries, or None."""
    return getattr(x, "_keras_mask", None)


def sublayers(layer: keras.layers.Layer) -> list[keras.layers.Layer]:
    """A layer and all layers inside it, at any depth."""
    return list(layer._flatten_layers())


def compute_loss(model: keras.Model, **arguments: Any) -> Any:
    """`model.compute_loss`, also of a model whose own does not take `training`.

    Keras divides the result by the number of replicas.
    """
    return model._compute_loss(**arguments)


def track_loss(model: keras.Model, loss: Any, sample_weight: Any) -> None:
    """Adds a loss to the metric `loss` of `fit` and `evaluate`."""
    model._loss_tracker.update_state(loss, sample_weight=sample_weight)


def take_summed_gradients(optimizer: keras.optimizers.Optimizer) -> None:
    """Lets an optimizer apply gradients as they are, which it would sum over the replicas otherwise."""
    inner = getattr(optimizer, "inner_optimizer", optimizer)
    inner._all_reduce_sum_gradients = lambda gradients_and_variables: gradients_and_variables


def strategy_of(model: keras.Model) -> Any:
    """The `tf.distribute.Strategy` in whose scope a model was made, or None on other backends."""
    return getattr(model, "_distribute_strategy", None)


def in_multi_worker_mode(strategy: Any) -> bool:
    """Whether several processes train together; False for None, and for a distribution of Keras."""
    extended = getattr(strategy, "extended", None)
    return extended is not None and bool(extended._in_multi_worker_mode())
