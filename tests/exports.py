"""What tests of exports check."""

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from tensorflow.lite.tools import flatbuffer_utils

from keras_transformer.export.run_tflite import TFLiteTranslator
from keras_transformer.export.verify import SHARE
from keras_transformer.export.web import export_web
from keras_transformer.files import MANIFEST, new_folder

LENGTH = (
    40  # Of sources. Translations have room for all that the search may write, twice that: Python cuts none, either.
)


def export_page(golden, cache, tflite, path, **arguments):
    """Exports a page of the golden run with the models of `tflite`: they are exported with all that a page asks for."""

    def exported(translator, folder, quantize, **options):
        assert translator is golden.translator
        assert options == {"source_length": LENGTH, "target_length": 2 * LENGTH, "explain": True}
        assert folder.name == {"none": "float32", "int8": "int8"}[quantize]
        share = {"none": 1.0, "int8": 0.9}[quantize]
        with new_folder(folder, facts={SHARE: share}) as temporary:
            others = shutil.ignore_patterns(MANIFEST)
            shutil.copytree(tflite / folder.name, temporary, ignore=others, dirs_exist_ok=True)
        return folder, share

    with pytest.MonkeyPatch.context() as patch:  # Not for long: others cache there, too, such as Chromium.
        patch.setenv("KERAS_HOME", str(cache))
        patch.setattr("keras_transformer.export.tflite.export_tflite", exported)
        return export_web(golden.translator, path, source_length=LENGTH, target_length=2 * LENGTH, **arguments)


def assert_nearly_the_same(golden, folder, float32, copies_of_the_embedding):
    """A quantised file is smaller than that of the folder `float32`, and translates as Python does, nearly always."""
    sizes = [(one / "translator.tflite").stat().st_size for one in (folder, float32)]
    assert sizes[0] < 0.8 * sizes[1]
    translator = TFLiteTranslator(folder / "translator.tflite")
    found = [translator.translate(text)[0][0] for text in golden.texts]
    expected = golden.translator.translate(golden.texts, num_beams=1)
    assert sum(a == b for a, b in zip(found, expected, strict=True)) >= 0.8 * len(expected)
    # The embedding, which is looked up and projected with, is in the file once if both can use its scales.
    model = flatbuffer_utils.read_model(folder / "translator.tflite")
    shape = [golden.tokenizer.vocabulary_size, 64]
    tensors = [tensor for graph in model.subgraphs for tensor in graph.tensors if list(tensor.shape) == shape]
    with_data = {tensor.buffer for tensor in tensors if model.buffers[tensor.buffer].data is not None}
    assert len(with_data) == copies_of_the_embedding


def assert_accessible(page, axe):
    """By the rules of axe-core: what screen readers need, keyboards reach and weak eyes read."""
    if not page.evaluate("'axe' in window"):
        page.evaluate(axe)  # The policy forbids another script.
    found = page.evaluate("axe.run()")
    assert len(found["passes"]) > 20
    violations = [(one["id"], [node["html"] for node in one["nodes"]]) for one in found["violations"]]
    assert not violations, violations


def serve(model_dir, sentences, tmp_path):
    """What a fresh process says, as TensorFlow Serving would run the SavedModel."""
    file = tmp_path / "sentences.json"
    file.write_text(json.dumps(sentences), encoding="utf-8")
    script = Path(__file__).with_name("serve_without_python.py")
    done = subprocess.run([sys.executable, str(script), str(model_dir), str(file)], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-3000:]
    return json.loads(done.stdout)


def assert_same(translator, served, sentences):
    expected = translator.translate(sentences, return_scores=True)
    assert served["translation"] == [translation.text for translation in expected]
    assert served["score"] == pytest.approx([translation.score for translation in expected], rel=1e-3, abs=1e-4)
