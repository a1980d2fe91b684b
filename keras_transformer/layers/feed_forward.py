"""The feed-forward sublayer.

Reference: "Attention Is All You Need" (Vaswani et al., 2017), section 3.3.
"""

import keras

from keras_transformer.layers.base import (
    Activation,
    DenseLayers,
    Initializer,
    Regularizer,
    Shape,
    Tensor,
    positive_integer,
)
from keras_transformer.layers.masks import without_padding

DENSE_ARGS = """kernel_initializer: of every dense layer. Defaults to `"glorot_uniform"`.
        bias_initializer: of every dense layer. Defaults to `"zeros"`.
        kernel_regularizer, bias_regularizer: of every dense layer. Default to None.
        **kwargs: `name`, `dtype`, `trainable`, and `activity_regularizer` for the output."""


@keras.saving.register_keras_serializable(package="keras_transformer")
class FeedForward(DenseLayers):
    __doc__ = f"""Two dense layers with an activation between, the same at every position (section 3.3).

        FFN(x) = activation(x W1 + b1) W2 + b2

    Args:
        intermediate_dim: width between the two layers.
        activation: any Keras activation. Defaults to `"relu"`.
        {DENSE_ARGS}

    Call arguments:
        inputs: (..., D).
        mask: padding mask (...), True = real. Keras fills it with the mask that the inputs carry.

    Returns:
        (..., D).

    Example:
        >>> FeedForward(intermediate_dim=32, activation="gelu")(np.ones((2, 5, 8), "float32")).shape
        TensorShape([2, 5, 8])
    """

    def __init__(
        self,
        intermediate_dim: int,
        activation: Activation = "relu",
        kernel_initializer: Initializer = "glorot_uniform",
        bias_initializer: Initializer = "zeros",
        kernel_regularizer: Regularizer = None,
        bias_regularizer: Regularizer = None,
        **kwargs,
    ):
        super().__init__(kernel_initializer, bias_initializer, kernel_regularizer, bias_regularizer, **kwargs)
        self.intermediate_dim = positive_integer("intermediate_dim", intermediate_dim)
        self.activation = keras.activations.get(activation)
        self.intermediate_dense = keras.layers.Dense(
            self.intermediate_dim, activation=self.activation, name="intermediate", **self._dense_settings()
        )

    def build(self, inputs_shape: Shape):
        self.intermediate_dense.build(inputs_shape)
        self.output_dense = keras.layers.Dense(inputs_shape[-1], name="output", **self._dense_settings())
        self.output_dense.build((*inputs_shape[:-1], self.intermediate_dim))

    def compute_output_shape(self, inputs_shape: Shape) -> Shape:
        return tuple(inputs_shape)

    def call(self, inputs: Tensor, mask: Tensor | None = None):
        return self.output_dense(self.intermediate_dense(without_padding(inputs, mask)))

    def get_config(self):
        return {
            **super().get_config(),
            "intermediate_dim": self.intermediate_dim,
            "activation": keras.activations.serialize(self.activation),
        }
