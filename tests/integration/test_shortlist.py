"""The shortlist: what it chooses, and that a search with it is a search among the chosen tokens."""

import dataclasses
import shutil

import numpy as np
import pytest
from keras import ops
from trainings import phrases, side_by_side

from keras_transformer.__main__ import main
from keras_transformer.export.saved_model import export_saved_model, servable
from keras_transformer.files import write_json
from keras_transformer.text.special_ids import END_TOKEN_ID
from keras_transformer.training.run import Run
from keras_transformer.training.sections import corpora
from keras_transformer.translation.learning import learn_shortlist
from keras_transformer.translation.translator import Translator


@pytest.fixture(scope="module")
def learned(golden):
    """A translator with a shortlist, and without one in its settings."""
    translator = Translator(golden.model, golden.tokenizer, jit_compile=False)
    learn_shortlist(translator, *map(list, zip(*phrases()[:16], strict=True)))
    return translator


def test_a_translator_needs_and_uses_one(golden, learned, tmp_path):
    with pytest.raises(ValueError, match="`shortlist` needs alignments of the training text"):
        golden.translator.translate(golden.texts, shortlist=100)
    with pytest.raises(ValueError, match="`shortlist` needs alignments"):
        export_saved_model(golden.translator, tmp_path / "x", shortlist=100)
    aligned = list(learned.scorer.align(*map(list, zip(*phrases()[:16], strict=True))))
    assert len(aligned) == 16 and all(len(target) == len(places) for _, target, places in aligned)
    # Alignments differ between processors: the shortlist of a sentence may lack a token of its translation.
    first = 1 + END_TOKEN_ID + learned.codec.num_placeholders
    wanted = golden.translator.translate(golden.texts)
    found = learned.translate(golden.texts, shortlist=120)
    same = []
    for text, one, other in zip(golden.texts, wanted, found, strict=True):
        ids = np.array(learned.codec.source_ids([text]))
        lists = learned.shortlist.choose(ids, 120, first, golden.tokenizer.vocabulary_size)
        if set(*golden.tokenizer.tokenize([one])) <= set(*ops.convert_to_numpy(lists).tolist()):
            same.append(one == other)
    assert all(same) and len(same) >= 12
    # Forced words may be outside of the shortlist.
    (forced,) = learned.translate(golden.texts[:1], prefixes=["Heute"], num_beams=1, shortlist=20)
    assert forced.startswith("Heute")


def test_the_command_writes_it_into_the_run(golden, tmp_path, capsys):
    run = tmp_path / "run"
    shutil.copytree(golden.run_dir, run, ignore=shutil.ignore_patterns("export", "checkpoints"))
    config = Run(run).config()
    train = corpora("train", [side_by_side(tmp_path, "few", phrases()[:16])])  # Few pairs are learned from quickly.
    config = dataclasses.replace(
        config, data=dataclasses.replace(config.data, train=train), search=config.search.replace(num_beams=1)
    )
    write_json(Run(run).config_file, config.to_dict())
    assert main(["shortlist", str(run)]) == 0
    assert "shortlist.npz: from 16 pairs. Use it with --shortlist 500" in capsys.readouterr().out
    config = dataclasses.replace(config, search=config.search.replace(shortlist=150))
    write_json(Run(run).config_file, config.to_dict())
    assert Translator.load(run).settings.shortlist == 150 and Translator.load([run, run]).settings.shortlist == 0
    Run(run).shortlist_file.unlink()
    assert main(["shortlist", str(run)]) == 0  # Although the settings ask for one.
    loaded = Translator.load(run, jit_compile=False)
    assert loaded.translate(golden.texts[:2]) == golden.translator.translate(golden.texts[:2], num_beams=1)
    Run(run).shortlist_file.write_bytes(b"no zip")
    with pytest.raises(ValueError, match=r"shortlist\.npz is no shortlist"):
        Translator.load(run)


def test_the_graph_of_an_export_searches_with_it(golden, learned):
    _, functions = servable(learned, learned.settings.replace(shortlist=120), 4)
    found = functions["translate"](ops.convert_to_tensor(golden.texts))["translation"]
    wanted = learned.translate(golden.texts, shortlist=120)
    assert [text.decode() for text in ops.convert_to_numpy(found)] == wanted
