"""The SavedModel answers as Python does, in a session with XLA disabled and none of this package."""

import json
from types import SimpleNamespace

import numpy as np
import pytest
import tensorflow as tf
from exports import assert_same, serve
from tensorflow_serving.apis.prediction_log_pb2 import PredictionLog

from keras_transformer.export import ExportError, verify
from keras_transformer.export.saved_model import export_saved_model
from keras_transformer.files import FileError
from keras_transformer.models.transformer import Transformer
from keras_transformer.text.tokenizer import Tokenizer
from keras_transformer.translation.translator import Translator

ODD = ["", "  ", "?", "😀", "שלום", "a\x00b", "word " * 300, "Ünïcödé"]


def test_the_exported_run_answers_as_the_translator_does(origin, servable, tmp_path):
    sentences = [*origin.texts, *ODD]
    served = serve(servable, sentences, tmp_path)
    assert_same(origin.translator, served, sentences)
    assert not [operation for operation in served["operations"] if "Xla" in operation]


def test_the_saved_model_is_loaded_by_tensorflow(origin, servable):
    import tensorflow_text  # noqa: F401  (registers the tokenizer's operations; other tests may not have)

    loaded = tf.saved_model.load(str(servable))
    answer = loaded.signatures["serving_default"](text=tf.constant(origin.texts[:1]))
    assert answer["translation"].numpy()[0].decode() == origin.translator.translate(origin.texts[:1])[0]


def small(texts=("a small dog", "a small cat", "a big dog")):
    tokenizer = Tokenizer.train(list(texts) * 9, vocabulary_size=17)
    model = Transformer(17, num_layers=1, num_heads=1, hidden_dim=4, intermediate_dim=5)
    return Translator(model, tokenizer, num_beams=1, max_target_length=20)


def test_an_export_that_fails_leaves_nothing_behind(tmp_path):
    blocked = tmp_path / "file"
    blocked.write_text("not a folder")
    with pytest.raises(FileError, match="is a file, and a folder is to be written there"):
        export_saved_model(small(), blocked / "servable")
    assert blocked.read_text() == "not a folder"


# What the server answers, to anything.


def texts(*values):
    return np.array(values, object)


def test_signatures_are_those_that_are_promised(served):
    signatures = {
        name: (
            {key: (tensor.dtype, len(tensor.tensor_shape.dim)) for key, tensor in signature.inputs.items()},
            {key: (tensor.dtype, len(tensor.tensor_shape.dim)) for key, tensor in signature.outputs.items()},
        )
        for name, signature in served.signatures.items()
        if not name.startswith("__")
    }
    string, integer, number, boolean = (tf.string, tf.int32, tf.float32, tf.bool)
    outputs = {"score": (number, 1), "length": (integer, 1), "truncated": (boolean, 1)}
    translate = {"text": (string, 1)}, {"translation": (string, 1), **outputs}
    with_languages = {name: signatures.pop(name) for name in list(signatures) if name.endswith("_to")}
    assert signatures == {
        "serving_default": translate,
        "translate": translate,
        "translate_document": ({"text": (string, 1)}, {"translation": (string, 1)}),
        "translate_nbest": ({"text": (string, 1)}, {"hypotheses": (string, 2), "scores": (number, 2)}),
        "translate_ids": ({"token_ids": (integer, 2)}, {"translation_ids": (integer, 2), **outputs}),
        "tokenize": ({"text": (string, 1)}, {"token_ids": (integer, 2), "truncated": (boolean, 1)}),
        "detokenize": ({"token_ids": (integer, 2)}, {"text": (string, 1)}),
        "score": (
            {"source": (string, 1), "target": (string, 1)},
            {"log_prob": (number, 1), "token_log_probs": (number, 2)},
        ),
    }
    language = {"target_language": (string, 1)}
    for name in ("translate", "translate_nbest", "translate_document", "tokenize", "score"):
        inputs, outputs = with_languages.pop(f"{name}_to")
        assert inputs == signatures[name][0] | language
        assert outputs == signatures[name][1] | (language if name.startswith("translate") else {})
    assert not with_languages


