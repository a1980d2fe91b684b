"""One model for several directions: the tag says into which language, in Python and in every export."""

import json
import subprocess
import sys

import ctranslate2
import numpy as np
import pytest
from texts import write

import train_keras
from keras_transformer.__main__ import main
from keras_transformer.config import ConfigError, DataConfig, RunConfig
from keras_transformer.data import Variation, make_batches
from keras_transformer.datasets import DataError, corpus_text, load_corpus
from keras_transformer.encoding import encode_pairs, encoded_in
from keras_transformer.export import web
from keras_transformer.export.ctranslate2 import export_ctranslate2
from keras_transformer.export.report import FORMS, write_report
from keras_transformer.export.run_tflite import TFLiteTranslator
from keras_transformer.export.run_tflite import main as run_tflite
from keras_transformer.export.saved_model import export_saved_model
from keras_transformer.export.serving.client import RestClient, ServingError
from keras_transformer.export.tflite import export_tflite
from keras_transformer.export.verify import ServedModel
from keras_transformer.phrasebook import phrasebook
from keras_transformer.runs import Run
from keras_transformer.tokenizers import END_TOKEN_ID, Tokenizer, TokenizerError
from keras_transformer.translator import Translator

PAIRS = phrasebook()["train"][:200]
# A user may write a tag: it stays a text.
WITH_TAGS = [">>de<< The dog.", "The >>en<< dog >>de<<", ">>fr<<", "a>>de<<b", ""]


@pytest.fixture(scope="module")
def sides(two_way):
    return [list(side) for side in zip(*two_way.texts, strict=True)]


# The vocabulary.


@pytest.mark.parametrize("kind", ["unigram", "bpe"])
def test_no_text_contains_a_tag(kind, tmp_path):
    texts = [text for pair in PAIRS for text in pair] + [">>de<< x >>zh_TW<<"] * 50
    Tokenizer.train(texts, 300, kind, num_placeholders=2, languages=["de", "zh_TW"]).save(tmp_path / "tokenizer")
    tokenizer = Tokenizer.load(tmp_path / "tokenizer")
    assert tokenizer.languages == tokenizer.hidden_languages == {"de": 6, "zh_TW": 7}
    assert tokenizer.pieces([6, 7]) == [">>de<<", ">>zh_TW<<"] and tokenizer.num_placeholders == 2
    assert (tokenizer.tag("de"), tokenizer.tag(None)) == ([6], [])
    ids = tokenizer.tokenize(WITH_TAGS)
    assert not {6, 7} & {i for row in ids for i in row}
    assert tokenizer.graph_tokenize(WITH_TAGS).to_list() == ids
    plain = tokenizer.tokenize(["The dog"])[0]
    assert tokenizer.detokenize([[6, *plain], [7]]) == ["The dog", ""]
    assert [x.decode() for x in tokenizer.graph_detokenize(np.array([[6, *plain]], "int32")).numpy()] == ["The dog"]
    assert tokenizer.vocabulary_size == 300


def test_what_cannot_have_tags_is_an_error():
    with pytest.raises(TokenizerError, match="WordPiece has no language tags"):
        Tokenizer.train(["a dog"], kind="wordpiece", languages=["de"])
    tokenizer = Tokenizer.train([text for pair in PAIRS for text in pair], 200, languages=["de"])
    with pytest.raises(ValueError, match=r"`target_language` must be one of .* Received: 'fr'. The model has: de\."):
        tokenizer.tag("fr")


# Training text.


