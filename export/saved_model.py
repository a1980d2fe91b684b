"""A SavedModel for TensorFlow Serving: text in, translation out, without Python and, by default, without XLA.

A stock TensorFlow Serving runs with XLA disabled, and it loads the graph in a session, which fails in cases where
`tf.saved_model.load` does not. Hence two rules: no XLA op in the graph, and no Keras model among the tracked objects
(its variables would be listed twice, and the session would restore the copies). `keras_transformer.export.verify` loads
it as the server does.

Signatures; B is the number of sentences and may be any number, also 0:

| signature | takes | returns |
|---|---|---|
| `translate` (`serving_default`, too) | `text` string (B,) | `translation` string (B,), `score` float32 (B,), |
| | | `length` int32 (B,), `truncated` bool (B,) |
| `translate_document` | `text` string (B,) | `translation` string (B,): whole texts, sentence by sentence |
| `translate_nbest` | `text` string (B,) | `hypotheses` string (B, K), `scores` float32 (B, K), best first |
| `translate_ids` | `token_ids` int32 (B, S) | `translation_ids` int32 (B, L), `score`, `length`, `truncated` |
| `tokenize` | `text` string (B,) | `token_ids` int32 (B, S), `truncated` bool (B,) |
| `detokenize` | `token_ids` int32 (B, S) | `text` string (B,) |
| `score` | `source`, `target` string (B,) | `log_prob` float32 (B,), `token_log_probs` float32 (B, T) |

These translate into the translator's target language. A model of several directions also has `translate_to`,
`translate_document_to`, `translate_nbest_to`, `tokenize_to` and `score_to`, which take `target_language` string (B,),
too: codes such as "de". "" and unknown ones stand for the translator's target language; the output `target_language`
string (B,) of `translate_to`, `translate_document_to` and `translate_nbest_to` says which one was used. They are
signatures of their own, because a server that batches requests needs inputs with the same B.

`translate_document` does what `Translator.translate_text` does. The output `score` is the sum of log probabilities
divided by the length penalty, and 0 for an empty text. `length` counts the tokens of the translation and its end token.
`truncated` says that a text had more tokens than `translator.codec.max_source_length` and was cut. The signature
`score` cuts targets at twice as many, or at the model's `max_length`. Token ids are padded with 0; ids outside the
vocabulary are taken as the unknown token. If fewer than K hypotheses exist, the others are empty, with scores below
-1e8.
"""

import hashlib
import itertools
import tempfile
from importlib.metadata import version
from pathlib import Path

import keras
import numpy as np
import tensorflow as tf

import keras_transformer
from keras_transformer.export import check_exportable, describe
from keras_transformer.export.serving import server_environment
from keras_transformer.export.serving.openapi import openapi
from keras_transformer.export.signatures import servable, xla_lengths
from keras_transformer.export.verify import sentences, verify_saved_model
from keras_transformer.files import full_disk_named, new_folder, write_json
from keras_transformer.text.special_ids import END_TOKEN_ID
from keras_transformer.text.tokenizer import save_tokenizers
from keras_transformer.translation.compiled import BATCH_SIZES
from keras_transformer.translation.translator import Translator

PACKAGES = ("tensorflow", "tensorflow-text", "keras")
_USE = """\
This is the folder of one version. In the folder above it, start TensorFlow Serving:

    docker run --env-file VERSION/serving.env -p 8501:8501 -v "$PWD:/models/my" -e MODEL_NAME=my tensorflow/serving
    curl -d '{"signature_name": "translate", "instances": ["One sentence."]}' localhost:8501/v1/models/my:predict
"""


