"""A translator for devices: TFLite files with token ids in and out, of built-in operations only.

The search is the one of `keras_transformer.decoding`, with its loop and cache inside the file. Lengths are fixed: some
runtimes (LiteRT in a browser) take no others.
"""

import json
import tempfile
from importlib.metadata import version
from pathlib import Path

import tensorflow as tf

from keras_transformer import decoding
from keras_transformer.export import ExportError, new_folder
from keras_transformer.export.run_tflite import TFLiteTranslator
from keras_transformer.export.verify import close, sentences
from keras_transformer.tokenizers import END_TOKEN_ID, PAD_TOKEN_ID, START_TOKEN_ID, UNKNOWN_TOKEN_ID
from keras_transformer.translator import Translator, save_tokenizers, search

QUANTIZATIONS = ("none", "float16", "int8")


def export_tflite(translator, path, quantize="none", overwrite=False, source_length=64, target_length=64, **settings):
    """Writes a folder with `translator.tflite`, `translator.json` and the tokenizers.

    Signatures; S and L are the fixed lengths, K the beams:

    | signature | takes | returns |
    |---|---|---|
    | `translate` | `token_ids` int32 (1, S) | `translation_ids` int32 (1, L), `score` float32 (1,): greedy search |
    | `translate_beam` | `token_ids` int32 (1, S) | `hypothesis_ids` int32 (1, K, L), `scores` float32 (1, K) |
    | `encode` | `token_ids` int32 (1, S) | `cross_keys`, `cross_values`, `cross_bias` float32 |
    | `decode_step` | `token` int32 (1,), `position` int32 (1,), `self_keys`, `self_values`, `cross_keys_in`, |
    | | `cross_values_in`, `cross_bias_in` | `logits` float32 (1, V), `next_self_keys`, `next_self_values` |

    | `attention` | `token_ids` int32 (1, S), `translation_ids` int32 (1, L) | `scores` float32 (1, layers, N, L, S): |
    | | | where each head looked in the source to write each token |

    `token_ids` are those of a text, the end token behind them, padded with 0. Caches begin with zeros.

    Args:
        translator: a `keras_transformer.translator.Translator` on the TensorFlow backend.
        path: the folder to write.
        quantize: how weights are stored: `"none"` (float32), `"float16"`, or `"int8"` (dynamic range: products are
            computed in int8, too). Defaults to `"none"`.
        overwrite: whether to replace the folder if it exists. Defaults to False.
        source_length: S, tokens of the longest source, its end token included; longer ones are cut. Defaults to 64.
        target_length: L, most tokens of a translation, the end token included. Defaults to 64.
        **settings: `keras_transformer.translator.SearchSettings` by name. Default to the translator's.

    Returns:
        The path of the folder, and the share of sentences that it translates as Python does, 1 unless quantised.

    Raises:
        ExportError: the place cannot be written to, the settings cannot be exported, or the answers differ.
    """
    settings = translator.settings.replace(**settings)
    if settings.sampling:
        raise ExportError("Sampling cannot be exported: there are no random numbers. Received: sampling=True.")
    if quantize not in QUANTIZATIONS:
        raise ExportError(f"`quantize` must be one of {QUANTIZATIONS}. Received: {quantize!r}.")
    longest = translator.model.max_length
    if min(source_length, target_length) < 2 or (longest and max(source_length, target_length) > longest):
        most = f" and at most {longest}, as many positions as were learned" if longest else ""
        raise ExportError(
            f"`source_length` and `target_length` must be at least 2{most}. "
            f"Received: source_length={source_length}, target_length={target_length}."
        )
    path = Path(path)
    if path.exists() and not overwrite:
        raise ExportError(f"{path} exists. Replace it with --overwrite, or choose another --output.")
    settings = settings.replace(max_length=min(settings.max_length or target_length, target_length))
    # What Python says with these lengths.
    reference = Translator(
        translator.model,
        translator.source_tokenizer,
        translator.target_tokenizer,
        max_source_length=source_length,
        jit_compile=False,
        **settings._asdict(),
    )
    with new_folder(path) as temporary:
        tokenizers = save_tokenizers(temporary, translator.tokenizers)
        (temporary / "translator.tflite").write_bytes(convert(module(reference, target_length), quantize))
        metadata = {
            "source_length": source_length,
            "target_length": target_length,
            "quantize": quantize,
            "tokenizers": tokenizers,
            "pad_token_id": PAD_TOKEN_ID,
            "unknown_token_id": UNKNOWN_TOKEN_ID,
            "start_token_id": START_TOKEN_ID,
            "end_token_id": END_TOKEN_ID,
            "settings": settings._asdict(),
            "versions": {name: version(name) for name in ("keras_transformer", "tensorflow", "keras")},
        }
        (temporary / "translator.json").write_text(json.dumps(metadata, indent=2) + "\n", encoding="utf-8")
        same = _compare(temporary, reference, quantize == "none")
    return path, same


