"""Code that the layers share: checks of their arguments, and the settings of the dense layers inside them."""

import inspect
from collections.abc import Callable
from numbers import Integral, Real
from typing import Any

import keras

from keras_transformer.layers import private

# For type hints. A tensor is a backend tensor, a `keras.KerasTensor` or a NumPy array. The others are as in Keras.
Tensor = Any
Shape = tuple[int | None, ...]
Activation = str | dict | Callable | None
Initializer = str | dict | Callable
Regularizer = str | dict | Callable | None
Constraint = str | dict | Callable | None


def positive_integer(name: str, value: Any) -> int:
    """`value` as an `int`, or a ValueError that names the argument."""
    if not isinstance(value, Integral) or isinstance(value, bool) or value < 1:
        raise ValueError(f"`{name}` must be a positive integer. Received: {name}={value!r}.")
    return int(value)


def rate(name: str, value: Any) -> float:
    """`value` as a `float`, or a ValueError that names the argument."""
    if not isinstance(value, Real) or isinstance(value, bool) or not 0 <= value < 1:
        raise ValueError(
            f"`{name}` must be a number in [0, 1): the share of values that training drops. Received: {name}={value!r}."
        )
    return float(value)


def positive_number(name: str, value: Any) -> float:
    """`value` as a `float`, or a ValueError that names the argument."""
    if not isinstance(value, Real) or isinstance(value, bool) or not 0 < value < float("inf"):
        raise ValueError(f"`{name}` must be a number above 0. Received: {name}={value!r}.")
    return float(value)


def even_shares(width: int, num_heads: int) -> tuple[str, int]:
    """For error messages: the numbers of heads that divide `width`, and the next width that `num_heads` divides."""
    fits = [n for n in range(1, min(width, 2 * num_heads) + 1) if width % n == 0]
    return " or ".join(map(str, fits)), -(-width // num_heads) * num_heads


def check_sequence(name: str, shape: Any, width: int | None = None) -> None:
    """Raises a ValueError unless `shape` is (B, length, `width`). A `width` of `None` allows any width."""
    shape = tuple(shape)
    if any(isinstance(size, (tuple, list)) or hasattr(size, "shape") for size in shape):
        raise ValueError(
            f"`{name}` must be one tensor of shape (batch, length, width). Received: {len(shape)} of them in a list. "
            "Pass each tensor as a separate argument: `layer(x, y)`, not `layer([x, y])`."
        )
    if len(shape) != 3:
        raise ValueError(
            f"`{name}` must have shape (batch, length, width): three axes. Received: shape={shape}. "
            "Reshape it, or for one more axis wrap the layer in `keras.layers.TimeDistributed`."
        )
    if shape[-1] is None:
        raise ValueError(
            f"`{name}` must have a last axis of known size: it sets the shapes of the weights. "
            f"Received: shape={shape}. Give the size, as in `keras.Input((None, 64))`."
        )
    if width is not None and shape[-1] != width:
        raise ValueError(
            f"`{name}` must have width {width}, as in the first call, which set the shapes of the weights. "
            f"Received: shape={shape}. Create another layer for another width."
        )


class DenseLayers(keras.layers.Layer):
    """A layer made of dense layers, with one set of initializers and regularizers for all of them."""

    def __init__(
        self,
        kernel_initializer: Initializer = "glorot_uniform",
        bias_initializer: Initializer = "zeros",
        kernel_regularizer: Regularizer = None,
        bias_regularizer: Regularizer = None,
        **kwargs,
    ):
        super().__init__(**kwargs)
        self.supports_masking = True
        self.kernel_initializer = keras.initializers.get(kernel_initializer)
        self.bias_initializer = keras.initializers.get(bias_initializer)
        self.kernel_regularizer = keras.regularizers.get(kernel_regularizer)
        self.bias_regularizer = keras.regularizers.get(bias_regularizer)
        self._widths = {}  # The widths of the sequences in the first call, by argument name.

    def _dense_settings(self):
        """The arguments of every dense layer inside."""
        return {
            # Copies, because one initializer object gives the same values to all weights of the same shape.
            "kernel_initializer": _copy(self.kernel_initializer),
            "bias_initializer": _copy(self.bias_initializer),
            "kernel_regularizer": self.kernel_regularizer,
            "bias_regularizer": self.bias_regularizer,
            "dtype": self.dtype_policy,
        }

    def _check_sequences(self, **shapes):
        """Checks the shape of each argument, also against its width in the first call. `None`: not given."""
        for name, shape in shapes.items():
            if shape is not None:
                check_sequence(name, shape, self._widths.get(name))

    def _build_for(self, **shapes):
        self._check_sequences(**shapes)
        self._widths = {name: shape[-1] for name, shape in shapes.items() if shape is not None}

    def _check_call(self, *args, **kwargs):
        """Raises a ValueError for arguments of `call` that do not fit."""

    def compute_output_spec(self, *args, **kwargs) -> Any:
        """The output of a symbolic call, without the trace of `call` that takes a tenth of a second.

        `call` is traced for attention scores, and if a subclass has a `call` of its own or layers that are built when
        they are called.
        """
        given = inspect.signature(self.call).bind(*args, **kwargs).arguments
        call, shape = (_owner(type(self), name) for name in ("call", "compute_output_shape"))
        known = call is shape and all(layer.built for layer in private.sublayers(self))
        if given.get("return_attention_scores") or not known:
            return keras.Operation.compute_output_spec(self, *args, **kwargs)
        self._check_call(**given)
        return super().compute_output_spec(*args, **kwargs)

    def get_config(self):
        return {
            **super().get_config(),
            "kernel_initializer": keras.initializers.serialize(self.kernel_initializer),
            "bias_initializer": keras.initializers.serialize(self.bias_initializer),
            "kernel_regularizer": keras.regularizers.serialize(self.kernel_regularizer),
            "bias_regularizer": keras.regularizers.serialize(self.bias_regularizer),
        }


def _owner(cls, name):
    """The class that defines an attribute of a class."""
    return next(base for base in cls.__mro__ if name in vars(base))


def _copy(initializer):
    """Functions have no `clone`."""
    return initializer.clone() if hasattr(initializer, "clone") else initializer


def shape_of(x):
    """The static shape of a tensor. A list of tensors is returned as it is: `check_sequence` then reports it."""
    return None if x is None else getattr(x, "shape", x)


def carry_mask(x: Tensor, mask: Tensor | None) -> None:
    """Attaches a mask that was an argument to an output: Keras itself passes on only the mask of the first input."""
    if mask is not None:
        private.set_mask(x, mask)


def at_least_float32(x: Tensor) -> Tensor:
    """x in float32, or in float64 if it is in float64: for sums and exponentials that half precision would spoil."""
    return keras.ops.cast(x, keras.backend.result_type(x.dtype, "float32"))


def take_rows(x: Tensor, indices: Tensor) -> Tensor:
    """x (B, R, ...), indices (B, K) -> (B, K, ...): for each b, the rows `indices[b]` of x[b]."""
    if keras.backend.backend() == "tensorflow":
        import tensorflow as tf

        return tf.gather(x, indices, batch_dims=1)  # One operation, where Keras' has forty.
    indices = keras.ops.reshape(indices, keras.ops.shape(indices) + (1,) * (len(x.shape) - 2))
    return keras.ops.take_along_axis(x, indices, axis=1)
