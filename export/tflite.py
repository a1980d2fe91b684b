"""A translator for devices: one TFLite file, text in and text out, of built-in operations alone.

The tokenizer and the search, with its loop and cache, are inside the file. Lengths are fixed, because some runtimes
(LiteRT in a browser) take no variable lengths.

Signatures; S and L are the fixed lengths, K is the number of beams, N and M are numbers of bytes:

| signature | takes | returns |
|---|---|---|
| `translate_text` | `text` uint8 (1, N) | `translations` uint8 (K, M), `scores` float32 (K,), best first; `truncated` |
| | | int32 (1,): whether the text was too long, 0 or 1 |
| `tokenize` | `text` uint8 (1, N) | `token_ids` int32 (1, S), `truncated` int32 (1,), `ends` int32 (1, S) |
| `detokenize` | `translation_ids` int32 (1, L) | `text` uint8 (1, M), `ends` int32 (1, L) |
| `translate` | `token_ids` int32 (1, S) | `translation_ids` int32 (1, L), `score` float32 (1,): greedy search |
| `translate_beam` | `token_ids` int32 (1, S) | `hypothesis_ids` int32 (1, K, L), `scores` float32 (1, K) |
| `encode` | `token_ids` int32 (1, S) | `cross_keys`, `cross_values`, `cross_bias` float32 |
| `decode_step` | `token` int32 (1,), `position` int32 (1,), `self_keys`, `self_values`, `cross_keys_in`, |
| | `cross_values_in`, `cross_bias_in` | `logits` float32 (1, V), `next_self_keys`, `next_self_values` |
| `attention` | `token_ids` int32 (1, S), `translation_ids` int32 (1, L) | `scores` float32 (1, layers, N, L, S): |
| | | where each head looked in the source to write each token |
| `score` | `token_ids` int32 (1, S), `translation_ids` int32 (1, L) | `token_log_probs` float32 (1, L) |
| `explain_encode` | `token_ids` int32 (1, S), `heads` float32 (layers, N), `positions` | as `encode`; also |
| | int32 (1, S) | `encoder_scores` float32 (layers, N, S, S) |
| `explain_step` | as `decode_step`; also `heads` float32 (2, layers, N), `positions` | `log_probs` float32 (1, V), |
| | int32 (1, 1) | `next_self_keys`, `next_self_values`; float32 `self_scores` (layers, N, L), `cross_scores` |
| | | (layers, N, S) |

Texts are UTF-8, padded with zeros; a text that fills all N bytes counts as too long. Bytes that are not UTF-8 become
U+FFFD. `ends` has the number of bytes of the text up to the end of each token: token i stands for the bytes from
`ends[i - 1]` to `ends[i]`. In `tokenize` it is 0 for the end token and padding. `tokenize` adds the end token, but no
tag of a language. The signatures for texts are there for SentencePiece tokenizers.

`token_ids` are the ids of a text, followed by the end token and padded with 0. The first caches are zeros. `logits` of
tokens that no translation may have are about -1e9. If the vocabulary has placeholders
(`keras_transformer.text.placeholders`), a translation has those of its source, each once; the application puts them
into texts and out of translations, as `run_tflite` shows. For a model of several directions, the first of `token_ids`
is the tag of the target language, from `languages` in `translator.json`; if `begins_with_tag` is true there, it is the
first token of a translation, too, also step by step. If texts cannot contain the tags, `translate_text` also takes
`target_language` int32 (1,), the tag; 0 stands for the language of the export.

The models of a page also have the signatures `explain_...`. The context of each head is multiplied by its number in
`heads`, so 1 is on and 0 is off; in a step, self-attention comes before cross-attention. `positions` are those whose
encodings are added to the embeddings, less than the larger of S and L. A source token is hidden if its id is 0. The
outputs `..._scores` are attention scores.

Hypotheses that do not exist are empty, with scores below -1e8. The file carries `translator.json` as metadata.
"""

import functools
import json
import tempfile
from collections.abc import Callable, Sequence
from importlib.metadata import version
from pathlib import Path

import numpy as np
import tensorflow as tf
from tensorflow.lite.python import schema_py_generated as schema
from tensorflow.lite.tools import flatbuffer_utils

