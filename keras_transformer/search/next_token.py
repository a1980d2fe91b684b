"""The best next tokens of each row, under the settings of a search and what is given.

Reference: "CTRL" (Keskar et al., 2019), section 4.1, for the repetition penalty.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
from keras import ops

from keras_transformer.layers.base import Tensor, take_rows
from keras_transformer.search.decoder import IMPOSSIBLE

# Size of the chunks in which `top_k` searches a vocabulary.
CHUNK = 32
# Up to about this many comparisons, comparing every value with every other one is faster than k passes.
RANKING_PAYS_TO = 70_000


def best_tokens(logits, k, token_ids, index, given, settings, special_ids, jit_compile):
    """The k best tokens of each row under the settings and what is `given`, best first; see `adjust`.

    Returns:
        Three tensors (R, k): the adjusted log probabilities, the tokens, and the model's own log probabilities.
    """
    if jit_compile and settings.repetition_penalty == 1.0:
        # Only the k best are normalised: this reads the tensor (R, V) and does not write another one of this size.
        normalizer = ops.logsumexp(logits, axis=-1, keepdims=True)
        best, tokens = top_k(adjust(logits, token_ids, index, given, settings, special_ids), k, jit_compile)
        best = log_probs_of_best = best - normalizer
    else:
        # Without XLA one fused operation is faster. The repetition penalty multiplies log probabilities, not logits.
        log_probs = ops.log_softmax(logits, axis=-1)
        best, tokens = top_k(adjust(log_probs, token_ids, index, given, settings, special_ids), k, jit_compile)
        penalised = settings.repetition_penalty != 1.0
        log_probs_of_best = ops.take_along_axis(log_probs, tokens, axis=-1) if penalised else best
    if special_ids.num_tags:  # A language tag costs nothing, because it was not chosen.
        is_tag = ops.logical_and(index < special_ids.num_tags, best > IMPOSSIBLE / 2)
        best, log_probs_of_best = ops.where(is_tag, 0.0, best), ops.where(is_tag, 0.0, log_probs_of_best)
    return best, tokens, log_probs_of_best


def adjust(log_probs, token_ids, index, given, settings, special_ids):
    """Applies the settings and what is `given` to the log probabilities or logits (R, V) of position `index`.

    `token_ids` (R, L) holds the tokens before `index`. `given` may have `prefix` (R, P) and `required` (R, N).
    Forbidden tokens get `IMPOSSIBLE`.
    """
    size, original = log_probs.shape[-1], log_probs
    tokens = ops.arange(size, dtype="int32")
    positions = ops.arange(ops.shape(token_ids)[1], dtype="int32")
    if special_ids.forbidden:
        log_probs = forbid(log_probs, special_ids.forbidden)
    if settings.repetition_penalty != 1.0:
        seen = _mark(token_ids, positions < index, size)
        log_probs = ops.where(seen, log_probs * settings.repetition_penalty, log_probs)
    if settings.no_repeat_ngram_size:
        before = settings.no_repeat_ngram_size - 1
        # A token is forbidden if it followed the same tokens earlier that are now the newest ones.
        repeated = ops.logical_and(positions >= before, positions < index)
        for back in range(before, 0, -1):
            newest = ops.take(token_ids, ops.maximum(index - back, 0), axis=1)
            repeated = ops.logical_and(repeated, ops.roll(token_ids, back, axis=1) == newest[:, None])
        forbidden = _mark(token_ids, repeated, size)
        # The end token is always allowed.
        forbidden = ops.logical_and(forbidden, tokens != special_ids.end)
        log_probs = ops.where(forbidden, IMPOSSIBLE, log_probs)
    if settings.min_length > 1:
        too_short = ops.logical_and(tokens == special_ids.end, index + 1 < settings.min_length)
        log_probs = ops.where(too_short, IMPOSSIBLE, log_probs)
    if "required" in given:
        number = special_ids.num_placeholders
        placeholders = ops.arange(special_ids.end + 1, special_ids.end + 1 + number, dtype="int32")
        written = ops.any(token_ids[:, :, None] == placeholders, axis=1)
        missing = ops.logical_and(given["required"], ops.logical_not(written))  # (R, N)
        # No end while one is missing, and no other placeholder.
        impossible = ops.concatenate([ops.any(missing, axis=1, keepdims=True), ops.logical_not(missing)], axis=1)
        impossible = ops.where(impossible, IMPOSSIBLE, 0.0)
        log_probs = log_probs + ops.pad(impossible, [[0, 0], [special_ids.end, size - special_ids.end - 1 - number]])
    prefix = given.get("prefix")
    if prefix is not None:
        width = ops.shape(prefix)[1]
        column = ops.take(prefix, ops.minimum(index, width - 1), axis=1)[:, None]
        forced = ops.logical_and(index < width, column != special_ids.pad)
        # A forced token may be one that is otherwise forbidden.
        log_probs = ops.where(forced, ops.where(tokens == column, original, IMPOSSIBLE), log_probs)
    return log_probs


def forbid(logits: Tensor, token_ids: Sequence[int]) -> Tensor:
    """Logits or log probabilities (..., V) with `IMPOSSIBLE` added to the given tokens."""
    allowed = np.zeros(logits.shape[-1], "float32")
    allowed[list(token_ids)] = IMPOSSIBLE
    return logits + allowed


def _mark(token_ids, where, vocabulary_size):
    """Boolean (R, V): the tokens that occur in `token_ids` (R, L) where `where`, (L,) or (R, L), is True."""
    shape = ops.shape(token_ids)
    rows = ops.broadcast_to(ops.arange(shape[0], dtype="int32")[:, None], shape)
    indices = ops.reshape(ops.stack([rows, token_ids], axis=-1), (-1, 2))
    where = ops.reshape(ops.cast(ops.broadcast_to(where, shape), "int32"), (-1,))
    return ops.scatter(indices, where, (shape[0], vocabulary_size)) > 0


def top_k(x: Tensor, k: int, jit_compile: bool) -> Any:
    """The k largest values of the last axis of (R, V) and their indices, largest first.

    `ops.top_k` takes longer than the rest of a step, with XLA and without it. So a long axis is cut into chunks. The k
    largest values are in the k chunks with the largest maxima, and only these chunks are searched.
    """
    best = _maxima if jit_compile else ops.top_k
    size = x.shape[-1]
    if size < 4 * k * CHUNK or (k == 1 and not jit_compile):
        return best(x, k)
    num_chunks = -(-size // CHUNK)
    if size % CHUNK:
        x = ops.pad(x, [[0, 0], [0, num_chunks * CHUNK - size]], constant_values=3 * IMPOSSIBLE)
    chunks = ops.reshape(x, (-1, num_chunks, CHUNK))
    _, places = best(ops.max(chunks, axis=-1), k)
    values, flat = best(ops.reshape(take_rows(chunks, places), (-1, k * CHUNK)), k)
    return values, take_rows(places, flat // CHUNK) * CHUNK + flat % CHUNK


def _maxima(x, k):
    """`ops.top_k` in operations that are fast with XLA: by ranks if the rows are short and few, else by k maxima."""
    rows, size = x.shape
    places = ops.arange(size, dtype="int32")
    if rows * size * size <= RANKING_PAYS_TO:
        value, other = x[:, :, None], x[:, None, :]
        before = ops.logical_or(other > value, ops.logical_and(other == value, places < places[:, None]))
        rank = ops.sum(ops.cast(before, "int32"), axis=-1)  # (R, n)
        chosen = rank[:, None] == ops.arange(k, dtype="int32")[:, None]  # (R, k, n)
        values = ops.max(ops.where(chosen, x[:, None], 4 * IMPOSSIBLE), axis=-1)
        return values, ops.sum(ops.where(chosen, places, 0), axis=-1)
    values, indices = [], []
    for _ in range(k):
        value = ops.max(x, axis=-1, keepdims=True)
        # The first index of the maximum; XLA's argmax is several times slower.
        index = ops.min(ops.where(x == value, places, size - 1), axis=-1, keepdims=True)
        x = ops.where(places == index, 4 * IMPOSSIBLE, x)
        values.append(value)
        indices.append(index)
    return ops.concatenate(values, axis=-1), ops.concatenate(indices, axis=-1)
