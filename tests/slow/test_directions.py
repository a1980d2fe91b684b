"""One model for several directions: the tag says into which language, in Python and in every export."""

import json

import numpy as np
import pytest

import train_keras
from keras_transformer.__main__ import main
from keras_transformer.export import web
from keras_transformer.export.report import FORMS, write_report
from keras_transformer.export.run_tflite import TFLiteTranslator
from keras_transformer.export.run_tflite import main as run_tflite
from keras_transformer.export.tflite import export_tflite
from keras_transformer.training.run import Run


@pytest.fixture(scope="module")
def sides(two_way):
    return [list(side) for side in zip(*two_way.texts, strict=True)]


def test_bulk_translation_knows_the_language(two_way, sides, tmp_path):
    english, german = sides
    (tmp_path / "in").write_text("\n".join(german) + "\n")
    flags = ["--input", str(tmp_path / "in"), "--output", str(tmp_path / "out"), "--target-language", "en"]
    assert main(["bulk", str(two_way.run_dir), *flags]) == 0
    assert (tmp_path / "out" / "in").read_text().splitlines() == english


@pytest.fixture(scope="module")
def device(two_way, tmp_path_factory):
    path = tmp_path_factory.mktemp("device") / "exported"
    folder, same = export_tflite(two_way.translator, path, source_length=40, target_length=40, num_beams=2)
    assert same == 1.0  # Both files, with the translator's own language.
    return folder


def test_the_device_takes_a_target_language(device, sides, capsys):
    english, german = sides
    settings = json.loads((device / "translator.json").read_text())
    assert settings["target_language"] == "de" and list(settings["languages"]) == ["de", "en"]
    assert settings["directions"] == ["en-de", "de-en"]
    into_english = TFLiteTranslator(device / "translator.tflite", target_language="en")
    assert [into_english.translate(text)[0][0] for text in german] == english
    assert TFLiteTranslator(device / "translator.tflite").translate(english[0])[0][0] == german[0]
    assert into_english.translate("") == [("", 0.0)]
    text = f"- {german[0]}\n\n{german[1]} {german[2]}"
    assert into_english.translate_document(text) == f"- {english[0]}\n\n{english[1]} {english[2]}"
    file = str(device / "translator.tflite")
    assert run_tflite([file, german[0], "--target-language", "en"]) == 0
    assert capsys.readouterr().out == english[0] + "\n"
    assert run_tflite([file, german[0], "--target-language", "fr"]) == 2
    assert "The model translates into: de, en. Received: target_language='fr'" in capsys.readouterr().err


def test_texts_are_translated_into_a_target_language(device, sides):
    translator = TFLiteTranslator(device / "translator.tflite")

    def translated(text, tag):
        inputs = {"text": translator.padded(text.encode()), "target_language": np.array([tag], "int32")}
        found = translator.run("translate_text", **inputs)
        return bytes(found["translations"][0]).rstrip(b"\0").decode(), found["scores"][0]

    languages, (english, german) = translator.settings["languages"], sides
    assert translated(german[0], languages["en"])[0] == english[0]
    assert translated(english[0], languages["de"])[0] == german[0]
    assert translated(english[0], 0)[0] == german[0]  # The language of the export.
    assert translated("", languages["en"]) == ("", 0)


@pytest.fixture(scope="module")
def page(two_way, cache, opened_for_all, tmp_path_factory):
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("KERAS_HOME", str(cache))
        options = {"source_length": 40, "target_length": 40, "num_beams": 2}
        folder, _ = web.export_web(two_way.translator, tmp_path_factory.mktemp("web") / "site", ["none"], **options)
    page = opened_for_all(folder, permissions=["clipboard-read", "clipboard-write"])
    page.wait_for_selector("#translate:enabled")
    return page


def done(page, act):
    """What is shown after an act that translates."""
    page.evaluate("delete document.body.dataset.state")
    act()
    page.wait_for_selector("body[data-state=done]")
    return page.input_value("#source"), page.inner_text("#translation")


def names(page):
    return [page.inner_text(one) for one in ("h1", "label[for=source]", "label[for=translation]")]


