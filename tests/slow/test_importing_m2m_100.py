"""M2M-100 and NLLB: models of many languages, made here with random weights, against transformers itself."""

import numpy as np
import pytest
from public_models import LANGUAGES, NLLB, SOURCES, m2m_100_folder, translator_of
from sentencepiece_models import texts

from keras_transformer.__main__ import main
from keras_transformer.text.special_ids import END_TOKEN_ID
from keras_transformer.transfer import importing
from keras_transformer.transfer.importing import report
from keras_transformer.translation.learning import learn_shortlist
from keras_transformer.translation.translator import Translator


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


@pytest.mark.parametrize("family", ["m2m-100", "nllb"])
def test_ids_are_those_of_transformers(family, tmp_path):
    languages = NLLB if family == "nllb" else LANGUAGES
    _, tokenizer = m2m_100_folder(tmp_path / "model", nllb=family == "nllb")
    imported = importing.read(family, tmp_path / "model", **languages)
    strings = [*texts(0)[:2490], *texts(1)[:2490], *report.HOSTILE]
    assert len(strings) > 5000
    assert report.different_ids(imported, strings) == [[], []]
    ours = imported.tokenizers[0].tokenize(strings)
    assert imported.tokenizers[0].graph_tokenize(strings).to_list() == ours
    theirs = tokenizer(strings).input_ids
    # transformers reads the names of special tokens in a text as these tokens, and some spaces in another way.
    different = [
        text
        for text, our, their in zip(strings, ours, theirs, strict=True)
        if imported.spaces[0].rows[our].tolist() != their[1:-1]
    ]
    # The tokenizer of NLLB that is made here does not normalise characters; the real one does, as SentencePiece.
    assert set(different) <= set(report.HOSTILE) and len(different) < (7 if family == "m2m-100" else 12)


def test_a_shortlist_has_the_tags(original):
    trimmed = importing.read("m2m-100", original[0], trim=True, **LANGUAGES)
    words = translator_of(trimmed, num_beams=1)
    learn_shortlist(words, texts(0)[:50], texts(1)[:50])
    assert len(words.translate(SOURCES, shortlist=300)) == 4


def test_exports_answer_as_python_does(translator, tmp_path):
    """Exporting compares them with Python, in all languages that the SavedModel has; here, one literal question."""
    import tensorflow as tf

    from keras_transformer.export.ctranslate2 import export_ctranslate2
    from keras_transformer.export.saved_model import export_saved_model
    from keras_transformer.export.tflite import export_tflite

    export_saved_model(translator, tmp_path / "saved_model")
    served = tf.saved_model.load(str(tmp_path / "saved_model" / "1"))
    arguments = {"text": tf.constant(SOURCES), "target_language": tf.constant(["fr", "de", "cs", "fr"])}
    found = served.signatures["translate_to"](**arguments)["translation"].numpy()
    wanted = translator.translate(SOURCES, target_language=["fr", "de", "cs", "fr"])
    assert [one.decode() for one in found] == wanted
    scores = served.signatures["score"](source=tf.constant(SOURCES), target=tf.constant(wanted))
    expected = [one.log_prob for one in translator.score(SOURCES, wanted)]
    np.testing.assert_allclose(scores["log_prob"], expected, rtol=1e-4)

    _, same = export_tflite(translator, tmp_path / "tflite", source_length=16, target_length=24)
    assert same == 1

    ctranslate2 = pytest.importorskip("ctranslate2")
    export_ctranslate2(translator, tmp_path / "ctranslate2")
    other = ctranslate2.Translator(str(tmp_path / "ctranslate2"))
    ids = [row[1:-1] for row in translator.codec.source_ids(SOURCES)]
    pieces = [[">>en<<", *translator.source_tokenizer.pieces(row)] for row in ids]
    found = other.translate_batch(pieces, target_prefix=[[">>fr<<"]] * 4, beam_size=1, max_decoding_length=23)
    ours = translator.translate(SOURCES, num_beams=1, target_language="fr", return_scores=True)
    for their, our in zip(found, ours, strict=True):
        row = [i for i in our.token_ids if i != END_TOKEN_ID]
        assert their.hypotheses[0] == translator.target_tokenizer.pieces(row)


