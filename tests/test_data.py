"""Batches: every pair once, a budget of tokens, weight for real tokens only, the same batches for the same seed."""

import numpy as np
import pytest
import tensorflow as tf

from keras_transformer.data import EncodedPairs, encode_pairs, make_batches, plan_batches
from keras_transformer.phrasebook import phrasebook
from keras_transformer.tokenizers import END_TOKEN_ID, PAD_TOKEN_ID, START_TOKEN_ID, Tokenizer


@pytest.fixture(scope="module")
def corpus():
    return phrasebook()["train"]


@pytest.fixture(scope="module")
def text_pairs(corpus):
    return corpus[:400]


@pytest.fixture(scope="module")
def tokenizer(text_pairs):
    return Tokenizer.train([text for pair in text_pairs for text in pair], vocabulary_size=300)


def lengths_like_captions(n, seed=0):
    """Lengths of both sides of `n` sentence pairs: log-normal, mean 13, standard deviation 4, and correlated."""
    rng = np.random.default_rng(seed)
    sigma = np.sqrt(np.log(1 + (4 / 13) ** 2))
    source = np.clip(np.round(rng.lognormal(np.log(13) - sigma**2 / 2, sigma, n)), 2, 60).astype(int)
    return source, np.clip(source + np.round(rng.normal(0, 2, n)), 2, None).astype(int)


def pairs_with(source_lengths, target_lengths, seed=0):
    """`EncodedPairs` of random ids. Each side has the given length, including the end token."""
    rng = np.random.default_rng(seed)
    sides = [
        [np.append(rng.integers(4, 99, length - 1), END_TOKEN_ID).astype("int32") for length in lengths]
        for lengths in (source_lengths, target_lengths)
    ]
    return EncodedPairs(*sides, over_long=[])


def arrays(dataset, count=None):
    """The batches of a data set as nested lists, for comparing."""
    dataset = dataset if count is None else dataset.take(count)
    return [tf.nest.map_structure(lambda x: x.tolist(), element) for element in dataset.as_numpy_iterator()]


def rows(batches):
    """The (source, target) of every row of `arrays`, without padding, sorted."""
    return sorted(
        tuple(tuple(token for token in row if token != PAD_TOKEN_ID) for row in pair)
        for inputs, labels, _ in batches
        for pair in zip(inputs["encoder_token_ids"], labels, strict=True)
    )


# Text -> ids.


def test_each_side_is_its_tokens_and_the_end_token(text_pairs, tokenizer):
    pairs = encode_pairs(text_pairs, tokenizer, tokenizer, max_length=1000)
    for side, texts in zip((pairs.source, pairs.target), zip(*text_pairs, strict=True), strict=True):
        assert [ids.tolist() for ids in side] == [[*ids, END_TOKEN_ID] for ids in tokenizer.tokenize(texts)]
        assert {ids.dtype for ids in side} == {np.dtype("int32")}
    assert pairs.over_long == []


def test_each_side_has_its_own_tokenizer(text_pairs, tokenizer):
    other = Tokenizer.train([target for _, target in text_pairs], vocabulary_size=100)
    pairs = encode_pairs(text_pairs[:5], tokenizer, other, max_length=1000)
    assert pairs.source[0].tolist() == [*tokenizer.tokenize([text_pairs[0][0]])[0], END_TOKEN_ID]
    assert pairs.target[0].tolist() == [*other.tokenize([text_pairs[0][1]])[0], END_TOKEN_ID]


@pytest.fixture(scope="module")
def uneven(tokenizer):
    """Pairs whose sides are short or long, and the number of tokens of a short side, including the end token."""
    short, long = "Das ist ein Haus.", "Das ist ein Haus und das ist ein Haus und das ist ein Haus."
    limit = len(tokenizer.tokenize([short])[0]) + 1
    assert len(tokenizer.tokenize([long])[0]) + 1 > limit
    return [(short, short), (long, short), (short, long), (long, long)], limit


def test_pairs_with_a_longer_side_are_dropped_and_counted(tokenizer, uneven):
    pairs = encode_pairs(uneven[0], tokenizer, tokenizer, max_length=uneven[1])
    assert (len(pairs.source), len(pairs.target), len(pairs.over_long)) == (1, 1, 3)
    assert len(pairs.source[0]) == len(pairs.target[0]) == uneven[1]


