"""Pictures of a run that was really trained, and the attention explorer in a real browser."""

import re

import matplotlib
import numpy as np
import pytest
from trainings import phrases

from keras_transformer.__main__ import main
from keras_transformer.data.corpora import DataError
from keras_transformer.layers.embeddings import positional_encoding
from keras_transformer.models.transformer import Transformer
from keras_transformer.pictures import drawing as pictures
from keras_transformer.pictures import figures
from keras_transformer.pictures.drawing import draw, explorer, read_attention, trace_beams
from keras_transformer.text.tokenizer import Tokenizer
from keras_transformer.translation.learning import learn_shortlist
from keras_transformer.translation.translator import Translator

pytestmark = pytest.mark.usefixtures("loaded_once")


@pytest.fixture
def small_pictures(monkeypatch):
    """Pictures at 30 dots per inch, and an animation of two positions: drawing all of them takes long."""
    monkeypatch.setitem(matplotlib.rcParams, "savefig.dpi", 30)
    animate = figures.animate_rings
    monkeypatch.setattr(figures, "animate_rings", lambda table: animate(table[:2]))


@pytest.fixture(scope="module")
def short(golden):
    """A translator of the golden run that writes three tokens: the search has few steps."""
    return Translator(golden.model, golden.tokenizer, max_target_length=3, jit_compile=False)


def test_the_command_draws_a_picture_of_every_part(golden, small_pictures, tmp_path, capsys):
    text = golden.texts[1]
    assert main(["plot", "all", str(golden.run_dir), "--text", text, "--output", str(tmp_path)]) == 0
    output = capsys.readouterr()
    written = sorted(path.name for path in tmp_path.iterdir())
    assert sorted(line.rsplit("/")[-1] for line in output.out.splitlines()) == written
    assert f"sentence: {text}" in output.err
    assert {"positional_encoding.png", "rings_animation.gif", "masks.png", "alignment.png", "beam_tree.png"} <= set(
        written
    )
    assert len(written) == 22


def test_without_a_run_it_draws_what_needs_none(small_pictures, tmp_path, capsys):
    assert main(["plot", "all", "--output", str(tmp_path / "new" / "folder"), "--format", "svg"]) == 0
    assert "left out, they need a trained run: embeddings, attention, curves, beam" in capsys.readouterr().err
    written = {path.name for path in (tmp_path / "new" / "folder").iterdir()}
    assert {"masks.svg", "learning_rate.svg", "rings_animation.gif"} <= written
    with pytest.raises(SystemExit) as end:
        main(["plot", "beam"])
    assert end.value.code == 2
    assert "Pictures of kind beam show a trained model. Received: no run." in capsys.readouterr().err
    with pytest.raises(ValueError, match=r"`kind` must be one of .*Received: 'mask'"):
        next(draw("mask"))


def test_sentences_are_from_the_test_set_in_the_target_language(two_way):
    translator = Translator.load(two_way.run_dir, jit_compile=False)
    for language, side in (("de", 0), ("en", 1)):
        translator.codec.target_language = language
        known = [(pair[side], pair[1 - side]) for pair in phrases()]
        assert set(pictures.example_sentences(translator, 3)) <= set(known)


def test_the_sentence_is_one_of_the_test_set(golden, tmp_path, capsys):
    main(["plot", "schedule", str(golden.run_dir), "--output", str(tmp_path)])
    (line,) = [line for line in capsys.readouterr().err.splitlines() if line.startswith("sentence: ")]
    assert line.removeprefix("sentence: ") in golden.texts


def test_scores_are_the_models_and_rows_add_up_to_one(golden):
    found = read_attention(golden.translator, golden.texts[0])
    attention = golden.translator.translate([golden.texts[0]], return_attention=True)[0].attention
    assert (found.source_tokens, found.target_tokens) == (attention.source_tokens, attention.target_tokens)
    np.testing.assert_allclose(found.cross, attention.scores, atol=1e-6)
    assert found.input_tokens == ["<s>", *found.target_tokens[:-1]]
    for scores in (found.encoder, found.decoder, found.cross):
        np.testing.assert_allclose(scores.sum(axis=-1), 1, atol=1e-5)
    assert not np.triu(found.decoder, 1).any()
    with pytest.raises(ValueError, match=r"must be a sentence to look at. Received: ''"):
        read_attention(golden.translator, "")


