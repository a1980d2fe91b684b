"""Greedy and beam search over a step function; no model is imported here.

A *step* is any function `step(token_ids, cache, index) -> (logits, cache)`: it reads the token at position `index` of
every row, (R,), and returns the logits of the token after it, (R, V). The cache is any pytree whose tensors have the
R rows first. `Transformer.start_decoding` makes one; a test can make one from a table.

Both searches stop on one rule: a hypothesis ends at its end token or at `max_length` tokens, and the loop ends as soon
as no row can change its answer.

Reference for the length penalty: "Google's Neural Machine Translation System" (Wu et al., 2016), section 7.
"""

from typing import NamedTuple

import keras
from keras import ops

# Stands for "impossible" where -inf would make NaN (-inf - -inf); far below any sum of log probabilities.
IMPOSSIBLE = -1e9


class Hypotheses(NamedTuple):
    """What a search found.

    Attributes:
        token_ids: integers (B, K, L), best first; the start token is left out, the end token is kept, padding follows.
        scores: float32 (B, K), sum of log probabilities divided by `length_penalty_divisor`; `IMPOSSIBLE` or less
            where fewer than K hypotheses exist.
    """

    token_ids: object
    scores: object


def length_penalty_divisor(length, length_penalty):
    """((5 + length) / 6)^length_penalty, where `length` counts the end token.

    Example:
        >>> length_penalty_divisor(7.0, 1.0)
        2.0
    """
    return ((5.0 + length) / 6.0) ** length_penalty


def greedy(step, cache, batch_size, max_length, start_token_id=2, end_token_id=3, pad_token_id=0):
    """Takes the most probable token at every position.

    Args:
        step: see the module's docstring; it is called with R = B rows.
        cache: the cache to begin with.
        batch_size: B, an integer or a scalar integer tensor.
        max_length: L, the most tokens of a hypothesis, the end token included.
        start_token_id, end_token_id, pad_token_id: special ids. Default to 2, 3, 0.

    Returns:
        `Hypotheses` with K = 1 and unpenalised scores.
    """
    positions = ops.arange(max_length, dtype="int32")

    def unfinished(index, token, finished, token_ids, scores, cache):
        return ops.logical_and(index < max_length, ops.logical_not(ops.all(finished)))

    def body(index, token, finished, token_ids, scores, cache):
        logits, cache = step(token, cache, index)
        logits = ops.cast(logits, "float32")
        token = ops.cast(ops.argmax(logits, axis=-1), "int32")
        log_prob = ops.max(logits, axis=-1) - ops.logsumexp(logits, axis=-1)
        token = ops.where(finished, pad_token_id, token)
        scores = scores + ops.where(finished, 0.0, log_prob)
        token_ids = ops.where(positions == index, token[:, None], token_ids)
        return index + 1, token, ops.logical_or(finished, token == end_token_id), token_ids, scores, cache

    state = (
        ops.convert_to_tensor(0, "int32"),
        _full((batch_size,), start_token_id),
        ops.zeros((batch_size,), "bool"),
        _full((batch_size, max_length), pad_token_id),
        ops.zeros((batch_size,), "float32"),
        cache,
    )
    _, _, _, token_ids, scores, _ = ops.while_loop(unfinished, body, state)
    return Hypotheses(token_ids[:, None], scores[:, None])