def test_sources_begin_with_the_tag_however_they_are_varied(two_way):
    tokenizer = two_way.tokenizer
    tag = tokenizer.languages["en"]
    pairs = [(de, en) for en, de in two_way.texts]
    encoded = encode_pairs(pairs, tokenizer, tokenizer, 40, target_language="en")
    assert [ids[0] for ids in encoded.source] == [tag] * len(pairs)
    assert [ids[1:].tolist() for ids in encoded.source] == [
        [*ids, END_TOKEN_ID] for ids in tokenizer.tokenize([source for source, _ in pairs])
    ]
    assert not any(tag in ids for ids in encoded.target)
    vary = Variation([tokenizer] * 2, 40, alpha=0.1, share=1.0)
    rows = list(zip(encoded.source, encoded.target, strict=True))
    drawn = vary(rows, 0, range(len(rows)))
    assert [source[0] for source, _ in drawn] == [tag] * len(rows)
    assert all(source.count(tag) == 1 and source[-1] == END_TOKEN_ID for source, _ in drawn)
    assert any(source != ids.tolist() for (source, _), ids in zip(drawn, encoded.source, strict=True))
    longest = max(len(ids) for pair in rows for ids in pair)
    tight = Variation([tokenizer] * 2, longest, alpha=0.01)(rows, 0, range(len(rows)))
    assert max(len(ids) for pair in tight for ids in pair) <= longest
    batches = make_batches(encoded, 200, shuffle=True, vary=vary)
    inputs, *_ = next(iter(batches.dataset))
    assert set(inputs["encoder_token_ids"][:, 0].numpy().tolist()) == {tag}


def test_a_data_set_has_its_directions(tmp_path):
    data = RunConfig.make({"directions": ["de-en", "en-de"]}).data
    corpus = load_corpus(data)
    splits = phrasebook()
    for texts, pairs in zip(corpus[:3], splits.values(), strict=True):
        assert [text.direction for text in texts] == ["de-en", "en-de"]
        assert [text.target_language for text in texts] == ["en", "de"]
        assert texts[0].pairs == [(de, en) for en, de in pairs] and texts[1].pairs == pairs
    assert data.target_languages() == ["en", "de"] and data.language_of_sources() is None
    for split in ("train", "val", "test_2016_flickr"):
        for language in ("en", "de", "fr"):
            write(tmp_path / f"{split}.{language}", f"{split} {language}\n")
    data = DataConfig(dataset="multi30k", data_dir=str(tmp_path), directions=("en-fr", "en-de"))
    assert [text.pairs for text in load_corpus(data).train] == [[("train en", f"train {x}")] for x in ("fr", "de")]
    assert data.language_of_sources() == "en"
    with pytest.raises(DataError, match=r"The phrasebook has the directions en-de and de-en. Received: en-fr"):
        load_corpus(DataConfig(target_language="fr"))
    own = [[str(tmp_path / f"val.{language}") for language in ("en", other)] + ["name=y"] for other in ("fr", "de")]
    with pytest.raises(DataError, match=r"Each --val text needs a name of its own.* Received twice: y"):
        load_corpus(RunConfig.make({"train": own[:1], "val": own}).data)
    with pytest.raises(DataError, match="--data-dir and --variant are for --dataset multi30k"):
        load_corpus(DataConfig(data_dir="x"))
    with pytest.raises(DataError, match=r"The phrasebook has the directions en-de and de-en. Received: en-fr"):
        load_corpus(DataConfig(directions=("en-fr",)))


@pytest.fixture
def own(tmp_path):
    return [str(write(tmp_path / name, f"{name}\n")) for name in ("a.en", "a.de")]


def entry(paths, direction=None, **more):
    return {"source": paths[0], "target": paths[1], "name": None, "direction": direction, **more}


@pytest.mark.parametrize(
    ("train", "val", "others", "message"),
    [
        ("en-de", None, {}, "every text needs its direction.*Received none for: .*a.en, .*a.de"),
        (None, None, {"directions": ["en-de"]}, "every text needs its direction"),
        (
            "en-de",
            "en-de",
            {"directions": ["en-de"]},
            "so --directions says nothing more. Received: --directions en-de",
        ),
        ("en-de", "de-en", {}, "learns only the target languages of its training texts, de. .* direction=de-en"),
        ("en-de", "en-de", {"general": True}, "General text has no direction"),
    ],
)
def test_directions_that_do_not_go_together_are_an_error(own, train, val, others, message):
    settings = {"train": [entry(own, train, weight=1.0)], "val": [entry(own, val)], **others}
    if settings.pop("general", None):
        settings |= {"general_source": own[0], "general_target": own[1]}
    with pytest.raises(DataError, match=message):
        load_corpus(RunConfig.make(settings).data)


