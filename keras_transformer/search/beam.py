"""Beam search.

Reference: "Google's Neural Machine Translation System" (Wu et al., 2016), section 7, for the length penalty.
"""

from typing import Any

from keras import ops

from keras_transformer.layers.base import Tensor, take_rows
from keras_transformer.search.decoder import (
    IMPOSSIBLE,
    Decoder,
    Hypotheses,
    SpecialIds,
    Stage,
    full,
    given_tensors,
    length_penalty_divisor,
    run_stages,
)
from keras_transformer.search.next_token import best_tokens, top_k
from keras_transformer.search.settings import SearchSettings


def beam_search(
    decoder: Decoder,
    batch_size: Any,
    max_length: int,
    settings: SearchSettings,
    num_hypotheses: Any = None,
    limits: Tensor | None = None,
    prefix: Tensor | None = None,
    special_ids: SpecialIds = SpecialIds(),
    jit_compile: bool = False,
    stages: list[Stage] | None = None,
    required: Tensor | None = None,
) -> Hypotheses:
    """Keeps the `num_beams` most probable live prefixes and the `num_beams` best ended hypotheses.

    Hypotheses that reach their limit without an end token compete with the ended ones by their score. The loop ends
    early if no live prefix can reach the score of the worst requested hypothesis, so ending early never changes the
    result.

    Args:
        decoder: see the module's docstring; its steps get R = B * K rows, the beams of a sentence adjacent.
        batch_size: B, an integer or a scalar integer tensor.
        max_length: L, maximum number of tokens of a hypothesis, including the end token.
        settings: as for `greedy`. Also uses `length_penalty`, `length_penalty_type` and `num_beams`, K, which may be
            larger than the vocabulary. One beam without length penalty is greedy search.
        num_hypotheses: number of hypotheses to return, at most K. Defaults to K. A scalar integer tensor is possible,
            too: then all K are returned, and only that many of them are final.
        limits, prefix, special_ids, jit_compile, stages, required: see `greedy`.

    Returns:
        `Hypotheses`, `num_hypotheses` per sentence, best first. With a repetition penalty, they are ordered by the
        penalised scores.
    """
    num_hypotheses = settings.num_beams if num_hypotheses is None else num_hypotheses
    beams = _Beams(decoder, max_length, settings, num_hypotheses, special_ids, jit_compile)
    rows = beams.start(batch_size, limits, prefix, required)
    rows = run_stages(beams.unfinished, beams.step, rows, decoder, batch_size, stages or [Stage(max_length)])
    returned = num_hypotheses if isinstance(num_hypotheses, int) else settings.num_beams
    scores, token_ids = rows["scores"][:, :returned], rows["paths"][:, :returned, 1::2]
    if "unpenalised" in rows:
        scores = ops.where(scores > IMPOSSIBLE / 2, rows["unpenalised"][:, :returned], scores)
    return Hypotheses(token_ids, scores)


