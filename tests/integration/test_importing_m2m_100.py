"""M2M-100 and NLLB: models of many languages, made here with random weights, against transformers itself."""

import json
import shutil
from pathlib import Path

import keras
import numpy as np
import pytest
from public_models import LANGUAGES, NLLB, SOURCES, assert_saved_as_built, m2m_100_folder, translator_of

from keras_transformer.__main__ import main
from keras_transformer.data.encoding import encode_pairs
from keras_transformer.text.special_ids import END_TOKEN_ID, shifted_right
from keras_transformer.transfer import importing
from keras_transformer.transfer.importing import ModelImportError, report, vocabulary
from keras_transformer.transfer.importing.m2m_100 import M2M_100_LANGUAGES, sentencepiece_model
from keras_transformer.translation.batched_search import pad
from keras_transformer.translation.translator import Translator

torch = pytest.importorskip("torch")


@pytest.fixture(autouse=True, scope="module")
def quiet_transformers():
    from transformers.utils import logging

    logging.disable_progress_bar()
    logging.set_verbosity_error()


@pytest.fixture(scope="module")
def original(tmp_path_factory):
    """A folder, transformers' model and its tokenizer."""
    folder = tmp_path_factory.mktemp("m2m") / "model"
    return folder, *m2m_100_folder(folder)


@pytest.fixture(scope="module")
def imported(original):
    return importing.read("m2m-100", original[0], **LANGUAGES)


@pytest.fixture(scope="module")
def translator(imported):
    return translator_of(imported)


def generated(model, tokenizer, language, forbidden, **settings):
    """What transformers finds: rows of its ids behind the start token, and scores of beams.

    It would write tags and the unknown token, which ours never does.
    """
    batch = tokenizer(SOURCES, return_tensors="pt", padding=True)
    with torch.no_grad():
        found = model.generate(
            **batch,
            forced_bos_token_id=tokenizer.convert_tokens_to_ids(language),
            early_stopping="never" if settings["num_beams"] > 1 else False,
            max_length=24,
            bad_words_ids=[[i] for i in forbidden],
            return_dict_in_generate=True,
            output_scores=True,
            **settings,
        )
    return [row[1:] for row in found.sequences.tolist()], found.get("sequences_scores")


def test_the_model_is_saved_as_it_is_built(imported, tmp_path):
    assert_saved_as_built(imported, tmp_path / "run")


@pytest.mark.parametrize(("family", "beams"), [("m2m-100", (1, 4)), ("nllb", (1,))])
def test_logits_and_translations_are_those_of_transformers(family, beams, tmp_path):
    languages = NLLB if family == "nllb" else LANGUAGES
    model, tokenizer = m2m_100_folder(tmp_path / "model", nllb=family == "nllb")
    imported = importing.read(family, tmp_path / "model", **languages)
    translator, space = translator_of(imported), imported.spaces[0]
    batch = tokenizer(SOURCES, return_tensors="pt", padding=True)
    rng = np.random.default_rng(0)
    decoder_ids = rng.integers(4, model.config.vocab_size, (len(SOURCES), 6))
    decoder_ids[:, 0] = 2
    with torch.no_grad():
        expected = model(**batch, decoder_input_ids=torch.tensor(decoder_ids)).logits.numpy()
    new = {int(row): i for i, row in reversed(list(enumerate(space.rows)))}
    decoder_ids = np.vectorize(new.get)(decoder_ids).astype("int32")
    decoder_ids[:, 0] = 2  # The start token here; the original starts with its end token.
    inputs = {"encoder_token_ids": pad(translator.codec.source_ids(SOURCES)), "decoder_token_ids": decoder_ids}
    logits = np.asarray(imported.model(inputs))
    np.testing.assert_allclose(logits[..., space.written], expected[..., space.rows[space.written]], atol=1e-4)
    assert space.written.sum() == model.config.vocab_size
    names = {"de": "__de__", "fr": "__fr__"} if family == "m2m-100" else {x: x for x in ("deu_Latn", "fra_Latn")}
    forbidden = [int(space.rows[i]) for i in (1, *translator.codec.hidden_tags)]
    for language, token in names.items():
        for num_beams in beams:
            rows, scores = generated(model, tokenizer, token, forbidden, num_beams=num_beams)
            ours = translator.translate(SOURCES, num_beams=num_beams, target_language=language, return_scores=True)
            for row, one in zip(rows, ours, strict=True):
                row = row[: row.index(2) + 1] if 2 in row else row
                assert [int(space.rows[i]) for i in one.token_ids] == row
            if num_beams > 1:
                np.testing.assert_allclose([one.score for one in ours], scores.numpy(), rtol=1e-4)


