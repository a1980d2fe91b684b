"""A CTranslate2 model folder: the same weights for CTranslate2's CPU and GPU runtime.

Written with CTranslate2's own model specification (`pip install ctranslate2`).
"""

import importlib.util
from pathlib import Path

import keras
import numpy as np

from keras_transformer.export import ExportError, check_exportable, describe
from keras_transformer.files import new_folder
from keras_transformer.layers.decoder_block import DecoderBlock
from keras_transformer.layers.embeddings import positional_encoding
from keras_transformer.layers.encoder_block import EncoderBlock
from keras_transformer.layers.feed_forward import FeedForward
from keras_transformer.text.special_ids import END_TOKEN_ID, START_TOKEN_ID, UNKNOWN_TOKEN_ID
from keras_transformer.text.tokenizer import save_tokenizers
from keras_transformer.translation.translator import Translator

# CTranslate2 reads a table of positions, so the longest sequence must be fixed here for sinusoidal positions.
NUM_POSITIONS = 2048
# Added to the logits of tokens that no translation may have; half precision cannot represent -1e9.
IMPOSSIBLE = -1e4
_USE = """\
    import ctranslate2
    from sentencepiece import SentencePieceProcessor

    source = SentencePieceProcessor("source_tokenizer.spm")  # Or tokenizer.spm for both.
    ctranslate2.Translator(".").translate_batch([source.encode("One sentence.", out_type=str)])
"""
QUANTIZATIONS = ("float32", "float16", "bfloat16", "int16", "int8", "int8_float32", "int8_float16", "int8_bfloat16")
# CTranslate2's names of activations.
ACTIVATIONS = {"relu": "RELU", "gelu": "GELU", "silu": "SWISH", "swish": "SWISH", "tanh": "Tanh", "sigmoid": "Sigmoid"}


def export_ctranslate2(
    translator: Translator, path: Path | str, quantize: str = "float32", overwrite: bool = False
) -> Path:
    """Writes a model folder for `ctranslate2.Translator`, with the tokenizers beside it.

    CTranslate2 reads and writes subword strings and adds the end token of the source itself. Its `length_penalty` has a
    different formula than ours; with 0 the scores are the same. For a model of several directions, the first subword of
    a source is the tag of the target language, such as `>>de<<`. For M2M-100 and NLLB, it is that of the source
    language, and the target's tag is `target_prefix`. Tokens that no translation may have, such as the unknown token,
    have a probability of 0, so a given translation with one of them has a very low score. So has the start token,
    which counts in the softmax of some imported models (the import says so): their scores and few translations differ.

    Args:
        translator: the translator.
        path: the folder to write.
        quantize: how weights are stored, one of `QUANTIZATIONS`. Defaults to `"float32"`.
        overwrite: whether to replace the folder if it exists. Defaults to False.

    Returns:
        The path of the folder. It appears there complete or not at all.

    Raises:
        ExportError: CTranslate2 is missing or cannot express the model, or `path` cannot be written to.
    """
    if not importlib.util.find_spec("ctranslate2"):
        raise ExportError("CTranslate2 is not installed. Try: pip install ctranslate2")
    if quantize not in QUANTIZATIONS:
        raise ExportError(f"`quantize` must be one of {QUANTIZATIONS}. Received: {quantize!r}.")
    check_exportable(translator, translator.settings.replace(sampling=False, shortlist=0))
    spec = _model(translator)
    _set_vocabularies(spec, translator)
    spec.validate()
    spec.optimize(quantization=None if quantize == "float32" else quantize)
    with new_folder(path, overwrite) as temporary:
        spec.save(str(temporary))
        save_tokenizers(temporary, translator.codec.tokenizers)
        describe(temporary, translator, _USE)
    return Path(path)


