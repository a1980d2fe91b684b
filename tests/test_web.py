"""The page translates in a real browser as Python does. Skipped where there is no Chromium."""

import itertools
import re
import shutil
import signal
import subprocess
import sys
import threading
from pathlib import Path

import numpy as np
import pytest

from keras_transformer.export import ExportError
from keras_transformer.export.verify import ODD
from keras_transformer.export.web import PAGE, export_web, server
from keras_transformer.model import Transformer
from keras_transformer.phrasebook import phrasebook
from keras_transformer.tokenizers import Tokenizer
from keras_transformer.translator import Translator

SOURCES = Path(__file__).parents[1] / "web" / "src"
LENGTH = 40


@pytest.fixture(scope="module")
def site(golden, tmp_path_factory):
    path = tmp_path_factory.mktemp("web") / "site"
    folder, shares = export_web(golden.translator, path, source_length=LENGTH, target_length=LENGTH)
    assert shares["float32"] == 1.0
    return folder


@pytest.fixture
def opened(browser):
    """`opened(folder, **context)` serves a folder and opens its page; what the page asks for is in `page.asked`."""
    closing = []

    def open_page(folder, address="", **context):
        site = server(folder)
        threading.Thread(target=site.serve_forever, daemon=True).start()
        inside = browser.new_context(**context)
        closing.extend([inside.close, site.shutdown, site.server_close])
        page = inside.new_page()
        page.set_default_timeout(60_000)
        page.asked, page.errors = [], []
        page.on("request", lambda request: page.asked.append(request.url))
        page.on("pageerror", lambda error: page.errors.append(error))
        page.origin = "http://{}:{}".format(*site.server_address)
        page.goto(address or page.origin)
        return page

    yield open_page
    for close in closing:
        close()


def translate(page, text):
    """What the page shows for a text: hypotheses and scores."""
    page.wait_for_selector("#translate:enabled")
    page.evaluate("delete document.body.dataset.state")
    page.fill("#source", text)
    page.keyboard.press("Control+Enter")
    page.wait_for_selector("body[data-state=done]")
    rows = page.locator("#hypotheses button").all()
    return [(row.locator("span").nth(0).inner_text(), float(row.locator(".score").inner_text())) for row in rows]


def test_the_page_translates_as_python_does(golden, site, opened):
    page = opened(site)
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
    assert page.errors == []


@pytest.mark.parametrize("kind", ["unigram", "bpe"])
def test_the_tokenizer_in_javascript_has_the_ids_of_sentencepiece(opened, tmp_path, kind):
    sentences = [text for pair in phrasebook()["train"][:500] for text in pair]
    tokenizer = Tokenizer.train(sentences, vocabulary_size=400, kind=kind)
    tokenizer.save(tmp_path / "tokenizer")
    shutil.copy(SOURCES / "sentencepiece.js", tmp_path)
    (tmp_path / "index.html").write_text("")
    rng = np.random.default_rng(0)
    noise = [rng.integers(1, high, rng.integers(1, 30)) for high in (0x7F, 0x250, 0x3100, 0xD800, 0x1F9FF) * 40]
    texts = [text.decode(errors="replace") for text in ODD] + sentences[::10]
    texts += ["".join(map(chr, codes[(codes < 0xD800) | (codes > 0xDFFF)])) for codes in noise]
    texts += ["ﬁ ﬂ ①", "a▁b  ▁", "<s> </s>", "\ufeff\u200b　全角", "A" + "bc" * 300]
    rows = [rng.integers(0, 400, rng.integers(0, 9)).tolist() for _ in range(300)]
    code = """async ([texts, rows]) => {
        const { SentencePiece } = await import("/sentencepiece.js");
        const model = new SentencePiece(await (await fetch("/tokenizer.spm")).arrayBuffer());
        return [texts.map((text) => model.encode(text)), rows.map((ids) => model.decode(ids))];
    }"""
    ids, decoded = opened(tmp_path).evaluate(code, [texts, rows])
    wanted = tokenizer.tokenize(texts)
    assert [text for text, a, b in zip(texts, wanted, ids, strict=True) if a != b] == []
    assert decoded == tokenizer.detokenize(rows)


