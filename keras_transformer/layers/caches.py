"""Caches for decoding: the keys and values of one block's self-attention at the positions decoded so far.

A cache either grows at every step or has its full size from the start:

- `growing`: a step reads the positions so far and no others. For TensorFlow without XLA.
- `fixed`: a step writes one position, and masks hide the empty ones. For XLA (so also for JAX), which writes in place
  and does not allow loops in which a size changes; and for devices. On TensorFlow the write is an XLA op, and a
  standard TensorFlow Serving does not run XLA ops.

The K beams of a sentence have K adjacent slices per position. A slice never moves once it is written: `ancestors`
(B, K, L) gives, for each beam and each position, the beam whose slice it reads. Caches have one axis for sentences and
heads, and their layout is the one that the products of attention read. With a reshape or a transposition between the
write and the product, XLA would copy the whole cache at every step.

Axes: B sentences, N heads, H width of a head, L positions, K beams.
"""

from typing import Any, NamedTuple

from keras import ops

from keras_transformer.layers.base import Tensor


class GrowingCache(NamedTuple):
    """A cache of the L positions so far.

    Attributes:
        keys: (B * N, H, L * K).
        values: (B * N, L * K, H).
    """

    keys: Tensor
    values: Tensor

    def write(self, keys: Tensor, values: Tensor, index: Tensor) -> "GrowingCache":
        """The cache with keys (B * N, H, K) and values (B * N, K, H) of one more position; `index` must equal L."""
        return GrowingCache(ops.concatenate([self.keys, keys], axis=2), ops.concatenate([self.values, values], axis=1))

    def mask(self, index: Tensor, ancestors: Tensor | None = None) -> Tensor | None:
        """What each beam attends to after position `index` is written: boolean (B, 1, K, L * K), or None for all."""
        return None if ancestors is None else _own_slices(ancestors[:, :, : index + 1])

    def lengthen(self, max_length: int, num_beams: int = 1) -> "GrowingCache":
        """The cache unchanged: it grows at every step."""
        return self


class FixedCache(NamedTuple):
    """A cache with room for L positions.

    Attributes:
        keys: (B * N, H, L * K).
        values: (B * N, L * K, H).
    """

    keys: Tensor
    values: Tensor

    def write(self, keys: Tensor, values: Tensor, index: Tensor) -> "FixedCache":
        """The cache with keys (B * N, H, K) and values (B * N, K, H) written at position `index`."""
        return FixedCache(_write_slices(self.keys, keys, index, 2), _write_slices(self.values, values, index, 1))

    def mask(self, index: Tensor, ancestors: Tensor | None = None) -> Tensor:
        """What each beam attends to after position `index` is written: boolean (B, 1, K, L * K); (L,) for one beam."""
        num_beams = 1 if ancestors is None else ancestors.shape[1]
        own = None if ancestors is None else _own_slices(ancestors)
        filled = ops.arange(ops.shape(self.values)[1], dtype="int32") < (index + 1) * num_beams  # (L * K,)
        return filled if own is None else ops.logical_and(own, filled)

    def lengthen(self, max_length: int, num_beams: int = 1) -> "FixedCache":
        """The cache with room for `max_length` positions, which must not be fewer than it has."""
        rows, key_dim, size = ops.shape(self.keys)
        more = empty_cache("fixed", rows, key_dim, self.values.shape[2], max_length * num_beams - size, self.keys.dtype)
        return FixedCache(
            ops.concatenate([self.keys, more.keys], axis=2), ops.concatenate([self.values, more.values], axis=1)
        )


CACHES = {"growing": GrowingCache, "fixed": FixedCache}


Cache = GrowingCache | FixedCache


def empty_cache(cache: str, rows: Any, key_dim: int, value_dim: int, size: Any, dtype: str) -> Cache:
    """A cache of zeros.

    Args:
        cache: `"growing"` or `"fixed"`.
        rows: B * N.
        key_dim, value_dim: width of a head, of keys and of values.
        size: L * K; 0 for a growing cache.
        dtype: of keys and values.

    Raises:
        ValueError: there is no such kind of cache.
    """
    if cache not in CACHES:
        raise ValueError(f"`cache` must be one of {tuple(CACHES)}. Received: {cache!r}.")
    return CACHES[cache](ops.zeros((rows, key_dim, size), dtype), ops.zeros((rows, size, value_dim), dtype))


def _own_slices(ancestors):
    """`ancestors` (B, K, L) as a mask over the slices of a cache: boolean (B, 1, K, L * K)."""
    num_beams = ancestors.shape[1]
    is_own = ops.expand_dims(ancestors, -1) == ops.arange(num_beams, dtype="int32")  # (B, K, L, K)
    return ops.reshape(is_own, (-1, 1, num_beams, ops.shape(ancestors)[2] * num_beams))


def _write_slices(x, update, index, axis):
    """x with the K slices `update` written at position `index` of `axis`, which has size L * K."""
    start = [ops.zeros_like(index)] * 3
    start[axis] = index * ops.shape(update)[axis]
    return ops.slice_update(x, start, update)
