"""Pictures of every part of the Transformer: arrays in, a Matplotlib `Figure` out.

The functions need no model, open no window and do not change Matplotlib's settings: save a figure with
`figure.savefig(path)`, or let a notebook show it. `python -m keras_transformer plot` draws all of them from a run.

Amounts go from light to dark. Lines differ in stroke and in colour, and colour-blind people can distinguish the colours
("Color Universal Design", Okabe and Ito, 2008). Needs `pip install matplotlib`.
"""

import itertools

import numpy as np

BLUE, ORANGE, GREEN, PURPLE, GREY = "#0072B2", "#D55E00", "#009E73", "#CC79A7", "#767676"
STROKES = list(zip((BLUE, ORANGE, GREEN, PURPLE), ("-", "--", "-.", ":"), strict=True))
# The scale for amounts from 0 to 1 begins with white. In the scale for signed numbers, 0 has the middle lightness.
AMOUNTS, SIGNED = "Blues", "cividis"


def _figure(width, height, rows=1, columns=1, **kwargs):
    figure = empty_figure(figsize=(width, height), layout="constrained", dpi=150)
    return figure, figure.subplots(rows, columns, squeeze=False, **kwargs)


def empty_figure(**kwargs):
    """A `matplotlib.figure.Figure`, or an ImportError that says what to install."""
    try:
        from matplotlib.figure import Figure
    except ImportError as error:
        raise ImportError("Matplotlib is not installed. Try: pip install matplotlib") from error
    return Figure(**kwargs)


def _array(name, values, shape):
    """`values` as an array, which must have as many axes as `shape` has names."""
    array = np.asarray(values)
    axes = shape.strip("()").rstrip(",").split(", ")
    if array.ndim != len(axes):
        raise ValueError(f"`{name}` must have the shape {shape}. Received: shape {array.shape}.")
    return array


def _heat_map(axes, values, low=0.0, high=1.0, colours=AMOUNTS, **kwargs):
    return axes.imshow(values, vmin=low, vmax=high, cmap=colours, interpolation="nearest", **kwargs)


def _plain(tokens):
    """Escapes dollar signs: Matplotlib would take them for the beginning of a formula."""
    return [token.replace("$", r"\$") for token in tokens]


def _name_cells(axes, columns, rows, size=9):
    """Writes tokens at the axes instead of numbers."""
    axes.set_xticks(range(len(columns)), _plain(columns), rotation=90, fontsize=size)
    axes.set_yticks(range(len(rows)), _plain(rows), fontsize=size)
    axes.tick_params(length=0)


def _check_tokens(scores, rows, columns):
    if scores.shape[-2:] != (len(rows), len(columns)):
        raise ValueError(
            "There must be a token for each row and each column of the scores. "
            f"Received: scores of shape {scores.shape}, {len(rows)} and {len(columns)} tokens."
        )


# Positions (section 3.5).


def positional_encoding(table):
    """The table of positions as a heat map: a row per position, a column per dimension.

    Args:
        table: (L, D), from `keras_transformer.positional_encoding`.

    Returns:
        A `Figure`.

    Example:
        >>> import keras_transformer as kt
        >>> figure = positional_encoding(kt.positional_encoding(50, 256))
        >>> figure.axes[0].get_xlabel()
        'dimension'
    """
    table = _array("table", table, "(L, D)")
    figure, [[axes]] = _figure(8, 4.2)
    image = _heat_map(axes, table, -1, 1, SIGNED, aspect="auto")
    axes.set(xlabel="dimension", ylabel="position", title="Positional encoding")
    figure.colorbar(image, label="value")
    return figure


def sinusoids(table, dimensions=(4, 5, 6, 7)):
    """The values of a few dimensions along the positions.

    Args:
        table: (L, D).
        dimensions: the columns to draw. Defaults to two pairs of the interleaved layout.

    Returns:
        A `Figure`.
    """
    table = _array("table", table, "(L, D)")
    if not all(0 <= d < table.shape[1] for d in dimensions):
        raise ValueError(
            f"`dimensions` must be columns of the table, 0 to {table.shape[1] - 1}. Received: {dimensions}."
        )
    figure, [[axes]] = _figure(8, 3.6)
    for dimension, (colour, stroke) in zip(dimensions, itertools.cycle(STROKES)):
        axes.plot(table[:, dimension], stroke, color=colour, label=f"dimension {dimension}")
    axes.set(xlabel="position", ylabel="value", title="Sinusoids of chosen dimensions", ylim=(-1.1, 1.1))
    figure.legend(loc="outside right upper", frameon=False)
    return figure


