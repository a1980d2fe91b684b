"""The page translates in a real browser as Python does. Skipped where there is no Chromium, or no npm to build it."""

import contextlib
import fcntl
import functools
import itertools
import json
import os
import random
import re
import shutil
import socket
import subprocess
import sys
import threading
import time
from http.client import HTTPConnection
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from types import SimpleNamespace

import lxml.html
import numpy as np
import pytest
from exports import assert_accessible, export_page
from texts import LANGUAGES, PARTS, SENTENCES, random_html, random_parts, random_sentences, shuffled
from trainings import phrases

from keras_transformer.data.corpora import ParallelText
from keras_transformer.export import ExportError, report, web
from keras_transformer.export.verify import ODD, tflite_reference, verify
from keras_transformer.export.web import POLICY, SOURCES, built_page, export_web, server
from keras_transformer.files import MANIFEST, FileError
from keras_transformer.models.transformer import Transformer
from keras_transformer.text import markup, markup_tree, placeholders, sentences
from keras_transformer.text.confidence import Calibration
from keras_transformer.text.tokenizer import Tokenizer
from keras_transformer.training.run import Run
from keras_transformer.translation.documents import split_text
from keras_transformer.translation.translator import Translator

SETTINGS = "models/float32/translator.json"


@pytest.fixture
def page(shared):
    """A page for all tests that leave it so that another text can be translated: the model is loaded once."""
    yield shared
    if shared.is_visible("#plain"):
        shared.click("#plain")
    shared.emulate_media(color_scheme="light")
    shared.set_viewport_size({"width": 1280, "height": 720})
    shared.mouse.move(1, 1)
    assert shared.errors == []


def translate(page, text):
    """What the page shows for a text: hypotheses and scores."""
    page.wait_for_selector("#translate:enabled")
    page.evaluate("delete document.body.dataset.state")
    page.fill("#source", text)
    page.keyboard.press("Control+Enter")
    page.wait_for_selector("body[data-state=done]")
    rows = page.locator("#hypotheses button").all()
    return [(row.locator("span").nth(0).inner_text(), float(row.locator(".score").inner_text())) for row in rows]


def test_the_page_translates_as_python_does(golden, page):
    expected = golden.translator.translate(golden.texts, num_hypotheses=4, return_scores=True)
    for text, wanted in zip(golden.texts, expected, strict=True):
        found = translate(page, text)
        assert [translation for translation, _ in found] == [hypothesis.text for hypothesis in wanted]
        assert [score for _, score in found] == pytest.approx([hypothesis.score for hypothesis in wanted], abs=2e-3)
        assert page.inner_text("#translation") == wanted[0].text
    for place in ("#translation", "#hypotheses span >> nth=0"):  # What is shown keeps its spaces.
        page.locator(place).evaluate("(element) => (element.textContent = 'a  b')")
        assert page.inner_text(place) == "a  b"
    assert {url for url in page.asked if not url.startswith((page.origin, "data:"))} == set()


def test_doubtful_words_are_underlined(golden, site, page, monkeypatch):
    calibration = Calibration(**json.loads((site / SETTINGS).read_text())["confidence"])
    monkeypatch.setattr(golden.translator, "calibration", calibration)
    text = f"{golden.texts[0]}\n\nNobody {{x}} {golden.texts[1]}"
    translate(page, text)
    wanted, sentences_of = [], split_text(golden.translator, text)[1::2]
    for one in golden.translator.translate(sentences_of, return_confidence=True):
        wanted += [(one.text[i:j], round(100 * c)) for i, j, c in one.confidence.words if c < 0.5]
    words = page.locator("#translation .doubtful").all()
    found = [(word.inner_text(), int(word.get_attribute("title").split(" %")[0])) for word in words]
    assert [word for word, _ in found] == [word for word, _ in wanted] != []
    assert all(abs(a - b) <= 1 for (_, a), (_, b) in zip(found, wanted, strict=True))
    assert page.locator("#doubt").is_visible()
    first = page.locator("#translation .sentence >> nth=0").get_attribute("title")
    assert re.fullmatch(r"\d+ % of these words are likely to be right", first)


def test_tokens_in_the_browser_are_those_of_python(golden, site, page):
    translator = tflite_reference(golden.translator, json.loads((site / SETTINGS).read_text()))
    rng = np.random.default_rng(0)
    noise = [rng.integers(33, high, rng.integers(1, 9)) for high in (0x7F, 0x250, 0x3100, 0xD800, 0x1F9FF) * 8]
    texts = [text.decode(errors="replace") for text in ODD] + [text for pair in phrases()[:20] for text in pair]
    texts += ["".join(map(chr, codes[(codes < 0xD800) | (codes > 0xDFFF)])) for codes in noise]
    texts += ["ﬁ ﬂ ①", "a▁b  ▁", "<s> </s>", "\ufeff\u200b　全角", "A" + "bc" * 300, "한국어 x" * 20]
    found = [page.evaluate("(text) => translator.translate(text)", text) for text in texts]
    for text, answer in zip(texts, found, strict=True):
        wanted = split_text(translator, text)[1::2]
        assert [one["source"] for one in answer["sentences"]] == wanted
        for one in answer["sentences"]:
            (encoded,) = translator.codec.encode([sentences.plain(one["source"])])
            assert (one["ids"], one["kept"]["text"]) == (encoded.ids, encoded.text)
            read = "".join(one["pieces"])
            assert encoded.text.startswith(read)
            assert translator.source_tokenizer.tokenize([encoded.text[len(read) :]]) == [[]]


def test_work_ends_at_once_when_it_is_aborted(page):
    code = """async (text) => {
        const controllers = ["count", "translate", "align"].map(() => new AbortController());
        const [counted, translated, aligned] = controllers.map(({ signal }) => ({ signal, onProgress: () => {} }));
        const all = [
            translator.count(text, counted),
            translator.translate(text, translated),
            translator.align([text], aligned),
        ];
        const errors = Promise.all(all.map((one) => one.catch(({ name }) => name)));
        controllers[0].abort(); // Counting may end before the timer; 3,000 searches cannot.
        await new Promise((resolve) => setTimeout(resolve, 300));
        for (const one of controllers) one.abort();
        return [await errors, await translator.count("A dog. A cat.")];
    }"""
    text = " ".join(f"Nobody saw {i} dogs." for i in range(3000))
    errors, counted = page.evaluate(code, text)
    assert (errors, counted["sentences"]) == (["AbortError"] * 3, 2)


def test_a_text_may_have_very_many_sentences(page):
    """More than a call of a JavaScript function may have arguments."""
    code = """async (text) => {
        const controller = new AbortController();
        let count;
        const onProgress = ({ parts }) => ((count = parts.length), controller.abort());
        await translator.translate(text, { signal: controller.signal, onProgress }).catch(() => {});
        return count;
    }"""
    assert page.evaluate(code, "A.\n" * 140_000) == 280_001


def test_the_library_says_what_is_wrong(page):
    """Names and messages of errors."""
    code = """async () => {
        const { createTranslator } = await import("/translator.js");
        const controller = new AbortController(), closed = await createTranslator("models/float32/");
        controller.abort();
        const waiting = closed.translate("A dog.");
        closed.close();
        const calls = [
            translator.translate(3),
            translator.align(["a", null]),
            translator.align("a"),
            translator.count(),
            translator.translate("a", { targetLanguage: "fr" }),
            translator.translate("a", { signal: controller.signal }),
            waiting,
            closed.count("a"),
            createTranslator("models"),
            createTranslator("models/float32", { signal: controller.signal }),
        ];
        const said = ({ name, message }) => `${name}: ${message}`;
        return Promise.all(calls.map((call) => call.then(() => "no error", said)));
    }"""
    found = page.evaluate(code)
    messages = [
        "TypeError: A text must be a string. Received: 3.",
        "TypeError: A text must be a string. Received: null.",
        "TypeError: texts must be an array of strings. Received: a.",
        "TypeError: A text must be a string. Received: undefined.",
        "RangeError: targetLanguage must be one of the model's languages. Received: fr. The model has: de.",
        "AbortError: signal is aborted without reason",
        "AbortError: The translator was closed.",
        "AbortError: The translator was closed.",
        f"Error: {page.origin}/models/translator.json could not be loaded (404 Not Found). "
        "The folder of a model has this file; in a page, that is models/NAME.",
        "AbortError: signal is aborted without reason",
    ]
    assert found == messages


