"""Corpus scores by sacreBLEU, with the signatures that make them comparable.

Reference: "A Call for Clarity in Reporting BLEU Scores" (Post, 2018).
"""

from typing import NamedTuple


class CorpusScores(NamedTuple):
    """BLEU and chrF of a corpus, 0 to 100, each with its sacreBLEU signature."""

    bleu: float
    bleu_signature: str
    chrf: float
    chrf_signature: str

    def __str__(self):
        return f"BLEU {self.bleu:.2f}  ({self.bleu_signature})\nchrF {self.chrf:.2f}  ({self.chrf_signature})"


def corpus_scores(hypotheses, references, tokenize="13a"):
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
