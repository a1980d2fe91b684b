"""A translator for devices: TFLite files that take and return token ids and use only built-in operations.

The search of `keras_transformer.search.decoder`, with its loop and cache, is inside the file. Lengths are fixed,
because some runtimes (LiteRT in a browser) take no variable lengths.

Signatures of `translator.tflite`; S and L are the fixed lengths, K is the number of beams:

| signature | takes | returns |
|---|---|---|
| `translate` | `token_ids` int32 (1, S) | `translation_ids` int32 (1, L), `score` float32 (1,): greedy search |
| `translate_beam` | `token_ids` int32 (1, S) | `hypothesis_ids` int32 (1, K, L), `scores` float32 (1, K) |
| `encode` | `token_ids` int32 (1, S) | `cross_keys`, `cross_values`, `cross_bias` float32 |
| `decode_step` | `token` int32 (1,), `position` int32 (1,), `self_keys`, `self_values`, `cross_keys_in`, |
| | `cross_values_in`, `cross_bias_in` | `logits` float32 (1, V), `next_self_keys`, `next_self_values` |
| `attention` | `token_ids` int32 (1, S), `translation_ids` int32 (1, L) | `scores` float32 (1, layers, N, L, S): |
| | | where each head looked in the source to write each token |
| `score` | `token_ids` int32 (1, S), `translation_ids` int32 (1, L) | `token_log_probs` float32 (1, L) |

`token_ids` are the ids of a text, followed by the end token and padded with 0. The first caches are zeros. `logits` of
tokens that no translation may have are about -1e9. If the vocabulary has placeholders
(`keras_transformer.text.placeholders`), a translation has those of its source, each once; the application puts them
into texts and out of translations, as `run_tflite` shows. For a model of several directions, the first of `token_ids`
is the tag of the target language, from `languages` in `translator.json`; if `begins_with_tag` is true there, it is the
first token of a translation, too, also step by step.

`translator_text.tflite` also contains the tokenizer, as operations of tensorflow-text, which the application must link
(in Python: `tensorflow_text.tflite_registrar.SELECT_TFTEXT_OPS`):

| signature | takes | returns |
|---|---|---|
| `translate` | `text` string (1,) | `translation` string (1,), `score` float32 (1,), `truncated` bool (1,) |
| `translate_beam` | `text` string (1,) | `hypotheses` string (K,), `scores` float32 (K,), `truncated` bool (1,) |

For a model of several directions, both also take `target_language` int32 (1,): the tag's id, as above.

Hypotheses that do not exist are empty, with scores below -1e8. Both files carry `translator.json` as metadata.
"""

import json
import tempfile
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path

import tensorflow as tf
from tensorflow.lite.python import schema_py_generated as schema
from tensorflow.lite.tools import flatbuffer_utils

import keras_transformer
from keras_transformer.export import ExportError, check_exportable
from keras_transformer.export.run_tflite import check_litert
from keras_transformer.export.signatures import graph_functions, mask_empty_inputs
from keras_transformer.export.verify import SHARE, verify_tflite
from keras_transformer.files import new_folder
from keras_transformer.layers.caches import FixedCache
from keras_transformer.models.decoding import token_log_probs
from keras_transformer.models.transformer import Transformer
from keras_transformer.search.decoder import NO_HYPOTHESIS
from keras_transformer.search.next_token import forbid
from keras_transformer.search.search import placeholders_of, search
from keras_transformer.search.settings import LENGTH_MARGIN, SearchSettings
from keras_transformer.text import placeholders
from keras_transformer.text.markup_tree import INLINE, KEPT, OPAQUE
from keras_transformer.text.sentences import specification
from keras_transformer.text.special_ids import (
    END_TOKEN_ID,
    PAD_TOKEN_ID,
    START_TOKEN_ID,
    UNKNOWN_TOKEN_ID,
    shifted_right,
)
from keras_transformer.text.tokenizer import save_tokenizers
from keras_transformer.translation.translator import Translator

PACKAGES = ("tensorflow", "keras")
QUANTIZATIONS = ("none", "float16", "int8", "int8-per-channel")


