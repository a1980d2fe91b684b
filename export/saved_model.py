"""A SavedModel for TensorFlow Serving: text in, translation out, without Python and, by default, without XLA.

A stock TensorFlow Serving runs with XLA disabled, and it loads the graph in a session, which fails in cases where
`tf.saved_model.load` does not. Hence two rules: no XLA op in the graph, and no Keras model among the tracked objects
(its variables would be listed twice, and the session would restore the copies). `keras_transformer.export.verify` loads
it as the server does.

A request may have any size: the graph always searches for `ROWS` sentences at a time, sorted by length.
"""

import hashlib
import json
import tempfile
from importlib.metadata import version
from pathlib import Path

import keras
import numpy as np
import tensorflow as tf

import keras_transformer
from keras_transformer.export import check_exportable
from keras_transformer.export.serving import server_environment
from keras_transformer.export.verify import longest_target, sentences, verify_saved_model
from keras_transformer.files import full_disk_named, new_folder
from keras_transformer.search.decoder import IMPOSSIBLE, NO_HYPOTHESIS
from keras_transformer.search.search import placeholders_of, search
from keras_transformer.text.graph import (
    graph_fitted,
    graph_has_words,
    graph_joined,
    graph_plain,
    graph_protect,
    graph_protect_target,
    graph_restored,
    graph_split,
    sentence_places,
)
from keras_transformer.text.special_ids import (
    END_TOKEN_ID,
    PAD_TOKEN_ID,
    UNKNOWN_TOKEN_ID,
    shifted_right,
    without_special,
)

# Number of sentences in one search: it limits the memory of a request.
from keras_transformer.text.tokenizer import save_tokenizers
from keras_transformer.translation.compiled import BATCH_SIZES, FORWARD_ROWS

# Number of sentences in one search: it limits the memory of a request.
ROWS = BATCH_SIZES[-1]
# Maximum number of these batches at the same time, if the server has enough cores.
PARALLEL_BATCHES = 4
# XLA compiles a search for each of `BATCH_SIZES` sentences and each of these numbers of tokens.
XLA_LENGTHS = (32, 128)
PACKAGES = ("tensorflow", "tensorflow-text", "keras")