def beam_search(
    step,
    cache,
    batch_size,
    max_length,
    num_beams,
    vocabulary_size,
    length_penalty=0.0,
    start_token_id=2,
    end_token_id=3,
    pad_token_id=0,
):
    """Keeps the `num_beams` most probable prefixes, and beside them the `num_beams` best ended hypotheses.

    Hypotheses that reach `max_length` without an end token compete with the ended ones by their score. The loop ends
    early when no live prefix can reach the score of the worst kept hypothesis, so stopping never changes the answer.

    Args:
        step: see the module's docstring; it is called with R = B * K rows, the beams of a sentence side by side.
        cache: the cache to begin with, B * K rows.
        batch_size: B, an integer or a scalar integer tensor.
        max_length: L, the most tokens of a hypothesis, the end token included.
        num_beams: K; may be larger than the vocabulary. One beam without length penalty is greedy search.
        vocabulary_size: V, at least 2.
        length_penalty: a; scores are sum(log p) / ((5 + length) / 6)^a. Larger values favour longer hypotheses.
            Defaults to 0, the plain sum.
        start_token_id, end_token_id, pad_token_id: special ids. Default to 2, 3, 0.

    Returns:
        `Hypotheses`, best first.
    """
    positions = ops.arange(max_length, dtype="int32")
    candidates = 2 * num_beams  # At most num_beams of them end, hence at least num_beams go on.

    def unfinished(index, live_ids, live_log_probs, ended_ids, ended_scores, cache):
        best_log_prob = live_log_probs[:, 0]
        # Log probabilities only fall. Of the divisors still possible, the largest one is kindest to a negative sum.
        reachable = ops.maximum(
            best_log_prob / length_penalty_divisor(ops.cast(max_length, "float32"), length_penalty),
            best_log_prob / length_penalty_divisor(ops.cast(index + 1, "float32"), length_penalty),
        )
        return ops.logical_and(index < max_length, ops.any(reachable > ended_scores[:, -1]))

    def body(index, live_ids, live_log_probs, ended_ids, ended_scores, cache):
        newest = ops.where(index == 0, start_token_id, ops.take(live_ids, ops.maximum(index - 1, 0), axis=2))  # (B, K)
        logits, cache = step(ops.reshape(newest, (-1,)), cache, index)
        log_probs = ops.log_softmax(ops.cast(logits, "float32"), axis=-1)
        log_probs = ops.reshape(log_probs, (-1, num_beams, vocabulary_size)) + live_log_probs[..., None]  # (B, K, V)
        log_probs, flat = ops.top_k(ops.reshape(log_probs, (-1, num_beams * vocabulary_size)), candidates)  # (B, 2K)
        parents, tokens = flat // vocabulary_size, flat % vocabulary_size
        ids = ops.where(positions == index, tokens[..., None], _take_rows(live_ids, parents))  # (B, 2K, L)
        ends = tokens == end_token_id
        # Ended candidates compete with the hypotheses that ended before, if they are among the best K: one beam would
        # otherwise end where greedy search goes on. ...
        kept = ops.logical_and(ends, ops.arange(candidates) < num_beams)
        scores = log_probs / length_penalty_divisor(ops.cast(index + 1, "float32"), length_penalty)
        scores = ops.concatenate([ended_scores, ops.where(kept, scores, 2 * IMPOSSIBLE)], axis=1)
        ended_scores, best = ops.top_k(scores, num_beams)
        ended_ids = _take_rows(ops.concatenate([ended_ids, ids], axis=1), best)
        # ... Those that do not end go on.
        live_log_probs, best = ops.top_k(ops.where(ends, 2 * IMPOSSIBLE, log_probs), num_beams)
        live_ids = _take_rows(ids, best)
        rows = ops.arange(batch_size, dtype="int32")[:, None] * num_beams + _take_rows(parents, best)
        rows = ops.reshape(rows, (-1,))
        cache = keras.tree.map_structure(lambda x: ops.take(x, rows, axis=0), cache)
        return index + 1, live_ids, live_log_probs, ended_ids, ended_scores, cache

    ids = _full((batch_size, num_beams, max_length), pad_token_id)
    # All beams begin alike: only the first may have children, or every hypothesis would be found K times.
    first = ops.where(ops.arange(num_beams) == 0, 0.0, IMPOSSIBLE)
    zeros = ops.zeros((batch_size, num_beams), "float32")
    state = (ops.convert_to_tensor(0, "int32"), ids, zeros + first, ids, zeros + 2 * IMPOSSIBLE, cache)
    index, live_ids, live_log_probs, ended_ids, ended_scores, _ = ops.while_loop(unfinished, body, state)

    cut_scores = live_log_probs / length_penalty_divisor(ops.cast(max_length, "float32"), length_penalty)
    cut_scores = ops.where(index == max_length, cut_scores, 2 * IMPOSSIBLE)
    scores, best = ops.top_k(ops.concatenate([ended_scores, cut_scores], axis=1), num_beams)
    return Hypotheses(_take_rows(ops.concatenate([ended_ids, live_ids], axis=1), best), scores)


def _full(shape, value):
    return ops.zeros(shape, "int32") + value


def _take_rows(x, indices):
    """x (B, R, ...), indices (B, K) -> (B, K, ...): for each b, the rows of x[b]."""
    indices = ops.reshape(indices, ops.shape(indices) + (1,) * (len(x.shape) - 2))
    return ops.take_along_axis(x, indices, axis=1)
