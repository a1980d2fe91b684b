"""The weights of a public model by name: arrays that are read when they are needed."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np


class ModelImportError(ValueError):
    """A folder that is not a model of its family, or a model that this package cannot express."""


class Lazy(NamedTuple):
    """An array that is read when it is needed: `lazy()`. Large models need not fit into memory."""

    shape: tuple[int, ...]
    read: Callable[[], np.ndarray]

    def __call__(self) -> np.ndarray:
        return self.read()

    @property
    def T(self) -> "Lazy":  # noqa: N802
        return Lazy(self.shape[::-1], lambda: self.read().T)


def joined(arrays: Sequence[Lazy], axis: int = 0) -> Lazy:
    """Arrays side by side, as `np.concatenate`."""
    shape = list(arrays[0].shape)
    shape[axis] = sum(array.shape[axis] for array in arrays)
    return Lazy(tuple(shape), lambda: np.concatenate([array() for array in arrays], axis=axis))


class Arrays:
    """The arrays of a file of weights, by name; it knows which were taken."""

    def __init__(self, folder: Path, arrays: dict[str, Lazy]):
        self.folder, self.arrays, self.taken = folder, arrays, {}

    def take(self, *names: str, shape: tuple[int | None, ...] | None = None, optional: bool = False) -> Any:
        """The first of the named arrays that exists, a `Lazy`; the same object if it is taken twice.

        Args:
            *names: names of arrays.
            shape: what it must have, with None for any size; a first dimension of 1 more is removed. Defaults to any.
            optional: whether to return None if it is missing. Defaults to False.
        """
        name = next((name for name in names if name in self.arrays), None)
        if name is None and optional:
            return None
        if name is None:
            raise ModelImportError(
                f"The weights in {self.folder} lack {names[0]}: the file is damaged, or of another model. "
                f"Received: {', '.join([*self.arrays][:3])}, ..."
            )
        if name not in self.taken:
            self.taken[name] = self._checked(name, shape)
        return self.taken[name]

    def _checked(self, name, shape):
        """Its shape is checked now, and its numbers when they are read."""
        array, found = self.arrays[name], self.arrays[name].shape
        is_longer = shape is not None and found[:1] == (1,) and len(found) == len(shape) + 1
        found = found[1:] if is_longer else found
        if shape and (len(found) != len(shape) or any(b not in (a, None) for a, b in zip(found, shape, strict=True))):
            raise ModelImportError(
                f"The weights in {self.folder} do not fit its sizes: {name} must have the shape {shape}. "
                f"Received: {found}. The file is damaged, or of another model."
            )

        def read():
            values = array()
            if values.size and np.isnan(values.max()):
                raise ModelImportError(
                    f"The weights in {self.folder} must be numbers. {name} holds NaN: it is damaged."
                )
            return values[0] if is_longer else values

        return Lazy(found, read)

    def check_all_used(self, *known: str) -> None:
        """Raises a ModelImportError if there are arrays that were not taken, except the known ones."""
        left = sorted(self.arrays.keys() - self.taken.keys() - set(known))
        if left:
            more = f" and {len(left) - 3} more" if len(left) > 3 else ""
            raise ModelImportError(
                f"The model in {self.folder} has weights that this package has no place for: {', '.join(left[:3])}"
                f"{more}. It is of another architecture."
            )
