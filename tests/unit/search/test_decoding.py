"""The searches compared with brute force, over decoders made from a table."""

import itertools
from types import SimpleNamespace

import numpy as np
import pytest
from keras import ops

from keras_transformer.search.beam import beam_search
from keras_transformer.search.decoder import NO_HYPOTHESIS, SpecialIds, Stage, length_penalty_divisor
from keras_transformer.search.greedy import greedy, sample
from keras_transformer.search.settings import SearchSettings

V, L, B = 5, 4, 3  # Tokens: 0 padding, 1 an ordinary token, 2 start, 3 end, 4 an ordinary token.
START, END = 2, 3


def table(seed):
    """Logits of the next token for each sentence and its last two tokens: (B, V, V, V)."""
    return np.random.default_rng(seed).normal(size=(B, V, V, V)).astype("float32") * 2


class TableDecoder:
    """A decoder over the table. Its cache holds the tokens that each row read, (B, K, L), and is never reordered."""

    def __init__(self, logits, num_beams, stages=None):
        self.num_beams, self.logits = num_beams, ops.reshape(ops.convert_to_tensor(logits), (-1, V))
        length = L if stages is None else stages[0].max_length
        sentences = ops.convert_to_tensor(np.repeat(np.arange(B, dtype="int32"), num_beams))
        self.cache = {"read": ops.zeros((B, num_beams, length), "int32"), "sentences": sentences}

    def step(self, token_ids, cache, index, ancestors):
        read, sentences = cache["read"], cache["sentences"]
        length = read.shape[2]
        if ancestors is None:
            ancestors = ops.zeros((1, 1, length), "int32")
        assert ancestors.shape[2] == length
        before = ops.take_along_axis(read, ops.maximum(ancestors, 0), axis=1)  # The tokens of each beam.
        before = ops.reshape(ops.take(before, ops.maximum(index - 1, 0), axis=2), (-1,))
        before = ops.where(index == 0, 0, before)
        here = ops.arange(length, dtype="int32") == index
        read = ops.where(here, ops.reshape(token_ids, (-1, self.num_beams, 1)), read)
        logits = ops.take(self.logits, (sentences * V + before) * V + token_ids, axis=0)
        return logits, {"read": read, "sentences": sentences}

    def lengthen(self, cache, max_length):
        batch, beams, length = cache["read"].shape
        more = ops.zeros((batch, beams, max_length - length), "int32")
        return {**cache, "read": ops.concatenate([cache["read"], more], axis=2)}


@pytest.mark.parametrize(("num_beams", "ancestors"), [(1, [None]), (3, [(B, 3, 2), (B, 3, L)])], ids=str)
def test_a_decoder_is_any_object_with_a_cache_a_step_and_a_lengthen(num_beams, ancestors):
    """Checks the arguments of each call. The second stage calls `lengthen`; the beams of a sentence are adjacent."""
    stages, asked, lengthened = [Stage(2), Stage(L)], set(), []
    table_decoder = TableDecoder(table(1), num_beams, stages)

    def step(token_ids, cache, index, ancestors):
        asked.add((tuple(token_ids.shape), tuple(index.shape), None if ancestors is None else tuple(ancestors.shape)))
        return table_decoder.step(token_ids, cache, index, ancestors)

    def lengthen(cache, max_length):
        lengthened.append(max_length)
        return table_decoder.lengthen(cache, max_length)

    decoder = SimpleNamespace(cache=table_decoder.cache, step=step, lengthen=lengthen)
    settings = SearchSettings(num_beams=num_beams)
    hypotheses = (greedy if num_beams == 1 else beam_search)(decoder, B, L, settings, stages=stages)
    assert asked == {((B * num_beams,), (), shape) for shape in ancestors}
    assert lengthened == [L]
    assert tuple(hypotheses.token_ids.shape) == (B, num_beams, L)


def log_softmax(logits):
    return logits - np.log(np.exp(logits).sum(-1, keepdims=True))


