"""The model of a run: compiled, with the weights that it begins with, and fitted."""

import logging
import signal
import sys
import time
from collections.abc import Sequence
from contextlib import contextmanager, suppress
from typing import Any

import keras

from keras_transformer.data.batches import TokenBatches
from keras_transformer.files import full_disk_named
from keras_transformer.layers.private import sublayers
from keras_transformer.models.transformer import Transformer
from keras_transformer.text.tokenizer import Tokenizer
from keras_transformer.training.checkpoints import RunCheckpoint, own_weights, save_model
from keras_transformer.training.config import RunConfig
from keras_transformer.training.distribution import agree, in_multi_worker_mode, is_chief
from keras_transformer.training.initialization import add_teacher, copy_weights
from keras_transformer.training.losses import LabelSmoothedCrossEntropy
from keras_transformer.training.metrics import Perplexity, TokenAccuracy
from keras_transformer.training.run import Run
from keras_transformer.training.schedules import make_optimizer, make_schedule

logger = logging.getLogger(__name__)


def check_sizes(config: RunConfig) -> None:
    """Raises a ValueError for sizes that do not fit, by a shallow model: now, and not when all text is encoded."""
    shallow = {"num_layers": 1, "num_decoder_layers": 1, "source_language_token_id": None}
    Transformer(8, max_length=config.data.max_length, **vars(config.model) | shallow)


def compiled_model(config: RunConfig, tokenizers: Sequence[Tokenizer], steps_per_epoch: int) -> Transformer:
    """The `Transformer` of a run, with its optimizer, loss and metrics."""
    model = Transformer(
        tokenizers[0].vocabulary_size,
        target_vocabulary_size=tokenizers[-1].vocabulary_size,
        max_length=config.data.max_length,
        **vars(config.model),
    )
    recipe = config.training
    for part in filter(None, recipe.freeze.split(",")):
        for layer in layers_of(model, part):
            layer.trainable = False
    if recipe.lora_rank:
        add_low_rank_updates(model, recipe.lora_rank)
    schedule = make_schedule(config.peak_learning_rate(), recipe.epochs * steps_per_epoch, recipe.warmup_ratio)
    model.compile(
        optimizer=make_optimizer(schedule, recipe.clip_norm),
        loss=LabelSmoothedCrossEntropy(recipe.label_smoothing),
        weighted_metrics=[TokenAccuracy(), Perplexity()],
        jit_compile=recipe.jit_compile,
        gradient_accumulation_steps=recipe.gradient_accumulation_steps,
    )
    if recipe.teacher:
        add_teacher(model, Run(recipe.teacher).model(), recipe.teacher_weight)
    return model


def add_low_rank_updates(model: Transformer, rank: int) -> None:
    """Freezes all weights, and adds a product of two matrices, (m, rank) and (rank, n), to matrices that were trained.

    These are the matrices of dense layers and of token embeddings. An output matrix of its own and learned positions
    are frozen. At first the products are 0. "LoRA" (Hu et al., 2021), by Keras' `enable_lora`.
    """
    kinds = keras.layers.Dense | keras.layers.Embedding
    layers = [layer for layer in sublayers(model) if isinstance(layer, kinds) and layer.trainable_weights]
    for weight in model.weights:
        weight.trainable = False
    for layer in layers:
        layer.enable_lora(rank)


def layers_of(model: Transformer, part: str) -> list:
    """The layers of a part of a `Transformer`: `"embeddings"`, `"encoder"` or `"decoder"`."""
    if part == "embeddings":
        return [model.encoder_embedding, model.decoder_embedding]
    blocks, norm = getattr(model, f"{part}_blocks"), getattr(model, f"{part}_norm")
    return blocks + ([norm] if norm else [])


def begin(
    model: Transformer, run: Run, folder: Run, config: RunConfig, checkpoint: RunCheckpoint, resume: bool, chief: bool
) -> tuple[int, int]:
    """Gives a model the weights of its checkpoint, or those of other runs that it begins with.

    Args:
        folder: the `Run` that has the vocabulary: `run`, or the one that is being set up.

    Returns:
        The numbers of epochs, and of further steps, that are done.
    """
    recipe = config.training
    epochs_done, steps_done = checkpoint.restore(model) if resume else (0, 0)
    if resume and chief:
        run.go_on(config, epochs_done)
    if epochs_done or steps_done:  # A run that was stopped before its first checkpoint begins again.
        return epochs_done, steps_done
    if recipe.init_from:
        for weight, other in zip(own_weights(model), Run(recipe.init_from).model().weights, strict=True):
            weight.assign(other)
    if recipe.layers_from:
        other = Run(recipe.layers_from)
        layers = [
            [int(i) for i in blocks.split(",")] if blocks else None
            for blocks in (recipe.encoder_layers, recipe.decoder_layers)
        ]
        copied = copy_weights(model, other.model(), *layers, folder.has_vocabulary_of(other))
        logger.info("weights of %s: %s", other, ", ".join(copied))
    return 0, 0


