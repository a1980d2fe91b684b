"""Batches: every pair once, a budget of tokens, weight for real tokens only, the same batches for the same seed."""

import errno
import io
import pickle
import threading
import time
from collections import Counter
from types import SimpleNamespace

import numpy as np
import pytest
from trainings import phrases

from keras_transformer.data import encoding, storage
from keras_transformer.data.batches import Variation, make_batches, pairs_per_pass, plan_batches, split_evenly
from keras_transformer.data.corpora import Corpus, ParallelText
from keras_transformer.data.encoding import encode_pairs, encoded_in
from keras_transformer.data.storage import EncodedPairs
from keras_transformer.files import FileError
from keras_transformer.text.special_ids import END_TOKEN_ID, PAD_TOKEN_ID, START_TOKEN_ID
from keras_transformer.text.tokenizer import Tokenizer
from keras_transformer.training import prepare
from keras_transformer.training.config import RunConfig


@pytest.fixture(scope="module")
def corpus():
    return phrases()


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
    return EncodedPairs(*sides)


def arrays(dataset, count=None):
    """The batches of a data set as nested lists, for comparing."""
    import tensorflow as tf

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
        assert {ids.dtype for ids in side} == {np.dtype("uint16")}
    assert pairs.left_out == {}


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
    assert (len(pairs.source), len(pairs.target), pairs.left_out) == (
        1,
        1,
        {"over-long": (3, [[n, *uneven[0][n - 1]] for n in (2, 3, 4)])},
    )
    assert len(pairs.source[0]) == len(pairs.target[0]) == uneven[1]


def test_the_end_token_counts(tokenizer, uneven):
    """A side of exactly `max_length` tokens fits. If `max_length` is one less, it does not."""
    short, limit = uneven[0][:1], uneven[1]
    assert encode_pairs(short, tokenizer, tokenizer, max_length=limit).left_out == {}
    cut = encode_pairs(short, tokenizer, tokenizer, max_length=limit - 1, over_long="cut")
    assert cut.left_out["over-long"] == (1, [[1, *short[0]]])
    assert cut.about_left_out("cut") == ["1 over-long cut (line 1)"]
    several = encode_pairs(short * 4, tokenizer, tokenizer, max_length=limit - 1, over_long="cut")
    (line,) = several.about_left_out()
    assert line.startswith("4 over-long dropped (line ") and line.endswith(", ...)")


def test_cut_sides_have_no_end_token(tokenizer, uneven):
    whole = encode_pairs(uneven[0], tokenizer, tokenizer, max_length=1000)
    pairs = encode_pairs(uneven[0], tokenizer, tokenizer, max_length=uneven[1], over_long="cut")
    assert (len(pairs.source), len(pairs.target), pairs.left_out["over-long"].count) == (4, 4, 3)
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
    pairs = EncodedPairs(*([np.array(ids, "int32") for ids in side] for side in (source, target)))
    ((inputs, labels, weights),) = arrays(make_batches(pairs, tokens_per_batch=8).dataset)
    assert inputs == {
        "encoder_token_ids": [[11, 12, 3, 0], [13, 14, 15, 3]],  # Shortest source first.
        "decoder_token_ids": [[2, 21, 22, 23], [2, 24, 0, 0]],
    }
    assert labels == [[21, 22, 23, 3], [24, 3, 0, 0]]
    assert weights == [[1, 1, 1, 1], [1, 1, 0, 0]]
    assert (PAD_TOKEN_ID, START_TOKEN_ID, END_TOKEN_ID) == (0, 2, 3)


def test_a_cut_target_keeps_its_last_token_as_a_label():
    pairs = EncodedPairs([np.array([11, 3], "int32")], [np.array([21, 22, 23], "int32")])
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
    import tensorflow as tf

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
    resumed = whole.from_step(epoch * steps + 2)
    assert arrays(resumed, 2 * steps) == arrays(whole.dataset, (epoch + 3) * steps)[epoch * steps + 2 :][: 2 * steps]


def test_a_fixed_order_may_begin_later(many):
    batches = make_batches(many, 256)
    assert arrays(batches.from_step(3)) == arrays(batches.dataset)[3:]
    assert len(batches.from_step(3)) == batches.steps_per_epoch - 3


def test_epochs_shorter_than_a_pass_continue_one_sequence(many):
    """Epochs of 5 batches split the same sequence of batches differently."""
    whole, short = (make_batches(many, 256, shuffle=True, seed=2, steps_per_epoch=n) for n in (None, 5))
    assert whole.steps_per_epoch > 5 == short.steps_per_epoch
    assert arrays(short.from_step(35), 9) == arrays(whole.dataset, 44)[35:]


