"""What tests of quantised TFLite files check."""

from tensorflow.lite.tools import flatbuffer_utils

from keras_transformer.export.run_tflite import TFLiteTranslator


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
