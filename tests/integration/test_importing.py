"""Public models: folders of transformers and of Marian, made here with random weights, against transformers itself and
against CTranslate2's own converter.
"""

import io
import json
import re
import shutil
import zipfile
from collections import Counter

import h5py
import hub
import numpy as np
import pytest
from public_models import assert_saved_as_built, marian_folder, transformers_folder
from sentencepiece_models import KINDS, assert_same_ids, joint_tokens, texts, trained

from keras_transformer.__main__ import main
from keras_transformer.layers.embeddings import positional_encoding
from keras_transformer.text.sentencepiece_tokenizer import SentencePieceTokenizer
from keras_transformer.text.special_ids import END_TOKEN_ID, START_TOKEN_ID, shifted_right
from keras_transformer.text.tokenizer import TokenizerError
from keras_transformer.transfer import importing
from keras_transformer.transfer.importing import ModelImportError, report, vocabulary
from keras_transformer.transfer.importing.reading import EMBEDDING
from keras_transformer.translation.batched_search import pad
from keras_transformer.translation.translator import Translator

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")
safetensors = pytest.importorskip("safetensors.numpy")
load_file, save_file = safetensors.load_file, safetensors.save_file
SOURCES = ["The cat is on the table.", "My sister buys a red coat tomorrow.", "Hello?", "a"]


@pytest.fixture(autouse=True, scope="module")
def quiet_transformers():
    from transformers.utils import logging

    logging.disable_progress_bar()
    logging.set_verbosity_error()


def translator_of(imported, **settings):
    return Translator(imported.model, *imported.tokenizers, **{**vars(imported.config.search), **settings})


def new_ids(space):
    """The id here of each id of the original."""
    return {int(row): i for i, row in reversed(list(enumerate(space.rows)))}


def assert_same_logits(model, tokenizer, imported):
    """Logits of one decoder input for each source, teacher-forced; padding in the batch."""
    rng, space = np.random.default_rng(0), imported.spaces[1]
    batch = tokenizer(SOURCES, return_tensors="pt", padding=True)
    start = model.config.decoder_start_token_id
    decoder_ids = rng.choice(np.setdiff1d(np.arange(1, model.config.decoder_vocab_size), [start]), (len(SOURCES), 6))
    decoder_ids[:, 0] = start
    with torch.no_grad():
        expected = model(**batch, decoder_input_ids=torch.tensor(decoder_ids)).logits.numpy()
    inputs = {
        "encoder_token_ids": pad(translator_of(imported).codec.source_ids(SOURCES)),
        "decoder_token_ids": np.vectorize(new_ids(space).get)(decoder_ids).astype("int32"),
    }
    counts = imported.original.start_counts
    assert counts == (not model.generation_config.renormalize_logits)
    theirs = space.written | ((np.arange(len(space.rows)) == START_TOKEN_ID) & counts)
    assert theirs.sum() == model.config.decoder_vocab_size - (not counts)
    np.testing.assert_allclose(
        np.asarray(imported.model(inputs))[..., theirs], expected[..., space.rows[theirs]], atol=1e-4
    )


VARIANTS = {
    "as OPUS-MT": {},
    "relu, unscaled": {"activation_function": "relu", "scale_embedding": False},
    "gelu": {"activation_function": "gelu"},
    "separate vocabularies": {"separate": True},
    "own output projection": {"tie_word_embeddings": False},
    "deep encoder": {"encoder_layers": 4, "decoder_layers": 1, "d_model": 24, "encoder_attention_heads": 4,
                     "decoder_attention_heads": 4},
    "half precision": {"dtype": "float16"},
    "bfloat16": {"dtype": "bfloat16"},
    "pytorch_model.bin": {"pickle": True},
    # As in models of Marian: its start token was never trained, so that it may have most of the probability.
    "likely start": {"start_logit": 12.0},
    "likely start, renormalized": {"start_logit": 12.0, "generation": {"renormalize_logits": True}},
}  # fmt: skip


@pytest.mark.parametrize("variant", VARIANTS)
def test_logits_are_those_of_transformers(variant, tmp_path):
    model, tokenizer = transformers_folder(tmp_path / "model", **VARIANTS[variant])
    assert_same_logits(model, tokenizer, importing.read("opus-mt", tmp_path / "model"))


ONE_LAYER = {"encoder_layers": 1, "decoder_layers": 1}


