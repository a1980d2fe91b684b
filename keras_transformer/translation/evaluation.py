"""Scores translations with sacreBLEU, and a trained run: its test sets, confidences, examples.

Reference: "A Call for Clarity in Reporting BLEU Scores" (Post, 2018), for the signatures of scores.
"""

import warnings
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from keras_transformer.text.confidence import CalibrationError
from keras_transformer.text.lines import DataError
from keras_transformer.translation import learning
from keras_transformer.translation.checks import checks

# Samples and seed of a bootstrap: the defaults of sacreBLEU's own command.
RESAMPLES, _SEED = 1000, 12345


class CorpusScores(NamedTuple):
    """BLEU and chrF of a corpus, 0 to 100, each with half of its 95 % interval and its sacreBLEU signature."""

    bleu: float
    bleu_interval: float
    bleu_signature: str
    chrf: float
    chrf_interval: float
    chrf_signature: str

    def __str__(self):
        return "\n".join(
            f"{name} {score:.2f} ± {interval:.2f}  ({signature})"
            for name, score, interval, signature in (("BLEU", *self[:3]), ("chrF", *self[3:]))
        )


def corpus_scores(hypotheses: Sequence[str], references: Sequence[str], tokenize: str = "13a") -> CorpusScores:
    """Scores translations against one reference each.

    Args:
        hypotheses: list of strings, the translations.
        references: list of strings, of the same length.
        tokenize: sacreBLEU's tokenizer for BLEU. Defaults to `"13a"`, sacreBLEU's default. Use `"none"` for text that
            is already tokenised.

    Returns:
        `CorpusScores`. The intervals are sacreBLEU's: of samples of the sentences, drawn with replacement ("Statistical
        Significance Tests for Machine Translation Evaluation", Koehn, 2004, section 3).

    Example:
        >>> corpus_scores(["Das ist ein kleines Haus ."], ["Das ist ein kleines Haus ."]).bleu
        100.00000000000004
    """
    hypotheses, references = _checked(hypotheses, references)
    scores = []
    for metric in _metrics(tokenize).values():
        statistics = metric._extract_corpus_statistics(hypotheses, [references])
        scores += [float(metric._aggregate_and_compute(statistics).score), _interval(metric, statistics)]
        signature = metric.get_signature()
        signature.info.update(bs=RESAMPLES, seed=_SEED)
        scores.append(str(signature))
    return CorpusScores(*scores)


def _interval(metric, statistics):
    """Half of the 95 % interval, from the samples of sacreBLEU's command, one by one: all would fill the memory."""
    from sacrebleu.significance import estimate_ci

    rows, rng = np.asarray(statistics, "float32"), np.random.default_rng(_SEED)
    # Of a large text, sums of float32 would be rounded.
    samples = (rows[rng.choice(len(rows), size=len(rows))].sum(0, dtype="float64") for _ in range(RESAMPLES))
    return float(estimate_ci(np.array([metric._compute_score_from_stats(sums).score for sums in samples]))[1])


class Difference(NamedTuple):
    """How much better the first of two systems is, and how probable so large a difference is between equal ones."""

    difference: float
    p_value: float


def paired_tests(
    hypotheses: Sequence[str], others: Sequence[str], references: Sequence[str], tokenize: str = "13a"
) -> dict[str, Difference]:
    """Compares the translations of two systems by approximate randomization.

    The test exchanges the two translations of random sentences, and counts how often the difference is as large. It is
    two-sided ("On Some Pitfalls in Automatic Evaluation and Significance Testing for MT", Riezler and Maxwell, 2005).

    Args:
        hypotheses, others: translations of the same sentences by the two systems.
        references, tokenize: see `corpus_scores`.

    Returns:
        A dict with the `Difference`s of "BLEU" and "chrF".

    Example:
        >>> test = paired_tests(["ein Haus am See", "ein Hund"], ["ein Haus", "ein Hund"], ["ein Haus am See"] * 2)
        >>> test["BLEU"].difference > 0
        True
    """
    hypotheses, references = _checked(hypotheses, references)
    others, _ = _checked(others, references)
    return {
        name: _randomized(metric, *(metric._extract_corpus_statistics(x, [references]) for x in (hypotheses, others)))
        for name, metric in _metrics(tokenize).items()
    }


