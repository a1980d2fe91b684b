"""One model for several directions: the tag says into which language, in Python and in every export."""

import ctranslate2
import numpy as np
import pytest
from texts import write

import train_keras
from keras_transformer.__main__ import main
from keras_transformer.data.batches import Variation, make_batches
from keras_transformer.data.encoding import encode_pairs
from keras_transformer.export.ctranslate2 import export_ctranslate2
from keras_transformer.export.serving.client import RestClient, ServingError
from keras_transformer.text.special_ids import END_TOKEN_ID
from keras_transformer.training.run import Run
from keras_transformer.translation.documents import split_text, stream_sentences
from keras_transformer.translation.translator import Translator

# A user may write a tag: it stays a text.
WITH_TAGS = [">>de<< The dog.", "The >>en<< dog >>de<<", ">>fr<<", "a>>de<<b", ""]


@pytest.fixture(scope="module")
def sides(two_way):
    return [list(side) for side in zip(*two_way.texts, strict=True)]


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


@pytest.fixture
def own(tmp_path):
    return [str(write(tmp_path / name, f"{name}\n")) for name in ("a.en", "a.de")]


# Translation.


def test_the_target_language_decides(two_way, sides):
    english, german = sides
    translator = two_way.translator
    assert translator.codec.target_language == "de" and translator.source_language is None
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
    right, wrong = (translator.score(german, english, target_language=language) for language in ("en", "de"))
    assert all(one.log_prob > other.log_prob for one, other in zip(right, wrong, strict=True))
    with pytest.raises(ValueError, match=r"a list with one per text. Received: 1 languages for 2 texts"):
        translator.translate(["a", "b"], target_language=["de"])
    with pytest.raises(ValueError, match=r"Received: 'fr'. The model has: de, en"):
        Translator.load(two_way.run_dir, target_language="fr")


def test_a_model_of_one_direction_has_no_target_language(golden):
    with pytest.raises(ValueError, match=r"Received: 'de'. The model has: one, without a tag"):
        golden.translator.translate(["a dog"], target_language="de")


def test_a_tag_in_a_text_is_text(two_way):
    ids = two_way.translator.codec.source_ids(WITH_TAGS, "en")
    tags = set(two_way.tokenizer.languages.values())
    assert [[i for i in row if i in tags] for row in ids] == [[two_way.tokenizer.languages["en"]]] * 4 + [[]]


def test_the_tag_counts_for_the_length(two_way):
    translator = Translator(two_way.model, two_way.tokenizer, max_source_length=8, jit_compile=False, num_beams=1)
    text = "Is the dog in the garden with the old cats?"
    cut = two_way.tokenizer.tokenize([text])[0][:6]
    (ids,) = translator.codec.source_ids([text], "en")
    assert ids == [two_way.tokenizer.languages["en"], *cut, END_TOKEN_ID]
    assert translator.translate([text], target_language="en", return_scores=True)[0].truncated
    parts = split_text(translator, text)
    assert len(parts) > 3 and "".join(parts) == text
    assert not any(found.truncated for found in stream_sentences(translator, parts, target_language="en"))


def test_no_translation_contains_a_tag(two_way):
    """Not even of a model that would write nothing else."""
    keras_model = two_way.model
    tags = set(two_way.tokenizer.languages.values())
    settings = {"return_scores": True, "sampling": True, "temperature": 1e6, "num_hypotheses": 20, "sampling_seed": 3}
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


def test_a_run_scores_every_direction(two_way, golden, finished, sides, tmp_path, capsys):
    scores = Run(finished).scores()["after_training"]
    assert [name.split()[-1] for name in scores["texts"]] == ["en-de", "de-en"]
    assert scores["bleu"] == pytest.approx(np.mean([one["bleu"] for one in scores["texts"].values()]))
    assert scores["bleu"] > 90
    assert main(["score", str(two_way.run_dir)]) == 0
    printed = capsys.readouterr().out
    assert printed.count("BLEU") == 2 and "(nrefs:1|bs:1000|seed:12345|case:mixed|eff:no|tok:13a|" in printed
    for one in scores["texts"].values():
        assert f"BLEU {one['bleu']:.2f} ± {one['bleu_interval']:.2f}  ({one['bleu_signature']})" in printed
        assert f"chrF {one['chrf']:.2f} ± {one['chrf_interval']:.2f}" in printed
    assert main(["score", str(two_way.run_dir), "--target-language", "en"]) == 0
    out = capsys.readouterr().out
    assert out.count("BLEU") == 1 and "de-en, 12 sentences" in out
    # Beside a run that has no language to choose, whichever is first.
    assert main(["score", str(two_way.run_dir), "--target-language", "de", "--compare", str(golden.run_dir)]) == 0
    files = [str(write(tmp_path / name, "\n".join(side) + "\n")) for name, side in zip("ed", sides, strict=True)]
    flags = ["--source", files[0], "--reference", files[1], "--compare", str(two_way.run_dir)]
    assert main(["score", str(golden.run_dir), *flags]) == 0
    assert capsys.readouterr().out.count("difference of BLEU") == 2
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


def test_fine_tuning_keeps_to_the_languages_of_the_model(two_way, own, tmp_path, capsys):
    flags = ["--init-from", str(two_way.run_dir), "--run-dir", str(tmp_path / "run"), "--val", *own, "direction=en-fr"]
    with pytest.raises(SystemExit, match="2"):
        train_keras.main([*flags, "--train", *own, "direction=en-fr"])
    assert "Received: 'fr'. The model has: de, en" in capsys.readouterr().err
    with pytest.raises(SystemExit, match="2"):
        train_keras.main([*flags[:4], "--train", *own, "--val", *own])
    assert "A vocabulary with language tags needs texts that have directions" in capsys.readouterr().err


# Exports.


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
    wanted = two_way.translator.codec.source_ids(mixed, ["de", "en", "en", "de"])
    assert [[i for i in row if i] for row in ids.tolist()] == wanted
    by_ids = served("translate_ids", token_ids=ids)["translation_ids"]
    back = served("detokenize", token_ids=by_ids)["text"]
    assert [text.decode() for text in back[:2]] == [german[0], english[1]]
    scored = served("score_to", source=array[1:2], target=np.array(english[1:2], object), target_language=into[1:2])
    own = two_way.translator.score(mixed[1:2], english[1:2], target_language="en")[0]
    assert scored["log_prob"][0] == pytest.approx(own.log_prob, rel=1e-3)
    given = np.array(WITH_TAGS, object), np.array([b"en"] * len(WITH_TAGS), object)
    ids = served("tokenize_to", text=given[0], target_language=given[1])["token_ids"].tolist()
    assert [[i for i in row if i] for row in ids] == two_way.translator.codec.source_ids(WITH_TAGS, "en")


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


def test_ctranslate2_reads_the_tag_as_a_piece(two_way, sides, tmp_path):
    folder = export_ctranslate2(two_way.translator, tmp_path / "model")
    tokenizer = two_way.tokenizer
    pieces = [[">>en<<", *tokenizer.pieces(ids)] for ids in tokenizer.tokenize(sides[1])]
    found = ctranslate2.Translator(str(folder), intra_threads=1).translate_batch(pieces, beam_size=2, length_penalty=0)
    ids = {piece: i for i, piece in enumerate(tokenizer.pieces(range(tokenizer.vocabulary_size)))}
    texts = tokenizer.detokenize([[ids[piece] for piece in one.hypotheses[0]] for one in found])
    assert texts == two_way.translator.translate(sides[1], target_language="en", num_beams=2, length_penalty=0)
