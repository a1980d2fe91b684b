"""Greedy search, beam search and sampling over a decoder. This module imports no model.

A *decoder* is any object with three parts. `Transformer.start_decoding` makes one; a test can make one from a table.

- `cache`: the cache of the first step, any pytree of tensors. The first axis of each tensor is the sentences, alone or
  merged with the axes after it, (B, ...) or (B * n, ...), so that a search can continue with some of the sentences.
- `step(token_ids, cache, index, ancestors) -> (logits, cache)` reads the token at position `index` of every row, (R,),
  and returns the logits of the next token, (R, V). Greedy search and sampling have one row per hypothesis, and
  `ancestors` is None. Beam search has the K beams of a sentence in adjacent rows, R = B * K, and never moves cached
  values: `ancestors` (B, K, L) gives, for each beam and each position up to `index`, the one of the sentence's K rows
  that read the beam's token at this position.
- `lengthen(cache, max_length) -> cache` makes room for `max_length` positions; a search in stages calls it.

The argument `settings` is a `keras_transformer.search.SearchSettings`.

All three stop by the same rule: a hypothesis ends at its end token or at its maximum length, and the loop ends as soon
as no row can change its result. Scores are made of the model's own log probabilities: a repetition penalty or a
temperature only affects which tokens are chosen.

References: "Google's Neural Machine Translation System" (Wu et al., 2016), section 7, for the length penalty;
"The Curious Case of Neural Text Degeneration" (Holtzman et al., 2020), section 3, for top-p sampling;
"CTRL" (Keskar et al., 2019), section 4.1, for the repetition penalty.
"""

from typing import NamedTuple

import keras
import numpy as np
from keras import ops

from keras_transformer.base import take_rows

# The log probability of impossible tokens: not -inf, as -inf - -inf is NaN, but far below any sum of log probabilities.
IMPOSSIBLE = -1e9
# Scores of hypotheses are above this, scores of empty places below. Exports write it into their metadata.
NO_HYPOTHESIS = IMPOSSIBLE / 10
# Size of the chunks in which `_top_k` searches a vocabulary.
CHUNK = 32
# Up to about this many comparisons, comparing every value with every other one is faster than k passes.
RANKING_PAYS_TO = 70_000


class Hypotheses(NamedTuple):
    """The result of a search.

    Attributes:
        token_ids: integers (B, K, L), best first, without the start token, with the end token, then padding.
        scores: float32 (B, K), the sum of log probabilities divided by `length_penalty_divisor`. Below `NO_HYPOTHESIS`
            at empty places, if fewer than K hypotheses exist.
    """

    token_ids: object
    scores: object


class SpecialIds(NamedTuple):
    """Ids of the special tokens, and of forbidden ones.

    Attributes:
        start, end, pad: the start, end and padding tokens.
        forbidden: tokens that are never chosen, except where a prefix forces them. Defaults to ().
        num_placeholders: N, number of placeholders, whose ids follow that of the end token. Defaults to 0.
        num_tags: number of language tags that every prefix begins with; their scores do not count. Defaults to 0.
    """

    start: int = 2
    end: int = 3
    pad: int = 0
    forbidden: tuple = ()
    num_placeholders: int = 0
    num_tags: int = 0


class Stage(NamedTuple):
    """One loop of a search. A search may consist of several stages, one after the other.

    Most sentences end long before the last one and long before their maximum length. So a search in stages avoids
    reading empty positions of a long cache and computing rows that have ended.

    Attributes:
        max_length: the stage ends at this length; its cache has this many positions.
        divisor: the stage has room for B / `divisor` sentences, at least one. It begins when all unfinished sentences
            fit in.
    """

    max_length: int
    divisor: int = 1


def length_penalty_divisor(length, length_penalty, length_penalty_type="gnmt"):
    """By what the sum of log probabilities is divided: a function of the length, which counts the end token.

    `"gnmt"`, of the paper: ((5 + length) / 6)^length_penalty. `"power"`, as in Marian and transformers:
    length^length_penalty; with 1 the score is the mean over the tokens.

    Example:
        >>> length_penalty_divisor(7.0, 1.0), length_penalty_divisor(7.0, 1.0, "power")
        (2.0, 7.0)
    """
    return (length if length_penalty_type == "power" else (5.0 + length) / 6.0) ** length_penalty


