"""The pictures show what they are given: the numbers in the figures are the arrays, and axes have names."""

import sys

import numpy as np
import pytest
from matplotlib import colormaps
from matplotlib.colors import to_rgb

from keras_transformer.layers.embeddings import positional_encoding, positional_rotation
from keras_transformer.pictures import canvas, figures
from keras_transformer.training.schedules import InverseSquareRootSchedule

TABLE = positional_encoding(13, 10)
WORDS = ["▁the", "▁cat", "s", "</s>"]
MONEY = ["$5", "$\\frac{$", "_$^$", "</s>"]  # No formulas.


def images(figure):
    return [np.asarray(axes.images[0].get_array()) for axes in figure.axes if axes.images]


def texts(axes):
    return [text.get_text() for text in axes.texts]


def random_scores(*shape):
    scores = np.random.default_rng(0).random(shape)
    return scores / scores.sum(axis=-1, keepdims=True)


def log(epochs):
    return {
        "epoch": range(epochs),
        "loss": np.arange(epochs) + 1.0,
        "val_loss": np.arange(epochs) + 2.0,
        "x": epochs * [3.0],
    }


FIGURES = {
    "positional_encoding": lambda: figures.positional_encoding(TABLE),
    "sinusoids": lambda: figures.sinusoids(TABLE),
    "cosine": lambda: figures.position_similarity(TABLE),
    "dot": lambda: figures.position_similarity(TABLE, "dot"),
    "layouts": lambda: figures.position_layouts({"interleaved": TABLE, "again": TABLE}),
    "rotation": lambda: figures.rotation(positional_rotation(2, 10), 2),
    "rings": lambda: figures.rings(TABLE, 3),
    "embeddings": lambda: figures.embeddings(WORDS, TABLE[:4], TABLE[4:8]),
    "masks": lambda: figures.masks([[True] * 4, [True] * 2 + [False] * 2], [WORDS, WORDS]),
    "masked_attention": lambda: figures.masked_attention(random_scores(4, 4), np.eye(4), WORDS, WORDS),
    "attention_grid": lambda: figures.attention_grid(random_scores(3, 2, 4, 4), WORDS, WORDS, "Cross-attention"),
    "attention": lambda: figures.attention(random_scores(4, 4), WORDS, WORDS, "Cross-attention", [0, 1, 1, 3]),
    "token_attention": lambda: figures.token_attention(random_scores(2, 4), "▁cat", WORDS, "Layer 1"),
    "learning_rate": lambda: figures.learning_rate({"a": np.arange(9.0), "b": np.arange(9.0) / 2}, 5),
    "training_curves": lambda: figures.training_curves(log(4)),
    "one epoch": lambda: figures.training_curves(log(1)),
    "score_by_length": lambda: figures.score_by_length(["1-5", "6-9"], [40.0, 38.5], [300, 20]),
    "money": lambda: figures.attention(random_scores(4, 4), MONEY, MONEY, "Cross-attention"),
    "money, moved": lambda: figures.embeddings(MONEY, TABLE[:4], TABLE[4:8]),
    "what money looks at": lambda: figures.token_attention(random_scores(2, 4), MONEY[1], MONEY, "Layer 1"),
    "money, smoothed": lambda: figures.label_smoothing(random_scores(2, 4), [1, 3], MONEY, 0.1),
    "label_smoothing": lambda: figures.label_smoothing(random_scores(2, 4), [1, 3], WORDS, 0.1, top=3),
    "beam_tree": lambda: figures.beam_tree(*BEAMS),
}
# Two beams: "a b" ends at step 3 with rank 1, "c" ends at step 2.
BEAMS = (
    [["<s>"], ["a", "c"], ["b", "d"]],
    [[0], [0, 0], [0, 1]],
    [[0.0], [-0.5, -1.0], [-0.6, -np.inf]],
    [(2, 0, -0.7), (1, 1, -1.5)],
)


@pytest.mark.parametrize("name", FIGURES)
def test_every_figure_is_drawn_and_its_axes_have_names(name, tmp_path):
    figure = FIGURES[name]()
    for suffix in ("png", "svg"):
        figure.savefig(tmp_path / f"figure.{suffix}")  # Warnings are errors: no letter is missing in the font.
    for axes in figure.axes:
        shared = [*axes.get_shared_x_axes().get_siblings(axes), *axes.get_shared_y_axes().get_siblings(axes)]
        named = any(other.get_xlabel() or other.get_ylabel() for other in {axes, *shared})
        assert named or figure.get_suptitle(), axes


