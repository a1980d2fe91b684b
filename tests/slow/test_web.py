"""The page translates in a real browser as Python does. Skipped where there is no Chromium, or no npm to build it."""

import json
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
import threading
from urllib.parse import urlencode

import pytest

from keras_transformer.export import report
from keras_transformer.export.verify import verify
from keras_transformer.export.web import SOURCES, export_web, server


def test_the_command_reports_every_form_of_a_run(golden, cache, has_chromium, tmp_path):
    texts = [tmp_path / "source.txt", tmp_path / "reference.txt"]
    for path, lines in zip(texts, (golden.texts, golden.translator.translate(golden.texts)), strict=True):
        path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    command = [sys.executable, "-m", "keras_transformer", "report", str(golden.run_dir), "--browser"]
    command += ["--text", *map(str, texts), "--output", str(tmp_path / "report")]
    environment = os.environ | {"KERAS_HOME": str(cache)}
    assert subprocess.run(command, env=environment, timeout=600).returncode == 0
    rows = json.loads((tmp_path / "report" / "report.json").read_text())
    assert [row["form"] for row in rows] == [*report.FORMS, *report.BROWSER_FORMS]
    for row in rows:
        (scores,) = row["texts"].values()
        assert scores["bleu"] > 90 if "int8" in row["form"] else scores["bleu"] == pytest.approx(100)
    assert shlex.join(map(str, command[3:-2])) in (tmp_path / "report" / "report.md").read_text()


def test_a_page_is_verified_later(golden, cache, tmp_path, monkeypatch):
    monkeypatch.setenv("KERAS_HOME", str(cache))
    site, shares = export_web(golden.translator, tmp_path / "site", source_length=20, target_length=40)
    found = list(verify(site, golden.translator))
    assert [(folder, share) for folder, share, _ in found] == [
        (site / "models" / name, shares[name]) for name in shares
    ]


def test_the_command_serves_what_it_wrote(golden, cache, tmp_path):
    from urllib.request import urlopen

    output = tmp_path / "site"
    command = [sys.executable, "-m", "keras_transformer", "export", "web", str(golden.run_dir), "--output", str(output)]
    command += ["--quantize", "none", "--num-beams", "1", "--source-length", "20", "--target-length", "20"]
    command += ["--serve", "--port", "0"]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    environment = os.environ | {"KERAS_HOME": str(cache)}
    # Where the tests run in the background, Ctrl-C is ignored, and what they start inherits that.
    started = {"preexec_fn": lambda: signal.signal(signal.SIGINT, signal.SIG_DFL), "env": environment}
    with subprocess.Popen(command, **started, **pipes) as process:
        assert process.stdout.readline() == f"{output}\n"
        address = next(match[1] for line in process.stderr if (match := re.search(r"Open (http://127\S+) ", line)))
        with urlopen(address) as answer:
            assert answer.read() == (SOURCES / "page" / "index.html").read_bytes()
        with urlopen(f"{address}/litert/litert_wasm_internal.wasm") as answer:
            assert answer.headers["Content-Type"] == "application/wasm"
        process.send_signal(signal.SIGINT)
        process.communicate()
    assert process.returncode == 0


@pytest.mark.parametrize("mode", ["serve", "build"])
def test_a_bundler_finds_the_files_of_the_library(golden, site, npm_package, opened, tmp_path, mode):
    """Vite's development server, and its build."""
    shutil.copytree(site / "models", tmp_path / "public" / "models")
    shutil.copytree(site / "litert", tmp_path / "src" / "litert")
    for name in ("translator.js", "worker.js"):
        shutil.copy(site / name, tmp_path / "src")
    (tmp_path / "index.html").write_text('<script type="module" src="/main.js"></script>')
    (tmp_path / "main.js").write_text(f"""
        import {{ createTranslator }} from "./src/translator.js";
        const translator = await createTranslator("/models/float32");
        const {{ text }} = await translator.translate({json.dumps(golden.texts[0])});
        document.body.append(Object.assign(document.createElement("output"), {{ value: text }}));
    """)
    vite = npm_package("vite@8.4.0") / "vite" / "bin" / "vite.js"
    command = ["node", str(vite), mode, *["--host", "127.0.0.1"] * (mode == "serve")]
    started = {"cwd": tmp_path, "env": os.environ | {"NO_COLOR": "1"}, "stdout": subprocess.PIPE, "text": True}
    with subprocess.Popen(command, **started) as process:
        try:
            address = next((match[0] for line in process.stdout if (match := re.search(r"http://127\S+", line))), "")
            page = opened(site if address else tmp_path / "dist", address)
            page.wait_for_selector("output")
        finally:
            process.kill()
    assert page.inner_text("output") == golden.translator.translate(golden.texts[:1])[0]
    assert page.errors == []


# Other browsers than Chromium. A step is an address, or None to load the page again, with a function that runs in the
# page, and its argument. The fixtures are functions that take steps and return what these functions return.


