"""The explainer, a page of an exported site: heads off, words hidden, positions moved; in a browser as in Python."""

import json
import re
import shutil
from urllib.parse import urlencode

import keras
import numpy as np
import pytest
from ai_edge_litert.interpreter import Interpreter
from exports import LENGTH, assert_accessible

from keras_transformer.export.tflite import device_functions, export_tflite
from keras_transformer.export.web import POLICY
from keras_transformer.models.transformer import Transformer
from keras_transformer.search.search import placeholders_of, search
from keras_transformer.text.special_ids import END_TOKEN_ID, START_TOKEN_ID, shifted_right
from keras_transformer.text.tokenizer import Tokenizer
from keras_transformer.translation.translator import Translator

# The graphs.

S, L, N, V, LAYERS, DECODER_LAYERS = 7, 5, 3, 17, 2, 1
SOURCE = np.array([[11, 5, 9, 7, 13, END_TOKEN_ID, 0]], "int32")
TARGET = np.array([[8, 15, 6, END_TOKEN_ID, 0]], "int32")
MODELS = {
    "pre-norm, untied": {"normalize_first": True, "tie_embeddings": "none"},
    "post-norm, positions from 2": {"first_position": 2, "tie_embeddings": "target", "output_bias": True},
    "learned positions": {"position_type": "learned", "max_length": 13},
    "language tags": {"source_language_token_id": 10, "layout": "concatenated", "normalize_first": True},
}


def random_model(**settings):
    sizes = {"num_layers": LAYERS, "num_decoder_layers": DECODER_LAYERS, "hidden_dim": 4 * N, "intermediate_dim": 11}
    model = Transformer(V, num_heads=N, **sizes, **settings)
    rng = np.random.default_rng(1)
    model.set_weights([rng.normal(scale=0.9, size=weight.shape) for weight in model.weights])
    return model


class Explained:
    """The functions of the signatures of a model, and what they find for `SOURCE` and `TARGET`."""

    def __init__(self, settings):
        tokenizer = Tokenizer.train(["a small dog", "a small cat", "a big dog"] * 9, vocabulary_size=V)
        self.settings, self.translator = settings, Translator(random_model(**settings), tokenizer)
        self.forbidden = self.translator.settings.forbidden
        self.functions = device_functions(self.translator, self.translator.settings, S, L, [], explain=True)

    def __call__(self, heads=None, positions=range(S), target_positions=range(L), source=SOURCE):
        """Log probabilities (L, V), and the attention scores of encoder, decoder and cross-attention, in layers."""
        heads = all_on() if heads is None else heads
        positions = np.array([positions], "int32")
        encoded = {**self.functions["explain_encode"](source, heads["encoder"], positions)}
        scores = {"encoder": encoded.pop("encoder_scores").numpy(), "decoder": [], "cross": []}
        cross = [encoded[name] for name in ("cross_keys", "cross_values", "cross_bias")]
        rows = DECODER_LAYERS * N
        keys, values, log_probs = np.zeros((rows, 4, L), "float32"), np.zeros((rows, L, 4), "float32"), []
        of_decoder = np.stack([heads["decoder"], heads["cross"]])
        for index, token in enumerate(shifted_right(TARGET)[0].numpy().tolist()):
            step = np.array([token], "int32"), np.array([index], "int32"), keys, values, *cross
            place = np.array([[target_positions[index]]], "int32")
            found = self.functions["explain_step"](*step, of_decoder, place)
            keys, values = found["next_self_keys"], found["next_self_values"]
            log_probs.append(found["log_probs"][0])
            scores["decoder"].append(found["self_scores"])
            scores["cross"].append(found["cross_scores"])
        for kind in ("decoder", "cross"):
            scores[kind] = np.stack(scores[kind], axis=2)
        return np.array(log_probs), scores


