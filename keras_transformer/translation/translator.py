"""Translates strings to strings with tokenizers, a model and a search.

Reference: "Attention Is All You Need" (Vaswani et al., 2017), section 6.1 (beam 4, length penalty 0.6).
"""

import functools
import itertools
import os
import reprlib
import warnings
from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple

import keras
import numpy as np
from keras import ops

from keras_transformer.models.ensemble import Ensemble
from keras_transformer.models.transformer import Transformer
from keras_transformer.search.decoder import NO_HYPOTHESIS
from keras_transformer.search.search import has_loop, placeholders_of, search
from keras_transformer.search.settings import NGRAM_OF_LOOPS, SearchSettings
from keras_transformer.search.shortlist import Shortlist
from keras_transformer.settings import one_of
from keras_transformer.text import markup, sentences
from keras_transformer.text.confidence import WORD, Calibration, Confidence, right_words, word_log_probs
from keras_transformer.text.glossary import Glossary
from keras_transformer.text.placeholders import has_words, lost, protect, protect_target, restored
from keras_transformer.text.special_ids import END_TOKEN_ID, FIRST_PLACEHOLDER_ID, PAD_TOKEN_ID, shifted_right
from keras_transformer.training.run import Run
from keras_transformer.translation.compiled import (
    COMPILE_AFTER,
    COMPILE_AFTER_IDLE,
    FORWARD_ROWS,
    AutoCompiled,
    batches,
    compile_function,
    filled_shapes,
)
from keras_transformer.translation.results import (
    Attention,
    SentenceTranslation,
    TargetScore,
    TextTranslation,
    Translation,
)

# Number of texts that `stream` translates together: enough for batches of texts with similar lengths.
CHUNK_SIZE = 2048
# Number of searches with different settings of which a translator keeps the compiled functions.
NUM_SEARCHES = 16


class _Found(NamedTuple):
    """The token ids of a text as the model got them, whether it was cut, and its hypotheses."""

    source_ids: list
    truncated: bool
    hypotheses: list