@pytest.mark.parametrize("directions", [["en"], ["en-de", "en-de"], ["en-de-fr"], ["e n-de"], [1], ["en-<<"]])
def test_directions_are_pairs_of_codes(directions):
    with pytest.raises(ConfigError, match="`directions` must be different pairs of language codes, such as en-de"):
        RunConfig.make({"directions": directions})


def test_the_direction_of_a_text_stays_when_a_run_is_resumed(own):
    config = RunConfig.make({"train": [entry(own, "en-de")], "val": [entry(own, "en-de")]})
    with pytest.raises(ConfigError, match="`train` must stay as the run began"):
        config.resumed({"train": [entry(own, "de-en", weight=1.0)]})


# Translation.


def test_the_target_language_decides(two_way, sides):
    english, german = sides
    translator = two_way.translator
    assert translator.target_language == "de" and translator.source_language is None
    assert translator.translate(english) == german
    assert translator.translate(german, target_language="en") == english
    mixed = [english[0], german[1], "", "  ", english[2]]
    languages = ["de", "en", "en", "de", None]
    assert translator.translate(mixed, target_language=languages) == [german[0], english[1], "", "", german[2]]
    other = Translator.load(two_way.run_dir, jit_compile=False, target_language="en")
    assert other.translate(german[:3]) == english[:3]
    text = f"- {german[0]}\n\n{german[1]} {german[2]}"
    assert translator.translate_text(text, target_language="en") == f"- {english[0]}\n\n{english[1]} {english[2]}"
    assert list(translator.stream(german[:3], chunk_size=2, target_language="en")) == english[:3]
    assert list(translator.stream(mixed, chunk_size=2, target_language=languages)) == translator.translate(
        mixed, target_language=languages
    )
    scores = [translator.score(german[:1], english[:1], target_language=one)[0].log_prob for one in ("en", "de")]
    assert scores[0] > scores[1] + 1
    with pytest.raises(ValueError, match=r"a list with one per text. Received: 1 languages for 2 texts"):
        translator.translate(["a", "b"], target_language=["de"])
    with pytest.raises(ValueError, match=r"Received: 'fr'. The model has: de, en"):
        Translator.load(two_way.run_dir, target_language="fr")


def test_a_model_of_one_direction_has_no_target_language(golden):
    with pytest.raises(ValueError, match=r"Received: 'de'. The model has: one, without a tag"):
        golden.translator.translate(["a dog"], target_language="de")


def test_a_tag_in_a_text_is_text(two_way):
    ids = two_way.translator.encode_sources(WITH_TAGS, "en")
    tags = set(two_way.tokenizer.languages.values())
    assert [[i for i in row if i in tags] for row in ids] == [[two_way.tokenizer.languages["en"]]] * 4 + [[]]


def test_the_tag_counts_for_the_length(two_way):
    translator = Translator(two_way.model, two_way.tokenizer, max_source_length=8, jit_compile=False, num_beams=1)
    text = "Is the dog in the garden with the old cats?"
    cut = two_way.tokenizer.tokenize([text])[0][:6]
    (ids,) = translator.encode_sources([text], "en")
    assert ids == [two_way.tokenizer.languages["en"], *cut, END_TOKEN_ID]
    assert translator.translate([text], target_language="en", return_scores=True)[0].truncated
    parts = translator.split_text(text)
    assert len(parts) > 3 and "".join(parts) == text
    assert not any(found.truncated for found in translator.stream_sentences(parts, target_language="en"))


def test_no_translation_contains_a_tag(two_way):
    """Not even of a model that would write nothing else."""
    keras_model = two_way.model
    tags = set(two_way.tokenizer.languages.values())
    settings = {"return_scores": True, "sampling": True, "temperature": 1e6, "num_hypotheses": 20, "seed": 3}
    found = two_way.translator.translate(["a dog"], **settings)[0]
    used = {i for hypothesis in found for i in hypothesis.token_ids}
    assert len(used) > keras_model.target_vocabulary_size / 2 and not used & tags


