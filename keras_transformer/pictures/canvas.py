"""How figures look: colours, grids of pictures, heat maps, and tokens as names.

Amounts go from light to dark. Lines differ in stroke and in colour, and colour-blind people can distinguish the colours
("Color Universal Design", Okabe and Ito, 2008).
"""

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from matplotlib.image import AxesImage

Tokens = Sequence[str]

BLUE, ORANGE, GREEN, PURPLE, GREY, LIGHT_GREY = "#0072B2", "#D55E00", "#009E73", "#CC79A7", "#767676", "#AAAAAA"
STROKES = list(zip((BLUE, ORANGE, GREEN, PURPLE), ("-", "--", "-.", ":"), strict=True))
# The scale for amounts from 0 to 1 begins with white. In the scale for signed numbers, 0 has the middle lightness.
AMOUNTS, SIGNED = "Blues", "cividis"
CENTRED: dict[str, Any] = {"ha": "center", "va": "center"}
LEGEND_BELOW: dict[str, Any] = {"loc": "outside lower center", "frameon": False}


def empty_figure(**kwargs: Any) -> "Figure":
    """A `matplotlib.figure.Figure`, or an ImportError that says what to install."""
    try:
        from matplotlib.figure import Figure
    except ImportError as error:
        raise ImportError("Matplotlib is not installed. Try: pip install matplotlib") from error
    return Figure(**kwargs)


def grid(width: float, height: float, rows: int = 1, columns: int = 1, **kwargs: Any) -> "tuple[Figure, np.ndarray]":
    """A figure of a size in inches, and its axes (rows, columns)."""
    figure = empty_figure(figsize=(width, height), layout="constrained", dpi=150)
    return figure, figure.subplots(rows, columns, squeeze=False, **kwargs)


def single(width: float, height: float) -> "tuple[Figure, Axes]":
    """A figure with one picture, and its axes."""
    figure, [[axes]] = grid(width, height)
    return figure, axes


def array(name: str, values: Any, shape: str) -> np.ndarray:
    """`values` as an array, which must have as many axes as `shape` has names, such as `"(L, D)"`."""
    values = np.asarray(values)
    if values.ndim != len(shape.strip("()").split(", ")):
        raise ValueError(f"`{name}` must have the shape {shape}. Received: shape {values.shape}.")
    return values


def scores(values: Any, shape: str, rows: Tokens, columns: Tokens) -> np.ndarray:
    """Attention scores as an array whose last two axes have a token for each index."""
    values = array("scores", values, shape)
    if values.shape[-2:] != (len(rows), len(columns)):
        raise ValueError(
            "There must be a token for each row and each column of the scores. "
            f"Received: scores of shape {values.shape}, {len(rows)} and {len(columns)} tokens."
        )
    return values


def heat_map(
    axes: "Axes", values: np.ndarray, low: float = 0.0, high: float = 1.0, colours: str = AMOUNTS, **kwargs: Any
) -> "AxesImage":
    """Draws a matrix, one cell per number."""
    return axes.imshow(values, vmin=low, vmax=high, cmap=colours, interpolation="nearest", **kwargs)


def plain(tokens: Iterable[str]) -> list[str]:
    """Escapes dollar signs: Matplotlib would take them for the beginning of a formula."""
    return [token.replace("$", r"\$") for token in tokens]


def name_cells(axes: "Axes", columns: Tokens, rows: Tokens, size: int = 9) -> None:
    """Writes tokens at the axes instead of numbers."""
    axes.set_xticks(range(len(columns)), plain(columns), rotation=90, fontsize=size)
    axes.set_yticks(range(len(rows)), plain(rows), fontsize=size)
    axes.tick_params(length=0)


def open_frame(axes: "Axes") -> None:
    """Leaves out the lines above and on the right."""
    axes.spines[["top", "right"]].set_visible(False)
