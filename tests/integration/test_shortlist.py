"""The shortlist: what it chooses, and that a search with it is a search among the chosen tokens."""

import dataclasses
import shutil

import numpy as np
import pytest
from keras import ops

from keras_transformer.__main__ import main
from keras_transformer.export.saved_model import export_saved_model, servable
from keras_transformer.files import write_json
from keras_transformer.phrasebook import phrasebook
from keras_transformer.runs import Run
from keras_transformer.tokenizers import END_TOKEN_ID
from keras_transformer.translator import Translator


def test_a_translator_learns_and_uses_one(golden, tmp_path):
    pairs = phrasebook()["train"][:16]
    translator = Translator.load(golden.run_dir, jit_compile=False)
    with pytest.raises(ValueError, match="`shortlist` needs alignments of the training text"):
        translator.translate(golden.texts, shortlist=100)
    with pytest.raises(ValueError, match="`shortlist` needs alignments"):
        export_saved_model(translator, tmp_path / "x", shortlist=100)
    aligned = list(translator.align(*map(list, zip(*pairs, strict=True))))
    assert len(aligned) == 16 and all(len(target) == len(places) for _, target, places in aligned)
    translator.learn_shortlist(*map(list, zip(*pairs, strict=True)))
    # Alignments differ between processors: the shortlist of a sentence may lack a token of its translation.
    first = 1 + END_TOKEN_ID + translator.num_placeholders
    for num_beams in (1, 3):
        wanted = golden.translator.translate(golden.texts, num_beams=num_beams)
        found = translator.translate(golden.texts, num_beams=num_beams, shortlist=120)
        same = []
        for text, one, other in zip(golden.texts, wanted, found, strict=True):
            ids = np.array(translator.encode_sources([text]))
            lists = translator.shortlist.choose(ids, 120, first, golden.tokenizer.vocabulary_size)
            if set(*golden.tokenizer.tokenize([one])) <= set(*ops.convert_to_numpy(lists).tolist()):
                same.append(one == other)
        assert all(same) and len(same) >= 12
    # Forced words may be outside of the shortlist.
    (forced,) = translator.translate(golden.texts[:1], prefixes=["Heute"], shortlist=20)
    assert forced.startswith("Heute")


def test_the_command_writes_it_into_the_run(golden, tmp_path, capsys):
    run = tmp_path / "run"
    shutil.copytree(golden.run_dir, run, ignore=shutil.ignore_patterns("export", "checkpoints"))
    assert main(["shortlist", str(run)]) == 0
    assert "shortlist.npz: from 960 pairs. Use it with --shortlist 500" in capsys.readouterr().out
    config = Run(run).config()
    config = dataclasses.replace(config, decoding=config.decoding.replace(shortlist=150))
    write_json(Run(run).config_file, config.to_dict())
    assert Translator.load(run).settings.shortlist == 150 and Translator.load([run, run]).settings.shortlist == 0
    Run(run).shortlist_file.unlink()
    assert main(["shortlist", str(run)]) == 0  # Although the settings ask for one.
    loaded = Translator.load(run, jit_compile=False)
    assert loaded.translate(golden.texts[:2]) == golden.translator.translate(golden.texts[:2])
    Run(run).shortlist_file.write_bytes(b"no zip")
    with pytest.raises(ValueError, match=r"shortlist\.npz is no shortlist"):
        Translator.load(run)


def test_the_graph_of_an_export_searches_with_it(golden):
    translator = Translator.load(golden.run_dir, jit_compile=False)
    translator.learn_shortlist(*map(list, zip(*phrasebook()["train"][:16], strict=True)))
    _, functions = servable(translator, translator.settings.replace(num_beams=2, shortlist=120), 2)
    found = functions["translate"](ops.convert_to_tensor(golden.texts))["translation"]
    wanted = translator.translate(golden.texts, num_beams=2, shortlist=120)
    assert [text.decode() for text in ops.convert_to_numpy(found)] == wanted
