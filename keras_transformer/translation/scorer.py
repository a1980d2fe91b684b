"""What a model says about given translations: how probable they are, where it looked, which words it aligns."""

from collections.abc import Iterator, Sequence
from typing import Any

from keras import ops

from keras_transformer.models.decoding import token_log_probs
from keras_transformer.text.confidence import word_log_probs
from keras_transformer.text.special_ids import END_TOKEN_ID, shifted_right
from keras_transformer.translation.batched_search import pad
from keras_transformer.translation.codec import Codec, check_pairs
from keras_transformer.translation.compiled import FORWARD_ROWS, compile_function
from keras_transformer.translation.documents import token_spans
from keras_transformer.translation.results import Attention, TargetScore

# Number of pairs that `align` reads at once.
CHUNK_SIZE = 2048


class Scorer:
    """Full forward passes of a model with given translations.

    Args:
        model: a `Transformer` or an `Ensemble`.
        codec: the `keras_transformer.translation.codec.Codec` of its vocabularies.
    """

    def __init__(self, model: Any, codec: Codec):
        self.model, self.codec = model, codec
        self._log_probs = compile_function(model, self._log_probs_of_a_batch, jit_compile=False)
        self._attention = compile_function(model, self._attention_of_a_batch, jit_compile=False)

    def score(
        self, sources: Sequence[str], targets: Sequence[str], target_language: str | Sequence[str] | None = None
    ) -> list[TargetScore]:
        """How probable given translations are; see `Translator.score`."""
        rule = "each target translates its source"
        sources, targets = check_pairs(sources, targets, ("sources", "targets"), rule)
        sentences = self.codec.encode(sources, target_language)
        target_ids = self.codec.encode_targets(targets, sentences)
        results = []
        rows = self._forward(self._log_probs, [sentence.ids for sentence in sentences], target_ids)
        for sentence, ids, row in zip(sentences, target_ids, rows, strict=True):
            pieces, row = self.codec.pieces(ids, sentence.parts), row[: len(ids)]
            results.append(TargetScore(float(row.sum()), pieces, row.tolist(), sentence.truncated))
        return results

    def align(
        self, sources: Sequence[str], targets: Sequence[str], target_language: str | Sequence[str] | None = None
    ) -> Iterator:
        """Aligns the tokens of given translations by cross-attention.

        Args:
            sources, targets: lists of strings.
            target_language: see `Translator.translate`.

        Yields:
            For each pair the ids of the source, those of the target, and for each target token the index of its source
            token; three lists, see `Attention.alignment`.
        """
        sources, targets = check_pairs(sources, targets, ("sources", "targets"), "each target translates its source")
        languages = self.codec.languages(target_language, len(sources))
        most = self.model.max_length or 2 * self.codec.max_source_length
        for begin in range(0, len(sources), CHUNK_SIZE):
            rows = slice(begin, begin + CHUNK_SIZE)
            sentences = self.codec.encode(sources[rows], languages[rows])
            target_ids = self.codec.encode_targets(targets[rows], sentences, most)
            attention = self.attention(sentences, target_ids, [sentence.parts for sentence in sentences])
            for sentence, ids, one in zip(sentences, target_ids, attention, strict=True):
                yield sentence.ids, ids, one.alignment()

    def attention(self, sentences, target_ids, parts):
        """The `Attention` of each translation, given by its token ids and what its placeholders stand for."""
        source_ids = [sentence.ids for sentence in sentences]
        arrays = self._forward(self._attention, source_ids, target_ids)
        tags = set(self.codec.source_tokenizer.languages.values())
        return [
            Attention(
                self.codec.pieces(source, part, of_source=True),
                self.codec.pieces(ids, part),
                array[:, :, : len(ids), : len(source)],
                int(source[0] in tags),
            )
            for source, ids, part, array in zip(source_ids, target_ids, parts, arrays, strict=True)
        ]

    def add_attention(self, sentences, results):
        """Lists of `Translation`s of sentences with the attention of each."""
        pairs = [(x, one) for x, row in zip(sentences, results, strict=True) for one in row if one.token_ids]
        columns = [x for x, _ in pairs], [one.token_ids for _, one in pairs], [one.parts for _, one in pairs]
        attention = iter(self.attention(*columns))
        return [[x._replace(attention=next(attention)) if x.token_ids else x for x in row] for row in results]

    def words(self, sentences, translations):
        """For each `Translation` its words with their log probabilities; see `confidence.word_log_probs`."""
        places = [i for i, translation in enumerate(translations) if translation.token_ids]
        target_ids = [translations[i].token_ids for i in places]
        rows = self._forward(self._log_probs, [sentences[i].ids for i in places], target_ids)
        results = [[] for _ in translations]
        for i, row in zip(places, rows, strict=True):
            translation = translations[i]
            ids = [token for token in translation.token_ids if token != END_TOKEN_ID]
            spans = token_spans(self.codec.target_tokenizer, ids, translation.text, translation.parts)
            results[i] = word_log_probs(translation.text, spans, row.tolist())
        return results

    def _log_probs_of_a_batch(self, inputs):
        logits = self.model({name: inputs[name] for name in ("encoder_token_ids", "decoder_token_ids")})
        return token_log_probs(logits, inputs["labels"], self.codec.begins_with_tag)

    def _attention_of_a_batch(self, inputs):
        scores = self.model.attention_scores(inputs["encoder_token_ids"], inputs["decoder_token_ids"])
        return ops.stack(scores.cross, axis=1)  # (B, layers, N, T, S)

    def _forward(self, function, source_ids, target_ids):
        """`function` of all pairs: one padded float32 array per pair."""
        results = [None] * len(source_ids)
        order = sorted(range(len(source_ids)), key=lambda i: -len(source_ids[i]) - len(target_ids[i]))
        for begin in range(0, len(order), FORWARD_ROWS):
            rows = order[begin : begin + FORWARD_ROWS]
            labels = [target_ids[i] for i in rows]
            inputs = {
                "encoder_token_ids": pad([source_ids[i] for i in rows]),
                "decoder_token_ids": pad([shifted_right(ids) for ids in labels]),
                "labels": pad(labels),
            }
            outputs = ops.convert_to_numpy(function(inputs)).astype("float32")
            for i, array in zip(rows, outputs, strict=True):
                results[i] = array
        return results
