"""What is learned about a trained model from texts: how far its confidences are right, and its shortlist."""

from collections.abc import Sequence
from typing import Any

from keras_transformer.models.ensemble import Ensemble
from keras_transformer.search.shortlist import Shortlist
from keras_transformer.text.confidence import WORD, Calibration, Confidence, right_words
from keras_transformer.translation.codec import check_pairs


def calibrate(
    translator: Any,
    sources: Sequence[str],
    references: Sequence[str],
    target_language: str | Sequence[str] | None = None,
) -> Calibration:
    """Finds how likely words are right, from translations with references; see `keras_transformer.text.confidence`.

    Args:
        translator: a `keras_transformer.Translator`.
        sources: a list of strings, some hundred or more, not from the training text.
        references: their translations.
        target_language: see `Translator.translate`.

    Returns:
        `keras_transformer.text.confidence.Calibration`, which also becomes `translator.calibration`.

    Raises:
        ValueError: the lists have different lengths, or no word is right, or none is wrong.
    """
    translator.calibration = Calibration.fit(*judged_words(translator, sources, references, target_language))
    return translator.calibration


def judged_words(translator, sources, references, target_language=None, translations=None):
    """Log probabilities of the words of all translations, and whether each word is right: two lists.

    `translations` are those of the sources without a glossary, if they are there already.
    """
    rule = "each reference translates its source"
    sources, references = check_pairs(sources, references, ("sources", "references"), rule)
    if translations:
        sentences = translator.codec.encode(sources, target_language)
    else:
        shared = {"target_language": target_language, "shortlist": translator.shortlist}
        sentences, rows = translator.find(sources, translator.settings, **shared)
        translations = [row[0] for row in rows]
    log_probs, right = [], []
    words = translator.scorer.words(sentences, translations)
    for translation, words_here, reference in zip(translations, words, references, strict=True):
        places = [word.span() for word in WORD.finditer(translation.text)]
        judged = dict(zip(places, right_words(translation.text, reference), strict=True))
        log_probs += [log_prob for _, _, log_prob in words_here]
        right += [judged[begin, end] for begin, end, _ in words_here]
    return log_probs, right


def add_confidence(translator: Any, sentences: Sequence, results: Sequence) -> list:
    """Lists of `Translation`s of sentences with the confidence of each."""
    flat = [(sentence, translation) for sentence, row in zip(sentences, results, strict=True) for translation in row]
    confidences = []
    for words in translator.scorer.words([sentence for sentence, _ in flat], [translation for _, translation in flat]):
        found = translator.calibration([log_prob for _, _, log_prob in words]).tolist() if words else []
        rows = [(begin, end, confidence) for (begin, end, _), confidence in zip(words, found, strict=True)]
        confidences.append(Confidence(sum(found) / len(found) if found else 1.0, rows))
    confidences = iter(confidences)
    return [[translation._replace(confidence=next(confidences)) for translation in row] for row in results]


def learn_shortlist(
    translator: Any, sources: Sequence[str], targets: Sequence[str], target_language: str | Sequence[str] | None = None
) -> Shortlist:
    """Finds the target tokens that are often aligned with each source token; see `keras_transformer.search.shortlist`.

    Args:
        translator: a `keras_transformer.Translator`.
        sources, targets: lists of strings, some ten thousand pairs of the training text or more.
        target_language: see `Translator.translate`.

    Returns:
        `keras_transformer.search.shortlist.Shortlist`, which also becomes `translator.shortlist`.
    """
    model = translator.model
    if isinstance(model, Ensemble):
        raise ValueError("An ensemble has no shortlist. Received: a translator of an ensemble.")
    aligned = translator.scorer.align(sources, targets, target_language)
    translator.shortlist = Shortlist.learn(aligned, model.vocabulary_size, model.target_vocabulary_size)
    return translator.shortlist


def check_shortlist(settings, shortlist):
    """Raises a ValueError if a search with these `SearchSettings` lacks its shortlist."""
    if settings.shortlist and not shortlist:
        raise ValueError(
            "`shortlist` needs alignments of the training text. Received: "
            f"shortlist={settings.shortlist}, a translator without them. Call `keras_transformer.translation.learning."
            "learn_shortlist(translator, sources, targets)`, or `python -m keras_transformer shortlist RUN` for a run. "
            "An ensemble has none."
        )