def checkpoint_of(run: Run, config: RunConfig, strategy: Any) -> RunCheckpoint:
    """The callback that keeps the newest and the best weights of a run."""
    recipe = config.training
    times = recipe.monitor, recipe.patience, recipe.max_minutes, recipe.checkpoint_steps
    return RunCheckpoint(run, *times, write=is_chief(strategy), agree=lambda value: agree(strategy, value))


def fit(
    model: Transformer,
    run: Run,
    config: RunConfig,
    batches: TokenBatches,
    validation: TokenBatches,
    callbacks: list,
    done: tuple[int, int],
    strategy: Any,
) -> None:
    """`model.fit`, from where the run stands to its last epoch.

    Args:
        batches, validation: `TokenBatches`.
        callbacks: the last one is that of `checkpoint_of`.
        done: the numbers of epochs and of further steps that are done.
    """
    recipe, checkpoint, chief = config.training, callbacks[-1], is_chief(strategy)
    (epochs_done, steps_done), steps = done, batches.steps_per_epoch
    time_left = TimeLeft(recipe.max_minutes and recipe.max_minutes - checkpoint.state["minutes"])
    with full_disk_named(run), ended_by_signals(checkpoint, strategy), logs(run, model, chief) as callbacks_of_logs:
        # The order matters: each callback sees the metrics that those before it have added.
        callbacks = [*callbacks[:-1], *callbacks_of_logs, checkpoint, *([time_left] if chief else [])]
        # After a kill within an epoch, the rest of that epoch is a `fit` of its own.
        for end in [epochs_done + 1, recipe.epochs] if steps_done else [recipe.epochs]:
            model.fit(
                batches.from_step(epochs_done * steps + steps_done),
                steps_per_epoch=steps - steps_done,
                epochs=end,
                initial_epoch=epochs_done,
                validation_data=validation.dataset,
                shuffle=False,  # The batches are already shuffled.
                verbose=(1 if sys.stdout.isatty() else 2) if chief else 0,
                callbacks=callbacks,
            )
            if model.stop_training:
                break
            epochs_done, steps_done = end, 0


@contextmanager
def ended_by_signals(checkpoint, strategy):
    """A context in which SIGTERM and SIGUSR1 ask for a checkpoint; another one later ends the process at once.

    With several workers, TensorFlow takes SIGTERM for itself.
    """
    numbers = [signal.SIGTERM, *([signal.SIGUSR1] if hasattr(signal, "SIGUSR1") else [])]  # Windows has one of them.
    before = {number: signal.getsignal(number) for number in numbers}
    asked = None

    def ask(number, frame):
        nonlocal asked
        if asked is None:
            checkpoint.asked_by, asked = number, time.monotonic()
        elif time.monotonic() - asked > 1:  # `timeout` sends it twice, to the process and to its group.
            restore()
            signal.raise_signal(number)

    def restore():
        for number, handler in before.items():
            signal.signal(number, handler)

    if in_multi_worker_mode(strategy) or None in before.values():
        yield
        return
    try:
        for number in before:
            signal.signal(number, ask)
    except ValueError:  # Only the main thread can set a signal handler.
        yield
        return
    try:
        yield
        checkpoint.end_if_asked()  # In the last moment.
    finally:
        restore()


@contextmanager
def logs(run, model, chief):
    """The callbacks that write the logs of a run; call `fit` within this context.

    They run before the checkpoint. A kill between the two leaves too many rows, which `run.go_on` removes.
    """
    if not chief:
        yield []
        return
    log = keras.callbacks.CSVLogger(str(run.log_file), append=True)
    try:
        yield [log, keras.callbacks.TensorBoard(str(run.tensorboard_folder), write_graph=False)]
    except KeyboardInterrupt:
        if not run.model_file.exists():  # So that even an interrupted first epoch leaves a model that translates.
            save_model(model, run.model_file)
        raise
    finally:
        if log.csv_file:  # If `fit` fails, Keras calls no callback, and the file would stay open.
            with suppress(OSError):
                log.csv_file.close()


class TimeLeft(keras.callbacks.Callback):
    """Logs between epochs how long the remaining epochs will take, at the speed of the finished ones.

    Args:
        minutes: after which a time limit ends the training. Defaults to None, no limit.
    """

    def __init__(self, minutes: float | None = None):
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
            logger.info(text)

    def on_epoch_end(self, epoch, logs=None):
        self._epochs_done += 1


def _duration(seconds):
    minutes = round(seconds / 60)
    if seconds < 100:
        return f"{round(seconds)} s"
    return f"{minutes} min" if minutes < 100 else f"{minutes // 60} h {minutes % 60} min"
