"""Whole texts: a translator's sentences put together again, as plain text, HTML or XML."""

import difflib
import functools
import itertools
import re
import reprlib
import warnings
from collections.abc import Iterable, Iterator
from typing import Any

from keras_transformer.text import sentences
from keras_transformer.text.markup_alignment import CONTROL, Aligned
from keras_transformer.text.placeholders import restored
from keras_transformer.translation.codec import check_unicode
from keras_transformer.translation.results import SentenceTranslation, TextTranslation


def split_text(translator: Any, text: str) -> list[str]:
    """The separators and sentences of a text, in turn; every sentence fits into `max_source_length`."""
    check_text(text)
    check_unicode("text", text)
    return sentences.fitted(sentences.split(text, translator.source_language), translator.codec.fits)


def stream_sentences(translator: Any, parts: list[str], **kwargs) -> Iterator:
    """Yields the `Translation` of each sentence of the result of `split_text`; see `Translator.stream`."""
    plain = (sentences.plain(sentence) for sentence in parts[1::2])
    return translator.stream(plain, **{"return_scores": True, **kwargs})


def join_text(parts: list[str], translations: Iterable) -> TextTranslation:
    """The `TextTranslation` of the result of `split_text` and the `Translation`s of its sentences."""
    translations = list(translations)
    texts = [sentences.without_marks(translation.text) for translation in translations]
    target = sentences.spaced([texts[i // 2] if i % 2 else part for i, part in enumerate(parts)])
    spans = zip(_spans(parts), _spans(target), translations, strict=True)
    return TextTranslation("".join(target), list(itertools.starmap(SentenceTranslation, spans)))


def _spans(parts):
    """Where the sentences are in the text of `parts`."""
    ends = list(itertools.accumulate(map(len, parts)))
    return [(ends[i - 1], ends[i]) for i in range(1, len(parts), 2)]


def translate_markup(translator, function, text, kwargs):
    """Translates with `markup.translate_html` or `markup.translate_xml`."""
    if translator.find.glossary:
        raise ValueError("Markup is translated without a glossary. Received: a translator with one. Leave it out.")
    check_arguments(kwargs)
    check_text(text)
    language = kwargs.get("target_language") or translator.translation_language
    translate = functools.partial(aligned_translations, translator, **kwargs)
    return function(text, translate, translator.source_language, language)


def check_text(text):
    """Raises a TypeError unless the whole text is one string."""
    if not isinstance(text, str):
        raise TypeError(
            f"`text` must be one string. Received: {reprlib.repr(text)}. For a list of sentences, use `translate`."
        )


def check_arguments(kwargs):
    """Raises a ValueError for arguments of `translate` that are for single sentences."""
    for name in ("num_hypotheses", "prefixes"):
        if name in kwargs:
            raise ValueError(
                f"A whole text has one translation and no prefixes. Received: {name}={kwargs[name]!r}. Use `translate` "
                "with the sentences of `split_text`, which are every second one of its parts."
            )


def warn_of_truncated(truncated, max_source_length, stacklevel=3):
    """Warns if texts were cut; `truncated` is a list of bool."""
    if any(truncated):
        warnings.warn(
            f"{sum(truncated):,} of {len(truncated):,} texts have more than `max_source_length` tokens, and only "
            f"their beginning was translated; the first is texts[{truncated.index(True)}]. Received: "
            f"max_source_length={max_source_length}. Split long texts into sentences.",
            stacklevel=stacklevel,
        )


def warn_of_lost(translations, num_placeholders, stacklevel=3):
    """Warns if `Translation`s lack parts that must not change."""
    lacking = [(place, translation.lost) for place, translation in enumerate(translations) if translation.lost]
    if lacking:
        place, parts = lacking[0]
        warnings.warn(
            f"{len(lacking):,} translations lack parts that must not change: the vocabulary has "
            f"{num_placeholders} placeholders. The first is that of sentence {place}. "
            f"Received: {', '.join(parts)}. Shorten the text.",
            stacklevel=stacklevel,
        )


def aligned_translations(translator, texts, **kwargs):
    """`Aligned` translations of texts, by `Attention.alignment`, for `text.markup`; see `Translator.translate`."""
    target_language = kwargs.get("target_language")
    kwargs["return_attention"] = True
    parts = [split_text(translator, text) for text in texts]
    found = iter(translator.stream([sentence for part in parts for sentence in part[1::2]], **kwargs))
    results, translations = [], []
    for text, part in zip(texts, parts, strict=True):
        here = list(itertools.islice(found, len(part) // 2))
        translations += [sentence._replace(attention=None) for sentence in here]  # Attention would fill the memory.
        joined = join_text(part, here)
        origins, nearest, place = [None] * len(joined.text), [None] * len(text), 0
        for sentence in joined.sentences:
            begin, end = sentence.target_span
            source_begin, source_end = sentence.source_span
            # What stands between two sentences comes from the end of what stood there.
            for back in range(begin - place):
                origins[begin - 1 - back] = max(source_begin - 1 - back, 0)
            source = text[source_begin:source_end]
            here_origins, here_nearest = character_origins(translator, source, sentence.translation, target_language)
            for i, origin in enumerate(here_origins[: end - begin]):
                origins[begin + i] = None if origin is None else source_begin + origin
            for i, target in enumerate(here_nearest):
                nearest[source_begin + i] = None if target is None else begin + target
            place = end
        for back in range(len(joined.text) - place):
            origins[len(joined.text) - 1 - back] = len(text) - 1 - back
        results.append(Aligned(CONTROL.sub("\ufffd", joined.text), origins, nearest))
    warn_of_lost(translations, translator.codec.num_placeholders)
    return results


def character_origins(translator, source, translation, target_language):
    """`origins` and `nearest` of a sentence; see `Aligned`."""
    text = translation.text
    if not translation.attention:
        return [None] * len(text), [None] * len(source)
    (source_ids,) = translator.codec.source_ids([source], target_language)
    parts = translation.parts
    source_spans = token_spans(translator.codec.source_tokenizer, source_ids, source, parts)
    target_spans = token_spans(translator.codec.target_tokenizer, translation.token_ids, text, parts)
    origins, nearest = [None] * len(text), [None] * len(source)
    scores = translation.attention.mean_scores()[: len(target_spans), : len(source_spans)]
    scores[:, : translation.attention.num_tags] = 0
    letters_of = [[i for i in range(*span) if text[i].isalnum()] for span in target_spans]
    for (first, last), column in zip(source_spans, scores.T, strict=True):
        best = max((i for i, letters in enumerate(letters_of) if letters), key=lambda i: column[i], default=None)
        if best is not None:
            nearest[first:last] = [letters_of[best][0] if x.isalnum() else None for x in source[first:last]]
    for (begin, end), token in zip(target_spans, scores.argmax(axis=1), strict=True):
        first, last = source_spans[token]
        letters = [i for i in range(first, last) if not source[i].isspace()]
        for i in range(begin, end):
            if letters and not text[i].isspace():
                origins[i] = letters[min(i - begin, len(letters) - 1)] if len(letters) == end - begin else letters[0]
    for i in range(1, min(len(text), len(source)) + 1):  # The marks at the end belong together.
        if text[-i].isalnum() or source[-i].isalnum():
            break
        origins[-i] = len(source) - i
    for word in re.finditer(r"\w+", text):  # All characters of a word go to the same place: that of most of them.
        inside = [origin for origin in origins[word.start() : word.end()] if origin is not None]
        if inside:
            most = max(inside, key=inside.count)
            origins[word.start() : word.end()] = [most] * len(word[0])
    return origins, nearest


def token_spans(tokenizer, ids, text, parts=()):
    """Where each token is in `text`: (begin, end). `parts` are those of a `Translation`."""
    prefixes = tokenizer.detokenize([list(ids[:count]) for count in range(1, len(ids) + 1)])
    prefixes = [restored(prefix, parts, complete=False) for prefix in prefixes]
    ends = list(itertools.accumulate(map(len, prefixes), max))
    whole = prefixes[-1] if prefixes else ""
    if whole != text:  # The tokenizer normalises texts.
        place = [len(text)] * (len(whole) + 1)
        for a, b, size in difflib.SequenceMatcher(None, whole, text, autojunk=False).get_matching_blocks():
            for i in range(size + (a < len(whole))):
                place[a + i] = b + i
        place = list(itertools.accumulate(reversed(place), min))[::-1]
        ends = [place[end] for end in ends]
    return list(zip([0, *ends], ends, strict=False))
