"""Corpus scores: sacreBLEU's numbers, intervals and signatures; paired tests; what needs no reference."""

import random
import re
import subprocess
import sys
from types import SimpleNamespace

import pytest
import sacrebleu
from sacrebleu import significance

from keras_transformer.data.corpora import ParallelText
from keras_transformer.translation import evaluation
from keras_transformer.translation.checks import checks
from keras_transformer.translation.evaluation import CorpusScores, corpus_scores, paired_tests, translated

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
    assert scores.bleu_signature == f"nrefs:1|bs:1000|seed:12345|case:mixed|eff:no|tok:13a|smooth:exp|{version}"
    assert scores.chrf_signature == f"nrefs:1|bs:1000|seed:12345|case:mixed|eff:yes|nc:6|nw:0|space:no|{version}"


def test_iterators_are_taken_too():
    assert corpus_scores(iter(HYPOTHESES), iter(REFERENCES)) == corpus_scores(HYPOTHESES, REFERENCES)


def test_an_empty_translation_is_scored_not_refused():
    scores = corpus_scores(["", HYPOTHESES[1]], REFERENCES)
    assert 0 < scores.bleu < corpus_scores(HYPOTHESES, REFERENCES).bleu


def test_printed_with_two_decimals_intervals_and_signatures():
    printed = str(CorpusScores(12.345678, 1.5, "sig:b", 50.0, 0.256, "sig:c"))
    assert printed == "BLEU 12.35 ± 1.50  (sig:b)\nchrF 50.00 ± 0.26  (sig:c)"


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


def systems(count, worse, seed=0):
    """References, a system with some wrong words, and another one with more of them by the share `worse`."""
    rng = random.Random(seed)
    words = [f"word{number}" for number in range(200)]
    references = [[rng.choice(words) for _ in range(12)] for _ in range(count)]

    def system(share):
        return [" ".join(rng.choice(words) if rng.random() < share else word for word in line) for line in references]

    return [" ".join(line) for line in references], system(0.2), system(0.2 + worse)


def test_intervals_and_paired_tests_are_those_of_sacrebleu_s_command(tmp_path):
    texts = dict(zip(("references", "first", "second"), systems(300, 0.02), strict=True))
    for name, lines in texts.items():
        (tmp_path / name).write_text("".join(f"{line}\n" for line in lines))

    def rows(kind):
        flags = ["references", "-i", "first", "second", "-m", "bleu", "chrf", kind, "-w", "6", "-f", "text"]
        flags += ["--paired-ar-n", "1000"]
        command = [sys.executable, "-X", "utf8", "-m", "sacrebleu", *flags]
        table = subprocess.run(command, cwd=tmp_path, capture_output=True, encoding="utf-8", check=True).stdout
        return list(
            filter(None, ([float(x) for x in re.findall(r"\d+\.\d+", line)] for line in table.splitlines()[:8]))
        )

    first, second, _ = rows("--paired-bs")
    *_, p_values = rows("--paired-ar")
    found = corpus_scores(texts["second"], texts["references"])
    tests = paired_tests(texts["second"], texts["first"], texts["references"])
    # For each metric, the table has the score, the mean of the samples and the interval.
    for i, score, interval in ((0, found.bleu, found.bleu_interval), (1, found.chrf, found.chrf_interval)):
        test = tests[("BLEU", "chrF")[i]]
        assert (second[3 * i], second[3 * i + 2]) == pytest.approx((score, interval), abs=1e-4)
        assert test.difference == pytest.approx(second[3 * i] - first[3 * i], abs=1e-4)
        assert test.p_value == pytest.approx(p_values[i], abs=0.05)  # Other random numbers.


def test_translations_that_a_metric_finds_equal_do_not_differ():
    """sacreBLEU's own p-value of no difference is the smallest one: it does not count equal differences."""
    references, first, _ = systems(50, 0.0)
    others = [line.replace(" ", "  ") for line in first]
    for same in (first, others):
        assert {tuple(test) for test in paired_tests(first, same, references).values()} == {(0.0, 1.0)}
    one_other = ["nothing", *first[1:]]  # Every exchange makes the same difference.
    assert {test.p_value for test in paired_tests(first, one_other, references).values()} == {1.0}
    named = [("one", first), ("other", first)]
    _, found = significance.PairedTest(named, {"BLEU": sacrebleu.BLEU()}, [references], "ar", 99)()
    assert found["BLEU"][1].p_value == 0.01