def position_similarity(table, kind="cosine"):
    """The similarity of the encodings of all pairs of positions, and how it falls with the distance.

    Args:
        table: (L, D).
        kind: `"cosine"`, or `"dot"` for the plain dot product. Defaults to `"cosine"`.

    Returns:
        A `Figure`.
    """
    table = _array("table", table, "(L, D)").astype("float64")
    if kind not in ("cosine", "dot"):
        raise ValueError(f"`kind` must be 'cosine' or 'dot'. Received: {kind!r}.")
    if kind == "cosine":
        table = table / np.linalg.norm(table, axis=1, keepdims=True)
    similarity, name = table @ table.T, "cosine similarity" if kind == "cosine" else "dot product"
    figure, [[left, right]] = _figure(9, 4, 1, 2)
    image = _heat_map(left, similarity, min(0, similarity.min()), similarity.max())
    left.set(xlabel="position", ylabel="position", title=f"{name.capitalize()} of positions")
    figure.colorbar(image, ax=left, label=name, shrink=0.85)
    middle = len(table) // 2
    for position, (colour, stroke) in zip((0, middle, len(table) - 1), STROKES, strict=False):
        distances = np.arange(len(table)) - position
        right.plot(distances, similarity[position], stroke, color=colour, label=f"of position {position}")
    right.set(xlabel="offset of the other position", ylabel=name, title="It depends on the offset alone")
    right.legend(frameon=False, fontsize=8)
    return figure


def position_layouts(tables):
    """Tables of positions side by side, such as the two layouts: the same columns in another order.

    Args:
        tables: a dictionary of names and arrays (L, D).

    Returns:
        A `Figure`.
    """
    figure, [row] = _figure(4.2 * len(tables) + 1, 3.6, 1, len(tables), sharey=True)
    for axes, (name, table) in zip(row, tables.items(), strict=True):
        image = _heat_map(axes, _array(name, table, "(L, D)"), -1, 1, SIGNED, aspect="auto")
        axes.set(xlabel="dimension", title=name)
    row[0].set_ylabel("position")
    figure.colorbar(image, ax=row, label="value")
    return figure


def rotation(matrix, offset):
    """The matrix that moves every position's encoding by an offset: a rotation for each pair of dimensions.

    Args:
        matrix: (D, D), from `keras_transformer.layers.embeddings.positional_rotation`.
        offset: its offset, for the title.

    Returns:
        A `Figure`.
    """
    matrix = _array("matrix", matrix, "(D, D)")
    figure, [[axes]] = _figure(5.6, 4.8)
    image = _heat_map(axes, matrix, -1, 1, SIGNED)
    if len(matrix) <= 16:
        for i, j in zip(*np.nonzero(matrix), strict=True):
            colour = "black" if matrix[i, j] > 0 else "white"
            axes.text(j, i, f"{matrix[i, j]:.3f}", ha="center", va="center", fontsize=8, color=colour)
    axes.set(
        xlabel="dimension of position p",
        ylabel=f"dimension of position p + {offset}",
        title=f"Rotation of the encoding by {offset} position{'s' if offset != 1 else ''}",
    )
    figure.colorbar(image, label="factor")
    return figure


def rings(table, position):
    """Each pair of sine and cosine as a point on a circle, with the circles in a row along the dimensions.

    Args:
        table: (L, D), interleaved.
        position: the row to draw.

    Returns:
        A `Figure`.
    """
    figure, draw, _ = _rings(table)
    draw(position)
    return figure


def animate_rings(table, interval=100):
    """`rings` while the position advances: the fast pairs turn, the slow ones hardly move.

    Args:
        table: (L, D), interleaved.
        interval: milliseconds from one position to the next. Defaults to 100.

    Returns:
        A `matplotlib.animation.FuncAnimation`; `animation.save("rings.gif", writer="pillow")` writes it, and
        `"rings.mp4"` with FFmpeg.
    """
    figure, draw, length = _rings(table)
    from matplotlib.animation import FuncAnimation

    return FuncAnimation(figure, draw, frames=length, interval=interval)