def export_saved_model(translator, path, overwrite=False, num_hypotheses=None, jit_compile=False, **settings):
    """Writes a SavedModel. Before it appears, its answers are compared with those of `translator`.

    Signatures; B is the number of sentences and may be any number, also 0:

    | signature | takes | returns |
    |---|---|---|
    | `translate` (`serving_default`, too) | `text` string (B,) | `translation` string (B,), `score` float32 (B,), |
    | | | `length` int32 (B,), `truncated` bool (B,) |
    | `translate_document` | `text` string (B,) | `translation` string (B,): whole texts, sentence by sentence |
    | `translate_nbest` | `text` string (B,) | `hypotheses` string (B, K), `scores` float32 (B, K), best first |
    | `translate_ids` | `token_ids` int32 (B, S) | `translation_ids` int32 (B, L), `score`, `length`, `truncated` |
    | `tokenize` | `text` string (B,) | `token_ids` int32 (B, S) |
    | `detokenize` | `token_ids` int32 (B, S) | `text` string (B,) |
    | `score` | `source`, `target` string (B,) | `log_prob` float32 (B,), `token_log_probs` float32 (B, T) |

    These translate into the translator's target language. A model of several directions also has `translate_to`,
    `translate_document_to`, `translate_nbest_to`, `tokenize_to` and `score_to`, which take `target_language` string
    (B,), too: codes such as "de". "" and unknown ones stand for the translator's target language; the output
    `target_language` string (B,) of `translate_to`, `translate_document_to` and `translate_nbest_to` says which one was
    used. They are signatures of their own, because a server that batches requests needs inputs with the same B.

    `translate_document` does what `Translator.translate_text` does. The output `score` is the sum of log probabilities
    divided by the length penalty, and 0 for an empty text. `length` counts the tokens of the translation and its end
    token. `truncated` says that a text had more tokens than `translator.max_source_length` and was cut. The signature
    `score` cuts targets at twice as many, or at the model's `max_length`. Token ids are padded with 0; ids outside the
    vocabulary are taken as the unknown token. If fewer than K hypotheses exist, the others are empty, with scores below
    -1e8.

    Args:
        translator: a `keras_transformer.Translator` on the TensorFlow backend.
        path: the folder of the servable; the SavedModel becomes its next numbered version, `path/1` at first.
        overwrite: whether to replace the newest version instead of adding one. Defaults to False.
        num_hypotheses: K of `translate_nbest`. Defaults to the number of beams.
        jit_compile: whether XLA compiles the search; the server must be started with XLA. At the first batch of each
            size XLA compiles for seconds. There are at most `len(BATCH_SIZES)` times `len(XLA_LENGTHS)` sizes; the
            warm-up requests have all of them. Defaults to False.
        **settings: `keras_transformer.search.settings.SearchSettings` by name, fixed in the graph. Default to the
            translator's.

    Returns:
        The path of the version folder. It appears there complete or not at all.

    Raises:
        ExportError: `path` cannot be written to, the settings cannot be exported, or the answers differ.
    """
    settings = translator.settings.replace(**{**settings, "avoid_loops": False})  # The graph searches once.
    check_exportable(translator, settings)
    num_hypotheses = settings.num_beams if num_hypotheses is None else num_hypotheses
    settings.check_num_hypotheses(num_hypotheses)
    path = Path(path)
    versions = [int(p.name) for p in path.iterdir() if p.name.isdecimal()] if path.is_dir() else []
    newest = max(versions, default=0)
    final = path / str(newest if overwrite and newest else newest + 1)
    with new_folder(final, overwrite) as temporary:
        # A folder of their own: the saver copies assets, but it empties the folder that it writes to.
        with tempfile.TemporaryDirectory() as assets:
            save_tokenizers(assets, translator.tokenizers)
            module, functions = servable(translator, settings, num_hypotheses, jit_compile)
            module.tokenizers = [tf.saved_model.Asset(str(file)) for file in sorted(Path(assets).iterdir())]
            signatures = {name: function.get_concrete_function() for name, function in functions.items()}
            signatures["serving_default"] = signatures["translate"]
            with full_disk_named(final):
                tf.saved_model.save(module, str(temporary), signatures=signatures)
        requests = warmup_requests(translator, jit_compile)
        _write_warmup(temporary / "assets.extra" / "tf_serving_warmup_requests", path.name, requests)
        _write_metadata(temporary / "metadata.json", translator, settings, num_hypotheses, jit_compile)
        environment = server_environment(translator.model.decoder_embedding.hidden_dim)
        lines = [f"{name}={value}\n" for name, value in environment.items()]
        (temporary / "serving.env").write_text("".join(lines), encoding="utf-8")
        verify_saved_model(temporary, translator)
    return final


def servable(translator, settings, num_hypotheses, jit_compile=False):
    """A `tf.Module` that tracks only variables and the tokenizers' resources, and the functions of the signatures.

    The module does not track the functions, because they would be traced and written a second time.
    """
    module = tf.Module()
    module.variables_of_model = [variable.value for variable in translator.model.variables]
    tokenizers = translator.source_tokenizer, translator.target_tokenizer
    module.resources = [resource for tokenizer in tokenizers for resource in tokenizer.graph_resources()]
    signatures = _Signatures(translator, settings, num_hypotheses, jit_compile)
    module.output_kernel = signatures.output_kernel
    text, ids = tf.TensorSpec([None], tf.string, name="text"), tf.TensorSpec([None, None], tf.int32, name="token_ids")
    pair = [tf.TensorSpec([None], tf.string, name=name) for name in ("source", "target")]
    functions = {
        "translate": (signatures.translate, [text]),
        "translate_document": (signatures.translate_document, [text]),
        "translate_nbest": (signatures.translate_nbest, [text]),
        "translate_ids": (signatures.translate_ids, [ids]),
        "tokenize": (signatures.tokenize, [text]),
        "detokenize": (signatures.detokenize, [ids]),
        "score": (signatures.score, pair),
    }
    if signatures.languages:
        language = tf.TensorSpec([None], tf.string, name="target_language")
        for name in ("translate", "translate_document", "translate_nbest", "tokenize", "score"):
            function, specs = functions[name]
            functions[f"{name}_to"] = (signatures.to(function), [*specs, language])
    return module, graph_functions(functions)


def graph_functions(functions):
    """TensorFlow functions by name, from pairs of a Python function and the `TensorSpec`s of its arguments."""
    return {
        name: tf.function(function, input_signature=specs, autograph=False)
        for name, (function, specs) in functions.items()
    }