def test_the_end_token_counts(tokenizer, uneven):
    """A side of exactly `max_length` tokens fits. If `max_length` is one less, it does not."""
    short, limit = uneven[0][:1], uneven[1]
    assert encode_pairs(short, tokenizer, tokenizer, max_length=limit).over_long == []
    assert encode_pairs(short, tokenizer, tokenizer, max_length=limit - 1, over_long="cut").over_long == [0]


def test_cut_sides_have_no_end_token(tokenizer, uneven):
    whole = encode_pairs(uneven[0], tokenizer, tokenizer, max_length=1000)
    pairs = encode_pairs(uneven[0], tokenizer, tokenizer, max_length=uneven[1], over_long="cut")
    assert (len(pairs.source), len(pairs.target), len(pairs.over_long)) == (4, 4, 3)
    for side, whole_side in ((pairs.source, whole.source), (pairs.target, whole.target)):
        assert [ids.tolist() for ids in side] == [ids[: uneven[1]].tolist() for ids in whole_side]
    assert [END_TOKEN_ID in ids for ids in pairs.target] == [True, True, False, False]


# Lengths -> plan.


@pytest.mark.parametrize("seed", range(12))
def test_a_plan_has_every_pair_once_within_the_budget(seed):
    """For any distribution of lengths. Only a batch of one pair, if this is longer than the budget, may exceed it."""
    rng = np.random.default_rng(seed)
    n = int(rng.integers(1, 400))
    source, target = rng.integers(1, int(rng.integers(2, 120)), n), rng.integers(1, int(rng.integers(2, 120)), n)
    budget = int(rng.integers(1, 500))
    fixed = plan_batches(source, target, budget)
    mixed = plan_batches(source, target, budget, rng)
    for plan in (fixed, mixed):
        assert sorted(np.concatenate(plan).tolist()) == list(range(n))
        for batch in plan:
            assert len(batch) == 1 or len(batch) * target[batch].max() <= budget
            assert len(batch) == 1 or len(batch) * source[batch].max() <= 2 * budget
    assert len(mixed) == len(fixed)
    assert sorted(map(len, mixed)) == sorted(map(len, fixed))


def test_a_pair_longer_than_the_budget_has_its_own_batch():
    plan = plan_batches([3, 50, 3], [3, 2, 3], tokens_per_batch=8)
    assert sorted(sorted(batch.tolist()) for batch in plan) == [[0, 2], [1]]


def test_the_width_is_the_target_length_or_half_the_source_length():
    """Three pairs of width 10 make two batches of 20 tokens, if the target or half of the source has 10 tokens."""
    assert sorted(map(len, plan_batches([20, 1, 20], [1, 10, 10], tokens_per_batch=20))) == [1, 2]
    assert sorted(map(len, plan_batches([21, 1, 20], [1, 10, 10], tokens_per_batch=20))) == [1, 2]
    assert list(map(len, plan_batches([10, 10, 10], [1, 1, 1], tokens_per_batch=20))) == [3]


def test_without_a_generator_the_plan_is_fixed():
    lengths = lengths_like_captions(200)
    first, second = plan_batches(*lengths, 256), plan_batches(*lengths, 256)
    assert [batch.tolist() for batch in first] == [batch.tolist() for batch in second]


def test_a_generator_changes_batches_and_not_only_their_order():
    lengths = lengths_like_captions(500)
    plans = [plan_batches(*lengths, 256, np.random.default_rng(seed)) for seed in (1, 2)]
    members = [{frozenset(batch.tolist()) for batch in plan} for plan in plans]
    assert len(members[0] & members[1]) < len(members[0]) / 2


def test_batches_are_nearly_as_full_as_the_budget_allows():
    source, target = lengths_like_captions(10_000)
    plan = plan_batches(source, target, 1024)
    full = np.maximum(target, source / 2).sum() / 1024
    assert full <= len(plan) < 1.2 * full


@pytest.mark.parametrize("mixed", [False, True])
@pytest.mark.parametrize("tokens_per_batch", [1024, 4096])
def test_less_than_a_tenth_is_padding(mixed, tokens_per_batch):
    lengths = lengths_like_captions(10_000)
    rng = np.random.default_rng(1) if mixed else None
    plan = plan_batches(*lengths, tokens_per_batch, rng)
    padded = sum(len(batch) * side[batch].max() for batch in plan for side in lengths)
    assert sum(side.sum() for side in lengths) > 0.9 * padded