def greedy(
    decoder,
    batch_size,
    max_length,
    settings,
    limits=None,
    prefix=None,
    special_ids=SpecialIds(),
    jit_compile=False,
    stages=None,
    required=None,
):
    """Takes the most probable token at every position.

    Args:
        decoder: see the module's docstring; its steps get R = B rows.
        batch_size: B, an integer or a scalar integer tensor.
        max_length: L, maximum number of tokens of a hypothesis, including the end token.
        settings: `SearchSettings`. Uses `min_length`, `no_repeat_ngram_size` and `repetition_penalty`.
        limits: (B,), maximum number of tokens for each sentence, at most L. Defaults to L.
        prefix: (B, P), tokens that the hypotheses begin with, padded at the end. Defaults to None.
        special_ids: see `SpecialIds`.
        jit_compile: whether XLA compiles the search. It only selects the operations that are faster; the result is the
            same. Defaults to False.
        stages: a list of `Stage`s with ascending lengths and divisors; the last one has `max_length` L. The result is
            the same for all lists. Defaults to one stage.
        required: bool (B, N), which of the N placeholders a hypothesis must have. It has each of them once and no
            other, unless it reaches its maximum length. Defaults to None: placeholders are tokens like any other.

    Returns:
        `Hypotheses` with K = 1 and scores without length penalty.
    """

    def choose(logits, rows, index):
        past = rows["token_ids"]
        _, token, log_prob = _best_tokens(logits, 1, past, index, rows, settings, special_ids, jit_compile)
        return token[:, 0], log_prob[:, 0]

    given = {"limits": limits, "prefix": prefix, "required": required}
    return _one_by_one(decoder, batch_size, max_length, given, choose, special_ids, stages)


def sample(
    decoder,
    uniforms,
    max_length,
    settings,
    limits=None,
    prefix=None,
    special_ids=SpecialIds(),
    stages=None,
    required=None,
):
    """Draws the token at every position from the model's distribution.

    `uniforms` is the only source of randomness. So a hypothesis depends neither on the other rows of the batch nor on
    the backend.

    Args:
        decoder, limits, prefix, special_ids, stages, required: see `greedy`.
        uniforms: float32 (B, L), uniform in [0, 1).
        max_length: L.
        settings: as for `greedy`. Also uses `temperature`, `top_k` and `top_p`.

    Returns:
        `Hypotheses` with K = 1 and scores without length penalty.
    """

    def choose(logits, rows, index):
        log_probs = ops.log_softmax(logits, axis=-1)
        allowed = _adjust(log_probs, rows["token_ids"], index, rows, settings, special_ids)
        allowed = allowed / settings.temperature
        size = allowed.shape[-1]
        allowed, tokens = ops.top_k(allowed, min(settings.top_k or size, size))  # (B, k), most probable first
        probabilities = ops.softmax(allowed, axis=-1)
        before = ops.cumsum(probabilities, axis=-1) - probabilities
        # A token is kept if the tokens before it have less than `top_p` together; the first is always kept.
        probabilities = ops.where(before < settings.top_p, probabilities, 0.0)
        cumulated = ops.cumsum(probabilities, axis=-1)
        drawn = ops.take(rows["uniforms"], index, axis=1)[:, None] * cumulated[:, -1:]
        place = ops.sum(ops.cast(cumulated <= drawn, "int32"), axis=-1, keepdims=True)
        # Rounding may put the draw after the last token with a probability above 0.
        place = ops.minimum(place, ops.sum(ops.cast(probabilities > 0, "int32"), axis=-1, keepdims=True) - 1)
        token = ops.cast(ops.take_along_axis(tokens, place, axis=-1), "int32")
        log_prob = ops.take_along_axis(log_probs, token, axis=-1)[:, 0]
        return token[:, 0], ops.where(index < special_ids.num_tags, 0.0, log_prob)

    given = {"limits": limits, "prefix": prefix, "required": required, "uniforms": uniforms}
    batch_size = ops.shape(uniforms)[0]
    return _one_by_one(decoder, batch_size, max_length, given, choose, special_ids, stages)