def test_tags_align_with_nothing(two_way, sides):
    (found,) = two_way.translator.translate(sides[1][:1], target_language="en", return_attention=True)
    attention = found.attention
    assert attention.num_tags == 1 and attention.source_tokens[0] == ">>en<<"
    assert min(attention.alignment()) >= 1
    word = sides[1][0].split()[0]
    html = f"<p><b>{word}</b>{sides[1][0][len(word) :]}</p>"
    translated = two_way.translator.translate_html(html, target_language="en")
    assert translated.count("<b>") == 1 and translated.replace("<b>", "").replace("</b>", "") == f"<p>{sides[0][0]}</p>"


# The training script and the command line.


def test_a_run_scores_every_direction(two_way, sides, tmp_path, capsys):
    run = Run(two_way.run_dir)
    scores = run.scores()["after_training"]
    assert [name.split()[-1] for name in scores["texts"]] == ["en-de", "de-en"]
    assert scores["bleu"] == pytest.approx(np.mean([one["bleu"] for one in scores["texts"].values()]))
    assert scores["bleu"] > 90 and list(run.scores()) == ["after_training", "validation"]
    assert main(["score", str(two_way.run_dir)]) == 0
    assert capsys.readouterr().out.count("BLEU") == 2
    assert main(["score", str(two_way.run_dir), "--target-language", "en"]) == 0
    out = capsys.readouterr().out
    assert out.count("BLEU") == 1 and "de-en, 12 sentences" in out
    with pytest.raises(SystemExit, match="2"):
        main(["score", str(two_way.run_dir), "--output", str(tmp_path / "x")])
    assert "The run has 2 test sets, and --output" in capsys.readouterr().err
    source, reference = (
        str(write(tmp_path / name, "\n".join(side) + "\n")) for name, side in zip("ab", sides[::-1], strict=True)
    )
    flags = ["--source", source, "--reference", reference, "--target-language", "en", "--output", str(tmp_path / "c")]
    assert main(["score", str(two_way.run_dir), *flags]) == 0
    assert (tmp_path / "c").read_text().splitlines() == sides[0]
    output = tmp_path / "translated"
    flags = ["--input", source, "--output", str(output), "--target-language", "en"]
    assert main(["translate", str(two_way.run_dir), *flags]) == 0
    assert output.read_text().splitlines() == sides[0]


@pytest.mark.slow
def test_bulk_translation_and_preparation_know_the_language(two_way, sides, own, tmp_path):
    english, german = sides
    (tmp_path / "in").write_text("\n".join(german) + "\n")
    call = [sys.executable, "-m", "keras_transformer.bulk", "--run", str(two_way.run_dir)]
    flags = ["--input", str(tmp_path / "in"), "--output", str(tmp_path / "out"), "--target-language", "en"]
    subprocess.run([*call, *flags], check=True, capture_output=True, timeout=300)
    assert (tmp_path / "out" / "in").read_text().splitlines() == english
    cache = tmp_path / "cache"
    flags = ["--cache-dir", str(cache), "--train", *own, "direction=de-en"]
    subprocess.run([*call, *flags], check=True, capture_output=True, timeout=300)
    text = corpus_text(entry(own, "de-en"))
    (folder,) = cache.iterdir()
    pairs = encoded_in(cache, text, [two_way.tokenizer] * 2, 128)
    assert list(cache.iterdir()) == [folder] and pairs.source[0][0] == two_way.tokenizer.languages["en"]


def test_fine_tuning_keeps_to_the_languages_of_the_model(two_way, own, tmp_path, capsys):
    flags = ["--init-from", str(two_way.run_dir), "--run-dir", str(tmp_path / "run"), "--val", *own, "direction=en-fr"]
    with pytest.raises(SystemExit, match="2"):
        train_keras.main([*flags, "--train", *own, "direction=en-fr"])
    assert "Received: 'fr'. The model has: de, en" in capsys.readouterr().err
    with pytest.raises(SystemExit, match="2"):
        train_keras.main([*flags[:4], "--train", *own, "--val", *own])
    assert "A vocabulary with language tags needs texts that have directions" in capsys.readouterr().err


# Exports.


@pytest.fixture(scope="module")
def served(two_way, tmp_path_factory):
    path = export_saved_model(two_way.translator, tmp_path_factory.mktemp("served") / "translator", num_beams=2)
    with ServedModel(path) as served:
        yield served


