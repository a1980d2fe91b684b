"""Every example in a docstring, in the README and in docs/ runs and says what is true."""

import re
import shlex
import shutil
from pathlib import Path

import pytest
from trainings import phrases

ROOT = Path(__file__).parents[2]


def test_the_commands_of_the_page_about_opus_mt_run_on_a_small_model(tmp_path, monkeypatch, capsys):
    """In order, in a folder with the files that the page names, with a hub that has the models."""
    pytest.importorskip("transformers")
    import hub
    from public_models import m2m_100_folder, transformers_folder

    import train_keras
    from keras_transformer.__main__ import main

    page = (ROOT / "docs" / "opus-mt.md").read_text(encoding="utf-8")
    commands = [shlex.split(line) for line in re.findall(r"^    (python .*)$", page, re.MULTILINE)]
    opus, nllb = tmp_path / "opus", tmp_path / "nllb"
    transformers_folder(opus, d_model=8, encoder_layers=1, decoder_layers=1)
    m2m_100_folder(nllb, nllb=True)
    folders = {"Helsinki-NLP/opus-mt-en-de": opus, "facebook/nllb-200-distilled-600M": nllb}
    pairs = phrases()[:40]
    for name, rows in {"domain": pairs, "general": pairs[:9], "val": pairs[:3], "sentences": pairs[:2]}.items():
        for language, side in (("en", 0), ("de", 1)):
            (tmp_path / f"{name}.{language}").write_text("".join(pair[side] + "\n" for pair in rows), encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    ran = set()
    with hub.running() as server:
        hub.use(monkeypatch, server.url, tmp_path / "cache")
        for name, folder in folders.items():
            server.repositories[name] = {file.name: file.read_bytes() for file in folder.iterdir()}
        for _, *words in commands:
            if words[0] == "train_keras.py":
                assert train_keras.main(words[1:]) == 0
            elif words[3] != "web" or shutil.which("npm"):
                assert main(words[2:]) == 0
            ran.add(words[3] if words[2] == "export" else words[2])
    assert {"import", "translate", "saved_model", "tflite", "web", "ctranslate2"} <= ran and len(commands) == 10
    for run, export in (("opus-small", "tflite-int8"), ("opus-en-de", "ctranslate2-int8")):
        assert (tmp_path / "runs" / run / "export" / export).is_dir()
    assert len((tmp_path / "sentences.de").read_text(encoding="utf-8").splitlines()) == 2
    assert re.search(r"BLEU / chrF +before +after", capsys.readouterr().out)
