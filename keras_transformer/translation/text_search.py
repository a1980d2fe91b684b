"""From texts to translations: the codec, the search, and the codec again; once more where terms are missing."""

from keras_transformer.text.glossary import Glossary
from keras_transformer.text.placeholders import lost
from keras_transformer.translation.batched_search import BatchedSearch
from keras_transformer.translation.codec import Codec
from keras_transformer.translation.results import Translation


class TextSearch:
    """Searches for the translations of texts.

    Args:
        codec: a `keras_transformer.translation.codec.Codec`.
        search: a `keras_transformer.translation.batched_search.BatchedSearch`.
        glossary: a `keras_transformer.Glossary` or None.
    """

    def __init__(self, codec: Codec, search: BatchedSearch, glossary: Glossary | None = None):
        if glossary and not codec.num_placeholders:
            raise ValueError(
                "A glossary needs a vocabulary with placeholders, which stand for its terms in the model. Received: a "
                "tokenizer without them. Train with placeholders (--num-placeholders 8)."
            )
        self.codec, self.search, self.glossary = codec, search, glossary

    def __call__(self, texts, settings, num_hypotheses=1, prefixes=None, target_language=None, shortlist=None):
        """Searches; for the arguments see `Translator.translate`.

        Returns:
            The `keras_transformer.translation.codec.Sentence` of each text, and a list of its `Translation`s.
        """
        languages, shared = self.codec.languages(target_language, len(texts)), (settings, num_hypotheses, shortlist)
        found = self._find(texts, prefixes, languages, [None] * len(texts), *shared)
        # Terms whose translations are missing become placeholders. If others are missing then, all terms do.
        for all_terms in (False, True) if self.glossary else ():
            missing = [self.glossary.lacking(text, row[0].text) for text, (_, row) in zip(texts, found, strict=True)]
            places = [i for i, terms in enumerate(missing) if terms]
            glossaries = [self.glossary if all_terms else missing[i] for i in places]
            some = [column and [column[i] for i in places] for column in (texts, prefixes, languages)]
            for i, again in zip(places, self._find(*some, glossaries, *shared), strict=True):
                found[i] = again
        return [sentence for sentence, _ in found], [row for _, row in found]

    def _find(self, texts, prefixes, languages, glossaries, settings, num_hypotheses, shortlist):
        """A list of (`Sentence`, list of `Translation`s); each text has its own language and glossary, or None."""
        sentences = self.codec.encode(texts, languages, glossaries)
        forced = prefixes and self.codec.encode_prefixes(prefixes, sentences)
        rows = self.search(sentences, settings, num_hypotheses, forced, shortlist)
        flat = [(sentence, one) for sentence, row in zip(sentences, rows, strict=True) for one in row]
        decoded = iter(self.codec.decode([one.token_ids for _, one in flat], [sentence for sentence, _ in flat]))
        results = []
        for text, glossary, sentence, row in zip(texts, glossaries, sentences, rows, strict=True):
            parts, translations = sentence.present_parts, []
            for hypothesis in row:
                translation = next(decoded)
                missing = parts and lost(text, translation, glossary)
                shared = {"truncated": sentence.truncated, "parts": parts, "lost": missing}
                translations.append(Translation(translation, hypothesis.score, hypothesis.token_ids, **shared))
            results.append((sentence, translations or [Translation(sentence.unchanged or "", 0.0)]))
        return results