def test_every_signature_answers_as_the_translator_does(origin, served):
    translator, array = origin.translator, texts(*origin.texts)
    expected = translator.translate(origin.texts, return_scores=True)
    found = served("translate", text=array)
    assert [text.decode() for text in found["translation"]] == [translation.text for translation in expected]
    assert found["length"].tolist() == [len(translation.token_ids) for translation in expected]
    assert not found["truncated"].any()
    ids = served("tokenize", text=array)["token_ids"]
    assert [[i for i in row if i] for row in ids.tolist()] == translator.codec.source_ids(origin.texts)
    by_ids = served("translate_ids", token_ids=ids)
    assert by_ids["score"] == pytest.approx(found["score"], abs=1e-5)
    back = served("detokenize", token_ids=by_ids["translation_ids"])["text"]
    assert back.tolist() == found["translation"].tolist()
    nbest = served("translate_nbest", text=array)
    wanted = translator.translate(origin.texts, num_hypotheses=4, return_scores=True)
    assert nbest["hypotheses"][:, 0].tolist() == found["translation"].tolist()
    np.testing.assert_allclose(nbest["scores"], [[t.score for t in row] for row in wanted], rtol=1e-3)
    scored = served("score", source=array, target=found["translation"])
    for i, target in enumerate(translator.score(origin.texts, [translation.text for translation in expected])):
        assert scored["log_prob"][i] == pytest.approx(target.log_prob, rel=1e-3)
        log_probs = scored["token_log_probs"][i]
        assert log_probs[log_probs != 0].tolist() == pytest.approx(target.token_log_probs, rel=1e-3, abs=1e-4)


def test_over_long_texts_are_cut_and_say_so(served):
    found = served("translate", text=texts("word " * 300, "a", ""))
    assert found["truncated"].tolist() == [True, False, False]
    assert found["length"][2] == 0
    assert served("tokenize", text=texts("word " * 300, "a", ""))["truncated"].tolist() == [True, False, False]


def test_of_a_large_model_the_shortest_texts_are_searched():
    lengths = {f"{length}": length for length in (900, *range(20, 0, -1))}
    assert verify._affordable(lengths, 2_000_000) == [*lengths]
    assert verify._affordable(lengths, 2.9e7) == [f"{length}" for length in range(13, 0, -1)]  # Of 91 tokens together.
    assert verify._affordable(lengths, 10**12) == [f"{length}" for length in range(10, 0, -1)]


def test_other_weights_are_found_without_a_search(origin, servable, monkeypatch):
    monkeypatch.setattr(verify, "_affordable", lambda lengths, weights: [b""])
    model = Transformer.from_config(origin.model.get_config())
    with pytest.raises(ExportError, match="does not give the translator's answers:\n  `score` of "):
        verify.verify_saved_model(servable, Translator(model, origin.tokenizer, target_language="de"))


@pytest.mark.parametrize(
    ("pieces", "compared", "wrong"),
    [("a aa b", True, False), ("aa a b", False, False), ("b aa a", False, True), ("a a b", False, True)],
)
def test_the_same_pieces_in_another_order_are_no_error_if_the_text_is_the_same(origin, pieces, compared, wrong):
    """Versions of SentencePiece choose differently between segmentations that are as probable."""
    wanted = origin.translator.codec.encode(["a"])[0]._replace(ids=[1, 2, 3])
    names = {1: "a", 2: "aa", 3: "b"}
    translator = SimpleNamespace(
        codec=SimpleNamespace(encode=lambda texts: [wanted]),
        source_tokenizer=SimpleNamespace(pieces=lambda ids: [names[i] for i in ids]),
    )
    ids = [{"a": 1, "aa": 2, "b": 3}[piece] for piece in pieces.split()]
    answer = {"token_ids": np.array([ids]), "truncated": np.array([False])}
    lengths, problems = verify._tokenized(lambda name, text: answer, translator, [b"aab"])
    assert (bool(lengths), bool(problems)) == (compared, wrong)


