"""The SavedModel answers as Python does, in a session with XLA disabled and none of this package."""

import json
import shutil
import subprocess
from pathlib import Path

import keras
import numpy as np
import pytest
import tensorflow as tf
import tensorflow_text
from exports import assert_same, serve
from tensorflow.core.protobuf.saved_model_pb2 import SavedModel
from trainings import phrases

from keras_transformer.export import ExportError
from keras_transformer.export.saved_model import export_saved_model
from keras_transformer.export.verify import verify_saved_model
from keras_transformer.models.transformer import Transformer
from keras_transformer.settings import TOKENIZER_KINDS
from keras_transformer.text.tokenizer import Tokenizer
from keras_transformer.translation.compiled import BATCH_SIZES
from keras_transformer.translation.translator import Translator

C_PROGRAM = Path(__file__).parents[1] / "serve.c"


@pytest.mark.skipif(shutil.which("gcc") is None, reason="no gcc")
def test_a_c_program_translates(origin, servable, served, tmp_path):
    """Compiled against TensorFlow's library, as a server is: no Python in its process."""
    folder, program = Path(tf.__file__).parent, tmp_path / "serve"
    compiled = subprocess.run(
        [
            "gcc", "-Wall", "-Werror", str(C_PROGRAM), "-o", str(program), f"-I{folder / 'include'}",
            f"-L{folder}", "-l:libtensorflow_cc.so.2", "-l:libtensorflow_framework.so.2", f"-Wl,-rpath,{folder}",
        ],
        capture_output=True,
        text=True,
    )  # fmt: skip
    assert compiled.returncode == 0, compiled.stderr
    operations = Path(tensorflow_text.__file__).parent / "python" / "ops" / "_fast_sentencepiece_tokenizer.so"
    signature = served.signatures["translate"]
    names = signature.inputs["text"].name, signature.outputs["translation"].name
    done = subprocess.run(
        [program, servable, operations, *names, *origin.texts],
        capture_output=True,
        text=True,
        env={},
        timeout=300,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == origin.translator.translate(origin.texts)


@pytest.mark.parametrize("kind", [kind for kind in TOKENIZER_KINDS if kind != "unigram"])  # The golden run has that.
def test_every_tokenizer_is_exported(kind, tmp_path):
    texts = [side for pair in phrases()[:150] for side in pair]
    tokenizer = Tokenizer.train(texts, vocabulary_size=None, kind=kind)
    keras.utils.set_random_seed(3)
    model = Transformer(tokenizer.vocabulary_size, num_layers=1, num_heads=2, hidden_dim=10, intermediate_dim=7)
    translator = Translator(model, tokenizer, num_beams=2, max_target_length=9)
    served = serve(export_saved_model(translator, tmp_path / "servable"), [*texts[:5], ""], tmp_path)
    assert_same(translator, served, [*texts[:5], ""])


def test_separate_vocabularies_and_learned_positions_are_exported(tmp_path):
    sides = list(zip(*phrases()[:150], strict=True))
    tokenizers = [Tokenizer.train(side, size) for side, size in zip(sides, (90, 110), strict=True)]
    model = Transformer(
        90, 110, num_layers=1, num_heads=1, hidden_dim=6, intermediate_dim=7, tie_embeddings="none",
        position_type="learned", max_length=40, normalize_first=True,
    )  # fmt: skip
    translator = Translator(model, *tokenizers, num_beams=1, max_source_length=40)
    texts = list(sides[0][:4])
    assert_same(translator, serve(export_saved_model(translator, tmp_path / "servable"), texts, tmp_path), texts)


def small(texts=("a small dog", "a small cat", "a big dog")):
    tokenizer = Tokenizer.train(list(texts) * 9, vocabulary_size=17)
    model = Transformer(17, num_layers=1, num_heads=1, hidden_dim=4, intermediate_dim=5)
    return Translator(model, tokenizer, num_beams=1, max_target_length=20)


def test_versions_count_up_and_are_replaced_only_on_request(tmp_path):
    first = tmp_path / "servable" / "1"
    first.mkdir(parents=True)
    (first / "saved_model.pb").touch()
    second = export_saved_model(small(), tmp_path / "servable")
    assert second.name == "2"
    kept = (first / "saved_model.pb").stat().st_mtime_ns
    for leftover in (".writing-2", ".replaced-2"):  # Of an export that was killed.
        (second.parent / leftover / "variables").mkdir(parents=True)
    assert export_saved_model(small(), tmp_path / "servable", overwrite=True) == second
    assert (first / "saved_model.pb").stat().st_mtime_ns == kept
    assert sorted(path.name for path in (tmp_path / "servable").iterdir()) == ["1", "2"]


def test_a_search_compiled_by_xla_answers_where_xla_is_on_and_nowhere_else(tmp_path):
    """The export itself compares the answers of every signature with Python's."""
    tokenizer = Tokenizer.train(["a small dog", "a small cat", "a big dog"] * 9, vocabulary_size=17)
    model = Transformer(17, num_layers=1, num_heads=1, hidden_dim=4, intermediate_dim=5)
    translator = Translator(model, tokenizer, num_beams=2, max_source_length=20)
    folder = export_saved_model(translator, tmp_path / "servable", jit_compile=True)
    assert json.loads((folder / "metadata.json").read_text())["jit_compile"] is True
    graph = SavedModel.FromString((folder / "saved_model.pb").read_bytes()).meta_graphs[0].graph_def
    compiled = [f for f in graph.library.function if f.attr["_XlaMustCompile"].b and "compiled" in f.signature.name]
    assert len(compiled) == len(BATCH_SIZES)  # For the one length that is no longer than 20.
    (warmup,) = (folder / "assets.extra").iterdir()
    assert sum(1 for _ in tf.data.TFRecordDataset(str(warmup))) == len(BATCH_SIZES)
    with pytest.raises(AssertionError, match="XLA compilation disabled"):
        serve(folder, ["a small dog"], tmp_path)


# What the server answers, to anything.


def texts(*values):
    return np.array(values, object)


def test_verification_finds_other_weights(origin, servable):
    model = Transformer.from_config(origin.model.get_config())
    other = Translator(model, origin.tokenizer, target_language="de")
    with pytest.raises(ExportError, match="does not give the translator's answers:\n  `translate` of ") as raised:
        verify_saved_model(servable, other)
    for name in ("translate_nbest", "score", "translate_to", "translate_nbest_to", "score_to"):
        assert f"\n  `{name}` of " in str(raised.value)