@pytest.mark.parametrize("variant", ["as OPUS-MT", "likely start", "likely start, renormalized"])
def test_translations_are_those_of_transformers(variant, tmp_path):
    model, tokenizer = transformers_folder(tmp_path / "model", **ONE_LAYER, **VARIANTS[variant])
    imported = importing.read("opus-mt", tmp_path / "model")
    translator = translator_of(imported, max_length_ratio=99.0, max_target_length=23)
    batch = tokenizer(SOURCES, return_tensors="pt", padding=True)
    ids = new_ids(imported.spaces[1])
    for num_beams in (1, 4) if variant == "as OPUS-MT" else (4,):
        with torch.no_grad():
            found = model.generate(
                **batch,
                num_beams=num_beams,
                early_stopping="never" if num_beams > 1 else False,
                max_length=24,
                return_dict_in_generate=True,
                output_scores=True,
            )
        ours = translator.translate(SOURCES, num_beams=num_beams, return_scores=True)
        for row, translation in zip(found.sequences.tolist(), ours, strict=True):
            row = [ids[i] for i in row[1:]]
            row = row[: row.index(END_TOKEN_ID) + 1] if END_TOKEN_ID in row else row
            assert list(translation.token_ids) == row
        if num_beams > 1:
            scores = [translation.score for translation in ours]
            np.testing.assert_allclose(scores, found.sequences_scores.numpy(), rtol=1e-4)
            decoded = tokenizer.batch_decode(found.sequences, skip_special_tokens=True, use_source_tokenizer=False)
            assert [" ".join(translation.text.split()) for translation in ours] == [
                " ".join(x.split()) for x in decoded
            ]


LENGTHS = {
    "lengths": {"max_length": 12, "min_length": 10},
    "new tokens": {"max_new_tokens": 9, "min_new_tokens": 7, "max_length": 30},
}


@pytest.mark.parametrize("name", LENGTHS)
def test_lengths_of_translations_are_those_of_generate_with_its_own_settings(name, tmp_path):
    """In transformers, lengths count the start token, and limit translations alone: all of a source is read."""
    generation = {**LENGTHS[name], "early_stopping": "never", "num_beams": 2}
    model, tokenizer = transformers_folder(tmp_path / "model", generation=generation, **ONE_LAYER)
    imported = importing.read("opus-mt", tmp_path / "model")
    space = imported.spaces[1]
    translator = translator_of(imported, max_length_ratio=99.0, max_source_length=imported.config.data.max_length)
    texts = [" ".join(SOURCES), *SOURCES]
    assert len(translator.codec.source_ids(texts)[0]) > 20
    lengths = set()
    for bias in (0, 9):  # With the second, the end is as early as it may be.
        model.final_logits_bias[0, 0] += bias
        translator.model.decoder_embedding.bias.assign_add(
            bias * np.eye(len(space.rows), dtype="float32")[END_TOKEN_ID]
        )
        with torch.no_grad():
            expected = model.generate(**tokenizer(texts, return_tensors="pt", padding=True)).tolist()
        for row, one in zip(expected, translator.translate(texts, return_scores=True), strict=True):
            row = row[1:]
            row = row[: row.index(0) + 1] if 0 in row else row
            assert [int(space.rows[i]) for i in one.token_ids] == row
            lengths.add(len(row))
    assert lengths >= {10, 11} if name == "lengths" else lengths >= {8, 9}
    assert imported.config.data.max_length == model.config.max_position_embeddings == 128
    (line,) = [line for line in report.summary(imported) if line.startswith("lengths: ")]
    assert line.startswith("lengths: the first 128 tokens of a source are read; ")
    assert line.endswith(f"3.0 tokens per source token and 16 more, but at most {generation.get('max_new_tokens', 11)}")


MARIAN = {
    "post-norm": {},
    "pre-norm, relu": {"pre_norm": True, "activation": "relu"},
    "tied target": {"tied": "target"},
    "untied": {"tied": "none", "pre_norm": True},
}


