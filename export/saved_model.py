"""A SavedModel for TensorFlow Serving: text in, translation out, no Python and no XLA.

A stock TensorFlow Serving runs with XLA disabled, and it loads the graph in a session, where `tf.saved_model.load` is
more forgiving. Hence two rules: no XLA op in the graph, and no Keras model among the tracked objects (its variables
would be listed twice, and the session restores the copies). `tests/test_export.py` loads it as the server does.
"""

import json
from pathlib import Path

import tensorflow as tf

from keras_transformer.export import ExportError, new_folder
from keras_transformer.tokenizers import END_TOKEN_ID, PAD_TOKEN_ID
from keras_transformer.translator import search


def export_saved_model(translator, path, overwrite=False, **settings):
    """Writes a SavedModel with the signature `translate`, which is `serving_default` too.

    The signature takes `text`, strings (B,), and returns `translation`, strings (B,), and `score`, float32 (B,). Its
    answers are those of `translator.translate`.

    Args:
        translator: a `keras_transformer.translator.Translator` on the TensorFlow backend.
        path: the folder of the servable; the SavedModel becomes its next numbered version, `path/1` at first.
        overwrite: whether to replace the newest version instead of adding one. Defaults to False.
        **settings: `keras_transformer.translator.SearchSettings` by name, fixed in the graph. Default to the
            translator's.

    Returns:
        The path of the version folder. It appears there complete or not at all.

    Raises:
        ExportError: the place cannot be written to.
    """
    settings = translator.settings.replace(**settings)
    if settings.sampling:
        raise ExportError("Sampling cannot be exported: a servable gives one answer. Received: sampling=True.")
    path = Path(path)
    versions = [int(p.name) for p in path.iterdir() if p.name.isdecimal()] if path.is_dir() else []
    newest = max(versions, default=0)
    final = path / str(newest if overwrite and newest else newest + 1)
    with new_folder(final) as temporary:
        module = servable(translator, settings)
        signature = module.translate.get_concrete_function()
        signatures = {"serving_default": signature, "translate": signature}
        tf.saved_model.save(module, str(temporary), signatures=signatures)
        metadata = {
            "tensorflow": tf.__version__,
            "settings": settings._asdict(),
            "max_source_length": translator.max_source_length,
        }
        (temporary / "metadata.json").write_text(json.dumps(metadata, indent=2) + "\n", encoding="utf-8")
    return final


def servable(translator, settings):
    """A `tf.Module` with the function `translate`; tracks the variables and the tokenizers' resources, nothing else."""
    model, source, target = translator.model, translator.source_tokenizer, translator.target_tokenizer

    def translate(text):
        ids = source.graph_tokenize(text)[:, : translator.max_source_length - 1]
        empty = tf.equal(ids.row_lengths(), 0)
        end = tf.fill([ids.nrows(), 1], END_TOKEN_ID)
        encoder_token_ids = tf.concat([ids, end], axis=1).to_tensor(PAD_TOKEN_ID)
        limits = tf.cast(settings.limit(tf.cast(ids.row_lengths() + 1, tf.float32)), tf.int32)
        if model.max_length:
            limits = tf.minimum(limits, model.max_length)
        longest = tf.reduce_max(tf.concat([limits, [1]], axis=0))  # Of an empty request there is no maximum.
        token_ids, scores = search(model, encoder_token_ids, limits, longest, settings)
        translation = target.graph_detokenize(token_ids[:, 0])
        return {
            "translation": tf.where(empty, "", translation),
            "score": tf.where(empty, 0.0, scores[:, 0]),
        }

    module = tf.Module()
    module.variables_of_model = [variable.value for variable in model.variables]
    module.resources = [*source.graph_resources(), *target.graph_resources()]
    signature = [tf.TensorSpec([None], tf.string, name="text")]
    module.translate = tf.function(translate, input_signature=signature, autograph=False)
    return module