@pytest.fixture
def firefox(npm_package):
    program = shutil.which("firefox") or shutil.which("firefox-esr")
    if not program:
        pytest.skip("no `firefox` on the PATH")
    node_modules = npm_package("puppeteer-core@24.43.1")
    script = """
        import puppeteer from "puppeteer-core";
        import { json } from "node:stream/consumers";
        const [program, steps] = await json(process.stdin), found = [];
        const browser = await puppeteer.launch({ browser: "firefox", executablePath: program });
        try {
            const page = await browser.newPage();
            for (const [address, code, argument] of steps) {
                await (address ? page.goto(address) : page.reload());
                found.push(await page.evaluate(`(${code})(${JSON.stringify(argument)})`));
            }
        } finally {
            await browser.close();
        }
        console.log(JSON.stringify(found));
    """

    def run(steps):
        command = ["node", "--input-type=module", "--eval", script]
        pipes = {"input": json.dumps([program, steps]), "capture_output": True, "text": True}
        done = subprocess.run(command, cwd=node_modules.parent, timeout=300, **pipes)
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)

    return run


@pytest.fixture
def webkit():
    """WebKitGTK has the engine of Safari."""
    webdriver = pytest.importorskip("selenium.webdriver")
    if not shutil.which("WebKitWebDriver"):
        pytest.skip("no `WebKitWebDriver` on the PATH")
    if not os.environ.get("DISPLAY"):
        pytest.skip("WebKitGTK needs a display, such as that of xvfb-run")

    def run(steps):
        found = []
        with webdriver.WebKitGTK() as driver:
            driver.set_script_timeout(100)
            for address, code, argument in steps:
                driver.get(address) if address else driver.refresh()
                script = f"const [argument, done] = arguments; ({code})(argument).then((found) => done([found]), done);"
                found.append(driver.execute_async_script(script, argument))
        assert all(isinstance(one, list) for one in found), found
        return [one for (one,) in found]

    return run


def in_page(body):
    """A function that a step runs, from its body, which may use `argument` and `await until(condition)`."""
    until = """async (condition) => {
        for (const end = Date.now() + 30_000; !condition(); await new Promise((next) => setTimeout(next, 20))) {
            if (Date.now() > end) throw new Error(`This never became true: ${condition}`);
        }
    }"""
    return f"async (argument) => {{ const until = {until}; {body} }}"


TRANSLATE = in_page("""
    const canBeCopied = !$("copy").disabled, found = [];
    await until(() => !$("translate").disabled);
    for (const text of argument) {
        delete document.body.dataset.state;
        $("source").value = text;
        $("translate").click();
        await until(() => document.body.dataset.state === "done");
        const hypotheses = $("hypotheses").querySelectorAll("button span:first-child");
        found.push([$("translation").textContent, Array.from(hypotheses, ({ textContent }) => textContent)]);
    }
    const underlined = getComputedStyle(document.querySelector(".doubtful")).textDecorationLine;
    const titles = Array.from(document.querySelectorAll("#attention thead span"), (one) => one.getBoundingClientRect());
    return [found, canBeCopied, underlined, titles.some(({ width, height }) => height > width)];
""")
EXPLAIN = in_page("""
    const scores = [];
    const after = async (act) => {
        act();
        await until(() => document.body.dataset.state === "done");
        delete document.body.dataset.state;
        scores.push(Number($("score-after").textContent.replace("score −", "-")));
    };
    await after(() => {});
    const cells = document.querySelectorAll("#attention td[title]");
    const attention = Array.from(cells, ({ title }) => Number(title.match(/: (\\S+) %$/)[1]));
    const head = $("heads").querySelector("[data-kind=cross]"), piece = $("pieces").querySelectorAll("button")[2];
    await after(() => head.click());
    await after(() => head.click());
    await after(() => piece.click());
    const said = [head.getAttribute("aria-label"), piece.getAttribute("aria-pressed"), $("status").textContent];
    await after(() => piece.click());
    $("beams").value = argument;
    await after(() => $("beams").dispatchEvent(new Event("change")));
    return [$("before").textContent, scores, attention, piece.textContent, said];
""")


# Selenium 4.51 calls itself in a way that it warns of.
@pytest.mark.filterwarnings("ignore:setting remote_server_addr in RemoteConnection:DeprecationWarning")
@pytest.mark.parametrize("browser", ["firefox", "webkit"])
def test_other_browsers_show_what_python_finds(golden, site, browser, request):
    run, (first, second) = request.getfixturevalue(browser), golden.texts[:2]
    with server(site) as serving:
        threading.Thread(target=serving.serve_forever, daemon=True).start()
        origin = "http://{}:{}/".format(*serving.server_address)
        texts = [first, f"Nobody {{x}} {second}"]  # Some words of the last one are doubtful.
        explainer = f"{origin}explain.html#{urlencode({'text': first})}"
        steps = [(origin, TRANSLATE, texts), (None, TRANSLATE, texts), (explainer, EXPLAIN, 2)]
        *translated, explained = run(steps)
        serving.shutdown()

    def python(text, **settings):
        return golden.translator.translate([text], return_scores=True, **settings)[0]

    wanted = [
        [golden.translator.translate_text(text), [one.text for one in python(text, num_hypotheses=4)]] for text in texts
    ]
    assert translated == [[wanted, False, "underline", True]] * 2
    translation, scores, attention, piece, said = explained
    assert translation == wanted[0][0]
    best, narrow = python(first, return_attention=True), python(first, num_beams=2)
    assert [scores[i] for i in (0, 2, 4, 5)] == pytest.approx([best.score] * 3 + [narrow.score], abs=2e-3)
    assert scores[1] != scores[0] != scores[3]
    assert attention == pytest.approx(100 * best.attention.scores[0].mean(axis=0).ravel(), abs=0.1)
    assert said[:2] == ["Cross-attention, layer 1, head 1", "true"] and said[2].startswith(f"“{piece}” is hidden. ")