def export_tflite(
    translator: Translator,
    path: Path | str,
    quantize: str = "none",
    overwrite: bool = False,
    source_length: int = 64,
    target_length: int = 64,
    text_file: bool | None = None,
    **settings,
) -> tuple[Path, float]:
    """Writes a folder with `translator.tflite`, `translator.json` and the tokenizers, and `translator_text.tflite`.

    The top of this module lists the signatures.

    Args:
        translator: a translator on the TensorFlow backend.
        path: the folder to write.
        quantize: how weights are stored: `"none"` (float32), `"float16"`, or `"int8"` (dynamic range: products are
            computed in int8, too; one scale for each matrix), or `"int8-per-channel"` (one scale for each row: a file
            that is half as large again, for models that lose quality with int8). Defaults to `"none"`.
        overwrite: whether to replace the folder if it exists. Defaults to False.
        source_length: S, the maximum number of source tokens, the end token included; longer sources are cut. Defaults
            to 64.
        target_length: L, the maximum number of tokens of a translation, the end token included. Defaults to 64.
        text_file: whether to write `translator_text.tflite`, too. Defaults to None: only for unigram tokenizers; others
            do not exist as TFLite operations.
        **settings: `keras_transformer.search.settings.SearchSettings` by name. Default to the translator's.

    Returns:
        The path of the folder, and the share of sentences that its files translate as Python does, 1 unless quantised.

    Raises:
        ExportError: `path` cannot be written to, the settings cannot be exported, or the answers differ.
        ImportError: LiteRT is not installed.
    """
    check_litert()
    settings = translator.settings.replace(**{**settings, "avoid_loops": False})  # The graph searches once.
    check_exportable(translator, settings)
    _check_arguments(translator, quantize, source_length, target_length, text_file)
    settings, facts, tokenizers = settings.within(target_length), {}, translator.codec.tokenizers
    if text_file is None:
        text_file = all(tokenizer.runs_on_devices for tokenizer in tokenizers)
    with new_folder(path, overwrite, facts) as temporary:
        metadata = {"source_length": source_length, "target_length": target_length, "quantize": quantize}
        metadata |= {"tokenizers": save_tokenizers(temporary, tokenizers), **_metadata(translator, settings)}
        content = json.dumps(metadata, indent=2) + "\n"
        (temporary / "translator.json").write_text(content, encoding="utf-8")
        for texts in (False, True) if text_file else (False,):
            functions = device_functions(translator, settings, source_length, target_length, texts)
            file = convert(translator.model, functions, quantize, custom=texts)
            name = "translator_text.tflite" if texts else "translator.tflite"
            (temporary / name).write_bytes(_with_metadata(file, content))
        facts[SHARE] = verify_tflite(temporary, translator)
    return Path(path), facts[SHARE]


def _check_arguments(translator, quantize, source_length, target_length, text_file):
    if quantize not in QUANTIZATIONS:
        raise ExportError(f"`quantize` must be one of {QUANTIZATIONS}. Received: {quantize!r}.")
    longest, tokenizers = translator.model.max_length, translator.codec.tokenizers
    if min(source_length, target_length) < 2 or (longest and max(source_length, target_length) > longest):
        limit = f" and at most {longest}, the number of learned positions" if longest else ""
        raise ExportError(
            f"`source_length` and `target_length` must be at least 2{limit}. "
            f"Received: source_length={source_length}, target_length={target_length}."
        )
    if text_file and not all(tokenizer.runs_on_devices for tokenizer in tokenizers):
        kinds = ", ".join(sorted({tokenizer.kind for tokenizer in tokenizers}))
        raise ExportError(
            "`text_file` needs unigram tokenizers without byte fallback: others do not exist as TFLite operations. "
            f"Received: text_file=True, tokenizer {kinds}."
        )


def _metadata(translator, settings):
    """What `translator.json` says about the translator and its search."""
    return {
        "pad_token_id": PAD_TOKEN_ID,
        "unknown_token_id": UNKNOWN_TOKEN_ID,
        "start_token_id": START_TOKEN_ID,
        "end_token_id": END_TOKEN_ID,
        "settings": vars(settings),
        "source_language": translator.source_language,
        "target_language": translator.codec.target_language,
        "translation_language": translator.translation_language,
        "languages": dict(translator.source_tokenizer.languages),
        "begins_with_tag": translator.codec.begins_with_tag,
        "sentences": specification(translator.source_language),
        "num_placeholders": translator.codec.num_placeholders,
        "placeholders": placeholders.specification(),
        "markup": {"inline": sorted(INLINE), "opaque": sorted(OPAQUE), "kept": sorted(KEPT)},
        "length_margin": LENGTH_MARGIN,
        "confidence": translator.calibration and translator.calibration._asdict(),
        "no_hypothesis_score": NO_HYPOTHESIS,
        "versions": {"keras_transformer": keras_transformer.__version__, **{name: version(name) for name in PACKAGES}},
    }


