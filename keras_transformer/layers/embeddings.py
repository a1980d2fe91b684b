"""Token embeddings plus positions.

Reference: "Attention Is All You Need" (Vaswani et al., 2017), sections 3.4 (embeddings) and 3.5 (positions).
"""

from contextvars import ContextVar
from typing import Any

import keras
import numpy as np
from keras import ops

from keras_transformer.layers.base import Initializer, Regularizer, Shape, Tensor, positive_integer, rate
from keras_transformer.settings import LAYOUTS, POSITION_TYPES, one_of

# The number of positions of an export: `export.tflite` sets it while it traces, for `PositionalEmbedding._positions`.
# Other threads do not see it: they may use the same layer.
NUM_POSITIONS: ContextVar[int | None] = ContextVar("num_positions", default=None)
# Positions of an export, int32 (B, L), in place of 0, 1, ...: `export.explain` sets them while it traces.
POSITIONS: ContextVar[Tensor | None] = ContextVar("positions", default=None)


def _check_sinusoids(hidden_dim, max_wavelength, layout):
    positive_integer("hidden_dim", hidden_dim)
    if hidden_dim < 2 or hidden_dim % 2:
        raise ValueError(
            "`hidden_dim` must be an even number of at least 2: every frequency takes a sine and a cosine. "
            f"Received: hidden_dim={hidden_dim}. Try hidden_dim={max(2, hidden_dim + hidden_dim % 2)}."
        )
    if max_wavelength <= 0:
        raise ValueError(f"`max_wavelength` must be positive. Received: max_wavelength={max_wavelength}.")
    one_of("layout", layout, LAYOUTS)


def _frequencies(hidden_dim, max_wavelength):
    """The d/2 angular frequencies w^(-2i/d), in radians per position, float64."""
    return np.power(float(max_wavelength), -np.arange(0, hidden_dim, 2) / hidden_dim)


def positional_encoding(
    length: int, hidden_dim: int, max_wavelength: float = 10000, layout: str = "interleaved"
) -> np.ndarray:
    """The table of sinusoidal positions (section 3.5).

        PE(pos, 2i)     = sin(pos / max_wavelength^(2i / hidden_dim))
        PE(pos, 2i + 1) = cos(pos / max_wavelength^(2i / hidden_dim))

    Args:
        length: number of positions.
        hidden_dim: width of a row; even.
        max_wavelength: w above; the wavelengths run from 2 pi to nearly 2 pi w. Defaults to 10000.
        layout: `"interleaved"` alternates sine and cosine as in the paper; `"concatenated"` puts all sines before all
            cosines, as Tensor2Tensor does. The rows are the same up to that permutation.

    Returns:
        A float32 NumPy array of shape (length, hidden_dim), computed in float64 and rounded once.

    Example:
        >>> positional_encoding(2, 4, max_wavelength=100).round(4).tolist()
        [[0.0, 1.0, 0.0, 1.0], [0.8414999842643738, 0.5403000116348267, 0.0997999981045723, 0.9950000047683716]]
    """
    _check_sinusoids(hidden_dim, max_wavelength, layout)
    return _table(np.arange(length), hidden_dim, max_wavelength, layout).astype("float32")


def _table(positions, hidden_dim, max_wavelength, layout):
    """The rows of `positional_encoding` in float64, (L,) -> (L, d)."""
    angles = positions[:, None] * _frequencies(hidden_dim, max_wavelength)  # (L, d/2)
    pair = np.stack if layout == "interleaved" else np.concatenate
    return pair([np.sin(angles), np.cos(angles)], axis=-1).reshape(len(positions), hidden_dim)


