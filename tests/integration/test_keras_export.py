"""Keras' own `model.export` of models made of these layers; the package's exports have files of their own."""

import keras
import numpy as np
import pytest

import keras_transformer as kt

pytestmark = pytest.mark.skipif(keras.backend.backend() != "tensorflow", reason="exported on TensorFlow")

IDS = np.array([[5, 6, 7, 3, 0, 0], [8, 3, 0, 0, 0, 0], [9, 4, 2, 8, 7, 3]], "int32")
LENGTHS = [(6, 6), (6, 2), (3, 5)]  # Of source and target: Keras traces no length.


def classifier():
    token_ids = keras.Input((None,), dtype="int32", name="encoder_token_ids")
    x = kt.PositionalEmbedding(11, 8)(token_ids)
    x = kt.EncoderBlock(2, 5)(x)
    return keras.Model({"encoder_token_ids": token_ids}, keras.layers.GlobalAveragePooling1D()(x))


def seq2seq():
    sizes = {"num_layers": 1, "num_heads": 2, "hidden_dim": 8, "intermediate_dim": 5}
    other = {"normalize_first": True, "position_type": "learned", "max_length": 6, "source_language_token_id": 4}
    return kt.Transformer(11, **sizes, **other)


def litert(model, path):
    """The exported model as a function of a dict of inputs. The interpreter has built-in operations alone."""
    from ai_edge_litert.interpreter import Interpreter

    model.export(path / "model.tflite", format="litert", verbose=False)
    interpreter = Interpreter(str(path / "model.tflite"))

    def run(inputs):
        places = {name: x["index"] for x in interpreter.get_input_details() for name in inputs if name in x["name"]}
        for name, index in places.items():
            interpreter.resize_tensor_input(index, inputs[name].shape)
        interpreter.allocate_tensors()
        for name, index in places.items():
            interpreter.set_tensor(index, inputs[name])
        interpreter.invoke()
        return interpreter.get_tensor(interpreter.get_output_details()[0]["index"])

    return run


def onnx(model, path):
    import onnxruntime

    model.export(path / "model.onnx", format="onnx", verbose=False)
    session = onnxruntime.InferenceSession(path / "model.onnx")
    return lambda inputs: session.run(None, inputs)[0]


@pytest.mark.parametrize("make", [classifier, seq2seq])
@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::FutureWarning")  # Of the converters.
def test_the_exported_model_answers_the_same_for_other_lengths(make, tmp_path):
    model = make()
    inputs = {name: IDS for name in model.input}
    cases = [{name: IDS[:, :n] for name, n in zip(inputs, lengths, strict=False)} for lengths in LENGTHS]
    # Keras exports to ONNX only what has been called.
    wanted = [keras.ops.convert_to_numpy(model(some, training=False)) for some in cases]
    for export in (litert, onnx):
        exported = export(model, tmp_path)
        for some, answer in zip(cases, wanted, strict=True):
            np.testing.assert_allclose(exported(some), answer, atol=1e-5)