def test_the_library_translates_several_texts_and_says_how_far_it_is(golden, page):
    code = """async (texts) => {
        const seen = [], loaded = [];
        const { createTranslator } = await import("/translator.js");
        const translator = await createTranslator("models/int8", { onProgress: (one) => loaded.push(one) });
        translator.close();
        const options = { targetLanguage: "de", onProgress: ({ text }) => seen.push(text) };
        const found = await Promise.all(texts.map((text) => window.translator.translate(text, options)));
        return [found.map(({ text }) => text), seen, loaded.at(-1)];
    }"""
    page.evaluate("window.translator = translator")
    texts = [f"{golden.texts[0]} {golden.texts[1]}", golden.texts[2]]
    found, seen, loaded = page.evaluate(code, texts)
    assert found == [golden.translator.translate_text(text) for text in texts]
    assert set(found) < set(seen) and " " in seen  # The separators come first.
    assert loaded["loaded"] == loaded["total"] > 0


def test_markup_that_is_not_translated_does_not_change(golden, page):
    code = """async (text) => {
        const controller = new AbortController(), main = document.createElement("main");
        main.innerHTML = `<p lang="en">${text}</p><p>${text}</p>`;
        const before = main.innerHTML, { signal } = controller;
        const work = translator.translateMarkup(main, { signal, onProgress: () => controller.abort() }).catch(String);
        return [await work, before === main.innerHTML, await translator.translateMarkup(main), main.innerHTML];
    }"""
    error, is_same, nothing, after = page.evaluate(code, golden.texts[0])
    assert error.startswith("AbortError: ") and is_same and nothing is None
    translation = golden.translator.translate(golden.texts[:1])[0]
    assert after == f'<p lang="de">{translation}</p><p>{translation}</p>'


def test_a_page_of_ones_own_translates_as_python_does(golden, site, opened, tmp_path):
    """That of the README, in a folder beside a page, on a server that sends files alone."""
    (html,) = re.findall(r"```html\n(.*?)```", (SOURCES / "README.md").read_text(), re.DOTALL)
    assert len(html.splitlines()) <= 20
    (tmp_path / "index.html").write_text(html)
    (tmp_path / "site").symlink_to(site)
    with files_alone(tmp_path) as address:
        page = opened(site, address=address)
        page.wait_for_selector("#source:enabled")
        for text in (golden.texts[0], f"{golden.texts[1]}\n\n{golden.texts[2]}"):
            page.fill("#source", text)
            page.wait_for_function("(text) => translation.value === text", arg=golden.translator.translate_text(text))
        assert page.errors == []


def test_a_model_can_be_on_another_server_that_allows_it(golden, site, opened, tmp_path):
    code = """async ([folder, text]) => {
        const { createTranslator } = await import("/site/translator.js");
        return (await (await createTranslator(folder)).translate(text)).text;
    }"""
    (tmp_path / "index.html").write_text("")
    (tmp_path / "site").symlink_to(site)
    wanted = golden.translator.translate(golden.texts[:1])[0]
    with files_alone(tmp_path) as address, files_alone(site, Access_Control_Allow_Origin=address) as other:
        page = opened(site, address=address)
        assert page.evaluate(code, [f"{other}/models/float32", golden.texts[0]]) == wanted


