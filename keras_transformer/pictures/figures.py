"""Pictures of every part of the Transformer: arrays in, a Matplotlib `Figure` out.

The functions need no model, open no window and do not change Matplotlib's settings: save a figure with
`figure.savefig(path)`, or let a notebook show it. `python -m keras_transformer plot` draws all of them from a run.
Figures of training and search are in `keras_transformer.pictures.training_figures`, and are names of this module, too.
Needs `pip install matplotlib`.
"""

import itertools
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from keras_transformer.pictures import canvas
from keras_transformer.pictures.canvas import Tokens, empty_figure
from keras_transformer.pictures.training_figures import (  # noqa: F401 (names of this module)
    beam_tree,
    label_smoothing,
    learning_rate,
    quality_and_cost,
    score_by_length,
    training_curves,
)

if TYPE_CHECKING:
    from matplotlib.animation import FuncAnimation
    from matplotlib.figure import Figure

# Positions (section 3.5).


def positional_encoding(table: np.ndarray) -> "Figure":
    """The table of positions (L, D) as a heat map: a row per position, a column per dimension.

    Example:
        >>> import keras_transformer as kt
        >>> figure = positional_encoding(kt.positional_encoding(50, 256))
        >>> figure.axes[0].get_xlabel()
        'dimension'
    """
    figure, axes = canvas.single(8, 4.2)
    image = canvas.heat_map(axes, canvas.array("table", table, "(L, D)"), -1, 1, canvas.SIGNED, aspect="auto")
    axes.set(xlabel="dimension", ylabel="position", title="Positional encoding")
    figure.colorbar(image, label="value")
    return figure


def sinusoids(table: np.ndarray, dimensions: Sequence[int] = (4, 5, 6, 7)) -> "Figure":
    """The values of a few dimensions along the positions.

    Args:
        table: (L, D).
        dimensions: the columns to draw. Defaults to two pairs of the interleaved layout.
    """
    table = canvas.array("table", table, "(L, D)")
    if not all(0 <= dimension < table.shape[1] for dimension in dimensions):
        raise ValueError(
            f"`dimensions` must be columns of the table, 0 to {table.shape[1] - 1}. Received: {dimensions}."
        )
    figure, axes = canvas.single(8, 3.6)
    for dimension, (colour, stroke) in zip(dimensions, itertools.cycle(canvas.STROKES)):
        axes.plot(table[:, dimension], stroke, color=colour, label=f"dimension {dimension}")
    axes.set(xlabel="position", ylabel="value", title="Sinusoids of chosen dimensions", ylim=(-1.1, 1.1))
    figure.legend(loc="outside right upper", frameon=False)
    return figure


