"""The learning rate over the steps of a training, and the optimizer.

References: "Attention Is All You Need" (Vaswani et al., 2017), section 5.3; "SGDR" (Loshchilov and Hutter, 2017).
"""

from typing import Any

import keras
from keras import ops


@keras.saving.register_keras_serializable(package="keras_transformer")
class InverseSquareRootSchedule(keras.optimizers.schedules.LearningRateSchedule):
    """Linear warm-up, then decay with the inverse square root of the step (section 5.3).

        learning_rate(step) = peak * min(step / warmup_steps, sqrt(warmup_steps / step)),    step = 1, 2, 3, ...

    With peak = (hidden_dim * warmup_steps)^-0.5, this is equation (3) of the paper: 0.0007 for 512 and 4,000.

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

    def __init__(self, peak: float, warmup_steps: int = 4000):
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


def make_schedule(peak: float, steps: int, warmup_ratio: float = 0.08) -> keras.optimizers.schedules.CosineDecay:
    """Linear warm-up, then half a cosine to zero ("SGDR", Loshchilov and Hutter, 2017, equation 5).

    It is zero after the last step.

    Args:
        peak: the highest learning rate.
        steps: the number of steps of the whole training.
        warmup_ratio: the share of them until the peak. Defaults to 0.08.

    Example:
        >>> schedule = make_schedule(peak=0.5, steps=10, warmup_ratio=0.4)
        >>> [round(float(schedule(iterations)), 3) for iterations in (0, 4, 7, 10)]
        [0.125, 0.5, 0.25, 0.0]
    """
    warmup = max(round(warmup_ratio * steps), 1)
    # Keras counts finished steps: the first step sees 0, and would change nothing if the warm-up began at 0.
    return keras.optimizers.schedules.CosineDecay(
        peak / warmup, max(steps - warmup, 1), warmup_target=peak, warmup_steps=warmup
    )


def make_optimizer(learning_rate: Any, clip_norm: float | None = 1.0) -> keras.optimizers.Optimizer:
    """Adam with the paper's betas and epsilon (section 5.3).

    Args:
        learning_rate: a number or a schedule.
        clip_norm: largest global norm of the gradient; 0 or None: no clipping. Defaults to 1.
    """
    return keras.optimizers.Adam(
        learning_rate, beta_1=0.9, beta_2=0.98, epsilon=1e-9, global_clipnorm=clip_norm or None
    )