@pytest.mark.parametrize("repetition_penalty", [1.0, 1.5])
@pytest.mark.parametrize("kind", ["greedy", "greedy, XLA", "beams", "beams, XLA", "sampling"])
def test_a_language_tag_costs_nothing(kind, repetition_penalty):
    """And NumPy's integers, which have 64 bits, are as good as others."""
    logits = table(5)
    num_beams = 3 if "beams" in kind else 1
    decoder = TableDecoder(logits, num_beams)
    settings = SearchSettings(num_beams=num_beams, length_penalty=0.0, repetition_penalty=repetition_penalty)
    special_ids = SpecialIds(forbidden=(0, START), num_tags=1)
    given = {"limits": np.full(B, L), "prefix": np.full((B, 1), 4), "special_ids": special_ids}
    if kind == "sampling":
        uniforms = np.random.default_rng(0).uniform(size=(B, L)).astype("float32")
        found = sample(decoder, uniforms, L, settings, **given)
    else:
        search = beam_search if num_beams > 1 else greedy
        found = search(decoder, B, L, settings, jit_compile="XLA" in kind, **given)
    token_ids, scores = map(ops.convert_to_numpy, found)
    for sentence in range(B):
        row = [int(token) for token in token_ids[sentence, 0] if token]
        assert row[0] == 4
        before = [(0, START), *itertools.pairwise([START, *row])]
        costs = [log_softmax(logits[sentence, a, b])[token] for (a, b), token in zip(before, row, strict=False)]
        assert scores[sentence, 0] == pytest.approx(sum(costs[1:]), abs=1e-5)


DIVISORS = {"gnmt": lambda length, a: ((5 + length) / 6) ** a, "power": lambda length, a: length**a}


def all_hypotheses(logits, sentence, length_penalty, limit=L, divisor=DIVISORS["gnmt"]):
    """Every sequence that ends, or reaches `limit` tokens, with its score; best first."""
    log_probs = log_softmax(logits)
    hypotheses = []
    for length in range(1, limit + 1):
        for tokens in itertools.product(range(V), repeat=length):
            if END in tokens[:-1] or (tokens[-1] != END and length < limit):
                continue
            context = (0, START, *tokens)
            total = sum(log_probs[sentence, context[i], context[i + 1], token] for i, token in enumerate(tokens))
            hypotheses.append((total / divisor(length, length_penalty), tokens))
    return sorted(hypotheses, reverse=True)


MOST_BEAMS = 256  # More than there are prefixes of any length; a step has at most 340 candidates.


def split(kwargs):
    """The settings of a search, and its other arguments."""
    names = set(vars(SearchSettings()))
    settings = {name: value for name, value in kwargs.items() if name in names}
    return SearchSettings(**{"length_penalty": 0.0, **settings}), {k: x for k, x in kwargs.items() if k not in names}


def run_beam(logits, num_beams, **kwargs):
    settings, kwargs = split({"num_beams": num_beams, **kwargs})
    decoder = TableDecoder(logits, num_beams, kwargs.get("stages"))
    token_ids, scores = beam_search(decoder, B, L, settings, **kwargs)
    return ops.convert_to_numpy(token_ids), ops.convert_to_numpy(scores)


def run_greedy(logits, **kwargs):
    settings, kwargs = split(kwargs)
    token_ids, scores = greedy(TableDecoder(logits, 1, kwargs.get("stages")), B, L, settings, **kwargs)
    return ops.convert_to_numpy(token_ids), ops.convert_to_numpy(scores)


@pytest.mark.parametrize("kind", DIVISORS)
@pytest.mark.parametrize("length_penalty", [0.0, 0.6, 1.5, -0.5])
@pytest.mark.parametrize("seed", [0, 1])
def test_a_wide_beam_search_equals_enumeration(length_penalty, kind, seed):
    logits = table(seed)
    token_ids, scores = run_beam(logits, num_beams=MOST_BEAMS, length_penalty=length_penalty, length_penalty_type=kind)
    for sentence in range(B):
        expected = all_hypotheses(logits, sentence, length_penalty, divisor=DIVISORS[kind])
        np.testing.assert_allclose(scores[sentence], [s for s, _ in expected][:MOST_BEAMS], atol=1e-4)
        for (_, tokens), row in zip(expected[:20], token_ids[sentence], strict=False):
            assert tuple(row[: len(tokens)]) == tokens
            assert not row[len(tokens) :].any()