def test_the_first_id_of_a_source_is_the_tag_of_its_translation(imported, translator):
    tag = imported.tokenizers[0].languages
    rows = translator.codec.source_ids(SOURCES[:1] * 2, ["fr", "de"])
    assert [row[0] for row in rows] == [tag["fr"], tag["de"]] and rows[0][1:] == rows[1][1:]
    # The encoder reads the token of the source language in both.
    sequences = [np.asarray(imported.model.encode(pad([row]))[0]) for row in rows]
    np.testing.assert_array_equal(*sequences)
    (found,) = translator.translate(SOURCES[:1], target_language="fr", return_attention=True)
    assert found.token_ids[0] == tag["fr"] and found.attention.target_tokens[0] == ">>fr<<"
    assert found.attention.source_tokens[0] == ">>fr<<" and found.attention.num_tags == 1
    assert ">>" not in found.text
    (scored,) = translator.score(SOURCES[:1], [found.text], "fr")
    assert scored.tokens[0] == ">>fr<<" and scored.token_log_probs[0] == 0
    assert translator.translate([""], return_scores=True)[0].token_ids == ()


def test_scores_are_those_of_the_search(imported):
    """A tag costs nothing: it was not chosen."""
    for num_beams in (1, 3):
        translator = translator_of(imported, num_beams=num_beams, length_penalty=0.0, max_target_length=9)
        found = translator.translate(SOURCES, return_scores=True, target_language="cs")
        rows = [list(one.token_ids) for one in found]
        inputs = {
            "encoder_token_ids": pad(translator.codec.source_ids(SOURCES, "cs")),
            "decoder_token_ids": pad([shifted_right(row) for row in rows]),
        }
        log_probs = np.asarray(keras.ops.log_softmax(imported.model(inputs)))
        expected = [
            sum(of_row[place, i] for place, i in enumerate(row) if place)
            for of_row, row in zip(log_probs, rows, strict=True)
        ]
        np.testing.assert_allclose([one.score for one in found], expected, rtol=1e-4)


def test_prefixes_stand_behind_the_tag(translator):
    ids = translator.target_tokenizer.tokenize(["Die Katze"])[0]
    (found,) = translator.translate(SOURCES[:1], prefixes=["Die Katze"], return_scores=True)
    assert list(found.token_ids[1 : 1 + len(ids)]) == ids
    assert found.text.startswith("Die Katze")


def test_a_language_is_needed(imported, translator):
    with pytest.raises(ValueError, match=r"needs `target_language`.*Received: None"):
        translator_of(imported).__class__(imported.model, *imported.tokenizers).translate(SOURCES)
    with pytest.raises(ValueError, match="must be one of the model's target languages"):
        translator.translate(SOURCES, target_language="xx")


def test_trimmed_vocabularies_have_the_same_ids_for_tags(original, translator):
    trimmed = importing.read("m2m-100", original[0], trim=True, **LANGUAGES)
    source, target = trimmed.tokenizers
    assert source.languages == target.languages and len(source.languages) == 100
    assert translator_of(trimmed).translate(SOURCES, num_beams=1) == translator.translate(SOURCES, num_beams=1)


def test_bpe_cannot_be_trimmed_to_a_text(original):
    with pytest.raises(importing.ModelImportError, match=r"unigram model: .* which is BPE\. Try --trim-vocabulary"):
        importing.read("m2m-100", original[0], trim=True, corpus=(["a text"], None), **LANGUAGES)


def test_the_command_writes_a_run(original, tmp_path, capsys):
    run = str(tmp_path / "run")
    arguments = ["import", "m2m-100", str(original[0]), "--run-dir", run]
    with pytest.raises(SystemExit):
        main([*arguments, "--source-language", "en"])
    assert "--target-language must be one of the model's languages: af, am, ar" in capsys.readouterr().err
    with pytest.raises(SystemExit):
        main(["import", "nllb", "facebook/nllb", "--run-dir", run, "--source-language", "deu_Latn"])  # Not downloaded.
    assert "nllb needs --source-language and --target-language, such as en or eng_Latn. Received: deu_Latn." in (
        capsys.readouterr().err
    )
    assert main([*arguments, "--source-language", "en", "--target-language", "de"]) == 0
    assert "language tags, into which it translates: >>af<<" in capsys.readouterr().out
    trimmed = ["--run-dir", f"{run}-trimmed", "--source-language", "en", "--target-language", "de", "--trim-vocabulary"]
    assert main([*arguments[:3], *trimmed]) == 0
    assert "translations of 100 sentences, greedy: " in capsys.readouterr().out
    loaded = Translator.load(run)
    assert (loaded.source_language, loaded.codec.target_language, loaded.codec.begins_with_tag) == ("en", "de", True)