def test_the_picture_of_masked_attention_is_that_of_the_first_decoder_block(golden):
    figures = dict(draw("masks", golden.translator, golden.texts[0]))
    before, after = (np.asarray(axes.images[0].get_array()) for axes in figures["masked_attention"].axes[:2])
    found = read_attention(golden.translator, golden.texts[0]).decoder[0, 0]
    length = min(len(found), len(after))
    np.testing.assert_allclose(after[:length, :length], found[:length, :length], atol=1e-6)
    assert np.triu(before, 1).any()
    np.testing.assert_allclose(before.sum(axis=1), 1, atol=1e-5)


@pytest.mark.parametrize("scale_embeddings", [True, False])
def test_embeddings_differ_by_the_positions(golden, monkeypatch, scale_embeddings):
    sizes = {"num_layers": 1, "num_heads": 1, "hidden_dim": 8, "intermediate_dim": 8}
    model = Transformer(golden.tokenizer.vocabulary_size, **sizes, scale_embeddings=scale_embeddings)
    given = {}
    monkeypatch.setattr(figures, "embeddings", lambda *arrays: given.update(zip("tba", arrays, strict=True)))
    list(draw("embeddings", Translator(model, golden.tokenizer), golden.texts[0]))
    positions = positional_encoding(*given["b"].shape)
    np.testing.assert_allclose(given["a"] - given["b"], positions, atol=1e-5)


@pytest.mark.parametrize("num_beams", [1, 3])
def test_the_beam_tree_is_the_search(golden, num_beams):
    """Its hypotheses are the translator's; the sums along its edges are the log probabilities of their tokens."""
    text = "A dog that it has never seen."
    trace = trace_beams(golden.translator, text, num_beams)
    found = golden.translator.translate([text], num_beams, return_scores=True, num_beams=num_beams)
    found = found[0] if num_beams > 1 else found
    assert len(trace.hypotheses) == num_beams
    scores = golden.translator.score([text] * num_beams, [hypothesis.text for hypothesis in found])
    for (step, beam, score), hypothesis, scored in zip(trace.hypotheses, found, scores, strict=True):
        assert score == pytest.approx(hypothesis.score, abs=1e-5)
        total, tokens = trace.totals[step][beam], []
        while step:
            tokens.insert(0, trace.tokens[step][beam])
            step, beam = step - 1, trace.parents[step][beam]
        pieces = golden.tokenizer.pieces(hypothesis.token_ids)
        assert tokens == pieces[: len(tokens)]
        assert len(pieces) - len(tokens) in (0, 1)
        if scored.tokens[: len(tokens)] == tokens:  # A text may have more than one segmentation.
            assert total == pytest.approx(sum(scored.token_log_probs[: len(tokens)]), abs=1e-3)


def test_the_tree_of_a_run_with_a_shortlist_is_that_of_the_search_without(golden, short, monkeypatch):
    wanted = trace_beams(short, golden.texts[0], 2)
    monkeypatch.setattr(short, "settings", short.settings.replace(shortlist=50))
    monkeypatch.setattr(short, "shortlist", None)  # It is not kept.
    learn_shortlist(short, *map(list, zip(*phrases()[:4], strict=True)))
    assert trace_beams(short, golden.texts[0], 2) == wanted


def test_a_tree_ends_where_learned_positions_do():
    tokenizer = Tokenizer.train(["a small dog", "a big cat"] * 9, vocabulary_size=17)
    sizes = {"num_layers": 1, "num_heads": 1, "hidden_dim": 8, "intermediate_dim": 8}
    model = Transformer(17, **sizes, position_type="learned", max_length=9)
    assert len(trace_beams(Translator(model, tokenizer), "a dog", 2).tokens) <= 9


def test_hypotheses_that_end_at_their_limit_are_in_the_tree(golden, short):
    """Their last token is never read."""
    (found,) = short.translate(golden.texts[:1], num_hypotheses=2, num_beams=2, return_scores=True)
    hypotheses = trace_beams(short, golden.texts[0], 2).hypotheses
    assert [score for *_, score in hypotheses] == pytest.approx([hypothesis.score for hypothesis in found], abs=1e-5)


