"""`model.fit` on several devices and several machines, with `tf.distribute`.

One rule: N replicas have the same gradient as one device on the same global batch, even if the replicas have different
numbers of real tokens. The same holds for the micro-batches of gradient accumulation.
"""

import inspect

import keras
from keras import ops

from keras_transformer.layers import private


class DistributedFit:
    """Makes `model.fit` of a `keras.Model` work under `tf.distribute`: `class MyModel(DistributedFit, keras.Model)`.

    `Transformer` uses it. With one replica and no accumulation, training is Keras' own. Otherwise

    - the loss of each replica and each micro-batch is multiplied by its share of the global batch. So the sum of the
      gradients is the gradient of the global batch. If the loss is the mean over the sample weights
      (`reduction="mean_with_sample_weight"`, as in `LabelSmoothedCrossEntropy`), the share is that of the weights. If
      it is the mean over the batch (Keras' default), the share is that of the rows. Your own `compute_loss` must return
      the mean that the loss declares, or without a loss the mean over the sample weights. If the output carries a Keras
      mask, the sample weights must be 0 where the mask is False;
    - gradients are summed over the replicas before the optimizer gets them. So clipping, loss scaling and the check for
      overflow are the same as on one device;
    - XLA compiles the forward and backward pass of each replica. Keras would also compile the communication between
      replicas, and fail;
    - several workers are supported: Keras 3 alone fails with them.

    A model that is saved compiled is loaded compiled, and `fit` continues with the optimizer's state.
    """

    _accumulation_steps = 1  # `compile` may change it.

    def compile(self, *args, gradient_accumulation_steps: int = 1, jit_compile: bool | str = "auto", **kwargs) -> None:
        """`keras.Model.compile` with one more argument.

        Args:
            gradient_accumulation_steps: number of micro-batches that each batch is split into. Each replica computes
                them one after the other, with one update for all: the memory of a small batch, the gradient of a large
                one. An optimizer's argument of the same name accumulates over whole batches instead. Defaults to 1.

        Raises:
            ValueError: batches are split, by micro-batches or replicas, but the loss is not a mean that can be computed
                from parts of the batch, or a `train_step` does not call that of this class.
        """
        steps = gradient_accumulation_steps
        if isinstance(steps, bool) or not isinstance(steps, int) or steps < 1:
            raise ValueError(
                "`gradient_accumulation_steps` must be an integer of at least 1. "
                f"Received: gradient_accumulation_steps={steps!r}."
            )
        if steps > 1 and keras.backend.backend() != "tensorflow":
            raise ValueError(
                "`gradient_accumulation_steps` of `compile` needs the TensorFlow backend. "
                f"Received: gradient_accumulation_steps={steps}, backend {keras.backend.backend()}. "
                "Give it to the optimizer instead; a model that was saved with it loads with compile=False."
            )
        self._accumulation_steps, self._inner_xla, self._jit_compile_asked = steps, False, jit_compile
        if self._splits_batches():
            self._inner_xla, jit_compile = jit_compile is True, False
        super().compile(*args, jit_compile=jit_compile, **kwargs)
        if self._splits_batches():
            _check_train_steps(type(self))
            self._reductions = _checked_reductions(getattr(self, "loss", None))
        if self._splits_batches() and self.optimizer is not None:
            # `train_step` has summed the gradients already.
            private.take_summed_gradients(self.optimizer)

    def get_compile_config(self):
        config = super().get_compile_config()
        # Left out where it is 1: `keras.models.clone_model` gives this to the `compile` of a plain `keras.Model`.
        ours = {"gradient_accumulation_steps": self._accumulation_steps} if self._accumulation_steps > 1 else {}
        # Save the requested value: the effective value may differ on other devices.
        return {**config, **ours, "jit_compile": self._jit_compile_asked} if config else config

    def compile_from_config(self, config):
        if type(self).compile is not DistributedFit.compile:
            return super().compile_from_config(config)  # Keras then warns that such a class must override this method.
        self.compile(**keras.saving.deserialize_keras_object(config))
        if self.optimizer is not None and self.built:
            self.optimizer.build(self.trainable_variables)

    def make_train_function(self, force=False):
        """As in Keras, but creates the optimizer's variables first. Else the train function would be traced twice."""
        to_build = self.optimizer is not None and not self.optimizer.built
        if to_build and all(layer.built for layer in private.sublayers(self)):
            self.optimizer.build(self.trainable_variables)
        return super().make_train_function(force)

    def _splits_batches(self):
        if keras.backend.backend() != "tensorflow":
            return False
        return self._accumulation_steps > 1 or self.distribute_strategy.num_replicas_in_sync > 1

    def train_step(self, *args):
        if not self._splits_batches():
            return super().train_step(*args)
        import tensorflow as tf

        x, y, sample_weight = keras.utils.unpack_x_y_sample_weight(args[0])
        if not all(layer.built for layer in private.sublayers(self)):
            self(x)  # Creates the weights. The result is unused, so TensorFlow does not compute it.
        variables = self.trainable_weights
        used = []  # Those that have a gradient.

        # Defined inside `train_step`, because each replica has its own variables and needs its own trace.
        @tf.function(jit_compile=self._inner_xla or None, autograph=False, reduce_retracing=True)
        def gradients_of(x, y, sample_weight, share):
            with tf.GradientTape() as tape:
                y_pred = self(x, training=True)
                self._check_masks(y_pred, sample_weight)
                loss = private.compute_loss(self, x=x, y=y, y_pred=y_pred, sample_weight=sample_weight, training=True)
                replicas = tf.distribute.get_strategy().num_replicas_in_sync  # Keras has divided by it.
                loss = loss * share * tf.cast(replicas, loss.dtype)
                scaled = self.optimizer.scale_loss(loss)
            self.compute_metrics(x, y, y_pred, sample_weight=sample_weight)
            pairs = list(zip(variables, tape.gradient(scaled, variables), strict=True))
            used[:] = [variable for variable, gradient in pairs if gradient is not None]
            return loss, [tf.convert_to_tensor(gradient) for _, gradient in pairs if gradient is not None]

        total = _all_reduce(self._weight_of(x, sample_weight))
        loss, gradients = 0.0, None
        for part in _micro_batches((x, y, sample_weight), self._accumulation_steps):
            share = tf.math.divide_no_nan(self._weight_of(part[0], part[2]), total)
            part_loss, part_gradients = gradients_of(*part, share)
            loss += part_loss
            gradients = part_gradients if gradients is None else list(map(tf.add, gradients, part_gradients))
        loss, *gradients = _all_reduce([loss, *gradients])
        of_variables = dict(zip(map(id, used), gradients, strict=True))
        self.optimizer.apply_gradients([(of_variables.get(id(variable)), variable) for variable in variables])
        return self._logs(loss, x)

    def test_step(self, *args):
        if not self._splits_batches():
            return super().test_step(*args)
        x, y, sample_weight = keras.utils.unpack_x_y_sample_weight(args[0])
        y_pred = self(x, training=False)
        self._check_masks(y_pred, sample_weight)
        loss = private.compute_loss(self, x=x, y=y, y_pred=y_pred, sample_weight=sample_weight, training=False)
        weight = self._weight_of(x, sample_weight)
        replicas = self.distribute_strategy.num_replicas_in_sync
        self.compute_metrics(x, y, y_pred, sample_weight=sample_weight)
        share = ops.divide_no_nan(weight, _all_reduce(weight))
        return self._logs(_all_reduce(loss * replicas * share), x)

    def _weight_of(self, x, sample_weight):
        """The weight of a part of a batch in the loss: the sum of its sample weights, or the number of its rows."""
        if sample_weight is None or self._reductions <= {"sum_over_batch_size", "mean"}:
            return _rows(x)
        weights = keras.tree.flatten(sample_weight)
        if len(weights) > 1 or len(self._reductions) > 1:
            raise ValueError(
                "With sample weights, several replicas or `gradient_accumulation_steps` need one array of weights and "
                "one kind of mean for all losses: each part of a batch has one weight. Received: "
                f"{len(weights)} arrays of weights, losses with the reductions {sorted(self._reductions)}."
            )
        return ops.sum(ops.cast(weights[0], "float32"))

    def _check_masks(self, y_pred, sample_weight):
        masked = any(private.mask_of(y) is not None for y in keras.tree.flatten(y_pred))
        if masked and (sample_weight is None or self._reductions <= {"sum_over_batch_size", "mean"}):
            raise ValueError(
                "The output of the model carries a Keras mask, so the loss is a mean over real tokens, and the parts "
                "of a batch have different numbers of them. With several replicas or `gradient_accumulation_steps` "
                "pass sample weights, 0 at padding, and a loss with reduction='mean_with_sample_weight'. Received: "
                f"{'no' if sample_weight is None else 'with'} sample weights, reductions {sorted(self._reductions)}."
            )

    def _logs(self, loss, x):
        """The metrics, including the loss of the global batch, weighted by its number of rows."""
        private.track_loss(self, loss, _rows(x))
        logs = self.get_metrics_result()
        # With several workers Keras averages the logs along their first axis, so they need one.
        if private.in_multi_worker_mode(self.distribute_strategy):
            return {name: ops.reshape(value, (1,)) for name, value in logs.items()}
        return logs

    def _maybe_symbolic_build(self, iterator=None, data_batch=None):
        """Keras averages the replicas' shards of a batch to build the metrics, which fails when their sizes differ.

        The name is not public: tests/unit/layers/test_private.py has a test that `fit` calls it.
        """
        strategy = private.strategy_of(self)
        if iterator is not None and strategy is not None and strategy.num_replicas_in_sync > 1:
            _, _, batches = next(iter(iterator))
            first = keras.tree.map_structure(lambda x: strategy.experimental_local_results(x)[0], next(batches))
            data_batch, iterator = first, None
        super()._maybe_symbolic_build(iterator=iterator, data_batch=data_batch)


