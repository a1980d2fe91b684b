"""How a translation is searched for: the settings, the limits that they set, and the search of a batch.

Keras is imported where it is used: `--help` lists the settings and must not wait for it.
"""

import dataclasses
from dataclasses import dataclass

from keras_transformer.settings import (
    AT_LEAST_0,
    AT_LEAST_1,
    POSITIVE,
    SEED,
    ConfigError,
    Rule,
    Settings,
    changeable,
    documented,
)
from keras_transformer.tokenizers import END_TOKEN_ID, PAD_TOKEN_ID, START_TOKEN_ID, UNKNOWN_TOKEN_ID

# What a translation may have beyond `max_length_ratio`: short sources vary most.
LENGTH_MARGIN = 16


@documented
@dataclass(frozen=True)
class SearchSettings(Settings):
    """How a translation is searched for. What cannot be is a `ConfigError`."""

    num_beams: int = changeable(
        4,
        "beams of the search; 1 is greedy search",
        AT_LEAST_1,
        Rule(lambda value: value <= 256, "at most 256: each beam takes memory for logits and caches of its own"),
    )
    length_penalty: float = changeable(0.6, "scores are divided by ((5 + length) / 6)^this")
    max_length: int | None = changeable(
        None,
        "most tokens of a translation, the end token included (default: what the ratio allows)",
        AT_LEAST_1,
        flat="decoding_max_length",
    )
    max_length_ratio: float = changeable(
        2.0, f"most tokens of a translation, per source token; {LENGTH_MARGIN} more are allowed", AT_LEAST_0
    )
    min_length: int = changeable(0, "least tokens of a translation, the end token included", AT_LEAST_0)
    no_repeat_ngram_size: int = changeable(0, "forbid repeated n-grams of this size (0: off)", AT_LEAST_0)
    repetition_penalty: float = changeable(
        1.0, "log probabilities of tokens that occurred are multiplied by this", POSITIVE
    )
    allow_unknown: bool = changeable(False, "let translations have the unknown token, written as ⁇")
    sampling: bool = changeable(False, "draw tokens at random instead of searching for the best")
    temperature: float = changeable(
        1.0,
        "sampling: log probabilities are divided by this",
        Rule(lambda value: value > 0, "positive; for the most probable token use num_beams=1"),
    )
    top_k: int = changeable(0, "sampling: only so many of the most probable tokens (0: all)", AT_LEAST_0)
    top_p: float = changeable(
        1.0,
        "sampling: only the most probable tokens that together have this probability",
        Rule(lambda value: 0 < value <= 1, "in (0, 1]"),
    )
    seed: int = changeable(0, "sampling: seed of the drawing", SEED, flat="sampling_seed")

    def replace(self, **changes):
        """These settings with changes.

        Raises:
            TypeError: there is no such setting.
            ConfigError: a value that cannot be, or is of another type.
        """
        names = [f.name for f in dataclasses.fields(self)]
        unknown = sorted(set(changes) - set(names))
        if unknown:
            raise TypeError(f"No such setting of a search: {', '.join(unknown)}. There are: {', '.join(names)}.")
        return dataclasses.replace(self, **changes) if changes else self

    def within(self, max_length):
        """These settings for at most so many tokens; None for no such limit."""
        return self if max_length is None else self.replace(max_length=min(self.max_length or max_length, max_length))

    def limits(self, source_lengths):
        """Most tokens of the translations of sources with so many tokens, the end tokens counted on both sides.

        Args:
            source_lengths: integers (B,), a NumPy array or a tensor.

        Returns:
            int32 (B,), likewise.
        """
        import numpy as np
        from keras import ops

        if isinstance(source_lengths, np.ndarray):  # TensorFlow would take its time for one number.
            limits = np.floor(self.max_length_ratio * source_lengths.astype("float32") + float(LENGTH_MARGIN))
            return (limits if self.max_length is None else np.minimum(limits, self.max_length)).astype("int32")
        limits = ops.floor(self.max_length_ratio * ops.cast(source_lengths, "float32") + float(LENGTH_MARGIN))
        return ops.cast(limits if self.max_length is None else ops.minimum(limits, float(self.max_length)), "int32")

    def check_num_hypotheses(self, num_hypotheses):
        """Raises a ConfigError unless one search gives so many translations; any number can be drawn."""
        if num_hypotheses < 1 or (num_hypotheses > self.num_beams and not self.sampling):
            raise ConfigError(
                "`num_hypotheses` must be between 1 and `num_beams`: the search keeps no more. "
                f"Received: num_hypotheses={num_hypotheses}, num_beams={self.num_beams}."
            )

    @property
    def forbidden(self):
        """Ids of tokens that no translation has."""
        return [PAD_TOKEN_ID, START_TOKEN_ID] + ([] if self.allow_unknown else [UNKNOWN_TOKEN_ID])