def device_functions(
    translator: Translator, settings: SearchSettings, source_length: int, target_length: int, texts: bool
) -> dict[str, Callable]:
    """The functions of the signatures, for one sentence: they take token ids, or with `texts` strings."""
    device = _Device(translator, settings, source_length, target_length)
    source = tf.TensorSpec([1, source_length], tf.int32, name="token_ids")
    translation = tf.TensorSpec([1, target_length], tf.int32, name="translation_ids")
    if texts:
        specs = [tf.TensorSpec([1], tf.string, name="text")]
        if translator.source_tokenizer.hidden_languages:
            specs.append(tf.TensorSpec([1], tf.int32, name="target_language"))
        functions = {"translate": (device.translate_text, specs), "translate_beam": (device.translate_text_beam, specs)}
    else:
        functions = {
            "translate": (device.translate, [source]),
            "translate_beam": (device.translate_beam, [source]),
            "encode": (device.encode, [source]),
            "decode_step": (device.decode_step, device.specs_of_a_step()),
            "attention": (device.attention, [source, translation]),
            "score": (device.score, [source, translation]),
        }
    if settings.num_beams == 1:
        del functions["translate_beam"]
    return graph_functions(functions)


class _Device:
    """The functions of the signatures; see `export_tflite`."""

    def __init__(self, translator, settings, source_length, target_length):
        self.translator, self.model, self.settings = translator, translator.model, settings
        self.source_length, self.target_length = source_length, target_length
        self.vocabulary = translator.search.vocabulary(translator.shortlist)

    def translate(self, token_ids):
        hypotheses, scores = self._hypotheses(token_ids, self.settings.replace(num_beams=1))
        return {"translation_ids": hypotheses[:, 0], "score": scores[:, 0]}

    def translate_beam(self, token_ids):
        hypotheses, scores = self._hypotheses(token_ids, self.settings)
        return {"hypothesis_ids": hypotheses, "scores": scores}

    def translate_text(self, text, target_language=None):
        token_ids, truncated = self._tokenize(text, target_language)
        outputs = self.translate(token_ids)
        texts = self.translator.target_tokenizer.graph_detokenize(outputs["translation_ids"])
        return {"translation": texts, "score": outputs["score"], "truncated": truncated}

    def translate_text_beam(self, text, target_language=None):
        token_ids, truncated = self._tokenize(text, target_language)
        outputs = self.translate_beam(token_ids)
        texts = self.translator.target_tokenizer.graph_detokenize(outputs["hypothesis_ids"][0])
        return {"hypotheses": texts, "scores": outputs["scores"][0], "truncated": truncated}

    def encode(self, token_ids):
        pairs, bias = self.model.init_cross_cache(*self.model.encode(token_ids))
        keys, values = zip(*pairs, strict=True)
        return {"cross_keys": tf.concat(keys, 0), "cross_values": tf.concat(values, 0), "cross_bias": bias}

    def attention(self, token_ids, translation_ids):
        scores = self.model.attention_scores(token_ids, shifted_right(translation_ids))
        return {"scores": tf.stack(scores.cross, axis=1)}

    def score(self, token_ids, translation_ids):
        logits = self.model({"encoder_token_ids": token_ids, "decoder_token_ids": shifted_right(translation_ids)})
        return {"token_log_probs": token_log_probs(logits, translation_ids, self.vocabulary.begins_with_tag)}

    def decode_step(self, token, position, self_keys, self_values, cross_keys_in, cross_values_in, cross_bias_in):
        cross_cache = self._per_block(cross_keys_in, cross_values_in), cross_bias_in
        cache = [FixedCache(*pair) for pair in self._per_block(self_keys, self_values)]
        logits, cache = self.model.decode_step(token, cache, tf.reshape(position, []), cross_cache)
        keys, values = zip(*cache, strict=True)
        # So that the largest logit is an allowed token.
        logits = forbid(logits, [*self.settings.forbidden, *self.vocabulary.tags])
        return {"logits": logits, "next_self_keys": tf.concat(keys, 0), "next_self_values": tf.concat(values, 0)}

    def specs_of_a_step(self):
        heads = self.model.decoder_blocks[0].self_attention
        rows, width = len(self.model.decoder_blocks) * heads.num_heads, heads.key_dim
        floats = {
            "self_keys": [rows, width, self.target_length],
            "self_values": [rows, self.target_length, width],
            "cross_keys_in": [rows, width, self.source_length],
            "cross_values_in": [rows, self.source_length, width],
            "cross_bias_in": [heads.num_heads, 1, self.source_length],
        }
        integers = [tf.TensorSpec([1], tf.int32, name=name) for name in ("token", "position")]
        return integers + [tf.TensorSpec(shape, tf.float32, name=name) for name, shape in floats.items()]

    def _hypotheses(self, token_ids, settings):
        """Token ids (1, S) -> hypotheses (1, K, L) and their scores (1, K)."""
        length = tf.reduce_sum(tf.cast(token_ids != PAD_TOKEN_ID, tf.int32), axis=1)
        required = placeholders_of(token_ids, self.vocabulary.num_placeholders)
        shared = {"required": required, "vocabulary": self.vocabulary, "cache": "fixed"}
        hypotheses = search(self.model, token_ids, None, self.target_length, settings, settings.num_beams, **shared)
        return mask_empty_inputs(length <= 1, *hypotheses, settings.num_beams)

    def _tokenize(self, text, target_language):
        """A string (1,) and the id of a tag (1,) or None -> token ids (1, S), and whether it was cut."""
        ids, length = self.translator.source_tokenizer.graph_tokenize(text).flat_values, self.source_length
        if target_language is not None:  # A text without tokens gets no tag: it is not translated.
            ids = tf.concat([target_language[: tf.minimum(tf.size(ids), 1)], ids], axis=0)
        truncated = tf.reshape(tf.size(ids) > length - 1, [1])
        ids = tf.concat([ids[: length - 1], [END_TOKEN_ID]], axis=0)
        return tf.reshape(tf.pad(ids, [[0, length - tf.size(ids)]]), [1, length]), truncated

    def _per_block(self, keys, values):
        """Splits the concatenated keys and values of all blocks into one pair per block."""
        count = len(self.model.decoder_blocks)
        return list(zip(tf.split(keys, count), tf.split(values, count), strict=True))