def all_on():
    layers = {"encoder": LAYERS, "decoder": DECODER_LAYERS, "cross": DECODER_LAYERS}
    return {kind: np.ones((number, N), "float32") for kind, number in layers.items()}


@pytest.fixture(scope="module", params=MODELS.values(), ids=MODELS)
def explained(request):
    return Explained(request.param)


def assert_as_model(explained, found, model, source=SOURCE):
    """What was found is the full forward pass of a model."""
    log_probs, scores = found
    decoder_token_ids = np.array(shifted_right(TARGET))
    logits = model({"encoder_token_ids": source, "decoder_token_ids": decoder_token_ids})
    count = 1 + TARGET[0].tolist().index(END_TOKEN_ID)  # Padding follows.
    wanted = keras.ops.log_softmax(logits)[0, :count].numpy()
    allowed = [i for i in range(V) if i not in explained.forbidden]
    np.testing.assert_allclose(log_probs[:count, allowed], wanted[:, allowed], atol=1e-4)
    assert log_probs[:, explained.forbidden].max() < -1e8
    wanted = model.attention_scores(source, decoder_token_ids)
    columns = {"encoder": S, "decoder": count, "cross": S}
    rows = {"encoder": S, "decoder": count, "cross": count}
    for kind, of_kind in wanted._asdict().items():
        one, other = scores[kind], np.stack([layer[0] for layer in of_kind])
        one, other = (x[:, :, : rows[kind], : columns[kind]] for x in (one, other))
        if kind == "encoder":  # What padding looks at is nothing.
            keep = source[0] != 0
            one, other = one[:, :, keep], other[:, :, keep]
        np.testing.assert_allclose(one, other, atol=1e-5)


def test_without_changes_it_is_the_model(explained):
    assert_as_model(explained, explained(), random_model(**explained.settings))


@pytest.mark.parametrize("kind", ["encoder", "decoder", "cross"])
def test_a_head_that_is_off_is_one_whose_output_projection_is_zero(explained, kind):
    heads, model = all_on(), random_model(**explained.settings)
    layer, head = len(heads[kind]) - 1, 1
    heads[kind][layer, head] = 0
    block = (model.encoder_blocks if kind == "encoder" else model.decoder_blocks)[layer]
    kernel = (block.cross_attention if kind == "cross" else block.self_attention).output_dense.kernel
    rows = np.arange(N * 4) // 4 == head
    kernel.assign(np.where(rows[:, None], 0, kernel))
    found = explained(heads)
    assert_as_model(explained, found, model)
    assert np.abs(found[0] - explained()[0]).max() > 1e-3


def test_a_hidden_word_is_not_there(explained):
    """Whatever the word: padding in the middle of the ids is seen by no attention."""
    source = SOURCE.copy()
    source[0, 2] = 0
    found = explained(source=source)
    assert_as_model(explained, found, random_model(**explained.settings), source)
    assert found[1]["encoder"][:, :, :, 2].max() == found[1]["cross"][:, :, :, 2].max() == 0
    # It is the sentence without the word, in which the later words keep their positions.
    shorter, places = [*source[0, :2], *source[0, 3:], 0], [0, 1, 3, 4, 5, 6, 2]
    np.testing.assert_allclose(found[0], explained(source=np.array([shorter]), positions=places)[0], atol=1e-4)


def test_moved_words_are_words_at_other_places(explained):
    """Without positions, attention does not know the order of words. So it is enough that both move."""
    order = [0, 3, 1, 4, 2, 5, 6]  # The first may be replaced by the token of a language.
    found = explained(source=SOURCE[:, order], positions=order)
    wanted, in_order = explained(), explained(positions=order)
    np.testing.assert_allclose(found[0], wanted[0], atol=1e-4)
    np.testing.assert_allclose(found[1]["cross"], wanted[1]["cross"][..., order], atol=1e-4)
    assert np.abs(in_order[0] - wanted[0]).max() > 1e-3