def _one_by_one(decoder, batch_size, max_length, given, choose, special_ids, stages):
    """The loop of greedy search and sampling: `choose` returns a token and its log probability for each row."""
    positions = ops.arange(max_length, dtype="int32")

    def unfinished(index, rows):
        return ops.logical_not(rows["finished"])

    def body(index, rows, cache, length):
        logits, cache = decoder.step(rows["token"], cache, index, None)
        token, log_prob = choose(ops.cast(logits, "float32"), rows, index)
        if isinstance(size := rows["token"].shape[0], int):  # TensorFlow's loop keeps a static size, the layers do not.
            token, log_prob = ops.reshape(token, (size,)), ops.reshape(log_prob, (size,))
        finished = rows["finished"]
        token = ops.where(finished, special_ids.pad, token)
        new = {
            "token": token,
            "scores": rows["scores"] + ops.where(finished, 0.0, log_prob),
            "token_ids": ops.where(positions == index, token[:, None], rows["token_ids"]),
            "finished": ops.logical_or(finished, token == special_ids.end),
        }
        if "limits" in rows:
            new["finished"] = ops.logical_or(new["finished"], index + 1 >= rows["limits"])
        return {**rows, **new}, cache

    rows = {
        "token": _full((batch_size,), special_ids.start),
        "scores": ops.zeros((batch_size,), "float32"),
        "token_ids": _full((batch_size, max_length), special_ids.pad),
        "finished": ops.zeros((batch_size,), "bool"),
        **_tensors(given),
    }
    rows = _run(unfinished, body, rows, decoder, batch_size, stages or [Stage(max_length)])
    return Hypotheses(rows["token_ids"][:, None], rows["scores"][:, None])


def _tensors(given):
    """Tensors of those values that are not None. NumPy's integers have 64 bits, those of a search 32."""
    types = {"limits": "int32", "prefix": "int32", "required": "bool", "uniforms": "float32"}
    return {name: ops.cast(ops.convert_to_tensor(x), types[name]) for name, x in given.items() if x is not None}


def _run(unfinished, body, rows, decoder, batch_size, stages):
    """Runs `body(index, rows, cache, length) -> (rows, cache)` until no row is unfinished or the last stage ends.

    Args:
        unfinished: `unfinished(index, rows)`, boolean (B,). `body` does not change the result of finished rows.
        rows: a pytree of tensors (B, ...).

    Returns:
        `rows` at the end.
    """
    index, cache, left_out = ops.convert_to_tensor(0, "int32"), decoder.cache, []

    def room(stage):
        count = batch_size // stage.divisor
        return max(count, 1) if isinstance(count, int) else ops.maximum(count, 1)

    for number, stage in enumerate(stages):
        before = stages[number - 1] if number else stage
        if stage.divisor > before.divisor:
            # Unfinished sentences first. `order` is kept to restore the original order at the end.
            order = ops.argsort(ops.cast(ops.logical_not(unfinished(index, rows)), "int32"))
            size = ops.shape(order)[0]
            left_out.append((_take_sentences(rows, order[room(stage) :], size), order))
            rows, cache = (_take_sentences(x, order[: room(stage)], size) for x in (rows, cache))
        if number:
            cache = decoder.lengthen(cache, stage.max_length)
        smaller = [room(later) for later in stages[number:] if later.divisor > stage.divisor]

        def goes_on(index, rows, cache, stage=stage, fewer=smaller[0] if smaller else 0):
            count = ops.sum(ops.cast(unfinished(index, rows), "int32"))
            return ops.logical_and(index < stage.max_length, count > fewer)

        def advance(index, rows, cache, stage=stage):
            return index + 1, *body(index, rows, cache, stage.max_length)

        index, rows, cache = ops.while_loop(goes_on, advance, (index, rows, cache))
    for rest, order in reversed(left_out):
        rows = keras.tree.map_structure(lambda x, y: ops.concatenate([x, y]), rows, rest)
        rows = _take_sentences(rows, ops.argsort(order), ops.shape(order)[0])
    return rows


