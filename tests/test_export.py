"""The SavedModel answers as Python does, in a session with XLA disabled and none of this package."""

import json
import subprocess
import sys
from pathlib import Path

import keras
import pytest
import tensorflow as tf

from keras_transformer.export import ExportError
from keras_transformer.export.saved_model import export_saved_model
from keras_transformer.model import Transformer
from keras_transformer.phrasebook import phrasebook
from keras_transformer.tokenizers import KINDS, Tokenizer
from keras_transformer.translator import Translator

SCRIPT = Path(__file__).with_name("serve_without_python.py")
ODD = ["", "  ", "?", "😀", "שלום", "a\x00b", "word " * 300, "Ünïcödé"]


def serve(model_dir, sentences, tmp_path):
    """What a fresh process says, as TensorFlow Serving would run the model."""
    file = tmp_path / "sentences.json"
    file.write_text(json.dumps(sentences), encoding="utf-8")
    done = subprocess.run([sys.executable, str(SCRIPT), str(model_dir), str(file)], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-3000:]
    return json.loads(done.stdout)


def assert_same(translator, served, sentences):
    expected = translator.translate(sentences, return_scores=True)
    assert served["translation"] == [translation.text for translation in expected]
    assert served["score"] == pytest.approx([translation.score for translation in expected], rel=1e-3, abs=1e-4)


def test_the_exported_run_answers_as_the_translator_does(golden, tmp_path):
    sentences = [*golden.texts, *ODD]
    served = serve(golden.run_dir / "export" / "saved_model" / "1", sentences, tmp_path)
    assert_same(golden.translator, served, sentences)
    assert not [operation for operation in served["operations"] if "Xla" in operation]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("num_beams", [1, 3])
def test_every_tokenizer_is_exported(kind, num_beams, tmp_path):
    texts = [side for pair in phrasebook()["train"][:150] for side in pair]
    tokenizer = Tokenizer.train(texts, vocabulary_size=None, kind=kind)
    keras.utils.set_random_seed(3)
    model = Transformer(tokenizer.vocabulary_size, num_layers=1, num_heads=2, hidden_dim=10, intermediate_dim=7)
    translator = Translator(model, tokenizer, num_beams=num_beams, max_length=9)
    served = serve(export_saved_model(translator, tmp_path / "servable"), [*texts[:5], ""], tmp_path)
    assert_same(translator, served, [*texts[:5], ""])


def test_separate_vocabularies_and_learned_positions_are_exported(tmp_path):
    sides = list(zip(*phrasebook()["train"][:150], strict=True))
    tokenizers = [Tokenizer.train(side, size) for side, size in zip(sides, (90, 110), strict=True)]
    model = Transformer(
        90, 110, num_layers=1, num_heads=1, hidden_dim=6, intermediate_dim=7, tie_embeddings="none",
        position_type="learned", max_length=40, normalize_first=True,
    )  # fmt: skip
    translator = Translator(model, *tokenizers, num_beams=2, max_source_length=40)
    texts = list(sides[0][:4])
    assert_same(translator, serve(export_saved_model(translator, tmp_path / "servable"), texts, tmp_path), texts)


def small(texts=("a small dog", "a small cat", "a big dog")):
    tokenizer = Tokenizer.train(list(texts) * 9, vocabulary_size=17)
    return Translator(Transformer(17, num_layers=1, num_heads=1, hidden_dim=4, intermediate_dim=5), tokenizer)


def test_versions_count_up_and_are_replaced_only_on_request(tmp_path):
    first = export_saved_model(small(), tmp_path / "servable")
    second = export_saved_model(small(), tmp_path / "servable")
    assert (first.name, second.name) == ("1", "2")
    kept = (first / "saved_model.pb").stat().st_mtime_ns
    assert export_saved_model(small(), tmp_path / "servable", overwrite=True) == second
    assert (first / "saved_model.pb").stat().st_mtime_ns == kept
    assert sorted(path.name for path in (tmp_path / "servable").iterdir()) == ["1", "2"]


def test_an_export_that_fails_leaves_nothing_behind(tmp_path):
    blocked = tmp_path / "file"
    blocked.write_text("not a folder")
    with pytest.raises(ExportError, match="Cannot write to"):
        export_saved_model(small(), blocked / "servable")
    assert blocked.read_text() == "not a folder"


def test_signature_names_and_types(golden):
    loaded = tf.saved_model.load(str(golden.run_dir / "export" / "saved_model" / "1"))
    assert sorted(loaded.signatures) == ["serving_default", "translate"]
    signature = loaded.signatures["translate"]
    assert {name: spec.dtype for name, spec in signature.structured_outputs.items()} == {
        "translation": tf.string,
        "score": tf.float32,
    }
    assert signature.structured_input_signature[1]["text"].shape.as_list() == [None]


def test_an_empty_request_is_answered(golden):
    loaded = tf.saved_model.load(str(golden.run_dir / "export" / "saved_model" / "1"))
    answer = loaded.signatures["translate"](text=tf.constant([], tf.string))
    assert answer["translation"].shape == (0,)
