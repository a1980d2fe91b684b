"""Public models: the ids of many strings."""

import pytest
from sentencepiece_models import KINDS, assert_same_ids


@pytest.mark.parametrize("name", KINDS)
def test_ids_of_5000_strings_are_those_of_the_original(name):
    """In Python and in the graph; also of texts that the model does not know."""
    assert_same_ids(name, 5000)