def _take_sentences(tree, sentences, batch_size):
    """The given sentences of a pytree of tensors (B * n, ...)."""
    at_least_one = max(batch_size, 1) if isinstance(batch_size, int) else ops.maximum(batch_size, 1)  # A divisor.

    def take(x):
        count = ops.shape(x)[0] // at_least_one
        indices = sentences[:, None] * count + ops.arange(count, dtype="int32")
        return ops.take(x, ops.reshape(indices, (-1,)), axis=0)

    return keras.tree.map_structure(take, tree)


def beam_search(
    decoder,
    batch_size,
    max_length,
    settings,
    num_hypotheses=None,
    limits=None,
    prefix=None,
    special_ids=SpecialIds(),
    jit_compile=False,
    stages=None,
    required=None,
):
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
            too: then all K are returned, and only so many of them are final.
        limits, prefix, special_ids, jit_compile, stages, required: see `greedy`.

    Returns:
        `Hypotheses`, `num_hypotheses` per sentence, best first. With a repetition penalty, they are ordered by the
        penalised scores.
    """
    num_hypotheses = settings.num_beams if num_hypotheses is None else num_hypotheses
    beams = _Beams(decoder, max_length, settings, num_hypotheses, special_ids, jit_compile)
    rows = beams.start(batch_size, limits, prefix, required)
    rows = _run(beams.unfinished, beams.step, rows, decoder, batch_size, stages or [Stage(max_length)])
    returned = num_hypotheses if isinstance(num_hypotheses, int) else settings.num_beams
    scores, token_ids = rows["scores"][:, :returned], rows["paths"][:, :returned, 1::2]
    if "own" in rows:
        scores = ops.where(scores > IMPOSSIBLE / 2, rows["own"][:, :returned], scores)
    return Hypotheses(token_ids, scores)


class _Beams:
    """The loop of a beam search.

    Its rows are a dict. Each sentence has 2K paths: first the K ended hypotheses, then the K live prefixes, both best
    first. A path is one row of one tensor: without XLA, the number of operations decides the time of a step.

    - `paths`, int32 (B, 2K, 1 + 2L): the newest token, then in turn the token and the ancestor of each position.
    - `scores`, float32 (B, 2K), by which the paths are ranked: of a live prefix the total, which is its sum of log
      probabilities; of a hypothesis the total divided by the length penalty.
    - `own`, only with a repetition penalty: the scores without that penalty.
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
        given = _tensors({"limits": limits, "prefix": prefix, "required": required})
        first = ops.where(self.columns == 0, self.special_ids.start, self.special_ids.pad)
        rows = {"paths": _full(shape, 0) + first, "scores": scores, "limits": _full((batch_size,), self.max_length)}
        if self.settings.repetition_penalty != 1.0:
            rows["own"] = ops.zeros_like(scores)
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
        totals, parents, newest, own = self._candidates(ops.cast(logits, "float32"), rows, live, index)  # (B, 2K) each
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
        scores, best = _top_k(ops.reshape(ranked, (-1, 3 * num_beams)), num_beams, self.jit_compile)
        best = ops.reshape(best, (-1, 2 * num_beams))
        # What each of the (B, 3K) ranked paths continues, and its newest token. An earlier hypothesis stays as it is.
        zeros = ops.zeros_like(parents[:, :num_beams])
        origin = take_rows(ops.concatenate([zeros + self.beams, num_beams + parents], axis=1), best)
        newest = take_rows(ops.concatenate([zeros + self.special_ids.pad, newest], axis=1), best)
        paths = self._extended(take_rows(rows["paths"], origin), newest, origin - num_beams, index)
        new = {"paths": paths, "scores": ops.reshape(scores, (-1, 2 * num_beams))}
        if own is not None:
            own = ops.concatenate([rows["own"][:, :num_beams], own / divisor, own], axis=1)
            shift = ops.repeat(ops.array([0, 2 * num_beams]), num_beams)  # Prefixes have no divisor.
            new["own"] = take_rows(own, best + shift)
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
        best, tokens, log_probs = _best_tokens(
            logits, num_tokens, past, index, given, self.settings, self.special_ids, self.jit_compile
        )
        totals = ops.reshape(best, (-1, num_beams, num_tokens)) + rows["scores"][:, num_beams:, None]
        totals, flat = _top_k(ops.reshape(totals, (-1, num_beams * num_tokens)), count, self.jit_compile)  # (B, 2K)
        parents = flat // num_tokens
        newest = take_rows(ops.reshape(tokens, (-1, num_beams * num_tokens)), flat)
        own = None
        if "own" in rows:
            own = take_rows(ops.reshape(log_probs, (-1, num_beams * num_tokens)), flat)
            own = own + take_rows(rows["own"][:, num_beams:], parents)
        return totals, parents, newest, own

    def _extended(self, paths, newest, parents, index):
        """Paths (B, 2K, 1 + 2L) with their newest tokens and the live prefixes that these continue, (B, 2K) each."""
        is_token = ops.logical_or(self.columns == 0, self.columns == 1 + 2 * index)
        paths = ops.where(self.columns == 2 + 2 * index, parents[..., None], paths)
        return ops.where(is_token, newest[..., None], paths)

    def _divisor(self, length):
        settings = self.settings
        length = ops.cast(length, "float32")
        return length_penalty_divisor(length, settings.length_penalty, settings.length_penalty_type)