class _Beams:
    """The loop of a beam search.

    Its rows are a dict. Each sentence has 2K paths: first the K ended hypotheses, then the K live prefixes, both best
    first. A path is one row of one tensor: without XLA, the number of operations decides the time of a step.

    - `paths`, int32 (B, 2K, 1 + 2L): the newest token, then in turn the token and the ancestor of each position.
    - `scores`, float32 (B, 2K), by which the paths are ranked: of a live prefix the total, which is its sum of log
      probabilities; of a hypothesis the total divided by the length penalty.
    - `unpenalised`, only with a repetition penalty: the scores without that penalty.
    - `limits` (B,), and `prefix` (B, P) and `required` (B, N) if there are any.
    """

    def __init__(self, decoder, max_length, settings, num_hypotheses, special_ids, jit_compile):
        self.decoder, self.settings, self.special_ids = decoder, settings, special_ids
        self.max_length, self.num_hypotheses, self.jit_compile = max_length, num_hypotheses, jit_compile
        self.num_beams = settings.num_beams
        self.beams = ops.arange(self.num_beams, dtype="int32")
        self.positions = ops.arange(max_length, dtype="int32")
        self.columns = ops.arange(1 + 2 * max_length, dtype="int32")

    def start(self, batch_size, limits, prefix, required):
        """The rows before the first step."""
        shape = (batch_size, 2 * self.num_beams, 1 + 2 * self.max_length)
        # All beams begin with the same prefix. Only the first one is possible, else each hypothesis would occur K
        # times.
        scores = [2 * IMPOSSIBLE] * self.num_beams + [0.0] + [IMPOSSIBLE] * (self.num_beams - 1)
        scores = ops.zeros((batch_size, 1), "float32") + ops.convert_to_tensor(scores, "float32")
        given = given_tensors({"limits": limits, "prefix": prefix, "required": required})
        first = ops.where(self.columns == 0, self.special_ids.start, self.special_ids.pad)
        rows = {"paths": full(shape, 0) + first, "scores": scores, "limits": full((batch_size,), self.max_length)}
        if self.settings.repetition_penalty != 1.0:
            rows["unpenalised"] = ops.zeros_like(scores)
        return {**rows, **given}

    def unfinished(self, index, rows):
        """Boolean (B,): whether a live prefix can still become one of the requested hypotheses."""
        best, worst = rows["scores"][:, self.num_beams], rows["scores"][:, self.num_hypotheses - 1]
        # Totals only fall. The best score that is still possible is the total over the largest divisor, which is that
        # of the limit or of the next position, depending on the sign of the length penalty.
        reachable = ops.maximum(best / self._divisor(rows["limits"]), best / self._divisor(index + 1))
        return ops.logical_and(best > IMPOSSIBLE / 2, reachable > worst)

    def step(self, index, rows, cache, length):
        """The rows and the cache after position `index`."""
        num_beams = self.num_beams
        live = rows["paths"][:, num_beams:]  # (B, K, 1 + 2L)
        ancestors = ops.where(self.positions == index, self.beams[:, None], live[..., 2::2])  # (B, K, L)
        newest = ops.reshape(live[..., 0], (-1,))
        logits, cache = self.decoder.step(newest, cache, index, ancestors[:, :, :length])
        # (B, 2K) each.
        totals, parents, newest, unpenalised = self._candidates(ops.cast(logits, "float32"), rows, live, index)
        limit_is_reached = (index + 1 >= rows["limits"])[:, None]
        ends = ops.logical_or(newest == self.special_ids.end, limit_is_reached)
        # Ended candidates compete with the earlier hypotheses, but only if they are among the best K. Otherwise a
        # search with one beam would end where greedy search continues.
        kept = ops.logical_and(ends, ops.logical_and(ops.arange(2 * num_beams) < num_beams, totals > IMPOSSIBLE / 2))
        divisor = self._divisor(index + 1)
        ended = [rows["scores"][:, :num_beams], ops.where(kept, totals / divisor, 2 * IMPOSSIBLE)]
        # The other candidates continue. They are at least K of the 2K: only one of each live prefix has the end token.
        going_on = [ops.full_like(ended[0], 4 * IMPOSSIBLE), ops.where(ends, 2 * IMPOSSIBLE, totals)]
        # Both rankings at once: the best K of (B, 3K) for the hypotheses, and for the prefixes.
        ranked = ops.stack([ops.concatenate(ended, axis=1), ops.concatenate(going_on, axis=1)], axis=1)
        scores, best = top_k(ops.reshape(ranked, (-1, 3 * num_beams)), num_beams, self.jit_compile)
        best = ops.reshape(best, (-1, 2 * num_beams))
        # What each of the (B, 3K) ranked paths continues, and its newest token. An earlier hypothesis stays as it is.
        zeros = ops.zeros_like(parents[:, :num_beams])
        origin = take_rows(ops.concatenate([zeros + self.beams, num_beams + parents], axis=1), best)
        newest = take_rows(ops.concatenate([zeros + self.special_ids.pad, newest], axis=1), best)
        paths = self._extended(take_rows(rows["paths"], origin), newest, origin - num_beams, index)
        new = {"paths": paths, "scores": ops.reshape(scores, (-1, 2 * num_beams))}
        if unpenalised is not None:
            unpenalised = ops.concatenate(
                [rows["unpenalised"][:, :num_beams], unpenalised / divisor, unpenalised], axis=1
            )
            shift = ops.repeat(ops.array([0, 2 * num_beams]), num_beams)  # Prefixes have no divisor.
            new["unpenalised"] = take_rows(unpenalised, best + shift)
        return {**rows, **new}, cache

    def _candidates(self, logits, rows, live, index):
        """The best 2K continuations of the live prefixes, best first.

        Returns:
            (B, 2K) each: totals, the live prefix that is continued, the token, and with a repetition penalty the totals
            without it, otherwise None.
        """
        num_beams, count = self.num_beams, 2 * self.num_beams
        num_tokens = min(count, logits.shape[-1])  # At most this many tokens of one beam can be among the best 2K.
        past = ops.reshape(live[..., 1::2], (-1, self.max_length))
        given = {name: ops.repeat(rows[name], num_beams, axis=0) for name in ("prefix", "required") if name in rows}
        best, tokens, log_probs = best_tokens(
            logits, num_tokens, past, index, given, self.settings, self.special_ids, self.jit_compile
        )
        totals = ops.reshape(best, (-1, num_beams, num_tokens)) + rows["scores"][:, num_beams:, None]
        totals, flat = top_k(ops.reshape(totals, (-1, num_beams * num_tokens)), count, self.jit_compile)  # (B, 2K)
        parents = flat // num_tokens
        newest = take_rows(ops.reshape(tokens, (-1, num_beams * num_tokens)), flat)
        unpenalised = None
        if "unpenalised" in rows:
            unpenalised = take_rows(ops.reshape(log_probs, (-1, num_beams * num_tokens)), flat)
            unpenalised = unpenalised + take_rows(rows["unpenalised"][:, num_beams:], parents)
        return totals, parents, newest, unpenalised

    def _extended(self, paths, newest, parents, index):
        """Paths (B, 2K, 1 + 2L) with their newest tokens and the live prefixes that these continue, (B, 2K) each."""
        is_token = ops.logical_or(self.columns == 0, self.columns == 1 + 2 * index)
        paths = ops.where(self.columns == 2 + 2 * index, parents[..., None], paths)
        return ops.where(is_token, newest[..., None], paths)

    def _divisor(self, length):
        settings = self.settings
        length = ops.cast(length, "float32")
        return length_penalty_divisor(length, settings.length_penalty, settings.length_penalty_type)