def test_the_translation_grows_piece_by_piece_and_hypotheses_can_be_chosen_by_keyboard(golden, site, opened):
    page = opened(site)
    page.evaluate("""() => {
        window.seen = [];
        const shown = document.getElementById("translation");
        new MutationObserver(() => seen.push(shown.textContent)).observe(shown, { childList: true });
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


def test_the_picture_shows_the_cross_attention(golden, site, opened):
    page = opened(site)
    translate(page, golden.texts[0])
    wanted = golden.translator.translate(golden.texts[:1], return_attention=True)[0].attention
    assert page.locator("#attention thead th").all_text_contents() == wanted.source_tokens
    assert page.locator("#attention tbody th").all_text_contents() == wanted.target_tokens

    def shown():
        titles = page.locator("#attention td[title]").evaluate_all("cells => cells.map((cell) => cell.title)")
        return [float(re.search(r": ([\d.]+) %$", title)[1]) / 100 for title in titles]

    assert page.locator("#layer").input_value() == "0"  # The last but one.
    assert shown() == pytest.approx(wanted.scores[0].mean(axis=0).ravel(), abs=2e-3)
    page.select_option("#layer", index=1)
    page.select_option("#head", index=2)
    assert shown() == pytest.approx(wanted.scores[1, 1].ravel(), abs=2e-3)


def test_nothing_too_much_and_strange_text(golden, site, opened):
    page = opened(site)
    translate(page, golden.texts[0])
    translate(page, "  ")
    assert page.inner_text("#translation") == "" and page.is_hidden("#results")
    translate(page, "\x00 😀 שלום " + golden.texts[0] * 20)
    page.wait_for_selector("#count.over")
    assert re.fullmatch(r"\d+ of 39 tokens: too long, the end will not be translated", page.inner_text("#count"))
    assert page.inner_text("#status") == "Done. Only the first 39 tokens were translated."
    assert page.errors == []


def test_another_model_can_be_chosen(golden, site, opened):
    page = opened(site)
    translate(page, golden.texts[0])
    page.evaluate("delete document.body.dataset.state")
    page.select_option("#model", index=1)  # Translates what is there with the other one.
    page.wait_for_selector("body[data-state=done]")
    assert page.inner_text("#timing").startswith("int8: ")
    assert page.inner_text("#translation")


def remove(name):
    return lambda folder: (folder / name).unlink()


def damage(name, size):
    return lambda folder: (folder / name).write_bytes((folder / name).read_bytes()[:size])


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (remove("models.json"), "The list of models, models.json, could not be loaded (404"),
        (remove("models/float32/translator.tflite"), "float32/translator.tflite could not be loaded (404"),
        (damage("models/float32/translator.tflite", 3000), "translator.tflite cannot be used"),
        (damage("models/float32/tokenizer.spm", 300), "tokenizer.spm cannot be used as a tokenizer"),
        (remove("litert/litert_wasm_internal.wasm"), "LiteRT's WebAssembly could not be started"),
        (remove("worker.js"), "The translator stopped: its script could not be loaded."),
    ],
)
def test_what_is_missing_is_said(site, opened, tmp_path, change, message):
    folder = shutil.copytree(site, tmp_path / "site")
    change(folder)
    page = opened(folder)
    page.wait_for_selector("#problem:visible")
    assert message in page.inner_text("#problem")
    assert page.is_disabled("#translate")


def test_a_page_that_is_opened_as_a_file_says_how_to_serve_it(site, opened):
    page = opened(site, address=f"file://{site}/index.html")
    assert "python3 -m http.server" in page.inner_text("#problem")


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_nothing_is_wider_than_a_phone(golden, site, opened, scheme):
    page = opened(site, viewport={"width": 390, "height": 844}, color_scheme=scheme)
    translate(page, golden.texts[0])
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    light = page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(246, 247, 249)"
    assert light == (scheme == "light")


def test_the_command_serves_what_it_wrote(golden, tmp_path):
    from urllib.request import urlopen

    output = tmp_path / "site"
    command = [sys.executable, "-m", "keras_transformer", "export", "web", str(golden.run_dir), "--output", str(output)]
    command += ["--quantize", "none", "--num-beams", "1", "--source-length", "20", "--target-length", "20"]
    command += ["--serve", "--port", "0"]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    # Where the tests run in the background, Ctrl-C is ignored, and what they start inherits that.
    with subprocess.Popen(command, preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL), **pipes) as process:
        assert process.stdout.readline() == f"{output}\n"
        address = next(match[1] for line in process.stderr if (match := re.search(r"Open (http://127\S+) ", line)))
        with urlopen(address) as answer:
            assert answer.read() == (PAGE / "index.html").read_bytes()
        with urlopen(f"{address}/litert/litert_wasm_internal.wasm") as answer:
            assert answer.headers["Content-Type"] == "application/wasm"
        process.send_signal(signal.SIGINT)
        process.communicate()
    assert process.returncode == 0


def test_errors_leave_what_is_there(tmp_path):
    kept = tmp_path / "kept"
    kept.write_text("mine")
    tokenizer = Tokenizer.train(["a small dog", "a small cat", "a big dog"] * 9, kind="wordpiece")
    size = tokenizer.vocabulary_size
    model = Transformer(size, num_layers=1, num_heads=1, hidden_dim=4, intermediate_dim=5)
    with pytest.raises(ExportError, match=r"exists\. Replace it with --overwrite"):
        export_web(Translator(model, tokenizer), kept)
    assert kept.read_text() == "mine"
    with pytest.raises(ExportError, match=r"SentencePiece tokenizers only\. Received: tokenizer wordpiece"):
        export_web(Translator(model, tokenizer), tmp_path / "site")
    taken = server(tmp_path)
    with pytest.raises(ExportError, match=r"Cannot serve on port \d+: .* Choose another --port\."):
        server(tmp_path, taken.server_address[1])
    taken.server_close()
    assert [path.name for path in tmp_path.iterdir()] == ["kept"]