def test_the_types_are_those_of_the_module(page, site, npm_package, tmp_path):
    """TypeScript knows the members that the module has, and no others, and what a program may do with them."""
    members = page.evaluate(
        "[...Object.keys(translator), ...Object.getOwnPropertyNames(Object.getPrototypeOf(translator))]"
    )
    shutil.copy(site / "translator.d.ts", tmp_path)
    program = """
        import { createTranslator, languageName, type Translation, type Translator } from "./translator.js";
        export const members: Record<keyof Translator, true> = MEMBERS;
        const { signal } = new AbortController();
        const onProgress = ({ loaded, total }: { loaded: number; total?: number }) => console.log(loaded, total);
        const translator = await createTranslator(new URL("https://example.com/model"), { signal, onProgress });
        const targetLanguage: string = translator.languages[0], name: string = languageName(targetLanguage, "de");
        const onText = ({ text }: { text: string }) => text.length;
        const found: Translation = await translator.translate("a", { targetLanguage, signal, onProgress: onText });
        const [sentence] = found.sentences, [{ score, words }] = sentence.hypotheses;
        console.log(score.toFixed(1), words?.map(([begin, end, confidence]) => end - begin + confidence));
        const { scores } = await translator.attention(sentence, sentence.hypotheses[1]);
        const weights: Float32Array = scores[0][0][0];
        const [{ origins }] = await translator.align(["a"], { onProgress: ({ finished, total }) => finished / total });
        await translator.translateMarkup(document.body, { targetLanguage: null });
        const { tokens } = await translator.count("a", { signal });
        console.log(weights.length + tokens + (origins[0] ?? 0));
        console.log(translator.directions[0].source?.length, translator.settings.versions);
        // @ts-expect-error
        await translator.translate(3);
        // @ts-expect-error
        await translator.translate("a", { language: "de" });
        // @ts-expect-error
        await createTranslator();
        translator.close();
    """
    program = program.replace("MEMBERS", json.dumps({name: True for name in members if name != "constructor"}))
    (tmp_path / "program.mts").write_text(program)
    flags = ["--noEmit", "--strict", "--target", "es2022", "--module", "nodenext", "--lib", "es2022,dom,dom.iterable"]
    compiler = npm_package("typescript@5.9.3") / "typescript" / "bin" / "tsc"
    command = ["node", str(compiler), *flags, "program.mts"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
    assert (done.stdout, done.returncode) == ("", 0)


def test_the_translation_grows_piece_by_piece_and_hypotheses_can_be_chosen_by_keyboard(golden, page):
    page.evaluate("""() => {
        window.seen = [];
        const shown = document.getElementById("translation");
        const changes = { childList: true, subtree: true };
        new MutationObserver(() => seen.push(shown.textContent)).observe(shown, changes);
    }""")
    found = translate(page, golden.texts[0])
    greedy = golden.translator.translate(golden.texts[:1], num_beams=1)[0]
    seen = page.evaluate("seen")
    assert greedy in seen and len(set(seen)) > 3
    assert all(text.startswith(before) for before, text in itertools.pairwise(seen[: seen.index(greedy)]))
    for _ in range(10):
        page.keyboard.press("Tab")
        if page.evaluate("document.activeElement.parentElement === document.querySelectorAll('#hypotheses li')[1]"):
            break
    page.keyboard.press("Enter")
    assert page.inner_text("#translation") == found[1][0]
    assert page.locator("#hypotheses button").nth(1).get_attribute("aria-pressed") == "true"


def test_the_picture_shows_the_cross_attention(golden, page):
    translate(page, golden.texts[0])
    wanted = golden.translator.translate(golden.texts[:1], return_attention=True)[0].attention
    for place, pieces in (("thead", wanted.source_tokens), ("tbody", wanted.target_tokens)):
        pieces = [piece.removeprefix("▁") if i == 0 else piece for i, piece in enumerate(pieces)]
        assert page.locator(f"#attention {place} th").all_text_contents() == pieces

    def shown():
        titles = page.locator("#attention td[title]").evaluate_all("cells => cells.map((cell) => cell.title)")
        return [float(re.search(r": ([\d.]+) %$", title)[1]) / 100 for title in titles]

    best = int(wanted.agreement().argmax())  # The layer that aligns best.
    assert page.locator("#layer").input_value() == str(best)
    assert shown() == pytest.approx(wanted.scores[best].mean(axis=0).ravel(), abs=2e-3)
    page.select_option("#layer", index=1)
    page.select_option("#head", index=2)
    assert shown() == pytest.approx(wanted.scores[1, 1].ravel(), abs=2e-3)


def test_nothing_too_much_and_strange_text(golden, page):
    translate(page, golden.texts[0])
    translate(page, "  ")
    assert page.inner_text("#translation").strip() == "" and page.is_hidden("#results")
    translate(page, "\x00\x01 😀 שלום " + golden.texts[0].rstrip(".") * 20)
    assert re.fullmatch(r"[2-9] sentences, \d+ tokens", page.inner_text("#count"))  # A long one is cut.
    assert page.inner_text("#status") == "Done."


def test_a_text_is_translated_sentence_by_sentence(golden, page):
    text = f"  {golden.texts[0]} {golden.texts[1]}\n\n- {golden.texts[2]}\n\n{golden.texts[3]} {{x}} 😀\n\n{{y}} 5 kg"
    best = translate(page, text)
    translations = golden.translator.translate(golden.texts[:3], num_hypotheses=4, return_scores=True)
    assert [hypothesis for hypothesis, _ in best] == [hypothesis.text for hypothesis in translations[0]]
    shown = "document.getElementById('translation').textContent"
    assert page.evaluate(shown) == golden.translator.translate_text(text)
    assert page.inner_text("#count").startswith("5 sentences, ")
    # The sentence under the pointer is marked on both sides.
    for place in ("#translation .sentence >> nth=1", "#mirror .sentence >> nth=1"):
        first_line = page.locator(place).evaluate("(element) => element.getClientRects()[0].toJSON()")
        page.mouse.move(first_line["x"] + 3, first_line["y"] + 3)
        marked = page.locator(".sentence.marked").all_text_contents()
        assert marked == [golden.texts[1], translations[1][0].text]
    page.mouse.move(1, 1)
    assert page.locator(".sentence.marked").count() == 0
    # Each sentence has hypotheses and attention of its own.
    page.click("#translation .sentence >> nth=2")
    assert page.inner_text("#chosen") == f"Sentence 3: {golden.texts[2]}"
    page.wait_for_function("(text) => document.getElementById('attention').textContent.includes(text)", arg="▁")
    rows = page.locator("#hypotheses button span:first-child").all_text_contents()
    assert rows == [hypothesis.text for hypothesis in translations[2]]
    page.click("#hypotheses button >> nth=1")
    assert f"\n\n- {translations[2][1].text}\n" in page.evaluate(shown)
    page.locator("#translation .sentence >> nth=0").press("Enter")
    assert page.inner_text("#chosen") == f"Sentence 1: {golden.texts[0]}"
    page.locator("#translation .sentence >> nth=2").press("Space")  # Buttons react to both keys.
    assert page.inner_text("#chosen") == f"Sentence 3: {golden.texts[2]}"
    assert page.locator("#hypotheses button").nth(1).get_attribute("aria-pressed") == "true"
    page.fill("#source", "")
    assert page.locator("#mirror .sentence").count() == 0


def test_the_rules_in_javascript_split_as_in_python(opened, tmp_path):
    shutil.copy(SOURCES / "src" / "sentences.js", tmp_path)
    (tmp_path / "index.html").write_text("")
    languages = [*LANGUAGES, "en"]
    texts = {language: random_sentences(200, seed=7) for language in languages}
    for one in SENTENCES:
        texts[one.get("language", "")].append(one["text"])
    texts["en"] += ["a" * 60 + f". {mark * 60} Anna" for mark in "-_('"]  # A rule that tries everything never ends.
    code = """async ([specifications, texts]) => {
        const { Sentences } = await import("/sentences.js");
        return Promise.all(specifications.map((specification, i) => {
            const rules = new Sentences(specification);
            return Promise.all(texts[i].map(async (text) => {
                const parts = rules.split(text);
                const cut = await rules.fitted(parts, (sentence) => Array.from(sentence).length <= 9);
                const translated = cut.map((part, i) => (i % 2 ? `<${part}>.` : part));
                return [parts, cut, rules.spaced(translated)];
            }));
        }));
    }"""
    specifications = [sentences.specification(language) for language in languages]
    found = opened(tmp_path).evaluate(code, [specifications, [texts[language] for language in languages]])
    for language, rows in zip(languages, found, strict=True):
        for text, row in zip(texts[language], rows, strict=True):
            parts = sentences.split(text, language)
            cut = sentences.fitted(parts, lambda plain: [len(x) <= 9 for x in plain])
            translated = [sentences.without_marks(f"<{part}>.") if i % 2 else part for i, part in enumerate(cut)]
            assert row == [parts, cut, sentences.spaced(translated)]


def test_placeholders_in_javascript_are_those_of_python(opened, tmp_path):
    shutil.copy(SOURCES / "src" / "placeholders.js", tmp_path)
    (tmp_path / "index.html").write_text("")
    texts = [text for text, _, _ in PARTS] + random_parts(2000, seed=7)
    code = """async ([specification, texts]) => {
        const { Placeholders } = await import("/placeholders.js");
        const rules = new Placeholders(specification, 8);
        return texts.map((text) => {
            const found = rules.protect(text), other = found.text.replace("⟦0⟧", "");
            return [found.text, found.parts, ...[found.text, other].map((one) => rules.restored(one, found)),
                rules.restored(other, found, false), rules.hasWords(found.text)];
        });
    }"""
    found = opened(tmp_path).evaluate(code, [placeholders.specification(), texts])
    for text, row in zip(texts, found, strict=True):
        masked, parts = placeholders.protect(text)
        other = masked.replace("⟦0⟧", "", 1)
        wanted = [placeholders.restored(one, parts, source=masked) for one in (masked, other)]
        wanted += [placeholders.restored(other, parts, False, masked), placeholders.has_words(masked)]
        assert row == [masked, list(parts), *wanted]


def same_tree(one, other):
    """Whether two fragments of HTML are the same, however they are written."""
    trees = [lxml.html.fragment_fromstring(html, create_parent="main") for html in (one, other)]
    return lxml.html.tostring(trees[0]) == lxml.html.tostring(trees[1])


def test_markup_in_javascript_goes_where_it_goes_in_python(opened, tmp_path):
    shutil.copy(SOURCES / "src" / "markup.js", tmp_path)
    (tmp_path / "index.html").write_text("")
    generator, fragments, answers, wanted = random.Random(1), [], [], []
    for seed in range(400):
        fragment = random_html(generator).replace("😀", "☀")  # Places are code points here, 16 bits there.
        fragment += "<br>" * 40 if seed == 0 else ""  # Many elements at one place.
        given = {}

        def remembered(texts, given=given, seed=seed):
            found = shuffled(seed)(texts)
            for text, one in zip(texts, found, strict=True):
                nearest = [random.Random(f"{seed} {i}").choice([None, *range(len(one.text))]) for i in range(len(text))]
                given[text] = one._replace(nearest=nearest)
            return [given[text] for text in texts]

        fragments.append(fragment)
        wanted.append(markup.translate_html(fragment, remembered, "en", "de_AT"))
        answers.append({text: one._asdict() for text, one in given.items()})
    code = """async ([kinds, fragments, answers]) => {
        const { translateMarkup } = await import("/markup.js");
        return Promise.all(fragments.map(async (fragment, i) => {
            const body = new DOMParser().parseFromString(`<main>${fragment}</main>`, "text/html").body.firstChild;
            await translateMarkup(body, kinds, ["en", "de_AT"], async (texts) => texts.map((text) => answers[i][text]));
            return body.innerHTML;
        }));
    }"""
    kinds = {
        "inline": sorted(markup_tree.INLINE),
        "opaque": sorted(markup_tree.OPAQUE),
        "kept": sorted(markup_tree.KEPT),
    }
    found = opened(tmp_path).evaluate(code, [kinds, fragments, answers])
    different = [i for i, (a, b) in enumerate(zip(found, wanted, strict=True)) if not same_tree(a, b)]
    assert [(fragments[i], found[i], wanted[i]) for i in different[:3]] == []


# Pastes HTML and the same text without it; whether the page takes it.
PASTE = """([html, text]) => {
    const data = new DataTransfer();
    for (const [type, content] of [["text/html", html], ["text/plain", text]]) data.setData(type, content);
    const event = new ClipboardEvent("paste", { clipboardData: data, cancelable: true, bubbles: true });
    return !document.getElementById("source").dispatchEvent(event);
}"""


def test_a_pasted_text_keeps_its_formatting(golden, page):
    first, second, third = golden.texts[:3]
    word = first.split()[1]
    html = (
        f"<h1>{second}</h1><p class=x>{first.replace(word, f'<b>{word}</b>', 1)} <a href='?q'>{third}</a><br>"
        f"<code>x &lt; y</code></p><ul><li>{{name}} {third}</li><li>5 kg</li></ul><script>window.ran = 1</script>"
    )
    page.evaluate("delete document.body.dataset.state")
    assert not page.evaluate(PASTE, [f"<meta charset=utf-8><span>{first}</span>", first])  # Nothing to keep.
    assert page.evaluate(PASTE, [html, "as text"])
    page.wait_for_selector("body[data-state=done]")
    shown = "document.getElementById('rich-translation').shadowRoot.innerHTML"
    wanted = golden.translator.translate_html(html)
    assert same_tree(page.evaluate(shown), wanted)
    assert "<b>" in wanted and "{name}" in wanted
    assert page.evaluate("[window.ran, document.querySelector('#source').checkVisibility()]") == [None, False]
    page.click("#plain")
    page.wait_for_selector("#translation:not(.unfinished):has(.sentence)")
    assert page.input_value("#source") == "as text" and not page.is_visible("#rich-translation")


def test_pasted_formatting_neither_covers_the_page_nor_hides_its_text(page):
    """Browsers put the computed styles of a page into what is copied from it, its fixed header and its black, too."""
    page.emulate_media(color_scheme="dark")
    page.evaluate("delete document.body.dataset.state")
    html = (
        "<a href='http://127.0.0.1:9/' style='position: fixed !important; inset: 0; opacity: 0'>a</a>"
        "<p style='color: #000; background: #fff' onclick='x' id=y lang=fr><font color=#000>a <b>dog</b></font></p>"
        # As Google Docs and others write bold words.
        "<b style='font-weight: normal'>a <span style='font-weight: 700; color: #000'>cat</span></b>"
        "<button popovertarget=p>a</button><div id=p popover>a</div>"
    )
    assert page.evaluate(PASTE, [html, "a"])
    page.wait_for_selector("body[data-state=done]")
    assert page.evaluate("document.getElementById('rich').shadowRoot.innerHTML") == (
        '<a href="http://127.0.0.1:9/">a</a><p lang="fr"><font>a <b>dog</b></font></p>'
        '<b style="font-weight: normal;">a <span style="font-weight: 700;">cat</span></b><button>a</button><div>a</div>'
    )
    colour = "(one) => getComputedStyle(one).color"
    for place in ("#rich", "#rich-translation"):
        assert page.locator(f"{place} p").first.evaluate(colour) == page.locator("body").evaluate(colour)
    # Whatever gets into it: what is fixed there stays inside.
    page.locator("#rich a").first.evaluate("(link) => (link.style = 'position: fixed; inset: -9999px')")
    assert page.evaluate("document.elementFromPoint(innerWidth / 2, 5).closest('#rich')") is None


def test_the_page_says_and_announces_its_languages(golden, page):
    translate(page, golden.texts[0])
    assert [page.inner_text(f"label[for={side}]") for side in ("source", "translation")] == ["English", "German"]
    assert (page.inner_text("h1"), page.title()) == ("English to German", "English to German translator")
    assert page.is_hidden("#direction") and page.is_hidden("#swap")  # There is no other direction.
    language = "(one) => one.closest('[lang]').lang"
    places = ["#source", "#translation .sentence", "#hypotheses span", "#attention thead th", "#attention tbody th"]
    announced = [page.locator(place).first.evaluate(language) for place in places]
    assert announced == ["en", "de", "de", "en", "de"]


def test_a_page_that_does_not_know_its_languages_announces_none(site, opened, tmp_path):
    folder = shutil.copytree(site, tmp_path / "site")
    settings = json.loads((folder / SETTINGS).read_text()) | {"source_language": None, "translation_language": None}
    (folder / SETTINGS).write_text(json.dumps(settings))
    page = opened(folder)
    page.wait_for_selector("#translate:enabled")
    assert [page.inner_text(f"label[for={side}]") for side in ("source", "translation")] == ["Source", "Translation"]
    name = json.loads((folder / "models.json").read_text())["name"]
    assert (page.inner_text("h1"), page.title()) == (name, f"{name} translator")
    assert [page.get_attribute(side, "lang") for side in ("#source", "#translation")] == ["", ""]


def test_a_translation_of_another_text_is_marked_and_one_of_nothing_goes(golden, page):
    translate(page, golden.texts[0])
    page.fill("#source", golden.texts[1])
    assert page.inner_text("#status") == "The text has changed." and page.is_disabled("#copy")
    assert "unfinished" in page.get_attribute("#translation", "class")
    page.fill("#source", golden.texts[0])
    assert page.inner_text("#status") == "Done." and page.is_enabled("#copy")
    assert "unfinished" not in page.get_attribute("#translation", "class")
    page.fill("#source", "")
    page.wait_for_selector("#translation:empty")
    assert page.inner_text("#status") == "Ready." and page.is_disabled("#copy") and page.is_hidden("#results")


def test_a_page_opens_again_without_its_server(golden, site, browser):
    """Playwright's own offline mode does not reach service workers, so the server ends."""
    serving = server(site)
    threading.Thread(target=serving.serve_forever, daemon=True).start()
    page = browser.new_page()
    page.goto("http://{}:{}/".format(*serving.server_address))
    expected = translate(page, golden.texts[0])
    page.evaluate("navigator.serviceWorker.ready")
    serving.shutdown()
    serving.server_close()
    page.reload()
    assert translate(page, golden.texts[0]) == expected
    page.select_option("#model", index=1)  # Only the first model is kept.
    page.wait_for_selector("#problem:visible")
    assert "int8/translator.json could not be loaded" in page.inner_text("#problem")
    page.close()


def test_nothing_is_built_without_litert(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "ai_edge_litert", None)
    with pytest.raises(ImportError, match=r"LiteRT is not installed\. Try: pip install ai-edge-litert"):
        export_web(None, tmp_path / "site")
    assert list(tmp_path.iterdir()) == []


def test_another_version_of_a_page_is_another_service_worker(golden, cache, tflite, site, tmp_path):
    script = (site / "service-worker.js").read_text()
    kept = json.loads(re.search(r"const FILES = (.*);", script)[1])
    assert kept[0] == "./" and {"page.js", "translator.js", "models/float32/translator.tflite"} < set(kept)
    assert all((site / name).exists() for name in kept) and not [name for name in kept if "int8" in name]
    folder, _ = export_page(
        golden, cache, tflite, tmp_path / "site", quantizations=["none"]
    )  # Other files, kept the same.
    other = (folder / "service-worker.js").read_text()
    assert other != script and other.splitlines()[1:] == script.splitlines()[1:]


def test_a_page_is_verified_later(golden, site, tmp_path, monkeypatch):
    shares = {"float32": 1.0, "int8": 0.97}
    monkeypatch.setattr("keras_transformer.export.verify.verify_tflite", lambda folder, _: shares[folder.name])
    models = [site / "models" / name for name in shares]
    assert list(verify(site, golden.translator)) == [
        (models[0], 1.0, f"{models[0]} translates 100% of made-up sentences as Python does."),
        (models[1], 0.97, f"{models[1]} translates 97% of made-up sentences as Python does."),
    ]
    other = shutil.copytree(site, tmp_path / "other")
    (other / "page.js").write_text("")
    with pytest.raises(FileError, match=r"not those of the export: page\.js has changed\. Export it again\."):
        list(verify(other, golden.translator))


def test_another_model_can_be_chosen(golden, site, page):
    translate(page, golden.texts[0])
    page.evaluate("delete document.body.dataset.state")
    page.select_option("#model", index=1)  # Translates what is there with the other one.
    page.wait_for_selector("body[data-state=done]")
    assert page.inner_text("#timing").startswith("Small: ")
    assert page.inner_text("#translation")
    page.evaluate("delete document.body.dataset.state")
    page.select_option("#model", index=0)  # For the other tests.
    page.wait_for_selector("body[data-state=done]")
    assert page.inner_text("#timing").startswith("Exact: ")
    sizes = [(site / "models" / name / "translator.tflite").stat().st_size / 1e6 for name in ("float32", "int8")]
    names = [f"{name}, {size:.1f} MB" for name, size in zip(("Exact", "Small"), sizes, strict=True)]
    assert page.locator("#model option").all_text_contents() == names


@pytest.fixture(scope="module")
def broken(site, opened_for_all):
    """A page of which tests damage the answers of the server, one after the other."""
    return opened_for_all(site)


PAGE = "<!doctype html>"  # What development servers send for a file that they do not have.
NO_ENDS = "no ends"  # The file's signatures have an output of another name.

LISTS = [
    "null",
    "[1, 2]",
    "{}",
    '{"name": "a", "models": []}',
    '{"name": "a", "models": {"0": 1}}',
    '{"name": "a", "models": [null]}',
    '{"name": 7, "models": [{"name": "a", "folder": "a", "bytes": 1}]}',
    '{"name": "a", "models": [{"name": "a", "folder": "a"}]}',
]


@pytest.mark.parametrize(
    ("name", "damaged", "message"),
    [
        ("models.json", None, "The list of models, models.json, cannot be used (404"),
        ("models.json", "[1, 2", "The list of models, models.json, cannot be used ("),
        *(("models.json", text, "it must have a name, and models with name, folder and bytes") for text in LISTS),
        ("models/float32/translator.json", None, "float32/translator.json could not be loaded (404"),
        (SETTINGS, PAGE, "float32/translator.json could not be loaded (the server sent a page instead). The folder of"),
        (SETTINGS, "{", "float32/translator.json cannot be used: "),
        (SETTINGS, "null", "translator.json cannot be used: source_length must be a whole number from 1 on."),
        (SETTINGS, {"source_length": "40"}, "cannot be used: source_length must be a whole number from 1 on."),
        (SETTINGS, {"end_token_id": None}, "cannot be used: end_token_id must be a whole number from 0 on."),
        (SETTINGS, {"source_bytes": 0}, "cannot be used: source_bytes must be a whole number from 1 on."),
        (SETTINGS, {"settings": None}, "cannot be used: settings must have a max_length_ratio of at least 0."),
        (SETTINGS, {"length_margin": "x"}, "cannot be used: length_margin must be a whole number from 0 on."),
        (SETTINGS, {"sentences": None}, "cannot be used: sentences must hold the rules that split texts."),
        (
            SETTINGS,
            {"sentences": {"rules": [["(", ""]]}},
            "cannot be used: sentences must hold the rules that split texts.",
        ),
        (SETTINGS, {"num_placeholders": -1}, "cannot be used: num_placeholders must be a whole number from 0 on."),
        (
            SETTINGS,
            {"placeholders": None},
            "cannot be used: placeholders must hold the rules of what is not translated.",
        ),
        (SETTINGS, {"no_hypothesis_score": None}, "cannot be used: no_hypothesis_score must be a number."),
        ("models/float32/translator.tflite", None, "float32/translator.tflite could not be loaded (404"),
        ("models/float32/translator.tflite", 3000, "translator.tflite cannot be used"),
        (
            "models/float32/translator.tflite",
            NO_ENDS,
            "it has no tokenizer that says where tokens end. Export",
        ),
        ("litert/litert_wasm_internal.wasm", None, "LiteRT's WebAssembly could not be started"),
        ("worker.js", None, "The translator stopped: its script could not be loaded."),
        ("translator.js", None, "The translator, translator.js, could not be loaded ("),
    ],
)
def test_what_is_missing_or_damaged_is_said(site, broken, name, damaged, message):
    """The server has no such file; or another text, the beginning of its bytes, or other settings."""
    content, page = (site / name).read_bytes(), broken
    if damaged == NO_ENDS:
        damaged = content.replace(b"ends", b"dens")
    if isinstance(damaged, dict):
        damaged = json.dumps(json.loads(content) | damaged)
    body = content[:damaged] if isinstance(damaged, int) else damaged
    kind = "text/html" if damaged == PAGE else "application/octet-stream"
    answer = {"status": 404} if body is None else {"body": body, "content_type": kind}
    page.route(f"{page.origin}/{name}", lambda route: route.fulfill(**answer))
    page.goto(page.origin)
    page.wait_for_selector("#problem:visible")
    assert message in page.inner_text("#problem")
    assert page.is_disabled("#translate")
    page.fill("#source", "a")
    page.unroute_all()
    assert page.errors == []


# Answers every request as the worker does, with markup in all that it says.
HOSTILE = "</script><img src=x onerror=alert(1)><b>&amp;"
WORKER = """
const text = TEXT;
const attention = { source: [text], target: [text], layers: 1, heads: 1, tags: 0, scores: [[[[1]]]] };
const times = { greedy: 1, search: 1, attention: 1 };
const hypotheses = [{ ids: [3], text, score: -1 }];
const answers = {
  load: { languages: { [text]: 4, de: 5 }, target_language: text },
  count: { sentences: 1, tokens: 1 },
  translate: { sentences: [{ source: text, ids: [3], hypotheses }], separators: ["", ""], times },
  attention,
};
let asked = 0;
self.onmessage = ({ data: { id, kind } }) => {
  if (kind === "translate") {
    self.postMessage({ id, progress: { parts: ["", text, ""] } });
    self.postMessage({ id, progress: { index: 0, sentence: text } });
  }
  self.postMessage(kind === "attention" && asked++ ? { id, error: text } : { id, result: answers[kind] });
};
"""


def test_markup_in_names_translations_and_tokens_is_text(site, opened, tmp_path):
    folder = shutil.copytree(site, tmp_path / "site")
    content = json.loads((folder / "models.json").read_text())
    content["name"] = content["models"][0]["name"] = HOSTILE
    (folder / "models.json").write_text(json.dumps(content))
    (folder / "worker.js").write_text(WORKER.replace("TEXT", json.dumps(HOSTILE)))
    page = opened(folder)
    assert [translation for translation, _ in translate(page, HOSTILE)] == [HOSTILE]
    assert page.title() == f"{page.text_content('h1')} translator" == f"{HOSTILE} translator"
    assert page.text_content("#translation") == HOSTILE
    assert page.text_content("#timing").startswith(f"{HOSTILE}: ")
    assert page.locator("#model option").first.text_content().startswith(HOSTILE)
    assert page.locator("#direction option").all_text_contents() == [HOSTILE, "German"]
    assert page.locator("#attention th").all_text_contents() == [HOSTILE, HOSTILE]
    assert page.get_attribute("#attention td[title]", "title") == f"{HOSTILE} looks at {HOSTILE}: 100.0 %"
    page.click("#hypotheses button")
    page.wait_for_selector("#problem:visible")
    assert page.text_content("#problem") == HOSTILE
    assert page.locator("img, b").count() == 0
    assert page.errors == [] and not [url for url in page.asked if not url.startswith((page.origin, "data:"))]


@contextlib.contextmanager
def files_alone(folder, **headers):
    """The address of a server that sends the files of a folder, and these headers, alone."""

    class Handler(SimpleHTTPRequestHandler):
        def end_headers(self):
            for name, value in headers.items():
                self.send_header(name.replace("_", "-"), value)
            super().end_headers()

    with ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Handler, directory=folder)) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield "http://{}:{}".format(*server.server_address)
        server.shutdown()


