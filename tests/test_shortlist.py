"""The shortlist: what it chooses, and that a search with it is a search among the chosen tokens."""

import dataclasses
import shutil

import numpy as np
import pytest
from keras import ops

from keras_transformer.__main__ import main
from keras_transformer.export.saved_model import export_saved_model, servable
from keras_transformer.export.tflite import export_tflite
from keras_transformer.files import write_json
from keras_transformer.model import Transformer
from keras_transformer.phrasebook import phrasebook
from keras_transformer.runs import Run
from keras_transformer.search import SearchSettings, search
from keras_transformer.shortlist import NUM_ALIGNED, Shortlist
from keras_transformer.tokenizers import END_TOKEN_ID
from keras_transformer.translator import Translator

V, F = 40, 6
SOURCE = np.array([[7, 9, 8, 3], [9, 3, 0, 0]], "int32")


@pytest.fixture(scope="module")
def table():
    """Token 7 aligns with 30, 31 and 32, in this order; 8 with 31; 9 with 33 and 5."""
    pairs = [([7, 8, 3], [30, 31, 3], [0, 1, 2])] * 3 + [([7, 9, 3], [31, 33, 3], [0, 1, 2])] * 2
    return Shortlist.learn([*pairs, ([7, 9, 3], [32, 5, 3], [0, 1, 2])], V, V)


def chosen(table, source, size):
    return ops.convert_to_numpy(table.choose(source, size, F, V)).tolist()


def test_alignments_are_counted(table):
    assert table.aligned[7].tolist() == [30, 31, 32] + [0] * (NUM_ALIGNED - 3)
    assert table.aligned[8, :2].tolist() == [31, 0] and table.aligned[9, :3].tolist() == [33, 5, 0]
    assert table.frequent.tolist() == [31, 30, 33, 5, 32]


def test_a_shortlist_has_the_first_the_frequent_and_the_aligned_tokens(table):
    table = Shortlist(table.aligned, np.array([20]))
    rows = chosen(table, SOURCE, F + 5)
    assert rows[0][:F] == rows[1][:F] == list(range(F))
    # 31 is second for 7 and first for 8; 30 and 33 are first for one token; 20 is frequent.
    assert rows[0][F:] == [31, 30, 33, 32, 20]
    assert rows[1][F : F + 2] == [33, 20]
    assert chosen(table, SOURCE[1:, :2], F + 5)[0] == rows[1]  # Neither padding nor other sentences matter.
    assert sorted(chosen(table, SOURCE, V)[0]) == list(range(V))


@pytest.mark.parametrize(
    "options", [{}, {"tie_embeddings": "none", "output_bias": True, "normalize_first": True}], ids=["tied", "bias"]
)
@pytest.mark.parametrize("num_beams", [1, 3])
def test_a_search_is_one_among_the_chosen_tokens(table, options, num_beams):
    model = Transformer(V, num_layers=1, num_heads=2, hidden_dim=8, intermediate_dim=12, **options)
    rng = np.random.default_rng(0)
    model.set_weights([w + 0.5 * rng.normal(size=w.shape).astype("float32") for w in model.get_weights()])
    limits, size = np.array([7, 6], "int32"), F + 8
    arguments = {"num_placeholders": 2, "tags": [], "cache": "fixed"}

    def found(size):
        settings = SearchSettings(num_beams=num_beams, length_penalty=0.0, shortlist=size)
        result = search(model, SOURCE, limits, 7, settings, shortlist=table, **arguments)
        return [ops.convert_to_numpy(one) for one in result]

    whole, all_of_it = found(0), found(V)
    np.testing.assert_array_equal(whole[0], all_of_it[0])
    np.testing.assert_allclose(whole[1], all_of_it[1], atol=1e-4)
    token_ids, scores = found(size)
    lists = chosen(table, SOURCE, size)
    for row, mine in zip(token_ids[:, 0].tolist(), lists, strict=True):
        assert set(row) <= set(mine)
    # The probabilities are those among the chosen tokens.
    inputs = np.concatenate([np.full((2, 1), 2, "int32"), token_ids[:, 0, :-1]], axis=1)
    logits = ops.convert_to_numpy(model({"encoder_token_ids": SOURCE, "decoder_token_ids": inputs}))
    for b in range(2):
        log_probs = ops.convert_to_numpy(ops.log_softmax(logits[b][:, lists[b]]))
        places = [lists[b].index(token) for token in token_ids[b, 0]]
        total = sum(log_probs[t, place] for t, place in enumerate(places) if token_ids[b, 0, t])
        assert total == pytest.approx(scores[b, 0], abs=1e-4)


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


@pytest.mark.slow
@pytest.mark.parametrize("name", ["golden", "two_way"])
def test_exports_search_with_it_too(name, request, tmp_path):
    """Each export compares its translations with the translator's before it appears."""
    translator = Translator.load(request.getfixturevalue(name).run_dir, jit_compile=False)
    pairs = phrasebook()["train"][:12]
    languages = ["de"] * len(pairs) if name == "two_way" else None
    translator.learn_shortlist(*map(list, zip(*pairs, strict=True)), languages)
    export_saved_model(translator, tmp_path / "saved_model", shortlist=90)
    _, same = export_tflite(translator, tmp_path / "tflite", shortlist=90)
    assert same == 1
