"""The functions of a SavedModel's signatures.

A request may have any size: the graph always searches for `ROWS` sentences at a time, sorted by length.
"""

from collections.abc import Callable, Sequence

import numpy as np
import tensorflow as tf

from keras_transformer.export.graph_codec import GraphCodec, known_ids
from keras_transformer.export.verify import longest_target
from keras_transformer.models.decoding import token_log_probs
from keras_transformer.search.decoder import IMPOSSIBLE, NO_HYPOTHESIS, Decoder
from keras_transformer.search.search import placeholders_of, search
from keras_transformer.search.settings import SearchSettings
from keras_transformer.text.graph import graph_fitted, graph_joined, graph_plain, graph_split, sentence_places
from keras_transformer.text.special_ids import END_TOKEN_ID, PAD_TOKEN_ID, shifted_right
from keras_transformer.translation.compiled import BATCH_SIZES, FORWARD_ROWS
from keras_transformer.translation.translator import Translator

# Number of sentences in one search: it limits the memory of a request.
ROWS = BATCH_SIZES[-1]
# Maximum number of these batches at the same time, if the server has enough cores.
PARALLEL_BATCHES = 4
# XLA compiles a search for each of `BATCH_SIZES` sentences and each of these numbers of tokens.
XLA_LENGTHS = (32, 128)

Outputs = dict[str, tf.Tensor]


def servable(
    translator: Translator, settings: SearchSettings, num_hypotheses: int, jit_compile: bool = False
) -> tuple[tf.Module, dict[str, Callable]]:
    """A `tf.Module` that tracks only variables and the tokenizers' resources, and the functions of the signatures.

    The module does not track the functions, because they would be traced and written a second time.
    """
    module = tf.Module()
    module.variables_of_model = [variable.value for variable in translator.model.variables]
    module.resources = [x for tokenizer in translator.codec.tokenizers for x in tokenizer.graph_resources()]
    signatures = Signatures(translator, settings, num_hypotheses, jit_compile)
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
    if signatures.codec.languages:
        language = tf.TensorSpec([None], tf.string, name="target_language")
        for name in ("translate", "translate_document", "translate_nbest", "tokenize", "score"):
            function, specs = functions[name]
            functions[f"{name}_to"] = (function, [*specs, language])
    return module, graph_functions(functions)


def graph_functions(functions: dict[str, tuple[Callable, Sequence[tf.TensorSpec]]]) -> dict[str, Callable]:
    """TensorFlow functions by name, from pairs of a Python function and the `TensorSpec`s of its arguments."""
    return {name: tf.function(f, input_signature=specs, autograph=False) for name, (f, specs) in functions.items()}