@pytest.mark.parametrize("ratio", [0.8, 1.0, 1.2])
def test_tokens_of_short_translations_weigh_no_more_than_others(ratio):
    """A token weighs 1 / (tokens of its batch). These weights keep the mean target length per source length."""
    source, target = lengths_like_captions(20_000)
    target = np.maximum(2, np.round(ratio * target)).astype(int)
    counts = np.empty(len(target))
    for batch in plan_batches(source, target, 4096, np.random.default_rng(1)):
        counts[batch] = 1 / target[batch].sum()
    same = [source == length for length in range(8, 20)]
    weighted = [np.average(target[where], weights=counts[where]) / target[where].mean() for where in same]
    assert np.average(weighted, weights=[where.sum() for where in same]) == pytest.approx(1, abs=0.005)


# Plan -> tensors.


def test_one_batch_by_hand():
    """Labels end with the end token. The decoder reads the start token and then the labels, without the end token."""
    source, target = [[11, 12, 3], [13, 14, 15, 3]], [[21, 22, 23, 3], [24, 3]]
    pairs = EncodedPairs(*([np.array(ids, "int32") for ids in side] for side in (source, target)), 0)
    ((inputs, labels, weights),) = arrays(make_batches(pairs, tokens_per_batch=8).dataset)
    assert inputs == {
        "encoder_token_ids": [[11, 12, 3, 0], [13, 14, 15, 3]],  # Shortest source first.
        "decoder_token_ids": [[2, 21, 22, 23], [2, 24, 0, 0]],
    }
    assert labels == [[21, 22, 23, 3], [24, 3, 0, 0]]
    assert weights == [[1, 1, 1, 1], [1, 1, 0, 0]]
    assert (PAD_TOKEN_ID, START_TOKEN_ID, END_TOKEN_ID) == (0, 2, 3)


def test_a_cut_target_keeps_its_last_token_as_a_label():
    pairs = EncodedPairs([np.array([11, 3], "int32")], [np.array([21, 22, 23], "int32")], 1)
    ((inputs, labels, weights),) = arrays(make_batches(pairs, tokens_per_batch=8).dataset)
    assert inputs["decoder_token_ids"] == [[2, 21, 22]]
    assert labels == [[21, 22, 23]]
    assert weights == [[1, 1, 1]]


@pytest.mark.parametrize("shuffle", [False, True])
def test_one_pass_has_every_pair_once_and_weights_only_real_tokens(shuffle):
    source, target = lengths_like_captions(300)
    pairs = pairs_with(source, target)
    batches = make_batches(pairs, 256, shuffle=shuffle)
    one_pass = arrays(batches.dataset, batches.steps_per_epoch)
    expected = sorted(zip((tuple(s) for s in pairs.source), (tuple(t) for t in pairs.target), strict=True))
    assert rows(one_pass) == expected
    assert sum(np.sum(weights) for *_, weights in one_pass) == target.sum()
    for inputs, labels, weights in one_pass:
        labels, decoder = np.array(labels), np.array(inputs["decoder_token_ids"])
        assert np.array_equal(np.array(weights) == 1, labels != PAD_TOKEN_ID)
        assert (decoder[:, 0] == START_TOKEN_ID).all()
        assert not np.isin(decoder[:, 1:], [START_TOKEN_ID, END_TOKEN_ID]).any()
        assert np.array_equal(decoder[:, 1:], np.where(labels == END_TOKEN_ID, 0, labels)[:, :-1])
        assert (labels[:, -1] != PAD_TOKEN_ID).any()  # No column is padding only.
        assert labels.size <= 256
        assert np.size(inputs["encoder_token_ids"]) <= 512


def test_elements_have_known_types_and_ranks():
    batches = make_batches(pairs_with([3], [4]), 64)
    ids = tf.TensorSpec((None, None), tf.int32)
    inputs = {"encoder_token_ids": ids, "decoder_token_ids": ids}
    assert batches.dataset.element_spec == (inputs, ids, tf.TensorSpec((None, None), tf.float32))


def test_without_shuffling_it_is_one_pass_of_known_length_the_same_each_time():
    batches = make_batches(pairs_with(*lengths_like_captions(200)), 256)
    first, second = arrays(batches.dataset), arrays(batches.dataset)
    assert len(first) == len(batches.dataset) == batches.steps_per_epoch
    assert first == second


def test_with_shuffling_it_is_endless():
    batches = make_batches(pairs_with([3, 4], [4, 3]), 64, shuffle=True)
    assert len(arrays(batches.dataset, 7 * batches.steps_per_epoch)) == 7 * batches.steps_per_epoch