def _model(translator):
    """CTranslate2's `TransformerSpec` with the weights of the translator's model."""
    from ctranslate2.specs import TransformerSpec
    from ctranslate2.specs.common_spec import Activation
    from ctranslate2.specs.transformer_spec import TransformerDecoderSpec, TransformerEncoderSpec

    model, config = translator.model, translator.model.get_config()
    _check_blocks(model)
    activation = config["activation"]
    name = activation if isinstance(activation, str) else keras.activations.serialize(activation)
    if name not in ACTIVATIONS:
        raise ExportError(
            f"CTranslate2 has no activation {name!r}. It has: {', '.join(ACTIVATIONS)}. "
            "Export a SavedModel instead, or train with one of these."
        )
    settings = {
        "num_heads": config["num_heads"],
        "pre_norm": config["normalize_first"],
        "activation": Activation[ACTIVATIONS[name]],
    }
    spec = TransformerSpec(
        TransformerEncoderSpec(len(model.encoder_blocks), **settings),
        TransformerDecoderSpec(len(model.decoder_blocks), **settings),
    )
    spec.config.layer_norm_epsilon = config["layer_norm_epsilon"]
    for side, table, embedding, norm, blocks in (
        (spec.encoder, spec.encoder.embeddings[0], model.encoder_embedding, model.encoder_norm, model.encoder_blocks),
        (spec.decoder, spec.decoder.embeddings, model.decoder_embedding, model.decoder_norm, model.decoder_blocks),
    ):
        _set_embedding(side, table, embedding)
        if norm:
            _set_norm(side.layer_norm, norm)
        for layer, block in zip(side.layer, blocks, strict=True):
            _set_block(layer, block)
    embedding = model.decoder_embedding.token_embedding
    tied, bias = embedding.tie_weights, model.decoder_embedding.bias
    projection = spec.decoder.projection
    projection.weight = _array(embedding.embeddings if tied else embedding.reverse_embeddings, not tied)
    # CTranslate2's search would allow these tokens; the bias forbids them.
    projection.bias = np.zeros(model.target_vocabulary_size, "float32") if bias is None else _array(bias)
    projection.bias[[*translator.settings.forbidden, *translator.codec.hidden_tags]] = IMPOSSIBLE
    return spec


def _check_blocks(model):
    """Raises an ExportError for blocks with parts that a subclass replaces."""
    known = {EncoderBlock, DecoderBlock, FeedForward, keras.layers.LayerNormalization}
    for block in (*model.encoder_blocks, *model.decoder_blocks):
        for part in (block, block.feed_forward, block.feed_forward_norm):
            if type(part) not in known:
                raise ExportError(
                    "CTranslate2 has the blocks of the paper alone: other parts would be left out. "
                    f"Received: {type(part).__name__}. Export a SavedModel instead."
                )


def _set_vocabularies(spec, translator):
    source, target = translator.source_tokenizer, translator.target_tokenizer
    spec.register_source_vocabulary(source.pieces(range(source.vocabulary_size)))
    pieces = target.pieces(range(target.vocabulary_size))
    spec.register_target_vocabulary(pieces)
    spec.config.unk_token = pieces[UNKNOWN_TOKEN_ID]
    spec.config.bos_token = spec.config.decoder_start_token = pieces[START_TOKEN_ID]
    spec.config.eos_token = pieces[END_TOKEN_ID]
    spec.config.add_source_eos = True


def _array(variable, transposed=False):
    array = keras.ops.convert_to_numpy(variable).astype("float32")
    return np.ascontiguousarray(array.T) if transposed else array


def _set_embedding(side, spec, embedding):
    spec.weight = _array(embedding.token_embedding.embeddings)
    side.scale_embeddings = embedding.scale_embeddings
    if embedding.position_type == "learned":
        table = _array(embedding.position_table)
    else:
        first, width = embedding.first_position, embedding.hidden_dim
        table = positional_encoding(first + NUM_POSITIONS, width, embedding.max_wavelength, embedding.layout)[first:]
    side.position_encodings.encodings = table.astype("float32")


def _set_block(spec, block):
    _set_dense(spec.self_attention.linear[0], block.self_attention.query_key_value_dense)
    _set_dense(spec.self_attention.linear[1], block.self_attention.output_dense)
    _set_norm(spec.self_attention.layer_norm, block.self_attention_norm)
    if hasattr(spec, "attention"):
        attention = block.cross_attention
        _set_dense(spec.attention.linear[0], attention.query_dense)
        _set_dense(spec.attention.linear[1], attention.key_value_dense)
        _set_dense(spec.attention.linear[2], attention.output_dense)
        _set_norm(spec.attention.layer_norm, block.cross_attention_norm)
    _set_dense(spec.ffn.linear_0, block.feed_forward.intermediate_dense)
    _set_dense(spec.ffn.linear_1, block.feed_forward.output_dense)
    _set_norm(spec.ffn.layer_norm, block.feed_forward_norm)


def _set_dense(spec, dense):
    spec.weight = _array(dense.kernel, transposed=True)
    if dense.use_bias:
        spec.bias = _array(dense.bias)


def _set_norm(spec, norm):
    spec.gamma, spec.beta = _array(norm.gamma), _array(norm.beta)