import keras_transformer
from keras_transformer.export import ExportError, check_exportable, describe
from keras_transformer.export.explain import changed
from keras_transformer.export.run_tflite import check_litert
from keras_transformer.export.signatures import graph_functions, mask_empty_inputs
from keras_transformer.export.tokenizer_graph import GraphTokenizer
from keras_transformer.export.verify import SHARE, verify_tflite
from keras_transformer.files import new_folder
from keras_transformer.layers.caches import FixedCache
from keras_transformer.layers.embeddings import NUM_POSITIONS
from keras_transformer.models.decoding import token_log_probs
from keras_transformer.models.transformer import Transformer
from keras_transformer.search.decoder import IMPOSSIBLE, NO_HYPOTHESIS
from keras_transformer.search.next_token import forbid
from keras_transformer.search.search import placeholders_of, search
from keras_transformer.search.settings import LENGTH_MARGIN, SearchSettings
from keras_transformer.text import placeholders
from keras_transformer.text.markup_tree import INLINE, KEPT, OPAQUE
from keras_transformer.text.sentencepiece_tokenizer import SentencePieceTokenizer
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
# N, for each token that a source may have. A token has four bytes in English, and ten in Hindi.
BYTES_PER_TOKEN = 16
# In place of -1e9 where all numbers of a tensor share one scale: e^-100 is as good as zero.
_MASKED = -100
_USE = """\
    python -m keras_transformer.export.run_tflite translator.tflite "One sentence."

`run_tflite.py` needs `ai-edge-litert`, NumPy and `regex`. Copy it and `keras_transformer/text/placeholders.py` into one
folder, or take a translator of `examples/device`.
"""