def test_the_saved_model_takes_a_target_language(two_way, served, sides):
    english, german = sides
    mixed, languages = [english[0], german[1], "", german[2]], [b"de", b"en", b"en", b"xx"]
    array, into = np.array(mixed, object), np.array(languages, object)
    found = served("translate_to", text=array, target_language=into)
    assert [text.decode() for text in found["translation"][:3]] == [german[0], english[1], ""]
    assert found["target_language"].tolist() == [b"de", b"en", b"en", b"de"]  # An unknown one is the default.
    assert found["translation"][3] == served("translate", text=array)["translation"][3]
    assert served("translate", text=array)["translation"][0].decode() == german[0]
    nbest = served("translate_nbest_to", text=array, target_language=into)
    assert nbest["hypotheses"][1, 0].decode() == english[1]
    documents = np.array([f"{german[0]}\n\n- {german[1]} {german[2]}", english[3]], object)
    whole = served("translate_document_to", text=documents, target_language=np.array([b"en", b"de"], object))
    assert whole["translation"][0].decode() == f"{english[0]}\n\n- {english[1]} {english[2]}"
    assert whole["translation"][1].decode() == german[3]
    ids = served("tokenize_to", text=array, target_language=into)["token_ids"]
    wanted = two_way.translator.encode_sources(mixed, ["de", "en", "en", "de"])
    assert [[i for i in row if i] for row in ids.tolist()] == wanted
    by_ids = served("translate_ids", token_ids=ids)["translation_ids"]
    back = served("detokenize", token_ids=by_ids)["text"]
    assert [text.decode() for text in back[:2]] == [german[0], english[1]]
    scored = served("score_to", source=array[1:2], target=np.array(english[1:2], object), target_language=into[1:2])
    own = two_way.translator.score(mixed[1:2], english[1:2], target_language="en")[0]
    assert scored["log_prob"][0] == pytest.approx(own.log_prob, rel=1e-3)
    given = np.array(WITH_TAGS, object), np.array([b"en"] * len(WITH_TAGS), object)
    ids = served("tokenize_to", text=given[0], target_language=given[1])["token_ids"].tolist()
    assert [[i for i in row if i] for row in ids] == two_way.translator.encode_sources(WITH_TAGS, "en")


def test_the_client_asks_for_a_target_language(served, sides):
    english, german = sides

    class Client(RestClient):
        def predict(self, signature, inputs):
            found = served(signature, **{name: np.array(value, object) for name, value in inputs.items()})
            return {name: [x.decode() if isinstance(x, bytes) else x for x in y.tolist()] for name, y in found.items()}

    client = Client()
    assert [one.translation for one in client.translate(german[:2], "en")] == english[:2]
    mixed = client.translate([german[0], english[1]], target_language=["en", "de"])
    assert [one.translation for one in mixed] == [english[0], german[1]]
    assert [one.translation for one in client.translate(english[:2])] == german[:2]
    assert client.translate([], "en") == []
    assert client.translate_document(german[0], "en") == english[0]
    with pytest.raises(ServingError, match="The served model does not translate into 'fr'"):
        client.translate(english[:1], "fr")
    with pytest.raises(ValueError, match=r"one target language, or one per text. Received: 1 for 2"):
        client.translate(english[:2], ["de"])


@pytest.fixture(scope="module")
def device(two_way, tmp_path_factory):
    path = tmp_path_factory.mktemp("device") / "exported"
    folder, same = export_tflite(two_way.translator, path, source_length=40, target_length=40, num_beams=2)
    assert same == 1.0  # Both files, with the translator's own language.
    return folder