@pytest.mark.parametrize("headers", [True, False])
def test_the_policy_forbids_what_is_not_the_pages_own(site, opened, headers):
    """That of the server, and that of the page itself, for other servers."""
    assert f'<meta http-equiv="Content-Security-Policy" content="{POLICY}">' in (site / "index.html").read_text()
    with contextlib.nullcontext("") if headers else files_alone(site) as address:
        page = opened(site, address=address)
        page.wait_for_selector("#translate:enabled")  # The worker and WebAssembly run.
    act = """(kind) => new Promise((answer) => {
        document.onsecuritypolicyviolation = (event) => answer(event.effectiveDirective);
        const add = (name, properties) => document.body.append(Object.assign(document.createElement(name), properties));
        if (kind === "script") add("script", { textContent: "document.title = 1" });
        if (kind === "style") add("style", { textContent: "h1 { color: red }" });
        if (kind === "image") add("img", { src: "http://127.0.0.1:9/" });
        if (kind === "frame") add("iframe", { src: "http://127.0.0.1:9/" });
        if (kind === "fetch") fetch("http://127.0.0.1:9/").catch(() => {});
        if (kind === "form") {
            add("form", { action: "http://127.0.0.1:9/" });
            document.body.lastChild.submit();
        }
    })"""
    directives = {
        "script": "script-src-elem",
        "style": "style-src-elem",
        "image": "img-src",
        "frame": "frame-src",
        "fetch": "connect-src",
        "form": "form-action",
    }
    assert {kind: page.evaluate(act, kind) for kind in directives} == directives


