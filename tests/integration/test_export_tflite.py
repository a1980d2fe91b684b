"""The TFLite file answers as Python does, in a process with neither TensorFlow nor Keras."""

import json
import re
import shutil
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
from ai_edge_litert.compiled_model import CompiledModel
from ai_edge_litert.interpreter import Interpreter
from exports import assert_nearly_the_same
from tensorflow.lite.python import schema_py_generated as schema
from tensorflow.lite.tools import flatbuffer_utils

from keras_transformer.export import ExportError, run_tflite
from keras_transformer.export.run_tflite import TFLiteTranslator, main
from keras_transformer.export.tflite import export_tflite, steps_file
from keras_transformer.export.verify import SHARE, tflite_reference, verify
from keras_transformer.files import MANIFEST, FileError
from keras_transformer.models.transformer import Transformer
from keras_transformer.search.decoder import NO_HYPOTHESIS
from keras_transformer.search.settings import LENGTH_MARGIN
from keras_transformer.text import placeholders, sentences
from keras_transformer.text.special_ids import END_TOKEN_ID, START_TOKEN_ID
from keras_transformer.text.tokenizer import Tokenizer
from keras_transformer.translation.translator import Translator

LENGTH, TARGET = 40, 80
BENCHMARKS = Path(__file__).parents[2] / "benchmarks"


@pytest.fixture
def exported(tflite):
    """The folder of the float32 file of the golden run."""
    return tflite / "float32"


@pytest.mark.parametrize("num_beams", [1, 4])
def test_the_runner_translates_as_python_does(golden, exported, num_beams):
    translator = TFLiteTranslator(exported / "translator.tflite")
    expected = golden.translator.translate(golden.texts, num_beams=num_beams, return_scores=True)
    for text, wanted in zip(golden.texts, expected, strict=True):
        translation, score = translator.translate(text, beam=num_beams > 1)[0]
        assert translation == wanted.text
        assert score == pytest.approx(wanted.score, rel=1e-3, abs=1e-4)


def test_threads_share_a_translator(golden, exported, monkeypatch):
    """LiteRT releases Python's lock while it computes, and two threads in one interpreter crash the process."""
    inside, runners = threading.Lock(), Interpreter.get_signature_runner

    def watched(interpreter, name):
        runner = runners(interpreter, name)

        def call(**inputs):
            assert inside.acquire(blocking=False), "two threads in one interpreter"
            try:
                return runner(**inputs)
            finally:
                inside.release()

        call.get_input_details = runner.get_input_details
        return call

    monkeypatch.setattr(Interpreter, "get_signature_runner", watched)
    translator = TFLiteTranslator(exported / "translator.tflite")
    texts = golden.texts * 3
    with ThreadPoolExecutor(4) as threads:
        found = list(threads.map(lambda text: translator.translate(text)[0][0], texts))
    assert found == golden.translator.translate(texts)