def test_padding_is_measured():
    batches = make_batches(pairs_with(*lengths_like_captions(300)), 512)
    sides = [np.array(side) for inputs, labels, _ in arrays(batches.dataset)
             for side in (inputs["encoder_token_ids"], labels)]  # fmt: skip
    assert batches.padding == pytest.approx(np.mean(np.concatenate([side.ravel() for side in sides]) == PAD_TOKEN_ID))
    assert make_batches(pairs_with([5, 5], [5, 5]), 64).padding == 0


def test_less_than_a_tenth_of_the_phrasebook_is_padding(corpus, tokenizer):
    lengths = [[len(ids) + 1 for ids in tokenizer.tokenize(side)] for side in zip(*corpus, strict=True)]
    assert make_batches(pairs_with(*lengths), 2048).padding < 0.1


# Order.


@pytest.fixture(scope="module")
def many():
    return pairs_with(*lengths_like_captions(300))


def test_the_same_seed_gives_the_same_batches(many):
    first, second = (make_batches(many, 256, shuffle=True, seed=5) for _ in range(2))
    steps = 2 * first.steps_per_epoch
    assert arrays(first.dataset, steps) == arrays(second.dataset, steps)


def test_another_seed_gives_other_batches(many):
    first, second = (make_batches(many, 256, shuffle=True, seed=seed) for seed in (5, 6))
    steps = first.steps_per_epoch
    one, other = arrays(first.dataset, steps), arrays(second.dataset, steps)
    assert one != other
    assert rows(one) == rows(other)


def test_every_epoch_has_the_same_pairs_in_other_batches(many):
    batches = make_batches(many, 256, shuffle=True)
    steps = batches.steps_per_epoch
    both = arrays(batches.dataset, 2 * steps)
    assert both[:steps] != both[steps:]
    assert rows(both[:steps]) == rows(both[steps:])


@pytest.mark.parametrize("epoch", [1, 3])
def test_starting_at_an_epoch_gives_the_batches_of_an_uninterrupted_run(many, epoch):
    whole = make_batches(many, 256, shuffle=True, seed=2)
    steps = whole.steps_per_epoch
    resumed = make_batches(many, 256, shuffle=True, seed=2, start_epoch=epoch)
    assert arrays(resumed.dataset, 2 * steps) == arrays(whole.dataset, (epoch + 2) * steps)[epoch * steps :]


@pytest.mark.parametrize("epoch", [1, 3, 7])
def test_epochs_shorter_than_a_pass_continue_one_sequence(many, epoch):
    """Epochs of 5 batches split the same sequence of batches differently. Resuming continues at the right batch."""
    whole = make_batches(many, 256, shuffle=True, seed=2)
    assert whole.steps_per_epoch > 5
    short = make_batches(many, 256, shuffle=True, seed=2, steps_per_epoch=5)
    assert short.steps_per_epoch == 5
    resumed = make_batches(many, 256, shuffle=True, seed=2, steps_per_epoch=5, start_epoch=epoch)
    assert arrays(resumed.dataset, 9) == arrays(whole.dataset, 5 * epoch + 9)[5 * epoch :]


def test_every_pass_has_its_own_random_segmentations(text_pairs, tokenizer):
    """Every pass has other segmentations of the same sentences, and as many batches; the same seed gives the same."""

    def resample(number):
        return encode_pairs(text_pairs, tokenizer, tokenizer, 128, alpha=0.3, seed=number)

    batches = make_batches(resample, 512, shuffle=True)
    steps = batches.steps_per_epoch
    both = arrays(batches.dataset, 2 * steps)
    assert both == arrays(make_batches(resample, 512, shuffle=True).dataset, 2 * steps)
    resumed = make_batches(resample, 512, shuffle=True, start_epoch=1)
    assert arrays(resumed.dataset, steps) == both[steps:]
    passes = []
    for number in (0, 1):
        seen = rows(both[number * steps : (number + 1) * steps])
        drawn = resample(number)
        assert set(seen) <= {(tuple(s), tuple(t)) for s, t in zip(drawn.source, drawn.target, strict=True)}
        assert len(seen) > 0.9 * len(text_pairs)
        passes.append(set(seen))
    assert len(passes[0] & passes[1]) < len(text_pairs) / 2


def test_a_second_iteration_starts_from_the_beginning(many):
    batches = make_batches(many, 256, shuffle=True)
    assert arrays(batches.dataset, 5) == arrays(batches.dataset, 5)