@pytest.mark.parametrize("length_penalty", [-0.5, 0.0, 1.0])
def test_fewer_hypotheses_are_the_first_of_more_hypotheses(length_penalty):
    for seed in range(4):
        all_ids, all_scores = run_beam(table(seed), 4, length_penalty=length_penalty)
        for count in (1, 2):
            ids, scores = run_beam(table(seed), 4, length_penalty=length_penalty, num_hypotheses=count)
            np.testing.assert_array_equal(ids, all_ids[:, :count])
            np.testing.assert_allclose(scores, all_scores[:, :count], atol=1e-5)


@pytest.mark.parametrize("num_beams", [1, 3])
def test_the_operations_for_xla_give_the_same_result(num_beams):
    logits = table(11)
    for kwargs in ({}, {"min_length": 2}):
        expected = run_beam(logits, num_beams, **kwargs)
        for x, y in zip(run_beam(logits, num_beams, jit_compile=True, **kwargs), expected, strict=True):
            np.testing.assert_allclose(x, y, atol=1e-5)
        if num_beams == 1:
            np.testing.assert_array_equal(run_greedy(logits, jit_compile=True, **kwargs)[0], expected[0])


STAGES = {
    "longer": [Stage(1), Stage(2), Stage(L)],
    "fewer": [Stage(L), Stage(L, 2)],
    "longer and fewer": [Stage(2), Stage(L), Stage(L, 2), Stage(L, 3)],
}


@pytest.mark.parametrize("stages", STAGES.values(), ids=STAGES)
def test_a_search_in_stages_gives_the_same_result(stages):
    """The sentences end at different times, at their end tokens and at their limits."""
    prefix = ops.convert_to_tensor(np.array([[0, 0], [1, 0], [4, 1]], "int32"))
    uniforms = np.random.default_rng(0).random((B, L)).astype("float32")
    lengths = set()
    for seed, limits in ((1, [4, 1, 3]), (2, [4, 4, 4]), (5, [2, 4, 3])):
        kwargs = {"limits": ops.convert_to_tensor(np.array(limits, "int32")), "prefix": prefix}
        for search, *given in ((run_greedy,), (run_beam, 3), (run_sample, uniforms)):
            expected = search(table(seed), *given, **kwargs)
            for x, y in zip(search(table(seed), *given, stages=stages, **kwargs), expected, strict=True):
                np.testing.assert_allclose(x, y, atol=1e-5)
            lengths.add(tuple(np.count_nonzero(expected[0].reshape(B, -1)[:, :L], axis=1).tolist()))
    assert len(lengths) >= 4


@pytest.mark.parametrize("num_beams", [2, 3, 4])
def test_a_narrow_beam_search_stops_early_only_if_the_result_cannot_change(num_beams):
    """A search that never stops early gives the same best hypothesis."""
    for seed in range(6):
        logits = table(seed)
        token_ids, scores = run_beam(logits, num_beams, length_penalty=1.0)
        for sentence in range(B):
            best = reference_beam(logits, sentence, num_beams, 1.0)
            np.testing.assert_allclose(scores[sentence, 0], best[0], atol=1e-4)
            assert tuple(token_ids[sentence, 0][: len(best[1])]) == best[1]


def reference_beam(logits, sentence, num_beams, length_penalty):
    """Beam search in plain Python, always L steps. An end token counts only among the best K candidates of a step."""
    log_probs = logits[sentence] - np.log(np.exp(logits[sentence]).sum(-1, keepdims=True))
    live, ended = [(0.0, ())], []
    for length in range(1, L + 1):
        candidates = []
        for total, tokens in live:
            context = (0, START, *tokens)
            candidates += [(total + log_probs[context[-2], context[-1], t], (*tokens, t)) for t in range(V)]
        candidates = sorted(candidates, reverse=True)[: 2 * num_beams]
        divisor = ((5 + length) / 6) ** length_penalty
        ended += [(s / divisor, tokens) for s, tokens in candidates[:num_beams] if tokens[-1] == END]
        live = [c for c in candidates if c[1][-1] != END][:num_beams]
    ended += [(s / ((5 + L) / 6) ** length_penalty, tokens) for s, tokens in live]
    return max(ended)