def test_a_page_that_is_opened_as_a_file_says_how_to_serve_it(site, opened):
    page = opened(site, address=f"file://{site}/index.html")
    assert "python3 -m http.server" in page.inner_text("#problem")


def followed(page, link):
    """What is shown after a link to the page was followed, in the tab where it is open."""
    page.evaluate("delete document.body.dataset.state")
    page.goto(f"{page.origin}/{link}")
    page.wait_for_selector("body[data-state=done]")
    return page.input_value("#source"), page.evaluate("document.getElementById('translation').textContent")


def test_a_link_has_the_text(golden, site, opened):
    page = opened(site, permissions=["clipboard-read", "clipboard-write"])
    text = f"{golden.texts[0]}\n\n1 + 1 = 2 & 50 % #b {golden.texts[1]} 😀"
    translate(page, text)
    page.click("#link")
    page.wait_for_selector("#status:has-text('The link is copied. It contains the text.')")
    link = page.evaluate("navigator.clipboard.readText()").removeprefix(f"{page.origin}/")
    assert link.startswith("#text=") and link.endswith("&from=en&to=de")
    assert followed(page, "#text=" + golden.texts[2].replace(" ", "%20")) == (
        golden.texts[2],
        *golden.translator.translate(golden.texts[2:3]),
    )
    page.goto("about:blank")  # In a new tab.
    page.goto(f"{page.origin}/{link}")
    page.wait_for_selector("body[data-state=done]")
    assert page.input_value("#source") == text
    assert page.evaluate("document.getElementById('translation').textContent") == golden.translator.translate_text(text)
    assert not [url for url in page.asked if "text=" in url.split("#")[0]]  # No server got a text.
    # Browsers have a clipboard for HTTPS and localhost alone.
    page.evaluate("Object.defineProperty(navigator, 'clipboard', { value: undefined })")
    translate(page, golden.texts[0])
    page.click("#copy")
    page.wait_for_selector("#status:has-text('This browser does not allow copying here.')")
    page.click("#link")
    page.wait_for_selector("#status:has-text('Copy the link from the address bar.')")
    assert page.url == f"{page.origin}/#text={golden.texts[0].replace(' ', '+')}&from=en&to=de"
    assert page.errors == []


