"""The translator: order of texts, empty texts, n-best lists, scores, settings."""

import ctranslate2
import keras
import numpy as np
from ai_edge_litert.interpreter import Interpreter

from keras_transformer.export.ctranslate2 import export_ctranslate2
from keras_transformer.export.saved_model import export_saved_model
from keras_transformer.export.tflite import export_tflite
from keras_transformer.export.verify import ServedModel
from keras_transformer.models.transformer import Transformer
from keras_transformer.text.special_ids import PAD_TOKEN_ID, START_TOKEN_ID, UNKNOWN_TOKEN_ID
from keras_transformer.text.tokenizer import Tokenizer
from keras_transformer.translation.translator import Translator

# Padding, start tokens and, by default, unknown tokens are never written, even if the model prefers them.


def wants(token_id):
    """A translator whose model gives one token nearly all of the probability."""
    keras.utils.set_random_seed(0)
    tokenizer = Tokenizer.train(["a small dog", "a small cat", "a big dog"] * 9, vocabulary_size=17)
    sizes = {"num_layers": 1, "num_heads": 1, "hidden_dim": 8, "intermediate_dim": 5, "tie_embeddings": "none"}
    model = Transformer(17, **sizes)
    projection = model.decoder_embedding.token_embedding.reverse_embeddings
    norm = model.decoder_blocks[-1].feed_forward_norm
    norm.gamma.assign(0.01 * np.ones(8))
    norm.beta.assign(np.ones(8))  # The last hidden state is about (1, ..., 1).
    projection.assign(np.random.default_rng(1).normal(scale=0.1, size=(8, 17)))
    array = np.array(projection)
    array[:, token_id] = 2.0
    projection.assign(array)
    return Translator(model, tokenizer, max_target_length=7)


def test_no_export_writes_padding_unknown_or_start_tokens(tmp_path):
    translator = wants(UNKNOWN_TOKEN_ID)
    (expected,) = translator.translate(["a dog"], return_scores=True)
    ids = np.array([translator.codec.source_ids(["a dog"])[0]])
    with ServedModel(export_saved_model(translator, tmp_path / "servable")) as served:
        assert served("translate_ids", token_ids=ids)["translation_ids"][0].tolist() == list(expected.token_ids)
    folder, same = export_tflite(translator, tmp_path / "tflite", source_length=9, target_length=9)
    assert same == 1
    interpreter = Interpreter(str(folder / "translator.tflite"))
    step = interpreter.get_signature_runner("decode_step")
    inputs = {name: np.zeros(detail["shape"], detail["dtype"]) for name, detail in step.get_input_details().items()}
    logits = step(**inputs)["logits"][0]
    assert logits.argmax() not in (PAD_TOKEN_ID, UNKNOWN_TOKEN_ID, START_TOKEN_ID)
    folder = export_ctranslate2(translator, tmp_path / "ctranslate2", quantize="float32")
    pieces = translator.source_tokenizer.pieces(translator.source_tokenizer.tokenize(["a dog"])[0])
    (found,) = ctranslate2.Translator(str(folder)).translate_batch([pieces], max_decoding_length=7)
    assert not {"<unk>", "<s>", "<pad>"} & set(found.hypotheses[0])


def test_xla_gives_the_same_translations(golden):
    compiled = Translator(golden.model, golden.tokenizer, jit_compile=True)
    assert compiled.translate(golden.texts[:4]) == golden.translator.translate(golden.texts[:4])
