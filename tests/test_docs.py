"""Every example in a docstring, in the README and in docs/ runs and says what is true."""

import doctest
import importlib
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
MODULES = sorted(path.stem for path in (ROOT / "keras_transformer").glob("*.py") if path.stem != "__main__")
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]


@pytest.mark.parametrize("name", MODULES)
def test_docstring_examples(name):
    module = importlib.import_module("keras_transformer" if name == "__init__" else f"keras_transformer.{name}")
    import keras
    import numpy as np

    import keras_transformer

    names = {key: getattr(keras_transformer, key) for key in keras_transformer.__all__}
    names = {"np": np, "keras": keras, **names, **vars(module)}
    assert doctest.testmod(module, extraglobs=names).failed == 0


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_python_blocks_of_a_page_run(page, tmp_path):
    """All blocks of a page are one script, in order, run in an empty folder."""
    blocks = re.findall(r"^```python\n(.*?)^```", page.read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE)
    script = tmp_path / "page.py"
    script.write_text("\n".join(blocks), encoding="utf-8")
    done = subprocess.run([sys.executable, str(script)], cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-3000:]


def test_links_of_pages_lead_somewhere():
    for page in PAGES:
        for target in re.findall(r"\]\(([^)#]+)\)", page.read_text(encoding="utf-8")):
            if not target.startswith(("http://", "https://")):
                assert (page.parent / target).exists(), f"{page.name}: {target}"


def test_command_lines_of_the_readme_have_flags_that_exist():
    """Each `--flag` that the README shows is known to the command it is shown with."""
    known = {}
    for command in (
        "train_keras.py",
        "translate",
        "score",
        "export saved_model",
        "export ctranslate2",
        "export tflite",
        "export verify",
        "export web",
    ):
        call = [str(ROOT / command)] if command.endswith(".py") else ["-m", "keras_transformer", *command.split()]
        text = subprocess.run([sys.executable, *call, "--help"], capture_output=True, text=True, check=True).stdout
        known[command] = set(re.findall(r"--[a-z0-9-]+", text))
    shown = 0
    for line in (ROOT / "README.md").read_text(encoding="utf-8").replace("\\\n", " ").splitlines():
        for command, flags in known.items():
            if f"{command} " in line and line.startswith("    "):
                used = set(re.findall(r"--[a-z0-9-]+", line.split(command, 1)[1].split("#")[0].split("|")[0]))
                assert used <= flags, line
                shown += len(used)
    assert shown