@pytest.mark.parametrize("workers", [1, 2])
def test_every_pass_has_its_own_random_segmentations(text_pairs, tokenizer, workers):
    """Every pass has other segmentations of the same sentences, and as many batches; the same seed gives the same."""
    pairs = encode_pairs(text_pairs, tokenizer, tokenizer, 128)
    vary = Variation([tokenizer] * 2, 128, alpha=0.3)

    def batches_of(seed=0, workers=1):
        return make_batches(pairs, 512, shuffle=True, seed=seed, vary=vary, workers=workers)

    steps = batches_of().steps_per_epoch
    both = arrays(batches_of().dataset, 2 * steps)
    assert both == arrays(batches_of(workers=workers).dataset, 2 * steps)
    assert both[:steps] != arrays(batches_of(seed=1).dataset, steps)
    assert arrays(batches_of(workers=workers).from_step(steps + 1), steps - 1) == both[steps + 1 :]
    texts = sorted(zip(*[tokenizer.detokenize([ids[:-1] for ids in side]) for side in pairs[:2]], strict=True))
    passes = [rows(both[number * steps : (number + 1) * steps]) for number in (0, 1)]
    for seen in passes:
        sides = zip(*[tokenizer.detokenize([pair[side][:-1] for pair in seen]) for side in (0, 1)], strict=True)
        assert sorted(sides) == texts
    assert len(set(passes[0]) & set(passes[1])) < len(text_pairs) / 2
    sizes = [np.size(labels) for _, labels, _ in both]
    assert np.mean(sizes) <= 512 and max(sizes) < 2 * 512


@pytest.mark.parametrize("count", [1, 7, 40, 400])
def test_pairs_are_divided_into_a_number_of_batches(count):
    """All pairs once, in batches of about the same size."""
    source, target = lengths_like_captions(300)
    plan = split_evenly(source, target, count)
    assert len(plan) == count
    assert sorted(np.concatenate(plan)) == list(range(300))
    sizes = [len(rows) * target[rows].max() for rows in plan if len(rows)]
    assert max(sizes) < 1.6 * np.median(sizes) or count > 40
    assert [len(rows) for rows in split_evenly([], [], 2)] == [0, 0]


def test_varied_pairs_are_batched_with_others_of_their_new_length(text_pairs, tokenizer):
    """Batches are planned before anybody knows how long the pairs will be. Yet there is not much more padding."""
    pairs = encode_pairs(text_pairs * 5, tokenizer, tokenizer, 128)
    padding = []
    for vary in (None, Variation([tokenizer] * 2, 128, alpha=0.1)):
        batches = make_batches(pairs, 1024, shuffle=True, vary=vary)
        one_pass = arrays(batches.dataset, batches.steps_per_epoch)
        padding.append(1 - np.mean([np.mean(weights) for *_, weights in one_pass]))
    assert padding[1] < padding[0] + 0.05


def test_a_batch_is_split_among_replicas(many):
    """Each worker makes only its own part; together they are the batch of one device."""
    whole = arrays(make_batches(many, 256, shuffle=True).dataset, 3)

    class Strategy:
        num_replicas_in_sync = 4

        def distribute_datasets_from_function(self, function):
            return [function(SimpleNamespace(num_input_pipelines=2, input_pipeline_id=i)) for i in (0, 1)]

    parts = [arrays(dataset, 6) for dataset in make_batches(many, 256, shuffle=True, strategy=Strategy()).dataset]
    for i, batch in enumerate(whole):
        split = [part for worker in parts for part in worker[2 * i : 2 * i + 2]]
        assert rows(split) == rows([batch])
        assert max(len(labels) for _, labels, _ in split) - min(len(labels) for _, labels, _ in split) <= 1


# A corpus on disk.


def lists(pairs):
    return [[ids.tolist() for ids in side] for side in pairs[:2]], pairs.left_out


@pytest.fixture
def with_gaps(text_pairs):
    """Pairs, some of them empty or over-long."""
    return [*text_pairs[:30], ("", "x"), ("y" * 500, "z"), *text_pairs[30:90], ("a", "")]


@pytest.mark.parametrize("workers", [1, 2])
def test_on_disk_are_the_same_ids_as_in_memory(with_gaps, tokenizer, tmp_path, monkeypatch, workers):
    monkeypatch.setattr(encoding, "LINES_PER_BLOCK", 7)
    wanted, seen = lists(encode_pairs(with_gaps, tokenizer, tokenizer, 64)), []
    numbers = {reason: [sample[0] for sample in samples] for reason, (_, samples) in wanted[1].items()}
    assert numbers == {"over-long": [32], "with an empty side": [31, 93]}
    pairs = encode_pairs(
        with_gaps, tokenizer, tokenizer, 64, folder=tmp_path / "a", workers=workers, progress=seen.append
    )
    assert lists(pairs) == lists(EncodedPairs.open(tmp_path / "a")) == wanted
    assert seen == [*range(7, 93, 7), 93]
    assert isinstance(pairs.source.values.base, np.memmap)
    one, other = (make_batches(x, 256, shuffle=True) for x in (pairs, encode_pairs(with_gaps, *[tokenizer] * 2, 64)))
    assert arrays(one.dataset, 20) == arrays(other.dataset, 20)
    assert lists(EncodedPairs(*pickle.loads(pickle.dumps(pairs[:2])), pairs.left_out)) == wanted