class Translator:
    """Translates lists of strings.

    Args:
        model: a `Transformer`, or an `Ensemble` of several.
        source_tokenizer: a `Tokenizer`.
        target_tokenizer: Defaults to `source_tokenizer`, for a shared vocabulary.
        max_source_length: maximum number of source tokens, including the end token; longer sources are cut. Defaults to
            128.
        jit_compile: whether XLA compiles the search on TensorFlow. The search of a tiny model is then two to four times
            as fast, after seconds of compilation for each of at most 24 batch shapes. JAX always compiles. Defaults to
            `"auto"`: no call waits; the shapes that take much time are compiled in the background, see README. With and
            without XLA, scores may differ in the last digits.
        source_language: language code of the sources, such as `"de"`, for `translate_text`; see
            `keras_transformer.text.sentences.rules`. Defaults to None.
        target_language: code of the language to translate into, one of `source_tokenizer.languages`; for models of
            several directions. Defaults to None: of imported models, a tag such as `>>deu<<` at the beginning of a text
            says it.
        glossary: a dict, `keras_transformer.Glossary` or None: terms and the translations that they get. A text whose
            translation lacks one is translated again, with placeholders for it. Defaults to None.
        **settings: `keras_transformer.search.settings.SearchSettings` by name, such as `num_beams=1`.

    Example:
        >>> tokenizer = Tokenizer.train(["a small dog", "a small cat", "a big dog"] * 9, vocabulary_size=17)
        >>> model = Transformer(tokenizer.vocabulary_size, num_layers=1, num_heads=1, hidden_dim=8, intermediate_dim=8)
        >>> len(Translator(model, tokenizer, num_beams=2).translate(["a big cat", ""]))
        2
    """

    def __init__(
        self,
        model,
        source_tokenizer,
        target_tokenizer=None,
        max_source_length=128,
        jit_compile="auto",
        source_language=None,
        target_language=None,
        glossary=None,
        **settings,
    ):
        if not isinstance(model, Transformer | Ensemble):
            raise TypeError(
                "`Translator` needs a `keras_transformer.Transformer`: it decodes with the model's caches. "
                f"Received: {type(model).__name__}. For another model, search with `keras_transformer.search.decoder`."
            )
        self.model = model
        self.source_tokenizer = source_tokenizer
        self.target_tokenizer = target_tokenizer or source_tokenizer
        self.max_source_length = max_source_length
        self.jit_compile = one_of("jit_compile", jit_compile, ("auto", True, False))
        self.source_language, self.target_language = source_language, target_language
        self.source_tokenizer.tag(target_language)  # Raises an error if there is no such language.
        self.settings = SearchSettings().replace(**settings)
        self.num_placeholders = min(self.source_tokenizer.num_placeholders, self.target_tokenizer.num_placeholders)
        self.glossary = glossary if isinstance(glossary, Glossary | None) else Glossary(glossary)
        if self.glossary and not self.num_placeholders:
            raise ValueError(
                "A glossary needs a vocabulary with placeholders, which stand for its terms in the model. Received: a "
                "tokenizer without them. Train with placeholders (--num-placeholders 8)."
            )
        self.shortlist = (
            None  # `learn_shortlist` or `load` sets it to a `keras_transformer.search.shortlist.Shortlist`.
        )
        self.calibration = None  # `calibrate` or `load` sets it to a `keras_transformer.text.confidence.Calibration`.
        self.run = None  # `load` sets it to the `Run`.
        self._compiled = {}
        self._compiled_search = functools.lru_cache(NUM_SEARCHES)(self._new_search)
        for side, tokenizer, size in (
            ("source", self.source_tokenizer, model.vocabulary_size),
            ("target", self.target_tokenizer, model.target_vocabulary_size),
        ):
            if tokenizer.vocabulary_size != size:
                raise ValueError(
                    f"The {side} tokenizer and the model must have the same vocabulary. Received: a tokenizer with "
                    f"{tokenizer.vocabulary_size} ids, a model with {size}. Use the tokenizer that the model was "
                    "trained with."
                )

    @classmethod
    def load(cls, folder, **kwargs):
        """The translator of a run folder, as `train_keras.py` writes it.

        Args:
            folder: the run folder. Or a list of several with the same vocabulary, whose models translate together as an
                `Ensemble`; everything else is taken from the first.
            **kwargs: arguments of `Translator`, which replace the run's own settings.

        Raises:
            FileNotFoundError: the folder is not a run folder, or has no model yet.
            ValueError: a file of the run is damaged, or the vocabularies of several runs differ; the message names it.
        """
        run, *others = map(Run, folder if isinstance(folder, list | tuple) else [folder])
        for one in (run, *others):
            one.check_trained()
        for one in others:
            one.check_vocabulary_of(run)
        config = run.config()
        data = {"max_source_length": config.data.max_length, "source_language": config.data.language_of_sources()}
        data["target_language"] = next(iter(config.data.target_languages()), None)
        model = Ensemble([one.model() for one in (run, *others)]) if others else run.model()
        settings = {**vars(config.decoding), **({"shortlist": 0} if others else {})}  # An ensemble has none.
        translator = cls(model, *run.tokenizers(), **{**data, **settings, **kwargs})
        translator.run = run
        translator.calibration, translator.shortlist = (None, None) if others else (run.calibration(), run.shortlist())
        translator.check_shortlist(translator.settings)
        return translator

    def translate(
        self,
        texts,
        num_hypotheses=1,
        return_scores=False,
        return_attention=False,
        return_confidence=False,
        prefixes=None,
        target_language=None,
        **settings,
    ):
        """Translates texts and keeps their order; '' is translated to ''.

        If the vocabulary has placeholders, addresses, `{name}`, numbers with units, emoji and the like do not change;
        see `keras_transformer.text.placeholders`.

        Args:
            texts: a list of strings.
            num_hypotheses: number of translations per text, at most `num_beams` except with sampling. Defaults to 1.
            return_scores: whether to return `Translation`s instead of strings. Defaults to False.
            return_attention: whether to return `Translation`s with their cross-attention. Defaults to False.
            return_confidence: whether to return `Translation`s with the confidence of their words; `calibrate` must
                have been called once, as the training script does. Defaults to False.
            prefixes: strings that the translations must begin with, one per text, `None` for no prefix.
            target_language: code of a language, or a list of one per text. Defaults to None: the translator's.
            **settings: `SearchSettings` that differ from the translator's.

        Returns:
            A list with one string or `Translation` per text. If `num_hypotheses` is above 1, a list of lists of them,
            best first. If a text has more tokens than `max_source_length`, only its beginning is translated. Then
            `Translation.truncated` is True; if strings are returned, there is a warning. So there is if a translation
            lacks a part that must not change: `Translation.lost`.
        """
        settings = self.settings.replace(**settings)
        self.check_shortlist(settings)
        texts = _list_of_strings("texts", texts)
        if return_confidence:
            self.check_calibrated()
        settings.check_num_hypotheses(num_hypotheses)
        tags = self._tags(target_language, len(texts))
        if prefixes is not None:
            if isinstance(prefixes, str) or len(prefixes) != len(texts):
                raise ValueError(f"`prefixes` must be a list with one entry per text. Received: {prefixes!r}.")
            prefixes = _list_of_strings("prefixes", [prefix or "" for prefix in prefixes])
        found = self._find(texts, tags, prefixes, settings, num_hypotheses)
        sources, truncated, results = (list(column) for column in zip(*found, strict=True)) if found else ([], [], [])
        if return_attention:
            results = self._add_attention(sources, results)
        if return_confidence:
            results = self._add_confidence(sources, results)
        if not (return_scores or return_attention or return_confidence):
            self._warn_of_truncated(truncated)
            self.warn_of_lost(hypotheses[0] for hypotheses in results)
            results = [[hypothesis.text for hypothesis in hypotheses] for hypotheses in results]
        return results if num_hypotheses > 1 else [hypotheses[0] for hypotheses in results]

    def _find(self, texts, tags, prefixes, settings, num_hypotheses):
        """What `translate` finds for each text: a list of `_Found`s. `tags` are those of `_tags`."""
        found = self._hypotheses(texts, tags, [None] * len(texts), prefixes, settings, num_hypotheses)
        # Terms whose translations are lacking become placeholders. If others are lost then, all terms do.
        for all_terms in (False, True) if self.glossary else ():
            lacking = [
                self.glossary.lacking(text, one.hypotheses[0].text) for text, one in zip(texts, found, strict=True)
            ]
            rows = [i for i, terms in enumerate(lacking) if terms]
            given = [self.glossary if all_terms else lacking[i] for i in rows]
            forced = prefixes and [prefixes[i] for i in rows]
            own_tags = [tags[i] for i in rows]
            again = self._hypotheses([texts[i] for i in rows], own_tags, given, forced, settings, num_hypotheses)
            for i, one in zip(rows, again, strict=True):
                found[i] = one
        return found

    def _hypotheses(self, texts, tags, glossaries, prefixes, settings, num_hypotheses):
        """A list of one `_Found` per text; each text has its own glossary or None."""
        protected = list(map(self._protected, texts, glossaries))
        sources, truncated = self._encode(protected, tags)
        parts = [_present(one.parts, ids) for one, ids in zip(protected, sources, strict=True)]
        forced = self._encode_prefixes(prefixes, parts)
        results = [[Translation("", 0.0)]] * len(texts)
        rows = [i for i, ids in enumerate(sources) if len(ids) > 1]
        for i in [i for i in rows if parts[i] and not has_words(protected[i].text)]:  # There is nothing to translate.
            results[i], truncated[i] = [Translation(restored(*protected[i]), 0.0)], False
            rows.remove(i)
        found = self._search(rows, sources, forced, settings, num_hypotheses, self.jit_compile)
        if settings.avoid_loops and not settings.no_repeat_ngram_size and not settings.sampling:
            again = [i for i in rows if has_loop(found[i][0].token_ids) and not has_loop(sources[i])]
            without = settings.replace(no_repeat_ngram_size=NGRAM_OF_LOOPS)
            # Few rows: XLA's compilation for another search would not pay.
            found.update(self._search(again, sources, forced, without, num_hypotheses, jit_compile=False))
        for i, hypotheses in found.items():
            translations = [restored(one.text, parts[i], source=protected[i].text) for one in hypotheses]
            missing = [parts[i] and lost(texts[i], text, glossaries[i]) for text in translations]
            shared = {"truncated": truncated[i], "parts": parts[i]}
            results[i] = [
                one._replace(text=text, lost=lacks, **shared)
                for one, text, lacks in zip(hypotheses, translations, missing, strict=True)
            ]
        return list(map(_Found, sources, truncated, results))

    def _search(self, rows, sources, forced, settings, num_hypotheses, jit_compile):
        """The hypotheses of some sources, with placeholders: a dict of lists of `Translation`s."""
        jit_compile = True if keras.backend.backend() == "jax" else jit_compile  # JAX compiles every search.
        # Longest first: if the texts do not fit into memory, the call fails at once.
        rows = sorted(rows, key=lambda i: -len(sources[i]))
        cut = list(batches(rows, jit_compile))
        # These settings only affect the inputs `uniforms` and `limits`, or the choice of the search.
        shared = settings.replace(seed=0, max_length=None, max_length_ratio=0.0, avoid_loops=False)
        compiled_search = self._compiled_search(shared, num_hypotheses)
        compile_after = COMPILE_AFTER if len(cut) > 1 else COMPILE_AFTER_IDLE

        def translate_batch(batch):
            copies = num_hypotheses if settings.sampling else 1  # With sampling, one row per hypothesis.
            arguments = functools.partial(self._inputs, batch, sources, forced, copies, settings)
            shapes = filled_shapes(len(batch), max(len(sources[i]) for i in batch), self.model.max_length)
            hypotheses = compiled_search(arguments, shapes, jit_compile, compile_after)
            token_ids, scores = map(ops.convert_to_numpy, hypotheses)
            if copies > 1:
                token_ids, scores = _best_first(
                    token_ids.reshape(-1, copies, token_ids.shape[-1]), scores.reshape(-1, copies)
                )
            return self._to_text(token_ids[: len(batch)], scores[: len(batch)])

        found = {}
        for batch, hypotheses in zip(cut, _on_all_cores(translate_batch, cut), strict=True):
            found.update(zip(batch, hypotheses, strict=True))
        return found

    def stream(self, texts, chunk_size=CHUNK_SIZE, **kwargs):
        """Translates any number of texts in constant memory and keeps their order.

        Args:
            texts: an iterable of strings, such as the lines of a file.
            chunk_size: number of texts that are read and translated together. Defaults to 2048.
            **kwargs: see `translate`. `prefixes`, and `target_language` if it is not a string, may be any iterables.

        Yields:
            What `translate` returns for each text, as soon as its chunk is done.

        Example:
            >>> tokenizer = Tokenizer.train(["a small dog", "a big cat"] * 9, vocabulary_size=17)
            >>> model = Transformer(17, num_layers=1, num_heads=1, hidden_dim=8, intermediate_dim=8)
            >>> len(list(Translator(model, tokenizer).stream(("a dog" for _ in range(5)), num_beams=1, chunk_size=2)))
            5
        """
        texts = iter(_list_of_strings("texts", texts) if isinstance(texts, str | bytes) else texts)
        one_per_text = {
            name: iter(kwargs.pop(name))
            for name in ("prefixes", "target_language")
            if not isinstance(kwargs.get(name), str | None)
        }
        while chunk := list(itertools.islice(texts, chunk_size)):
            here = {name: list(itertools.islice(values, len(chunk))) for name, values in one_per_text.items()}
            yield from self.translate(chunk, **here, **kwargs)

    def translate_text(self, text, return_sentences=False, **kwargs):
        """Translates a whole text sentence by sentence: paragraphs, lists, mails.

        What stands between the sentences comes back unchanged: spaces, line breaks, indentation, bullets. A sentence of
        more than `max_source_length` tokens is cut at a clause, then at a space. `keras_transformer.text.sentences` has
        the rules.

        Args:
            text: a string.
            return_sentences: whether to return a `TextTranslation` instead of a string. Defaults to False.
            **kwargs: `return_attention`, `target_language` and `SearchSettings` for `translate`.

        Returns:
            A string, or a `TextTranslation`.

        Example:
            >>> tokenizer = Tokenizer.train(["a small dog", "a big cat"] * 9, vocabulary_size=17)
            >>> model = Transformer(17, num_layers=1, num_heads=1, hidden_dim=8, intermediate_dim=8)
            >>> found = Translator(model, tokenizer).translate_text("- A dog. A cat.\\n", return_sentences=True)
            >>> [sentence.source_span for sentence in found.sentences]
            [(2, 8), (9, 15)]
        """
        _check_whole_text(kwargs)
        parts = self.split_text(text)
        found = self.join_text(parts, self.stream_sentences(parts, **kwargs))
        if not return_sentences:
            self.warn_of_lost(sentence.translation for sentence in found.sentences)
        return found if return_sentences else found.text

    def translate_html(self, html, **kwargs):
        """Translates an HTML document or fragment; see `keras_transformer.text.markup.translate_html`.

        Text is translated as `translate_text` does; each inline element goes to the words that the model aligns with
        its words. All else stays as it was written: attributes, entities, comments, scripts, `code`, `pre`, elements
        with `translate="no"` or another `lang`.

        Args:
            html: a string.
            **kwargs: `target_language` and `SearchSettings` for `translate`.

        Returns:
            A string.
        """
        return self._translate_markup(markup.translate_html, html, kwargs)

    def translate_xml(self, xml, **kwargs):
        """Translates an XML document as `translate_html` does; see `keras_transformer.text.markup.translate_xml`."""
        return self._translate_markup(markup.translate_xml, xml, kwargs)

    def _translate_markup(self, function, text, kwargs):
        if self.glossary:
            raise ValueError("Markup is translated without a glossary. Received: a translator with one. Leave it out.")
        _check_whole_text(kwargs)
        _check_text(text)
        language = kwargs.get("target_language") or self.translation_language
        translate = functools.partial(markup.aligned_translations, self, **kwargs)
        return function(text, translate, self.source_language, language)

    @functools.cached_property
    def translation_language(self):
        """Language code of the translations; None if it is not known."""
        return self.target_language or (self.run and self.run.config().data.target_language)

    def split_text(self, text):
        """The separators and sentences of a text, in turn; every sentence fits into `max_source_length`."""
        _check_text(text)
        _check_unicode("text", text)

        def fits(plain):
            # Also with a tag before it: which one does not matter here.
            tags = [list(self.source_tokenizer.languages.values())[:1]] * len(plain)
            return [not cut for cut in self._encode(map(self._protected, plain), tags)[1]]

        return sentences.fitted(sentences.split(text, self.source_language), fits)

    def stream_sentences(self, parts, **kwargs):
        """Yields the `Translation` of each sentence of the result of `split_text`; see `stream`."""
        plain = (sentences.plain(sentence) for sentence in parts[1::2])
        return self.stream(plain, **{"return_scores": True, **kwargs})

    def join_text(self, parts, translations):
        """The `TextTranslation` of the result of `split_text` and the `Translation`s of its sentences."""
        translations = list(translations)
        texts = [sentences.without_marks(translation.text) for translation in translations]
        target = [texts[i // 2] if i % 2 else part for i, part in enumerate(parts)]
        target = sentences.spaced(target)
        spans = zip(_spans(parts), _spans(target), translations, strict=True)
        return TextTranslation("".join(target), list(itertools.starmap(SentenceTranslation, spans)))

    def score(self, sources, targets, target_language=None):
        """How probable given translations are, computed by a full forward pass.

        Args:
            sources: a list of strings.
            targets: a list of strings, their translations.
            target_language: see `translate`.

        Returns:
            A list of `TargetScore`s.
        """
        sources, targets = _list_of_strings("sources", sources), _list_of_strings("targets", targets)
        if len(sources) != len(targets):
            raise ValueError(
                "`sources` and `targets` must have the same length: each target translates its source. "
                f"Received: {len(sources)} sources, {len(targets)} targets."
            )
        protected = [self._protected(source) for source in sources]
        source_ids, truncated = self._encode(protected, self._tags(target_language, len(sources)))
        target_ids = self._encode_targets(targets, protected, source_ids)

        results, rows = [], self._log_probs(source_ids, target_ids)
        for ids, row, cut, one in zip(target_ids, rows, truncated, protected, strict=True):
            row = row[: len(ids)]
            pieces = _pieces(self.target_tokenizer, ids, one.parts)
            results.append(TargetScore(float(row.sum()), pieces, row.tolist(), cut))
        return results

    def calibrate(self, sources, references, target_language=None):
        """Finds how likely words are right, from translations with references; see `keras_transformer.text.confidence`.

        Args:
            sources: a list of strings, some hundred or more, not from the training text.
            references: their translations.
            target_language: see `translate`.

        Returns:
            `keras_transformer.text.confidence.Calibration`, which also becomes `translator.calibration`.

        Raises:
            ValueError: the lists have different lengths, or no word is right, or none is wrong.
        """
        words, right = self.judged_words(sources, references, target_language)
        self.calibration = Calibration.fit(words, right)
        return self.calibration

    def check_calibrated(self):
        """Raises a ValueError if there is no calibration."""
        if not self.calibration:
            raise ValueError(
                "Confidences need a calibration: how often words of a certain probability are right. Received: a "
                "translator without one. Call `translator.calibrate(sources, references)` with some hundred sentences, "
                "or `python -m keras_transformer score RUN --calibrate --source FILE --reference FILE` for a run."
            )

    def check_shortlist(self, settings):
        """Raises a ValueError if a search with these `SearchSettings` lacks its shortlist."""
        if settings.shortlist and not self.shortlist:
            raise ValueError(
                "`shortlist` needs alignments of the training text. Received: "
                f"shortlist={settings.shortlist}, a translator without them. Call `translator.learn_shortlist(sources, "
                "targets)`, or `python -m keras_transformer shortlist RUN` for a run. An ensemble has none."
            )

    def align(self, sources, targets, target_language=None):
        """Aligns the tokens of given translations by cross-attention.

        Args:
            sources, targets: lists of strings.
            target_language: see `translate`.

        Yields:
            For each pair the ids of the source, those of the target, and for each target token the index of its source
            token; three lists, see `Attention.alignment`.
        """
        sources, targets = _list_of_strings("sources", sources), _list_of_strings("targets", targets)
        tags = self._tags(target_language, len(sources))
        for begin in range(0, len(sources), CHUNK_SIZE):
            rows = slice(begin, begin + CHUNK_SIZE)
            protected = [self._protected(source) for source in sources[rows]]
            source_ids, _ = self._encode(protected, tags[rows])
            most = self.model.max_length or 2 * self.max_source_length
            target_ids = self._encode_targets(targets[rows], protected, source_ids, most)
            found = [[Translation("", 0.0, tuple(ids))] for ids in target_ids]
            for ids, (one,) in zip(source_ids, self._add_attention(source_ids, found), strict=True):
                yield ids, list(one.token_ids), one.attention.alignment()

    def learn_shortlist(self, sources, targets, target_language=None):
        """Finds the target tokens that are often aligned with each source token; see
        `keras_transformer.search.shortlist`.

        Args:
            sources, targets: lists of strings, some ten thousand pairs of the training text or more.
            target_language: see `translate`.

        Returns:
            `keras_transformer.search.shortlist.Shortlist`, which also becomes `translator.shortlist`.
        """
        if isinstance(self.model, Ensemble):
            raise ValueError("An ensemble has no shortlist. Received: a translator of an ensemble.")
        sizes = self.model.vocabulary_size, self.model.target_vocabulary_size
        self.shortlist = Shortlist.learn(self.align(sources, targets, target_language), *sizes)
        self._compiled_search.cache_clear()
        return self.shortlist

    def judged_words(self, sources, references, target_language=None):
        """Log probabilities of the words of all translations, and whether each word is right: two lists."""
        sources, references = _list_of_strings("sources", sources), _list_of_strings("references", references)
        if len(sources) != len(references):
            raise ValueError(
                "`sources` and `references` must have the same length: each reference translates its source. "
                f"Received: {len(sources)} sources, {len(references)} references."
            )
        found = self._find(sources, self._tags(target_language, len(sources)), None, self.settings, 1)
        translations = [one.hypotheses[0] for one in found]
        words = self._word_log_probs([one.source_ids for one in found], translations)
        log_probs, right = [], []
        for translation, mine, reference in zip(translations, words, references, strict=True):
            places = [word.span() for word in WORD.finditer(translation.text)]
            judged = dict(zip(places, right_words(translation.text, reference), strict=True))
            log_probs += [log_prob for _, _, log_prob in mine]
            right += [judged[begin, end] for begin, end, _ in mine]
        return log_probs, right

    def _add_confidence(self, sources, results):
        """`results` with the confidence of each hypothesis."""
        flat = [(ids, one) for ids, row in zip(sources, results, strict=True) for one in row]
        words = self._word_log_probs([ids for ids, _ in flat], [one for _, one in flat])
        confidences = []
        for mine in words:
            found = self.calibration([log_prob for _, _, log_prob in mine]).tolist() if mine else []
            rows = [(begin, end, one) for (begin, end, _), one in zip(mine, found, strict=True)]
            confidences.append(Confidence(float(np.mean(found)) if found else 1.0, rows))
        confidences = iter(confidences)
        return [[one._replace(confidence=next(confidences)) for one in row] for row in results]

    def _word_log_probs(self, sources, translations):
        """For each translation the words with their log probabilities, see `confidence.word_log_probs`."""
        places = [i for i, one in enumerate(translations) if one.token_ids]
        rows = self._log_probs([sources[i] for i in places], [translations[i].token_ids for i in places])
        results = [[] for _ in translations]
        for i, row in zip(places, rows, strict=True):
            one = translations[i]
            ids = [token for token in one.token_ids if token != END_TOKEN_ID]
            spans = markup.token_spans(self.target_tokenizer, ids, one.text, one.parts)
            results[i] = word_log_probs(one.text, spans, row.tolist())
        return results

    def _log_probs(self, source_ids, target_ids):
        """The log probability of each token of each target, padded: one array per pair."""

        def log_probs(encoder_token_ids, decoder_token_ids, labels):
            inputs = {"encoder_token_ids": encoder_token_ids, "decoder_token_ids": decoder_token_ids}
            of_all_tokens = ops.log_softmax(ops.cast(self.model(inputs), "float32"), axis=-1)
            of_labels = ops.take_along_axis(of_all_tokens, labels[..., None], axis=-1)[..., 0]
            # As in the search, the tag that every translation begins with does not count.
            return ops.pad(of_labels[:, 1:], [[0, 0], [1, 0]]) if self.begins_with_tag else of_labels

        return self._forward("score", log_probs, source_ids, target_ids)

    def _add_attention(self, sources, results):
        """`results` with the attention scores of each hypothesis, computed by a full forward pass."""
        found = [(ids, h) for ids, row in zip(sources, results, strict=True) for h in row if h.token_ids]
        source_ids, target_ids = [ids for ids, _ in found], [h.token_ids for _, h in found]

        def attention_scores(encoder_token_ids, decoder_token_ids, labels):
            scores = self.model.attention_scores(encoder_token_ids, decoder_token_ids)
            return ops.stack(scores.cross, axis=1)  # (B, layers, N, T, S)

        arrays = self._forward("attention", attention_scores, source_ids, target_ids)
        tags = set(self.source_tokenizer.languages.values())
        attention = iter(
            Attention(
                _pieces(self.source_tokenizer, source, h.parts),
                _pieces(self.target_tokenizer, h.token_ids, h.parts),
                array[:, :, : len(h.token_ids), : len(source)],
                int(source[0] in tags),
            )
            for (source, h), array in zip(found, arrays, strict=True)
        )
        return [[h._replace(attention=next(attention)) if h.token_ids else h for h in row] for row in results]

    def _forward(self, name, function, source_ids, target_ids):
        """`function(encoder_token_ids, decoder_token_ids, labels)` of all pairs: one padded float32 array per pair."""
        if name not in self._compiled:
            self._compiled[name] = compile_function(self.model, lambda inputs: function(**inputs), jit_compile=False)
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
            outputs = ops.convert_to_numpy(self._compiled[name](inputs)).astype("float32")
            for i, array in zip(rows, outputs, strict=True):
                results[i] = array
        return results

    @property
    def tags(self):
        """Ids of the tags that a translation never contains."""
        return list(self.target_tokenizer.hidden_languages.values())

    @property
    def begins_with_tag(self):
        """Whether translations begin with the tag of their language: see `Transformer.source_language_token_id`."""
        return self.model.source_language_token_id is not None

    def search_arguments(self, encoder_token_ids=None):
        """The arguments of `search` that say what is special about the vocabulary; `required` only for given ids."""
        arguments = {"tags": self.tags, "begins_with_tag": self.begins_with_tag, "shortlist": self.shortlist}
        if self.num_placeholders:
            arguments["num_placeholders"] = self.num_placeholders
            if encoder_token_ids is not None:
                arguments["required"] = placeholders_of(encoder_token_ids, self.num_placeholders)
        return arguments

    @property
    def tokenizers(self):
        """A list with the shared tokenizer, or with those of source and target."""
        source, target = self.source_tokenizer, self.target_tokenizer
        return [source] if source is target else [source, target]

    def encode_sources(self, texts, target_language=None):
        """Token ids of each text as the model gets them: cut at `max_source_length`, the end token last."""
        return self._encode(map(self._protected, texts), self._tags(target_language, len(texts)))[0]

    def _protected(self, text, glossary=None):
        """The text with placeholders, if the vocabulary has any: `keras_transformer.text.placeholders.Protected`."""
        return protect(text, self.num_placeholders, glossary)

    def _tags(self, target_language, count):
        """A list of lists: for each text the id of the tag that its tokens begin with, or nothing."""
        if target_language is None or isinstance(target_language, str):
            target_language = [target_language] * count
        elif len(target_language) != count:
            raise ValueError(
                "`target_language` must be one language, or a list with one per text. "
                f"Received: {len(target_language)} languages for {count} texts."
            )
        tags = [self.source_tokenizer.tag(one or self.target_language) for one in target_language]
        if self.begins_with_tag and not all(tags):
            raise ValueError(
                "A model of many languages needs `target_language`, the language to translate into. Received: None. "
                f"The model has: {', '.join(self.source_tokenizer.languages)}."
            )
        return tags

    def _encode(self, protected, tags):
        """Token ids of texts with placeholders, cut at `max_source_length`, and for each text whether it was cut.

        A text without tokens gets no tag: it is not translated.
        """
        texts = [one.text for one in protected]
        rows, most = self.source_tokenizer.tokenize(texts), self.max_source_length - 1
        rows = [tag + ids if ids else ids for tag, ids in zip(tags, rows, strict=True)]
        return [[*ids[:most], END_TOKEN_ID] for ids in rows], [len(ids) > most for ids in rows]

    def _encode_targets(self, targets, protected, sources, most=None):
        """Token ids of given translations of texts with placeholders, the end token last; cut at `most` tokens.

        `sources` are the token ids of these texts.
        """
        if self.num_placeholders:
            targets = [protect_target(text, one.parts) for text, one in zip(targets, protected, strict=True)]
        rows = self.target_tokenizer.tokenize(targets)
        if self.begins_with_tag:
            rows = [source[:-1][:1] + ids for source, ids in zip(sources, rows, strict=True)]
        return [[*ids[: most and most - 1], END_TOKEN_ID] for ids in rows]

    def _warn_of_truncated(self, truncated):
        if any(truncated):
            warnings.warn(
                f"{sum(truncated):,} of {len(truncated):,} texts have more than `max_source_length` tokens, and only "
                f"their beginning was translated; the first is texts[{truncated.index(True)}]. Received: "
                f"max_source_length={self.max_source_length}. Split long texts into sentences.",
                stacklevel=3,
            )

    def warn_of_lost(self, translations):
        """Warns if `Translation`s lack parts that must not change."""
        lacking = [(place, translation.lost) for place, translation in enumerate(translations) if translation.lost]
        if lacking:
            place, parts = lacking[0]
            warnings.warn(
                f"{len(lacking):,} translations lack parts that must not change: the vocabulary has "
                f"{self.num_placeholders} placeholders. The first is that of sentence {place}. "
                f"Received: {', '.join(parts)}. Shorten the text.",
                stacklevel=3,
            )

    def _encode_prefixes(self, prefixes, parts):
        """Token ids of the prefixes of texts whose placeholders stand for the given parts."""
        if prefixes is None:
            return None
        if self.num_placeholders:
            prefixes = list(map(protect_target, prefixes, parts))
        return self.target_tokenizer.tokenize(prefixes)

    def _inputs(self, rows, sources, forced, copies, settings, shape):
        """The inputs of a search for some of the sources, by name, and the maximum length of their translations.

        They are padded to a shape, with rows that end at once; if it is None, only the shorter sources are padded.
        """
        num_rows, length = shape or (len(rows), max(len(sources[i]) for i in rows))
        more, most = num_rows - len(rows), self.model.max_length  # `most`: a limit for learned positions only.
        token_ids = pad([sources[i] for i in rows] + [[END_TOKEN_ID]] * more, length)
        lengths = np.array([len(sources[i]) for i in rows] + [length])
        *limits, max_length = settings.within(most).limits(lengths).tolist()
        limits = np.array(limits + [1] * more, "int32")
        inputs = {"encoder_token_ids": np.repeat(token_ids, copies, axis=0), "limits": np.repeat(limits, copies)}
        if forced is not None and any(forced[i] for i in rows):
            prefix = [forced[i] for i in rows] + [[]] * more
            prefix = pad(prefix, -(-max(map(len, prefix)) // 8) * 8)[:, :max_length]
            inputs["prefix"] = np.repeat(prefix, copies, axis=0)
        required = placeholders_of(token_ids, self.num_placeholders)
        if required.any():
            inputs["required"] = np.repeat(required, copies, axis=0)
        if settings.sampling:
            inputs["uniforms"] = np.zeros((num_rows * copies, max_length), "float32")
            for place, i in enumerate(rows):  # A sample depends only on the seed and the text's place in the list.
                for copy in range(copies):
                    generator = np.random.default_rng([settings.seed, i, copy])
                    inputs["uniforms"][place * copies + copy] = generator.random(max_length, "float32")
        return inputs, max_length

    def _new_search(self, settings, num_hypotheses):
        """An `AutoCompiled` search. `_compiled_search` keeps those that were used last."""

        def function(inputs, max_length, jit_compile):
            arguments = {"max_length": max_length, "settings": settings, "num_hypotheses": num_hypotheses}
            arguments |= self.search_arguments()
            return tuple(search(self.model, **arguments, jit_compile=jit_compile, **inputs))

        return AutoCompiled(self.model, function)

    def _to_text(self, token_ids, scores):
        """One list of `Translation`s per source, from hypotheses (B, K, L), without the empty places."""
        real = scores > NO_HYPOTHESIS
        real[:, 0] = True
        ids = [_until_end(row) for row in token_ids[real]]
        texts = self.target_tokenizer.detokenize([[i for i in row if i != END_TOKEN_ID] for row in ids])
        translations = iter(map(Translation, texts, scores[real].tolist(), ids))
        return [list(itertools.islice(translations, int(count))) for count in real.sum(axis=1)]


def _on_all_cores(function, batches):
    """Runs each batch on its own core: the small operations of a decoding step gain little from several cores."""
    if len(batches) < 2:  # Starting a thread can take longer than translating a sentence.
        return list(map(function, batches))
    with ThreadPoolExecutor(min(available_cpus(), len(batches))) as pool:
        return list(pool.map(function, batches))


def available_cpus():
    """Number of cores that this process may use. Containers and job schedulers may allow fewer than there are."""
    if not hasattr(os, "process_cpu_count") and hasattr(os, "sched_getaffinity"):  # Python before 3.13, on Linux.
        return len(os.sched_getaffinity(0))
    return getattr(os, "process_cpu_count", os.cpu_count)() or 1


def _present(parts, token_ids):
    """The parts; "" for those whose placeholders are not among the token ids, because these were cut."""
    return tuple(part if FIRST_PLACEHOLDER_ID + i in token_ids else "" for i, part in enumerate(parts))


def _pieces(tokenizer, token_ids, parts):
    """The pieces of token ids; those of placeholders are their parts."""
    numbers = {FIRST_PLACEHOLDER_ID + i: part for i, part in enumerate(parts)}
    pieces = tokenizer.pieces(token_ids)
    return [numbers.get(int(i), piece) for i, piece in zip(token_ids, pieces, strict=True)]


def _spans(parts):
    """Where the sentences are in the text of `parts`."""
    ends = list(itertools.accumulate(map(len, parts)))
    return [(ends[i - 1], ends[i]) for i in range(1, len(parts), 2)]


def _best_first(token_ids, scores):
    """Hypotheses (B, K, L) and scores (B, K), sorted by scores."""
    order = np.argsort(-scores, axis=1, kind="stable")
    return np.take_along_axis(token_ids, order[..., None], axis=1), np.take_along_axis(scores, order, axis=1)


def pad(rows, length=None):
    """One int32 array from lists of token ids, padded at the end."""
    array = np.full((len(rows), length or max(map(len, rows))), PAD_TOKEN_ID, "int32")
    for place, ids in zip(array, rows, strict=True):
        place[: len(ids)] = ids
    return array


def _list_of_strings(name, texts):
    if isinstance(texts, str):
        raise TypeError(f"`{name}` must be a list of strings. Received: one string. Pass [text].")
    texts = list(texts)
    for index, text in enumerate(texts):
        if not isinstance(text, str):
            raise TypeError(
                f"`{name}` must be a list of strings. Received: {text!r} at {name}[{index}]. "
                "Pass '' for a line without text, and decode bytes as UTF-8."
            )
        _check_unicode(f"{name}[{index}]", text)
    return texts


def _check_unicode(name, text):
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise ValueError(
            f"`{name}` must be valid Unicode. Received: half of a surrogate pair, {text[error.start]!r}, at "
            f"{error.start} of {reprlib.repr(text)}. Replace it: text.encode(errors='replace').decode()."
        ) from error


def _check_text(text):
    if not isinstance(text, str):
        raise TypeError(
            f"`text` must be one string. Received: {reprlib.repr(text)}. For a list of sentences, use `translate`."
        )


def _check_whole_text(kwargs):
    """Raises an error for arguments of `translate` that are for single sentences."""
    for name in ("num_hypotheses", "prefixes"):
        if name in kwargs:
            raise ValueError(
                f"A whole text has one translation and no prefixes. Received: {name}={kwargs[name]!r}. Use `translate` "
                "with the sentences of `split_text`, which are every second one of its parts."
            )


def _until_end(token_ids):
    """The tokens of a hypothesis up to its end token; without an end token, all tokens before the padding."""
    end = np.flatnonzero(token_ids == END_TOKEN_ID)
    return tuple((token_ids[: end[0] + 1] if len(end) else token_ids[token_ids != PAD_TOKEN_ID]).tolist())