def test_target_positions_move_as_the_table_does(explained):
    log_probs, _ = explained(target_positions=range(2, L + 2))
    model, moved = (random_model(**explained.settings) for _ in range(2))
    table = moved.decoder_embedding
    if table.position_type == "learned":
        table.position_table.assign(np.roll(table.position_table, -2, axis=0))
    table.first_position += 2
    cross, cache = model.init_cross_cache(*model.encode(SOURCE)), moved.init_cache(1)
    allowed = [i for i in range(V) if i not in explained.forbidden]
    for index, token in enumerate(shifted_right(TARGET)[0]):
        logits, cache = moved.decode_step(token[None], cache, index, cross)
        wanted = keras.ops.log_softmax(logits)[0].numpy()
        np.testing.assert_allclose(log_probs[index, allowed], wanted[allowed], atol=1e-4)


@pytest.mark.parametrize("factor", [1, 0])
def test_the_file_of_a_page_has_the_signatures(golden, tflite, factor):
    interpreter = Interpreter(str(tflite / "float32" / "translator.tflite"))
    encode, explain_encode, explain_step = (
        interpreter.get_signature_runner(name) for name in ("encode", "explain_encode", "explain_step")
    )
    shapes = {name: detail["shape"] for name, detail in explain_step.get_input_details().items()}
    ids, start = np.zeros((1, LENGTH), "int32"), np.array([[START_TOKEN_ID]], "int32")
    source = golden.translator.codec.source_ids(golden.texts[:1])[0]
    ids[0, : len(source)] = source
    of_encoder, of_decoder = np.ones(shapes["heads"][1:], "float32"), np.ones(shapes["heads"], "float32")
    of_encoder[0, 1] = of_decoder[1, 0, 1] = factor
    model = Translator.load(golden.run_dir, jit_compile=False).model
    for layer in model.encoder_blocks[0].self_attention, model.decoder_blocks[0].cross_attention:
        kernel = np.array(layer.output_dense.kernel)
        kernel[layer.key_dim : 2 * layer.key_dim] *= factor
        layer.output_dense.kernel.assign(kernel)

    found = explain_encode(token_ids=ids, heads=of_encoder, positions=np.arange(LENGTH, dtype="int32")[None])
    encoder_scores = found.pop("encoder_scores")
    if factor == 1:
        for name, array in encode(token_ids=ids).items():
            np.testing.assert_allclose(found[name], array, atol=1e-5)
    inputs = {f"{name}_in": array for name, array in found.items()}
    inputs |= {name: np.zeros(shapes[name], "float32") for name in ("self_keys", "self_values")}
    places = {"position": np.array([0], "int32"), "positions": np.array([[0]], "int32")}
    outputs = explain_step(token=start[0], heads=of_decoder, **places, **inputs)
    logits = model({"encoder_token_ids": ids, "decoder_token_ids": start})
    allowed = outputs["log_probs"][0] > -1e8
    assert allowed.sum() == len(allowed) - len(golden.translator.settings.forbidden)
    wanted = keras.ops.log_softmax(logits)[0, 0].numpy()
    np.testing.assert_allclose(outputs["log_probs"][0, allowed], wanted[allowed], atol=1e-3)
    scores = model.attention_scores(ids, start)
    rows = slice(len(source))  # What padding looks at is nothing.
    np.testing.assert_allclose(encoder_scores[:, :, rows], np.concatenate(scores.encoder)[:, :, rows], atol=1e-4)
    np.testing.assert_allclose(outputs["cross_scores"][:, :, None], np.concatenate(scores.cross), atol=1e-4)


def test_the_file_of_a_device_does_without_them(explained):
    translator = explained.translator
    names = device_functions(translator, translator.settings, S, L, []).keys()
    assert set(explained.functions) - set(names) == {"explain_encode", "explain_step"}


# The search in the browser.