def _check_train_steps(model_class):
    """Raises a ValueError if an overridden `train_step` does not call the next one: it would not split the batch."""

    def calls_next(code):
        return "train_step" in code.co_names or any(inspect.iscode(c) and calls_next(c) for c in code.co_consts)

    for cls in model_class.__mro__[: model_class.__mro__.index(DistributedFit)]:
        code = getattr(inspect.unwrap(vars(cls).get("train_step")), "__code__", None)
        if code is not None and not calls_next(code):
            raise ValueError(
                "Several replicas and `gradient_accumulation_steps` need the `train_step` of `DistributedFit`, which "
                f"splits the batch. Received: {cls.__name__}.train_step, which does not call super().train_step. Call "
                "it there, or override `compute_loss` instead."
            )


def _checked_reductions(losses):
    """The set of the losses' reductions. Only means are allowed, because their parts can be added up."""
    losses = [loss for loss in keras.tree.flatten(losses) if loss is not None]
    for loss in losses:
        if getattr(loss, "ignore_class", None) is not None:
            raise ValueError(
                "With several replicas or `gradient_accumulation_steps` a loss may not have `ignore_class`: the parts "
                "of a batch would be means over different numbers of tokens. Received: "
                f"{type(loss).__name__}(ignore_class={loss.ignore_class}). Pass sample weights instead, 0 for that "
                "class, and reduction='mean_with_sample_weight'."
            )
    # Keras turns functions and their names into losses with its default reduction.
    reductions = {getattr(loss, "reduction", "sum_over_batch_size") for loss in losses}
    unknown = reductions - {"sum_over_batch_size", "mean", "mean_with_sample_weight"}
    if unknown:
        raise ValueError(
            "With several replicas or `gradient_accumulation_steps` a loss must be a mean, so that the losses of the "
            f"parts of a batch add up to the loss of the batch. Received: reduction={unknown.pop()!r}. "
            "Use reduction='mean_with_sample_weight'."
        )
    return reductions or {"mean_with_sample_weight"}


def _rows(x):
    return ops.cast(ops.shape(keras.tree.flatten(x)[0])[0], "float32")


def _all_reduce(values):
    """The sum over all replicas."""
    import tensorflow as tf

    context = tf.distribute.get_replica_context()
    return context.all_reduce("SUM", values) if context.num_replicas_in_sync > 1 else values


def _micro_batches(batch, count):
    """A structure of tensors, split along the rows into parts of nearly equal size."""
    import tensorflow as tf

    if count == 1:
        return [batch]
    rows = tf.shape(keras.tree.flatten(batch)[0])[0]
    bounds = [rows * i // count for i in range(count + 1)]

    def part(i):
        return keras.tree.map_structure(lambda x: None if x is None else x[bounds[i] : bounds[i + 1]], batch)

    return [part(i) for i in range(count)]
