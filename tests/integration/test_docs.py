"""Every example in a docstring, in the README and in docs/ runs and says what is true."""

import doctest
import importlib
import json
import re
import runpy
import subprocess
import sys
from pathlib import Path

import pytest

from keras_transformer.__main__ import main

ROOT = Path(__file__).parents[2]
FILES = [path.relative_to(ROOT) for path in sorted((ROOT / "keras_transformer").rglob("*.py"))]
MODULES = [".".join(path.with_suffix("").parts).removesuffix(".__init__") for path in FILES]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
BLOCK = re.compile(r"^```python\n(.*?)^```", re.DOTALL | re.MULTILINE)


@pytest.mark.parametrize("name", [name for name in MODULES if not name.endswith("__main__")])
def test_docstring_examples(name):
    module = importlib.import_module(name)
    import keras
    import numpy as np

    import keras_transformer

    names = {key: getattr(keras_transformer, key) for key in keras_transformer.__all__}
    names = {"np": np, "keras": keras, **names, **vars(module)}
    assert doctest.testmod(module, extraglobs=names).failed == 0


@pytest.mark.parametrize(
    "page", [page for page in PAGES if BLOCK.search(page.read_text("utf-8"))], ids=lambda page: page.name
)
def test_python_blocks_of_a_page_run(page, tmp_path, monkeypatch):
    """All blocks of a page are one script, in order, run in an empty folder."""
    script = tmp_path / "page.py"
    script.write_text("\n".join(BLOCK.findall(page.read_text(encoding="utf-8"))), encoding="utf-8")
    (tmp_path / "empty").mkdir()
    monkeypatch.chdir(tmp_path / "empty")
    for name in ("COMPILE_AFTER", "COMPILE_AFTER_IDLE"):  # Nothing is compiled while tests run.
        monkeypatch.setattr(f"keras_transformer.translation.batched_search.{name}", 1000.0)
    runpy.run_path(str(script))


def anchors(page):
    """What a link can name after `#`: headings, of three levels as in docs/conf.py, written as GitHub writes them."""
    text = re.sub(r"^```.*?^```", "", page.read_text(encoding="utf-8"), flags=re.DOTALL | re.MULTILINE)
    headings = re.findall(r"^#{1,3} (.+)$", text, re.MULTILINE)
    return {re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("page", [*PAGES, ROOT / "CONTRIBUTING.md"], ids=lambda page: page.name)
def test_links_and_files_of_pages_exist(page):
    text = page.read_text(encoding="utf-8")
    for path in re.findall(r"`((?:keras_transformer|export|examples|benchmarks|tests|docs)/[\w./-]+)`", text):
        assert (ROOT / path).exists(), path
    for target in re.findall(r"(?:\]\(|src=\")([^)\"\s]+)[)\"]", text):
        if not target.startswith(("http://", "https://")):
            path, _, anchor = target.partition("#")
            file = page.parent / path if path else page
            assert file.exists(), target
            assert not anchor or anchor in anchors(file), target


def test_pages_and_sections_that_other_files_name_exist():
    """Such as `docs/how-to.md` in a docstring."""
    files = [ROOT / "CONTRIBUTING.md", ROOT / "train_keras.py"]
    for folder in ("keras_transformer", "export", "examples", "benchmarks", "tests"):
        files += [path for path in (ROOT / folder).rglob("*.*") if "node_modules" not in path.parts]
    named = set()
    for file in files:
        if file.suffix in (".py", ".md", ".js", ".html", ".kt", ".swift", ".java", ".c", ".yaml"):
            named |= set(re.findall(r"docs/([\w-]+\.md)(?:#([\w-]+))?", file.read_text(encoding="utf-8")))
    assert len(named) > 5
    for page, anchor in named:
        assert (ROOT / "docs" / page).exists(), page
        assert not anchor or anchor in anchors(ROOT / "docs" / page), f"{page}#{anchor}"


def test_the_page_of_commands_has_every_command(capsys):
    page = (ROOT / "docs" / "commands.md").read_text(encoding="utf-8")
    for words in ([], ["export"]):
        with pytest.raises(SystemExit, match="0"):
            main([*words, "--help"])
        names = re.findall(r"^    (\w+)", capsys.readouterr().out, re.MULTILINE)
        assert len(names) > 4
        for command in (" ".join([*words, name]) for name in names):
            assert f"python -m keras_transformer {command}" in page or f"| `{command} " in page, command


def test_command_lines_of_the_pages_have_flags_that_exist(capsys):
    """Each `--flag` that a page shows is known to the command it is shown with."""
    known = {}
    for command in (
        "train_keras.py",
        "import opus-mt",
        "translate",
        "score",
        "distill",
        "report",
        "bulk",
        "clean",
        "shortlist",
        "export saved_model",
        "export ctranslate2",
        "export tflite",
        "export verify",
        "export web",
        "plot",
        "explore",
    ):
        words = {"train_keras.py": ["train"], "import opus-mt": ["import"]}.get(command, command.split())
        with pytest.raises(SystemExit, match="0"):
            main([*words, "--help", *(["all"] if words == ["train"] else [])])
        known[command] = set(re.findall(r"--[a-z0-9-]+", capsys.readouterr().out))
    shown = 0
    lines = "".join(page.read_text(encoding="utf-8") for page in PAGES).replace("\\\n", " ").splitlines()
    for line in lines:
        for command, flags in known.items():
            if f" {command} " in line and line.startswith("    "):
                used = set(re.findall(r"--[a-z0-9-]+", line.split(command, 1)[1].split("#")[0].split("|")[0]))
                assert used <= flags, line
                shown += len(used)
    assert shown


def test_the_tour_says_how_a_notebook_is_made_of_it(tmp_path):
    tour = (ROOT / "docs" / "tour.md").read_text(encoding="utf-8")
    (command,) = re.findall(r"`(jupytext [^`]+)`", tour)
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "tour.md").write_text(tour, encoding="utf-8")
    subprocess.run([sys.executable, "-m", *command.split()], cwd=tmp_path, check=True, capture_output=True)
    cells = json.loads((tmp_path / "docs" / "tour.ipynb").read_text(encoding="utf-8"))["cells"]
    blocks = re.findall(r"^```\{code-cell\}[^\n]*\n(?::[^\n]*\n)*\n?(.*?)\n?^```", tour, re.DOTALL | re.MULTILINE)
    assert ["".join(cell["source"]) for cell in cells if cell["cell_type"] == "code"] == blocks
    assert "heads" in "".join("".join(cell["source"]) for cell in cells if cell["cell_type"] == "markdown")


def test_the_api_page_has_every_module():
    page = (ROOT / "docs" / "api.md").read_text(encoding="utf-8")
    listed = re.findall(r"automodule:: (keras_transformer\.(?!export)[\w.]+)$", page, re.MULTILINE)
    folders = {f"keras_transformer.{path.parent.name}" for path in (ROOT / "keras_transformer").glob("*/__init__.py")}
    internal = re.compile(
        r"keras_transformer(\.__main__|\._registration|\.commands\.(?!flags).*|\.(data\.phrasebook|transfer\.importing)\..*)?"
    )
    assert set(listed) == {name for name in MODULES if not internal.fullmatch(name)} - folders