def search(
    model,
    encoder_token_ids,
    limits,
    max_length,
    settings,
    num_hypotheses=1,
    prefix=None,
    uniforms=None,
    jit_compile=False,
    cache=None,
):
    """The search of a batch, in `keras.ops`: for `Translator`, and for the graph that an export writes.

    Args:
        model: a `Transformer`, or whatever has its `start_decoding`.
        encoder_token_ids: (B, S), each row ended by the end token.
        limits: (B,), most tokens of each translation.
        max_length: L, at least the largest of `limits`.
        settings: `SearchSettings`.
        num_hypotheses: how many of the beams' hypotheses are returned. Defaults to 1.
        prefix: (B, P), tokens that the translations begin with, padded. Defaults to none.
        uniforms: (B, L) random numbers, for sampling.
        jit_compile: whether XLA compiles the search. Defaults to False.
        cache: `"growing"` or `"fixed"`, see `keras_transformer.caches`. Defaults to `"fixed"` if XLA compiles the
            search, else to `"growing"`.

    Returns:
        `decoding.Hypotheses`.
    """
    from keras import ops

    from keras_transformer import decoding

    cache = cache or ("fixed" if jit_compile else "growing")
    # A device has one sentence at a time, and no room for a loop's body twice.
    one_stage = cache == "fixed" and not jit_compile
    stages = [decoding.Stage(max_length)] if one_stage else _stages(encoder_token_ids, max_length)
    num_beams = 1 if settings.sampling else settings.num_beams
    decoder = model.start_decoding(encoder_token_ids, stages[0].max_length, num_beams, cache)
    batch_size = ops.shape(encoder_token_ids)[0]
    special_ids = decoding.SpecialIds(START_TOKEN_ID, END_TOKEN_ID, PAD_TOKEN_ID, tuple(settings.forbidden))
    shared = {"limits": limits, "prefix": prefix, "special_ids": special_ids, "stages": stages}
    if num_beams > 1:
        return decoding.beam_search(
            decoder, batch_size, max_length, settings, num_hypotheses, jit_compile=jit_compile, **shared
        )
    if settings.sampling:
        token_ids, scores = decoding.sample(decoder, uniforms, max_length, settings, **shared)
    else:
        token_ids, scores = decoding.greedy(
            decoder, batch_size, max_length, settings, jit_compile=jit_compile, **shared
        )
    length = ops.cast(ops.sum(token_ids != PAD_TOKEN_ID, axis=-1), "float32")
    return decoding.Hypotheses(token_ids, scores / decoding.length_penalty_divisor(length, settings.length_penalty))


def _stages(encoder_token_ids, max_length):
    """Most translations are about as long as their sources; few sentences go on to the limit."""
    from keras import ops

    from keras_transformer.decoding import Stage

    batch_size, length = ops.shape(encoder_token_ids)
    stages = [Stage(max_length)]
    all_static = isinstance(max_length, int)  # And then the shape is, too: XLA compiles it, and caches do not grow.
    if all_static and length < max_length:
        stages.insert(0, Stage(length))
    if not all_static or batch_size > 1:
        stages.append(Stage(max_length, divisor=8))
    return stages