class _Signatures:
    """The functions of the signatures; see `export_saved_model`. All signatures share one search function."""

    def __init__(self, translator, settings, num_hypotheses, jit_compile):
        self.translator, self.model = translator, translator.model
        self.source_tokenizer, self.target_tokenizer = translator.source_tokenizer, translator.target_tokenizer
        self.settings = settings.within(self.model.max_length)
        self.num_hypotheses, self.jit_compile = num_hypotheses, jit_compile
        self.num_placeholders = translator.num_placeholders
        self.languages = translator.source_tokenizer.languages
        embedding = self.model.decoder_embedding
        laid_out = embedding.tie_weights and not jit_compile  # XLA lays it out itself; an own kernel already is.
        # Once, in a variable: not again for every request.
        self.output_kernel = tf.Variable(embedding.output_kernel(), trainable=False) if laid_out else None
        self._search = None

    def to(self, function):
        """A signature's function with one more argument, the target languages of the sentences (B,)."""

        def function_to(*arguments):
            *texts, target_language = arguments
            outputs = function(*texts, target_language=target_language)
            known = tf.reduce_any(target_language[:, None] == list(self.languages), axis=1)
            used = tf.where(known, target_language, self.translator.target_language or "")
            return outputs if len(texts) > 1 or "token_ids" in outputs else {**outputs, "target_language": used}

        return function_to

    def translate(self, text, target_language=None):
        ids, text, parts = self._source(text, target_language)
        token_ids, empty, outputs = self._best(ids, text)
        translation = tf.where(empty, text, self.target_tokenizer.graph_detokenize(token_ids))
        return {"translation": self._restored(translation, parts, text), **outputs}

    def translate_document(self, text, target_language=None):
        def fits(sentences):
            # Also with a tag before them.
            lengths = self._untagged(sentences)[0].row_lengths() + bool(self.languages)
            return lengths < self.translator.max_source_length

        parts = graph_fitted(graph_split(text, self.translator.source_language), fits)
        places = sentence_places(parts)
        sentences = graph_plain(tf.gather(parts.flat_values, places))
        if target_language is not None:
            target_language = tf.gather(target_language, tf.gather(parts.value_rowids(), places))
        return {"translation": graph_joined(parts, self.translate(sentences, target_language)["translation"])}

    def translate_nbest(self, text, target_language=None):
        ids, text, parts = self._source(text, target_language)
        hypotheses, scores, empty, _ = self._hypotheses(ids, self.num_hypotheses, text)
        texts = self.target_tokenizer.graph_detokenize(tf.reshape(hypotheses, [-1, tf.shape(hypotheses)[-1]]))
        texts = tf.where(empty[:, None], text[:, None], tf.reshape(texts, tf.shape(scores)))
        if parts is not None:
            parts, text = (tf.repeat(x, self.num_hypotheses, axis=0) for x in (parts, text))
            texts = tf.reshape(self._restored(tf.reshape(texts, [-1]), parts, text), tf.shape(scores))
        return {"hypotheses": tf.where(scores < NO_HYPOTHESIS, "", texts), "scores": scores}

    def translate_ids(self, token_ids):
        known = _known(token_ids, self.source_tokenizer.vocabulary_size)
        translation_ids, _, outputs = self._best(without_special(known))
        return {"translation_ids": translation_ids, **outputs}

    def tokenize(self, text, target_language=None):
        token_ids, _ = _ended(self._cut(self._source(text, target_language)[0]))
        return {"token_ids": token_ids[:-1]}

    def detokenize(self, token_ids):
        known = _known(token_ids, self.target_tokenizer.vocabulary_size)
        return {"text": self.target_tokenizer.graph_detokenize(known)}

    def score(self, source, target, target_language=None):
        with tf.control_dependencies(
            [tf.debugging.assert_equal(tf.size(source), tf.size(target), "Each target translates its source")]
        ):
            ids, _, _ = self._source(source, target_language)
            source_ids, source_lengths = _ended(self._cut(ids))
        if self.num_placeholders:
            target = graph_protect_target(target, graph_protect(source, self.num_placeholders)[1])
        target_ids = self.target_tokenizer.graph_tokenize(target)
        if self.translator.begins_with_tag:
            target_ids = tf.concat([ids[:, :1], target_ids], axis=1)
        labels, target_lengths = _ended(target_ids[:, : longest_target(self.translator) - 1])

        def one_batch(rows):
            wanted = tf.gather(labels, rows)[:, : tf.reduce_max(tf.gather(target_lengths, rows))]
            inputs = {
                "encoder_token_ids": tf.gather(source_ids, rows)[:, : tf.reduce_max(tf.gather(source_lengths, rows))],
                "decoder_token_ids": shifted_right(wanted),
            }
            log_probs = tf.nn.log_softmax(tf.cast(self.model(inputs), tf.float32))
            log_probs = tf.where(wanted == PAD_TOKEN_ID, 0.0, tf.gather(log_probs, wanted, batch_dims=2))
            if self.translator.begins_with_tag:  # The tag does not count.
                log_probs = tf.pad(log_probs[:, 1:], [[0, 0], [1, 0]])
            return tf.pad(log_probs, [[0, 0], [0, tf.shape(labels)[1] - tf.shape(wanted)[1]]])

        spec = tf.TensorSpec([None, None], tf.float32)
        (log_probs,) = _in_batches(one_batch, target_lengths, (spec,), FORWARD_ROWS)
        return {"log_prob": tf.reduce_sum(log_probs, axis=-1), "token_log_probs": log_probs}

    def _source(self, text, target_language):
        """Strings (B,) -> ragged token ids; the text with placeholders, "" if it has none; and its parts or None.

        A translation of a text without words is that text.
        """
        ids, text, parts = self._untagged(text)
        if target_language is not None or self.translator.target_language is not None:
            ids = self._tagged(ids, target_language)
        if parts is not None:  # A part whose placeholder was cut is not in the translation.
            present = placeholders_of(self._cut(ids).to_tensor(PAD_TOKEN_ID), self.num_placeholders)
            parts = tf.where(present | ~graph_has_words(text)[:, None], parts, "")
        return ids, text, parts

    def _tagged(self, ids, target_language):
        """Ragged token ids behind the tags of languages (B,), or of the translator's language if that is None."""
        tags = tf.fill([ids.nrows()], self.languages.get(self.translator.target_language, 0))
        if target_language is not None:
            for language, tag in self.languages.items():
                tags = tf.where(target_language == language, tag, tags)
        tagged = (tags > 0) & (ids.row_lengths() > 0)  # A text without tokens is not translated.
        tags = tf.RaggedTensor.from_row_lengths(tf.boolean_mask(tags, tagged), tf.cast(tagged, ids.row_splits.dtype))
        return tf.concat([tags, ids], axis=1)

    def _untagged(self, text):
        """`_source` without language tags, and with all parts."""
        if not self.num_placeholders:
            return self.source_tokenizer.graph_tokenize(text), tf.fill(tf.shape(text), ""), None
        text, parts = graph_protect(text, self.num_placeholders)
        ids = self.source_tokenizer.graph_tokenize(text)
        return ids, tf.where(parts[:, 0] == "", "", text), parts

    def _restored(self, text, parts, source):
        return text if parts is None else graph_restored(text, parts, source)

    def _best(self, ids, text=None):
        """Ragged token ids -> token ids (B, L) of the best hypothesis, empty (B,), and the other outputs."""
        hypotheses, scores, empty, truncated = self._hypotheses(ids, 1, text)
        token_ids = hypotheses[:, 0]
        length = tf.math.count_nonzero(token_ids != PAD_TOKEN_ID, axis=-1, dtype=tf.int32)
        return token_ids, empty, {"score": scores[:, 0], "length": length, "truncated": truncated}

    def _hypotheses(self, ids, k, text=None):
        """Ragged token ids without special ones -> hypotheses (B, k, L), scores (B, k), empty (B,), truncated (B,).

        A `text` of `_source` that has placeholders and no words is empty, too.
        """
        truncated = ids.row_lengths() > self.translator.max_source_length - 1
        if text is not None and self.num_placeholders:
            kept = (text != "") & ~graph_has_words(text)
            truncated &= ~kept
            ids = tf.ragged.boolean_mask(ids, ids.with_flat_values(tf.gather(~kept, ids.value_rowids())))
        token_ids, lengths = _ended(self._cut(ids))
        limits = tf.where(lengths > 1, self.settings.limits(lengths), 1)  # Empty input needs no search.
        longest = tf.reduce_max(limits)

        def one_batch(rows):
            width = tf.reduce_max(tf.gather(lengths, rows))
            batch = tf.gather(token_ids, rows)[:, :width], tf.gather(limits, rows)
            hypotheses, scores = self._search_function()(*batch, k)
            padding = [[0, 0], [0, 0], [0, tf.maximum(longest - tf.shape(hypotheses)[2], 0)]]
            hypotheses = tf.pad(hypotheses, padding, constant_values=PAD_TOKEN_ID)
            return hypotheses[:, :k, :longest], scores[:, :k]

        specs = tf.TensorSpec([None, k, None], tf.int32), tf.TensorSpec([None, k], tf.float32)
        hypotheses, scores = _in_batches(one_batch, lengths, specs)
        empty = lengths[:-1] <= 1
        return *mask_empty_inputs(empty, hypotheses, scores, k), empty, truncated

    def _search_function(self):
        """One function for all signatures: a graph with two searches would take twice as long to load."""
        if self._search is None:

            def function(token_ids, limits, num_hypotheses):
                if self.jit_compile:
                    return self._compiled_search(token_ids, limits)
                limit = tf.reduce_max(limits)
                return search(
                    self,
                    token_ids,
                    limits,
                    limit,
                    self.settings,
                    num_hypotheses,
                    **self.translator.search_arguments(token_ids),
                )

            shapes = (tf.int32, [None, None]), (tf.int32, [None]), (tf.int32, [])
            specs = [tf.TensorSpec(shape, dtype) for dtype, shape in shapes]
            self._search = tf.function(function, input_signature=specs, autograph=False)
        return self._search

    def _compiled_search(self, token_ids, limits):
        """The search in functions that XLA compiles, one for each shape; batches are padded to these shapes."""
        rows, length = tf.unstack(tf.shape(token_ids))
        lengths = _xla_lengths(self.translator)

        def branch(some_rows, some_length):
            limit = int(self.settings.limits(np.array([some_length]))[0])
            specs = [tf.TensorSpec([some_rows, some_length], tf.int32), tf.TensorSpec([some_rows], tf.int32)]

            @tf.function(input_signature=specs, jit_compile=True, autograph=False)
            def compiled(token_ids, limits):
                hypotheses = search(
                    self.model,
                    token_ids,
                    limits,
                    limit,
                    self.settings,
                    self.num_hypotheses,
                    jit_compile=True,
                    **self.translator.search_arguments(token_ids),
                )
                return tuple(hypotheses)

            def call():
                more = some_rows - rows
                ended = tf.pad(tf.fill([more, 1], END_TOKEN_ID), [[0, 0], [0, some_length - 1]])
                filled = tf.concat([tf.pad(token_ids, [[0, 0], [0, some_length - length]]), ended], axis=0)
                filled_limits = tf.minimum(tf.pad(limits, [[0, more]], constant_values=1), limit)
                hypotheses, scores = compiled(filled, filled_limits)
                return hypotheses[:rows], scores[:rows]

            return call

        # The index of the smallest shape that the batch fits into.
        place = tf.reduce_sum(tf.cast(rows > BATCH_SIZES[:-1], tf.int32)) * len(lengths)
        place += tf.reduce_sum(tf.cast(length > lengths[:-1], tf.int32))
        branches = [branch(some_rows, some_length) for some_rows in BATCH_SIZES for some_length in lengths]
        return tf.switch_case(place, branches)

    def start_decoding(self, *arguments):
        """The model's decoder with the output kernel in its variable, for `search`."""
        return self.model.start_decoding(*arguments, output_kernel=self.output_kernel)

    def _cut(self, ids):
        """Ragged source ids, cut to the model's limit with room for the end token."""
        return ids[:, : self.translator.max_source_length - 1]


