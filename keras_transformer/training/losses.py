"""The loss of the labels, that of a teacher, and metrics, over tokens and from logits.

Label smoothing: "Rethinking the Inception Architecture" (Szegedy et al., 2016), section 7; "Attention Is All You Need"
(Vaswani et al., 2017), section 5.4.
"""

import keras
import numpy as np
from keras import ops

from keras_transformer.layers.base import Tensor, at_least_float32


class _TokenLoss(keras.losses.Loss):
    """A loss of every token."""

    def __call__(self, y_true, y_pred, sample_weight=None):
        return super().__call__(y_true, y_pred, _per_token(sample_weight, y_pred))


@keras.saving.register_keras_serializable(package="keras_transformer")
class LabelSmoothedCrossEntropy(_TokenLoss):
    """Cross-entropy against (1 - e) * one-hot + e / V, from logits and integer labels.

    With sample weights of 1 for real tokens and 0 for padding, as `keras_transformer.data.batches` emits them, the loss
    is the mean over real tokens. The smoothed distribution is never stored as a tensor:

        loss = logsumexp(z) - (1 - e) * z[label] - e * mean(z)

    The logits are the largest tensor of a step, and most of the time of the loss goes into reading them. So the
    gradient is written out by hand and reuses the exponentials of the forward pass.

    A label outside 0 .. V - 1 makes the loss and the gradient NaN, on every backend and with any sample weight. So
    labels at padding must be token ids, too, such as 0.

    Args:
        label_smoothing: e in [0, 1). Defaults to 0.1, the paper's.
        reduction: Defaults to `"mean_with_sample_weight"`: the weighted sum over the sum of weights.
        name: Defaults to `"label_smoothed_cross_entropy"`.

    Call arguments:
        y_true: integer labels (B, T) or (B, T, 1).
        y_pred: logits (B, T, V).
        sample_weight: (B, T) or (B, T, 1); or (B, 1), the same for all tokens of a sentence.

    Example:
        >>> loss = LabelSmoothedCrossEntropy(label_smoothing=0.0)
        >>> round(float(loss(np.array([[1]]), np.zeros((1, 1, 4)), sample_weight=np.ones((1, 1)))), 4)  # log(4)
        1.3863
    """

    def __init__(
        self,
        label_smoothing: float = 0.1,
        reduction: str = "mean_with_sample_weight",
        name: str = "label_smoothed_cross_entropy",
        **kwargs,
    ):
        if "from_logits" in kwargs:
            raise TypeError(
                "`LabelSmoothedCrossEntropy` has no `from_logits`: it always takes logits. "
                f"Received: from_logits={kwargs['from_logits']}. Leave it out, and end the model without a softmax."
            )
        super().__init__(name=name, reduction=reduction, **kwargs)
        if not 0 <= label_smoothing < 1:
            raise ValueError(
                f"`label_smoothing` must be in [0, 1). Received: label_smoothing={label_smoothing}. The paper has 0.1."
            )
        self.label_smoothing = label_smoothing

    def call(self, y_true: Tensor, y_pred: Tensor):
        logits, labels, _ = flat(y_true, y_pred)

        @ops.custom_gradient
        def loss(logits):
            exponentials, total, log_total = softmax_parts(logits)
            loss = log_total - (1 - self.label_smoothing) * pick(logits, labels)
            if self.label_smoothing:
                loss = loss - self.label_smoothing * ops.mean(logits, axis=-1)

            def gradient(upstream):
                known, indices = _known(labels, logits.shape[-1])
                upstream = ops.where(known, upstream, np.nan)[:, None]
                smooth = exponentials * (upstream / total[:, None]) - upstream * self.label_smoothing / logits.shape[-1]
                rows = ops.arange(ops.shape(labels)[0], dtype="int32")
                indices = ops.stack([rows, indices], axis=1)
                return ops.scatter_update(
                    smooth, indices, -(1 - self.label_smoothing) * upstream[:, 0], reduction="add"
                )

            return loss, gradient

        return ops.reshape(loss(logits), ops.shape(y_pred)[:-1])

    def get_config(self):
        return {**super().get_config(), "label_smoothing": self.label_smoothing}


