"""Training on several devices and several machines: `tf.distribute` with `model.fit`.

One rule: N replicas have the same gradient as one device on the same global batch, even if the replicas have different
numbers of real tokens. The same holds for the micro-batches of gradient accumulation.
"""

import functools
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import keras

from keras_transformer.layers.private import in_multi_worker_mode
from keras_transformer.settings import STRATEGIES, one_of


def make_strategy(kind: str = "auto") -> Any:
    """A `tf.distribute.Strategy`. Call it before anything else uses TensorFlow: collectives must be set up first.

    Args:
        kind: `"one"`: one device. `"mirrored"`: all GPUs of this machine, or all logical CPUs if it has no GPU.
            `"multi_worker"`: several processes or machines, which `TF_CONFIG` or Slurm's environment describes.
            `"auto"`: multi_worker if `TF_CONFIG` is set, mirrored if there are several GPUs, else one.

    Raises:
        ValueError: there is no second device, or no description of a cluster.
    """
    import tensorflow as tf

    one_of("strategy", kind, STRATEGIES)
    if kind == "auto":
        if "TF_CONFIG" in os.environ:
            kind = "multi_worker"
        else:
            kind = "mirrored" if len(tf.config.list_logical_devices("GPU")) > 1 else "one"
    if kind == "one":
        return tf.distribute.get_strategy()
    if kind == "multi_worker":
        return tf.distribute.MultiWorkerMirroredStrategy(cluster_resolver=_cluster_resolver())
    devices = tf.config.list_logical_devices("GPU") or tf.config.list_logical_devices("CPU")
    if len(devices) < 2:
        raise ValueError(
            "`strategy='mirrored'` needs at least two devices of one machine: it splits every batch among them. "
            f"Received: {[device.name for device in devices]}. Use strategy='one'."
        )
    return tf.distribute.MirroredStrategy([device.name for device in devices])


def _cluster_resolver():
    import tensorflow as tf

    if "TF_CONFIG" in os.environ:
        resolver = tf.distribute.cluster_resolver.TFConfigClusterResolver()
        addresses = resolver.cluster_spec().as_dict().get(resolver.task_type) or ()
        if resolver.task_id is None or not 0 <= resolver.task_id < len(addresses):
            raise ValueError(
                "TF_CONFIG must list the workers, and `task` must be one of them: each needs the addresses of all. "
                f"Received: {os.environ['TF_CONFIG']}. Like this: "
                '{"cluster": {"worker": ["host1:2222", "host2:2222"]}, "task": {"type": "worker", "index": 0}}.'
            )
        return resolver
    if "SLURM_PROCID" in os.environ:
        return tf.distribute.cluster_resolver.SlurmClusterResolver()
    raise ValueError(
        "`strategy='multi_worker'` needs the addresses of the machines. Received: neither TF_CONFIG nor Slurm's "
        "variables in the environment. To try it on one machine: "
        "python -m keras_transformer launch --workers 2 train_keras.py ..."
    )


@contextmanager
def distribute(kind: str = "auto") -> Iterator[Any]:
    """A context in which models are built and compiled for `make_strategy(kind)`. It yields the strategy.

    On the JAX backend it uses and yields `keras.distribution.DataParallel` over all devices, or None for one device.

    Example:
        >>> with distribute("one") as strategy:
        ...     strategy.num_replicas_in_sync
        1
    """
    if keras.backend.backend() == "jax":
        if kind not in ("auto", "one"):
            raise ValueError(f"On JAX, `strategy` is auto or one. Received: {kind!r}.")
        if kind == "one" or len(keras.distribution.list_devices()) < 2:
            yield None
            return
        parallel = keras.distribution.DataParallel(auto_shard_dataset=False)
        with parallel.scope():
            yield parallel
        return
    strategy = make_strategy(kind)
    with strategy.scope():
        yield strategy


def is_chief(strategy: Any) -> bool:
    """Whether this process writes the files: it is the chief, the first worker or the only process."""
    extended = getattr(strategy, "extended", None)  # Not on JAX.
    return extended is None or extended.should_checkpoint


def barrier(strategy: Any) -> None:
    """Waits until all workers have called it."""
    agree(strategy, 0)


def agree(strategy: Any, value: float) -> float:
    """The mean of a number over all workers: each worker gets the same mean."""
    return float(_mean(strategy)(value)) if in_multi_worker_mode(strategy) else value


@functools.cache  # So that TensorFlow traces the function once, and not at every call.
def _mean(strategy):
    import tensorflow as tf

    @tf.function(autograph=False, input_signature=[tf.TensorSpec((), tf.float64)])
    def mean(value):
        return strategy.reduce("MEAN", strategy.run(lambda value: value[None], [value]), axis=0)

    return lambda value: mean(tf.constant(value, tf.float64))


@contextmanager
def worker_errors(strategy: Any, command: str) -> Iterator[None]:
    """A context that ends this process if another worker is lost. A message names the `command` to continue."""
    if not in_multi_worker_mode(strategy):
        yield
        return
    import tensorflow as tf

    try:
        yield
    except tf.errors.OpError as error:
        print(
            f"error: training stopped, another worker is gone or out of reach: {str(error).splitlines()[0]}\n"
            f"Start all workers again; they continue from the newest checkpoint, if there is one:\n  {command}",
            file=sys.stderr,
            flush=True,
        )
        os._exit(1)  # A normal exit would wait for the other workers.
