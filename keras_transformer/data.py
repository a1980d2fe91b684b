"""From sentence pairs to batches for `model.fit`: length buckets, a budget of tokens, sample weights for real tokens.

The pairs in batch k of epoch e depend only on the lengths, the seed, e and k. So training is reproducible, and a
resumed run can begin in the middle of the sequence of batches.
"""

from random import Random
from typing import NamedTuple

import numpy as np

from keras_transformer.placeholders import mask_words, protect_pair
from keras_transformer.tokenizers import END_TOKEN_ID, PAD_TOKEN_ID, shifted_right


class EncodedPairs(NamedTuple):
    """Token ids of sentence pairs.

    Attributes:
        source: list of int32 arrays, each with the end token at the end.
        target: the same for the targets.
        over_long: list of int, the indices of the pairs that were longer than `max_length`, so dropped or cut.
    """

    source: list
    target: list
    over_long: list


class TokenBatches(NamedTuple):
    """Batches for `model.fit`.

    Attributes:
        dataset: a `tf.data.Dataset` of (inputs, labels, sample weights).
        steps_per_epoch: number of batches in an epoch, the same for every epoch.
        padding: the share of padding in the batches of the first pass over the pairs, source and target together.
    """

    dataset: object
    steps_per_epoch: int
    padding: float


def encode_pairs(pairs, source_tokenizer, target_tokenizer, max_length, over_long="drop", alpha=None, seed=0):
    """Tokenizes pairs and adds the end token.

    If the vocabularies have placeholders, what must not change becomes placeholders: see `placeholders.protect_pair`.

    Args:
        pairs: list of (source, target).
        source_tokenizer, target_tokenizer: a `keras_transformer.tokenizers.Tokenizer` each, may be the same.
        max_length: maximum number of tokens of a sequence, including the end token.
        over_long: `"drop"` leaves out pairs with a longer side. `"cut"` shortens that side to `max_length`; its last
            token is then not the end token, so that the model does not learn to stop there.
        alpha, seed: draw the segmentations at random, see `Tokenizer.sample`. Defaults to None: not at random.

    Returns:
        `EncodedPairs`.

    Raises:
        ValueError: no pair is left, or `over_long` has another value.
    """
    if over_long not in ("drop", "cut"):
        raise ValueError(f"`over_long` must be 'drop' or 'cut'. Received: {over_long!r}.")
    if not pairs:
        raise ValueError("There must be sentence pairs to encode. Received: none.")
    tokenizers = source_tokenizer, target_tokenizer
    if count := num_placeholders(tokenizers):
        pairs = [protect_pair(*pair, count) for pair in pairs]
    sides = _token_ids(pairs, tokenizers, alpha, seed)
    fits = [max(len(s), len(t)) <= max_length for s, t in zip(*sides, strict=True)]
    if over_long == "drop":
        sides = [[ids for ids, fit in zip(side, fits, strict=True) if fit] for side in sides]
    else:
        sides = [[ids[:max_length] for ids in side] for side in sides]
    if not sides[0]:
        raise ValueError(
            f"Every pair is longer than `max_length`, and all were dropped. Received: max_length={max_length}, "
            f"{len(pairs):,} pairs. Raise max_length, or cut them with over_long='cut'."
        )
    return EncodedPairs(*sides, over_long=[place for place, fit in enumerate(fits) if not fit])


def _token_ids(pairs, tokenizers, alpha, seed):
    """Two lists of arrays of token ids, with the end token."""
    sides, texts_of = [], zip(*pairs, strict=True) if pairs else ((), ())
    for tokenizer, texts in zip(tokenizers, texts_of, strict=True):
        token_ids = tokenizer.sample(texts, alpha, seed) if alpha else tokenizer.tokenize(texts)
        sides.append([np.array([*ids, END_TOKEN_ID], "int32") for ids in token_ids])
    return sides


def num_placeholders(tokenizers):
    """Number of placeholders that all of the tokenizers have."""
    return min(tokenizer.num_placeholders for tokenizer in tokenizers)