@pytest.fixture
def explain(shared):
    """`explain(text, **changes)` is what the library says."""
    yield lambda text, **changes: shared.evaluate("(all) => translator.explain(...all)", [text, changes])
    assert shared.errors == []


@pytest.mark.parametrize(
    "settings", [{}, {"num_beams": 1}, {"num_beams": 7}, {"length_penalty": -1.5}, {"length_penalty": 4.0}]
)
def test_a_search_without_changes_is_that_of_python(golden, explain, settings):
    k = settings.get("num_beams", 4)
    names = {"num_beams": "numBeams", "length_penalty": "lengthPenalty"}
    texts, limit = [*golden.texts[:9], "{x} und 5 kg", f"{golden.texts[0]} {{name}}"], {"max_target_length": 2 * LENGTH}
    wanted = golden.translator.translate(texts, num_hypotheses=k, return_scores=True, **limit, **settings)
    for text, hypotheses in zip(texts, wanted, strict=True):
        found = explain(text, **{names[name]: value for name, value in settings.items()})
        hypotheses = hypotheses if k > 1 else [hypotheses]
        assert [one["text"] for one in found["hypotheses"]] == [one.text for one in hypotheses]
        scores = [one["score"] for one in found["hypotheses"]]
        assert scores == pytest.approx([one.score for one in hypotheses], abs=2e-3)


@pytest.mark.parametrize("kind", ["encoder", "decoder", "cross"])
def test_attention_is_that_of_python_and_a_row_adds_up_to_1(golden, explain, kind):
    found = explain(golden.texts[0])
    ids = np.array(golden.translator.codec.source_ids(golden.texts[:1]))
    best = golden.translator.translate(golden.texts[:1], return_scores=True)[0]
    scores = golden.model.attention_scores(ids, np.array([[START_TOKEN_ID, *best.token_ids[:-1]]]))
    wanted = np.concatenate(getattr(scores, kind))
    rows = found["attention"][kind]
    assert [len(rows), len(rows[0])] == found["heads"][kind] == list(wanted.shape[:2])
    for layer, heads in enumerate(rows):
        for head, of_head in enumerate(heads):
            for t, row in enumerate(of_head):
                assert sum(row) == pytest.approx(1, abs=1e-4)
                assert row == pytest.approx(wanted[layer, head, t, : len(row)], abs=2e-3)


def changed_in_python(golden, heads=(), hidden=()):
    """The best hypothesis of the first text if the output projection is zero for some heads of cross-attention."""
    translator = Translator.load(golden.run_dir, jit_compile=False)
    for layer, head in heads:
        attention = translator.model.decoder_blocks[layer].cross_attention
        kernel = np.array(attention.output_dense.kernel)
        kernel[head * attention.key_dim : (head + 1) * attention.key_dim] = 0
        attention.output_dense.kernel.assign(kernel)
    ids = np.array(translator.codec.source_ids(golden.texts[:1]), "int32")
    limits = translator.settings.limits(np.array([ids.shape[1]]))
    ids[0, list(hidden)] = 0
    vocabulary = translator.search.vocabulary(None)
    required = placeholders_of(ids, vocabulary.num_placeholders)
    found = search(
        translator.model, ids, limits, int(limits[0]), translator.settings, required=required, vocabulary=vocabulary
    )
    token_ids = [i for i in np.array(found.token_ids)[0, 0].tolist() if i]
    return translator.target_tokenizer.detokenize([token_ids])[0], float(found.scores[0, 0])


@pytest.mark.parametrize(("heads", "hidden"), [([(0, 1)], []), ([(0, 0), (1, 1)], []), ([], [3]), ([(1, 0)], [1, 2])])
def test_a_changed_search_is_that_of_a_changed_model(golden, explain, heads, hidden):
    found = explain(golden.texts[0], off=[["cross", *one] for one in heads], hidden=hidden)["hypotheses"][0]
    text, score = changed_in_python(golden, heads, hidden)
    assert (found["text"], found["score"]) == (text, pytest.approx(score, abs=2e-3))


