"""The training recipe as Keras objects: schedule, optimizer, weights to begin with, a teacher, callbacks.

Reference: "Attention Is All You Need" (Vaswani et al., 2017), section 5.
"""

import time

import keras
import numpy as np
from keras import ops

from keras_transformer.checkpoints import averaged_weights
from keras_transformer.losses import TeacherCrossEntropy


@keras.saving.register_keras_serializable(package="keras_transformer")
class InverseSquareRootSchedule(keras.optimizers.schedules.LearningRateSchedule):
    """Linear warm-up, then decay with the inverse square root of the step (section 5.3).

        learning_rate(step) = peak * min(step / warmup_steps, sqrt(warmup_steps / step)),    step = 1, 2, 3, ...

    With peak = (hidden_dim * warmup_steps)^-0.5, see `paper_learning_rate`, this is equation (3) of the paper.

    Args:
        peak: the learning rate at step `warmup_steps`.
        warmup_steps: Defaults to 4000, the paper's.

    Raises:
        ValueError: `peak` is not positive, or `warmup_steps` is below 1.

    Example:
        >>> schedule = InverseSquareRootSchedule(peak=0.5, warmup_steps=4)
        >>> [round(float(schedule(iterations)), 3) for iterations in (0, 3, 15)]
        [0.125, 0.5, 0.25]
    """

    def __init__(self, peak, warmup_steps=4000):
        super().__init__()
        if peak is None or not peak > 0:
            raise ValueError(f"`peak` must be positive: it is the highest learning rate. Received: peak={peak}.")
        if warmup_steps < 1:
            raise ValueError(f"`warmup_steps` must be at least 1. Received: warmup_steps={warmup_steps}.")
        self.peak = peak
        self.warmup_steps = warmup_steps

    def __call__(self, step):
        step = ops.cast(step, "float32") + 1.0  # Keras counts finished steps: the first step sees 0.
        return self.peak * ops.minimum(step / self.warmup_steps, ops.sqrt(self.warmup_steps / step))

    def get_config(self):
        return {"peak": self.peak, "warmup_steps": self.warmup_steps}


def copy_weights(model, other, encoder_layers=None, decoder_layers=None, same_vocabulary=True):
    """Copies those weights of another `Transformer` that fit: embeddings, blocks and final normalisations.

    Embeddings fit if their shapes do. Blocks must also have the same number of heads and the same activation.

    A student begins with blocks of its teacher ("Pre-trained Summarization Distillation", Shleifer and Rush, 2020).

    Args:
        model: a `Transformer`, which is changed.
        other: a `Transformer`.
        encoder_layers: for each encoder block, the index of the other model's block. Defaults to None: spread evenly,
            from the first to the last.
        decoder_layers: the same for the decoder.
        same_vocabulary: whether both have the same vocabulary; otherwise embeddings are not copied. Defaults to True.

    Returns:
        What was copied, a list of phrases.

    Raises:
        ValueError: one is pre-norm and the other post-norm, there are other numbers of blocks, or nothing fits.
    """
    configs = [one.get_config() for one in (model, other)]
    pre_norm, other_pre_norm = (config["normalize_first"] for config in configs)
    if pre_norm != other_pre_norm:
        raise ValueError(
            "Both models must be pre-norm or both post-norm: with the same weights, the two compute different things. "
            f"Received: a model with normalize_first={pre_norm} and another with normalize_first={other_pre_norm}. "
            "Make both the same."
        )
    # With the same weights, blocks with other heads compute different things, too.
    same_blocks = all(configs[0][name] == configs[1][name] for name in ("num_heads", "activation"))
    pairs = [
        (f"embedding of the {name}", *(getattr(one, f"{side}_embedding") for one in (model, other)))
        for name, side in (("source", "encoder"), ("target", "decoder"))
        if same_vocabulary
    ]
    for side, layers in (("encoder", encoder_layers), ("decoder", decoder_layers)):
        mine, others = (getattr(one, f"{side}_blocks") for one in (model, other))
        if layers is None:
            layers = np.linspace(0, len(others) - 1, len(mine)).round().astype(int).tolist()
        if len(layers) != len(mine) or not set(layers) <= set(range(len(others))):
            raise ValueError(
                f"`{side}_layers` must name one block of the other model for each {side} block, from 0 to "
                f"{len(others) - 1}. Received: {side}_layers={list(layers)} for {len(mine)} blocks."
            )
        if not same_blocks:
            continue
        pairs += [(f"{side} block {i}", block, others[i]) for block, i in zip(mine, layers, strict=True)]
        pairs.append((f"normalisation of the {side}", *(getattr(one, f"{side}_norm") for one in (model, other))))
    copied = []
    for name, mine, others in pairs:
        if mine and others and [w.shape for w in mine.weights] == [w.shape for w in others.weights]:
            mine.set_weights(others.get_weights())
            copied.append(name)
    if not copied:
        widths = [one.get_config()["hidden_dim"] for one in (model, other)]
        raise ValueError(
            "No weights of the other model fit: blocks and embeddings must have the same sizes, blocks also the same "
            "number of heads and activation. Received: a model of "
            f"width {widths[0]}, another of width {widths[1]}. Train without --layers-from, or with --hidden-dim "
            f"{widths[1]}."
        )
    return copied