def test_bleu_by_length_counts_every_sentence_once(golden):
    figures = dict(draw("curves", golden.translator, golden.texts[0]))
    labels = [text.get_text() for text in figures["bleu_by_length"].axes[0].texts]
    assert sum(int(label.split("(")[1].rstrip(")")) for label in labels) == len(golden.texts)


def test_a_test_set_that_is_gone_leaves_the_other_curves(golden, monkeypatch, capsys):
    def gone(data, target_language):
        raise DataError("test.en is gone.")

    monkeypatch.setattr(pictures, "one_test_set", gone)
    assert [name for name, _ in draw("curves", golden.translator, golden.texts[0])] == [
        "training_curves",
        "label_smoothing",
    ]
    assert "left out, because the test set of the run cannot be read: test.en is gone." in capsys.readouterr().err


def test_explorer_shows_what_each_head_looks_at(golden, browser, tmp_path, capsys):
    page_file = tmp_path / "explorer.html"
    texts = ["--text", golden.texts[0], "--text", "< /script> & < b>"]
    assert main(["explore", str(golden.run_dir), *texts, "--output", str(page_file)]) == 0
    assert capsys.readouterr().out.strip() == str(page_file)
    found = read_attention(golden.translator, golden.texts[0])
    context = browser.new_context()
    page = context.new_page()
    asked, errors = [], []
    page.on("request", lambda request: asked.append(request.url))
    page.on("pageerror", lambda error: errors.append(error))
    page.goto(page_file.as_uri())

    def grid():
        rows = page.locator("#grid tbody tr").all()
        return np.array([[float(cell or 0) for cell in row.locator("td").all_inner_texts()] for row in rows])

    queries = page.locator("#queries button")
    assert queries.all_inner_texts() == found.target_tokens
    queries.nth(2).hover()
    np.testing.assert_allclose(grid(), found.cross[:, :, 2].reshape(4, -1), atol=0.0056)
    weights = [float(text) for text in page.locator("#keys small").all_inner_texts()]
    np.testing.assert_allclose(weights, found.cross[:, :, 2].mean(axis=(0, 1)), atol=0.0056)
    assert page.locator("#says").inner_text().startswith(f"“{found.target_tokens[2]}” looks at “")
    # Switches.
    page.select_option("#layer", "1")
    page.select_option("#head", "0")
    page.select_option("#kind", "decoder")
    queries.nth(3).click()
    page.mouse.move(0, 0)
    np.testing.assert_allclose(grid(), found.decoder[1, :1, 3], atol=0.0056)
    page.select_option("#kind", "encoder")
    page.select_option("#head", "all")
    np.testing.assert_allclose(grid(), found.encoder[1, :, 3], atol=0.0056)
    # By keyboard.
    queries.nth(0).focus()
    page.keyboard.press("ArrowRight")
    np.testing.assert_allclose(grid(), found.encoder[1, :, 1], atol=0.0056)
    page.select_option("#sentence", "1")
    assert page.locator("#translation").inner_text().startswith("< /script> & < b> → ")
    assert asked == [page_file.as_uri()]
    assert not errors
    context.close()


HOSTILE = "</title></h1><script>alert(1)</script>"
HOSTILE_TEXTS = [
    "<!-- <script> a dog",
    "</script><script>alert(1)</script>",
    "{{title}} \u2028 \\u003c & <img src=x onerror=alert(1)>",
]