def test_a_malformed_link_does_no_harm(golden, page):
    assert followed(page, "#text=%E0%A4%A+50%+%&to=%&from")[0] == "\ufffd%A 50% %"
    assert followed(page, f"#to=xx&text={golden.texts[0]}&text=b")[0] == golden.texts[0]
    assert followed(page, "#to=constructor&text=<img src=x onerror=alert(1)>")[0] == "<img src=x onerror=alert(1)>"
    assert page.locator("img").count() == 0
    assert followed(page, "#text") == ("", "")
    page.fill("#source", "mine")
    for link in ("#", "#%", "#to=de", "#&&==&", "#text2=a"):  # Nothing to translate.
        page.goto(f"{page.origin}/{link}")
        assert page.input_value("#source") == "mine"
    long = "A dog. " * 10_000
    page.goto(f"{page.origin}/#text={long.replace(' ', '+')}")
    page.wait_for_selector("#status:has-text('Translating … ')")
    assert page.input_value("#source") == long
    assert followed(page, "#text") == ("", "")  # Ends that.


def test_nothing_on_the_page_keeps_people_out(golden, page, axe):
    """By the rules of axe-core: what screen readers need, keyboards reach and weak eyes read."""
    check = functools.partial(assert_accessible, page, axe)
    for width, scheme in ((1280, "light"), (1280, "dark"), (390, "light"), (390, "dark")):
        page.set_viewport_size({"width": width, "height": 844})
        page.emulate_media(color_scheme=scheme)
        page.fill("#source", "")
        page.wait_for_selector("#translation:empty")
        check()
        translate(page, f"{golden.texts[0]} Nobody {{x}} {golden.texts[1]}")  # Some words are doubtful.
        page.wait_for_selector("#attention td")
        check()
        page.evaluate("delete document.body.dataset.state")
        assert page.evaluate(PASTE, [f"<h1>A dog</h1><p><b>{golden.texts[0]}</b></p>", "a"])
        page.wait_for_selector("body[data-state=done]")
        check()
        page.click("#plain")
        page.fill("#source", f"{golden.texts[0]} A")  # Not translated yet.
        page.evaluate("problem('The translator stopped.')")
        check()
        page.evaluate("problem('')")


def test_nothing_is_wider_than_a_phone(golden, page):
    page.set_viewport_size({"width": 390, "height": 844})
    translate(page, golden.texts[0])
    title = page.locator("header h1")
    name = title.text_content()
    title.evaluate("(title) => (title.textContent += 'a'.repeat(99))")  # The name of a run.
    for scheme in ("light", "dark"):
        page.emulate_media(color_scheme=scheme)
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
        light = page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(246, 247, 249)"
        assert light == (scheme == "light")
    title.evaluate("(title, name) => (title.textContent = name)", name)