@pytest.mark.parametrize("seed", range(4))
def test_one_beam_is_greedy(seed):
    greedy_ids, greedy_scores = run_greedy(table(seed))
    token_ids, scores = run_beam(table(seed), num_beams=1)
    np.testing.assert_array_equal(token_ids, greedy_ids)
    np.testing.assert_allclose(scores, greedy_scores, atol=1e-5)


def test_greedy_takes_the_most_probable_token_and_pads_after_the_end():
    logits = table(7)
    token_ids, scores = run_greedy(logits)
    for sentence in range(B):
        previous, token, total, expected = 0, START, 0.0, []
        while len(expected) < L and token != END:
            row = logits[sentence, previous, token]
            previous, token = token, int(row.argmax())
            total += row.max() - np.log(np.exp(row).sum())
            expected.append(token)
        assert list(token_ids[sentence, 0]) == expected + [0] * (L - len(expected))
        np.testing.assert_allclose(scores[sentence, 0], total, atol=1e-5)


def test_more_beams_than_hypotheses_marks_the_empty_places():
    """A model that always ends at once has one hypothesis; the other places have impossible scores."""
    logits = np.full((B, V, V, V), -1e9, "float32")
    logits[..., END] = 0.0
    token_ids, scores = run_beam(logits, num_beams=7)
    assert (token_ids[:, 0, 0] == END).all()
    np.testing.assert_allclose(scores[:, 0], 0.0)
    assert (scores[:, 1:] < NO_HYPOTHESIS).all()


def test_hypotheses_come_best_first():
    _, scores = run_beam(table(3), num_beams=4, length_penalty=0.6)
    assert (np.diff(scores, axis=1) <= 0).all()


def test_an_empty_batch_has_no_hypotheses():
    def step(token_ids, cache, index, ancestors):
        return ops.zeros((0, V)), cache

    decoder = SimpleNamespace(step=step, cache=ops.zeros((0, 1)))
    hypotheses = beam_search(decoder, 0, L, SearchSettings(num_beams=2))
    assert tuple(hypotheses.token_ids.shape) == (0, 2, L)


def test_length_penalty_divisor_counts_as_in_the_paper():
    assert length_penalty_divisor(1.0, 0.6) == 1.0
    np.testing.assert_allclose(length_penalty_divisor(10.0, 0.6), 2.5**0.6)


# Limits, prefixes and rules, against enumeration.


def until_end(token_ids):
    tokens = [int(token) for token in token_ids]
    return tokens[: tokens.index(END) + 1] if END in tokens else tokens


def obeys(tokens, min_length=0, no_repeat_ngram_size=0, special_ids=SpecialIds()):
    """Whether the rules allow a hypothesis."""
    n = no_repeat_ngram_size
    ngrams = [tokens[i : i + n] for i in range(len(tokens) - n + 1) if END not in tokens[i : i + n]] if n else []
    if (len(tokens) < min_length and tokens[-1] == END) or set(tokens) & set(special_ids.forbidden):
        return False
    return len(set(ngrams)) == len(ngrams)


def assert_finds(hypotheses, expected):
    """Compares the hypotheses of one sentence with (score, tokens) pairs, best first."""
    token_ids, scores = hypotheses
    np.testing.assert_allclose(scores[: len(expected)], [score for score, _ in expected], atol=1e-4)
    assert (scores[len(expected) :] < NO_HYPOTHESIS).all()
    for (_, tokens), row in zip(expected[:20], token_ids, strict=False):
        assert tuple(row) == tokens + (0,) * (L - len(tokens))


@pytest.mark.parametrize("length_penalty", [0.0, 1.0])
def test_each_sentence_has_its_own_limit(length_penalty):
    logits, limits = table(2), np.array([1, 3, 4], "int32")
    hypotheses = run_beam(logits, num_beams=MOST_BEAMS, length_penalty=length_penalty, limits=limits)
    for sentence, limit in enumerate(limits):
        expected = all_hypotheses(logits, sentence, length_penalty, limit)
        assert_finds([x[sentence] for x in hypotheses], expected[:MOST_BEAMS])
    greedy_ids, _ = run_greedy(logits, limits=limits)
    unlimited, _ = run_greedy(logits)
    for sentence, limit in enumerate(limits):
        assert list(greedy_ids[sentence, 0]) == list(unlimited[sentence, 0][:limit]) + [0] * (L - limit)