def test_hostile_sentences_and_titles_are_text(golden, browser, tmp_path):
    """In the page, its options, tokens and title."""
    path, title = tmp_path / "explorer.html", "{{sentences}} SENTENCES " + HOSTILE
    path.write_text(explorer(golden.translator, [*HOSTILE_TEXTS, golden.texts[0]], title), encoding="utf-8")
    context = browser.new_context()
    page = context.new_page()
    asked, said = [], []
    page.on("request", lambda request: asked.append(request.url))
    page.on("pageerror", lambda error: said.append(error))
    page.on("console", lambda message: said.append(message.text))
    page.on("dialog", lambda dialog: (said.append(dialog.message), dialog.dismiss()))
    page.goto(path.as_uri())
    assert page.locator("#sentence option").all_text_contents() == [*HOSTILE_TEXTS, golden.texts[0]]
    for i, text in enumerate(HOSTILE_TEXTS):
        if i:  # The first one is shown at once.
            page.select_option("#sentence", str(i))
        assert page.locator("#translation").text_content().startswith(f"{text} → ")
        found = read_attention(golden.translator, text)
        assert page.locator("#queries button").all_text_contents() == found.target_tokens
    assert page.title() == page.locator("h1").text_content() == title
    page.select_option("#sentence", "3")
    page.locator("#queries button").nth(2).hover()
    assert page.locator("#grid tbody tr").count() == 4
    assert page.locator("script").count() == 2 and page.locator("img").count() == 0
    assert asked == [path.as_uri()] and said == []
    context.close()


@pytest.fixture(scope="module")
def html(golden):
    """An explorer of three sentences; the last one, and the title, are long."""
    return explorer(golden.translator, [*golden.texts[:2], "x" * 99], "Attention" * 9)


def test_the_explorers_policy_forbids_what_is_not_its_own(html, browser, tmp_path):
    path = tmp_path / "explorer.html"
    foreign = (
        '<script>document.title = "changed"</script><img src="x" onerror="document.title = 1"><h1 style="color: red">'
    )
    path.write_text(html.replace("<h1>", foreign, 1), encoding="utf-8")
    page = browser.new_page()
    page.goto(path.as_uri())
    assert page.title() == "Attention" * 9
    assert page.evaluate("getComputedStyle(document.querySelector('h1')).color") == "rgb(0, 0, 0)"
    assert page.locator("#queries button").count()
    refused = """() => new Promise((answer) => {
        document.addEventListener("securitypolicyviolation", (event) => answer(event.effectiveDirective));
        fetch("http://127.0.0.1:9/").catch(() => {});
    })"""
    assert page.evaluate(refused) == "connect-src"
    page.close()


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_explorer_can_be_read_on_every_shade(html, browser, tmp_path, scheme):
    """A contrast of 4.5 to 1 (WCAG 2.2, 1.4.3, with its relative luminance), and all content in a landmark."""
    path = tmp_path / "explorer.html"
    path.write_text(html, encoding="utf-8")
    page = browser.new_page(color_scheme=scheme)
    page.goto(path.as_uri())
    back, *cells = page.evaluate("""() => {
        const colours = (one) => [getComputedStyle(one).color, getComputedStyle(one).backgroundColor];
        const cell = document.querySelector("#grid td");
        const shaded = (weight) => { shade(cell, weight); return colours(cell); };
        return [colours(document.body), ...Array.from({ length: 201 }, (_, i) => shaded(i / 200))];
    }""")
    numbers = [[[float(x) for x in re.findall(r"[\d.]+", colour)] for colour in pair] for pair in (back, *cells)]

    def luminance(colour):
        linear = [x / 12.92 if x <= 0.04045 else ((x + 0.055) / 1.055) ** 2.4 for x in np.array(colour) / 255]
        return np.dot(linear, [0.2126, 0.7152, 0.0722]) + 0.05

    (_, page_colour), *pairs = numbers
    for text, (*shade, alpha) in [(text, colour if len(colour) == 4 else [*colour, 1]) for text, colour in pairs]:
        found = luminance(text), luminance(alpha * np.array(shade) + (1 - alpha) * np.array(page_colour))
        assert max(found) / min(found) >= 4.5
    assert page.locator("body > :not(main, script)").count() == 0
    page.close()


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_explorer_is_no_wider_than_a_phone(html, browser, tmp_path, scheme):
    path = tmp_path / "explorer.html"
    path.write_text(html, encoding="utf-8")
    context = browser.new_context(viewport={"width": 390, "height": 844}, color_scheme=scheme)
    page = context.new_page()
    page.goto(path.as_uri())
    for sentence in "02":
        page.select_option("#sentence", sentence)
        assert page.evaluate("document.documentElement.scrollWidth") == 390
    context.close()
