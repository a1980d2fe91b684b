"""The table of a report: intervals, times of many sentences, clients, and runs that differ in their seeds."""

import statistics
import threading
from types import SimpleNamespace

import pytest

from keras_transformer.data.corpora import ParallelText
from keras_transformer.export import report
from keras_transformer.files import write_json
from keras_transformer.training.config import RunConfig


def row(run, bleu, form="Python, XLA"):
    scores = {"bleu": bleu, "bleu_interval": 0.5, "bleu_signature": "b"}
    scores |= {"chrf": 60.0, "chrf_interval": 0.25, "chrf_signature": "c"}
    times = {"ms": 2.0, "p95": 3.0, "p99": 4.0, "per_second": {"1": 500.0, "4": 800.0}}
    return {"run": run, "form": form, "texts": {"test": scores}, **times, "bytes": 1e6}


def test_a_table_has_intervals_percentiles_and_clients():
    text = report.as_markdown([row("one", 40.0)], ["runs/one"], ["2 seeds (one, two): BLEU"])
    assert "| run | form | test, BLEU / chrF | ms | p95 | p99 | 1 client | 4 clients | 16 clients | MB |" in text
    cells = "40.00 ± 0.50 / 60.00 ± 0.25 | 2.00 | 3.00 | 4.00 | 500.0 | 800.0 | - | 1.00"
    assert f"| one | Python, XLA | {cells} |" in text
    assert "\n- 2 seeds (one, two): BLEU\n" in text


def test_runs_that_differ_in_their_seeds_are_grouped(tmp_path):
    rows = {}
    for name, settings, bleu in (
        ("a", {}, 40.0),
        ("b", {"seed": 1, "workers": 2}, 41.0),
        ("c", {"dropout": 0.2}, 9.0),
        ("stopped", {"seed": 2, "max_minutes": 9.0}, 9.0),
        ("d", {"epochs": 3}, 9.0),
    ):
        (tmp_path / name).mkdir()
        write_json(tmp_path / name / "config.json", RunConfig.make(settings).to_dict())
        rows[str(tmp_path / name)] = [row(name, bleu)]
    rows["a,b"] = [row("a + b", 42.0)]
    (line,) = report.of_seeds(rows)
    spread = statistics.stdev([40.0, 41.0])
    assert line == f"2 seeds (a, b), Python, XLA, test: BLEU 40.50, standard deviation {spread:.2f}"


def test_a_text_is_scored_in_its_language(monkeypatch):
    """Whatever a run can be told: one of a single direction has no language to choose."""
    data = RunConfig.make({"directions": [["en-de", "en-zh"]], "target_language": "fr"}).data
    texts = [ParallelText([("a", "b")], "x", direction="en-zh"), ParallelText([("a", "b")], "y")]
    for languages, told in (({}, [None, None]), ({"de": 5, "zh": 6}, ["zh", "de"])):
        tokenizer = SimpleNamespace(languages=languages)
        monkeypatch.setattr(report, "Run", lambda folder, it=tokenizer: SimpleNamespace(tokenizers=lambda: [it]))
        assert [row[2:] for row in report._tests("run", texts, data)] == list(zip(told, ["zh", "13a"], strict=True))


def test_clients_ask_at_the_same_time(monkeypatch):
    """Nobody is answered before all clients have asked; one too few would wait for ever."""
    barriers = {}

    def translate(text, language):
        count = 4 if len(barriers.setdefault("asked", [])) < 32 else 16
        barriers["asked"].append(text)
        barriers.setdefault(count, threading.Barrier(count, timeout=30)).wait()
        return text, 0.01

    texts = [str(number) for number in range(32)]
    monkeypatch.setattr(report, "_form", report.Form(translate, list, 0, True))
    assert list(report._per_second(texts, None)) == ["4", "16"] and len(barriers["asked"]) == 64
    monkeypatch.setattr(report, "_form", report.Form(translate, list, 0))
    assert report._per_second(texts, None) == {}


def test_percentiles_are_in_milliseconds():
    found = report._latencies([0.001] * 95 + [0.01] * 5)
    assert found["ms"] == pytest.approx(1) and found["p99"] == pytest.approx(10)
    assert found["per_second"]["1"] == pytest.approx(100 / 0.145)