@pytest.mark.parametrize("seconds", [0, 1000])
def test_a_killed_preparation_goes_on_where_it_was(with_gaps, tokenizer, tmp_path, monkeypatch, seconds):
    """What was written after the last record of the progress, or half-written, is written again."""
    monkeypatch.setattr(encoding, "LINES_PER_BLOCK", 7)
    monkeypatch.setattr(storage, "SECONDS_PER_RECORD", seconds)

    def killed():
        for number, pair in enumerate(with_gaps):
            if number == 50:
                raise KeyboardInterrupt
            yield pair

    with pytest.raises(KeyboardInterrupt):
        encode_pairs(killed(), tokenizer, tokenizer, 64, folder=tmp_path / "a")
    assert not (tmp_path / "a").exists()
    for name in ("source", "target_ends"):
        with open(tmp_path / ".writing-a" / name, "ab") as file:
            file.write(b"half")
    seen = []
    pairs = encode_pairs(with_gaps, tokenizer, tokenizer, 64, folder=tmp_path / "a", progress=seen.append)
    assert seen[0] == (7 if seconds else 49)
    assert lists(pairs) == lists(encode_pairs(with_gaps, tokenizer, tokenizer, 64))
    assert not (tmp_path / ".writing-a").exists()


def test_a_wrong_text_leaves_nothing_and_two_processes_do_not_write_the_same(with_gaps, tokenizer, tmp_path):
    def wrong():
        yield from with_gaps
        raise ValueError("Parallel files must have the same number of lines.")

    with pytest.raises(ValueError, match="the same number"):
        encode_pairs(wrong(), tokenizer, tokenizer, 64, folder=tmp_path / "a")
    assert not list(tmp_path.iterdir())

    def meanwhile():
        with pytest.raises(FileError, match="is being written by another process"):
            encode_pairs(with_gaps, tokenizer, tokenizer, 64, folder=tmp_path / "a")
        yield from with_gaps

    encode_pairs(meanwhile(), tokenizer, tokenizer, 64, folder=tmp_path / "a")
    with pytest.raises(FileError, match=r"Cannot write to .*file/a: Not a directory. Give another --cache-dir"):
        (tmp_path / "file").touch()
        encode_pairs(with_gaps, tokenizer, tokenizer, 64, folder=tmp_path / "file" / "a")


def test_another_process_may_be_tokenizing_the_same(text_pairs, tokenizer, tmp_path, messages):
    """The second process waits for the first one, and uses its ids."""
    text, found, begun = ParallelText(text_pairs[:50], "a"), [], threading.Event()

    def slowly(count):
        begun.set()
        time.sleep(0.5)

    threads = [
        threading.Thread(
            target=lambda progress: found.append(
                lists(encoded_in(tmp_path, text, [tokenizer] * 2, 64, progress=progress))
            ),
            args=(progress,),
        )
        for progress in (slowly, lambda count: found.append("tokenized again"))
    ]
    threads[0].start()
    begun.wait()
    threads[1].start()
    for thread in threads:
        thread.join()
    assert found[0] == found[1]
    assert messages().startswith("a: waiting for another process that tokenizes it into ")


def test_a_full_disk_is_named_and_the_next_process_goes_on(with_gaps, tokenizer, tmp_path, monkeypatch):
    monkeypatch.setattr(encoding, "LINES_PER_BLOCK", 7)
    monkeypatch.setattr(storage, "SECONDS_PER_RECORD", 0)

    class Small(io.FileIO):
        """A file on a disk that becomes full."""

        def write(self, values):
            if self.tell() > 500:
                raise OSError(errno.ENOSPC, "No space left on device")
            return super().write(values)

    with monkeypatch.context() as patch:
        patch.setattr(storage, "open", Small, raising=False)
        with pytest.raises(OSError, match="No space left on device") as error:
            encode_pairs(with_gaps, tokenizer, tokenizer, 64, folder=tmp_path / "a")
        assert error.value.filename == str(tmp_path / "a")
    pairs = encode_pairs(with_gaps, tokenizer, tokenizer, 64, folder=tmp_path / "a")
    assert lists(pairs) == lists(encode_pairs(with_gaps, tokenizer, tokenizer, 64))