def test_positions_change_the_search(golden, explain):
    one, same, moved, shifted = (
        explain(golden.texts[0], **changes)
        for changes in ({}, {"positions": {"2": 2}}, {"positions": {"2": 5, "5": 2}}, {"shift": 3})
    )
    assert same["hypotheses"] == one["hypotheses"]
    assert len({found["hypotheses"][0]["score"] for found in (one, moved, shifted)}) == 3
    assert moved["attention"]["encoder"] != shifted["attention"]["encoder"] == one["attention"]["encoder"]


def test_the_steps_tell_how_the_best_hypothesis_came_about(golden, explain):
    found = explain(golden.texts[1], numBeams=3)
    path = [one for step in found["steps"] for one in [*step["live"], *step["ended"]] if one["best"]]
    assert [one["token"] for one in path] == found["hypotheses"][0]["tokens"]
    for step, one, before in zip(found["steps"][1:], path[1:], path, strict=False):
        assert found["steps"][found["steps"].index(step) - 1]["live"][one["parent"]] == before
    assert path[-1]["logProb"] == found["hypotheses"][0]["logProb"]
    assert all(len(step["live"]) <= 3 for step in found["steps"])
    assert explain("  ")["hypotheses"] == []


def test_a_search_can_be_aborted(golden, shared):
    code = """async (text) => {
        const controller = new AbortController();
        const found = translator.explain(text, {}, { signal: controller.signal }).catch((error) => error.name);
        controller.abort(); // At once: on a fast machine, a search may need less than any timer.
        return [await found, (await translator.explain(text, { numBeams: 1 })).hypotheses.length];
    }"""
    assert shared.evaluate(code, golden.texts[0]) == ["AbortError", 1]


# Settings of a search, tags and learned positions, with a model of random weights.


def test_settings_and_tags_are_those_of_the_export(site, opened, tmp_path):
    texts = ["a small dog", "a small cat", "a big dog", "big cats"] * 9
    tokenizer = Tokenizer.train(texts, 22, languages=["de", "fr"], num_placeholders=2)
    model = Transformer(
        tokenizer.vocabulary_size,
        num_layers=1,
        num_heads=2,
        hidden_dim=8,
        intermediate_dim=11,
        max_length=16,
        position_type="learned",
        source_language_token_id=tokenizer.languages["fr"],
    )
    rng = np.random.default_rng(5)
    model.set_weights([rng.normal(size=weight.shape) for weight in model.weights])
    settings = {"num_beams": 3, "no_repeat_ngram_size": 2, "min_length": 4, "repetition_penalty": 1.2}
    settings |= {"length_penalty_type": "power", "length_penalty": 0.7}
    translator = Translator(model, tokenizer, max_source_length=12, target_language="de", jit_compile=False, **settings)
    folder = shutil.copytree(site, tmp_path / "site")
    shutil.rmtree(folder / "models" / "float32")
    export_tflite(translator, folder / "models" / "float32", source_length=12, target_length=14, explain=True)
    page = opened(folder)
    page.wait_for_selector("#translate:enabled")
    sources = ["a small dog", "big cats {x}", "a"]
    wanted = translator.translate(sources, return_scores=True, num_hypotheses=3, max_target_length=14)
    for text, hypotheses in zip(sources, wanted, strict=True):
        found = page.evaluate("(text) => translator.explain(text, {}, { targetLanguage: 'de' })", text)
        assert found["source"][0] == ">>de<<" and found["tags"] == 1
        assert [one["text"] for one in found["hypotheses"]] == [one.text for one in hypotheses]
        scores = [one["score"] for one in found["hypotheses"]]
        assert scores == pytest.approx([one.score for one in hypotheses], abs=2e-3)
        assert found["hypotheses"][0]["tokens"][0] == ">>de<<"
    page.goto(f"{page.origin}/explain.html#to=fr&text=a+small+dog")
    page.wait_for_selector("body[data-state=done]")
    assert page.locator("#pieces button").first.text_content() == ">>fr<<"
    assert page.locator("#language option").all_text_contents() == ["German", "French"]
    assert page.is_visible("#learned") and page.is_hidden("#sinusoidal")
    assert page.inner_text("#penalty-value") == "0.70" and page.is_disabled("#reset")
    assert page.errors == []


