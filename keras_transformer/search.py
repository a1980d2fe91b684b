"""Search settings, the length limits that follow from them, and the search for a batch of translations.

Keras is imported inside the functions that use it: `--help` lists the settings and must not wait for Keras.
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
from keras_transformer.tokenizers import (
    END_TOKEN_ID,
    FIRST_PLACEHOLDER_ID,
    PAD_TOKEN_ID,
    START_TOKEN_ID,
    UNKNOWN_TOKEN_ID,
)

# Tokens that a translation may have beyond `max_length_ratio`, because the ratio varies most for short sources.
LENGTH_MARGIN = 16
# A translation repeats itself if its source does not, and if it has the same tokens this often in a row; single tokens
# occur a few times for good reasons ("very, very").
REPETITIONS, REPETITIONS_OF_ONE, LONGEST_REPEATED = 3, 5, 12
# More has no use, and would need very large tables or graphs.
AT_MOST_100 = Rule(lambda value: value <= 100, "at most 100")
# Size of the n-grams that must not be repeated when the sentence is searched again.
NGRAM_OF_LOOPS = 3


@documented
@dataclass(frozen=True)
class SearchSettings(Settings):
    """The settings of a search for translations. An invalid value raises a `ConfigError`."""

    num_beams: int = changeable(
        4,
        "beams of the search; 1 is greedy search",
        AT_LEAST_1,
        Rule(lambda value: value <= 256, "at most 256: each beam needs memory for its own logits and caches"),
    )
    length_penalty: float = changeable(0.6, "scores are divided by ((5 + length) / 6)^this")
    length_penalty_type: str = changeable(
        "gnmt",
        "gnmt: divide by ((5 + length) / 6)^penalty; power: by length^penalty, as Marian and transformers do",
        choices=("gnmt", "power"),
    )
    max_length: int | None = changeable(
        None,
        "maximum tokens of a translation, including the end token (default: only the ratio limits it)",
        AT_LEAST_1,
        flat="decoding_max_length",
    )
    max_length_ratio: float = changeable(
        2.0,
        f"maximum tokens of a translation: this times the source tokens, plus {LENGTH_MARGIN}",
        AT_LEAST_0,
        AT_MOST_100,
    )
    min_length: int = changeable(0, "minimum tokens of a translation, including the end token", AT_LEAST_0)
    no_repeat_ngram_size: int = changeable(0, "forbid repeated n-grams of this size (0: off)", AT_LEAST_0, AT_MOST_100)
    avoid_loops: bool = changeable(
        False,
        f"search again, without repeated {NGRAM_OF_LOOPS}-grams, if a translation repeats itself; exports do not",
    )
    repetition_penalty: float = changeable(
        1.0, "log probabilities of tokens that already occurred are multiplied by this (1: off)", POSITIVE
    )
    allow_unknown: bool = changeable(False, "allow the unknown token, written as ⁇, in translations")
    shortlist: int = changeable(
        0,
        "number of target tokens, chosen for each sentence by the run's shortlist, among which its translation is "
        "searched (0: all); see keras_transformer shortlist",
        AT_LEAST_0,
    )
    sampling: bool = changeable(False, "draw tokens at random instead of searching for the best")
    temperature: float = changeable(
        1.0,
        "sampling: log probabilities are divided by this",
        Rule(lambda value: value >= 1e-3, "at least 0.001; for the most probable token use num_beams=1"),
    )
    top_k: int = changeable(0, "sampling: draw from this many of the most probable tokens (0: all)", AT_LEAST_0)
    top_p: float = changeable(
        1.0,
        "sampling: draw from the most probable tokens that together have this probability",
        Rule(lambda value: 0 < value <= 1, "in (0, 1]"),
    )
    seed: int = changeable(0, "sampling: random seed", SEED, flat="sampling_seed")

    def replace(self, **changes):
        """These settings with changes.

        Raises:
            TypeError: there is no such setting.
            ConfigError: a value is invalid or of the wrong type.
        """
        names = [f.name for f in dataclasses.fields(self)]
        unknown = sorted(set(changes) - set(names))
        if unknown:
            raise TypeError(f"No such setting of a search: {', '.join(unknown)}. There are: {', '.join(names)}.")
        return dataclasses.replace(self, **changes) if changes else self

    def within(self, max_length):
        """These settings with `max_length` lowered to the given limit, if it is lower; None is no limit."""
        return self if max_length is None else self.replace(max_length=min(self.max_length or max_length, max_length))

    def limits(self, source_lengths):
        """The maximum number of tokens of each translation, by the number of tokens of its source.

        Both count the end token.

        Args:
            source_lengths: integers (B,), a NumPy array or a tensor.

        Returns:
            int32 (B,), an array for an array, a tensor for a tensor.
        """
        import numpy as np
        from keras import ops

        if isinstance(source_lengths, np.ndarray):  # For one number TensorFlow is slow.
            limits = np.floor(self.max_length_ratio * source_lengths.astype("float32") + float(LENGTH_MARGIN))
            return (limits if self.max_length is None else np.minimum(limits, self.max_length)).astype("int32")
        limits = ops.floor(self.max_length_ratio * ops.cast(source_lengths, "float32") + float(LENGTH_MARGIN))
        return ops.cast(limits if self.max_length is None else ops.minimum(limits, float(self.max_length)), "int32")

    def check_num_hypotheses(self, num_hypotheses):
        """Raises a ConfigError unless a search gives this many translations; sampling gives any number."""
        if num_hypotheses < 1 or (num_hypotheses > self.num_beams and not self.sampling):
            raise ConfigError(
                "`num_hypotheses` must be between 1 and `num_beams`: the search keeps no more. "
                f"Received: num_hypotheses={num_hypotheses}, num_beams={self.num_beams}."
            )

    @property
    def forbidden(self):
        """Ids of the tokens that a translation never contains."""
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
    num_placeholders=0,
    required=None,
    tags=(),
    begins_with_tag=False,
    shortlist=None,
):
    """Searches for the translations of a batch, in `keras.ops`: for `Translator` and for the graphs of exports.

    Args:
        model: a `Transformer`, or another object with its `start_decoding`.
        encoder_token_ids: (B, S); each row ends with the end token.
        limits: (B,), maximum number of tokens of each translation.
        max_length: L, at least the largest of `limits`.
        settings: `SearchSettings`.
        num_hypotheses: number of hypotheses to return per sentence; or a tensor, see `beam_search`. Defaults to 1.
        prefix: (B, P), tokens that the translations begin with, padded. Defaults to None.
        uniforms: (B, L), uniform random numbers in [0, 1), for sampling.
        jit_compile: whether XLA compiles the search. Defaults to False.
        cache: `"growing"` or `"fixed"`, see `keras_transformer.caches`. Defaults to `"fixed"` on JAX and if XLA
            compiles the search, else to `"growing"`.
        num_placeholders: N, number of placeholders of the vocabulary; without `required`, translations have none.
            Defaults to 0.
        required: bool (B, N), the placeholders that a translation must have, from `placeholders_of`. Defaults to None.
        tags: ids of language tags, which a translation never contains. Defaults to none.
        begins_with_tag: whether a translation begins with the first id of its source, the tag of its language; see
            `source_language_token_id` of `Transformer`. Defaults to False.
        shortlist: a `keras_transformer.shortlist.Shortlist`, for `settings.shortlist`; a search with a prefix does
            without it. Defaults to None.

    Returns:
        `decoding.Hypotheses`.
    """
    import keras
    from keras import ops

    from keras_transformer import decoding
    from keras_transformer.shortlist import ShortlistDecoder, restored

    if settings.shortlist and shortlist is None:
        raise ValueError(
            f"A search with `settings.shortlist` needs a `shortlist`. Received: {settings.shortlist} and None."
        )
    if settings.sampling and uniforms is None:
        raise ValueError("Sampling needs `uniforms`, numbers in [0, 1) of shape (B, max_length). Received: None.")
    if isinstance(num_hypotheses, int):
        settings.check_num_hypotheses(num_hypotheses)
    cache = cache or ("fixed" if jit_compile or keras.backend.backend() == "jax" else "growing")
    # Devices translate one sentence at a time, and each further stage would add another copy of the loop's body.
    one_stage = cache == "fixed" and not jit_compile
    stages = [decoding.Stage(max_length)] if one_stage else _stages(encoder_token_ids, max_length)
    num_beams = 1 if settings.sampling else settings.num_beams
    decoder = model.start_decoding(encoder_token_ids, stages[0].max_length, num_beams, cache)
    if settings.shortlist and not hasattr(decoder, "hidden_step"):
        raise ValueError(f"An ensemble has no shortlist. Received: settings with shortlist={settings.shortlist}.")
    batch_size = ops.shape(encoder_token_ids)[0]
    forbidden = [*settings.forbidden, *tags]
    if required is None:
        forbidden += range(FIRST_PLACEHOLDER_ID, FIRST_PLACEHOLDER_ID + num_placeholders)
    chosen = None
    if settings.shortlist and prefix is None:
        first = 1 + max([END_TOKEN_ID + num_placeholders, *tags])
        most = decoder.model.target_vocabulary_size
        size = min(max(settings.shortlist, first + 2 * num_beams), most)
        chosen = shortlist.choose(encoder_token_ids, size, first, most)
        decoder = ShortlistDecoder(decoder, chosen)
    if begins_with_tag:  # Tags are among the first ids, which every shortlist has.
        tag = encoder_token_ids[:, :1]
        prefix = tag if prefix is None else ops.concatenate([tag, prefix], axis=1)
    special_ids = decoding.SpecialIds(
        START_TOKEN_ID, END_TOKEN_ID, PAD_TOKEN_ID, tuple(forbidden), num_placeholders, int(begins_with_tag)
    )
    shared = {
        "limits": limits,
        "prefix": prefix,
        "special_ids": special_ids,
        "stages": stages,
        "required": required,
    }
    if num_beams > 1:
        found = decoding.beam_search(
            decoder, batch_size, max_length, settings, num_hypotheses, jit_compile=jit_compile, **shared
        )
    else:
        if settings.sampling:
            token_ids, scores = decoding.sample(decoder, uniforms, max_length, settings, **shared)
        else:
            token_ids, scores = decoding.greedy(
                decoder, batch_size, max_length, settings, jit_compile=jit_compile, **shared
            )
        length = ops.cast(ops.sum(token_ids != PAD_TOKEN_ID, axis=-1), "float32")
        divisor = decoding.length_penalty_divisor(length, settings.length_penalty, settings.length_penalty_type)
        found = decoding.Hypotheses(token_ids, scores / divisor)
    return found if chosen is None else found._replace(token_ids=restored(found.token_ids, chosen))


def has_loop(token_ids):
    """Whether the same tokens follow each other again and again: one of them 5 times, or 2 to 12 of them 3 times.

    Args:
        token_ids: a list or tuple of integers.

    Example:
        >>> has_loop([7, 8, 9, 8, 9, 8, 9, 4]), has_loop([7, 8, 9, 8, 9])
        (True, False)
    """
    for size in range(1, LONGEST_REPEATED + 1):
        wanted, found = size * ((REPETITIONS if size > 1 else REPETITIONS_OF_ONE) - 1), 0
        for old, new in zip(token_ids, token_ids[size:], strict=False):
            found = found + 1 if old == new else 0
            if found == wanted:
                return True
    return False


def placeholders_of(token_ids, num_placeholders):
    """Bool (B, N): which of the N placeholders are among the token ids (B, S), an array or a tensor."""
    import numpy as np
    from keras import ops

    ids = np.arange(FIRST_PLACEHOLDER_ID, FIRST_PLACEHOLDER_ID + num_placeholders, dtype="int32")
    found = token_ids[:, :, None] == ids
    return found.any(axis=1) if isinstance(found, np.ndarray) else ops.any(found, axis=1)


def _stages(encoder_token_ids, max_length):
    """The stages of a search: most translations are about as long as their sources, and few reach the limit."""
    from keras import ops

    from keras_transformer.decoding import Stage

    batch_size, length = ops.shape(encoder_token_ids)
    stages = [Stage(max_length)]
    all_static = isinstance(max_length, int)  # Then the shape is static, too: XLA compiles it, and caches are fixed.
    if all_static and length < max_length:
        stages.insert(0, Stage(length))
    if not isinstance(batch_size, int) or batch_size > 1:
        stages.append(Stage(max_length, divisor=8))
    return stages