def test_targets_of_training_begin_with_the_tag(imported):
    tokenizer = imported.tokenizers[0]
    pairs = [("The cat.", "Die Katze."), ("a", "b")]
    encoded = encode_pairs(pairs, tokenizer, tokenizer, 40, target_language="de", tagged_targets=True)
    for side in (encoded.source, encoded.target):
        assert [row[0] for row in side] == [tokenizer.languages["de"]] * 2
    assert [row[-1] for row in encoded.target] == [END_TOKEN_ID] * 2


def test_the_languages_are_those_of_transformers():
    from transformers.models.m2m_100.tokenization_m2m_100 import FAIRSEQ_LANGUAGE_CODES

    assert M2M_100_LANGUAGES.split() == FAIRSEQ_LANGUAGE_CODES["m2m100"]


def test_tokenizer_json_is_enough(tmp_path):
    """transformers 5 saves no SentencePiece file for NLLB. Tokens that were added are languages if they are names."""
    from transformers import AutoTokenizer

    folder, saved = tmp_path / "nllb", tmp_path / "saved"
    model, _ = m2m_100_folder(folder, nllb=True)
    tokenizer = AutoTokenizer.from_pretrained(folder)
    tokenizer.add_tokens(["tyv_Cyrl", "[BT]"], special_tokens=True)
    model.resize_token_embeddings(len(tokenizer), mean_resizing=False)
    model.save_pretrained(saved)
    tokenizer.save_pretrained(saved)
    assert not (saved / "sentencepiece.bpe.model").exists()
    languages = {"source_language": "eng_Latn", "target_language": "tyv_Cyrl"}
    without = importing.read("nllb", saved, **languages)
    assert without.original.languages == ("eng_Latn", "tyv_Cyrl")
    shutil.copy(folder / "sentencepiece.bpe.model", saved)
    imported = importing.read("nllb", saved, **languages)
    assert without.spaces[0].pieces == imported.spaces[0].pieces
    texts = report.samples()
    assert without.tokenizers[0].tokenize(texts) == imported.tokenizers[0].tokenize(texts)
    # The ids are compared with those of the library. It reads special tokens in a text, and keeps spaces at its end.
    ends = (
        "<s> </s> <unk> <pad> \u2581 \u2581\u2581",
        "  two  spaces ",
        "\U0001d54f \x7f \x01",
        " ",
        "a\u200bb\u00adc\ufeff",
    )
    odd = [text for text in texts if text.endswith(ends)]
    assert report.different_ids(without, texts) == [odd, odd] and len(odd) == len(ends)
    library = tokenizer(texts, add_special_tokens=False).input_ids
    assert library == list(report._ids_of_library(str(saved / "tokenizer.json"), texts))
    with pytest.raises(ModelImportError, match=r"--target-language must be .* eng_Latn and 202 more\. Received: en\."):
        importing.read("nllb", saved, source_language="eng_Latn", target_language="en")
    with pytest.raises(ModelImportError, match=r"--target-language must be .*Received: \[BT\]"):
        importing.read("nllb", saved, source_language="eng_Latn", target_language="[BT]")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"model": {}}, r"it must have model\.vocab and model\.merges\. Received: KeyError"),
        ({"model": 3}, r"it must have model\.vocab and model\.merges\. Received: TypeError"),
        ({"normalizer": {"type": "NFKC"}}, r"the normalizer must be that of SentencePiece\. Received: NFKC\. Add the"),
        (
            {"normalizer": {"type": "Replace", "pattern": {"String": "x"}, "content": "y"}},
            r"Received: Replace\. Add the",
        ),
        ({"normalizer": {"type": "Precompiled", "precompiled_charsmap": "a"}}, r"it must have .*Received: Error"),
        ({"normalizer": {"type": "Precompiled", "precompiled_charsmap": "eHl6"}}, r"it is damaged, or"),
        (
            {"pre_tokenizer": {"type": "ByteLevel"}},
            r"the pre_tokenizer must be that of SentencePiece\. Received: ByteLev",
        ),
        ({"type": "Unigram"}, r"model\.type must be 'BPE'\. Received: Unigram"),
        ({"byte_fallback": True}, r"model\.byte_fallback must be False\. Received: True"),
        ({"ignore_merges": True}, r"model\.ignore_merges must be False\. Received: True"),
        ({"merges": []}, r"its merges must be of tokens, and make tokens\. Received: 0 merges"),
        ({"merges": ["a b"]}, r"its merges must be of tokens, and make tokens\. Received: 1 merges"),
        ({"merges": ["a x c"]}, r"its merges must be of tokens, and make tokens\. Received: 1 merges"),
        (
            {"merges": ["a c", "ac e", "c e"]},
            r"all merges that make a token must be there\. Received: none of a and ce",
        ),
        ({"merges": ["ac e", "a c", "a ce"]}, r"the merges of a token must follow each other\. Received: ace"),
    ],
)
def test_a_tokenizer_json_that_sentencepiece_cannot_be_is_refused(change, message):
    model = {"type": "BPE", "vocab": {"a": 0, "c": 1, "e": 2, "ac": 3, "ce": 4, "ace": 5}}
    model |= {"merges": ["a c", "c e", "a ce", "ac e"], "unk_token": "<unk>", "fuse_unk": True}
    content = {"model": model, "pre_tokenizer": {"type": "Metaspace"}}
    assert vocabulary.parse(sentencepiece_model(Path("x"), content), "x").pieces[-1].piece == b"ace"
    parts = {"model", "normalizer", "pre_tokenizer"}
    content.update(change if parts & change.keys() else {"model": model | change})
    with pytest.raises(ModelImportError, match=message):
        sentencepiece_model(Path("x"), content)