def make_schedule(hidden_dim, warmup_steps, learning_rate=None):
    """The schedule of a recipe. `learning_rate` is its peak; None gives the peak of the paper."""
    return InverseSquareRootSchedule(learning_rate or paper_learning_rate(hidden_dim, warmup_steps), warmup_steps)


def paper_learning_rate(hidden_dim, warmup_steps):
    """The peak of the paper's schedule, (hidden_dim * warmup_steps)^-0.5.

    Example:
        >>> round(paper_learning_rate(512, 4000), 6)
        0.000699
    """
    return (hidden_dim * warmup_steps) ** -0.5


def make_optimizer(learning_rate, clip_norm=1.0, ema_momentum=None):
    """Adam with the paper's betas and epsilon (section 5.3).

    Args:
        learning_rate: a number or a schedule.
        clip_norm: largest global norm of the gradient; 0 or None: no clipping. Defaults to 1.
        ema_momentum: momentum of an exponential moving average of the weights; 0 or None: no average. Defaults to
            None.
    """
    return keras.optimizers.Adam(
        learning_rate,
        beta_1=0.9,
        beta_2=0.98,
        epsilon=1e-9,
        global_clipnorm=clip_norm or None,
        use_ema=bool(ema_momentum),
        ema_momentum=ema_momentum or 0.99,
    )


class BLEUCallback(keras.callbacks.Callback):
    """Adds `val_bleu` to the logs of every epoch.

    Args:
        score: a function without arguments that translates the validation set and returns its BLEU.
    """

    def __init__(self, score):
        super().__init__()
        self.score = score

    def on_epoch_end(self, epoch, logs=None):
        with averaged_weights(self.model):
            logs["val_bleu"] = self.score()


class TimeLeft(keras.callbacks.Callback):
    """Prints between epochs how long the remaining epochs will take, at the speed of the finished ones.

    Args:
        minutes: after which a time limit ends the training. Defaults to None, no limit.
    """

    def __init__(self, minutes=None):
        super().__init__()
        self.minutes = minutes

    def on_train_begin(self, logs=None):
        self._began, self._epochs_done = time.monotonic(), 0

    def on_epoch_begin(self, epoch, logs=None):
        if self._epochs_done:
            left = self.params["epochs"] - epoch
            passed = time.monotonic() - self._began
            seconds = left * passed / self._epochs_done
            text = f"{left} epoch{'s' if left > 1 else ''} to go, about {_duration(seconds)}"
            if self.minutes and (until_limit := 60 * self.minutes - passed) < seconds:
                text += f"; the time limit ends training in about {_duration(until_limit)}, when the epoch is finished"
            print(text, flush=True)

    def on_epoch_end(self, epoch, logs=None):
        self._epochs_done += 1


def _duration(seconds):
    minutes = round(seconds / 60)
    if seconds < 100:
        return f"{round(seconds)} s"
    return f"{minutes} min" if minutes < 100 else f"{minutes // 60} h {minutes % 60} min"


def add_teacher(model, teacher, weight=0.5):
    """Lets `fit` of a compiled model also learn the distributions of a teacher, see `TeacherCrossEntropy`.

        loss = (1 - weight) * loss of the labels + weight * loss of the teacher

    Validation has the loss of the labels alone. Saved files have no teacher: call this again before training goes on. A
    second call replaces the teacher of the first.

    Args:
        model: a compiled `Transformer`.
        teacher: a `Transformer` with the same vocabulary, or an `Ensemble`. Its weights do not change.
        weight: in (0, 1]. Defaults to 0.5.

    Raises:
        ValueError: the vocabularies differ, or the weight is not in (0, 1].
    """
    if not 0 < weight <= 1:
        raise ValueError(f"`weight` must be in (0, 1]. Received: weight={weight}.")
    sizes = [(one.vocabulary_size, one.target_vocabulary_size) for one in (model, teacher)]
    if sizes[0] != sizes[1]:
        raise ValueError(
            "A teacher in the loss must have the vocabulary of the model: its distribution is over the same tokens. "
            f"Received: a model with {sizes[0]} ids, a teacher with {sizes[1]}. Train with --vocabulary-from."
        )
    loss_of_labels = getattr(model.compute_loss, "of_labels", model.compute_loss)
    loss_of_teacher = TeacherCrossEntropy()

    def compute_loss(x=None, y=None, y_pred=None, sample_weight=None, training=True):
        loss = loss_of_labels(x, y, y_pred, sample_weight, training=training)
        if not training:
            return loss
        return (1 - weight) * loss + weight * loss_of_teacher(teacher(x), y_pred, sample_weight)

    compute_loss.of_labels = loss_of_labels
    model.compute_loss = compute_loss
    model.train_function = None  # An earlier `fit` has made one with the loss of before.