@pytest.mark.parametrize("variant", MARIAN)
def test_scores_and_translations_of_a_marian_release_are_those_of_ctranslate2(variant, tmp_path):
    """CTranslate2 has other wavelengths than Marian; with its own, everything is the same."""
    import ctranslate2
    import sentencepiece
    from ctranslate2.converters import MarianConverter

    tokens = marian_folder(tmp_path / "model", **MARIAN[variant])
    MarianConverter(str(tmp_path / "model" / "model.npz"), [str(tmp_path / "model" / "opus.vocab.yml")] * 2).convert(
        str(tmp_path / "converted")
    )
    imported = importing.read("opus-mt", tmp_path / "model")
    config = imported.model.get_config()
    assert config["max_wavelength"] == pytest.approx(10000 ** (16 / 14))
    weights = imported.model.get_weights()
    model = type(imported.model).from_config({**config, "max_wavelength": 10000.0, "layer_norm_epsilon": 1e-5})
    model.set_weights(weights)
    vars(imported)["model"] = model
    translator = translator_of(imported, allow_unknown=True, max_length_ratio=99.0, max_target_length=22)
    theirs = ctranslate2.Translator(str(tmp_path / "converted"))
    processor = sentencepiece.SentencePieceProcessor(model_file=str(tmp_path / "model" / "source.spm"))
    pieces = [[piece if piece in tokens else "<unk>" for piece in processor.encode(x, out_type=str)] for x in SOURCES]
    # Scores of targets that are drawn.
    space, rng = imported.spaces[1], np.random.default_rng(0)
    targets = [rng.integers(2, len(tokens), 5).tolist() for _ in SOURCES]
    wanted = theirs.score_batch(pieces, [[tokens[i] for i in row] for row in targets])
    ids = [[*map(new_ids(space).get, row), END_TOKEN_ID] for row in targets]
    inputs = {
        "encoder_token_ids": pad(translator.codec.source_ids(SOURCES)),
        "decoder_token_ids": pad([shifted_right(row) for row in ids]),
    }
    logits = np.asarray(model(inputs), "float64")
    log_probs = logits - np.log(np.exp(logits).sum(axis=-1, keepdims=True))
    found = np.take_along_axis(log_probs, np.array(ids)[..., None], axis=-1)[..., 0]
    np.testing.assert_allclose(found, [one.log_probs for one in wanted], atol=1e-4)
    for num_beams in (1, 3) if variant == "untied" else ():
        found = theirs.translate_batch(
            pieces, beam_size=num_beams, length_penalty=0, max_decoding_length=22, return_scores=True
        )
        ours = translator.translate(SOURCES, num_beams=num_beams, length_penalty=0.0, return_scores=True)
        for their, our in zip(found, ours, strict=True):
            row = [space.rows[i] for i in our.token_ids if i != END_TOKEN_ID]
            assert [tokens[i] for i in row] == their.hypotheses[0]
            if our.token_ids[-1] == END_TOKEN_ID:
                assert our.score == pytest.approx(their.scores[0], rel=1e-4)