def positional_rotation(
    offset: int, hidden_dim: int, max_wavelength: float = 10000, layout: str = "interleaved"
) -> np.ndarray:
    """The matrix M that moves every position by an offset: PE(pos + offset) = M PE(pos) for every pos.

    Each pair of sine and cosine turns by its own angle, offset / max_wavelength^(2i / hidden_dim). M depends on the
    offset alone. For this reason the paper hoped that a model could learn to attend by relative positions.

    Args:
        offset: number of positions, an integer; negative moves back.
        hidden_dim, max_wavelength, layout: see `positional_encoding`.

    Returns:
        A float32 NumPy array of shape (hidden_dim, hidden_dim).

    Example:
        >>> table = positional_encoding(8, 4)
        >>> bool(np.allclose(positional_rotation(3, 4) @ table[2], table[5]))
        True
    """
    _check_sinusoids(hidden_dim, max_wavelength, layout)
    angles = offset * _frequencies(hidden_dim, max_wavelength)
    pairs = np.arange(hidden_dim // 2)
    sines, cosines = (2 * pairs, 2 * pairs + 1) if layout == "interleaved" else (pairs, pairs + hidden_dim // 2)
    matrix = np.zeros((hidden_dim, hidden_dim))
    matrix[sines, sines] = matrix[cosines, cosines] = np.cos(angles)
    matrix[sines, cosines], matrix[cosines, sines] = np.sin(angles), -np.sin(angles)
    return matrix.astype("float32")


@keras.saving.register_keras_serializable(package="keras_transformer")
class PositionalEmbedding(keras.layers.Layer):
    """Embeds token ids, scales by sqrt(hidden_dim), adds positions, applies dropout.

    The output carries the Keras mask `token_ids != pad_token_id`, and the blocks that follow use it automatically.
    Sinusoidal positions have no maximum length. Positions are added in float32 under every dtype policy but float64,
    because bfloat16 cannot tell position 300 from 301.

    Without a vocabulary the layer adds positions to features, such as spectrograms or patches, and does not scale them.

    Args:
        vocabulary_size: number of token ids, V; `None` if the input is features (B, L, D), not token ids.
        hidden_dim: width of the embedding, D.
        position_type: `"sinusoidal"` (the paper's) or `"learned"`.
        max_length: number of positions in the learned table; required for `"learned"`, unused for `"sinusoidal"`.
        max_wavelength: see `positional_encoding`. Defaults to 10000.
        layout: see `positional_encoding`. Defaults to `"interleaved"`.
        first_position: the sinusoidal position of index 0. Defaults to 0. M2M-100 begins with 2.
        dropout: rate in [0, 1) on the output. Defaults to 0.
        pad_token_id: the id that is masked. Defaults to 0.
        scale_embeddings: whether token embeddings are multiplied by sqrt(hidden_dim) (section 3.4). Defaults to True.
        tie_weights: whether `project` reuses the embedding matrix (section 3.4) or owns a second one. Defaults to True.
        output_bias: whether `project` adds a bias to the logits. Defaults to False, as in the paper.
        embeddings_initializer: of the token embeddings. Defaults to `None`, a normal distribution with standard
            deviation hidden_dim^-0.5: after scaling, the rows have unit variance.
        embeddings_regularizer: of the token embeddings. Defaults to `None`.
        **kwargs: `name`, `dtype`, `trainable`.

    Call arguments:
        token_ids: integers of shape (B, L), or features of shape (B, L, D) if there is no vocabulary. float32 is
            accepted for ids, as in `keras.layers.Embedding`, because Keras turns inputs of undeclared dtype into
            float32. float16 and bfloat16 are not: they cannot represent every id of a large vocabulary. As in that
            layer, the range of ids is not checked: a negative id counts from the last row, and what V or a larger id
            gives depends on the backend and the device.
        start_index: the position of the first column, an integer or a scalar integer tensor. Defaults to 0. Cached
            decoding passes the index of the step.
        positions: integers (B, L) or (L,), the position of each token, for packed or left-padded batches. Defaults to
            `None`: start_index, start_index + 1, ... With learned positions each must be less than `max_length`. In
            tensors this is not checked, and the result for other positions depends on the backend.
        training: whether dropout is active.
        reverse: if True, takes hidden states (..., D) and returns logits (..., V); see `project`. Defaults to False.

    Returns:
        Floats of shape (B, L, D) with a Keras mask of shape (B, L). Features keep the mask that they carry.

    Raises:
        ValueError: an invalid argument or shape, or a position beyond the learned table.

    Example:
        >>> layer = PositionalEmbedding(vocabulary_size=50, hidden_dim=8)
        >>> layer(np.array([[4, 9, 0]])).shape
        TensorShape([1, 3, 8])
        >>> layer(np.array([[0, 4, 9]]), positions=np.array([[0, 0, 1]])).shape  # padded on the left
        TensorShape([1, 3, 8])
        >>> PositionalEmbedding(vocabulary_size=None, hidden_dim=8)(np.ones((1, 3, 8), "float32")).shape
        TensorShape([1, 3, 8])
    """

    def __init__(
        self,
        vocabulary_size: int | None,
        hidden_dim: int,
        position_type: str = "sinusoidal",
        max_length: int | None = None,
        max_wavelength: float = 10000,
        layout: str = "interleaved",
        first_position: int = 0,
        dropout: float = 0.0,
        pad_token_id: int = 0,
        scale_embeddings: bool = True,
        tie_weights: bool = True,
        output_bias: bool = False,
        embeddings_initializer: Initializer | None = None,
        embeddings_regularizer: Regularizer = None,
        **kwargs,
    ):
        super().__init__(**kwargs)
        _check_position_type(position_type, max_length, first_position)
        if position_type == "sinusoidal":
            _check_sinusoids(hidden_dim, max_wavelength, layout)
        self.vocabulary_size = None if vocabulary_size is None else positive_integer("vocabulary_size", vocabulary_size)
        self.hidden_dim = positive_integer("hidden_dim", hidden_dim)
        self.position_type = position_type
        self.max_length = None if max_length is None else positive_integer("max_length", max_length)
        self.max_wavelength, self.layout, self.first_position = max_wavelength, layout, first_position
        self.dropout = rate("dropout", dropout)
        self.pad_token_id = pad_token_id
        self.scale_embeddings, self.tie_weights, self.output_bias = scale_embeddings, tie_weights, output_bias
        self.embeddings_initializer = keras.initializers.get(embeddings_initializer)
        self.embeddings_regularizer = keras.regularizers.get(embeddings_regularizer)
        self.supports_masking = True
        # Features must not be rounded before the positions are added. The sublayers cast their own inputs.
        self.autocast = self.vocabulary_size is not None
        self.token_embedding = self.bias = None
        if self.vocabulary_size is not None:
            # With variance 1 / hidden_dim, the logits of the tied projection start with unit variance, too.
            default = keras.initializers.RandomNormal(stddev=self.hidden_dim**-0.5)
            self.token_embedding = keras.layers.ReversibleEmbedding(
                self.vocabulary_size,
                self.hidden_dim,
                tie_weights=tie_weights,
                embeddings_initializer=self.embeddings_initializer or default,
                embeddings_regularizer=self.embeddings_regularizer,
                reverse_dtype=self.variable_dtype,
                dtype=self.dtype_policy,
                name="token_embedding",
            )
            self.token_embedding.supports_masking = True  # Else Keras warns that `project` drops the mask.
        self.dropout_layer = keras.layers.Dropout(dropout, dtype=self.dtype_policy, name="dropout")

    def build(self, token_ids_shape: Shape):
        if self.token_embedding is not None:
            self.token_embedding.build(token_ids_shape)
        if self.position_type == "learned":
            self.position_table = self.add_weight(
                name="position_table",
                shape=(self.max_length, self.hidden_dim),
                initializer=keras.initializers.RandomNormal(stddev=0.02),
                autocast=False,
            )
        if self.output_bias and self.token_embedding is not None:
            self.bias = self.add_weight(
                name="output_bias", shape=(self.vocabulary_size,), initializer="zeros", autocast=False
            )

    def __call__(self, token_ids, *args, positions=None, reverse=False, **kwargs):
        # Not in `call`: Keras computes the mask from the arguments given here, and casts floats before `call`.
        if not reverse and hasattr(token_ids, "shape"):
            token_ids = _checked(token_ids, self.vocabulary_size, self.hidden_dim)
        if positions is not None:
            kwargs["positions"] = _checked_positions(positions, self._table_length)
        return super().__call__(token_ids, *args, **kwargs, **({"reverse": True} if reverse else {}))

    def call(
        self,
        token_ids: Tensor,
        start_index: Any = 0,
        positions: Tensor | None = None,
        training: bool | None = None,
        reverse: bool = False,
    ):
        if reverse:
            if self.token_embedding is None:
                raise ValueError(
                    f"Layer {self.name!r} has no vocabulary to project to. Received: vocabulary_size=None. "
                    "Use a keras.layers.Dense."
                )
            logits = self.token_embedding(token_ids, reverse=True)
            return logits if self.bias is None else logits + self.bias
        if self.token_embedding is None:
            x = ops.cast(token_ids, self._sum_dtype)
        else:
            x = ops.cast(self._looked_up(self.token_embedding, token_ids), self._sum_dtype)
            x = x * self.hidden_dim**0.5 if self.scale_embeddings else x
        x = x + self._positions(token_ids, start_index, positions)
        return self.dropout_layer(ops.cast(x, self.compute_dtype), training=training)

    def project(self, hidden: Tensor, output_kernel: Tensor | None = None) -> Tensor:
        """Logits (..., V) of hidden states (..., D): the pre-softmax projection (section 3.4).

        Logits have the dtype of the weights, float32 in mixed precision: a softmax over a vocabulary needs it.

        Args:
            hidden: (..., D).
            output_kernel: the result of `output_kernel`, laid out before. Defaults to None.
        """
        if output_kernel is None:
            # Call this layer, not the inner one: a saved functional model must know which layer owns the weights.
            return self(hidden, reverse=True)
        logits = ops.matmul(ops.cast(hidden, output_kernel.dtype), output_kernel)
        return logits if self.bias is None else logits + self.bias

    def output_kernel(self) -> Tensor | None:
        """The matrix (D, V) of `project`, in memory row by row; None if the embedding is quantized.

        For a few hidden states, a product with it takes a tenth of the time of a product with the embeddings (V, D).
        """
        embedding = self.token_embedding
        if embedding.quantization_mode:
            return None  # Its matrices are integers without their scale, and `project` rounds the hidden states too.
        kernel = ops.transpose(embedding.embeddings) if self.tie_weights else embedding.reverse_embeddings
        return ops.cast(kernel, self.variable_dtype)

    def output_rows(self, token_ids: Tensor) -> tuple[Tensor, Tensor | None]:
        """What `project` needs for some tokens only: vectors (..., D), and biases (...) or None, of ids (...)."""
        embedding = self.token_embedding
        if embedding.quantization_mode:
            raise ValueError(
                "A shortlist reads rows of the embedding matrix, and those of a quantized layer lack their scale. "
                f"Received: a layer quantized to {embedding.quantization_mode}. Search without a shortlist."
            )
        kernel = embedding.embeddings if self.tie_weights else ops.transpose(embedding.reverse_embeddings)
        rows = ops.take(ops.cast(kernel, self.variable_dtype), token_ids, axis=0)
        return rows, None if self.bias is None else ops.take(self.bias, token_ids, axis=0)

    def compute_mask(self, token_ids: Tensor, mask: Tensor | None = None) -> Tensor | None:
        if self.token_embedding is None:
            return mask
        if keras.backend.is_float_dtype(token_ids.dtype):
            return None  # `project`: logits carry no mask; sample weights in the data mark the real tokens.
        return ops.not_equal(token_ids, self.pad_token_id)

    def compute_output_shape(self, token_ids_shape: Shape, reverse: bool = False) -> Shape:
        if reverse:
            return (*token_ids_shape[:-1], self.vocabulary_size)
        return (*token_ids_shape[:2], self.hidden_dim)

    def compute_output_spec(self, token_ids, start_index=0, positions=None, training=None, reverse=False):
        if not reverse:
            _check_length(token_ids.shape[1], start_index, positions, self._table_length)
        dtype = self.variable_dtype if reverse else self.compute_dtype
        return keras.KerasTensor(self.compute_output_shape(token_ids.shape, reverse), dtype=dtype)

    @property
    def _table_length(self):
        """The number of learned positions, or None."""
        return self.max_length if self.position_type == "learned" else None

    @property
    def _sum_dtype(self):
        return keras.backend.result_type(self.compute_dtype, "float32")

    def _positions(self, token_ids, start_index, positions):
        """The rows of the position table to add: (L, D), or (B, L, D) for positions (B, L) and in exports."""
        length, static_start = token_ids.shape[1], isinstance(start_index, int)
        _check_length(length, start_index, positions, self._table_length)
        if NUM_POSITIONS.get() and positions is None:
            # Rows of a table cost less than their sines and cosines, and can be integers. `minimum(token_ids, 0)` is 0.
            # It makes the rows depend on an input: LiteRT's GPU accelerator adds constant tables wrongly.
            places = POSITIONS.get()
            if places is None:
                indices = np.arange(length, dtype="int32")[None] + ops.cast(start_index, "int32")
                places = indices + ops.minimum(token_ids, 0)
            return self._looked_up(lambda places: ops.take(self._table(), places, axis=0), places)
        if positions is None:
            if self.position_type == "sinusoidal" and length is not None and static_start:
                rows = np.arange(length) + self.first_position + start_index
                table = _table(rows, self.hidden_dim, self.max_wavelength, self.layout)
                return ops.convert_to_tensor(table.astype(self._sum_dtype))
            positions = ops.arange(ops.shape(token_ids)[1], dtype="int32") + ops.cast(start_index, "int32")
        if self.position_type == "learned":
            return ops.cast(ops.take(self.position_table, positions, axis=0), self._sum_dtype)
        return self._sinusoids(positions + self.first_position)

    def _table(self):
        """The position table of an export."""
        if self.position_type == "learned":
            return ops.cast(self.position_table, self._sum_dtype)
        rows = np.arange(NUM_POSITIONS.get()) + self.first_position
        return _table(rows, self.hidden_dim, self.max_wavelength, self.layout).astype(self._sum_dtype)

    def _looked_up(self, function, numbers):
        """Rows (B, L, D) for numbers (B, L). For an export, all numbers are in one row: the accelerator needs that."""
        if not NUM_POSITIONS.get():
            return function(numbers)
        rows = function(ops.reshape(numbers, (-1,)))
        return ops.reshape(rows, (*ops.shape(numbers), self.hidden_dim))

    def _sinusoids(self, positions):
        """`positional_encoding` for positions known only at run time, (...) -> (..., D), exact to float32 up to 65,536.

        pos * frequency in float32 would lose 1e-3 radians at position 10,000. So the frequency is measured in turns
        instead of radians and split into three parts. The first two parts have 8 significant bits: their products with
        a 16-bit position are exact, and whole turns are dropped before any rounding.
        """
        turns, parts = _frequencies(self.hidden_dim, self.max_wavelength) / (2 * np.pi), []
        for significant_bits in (8, 8, 53):
            parts.append(_round_to_bits(turns, significant_bits))
            turns = turns - parts[-1]
        parts = ops.convert_to_tensor(np.stack(parts).astype(self._sum_dtype))
        products = ops.cast(positions, self._sum_dtype)[..., None, None] * parts  # (..., 3, d/2)
        phase = ops.sum(products - ops.round(products), axis=-2)
        phase = phase - ops.round(phase)  # At most half a turn: float32 is most precise for small angles.
        angles = phase * (2 * np.pi)
        pair = ops.stack if self.layout == "interleaved" else ops.concatenate
        rows = pair([ops.sin(angles), ops.cos(angles)], axis=-1)
        return ops.reshape(rows, (*ops.shape(angles)[:-1], self.hidden_dim))

    def get_config(self):
        names = ("vocabulary_size", "hidden_dim", "position_type", "max_length", "max_wavelength", "layout", "dropout")
        names += ("first_position", "pad_token_id", "scale_embeddings", "tie_weights", "output_bias")
        return {
            **super().get_config(),
            **{name: getattr(self, name) for name in names},
            "embeddings_initializer": keras.initializers.serialize(self.embeddings_initializer),
            "embeddings_regularizer": keras.regularizers.serialize(self.embeddings_regularizer),
        }


def _check_position_type(position_type, max_length, first_position):
    one_of("position_type", position_type, POSITION_TYPES)
    if position_type == "learned" and max_length is None:
        raise ValueError(
            "`max_length` must be given for learned positions: each position is a row of a table. "
            f"Received: max_length={max_length}. Pass the largest length, or use position_type='sinusoidal'."
        )
    if not isinstance(first_position, int) or first_position < 0 or (first_position and position_type == "learned"):
        raise ValueError(
            "`first_position` must be 0 or more, and is for sinusoidal positions: a table of learned ones begins "
            f"with the first. Received: first_position={first_position!r}, position_type={position_type!r}."
        )


def _checked(inputs, vocabulary_size, hidden_dim):
    """Checks the inputs of a `PositionalEmbedding`; returns token ids as integers, and features unchanged."""
    if hasattr(inputs, "row_splits") or getattr(inputs, "ragged", False):
        raise ValueError(
            "All rows must have the same length: positions are added to a rectangle, and masks mark its padding. "
            f"Received: a ragged tensor of shape {tuple(inputs.shape)}. Pad it: `token_ids.to_tensor()`."
        )
    dtype, shape = keras.backend.standardize_dtype(inputs.dtype), tuple(inputs.shape)
    if vocabulary_size is None:
        if len(shape) != 3 or shape[-1] != hidden_dim or not keras.backend.is_float_dtype(dtype):
            raise ValueError(
                f"Without a vocabulary, positions are added to floats of shape (B, L, {hidden_dim}). "
                f"Received: shape={shape}, dtype={dtype}. For token ids pass `vocabulary_size`."
            )
        return inputs
    if dtype in ("float16", "bfloat16"):
        raise ValueError(
            "Token ids must be integers: floats of half precision cannot represent all large ids. "
            f"Received: dtype={dtype}. Declare the input with keras.Input(..., dtype='int32')."
        )
    if len(shape) != 2:
        raise ValueError(
            f"Token ids must have shape (B, L), one row per sentence. Received: shape={shape}. For features of "
            "shape (B, L, D) pass vocabulary_size=None."
        )
    return ops.cast(inputs, "int32") if keras.backend.is_float_dtype(dtype) else inputs


def _checked_positions(positions, max_length):
    """Checks explicit positions and returns them; NumPy arrays and lists also against a `max_length`."""
    if not hasattr(positions, "shape"):
        positions = np.asarray(positions)
    dtype = keras.backend.standardize_dtype(positions.dtype)
    if "int" not in dtype or len(positions.shape) not in (1, 2):
        raise ValueError(
            "`positions` must be integers of shape (B, L) or (L,), one per token. "
            f"Received: shape={tuple(positions.shape)}, dtype={dtype}."
        )
    if max_length is not None and isinstance(positions, np.ndarray) and positions.size:
        least, last = int(positions.min()), int(positions.max())
        if least < 0 or last >= max_length:
            raise ValueError(
                "`positions` must be in [0, max_length) when positions are learned: each is a row of a table. "
                f"Received: positions from {least} to {last}, max_length={max_length}."
            )
    return positions


def _check_length(length, start_index, positions, max_length):
    """Raises a ValueError for invalid positions, as far as static shapes and Python integers show."""
    if positions is not None:
        if not isinstance(start_index, int) or start_index:
            raise ValueError(
                "`positions` and `start_index` exclude each other: both give the positions of tokens. "
                f"Received: both, start_index={start_index}. Add it to the positions."
            )
        given = positions.shape[-1]
        if length is not None and given is not None and given != length:
            raise ValueError(
                f"`positions` must have one position per token. Received: {given} positions for {length} tokens."
            )
    elif max_length is not None and length is not None:
        last = length + (start_index if isinstance(start_index, int) else 0)
        if last > max_length:
            raise ValueError(
                f"A sequence may not be longer than `max_length` when positions are learned. Received: {last} "
                f"positions, max_length={max_length}. Cut the text, or train with sinusoidal positions."
            )


def _round_to_bits(values, bits):
    mantissa, exponent = np.frexp(values)
    return np.ldexp(np.round(np.ldexp(mantissa, bits)), exponent - bits)