def mask_empty_inputs(empty, token_ids, scores, num_hypotheses):
    """Hypotheses (B, K, L) and scores (B, K) in which each empty input (B,) has one hypothesis, the empty one."""
    of_empty = tf.constant([0.0] + [2 * IMPOSSIBLE] * (num_hypotheses - 1))
    return tf.where(empty[:, None, None], PAD_TOKEN_ID, token_ids), tf.where(empty[:, None], of_empty, scores)


def _xla_lengths(translator):
    longest = translator.max_source_length
    return [length for length in XLA_LENGTHS if length < longest] + [longest]


def warmup_requests(translator, jit_compile=False):
    """Lists of texts that a server translates before it is ready. With XLA there is one list for each shape."""
    if not jit_compile:
        texts = sentences(translator, 8)
        return [texts[:count] for count in (1, 2, 4, 8)]
    rng = np.random.default_rng(0)
    tokenizer = translator.source_tokenizer
    requests, shorter = [], 1
    for length in _xla_lengths(translator):
        for rows in BATCH_SIZES:
            # A length between two sizes: tokenized again, the text may have fewer or more tokens.
            ids = rng.integers(END_TOKEN_ID + 1, tokenizer.vocabulary_size, (rows, (shorter + length) // 2))
            requests.append([text.encode() for text in tokenizer.detokenize(ids)])
        shorter = length
    return requests


def _ended(ids):
    """Ragged ids (B, None) -> padded ids (B + 1, S) that end with the end token, and their lengths (B + 1,).

    The added row is empty: it lets empty requests run, and it fills up the last batch.
    """
    lengths = tf.concat([tf.cast(ids.row_lengths(), tf.int32), [0]], axis=0)
    token_ids = tf.pad(ids.to_tensor(PAD_TOKEN_ID), [[0, 1], [0, 1]], constant_values=PAD_TOKEN_ID)
    here = tf.range(tf.shape(token_ids)[1]) == lengths[:, None]
    return tf.where(here, END_TOKEN_ID, token_ids), lengths + 1


def _in_batches(function, lengths, specs, most=ROWS):
    """Calls `function(rows)` with at most `most` rows of similar length at a time; the last row is only for filling up.

    So only the memory of the answer grows with the request.
    """
    count = tf.size(lengths) - 1
    number = tf.maximum(1, (count + most - 1) // most)
    size = tf.maximum(1, (count + number - 1) // number)
    order = tf.argsort(lengths[:-1], direction="DESCENDING")
    order = tf.concat([order, tf.fill([number * size - count], count)], axis=0)
    outputs = tf.map_fn(
        function,
        tf.reshape(order, [number, size]),
        fn_output_signature=specs if len(specs) > 1 else specs[0],
        parallel_iterations=PARALLEL_BATCHES,
    )
    back = tf.argsort(order)[:count]
    outputs = outputs if len(specs) > 1 else (outputs,)
    return [tf.gather(tf.reshape(x, tf.concat([[-1], tf.shape(x)[2:]], 0)), back) for x in outputs]


def _known(token_ids, vocabulary_size):
    """Ids, with the unknown token for ids outside the vocabulary: with these, kernels would read foreign memory.

    An error instead would also fail the requests of other clients that a server puts into the same batch.
    """
    known = (token_ids >= 0) & (token_ids < vocabulary_size)
    return tf.where(known, token_ids, UNKNOWN_TOKEN_ID)


def _write_warmup(path, name, requests):
    """Writes requests that the server answers before it is ready, so that slow first calls happen there."""
    path.parent.mkdir()
    with tf.io.TFRecordWriter(str(path)) as writer:
        for texts in requests:
            text = tf.make_tensor_proto(texts, tf.string, [len(texts)])
            writer.write(_prediction_log(name, "translate", {"text": text}))


def _prediction_log(name, signature, inputs):
    """A serialized `tensorflow.serving.PredictionLog`. It is written by hand to need no package for its classes.

    PredictionLog.predict_log = 6, PredictLog.request = 1; PredictRequest.model_spec = 1, .inputs = 2 (a map: key = 1,
    value = 2); ModelSpec.name = 1, .signature_name = 3.
    """

    def field(number, content):
        length, size = len(content), bytearray()
        while length > 127:
            size.append(length & 127 | 128)
            length >>= 7
        return bytes([number << 3 | 2]) + bytes(size) + bytes([length]) + content

    request = field(1, field(1, name.encode()) + field(3, signature.encode()))
    for key, value in inputs.items():
        request += field(2, field(1, key.encode()) + field(2, value.SerializeToString()))
    return field(6, field(1, request))


def _write_metadata(path, translator, settings, num_hypotheses, jit_compile):
    weights = hashlib.sha256()
    for array in translator.model.get_weights():
        weights.update(array.tobytes())
    metadata = {
        "versions": {"keras_transformer": keras_transformer.__version__, **{name: version(name) for name in PACKAGES}},
        "weights_sha256": weights.hexdigest(),
        "model": keras.saving.serialize_keras_object(translator.model)["config"],
        "settings": vars(settings),
        "num_hypotheses": num_hypotheses,
        "jit_compile": jit_compile,
        "max_source_length": translator.max_source_length,
        "languages": list(translator.source_tokenizer.languages),
        "target_language": translator.target_language,
    }
    if translator.run:
        metadata["run_config"], metadata["run_scores"] = translator.run.config().to_dict(), translator.run.scores()
    path.write_text(json.dumps(metadata, indent=2) + "\n", encoding="utf-8")
