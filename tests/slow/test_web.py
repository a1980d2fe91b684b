"""The page translates in a real browser as Python does. Skipped where there is no Chromium, or no npm to build it."""

import json
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys

import pytest

from keras_transformer.export import report
from keras_transformer.export.verify import verify
from keras_transformer.export.web import SOURCES, export_web


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
def test_a_bundler_finds_the_files_of_the_library(golden, site, vite, opened, tmp_path, mode):
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
    command = ["node", str(vite / "vite" / "bin" / "vite.js"), mode, *["--host", "127.0.0.1"] * (mode == "serve")]
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