def forbidding(*token_ids):
    return SpecialIds(START, END, 0, token_ids)


RULES = [
    {"min_length": 3},
    {"min_length": L},
    {"no_repeat_ngram_size": 1},
    {"no_repeat_ngram_size": 2},
    {"no_repeat_ngram_size": 3},
    {"min_length": 2, "no_repeat_ngram_size": 2},
    {"special_ids": forbidding(0, START)},
    {"special_ids": forbidding(0, 1, START), "min_length": 2},
]


@pytest.mark.parametrize("rules", RULES, ids=str)
@pytest.mark.parametrize("seed", [0, 1])
def test_a_search_with_rules_equals_enumeration_with_the_models_own_scores(rules, seed):
    logits = table(seed)
    hypotheses = run_beam(logits, num_beams=MOST_BEAMS, length_penalty=0.6, **rules)
    for sentence in range(B):
        expected = [pair for pair in all_hypotheses(logits, sentence, 0.6) if obeys(pair[1], **rules)]
        assert_finds([x[sentence] for x in hypotheses], expected[:MOST_BEAMS])


STAGES = [Stage(2), Stage(L), Stage(L, divisor=B)]


@pytest.mark.parametrize("stages", [None, STAGES], ids=["one", "three"])
@pytest.mark.parametrize("seed", [1, 2])  # Seed 0 has two hypotheses with the same score.
def test_required_placeholders_are_written_once_as_in_an_enumeration(seed, stages):
    """Token 4 is a placeholder, which the first and the last sentence must have."""
    logits, required = table(seed), np.array([[True], [False], [True]])
    special_ids = SpecialIds(START, END, 0, num_placeholders=1)
    rules = {"special_ids": special_ids, "required": required, "stages": stages}
    hypotheses = run_beam(logits, num_beams=MOST_BEAMS, length_penalty=0.6, **rules)

    def obeys(tokens, must):
        if tokens.count(4) > must:
            return False
        return tokens[-1] != END or tokens.count(4) == must  # What reaches the limit may lack it.

    for sentence in range(B):
        every = all_hypotheses(logits, sentence, 0.6)
        expected = [pair for pair in every if obeys(pair[1], int(required[sentence, 0]))]
        assert_finds([x[sentence] for x in hypotheses], expected[:MOST_BEAMS])
    greedy_ids, greedy_scores = run_greedy(logits, **rules)
    token_ids, scores = run_beam(logits, num_beams=1, **rules)
    np.testing.assert_array_equal(token_ids, greedy_ids)
    np.testing.assert_allclose(scores, greedy_scores, atol=1e-5)
    decoder = TableDecoder(logits, 1)
    uniforms = np.random.default_rng(seed).random((B, L), "float32")
    drawn, _ = sample(decoder, uniforms, L, SearchSettings(), special_ids=special_ids, required=required)
    for sentence, row in enumerate(ops.convert_to_numpy(drawn)[:, 0].tolist()):
        assert obeys(until_end(row), int(required[sentence, 0]))


@pytest.mark.parametrize("rules", [*RULES, {"repetition_penalty": 1.7}], ids=str)
@pytest.mark.parametrize("seed", range(3))
def test_one_beam_is_greedy_under_rules_too(rules, seed):
    greedy_ids, greedy_scores = run_greedy(table(seed), **rules)
    token_ids, scores = run_beam(table(seed), num_beams=1, **rules)
    np.testing.assert_array_equal(token_ids, greedy_ids)
    np.testing.assert_allclose(scores, greedy_scores, atol=1e-5)


