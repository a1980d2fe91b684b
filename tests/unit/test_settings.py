"""How settings are declared: fields with help texts and rules, checked whatever way a value comes."""

import dataclasses
from dataclasses import dataclass

import pytest

from keras_transformer.settings import (
    AT_LEAST_1,
    RATE,
    ConfigError,
    Rule,
    Settings,
    changeable,
    checked,
    documented,
    setting,
)

EVEN = Rule(lambda value: value % 2 == 0, "even: halves are whole")


@documented
@dataclass(frozen=True)
class Cake(Settings):
    """What is baked."""

    layers: int | None = setting(2, "how many", AT_LEAST_1, EVEN)
    sugar: float = changeable(0.5, "share of sugar", RATE)
    kind: str = setting("plum", "what is in it", choices=("plum", "apple"))


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"layers": 0}, "`layers` must be at least 1. Received: 0."),
        ({"layers": 3}, "`layers` must be even: halves are whole. Received: 3."),
        ({"layers": 2.0}, "`layers` must be int or null. Received: 2.0."),
        ({"sugar": 1}, "`sugar` must be in [0, 1). Received: 1.0."),
        ({"sugar": None}, "`sugar` must be float. Received: None."),
        ({"kind": "pear"}, "`kind` must be one of ('plum', 'apple'). Received: 'pear'."),
    ],
)
def test_every_value_is_checked_against_its_type_its_choices_and_all_of_its_rules(values, message):
    with pytest.raises(ConfigError) as caught:
        Cake(**values)
    assert str(caught.value) == message
    with pytest.raises(ConfigError) as caught:
        dataclasses.replace(Cake(), **values)
    assert str(caught.value) == message


def test_none_needs_no_rule_and_an_integer_is_a_real_number():
    cake = Cake(layers=None, sugar=0)
    assert (cake.layers, cake.sugar, type(cake.sugar)) == (None, 0.0, float)


def test_a_value_is_checked_without_an_object():
    layers, sugar, _ = dataclasses.fields(Cake)
    assert (layers.metadata["changeable"], sugar.metadata["changeable"]) == (False, True)
    with pytest.raises(ConfigError, match=r"`sugar` must be in \[0, 1\)"):
        checked(Cake, sugar, 2.0)


def test_the_docstring_says_what_the_fields_are():
    assert Cake.__doc__ == (
        "What is baked.\n\n    Attributes:\n        layers: how many. Defaults to 2.\n"
        "        sugar: share of sugar. Defaults to 0.5.\n        kind: what is in it. Defaults to 'plum'.\n"
    )
