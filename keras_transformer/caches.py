"""What a decoder keeps of the positions that it has read: the keys and values of one block's self-attention.

A cache grows with every step, or has its size from the start:

    growing     a step reads the positions so far and nothing else. For TensorFlow without XLA.
    fixed       a step writes one position, and masks hide those that are still empty. For XLA, which writes in place
                and takes no loop with a size that changes, so for JAX; and for devices. On TensorFlow the write is an
                XLA op, which a stock TensorFlow Serving refuses to run.

The K beams of a sentence have K slices per position, side by side, and what was written stays where it is: `ancestors`
(B, K, L) says for each beam and each position whose slice is its own. Caches have one axis for sentences and heads, and
are stored as the products of attention read them: where a reshape or a transposition stands between the write and the
product, XLA copies all of a cache at every step.

Axes: B sentences, N heads, H width of a head, L positions, K beams.
"""

from typing import NamedTuple

from keras import ops

from keras_transformer.base import Tensor


class GrowingCache(NamedTuple):
    """A cache of the L positions so far.

    Attributes:
        keys: (B * N, H, L * K).
        values: (B * N, L * K, H).
    """

    keys: Tensor
    values: Tensor

    def write(self, keys, values, index):
        """The cache with a position more: keys (B * N, H, K) and values (B * N, K, H). `index` is L, as it must be."""
        return GrowingCache(ops.concatenate([self.keys, keys], axis=2), ops.concatenate([self.values, values], axis=1))

    def mask(self, index, ancestors=None):
        """What each beam sees once position `index` is written: boolean (B, 1, K, L * K), or None for all."""
        return None if ancestors is None else _own_slices(ancestors[:, :, : index + 1])

    def lengthen(self, max_length, num_beams=1):
        """The cache with room for `max_length` positions: itself."""
        return self


class FixedCache(NamedTuple):
    """A cache with room for L positions.

    Attributes:
        keys: (B * N, H, L * K).
        values: (B * N, L * K, H).
    """

    keys: Tensor
    values: Tensor

    def write(self, keys, values, index):
        """The cache with the keys (B * N, H, K) and values (B * N, K, H) of position `index`; the others stay."""
        return FixedCache(_write_slices(self.keys, keys, index, 2), _write_slices(self.values, values, index, 1))

    def mask(self, index, ancestors=None):
        """What each beam sees once position `index` is written: boolean (B, 1, K, L * K), or (L,) for one beam."""
        num_beams = 1 if ancestors is None else ancestors.shape[1]
        own = None if ancestors is None else _own_slices(ancestors)
        filled = ops.arange(ops.shape(self.values)[1], dtype="int32") < (index + 1) * num_beams  # (L * K,)
        return filled if own is None else ops.logical_and(own, filled)

    def lengthen(self, max_length, num_beams=1):
        """The cache with room for `max_length` positions, at least as many as it has."""
        rows, key_dim, size = ops.shape(self.keys)
        more = empty_cache("fixed", rows, key_dim, self.values.shape[2], max_length * num_beams - size, self.keys.dtype)
        return FixedCache(
            ops.concatenate([self.keys, more.keys], axis=2), ops.concatenate([self.values, more.values], axis=1)
        )


CACHES = {"growing": GrowingCache, "fixed": FixedCache}


def empty_cache(cache, rows, key_dim, value_dim, size, dtype):
    """A cache of zeros.

    Args:
        cache: `"growing"` or `"fixed"`.
        rows: B * N.
        key_dim, value_dim: H of keys and of values.
        size: L * K; 0 for a growing cache.
        dtype: of keys and values.

    Raises:
        ValueError: there is no such kind of cache.
    """
    if cache not in CACHES:
        raise ValueError(f"`cache` must be one of {tuple(CACHES)}. Received: {cache!r}.")
    return CACHES[cache](ops.zeros((rows, key_dim, size), dtype), ops.zeros((rows, size, value_dim), dtype))


def _own_slices(ancestors):
    """`ancestors` (B, K, L) as a mask of the slices in a cache: boolean (B, 1, K, L * K)."""
    num_beams = ancestors.shape[1]
    own = ops.expand_dims(ancestors, -1) == ops.arange(num_beams, dtype="int32")  # (B, K, L, K)
    return ops.reshape(own, (-1, 1, num_beams, ops.shape(ancestors)[2] * num_beams))


def _write_slices(x, update, index, axis):
    """x with the K slices `update` in the places of position `index` on `axis`, which has L * K."""
    start = [ops.zeros_like(index)] * 3
    start[axis] = index * ops.shape(update)[axis]
    return ops.slice_update(x, start, update)