def test_a_report_measures_the_page_of_a_run(golden, cache, site, tmp_path, monkeypatch):
    run = tmp_path / "run"
    shutil.copytree(site, run / "export" / "web")
    for name in ("config.json", "model.keras", "tokenizer.spm"):
        shutil.copy(golden.run_dir / name, run)
        os.utime(run / name, (0, 0))  # The page is newer.
    pairs = list(zip(golden.texts, golden.translator.translate(golden.texts), strict=True))
    pairs += [(" ".join(side) for side in zip(*pairs[:2], strict=True)), ("", "")]  # Two sentences, and none.
    text = ParallelText([tuple(pair) for pair in pairs], "test")
    monkeypatch.setenv("KERAS_HOME", str(cache))
    monkeypatch.setattr(report, "load_corpus", lambda data: SimpleNamespace(test=[text]))
    monkeypatch.setattr(report, "FORMS", {})
    monkeypatch.setattr(report, "BROWSER_FORMS", {"browser float32": ("web", "none")})
    monkeypatch.setattr(report, "in_own_process", lambda function, *arguments: function(*arguments))
    monkeypatch.setattr(report, "chromium", contextlib.nullcontext)  # One is open here.
    (row,) = report.write_report([str(run)], tmp_path / "report", browser=True)
    (scores,) = row["texts"].values()
    assert scores["bleu"] == pytest.approx(100) and row["p99"] >= row["p95"] >= row["ms"] > 0
    assert list(row["per_second"]) == ["1"]  # A page has one user.
    assert row["bytes"] == (site / "models" / "float32" / "translator.tflite").stat().st_size


@pytest.mark.parametrize("newer", ["model.keras", "config.json", "shortlist.npz"])
def test_a_report_uses_no_export_that_is_older_than_its_run(tmp_path, newer):
    run = Run(tmp_path)
    for name in ("model.keras", "config.json", "shortlist.npz", "export"):
        (tmp_path / name).touch()
        os.utime(tmp_path / name, (2, 2))
    assert report.up_to_date(tmp_path / "export", run)
    os.utime(tmp_path / newer, (3, 3))
    assert not report.up_to_date(tmp_path / "export", run)


@pytest.fixture
def ask(tmp_path):
    """`ask(path, method, host)` is the answer of a server of `tmp_path / "site"`; it is its own address by default."""
    (tmp_path / "site").mkdir()
    with server(tmp_path / "site") as site:
        threading.Thread(target=site.serve_forever, daemon=True).start()

        def ask(path, method="GET", host=None):
            connection = HTTPConnection("127.0.0.1", site.server_port, timeout=60)
            connection.request(method, path, headers={"Host": host or f"127.0.0.1:{site.server_port}"})
            answer = connection.getresponse()
            answer.body = answer.read()
            connection.close()
            return answer

        yield ask
        site.shutdown()


def test_the_server_says_nothing_when_a_browser_cancels_a_download(tmp_path, capfd):
    (tmp_path / "large").write_bytes(bytes(50_000_000))  # More than fits into the buffers of a connection.
    with server(tmp_path) as site:
        site.daemon_threads = False  # So that closing the server waits for the answer.
        threading.Thread(target=site.serve_forever, daemon=True).start()
        with socket.create_connection(site.server_address) as connection:
            connection.sendall(b"GET /large HTTP/1.0\r\nHost: localhost\r\n\r\n")
            assert connection.recv(12) == b"HTTP/1.0 200"
        site.shutdown()
    assert capfd.readouterr().err == ""


def test_the_server_says_what_files_are_and_what_a_page_may_do(ask, tmp_path):
    types = {
        "index.html": "text/html; charset=utf-8",
        "a.js": "text/javascript; charset=utf-8",
        "a.css": "text/css; charset=utf-8",
        "a.json": "application/json",
        "a.wasm": "application/wasm",
        "a.txt": "text/plain; charset=utf-8",
        "a.tflite": "application/octet-stream",
    }
    for name, kind in types.items():
        (tmp_path / "site" / name).write_text("content")
        answer = ask(f"/{name}")
        assert (answer.status, answer.body, answer.headers["Content-Type"]) == (200, b"content", kind)
    assert ask("/").body == b"content"
    head = ask("/index.html", "HEAD")
    assert (head.status, head.body, head.headers["Content-Length"]) == (200, b"", "7")
    for answer in (head, ask("/none")):
        assert answer.headers["X-Content-Type-Options"] == "nosniff"
        assert answer.headers["Referrer-Policy"] == "no-referrer"
        assert answer.headers["Content-Security-Policy"] == f"{POLICY}; frame-ancestors 'none'"
    assert {ask("/index.html", method).status for method in ("POST", "PUT", "DELETE", "OPTIONS", "TRACE")} == {501}


def test_the_server_answers_nobody_who_calls_it_by_another_name(ask, tmp_path):
    (tmp_path / "site" / "index.html").write_text("content")
    for host in ("127.0.0.1:8000", "localhost", "LOCALHOST:80"):
        assert ask("/", host=host).status == 200
    for host in ("evil.example", "evil.example:8000", "127.0.0.1.evil.example", "localhost@evil.example", "[::1]", " "):
        for method in ("GET", "HEAD"):
            answer = ask("/", method, host)
            assert (answer.status, b"content" in answer.body) == (421, False)


def test_the_server_gives_nothing_but_files_of_the_folder(ask, tmp_path):
    site = tmp_path / "site"
    (tmp_path / "secret").mkdir()
    (tmp_path / "secret" / "index.html").write_text("secret")
    (site / "folder").mkdir()
    (site / "folder" / "file").write_text("content")
    (site / "link").symlink_to("folder/file")
    (site / "out").symlink_to("../secret/index.html")
    (site / "outside").symlink_to("../secret")
    (site / "inner").mkdir()
    (site / "inner" / "index.html").symlink_to("../../secret/index.html")
    os.mkfifo(site / "pipe")
    assert ask("/folder/file").body == ask("/link").body == b"content"
    paths = ["/", "/folder", "/folder/", "/out", "/outside/", "/outside/index.html", "/inner/", "/pipe"]
    paths += ["/../secret/index.html", "/%2e%2e/secret/index.html", "//etc/passwd", "/%00", "/" + "a" * 300]
    for path in paths:
        answer = ask(path)
        assert (path, answer.status, b"secret" in answer.body, b"file" in answer.body) == (path, 404, False, False)


def test_errors_leave_what_is_there(tmp_path):
    kept = tmp_path / "kept"
    kept.write_text("mine")
    tokenizer = Tokenizer.train(["a small dog", "a small cat", "a big dog"] * 9, kind="wordpiece")
    size = tokenizer.vocabulary_size
    model = Transformer(size, num_layers=1, num_heads=1, hidden_dim=4, intermediate_dim=5)
    with pytest.raises(FileError, match="kept is a file, and a folder is to be written there"):
        export_web(Translator(model, tokenizer), kept)
    assert kept.read_text() == "mine"
    with pytest.raises(ExportError, match=r"SentencePiece tokenizers only\. Received: tokenizer wordpiece"):
        export_web(Translator(model, tokenizer), tmp_path / "site")
    taken = server(tmp_path)
    with pytest.raises(ExportError, match=r"Cannot serve on port \d+: .* Choose another --port\."):
        server(tmp_path, taken.server_address[1])
    taken.server_close()
    with pytest.raises(ExportError, match=r"Cannot serve on port 99999: a port is a number from 0 to 65535\. Choose"):
        server(tmp_path, 99999)
    assert [path.name for path in tmp_path.iterdir()] == ["kept"]


# The build. Here npm and Node.js are a few lines of Python, so that this is tested where they are missing, too.

