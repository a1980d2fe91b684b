"""How a setting is declared: as a field of a frozen dataclass, with its help text, its choices and its rules.

`config.py` makes flags and JSON of such fields. Whatever way a value comes, it is checked here.
"""

import dataclasses
import functools
import math
import numbers
import types
import typing
from collections.abc import Callable
from typing import Any, NamedTuple


class ConfigError(ValueError):
    """A setting that does not exist or cannot be."""


class Rule(NamedTuple):
    """What a value must be; `None` need not.

    Attributes:
        holds: a function of the value.
        text: the rule, behind "must be".
    """

    holds: Callable[[Any], bool]
    text: str


AT_LEAST_0 = Rule(lambda value: value >= 0, "at least 0")
AT_LEAST_1 = Rule(lambda value: value >= 1, "at least 1")
POSITIVE = Rule(lambda value: value > 0, "positive")
RATE = Rule(lambda value: 0 <= value < 1, "in [0, 1)")
SEED = Rule(lambda value: 0 <= value < 2**32, "between 0 and 2^32 - 1")


def setting(default, help, *rules, choices=None, also=(), flat=None, changeable=False):
    """A field of `Settings`.

    Args:
        default: of the field.
        help: for `--help`.
        *rules: `Rule`s that a value keeps.
        choices: the values that there are. Defaults to any.
        also: other flags of the setting.
        flat: its name beside the settings of all other sections: as a flag, and in flat dictionaries. Defaults to the
            field's name.
        changeable: whether `--resume` may change it. Defaults to False: with another value, finished epochs would be
            other ones.
    """
    metadata = {"help": help, "rules": rules, "choices": choices, "also": also, "flat": flat, "changeable": changeable}
    return dataclasses.field(default=default, metadata=metadata)


def changeable(*args, **kwargs):
    """A `setting` that `--resume` may change: what finished epochs are does not depend on it."""
    return setting(*args, **kwargs, changeable=True)


class Settings:
    """A base for frozen dataclasses whose fields are made by `setting`: all values are checked.

    Raises:
        ConfigError: a value that cannot be, or is of another type.
    """

    def __post_init__(self):
        for f in dataclasses.fields(self):
            object.__setattr__(self, f.name, checked(type(self), f, getattr(self, f.name)))


def flat_name(f):
    """The name of a field beside those of all sections."""
    return f.metadata["flat"] or f.name


@functools.cache
def allowed_types(section, field_name):
    """The types of a field's values."""
    hint = typing.get_type_hints(section)[field_name]
    return typing.get_args(hint) if isinstance(hint, types.UnionType) else (hint,)


def checked(section, f, value, name=None):
    """`value`, as the type of field `f` of a section, or a ConfigError that names the setting."""
    name = name or f.name
    allowed = allowed_types(section, f.name)
    if isinstance(value, numbers.Real) and not isinstance(value, bool):  # NumPy's, too.
        integral = isinstance(value, numbers.Integral)
        value = int(value) if integral and int in allowed else float(value) if float in allowed else value
    if type(value) not in allowed:
        expected = " or ".join("null" if t is types.NoneType else t.__name__ for t in allowed)
        raise ConfigError(f"`{name}` must be {expected}. Received: {value!r}.")
    if value is None:
        return value
    if f.metadata["choices"]:
        one_of(name, value, f.metadata["choices"])
    for rule in f.metadata["rules"]:
        if not rule.holds(value):
            raise ConfigError(f"`{name}` must be {rule.text}. Received: {value!r}.")
    if isinstance(value, float) and not math.isfinite(value):
        raise ConfigError(f"`{name}` must be a finite number. Received: {value!r}.")
    return value


def one_of(name, value, choices):
    """`value`, or a ConfigError that names the choices."""
    if value not in tuple(choices):
        raise ConfigError(f"`{name}` must be one of {tuple(choices)}. Received: {value!r}.")
    return value


def documented(section):
    """A decorator: the help texts of the fields become the `Attributes` of the docstring."""
    lines = [f"        {f.name}: {f.metadata['help']}. Defaults to {f.default!r}." for f in dataclasses.fields(section)]
    section.__doc__ = "\n".join([section.__doc__.rstrip(), "", "    Attributes:", *lines, ""])
    return section