def _best_tokens(logits, k, token_ids, index, given, settings, special_ids, jit_compile):
    """The k best tokens of each row under the settings and what is `given`, best first; see `_adjust`.

    Returns:
        Three tensors (R, k): the adjusted log probabilities, the tokens, and the model's own log probabilities.
    """
    if jit_compile and settings.repetition_penalty == 1.0:
        # Only the k best are normalised: this reads the tensor (R, V) and does not write another one of this size.
        normalizer = ops.logsumexp(logits, axis=-1, keepdims=True)
        best, tokens = _top_k(_adjust(logits, token_ids, index, given, settings, special_ids), k, jit_compile)
        best = own = best - normalizer
    else:
        # Without XLA one fused operation is faster. The repetition penalty multiplies log probabilities, not logits.
        log_probs = ops.log_softmax(logits, axis=-1)
        best, tokens = _top_k(_adjust(log_probs, token_ids, index, given, settings, special_ids), k, jit_compile)
        own = ops.take_along_axis(log_probs, tokens, axis=-1) if settings.repetition_penalty != 1.0 else best
    if special_ids.num_tags:  # A language tag costs nothing, because it was not chosen.
        is_tag = ops.logical_and(index < special_ids.num_tags, best > IMPOSSIBLE / 2)
        best, own = ops.where(is_tag, 0.0, best), ops.where(is_tag, 0.0, own)
    return best, tokens, own


def _adjust(log_probs, token_ids, index, given, settings, special_ids):
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


def forbid(logits, token_ids):
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


def _top_k(x, k, jit_compile):
    """The k largest values of the last axis of (R, V) and their indices, largest first.

    `ops.top_k` takes longer than the rest of a step, with XLA and without it. So a long axis is cut into chunks. The k
    largest values are in the k chunks with the largest maxima, and only these chunks are searched.
    """
    top_k = _maxima if jit_compile else ops.top_k
    size = x.shape[-1]
    if size < 4 * k * CHUNK or (k == 1 and not jit_compile):
        return top_k(x, k)
    num_chunks = -(-size // CHUNK)
    if size % CHUNK:
        x = ops.pad(x, [[0, 0], [0, num_chunks * CHUNK - size]], constant_values=3 * IMPOSSIBLE)
    chunks = ops.reshape(x, (-1, num_chunks, CHUNK))
    _, best = top_k(ops.max(chunks, axis=-1), k)
    values, flat = top_k(ops.reshape(take_rows(chunks, best), (-1, k * CHUNK)), k)
    return values, take_rows(best, flat // CHUNK) * CHUNK + flat % CHUNK


def _maxima(x, k):
    """`ops.top_k` in operations that are fast with XLA: by ranks if the rows are short and few, else by k maxima."""
    rows, size = x.shape
    places = ops.arange(size, dtype="int32")
    if rows * size * size <= RANKING_PAYS_TO:
        mine, other = x[:, :, None], x[:, None, :]
        before = ops.logical_or(other > mine, ops.logical_and(other == mine, places < places[:, None]))
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


def _full(shape, value):
    return ops.zeros(shape, "int32") + value
