"""The search of a batch: what may be in its translations, and how it is asked for; limits as tensors."""

import itertools
from types import SimpleNamespace

import keras
import numpy as np
import pytest
from keras import ops

from keras_transformer.models.transformer import Transformer
from keras_transformer.search.search import Vocabulary, placeholders_of, search
from keras_transformer.search.settings import SearchSettings
from keras_transformer.settings import ConfigError
from keras_transformer.text.special_ids import START_TOKEN_ID


@pytest.mark.parametrize(
    "settings", [{}, {"max_length_ratio": 1.7}, {"max_length_ratio": 0}, {"max_target_length": 20}]
)
def test_limits_of_tensors_are_those_of_arrays(settings):
    settings, lengths = SearchSettings(**settings), np.array([1, 3, 128], "int32")
    limits = settings.limits(ops.convert_to_tensor(lengths))
    assert keras.backend.standardize_dtype(limits.dtype) == "int32"
    assert ops.convert_to_numpy(limits).tolist() == settings.limits(lengths).tolist()


@pytest.mark.skipif(keras.backend.backend() != "tensorflow", reason="reads what TensorFlow hands to XLA")
@pytest.mark.parametrize("rows", [1, 2])
def test_xla_writes_one_position_of_a_cache_and_copies_none(rows):
    """A step is slow if XLA copies the caches. That depends on the shapes: one sentence was copied, two were not."""
    import tensorflow as tf

    model = Transformer(19, num_layers=1, num_heads=2, hidden_dim=22, intermediate_dim=13)
    length = 17

    def translate(token_ids, limits):
        return search(model, token_ids, limits, length, SearchSettings(num_beams=1), jit_compile=True)

    inputs = tf.fill((rows, 7), 5), tf.fill((rows,), length)
    compiled = tf.function(translate, jit_compile=True, autograph=False)
    hlo = compiled.experimental_get_compiler_ir(*inputs)(stage="optimized_hlo")
    loops = [text for text in hlo.split("\n}") if "dynamic-update-slice" in text and "ENTRY" not in text]
    assert loops
    for shape in (f"f32[{rows * 2},11,{length}]", f"f32[{rows * 2},{length},11]"):
        assert any(shape in text for text in loops)
        assert not [line for text in loops for line in text.splitlines() if shape in line and " copy(" in line]


# The search of a batch, over a model that is a table.

V, S, L = 13, 5, 7
SOURCE = np.array([[11, 7, 8, 5, 3], [12, 8, 3, 0, 0]], "int32")
LIMITS = np.array([7, 5], "int32")


class Table:
    """A model that knows how probable a token is after another one, and notes how it is asked to decode."""

    def __init__(self):
        self.logits = np.random.default_rng(0).normal(size=(V, V)).astype("float32")
        self.asked = []

    def start_decoding(self, encoder_token_ids, max_length, num_beams, cache):
        self.asked.append((max_length, num_beams, cache))

        def step(token_ids, cache, index, ancestors):
            return ops.take(ops.convert_to_tensor(self.logits), token_ids, axis=0), cache

        rows = ops.zeros((len(encoder_token_ids) * num_beams,))
        return SimpleNamespace(cache={"rows": rows}, step=step, lengthen=lambda cache, max_length: cache)


def found_by(model, settings=None, **arguments):
    """Token ids (B, K, L) and scores (B, K). Arguments may be those of a `Vocabulary`, too."""
    vocabulary = Vocabulary(**{name: arguments.pop(name) for name in Vocabulary._fields if name in arguments})
    found = search(model, SOURCE, LIMITS, L, SearchSettings(**settings or {}), vocabulary=vocabulary, **arguments)
    return [ops.convert_to_numpy(array) for array in found]


@pytest.mark.parametrize("num_beams", [1, 3])
def test_a_translation_begins_with_the_tag_of_its_source_and_then_with_its_prefix(num_beams):
    settings, tags = {"num_beams": num_beams}, (11, 12)
    token_ids, _ = found_by(Table(), settings, tags=tags, begins_with_tag=True)
    assert token_ids[:, 0, 0].tolist() == [11, 12] and not {11, 12} & set(token_ids[:, :, 1:].ravel().tolist())
    prefix = np.array([[9, 10], [8, 0]], "int32")
    token_ids, _ = found_by(Table(), settings, tags=tags, begins_with_tag=True, prefix=prefix)
    assert token_ids[0, 0, :3].tolist() == [11, 9, 10] and token_ids[1, 0, :2].tolist() == [12, 8]
    token_ids, _ = found_by(Table(), settings, tags=tags, prefix=prefix)
    assert token_ids[0, 0, :2].tolist() == [9, 10] and token_ids[1, 0, 0] == 8


@pytest.mark.parametrize("settings", [{"num_beams": 1}, {"num_beams": 3}, {"sampling": True}], ids=str)
def test_a_translation_has_no_forbidden_tokens_tags_or_placeholders(settings):
    model = Table()
    model.logits[:, [0, 1, 2, 4, 5, 11, 12]] += 9  # Padding, unknown, start, two placeholders and two tags.
    uniforms = np.random.default_rng(0).uniform(size=(2, L)).astype("float32")
    token_ids, _ = found_by(model, settings, num_placeholders=2, tags=(11, 12), uniforms=uniforms)
    assert set(token_ids.ravel().tolist()) <= {0, 3, 6, 7, 8, 9, 10}
    assert np.isin(token_ids[:, :, 0], [3, 6, 7, 8, 9, 10]).all()


