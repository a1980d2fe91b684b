"""Pictures of training (sections 5.3 and 5.4) and of the search: arrays in, a Matplotlib `Figure` out."""

import itertools
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from keras_transformer.pictures import canvas

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def learning_rate(rates: Mapping[str, np.ndarray] | np.ndarray, warmup_steps: int) -> "Figure":
    """The learning rate along the optimizer steps.

    Args:
        rates: a dictionary of names and arrays, the rate of step 0, 1, 2, ...; or one array.
        warmup_steps: the step at which the rates are largest; it is marked.
    """
    figure, axes = canvas.single(7, 3.6)
    named: Mapping = rates if isinstance(rates, Mapping) else {"": rates}
    for (name, values), (colour, stroke) in zip(named.items(), itertools.cycle(canvas.STROKES)):
        axes.plot(canvas.array(name, values, "(steps)"), stroke, color=colour, label=name)
    axes.axvline(warmup_steps, color=canvas.GREY, linewidth=0.8)
    mark = f"{warmup_steps:,} warm-up steps"
    axes.annotate(mark, (warmup_steps, 0), xytext=(4, 4), textcoords="offset points", color=canvas.GREY)
    axes.set(xlabel="optimizer step", ylabel="learning rate", title="Linear warm-up, then decay")
    axes.set_ylim(bottom=0)
    if any(named):
        axes.legend(frameon=False)
    return figure


