"""From token ids to batches for `model.fit`: length buckets, a budget of tokens, sample weights for real tokens.

The pairs in batch k of pass p depend only on the lengths, the seed, p and k, and what is drawn for a pair only on the
seed, p and the pair. So training is reproducible, a resumed run can begin at any step, and each of several workers
makes only its own part of a batch.
"""

from bisect import bisect
from collections.abc import Callable, Collection, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from itertools import count, pairwise
from random import Random
from typing import Any, NamedTuple

import numpy as np

from keras_transformer.data.encoding import encode_pairs, num_placeholders
from keras_transformer.data.masking import mask_words
from keras_transformer.data.storage import EncodedPairs, lengths_of
from keras_transformer.data.workers import ahead, in_background
from keras_transformer.text.special_ids import END_TOKEN_ID, PAD_TOKEN_ID, UNKNOWN_TOKEN_ID, shifted_right
from keras_transformer.text.tokenizer import Tokenizer

__all__ = ["EncodedPairs", "TokenBatches", "Variation", "encode_pairs", "make_batches", "plan_batches"]


class TokenBatches(NamedTuple):
    """Batches for `model.fit`.

    Attributes:
        from_step: a function; `from_step(n)` is the data set of the batches that come after the first n ones.
        steps_per_epoch: number of batches in an epoch, the same for every epoch.
        padding: the share of padding in the batches of the first pass over the pairs, source and target together.
    """

    from_step: Callable
    steps_per_epoch: int
    padding: float

    @property
    def dataset(self) -> Any:
        """A `tf.data.Dataset` of (inputs, labels, sample weights)."""
        return self.from_step(0)


class Variation:
    """What is drawn anew in every pass: subword segmentations, and words that become placeholders.

    Args:
        tokenizers: that of the source and that of the target.
        max_length: see `encode_pairs`.
        alpha: draw the segmentations, see `Tokenizer.sample`. Defaults to 0: the best ones.
        passes: number of passes with drawn segmentations. Defaults to None, all.
        share: of the pairs in which words become placeholders, see `placeholders.mask_words`. Defaults to 0.
        words: from `placeholders.word_pairs`.
    """

    def __init__(
        self,
        tokenizers: Sequence[Tokenizer],
        max_length: int,
        alpha: float = 0.0,
        passes: int | None = None,
        share: float = 0.0,
        words: Collection = frozenset(),
    ):
        self.tokenizers, self.max_length, self.words = tokenizers, max_length, words
        self.tags = frozenset(tokenizers[0].languages.values())
        self.count = num_placeholders(tokenizers)
        self.alpha, self.passes, self.share = alpha, passes, share if self.count else 0.0

    def __bool__(self):
        return bool(self.alpha or self.share)

    def __call__(self, pairs, number, seeds):
        """Pairs as they are in a pass.

        Args:
            pairs: list of (source ids, target ids).
            number: of the pass.
            seeds: an integer for each pair and this pass.

        Returns:
            A list of (source ids, target ids), lists.
        """
        randoms = [Random(seed) for seed in seeds]
        pairs = [[np.asarray(ids).tolist() for ids in pair] for pair in pairs]
        tags = [[ids[:1] if ids and ids[0] in self.tags else [] for ids in pair] for pair in pairs]
        ends = [[ids[-1:] if ids[-1] == END_TOKEN_ID else [] for ids in pair] for pair in pairs]
        texts = [
            [ids[len(tag) : len(ids) - len(end)] for ids, tag, end in zip(*sides, strict=True)]
            for sides in zip(pairs, tags, ends, strict=True)
        ]
        if self.share:
            self._mask(texts, randoms)
        if self.alpha and (self.passes is None or number < self.passes):
            for i, random in enumerate(randoms):
                drawn = [
                    t.resample([ids], self.alpha, random)[0] for t, ids in zip(self.tokenizers, texts[i], strict=True)
                ]
                texts[i] = drawn if self._fits(drawn) else texts[i]
        return [
            [tag + ids + end for tag, ids, end in zip(*sides, strict=True)]
            for sides in zip(tags, texts, ends, strict=True)
        ]

    def _mask(self, pairs, randoms):
        """Replaces words by placeholders in some of the pairs."""
        rows = [row for row, random in enumerate(randoms) if random.random() < self.share]
        rows = [row for row in rows if not any(UNKNOWN_TOKEN_ID in ids for ids in pairs[row])]
        texts = [t.detokenize([pairs[row][side] for row in rows]) for side, t in enumerate(self.tokenizers)]
        masked = {}
        for row, *pair in zip(rows, *texts, strict=True):
            if new := mask_words(*pair, self.words, randoms[row], self.count):
                masked[row] = new
        ids = [t.tokenize([pair[side] for pair in masked.values()]) for side, t in enumerate(self.tokenizers)]
        for row, *pair in zip(masked, *ids, strict=True):
            if self._fits(pair):
                pairs[row] = pair

    def _fits(self, pair):
        return max(map(len, pair)) < self.max_length - bool(self.tags)

    def growth(self, pairs: EncodedPairs, most: int = 1000) -> float:
        """How much longer drawn segmentations are than the best ones, from a limited number of pairs."""
        rows = np.linspace(0, len(pairs.source) - 1, min(most, len(pairs.source))).astype("int64").tolist()
        old = [(pairs.source[row], pairs.target[row]) for row in rows]
        sizes = [sum(len(ids) for pair in some for ids in pair) for some in (old, self(old, 0, rows))]
        return max(1.0, sizes[1] / sizes[0])