def test_a_site_without_the_signatures_or_the_list_of_models_says_so(site, opened, tmp_path):
    folder = shutil.copytree(site, tmp_path / "site")
    file = folder / "models" / "float32" / "translator.tflite"
    file.write_bytes(file.read_bytes().replace(b"explain_step", b"explain_stop"))
    page = opened(folder)
    page.goto(f"{page.origin}/explain.html#text=a")
    page.wait_for_selector("#problem:visible")
    assert "This model has no signatures that explain it" in page.inner_text("#problem")
    (folder / "models.json").unlink()
    page.reload()
    page.wait_for_selector("#problem:visible")
    assert page.inner_text("#problem").startswith("The list of models, models.json, cannot be used.")


# The page.


@pytest.fixture(scope="module")
def opened_explainer(site, opened_for_all):
    page = opened_for_all(site)
    page.goto(f"{page.origin}/explain.html")
    page.wait_for_selector("#translate:enabled")
    return page


@pytest.fixture
def page(golden, opened_explainer):
    """The page with the first text and no changes."""
    page = opened_explainer
    page.set_viewport_size({"width": 1280, "height": 720})
    page.emulate_media(color_scheme="light")
    page.goto(f"{page.origin}/#")  # An address that differs only after the # would not load the page again.
    page.goto(f"{page.origin}/explain.html#{urlencode({'text': golden.texts[0]})}")
    page.wait_for_selector("body[data-state=done]")
    yield page
    assert page.errors == [] and {url for url in page.asked if not url.startswith((page.origin, "data:"))} == set()


def after(page, act):
    """Does something and waits for what comes of it: the status."""
    page.evaluate("delete document.body.dataset.state")
    act()
    page.wait_for_selector("body[data-state=done]")
    return page.inner_text("#status")


def head(page, name):
    return page.get_by_role("checkbox", name=name, exact=True)


def score(page, place):
    return float(page.inner_text(f"#score-{place}").removeprefix("score ").replace("−", "-"))


def test_a_head_is_switched_by_keyboard(golden, page):
    wanted = golden.translator.translate(golden.texts[:1], return_scores=True)[0]
    for place in ("before", "after"):
        assert (page.inner_text(f"#{place}"), score(page, place)) == (
            wanted.text,
            pytest.approx(wanted.score, abs=2e-3),
        )
    assert page.inner_text("#status") == "Nothing is changed." and page.is_disabled("#reset")
    assert [page.get_attribute(place, "lang") for place in ("#text", "#before", "#after")] == ["en", "de", "de"]
    one = head(page, "Cross-attention, layer 1, head 2")
    one.focus()
    status = after(page, lambda: page.keyboard.press("Space"))
    text, changed = changed_in_python(golden, [(0, 1)])
    assert (page.inner_text("#after"), score(page, "after")) == (text, pytest.approx(changed, abs=2e-3))
    assert page.inner_text("#before") == wanted.text
    assert status.startswith("Cross-attention, layer 1, head 2: off. ")
    assert (f"New translation: “{text}”" in status) == (text != wanted.text)
    every = head(page, "Cross-attention, layer 1, all heads")
    assert every.evaluate("(box) => [box.checked, box.indeterminate]") == [False, True]
    assert page.text_content("#factors") == "1, 0" and page.inner_text("#of-heads") == "Cross-attention, layer 1"
    # All of a layer, and back.
    assert after(page, every.click).startswith("Cross-attention, layer 1, all heads: on. Nothing is changed.")
    assert one.is_checked() and page.inner_text("#after") == wanted.text
    after(page, every.click)
    assert not one.is_checked()
    assert after(page, lambda: page.click("#reset")) == "All changes are undone. Nothing is changed."
    assert one.is_checked() and page.evaluate("document.activeElement.id") == "text"