def masked(encoded, pairs, words, share, tokenizers, max_length, alpha=None, seed=0):
    """Encoded pairs; in some of them, words and their translations are replaced by placeholders.

    Args:
        encoded: the `EncodedPairs` of `pairs`.
        pairs: list of (source, target), the texts.
        words: from `placeholders.word_pairs`.
        share: of the pairs that are replaced, if they have such words.
        tokenizers: that of the source and that of the target; both have placeholders.
        max_length, alpha: see `encode_pairs`.
        seed: of the choice.

    Returns:
        `EncodedPairs`.
    """
    random, left_out = Random(seed), set(encoded.over_long) if len(encoded.source) < len(pairs) else ()
    kept, count = [i for i in range(len(pairs)) if i not in left_out], num_placeholders(tokenizers)
    rows = [row for row in range(len(kept)) if random.random() < share]
    new = [mask_words(*protect_pair(*pairs[kept[row]], count), words, random, count) for row in rows]
    rows, new = [row for row, pair in zip(rows, new, strict=True) if pair], [pair for pair in new if pair]
    source, target = list(encoded.source), list(encoded.target)
    for row, *ids in zip(rows, *_token_ids(new, tokenizers, alpha, seed), strict=True):
        if max(map(len, ids)) <= max_length:
            source[row], target[row] = ids
    return EncodedPairs(source, target, encoded.over_long)


