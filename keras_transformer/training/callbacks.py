"""A callback of `model.fit`: the time that is left."""

import logging
import time

import keras

logger = logging.getLogger(__name__)


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