def test_a_word_is_hidden_and_moved(golden, page):
    piece = page.locator("#pieces button").nth(3)
    piece.focus()
    status = after(page, lambda: page.keyboard.press("Enter"))
    text, changed = changed_in_python(golden, hidden=[3])
    assert (page.inner_text("#after"), score(page, "after")) == (text, pytest.approx(changed, abs=2e-3))
    name = piece.text_content()
    assert piece.get_attribute("aria-pressed") == "true" and status.startswith(f"“{name}” is hidden. ")
    assert page.inner_text("#moved") == f"Hidden: “{name}”."
    assert (
        page.locator("#attention tbody td:nth-child(5)").all_text_contents()
        == [""] * page.locator("#attention tbody tr").count()
    )
    after(page, piece.click)
    field = page.get_by_label(f"Position of {page.locator('#pieces button').nth(2).text_content()}", exact=True)
    field.focus()
    assert after(page, lambda: page.keyboard.press("ArrowUp")).startswith(f"{field.get_attribute('aria-label')}: 3. ")
    assert "has pos = 3 instead of 2." in page.inner_text("#moved")
    before = page.inner_text("#score-after")
    field.fill("99")  # Beyond the table of positions.
    field.press("Tab")
    assert field.evaluate("(field) => field.validity.rangeOverflow") and page.inner_text("#score-after") == before


def test_another_search(golden, page):
    def translated(**settings):
        limit = {"max_target_length": 2 * LENGTH}
        return golden.translator.translate(golden.texts[:1], return_scores=True, **limit, **settings)[0]

    assert page.input_value("#beams") == "4" and page.input_value("#penalty") == "0.6"
    assert page.locator("#hypotheses-table tbody tr").count() == 4
    page.fill("#beams", "2")
    assert after(page, lambda: page.press("#beams", "Enter")).startswith("Beams: 2. ")
    assert score(page, "after") == pytest.approx(translated(num_beams=2).score, abs=2e-3)
    assert page.locator("#hypotheses-table tbody tr").count() == 2
    page.focus("#penalty")
    assert after(page, lambda: page.keyboard.press("End")).startswith("Length penalty: 2. ")
    wanted = translated(num_beams=2, length_penalty=2.0)
    assert page.inner_text("#penalty-value") == "2.00"
    assert score(page, "after") == pytest.approx(wanted.score, abs=2e-3)
    shown = page.locator("#score mn").all_text_contents()
    length = len(wanted.token_ids)
    assert shown[-1] == page.inner_text("#score-after").removeprefix("score ") and str(length) in shown
    assert float(shown[-2]) == pytest.approx(((5 + length) / 6) ** 2, abs=5e-3)
    page.click("summary")
    assert page.locator("#steps .best").count() == length
    page.fill("#beams", "9")
    page.press("#beams", "Enter")  # Too many: nothing happens.
    assert page.locator("#hypotheses-table tbody tr").count() == 2


