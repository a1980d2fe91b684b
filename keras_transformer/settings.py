"""How a setting is declared: as a field of a frozen dataclass, with its help text, its choices and its rules.

`config.py` makes flags and JSON from these fields. All values are checked here: from flags, from JSON and from Python.
"""

import dataclasses
import functools
import math
import numbers
import os
import types
import typing
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple


class ConfigError(ValueError):
    """A setting that does not exist or has an invalid value."""


# What can be chosen, for settings and for the arguments of layers and functions, which have the same values.
POSITION_TYPES = ("sinusoidal", "learned")
LAYOUTS = ("interleaved", "concatenated")
TIE_EMBEDDINGS = ("all", "target", "none")
TOKENIZER_KINDS = ("unigram", "bpe", "wordpiece")
LONG_PAIRS = ("drop", "cut")
MONITORS = ("val_loss", "val_bleu")
STRATEGIES = ("auto", "one", "mirrored", "multi_worker")
LENGTH_PENALTIES = ("gnmt", "power")
SELECTIONS = ("best", "chrf", "bleu", "all")  # Of a teacher's translations.


class Rule(NamedTuple):
    """A rule for a value; `None` is not checked.

    Attributes:
        holds: a function that returns whether a value keeps the rule.
        text: the rule in words that follow "must be".
    """

    holds: Callable[[Any], bool]
    text: str


AT_LEAST_0 = Rule(lambda value: value >= 0, "at least 0")
AT_LEAST_1 = Rule(lambda value: value >= 1, "at least 1")
POSITIVE = Rule(lambda value: value > 0, "positive")
RATE = Rule(lambda value: 0 <= value < 1, "in [0, 1)")
SEED = Rule(lambda value: 0 <= value < 2**32, "between 0 and 2^32 - 1")


def setting(
    default,
    help,
    *rules,
    choices=None,
    also=(),
    changeable=False,
    convert=None,
    metavar=None,
    flag=True,
    path=False,
):
    """A field of `Settings`.

    Args:
        default: the default value of the field.
        help: the text for `--help`.
        *rules: `Rule`s that a value must keep.
        choices: the allowed values. Defaults to all.
        also: other flags of the setting.
        changeable: whether `--resume` may change it. Defaults to False: finished epochs depend on the value.
        convert: a function of the setting's name and a list, which returns a tuple; its flag can be given several
            times, with several words. Defaults to None.
        metavar: what `--help` calls these words. Defaults to None.
        flag: whether the setting has a flag. Defaults to True.
        path: whether it names a file or folder. Paths become absolute: a run may be read from another folder. Defaults
            to False.
    """
    metadata = {"help": help, "rules": rules, "choices": choices, "also": also, "changeable": changeable}
    metadata |= {"convert": convert, "metavar": metavar, "flag": flag, "path": path}
    return dataclasses.field(default=default, metadata=metadata)


def changeable(*args, **kwargs):
    """A `setting` that `--resume` may change, because finished epochs do not depend on it."""
    return setting(*args, **kwargs, changeable=True)


class Settings:
    """A base for frozen dataclasses whose fields are made by `setting`: it checks all values.

    Raises:
        ConfigError: a value is invalid or has the wrong type.
    """

    def __post_init__(self):
        for f in dataclasses.fields(self):
            object.__setattr__(self, f.name, checked(type(self), f, getattr(self, f.name)))


@functools.cache
def allowed_types(section, field_name):
    """The types of a field's values."""
    hint = typing.get_type_hints(section)[field_name]
    return typing.get_args(hint) if isinstance(hint, types.UnionType) else (hint,)


def checked(section, f, value):
    """`value` converted to the type of field `f` of a section. Raises a ConfigError that names the setting."""
    name, allowed = f.name, allowed_types(section, f.name)
    if f.metadata["convert"] and isinstance(value, list | tuple):
        return f.metadata["convert"](name, value)
    if isinstance(value, numbers.Real) and not isinstance(value, bool):  # Also NumPy's numbers.
        integral = isinstance(value, numbers.Integral)
        value = int(value) if integral and int in allowed else float(value) if float in allowed else value
    if type(value) not in allowed:
        expected = " or ".join("null" if t is types.NoneType else t.__name__ for t in allowed)
        raise ConfigError(f"`{name}` must be {expected}. Received: {value!r}.")
    if value is None:
        return value
    if f.metadata["path"]:
        value = os.path.abspath(value)
    if f.metadata["choices"]:
        one_of(name, value, f.metadata["choices"])
    for rule in f.metadata["rules"]:
        if not rule.holds(value):
            raise ConfigError(f"`{name}` must be {rule.text}. Received: {value!r}.")
    if isinstance(value, float) and not math.isfinite(value):
        raise ConfigError(f"`{name}` must be a finite number. Received: {value!r}.")
    return value


def one_of(name: str, value: Any, choices: Iterable) -> Any:
    """Returns `value` if it is one of the choices. Raises a ConfigError that names the choices."""
    if value not in tuple(choices):
        raise ConfigError(f"`{name}` must be one of {tuple(choices)}. Received: {value!r}.")
    return value


def documented(section):
    """A decorator that writes the help texts of the fields into the docstring, as `Attributes`."""
    lines = [f"        {f.name}: {f.metadata['help']}. Defaults to {f.default!r}." for f in dataclasses.fields(section)]
    section.__doc__ = "\n".join([section.__doc__.rstrip(), "", "    Attributes:", *lines, ""])
    return section