@pytest.mark.slow
def test_the_device_takes_a_target_language(device, sides, capsys):
    english, german = sides
    settings = json.loads((device / "translator.json").read_text())
    assert settings["target_language"] == "de" and list(settings["languages"]) == ["de", "en"]
    into_english = TFLiteTranslator(device / "translator.tflite", target_language="en")
    assert [into_english.translate(text)[0][0] for text in german] == english
    assert TFLiteTranslator(device / "translator.tflite").translate(english[0])[0][0] == german[0]
    assert into_english.translate("") == [("", 0.0)]
    text = f"- {german[0]}\n\n{german[1]} {german[2]}"
    assert into_english.translate_document(text) == f"- {english[0]}\n\n{english[1]} {english[2]}"
    file = str(device / "translator.tflite")
    assert run_tflite([file, german[0], "--target-language", "en"]) == 0
    assert capsys.readouterr().out == english[0] + "\n"
    assert run_tflite([file, german[0], "--target-language", "fr"]) == 2
    assert "The model translates into: de, en. Received: target_language='fr'" in capsys.readouterr().err


@pytest.mark.slow
def test_the_file_of_strings_takes_a_target_language(device, sides):
    import tensorflow_text
    from ai_edge_litert.interpreter import InterpreterWithCustomOps

    operations = tensorflow_text.tflite_registrar.SELECT_TFTEXT_OPS
    interpreter = InterpreterWithCustomOps(operations, model_path=str(device / "translator_text.tflite"))
    runner = interpreter.get_signature_runner("translate_beam")
    languages = json.loads((device / "translator.json").read_text())["languages"]
    for language, source, target in (("en", sides[1][0], sides[0][0]), ("de", *[side[0] for side in sides])):
        found = runner(text=np.array([source], object), target_language=np.array([languages[language]], "int32"))
        assert found["hypotheses"][0].decode() == target
    empty = runner(text=np.array([""], object), target_language=np.array([languages["en"]], "int32"))
    assert empty["scores"][0] == 0 and empty["hypotheses"][0] == b""


@pytest.mark.slow
def test_the_page_has_a_list_of_languages(two_way, sides, cache, opened, tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(cache))
    lengths = {"source_length": 40, "target_length": 40}
    folder, _ = web.export_web(two_way.translator, tmp_path / "site", ["none"], num_beams=2, **lengths)
    monkeypatch.undo()
    page = opened(folder)
    page.wait_for_selector("#translate:enabled")
    assert page.locator("#language option").all_text_contents() == ["German", "English"]

    def shown(text):
        page.wait_for_selector("#translate:enabled")
        page.fill("#source", text)
        page.evaluate("delete document.body.dataset.state")
        page.click("#translate")
        page.wait_for_selector("body[data-state=done]")
        return page.inner_text("#translation")

    english, german = sides
    assert shown(f"{english[0]} {english[1]}") == f"{german[0]} {german[1]}"
    page.select_option("#language", "en")
    assert shown(f"{german[0]} {german[1]}") == f"{english[0]} {english[1]}"
    assert page.locator("#attention th").first.text_content() == ">>en<<"
    assert page.inner_text("#count").endswith(f"{sum(map(len, two_way.tokenizer.tokenize(german[:2])))} tokens")


def test_ctranslate2_reads_the_tag_as_a_piece(two_way, sides, tmp_path):
    folder = export_ctranslate2(two_way.translator, tmp_path / "model")
    tokenizer = two_way.tokenizer
    pieces = [[">>en<<", *tokenizer.pieces(ids)] for ids in tokenizer.tokenize(sides[1])]
    found = ctranslate2.Translator(str(folder), intra_threads=1).translate_batch(pieces, beam_size=2, length_penalty=0)
    ids = {piece: i for i, piece in enumerate(tokenizer.pieces(range(tokenizer.vocabulary_size)))}
    texts = tokenizer.detokenize([[ids[piece] for piece in one.hypotheses[0]] for one in found])
    assert texts == two_way.translator.translate(sides[1], target_language="en", num_beams=2, length_penalty=0)


@pytest.mark.slow
def test_a_report_asks_each_form_for_the_language_of_the_text(two_way, tmp_path):
    rows = write_report([str(two_way.run_dir)], tmp_path / "report")
    texts = Run(two_way.run_dir).scores()["after_training"]["texts"]
    assert len(texts) == 2 and [row["form"] for row in rows] == list(FORMS)
    for row in rows:
        assert row["texts"].keys() == texts.keys()
        for name, one in texts.items():
            assert row["texts"][name]["bleu"] == pytest.approx(one["bleu"], abs=3 if "int8" in row["form"] else 0.01)