def test_the_copied_runner_translates_a_text_as_python_does(golden, exported, tmp_path):
    """Without the package: with the three files that the docstring names."""
    for file in (run_tflite.__file__, sentences.__file__, placeholders.__file__):
        shutil.copy(file, tmp_path)
    long = ", and ".join(golden.texts * 3)
    document = f"- {golden.texts[0]} {golden.texts[1]}\n\n  {long}\n\n{golden.texts[2]} {{x}} 😀\n\n{{y}} 5 kg\n"
    code = "import sys; sys.modules['keras_transformer'] = None; import run_tflite; sys.exit(run_tflite.main())"
    call = [sys.executable, "-c", code, str(exported / "translator.tflite"), "--format", "document", document]
    done = subprocess.run(call, cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    settings = json.loads((exported / "translator.json").read_text())
    assert done.stdout == tflite_reference(golden.translator, settings).translate_text(document) + "\n"
    (tmp_path / "placeholders.py").unlink()
    done = subprocess.run(call, cwd=tmp_path, capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (2, "")
    wanted = "needs keras_transformer/text/placeholders.py. Copy it beside run_tflite.py."
    assert done.stderr.splitlines()[-1].endswith(wanted)
    assert "Copy it and `keras_transformer/text/placeholders.py` into one" in (exported / "README.md").read_text()


def test_hypotheses_come_best_first_and_nothing_is_translated_to_nothing(golden, exported):
    translator = TFLiteTranslator(exported / "translator.tflite")
    found = translator.translate(golden.texts[0])
    wanted = golden.translator.translate(golden.texts[:1], num_hypotheses=4, return_scores=True)[0]
    assert [text for text, _ in found] == [hypothesis.text for hypothesis in wanted]
    for beam in (True, False):
        assert translator.translate("", beam) == [("", 0.0)]
    long = golden.texts[0] * 50  # Cut, not refused.
    assert len(translator.translate(long)) == 4


def test_the_command_needs_neither_tensorflow_nor_keras(golden, exported):
    code = (
        "import sys\nfrom keras_transformer.export.run_tflite import main\n"
        f"main([{str(exported / 'translator.tflite')!r}, {golden.texts[0]!r}, {golden.texts[1]!r}])\n"
        "assert not {'tensorflow', 'keras'} & set(sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == golden.translator.translate(golden.texts[:2])


def test_the_command_prints_hypotheses_and_errors(golden, exported, tmp_path, capsys):
    assert main([str(exported / "translator.tflite"), golden.texts[0], "--nbest"]) == 0
    rows = [line.split("\t") for line in capsys.readouterr().out.splitlines()]
    assert [float(score) for score, _ in rows] == sorted((float(score) for score, _ in rows), reverse=True)
    assert main([str(tmp_path / "translator.tflite"), "a"]) == 2
    assert "must be an exported translator.tflite" in capsys.readouterr().err


def test_the_command_says_what_it_cuts(exported, capsys):
    assert main([str(exported / "translator.tflite"), "dog " * 99, "a dog"]) == 0
    assert capsys.readouterr().err.count("is too long: only its beginning was translated.") == 1


def test_step_by_step_is_greedy_search(golden, exported):
    """What an application does that shows a translation while it is made."""
    interpreter = Interpreter(str(exported / "translator.tflite"))
    encode, step = (interpreter.get_signature_runner(name) for name in ("encode", "decode_step"))
    padded = np.zeros((1, LENGTH), "int32")
    ids = golden.translator.codec.source_ids(golden.texts[:1])[0]
    padded[0, : len(ids)] = ids
    cross = {f"{name}_in": array for name, array in encode(token_ids=padded).items()}
    shapes = {name: detail["shape"] for name, detail in step.get_input_details().items()}
    cache = {name: np.zeros(shapes[name], "float32") for name in ("self_keys", "self_values")}
    token, found = START_TOKEN_ID, []
    while token != END_TOKEN_ID:
        position = np.array([len(found)], "int32")
        outputs = step(token=np.array([token], "int32"), position=position, **cache, **cross)
        cache = {name: outputs[f"next_{name}"] for name in cache}
        token = int(outputs["logits"][0].argmax())
        found.append(token)
    assert tuple(found) == golden.translator.translate(golden.texts[:1], num_beams=1, return_scores=True)[0].token_ids


def test_a_text_is_translated_by_one_signature(golden, exported):
    """What an application does that has nothing but LiteRT."""
    translator = TFLiteTranslator(exported / "translator.tflite")

    def translated(text):
        found = translator.run("translate_text", text=translator.padded(text))
        texts = [bytes(row).rstrip(b"\0").decode() for row in found["translations"]]
        return texts, found["scores"].tolist(), found["truncated"].tolist()

    expected = golden.translator.translate(golden.texts, num_hypotheses=4, return_scores=True)
    for text, wanted in zip(golden.texts, expected, strict=True):
        texts, scores, truncated = translated(text.encode())
        assert texts == [hypothesis.text for hypothesis in wanted] and truncated == [0]
        assert scores == pytest.approx([hypothesis.score for hypothesis in wanted], rel=1e-3, abs=1e-4)
    texts, scores, truncated = translated(b"")
    assert texts == ["", "", "", ""] and truncated == [0]
    assert scores[0] == 0 and max(scores[1:]) < NO_HYPOTHESIS
    for long in (golden.texts[0] * 50, "a" * 16 * LENGTH):  # More tokens, and as many bytes as the file takes.
        assert translated(long.encode())[2] == [1]
    assert translated(b"\xff\0a" + "\U0001f600".encode())[2] == [0]  # Whatever it is, it is answered.


def test_compiled_model_runs_the_file(golden, exported):
    """The other interface of LiteRT."""
    model = CompiledModel.from_file(str(exported / "translator.tflite"))
    padded = np.zeros((1, LENGTH), "int32")
    ids = golden.translator.codec.source_ids(golden.texts[:1])[0]
    padded[0, : len(ids)] = ids
    token_ids = model.create_input_buffer_by_name("translate", "token_ids")
    outputs = {name: model.create_output_buffer_by_name("translate", name) for name in ("translation_ids", "score")}
    token_ids.write(padded)
    model.run_by_name("translate", {"token_ids": token_ids}, outputs)
    found = outputs["translation_ids"].read(TARGET, np.int32)
    wanted = golden.translator.translate(golden.texts[:1], num_beams=1, return_scores=True)[0]
    assert tuple(i for i in found.tolist() if i) == wanted.token_ids


def test_attention_is_that_of_the_model(golden, exported):
    attention = Interpreter(str(exported / "translator.tflite")).get_signature_runner("attention")
    wanted = golden.translator.translate(golden.texts[:1], return_attention=True)[0]
    source, target = np.zeros((1, LENGTH), "int32"), np.zeros((1, TARGET), "int32")
    ids = golden.translator.codec.source_ids(golden.texts[:1])[0]
    source[0, : len(ids)], target[0, : len(wanted.token_ids)] = ids, wanted.token_ids
    scores = attention(token_ids=source, translation_ids=target)["scores"][0]
    assert scores.shape == (2, 2, TARGET, LENGTH)
    found = scores[:, :, : len(wanted.token_ids), : len(ids)]
    np.testing.assert_allclose(found, wanted.attention.scores, atol=1e-5)


def test_scores_are_those_of_python(golden, exported):
    score = Interpreter(str(exported / "translator.tflite")).get_signature_runner("score")
    text = golden.texts[0]
    wanted = golden.translator.translate([text], return_scores=True)[0]
    source, target = np.zeros((1, LENGTH), "int32"), np.zeros((1, TARGET), "int32")
    ids = golden.translator.codec.source_ids([text])[0]
    source[0, : len(ids)], target[0, : len(wanted.token_ids)] = ids, wanted.token_ids
    found = score(token_ids=source, translation_ids=target)["token_log_probs"][0]
    expected = golden.translator.score([text], [wanted.text])[0].token_log_probs
    np.testing.assert_allclose(found[: len(expected)], expected, atol=1e-4)


def test_the_file_says_what_it_is(exported):
    model = flatbuffer_utils.convert_bytearray_to_object((exported / "translator.tflite").read_bytes())
    (entry,) = (entry for entry in model.metadata if entry.name == b"translator.json")
    assert bytes(model.buffers[entry.buffer].data) == (exported / "translator.json").read_bytes()
    assert not any(code.customCode for code in model.operatorCodes)
    settings = json.loads((exported / "translator.json").read_text())
    assert [settings[f"{side}_language"] for side in ("source", "target", "translation")] == ["en", None, "de"]
    assert settings["directions"] == []  # Tags choose a direction, and this model has none.


def test_tokens_end_where_the_text_does(golden, exported):
    translator = TFLiteTranslator(exported / "translator.tflite")
    for text in (golden.texts[0], "dog " * 100):
        found = translator.run("tokenize", text=translator.padded(text.encode()))
        ids, ends = found["token_ids"][0].tolist(), found["ends"][0].tolist()
        count = ids.index(END_TOKEN_ID)
        pieces = [text[begin:end] for begin, end in zip([0, *ends], ends[:count], strict=False)]
        assert golden.tokenizer.tokenize(["".join(pieces)]) == [ids[:count]]
        assert not any(ends[count:])  # Also where the end token stands in place of a token.


def test_the_file_does_not_store_empty_caches(exported):
    model = flatbuffer_utils.convert_bytearray_to_object((exported / "translator.tflite").read_bytes())
    contents = [bytes(buffer.data) for buffer in model.buffers if buffer.data is not None]
    assert max(len(content) for content in contents if not any(content)) < 4000


@pytest.fixture(scope="module")
def steps(golden):
    return steps_file(golden.translator, LENGTH, TARGET)


def test_an_accelerator_can_take_all_operations_of_a_step(steps):
    """What LiteRT's GPU accelerator (of LiteRT.js 2.5, in Chromium) refused, computed wrongly or could not compile."""
    model = flatbuffer_utils.convert_bytearray_to_object(steps)
    names = {number: name for name, number in vars(schema.BuiltinOperator).items()}
    constant = [buffer.data is not None and len(buffer.data) > 0 for buffer in model.buffers]
    assert len(model.signatureDefs) == len(model.subgraphs) == 2  # A loop is a graph of its own.
    for graph in model.subgraphs:
        for operator in graph.operators:
            code = model.operatorCodes[operator.opcodeIndex]
            name, inputs = names[code.builtinCode], [graph.tensors[i] for i in operator.inputs]
            if name == "GATHER":
                assert len(inputs[1].shape) == 1
            if name == "STRIDED_SLICE":
                assert operator.builtinOptions.shrinkAxisMask == 0 and code.version <= 2
            if name in ("ADD", "SUB", "MUL"):
                for one, other in (inputs, inputs[::-1]):
                    if constant[one.buffer] and np.prod(one.shape) > 1:
                        # A table is added only to a tensor with as many axes, and integers, too.
                        is_row = one.type == schema.TensorType.FLOAT32 and np.prod(one.shape) == one.shape[-1]
                        assert is_row or len(one.shape) == len(other.shape) > 2 or one.shape[0] == 1, (name, one.shape)


def test_a_search_of_steps_translates_as_python_does(golden, steps, monkeypatch):
    monkeypatch.syspath_prepend(BENCHMARKS)
    from accelerators import Steps

    reference = golden.translator.translate(golden.texts, max_target_length=TARGET)
    search = Steps(steps, golden.translator, LENGTH, TARGET)
    ids = [search.translate(row)[0] for row in golden.translator.codec.source_ids(golden.texts)]
    assert golden.translator.target_tokenizer.detokenize(ids) == reference


def test_steps_have_numbers_that_integers_can_stand_for(golden, steps):
    encode = Interpreter(model_content=steps).get_signature_runner("encode")
    ids = np.zeros((1, LENGTH), "int32")
    ids[0, :2] = 9, END_TOKEN_ID
    outputs = encode(token_ids=ids)
    assert {-100, 0} == set(outputs["cross_bias"].ravel())
    greedy = Translator(golden.model, golden.tokenizer, num_beams=1)
    decode_step = Interpreter(model_content=steps_file(greedy, LENGTH, TARGET)).get_signature_runner("decode_step")
    inputs = {name: np.zeros(x["shape"], x["dtype"]) for name, x in decode_step.get_input_details().items()}
    assert "cache_rows" not in inputs
    logits = decode_step(**inputs)["logits"]
    assert logits.shape == (1, golden.tokenizer.vocabulary_size) and -150 < logits.min() < -50


def test_an_exchanged_file_is_found(golden, exported, tmp_path):
    other = shutil.copytree(exported, tmp_path / "other")
    file = other / "translator.json"
    content = file.read_text()
    file.write_text(content.replace("max_length_ratio", "min_length_ratio"))
    with pytest.raises(FileError, match=r"other are not those of the export: translator\.json has changed\."):
        list(verify(other, golden.translator))
    file.write_text(content)
    manifest = json.loads((other / MANIFEST).read_text())
    assert manifest[SHARE] == 1 and manifest.keys() == {"made_by", SHARE, "files"}


def test_a_model_without_finite_scores_says_so(exported, tmp_path, capsys):
    """As random weights in int8 files: a translator finds something for every text, so nothing is a damaged file."""
    shutil.copytree(exported, tmp_path, dirs_exist_ok=True)
    changed(no_hypothesis_score=1.0)(tmp_path / "translator.json")  # No score is so high.
    assert main([str(tmp_path / "translator.tflite"), "a"]) == 2
    assert re.search(
        r"^error: .* weights .* damaged\. Received: .*\. Export it again\.$", capsys.readouterr().err, re.M
    )


def test_text_that_is_not_unicode_is_an_error(exported, capsys):
    """Python keeps bytes of an argument that are not UTF-8 as lone surrogates, which SentencePiece cannot take."""
    assert main([str(exported / "translator.tflite"), "\udcff cat"]) == 2
    assert "without lone surrogates. Received: '\\udcff cat'." in capsys.readouterr().err


def test_what_lies_beside_the_file_says_what_it_needs(golden, exported):
    metadata = json.loads((exported / "translator.json").read_text())
    assert (metadata["source_length"], metadata["target_length"], metadata["quantize"]) == (LENGTH, TARGET, "none")
    assert (metadata["start_token_id"], metadata["end_token_id"], metadata["pad_token_id"]) == (2, 3, 0)
    assert (metadata["length_margin"], metadata["no_hypothesis_score"]) == (LENGTH_MARGIN, NO_HYPOTHESIS)
    assert sorted(file.name for file in exported.iterdir()) == [
        "README.md",
        MANIFEST,
        "translator.json",
        "translator.tflite",
    ]


def changed(**values):
    """Writes other values into a translator.json."""
    return lambda file: file.write_text(json.dumps(json.loads(file.read_text()) | values))


@pytest.mark.parametrize(
    ("name", "change", "message"),
    [
        ("translator.json", lambda file: file.write_text("{"), r"translator\.json is damaged: it must be JSON\."),
        (
            "translator.json",
            lambda file: file.write_bytes(b"\xff\xfe"),
            r"translator\.json is damaged: it must be JSON\.",
        ),
        (
            "translator.json",
            lambda file: file.write_text("[" * 99_999),
            r"translator\.json is damaged: it must be JSON\.",
        ),
        (
            "translator.json",
            lambda file: file.write_text("[1]"),
            r"source_length must be .* from 1 on\. Received: None\.",
        ),
        ("translator.json", changed(source_language=3), r"source_language must be a language .* Received: 3\."),
        ("translator.json", changed(source_length="40"), r"source_length must be .* from 1 on\. Received: '40'\."),
        (
            "translator.json",
            changed(source_length=17),
            r"another model: .*Received: 17, and a model that takes \[1, 40\]\.",
        ),
        ("translator.json", changed(end_token_id=-1), r"end_token_id must be .* from 0 on\. Received: -1\."),
        (
            "translator.json",
            changed(no_hypothesis_score=None),
            r"no_hypothesis_score must be a number\. Received: None",
        ),
        ("translator.json", changed(pad_token_id=True), r"pad_token_id must be .* from 0 on\. Received: True\."),
        ("translator.tflite", lambda file: file.write_text("a"), r"tflite cannot be used as an exported translator: "),
    ],
)
def test_the_runner_says_what_is_wrong_with_a_file(exported, tmp_path, capsys, name, change, message):
    for file in ("translator.json", "translator.tflite"):
        (tmp_path / file).write_bytes((exported / file).read_bytes())
    change(tmp_path / name)
    with pytest.raises((ValueError, FileNotFoundError), match=message):
        TFLiteTranslator(tmp_path / "translator.tflite").translate("a")
    assert main([str(tmp_path / "translator.tflite"), "a"]) == 2
    (line,) = capsys.readouterr().err.splitlines()[-1:]
    assert line.startswith("error: ") and str(tmp_path) in line


def test_quantised_files_are_smaller_and_nearly_the_same(golden, tflite):
    assert_nearly_the_same(golden, tflite / "int8", tflite / "float32", copies_of_the_embedding=1)


def small(kind="unigram", **settings):
    tokenizer = Tokenizer.train(["a small dog", "a small cat", "a big dog"] * 9, vocabulary_size=17, kind=kind)
    model = Transformer(17, num_layers=1, num_heads=1, hidden_dim=4, intermediate_dim=5, **settings)
    return Translator(model, tokenizer, num_beams=1)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        (
            {"quantize": "int4"},
            r"`quantize` must be one of \('none', 'float16', 'int8', 'int8-per-channel'\)\. Received: 'int4'",
        ),
        ({"sampling": True}, "Sampling cannot be exported"),
        ({"source_length": 1}, r"must be at least 2\. Received: source_length=1"),
    ],
)
def test_what_cannot_be_exported_is_an_error(tmp_path, settings, message):
    with pytest.raises(ExportError, match=message):
        export_tflite(small(), tmp_path / "out", **settings)
    assert not list(tmp_path.iterdir())


def test_the_file_and_python_need_not_agree_on_what_fills_the_room(tmp_path):
    """Thousands of characters that are unknown are one token in Python. The file reads some hundred, and says so."""
    translator = small()
    assert not translator.codec.encode(["x" * 20_000])[0].truncated
    folder, same = export_tflite(translator, tmp_path / "out", source_length=8, target_length=8)
    found = TFLiteTranslator(folder / "translator.tflite").encode("x" * 20_000)
    assert same == 1 and found.truncated and found.ids == translator.codec.encode(["x" * 20_000])[0].ids[:-1]


def test_a_file_without_a_tokenizer_takes_token_ids(tmp_path):
    """Those of WordPiece cannot be written as operations of TFLite."""
    folder, _ = export_tflite(small("wordpiece"), tmp_path / "out", source_length=8, target_length=8)
    translator = TFLiteTranslator(folder / "translator.tflite")
    assert not {"translate_text", "tokenize", "detokenize"} & set(translator.interpreter.get_signature_list())
    assert translator.translate_ids([5, 6])
    with pytest.raises(ValueError, match=r"must have the signature 'tokenize'.* or use `translate_ids`\."):
        translator.translate("a small dog")


def test_learned_positions_limit_the_lengths(tmp_path):
    with pytest.raises(ExportError, match="at most 9, the number of learned positions"):
        export_tflite(small(position_type="learned", max_length=9), tmp_path / "out")


def test_a_file_is_not_replaced(tmp_path):
    kept = tmp_path / "kept"
    kept.write_text("mine")
    with pytest.raises(FileError, match="is a file, and a folder is to be written there"):
        export_tflite(small(), kept, overwrite=True)
    assert kept.read_text() == "mine"
