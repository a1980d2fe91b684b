"""What a search reads and returns: a decoder, special ids, hypotheses; and the loop of all searches.

The argument `settings` is a `keras_transformer.search.settings.SearchSettings`.

All three stop by the same rule: a hypothesis ends at its end token or at its maximum length, and the loop ends as soon
as no row can change its result. Scores are made of the model's own log probabilities: a repetition penalty or a
temperature only affects which tokens are chosen.

References: "Google's Neural Machine Translation System" (Wu et al., 2016), section 7, for the length penalty;
"The Curious Case of Neural Text Degeneration" (Holtzman et al., 2020), section 3, for top-p sampling;
"CTRL" (Keskar et al., 2019), section 4.1, for the repetition penalty.
"""

from typing import Any, NamedTuple, Protocol

import keras
from keras import ops

# The log probability of impossible tokens: not -inf, as -inf - -inf is NaN, but far below any sum of log probabilities.
IMPOSSIBLE = -1e9
# Scores of hypotheses are above this, scores of empty places below. Exports write it into their metadata.
NO_HYPOTHESIS = IMPOSSIBLE / 10


class Decoder(Protocol):
    """What a search reads. `Transformer.start_decoding` makes one; a test can make one from a table.

    Attributes:
        cache: the cache of the first step, any pytree of tensors. The first axis of each tensor is the sentences, alone
            or merged with the axes after it, (B, ...) or (B * n, ...), so that a search can continue with some of the
            sentences.
    """

    cache: Any

    def step(self, token_ids: Any, cache: Any, index: Any, ancestors: Any) -> tuple[Any, Any]:
        """Reads the token at position `index` of every row.

        Greedy search and sampling have one row per hypothesis, and `ancestors` is None. Beam search has the K beams of
        a sentence in adjacent rows, R = B * K, and never moves cached values.

        Args:
            token_ids: (R,).
            ancestors: (B, K, L), for each beam and each position up to `index`, the one of the sentence's K rows that
                read the beam's token at this position; or None.

        Returns:
            The logits of the next token, (R, V), and the cache.
        """
        ...

    def lengthen(self, cache: Any, max_length: int) -> Any:
        """The cache with room for `max_length` positions; a search in stages calls it."""
        ...


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


def length_penalty_divisor(length: Any, length_penalty: float, length_penalty_type: str = "gnmt") -> Any:
    """By what the sum of log probabilities is divided: a function of the length, which counts the end token.

    `"gnmt"`, of the paper: ((5 + length) / 6)^length_penalty. `"power"`, as in Marian and transformers:
    length^length_penalty; with 1 the score is the mean over the tokens.

    Example:
        >>> length_penalty_divisor(7.0, 1.0), length_penalty_divisor(7.0, 1.0, "power")
        (2.0, 7.0)
    """
    return (length if length_penalty_type == "power" else (5.0 + length) / 6.0) ** length_penalty


def given_tensors(given):
    """Tensors of those values that are not None. NumPy's integers have 64 bits, those of a search 32."""
    types = {"limits": "int32", "prefix": "int32", "required": "bool", "uniforms": "float32"}
    return {name: ops.cast(ops.convert_to_tensor(x), types[name]) for name, x in given.items() if x is not None}


def run_stages(unfinished, body, rows, decoder, batch_size, stages):
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


def full(shape, value):
    return ops.zeros(shape, "int32") + value