def test_a_planted_difference_is_told_from_none(monkeypatch):
    """Of equal systems, one in twenty seems to differ at p = 0.05. sacreBLEU's bootstrap test finds twice as many."""
    monkeypatch.setattr(evaluation, "RESAMPLES", 200)
    assert all(paired_tests(*pair, references)["BLEU"].p_value < 0.05 for references, *pair in planted(0.06, 5, 200))
    p_values = [paired_tests(*pair, references)["BLEU"].p_value for references, *pair in planted(0.0, 100, 40)]
    assert 0 < sum(p < 0.05 for p in p_values) < 10 and max(p_values) > 0.9


def planted(worse, count, sentences):
    return (systems(sentences, worse, seed) for seed in range(count))


def test_one_sample_after_the_other_gives_the_interval_of_all_at_once():
    """sacreBLEU's own code has the statistics of all samples in memory: 4 GB for 50,000 sentences."""
    references, system, _ = systems(30, 0)
    test = significance.PairedTest([("", system)], {"BLEU": sacrebleu.BLEU()}, [references], "bs", 1000)
    signatures, found = test()
    scores = corpus_scores(system, references)
    assert scores.bleu == found["BLEU"][0].score
    assert scores.bleu_interval == pytest.approx(found["BLEU"][0].ci, rel=1e-6)  # Its sums are float32.
    assert scores.bleu_signature == str(signatures["BLEU"])


def test_what_needs_no_reference():
    sources = ["Set 12.5 or {x}", "Do not stop here", "OK", "go on", "a b", "run 10000"]
    translations = [
        "12,5 oder",
        "Do not stop here",
        "OK",
        "immer weiter, immer weiter, immer weiter, immer weiter",
        "",
        "laufe 10000",
    ]
    found = checks(sources, translations)
    assert (found.numbers, found.numbers_kept) == (2, 2)  # 10000 is one of the parts.
    assert (found.parts, found.parts_kept) == (2, 1)
    assert (found.copies, found.loops, found.lengths) == (1, 1, 1)
    loops = ["Barbarbarbara", "we go and on, and on, and on, and on.", "我很好很好很好很好", "so so so sometimes"]
    loops += ["Gesssssssss.", "1 1 1 1 1", "Ein Mann in einem blauen Hemd steht auf einer Leiter. " * 4]
    assert [checks(["x"], [text]).loops for text in loops] == [0, 1, 1, 0, 1, 1, 1]
    assert checks(["It is 3.5 km to {x}."], ["{x} ist 3,5 km entfernt."])[3:5] == (2, 2)  # A number may be localised.
    assert str(checks(["a"], ["b"])).startswith("checks: numbers kept: there are none;")


def test_a_loop_of_the_source_is_no_mistake():
    assert checks(["ho ho ho ho ho"], ["he he he he he"]).loops == 0


def test_whole_texts_are_scored_by_their_segments():
    """Segments that are the same in both languages say nothing about a translation."""
    told = []

    def method(text, target_language):
        told.append(target_language)
        return text.upper()

    text = ParallelText(
        [("a\nb\nsame", "x\ny\nsame"), ("c", "z")],
        "pages",
        direction="en-de",
        method="shout",
        segments=lambda x: dict(enumerate(x.split("\n"))),
    )
    translators = [
        SimpleNamespace(shout=method, source_tokenizer=SimpleNamespace(languages=x)) for x in ({"de": 5}, {})
    ]
    found, same = (translated(translator, text) for translator in translators)
    assert found == same and told == ["de", "de", None, None]  # One of a single direction has no language to choose.
    assert found[:3] == (["a", "b", "c"], ["A", "B", "C"], ["x", "y", "z"]) and found.results == []
    assert text.unit == "paragraphs"