NODE = """
import pathlib, sys
if sys.argv[1:] == ["--version"]:
    print("v18.19.1")
else:
    assert pathlib.Path("src/worker.js").is_file()
    (pathlib.Path(sys.argv[2]) / "worker.js").write_text("the worker")
"""
NPM = """
import os, pathlib
print("npm ci", file=open(os.environ["LOG"], "a"))
pathlib.Path("node_modules").mkdir()
"""
# What npm 11 and Node.js 20 say.
UNREACHABLE = """npm error code ENOTFOUND
npm error syscall getaddrinfo
npm error errno ENOTFOUND
npm error network request to https://registry.npmjs.org/esbuild failed, reason: getaddrinfo ENOTFOUND registry.npmjs.org
npm error network This is a problem related to network connectivity.
"""
FORGED = """npm error code EINTEGRITY
npm error Integrity checksum failed when using sha512: wanted sha512-a but got sha512-b.
npm error A complete log of this run can be found in: /root/.npm/_logs/debug-0.log
"""
UNRESOLVED = """node:internal/modules/esm/resolve:873
  throw new ERR_MODULE_NOT_FOUND(packageName, fileURLToPath(base), null);
        ^

Error [ERR_MODULE_NOT_FOUND]: Cannot find package 'esbuild' imported from build.js
    at packageResolve (node:internal/modules/esm/resolve:873:9)
"""


def failing(text):
    return f"import sys\nif sys.argv[1:] == ['--version']: print('v22.1.0')\nelse: sys.exit({text!r})"


@pytest.fixture
def programs(tmp_path, monkeypatch):
    """`programs(npm=..., node=...)` leaves nothing but these on the PATH; the cache is `tmp_path / "cache"`."""

    def write(**code_of):
        for name, code in code_of.items():
            (tmp_path / "bin" / name).write_text(f"#!{sys.executable}\n{code}")
            (tmp_path / "bin" / name).chmod(0o755)

    (tmp_path / "bin").mkdir()
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    monkeypatch.setenv("LOG", str(tmp_path / "log"))
    monkeypatch.setenv("KERAS_HOME", str(tmp_path / "cache"))
    return write


MISSING = {
    "nothing": (
        {},
        r"no `node` on the PATH\. Install Node\.js 18 or newer, which brings npm, or copy \S+/page/\w+ from",
    ),
    "no npm": ({"node": NODE}, r"no `npm` on the PATH\. Install Node\.js 18 or newer, which brings npm, or copy"),
    "old": ({"node": "print('v16.20.2')", "npm": NPM}, r"Node\.js v16\.20\.2\. Install Node\.js 18 or newer"),
    "broken": ({"node": "", "npm": NPM}, r"Node\.js without a version\. Install Node\.js 18 or newer"),
    "no registry": (
        {"node": NODE, "npm": failing(UNREACHABLE)},
        r"network request to \S+/esbuild failed, reason: getaddrinfo ENOTFOUND registry\.npmjs\.org\. "
        r"Export again when npm's registry can be reached, or copy \S+/page/\w+ from a machine where",
    ),
    "forged": ({"node": NODE, "npm": failing(FORGED)}, r"Integrity checksum failed when using sha512: .* Export again"),
    "silent": ({"node": NODE, "npm": "raise SystemExit(3)"}, r"exit status 3\. Export again"),
    "no build": (
        {"node": failing(UNRESOLVED), "npm": NPM},
        r"Error \[ERR_MODULE_NOT_FOUND\]: Cannot find package 'esbuild' .*\. If it fails again, copy \S+/page/\w+ from",
    ),
}


@pytest.mark.parametrize(("found", "message"), MISSING.values(), ids=MISSING)
def test_why_the_page_cannot_be_built_and_what_to_do(programs, tmp_path, found, message):
    programs(**found)
    with pytest.raises(ExportError, match=f"Received: {message}"):
        built_page()
    assert list((tmp_path / "cache" / "keras_transformer" / "page").iterdir()) == []


def test_the_page_is_built_once_and_then_needs_no_npm(programs, tmp_path, capfd):
    programs(node=NODE, npm=NPM)
    page = built_page()
    assert page.parent == tmp_path / "cache" / "keras_transformer" / "page"
    assert sorted(file.name for file in page.iterdir()) == [MANIFEST, "worker.js"]
    assert capfd.readouterr().err == f"Building the page with npm, once, in {page} ...\n"
    for name in ("node", "npm"):
        (tmp_path / "bin" / name).unlink()
    assert built_page() == page
    assert capfd.readouterr().err == ""


def test_other_sources_are_another_page(programs, tmp_path, monkeypatch):
    programs(node=NODE, npm=NPM)
    pages = {built_page()}
    monkeypatch.setattr(web, "SOURCES", shutil.copytree(SOURCES, tmp_path / "web"))
    (tmp_path / "web" / "node_modules").mkdir()  # Where the page is developed.
    (tmp_path / "web" / "node_modules" / "file").write_text("")
    assert {built_page()} == pages
    (tmp_path / "web" / "src" / "worker.js").write_text("another")
    pages.add(built_page())
    (tmp_path / "web" / "src" / "worker.js").rename(tmp_path / "web" / "src" / "other.js")
    programs(node=NODE.replace("worker.js", "other.js"))
    pages.add(built_page())
    assert len(pages) == 3


def test_a_build_that_was_killed_is_never_taken_for_a_whole_one(programs, tmp_path):
    """Not even while the npm that it leaves running still writes."""
    slow = """
import time
for _ in range(6000):
    if os.path.exists(os.environ["LOG"] + "-go"):
        break
    time.sleep(0.01)
pathlib.Path("node_modules/half").write_text("half")
"""
    programs(node=NODE, npm=NPM + slow)
    code = "from keras_transformer.export.web import built_page\nbuilt_page()"
    with subprocess.Popen([sys.executable, "-c", code], stderr=subprocess.DEVNULL) as process:
        while not (tmp_path / "log").exists():
            assert process.poll() is None
            time.sleep(0.01)
        process.kill()
    lock = os.open(tmp_path / "cache" / "keras_transformer" / "page", os.O_RDONLY)
    with pytest.raises(BlockingIOError):  # That npm holds it.
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    os.close(lock)
    (tmp_path / "log-go").touch()
    page = built_page()  # Waits for the lock.
    assert sorted(file.name for file in page.iterdir()) == [MANIFEST, "worker.js"]
    assert list(page.parent.iterdir()) == [page]
    assert (tmp_path / "log").read_text() == "npm ci\n" * 2


def test_a_cache_that_cannot_be_used_is_named(programs, tmp_path):
    programs(node=NODE, npm=NPM)
    (tmp_path / "cache").write_text("a file")
    with pytest.raises(ExportError, match=r"Cannot write to \S+/page/\w+: .*\. KERAS_HOME can name another folder"):
        built_page()
    (tmp_path / "cache").unlink()
    manifest = built_page() / MANIFEST
    manifest.unlink()  # A copy from another machine that was interrupted.
    with pytest.raises(
        ExportError, match=r"no export wrote worker\.js\. Choose another place, or move that folder away"
    ):
        built_page()


def test_what_npm_loads_is_locked():
    content = json.loads((SOURCES / "package.json").read_text())
    packages = json.loads((SOURCES / "package-lock.json").read_text())["packages"]
    for name, version in {**content["dependencies"], **content["devDependencies"]}.items():
        assert packages[f"node_modules/{name}"]["version"] == version
    del packages[""]  # The page itself.
    for package in packages.values():
        assert re.fullmatch(r"sha512-[A-Za-z0-9+/]{86}==", package["integrity"])


def test_the_page_brings_the_licenses_of_what_it_contains(site):
    packages = json.loads((SOURCES / "package-lock.json").read_text())["packages"]
    contained = set(re.findall(r"// node_modules/((?:@[\w-]+/)?[\w-]+)/", (site / "worker.js").read_text()))
    assert contained == {"@litertjs/core", "@litertjs/wasm-utils"}
    licenses = (site / "licenses.txt").read_text()
    assert "node_modules" not in (site / "translator.js").read_text()
    for name in contained:
        assert name in licenses
        assert f"LiteRT.js {packages[f'node_modules/{name}']['version']} " in licenses
        assert packages[f"node_modules/{name}"]["license"] == "Apache-2.0"
    assert "Apache License" in (site / "litert" / "LICENSE").read_text()
    assert 'href="licenses.txt"' in (site / "index.html").read_text()