@pytest.mark.parametrize("num_beams", [1, 3])
def test_a_repetition_penalty_changes_the_choice_but_not_the_scores(num_beams):
    """Greedy search by hand: penalised log probabilities choose the token, the model's own ones give the score."""
    logits, penalty = table(4), 3.0
    token_ids, scores = run_beam(logits, num_beams, repetition_penalty=penalty)
    changed = 0
    for sentence in range(B):
        tokens = until_end(token_ids[sentence, 0])
        total, context = 0.0, (0, START, *tokens)
        log_probs = log_softmax(logits[sentence])
        for i, token in enumerate(tokens):
            row = log_probs[context[i], context[i + 1]]
            total += row[token]
            if num_beams == 1:
                penalised = [x * penalty if t in tokens[:i] else x for t, x in enumerate(row)]
                assert token == int(np.argmax(penalised))
                changed += token != int(np.argmax(row))
        np.testing.assert_allclose(scores[sentence, 0], total, atol=1e-4)
    assert changed or num_beams > 1


@pytest.mark.parametrize("length_penalty", [0.0, 1.0])
def test_a_prefix_is_kept_and_its_log_probability_counted(length_penalty):
    logits, prefix = table(5), np.array([[4, 1], [1, 0], [0, 0]], "int32")
    hypotheses = run_beam(logits, num_beams=MOST_BEAMS, length_penalty=length_penalty, prefix=prefix)
    greedy_ids, _ = run_greedy(logits, prefix=prefix)
    for sentence, row in enumerate(prefix):
        begin = tuple(int(token) for token in row if token)
        expected = [x for x in all_hypotheses(logits, sentence, length_penalty) if x[1][: len(begin)] == begin]
        assert_finds([x[sentence] for x in hypotheses], expected[:MOST_BEAMS])
        assert tuple(greedy_ids[sentence, 0][: len(begin)]) == begin


def test_a_prefix_may_contain_forbidden_tokens():
    logits, prefix = table(5), np.array([[2, 1], [1, 0], [0, 0]], "int32")
    special_ids = forbidding(0, 1, START)
    hypotheses = run_beam(logits, num_beams=MOST_BEAMS, special_ids=special_ids, prefix=prefix)
    greedy_ids, _ = run_greedy(logits, special_ids=special_ids, prefix=prefix)
    for sentence, row in enumerate(prefix):
        begin = tuple(int(token) for token in row if token)
        expected = [
            x for x in all_hypotheses(logits, sentence, 0.0)
            if x[1][: len(begin)] == begin and not {0, 1, START} & set(x[1][len(begin) :])
        ]  # fmt: skip
        assert_finds([x[sentence] for x in hypotheses], expected[:MOST_BEAMS])
        assert tuple(greedy_ids[sentence, 0][: len(begin)]) == begin


# Sampling


def run_sample(logits, uniforms, **kwargs):
    settings, kwargs = split(kwargs)
    decoder = TableDecoder(logits, 1, kwargs.get("stages"))
    token_ids, scores = sample(decoder, ops.convert_to_tensor(uniforms), L, settings, **kwargs)
    return ops.convert_to_numpy(token_ids)[:, 0], ops.convert_to_numpy(scores)[:, 0]


def nucleus(log_probs, sampling):
    """The probabilities that tokens are drawn by, from their definition, in plain NumPy."""
    scaled = log_probs.astype("float64") / sampling.temperature
    probs = np.exp(scaled) / np.exp(scaled).sum()
    order = np.argsort(-probs)
    keep = order[: sampling.top_k or V]
    probs = np.where(np.isin(np.arange(V), keep), probs, 0)
    probs /= probs.sum()
    mass, kept = 0.0, []
    for token in keep:
        kept.append(token)
        mass += probs[token]
        if mass >= sampling.top_p:
            break
    probs = np.where(np.isin(np.arange(V), kept), probs, 0)
    return probs / probs.sum()