def test_wavelengths_and_norms_of_marian():
    """node_initializers.cpp: pos * 10000^(-i / (D/2 - 1)), sines before cosines."""
    size = 16
    angles = np.arange(50)[:, None] * 10000.0 ** (-np.arange(size // 2) / (size // 2 - 1))
    expected = np.concatenate([np.sin(angles), np.cos(angles)], axis=1)
    table = positional_encoding(50, size, max_wavelength=10000 ** (size / (size - 2)), layout="concatenated")
    np.testing.assert_allclose(table, expected, atol=1e-6)


def test_learned_positions_of_marian(tmp_path):
    """Shared by both sides, and added to embeddings that are not scaled (transformer.h: addPositionalEmbeddings)."""
    marian_folder(tmp_path / "model", learned=True)
    imported = importing.read("opus-mt", tmp_path / "model")
    with np.load(tmp_path / "model" / "model.npz") as arrays:
        expected = imported.spaces[0].take(arrays["Wemb"])[[7, 9]] + arrays["Wpos"][:2]
    np.testing.assert_allclose(np.asarray(imported.model.encoder_embedding(np.array([[7, 9]])))[0], expected, atol=1e-6)
    assert imported.config.data.max_length == 50
    assert len(translator_of(imported, max_target_length=5).translate(SOURCES, num_beams=1)) == len(SOURCES)


# Vocabularies


@pytest.mark.parametrize("name", KINDS)
def test_ids_of_600_strings_are_those_of_the_original(name):
    """In Python and in the graph; also of texts that the model does not know. tests/slow has 5000 strings."""
    assert_same_ids(name, 600)


def test_a_run_of_unknown_characters_that_the_list_has_is_one_token():
    """SentencePiece gives a run of unknown characters as one piece, which the original looks up."""
    models = [vocabulary.parse(trained(0), "model")]
    tokens = ["</s>", "<unk>", *joint_tokens(models)[2:-1], "中", "中国", "国", "catx", "x", "<pad>"]
    tokens = list(dict.fromkeys(tokens))
    space = vocabulary.id_space(tokens, 1, 0, len(tokens) - 1, models)
    tokenizer = SentencePieceTokenizer(vocabulary.rewritten(models[0], space))
    original = importing.Original({}, None, (tokens,), ((trained(0), ""),), (1,), (0,), None, {}, 99)
    texts = ["The cat is in 中国.", "中国", "中", "a catx"]
    assert report.different_ids(importing.Imported(original, [tokenizer], [space]), texts) == [[]]
    assert "中国" in tokenizer.pieces(tokenizer.tokenize(texts[:1])[0])
    assert tokenizer.graph_tokenize(texts).to_list() == tokenizer.tokenize(texts)


def test_tokens_that_are_no_pieces_get_other_names(tmp_path):
    """Pieces must be unique and not empty; transformers loads such lists."""
    space = vocabulary.id_space(["</s>", "<unk>", "", "\u2581", "<s>", "<s>\u2581", "<pad>"], 1, 0, 6, [])
    assert len(set(space.pieces)) == len(space.pieces) == 8 and all(space.pieces)
    model = vocabulary.parse(trained(0), "model")
    tokens = [*joint_tokens([model], pad=False), "\u2581>>deu<<"]
    with pytest.raises(TokenizerError, match=r"must stay different as pieces.*two that become '▁>>deu<<'"):
        vocabulary.rewritten(model, vocabulary.id_space(tokens, 1, 0, None, [model]), "read")
    spaces_last = trained(0, treat_whitespace_as_suffix=True)
    with pytest.raises(TokenizerError, match="a space must be the beginning of a piece"):
        vocabulary.parse(spaces_last, "source.spm")


@pytest.mark.parametrize("symbols", ["", ">>deu<<,>>nld<<"])
def test_language_tags_are_read_at_the_beginning_of_a_source(symbols, tmp_path):
    """Also if they are symbols of the SentencePiece file."""
    spm = [trained(0, user_defined_symbols=symbols), trained(1)]
    transformers_folder(tmp_path / "model", spm=spm, tags=[">>deu<<", ">>nld<<"], **ONE_LAYER)
    imported = importing.read("opus-mt", tmp_path / "model")
    source, target = imported.tokenizers
    with_tag, without = source.tokenize([">>nld<< The cat is here.", "The cat is here."])
    assert source.pieces(with_tag[:1]) == ["▁>>nld<<"] and with_tag[1:] == without
    assert report.different_ids(imported, [">>nld<< The cat is here."])[0] == []
    assert list(source.languages) == ["deu", "nld"] and [*source.tag("nld"), *without] == with_tag
    assert source.hidden_languages == {}  # Texts may contain them.
    assert len(target.tokenize([">>nld<< Hallo"])[0]) > 2
    assert any(line.startswith("language tags") and ">>deu<<, >>nld<<" in line for line in report.summary(imported))


def test_pieces_that_the_list_lacks_have_the_weights_of_the_unknown_token_and_are_never_written(tmp_path):
    transformers_folder(tmp_path / "model")
    ids = json.loads((tmp_path / "model" / "vocab.json").read_text())
    tokens = sorted(ids, key=ids.get)
    renamed = {("never" if token == "▁the" else token): i for token, i in ids.items()}
    (tmp_path / "model" / "vocab.json").write_text(json.dumps(renamed))
    imported = importing.read("opus-mt", tmp_path / "model")
    space = imported.spaces[0]
    (place,) = [i for i, piece in enumerate(space.pieces) if piece == "▁the"]
    assert space.rows[place] == tokens.index("<unk>") and not space.written[place]
    assert report.different_ids(imported, ["The cat is on the table."])[0] == []
    embeddings = np.asarray(imported.model.encoder_embedding.token_embedding.embeddings)
    np.testing.assert_array_equal(embeddings[place], embeddings[1])
    bias = np.asarray(imported.model.decoder_embedding.bias)
    # Training can learn it: with `NEVER`, each such label would cost 1,000 nats.
    assert bias[0] == vocabulary.NEVER and bias[place] == bias[1] - vocabulary.UNLIKELY


def test_trimming_keeps_what_each_side_can_have(tmp_path):
    transformers_folder(tmp_path / "model", tags=[">>deu<<"], **ONE_LAYER)
    whole = importing.read("opus-mt", tmp_path / "model")
    trimmed = importing.read("opus-mt", tmp_path / "model", trim=True)
    source, target = trimmed.spaces
    assert len(source.pieces) < len(whole.spaces[0].pieces) > len(target.pieces)
    assert ">>deu<<" in source.pieces and ">>deu<<" not in target.pieces
    german, english = texts(1)[:8], texts(0)[:8]
    for side, strings in enumerate((english, german)):
        rows = [[trimmed.spaces[side].rows[i] for i in row] for row in trimmed.tokenizers[side].tokenize(strings)]
        assert rows == [[whole.spaces[side].rows[i] for i in row] for row in whole.tokenizers[side].tokenize(strings)]
    scores = [translator_of(one).score(english, german) for one in (whole, trimmed)]
    assert all(b.log_prob > a.log_prob for a, b in zip(*scores, strict=True))  # Fewer tokens share the probability.
    smaller = importing.read("opus-mt", tmp_path / "model", trim=True, corpus=(english, german))
    assert len(smaller.spaces[1].pieces) < len(target.pieces)
    assert smaller.tokenizers[1].detokenize(smaller.tokenizers[1].tokenize(german)) == german
    lines = report.trim_report(whole, smaller, english, count=5)
    assert re.search(r"source 9\d\d -> \d+ ids, target 9\d\d -> \d+; .* MB; a step of greedy search .* ms", lines[0])
    assert re.search(r"translations of 5 sentences, greedy: \d+% are the same; BLEU .* \d", lines[1])


# The command, and folders that cannot be imported


def test_the_command_writes_a_run(tmp_path, capsys):
    transformers_folder(tmp_path / "model", **ONE_LAYER)
    run = tmp_path / "runs" / "opus"
    assert main(["import", "opus-mt", str(tmp_path / "model"), "--run-dir", str(run)]) == 0
    printed = capsys.readouterr().out
    assert "1 + 1 blocks of post-norm, width 16 and 11, 2 heads, silu" in printed
    ids = r"ids as in the original, source: \d+ of 421 sample sentences, 100 of 100 texts of its own tokens"
    assert re.search(ids, printed)
    translator = Translator.load(run)
    imported = importing.read("opus-mt", tmp_path / "model")
    model, settings = imported.model.get_config(), vars(imported.config.model)
    assert settings["normalize_first"] is False  # The trainer's default is another one than that of `Transformer`.
    assert all(model[name] == settings[name] for name in settings.keys() & model.keys() - {"dtype"})
    assert translator.translate(SOURCES, num_beams=1) == translator_of(imported).translate(SOURCES, num_beams=1)
    assert (translator.settings.num_beams, translator.settings.length_penalty_type) == (4, "power")
    with pytest.raises(SystemExit):
        main(["import", "opus-mt", str(tmp_path / "model"), "--run-dir", str(run)])
    assert "is not overwritten by default" in capsys.readouterr().err
    with pytest.raises(SystemExit):
        main(["score", str(run)])
    assert "has no data set of its own" in capsys.readouterr().err


def change_json(name, **changes):
    def change(folder):
        content = json.loads((folder / name).read_text()) if (folder / name).exists() else {}
        (folder / name).write_text(json.dumps({**content, **changes}))

    return change


def without(name, key):
    def change(folder):
        content = json.loads((folder / name).read_text())
        del content[key]
        (folder / name).write_text(json.dumps(content))

    return change


def change_weights(**changes):
    """Functions of arrays by their names, with _ for the dots."""

    def change(folder):
        arrays = load_file(folder / "model.safetensors")
        for name, array in arrays.items():
            arrays[name] = np.ascontiguousarray(changes.get(name.replace(".", "_"), lambda x: x)(array))
        save_file(arrays, folder / "model.safetensors", {"format": "pt"})

    return change


def change_tokens(old, new):
    def change(folder):
        content = json.loads((folder / "vocab.json").read_text())
        content = {new if token == old else token: i for token, i in content.items()}
        (folder / "vocab.json").write_text(json.dumps(content))

    return change


def cut_off(name):
    return lambda folder: (folder / name).write_bytes((folder / name).read_bytes()[:-1000])


def write(name, content):
    return lambda folder: (folder / name).write_bytes(content)


def test_a_model_is_imported_by_its_name(tmp_path, monkeypatch, capsys):
    """Only the files that are needed are downloaded; the run knows its origin and its licence."""
    transformers_folder(tmp_path / "model")
    files = {path.name: path.read_bytes() for path in (tmp_path / "model").iterdir()}
    files |= {"tf_model.h5": b"x", "README.md": b"---\nlanguage: en\nlicense: Apache-2.0\n---\nText, license: mit\n"}
    run = tmp_path / "run"
    with hub.running() as server:
        hub.use(monkeypatch, server.url, tmp_path / "cache")
        server.repositories["Helsinki-NLP/opus-mt-en-de"] = files
        name = "Helsinki-NLP/opus-mt-en-de@v1"
        assert main(["import", "opus-mt", name, "--run-dir", str(run)]) == 0
        assert "tf_model.h5" not in dict(server.ranges)
        commit = server.commit("Helsinki-NLP/opus-mt-en-de")
    versions = json.loads((run / "versions.json").read_text())
    origin = {"name": f"Helsinki-NLP/opus-mt-en-de@{commit}", "license": "apache-2.0"}
    assert versions["made from"] == [origin]
    text = (run / "README.md").read_text()
    assert "# run\n" in text and 'license: "apache-2.0"' in text and f"- {origin['name']} (apache-2.0)" in text
    expected = translator_of(importing.read("opus-mt", tmp_path / "model")).translate(SOURCES)
    assert Translator.load(run).translate(SOURCES) == expected


BROKEN = {
    "no folder": (shutil.rmtree, "A model must be a folder, or the name that it has at the hub"),
    "another family": (change_json("config.json", model_type="t5"), r"model_type must be 'marian'\. Received: t5"),
    "embedding norm": (change_json("config.json", normalize_embedding=True), "normalize_embedding must be false"),
    "learned": (change_json("config.json", static_position_embeddings=False), "positions must be sinusoidal"),
    "other heads": (change_json("config.json", decoder_attention_heads=4), r"the same attention_heads.*\(2, 4\)"),
    "a list as model type": (
        change_json("config.json", model_type=["marian"]),
        r"model_type must be 'marian'.*\['marian'\]",
    ),
    "a list as activation": (
        change_json("config.json", activation_function=["gelu"]),
        "activation_function must be text",
    ),
    "activation": (change_json("config.json", activation_function="mish"), "the activation must be one of .* mish"),
    "too deep": (change_json("config.json", encoder_layers=3), "lack model.encoder.layers.2"),
    "more weights": (change_json("config.json", decoder_layers=1), "has weights that this package has no place for"),
    "not JSON": (write("config.json", b"{"), "config.json cannot be read: it is damaged"),
    "a list": (write("vocab.json", b"[]"), "it must be a JSON object"),
    "holes": (write("vocab.json", b'{"</s>": 0, "<unk>": 2}'), "ids 0, 1, 2, ... once each"),
    "no start": (
        change_json("generation_config.json", decoder_start_token_id=9999),
        "decoder_start_token_id must be an id",
    ),
    "no unknown": (change_tokens("<unk>", "else"), "must have the token '<unk>'"),
    "cut weights": (cut_off("model.safetensors"), "model.safetensors cannot be read: it is damaged"),
    "no weights": (lambda folder: (folder / "model.safetensors").unlink(), "has no weights: neither"),
    "cut tokenizer": (cut_off("source.spm"), "source.spm is not a SentencePiece model"),
    "no tokenizer": (lambda folder: (folder / "target.spm").unlink(), "has no target.spm"),
    "no sizes": (without("config.json", "d_model"), "config.json .* d_model must be a whole number above 0.*: None"),
    "text": (change_json("config.json", encoder_layers="2"), "encoder_layers must be a whole number above 0"),
    "null": (change_json("config.json", attention_dropout=None), r"attention_dropout must be a number in \[0, 1\)"),
    "a switch": (change_json("config.json", scale_embedding=None), "scale_embedding must be true or false"),
    "heads": (change_json("config.json", encoder_attention_heads=3, decoder_attention_heads=3), "d_model must be even"),
    "beams": (change_json("generation_config.json", num_beams=1000), "generation_config.json .* `num_beams` must be"),
    "length": (change_json("generation_config.json", max_length="9"), "max_length must be a whole number"),
    "no length": (
        change_json("generation_config.json", max_length=1),
        "generation_config.json .*max_length must be a whole number above 1",
    ),
    "two ends": (
        change_json("generation_config.json", eos_token_id=[0, 5]),
        "eos_token_id must be 0, the id of '</s>'",
    ),
    "two starts": (change_json("generation_config.json", decoder_start_token_id=[5]), "decoder_start_token_id must be"),
    "null id": (write("vocab.json", b'{"</s>": 0, "<unk>": null}'), "ids 0, 1, 2, ... once each"),
    "NUL": (change_tokens("\u2581the", "a\0"), r"U\+0000. Received: 'a\\x00'"),
    "surrogate": (change_tokens("\u2581the", "\ud83d"), r"valid Unicode.*'\\ud83d'"),
    "short bias": (change_weights(final_logits_bias=lambda x: x[:, :600]), r"final_logits_bias must have the shape"),
    "short layer": (
        change_weights(model_decoder_layers_0_fc1_weight=lambda x: x[:5]),
        r"fc1.weight must have the shape \(11, 16\). Received: \(5, 16\)",
    ),
    "not numbers": (
        change_weights(model_decoder_layers_0_fc1_bias=lambda x: x + np.nan),
        r"must be numbers\. model.decoder.layers.0.fc1.bias holds NaN",
    ),
    "other names": (
        lambda folder: save_file({"module.x": np.zeros(2)}, folder / "model.safetensors"),
        "lack model.shared.weight.*Received: module.x",
    ),
    "pointer": (
        write("source.spm", b"version https://git-lfs.github.com/spec/v1\noid sha256:4d\nsize 7\n"),
        "source.spm is a pointer of Git LFS.*git lfs pull",
    ),
    "other tokenizer": (change_json("tokenizer_config.json", tokenizer_class="My"), "one of .*MarianTokenizer.*: My"),
    "languages": (change_json("tokenizer_config.json", source_lang=["en"]), "source_lang and target_lang must be text"),
    "another reader": (change_json("config.json", model_type="m2m_100"), "Import it as m2m-100 or nllb"),
    "cache": (
        lambda folder: ((folder / "snapshots" / "abc").mkdir(parents=True), (folder / "config.json").unlink()),
        "a folder of the Hugging Face cache.*snapshots/abc",
    ),
}


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    folder = tmp_path_factory.mktemp("whole") / "model"
    transformers_folder(folder)
    return folder


@pytest.mark.parametrize("name", BROKEN)
def test_a_folder_that_cannot_be_imported_is_one_clear_line(name, whole, tmp_path):
    change, message = BROKEN[name]
    folder = tmp_path / "model"
    shutil.copytree(whole, folder)
    change(folder)
    with pytest.raises((ModelImportError, TokenizerError), match=message) as raised:
        importing.write(importing.read("opus-mt", folder), tmp_path / "run")
    assert "\n" not in str(raised.value)
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize("variant", [*MARIAN.values(), {"learned": True}])
def test_a_marian_release_is_saved_as_it_is_built(tmp_path, variant):
    marian_folder(tmp_path / "model", **variant)
    assert_saved_as_built(importing.read("opus-mt", tmp_path / "model"), tmp_path / "run")


def test_a_model_with_two_vocabularies_is_saved_as_it_is_built(tmp_path):
    transformers_folder(tmp_path / "model", separate=True)
    assert_saved_as_built(importing.read("opus-mt", tmp_path / "model"), tmp_path / "run")
    transformers_folder(tmp_path / "whole")
    assert_saved_as_built(importing.read("opus-mt", tmp_path / "whole", trim=True), tmp_path / "trimmed")


@pytest.mark.parametrize(
    ("dtype", "pickle"), [("float32", False), ("float16", False), ("bfloat16", False), ("bfloat16", True)]
)
def test_a_model_is_stored_as_the_original_stores_it(tmp_path, dtype, pickle):
    transformers_folder(tmp_path / "model", dtype=dtype, pickle=pickle)
    run = assert_saved_as_built(importing.read("opus-mt", tmp_path / "model"), tmp_path / "run")
    stored = Counter()

    def visit(_, item):
        if hasattr(item, "shape"):
            stored[item.attrs.get("dtype", item.dtype.name)] += 1

    with zipfile.ZipFile(run.model_file) as archive, h5py.File(io.BytesIO(archive.read("model.weights.h5"))) as file:
        file.visititems(visit)
    others = {name: count for name, count in stored.items() if name not in (dtype, "uint32", "int64")}
    assert others in ({}, {"float32": 1}) and stored[dtype] > 50  # The bias also says what is never written.


MARIAN_BROKEN = {
    "ssru": ({"transformer-decoder-autoreg": "rnn", "dec-cell": "ssru"}, r"recurrent one .*dec-cell: ssru"),
    "s2s": ({"type": "s2s"}, "the option type must be one of"),
    "factors": ({"lemma-dim-emb": 3}, "lemma-dim-emb"),
    "right to left": ({"right-left": True}, "right-left"),
    "highway": ({"transformer-postprocess": "dhn"}, "transformer-preprocess, -postprocess"),
    "wide decoder": ({"transformer-decoder-dim-ffn": 99}, "the same transformer-dim-ffn"),
    "gelu": ({"transformer-ffn-activation": "geglu"}, "the activation must be one of"),
    "heads": ({"transformer-heads": 3}, "dim-emb must be even, at least 4 and divisible"),
    "depth": ({"enc-depth": None}, "enc-depth must be a whole number above 0"),
    "other width": ({"dim-emb": 18}, "Wemb must have the shape"),
}


@pytest.mark.parametrize("name", MARIAN_BROKEN)
def test_a_marian_model_that_cannot_be_expressed_is_refused_by_name(name, tmp_path):
    options, message = MARIAN_BROKEN[name]
    marian_folder(tmp_path / "model", options=options)
    with pytest.raises(ModelImportError, match=message):
        importing.read("opus-mt", tmp_path / "model")


def test_a_marian_folder_without_a_model_says_so(tmp_path):
    (tmp_path / "decoder.yml").write_text("beam-size: 4\n")
    with pytest.raises(ModelImportError, match=r"has no model: decoder.yml names none, and there is no .npz file"):
        importing.read("opus-mt", tmp_path)


def test_settings_that_are_not_carried_over_are_named(whole, tmp_path):
    shutil.copytree(whole, tmp_path / "model")
    without_effect = {"num_beam_groups": 1, "do_sample": False, "suppress_tokens": [], "forced_eos_token_id": 0}
    changes = {**without_effect, "early_stopping": True, "bad_words_ids": [[5]], "forced_bos_token_id": 0}
    change_json("generation_config.json", **changes, begin_suppress_tokens=[7])(tmp_path / "model")
    imported = importing.read("opus-mt", tmp_path / "model")
    notes = {line for line in report.summary(imported) if line.startswith("note: ")}
    values = {"early_stopping": True, "bad_words_ids": [[5]], "forced_bos_token_id": 0, "begin_suppress_tokens": [7]}
    expected = {f"note: {name} is not carried over: {value}." for name, value in values.items()}
    assert notes > expected
    others = sorted(notes - expected)
    assert others[0].startswith("note: the folder does not name both languages: the run says en-de")
    assert others[1].startswith("note: the start token <pad> counts in the softmax") and len(others) == 2
    change_json("generation_config.json", renormalize_logits=True, no_repeat_ngram_size=3)(tmp_path / "model")
    assert "normalizes again after" in importing.read("opus-mt", tmp_path / "model").original.notes[-1]
    marian_folder(tmp_path / "marian")
    decoder = tmp_path / "marian" / "decoder.yml"
    decoder.write_text(decoder.read_text().replace("- model.npz", "- model.npz\n- other.npz") + "word-penalty: 0.5\n")
    (tmp_path / "marian" / "other.npz").write_bytes(b"")
    notes = importing.read("opus-mt", tmp_path / "marian").original.notes
    assert "an ensemble of 2 models; only model.npz is read" in notes[0] and "word-penalty" in notes[1]


def names_of(folder, rename):
    arrays = load_file(folder / "model.safetensors")
    save_file({rename(name): array for name, array in arrays.items()}, folder / "model.safetensors", {"format": "pt"})


def stale_index(folder):
    (folder / "model.safetensors.index.json").write_text('{"weight_map": {"a": "model-00001-of-00002.safetensors"}}')


def of_parameters(folder):
    arrays = load_file(folder / "model.safetensors")
    parameters = {name: torch.nn.Parameter(torch.tensor(array)) for name, array in arrays.items()}
    torch.save(parameters, folder / "pytorch_model.bin")
    (folder / "model.safetensors").unlink()


LAYOUTS = {
    **{
        name: lambda folder, name=name: names_of(folder, lambda x: name if x == "model.shared.weight" else x)
        for name in EMBEDDING[1:]
    },
    "without the head": lambda folder: names_of(folder, lambda name: name.removeprefix("model.")),
    "stale index": stale_index,
    "parameters": of_parameters,
}


@pytest.mark.parametrize("name", LAYOUTS)
def test_all_layouts_that_transformers_reads_give_the_same_weights(name, whole, tmp_path):
    shutil.copytree(whole, tmp_path / "model")
    LAYOUTS[name](tmp_path / "model")
    theirs = transformers.MarianMTModel.from_pretrained(tmp_path / "model")
    expected, found = (importing.read("opus-mt", folder) for folder in (whole, tmp_path / "model"))
    for a, b in zip(expected.model.get_weights(), found.model.get_weights(), strict=True):
        np.testing.assert_array_equal(a, b)
    embeddings = np.asarray(found.model.encoder_embedding.token_embedding.embeddings)
    matrix = theirs.get_input_embeddings().weight.detach().numpy()
    np.testing.assert_array_equal(embeddings, found.spaces[0].take(matrix))


def test_vocabularies_of_two_sides_need_two_lists(tmp_path):
    transformers_folder(tmp_path / "model", separate=True)
    (tmp_path / "model" / "target_vocab.json").unlink()
    with pytest.raises(ModelImportError, match=r"has no target_vocab\.json.*vocabularies of their own\. Download it"):
        importing.read("opus-mt", tmp_path / "model")


def test_pickled_code_is_not_executed(whole, tmp_path):
    folder = tmp_path / "model"
    shutil.copytree(whole, folder)
    (folder / "model.safetensors").unlink()
    marker = tmp_path / "executed"

    class Harmful:
        def __reduce__(self):
            return (type(marker).touch, (marker,))

    torch.save({"x": Harmful()}, folder / "pytorch_model.bin")
    with pytest.raises(ModelImportError, match=r"pytorch_model\.bin cannot be read"):
        importing.read("opus-mt", folder)
    (folder / "config.json").unlink()
    np.savez(folder / "model.npz", x=np.array([Harmful()], dtype=object))
    (folder / "opus.vocab.yml").write_text("</s>: 0\n<unk>: 1\n")
    with pytest.raises(ModelImportError, match=r"model\.npz cannot be read"):
        importing.read("opus-mt", folder)
    assert not marker.exists()


def test_vocabularies_of_marian_keep_words_that_yaml_reads_as_other_values(tmp_path):
    tokens = marian_folder(tmp_path)
    words = {"No": "No", '"1.5"': "1.5", "null": "null", '"\\x85"': "\x85", "~": "~", '"\\""': '"', "0x10": "0x10"}
    names = [*map(json.dumps, tokens[: -len(words)]), *words]  # The last ones get other names.
    text = "".join(f"{name}: {i}\n" for i, name in enumerate(names))
    (tmp_path / "opus.vocab.yml").write_text(text, encoding="utf-8")
    imported = importing.read("opus-mt", tmp_path)
    assert imported.original.tokens[0] == [*tokens[: -len(words)], *words.values()]