def test_the_page_has_a_list_of_directions(two_way, sides, page):
    assert page.locator("#direction option").all_text_contents() == ["English to German", "German to English"]
    assert page.locator("#model").is_hidden()  # There is one.

    def shown(text):
        page.fill("#source", text)
        return done(page, lambda: page.click("#translate"))[1]

    english, german = sides
    assert names(page) == ["English to German", "English", "German"]
    assert shown(f"{english[0]} {english[1]}") == f"{german[0]} {german[1]}"
    page.select_option("#direction", "German to English")
    assert names(page) == ["German to English", "German", "English"]
    assert shown(f"{german[0]} {german[1]}") == f"{english[0]} {english[1]}"
    assert page.locator("#attention th").first.text_content() == ">>en<<"
    assert page.inner_text("#count").endswith(f"{sum(map(len, two_way.tokenizer.tokenize(german[:2])))} tokens")
    languages = [page.get_attribute(one, "lang") for one in ("#source", "#translation")]
    assert languages == ["de", "en"]


def test_the_directions_are_swapped_and_the_translation_becomes_the_source(sides, page):
    english, german = sides
    page.select_option("#direction", "English to German")
    page.fill("#source", english[0])
    assert done(page, lambda: page.click("#translate")) == (english[0], german[0])
    assert done(page, lambda: page.click("#swap")) == (german[0], english[0])
    assert names(page) == ["German to English", "German", "English"] and page.title() == "German to English translator"
    # A text whose translation is not there stays.
    page.fill("#source", english[1])
    assert done(page, lambda: page.click("#swap")) == (english[1], german[1])
    assert names(page)[0] == "English to German"
    # Nor is a translation taken that is not finished.
    page.fill("#source", english[0])
    page.evaluate("for (const id of ['translate', 'swap']) document.getElementById(id).click()")
    page.wait_for_selector("body[data-state=done]")
    assert page.input_value("#source") == english[0]


def test_a_link_has_the_direction(sides, page):
    english, german = sides
    page.select_option("#direction", "German to English")
    page.fill("#source", german[0])
    page.click("#link")
    page.wait_for_selector("#status:has-text('The link is copied')")
    link = page.evaluate("navigator.clipboard.readText()")
    assert link.startswith(f"{page.origin}/#text=") and link.endswith("&from=de&to=en")
    # In the same tab, and in a new one.
    page.select_option("#direction", "English to German")
    assert done(page, lambda: page.goto(link)) == (german[0], english[0])
    page.goto("about:blank")
    page.goto(link)
    page.wait_for_selector("body[data-state=done]")
    assert (page.inner_text("#translation"), names(page)[0]) == (english[0], "German to English")
    assert page.errors == []


def test_the_library_takes_a_target_language(sides, page):
    code = """async (texts) => {
        const { languages, directions } = translator;
        const into = (text, i) => translator.translate(text, { targetLanguage: languages[i] });
        const found = await Promise.all(texts.map(into));
        const error = await translator.translate("a", { targetLanguage: "fr" }).catch(String);
        return [languages, directions, found.map(({ text }) => text), error];
    }"""
    english, german = sides
    languages, directions, found, error = page.evaluate(code, [english[0], german[0]])
    assert languages == ["de", "en"]
    assert directions == [{"source": "en", "target": "de"}, {"source": "de", "target": "en"}]
    assert found == [german[0], english[0]]
    assert error.endswith("must be one of the model's languages. Received: fr. The model has: de, en.")


def test_a_report_asks_each_form_for_the_language_of_the_text(two_way, tmp_path):
    assert train_keras.main(["--resume", "--no-export", "--run-dir", str(two_way.run_dir)]) == 0  # Scores it.
    rows = write_report([str(two_way.run_dir)], tmp_path / "report")
    texts = Run(two_way.run_dir).scores()["after_training"]["texts"]
    assert len(texts) == 2 and [row["form"] for row in rows] == list(FORMS)
    for row in rows:
        assert row["texts"].keys() == texts.keys()
        for name, one in texts.items():
            assert row["texts"][name]["bleu"] == pytest.approx(one["bleu"], abs=3 if "int8" in row["form"] else 0.01)