def test_attention_and_its_difference(golden, page):
    def shown():
        titles = page.locator("#attention td[title]").evaluate_all("cells => cells.map((cell) => cell.title)")
        return np.array([float(re.search(r": (\S+) %$", title)[1].replace("−", "-")) for title in titles])

    wanted = golden.translator.translate(golden.texts[:1], return_attention=True)[0].attention.scores
    assert shown() == pytest.approx(100 * wanted[0].mean(axis=0).ravel(), abs=0.1)
    page.select_option("#layer", label="2")
    page.select_option("#head", label="2")
    assert shown() == pytest.approx(100 * wanted[1, 1].ravel(), abs=0.1)
    assert page.text_content("#key-dim") == "32" and page.text_content("#count") == "2"
    after(page, head(page, "Encoder self-attention, layer 1, head 1").click)
    assert page.locator("#kind").input_value() == "encoder"  # What was changed is shown.
    page.select_option("#layer", label="2")
    changed = shown()
    page.select_option("#view", label="unchanged model")
    unchanged = shown()
    page.select_option("#view", label="difference")
    assert shown() == pytest.approx(changed - unchanged, abs=0.11) and np.abs(changed - unchanged).max() > 1
    assert abs(page.locator("#attention td.less").count() - (shown() < 0).sum()) <= 1  # One may be 0.05 %.
    page.select_option("#kind", label="Decoder self-attention")
    assert page.locator("#attention thead th").first.text_content() == "<s>"


def test_the_address_has_the_changes(golden, page):
    after(page, head(page, "Decoder self-attention, layer 2, head 1").click)
    after(page, page.locator("#pieces button").nth(1).click)
    page.fill("#pieces li:nth-child(3) input", "7")
    after(page, lambda: page.press("#pieces li:nth-child(3) input", "Enter"))
    page.fill("#shift", "2")
    after(page, lambda: page.press("#shift", "Enter"))
    page.fill("#beams", "3")
    after(page, lambda: page.press("#beams", "Enter"))
    found = page.inner_text("#translations")
    address = page.evaluate("location.href")
    page.goto(f"{page.origin}/#")
    page.goto(address)
    page.wait_for_selector("body[data-state=done]")
    assert page.inner_text("#translations") == found and page.evaluate("location.href") == address
    assert not head(page, "Decoder self-attention, layer 2, head 1").is_checked()
    assert page.input_value("#beams") == "3" and page.input_value("#shift") == "2"
    # Another sentence keeps what is not about the words of the first.
    page.fill("#text", golden.texts[1])
    after(page, lambda: page.press("#text", "Enter"))
    assert page.inner_text("#before") == golden.translator.translate(golden.texts[1:2])[0]
    assert page.locator("#pieces [aria-pressed=true]").count() == 0 and page.input_value("#beams") == "3"
    page.fill("#text", " ")
    assert after(page, lambda: page.press("#text", "Enter")) == "Type a sentence." and page.is_hidden("#explained")


def test_words_that_differ_are_marked(page):
    both = page.evaluate("differences('A big dog runs.', 'A dog barks and runs.')")
    marked = [[one["text"] for one in side if not one["common"] and one["text"].strip()] for side in both]
    assert marked == [["big"], ["barks", "and"]]


def test_the_translator_links_to_the_explainer_and_the_service_worker_keeps_it(golden, site, shared):
    shared.fill("#source", golden.texts[2])
    shared.evaluate("delete document.body.dataset.state")
    shared.press("#source", "Control+Enter")
    shared.wait_for_selector("body[data-state=done]")
    href = shared.get_attribute("#explain", "href")
    assert href == f"explain.html#{urlencode({'text': golden.texts[2], 'to': 'de'})}"
    script = (site / "service-worker.js").read_text()
    assert {"explain.html", "explain.js"} < set(json.loads(re.search(r"const FILES = (.*);", script)[1]))
    assert f'content="{POLICY}"' in (site / "explain.html").read_text()


def test_nothing_is_wider_than_a_phone_or_keeps_people_out(page, axe):
    after(page, head(page, "Cross-attention, layer 1, head 2").click)
    after(page, page.locator("#pieces button").nth(1).click)
    page.click("summary")
    for view in ("with your changes", "difference"):
        page.select_option("#view", label=view)
        for width, scheme in ((1280, "light"), (1280, "dark"), (390, "light"), (390, "dark")):
            page.set_viewport_size({"width": width, "height": 844})
            page.emulate_media(color_scheme=scheme, reduced_motion="reduce")  # Colours change at once.
            assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
            assert_accessible(page, axe)