def mixed(pairs, general, weight, rng):
    """Pairs, and behind them a random selection of general ones, without repetition while there are enough.

    Args:
        pairs, general: `EncodedPairs`.
        weight: number of general pairs per pair.
        rng: a `numpy.random.Generator`.

    Returns:
        `EncodedPairs`.
    """
    wanted, size = round(weight * len(pairs.source)), len(general.source)
    rows = np.concatenate([rng.permutation(size) for _ in range(-(-wanted // size))])[:wanted]
    sides = [own + [more[i] for i in rows] for own, more in zip(pairs[:2], general[:2], strict=True)]
    return EncodedPairs(*sides, over_long=[])


def plan_batches(source_lengths, target_lengths, tokens_per_batch, rng=None):
    """Groups pairs of similar lengths into batches.

    A pair's width is the length of its target, or half the length of its source if that is more. Pairs are put into
    buckets of similar width. Within a bucket they are sorted by source length, so that both sides of a batch have
    similar lengths. A little noise is added to the order, so that every epoch has different batches. The number of
    batches depends on the lengths only.

    The budget counts target tokens, because the loss is a mean over the target tokens of a batch: if batches have
    different numbers of them, tokens have different weights. If the budget counted the longer side of a pair, short
    translations of long sentences would weigh more, and translations of the model would be one or two percent too
    short.

    Args:
        source_lengths, target_lengths: integer arrays.
        tokens_per_batch: a batch has at most this many padded target tokens, at most twice as many padded source
            tokens, and at least one pair.
        rng: a `numpy.random.Generator` for the noise and the order of the batches, or `None` for a fixed order.

    Returns:
        A list of integer arrays: the indices of the pairs of each batch.
    """
    source_lengths, target_lengths = np.asarray(source_lengths), np.asarray(target_lengths)
    widths = np.maximum(target_lengths, (source_lengths + 1) // 2)
    order_by = source_lengths.astype("float64")
    if rng is not None:
        order_by += rng.uniform(-1, 1, len(order_by))
    batches, left_over = [], np.empty(0, "int64")
    for low, high in _buckets(widths.max()):
        bucket = np.concatenate([left_over, np.flatnonzero((widths > low) & (widths <= high))])
        bucket = bucket[np.argsort(order_by[bucket], kind="stable")]
        batch_size = max(1, tokens_per_batch // high)
        # Few left-over pairs go to the next, wider bucket: a batch of their own would cost a whole optimizer step.
        num_left_over = len(bucket) % batch_size
        keep = len(bucket) - (num_left_over if num_left_over < batch_size / 2 and high < widths.max() else 0)
        bucket, left_over = bucket[:keep], bucket[keep:]
        if keep:  # Batches of equal size, without a small one at the end: its tokens would weigh more.
            batches += np.array_split(bucket, -(-keep // batch_size))
    if rng is not None:
        rng.shuffle(batches)
    return batches


def _buckets(longest):
    """Intervals (low, high] that cover 1..longest. `high` is about a tenth above `low`, so that padding is little."""
    low = 0
    while low < longest:
        high = low + max(2, round(low / 10))
        yield low, high
        low = high


def make_batches(pairs, tokens_per_batch, shuffle=False, seed=0, start_epoch=0, steps_per_epoch=None):
    """Batches of token ids as a `tf.data.Dataset`.

    Each element is `(inputs, labels, weights)`: `inputs` has `encoder_token_ids` (B, S) and `decoder_token_ids`
    (B, T), the target shifted right behind the start token; `labels` (B, T) is the target; `weights` (B, T) is 1 at
    real tokens and 0 at padding.

    Args:
        pairs: `EncodedPairs`; or, for subword regularisation, a function that returns them for pass 0, 1, 2, ... Then
            every pass has as many batches as the first: extra batches are left out, missing ones are repeated.
        tokens_per_batch: see `plan_batches`.
        shuffle: if True, the data set is endless and every pass has another order (pass `steps_per_epoch` to `fit`).
            If False, it is one pass in a fixed order.
        seed: of the order. Defaults to 0.
        start_epoch: the epoch to begin with, for resuming. Defaults to 0.
        steps_per_epoch: number of batches in an epoch, for large corpora: validation and checkpoints then come before
            the end of a pass. Epochs begin and end independently of passes. Defaults to None, one pass. Needs
            `shuffle`.

    Returns:
        `TokenBatches`.
    """
    import tensorflow as tf

    first_pairs = pairs(0) if callable(pairs) else pairs
    first_lengths = _lengths(first_pairs)
    first = plan_batches(*first_lengths, tokens_per_batch)
    start = start_epoch * (steps_per_epoch or len(first))

    def batches():
        if not shuffle:
            yield from (_padded(first_pairs, indices) for indices in first)
            return
        number, skip = divmod(start, len(first))
        encoded, lengths = first_pairs, first_lengths
        while True:
            if callable(pairs) and number:
                encoded = pairs(number)
                lengths = _lengths(encoded)
            plan = plan_batches(*lengths, tokens_per_batch, np.random.default_rng((seed, number)))
            plan = (plan * (1 + len(first) // len(plan)))[: len(first)]
            yield from (_padded(encoded, indices) for indices in plan[skip:])
            number, skip = number + 1, 0

    def inputs_and_labels(encoder_token_ids, labels):
        # The end token is never an input: at its position in the shifted row the label is padding, with weight 0.
        decoder_token_ids = shifted_right(tf.where(labels == END_TOKEN_ID, PAD_TOKEN_ID, labels))
        inputs = {"encoder_token_ids": encoder_token_ids, "decoder_token_ids": decoder_token_ids}
        return inputs, labels, tf.cast(labels != PAD_TOKEN_ID, tf.float32)

    dataset = tf.data.Dataset.from_generator(batches, output_signature=(tf.TensorSpec((None, None), tf.int32),) * 2)
    dataset = dataset.map(inputs_and_labels).prefetch(8)
    if not shuffle:
        dataset = dataset.apply(tf.data.experimental.assert_cardinality(len(first)))
    padded = sum(len(indices) * sum(side[indices].max() for side in first_lengths) for indices in first)
    padding = 1 - sum(side.sum() for side in first_lengths) / padded
    return TokenBatches(dataset, steps_per_epoch or len(first), padding)


def _lengths(pairs):
    return [np.array([len(ids) for ids in side]) for side in (pairs.source, pairs.target)]


def _padded(pairs, indices):
    """The pairs at the given indices of `EncodedPairs` as two padded arrays of ids, (B, S) and (B, T)."""
    arrays = []
    for side in (pairs.source, pairs.target):
        rows = [side[i] for i in indices]
        lengths = np.array([len(ids) for ids in rows])
        array = np.full((len(rows), lengths.max()), PAD_TOKEN_ID, "int32")
        array[np.arange(lengths.max()) < lengths[:, None]] = np.concatenate(rows)
        arrays.append(array)
    return tuple(arrays)