def _metrics(tokenize):
    import sacrebleu

    # Without `force`, sacreBLEU warns of tokenised text.
    return {"BLEU": sacrebleu.BLEU(tokenize=tokenize, force=tokenize == "none"), "chrF": sacrebleu.CHRF()}


def _randomized(metric, *statistics):
    """The `Difference` of two systems from sacreBLEU's statistics of their sentences.

    sacreBLEU's own test does not count exchanges that make exactly the same difference. If few translations differ,
    these are most of them, and its probability is far too small.
    """
    systems, rng, larger = [np.asarray(rows, "float64") for rows in statistics], np.random.default_rng(_SEED), 0

    def difference(keep):
        sums = np.where(keep, *systems).sum(axis=0), np.where(keep, *systems[::-1]).sum(axis=0)
        one, other = (metric._compute_score_from_stats(x.astype(int).tolist()).score for x in sums)
        return one - other

    observed = difference(np.ones((len(systems[0]), 1), bool))
    for _ in range(RESAMPLES):
        larger += abs(difference(rng.random((len(systems[0]), 1)) < 0.5)) >= abs(observed) - 1e-9
    return Difference(observed, (larger + 1) / (RESAMPLES + 1))


def _checked(hypotheses, references):
    hypotheses, references = list(hypotheses), list(references)
    if len(hypotheses) != len(references) or not references:
        raise ValueError(
            "Every translation needs one reference. "
            f"Received: {len(hypotheses):,} translations, {len(references):,} references."
        )
    return hypotheses, references


class Translated(NamedTuple):
    """Sources, translations and references of a `ParallelText`.

    Attributes:
        sources, hypotheses, references: lists of strings.
        results: the `Translation`s; empty for a text of whole texts, whose segments the lists have.
    """

    sources: list
    hypotheses: list
    references: list
    results: list


def translated(translator: Any, text: Any) -> Translated:
    """Translates a `ParallelText`. Segments of whole texts that are the same in both languages are left out."""
    sources, references = map(list, zip(*text.pairs, strict=True))
    language = text.target_language if translator.source_tokenizer.languages else None  # Else it has only one.
    if text.segments is None:
        results = translator.translate(sources, target_language=language, return_scores=True)
        return Translated(sources, [result.text for result in results], references, results)
    rows, method = [], getattr(translator, text.method)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # What is lost is counted by `checks`.
        for source, reference in text.pairs:
            texts = source, method(source, target_language=language), reference
            source, hypothesis, reference = map(text.segments, texts)
            keys = [key for key in source if source[key] and reference.get(key) not in (None, "", source[key])]
            rows += [(source[key], hypothesis.get(key, ""), reference[key]) for key in keys]
    if not rows:
        raise DataError(
            f"Some text must differ in the two languages. Received: {text}, which is the same. Choose others."
        )
    return Translated(*map(list, zip(*rows, strict=True)), [])


def score(translator: Any, text: Any, config: Any, title: str | None = None) -> CorpusScores:
    """sacreBLEU of a `ParallelText`; printed under `title`, with the `checks` of its translations."""
    found = translated(translator, text)
    tokenizer = config.data.sacrebleu_tokenizer(text.target_language)
    corpus_score = corpus_scores(found.hypotheses, found.references, tokenizer)
    if title:
        cut = sum(result.truncated for result in found.results)
        note = f", {cut:,} of them cut at {translator.codec.max_source_length} tokens" if cut else ""
        print(f"\n{title}, {text}, {len(found.sources):,} {text.unit}{note}:\n{corpus_score}", flush=True)
        print(checks(found.sources, found.hypotheses), flush=True)
    return corpus_score


def scores(translator: Any, texts: Sequence, config: Any, title: str | None = None) -> dict:
    """The scores of several texts as a dictionary: under "texts" those of each text by its name, beside their means.

    Sentences and whole texts have no mean: the scores of the first text stand there.
    """
    of_each = {str(text): score(translator, text, config, title)._asdict() for text in texts}
    result = next(iter(of_each.values()))
    if len(of_each) > 1:
        if not any(text.segments for text in texts):
            result = {name: value for name, value in result.items() if not name.endswith("interval")}
            for name in ("bleu", "chrf"):
                result[name] = sum(of_text[name] for of_text in of_each.values()) / len(of_each)
        result = {**result, "texts": of_each}
    return result


