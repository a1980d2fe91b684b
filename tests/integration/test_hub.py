"""Every run and every export has a README that describes it. A published run can be loaded by its name."""

import json
import re
import shutil
import subprocess
import sys
from pathlib import Path

import hub as hubs
import pytest
import yaml

from keras_transformer.__main__ import main
from keras_transformer.training.config import RunConfig
from keras_transformer.training.run import Run
from keras_transformer.translation.readme import write_readme

pytest.importorskip("huggingface_hub")
TEXTS = ["The cat is on the table.", "My sister buys a red coat."]
SCORES = {"bleu": 31.4, "bleu_interval": 1.2, "bleu_signature": "nrefs:1|tok:13a", "chrf": 55.5, "chrf_interval": 0.9}


def facts_of(folder):
    """The facts at the beginning of a README.md, and its text."""
    _, facts, text = (Path(folder) / "README.md").read_text(encoding="utf-8").split("---\n", 2)
    return yaml.safe_load(facts), text


def describe(run):
    write_readme(run.folder, run, num_weights=1234, max_length=56)


def phrasebook_run(golden, folder):
    """A copy of the golden run that says that it was trained on the phrasebook, and has scores."""
    shutil.copytree(golden.run_dir, folder, ignore=shutil.ignore_patterns("export", "report", "README.md"))
    run = Run(folder)
    run.write(RunConfig.make({"preset": "tiny"}), golden.translator.codec.tokenizers, {})
    run.save_scores({"after_training": {"texts": {"sentences": SCORES, "pages": SCORES}}})
    describe(run)
    return run


def test_the_readme_of_a_run_says_what_it_is(golden, tmp_path, messages):
    run = phrasebook_run(golden, tmp_path / "my-run")
    facts, text = facts_of(run.folder)
    fixed = {"library_name": "keras", "pipeline_tag": "translation", "tags": ["keras_transformer"]}
    assert facts == {"language": ["en", "de"], "license": "mit", **fixed}
    assert "# my-run\n" in text and "1,234 weights that translates from en to de, made" in text
    assert "- the phrasebook of keras_transformer" in text and "(mit)" in text
    assert "| pages | 31.4 ± 1.2 | 55.5 ± 0.9 | `nrefs:1\\|tok:13a` |" in text
    assert "56 tokens" in text and "## Signatures" not in text

    changed = (run.folder / "README.md").read_text() + "My own licence.\n"
    (run.folder / "README.md").write_text(changed)
    describe(run)
    assert (run.folder / "README.md").read_text() == changed and "was changed by hand" in messages()


def test_a_licence_is_said_only_if_all_licences_are_known(golden, tmp_path):
    """Of own texts, nothing is known but their names, without the folders."""
    own = Run(golden.run_dir).versions()["made from"]
    assert own == [{"name": "train.source", "license": None}]
    first = phrasebook_run(golden, tmp_path / "first")
    flags = {"dataset": "libreoffice", "init_from": str(first.folder)}
    for name, changes, license in (
        ("both", flags, ["mit", "mpl-2.0"]),
        ("unclear", {**flags, "dataset": "multi30k"}, None),
        ("of another run", {"layers_from": str(golden.run_dir)}, None),
    ):
        run = Run(tmp_path / name)
        shutil.copytree(first.folder, run.folder, ignore=shutil.ignore_patterns("README.md"))
        run.write(RunConfig.make(changes), golden.translator.codec.tokenizers, {})
        describe(run)
        facts, text = facts_of(run.folder)
        assert facts.get("license") == license
        assert ("Not known. State here what its training data permit." in text) == (license is None)


def test_a_published_run_translates_the_same_by_its_name(golden, tmp_path):
    """Published with the line of docs/how-to.md; then loaded, and loaded again without a network."""
    folder = phrasebook_run(golden, tmp_path / "run").folder
    (folder / "explorer.html").write_text("private")
    page = (Path(__file__).parents[2] / "docs" / "how-to.md").read_text(encoding="utf-8")
    (line,) = re.findall(r"^    hf upload me/my-translator runs/mine (.*)$", page, re.MULTILINE)
    code = (
        f"import keras_transformer as kt\nt = kt.Translator.load('hf://me/my-translator')\nprint(t.translate({TEXTS}))"
    )
    with hubs.running() as hub:
        environment = hubs.environment(hub.url, tmp_path / "cache")
        command = [sys.executable, "-m", "huggingface_hub.cli.hf", "upload", "me/my-translator", str(folder)]
        command += line.replace('"', "").split()
        done = subprocess.run(command, capture_output=True, text=True, env=environment)
        assert done.returncode == 0, done.stderr
        published = hub.repositories["me/my-translator"]
        assert {"config.json", "model.keras", "README.md"} <= published.keys() and "explorer.html" not in published
        assert not any("/" in file for file in published)
        expected = f"{golden.translator.translate(TEXTS)}\n"
        for variables in ({}, {"HF_HUB_OFFLINE": "1"}):
            call = [sys.executable, "-c", code]
            loaded = subprocess.run(call, capture_output=True, text=True, env={**environment, **variables})
            assert loaded.stdout == expected, loaded.stderr
        del published["model.keras"]
        lacking = subprocess.run(call, capture_output=True, text=True, env=environment)
        assert "hf://me/my-translator must be a published run. Received: a repository without model" in lacking.stderr


def test_a_command_says_how_a_published_run_becomes_a_folder(capsys):
    with pytest.raises(SystemExit, match="2"):
        main(["report", "hf://me/translator@v1"])
    error = capsys.readouterr().err
    assert "Download it with `hf download me/translator --revision v1 --local-dir runs/translator`" in error


@pytest.mark.parametrize("target", ["saved_model", "tflite", "ctranslate2"])
def test_the_readme_of_an_export_lists_its_signatures(golden, tmp_path, target):
    if target == "ctranslate2":
        pytest.importorskip("ctranslate2")
    assert main(["export", target, str(golden.run_dir), "--output", str(tmp_path / "out")]) == 0
    (folder,) = (file.parent for file in (tmp_path / "out").rglob("export.json"))
    _, text = facts_of(folder)
    row = {
        "saved_model": r"\| `translate` \| `text` string \(None,\) \| .*`translation` string \(None,\)",
        "tflite": r"\| `translate_text` \| `text` uint8 \(1, \d+\) \| ",
        "ctranslate2": r"ctranslate2\.Translator",
    }[target]
    assert re.search(row, text), text
    assert "README.md" in json.loads((folder / "export.json").read_text())["files"]