class Signatures:
    """The functions of the signatures; see `keras_transformer.export.saved_model`. They share one search function."""

    def __init__(self, translator: Translator, settings: SearchSettings, num_hypotheses: int, jit_compile: bool):
        self.model, self.codec = translator.model, GraphCodec(translator.codec)
        self.vocabulary = translator.search.vocabulary(translator.shortlist)
        self.max_source_length, self.max_target_length = translator.codec.max_source_length, longest_target(translator)
        self.source_language = translator.source_language
        self.settings = settings.within(self.model.max_length)
        self.num_hypotheses, self.jit_compile = num_hypotheses, jit_compile
        embedding = self.model.decoder_embedding
        laid_out = embedding.tie_weights and not jit_compile  # XLA lays it out itself; an own kernel already is.
        # Once, in a variable: not again for every request.
        self.output_kernel = tf.Variable(embedding.output_kernel(), trainable=False) if laid_out else None
        # One function for all signatures: a graph with two searches would take twice as long to load.
        specs = tf.TensorSpec([None, None], tf.int32), tf.TensorSpec([None], tf.int32), tf.TensorSpec([], tf.int32)
        search_function = self._compiled_search if jit_compile else self._search_of_graph
        self._search = tf.function(search_function, input_signature=specs, autograph=False)

    def translate(self, text: tf.Tensor, target_language: tf.Tensor | None = None) -> Outputs:
        sentences = self.codec.encode(text, target_language)
        token_ids, outputs = self._best(sentences)
        outputs["translation"] = self.codec.decode(token_ids[:, None], sentences)[:, 0]
        return outputs | self._used(target_language)

    def translate_document(self, text: tf.Tensor, target_language: tf.Tensor | None = None) -> Outputs:
        parts = graph_fitted(graph_split(text, self.source_language), self.codec.fits)
        places = sentence_places(parts)
        sentences = graph_plain(tf.gather(parts.flat_values, places))
        languages = target_language
        if languages is not None:
            languages = tf.gather(languages, tf.gather(parts.value_rowids(), places))
        translations = self.translate(sentences, languages)["translation"]
        return {"translation": graph_joined(parts, translations), **self._used(target_language)}

    def translate_nbest(self, text: tf.Tensor, target_language: tf.Tensor | None = None) -> Outputs:
        sentences = self.codec.encode(text, target_language)
        token_ids, scores = self._hypotheses(sentences, self.num_hypotheses)
        texts = tf.where(scores < NO_HYPOTHESIS, "", self.codec.decode(token_ids, sentences))
        return {"hypotheses": texts, "scores": scores, **self._used(target_language)}

    def translate_ids(self, token_ids: tf.Tensor) -> Outputs:
        translation_ids, outputs = self._best(self.codec.encode_ids(token_ids))
        return {"translation_ids": translation_ids, **outputs}

    def tokenize(self, text: tf.Tensor, target_language: tf.Tensor | None = None) -> Outputs:
        sentences = self.codec.encode(text, target_language)
        token_ids, _ = _ended(sentences.ids)
        return {"token_ids": token_ids[:-1], "truncated": sentences.truncated}

    def detokenize(self, token_ids: tf.Tensor) -> Outputs:
        tokenizer = self.codec.codec.target_tokenizer
        return {"text": tokenizer.graph_detokenize(known_ids(token_ids, tokenizer.vocabulary_size))}

    def score(self, source: tf.Tensor, target: tf.Tensor, target_language: tf.Tensor | None = None) -> Outputs:
        check = tf.debugging.assert_equal(tf.size(source), tf.size(target), "Each target translates its source")
        with tf.control_dependencies([check]):
            sentences = self.codec.encode(source, target_language)
            source_ids, source_lengths = _ended(sentences.ids)
        labels, target_lengths = _ended(self.codec.encode_targets(target, source, sentences, self.max_target_length))

        def one_batch(rows):
            wanted = tf.gather(labels, rows)[:, : tf.reduce_max(tf.gather(target_lengths, rows))]
            inputs = {
                "encoder_token_ids": tf.gather(source_ids, rows)[:, : tf.reduce_max(tf.gather(source_lengths, rows))],
                "decoder_token_ids": shifted_right(wanted),
            }
            log_probs = token_log_probs(self.model(inputs), wanted, self.vocabulary.begins_with_tag)
            return (tf.pad(log_probs, [[0, 0], [0, tf.shape(labels)[1] - tf.shape(wanted)[1]]]),)

        spec = tf.TensorSpec([None, None], tf.float32)
        (log_probs,) = _in_batches(one_batch, target_lengths, (spec,), FORWARD_ROWS)
        return {"log_prob": tf.reduce_sum(log_probs, axis=-1), "token_log_probs": log_probs}

    def _used(self, target_language):
        """The output that says which languages (B,) were used, if any were given."""
        return {} if target_language is None else {"target_language": self.codec.used_language(target_language)}

    def _best(self, sentences):
        """Token ids (B, L) of the best hypothesis of each of the `Sentences`, and the other outputs."""
        token_ids, scores = self._hypotheses(sentences, 1)
        length = tf.math.count_nonzero(token_ids[:, 0] != PAD_TOKEN_ID, axis=-1, dtype=tf.int32)
        return token_ids[:, 0], {"score": scores[:, 0], "length": length, "truncated": sentences.truncated}

    def _hypotheses(self, sentences, k):
        """Hypotheses (B, k, L) of `Sentences` and their scores (B, k)."""
        ids = sentences.ids
        if sentences.parts is not None:  # What does not change needs no search.
            searched = tf.gather(~sentences.unchanged, ids.value_rowids())
            ids = tf.ragged.boolean_mask(ids, ids.with_flat_values(searched))
        token_ids, lengths = _ended(ids)
        limits = tf.where(lengths > 1, self.settings.limits(lengths), 1)  # Empty input needs no search.
        longest = tf.reduce_max(limits)

        def one_batch(rows):
            width = tf.reduce_max(tf.gather(lengths, rows))
            batch = tf.gather(token_ids, rows)[:, :width], tf.gather(limits, rows)
            hypotheses, scores = self._search(*batch, k)
            padding = [[0, 0], [0, 0], [0, tf.maximum(longest - tf.shape(hypotheses)[2], 0)]]
            hypotheses = tf.pad(hypotheses, padding, constant_values=PAD_TOKEN_ID)
            return hypotheses[:, :k, :longest], scores[:, :k]

        specs = tf.TensorSpec([None, k, None], tf.int32), tf.TensorSpec([None, k], tf.float32)
        hypotheses, scores = _in_batches(one_batch, lengths, specs)
        return mask_empty_inputs(lengths[:-1] <= 1, hypotheses, scores, k)

    def _search_of_graph(self, token_ids, limits, num_hypotheses):
        return self._searched(token_ids, limits, tf.reduce_max(limits), num_hypotheses)

    def _searched(self, token_ids, limits, max_length, num_hypotheses):
        required = placeholders_of(token_ids, self.vocabulary.num_placeholders)
        shared = {"required": required, "vocabulary": self.vocabulary, "jit_compile": self.jit_compile}
        return tuple(search(self, token_ids, limits, max_length, self.settings, num_hypotheses, **shared))

    def start_decoding(self, *arguments) -> Decoder:
        """The decoder of `search`: the model's, with the output kernel in its variable."""
        return self.model.start_decoding(*arguments, output_kernel=self.output_kernel)

    def _compiled_search(self, token_ids, limits, num_hypotheses):
        """The search in functions that XLA compiles, one for each shape; batches are padded to these shapes.

        `num_hypotheses`, a tensor, is not a shape: it always finds those of `translate_nbest`.
        """
        rows, length = tf.unstack(tf.shape(token_ids))
        lengths = xla_lengths(self.max_source_length)

        def branch(max_rows, max_length):
            limit = int(self.settings.limits(np.array([max_length]))[0])
            specs = tf.TensorSpec([max_rows, max_length], tf.int32), tf.TensorSpec([max_rows], tf.int32)

            @tf.function(input_signature=specs, jit_compile=True, autograph=False)
            def compiled(token_ids, limits):
                return self._searched(token_ids, limits, limit, self.num_hypotheses)

            def call():
                missing = max_rows - rows
                empty = tf.pad(tf.fill([missing, 1], END_TOKEN_ID), [[0, 0], [0, max_length - 1]])
                filled = tf.concat([tf.pad(token_ids, [[0, 0], [0, max_length - length]]), empty], axis=0)
                filled_limits = tf.minimum(tf.pad(limits, [[0, missing]], constant_values=1), limit)
                hypotheses, scores = compiled(filled, filled_limits)
                return hypotheses[:rows], scores[:rows]

            return call

        # The index of the smallest shape that the batch fits into.
        place = tf.reduce_sum(tf.cast(rows > BATCH_SIZES[:-1], tf.int32)) * len(lengths)
        place += tf.reduce_sum(tf.cast(length > lengths[:-1], tf.int32))
        branches = [branch(max_rows, max_length) for max_rows in BATCH_SIZES for max_length in lengths]
        return tf.switch_case(place, branches)