def training_curves(log: Mapping[str, Any]) -> "Figure":
    """Loss, perplexity, accuracy and all other metrics of a training, each with its validation value.

    Args:
        log: a dictionary of names and numbers per epoch, such as `History.history` or the columns of a `log.csv`;
            `val_NAME` is drawn with NAME.
    """
    log = {name: np.asarray(values, float) for name, values in log.items() if name != "epoch"}
    names = list(dict.fromkeys(name.removeprefix("val_") for name in log))
    if not names:
        raise ValueError("`log` must have the numbers of at least one loss or metric. Received: none.")
    columns = min(3, len(names))
    rows = -(-len(names) // columns)
    figure, grid = canvas.grid(3.6 * columns, 3 * rows + 0.6, rows, columns)
    for axes in grid.flat[len(names) :]:
        axes.remove()
    for axes, name in zip(grid.flat, names, strict=False):
        curves = {"training": log.get(name), "validation": log.get(f"val_{name}")}
        for (label, values), (colour, stroke) in zip(curves.items(), canvas.STROKES, strict=False):
            if values is not None:
                epochs = np.arange(1, len(values) + 1)
                axes.plot(epochs, values, stroke, color=colour, label=label)
                if len(epochs) == 1:
                    axes.plot(epochs, values, "o", color=colour)
        values = np.concatenate([values for values in curves.values() if values is not None])
        if name != "loss" and values.min() > 0 and values.max() / values.min() > 100:
            axes.set_yscale("log")
        axes.xaxis.get_major_locator().set_params(integer=True)
        axes.set(xlabel="epoch", title=name.replace("_", " "))
    legends = (axes.get_legend_handles_labels() for axes in figure.axes)
    figure.legend(*next((legend for legend in legends if len(legend[1]) > 1), ([], [])), **canvas.LEGEND_BELOW, ncols=2)
    return figure


def score_by_length(
    lengths: Sequence[str],
    scores: Sequence[float],
    counts: Sequence[int],
    metric: str = "BLEU",
    unit: str = "words of the source",
) -> "Figure":
    """A corpus score for each group of sentences of similar length.

    Args:
        lengths: a name for each group, such as `"1-5"`.
        scores: the score of each group.
        counts: the number of sentences of each group.
        metric, unit: names for the axes.
    """
    figure, axes = canvas.single(6.5, 3.6)
    bars = axes.bar(lengths, scores, color=canvas.BLUE)
    axes.bar_label(bars, [f"{score:.1f}\n({count:,})" for score, count in zip(scores, counts, strict=True)], fontsize=8)
    axes.set(xlabel=unit, ylabel=metric, title=f"{metric} by length (in brackets, the number of sentences)")
    axes.margins(y=0.2)
    canvas.open_frame(axes)
    return figure


def quality_and_cost(rows: Sequence[Mapping[str, Any]]) -> "Figure":
    """BLEU and chrF of several models against the time of a sentence and against the size: one point per form.

    Args:
        rows: dictionaries with `run` and `form`, names; `ms` and `bytes`; and `texts`, a dictionary whose first value
            has `bleu` and `chrf`.

    Example:
        >>> scores = {"test": {"bleu": 40.0, "chrf": 65.0}}
        >>> rows = [{"run": "teacher", "form": "Python", "ms": 9.0, "bytes": 8e6, "texts": scores}]
        >>> [axes.get_ylabel() for axes in quality_and_cost(rows).axes]
        ['BLEU', 'BLEU', 'chrF', 'chrF']
    """
    runs, forms = (list(dict.fromkeys(row[key] for row in rows)) for key in ("run", "form"))
    colours = dict(zip(runs, itertools.cycle((canvas.BLUE, canvas.ORANGE, canvas.GREEN, canvas.PURPLE, canvas.GREY))))
    markers = dict(zip(forms, itertools.cycle("os^vDPX*")))
    figure, grid = canvas.grid(9, 6, 2, 2, sharex="col", sharey="row")
    for line, (metric, name) in zip(grid, (("bleu", "BLEU"), ("chrf", "chrF")), strict=True):
        for axes, (cost, unit) in zip(line, (("ms", 1), ("bytes", 1e6)), strict=True):
            for row in rows:
                scores, style = next(iter(row["texts"].values())), {"markersize": 7, "alpha": 0.8}
                marker, colour = markers[row["form"]], colours[row["run"]]
                axes.plot(row[cost] / unit, scores[metric], marker, color=colour, **style)
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
    legend = [(name, "o", colours[name]) for name in runs] + [(name, markers[name], canvas.GREY) for name in forms]
    for name, marker, colour in legend:
        grid[0][0].plot([], [], marker, color=colour, label=name)
    figure.legend(**canvas.LEGEND_BELOW, ncols=3, fontsize=8)
    return figure


def label_smoothing(
    probabilities: np.ndarray, targets: Sequence[int], names: Sequence[str], label_smoothing: float, top: int = 8
) -> "Figure":
    """The target distribution of the loss and the distribution of the model: a picture per position.

    Args:
        probabilities: (T, V), the probabilities of the model.
        targets: T token ids, the right ones.
        names: V strings, the tokens.
        label_smoothing: e; the target distribution is 1 - e at the right token, plus e / V everywhere.
        top: the number of tokens per position: the most probable ones, and always the right one. Defaults to 8.
    """
    probabilities = canvas.array("probabilities", probabilities, "(T, V)")
    length, size = probabilities.shape
    figure, grid = canvas.grid(2.4 * length + 1, 3.4, 1, length, sharex=True)
    for position, (axes, row, target) in enumerate(zip(grid[0], probabilities, targets, strict=True)):
        best = np.argsort(-row)[:top]
        best = best if target in best else np.append(best[:-1], target)
        smoothed = np.where(best == target, 1 - label_smoothing, 0) + label_smoothing / size
        places = np.arange(len(best))
        axes.barh(places - 0.2, smoothed, 0.4, color=canvas.ORANGE, label="smoothed target")
        axes.barh(places + 0.2, row[best], 0.4, color=canvas.BLUE, label="model")
        axes.set_yticks(places, canvas.plain(names[i] for i in best))
        axes.invert_yaxis()
        axes.set(title=f"position {position}", xscale="log", xlim=(1e-6, 2), xlabel="probability (log scale)")
        canvas.open_frame(axes)
    figure.legend(*grid[0, 0].get_legend_handles_labels(), **canvas.LEGEND_BELOW, ncols=2)
    figure.suptitle(f"Label smoothing of {label_smoothing:g}: target and prediction")
    return figure


def beam_tree(
    tokens: Sequence[Sequence[str]],
    parents: Sequence[Sequence[int]],
    totals: Sequence[Sequence[float | None]],
    hypotheses: Sequence[tuple[int, int, float]],
) -> "Figure":
    """The tree of a beam search: prefixes that were kept, prefixes that were given up, and finished hypotheses.

    Args:
        tokens: for each step the K tokens that the beams read; step 0 has only the start token.
        parents: for each step and beam, the beam of the previous step that it continues.
        totals: for each step and beam, the sum of log probabilities; `None` or -inf if the beam does not exist.
        hypotheses: the result, best first: the step of the last token before the end, its beam, and the score.
    """
    steps, beams = len(tokens), max(map(len, tokens))
    figure, axes = canvas.single(max(7, 1.15 * (steps + 1)), 0.62 * (beams + len(hypotheses)) + 1.4)
    paths = [_path(parents, step, beam) for step, beam, _ in hypotheses]
    best, kept = paths[0] if paths else set(), set().union(*paths)
    for step, row in enumerate(totals):
        for beam, total in enumerate(row):
            if total is None or not np.isfinite(total):
                continue
            node = step, beam
            if step:
                parent = step - 1, parents[step][beam]
                _edge(axes, parent, node, {node, parent} <= best)
            _node(axes, node, f"{canvas.plain(tokens[step])[beam]}\n{total:.2f}", node in best, node in kept)
    for number, (step, beam, score) in enumerate(hypotheses):
        end = step + 1, beams + 0.3 + number
        _edge(axes, (step, beam), end, number == 0)
        _node(axes, end, f"end, rank {number + 1}\n{score:.2f}", number == 0, True)
    axes.set(xlim=(-0.6, steps + 0.6), ylim=(beams + len(hypotheses), -0.7), xlabel="step")
    axes.set(xticks=range(steps + 1), yticks=[])
    axes.spines[["top", "right", "left"]].set_visible(False)
    title = "Beam search: the best hypothesis (orange), others that ended (blue), prefixes given up (dotted)"
    axes.set_title(title, fontsize=10)
    return figure


def _path(parents, step, beam):
    """The steps and beams of a prefix, from its last token to the start token."""
    path = {(step, beam)}
    for before in range(step, 0, -1):
        beam = parents[before][beam]
        path.add((before - 1, beam))
    return path


def _edge(axes, start, end, best):
    colour, width = (canvas.ORANGE, 2) if best else (canvas.LIGHT_GREY, 0.9)
    axes.plot(*zip(start, end, strict=True), color=colour, linewidth=width, zorder=1)


def _node(axes, place, text, best, kept):
    box = {
        "boxstyle": "round,pad=0.25",
        "facecolor": "white",
        "edgecolor": canvas.ORANGE if best else canvas.BLUE if kept else canvas.LIGHT_GREY,
        "linewidth": 2 if best else 1,
        "linestyle": "-" if kept else ":",
    }
    axes.text(*place, text, **canvas.CENTRED, fontsize=7, bbox=box, color="black" if kept else canvas.GREY, zorder=2)
