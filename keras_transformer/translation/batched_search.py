"""The search for many sentences: in batches of similar lengths, on all cores, compiled by XLA if it pays."""

import functools
import os
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, NamedTuple

import keras
import numpy as np
from keras import ops

from keras_transformer.search.decoder import NO_HYPOTHESIS
from keras_transformer.search.search import Vocabulary, has_loop, placeholders_of, search
from keras_transformer.search.settings import NGRAM_OF_LOOPS
from keras_transformer.text.special_ids import END_TOKEN_ID, PAD_TOKEN_ID
from keras_transformer.translation.codec import Codec
from keras_transformer.translation.compiled import (
    COMPILE_AFTER,
    COMPILE_AFTER_IDLE,
    AutoCompiled,
    batches,
    filled_shapes,
)

# Number of searches with different settings whose compiled functions are kept.
NUM_SEARCHES = 16


class Hypothesis(NamedTuple):
    """One result of the search for one sentence.

    Attributes:
        token_ids: a tuple of integers, the end token last if there is one.
        score: the sum of log probabilities divided by the length penalty.
    """

    token_ids: tuple
    score: float


class BatchedSearch:
    """Searches for the translations of any number of sentences.

    Args:
        model: a `Transformer` or an `Ensemble`.
        codec: the `keras_transformer.translation.codec.Codec` of its vocabularies.
        jit_compile: see `keras_transformer.Translator`. Defaults to `"auto"`.
    """

    def __init__(self, model: Any, codec: Codec, jit_compile: bool | str = "auto"):
        self.model, self.codec, self.jit_compile = model, codec, jit_compile
        self._compiled = functools.lru_cache(NUM_SEARCHES)(self._new_search)

    def vocabulary(self, shortlist: Any = None) -> Vocabulary:
        """What a search must know of the vocabulary."""
        codec = self.codec
        return Vocabulary(codec.num_placeholders, codec.hidden_tags, codec.begins_with_tag, shortlist)

    def __call__(self, sentences, settings, num_hypotheses=1, prefixes=None, shortlist=None):
        """Searches.

        Args:
            sentences: a list of `keras_transformer.translation.codec.Sentence`s.
            settings: `keras_transformer.search.settings.SearchSettings`.
            num_hypotheses: number of hypotheses per sentence. Defaults to 1.
            prefixes: for each sentence the token ids that its translations begin with. Defaults to None.
            shortlist: a `keras_transformer.search.shortlist.Shortlist`, for `settings.shortlist`. Defaults to None.

        Returns:
            For each sentence a list of `Hypothesis`, best first; an empty list if there is nothing to translate.
        """
        rows = [i for i, sentence in enumerate(sentences) if len(sentence.ids) > 1 and sentence.unchanged is None]
        shared = {"num_hypotheses": num_hypotheses, "prefixes": prefixes, "shortlist": shortlist}
        hypotheses = self._search(rows, sentences, settings, jit_compile=self.jit_compile, **shared)
        if settings.avoid_loops and not settings.no_repeat_ngram_size and not settings.sampling:
            again = [i for i in rows if has_loop(hypotheses[i][0].token_ids) and not has_loop(sentences[i].ids)]
            without = settings.replace(no_repeat_ngram_size=NGRAM_OF_LOOPS)
            # Few rows: XLA's compilation for another search would not pay.
            hypotheses.update(self._search(again, sentences, without, jit_compile=False, **shared))
        return [hypotheses.get(i, []) for i in range(len(sentences))]

    def _search(self, rows, sentences, settings, num_hypotheses, prefixes, shortlist, jit_compile):
        """The hypotheses of some of the sentences, a dict by their places."""
        jit_compile = True if keras.backend.backend() == "jax" else jit_compile  # JAX compiles every search.
        # Longest first: if the texts do not fit into memory, the call fails at once.
        rows = sorted(rows, key=lambda i: -len(sentences[i].ids))
        cut = list(batches(rows, jit_compile))
        compiled_search = self._compiled(_of_graph(settings), num_hypotheses, shortlist if settings.shortlist else None)
        compile_after = COMPILE_AFTER if len(cut) > 1 else COMPILE_AFTER_IDLE

        def search_batch(batch):
            copies = num_hypotheses if settings.sampling else 1  # With sampling, one row per hypothesis.
            arguments = functools.partial(self._inputs, batch, sentences, prefixes, copies, settings)
            longest = max(len(sentences[i].ids) for i in batch)
            shapes = filled_shapes(len(batch), longest, self.model.max_length)
            hypotheses = compiled_search(arguments, shapes, jit_compile, compile_after)
            token_ids, scores = map(ops.convert_to_numpy, hypotheses)
            if copies > 1:
                token_ids, scores = _best_first(
                    token_ids.reshape(-1, copies, token_ids.shape[-1]), scores.reshape(-1, copies)
                )
            return [_hypotheses(*row) for row in zip(token_ids, scores, strict=True)][: len(batch)]

        found = {}
        for batch, hypotheses in zip(cut, _on_all_cores(search_batch, cut), strict=True):
            found.update(zip(batch, hypotheses, strict=True))
        return found

    def _inputs(self, rows, sentences, prefixes, copies, settings, shape):
        """The inputs of a search for some of the sentences, by name, and the maximum length of their translations.

        They are padded to a shape, with rows that end at once; if it is None, only the shorter sources are padded.
        """
        num_rows, length = shape or (len(rows), max(len(sentences[i].ids) for i in rows))
        more, most = num_rows - len(rows), self.model.max_length  # `most`: a limit for learned positions only.
        token_ids = pad([sentences[i].ids for i in rows] + [[END_TOKEN_ID]] * more, length)
        lengths = np.array([len(sentences[i].ids) for i in rows] + [length])
        *limits, max_length = settings.within(most).limits(lengths).tolist()
        limits = np.array(limits + [1] * more, "int32")
        inputs = {"encoder_token_ids": np.repeat(token_ids, copies, axis=0), "limits": np.repeat(limits, copies)}
        if prefixes is not None and any(prefixes[i] for i in rows):
            prefix = [prefixes[i] for i in rows] + [[]] * more
            prefix = pad(prefix, -(-max(map(len, prefix)) // 8) * 8)[:, :max_length]
            inputs["prefix"] = np.repeat(prefix, copies, axis=0)
        required = placeholders_of(token_ids, self.codec.num_placeholders)
        if required.any():
            inputs["required"] = np.repeat(required, copies, axis=0)
        if settings.sampling:
            inputs["uniforms"] = np.zeros((num_rows * copies, max_length), "float32")
            for place, i in enumerate(rows):  # A sample depends only on the seed and the sentence's place in the list.
                for copy in range(copies):
                    generator = np.random.default_rng([settings.sampling_seed, i, copy])
                    inputs["uniforms"][place * copies + copy] = generator.random(max_length, "float32")
        return inputs, max_length

    def _new_search(self, settings, num_hypotheses, shortlist):
        """An `AutoCompiled` search. `_compiled` keeps those that were used last."""
        vocabulary = self.vocabulary(shortlist)

        def function(inputs, max_length, jit_compile):
            arguments = {"max_length": max_length, "settings": settings, "num_hypotheses": num_hypotheses}
            return tuple(search(self.model, **arguments, vocabulary=vocabulary, jit_compile=jit_compile, **inputs))

        return AutoCompiled(self.model, function)


@functools.lru_cache(NUM_SEARCHES)  # To check all values again takes longer than to tokenize a sentence.
def _of_graph(settings):
    """The settings of a search without those that only affect its inputs or the choice of the search."""
    return settings.replace(sampling_seed=0, max_target_length=None, max_length_ratio=0.0, avoid_loops=False)


def _hypotheses(token_ids, scores):
    """The hypotheses of one sentence, from arrays (K, L) and (K,), without the empty places."""
    # Lists: for so few numbers, NumPy would take ten times as long.
    rows = zip(token_ids.tolist(), scores.tolist(), strict=True)
    real = [(ids, score) for place, (ids, score) in enumerate(rows) if place == 0 or score > NO_HYPOTHESIS]
    return [Hypothesis(_until_end(ids), score) for ids, score in real]


def _until_end(token_ids):
    """The tokens of a hypothesis up to its end token; without an end token, all tokens before the padding."""
    if END_TOKEN_ID in token_ids:
        return tuple(token_ids[: token_ids.index(END_TOKEN_ID) + 1])
    return tuple(i for i in token_ids if i != PAD_TOKEN_ID)


def _best_first(token_ids, scores):
    """Hypotheses (B, K, L) and scores (B, K), sorted by scores."""
    order = np.argsort(-scores, axis=1, kind="stable")
    return np.take_along_axis(token_ids, order[..., None], axis=1), np.take_along_axis(scores, order, axis=1)


def _on_all_cores(function, batches):
    """Runs each batch on its own core: the small operations of a decoding step gain little from several cores."""
    if len(batches) < 2:  # Starting a thread can take longer than translating a sentence.
        return list(map(function, batches))
    with ThreadPoolExecutor(min(available_cpus(), len(batches))) as pool:
        return list(pool.map(function, batches))


def available_cpus():
    """Number of cores that this process may use. Containers and job schedulers may allow fewer than there are."""
    if not hasattr(os, "process_cpu_count") and hasattr(os, "sched_getaffinity"):  # Python before 3.13, on Linux.
        return len(os.sched_getaffinity(0))
    return getattr(os, "process_cpu_count", os.cpu_count)() or 1


def pad(rows: Sequence[Sequence[int]], length: int | None = None) -> np.ndarray:
    """One int32 array from lists of token ids, padded at the end."""
    array = np.full((len(rows), length or max(map(len, rows))), PAD_TOKEN_ID, "int32")
    for place, ids in zip(array, rows, strict=True):
        place[: len(ids)] = ids
    return array