@keras.saving.register_keras_serializable(package="keras_transformer")
class TeacherCrossEntropy(_TokenLoss):
    """Cross-entropy against the distribution of a teacher: word-level distillation.

        loss = logsumexp(z) - sum(q * z),    q = softmax(logits of the teacher)

    Reference: "Sequence-Level Knowledge Distillation" (Kim and Rush, 2016), section 3.1.

    Args:
        reduction: Defaults to `"mean_with_sample_weight"`.
        name: Defaults to `"teacher_cross_entropy"`.

    Call arguments:
        y_true: logits of the teacher (B, T, V).
        y_pred: logits (B, T, V).
        sample_weight: (B, T).

    Example:
        >>> loss = TeacherCrossEntropy()
        >>> round(float(loss(np.zeros((1, 1, 4)), np.zeros((1, 1, 4)), sample_weight=np.ones((1, 1)))), 4)  # log(4)
        1.3863
    """

    def __init__(self, reduction: str = "mean_with_sample_weight", name: str = "teacher_cross_entropy", **kwargs):
        super().__init__(name=name, reduction=reduction, **kwargs)

    def call(self, y_true: Tensor, y_pred: Tensor):
        logits = at_least_float32(y_pred)
        wanted = ops.softmax(ops.stop_gradient(at_least_float32(y_true)), axis=-1)
        return ops.logsumexp(logits, axis=-1) - ops.sum(wanted * logits, axis=-1)


# The loss and the metrics use the same operations on the same logits, so that compilers compute equal ones only once.


def flat(y_true, y_pred, sample_weight=None):
    """Logits (B * T, V) in at least float32, labels (B * T,) and weights (B * T,) or None."""
    sizes = [tuple(y_true.shape), tuple(y_pred.shape[:-1])]
    if len(sizes[0]) == len(sizes[1]) + 1 and sizes[0][-1] == 1:  # Keras gives labels a last axis in some cases.
        sizes[0] = sizes[0][:-1]
    if len(sizes[0]) != len(sizes[1]) or any(a != b for a, b in zip(*sizes, strict=True) if None not in (a, b)):
        raise ValueError(
            "Labels must have the shape of the logits without their last axis. "
            f"Received: labels {tuple(y_true.shape)}, logits {tuple(y_pred.shape)}."
        )
    weights = None if sample_weight is None else ops.reshape(_per_token(sample_weight, y_pred), (-1,))
    logits = ops.reshape(at_least_float32(y_pred), (-1, y_pred.shape[-1]))
    return logits, ops.reshape(ops.cast(y_true, "int32"), (-1,)), weights


def _per_token(sample_weight, y_pred):
    """Weights of the tokens: those of sentences, (B,) or (B, 1), are those of all their tokens; (B, T, 1) is (B, T)."""
    if sample_weight is None:
        return None
    sample_weight = ops.convert_to_tensor(sample_weight)
    missing = len(y_pred.shape) - 1 - len(sample_weight.shape)
    if missing == -1 and sample_weight.shape[-1] == 1:
        return ops.squeeze(sample_weight, axis=-1)
    if missing > 0:
        sample_weight = ops.reshape(sample_weight, (*ops.shape(sample_weight), *[1] * missing))
    # Also (1, T): what broadcasts must count once for each token.
    return ops.broadcast_to(sample_weight, ops.shape(y_pred)[:-1])


def _known(labels, vocabulary_size):
    """Which labels are in the vocabulary, bool (M,), and the labels clipped to the vocabulary.

    An index out of bounds gives an error, NaN or, with XLA, the value at the nearest index: this depends on the
    backend.
    """
    inside = ops.clip(labels, 0, vocabulary_size - 1)
    return labels == inside, inside


def pick(logits, labels):
    """logits[i, labels[i]]: (M, V), (M,) -> (M,); NaN for a label outside the vocabulary."""
    known, indices = _known(labels, logits.shape[-1])
    return ops.where(known, ops.squeeze(ops.take_along_axis(logits, indices[:, None], axis=1), axis=1), np.nan)


def softmax_parts(logits):
    """exp(z - max z) (M, V), its sums (M,), and log(sum(exp(z))) (M,)."""
    largest = ops.max(logits, axis=-1, keepdims=True)
    exponentials = ops.exp(logits - largest)
    total = ops.sum(exponentials, axis=-1)
    return exponentials, total, ops.squeeze(largest, axis=-1) + ops.log(total)