@pytest.mark.parametrize(
    "sampling",
    [
        SearchSettings(),
        SearchSettings(temperature=0.4),
        SearchSettings(top_k=2),
        SearchSettings(top_p=0.7),
        SearchSettings(temperature=2.5, top_k=4, top_p=0.8),
    ],
    ids=str,
)
def test_every_token_is_drawn_as_often_as_its_probability(sampling):
    """Evenly spaced uniforms in [0, 1) draw each first token in proportion to its probability."""
    logits, count = table(6), 2000
    drawn = np.zeros((B, V))
    for i in range(count // 100):
        big = np.repeat(logits, 100, axis=0)  # 100 rows of every sentence in one batch
        flat = ops.reshape(ops.convert_to_tensor(big), (-1, V))

        def step(token_ids, cache, index, ancestors, flat=flat):
            return ops.take(flat, cache * V * V + token_ids, axis=0), cache  # The first token's row: (0, START).

        uniforms = np.tile((i * 100 + np.arange(100) + 0.5) / count, B).astype("float32")[:, None]
        rows = ops.convert_to_tensor(np.arange(B * 100, dtype="int32"))
        decoder = SimpleNamespace(step=step, cache=rows)
        hypotheses = sample(decoder, ops.convert_to_tensor(uniforms), 1, sampling)
        tokens = ops.convert_to_numpy(hypotheses.token_ids).reshape(B, 100)
        for sentence in range(B):
            drawn[sentence] += np.bincount(tokens[sentence], minlength=V)
    for sentence in range(B):
        expected = nucleus(log_softmax(logits[sentence, 0, START]), sampling)
        np.testing.assert_allclose(drawn[sentence] / count, expected, atol=2e-3)


def test_scores_of_samples_are_the_models_own_log_probabilities():
    logits, uniforms = table(8), np.random.default_rng(0).random((B, L), "float32")
    token_ids, scores = run_sample(logits, uniforms, temperature=2.0, top_k=3)
    for sentence in range(B):
        tokens = until_end(token_ids[sentence])
        log_probs, context = log_softmax(logits[sentence]), (0, START, *tokens)
        total = sum(log_probs[context[i], context[i + 1], token] for i, token in enumerate(tokens))
        np.testing.assert_allclose(scores[sentence], total, atol=1e-4)


def test_a_sample_at_a_low_temperature_is_greedy():
    greedy_ids, _ = run_greedy(table(9))
    token_ids, _ = run_sample(table(9), np.full((B, L), 0.99, "float32"), temperature=1e-3)
    np.testing.assert_array_equal(token_ids, greedy_ids[:, 0])


def test_each_row_draws_among_its_own_tokens():
    """`top_p` leaves one token in the first row, and 39 of 41 equal ones in the second. The draw takes the last."""
    logits = np.zeros((2, 41), "float32")
    logits[0, 5] = 20.0
    logits = ops.convert_to_tensor(logits)
    decoder = SimpleNamespace(step=lambda token_ids, cache, *rest: (logits, cache), cache=ops.zeros((2,)))
    uniforms = ops.convert_to_tensor(np.full((2, 1), np.nextafter(1, 0, dtype="float32")))
    settings, special_ids = SearchSettings(top_p=0.95), SpecialIds(forbidden=())
    found = sample(decoder, uniforms, 1, settings, special_ids=special_ids)
    assert ops.convert_to_numpy(found.token_ids)[:, 0, 0].tolist() == [5, 38]


@pytest.mark.parametrize("size", [97, 64 * 64, 5003])
@pytest.mark.parametrize("k", [1, 8])
@pytest.mark.parametrize("jit_compile", [False, True])
def test_top_k_of_a_large_vocabulary_is_exact(size, k, jit_compile):
    """The best hypotheses of one token each are the tokens with the largest logits."""
    x = np.random.default_rng(size).permutation(3 * size).reshape(3, size).astype("float32") * 7 / size - 50
    logits = ops.convert_to_tensor(np.repeat(x, k, axis=0))
    decoder = SimpleNamespace(step=lambda token_ids, cache, *rest: (logits, cache), cache=ops.zeros((3 * k,)))
    settings, special_ids = SearchSettings(num_beams=k, length_penalty=0.0), SpecialIds(forbidden=())
    options = {"special_ids": special_ids, "jit_compile": jit_compile}
    found = beam_search(decoder, 3, 1, settings, k, **options)
    expected = np.argsort(-x, axis=1)[:, :k]
    np.testing.assert_array_equal(ops.convert_to_numpy(found.token_ids)[:, :, 0], expected)
    log_probs = np.take_along_axis(log_softmax(x.astype("float64")), expected, axis=1)
    np.testing.assert_allclose(ops.convert_to_numpy(found.scores), log_probs, atol=1e-4)