def test_a_cache_knows_text_tokenizers_and_settings(text_pairs, tokenizer, tmp_path):
    text, other = ParallelText(text_pairs[:50], "a"), ParallelText(text_pairs[:51], "b")
    used = []

    def encoded(text, length=64, tokenizer=tokenizer):
        used.clear()
        return lists(encoded_in(tmp_path, text, [tokenizer] * 2, length, progress=used.append))

    first = encoded(text)
    assert used == [50]
    assert encoded(ParallelText(text_pairs[:50], "c")) == first
    assert used == []
    for change in (
        lambda: encoded(other),
        lambda: encoded(text, 63),
        lambda: encoded(text, tokenizer=Tokenizer.train([t for pair in text_pairs for t in pair], 200)),
    ):
        change()
        assert used
    assert len(list(tmp_path.iterdir())) == 4


@pytest.mark.parametrize(
    ("pairs", "message"),
    [
        ([], "There must be sentence pairs"),
        (
            [("", "a"), ("b" * 999, "c")],
            "all were dropped. Received: pairs 1 with an empty side, 1 over-long; max_length=64",
        ),
    ],
)
def test_no_pairs_are_an_error(tokenizer, pairs, message):
    with pytest.raises(ValueError, match=message):
        encode_pairs(pairs, tokenizer, tokenizer, 64)


def test_a_second_iteration_starts_from_the_beginning(many):
    batches = make_batches(many, 256, shuffle=True)
    assert arrays(batches.dataset, 5) == arrays(batches.dataset, 5)


@pytest.mark.parametrize(("vocabulary_size", "dtype"), [(2**15 + 1, "uint16"), (2**16, "uint16"), (2**16 + 1, "int32")])
def test_ids_take_as_few_bytes_as_the_vocabulary_allows(vocabulary_size, dtype):
    last = [vocabulary_size - 1]
    functions = {"tokenize": lambda texts: [last for _ in texts], "tag": lambda language: []}
    tokenizer = SimpleNamespace(vocabulary_size=vocabulary_size, num_placeholders=0, **functions)
    encoded = encode_pairs([("a", "b"), ("c", "d")], tokenizer, tokenizer, 64)
    for side in (encoded.source, encoded.target):
        assert [(ids.tolist(), ids.dtype) for ids in side] == [([*last, END_TOKEN_ID], dtype)] * 2


def test_progress_is_logged_every_ten_seconds(monkeypatch, messages):
    clock = SimpleNamespace(now=5000.0)
    monkeypatch.setattr(encoding, "time", SimpleNamespace(monotonic=lambda: clock.now))
    progress = encoding.Progress("a.en")
    for seconds in (4, 9.9, 10, 12, 19.9, 21):
        clock.now = 5000.0 + seconds
        progress(1000 * int(seconds))
    assert messages().splitlines() == [
        "a.en: 10,000 lines tokenized, 10 s",
        "a.en: 21,000 lines tokenized, 21 s",
    ]


# Several corpora.


def test_shares_of_corpora():
    assert pairs_per_pass([1000, 10], [1, 2]) == [1000, 20]
    # With temperature 2, the 104 pairs are shared in proportion to the square roots, 10 and 2. Then come the weights.
    assert pairs_per_pass([100, 4], [1, 3], temperature=2) == [round(104 * 10 / 12), round(3 * 104 * 2 / 12)]


@pytest.mark.parametrize(("weight", "wanted"), [(1.5, 15), (9.0, 90)])
def test_every_pass_mixes_other_general_pairs(tokenizer, weight, wanted):
    """A pass has every own pair once, and the wanted number of general pairs, each as often as any other.

    If fewer are wanted than there are, no general pair comes twice.
    """
    own, general = (encode_pairs(phrases()[a:b], tokenizer, tokenizer, 128) for a, b in ((0, 10), (20, 50)))
    text = ParallelText(phrases()[:10], "own")
    data = RunConfig.make({"general_weight": weight}).data
    parts = prepare.parts(Corpus([text], [text], [text]), [own], general, data)
    batches = make_batches(parts, 10_000, shuffle=True)
    passes = []
    for number in range(2):
        dataset = batches.from_step(number * batches.steps_per_epoch).take(batches.steps_per_epoch)
        rows = [row for inputs, *_ in dataset.as_numpy_iterator() for row in inputs["encoder_token_ids"].tolist()]
        passes.append(Counter(tuple(id for id in row if id) for row in rows))
    assert [sum(one.values()) for one in passes] == [10 + wanted] * 2
    assert (passes[0] != passes[1]) == bool(wanted % 30)
    sides = [{tuple(ids.tolist()) for ids in pairs.source} for pairs in (own, general)]
    for one in passes:
        assert all(one[ids] == 1 for ids in sides[0] - sides[1])
        assert {one[ids] for ids in sides[1] - sides[0]} <= ({0, 1} if wanted < 30 else {3})