def export_tflite(
    translator: Translator,
    path: Path | str,
    quantize: str = "none",
    overwrite: bool = False,
    source_length: int = 64,
    target_length: int = 64,
    explain: bool = False,
    **settings,
) -> tuple[Path, float]:
    """Writes a folder with `translator.tflite` and `translator.json`, and the tokenizers that the file cannot have.

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
        explain: whether the file has the signatures `explain_...`, as the models of a page. They make the int8 file of
            a tiny model 2 % larger. Defaults to False.
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
    _check_arguments(translator, quantize, source_length, target_length)
    settings, facts, tokenizers = settings.within(target_length), {}, translator.codec.tokenizers
    graph_tokenizers = _graph_tokenizers(tokenizers)  # Before anything is written.
    with new_folder(path, overwrite, facts) as temporary:
        metadata = {"source_length": source_length, "target_length": target_length, "quantize": quantize}
        metadata["source_bytes"] = BYTES_PER_TOKEN * source_length
        metadata |= _metadata(translator, settings)
        if not graph_tokenizers:
            save_tokenizers(temporary, tokenizers)
        content = json.dumps(metadata, indent=2) + "\n"
        (temporary / "translator.json").write_text(content, encoding="utf-8")
        functions = device_functions(translator, settings, source_length, target_length, graph_tokenizers, explain)
        describe(temporary, translator, _USE, functions, source_length)
        file = convert(translator.model, functions, quantize)
        (temporary / "translator.tflite").write_bytes(_with_metadata(file, content))
        facts[SHARE] = verify_tflite(temporary, translator)
    return Path(path), facts[SHARE]


_graph_tokenizer = functools.lru_cache(maxsize=2)(GraphTokenizer)  # A page has several files with one vocabulary.


def _graph_tokenizers(tokenizers):
    """A list of the `GraphTokenizer`s of the source and of the target; empty for tokenizers of other kinds."""
    if not all(isinstance(tokenizer, SentencePieceTokenizer) for tokenizer in tokenizers):
        return []
    try:
        graphs = [_graph_tokenizer(tokenizer.model) for tokenizer in tokenizers]
    except ValueError as error:
        raise ExportError(str(error)) from error
    return [graphs[0], graphs[-1]]


def _check_arguments(translator, quantize, source_length, target_length):
    if quantize not in QUANTIZATIONS:
        raise ExportError(f"`quantize` must be one of {QUANTIZATIONS}. Received: {quantize!r}.")
    longest = translator.model.max_length
    if min(source_length, target_length) < 2 or (longest and max(source_length, target_length) > longest):
        limit = f" and at most {longest}, the number of learned positions" if longest else ""
        raise ExportError(
            f"`source_length` and `target_length` must be at least 2{limit}. "
            f"Received: source_length={source_length}, target_length={target_length}."
        )


def _metadata(translator, settings):
    """What `translator.json` says about the translator and its search."""
    config = translator.model.get_config()
    return {
        "pad_token_id": PAD_TOKEN_ID,
        "unknown_token_id": UNKNOWN_TOKEN_ID,
        "start_token_id": START_TOKEN_ID,
        "end_token_id": END_TOKEN_ID,
        "settings": vars(settings),
        "model": {name: config[name] for name in ("hidden_dim", "position_type", "max_wavelength", "first_position")},
        "source_language": translator.source_language,
        "target_language": translator.codec.target_language,
        "translation_language": translator.translation_language,
        "languages": dict(translator.source_tokenizer.languages),
        "directions": translator.run.config().data.all_directions() if translator.run else [],
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
    translator: Translator,
    settings: SearchSettings,
    source_length: int,
    target_length: int,
    tokenizers: Sequence[GraphTokenizer],
    explain: bool = False,
) -> dict[str, Callable]:
    """The functions of the signatures, for one sentence; those for texts need the tokenizers of source and target."""
    device = _Device(translator, settings, source_length, target_length, tokenizers)
    source = tf.TensorSpec([1, source_length], tf.int32, name="token_ids")
    translation = tf.TensorSpec([1, target_length], tf.int32, name="translation_ids")
    text = tf.TensorSpec([1, BYTES_PER_TOKEN * source_length], tf.uint8, name="text")
    tag = [tf.TensorSpec([1], tf.int32, name="target_language")] * bool(translator.source_tokenizer.hidden_languages)
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
    if tokenizers:
        functions["translate_text"] = device.translate_text, [text, *tag]
        functions["tokenize"] = device.tokenize, [text]
        functions["detokenize"] = device.detokenize, [translation]
    if explain:
        functions["explain_encode"] = device.explain_encode, [source, *device.specs_of_changes("encoder")]
        functions["explain_step"] = (
            device.explain_step,
            [*device.specs_of_a_step(), *device.specs_of_changes("decoder")],
        )
    return device.graphs(functions)


class _Device:
    """The functions of the signatures; see `export_tflite`."""

    def __init__(self, translator, settings, source_length, target_length, tokenizers):
        self.model, self.settings, self.tokenizers = translator.model, settings, tokenizers
        self.tag = translator.source_tokenizer.languages.get(translator.codec.target_language, 0)
        self.source_length, self.target_length = source_length, target_length
        self.vocabulary = translator.search.vocabulary(translator.shortlist)

    def graphs(self, functions):
        """`graph_functions` in which positions are rows of a table."""

        def looking_up(function):
            def traced(*arguments):
                token = NUM_POSITIONS.set(max(self.source_length, self.target_length))
                try:
                    return function(*arguments)
                finally:
                    NUM_POSITIONS.reset(token)

            return traced

        return graph_functions({name: (looking_up(function), specs) for name, (function, specs) in functions.items()})

    def translate(self, token_ids):
        hypotheses, scores = self._hypotheses(token_ids, self.settings.replace(num_beams=1))
        return {"translation_ids": hypotheses[:, 0], "score": scores[:, 0]}

    def translate_beam(self, token_ids):
        hypotheses, scores = self._hypotheses(token_ids, self.settings)
        return {"hypothesis_ids": hypotheses, "scores": scores}

    def translate_text(self, text, target_language=None):
        ids, _, length, is_cut = self.tokenizers[0].encode(tf.cast(text[0], tf.int32), self.source_length)
        if target_language is not None or self.tag:
            tag = [self.tag] if target_language is None else tf.where(target_language > 0, target_language, self.tag)
            tagged = tf.cast((tag[0] > 0) & (length > 0), tf.int32)  # A text without tokens is not translated.
            ids = tf.where(tagged > 0, tf.concat([tag, ids[:-1]], 0), ids)
            length += tagged
        hypotheses, scores = self._hypotheses(self._ended(ids, length), self.settings)
        truncated = tf.cast(is_cut | (length >= self.source_length), tf.int32)
        return {
            "translations": tf.cast(self.tokenizers[1].decode(hypotheses[0])[0], tf.uint8),
            "scores": scores[0],
            "truncated": tf.reshape(truncated, [1]),
        }

    def tokenize(self, text):
        ids, ends, length, is_cut = self.tokenizers[0].encode(tf.cast(text[0], tf.int32), self.source_length)
        truncated = tf.cast(is_cut | (length >= self.source_length), tf.int32)
        ids = self._ended(ids, length)
        ends = tf.where(ids == END_TOKEN_ID, 0, ends[None])  # Of a cut text, a token stood there.
        return {"token_ids": ids, "truncated": tf.reshape(truncated, [1]), "ends": ends}

    def detokenize(self, translation_ids):
        text, ends = self.tokenizers[1].decode(translation_ids)
        return {"text": tf.cast(text, tf.uint8), "ends": ends}

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

    def decode_step(self, *step):
        logits, caches = self._step(*step)
        # So that the largest logit is an allowed token.
        return {"logits": self._allowed(logits), **caches}

    def explain_encode(self, token_ids, heads, positions):
        with changed([block.self_attention for block in self.model.encoder_blocks], heads, positions) as scores:
            outputs = self.encode(token_ids)
        return {**outputs, "encoder_scores": tf.concat(scores, 0)}

    def explain_step(self, *arguments):
        *step, heads, positions = arguments
        blocks = self.model.decoder_blocks
        layers = [layer for block in blocks for layer in (block.self_attention, block.cross_attention)]
        heads = tf.reshape(tf.transpose(heads, [1, 0, 2]), [len(layers), -1])
        with changed(layers, heads, positions) as scores:
            logits, caches = self._step(*step)
        scores = {"self_scores": tf.stack(scores[::2])[:, :, 0], "cross_scores": tf.stack(scores[1::2])[:, :, 0]}
        return {"log_probs": self._allowed(tf.nn.log_softmax(logits)), **caches, **scores}

    def _allowed(self, logits):
        return forbid(logits, [*self.settings.forbidden, *self.vocabulary.tags])

    def _step(
        self, token, position, self_keys, self_values, cross_keys_in, cross_values_in, cross_bias_in, cache_rows=None
    ):
        """The logits of a step, and a dict of the new caches."""
        pairs, bias = self._per_block(cross_keys_in, cross_values_in), cross_bias_in
        if cache_rows is not None:  # Beams are the sentences of a batch: accelerators take no more than four axes.
            self_keys, self_values = tf.gather(self_keys, cache_rows), tf.gather(self_values, cache_rows)

            def for_all_beams(x):
                return tf.concat([x] * token.shape[0], 0)

            pairs, bias = [tuple(map(for_all_beams, pair)) for pair in pairs], for_all_beams(bias)
        cache = [FixedCache(*pair) for pair in self._per_block(self_keys, self_values)]
        logits, cache = self.model.decode_step(token, cache, tf.reshape(position, []), (pairs, bias))
        keys, values = zip(*cache, strict=True)
        return logits, {"next_self_keys": tf.concat(keys, 0), "next_self_values": tf.concat(values, 0)}

    def specs_of_changes(self, side):
        """The specs of `heads` and `positions` of `explain_encode` and of `explain_step`."""
        blocks = self.model.encoder_blocks if side == "encoder" else self.model.decoder_blocks
        kinds, length = ([], self.source_length) if side == "encoder" else ([2], 1)
        heads = tf.TensorSpec([*kinds, len(blocks), blocks[0].num_heads], tf.float32, name="heads")
        return [heads, tf.TensorSpec([1, length], tf.int32, name="positions")]

    def specs_of_a_step(self, num_beams=1):
        heads = self.model.decoder_blocks[0].self_attention
        rows, width = len(self.model.decoder_blocks) * heads.num_heads, heads.key_dim
        integers = {"token": [num_beams], "position": [1]}
        floats = {
            "self_keys": [rows * num_beams, width, self.target_length],
            "self_values": [rows * num_beams, self.target_length, width],
            "cross_keys_in": [rows, width, self.source_length],
            "cross_values_in": [rows, self.source_length, width],
            "cross_bias_in": [heads.num_heads, 1, self.source_length],
        }
        specs = [tf.TensorSpec(shape, tf.int32, name=name) for name, shape in integers.items()]
        specs += [tf.TensorSpec(shape, tf.float32, name=name) for name, shape in floats.items()]
        return specs + [tf.TensorSpec([rows * num_beams], tf.int32, name="cache_rows")] * (num_beams > 1)

    def _hypotheses(self, token_ids, settings):
        """Token ids (1, S) -> hypotheses (1, K, L) and their scores (1, K)."""
        length = tf.reduce_sum(tf.cast(token_ids != PAD_TOKEN_ID, tf.int32), axis=1)
        required = placeholders_of(token_ids, self.vocabulary.num_placeholders)
        shared = {"required": required, "vocabulary": self.vocabulary, "cache": "fixed"}
        hypotheses = search(self.model, token_ids, None, self.target_length, settings, settings.num_beams, **shared)
        return mask_empty_inputs(length <= 1, *hypotheses, settings.num_beams)

    def _ended(self, ids, length):
        """Token ids (S,), padded with 0, of a text of `length` tokens -> (1, S), cut, with the end token."""
        places = tf.range(self.source_length)
        end = tf.minimum(length, self.source_length - 1)
        return tf.where(places < end, ids, tf.where(places == end, END_TOKEN_ID, PAD_TOKEN_ID))[None]

    def _per_block(self, keys, values):
        """Splits the concatenated keys and values of all blocks into one pair per block."""
        count = len(self.model.decoder_blocks)
        return list(zip(tf.split(keys, count), tf.split(values, count), strict=True))


def steps_file(translator: Translator, source_length: int = 64, target_length: int = 64) -> bytes:
    """The TFLite file of the signatures `encode` and `decode_step` alone, float32, for GPUs and NPUs.

    They have no loops and no sizes that change, and only operations that LiteRT's GPU accelerator takes, so it runs the
    whole of them. The application has the loop of the search; benchmarks/accelerators.py shows it in Python and in
    JavaScript. K beams, from the translator's settings, are a batch: `decode_step` takes `token` int32 (K,), and caches
    with K times as many rows, by block, beam and head. With K > 1 it also takes `cache_rows` int32, for each row of the
    caches the one that it continues. The application also sees to it that placeholders of the source are written, each
    once, and no others, and that the first token is the tag of the language, if `begins_with_tag` is true.

    Masked attention logits, and logits of tokens that no translation may have, are about -100 instead of -1e9, so that
    the file can be quantized to integers.

    Args:
        translator: a translator on the TensorFlow backend.
        source_length, target_length: see `export_tflite`. Default to 64.

    Raises:
        ExportError: the translator cannot be exported, or the lengths do not fit.
    """
    settings = translator.settings.within(target_length)
    check_exportable(translator, settings)
    _check_arguments(translator, "none", source_length, target_length)
    device = _Device(translator, settings, source_length, target_length, [])
    functions = {
        "encode": (device.encode, [tf.TensorSpec([1, source_length], tf.int32, name="token_ids")]),
        "decode_step": (device.decode_step, device.specs_of_a_step(settings.num_beams)),
    }
    file = convert(translator.model, device.graphs(functions), "none")
    model = flatbuffer_utils.convert_bytearray_to_object(file)
    tensors = (tensor for graph in model.subgraphs for tensor in graph.tensors)
    for number in {tensor.buffer for tensor in tensors if tensor.type == schema.TensorType.FLOAT32}:
        buffer = model.buffers[number]
        if buffer.data is not None:
            values = np.frombuffer(bytes(buffer.data), "float32")
            values = np.where(values == np.float32(IMPOSSIBLE), np.float32(_MASKED), values)
            buffer.data = np.frombuffer(values.tobytes(), "uint8")
    return bytes(flatbuffer_utils.convert_object_to_bytearray(model))


def convert(model: Transformer, functions: dict[str, Callable], quantize: str) -> bytes:
    """The TFLite file of functions that read a model's weights."""
    module = tf.Module()
    module.variables_of_model = [variable.value for variable in model.variables]
    signatures = {name: function.get_concrete_function() for name, function in functions.items()}
    with tempfile.TemporaryDirectory() as folder:
        tf.saved_model.save(module, folder, signatures=signatures)
        converter = tf.lite.TFLiteConverter.from_saved_model(folder, signature_keys=list(signatures))
        converter.target_spec.supported_ops = [tf.lite.OpsSet.TFLITE_BUILTINS]
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
    # What nobody reads takes 14 % of a small file: names (signatures have their own), a buffer for each tensor without
    # values (the first buffer is there for all of these), and empty quantizations.
    full = [0, *(i for i, buffer in enumerate(model.buffers) if i and buffer.data is not None and len(buffer.data))]
    numbers = {old: new for new, old in enumerate(full)}
    model.buffers = [model.buffers[i] for i in full]
    for item in model.metadata:
        item.buffer = numbers[item.buffer]
    for tensor in (tensor for graph in model.subgraphs for tensor in graph.tensors):
        tensor.name, tensor.buffer = None, numbers.get(tensor.buffer, 0)
        if tensor.quantization and tensor.quantization.scale is None and tensor.quantization.details is None:
            tensor.quantization = None
    model.description = "A translator made by keras_transformer; see the metadata translator.json."
    buffer, entry = schema.BufferT(), schema.MetadataT()
    buffer.data = content.encode()
    entry.name, entry.buffer = "translator.json", len(model.buffers)
    model.buffers.append(buffer)
    model.metadata.append(entry)
    return bytes(flatbuffer_utils.convert_object_to_bytearray(model))