def module(translator, target_length):
    """A `tf.Module` with functions, `endpoints`, of one sentence."""
    model, settings = translator.model, translator.settings
    source = tf.TensorSpec([1, translator.max_source_length], tf.int32, name="token_ids")

    def find(token_ids, settings):
        length = tf.reduce_sum(tf.cast(token_ids != PAD_TOKEN_ID, tf.int32), axis=1)
        limits = tf.minimum(tf.cast(settings.limit(tf.cast(length, tf.float32)), tf.int32), target_length)
        found = search(
            model, token_ids, limits, target_length, settings, num_hypotheses=settings.num_beams, in_place=True
        )
        empty = length <= 1  # Nothing is translated to nothing.
        of_nothing = tf.constant([[0.0] + [2 * decoding.IMPOSSIBLE] * (settings.num_beams - 1)])
        return (
            tf.where(empty[:, None, None], PAD_TOKEN_ID, found.token_ids),
            tf.where(empty[:, None], of_nothing, found.scores),
        )

    def translate(token_ids):
        found, scores = find(token_ids, settings.replace(num_beams=1))
        return {"translation_ids": found[:, 0], "score": scores[:, 0]}

    def translate_beam(token_ids):
        found, scores = find(token_ids, settings)
        return {"hypothesis_ids": found, "scores": scores}

    def encode(token_ids):
        pairs, bias = model.init_cross_cache(*model.encode(token_ids))
        keys, values = zip(*pairs, strict=True)
        return {"cross_keys": tf.concat(keys, 0), "cross_values": tf.concat(values, 0), "cross_bias": bias}

    def attention(token_ids, translation_ids):
        shifted = tf.concat([[[START_TOKEN_ID]], translation_ids[:, :-1]], axis=1)
        return {"scores": tf.stack(model.attention_scores(token_ids, shifted).cross, axis=1)}

    layers = len(model.decoder_blocks)

    def pairs(keys, values):
        return list(zip(tf.split(keys, layers), tf.split(values, layers), strict=True))

    def decode_step(token, position, self_keys, self_values, cross_keys_in, cross_values_in, cross_bias_in):
        cross = pairs(cross_keys_in, cross_values_in), cross_bias_in
        cache = pairs(self_keys, self_values)
        logits, cache = model.decode_step(token, cache, tf.reshape(position, []), cross, in_place=True)
        keys, values = zip(*cache, strict=True)
        return {"logits": logits, "next_self_keys": tf.concat(keys, 0), "next_self_values": tf.concat(values, 0)}

    heads = model.decoder_blocks[0].self_attention
    rows, width, length = layers * heads.num_heads, heads.key_dim, translator.max_source_length
    one = {name: tf.TensorSpec([1], tf.int32, name=name) for name in ("token", "position")}
    floats = {
        "self_keys": [rows, width, target_length],
        "self_values": [rows, target_length, width],
        "cross_keys_in": [rows, width, length],
        "cross_values_in": [rows, length, width],
        "cross_bias_in": [heads.num_heads, 1, length],
    }
    specs = [*one.values(), *(tf.TensorSpec(shape, tf.float32, name=name) for name, shape in floats.items())]
    whole = {"translate": translate, "translate_beam": translate_beam, "encode": encode}
    if settings.num_beams == 1:
        del whole["translate_beam"]
    endpoints = {name: tf.function(f, input_signature=[source], autograph=False) for name, f in whole.items()}
    translation = tf.TensorSpec([1, target_length], tf.int32, name="translation_ids")
    endpoints["attention"] = tf.function(attention, input_signature=[source, translation], autograph=False)
    endpoints["decode_step"] = tf.function(decode_step, input_signature=specs, autograph=False)
    made = tf.Module()
    made.endpoints = endpoints
    made.variables_of_model = [variable.value for variable in model.variables]
    return made


def convert(made, quantize):
    """The TFLite file of a module with `endpoints`, bytes."""
    with tempfile.TemporaryDirectory() as folder:
        tf.saved_model.save(made, folder, signatures=made.endpoints)
        converter = tf.lite.TFLiteConverter.from_saved_model(folder, signature_keys=list(made.endpoints))
        converter.target_spec.supported_ops = [tf.lite.OpsSet.TFLITE_BUILTINS]
        if quantize != "none":
            converter.optimizations = [tf.lite.Optimize.DEFAULT]
        if quantize == "float16":
            converter.target_spec.supported_types = [tf.float16]
        return converter.convert()


def _compare(folder, reference, exact):
    """The share of sentences with Python's translation; with `exact` a difference is an error."""
    exported = TFLiteTranslator(folder / "translator.tflite")
    texts = [text.decode("utf-8", errors="replace") for text in sentences(reference)]
    ids = reference.encode_sources(texts)
    problems, count = [], 0
    for num_beams in sorted({1, reference.settings.num_beams}):
        expected = reference.translate(texts, num_beams=num_beams, return_scores=True)
        for text, source, wanted in zip(texts, ids, expected, strict=True):
            found, score = exported.translate_ids(source, beam=num_beams > 1)[0]
            same = tuple(found) == wanted.token_ids
            count += same
            # Another translation of the same score is as good: rounding may break a tie.
            if not same and not close(wanted.score, score):
                problems.append(f"{text[:60]!r}: {wanted.token_ids} became {tuple(found)}")
    if problems and exact:
        raise ExportError(f"{folder} does not give the translator's answers:\n  " + "\n  ".join(problems))
    return count / len(texts) / len({1, reference.settings.num_beams})