def test_the_page_answers_as_python_does(translator, cache, opened, tmp_path, monkeypatch):
    """It first shows the steps of greedy search, then the result of beam search."""
    from keras_transformer.export import web

    monkeypatch.setenv("KERAS_HOME", str(cache))
    lengths = {"source_length": 24, "target_length": 24}
    folder, _ = web.export_web(translator, tmp_path / "site", ["none"], num_beams=3, **lengths)
    monkeypatch.undo()
    page = opened(folder)
    for language in ("fr", "cs"):
        page.wait_for_selector("#translate:enabled")
        page.fill("#source", SOURCES[0])
        page.select_option("#language", language)
        page.evaluate("""() => {
            window.seen = [];
            const shown = document.getElementById("translation");
            new MutationObserver(() => seen.push(shown.textContent)).observe(shown, { childList: true, subtree: true });
            delete document.body.dataset.state;
        }""")
        page.click("#translate")
        page.wait_for_selector("body[data-state=done]")
        greedy, wanted = (translator.translate(SOURCES[:1], num_beams=n, target_language=language)[0] for n in (1, 3))
        assert page.inner_text("#translation") == wanted and greedy in page.evaluate("seen")
        assert page.locator("#attention th").first.text_content() == f">>{language}<<"


def test_such_a_run_is_fine_tuned(original, tmp_path, capsys):
    import train_keras

    run, tuned = str(tmp_path / "run"), str(tmp_path / "tuned")
    importing.write(importing.read("m2m-100", original[0], **LANGUAGES), run)
    for side, name in enumerate(("en", "fr")):
        (tmp_path / f"a.{name}").write_text("\n".join(texts(side)[:40]), encoding="utf-8")
    files = [str(tmp_path / f"a.{name}") for name in ("en", "fr")]
    flags = ["--init-from", run, "--run-dir", tuned, "--epochs", "1", "--steps-per-epoch", "2", "--no-export"]
    with pytest.raises(SystemExit):
        train_keras.main([*flags, "--train", *files[::-1], "direction=fr-en", "--val", *files[::-1], "direction=fr-en"])
    assert "imported for sources in en. Received: texts in fr" in capsys.readouterr().err
    every = [word for split in ("train", "val", "test") for word in (f"--{split}", *files, "direction=en-fr")]
    assert train_keras.main([*flags, "--num-beams", "1", *every]) == 0
    assert Translator.load(tuned).codec.target_language == "fr"


def test_such_a_model_teaches_a_small_one_of_one_direction(original, tmp_path):
    run, student = tmp_path / "run", tmp_path / "student"
    importing.write(importing.read("m2m-100", original[0], **LANGUAGES), run)
    for side, name in enumerate(("en", "cs")):
        (tmp_path / f"a.{name}").write_text("\n".join(texts(side)[:200]), encoding="utf-8")
    files = [str(tmp_path / f"a.{name}") for name in ("en", "cs")]
    argv = ["distill", str(run), "--run-dir", str(student), "--source", files[0], "--target-language", "de"]
    argv += ["--translations", files[1]]  # Those of random weights have no end.
    argv += ["--val", *files, "--test", *files, "--vocabulary-size", "120", "--num-placeholders", "0", "--no-export"]
    argv += ["--hidden-dim", "8", "--intermediate-dim", "8", "--num-heads", "2", "--num-layers", "1"]
    argv += ["--num-beams", "1", "--max-length", "32", "--epochs", "1", "--steps-per-epoch", "2"]
    assert main(argv) == 0
    translator = Translator.load(student)
    assert not translator.codec.begins_with_tag and translator.source_tokenizer.languages == {}
