"""The settings of a search: checks and limits."""

import dataclasses
import re

import numpy as np
import pytest

from keras_transformer.search.search import has_loop
from keras_transformer.search.settings import SearchSettings
from keras_transformer.settings import ConfigError
from keras_transformer.text.special_ids import PAD_TOKEN_ID, START_TOKEN_ID, UNKNOWN_TOKEN_ID

WRONG = [
    ("shortlist", -1, "at least 0"),
    ("num_beams", 0, "at least 1"),
    ("num_beams", 257, "at most 256: each beam needs memory"),
    ("max_target_length", 0, "at least 1"),
    ("max_length_ratio", -1, "at least 0"),
    ("max_length_ratio", 1e30, "at most 100"),  # It would overflow the integers of the limits.
    ("min_length", -1, "at least 0"),
    ("no_repeat_ngram_size", -1, "at least 0"),
    ("no_repeat_ngram_size", 101, "at most 100"),  # A step has a few operations for each token of an n-gram.
    ("avoid_loops", 1, "bool"),
    ("repetition_penalty", 0.0, "positive"),
    ("temperature", 0.0, "at least 0.001; for the most probable token use num_beams=1"),
    ("temperature", 1e-320, "at least 0.001"),  # Log probabilities that are divided by it are infinite.
    ("top_p", 1.5, r"in \(0, 1\]"),
    ("top_p", 0, r"in \(0, 1\]"),
    ("top_k", -1, "at least 0"),
    ("sampling_seed", -1, r"between 0 and 2\^32 - 1"),
    ("length_penalty", float("nan"), "a finite number"),
    ("num_beams", 2.5, "int"),
    ("num_beams", True, "int"),
    ("num_beams", None, "int"),
    ("max_target_length", "7", "int or null"),
    ("max_length_ratio", None, "float"),
    ("length_penalty", "0.6", "float"),
    ("length_penalty_type", "log", r"one of \('gnmt', 'power'\)"),
    ("allow_unknown", 0, "bool"),
    ("sampling", 1, "bool"),
    ("sampling_seed", 0.5, "int"),
    ("top_p", "all", "float"),
]


@pytest.mark.parametrize(("name", "value", "rule"), WRONG)
def test_an_invalid_setting_is_an_error_in_every_way_to_set_it(name, value, rule):
    with pytest.raises(ConfigError, match=rf"`{name}` must be {rule}.* Received: {re.escape(repr(value))}\."):
        SearchSettings(**{name: value})
    with pytest.raises(ConfigError, match=rf"`{name}` must be {rule}.* Received: {re.escape(repr(value))}\."):
        SearchSettings().replace(**{name: value})


def test_every_setting_is_checked():
    assert {name for name, _, _ in WRONG} == set(vars(SearchSettings()))


def test_a_setting_that_does_not_exist_is_an_error():
    with pytest.raises(TypeError, match=r"No such setting of a search: beams\. There are: num_beams, length_penalty"):
        SearchSettings().replace(beams=3)


def test_settings_may_be_numpy_numbers():
    settings = SearchSettings(num_beams=np.int64(2), length_penalty=np.float32(0.5))
    assert (settings.num_beams, settings.length_penalty) == (2, 0.5)
    assert (type(settings.num_beams), type(settings.length_penalty)) == (int, float)


def test_settings_are_immutable_and_hashable():
    settings = SearchSettings()
    with pytest.raises(dataclasses.FrozenInstanceError, match="cannot assign to field 'num_beams'"):
        settings.num_beams = 3
    assert settings.replace() is settings
    assert {settings: 1}[SearchSettings(num_beams=4)] == 1


def test_the_docstring_is_made_of_the_fields():
    for f in dataclasses.fields(SearchSettings):
        assert f"\n        {f.name}: {f.metadata['help']}. Defaults to {f.default!r}.\n" in SearchSettings.__doc__


@pytest.mark.parametrize(("num_hypotheses", "num_beams"), [(0, 4), (5, 4), (2, 1)])
def test_a_search_gives_no_more_hypotheses_than_it_has_beams(num_hypotheses, num_beams):
    settings = SearchSettings(num_beams=num_beams)
    settings.check_num_hypotheses(num_beams)
    received = f"Received: num_hypotheses={num_hypotheses}, num_beams={num_beams}"
    with pytest.raises(ConfigError, match=rf"`num_hypotheses` must be between 1 and `num_beams`.*{received}\."):
        settings.check_num_hypotheses(num_hypotheses)


def test_any_number_of_hypotheses_can_be_drawn():
    settings = SearchSettings(num_beams=1, sampling=True)
    settings.check_num_hypotheses(9)
    with pytest.raises(ConfigError, match="`num_hypotheses` must be between 1"):
        settings.check_num_hypotheses(0)


def test_forbidden_tokens():
    assert SearchSettings().forbidden == [PAD_TOKEN_ID, START_TOKEN_ID, UNKNOWN_TOKEN_ID]
    assert SearchSettings(allow_unknown=True).forbidden == [PAD_TOKEN_ID, START_TOKEN_ID]


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        ({}, [18, 22, 272]),
        ({"max_length_ratio": 1.7}, [17, 21, 233]),
        ({"max_length_ratio": 0}, [16, 16, 16]),
        ({"max_target_length": 20}, [18, 20, 20]),
    ],
)
def test_limits_of_arrays(settings, expected):
    """Sources of 1, 3 and 128 tokens. The limit is ratio * length, rounded down, plus 16."""
    settings, lengths = SearchSettings(**settings), np.array([1, 3, 128])
    limits = settings.limits(lengths)
    assert (limits.dtype, limits.tolist()) == (np.int32, expected)


def test_within_lowers_max_length():
    settings = SearchSettings(max_target_length=20)
    assert settings.within(None) is settings
    assert [settings.within(length).max_target_length for length in (9, 30)] == [9, 20]
    assert SearchSettings().within(30).max_target_length == 30


@pytest.mark.parametrize(
    ("token_ids", "loops"),
    [
        ([], False),
        ([5] * 4, False),
        ([5] * 5, True),
        ([1, 2, 1, 2], False),
        ([9, 1, 2, 1, 2, 1, 2, 9], True),
        ([9, 1, 2, 1, 2, 8, 1, 2, 9], False),
        (list(range(12)) * 3, True),
        (list(range(13)) * 3, False),
        (tuple(range(100)), False),
        (tuple(range(100))[::-1], False),
    ],
)
def test_loops(token_ids, loops):
    assert has_loop(token_ids) is loops