@pytest.mark.parametrize(
    ("name", "inputs", "shapes"),
    [
        ("translate", {"text": texts()}, {"translation": (0,), "score": (0,), "length": (0,), "truncated": (0,)}),
        ("translate_nbest", {"text": texts()}, {"hypotheses": (0, 4), "scores": (0, 4)}),
        ("translate_document", {"text": texts()}, {"translation": (0,)}),
        ("translate_document", {"text": texts("", "\xff\n\1", "a b " * 900)}, {"translation": (3,)}),
        ("tokenize", {"text": texts()}, {"token_ids": (0, 1), "truncated": (0,)}),
        ("translate_ids", {"token_ids": np.zeros((0, 0), "int32")}, {"score": (0,)}),
        ("translate_ids", {"token_ids": np.zeros((3, 0), "int32")}, {"score": (3,)}),
        ("translate_ids", {"token_ids": np.zeros((3, 2), "int32")}, {"score": (3,)}),
        ("detokenize", {"token_ids": np.zeros((0, 0), "int32")}, {"text": (0,)}),
        ("detokenize", {"token_ids": np.zeros((3, 0), "int32")}, {"text": (3,)}),
        ("detokenize", {"token_ids": np.zeros((2, 3), "int32")}, {"text": (2,)}),
        ("score", {"source": texts(), "target": texts()}, {"log_prob": (0,)}),
        ("score", {"source": texts(""), "target": texts("")}, {"log_prob": (1,)}),
        ("score", {"source": texts("a " * 9000), "target": texts("b " * 9000)}, {"log_prob": (1,)}),
        ("translate", {"text": texts("x" * 100_000, b"\xff\xfe\x00", "\0")}, {"translation": (3,)}),
        ("translate_ids", {"token_ids": np.full((1, 50_000), 5, "int32")}, {"score": (1,)}),
        ("translate_ids", {"token_ids": [[5, 99_999], [-1, -99_999]]}, {"score": (2,)}),
        ("detokenize", {"token_ids": [[99_999, -1, -99_999]]}, {"text": (1,)}),
        ("translate", {"text": texts(*["a b"] * 100)}, {"translation": (100,)}),
    ],
    ids=lambda value: value if isinstance(value, str) else None,
)
def test_requests_that_nobody_means_are_answered(served, name, inputs, shapes):
    found = served(name, **inputs)
    assert {key: found[key].shape for key in shapes} == shapes
    assert all(np.isfinite(array).all() for array in found.values() if array.dtype == np.float32)


@pytest.mark.parametrize(
    ("name", "inputs", "message"),
    [
        ("score", {"source": texts("a"), "target": texts("b", "c")}, "Each target translates its source"),
        ("translate", {"text": texts(["a"])}, "Cannot feed value of shape"),
        ("translate_ids", {"token_ids": texts(["a"])}, "invalid literal"),
    ],
)
def test_requests_that_cannot_be_answered_get_an_error_and_the_server_lives(served, name, inputs, message):
    with pytest.raises((tf.errors.InvalidArgumentError, ValueError), match=message):
        served(name, **inputs)
    assert served("translate", text=texts("a"))["translation"].shape == (1,)


def test_random_bytes_are_answered(served):
    rng = np.random.default_rng(0)
    for _ in range(6):
        lengths = rng.integers(0, 60, rng.integers(0, 9))
        array = np.empty(len(lengths), object)
        array[:] = [rng.integers(0, 256, length, "uint8").tobytes() for length in lengths]
        found = served("translate", text=array)
        assert found["translation"].shape == (len(lengths),)
        assert all(text.decode("utf-8") is not None for text in found["translation"])


def test_metadata_tokenizer_and_warm_up_are_beside_the_graph(origin, servable):
    metadata = json.loads((servable / "metadata.json").read_text())
    assert metadata["versions"]["tensorflow"] == tf.__version__
    assert len(metadata["weights_sha256"]) == 64
    assert metadata["settings"] == vars(origin.translator.settings)
    assert (servable / "serving.env").read_text() == "TF_ENABLE_ONEDNN_OPTS=0\n"
    (tokenizer,) = (servable / "assets").iterdir()
    assert tokenizer.read_bytes() == origin.tokenizer.model
    records = [
        r.numpy() for r in tf.data.TFRecordDataset(str(servable / "assets.extra" / "tf_serving_warmup_requests"))
    ]
    requests = [PredictionLog.FromString(record).predict_log.request for record in records]
    assert [request.model_spec.signature_name for request in requests] == ["translate"] * 4
    assert [tf.make_ndarray(request.inputs["text"]).shape for request in requests] == [(1,), (2,), (4,), (8,)]


@pytest.mark.parametrize("num_hypotheses", [0, 3])
def test_more_hypotheses_than_beams_are_an_error(tmp_path, num_hypotheses):
    with pytest.raises(ValueError, match="`num_hypotheses` must be between 1 and `num_beams`"):
        export_saved_model(small(), tmp_path / "servable", num_beams=2, num_hypotheses=num_hypotheses)
    assert not (tmp_path / "servable").exists()