def position_similarity(table: np.ndarray, kind: str = "cosine") -> "Figure":
    """The similarity of the encodings of all pairs of positions, and how it falls with the distance.

    Args:
        table: (L, D).
        kind: `"cosine"`, or `"dot"` for the plain dot product. Defaults to `"cosine"`.
    """
    table = canvas.array("table", table, "(L, D)").astype("float64")
    names = {"cosine": "cosine similarity", "dot": "dot product"}
    if kind not in names:
        raise ValueError(f"`kind` must be 'cosine' or 'dot'. Received: {kind!r}.")
    if kind == "cosine":
        table = table / np.linalg.norm(table, axis=1, keepdims=True)
    similarity, name = table @ table.T, names[kind]
    figure, [[left, right]] = canvas.grid(9, 4, 1, 2)
    image = canvas.heat_map(left, similarity, min(0, similarity.min()), similarity.max())
    left.set(xlabel="position", ylabel="position", title=f"{name.capitalize()} of positions")
    figure.colorbar(image, ax=left, label=name, shrink=0.85)
    for position, (colour, stroke) in zip((0, len(table) // 2, len(table) - 1), canvas.STROKES, strict=False):
        distances = np.arange(len(table)) - position
        right.plot(distances, similarity[position], stroke, color=colour, label=f"of position {position}")
    right.set(xlabel="offset of the other position", ylabel=name, title="It depends on the offset alone")
    right.legend(frameon=False, fontsize=8)
    return figure


def position_layouts(tables: Mapping[str, np.ndarray]) -> "Figure":
    """Tables of positions (L, D) by name, side by side, such as the two layouts: the same columns in another order."""
    figure, [row] = canvas.grid(4.2 * len(tables) + 1, 3.6, 1, len(tables), sharey=True)
    for axes, (name, table) in zip(row, tables.items(), strict=True):
        image = canvas.heat_map(axes, canvas.array(name, table, "(L, D)"), -1, 1, canvas.SIGNED, aspect="auto")
        axes.set(xlabel="dimension", title=name)
    row[0].set_ylabel("position")
    figure.colorbar(image, ax=row, label="value")
    return figure


def rotation(matrix: np.ndarray, offset: int) -> "Figure":
    """The matrix that moves every position's encoding by an offset: a rotation for each pair of dimensions.

    Args:
        matrix: (D, D), from `keras_transformer.layers.embeddings.positional_rotation`.
        offset: its offset, for the title.
    """
    matrix = canvas.array("matrix", matrix, "(D, D)")
    figure, axes = canvas.single(5.6, 4.8)
    image = canvas.heat_map(axes, matrix, -1, 1, canvas.SIGNED)
    if len(matrix) <= 16:
        for i, j in zip(*np.nonzero(matrix), strict=True):
            colour = "black" if matrix[i, j] > 0 else "white"
            axes.text(j, i, f"{matrix[i, j]:.3f}", **canvas.CENTRED, fontsize=8, color=colour)
    axes.set(
        xlabel="dimension of position p",
        ylabel=f"dimension of position p + {offset}",
        title=f"Rotation of the encoding by {offset} position{'s' if offset != 1 else ''}",
    )
    figure.colorbar(image, label="factor")
    return figure


def rings(table: np.ndarray, position: int) -> "Figure":
    """Each pair of sine and cosine as a point on a circle, with the circles in a row along the dimensions.

    Args:
        table: (L, D), interleaved.
        position: the row to draw.
    """
    figure, draw = _rings(table)
    draw(position)
    return figure


def animate_rings(table: np.ndarray, interval: int = 100) -> "FuncAnimation":
    """`rings` while the position advances: the fast pairs turn, the slow ones hardly move.

    Args:
        table: (L, D), interleaved.
        interval: milliseconds from one position to the next. Defaults to 100.

    Returns:
        A `matplotlib.animation.FuncAnimation`; `animation.save("rings.gif", writer="pillow")` writes it, and
        `"rings.mp4"` with FFmpeg.
    """
    figure, draw = _rings(table)
    from matplotlib.animation import FuncAnimation

    return FuncAnimation(figure, draw, frames=len(table), interval=interval)


def _rings(table):
    """The figure without points, and a function that draws the points of a position."""
    table = canvas.array("table", table, "(L, D)")
    figure = empty_figure(figsize=(8, 3.6), dpi=100)
    axes = figure.add_axes((-0.05, 0, 1, 0.94), projection="3d")
    pairs = np.arange(table.shape[1] // 2)
    turn = np.linspace(0, 2 * np.pi, 60)
    for pair in pairs:
        axes.plot(np.full(60, pair), np.cos(turn), np.sin(turn), color="#BBBBBB", linewidth=0.7, clip_on=False)
    (line,) = axes.plot([], [], [], "-", color=canvas.BLUE, linewidth=1, clip_on=False)
    (points,) = axes.plot([], [], [], "o", color=canvas.ORANGE, markersize=5, clip_on=False)
    axes.set(xlabel="\npair of dimensions 2i, 2i + 1", ylabel="cosine", zlabel="sine", yticks=(-1, 1), zticks=(-1, 1))
    axes.xaxis.get_major_locator().set_params(integer=True)
    axes.yaxis.labelpad = axes.zaxis.labelpad = -12
    axes.set_box_aspect((4, 1, 1), zoom=1.75)
    axes.view_init(elev=16, azim=-65)
    title = figure.suptitle("")

    def draw(position):
        for artist in (line, points):
            artist.set_data_3d(pairs, table[position, 1::2], table[position, 0::2])
        title.set_text(f"Position {position}: every pair has turned by its own angle")
        return line, points, title

    return figure, draw


# Embeddings (section 3.4).


def embeddings(tokens: Tokens, before: np.ndarray, after: np.ndarray) -> "Figure":
    """Token embeddings before and after positions are added, projected to the first two principal components.

    Args:
        tokens: S strings.
        before: (S, D), the scaled embeddings of the tokens.
        after: (S, D), with positions.
    """
    both = np.concatenate([canvas.array("embeddings", x, "(S, D)").astype("float64") for x in (before, after)])
    centred = both - both.mean(axis=0)
    _, values, components = np.linalg.svd(centred, full_matrices=False)
    before, after = np.split(centred @ components[:2].T, 2)
    shares = values**2 / np.sum(values**2)
    figure, axes = canvas.single(8.5, 7)
    arrow = {"arrowstyle": "->", "color": canvas.GREY, "linewidth": 0.8, "shrinkA": 4, "shrinkB": 4}
    for start, end in zip(before, after, strict=True):
        axes.annotate("", xy=end, xytext=start, arrowprops=arrow)
    axes.plot(*before.T, "o", color=canvas.BLUE, label="token embedding", markersize=6)
    axes.plot(*after.T, "s", color=canvas.ORANGE, label="with its position added", markersize=6)
    for i, (token, place) in enumerate(zip(canvas.plain(tokens), after, strict=True)):
        axes.annotate(f"{token} ({i})", place, xytext=(6, 4), textcoords="offset points", fontsize=9)
    axes.margins(0.12)
    axes.set(
        xlabel=f"first principal component ({shares[0]:.0%} of the variance)",
        ylabel=f"second principal component ({shares[1]:.0%})",
        title="Embeddings of the tokens of a sentence, with their positions in brackets",
    )
    figure.legend(**canvas.LEGEND_BELOW, ncols=2)
    return figure


# Masks (section 3.2.3).


def masks(padding_mask: np.ndarray, tokens: Sequence[Tokens]) -> "Figure":
    """The padding mask of a batch, the causal mask, and both combined: a row of pictures per sentence.

    Args:
        padding_mask: boolean (B, L), True = real token.
        tokens: B lists of L strings.
    """
    padding_mask = canvas.array("padding_mask", padding_mask, "(B, L)").astype(bool)
    batch, length = padding_mask.shape
    causal = np.tri(length, dtype=bool)
    size = 0.3 * length + 1.4
    figure, grid = canvas.grid(3 * size, batch * size + 0.5, batch, 3)
    for row, mask, names in zip(grid, padding_mask, tokens, strict=True):
        keys = np.broadcast_to(mask, (length, length))
        pictures = {"padding mask": keys, "causal mask": causal, "both": keys & causal}
        for axes, (title, allowed) in zip(row, pictures.items(), strict=True):
            canvas.heat_map(axes, allowed, 0, 1.25)
            axes.set_xticks(np.arange(length) - 0.5, minor=True)
            axes.set_yticks(np.arange(length) - 0.5, minor=True)
            axes.grid(which="minor", color="white", linewidth=1.5)
            axes.tick_params(which="both", length=0)
            canvas.name_cells(axes, names, names, size=8)
            axes.set(xlabel="key", title=title)
        row[0].set_ylabel("query")
    figure.suptitle("Dark: the query may attend to the key")
    return figure


def masked_attention(
    before: np.ndarray, after: np.ndarray, query_tokens: Tokens, key_tokens: Tokens, mask_name: str = "causal mask"
) -> "Figure":
    """The attention of one head without and with a mask. Rows add up to 1; masked scores are exactly 0.

    Args:
        before, after: (T, S), attention scores without and with the mask.
        query_tokens, key_tokens: T and S strings.
        mask_name: the name of the mask for the title. Defaults to `"causal mask"`.
    """
    size = 0.42 * len(key_tokens) + 2
    figure, [row] = canvas.grid(2 * size, 0.38 * len(query_tokens) + 2, 1, 2)
    for axes, scores, title in zip(row, (before, after), ("without a mask", f"with the {mask_name}"), strict=True):
        scores = canvas.scores(scores, "(T, S)", query_tokens, key_tokens)
        image = canvas.heat_map(axes, scores)
        for (i, j), value in np.ndenumerate(scores) if len(key_tokens) <= 16 else ():
            text = f"{value:.2f}"[1:] if 0 < value < 0.995 else f"{value:.0f}"
            colour = "white" if value > 0.6 else "black" if value else "#999999"
            axes.text(j, i, text, **canvas.CENTRED, fontsize=6, color=colour)
        canvas.name_cells(axes, key_tokens, query_tokens)
        sums = axes.secondary_yaxis("right")
        sums.set_yticks(range(len(query_tokens)), [f"{total:.2f}" for total in scores.sum(axis=1)], fontsize=8)
        sums.tick_params(length=0)
        sums.set_ylabel("sum of the row")
        axes.set(xlabel="key", ylabel="query", title=title)
    figure.colorbar(image, ax=row, label="attention score", shrink=0.8)
    return figure


# Attention (section 3.2).


def attention_grid(scores: np.ndarray, query_tokens: Tokens, key_tokens: Tokens, title: str) -> "Figure":
    """The attention scores of every layer (rows) and head (columns).

    Args:
        scores: (layers, N, T, S).
        query_tokens, key_tokens: T and S strings.
        title: such as `"Cross-attention"`.
    """
    scores = canvas.scores(scores, "(layers, N, T, S)", query_tokens, key_tokens)
    layers, heads = scores.shape[:2]
    width, height = 0.16 * len(key_tokens) + 0.4, 0.16 * len(query_tokens) + 0.4
    figure, grid = canvas.grid(
        max(6, heads * width + 2), layers * height + 1.6, layers, heads, sharex=True, sharey=True
    )
    for layer, head in np.ndindex(layers, heads):
        image = canvas.heat_map(grid[layer, head], scores[layer, head])
        canvas.name_cells(grid[layer, head], key_tokens, query_tokens, size=6)
    for head in range(heads):
        grid[0, head].set_title(f"head {head}", fontsize=9)
    for layer in range(layers):
        grid[layer, 0].set_ylabel(f"layer {layer}", fontsize=9)
    figure.suptitle(title)
    figure.colorbar(image, ax=grid, label="attention score", shrink=0.6)
    return figure


def attention(
    scores: np.ndarray, query_tokens: Tokens, key_tokens: Tokens, title: str, alignment: Sequence[int] | None = None
) -> "Figure":
    """The attention scores of one head, or the mean of several, in a large picture.

    Args:
        scores: (T, S).
        query_tokens, key_tokens: T and S strings.
        title: such as `"Cross-attention, layer 2, head 0"`.
        alignment: for each query the index of a key; that cell gets a frame. Defaults to None.
    """
    scores = canvas.scores(scores, "(T, S)", query_tokens, key_tokens)
    figure, axes = canvas.single(0.45 * len(key_tokens) + 3, 0.4 * len(query_tokens) + 2)
    image = canvas.heat_map(axes, scores)
    canvas.name_cells(axes, key_tokens, query_tokens, size=10)
    from matplotlib.patches import Rectangle

    for query, key in enumerate(() if alignment is None else alignment):
        axes.add_patch(Rectangle((key - 0.5, query - 0.5), 1, 1, fill=False, edgecolor=canvas.ORANGE, linewidth=2))
    axes.set(xlabel="key", ylabel="query", title=title)
    figure.colorbar(image, label="attention score", shrink=0.8)
    return figure


def token_attention(scores: np.ndarray, query: str, key_tokens: Tokens, title: str) -> "Figure":
    """What one token looks at: its attention scores in every head, and their mean.

    Args:
        scores: (N, S), the row of that token in every head.
        query: the token.
        key_tokens: S strings.
        title: such as `"Cross-attention, layer 2"`.
    """
    scores = canvas.array("scores", scores, "(N, S)")
    rows = {"mean": scores.mean(axis=0), **{f"head {head}": row for head, row in enumerate(scores)}}
    places = range(len(key_tokens))
    figure, grid = canvas.grid(0.45 * len(places) + 2.5, 0.8 * len(scores) + 2.2, len(rows), sharex=True, sharey=True)
    for axes, (name, row) in zip(grid[:, 0], rows.items(), strict=True):
        bars = axes.bar(places, row, color=canvas.ORANGE if name == "mean" else canvas.BLUE)
        axes.bar_label(bars, [f"{value:.2f}"[1:] if 0.05 <= value < 0.995 else "" for value in row], fontsize=7)
        axes.set_ylabel(name, rotation=0, ha="right", va="center")
        axes.set(ylim=(0, 1.25), yticks=(0, 1))
        canvas.open_frame(axes)
    grid[-1, 0].set_xticks(places, canvas.plain(key_tokens), rotation=90)
    grid[-1, 0].set_xlabel("key")
    figure.suptitle(f"{title}: what “{canvas.plain([query])[0]}” looks at")
    return figure