def mask_empty_inputs(
    empty: tf.Tensor, token_ids: tf.Tensor, scores: tf.Tensor, num_hypotheses: int
) -> tuple[tf.Tensor, tf.Tensor]:
    """Hypotheses (B, K, L) and scores (B, K) in which each empty input (B,) has one hypothesis, the empty one."""
    of_empty = tf.constant([0.0] + [2 * IMPOSSIBLE] * (num_hypotheses - 1))
    return tf.where(empty[:, None, None], PAD_TOKEN_ID, token_ids), tf.where(empty[:, None], of_empty, scores)


def xla_lengths(longest: int) -> list[int]:
    """The numbers of source tokens that XLA compiles for, if sources have at most `longest`."""
    return [length for length in XLA_LENGTHS if length < longest] + [longest]


def _ended(ids):
    """Ragged ids (B, None) -> padded ids (B + 1, S) that end with the end token, and their lengths (B + 1,).

    The added row is empty: it lets empty requests run, and it fills up the last batch.
    """
    lengths = tf.concat([tf.cast(ids.row_lengths(), tf.int32), [0]], axis=0)
    token_ids = tf.pad(ids.to_tensor(PAD_TOKEN_ID), [[0, 1], [0, 1]], constant_values=PAD_TOKEN_ID)
    here = tf.range(tf.shape(token_ids)[1]) == lengths[:, None]
    return tf.where(here, END_TOKEN_ID, token_ids), lengths + 1


def _in_batches(function, lengths, specs, max_rows=ROWS):
    """Calls `function(rows)` with at most `max_rows` rows of similar length at a time; the last row only fills up.

    So only the memory of the answer grows with the request.
    """
    count = tf.size(lengths) - 1
    number = tf.maximum(1, (count + max_rows - 1) // max_rows)
    size = tf.maximum(1, (count + number - 1) // number)
    order = tf.argsort(lengths[:-1], direction="DESCENDING")
    order = tf.concat([order, tf.fill([number * size - count], count)], axis=0)
    batches = tf.reshape(order, [number, size])
    outputs = tf.map_fn(function, batches, fn_output_signature=specs, parallel_iterations=PARALLEL_BATCHES)
    back = tf.argsort(order)[:count]
    return [tf.gather(tf.reshape(x, tf.concat([[-1], tf.shape(x)[2:]], 0)), back) for x in outputs]
