"""The training recipe as Keras objects: loss, metrics, schedule, optimizer, callbacks.

Reference: "Attention Is All You Need" (Vaswani et al., 2017), section 5.
Label smoothing: "Rethinking the Inception Architecture" (Szegedy et al., 2016), section 7.
"""

import json
import time
import zipfile
import zlib
from contextlib import contextmanager

import keras
import numpy as np
from keras import ops

from keras_transformer.files import output_path


class _TokenLoss(keras.losses.Loss):
    """A loss of every token."""

    def __call__(self, y_true, y_pred, sample_weight=None):
        return super().__call__(y_true, y_pred, _per_token(sample_weight, y_pred))


@keras.saving.register_keras_serializable(package="keras_transformer")
class LabelSmoothedCrossEntropy(_TokenLoss):
    """Cross-entropy against (1 - e) * one-hot + e / V, from logits and integer labels.

    With sample weights of 1 for real tokens and 0 for padding, as `keras_transformer.data` emits them, the loss is the
    mean over real tokens. The smoothed distribution is never stored as a tensor:

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
        y_true: integer labels (B, T).
        y_pred: logits (B, T, V).
        sample_weight: (B, T); or (B, 1), the same for all tokens of a sentence.

    Example:
        >>> loss = LabelSmoothedCrossEntropy(label_smoothing=0.0)
        >>> round(float(loss(np.array([[1]]), np.zeros((1, 1, 4)), sample_weight=np.ones((1, 1)))), 4)  # log(4)
        1.3863
    """

    def __init__(
        self,
        label_smoothing=0.1,
        reduction="mean_with_sample_weight",
        name="label_smoothed_cross_entropy",
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

    def call(self, y_true, y_pred):
        logits, labels, _ = _flat(y_true, y_pred)

        @ops.custom_gradient
        def loss(logits):
            exponentials, total, log_total = _softmax_parts(logits)
            loss = log_total - (1 - self.label_smoothing) * _pick(logits, labels)
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

    def __init__(self, reduction="mean_with_sample_weight", name="teacher_cross_entropy", **kwargs):
        super().__init__(name=name, reduction=reduction, **kwargs)

    def call(self, y_true, y_pred):
        logits = ops.cast(y_pred, "float32")
        wanted = ops.softmax(ops.stop_gradient(ops.cast(y_true, "float32")), axis=-1)
        return ops.logsumexp(logits, axis=-1) - ops.sum(wanted * logits, axis=-1)


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


# The loss and the metrics use the same operations on the same logits, so that compilers compute equal ones only once.


def _flat(y_true, y_pred, sample_weight=None):
    """Logits (B * T, V) in float32, labels (B * T,) and weights (B * T,) or None."""
    sizes = [tuple(y_true.shape), tuple(y_pred.shape[:-1])]
    if len(sizes[0]) == len(sizes[1]) + 1 and sizes[0][-1] == 1:  # Keras gives labels a last axis in some cases.
        sizes[0] = sizes[0][:-1]
    if len(sizes[0]) != len(sizes[1]) or any(a != b for a, b in zip(*sizes, strict=True) if None not in (a, b)):
        raise ValueError(
            "Labels must have the shape of the logits without their last axis. "
            f"Received: labels {tuple(y_true.shape)}, logits {tuple(y_pred.shape)}."
        )
    weights = None if sample_weight is None else ops.reshape(_per_token(sample_weight, y_pred), (-1,))
    logits = ops.reshape(ops.cast(y_pred, "float32"), (-1, y_pred.shape[-1]))
    return logits, ops.reshape(ops.cast(y_true, "int32"), (-1,)), weights


def _per_token(sample_weight, y_pred):
    """Weights of the tokens: those of sentences, (B,) or (B, 1), are those of all their tokens."""
    if sample_weight is None:
        return None
    sample_weight = ops.convert_to_tensor(sample_weight)
    missing = len(y_pred.shape) - 1 - len(sample_weight.shape)
    if missing > 0:
        sample_weight = ops.reshape(sample_weight, (*ops.shape(sample_weight), *[1] * missing))
    if sample_weight.shape[-1] == 1 != y_pred.shape[-2]:
        sample_weight = ops.broadcast_to(sample_weight, ops.shape(y_pred)[:-1])
    return sample_weight


def _known(labels, vocabulary_size):
    """Which labels are in the vocabulary, bool (M,), and the labels clipped to the vocabulary.

    An index out of bounds gives an error, NaN or, with XLA, the value at the nearest index: this depends on the
    backend.
    """
    inside = ops.clip(labels, 0, vocabulary_size - 1)
    return labels == inside, inside


def _pick(logits, labels):
    """logits[i, labels[i]]: (M, V), (M,) -> (M,); NaN for a label outside the vocabulary."""
    known, indices = _known(labels, logits.shape[-1])
    return ops.where(known, ops.squeeze(ops.take_along_axis(logits, indices[:, None], axis=1), axis=1), np.nan)


def _largest(logits):
    return ops.max(logits, axis=-1, keepdims=True)


def _softmax_parts(logits):
    """exp(z - max z) (M, V), its sums (M,), and log(sum(exp(z))) (M,)."""
    largest = _largest(logits)
    exponentials = ops.exp(logits - largest)
    total = ops.sum(exponentials, axis=-1)
    return exponentials, total, ops.squeeze(largest, axis=-1) + ops.log(total)


@keras.saving.register_keras_serializable(package="keras_transformer")
class Perplexity(keras.metrics.Mean):
    """exp of the mean cross-entropy, without label smoothing. Pass it as a *weighted* metric.

    Example:
        >>> metric = Perplexity()
        >>> metric.update_state(np.array([[1, 2]]), np.zeros((1, 2, 4)), sample_weight=np.array([[1.0, 0.0]]))
        >>> round(float(metric.result()), 3)
        4.0
    """

    def __init__(self, name="perplexity", **kwargs):
        super().__init__(name=name, **kwargs)

    def update_state(self, y_true, y_pred, sample_weight=None):
        logits, labels, weights = _flat(y_true, y_pred, sample_weight)
        *_, log_total = _softmax_parts(logits)
        super().update_state(log_total - _pick(logits, labels), sample_weight=weights)

    def result(self):
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

    def __init__(self, name="token_accuracy", **kwargs):
        super().__init__(name=name, **kwargs)

    def update_state(self, y_true, y_pred, sample_weight=None):
        logits, labels, weights = _flat(y_true, y_pred, sample_weight)
        # The loss needs the largest logit anyway. Keras' argmax would read all logits six times.
        hits = _pick(logits, labels) >= ops.squeeze(_largest(logits), axis=-1)
        super().update_state(ops.cast(hits, "float32"), sample_weight=weights)


@keras.saving.register_keras_serializable(package="keras_transformer")
class InverseSquareRootSchedule(keras.optimizers.schedules.LearningRateSchedule):
    """Linear warm-up, then decay with the inverse square root of the step (section 5.3).

        learning_rate(step) = peak * min(step / warmup_steps, sqrt(warmup_steps / step)),    step = 1, 2, 3, ...

    With peak = (hidden_dim * warmup_steps)^-0.5, see `paper_learning_rate`, this is equation (3) of the paper.

    Args:
        peak: the learning rate at step `warmup_steps`.
        warmup_steps: Defaults to 4000, the paper's.

    Example:
        >>> schedule = InverseSquareRootSchedule(peak=0.5, warmup_steps=4)
        >>> [round(float(schedule(iterations)), 3) for iterations in (0, 3, 15)]
        [0.125, 0.5, 0.25]
    """

    def __init__(self, peak, warmup_steps=4000):
        super().__init__()
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
    """Prints between epochs how long the remaining epochs will take at most."""

    def on_train_begin(self, logs=None):
        self._began, self._epochs_done = time.monotonic(), 0

    def on_epoch_begin(self, epoch, logs=None):
        if self._epochs_done:
            left = self.params["epochs"] - epoch
            per_epoch = (time.monotonic() - self._began) / self._epochs_done
            print(f"{left} epoch{'s' if left > 1 else ''} to go, at most {_duration(left * per_epoch)}", flush=True)

    def on_epoch_end(self, epoch, logs=None):
        self._epochs_done += 1


def _duration(seconds):
    minutes = round(seconds / 60)
    if seconds < 100:
        return f"{round(seconds)} s"
    return f"{minutes} min" if minutes < 100 else f"{minutes // 60} h {minutes % 60} min"


class RunCheckpoint(keras.callbacks.Callback):
    """Saves the best model and checkpoints from which training resumes exactly: at the end of epochs, and within them.

    Each file is written under a temporary name and then renamed. If the process is killed at any moment, the old or the
    new file is there, and it is complete.

    Args:
        run: a `keras_transformer.runs.Run`.
        monitor: the log that decides which model is best: `"val_loss"` (lowest) or `"val_bleu"` (highest).
        patience: stop after this many epochs without a better model. Defaults to None, never.
        max_minutes: stop at the end of the epoch in which this time is reached. Defaults to None, never.
        every_steps: save a checkpoint also after each so many steps of an epoch. Defaults to None, never.
        every_minutes: save a checkpoint also when so many minutes have passed since the last. Defaults to None, never.
        write: whether to write files. With several workers, only one does. Defaults to True.
        agree: a function that makes one number from the numbers of several workers, which must stop together. Defaults
            to None, for one worker.
    """

    def __init__(
        self,
        run,
        monitor="val_loss",
        patience=None,
        max_minutes=None,
        every_steps=None,
        every_minutes=None,
        write=True,
        agree=None,
    ):
        super().__init__()
        self.every_steps, self.every_minutes = every_steps, every_minutes
        self.write, self.agree = write, agree or (lambda value: value)
        if monitor not in ("val_loss", "val_bleu"):
            raise ValueError(f"`monitor` must be 'val_loss' or 'val_bleu'. Received: monitor={monitor!r}.")
        self.run, self.monitor = run, monitor
        self.patience, self.max_minutes = patience, max_minutes
        self.state = {"epoch": 0, "step": 0, "best": None, "best_epoch": None, "minutes": 0.0}
        self._reason = self._plain = self._metrics = None

    def restore(self, model):
        """Loads the newest undamaged checkpoint into a compiled model.

        Returns:
            The number of finished epochs, and of finished steps of the next one; both are 0 if there is no checkpoint.
        """
        for path in self.run.checkpoints():
            try:
                with open(path, "rb") as opened, np.load(opened) as file:
                    arrays = {name: file[name] for name in file.files}  # Reading checks the checksum of each array.
                state = {"step": 0, **json.loads(arrays.pop("state").tobytes())}
                metrics = [arrays.pop(name) for name in sorted(arrays) if name.startswith("metric/")]
            except (OSError, ValueError, KeyError, EOFError, zipfile.BadZipFile, zlib.error) as error:
                print(f"{path} is damaged ({error}); trying the one before it.", flush=True)
                continue
            model.optimizer.build(model.trainable_variables)
            variables = _variables(model)
            shapes = {name: tuple(variable.shape) for name, variable in variables.items()}
            if shapes != {name: array.shape for name, array in arrays.items()}:
                raise ValueError(
                    f"{path} is from another model or optimizer: resume with the settings that the run began with. "
                    f"They are in {self.run.config_file}."
                )
            for name, variable in variables.items():
                variable.assign(arrays[name])
            self.state, self._metrics = state, metrics
            return state["epoch"], state["step"]
        return 0, 0

    def on_train_begin(self, logs=None):
        self._saved = time.monotonic()
        self._began = self._saved - 60 * self.state["minutes"]

    def on_epoch_begin(self, epoch, logs=None):
        self._first_step = self.state["step"]

    def on_train_batch_end(self, batch, logs=None):
        now, step = time.monotonic(), self._first_step + batch + 1
        if self._first_step and batch == 0 and self._metrics:
            # Keras resets the metrics when an epoch begins, and makes them in its first step. All of them are sums.
            self._sync()
            for variable, value in zip(self.model.metrics_variables, self._metrics, strict=True):
                variable.assign_add(value)
        if not self.write or not (
            (self.every_steps and step % self.every_steps == 0)
            or (self.every_minutes and now - self._saved >= 60 * self.every_minutes)
        ):
            return
        if batch + 1 == self.params["steps"]:  # The epoch's own checkpoint follows. A resumed epoch needs a step.
            return
        if not np.isfinite(logs["loss"]):  # The weights are useless.
            return
        self._sync()
        self.state |= {"step": step, "minutes": (now - self._began) / 60}
        self._save_checkpoint()

    def on_epoch_end(self, epoch, logs=None):
        if not np.isfinite(logs["loss"]):  # The weights are useless, so neither model nor checkpoint is saved.
            self._stop(f"the loss is {logs['loss']}. Try a lower --learning-rate, or --dtype float32")
            return
        value, best = float(logs[self.monitor]), self.state["best"]
        better = best is None or (value > best if self.monitor == "val_bleu" else value < best)
        if better and np.isfinite(value):
            self.state |= {"best": value, "best_epoch": epoch}
            if self.write:
                self._plain = save_model(self.model, self.run.model_file, self._plain)
        minutes = self.agree((time.monotonic() - self._began) / 60)
        self.state |= {"epoch": epoch + 1, "step": 0, "minutes": minutes}
        if self.write:
            self._save_checkpoint()
        if reason := self.reason_to_stop():
            self._stop(reason)

    def _sync(self):
        """Gives the variables the values that `fit` keeps for itself on JAX."""
        getattr(self.model, "jax_state_sync", lambda: None)()

    def reason_to_stop(self):
        """Why training should stop after the finished epochs, as words; None if it may continue."""
        best_epoch = self.state["best_epoch"]
        without_better = self.state["epoch"] - (0 if best_epoch is None else best_epoch + 1)
        if self.patience and without_better >= self.patience:
            return f"{self.patience} epochs without a better {self.monitor}"
        if self.max_minutes and self.state["minutes"] >= self.max_minutes:
            return f"{self.max_minutes:g} minutes are over"
        return None

    def _stop(self, reason):
        self.model.stop_training, self._reason = True, reason

    def on_train_end(self, logs=None):
        if self._reason and self.write:
            print(f"Stopped: {self._reason}.", flush=True)

    def _save_checkpoint(self):
        arrays = {name: to_numpy(variable) for name, variable in _variables(self.model).items()}
        strategy = getattr(self.model, "distribute_strategy", None)  # On JAX there is none.
        if self.state["step"] and getattr(strategy, "num_replicas_in_sync", 1) == 1:
            # Several replicas have metrics of their own, which only all of them together could read.
            metrics = enumerate(self.model.metrics_variables)
            arrays.update({f"metric/{i:04d}": to_numpy(variable) for i, variable in metrics})
        arrays["state"] = np.frombuffer(json.dumps(self.state).encode(), "uint8")
        self.run.save_checkpoint(self.state["epoch"], self.state["step"], lambda file: np.savez(file, **arrays))
        self._saved = time.monotonic()


def _variables(model):
    """All variables that training changes, in a fixed order: weights, random generator states, optimizer."""
    names = {}
    for kind, variables in (("model", model.variables), ("optimizer", model.optimizer.variables)):
        names.update({f"{kind}/{i:04d}": variable for i, variable in enumerate(variables)})
    return names


def to_numpy(variable):
    """The value of a Keras variable. If several devices have copies of it, the first copy."""
    copies = getattr(variable.value, "values", None)
    return ops.convert_to_numpy(copies[0] if isinstance(copies, tuple) else variable.value)


def save_model(model, path, plain=None):
    """Writes a `.keras` file under a temporary name, then renames it. With an EMA, it saves the averaged weights.

    It saves an uncompiled copy of the model. Otherwise Keras would also save the optimizer, and the file would have
    three times the size.

    Args:
        model: a model with `get_config`.
        path: the path of the file.
        plain: the copy that an earlier call returned, so that no new one is built. Defaults to None.

    Returns:
        The copy.
    """
    plain = plain or type(model).from_config(model.get_config())
    with averaged_weights(model):
        plain.set_weights([to_numpy(variable) for variable in model.weights])
    with output_path(path) as temporary:
        plain.save(temporary)
    return plain


@contextmanager
def averaged_weights(model):
    """A context in which the model has the moving averages of its weights, if its optimizer keeps averages."""
    optimizer = getattr(model, "optimizer", None)
    optimizer = getattr(optimizer, "inner_optimizer", optimizer)  # Loss scaling wraps the optimizer with the averages.
    if optimizer is None or not optimizer.use_ema or not optimizer.built:
        yield
        return
    kept = [to_numpy(variable) for variable in model.trainable_variables]
    optimizer.finalize_variable_values(model.trainable_variables)
    try:
        yield
    finally:
        for variable, value in zip(model.trainable_variables, kept, strict=True):
            variable.assign(value)