def _rings(table):
    """The figure without points, a function that draws the points of a position, and the number of positions."""
    table = _array("table", table, "(L, D)")
    figure = empty_figure(figsize=(8, 3.6), dpi=100)
    axes = figure.add_axes((-0.05, 0, 1, 0.94), projection="3d")
    pairs = np.arange(table.shape[1] // 2)
    turn = np.linspace(0, 2 * np.pi, 60)
    for pair in pairs:
        axes.plot(np.full(60, pair), np.cos(turn), np.sin(turn), color="#BBBBBB", linewidth=0.7, clip_on=False)
    (line,) = axes.plot([], [], [], "-", color=BLUE, linewidth=1, clip_on=False)
    (points,) = axes.plot([], [], [], "o", color=ORANGE, markersize=5, clip_on=False)
    axes.set(xlabel="\npair of dimensions 2i, 2i + 1", ylabel="cosine", zlabel="sine", yticks=(-1, 1), zticks=(-1, 1))
    axes.xaxis.get_major_locator().set_params(integer=True)
    for axis in (axes.yaxis, axes.zaxis):
        axis.labelpad = -12
    axes.set_box_aspect((4, 1, 1), zoom=1.75)
    axes.view_init(elev=16, azim=-65)
    title = figure.suptitle("")

    def draw(position):
        sine, cosine = table[position, 0::2], table[position, 1::2]
        for artist in (line, points):
            artist.set_data_3d(pairs, cosine, sine)
        title.set_text(f"Position {position}: every pair has turned by its own angle")
        return line, points, title

    return figure, draw, len(table)


# Embeddings (section 3.4).


def embeddings(tokens, before, after):
    """Token embeddings before and after positions are added, projected to the first two principal components.

    Args:
        tokens: S strings.
        before: (S, D), the scaled embeddings of the tokens.
        after: (S, D), with positions.

    Returns:
        A `Figure`.
    """
    before, after = (_array("embeddings", x, "(S, D)").astype("float64") for x in (before, after))
    both = np.concatenate([before, after])
    centred = both - both.mean(axis=0)
    _, values, components = np.linalg.svd(centred, full_matrices=False)
    before, after = np.split(centred @ components[:2].T, 2)
    shares = values**2 / np.sum(values**2)
    figure, [[axes]] = _figure(8.5, 7)
    for start, end in zip(before, after, strict=True):
        arrow = {"arrowstyle": "->", "color": GREY, "linewidth": 0.8, "shrinkA": 4, "shrinkB": 4}
        axes.annotate("", xy=end, xytext=start, arrowprops=arrow)
    axes.plot(*before.T, "o", color=BLUE, label="token embedding", markersize=6)
    axes.plot(*after.T, "s", color=ORANGE, label="with its position added", markersize=6)
    for i, (token, place) in enumerate(zip(_plain(tokens), after, strict=True)):
        label = f"{token} ({i})"
        axes.annotate(label, place, xytext=(6, 4), textcoords="offset points", fontsize=9)
    axes.margins(0.12)
    axes.set(
        xlabel=f"first principal component ({shares[0]:.0%} of the variance)",
        ylabel=f"second principal component ({shares[1]:.0%})",
        title="Embeddings of the tokens of a sentence, with their positions in brackets",
    )
    figure.legend(loc="outside lower center", ncols=2, frameon=False)
    return figure


# Masks (section 3.2.3).


def masks(padding_mask, tokens):
    """The padding mask of a batch, the causal mask, and both combined.

    Args:
        padding_mask: boolean (B, L), True = real token.
        tokens: B lists of L strings.

    Returns:
        A `Figure`: a row of pictures per sentence.
    """
    padding_mask = _array("padding_mask", padding_mask, "(B, L)").astype(bool)
    batch, length = padding_mask.shape
    causal = np.tril(np.ones((length, length), bool))
    size = 0.3 * length + 1.4
    figure, grid = _figure(3 * size, batch * size + 0.5, batch, 3)
    for row, mask, names in zip(grid, padding_mask, tokens, strict=True):
        keys = np.broadcast_to(mask, (length, length))
        for axes, allowed, title in zip(
            row, (keys, causal, keys & causal), ("padding mask", "causal mask", "both"), strict=True
        ):
            _heat_map(axes, allowed, 0, 1.25)
            axes.set_xticks(np.arange(length) - 0.5, minor=True)
            axes.set_yticks(np.arange(length) - 0.5, minor=True)
            axes.grid(which="minor", color="white", linewidth=1.5)
            axes.tick_params(which="both", length=0)
            _name_cells(axes, names, names, size=8)
            axes.set(xlabel="key", title=title)
        row[0].set_ylabel("query")
    figure.suptitle("Dark: the query may attend to the key")
    return figure


def masked_attention(before, after, query_tokens, key_tokens, mask_name="causal mask"):
    """The attention of one head without and with a mask. Rows add up to 1; masked scores are exactly 0.

    Args:
        before, after: (T, S), attention scores without and with the mask.
        query_tokens, key_tokens: T and S strings.
        mask_name: the name of the mask for the title. Defaults to `"causal mask"`.

    Returns:
        A `Figure`.
    """
    size = 0.42 * len(key_tokens) + 2
    figure, [row] = _figure(2 * size, 0.38 * len(query_tokens) + 2, 1, 2)
    for axes, scores, title in zip(row, (before, after), ("without a mask", f"with the {mask_name}"), strict=True):
        scores = _array("scores", scores, "(T, S)")
        _check_tokens(scores, query_tokens, key_tokens)
        image = _heat_map(axes, scores)
        if len(key_tokens) <= 16:
            for (i, j), value in np.ndenumerate(scores):
                colour = "white" if value > 0.6 else "black" if value else "#999999"
                axes.text(j, i, f"{value:.2f}"[1:] if 0 < value < 0.995 else f"{value:.0f}", ha="center", va="center",
                          fontsize=6, color=colour)  # fmt: skip
        _name_cells(axes, key_tokens, query_tokens)
        sums = axes.secondary_yaxis("right")
        sums.set_yticks(range(len(query_tokens)), [f"{total:.2f}" for total in scores.sum(axis=1)], fontsize=8)
        sums.tick_params(length=0)
        sums.set_ylabel("sum of the row")
        axes.set(xlabel="key", ylabel="query", title=title)
    figure.colorbar(image, ax=row, label="attention score", shrink=0.8)
    return figure


# Attention (section 3.2).


def attention_grid(scores, query_tokens, key_tokens, title):
    """The attention scores of every layer (rows) and head (columns).

    Args:
        scores: (layers, N, T, S).
        query_tokens, key_tokens: T and S strings.
        title: such as `"Cross-attention"`.

    Returns:
        A `Figure`.
    """
    scores = _array("scores", scores, "(layers, N, T, S)")
    _check_tokens(scores, query_tokens, key_tokens)
    layers, heads = scores.shape[:2]
    width, height = 0.16 * len(key_tokens) + 0.4, 0.16 * len(query_tokens) + 0.4
    figure, grid = _figure(max(6, heads * width + 2), layers * height + 1.6, layers, heads, sharex=True, sharey=True)
    for layer, head in np.ndindex(layers, heads):
        axes = grid[layer, head]
        image = _heat_map(axes, scores[layer, head])
        _name_cells(axes, key_tokens, query_tokens, size=6)
        if layer == 0:
            axes.set_title(f"head {head}", fontsize=9)
        if head == 0:
            axes.set_ylabel(f"layer {layer}", fontsize=9)
    figure.suptitle(title)
    figure.colorbar(image, ax=grid, label="attention score", shrink=0.6)
    return figure


def attention(scores, query_tokens, key_tokens, title, alignment=None):
    """The attention scores of one head, or the mean of several, in a large picture.

    Args:
        scores: (T, S).
        query_tokens, key_tokens: T and S strings.
        title: such as `"Cross-attention, layer 2, head 0"`.
        alignment: for each query the index of a key; that cell gets a frame. Defaults to None.

    Returns:
        A `Figure`.
    """
    scores = _array("scores", scores, "(T, S)")
    _check_tokens(scores, query_tokens, key_tokens)
    figure, [[axes]] = _figure(0.45 * len(key_tokens) + 3, 0.4 * len(query_tokens) + 2)
    image = _heat_map(axes, scores)
    _name_cells(axes, key_tokens, query_tokens, size=10)
    for query, key in enumerate(() if alignment is None else alignment):
        from matplotlib.patches import Rectangle

        axes.add_patch(Rectangle((key - 0.5, query - 0.5), 1, 1, fill=False, edgecolor=ORANGE, linewidth=2))
    axes.set(xlabel="key", ylabel="query", title=title)
    figure.colorbar(image, label="attention score", shrink=0.8)
    return figure


def token_attention(scores, query, key_tokens, title):
    """What one token looks at: its attention scores in every head, and their mean.

    Args:
        scores: (N, S), the row of that token in every head.
        query: the token.
        key_tokens: S strings.
        title: such as `"Cross-attention, layer 2"`.

    Returns:
        A `Figure`.
    """
    scores = _array("scores", scores, "(N, S)")
    figure, grid = _figure(0.45 * len(key_tokens) + 2.5, 0.8 * len(scores) + 2.2, len(scores) + 1, 1,
                           sharex=True, sharey=True)  # fmt: skip
    rows = [("mean", scores.mean(axis=0)), *((f"head {head}", row) for head, row in enumerate(scores))]
    for axes, (name, row) in zip(grid[:, 0], rows, strict=True):
        bars = axes.bar(range(len(key_tokens)), row, color=ORANGE if name == "mean" else BLUE)
        axes.bar_label(bars, [f"{value:.2f}"[1:] if 0.05 <= value < 0.995 else "" for value in row], fontsize=7)
        axes.set_ylabel(name, rotation=0, ha="right", va="center")
        axes.set(ylim=(0, 1.25), yticks=(0, 1))
        axes.spines[["top", "right"]].set_visible(False)
    grid[-1, 0].set_xticks(range(len(key_tokens)), _plain(key_tokens), rotation=90)
    grid[-1, 0].set_xlabel("key")
    figure.suptitle(f"{title}: what “{_plain([query])[0]}” looks at")
    return figure


# Training (sections 5.3 and 5.4) and search.


def learning_rate(rates, warmup_steps):
    """The learning rate along the optimizer steps.

    Args:
        rates: a dictionary of names and arrays, the rate of step 0, 1, 2, ...; or one array.
        warmup_steps: the step at which the rates are largest; it is marked.

    Returns:
        A `Figure`.
    """
    figure, [[axes]] = _figure(7, 3.6)
    rates = rates if isinstance(rates, dict) else {"": rates}
    for (name, values), (colour, stroke) in zip(rates.items(), itertools.cycle(STROKES)):
        axes.plot(_array(name, values, "(steps)"), stroke, color=colour, label=name)
    axes.axvline(warmup_steps, color=GREY, linewidth=0.8)
    axes.annotate(
        f"{warmup_steps:,} warm-up steps", (warmup_steps, 0), xytext=(4, 4), textcoords="offset points", color=GREY
    )
    axes.set(xlabel="optimizer step", ylabel="learning rate", title="Warm-up, then the inverse square root of the step")
    axes.set_ylim(bottom=0)
    if any(rates):
        axes.legend(frameon=False)
    return figure


def training_curves(log):
    """Loss, perplexity, accuracy and all other metrics of a training, each with its validation value.

    Args:
        log: a dictionary of names and numbers per epoch, such as `History.history` or the columns of a `log.csv`;
            `val_NAME` is drawn with NAME.

    Returns:
        A `Figure`.
    """
    log = {name: np.asarray(values, float) for name, values in log.items() if name != "epoch"}
    names = list(dict.fromkeys(name.removeprefix("val_") for name in log))
    if not names:
        raise ValueError("`log` must have the numbers of at least one loss or metric. Received: none.")
    columns = min(3, len(names))
    rows = -(-len(names) // columns)
    figure, grid = _figure(3.6 * columns, 3 * rows + 0.6, rows, columns)
    for axes in grid.flat[len(names) :]:
        axes.remove()
    for axes, name in zip(grid.flat, names, strict=False):
        for column, label, (colour, stroke) in zip(
            (name, f"val_{name}"), ("training", "validation"), STROKES, strict=False
        ):
            if column in log:
                epochs = np.arange(1, len(log[column]) + 1)
                axes.plot(epochs, log[column], stroke, color=colour, label=label)
                if len(epochs) == 1:
                    axes.plot(epochs, log[column], "o", color=colour)
        values = np.concatenate([log[c] for c in (name, f"val_{name}") if c in log])
        if name != "loss" and values.min() > 0 and values.max() / values.min() > 100:
            axes.set_yscale("log")
        axes.xaxis.get_major_locator().set_params(integer=True)
        axes.set(xlabel="epoch", title=name.replace("_", " "))
    handles, labels = next(
        ((h, t) for h, t in (axes.get_legend_handles_labels() for axes in figure.axes) if len(t) > 1), ([], [])
    )
    figure.legend(handles, labels, loc="outside lower center", ncols=2, frameon=False)
    return figure


def score_by_length(lengths, scores, counts, metric="BLEU", unit="words of the source"):
    """A corpus score for each group of sentences of similar length.

    Args:
        lengths: a name for each group, such as `"1-5"`.
        scores: the score of each group.
        counts: the number of sentences of each group.
        metric, unit: names for the axes.

    Returns:
        A `Figure`.
    """
    figure, [[axes]] = _figure(6.5, 3.6)
    bars = axes.bar(lengths, scores, color=BLUE)
    axes.bar_label(bars, [f"{score:.1f}\n({count:,})" for score, count in zip(scores, counts, strict=True)], fontsize=8)
    axes.set(xlabel=unit, ylabel=metric, title=f"{metric} by length (in brackets, the number of sentences)")
    axes.margins(y=0.2)
    axes.spines[["top", "right"]].set_visible(False)
    return figure


def quality_and_cost(rows):
    """BLEU and chrF of several models against the time of a sentence and against the size: one point per form.

    Args:
        rows: a list of dictionaries with `run` and `form`, names; `ms` and `bytes`; and `texts`, a dictionary whose
            first value has `bleu` and `chrf`.

    Returns:
        A `Figure`.

    Example:
        >>> scores = {"test": {"bleu": 40.0, "chrf": 65.0}}
        >>> rows = [{"run": "teacher", "form": "Python", "ms": 9.0, "bytes": 8e6, "texts": scores}]
        >>> [axes.get_ylabel() for axes in quality_and_cost(rows).axes]
        ['BLEU', 'BLEU', 'chrF', 'chrF']
    """
    runs, forms = (list(dict.fromkeys(row[key] for row in rows)) for key in ("run", "form"))
    colours = dict(zip(runs, itertools.cycle((BLUE, ORANGE, GREEN, PURPLE, GREY))))
    markers = dict(zip(forms, itertools.cycle("os^vDPX*")))
    figure, grid = _figure(9, 6, 2, 2, sharex="col", sharey="row")
    for line, (metric, name) in zip(grid, (("bleu", "BLEU"), ("chrf", "chrF")), strict=True):
        for axes, cost in zip(line, ("ms", "bytes"), strict=True):
            for row in rows:
                scores, x = next(iter(row["texts"].values())), row[cost] / (1e6 if cost == "bytes" else 1)
                axes.plot(x, scores[metric], markers[row["form"]], color=colours[row["run"]], markersize=7, alpha=0.8)
            axes.set(xscale="log", ylabel=name)
            axes.grid(alpha=0.3, which="both")
    grid[1][0].set_xlabel("milliseconds for one sentence")
    grid[1][1].set_xlabel("MB of model and tokenizers")
    for axes in grid[1]:  # Few round numbers; Matplotlib would write all digits of a decade, or powers of ten.
        low, high = axes.get_xlim()
        ticks = [digit * 10.0**power for power in range(-3, 6) for digit in (1, 2, 5)]
        axes.set_xticks([tick for tick in ticks if low <= tick <= high])
        axes.xaxis.set_major_formatter("{x:g}")
        axes.xaxis.set_minor_formatter("")
    for name in runs:
        figure.axes[0].plot([], [], "o", color=colours[name], label=name)
    for name in forms:
        figure.axes[0].plot([], [], markers[name], color=GREY, label=name)
    figure.legend(loc="outside lower center", ncols=3, frameon=False, fontsize=8)
    return figure


def label_smoothing(probabilities, targets, names, label_smoothing, top=8):
    """The target distribution of the loss and the distribution of the model, position by position.

    Args:
        probabilities: (T, V), the probabilities of the model.
        targets: T token ids, the right ones.
        names: V strings, the tokens.
        label_smoothing: e; the target distribution is 1 - e at the right token, plus e / V everywhere.
        top: the number of tokens per position: the most probable ones, and always the right one. Defaults to 8.

    Returns:
        A `Figure`: a picture per position.
    """
    probabilities = _array("probabilities", probabilities, "(T, V)")
    length, size = probabilities.shape
    figure, grid = _figure(2.4 * length + 1, 3.4, 1, length, sharex=True)
    for position, (axes, row, target) in enumerate(zip(grid[0], probabilities, targets, strict=True)):
        best = np.argsort(-row)[:top]
        best = best if target in best else np.append(best[:-1], target)
        smoothed = np.where(best == target, 1 - label_smoothing, 0) + label_smoothing / size
        places = np.arange(len(best))
        axes.barh(places - 0.2, smoothed, 0.4, color=ORANGE, label="smoothed target")
        axes.barh(places + 0.2, row[best], 0.4, color=BLUE, label="model")
        axes.set_yticks(places, _plain(names[i] for i in best))
        axes.invert_yaxis()
        axes.set(title=f"position {position}", xscale="log", xlim=(1e-6, 2), xlabel="probability (log scale)")
        axes.spines[["top", "right"]].set_visible(False)
    handles, labels = grid[0, 0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=2, frameon=False)
    figure.suptitle(f"Label smoothing of {label_smoothing:g}: target and prediction")
    return figure


def beam_tree(tokens, parents, totals, hypotheses):
    """The tree of a beam search: prefixes that were kept, prefixes that were given up, and finished hypotheses.

    Args:
        tokens: for each step the K tokens that the beams read; step 0 has only the start token.
        parents: for each step and beam, the beam of the previous step that it continues.
        totals: for each step and beam, the sum of log probabilities; `None` or -inf if the beam does not exist.
        hypotheses: the result, best first: the step of the last token before the end, its beam, and the score.

    Returns:
        A `Figure`.
    """
    steps, beams = len(tokens), max(map(len, tokens))
    parts = {
        (t, k)
        for t, row in enumerate(totals)
        for k, total in enumerate(row)
        if total is not None and np.isfinite(total)
    }
    on_best, alive = set(), set()
    for number, (step, beam, _) in enumerate(hypotheses):
        while step >= 0:
            alive.add((step, beam))
            if number == 0:
                on_best.add((step, beam))
            step, beam = step - 1, parents[step][beam] if step else 0
    figure, [[axes]] = _figure(max(7, 1.15 * (steps + 1)), 0.62 * (beams + len(hypotheses)) + 1.4)

    def edge(start, end, best):
        axes.plot(
            *zip(start, end, strict=True), color=ORANGE if best else "#AAAAAA", linewidth=2 if best else 0.9, zorder=1
        )

    def node(place, text, best, kept):
        box = {
            "boxstyle": "round,pad=0.25",
            "facecolor": "white",
            "edgecolor": ORANGE if best else BLUE if kept else "#AAAAAA",
            "linewidth": 2 if best else 1,
            "linestyle": "-" if kept else ":",
        }
        axes.text(
            *place, text, ha="center", va="center", fontsize=7, bbox=box, color="black" if kept else GREY, zorder=2
        )

    for t, k in sorted(parts):
        if t:
            parent = (t - 1, parents[t][k])
            edge(parent, (t, k), {(t, k), parent} <= on_best)
        node((t, k), f"{_plain(tokens[t])[k]}\n{totals[t][k]:.2f}", (t, k) in on_best, (t, k) in alive)
    for number, (step, beam, score) in enumerate(hypotheses):
        place = (step + 1, beams + 0.3 + number)
        edge((step, beam), place, number == 0)
        node(place, f"end, rank {number + 1}\n{score:.2f}", number == 0, True)
    axes.set(
        xlim=(-0.6, steps + 0.6),
        ylim=(beams + len(hypotheses), -0.7),
        xlabel="step",
        xticks=range(steps + 1),
        yticks=[],
    )
    axes.spines[["top", "right", "left"]].set_visible(False)
    axes.set_title(
        "Beam search: the best hypothesis (orange), others that ended (blue), prefixes given up (dotted)", fontsize=10
    )
    return figure
