"""The search for the translations of a batch: for `Translator`, and for the graphs of exports."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import keras
import numpy as np
from keras import ops

from keras_transformer.layers.base import Tensor
from keras_transformer.search.beam import beam_search
from keras_transformer.search.decoder import Hypotheses, SpecialIds, Stage, length_penalty_divisor
from keras_transformer.search.greedy import greedy, sample
from keras_transformer.search.settings import SearchSettings
from keras_transformer.search.shortlist import ShortlistDecoder, restored
from keras_transformer.text.special_ids import (
    END_TOKEN_ID,
    FIRST_PLACEHOLDER_ID,
    PAD_TOKEN_ID,
    START_TOKEN_ID,
)

# A translation repeats itself if its source does not, and if it has the same tokens this often in a row; single tokens
# occur a few times for good reasons ("very, very").
REPETITIONS, REPETITIONS_OF_ONE, LONGEST_REPEATED = 3, 5, 12


class Vocabulary(NamedTuple):
    """What a search must know of a vocabulary.

    Attributes:
        num_placeholders: N, number of placeholders. Defaults to 0.
        tags: ids of language tags, which a translation never contains. Defaults to none.
        begins_with_tag: whether a translation begins with the first id of its source, the tag of its language; see
            `source_language_token_id` of `Transformer`. Defaults to False.
        shortlist: a `keras_transformer.search.shortlist.Shortlist`, for `settings.shortlist`. Defaults to None.
    """

    num_placeholders: int = 0
    tags: tuple = ()
    begins_with_tag: bool = False
    shortlist: Any = None

    def special_ids(self, settings: SearchSettings, with_placeholders: bool) -> SpecialIds:
        """The `SpecialIds` of a search, whose translations may have placeholders or not."""
        placeholders = range(FIRST_PLACEHOLDER_ID, FIRST_PLACEHOLDER_ID + self.num_placeholders)
        forbidden = (*settings.forbidden, *self.tags, *(() if with_placeholders else placeholders))
        return SpecialIds(
            START_TOKEN_ID, END_TOKEN_ID, PAD_TOKEN_ID, forbidden, self.num_placeholders, int(self.begins_with_tag)
        )


def search(
    model: Any,
    encoder_token_ids: Tensor,
    limits: Tensor | None,
    max_length: Any,
    settings: SearchSettings,
    num_hypotheses: Any = 1,
    prefix: Tensor | None = None,
    uniforms: Tensor | None = None,
    required: Tensor | None = None,
    vocabulary: Vocabulary | None = None,
    cache: str | None = None,
    jit_compile: bool = False,
) -> Hypotheses:
    """Searches for the translations of a batch, in `keras.ops`.

    Args:
        model: a `Transformer`, or another object with its `start_decoding`.
        encoder_token_ids: (B, S); each row ends with the end token.
        limits: (B,), maximum number of tokens of each translation; None: what `settings.limits` gives for its source.
        max_length: L, at least the largest of `limits`.
        settings: `SearchSettings`.
        num_hypotheses: number of hypotheses to return per sentence; or a tensor, see `beam_search`. Defaults to 1.
        prefix: (B, P), tokens that the translations begin with, padded. Defaults to None. It rules out a shortlist.
        uniforms: (B, L), uniform random numbers in [0, 1), for sampling.
        required: bool (B, N), from `placeholders_of`: what translations must have. Defaults to None: no placeholders.
        vocabulary: `Vocabulary`. Defaults to one without placeholders and tags.
        cache: `"growing"` or `"fixed"`, see `keras_transformer.layers.caches`. Defaults to `"fixed"` on JAX and if XLA
            compiles the search, else to `"growing"`.
        jit_compile: whether XLA compiles the search. Defaults to False.

    Returns:
        `keras_transformer.search.decoder.Hypotheses`.
    """
    vocabulary = vocabulary or Vocabulary()
    _check(settings, vocabulary, num_hypotheses, uniforms)
    if limits is None:
        limits = settings.limits(ops.sum(ops.cast(encoder_token_ids != PAD_TOKEN_ID, "int32"), axis=1))
    cache = cache or ("fixed" if jit_compile or keras.backend.backend() == "jax" else "growing")
    stages = _stages(encoder_token_ids, max_length, cache, jit_compile)
    num_beams = 1 if settings.sampling else settings.num_beams
    decoder = model.start_decoding(encoder_token_ids, stages[0].max_length, num_beams, cache)
    shortlisted = _shortlisted(decoder, encoder_token_ids, settings.shortlist, num_beams, vocabulary, prefix)
    decoder = shortlisted or decoder
    if vocabulary.begins_with_tag:  # Tags are among the first ids, which every shortlist has.
        tag = encoder_token_ids[:, :1]
        prefix = tag if prefix is None else ops.concatenate([tag, prefix], axis=1)
    required = required if vocabulary.num_placeholders else None
    shared = {"limits": limits, "prefix": prefix, "stages": stages, "required": required}
    shared["special_ids"] = vocabulary.special_ids(settings, with_placeholders=required is not None)
    arguments = ops.shape(encoder_token_ids)[0], max_length, settings
    if num_beams > 1:
        hypotheses = beam_search(decoder, *arguments, num_hypotheses, jit_compile=jit_compile, **shared)
    elif settings.sampling:
        hypotheses = _with_length_penalty(sample(decoder, uniforms, max_length, settings, **shared), settings)
    else:
        hypotheses = _with_length_penalty(greedy(decoder, *arguments, jit_compile=jit_compile, **shared), settings)
    token_ids = hypotheses.token_ids
    return hypotheses._replace(token_ids=restored(token_ids, shortlisted.chosen) if shortlisted else token_ids)


def _with_length_penalty(hypotheses, settings):
    """Hypotheses of greedy search or sampling, with their scores divided as beam search divides them."""
    length = ops.cast(ops.sum(hypotheses.token_ids != PAD_TOKEN_ID, axis=-1), "float32")
    divisor = length_penalty_divisor(length, settings.length_penalty, settings.length_penalty_type)
    return hypotheses._replace(scores=hypotheses.scores / divisor)


def _check(settings, vocabulary, num_hypotheses, uniforms):
    if settings.shortlist and vocabulary.shortlist is None:
        raise ValueError(
            f"A search with `settings.shortlist` needs a `shortlist`. Received: {settings.shortlist} and None."
        )
    if settings.sampling and uniforms is None:
        raise ValueError("Sampling needs `uniforms`, numbers in [0, 1) of shape (B, max_length). Received: None.")
    if isinstance(num_hypotheses, int):
        settings.check_num_hypotheses(num_hypotheses)


def _shortlisted(decoder, encoder_token_ids, size, num_beams, vocabulary, prefix):
    """The `ShortlistDecoder` of a batch; None without a shortlist and with a prefix."""
    if size and not hasattr(decoder, "hidden_step"):
        raise ValueError(f"An ensemble has no shortlist. Received: settings with shortlist={size}.")
    if not size or prefix is not None:
        return None
    first = 1 + max([END_TOKEN_ID + vocabulary.num_placeholders, *vocabulary.tags])
    most = decoder.model.target_vocabulary_size
    size = min(max(size, first + 2 * num_beams), most)
    return ShortlistDecoder(decoder, vocabulary.shortlist.choose(encoder_token_ids, size, first, most))


def has_loop(token_ids: Sequence[int]) -> bool:
    """Whether the same tokens follow each other again and again: one of them 5 times, or 2 to 12 of them 3 times.

    Args:
        token_ids: a list or tuple of integers.

    Example:
        >>> has_loop([7, 8, 9, 8, 9, 8, 9, 4]), has_loop([7, 8, 9, 8, 9])
        (True, False)
    """
    for size in range(1, LONGEST_REPEATED + 1):
        wanted, in_a_row = size * ((REPETITIONS if size > 1 else REPETITIONS_OF_ONE) - 1), 0
        for old, new in zip(token_ids, token_ids[size:], strict=False):
            in_a_row = in_a_row + 1 if old == new else 0
            if in_a_row == wanted:
                return True
    return False


def placeholders_of(token_ids: Tensor, num_placeholders: int) -> Tensor:
    """Bool (B, N): which of the N placeholders are among the token ids (B, S), an array or a tensor."""
    ids = np.arange(FIRST_PLACEHOLDER_ID, FIRST_PLACEHOLDER_ID + num_placeholders, dtype="int32")
    is_placeholder = token_ids[:, :, None] == ids
    return is_placeholder.any(axis=1) if isinstance(is_placeholder, np.ndarray) else ops.any(is_placeholder, axis=1)


def _stages(encoder_token_ids, max_length, cache, jit_compile):
    """The stages of a search: most translations are about as long as their sources, and few reach the limit."""
    if cache == "fixed" and not jit_compile:
        # Devices translate one sentence at a time, and each further stage would add another copy of the loop's body.
        return [Stage(max_length)]
    batch_size, length = ops.shape(encoder_token_ids)
    stages = [Stage(max_length)]
    all_static = isinstance(max_length, int)  # Then the shape is static, too: XLA compiles it, and caches are fixed.
    if all_static and length < max_length:
        stages.insert(0, Stage(length))
    if not isinstance(batch_size, int) or batch_size > 1:
        stages.append(Stage(max_length, divisor=8))
    return stages
