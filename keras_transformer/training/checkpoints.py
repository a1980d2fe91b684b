"""Checkpoints from which a training continues exactly, and the best model."""

import json
import logging
import signal
import time
import zipfile
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import keras
import numpy as np
from keras import ops

from keras_transformer.files import output_path
from keras_transformer.layers.private import sublayers
from keras_transformer.settings import MONITORS, one_of
from keras_transformer.training.run import Run

logger = logging.getLogger(__name__)

# The exit status of a training that was asked to end and has a checkpoint of where it stands: sysexits' EX_TEMPFAIL.
PREEMPTED = 75


class RunCheckpoint(keras.callbacks.Callback):
    """Saves the best model and checkpoints from which training resumes exactly: at the end of epochs, and within them.

    Each file is written under a temporary name and then renamed. If the process is killed at any moment, the old or the
    new file is there, and it is complete.

    If `asked_by` is set, a number of `signal`, the process ends after the step, with a checkpoint and the status
    `PREEMPTED`. While the model is validated, it ends after that, with the checkpoint of the epoch.

    Args:
        run: a `keras_transformer.training.run.Run`.
        monitor: the log that decides which model is best: `"val_loss"` (lowest) or `"val_bleu"` (highest).
        patience: stop after this many epochs without a better model. Defaults to None, never.
        max_minutes: stop at the end of the epoch in which this time is reached. Defaults to None, never.
        every_steps: save a checkpoint also every this many steps of an epoch. Defaults to None, never.
        write: whether to write files. With several workers, only one does. Defaults to True.
        agree: a function that makes one number from the numbers of several workers, which must stop together. Defaults
            to None, for one worker.
    """

    def __init__(
        self,
        run: Run,
        monitor: str = "val_loss",
        patience: int | None = None,
        max_minutes: float | None = None,
        every_steps: int | None = None,
        write: bool = True,
        agree: Callable | None = None,
    ):
        super().__init__()
        self.every_steps, self.write, self.agree = every_steps, write, agree or (lambda value: value)
        one_of("monitor", monitor, MONITORS)
        self.run, self.monitor = run, monitor
        self.patience, self.max_minutes = patience, max_minutes
        self.state = {"epoch": 0, "step": 0, "best": None, "best_epoch": None, "minutes": 0.0}
        self.asked_by = self._reason = self._plain = self._metrics = None

    def restore(self, model: keras.Model) -> tuple[int, int]:
        """Loads the newest undamaged checkpoint into a compiled model.

        Returns:
            The number of finished epochs, and of finished steps of the next one; both are 0 if there is no checkpoint.
        """
        damaged = []
        for path in self.run.checkpoints():
            try:
                with open(path, "rb") as opened, np.load(opened) as file:
                    arrays = {name: file[name] for name in file.files}  # Reading checks the checksum of each array.
                state = {"step": 0, **json.loads(arrays.pop("state").tobytes())}
                metrics = [arrays.pop(name) for name in sorted(arrays) if name.startswith("metric/")]
            except (OSError, ValueError, KeyError, EOFError, zipfile.BadZipFile, zlib.error) as error:
                logger.warning("%s is damaged (%s); trying the one before it.", path, error)
                damaged.append(path)
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
            break
        for path in damaged if self.write else ():  # They would count as newer than those to come.
            path.unlink(missing_ok=True)
        return self.state["epoch"], self.state["step"]

    def on_train_begin(self, logs=None):
        self._began = time.monotonic() - 60 * self.state["minutes"]

    def on_epoch_begin(self, epoch, logs=None):
        self._first_step = self.state["step"]

    def on_train_batch_end(self, batch, logs=None):
        step = self._first_step + batch + 1
        if self._first_step and batch == 0 and self._metrics:
            # Keras resets the metrics when an epoch begins, and makes them in its first step. All of them are sums.
            self._sync()
            for variable, value in zip(self.model.metrics_variables, self._metrics, strict=True):
                variable.assign_add(value)
        if not self.write or not (self.asked_by or (self.every_steps and step % self.every_steps == 0)):
            return
        if batch + 1 == self.params["steps"]:  # The epoch's own checkpoint follows. A resumed epoch needs a step.
            return
        if not np.isfinite(logs["loss"]):  # The weights are useless.
            self.model.stop_training = bool(self.asked_by)
            return
        self._sync()
        self.state |= {"step": step, "minutes": (time.monotonic() - self._began) / 60}
        self._save_checkpoint()
        self.end_if_asked()

    def on_epoch_end(self, epoch, logs=None):
        if not np.isfinite(logs["loss"]):  # The weights are useless, so neither model nor checkpoint is saved.
            self._stop(f"the loss is {logs['loss']}. Try a lower --learning-rate, or --dtype float32")
            self.asked_by = None
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
        self.end_if_asked()
        if reason := self.reason_to_stop():
            self._stop(reason)

    def end_if_asked(self) -> None:
        """Ends the process if a signal asked for it. The newest checkpoint must be of now."""
        if self.asked_by:
            epochs, steps = self.state["epoch"], self.state["step"]
            name = signal.Signals(self.asked_by).name
            logger.info(
                "Ended by %s. %d epochs and %d steps are in the checkpoint; --resume continues.", name, epochs, steps
            )
            raise SystemExit(PREEMPTED)

    def _sync(self):
        """Gives the variables the values that `fit` keeps for itself on JAX."""
        getattr(self.model, "jax_state_sync", lambda: None)()

    def reason_to_stop(self) -> str | None:
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
            logger.info("Stopped: %s.", self._reason)

    def _save_checkpoint(self):
        arrays = {name: to_numpy(variable) for name, variable in _variables(self.model).items()}
        strategy = getattr(self.model, "distribute_strategy", None)  # Not on JAX.
        if self.state["step"] and getattr(strategy, "num_replicas_in_sync", 1) == 1:
            # Several replicas have metrics of their own, which only all of them together could read.
            metrics = enumerate(self.model.metrics_variables)
            arrays.update({f"metric/{i:04d}": to_numpy(variable) for i, variable in metrics})
        arrays["state"] = np.frombuffer(json.dumps(self.state).encode(), "uint8")
        self.run.save_checkpoint(self.state["epoch"], self.state["step"], lambda file: np.savez(file, **arrays))


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


