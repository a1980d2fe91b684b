"""The searches against brute force, over step functions made of a table."""

import itertools

import numpy as np
import pytest
from keras import ops

from keras_transformer import decoding

V, L, B = 5, 4, 3  # Tokens: 0 padding, 1 an ordinary token, 2 start, 3 end, 4 an ordinary token.
START, END = 2, 3


def table(seed):
    """Logits of the next token given sentence and the last two tokens: (B, V, V, V)."""
    return np.random.default_rng(seed).normal(size=(B, V, V, V)).astype("float32") * 2


def make_step(logits, num_beams):
    """A step function over the table; its cache holds the row's sentence and the token before the newest."""
    flat = ops.reshape(ops.convert_to_tensor(logits), (-1, V))

    def step(token_ids, cache, index):
        sentence, previous = cache["sentence"], cache["previous"]
        rows = (sentence * V + previous) * V + token_ids
        return ops.take(flat, rows, axis=0), {"sentence": sentence, "previous": token_ids}

    sentences = np.repeat(np.arange(B, dtype="int32"), num_beams)
    cache = {"sentence": sentences, "previous": np.zeros_like(sentences)}
    return step, {key: ops.convert_to_tensor(value) for key, value in cache.items()}


def all_hypotheses(logits, sentence, length_penalty):
    """Every sequence that ends, or reaches L tokens, with its score; best first."""
    log_probs = logits - np.log(np.exp(logits).sum(-1, keepdims=True))
    found = []
    for length in range(1, L + 1):
        for tokens in itertools.product(range(V), repeat=length):
            if END in tokens[:-1] or (tokens[-1] != END and length < L):
                continue
            context = (0, START, *tokens)
            total = sum(log_probs[sentence, context[i], context[i + 1], token] for i, token in enumerate(tokens))
            found.append((total / ((5 + length) / 6) ** length_penalty, tokens))
    return sorted(found, reverse=True)


def run_beam(logits, num_beams, **kwargs):
    step, cache = make_step(logits, num_beams)
    found = decoding.beam_search(step, cache, B, L, num_beams, V, start_token_id=START, end_token_id=END, **kwargs)
    return ops.convert_to_numpy(found.token_ids), ops.convert_to_numpy(found.scores)


def run_greedy(logits):
    step, cache = make_step(logits, 1)
    found = decoding.greedy(step, cache, B, L, start_token_id=START, end_token_id=END)
    return ops.convert_to_numpy(found.token_ids), ops.convert_to_numpy(found.scores)


@pytest.mark.parametrize("length_penalty", [0.0, 0.6, 1.5, -0.5])
@pytest.mark.parametrize("seed", [0, 1])
def test_a_beam_wide_enough_finds_what_enumeration_finds(length_penalty, seed):
    logits = table(seed)
    token_ids, scores = run_beam(logits, num_beams=400, length_penalty=length_penalty)
    for sentence in range(B):
        expected = all_hypotheses(logits, sentence, length_penalty)
        np.testing.assert_allclose(scores[sentence, : len(expected)], [s for s, _ in expected][:400], atol=1e-4)
        for (_, tokens), row in zip(expected[:20], token_ids[sentence], strict=False):
            assert tuple(row[: len(tokens)]) == tokens
            assert not row[len(tokens) :].any()


@pytest.mark.parametrize("num_beams", [2, 3, 4])
def test_a_narrow_beam_stops_early_only_when_the_answer_cannot_change(num_beams):
    """The same search with an end condition that never holds gives the same best hypothesis."""
    for seed in range(6):
        logits = table(seed)
        token_ids, scores = run_beam(logits, num_beams, length_penalty=1.0)
        for sentence in range(B):
            best = reference_beam(logits, sentence, num_beams, 1.0)
            np.testing.assert_allclose(scores[sentence, 0], best[0], atol=1e-4)
            assert tuple(token_ids[sentence, 0][: len(best[1])]) == best[1]


def reference_beam(logits, sentence, num_beams, length_penalty):
    """Beam search in plain Python, all L steps; an end counts when it is among the best K of the step."""
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
    """A model that always ends at once has one hypothesis; the other places score as impossible."""
    logits = np.full((B, V, V, V), -1e9, "float32")
    logits[..., END] = 0.0
    token_ids, scores = run_beam(logits, num_beams=7)
    assert (token_ids[:, 0, 0] == END).all()
    np.testing.assert_allclose(scores[:, 0], 0.0)
    assert (scores[:, 1:] <= decoding.IMPOSSIBLE).all()


def test_hypotheses_come_best_first():
    _, scores = run_beam(table(3), num_beams=4, length_penalty=0.6)
    assert (np.diff(scores, axis=1) <= 0).all()


def test_an_empty_batch_has_no_hypotheses():
    step, cache = make_step(table(0), 2)
    cache = {key: value[:0] for key, value in cache.items()}
    found = decoding.beam_search(step, cache, 0, L, 2, V, start_token_id=START, end_token_id=END)
    assert tuple(found.token_ids.shape) == (0, 2, L)


def test_length_penalty_divisor_counts_as_in_the_paper():
    assert decoding.length_penalty_divisor(1.0, 0.6) == 1.0
    np.testing.assert_allclose(decoding.length_penalty_divisor(10.0, 0.6), 2.5**0.6)