def test_weights_in_several_files(original, tmp_path):
    folder, model, _ = original
    shutil.copytree(folder, tmp_path / "model")
    (tmp_path / "model" / "model.safetensors").unlink()
    model.save_pretrained(tmp_path / "model", max_shard_size="20KB")
    assert len(list((tmp_path / "model").glob("model-*.safetensors"))) > 2
    whole, parts = (importing.read("m2m-100", one, **LANGUAGES).model for one in (folder, tmp_path / "model"))
    for a, b in zip(whole.get_weights(), parts.get_weights(), strict=True):
        np.testing.assert_array_equal(a, b)
    next((tmp_path / "model").glob("model-*.safetensors")).unlink()
    with pytest.raises(ModelImportError, match=r"has no model-.*Download all files"):
        importing.read("m2m-100", tmp_path / "model", **LANGUAGES)


def change_json(name, **changes):
    def change(folder):
        content = json.loads((folder / name).read_text())
        (folder / name).write_text(json.dumps({**content, **changes}))

    return change


BROKEN = {
    "no config": (lambda folder: (folder / "config.json").unlink(), "not a folder of transformers"),
    "another family": (change_json("config.json", model_type="mbart"), "model_type must be 'm2m_100'. Received: mbart"),
    "untied": (change_json("config.json", tie_word_embeddings=False), "tie_word_embeddings must be true"),
    "other languages": (change_json("tokenizer_config.json", language_codes="wmt21"), "Received: wmt21"),
    "no vocabulary": (lambda folder: (folder / "vocab.json").unlink(), "M2M-100 has vocab.json, NLLB has tokenizer"),
    "no tokenizer": (
        lambda folder: (folder / "sentencepiece.bpe.model").unlink(),
        r"has no sentencepiece\.bpe\.model\. Download all files",
    ),
    "too deep": (change_json("config.json", encoder_layers=3), "lack model.encoder.layers.2"),
    # SMaLL-100 has the files of M2M-100, but its encoder reads the target's token.
    "other tokenizer": (change_json("tokenizer_config.json", tokenizer_class="SMALL100Tokenizer"), "SMALL100Tokenizer"),
    "own tokenizer": (
        lambda folder: (folder / "tokenization_small100.py").touch(),
        "Received: tokenization_small100.py",
    ),
}


@pytest.mark.parametrize("name", BROKEN)
def test_a_folder_that_cannot_be_imported_is_one_clear_line(name, original, tmp_path):
    change, message = BROKEN[name]
    shutil.copytree(original[0], tmp_path / "model")
    change(tmp_path / "model")
    with pytest.raises(ModelImportError, match=message) as raised:
        importing.read("m2m-100", tmp_path / "model", **LANGUAGES)
    assert "\n" not in str(raised.value)
