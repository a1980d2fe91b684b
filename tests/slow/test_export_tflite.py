"""The TFLite file answers as Python does, in a process with neither TensorFlow nor Keras."""

import json
import re
import shutil

import pytest
from exports import assert_nearly_the_same

from keras_transformer.__main__ import main as keras_transformer_main
from keras_transformer.export import ExportError
from keras_transformer.export.tflite import export_tflite
from keras_transformer.export.verify import SHARE, verify, verify_tflite
from keras_transformer.files import MANIFEST, new_folder

LENGTH = 40


@pytest.fixture(scope="module")
def exported(golden, tmp_path_factory):
    path = tmp_path_factory.mktemp("tflite") / "exported"
    folder, same = export_tflite(golden.translator, path, source_length=LENGTH, target_length=LENGTH)
    assert same == 1.0
    return folder


def test_an_exported_folder_is_verified_later(golden, exported, tmp_path, capsys):
    assert keras_transformer_main(["export", "verify", str(exported), str(golden.run_dir)]) == 0
    assert capsys.readouterr().out == f"{exported} translates 100% of made-up sentences as Python does.\n"
    other = shutil.copytree(exported, tmp_path / "other")
    settings = json.loads((other / "translator.json").read_text())
    settings["settings"]["max_target_length"] = 2  # Not what the file was made with.
    (other / "translator.json").write_text(json.dumps(settings))
    with pytest.raises(ExportError, match="does not give the translator's answers"):
        verify_tflite(other, golden.translator)
    with new_folder(tmp_path / "quantised", facts={SHARE: 0.9}) as quantised:
        shutil.copytree(other, quantised, ignore=shutil.ignore_patterns(MANIFEST), dirs_exist_ok=True)
        changed(quantize="int8")(quantised / "translator.json")
    with pytest.raises(ExportError, match=r"like Python as at the export, 90%\. Received: [0-7]?\d%"):
        list(verify(tmp_path / "quantised", golden.translator))
    (other / "translator.tflite").unlink()
    with pytest.raises(ExportError, match=r"must be an exported translator\.tflite"):
        verify_tflite(other, golden.translator)


@pytest.mark.parametrize(("quantize", "copies_of_the_embedding"), [("float16", 1), ("int8-per-channel", 2)])
def test_quantised_files_are_smaller_and_nearly_the_same(golden, exported, tmp_path, quantize, copies_of_the_embedding):
    lengths = {"source_length": LENGTH, "target_length": LENGTH, "num_beams": 1}
    folder, _ = export_tflite(golden.translator, tmp_path / quantize, quantize=quantize, **lengths)
    assert_nearly_the_same(golden, folder, exported, copies_of_the_embedding)


def test_the_command_says_what_quantisation_costs(golden, tmp_path, capsys):
    command = ["export", "tflite", str(golden.run_dir), "--output", str(tmp_path / "out"), "--quantize", "int8"]
    sizes = ["--num-beams", "1", "--source-length", "16", "--target-length", "16"]
    assert keras_transformer_main(command + sizes) == 0
    output = capsys.readouterr()
    assert output.out == f"{tmp_path / 'out'}\n"
    assert re.search(r"int8: \d+% of made-up sentences are translated as in Python\.", output.err)
    assert re.search(r"int8: BLEU [\d.]+, Python [\d.]+, [+-][\d.]+ \(\d+ sentences of .+\)", output.err)


def changed(**values):
    """Writes other values into a translator.json."""
    return lambda file: file.write_text(json.dumps(json.loads(file.read_text()) | values))