def mean_bleu(translator: Any, texts: Sequence, config: Any) -> float:
    """The mean BLEU of several texts, without its interval: for every epoch."""
    found = []
    for text in texts:
        metric = _metrics(config.data.sacrebleu_tokenizer(text.target_language))["BLEU"]
        _, hypotheses, references, _ = translated(translator, text)
        found.append(metric.corpus_score(hypotheses, [references]).score)
    return sum(found) / len(found)


def scores_of_tests(translator: Any, corpus: Any, config: Any, title: str) -> dict:
    """The scores of the test sets as `scores.json` has them; after training, also of several validation texts."""
    key, results = title.replace(" ", "_"), {}
    results[key] = scores(translator, corpus.test, config, title)
    if corpus.general_test:
        results[f"general_{key}"] = scores(translator, [corpus.general_test], config, title)
    if title == "after training" and len(corpus.validation) > 1 and corpus.validation is not corpus.test:
        results["validation"] = scores(translator, corpus.validation, config)
    return results


def calibrate_run(run: Any, translator: Any, texts: Sequence, most: int = 1000) -> None:
    """Finds how likely words are right, from about `most` validation pairs, and writes it into the run."""
    few = [(*pair, text.target_language) for text in texts for pair in text.pairs[: -(-most // len(texts))]]
    sources, references, languages = zip(*few, strict=True)
    try:
        calibration = learning.calibrate(translator, sources, references, languages)
    except CalibrationError as error:  # Small corpora can be learned by heart.
        print(f"\nNo confidence: {error}", flush=True)
        return
    run.save_calibration(calibration)
    print(f"\nconfidence: fitted to {calibration.num_words:,} words, {calibration.right:.1%} of them right", flush=True)


def evaluate(run: Any, translator: Any, config: Any, corpus: Any) -> None:
    """Scores a trained run, fits its confidence, and shows what it translates."""
    run.save_scores({**run.scores(), **scores_of_tests(translator, corpus, config, "after training")})
    show_table(run.scores(), corpus)
    calibrate_run(run, translator, corpus.validation)
    for text in corpus.test:
        if text.segments is None:
            show_samples(translator, text, 5 if len(corpus.test) == 1 else 2)


def show_table(results: dict, corpus: Any) -> None:
    """Prints the content of scores.json, if there are several texts: BLEU and chrF, before training if measured."""
    tests = [("", text) for text in corpus.test] + [("general_", text) for text in (corpus.general_test,) if text]
    if len(tests) == 1:
        return
    columns = {"before": "before_training", "after": "after_training"}
    columns = {name: key for name, key in columns.items() if key in results}
    print("\n" + f"{'BLEU / chrF':50}" + "".join(f"{name:>27}" for name in columns))
    for name, text in tests:
        of_columns = [results.get(f"{name}{key}", {}) for key in columns.values()]
        row = [cell.get("texts", {}).get(str(text), cell) for cell in of_columns]
        _print_row(str(text), row)
    if corpus.test[0].direction and not any(text.segments for text in corpus.test):
        _print_row("mean of these", [results.get(key, {}) for key in columns.values()])
    for name, cell in results.get("validation", {}).get("texts", {}).items():
        _print_row(name, [{}, cell][-len(columns) :])


def _print_row(name, of_columns):
    row = [
        " / ".join(_with_interval(cell, metric) for metric in ("bleu", "chrf")) if cell else "-" for cell in of_columns
    ]
    print(f"{name[-50:]:50}" + "".join(f"{cell:>27}" for cell in row), flush=True)


def _with_interval(scores, metric):
    interval = scores.get(f"{metric}_interval")  # Means have none.
    return f"{scores[metric]:.1f}" + (f" ± {interval:.1f}" if interval is not None else "")


def show_samples(translator: Any, text: Any, count: int = 5) -> None:
    """Prints source, reference and translation of sentences spread over a `ParallelText`."""
    pairs = text.pairs[:: max(1, len(text.pairs) // count)][:count]
    sources = [source for source, _ in pairs]
    translations = translator.translate(sources, target_language=text.target_language, return_scores=True)
    for (source, reference), translation in zip(pairs, translations, strict=True):
        print(f"\n  source       {source}\n  reference    {reference}\n  translation  {translation.text}")