def plan_batches(
    source_lengths: np.ndarray,
    target_lengths: np.ndarray,
    tokens_per_batch: int,
    rng: np.random.Generator | None = None,
) -> list[np.ndarray]:
    """Groups pairs of similar lengths into batches.

    A pair's width is the length of its target, or half the length of its source if that is more. Pairs are put into
    buckets of similar width. Within a bucket they are sorted by source length, so that both sides of a batch have
    similar lengths. A little noise is added to the order, so that every pass has different batches. The number of
    batches depends on the lengths only.

    The budget counts target tokens, because the loss is a mean over the target tokens of a batch: if batches have
    different numbers of them, tokens have different weights. If the budget counted the longer side of a pair, short
    translations of long sentences would weigh more, and translations of the model would be one or two percent too
    short.

    Args:
        source_lengths, target_lengths: integer arrays.
        tokens_per_batch: a batch has at most this many padded target tokens, at most twice as many padded source
            tokens, and at least one pair.
        rng: a `numpy.random.Generator` for the noise; `None`: no noise.

    Returns:
        A list of integer arrays, the indices of the pairs of each batch; batches of short pairs come first.
    """
    source_lengths, target_lengths = (np.asarray(side, "int32") for side in (source_lengths, target_lengths))
    widths = np.maximum(target_lengths, (source_lengths + 1) // 2)
    order_by = source_lengths.astype("float32")
    if rng is not None:
        order_by += rng.uniform(-1, 1, len(order_by)).astype("float32")
    batches, left_over = [], np.empty(0, "int32")
    for low, high in _buckets(widths.max()):
        inside = np.flatnonzero((widths > low) & (widths <= high)).astype("int32")
        bucket = np.concatenate([left_over, inside])
        bucket = bucket[np.argsort(order_by[bucket], kind="stable")]
        batch_size = max(1, tokens_per_batch // high)
        # Few left-over pairs go to the next, wider bucket: a batch of their own would cost a whole optimizer step.
        num_left_over = len(bucket) % batch_size
        keep = len(bucket) - (num_left_over if num_left_over < batch_size / 2 and high < widths.max() else 0)
        bucket, left_over = bucket[:keep], bucket[keep:]
        if keep:  # Batches of equal size, without a small one at the end: its tokens would weigh more.
            batches += np.array_split(bucket, -(-keep // batch_size))
    return batches


def _buckets(longest):
    """Intervals (low, high] that cover 1..longest. `high` is about a tenth above `low`, so that padding is little."""
    low = 0
    while low < longest:
        high = low + max(2, round(low / 10))
        yield low, high
        low = high


def pairs_per_pass(sizes: Sequence[int], weights: Sequence[float], temperature: float = 1.0) -> list[int]:
    """How many pairs of each corpus are in a pass.

    With a temperature T, the share of a corpus is in proportion to its size to the power of 1 / T ("Massively
    Multilingual Neural Machine Translation in the Wild", Arivazhagan et al., 2019, section 4.2); then it is multiplied
    by its weight.

    Example:
        >>> pairs_per_pass([1000, 10], [1, 2]), pairs_per_pass([1000, 10], [1, 1], temperature=5)
        ([1000, 20], [722, 288])
    """
    smoothed = [size ** (1 / temperature) for size in sizes]
    factor = sum(sizes) / sum(smoothed) if temperature != 1 else 1.0
    return [max(1, round(weight * size * factor)) for size, weight in zip(smoothed, weights, strict=True)]


def split_evenly(source_lengths, target_lengths, count):
    """`plan_batches` with `count` batches of about the same padded size, instead of a limit of their tokens."""
    plan, budget = [], max(1, int(np.sum(target_lengths)) // count)
    while len(target_lengths) and not 0 < len(plan) <= count:
        plan, budget = plan_batches(source_lengths, target_lengths, budget), budget + max(1, budget // 50)
    while len(plan) < count:
        largest = max(range(len(plan)), key=lambda i: len(plan[i])) if plan else 0
        plan[largest : largest + 1] = np.array_split(plan[largest] if plan else np.empty(0, "int32"), 2)
    return plan


class _Work(NamedTuple):
    """The batches that are made together: see `_Maker`."""

    number: int
    index: int
    groups: list
    skip: int = 0


class _Maker:
    """Makes the arrays of batches, in this process or in another.

    If pairs are varied, batches are planned before anybody knows how long the pairs will be. So pairs of similar
    lengths, those of GROUP batches, are sampled together and then split into GROUP batches again. The batches of
    WINDOW groups are shuffled, so that batches of similar lengths do not follow each other.

    Args:
        parts: list of (`EncodedPairs`, number of them in every pass).
        vary: a `Variation`, or None.
        seed: an integer.
    """

    GROUP, WINDOW = 8, 4

    def __init__(self, parts, vary, seed):
        self.parts, self.counts = [pairs for pairs, _ in parts], [number for _, number in parts]
        self.sizes = [len(pairs.source) for pairs in self.parts]
        self.begins, self.vary, self.seed = np.cumsum([0, *self.sizes]).tolist(), vary, seed

    def lengths(self):
        """The lengths of all pairs: two arrays."""
        return [np.concatenate([lengths_of(pairs[side]) for pairs in self.parts]) for side in (0, 1)]

    def rows_of(self, number):
        """The rows of pass `number`, int64; None for all rows."""
        if self.counts == self.sizes:
            return None
        rng, rows = np.random.default_rng((self.seed, number, 1)), []
        for begin, size, wanted in zip(self.begins[:-1], self.sizes, self.counts, strict=True):
            drawn = [np.arange(size)] * (wanted // size) + [rng.permutation(size)[: wanted % size]]
            rows += [begin + part for part in drawn]
        return np.concatenate(rows)

    def work(self, number, plan, num_batches, shuffle):
        """The `_Work` of a pass from its batches, in the order of their lengths; they become `num_batches`."""
        rng = np.random.default_rng((self.seed, number, 2))
        if len(plan) != num_batches:
            orders = [rng.permutation(len(plan)) for _ in range(-(-num_batches // len(plan)))]
            plan = [plan[i] for i in np.sort(np.concatenate(orders)[:num_batches])]
        group, window = (self.GROUP, self.WINDOW) if self.vary else (1, 1)
        groups = [plan[i : i + group] for i in range(0, len(plan), group)]
        if shuffle:
            rng.shuffle(groups)
        return [_Work(number, i, groups[i : i + window]) for i in range(0, len(groups), window)]

    def __call__(self, task):
        """(`_Work`, worker, number of workers, replicas of the worker) -> list of batches, padded.

        There are as many in a row for each batch as there are replicas: two arrays of ids each, (B, S) and (B, T).
        """
        work, worker, workers, replicas = task
        batches = []
        for group in work.groups:
            rows_of_worker = [rows[worker::workers] for rows in group]
            pairs = [self._pair(row) for rows in rows_of_worker for row in rows.tolist()]
            plan = np.split(np.arange(len(pairs)), np.cumsum([len(rows) for rows in rows_of_worker])[:-1])
            if self.vary:
                begin = (self.seed << 96) + (work.number << 48)
                pairs = self.vary(pairs, work.number, [begin + row for rows in rows_of_worker for row in rows.tolist()])
                plan = split_evenly(*([len(pair[side]) for pair in pairs] for side in (0, 1)), len(group))
            batches += [[pairs[i] for i in rows.tolist()] for rows in plan]
        if len(batches) > 1:
            Random((self.seed << 96) + (work.number << 48) + work.index).shuffle(batches)
        of_replicas = []
        for batch in batches[work.skip :]:
            bounds = [len(batch) * i // replicas for i in range(replicas + 1)]
            of_replicas += [_padded(batch[begin:end]) for begin, end in pairwise(bounds)]
        return of_replicas

    def _pair(self, row):
        part = bisect(self.begins, row) - 1
        return [side[row - self.begins[part]] for side in self.parts[part][:2]]


def _padded(pairs):
    """A list of (source ids, target ids) as two arrays, (B, S) and (B, T)."""
    arrays = []
    for side in (0, 1):
        rows = [pair[side] for pair in pairs]
        lengths = np.array([len(ids) for ids in rows], "int32")
        array = np.full((len(rows), lengths.max(initial=1)), PAD_TOKEN_ID, "int32")
        if rows:
            array[np.arange(array.shape[1]) < lengths[:, None]] = np.concatenate(rows)
        arrays.append(array)
    return tuple(arrays)


def make_batches(
    pairs: EncodedPairs | list,
    tokens_per_batch: int,
    shuffle: bool = False,
    seed: int = 0,
    steps_per_epoch: int | None = None,
    vary: Variation | None = None,
    workers: int = 1,
    strategy: Any = None,
) -> TokenBatches:
    """Batches of token ids as a `tf.data.Dataset`.

    Each element is `(inputs, labels, weights)`: `inputs` has `encoder_token_ids` (B, S) and `decoder_token_ids`
    (B, T), the start token and then the target without its last token; `labels` (B, T) is the target; `weights` (B, T)
    is 1 at real tokens and 0 at padding.

    Args:
        pairs: `EncodedPairs`; or a list of (`EncodedPairs`, number of them in every pass): each pass draws this many,
            without repetition while there are enough.
        tokens_per_batch: see `plan_batches`. With drawn segmentations, the mean of the batches keeps this limit.
        shuffle: if True, the data set is endless and every pass has another order (pass `steps_per_epoch` to `fit`).
            If False, it is one pass in a fixed order.
        seed: of the order. Defaults to 0.
        steps_per_epoch: number of batches in an epoch, for large corpora: validation and checkpoints then come before
            the end of a pass. Epochs begin and end independently of passes. Defaults to None, one pass. Needs
            `shuffle`.
        vary: a `Variation`. Every pass has as many batches as the first: extra batches are left out, missing ones are
            repeated. Defaults to None: pairs are the same in every pass. Needs `shuffle`.
        workers: number of processes that make the batches; more than one need a script that begins its work under
            `if __name__ == "__main__":`. Defaults to 1: a thread of this process.
        strategy: a `tf.distribute.Strategy`; each of its workers then makes only its own part of a batch. Defaults to
            None.

    Returns:
        `TokenBatches`.
    """
    import tensorflow as tf

    parts = [(pairs, len(pairs.source))] if isinstance(pairs, EncodedPairs) else pairs
    passes = _Passes(_Maker(parts, vary or None, seed), tokens_per_batch, shuffle, seed, workers)
    replicas = getattr(strategy, "num_replicas_in_sync", 1)

    def dataset_of(start, context=None):
        """The batches of the replicas of this worker."""
        where = (context.input_pipeline_id, context.num_input_pipelines) if context else (0, 1)
        args, signature = (start, *where, replicas // where[1]), (tf.TensorSpec((None, None), tf.int32),) * 2
        dataset = tf.data.Dataset.from_generator(passes.batches, output_signature=signature, args=args)
        return dataset.map(_inputs_and_labels).prefetch(8)

    def from_step(start):
        if replicas > 1:
            return strategy.distribute_datasets_from_function(partial(dataset_of, start))
        dataset, left = dataset_of(start), passes.num_batches - start
        return dataset if shuffle else dataset.apply(tf.data.experimental.assert_cardinality(left))

    return TokenBatches(from_step, steps_per_epoch or passes.num_batches, _padding(passes.lengths, passes.first_plan))


class _Passes:
    """The batches of all passes; see `make_batches`."""

    def __init__(self, make, tokens_per_batch, shuffle, seed, workers):
        self.make, self.shuffle, self.seed, self.workers = make, shuffle, seed, workers
        self.lengths, self.tokens_per_batch = make.lengths(), tokens_per_batch
        if make.vary:
            self.tokens_per_batch = max(1, int(tokens_per_batch / make.vary.growth(make.parts[0])))
        self.first_plan = self._plan(0)
        self.num_batches = len(self.first_plan)

    def batches(self, start, *where):
        """Yields the batches from `start` on; `where` is a worker, the number of workers, and the worker's replicas."""
        where = tuple(map(int, where))
        with in_background(self.make, self.workers) as made:
            for batches in made((work, *where) for work in self._tasks(start)):
                yield from batches

    def _tasks(self, start):
        """The `_Work` from batch `start` on."""
        first_pass, skip = divmod(int(start), self.num_batches)
        numbers = count(first_pass) if self.shuffle else [0]
        with ThreadPoolExecutor(1) as planner:  # The next pass is planned while this one is used.
            for works in ahead(lambda number: planner.submit(self._work, number).result, numbers, 1):
                for work in works:
                    size = sum(map(len, work.groups))
                    if skip < size:
                        yield work._replace(skip=skip)
                    skip = max(0, skip - size)

    def _work(self, number):
        plan = self._plan(number) if number else self.first_plan
        return self.make.work(number, plan, self.num_batches, self.shuffle)

    def _plan(self, number):
        """The batches of a pass: arrays of rows."""
        rows = self.make.rows_of(number)
        rng = np.random.default_rng((self.seed, number)) if self.shuffle else None
        of_pass = self.lengths if rows is None else [side[rows] for side in self.lengths]
        plan = plan_batches(*of_pass, self.tokens_per_batch, rng)
        return plan if rows is None else [rows[indices] for indices in plan]


def _inputs_and_labels(encoder_token_ids, labels):
    import tensorflow as tf

    # The end token is never an input: at its position in the shifted row the label is padding, with weight 0.
    decoder_token_ids = shifted_right(tf.where(labels == END_TOKEN_ID, PAD_TOKEN_ID, labels))
    inputs = {"encoder_token_ids": encoder_token_ids, "decoder_token_ids": decoder_token_ids}
    return inputs, labels, tf.cast(labels != PAD_TOKEN_ID, tf.float32)


def _padding(lengths, plan):
    """The share of padding in planned batches."""
    rows, sizes = np.concatenate(plan), np.array([len(rows) for rows in plan])
    widths = [np.maximum.reduceat(side[rows], np.cumsum(sizes) - sizes) for side in lengths]
    return float(
        1 - sum(side[rows].sum(dtype="int64") for side in lengths) / (sizes * sum(widths, 0)).sum(dtype="int64")
    )