def export_saved_model(
    translator: Translator,
    path: Path | str,
    overwrite: bool = False,
    num_hypotheses: int | None = None,
    jit_compile: bool = False,
    **settings,
) -> Path:
    """Writes a SavedModel. Before it appears, its answers are compared with those of `translator`.

    The top of this module lists the signatures.

    Args:
        translator: a translator on the TensorFlow backend.
        path: the folder of the servable; the SavedModel becomes its next numbered version, `path/1` at first.
        overwrite: whether to replace the newest version instead of adding one. Defaults to False.
        num_hypotheses: K of `translate_nbest`. Defaults to the number of beams.
        jit_compile: whether XLA compiles the search; the server must be started with XLA. At the first batch of each
            size XLA compiles for seconds. There are at most `len(BATCH_SIZES)` times `len(XLA_LENGTHS)` sizes; the
            warm-up requests have all of them. Defaults to False.
        **settings: `keras_transformer.search.settings.SearchSettings` by name, fixed in the graph. Default to the
            translator's.

    Returns:
        The path of the version folder. It appears there complete or not at all.

    Raises:
        ExportError: `path` cannot be written to, the settings cannot be exported, or the answers differ.
    """
    settings = translator.settings.replace(**{**settings, "avoid_loops": False})  # The graph searches once.
    check_exportable(translator, settings)
    num_hypotheses = settings.num_beams if num_hypotheses is None else num_hypotheses
    settings.check_num_hypotheses(num_hypotheses)
    path = Path(path)
    versions = [int(p.name) for p in path.iterdir() if p.name.isdecimal()] if path.is_dir() else []
    newest = max(versions, default=0)
    final = path / str(newest if overwrite and newest else newest + 1)
    with new_folder(final, overwrite) as temporary:
        # A folder of their own: the saver copies assets, but it empties the folder that it writes to.
        with tempfile.TemporaryDirectory() as assets:
            save_tokenizers(assets, translator.codec.tokenizers)
            module, functions = servable(translator, settings, num_hypotheses, jit_compile)
            module.tokenizers = [tf.saved_model.Asset(str(file)) for file in sorted(Path(assets).iterdir())]
            signatures = {name: function.get_concrete_function() for name, function in functions.items()}
            signatures["serving_default"] = signatures["translate"]
            with full_disk_named(final):
                tf.saved_model.save(module, str(temporary), signatures=signatures)
        _write_warmup(temporary / "assets.extra", path.name, warmup_requests(translator, jit_compile))
        describe(temporary, translator, _USE.replace("VERSION", final.name), functions)
        write_json(temporary / "openapi.json", openapi(functions))
        write_json(temporary / "metadata.json", _metadata(translator, settings, num_hypotheses, jit_compile))
        environment = server_environment(translator.model.decoder_embedding.hidden_dim)
        lines = "".join(f"{name}={value}\n" for name, value in environment.items())
        (temporary / "serving.env").write_text(lines, encoding="utf-8")
        del module, functions, signatures  # Their output kernel and graphs need not be in memory beside the session's.
        verify_saved_model(temporary, translator)
    return final


def warmup_requests(translator: Translator, jit_compile: bool = False) -> list[list[bytes]]:
    """Lists of texts that a server translates before it is ready. With XLA there is one list for each shape."""
    if not jit_compile:
        texts = sentences(translator, 8)
        return [texts[:count] for count in (1, 2, 4, 8)]
    rng, tokenizer, requests = np.random.default_rng(0), translator.source_tokenizer, []
    for shorter, length in itertools.pairwise([1, *xla_lengths(translator.codec.max_source_length)]):
        for rows in BATCH_SIZES:
            # A length between two sizes: tokenized again, the text may have fewer or more tokens.
            ids = rng.integers(END_TOKEN_ID + 1, tokenizer.vocabulary_size, (rows, (shorter + length) // 2))
            requests.append([*map(str.encode, tokenizer.detokenize(ids))])
    return requests


def _write_warmup(folder, name, requests):
    """Writes requests that the server answers before it is ready, so that slow first calls happen there.

    Each is a serialized `tensorflow.serving.PredictionLog`, written by hand to need no package for its classes.
    PredictionLog.predict_log = 6, PredictLog.request = 1; PredictRequest.model_spec = 1, .inputs = 2 (a map: key = 1,
    value = 2); ModelSpec.name = 1, .signature_name = 3.
    """
    folder.mkdir()
    with tf.io.TFRecordWriter(str(folder / "tf_serving_warmup_requests")) as writer:
        for texts in requests:
            text = tf.make_tensor_proto(texts, tf.string, [len(texts)])
            model = _field(1, name.encode()) + _field(3, b"translate")
            inputs = _field(1, b"text") + _field(2, text.SerializeToString())
            writer.write(_field(6, _field(1, _field(1, model) + _field(2, inputs))))


def _field(number, content):
    """A field of a protocol buffer: its key, the length of its bytes, and the bytes."""
    length, size = len(content), []
    while length > 127:
        size.append(length & 127 | 128)
        length >>= 7
    return bytes([number << 3 | 2, *size, length]) + content


def _metadata(translator, settings, num_hypotheses, jit_compile):
    weights = hashlib.sha256()
    for array in translator.model.get_weights():
        weights.update(array.tobytes())
    metadata = {
        "versions": {"keras_transformer": keras_transformer.__version__, **{name: version(name) for name in PACKAGES}},
        "weights_sha256": weights.hexdigest(),
        "model": keras.saving.serialize_keras_object(translator.model)["config"],
        "settings": vars(settings),
        "num_hypotheses": num_hypotheses,
        "jit_compile": jit_compile,
        "max_source_length": translator.codec.max_source_length,
        "languages": list(translator.source_tokenizer.languages),
        "target_language": translator.codec.target_language,
    }
    if translator.run:
        metadata |= {"made_from": translator.run.made_from(), "run_scores": translator.run.scores()}
    return metadata
