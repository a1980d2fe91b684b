"""Translates strings to strings with tokenizers, a model and a search.

Reference: "Attention Is All You Need" (Vaswani et al., 2017), section 6.1 (beam 4, length penalty 0.6).
"""

import itertools
from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property
from typing import Any

from keras_transformer.models.ensemble import Ensemble
from keras_transformer.models.transformer import Transformer
from keras_transformer.search.settings import SearchSettings
from keras_transformer.settings import one_of
from keras_transformer.text import markup
from keras_transformer.text.glossary import Glossary
from keras_transformer.text.tokenizer import Tokenizer
from keras_transformer.training.run import run_of
from keras_transformer.translation import documents
from keras_transformer.translation.batched_search import BatchedSearch
from keras_transformer.translation.codec import Codec, check_texts
from keras_transformer.translation.learning import add_confidence, check_shortlist
from keras_transformer.translation.results import TargetScore, TextTranslation
from keras_transformer.translation.scorer import Scorer
from keras_transformer.translation.text_search import TextSearch

# Number of texts that `stream` translates together: enough for batches of texts with similar lengths.
CHUNK_SIZE = 2048


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
            `"auto"`: no call waits; the shapes that take much time are compiled in the background, see
            docs/how-to.md#translate-in-python. With and without XLA, scores may differ in the last digits.
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

    Attributes:
        codec: `keras_transformer.translation.codec.Codec`: texts to token ids, and back.
        search: `keras_transformer.translation.batched_search.BatchedSearch`: token ids to token ids.
        find: `keras_transformer.translation.text_search.TextSearch`: texts to texts, also with a glossary.
        scorer: `keras_transformer.translation.scorer.Scorer`: probabilities and alignments of given translations.
        calibration: `keras_transformer.text.confidence.Calibration`, or None; see
            `keras_transformer.translation.learning.calibrate`.
        shortlist: `keras_transformer.search.shortlist.Shortlist`, or None; see
            `keras_transformer.translation.learning.learn_shortlist`.
        run: the `keras_transformer.training.run.Run` that it was loaded from, or None.
    """

    def __init__(
        self,
        model: Transformer | Ensemble,
        source_tokenizer: Tokenizer,
        target_tokenizer: Tokenizer | None = None,
        max_source_length: int = 128,
        jit_compile: bool | str = "auto",
        source_language: str | None = None,
        target_language: str | None = None,
        glossary: Glossary | None = None,
        **settings,
    ):
        if not isinstance(model, Transformer | Ensemble):
            raise TypeError(
                "`Translator` needs a `keras_transformer.Transformer`: it decodes with the model's caches. "
                f"Received: {type(model).__name__}. For another model, search with `keras_transformer.search`."
            )
        begins_with_tag = model.source_language_token_id is not None
        tokenizers = source_tokenizer, target_tokenizer or source_tokenizer
        self.model, self.source_language = model, source_language
        self.source_tokenizer, self.target_tokenizer = tokenizers
        self.codec = Codec(*tokenizers, max_source_length, target_language, begins_with_tag)
        self.search = BatchedSearch(model, self.codec, one_of("jit_compile", jit_compile, ("auto", True, False)))
        self.scorer = Scorer(model, self.codec)
        self.settings = SearchSettings().replace(**settings)
        terms = glossary if isinstance(glossary, Glossary | None) else Glossary(glossary)
        self.find = TextSearch(self.codec, self.search, terms)
        self.shortlist = self.calibration = self.run = None
        self.codec.check_sizes(model)

    @classmethod
    def load(cls, folder: Any, **kwargs) -> "Translator":
        """The translator of a run folder, as `train_keras.py` writes it.

        Args:
            folder: the run folder; or the name of a run that somebody published at the Hugging Face hub,
                `hf://OWNER/NAME` or `hf://OWNER/NAME@REVISION`, which is downloaded. Or a list of several with the same
                vocabulary, whose models translate together as an `Ensemble`; everything else is taken from the first.
            **kwargs: arguments of `Translator`, which replace the run's own settings.

        Raises:
            FileNotFoundError: the folder is not a run folder, or has no model yet.
            FileError: a published run could not be downloaded.
            ValueError: a file of the run is damaged, or the vocabularies of several runs differ; the message names it.
        """
        run, *others = runs = [run_of(path) for path in (folder if isinstance(folder, list | tuple) else [folder])]
        for each in runs:
            each.check_trained()
        for other in others:
            other.check_vocabulary_of(run)
        config = run.config()
        data = {"max_source_length": config.data.max_length, "source_language": config.data.language_of_sources()}
        data["target_language"] = next(iter(config.data.target_languages()), None)
        model = Ensemble([each.model() for each in runs]) if others else run.model()
        settings = {**vars(config.search), **({"shortlist": 0} if others else {})}  # An ensemble has none.
        translator = cls(model, *run.tokenizers(), **{**data, **settings, **kwargs})
        translator.run = run
        translator.calibration, translator.shortlist = (None, None) if others else (run.calibration(), run.shortlist())
        check_shortlist(translator.settings, translator.shortlist)
        return translator

    @cached_property
    def translation_language(self) -> str | None:
        """Language code of the translations; None if it is not known."""
        return self.codec.target_language or (self.run and self.run.config().data.target_language)

    def translate(
        self,
        texts: Sequence[str],
        num_hypotheses: int = 1,
        return_scores: bool = False,
        return_attention: bool = False,
        return_confidence: bool = False,
        prefixes: Sequence[str] | None = None,
        target_language: str | Sequence[str] | None = None,
        **settings,
    ) -> list:
        """Translates texts and keeps their order; '' is translated to ''.

        If the vocabulary has placeholders, addresses, `{name}`, numbers with units, emoji and the like do not change;
        see `keras_transformer.text.placeholders`.

        Args:
            texts: a list of strings.
            num_hypotheses: number of translations per text, at most `num_beams` except with sampling. Defaults to 1.
            return_scores: whether to return `Translation`s instead of strings. Defaults to False.
            return_attention: whether to return `Translation`s with their cross-attention. Defaults to False.
            return_confidence: whether to return `Translation`s with the confidence of their words; the translator needs
                a calibration, which trained runs have. Defaults to False.
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
        check_shortlist(settings, self.shortlist)
        texts = check_texts("texts", texts)
        if return_confidence and not self.calibration:
            raise ValueError(
                "Confidences need a calibration: how often words of a certain probability are right. Received: a "
                "translator without one. Call `keras_transformer.translation.learning.calibrate(translator, sources, "
                "references)` with some hundred sentences, or `python -m keras_transformer score RUN --calibrate "
                "--source FILE --reference FILE` for a run."
            )
        settings.check_num_hypotheses(num_hypotheses)
        if prefixes is not None:
            if isinstance(prefixes, str) or len(prefixes) != len(texts):
                raise ValueError(f"`prefixes` must be a list with one entry per text. Received: {prefixes!r}.")
            prefixes = check_texts("prefixes", [prefix or "" for prefix in prefixes])
        sentences, results = self.find(texts, settings, num_hypotheses, prefixes, target_language, self.shortlist)
        if return_attention:
            results = self.scorer.add_attention(sentences, results)
        if return_confidence:
            results = add_confidence(self, sentences, results)
        if not (return_scores or return_attention or return_confidence):
            truncated = [sentence.truncated for sentence in sentences]
            documents.warn_of_truncated(truncated, self.codec.max_source_length)
            documents.warn_of_lost((row[0] for row in results), self.codec.num_placeholders)
            results = [[hypothesis.text for hypothesis in row] for row in results]
        return results if num_hypotheses > 1 else [row[0] for row in results]

    def stream(self, texts: Iterable[str], chunk_size: int = CHUNK_SIZE, **kwargs) -> Iterator:
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
        texts = iter(check_texts("texts", texts) if isinstance(texts, str | bytes) else texts)
        one_per_text = {
            name: iter(kwargs.pop(name))
            for name in ("prefixes", "target_language")
            if not isinstance(kwargs.get(name), str | None)
        }
        while chunk := list(itertools.islice(texts, chunk_size)):
            here = {name: list(itertools.islice(values, len(chunk))) for name, values in one_per_text.items()}
            yield from self.translate(chunk, **here, **kwargs)

    def translate_text(self, text: str, return_sentences: bool = False, **kwargs) -> str | TextTranslation:
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
        documents.check_arguments(kwargs)
        parts = documents.split_text(self, text)
        found = documents.join_text(parts, documents.stream_sentences(self, parts, **kwargs))
        if not return_sentences:
            translations = (sentence.translation for sentence in found.sentences)
            documents.warn_of_lost(translations, self.codec.num_placeholders)
        return found if return_sentences else found.text

    def translate_html(self, html: str, **kwargs) -> str:
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
        return documents.translate_markup(self, markup.translate_html, html, kwargs)

    def translate_xml(self, xml: str, **kwargs) -> str:
        """Translates an XML document as `translate_html` does; see `keras_transformer.text.markup.translate_xml`."""
        return documents.translate_markup(self, markup.translate_xml, xml, kwargs)

    def score(
        self, sources: Sequence[str], targets: Sequence[str], target_language: str | Sequence[str] | None = None
    ) -> list[TargetScore]:
        """How probable given translations are, computed by a full forward pass.

        Args:
            sources: a list of strings.
            targets: a list of strings, their translations.
            target_language: see `translate`.

        Returns:
            A list of `TargetScore`s.
        """
        return self.scorer.score(sources, targets, target_language)
