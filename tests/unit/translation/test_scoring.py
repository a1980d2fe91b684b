"""Corpus scores: sacreBLEU's numbers and signatures, one reference for every translation."""

import pytest
import sacrebleu

from keras_transformer.translation.evaluation import CorpusScores, corpus_scores

HYPOTHESES = ["Der kleine Hund läuft über die Straße .", "Eine Frau liest ein Buch ."]
REFERENCES = ["Der kleine Hund rennt über die Straße .", "Eine Frau liest gerade ein Buch ."]


def test_a_perfect_translation_has_100():
    scores = corpus_scores(REFERENCES, REFERENCES)
    assert scores.bleu == pytest.approx(100)
    assert scores.chrf == pytest.approx(100)


def test_nothing_in_common_has_0():
    scores = corpus_scores(["xx yy zz ww"], ["aa bb cc dd"])
    assert scores.bleu == pytest.approx(0, abs=1e-9)
    assert scores.chrf == 0


def test_bleu_by_hand():
    """Precisions 4/5, 3/4, 2/3, 1/2 and no brevity penalty: their geometric mean."""
    scores = corpus_scores(["a b c d x"], ["a b c d e"])
    assert scores.bleu == pytest.approx(100 * (4 / 5 * 3 / 4 * 2 / 3 * 1 / 2) ** 0.25)


@pytest.mark.parametrize("tokenize", ["13a", "none", "intl", "char"])
def test_scores_are_those_of_sacrebleu(tokenize):
    scores = corpus_scores(HYPOTHESES, REFERENCES, tokenize=tokenize)
    assert scores.bleu == sacrebleu.corpus_bleu(HYPOTHESES, [REFERENCES], tokenize=tokenize).score
    assert scores.chrf == sacrebleu.corpus_chrf(HYPOTHESES, [REFERENCES]).score
    assert f"tok:{tokenize}" in scores.bleu_signature


def test_bleu_is_of_the_corpus_not_the_mean_of_sentences():
    sentences = [corpus_scores([h], [r]).bleu for h, r in zip(HYPOTHESES, REFERENCES, strict=True)]
    assert corpus_scores(HYPOTHESES, REFERENCES).bleu != pytest.approx(sum(sentences) / 2, abs=0.1)


def test_scores_are_case_sensitive():
    assert corpus_scores([REFERENCES[0].lower()], [REFERENCES[0]]).bleu < 100


def test_signatures_say_how_it_was_scored():
    scores = corpus_scores(HYPOTHESES, REFERENCES)
    version = f"version:{sacrebleu.__version__}"
    assert scores.bleu_signature == f"nrefs:1|case:mixed|eff:no|tok:13a|smooth:exp|{version}"
    assert scores.chrf_signature == f"nrefs:1|case:mixed|eff:yes|nc:6|nw:0|space:no|{version}"


def test_iterators_are_taken_too():
    assert corpus_scores(iter(HYPOTHESES), iter(REFERENCES)) == corpus_scores(HYPOTHESES, REFERENCES)


def test_an_empty_translation_is_scored_not_refused():
    scores = corpus_scores(["", HYPOTHESES[1]], REFERENCES)
    assert 0 < scores.bleu < corpus_scores(HYPOTHESES, REFERENCES).bleu


def test_printed_with_two_decimals_and_signatures():
    assert str(CorpusScores(12.345678, "sig:b", 50.0, "sig:c")) == "BLEU 12.35  (sig:b)\nchrF 50.00  (sig:c)"


@pytest.mark.parametrize(
    ("hypotheses", "references", "received"),
    [
        (HYPOTHESES, REFERENCES[:1], "2 translations, 1 references"),
        (HYPOTHESES[:1], REFERENCES, "1 translations, 2 references"),
        ([], REFERENCES, "0 translations, 2 references"),
        ([], [], "0 translations, 0 references"),
    ],
)
def test_every_translation_needs_one_reference(hypotheses, references, received):
    with pytest.raises(ValueError, match=f"Every translation needs one reference. Received: {received}"):
        corpus_scores(hypotheses, references)


@pytest.mark.parametrize(("tokenize", "warned"), [("none", False), ("13a", True)])
def test_tokenised_text_is_warned_of_only_where_it_is_unexpected(tokenize, warned, caplog):
    texts = ["ein hund rennt ."] * 200
    assert corpus_scores(texts, texts, tokenize).bleu == pytest.approx(100)
    assert ("forgot to detokenize" in caplog.text) is warned
