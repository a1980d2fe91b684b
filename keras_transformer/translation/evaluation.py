"""What translations are worth by sacreBLEU, and what a trained run is worth: its test sets, confidences, examples.

Reference: "A Call for Clarity in Reporting BLEU Scores" (Post, 2018), for the signatures of scores.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

from keras_transformer.text.confidence import CalibrationError
from keras_transformer.translation import learning


class CorpusScores(NamedTuple):
    """BLEU and chrF of a corpus, 0 to 100, each with its sacreBLEU signature."""

    bleu: float
    bleu_signature: str
    chrf: float
    chrf_signature: str

    def __str__(self):
        return f"BLEU {self.bleu:.2f}  ({self.bleu_signature})\nchrF {self.chrf:.2f}  ({self.chrf_signature})"


def corpus_scores(hypotheses: Sequence[str], references: Sequence[str], tokenize: str = "13a") -> CorpusScores:
    """Scores translations against one reference each.

    Args:
        hypotheses: list of strings, the translations.
        references: list of strings, of the same length.
        tokenize: sacreBLEU's tokenizer for BLEU. Defaults to `"13a"`, sacreBLEU's default. Use `"none"` for text that
            is already tokenised.

    Returns:
        `CorpusScores`.

    Example:
        >>> corpus_scores(["Das ist ein kleines Haus ."], ["Das ist ein kleines Haus ."]).bleu
        100.00000000000004
    """
    import sacrebleu

    hypotheses, references = list(hypotheses), list(references)
    if len(hypotheses) != len(references) or not references:
        raise ValueError(
            "Every translation needs one reference. "
            f"Received: {len(hypotheses):,} translations, {len(references):,} references."
        )
    # Without `force`, sacreBLEU warns of tokenised text.
    bleu, chrf = sacrebleu.BLEU(tokenize=tokenize, force=tokenize == "none"), sacrebleu.CHRF()
    bleu_score, chrf_score = (metric.corpus_score(hypotheses, [references]).score for metric in (bleu, chrf))
    return CorpusScores(bleu_score, str(bleu.get_signature()), chrf_score, str(chrf.get_signature()))


def score(translator: Any, text: Any, config: Any, title: str | None = None) -> CorpusScores:
    """sacreBLEU of a `ParallelText`; printed under `title`."""
    sources, references = zip(*text.pairs, strict=True)
    translations = translator.translate(sources, target_language=text.target_language, return_scores=True)
    tokenize = config.data.sacrebleu_tokenizer()
    corpus_score = corpus_scores([translation.text for translation in translations], references, tokenize)
    if title:
        cut = sum(translation.truncated for translation in translations)
        note = f", {cut:,} of them cut at {translator.codec.max_source_length} tokens" if cut else ""
        print(f"\n{title}, {text}, {len(sources):,} sentences{note}:\n{corpus_score}", flush=True)
    return corpus_score


def scores(translator: Any, texts: Sequence, config: Any, title: str | None = None) -> dict:
    """The scores of several texts as a dictionary: their means, and under "texts" those of each text by its name."""
    of_each = {str(text): score(translator, text, config, title)._asdict() for text in texts}
    result = next(iter(of_each.values()))
    if len(of_each) > 1:
        means = {name: sum(of_text[name] for of_text in of_each.values()) / len(of_each) for name in ("bleu", "chrf")}
        result = {**result, **means, "texts": of_each}
    return result


def scores_of_tests(translator: Any, corpus: Any, config: Any, title: str) -> dict:
    """The scores of the test sets as `scores.json` has them; after training, also of several validation texts."""
    key, results = title.replace(" ", "_"), {}
    results[key] = scores(translator, corpus.test, config, title)
    if corpus.general_test:
        results[f"general_{key}"] = scores(translator, [corpus.general_test], config, title)
    if title == "after training" and len(corpus.validation) > 1:
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
        show_samples(translator, text, 5 if len(corpus.test) == 1 else 2)


def show_table(results: dict, corpus: Any) -> None:
    """Prints the content of scores.json, if there are several texts: BLEU and chrF, before training if measured."""
    tests = [("", text) for text in corpus.test] + [("general_", text) for text in (corpus.general_test,) if text]
    if len(tests) == 1:
        return
    columns = {"before": "before_training", "after": "after_training"}
    columns = {name: key for name, key in columns.items() if key in results}
    print("\n" + f"{'BLEU / chrF':50}" + "".join(f"{name:>15}" for name in columns))
    for name, text in tests:
        of_columns = [results.get(f"{name}{key}", {}) for key in columns.values()]
        row = [cell.get("texts", {}).get(str(text), cell) for cell in of_columns]
        _print_row(str(text), row)
    if len(corpus.test) > 1:
        _print_row("mean of these", [results.get(key, {}) for key in columns.values()])
    for name, cell in results.get("validation", {}).get("texts", {}).items():
        _print_row(name, [{}, cell][-len(columns) :])


def _print_row(name, of_columns):
    row = [f"{cell['bleu']:.1f} / {cell['chrf']:.1f}" if cell else "-" for cell in of_columns]
    print(f"{name[-50:]:50}" + "".join(f"{cell:>15}" for cell in row), flush=True)


def show_samples(translator: Any, text: Any, count: int = 5) -> None:
    """Prints source, reference and translation of sentences spread over a `ParallelText`."""
    pairs = text.pairs[:: max(1, len(text.pairs) // count)][:count]
    sources = [source for source, _ in pairs]
    translations = translator.translate(sources, target_language=text.target_language, return_scores=True)
    for (source, reference), translation in zip(pairs, translations, strict=True):
        print(f"\n  source       {source}\n  reference    {reference}\n  translation  {translation.text}")
