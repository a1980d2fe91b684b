"""Metrics of a training: the perplexity, and the share of right tokens."""

import keras
from keras import ops

from keras_transformer.layers.base import Tensor
from keras_transformer.training.losses import flat, pick, softmax_parts


@keras.saving.register_keras_serializable(package="keras_transformer")
class Perplexity(keras.metrics.Mean):
    """exp of the mean cross-entropy, without label smoothing. Pass it as a *weighted* metric.

    Example:
        >>> metric = Perplexity()
        >>> metric.update_state(np.array([[1, 2]]), np.zeros((1, 2, 4)), sample_weight=np.array([[1.0, 0.0]]))
        >>> round(float(metric.result()), 3)
        4.0
    """

    def __init__(self, name: str = "perplexity", **kwargs):
        super().__init__(name=name, **kwargs)

    def update_state(self, y_true: Tensor, y_pred: Tensor, sample_weight: Tensor | None = None) -> None:
        logits, labels, weights = flat(y_true, y_pred, sample_weight)
        *_, log_total = softmax_parts(logits)
        super().update_state(log_total - pick(logits, labels), sample_weight=weights)

    def result(self) -> Tensor:
        return ops.exp(super().result())


@keras.saving.register_keras_serializable(package="keras_transformer")
class TokenAccuracy(keras.metrics.Mean):
    """The share of labels whose token is the most probable one, ties included. Pass it as a *weighted* metric.

    Example:
        >>> metric = TokenAccuracy()
        >>> metric.update_state(np.array([[1, 2]]), np.array([[[0.0, 5.0, 1.0], [0.0, 5.0, 1.0]]]))
        >>> float(metric.result())
        0.5
    """

    def __init__(self, name: str = "token_accuracy", **kwargs):
        super().__init__(name=name, **kwargs)

    def update_state(self, y_true: Tensor, y_pred: Tensor, sample_weight: Tensor | None = None) -> None:
        logits, labels, weights = flat(y_true, y_pred, sample_weight)
        # The loss needs the largest logit anyway. Keras' argmax would read all logits six times.
        hits = pick(logits, labels) >= ops.squeeze(ops.max(logits, axis=-1, keepdims=True), axis=-1)
        super().update_state(ops.cast(hits, "float32"), sample_weight=weights)