def test_heat_maps_hold_the_arrays():
    np.testing.assert_array_equal(images(figures.positional_encoding(TABLE))[0], TABLE)
    matrix = positional_rotation(2, 10)
    np.testing.assert_array_equal(images(figures.rotation(matrix, 2))[0], matrix)
    scores = random_scores(3, 2, 4, 4)
    found = images(figures.attention_grid(scores, WORDS, WORDS, ""))
    np.testing.assert_array_equal(found, scores.reshape(6, 4, 4))
    figure = figures.attention(scores[0, 0], WORDS, WORDS, "", [2, 1, 1, 3])
    assert [label.get_text() for label in figure.axes[0].get_xticklabels()] == WORDS
    assert [patch.get_xy() for patch in figure.axes[0].patches] == [(1.5, -0.5), (0.5, 0.5), (0.5, 1.5), (2.5, 2.5)]


def test_lines_hold_the_columns_of_the_table():
    figure = figures.sinusoids(TABLE, [3, 8])
    np.testing.assert_array_equal([line.get_ydata() for line in figure.axes[0].lines], TABLE[:, [3, 8]].T)
    first, second = figure.axes[0].lines
    assert first.get_linestyle() != second.get_linestyle()
    assert first.get_color() != second.get_color()


def test_similarities_of_positions():
    similarity = images(figures.position_similarity(TABLE))[0]
    np.testing.assert_allclose(np.diag(similarity), 1)
    # sin^2 + cos^2: all rows have the length sqrt(D / 2), so the two kinds differ by D / 2.
    np.testing.assert_allclose(images(figures.position_similarity(TABLE, "dot"))[0], 5 * similarity, rtol=1e-5)
    # Only the offset matters.
    np.testing.assert_allclose(similarity[0, :5], similarity[7, 7:12], rtol=1e-5)


def test_rings_are_points_on_circles_and_the_animation_goes_through_all_positions(tmp_path):
    from PIL import Image

    figure = figures.rings(TABLE, 4)
    *_, points = figure.axes[0].lines
    pairs, cosine, sine = points.get_data_3d()
    np.testing.assert_array_equal(pairs, range(5))
    np.testing.assert_array_equal(np.stack([sine, cosine], axis=1).ravel(), TABLE[4])
    np.testing.assert_allclose(np.hypot(sine, cosine), 1, rtol=1e-6)
    figures.animate_rings(TABLE[:3]).save(tmp_path / "rings.gif", writer="pillow")
    with Image.open(tmp_path / "rings.gif") as gif:
        assert gif.n_frames == 3


def test_embeddings_are_moved_by_their_positions_along_the_components():
    rng = np.random.default_rng(0)
    before = rng.normal(size=(4, 10)) * np.array([9, 4] + [0.01] * 8)
    figure = figures.embeddings(WORDS, before, before + np.eye(10)[0])
    tokens, moved = (np.stack(line.get_data()) for line in figure.axes[0].lines)
    np.testing.assert_allclose(np.hypot(*(moved - tokens)), 1, atol=0.02)  # The plane holds both, whatever its axes.
    assert {"▁cat (1)", "</s> (3)"} <= set(texts(figure.axes[0]))


def test_masks_are_those_of_the_layers():
    from keras_transformer.layers import masks

    padding = np.array([[True, True, True], [True, False, False]])
    found = np.array(images(figures.masks(padding, [WORDS[:3]] * 2)))
    causal = np.asarray(masks.causal_mask(3))[0]
    both = np.asarray(masks.combine(padding, masks.causal_mask(3)))[:, 0]
    for row in (0, 1):
        np.testing.assert_array_equal(found[3 * row], np.broadcast_to(padding[row], (3, 3)))
        np.testing.assert_array_equal(found[3 * row + 1], causal)
        np.testing.assert_array_equal(found[3 * row + 2], both[row])