def convert(model: Transformer, functions: dict[str, Callable], quantize: str, custom: bool) -> bytes:
    """The TFLite file of functions that read a model's weights; `custom` allows operations that are not built in."""
    module = tf.Module()
    module.variables_of_model = [variable.value for variable in model.variables]
    signatures = {name: function.get_concrete_function() for name, function in functions.items()}
    with tempfile.TemporaryDirectory() as folder:
        tf.saved_model.save(module, folder, signatures=signatures)
        converter = tf.lite.TFLiteConverter.from_saved_model(folder, signature_keys=list(signatures))
        converter.target_spec.supported_ops = [tf.lite.OpsSet.TFLITE_BUILTINS]
        converter.allow_custom_ops = custom
        if quantize != "none":
            converter.optimizations = [tf.lite.Optimize.DEFAULT]
        # With a scale for each row, the file has the embedding twice, with one scale for looking tokens up and with
        # many for the logits, and all scales again in every signature.
        converter._experimental_disable_per_channel = quantize == "int8"
        if quantize == "float16":
            converter.target_spec.supported_types = [tf.float16]
        return converter.convert()


def _with_metadata(file, content):
    """A TFLite file with `translator.json` as metadata, so that the file describes itself."""
    model = flatbuffer_utils.convert_bytearray_to_object(file)
    for tensor in (tensor for graph in model.subgraphs for tensor in graph.tensors):
        tensor.name = None  # Nobody reads them, and they take 6 % of a small file. Signatures have names of their own.
    model.description = "A translator made by keras_transformer; see the metadata translator.json."
    buffer, entry = schema.BufferT(), schema.MetadataT()
    buffer.data = content.encode()
    entry.name, entry.buffer = "translator.json", len(model.buffers)
    model.buffers.append(buffer)
    model.metadata.append(entry)
    return bytes(flatbuffer_utils.convert_object_to_bytearray(model))
