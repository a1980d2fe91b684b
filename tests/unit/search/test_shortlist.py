"""The shortlist: what it chooses, and that a search with it is a search among the chosen tokens."""

import numpy as np
import pytest
from keras import ops

from keras_transformer.models.transformer import Transformer
from keras_transformer.search.search import Vocabulary, search
from keras_transformer.search.settings import SearchSettings
from keras_transformer.search.shortlist import NUM_ALIGNED, Shortlist

V, F = 40, 6
SOURCE = np.array([[7, 9, 8, 3], [9, 3, 0, 0]], "int32")


@pytest.fixture(scope="module")
def table():
    """Token 7 aligns with 30, 31 and 32, in this order; 8 with 31; 9 with 33 and 5."""
    pairs = [([7, 8, 3], [30, 31, 3], [0, 1, 2])] * 3 + [([7, 9, 3], [31, 33, 3], [0, 1, 2])] * 2
    return Shortlist.learn([*pairs, ([7, 9, 3], [32, 5, 3], [0, 1, 2])], V, V)


def chosen(table, source, size):
    return ops.convert_to_numpy(table.choose(source, size, F, V)).tolist()


def test_alignments_are_counted(table):
    assert table.aligned[7].tolist() == [30, 31, 32] + [0] * (NUM_ALIGNED - 3)
    assert table.aligned[8, :2].tolist() == [31, 0] and table.aligned[9, :3].tolist() == [33, 5, 0]
    assert table.frequent.tolist() == [31, 30, 33, 5, 32]


def test_a_shortlist_has_the_first_the_frequent_and_the_aligned_tokens(table):
    table = Shortlist(table.aligned, np.array([20]))
    rows = chosen(table, SOURCE, F + 5)
    assert rows[0][:F] == rows[1][:F] == list(range(F))
    # 31 is second for 7 and first for 8; 30 and 33 are first for one token; 20 is frequent.
    assert rows[0][F:] == [31, 30, 33, 32, 20]
    assert rows[1][F : F + 2] == [33, 20]
    assert chosen(table, SOURCE[1:, :2], F + 5)[0] == rows[1]  # Neither padding nor other sentences matter.
    assert sorted(chosen(table, SOURCE, V)[0]) == list(range(V))


@pytest.mark.parametrize(
    "options", [{}, {"tie_embeddings": "none", "output_bias": True, "normalize_first": True}], ids=["tied", "bias"]
)
@pytest.mark.parametrize("num_beams", [1, 3])
def test_a_search_is_one_among_the_chosen_tokens(table, options, num_beams):
    model = Transformer(V, num_layers=1, num_heads=2, hidden_dim=8, intermediate_dim=12, **options)
    rng = np.random.default_rng(0)
    model.set_weights([w + 0.5 * rng.normal(size=w.shape).astype("float32") for w in model.get_weights()])
    limits, size = np.array([7, 6], "int32"), F + 8
    arguments = {"vocabulary": Vocabulary(num_placeholders=2, shortlist=table), "cache": "fixed"}

    def found(size):
        settings = SearchSettings(num_beams=num_beams, length_penalty=0.0, shortlist=size)
        result = search(model, SOURCE, limits, 7, settings, **arguments)
        return [ops.convert_to_numpy(one) for one in result]

    whole, all_of_it = found(0), found(V)
    np.testing.assert_array_equal(whole[0], all_of_it[0])
    np.testing.assert_allclose(whole[1], all_of_it[1], atol=1e-4)
    token_ids, scores = found(size)
    lists = chosen(table, SOURCE, size)
    for row, mine in zip(token_ids[:, 0].tolist(), lists, strict=True):
        assert set(row) <= set(mine)
    # The probabilities are those among the chosen tokens.
    inputs = np.concatenate([np.full((2, 1), 2, "int32"), token_ids[:, 0, :-1]], axis=1)
    logits = ops.convert_to_numpy(model({"encoder_token_ids": SOURCE, "decoder_token_ids": inputs}))
    for b in range(2):
        log_probs = ops.convert_to_numpy(ops.log_softmax(logits[b][:, lists[b]]))
        places = [lists[b].index(token) for token in token_ids[b, 0]]
        total = sum(log_probs[t, place] for t, place in enumerate(places) if token_ids[b, 0, t])
        assert total == pytest.approx(scores[b, 0], abs=1e-4)