def test_sums_of_rows_stand_beside_the_scores():
    figure = figures.masked_attention(random_scores(4, 4), np.tri(4) / 2, WORDS, WORDS)
    sums = [axis for axes in figure.axes for axis in axes.child_axes]
    assert [[label.get_text() for label in axis.get_yticklabels()] for axis in sums] == [
        ["1.00"] * 4,
        ["0.50", "1.00", "1.50", "2.00"],
    ]


def test_weights_of_one_token_and_their_mean():
    scores = random_scores(2, 4)
    figure = figures.token_attention(scores, "▁cat", WORDS, "")
    heights = [[bar.get_height() for bar in axes.patches] for axes in figure.axes]
    np.testing.assert_allclose(heights, [scores.mean(axis=0), *scores])


def test_the_learning_rate_is_largest_where_the_mark_is():
    rates = np.asarray(InverseSquareRootSchedule(0.5, 7)(np.arange(20)))
    line, mark = figures.learning_rate(rates, 7).axes[0].lines
    assert line.get_ydata().argmax() + 1 == mark.get_xdata()[0] == 7


def test_curves_have_the_validation_beside_the_training():
    loss, x = figures.training_curves(log(4)).axes
    assert [line.get_label() for line in loss.lines] == ["training", "validation"]
    np.testing.assert_array_equal(loss.lines[1].get_ydata(), [2, 3, 4, 5])
    np.testing.assert_array_equal(loss.lines[1].get_xdata(), [1, 2, 3, 4])
    assert x.get_title() == "x"
    with pytest.raises(ValueError, match=r"at least one loss or metric. Received: none"):
        figures.training_curves({"epoch": [0, 1]})


def test_the_smoothed_target_and_the_model_for_the_right_token_and_the_most_probable():
    probabilities = np.array([[0.1, 0.2, 0.65, 0.05]])
    (axes,) = figures.label_smoothing(probabilities, [3], WORDS, 0.2, top=2).axes
    assert [label.get_text() for label in axes.get_yticklabels()] == ["s", "</s>"]
    target, model = ([bar.get_width() for bar in bars] for bars in axes.containers)
    np.testing.assert_allclose(target, [0.05, 0.85])
    np.testing.assert_allclose(model, [0.65, 0.05])


def test_the_beam_tree_shows_what_was_kept_and_what_ended():
    (axes,) = figures.beam_tree(*BEAMS).axes
    found = {text.get_text().split("\n")[0]: text for text in axes.texts}
    assert set(found) == {"<s>", "a", "c", "b", "end, rank 1", "end, rank 2"}  # "d" was impossible.
    orange = {
        name for name, text in found.items() if text.get_bbox_patch().get_edgecolor()[:3] == to_rgb(canvas.ORANGE)
    }
    assert orange == {"<s>", "a", "b", "end, rank 1"}
    assert len(axes.lines) == 5


@pytest.mark.parametrize(
    ("draw", "message"),
    [
        (
            lambda: figures.positional_encoding(TABLE[0]),
            r"`table` must have the shape \(L, D\). Received: shape \(10,\)",
        ),
        (lambda: figures.sinusoids(TABLE, [10]), r"columns of the table, 0 to 9. Received: \[10\]"),
        (lambda: figures.position_similarity(TABLE, "cos"), r"'cosine' or 'dot'. Received: 'cos'"),
        (lambda: figures.attention(np.eye(3), WORDS, WORDS, ""), r"scores of shape \(3, 3\), 4 and 4 tokens"),
        (
            lambda: figures.attention_grid(np.eye(4), WORDS, WORDS, ""),
            r"\(layers, N, T, S\). Received: shape \(4, 4\)",
        ),
    ],
)
def test_arrays_that_cannot_be(draw, message):
    with pytest.raises(ValueError, match=message):
        draw()


@pytest.mark.parametrize("name", [canvas.AMOUNTS, canvas.SIGNED])
def test_colours_can_be_read_in_grey(name):
    """Matplotlib's scales get darker, or lighter, all the way: printed in grey, more is still more."""
    lightness = colormaps[name](np.linspace(0, 1, 64))[:, :3] @ [0.2126, 0.7152, 0.0722]
    assert np.all(np.diff(lightness) < 0) or np.all(np.diff(lightness) > 0)


def test_without_matplotlib_it_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    with pytest.raises(ImportError, match=r"Matplotlib is not installed\. Try: pip install matplotlib"):
        figures.sinusoids(TABLE)