def test_a_translation_has_the_placeholders_that_are_required():
    model, required = Table(), np.array([[True, False], [True, True]])
    model.logits[:, 3:6] += 9  # It would end at once, or write placeholders alone.
    token_ids, _ = found_by(model, {"num_beams": 3}, num_placeholders=2, required=required)
    assert [[row.count(4), row.count(5)] for row in token_ids[:, 0].tolist()] == [[1, 0], [1, 1]]


@pytest.mark.parametrize("settings", [{"num_beams": 1}, {"num_beams": 3}, {"sampling": True}], ids=str)
@pytest.mark.parametrize("kind", ["gnmt", "power"])
def test_scores_are_log_probabilities_over_a_power_of_the_length(settings, kind):
    model, uniforms = Table(), np.random.default_rng(1).uniform(size=(2, L)).astype("float32")
    settings = {**settings, "length_penalty": 0.7, "length_penalty_type": kind}
    token_ids, scores = found_by(model, settings, uniforms=uniforms)
    log_probs = model.logits - np.log(np.exp(model.logits).sum(-1, keepdims=True))
    for row, score, limit in zip(token_ids[:, 0].tolist(), scores[:, 0], LIMITS, strict=True):
        row = [token for token in row if token]
        assert len(row) == limit or row[-1] == 3
        total = sum(log_probs[pair] for pair in itertools.pairwise([START_TOKEN_ID, *row]))
        divisor = ((5 + len(row)) / 6 if kind == "gnmt" else len(row)) ** 0.7
        assert score == pytest.approx(total / divisor, abs=1e-5)


def test_sampling_needs_random_numbers_and_has_one_beam():
    model = Table()
    with pytest.raises(ValueError, match=r"Sampling needs `uniforms`, numbers in \[0, 1\).*Received: None"):
        found_by(model, {"sampling": True})
    found_by(model, {"sampling": True}, uniforms=np.zeros((2, L), "float32"))
    found_by(model, {"num_beams": 3})
    assert [num_beams for _, num_beams, _ in model.asked] == [1, 3]


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ({"cache": "growing"}, (S, "growing")),  # The first stage is as long as the source.
        ({"cache": "fixed"}, (L, "fixed")),  # On devices, each stage would be a copy of the loop.
        ({"jit_compile": True}, (S, "fixed")),
        ({}, (L, "fixed") if keras.backend.backend() == "jax" else (S, "growing")),
    ],
    ids=str,
)
def test_the_cache_and_the_length_of_the_first_stage(arguments, expected):
    model, results = Table(), []
    for settings in ({"num_beams": 1}, {"num_beams": 3}):
        results.append(found_by(model, settings, **arguments)[0][:, 0])
        assert model.asked.pop() == (expected[0], settings["num_beams"], expected[1])
    np.testing.assert_array_equal(results[0], found_by(Table(), {"num_beams": 1}, cache="fixed")[0][:, 0])


def test_a_shortlist_has_room_for_all_special_tokens_and_two_candidates_of_each_beam():
    class AskedError(Exception):
        """The arguments of `choose`."""

    def choose(*arguments):
        raise AskedError(*arguments[1:])

    def sizes(shortlist, target_vocabulary_size=97, num_beams=3, **arguments):
        model = Table()
        decoder = SimpleNamespace(
            hidden_step=None, model=SimpleNamespace(target_vocabulary_size=target_vocabulary_size)
        )
        model.start_decoding = lambda *rest: decoder
        with pytest.raises(AskedError) as asked:
            settings = {"num_beams": num_beams, "shortlist": shortlist}
            found_by(model, settings, shortlist=SimpleNamespace(choose=choose), **arguments)
        return asked.value.args

    assert sizes(1) == (4 + 6, 4, 97)  # Padding, unknown, start and end are the first.
    assert sizes(1, num_placeholders=2) == (6 + 6, 6, 97)
    assert sizes(1, num_placeholders=2, tags=(6, 8), num_beams=1) == (9 + 2, 9, 97)
    assert sizes(20) == (20, 4, 97)
    assert sizes(20, target_vocabulary_size=17) == (17, 4, 17)


def test_a_shortlist_needs_a_table_and_one_model():
    with pytest.raises(ValueError, match=r"needs a `shortlist`\. Received: 5 and None"):
        found_by(Table(), {"shortlist": 5})
    with pytest.raises(ValueError, match=r"An ensemble has no shortlist\. Received: settings with shortlist=5"):
        found_by(Table(), {"shortlist": 5}, shortlist=object())
    with pytest.raises(ValueError, match="An ensemble has no shortlist"):
        found_by(Table(), {"shortlist": 5}, shortlist=object(), prefix=np.array([[7], [7]]))


def test_a_search_checks_the_number_of_hypotheses():
    with pytest.raises(ConfigError, match="`num_hypotheses` must be between 1 and `num_beams`"):
        found_by(Table(), {"num_beams": 2}, num_hypotheses=3)
    assert found_by(Table(), {"num_beams": 3}, num_hypotheses=2)[0].shape == (2, 2, L)


def test_placeholders_of_arrays_and_of_tensors():
    token_ids = np.array([[4, 9, 3], [6, 5, 6]], "int32")
    expected = [[True, False, False], [False, True, True]]
    found = placeholders_of(token_ids, 3)
    assert isinstance(found, np.ndarray) and found.tolist() == expected
    assert ops.convert_to_numpy(placeholders_of(ops.convert_to_tensor(token_ids), 3)).tolist() == expected
