"""Greedy search and sampling: one hypothesis in each row."""

from typing import Any

from keras import ops

from keras_transformer.layers.base import Tensor
from keras_transformer.search.decoder import Decoder, Hypotheses, SpecialIds, Stage, full, given_tensors, run_stages
from keras_transformer.search.next_token import adjust, best_tokens
from keras_transformer.search.settings import SearchSettings


def greedy(
    decoder: Decoder,
    batch_size: Any,
    max_length: int,
    settings: SearchSettings,
    limits: Tensor | None = None,
    prefix: Tensor | None = None,
    special_ids: SpecialIds = SpecialIds(),
    jit_compile: bool = False,
    stages: list[Stage] | None = None,
    required: Tensor | None = None,
) -> Hypotheses:
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
        _, token, log_prob = best_tokens(logits, 1, past, index, rows, settings, special_ids, jit_compile)
        return token[:, 0], log_prob[:, 0]

    given = {"limits": limits, "prefix": prefix, "required": required}
    return _one_by_one(decoder, batch_size, max_length, given, choose, special_ids, stages)


def sample(
    decoder: Decoder,
    uniforms: Tensor,
    max_length: int,
    settings: SearchSettings,
    limits: Tensor | None = None,
    prefix: Tensor | None = None,
    special_ids: SpecialIds = SpecialIds(),
    stages: list[Stage] | None = None,
    required: Tensor | None = None,
) -> Hypotheses:
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
        allowed = adjust(log_probs, rows["token_ids"], index, rows, settings, special_ids)
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
        "token": full((batch_size,), special_ids.start),
        "scores": ops.zeros((batch_size,), "float32"),
        "token_ids": full((batch_size, max_length), special_ids.pad),
        "finished": ops.zeros((batch_size,), "bool"),
        **given_tensors(given),
    }
    rows = run_stages(unfinished, body, rows, decoder, batch_size, stages or [Stage(max_length)])
    return Hypotheses(rows["token_ids"][:, None], rows["scores"][:, None])