def save_model(model: keras.Model, path: Path, plain: Any = None) -> keras.Model:
    """Writes a `.keras` file under a temporary name, then renames it.

    It saves an uncompiled copy of the model. Otherwise Keras would also save the optimizer, and the file would have
    three times the size. Low-rank updates are added to their matrices.

    Args:
        model: a model with `get_config`.
        path: the path of the file.
        plain: the copy that an earlier call returned, so that no new one is built. Defaults to None.

    Returns:
        The copy.
    """
    if plain is None:
        # What was frozen in this training is no part of the model.
        config = {name: value for name, value in model.get_config().items() if name != "frozen_layers"}
        plain = type(model).from_config(config)
    updated = {id(layer.weights[0]): layer for layer in sublayers(model) if getattr(layer, "lora_enabled", False)}
    for weight, trained in zip(plain.weights, own_weights(model), strict=True):
        value = to_numpy(trained)
        if layer := updated.get(id(trained)):  # Added here: Keras' own sum is rounded in mixed precision.
            a, b = (to_numpy(part) for part in layer.weights if part.name.startswith("lora_"))
            value = value + layer.lora_alpha / layer.lora_rank * (a @ b)
        weight.assign(value)
    with output_path(path) as temporary:
        plain.save(temporary)
    return plain


def own_weights(model: keras.Model) -> list:
    """The weights of a model without its low-rank updates, in the order of the model's weights."""
    return [weight for weight in model.weights if not weight.name.startswith("lora_")]
