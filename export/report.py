"""What runs and their exports are worth: quality, milliseconds a sentence and size, as a table and a picture.

Each form of each run is measured in a process of its own. The forms follow one another; within a form, the runs take
turns, because the speed of a machine may change.
"""

import contextlib
import functools
import itertools
import multiprocessing
import os
import re
import shlex
import shutil
import statistics
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from keras_transformer.data.corpora import load_corpus, read_parallel
from keras_transformer.export import ExportError
from keras_transformer.files import new_folder, write_json
from keras_transformer.training.run import Run

# Number of sentences that are timed. Each is translated once before.
TIMED = 200
# Numbers of clients that ask at the same time. Each asks for one sentence after the other.
CLIENTS = 1, 4, 16
# Number of sentences that a run translates before it is the next run's turn.
TURN = 10
# The forms of a run by name: how it is exported, and how its weights are stored.
FORMS = {
    "Python, XLA": ("python", None),
    "SavedModel": ("saved_model", None),
    "TFLite float32": ("tflite", "none"),
    "TFLite int8": ("tflite", "int8"),
}
BROWSER_FORMS = {"browser float32": ("web", "none"), "browser int8": ("web", "int8")}


def write_report(
    runs: Sequence[str], folder: Path | str, texts: Sequence[tuple[str, str]] = (), browser: bool = False
) -> list[dict[str, Any]]:
    """Measures runs on test texts; writes `report.md`, `report.json` and `report.png`, and prints the table.

    Args:
        runs: run folders. Several with commas between them are an ensemble, which has one form, in Python.
        folder: the folder to write; an older report in it is replaced.
        texts: (source, reference) pairs of files. Defaults to none: the test texts of the last run.
        browser: whether to measure the page, too, in Chromium. Defaults to False.

    Returns:
        A list of dictionaries: run, form, texts (BLEU, chrF, intervals and signatures by the name of the text), ms
        (the median), p95, p99 (in ms, too), per_second (sentences a second by the number of clients), bytes.

    Raises:
        ExportError: with `browser`, the page cannot be built, or Chromium does not start.
        ImportError: with `browser`, playwright is not installed.
    """
    from keras_transformer.pictures.figures import quality_and_cost

    if browser:  # Whatever is missing is an error now, not after the other forms.
        from keras_transformer.export.web import built_page

        built_page()
        with chromium():
            pass
    data = Run(runs[-1].split(",")[0]).config().data
    tests = [read_parallel(*pair) for pair in texts] or [x for x in load_corpus(data).test if x.segments is None]
    tests_of = {run: _tests(run, tests, data) for run in runs}
    rows = {run: [] for run in runs}
    all_forms = FORMS | (BROWSER_FORMS if browser else {})
    print(f"Runs: {', '.join(runs)}. Forms, one after the other: {'; '.join(all_forms)}.", flush=True)
    with new_folder(folder, overwrite=True) as written, tempfile.TemporaryDirectory() as scratch:
        for form, (kind, quantize) in all_forms.items():
            # An ensemble is not exported.
            measured = {run: tests_of[run] for run in runs if kind == "python" or "," not in run}
            forms = [
                (kind, quantize, run if kind == "python" else in_own_process(_exported, run, kind, quantize, scratch))
                for run in measured
            ]
            measurements = _measured(forms, list(measured.values()))
            for run, measurement in zip(measured, measurements, strict=True):
                name = " + ".join(Run(member).name for member in run.split(","))
                rows[run].append({"run": name, "form": form, **measurement})
                print(_line(rows[run][-1]), flush=True)
        seeds = of_seeds(rows)
        rows = list(itertools.chain.from_iterable(rows.values()))
        command = [*runs, *(["--browser"] if browser else []), *(word for pair in texts for word in ("--text", *pair))]
        write_json(written / "report.json", rows)
        (written / "report.md").write_text(as_markdown(rows, command, seeds), encoding="utf-8")
        quality_and_cost(rows).savefig(written / "report.png")
    print("\n".join([*seeds, f"Report: {folder}"]), flush=True)
    return rows


def own_process() -> ProcessPoolExecutor:
    """A pool of one new process, so that nothing of one form counts for another."""
    return ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("spawn"))


def in_own_process(function: Callable, *arguments) -> Any:
    """Calls a function in a new process."""
    with own_process() as pool:
        return pool.submit(function, *arguments).result()


def bytes_in(*paths: Path | str) -> int:
    """The size of files, and of all files in folders."""
    files = [file for path in map(Path, paths) for file in (path.rglob("*") if path.is_dir() else [path])]
    return sum(file.stat().st_size for file in files if file.is_file())


class Form(NamedTuple):
    """A form of a run. Both functions also take the target language; by default it is that of the run."""

    translate: Callable  # Of one text: returns the translation, and the seconds that it took.
    translate_all: Callable  # Of a list of texts: returns the translations.
    bytes: int  # The size of the model and its tokenizers.
    serves_clients: bool = False  # Whether several threads can call `translate` at once.


def timed(function: Callable) -> Callable:
    """A version of `function` that also returns the seconds that it took."""

    def call(*arguments):
        began = time.perf_counter()
        result = function(*arguments)
        return result, time.perf_counter() - began

    return call


def python_form(folders: Sequence[str], **settings) -> Form:
    """`Translator` of a list of run folders; `settings` are its arguments."""
    from keras_transformer.translation.translator import Translator

    translator = Translator.load(folders, **settings)
    size = bytes_in(*(Run(folder).model_file for folder in folders), *_tokenizer_files(folders[0]))

    def translate_all(texts, language=None):
        return translator.translate(texts, target_language=language)

    return Form(timed(lambda text, *language: translate_all([text], *language)[0]), translate_all, size, True)


def saved_model_form(path: Path | str) -> Form:
    """A SavedModel in a session without XLA, as a stock TensorFlow Serving runs it; first use of TensorFlow here."""
    for line in Path(path, "serving.env").read_text(encoding="utf-8").splitlines():
        name, value = line.split("=", 1)
        os.environ[name] = value
    from keras_transformer.export.verify import ServedModel, disable_xla

    disable_xla()
    served = ServedModel(path)

    def translate_all(texts, language=None):
        signature, inputs = "translate", {"text": texts}
        if language is not None:
            signature, inputs["target_language"] = "translate_to", [language] * len(texts)
        return [translation.decode() for translation in served(signature, **inputs)["translation"]]

    translate = timed(lambda text, *language: translate_all([text], *language)[0])
    return Form(translate, translate_all, bytes_in(path), True)


def tflite_form(path: Path | str) -> Form:
    """A `translator.tflite`, with one thread."""
    from keras_transformer.export.run_tflite import TFLiteTranslator

    @functools.cache
    def translator(language):
        return TFLiteTranslator(Path(path, "translator.tflite"), target_language=language)

    def translate(text, language=None):
        return translator(language).translate(text)[0][0]

    size = bytes_in(Path(path, "translator.tflite"))
    return Form(timed(translate), lambda texts, *language: [translate(text, *language) for text in texts], size)


@contextlib.contextmanager
def chromium() -> Iterator[Any]:
    """Chromium, until the end of the `with` block: that on the PATH, or else playwright's."""
    try:
        from playwright.sync_api import Error, sync_playwright
    except ImportError as error:
        raise ImportError("The page is measured with playwright. Try: pip install playwright") from error
    program = shutil.which("chromium") or shutil.which("google-chrome")
    # Root needs the first flag. The others stop the browser's own network requests to Google.
    flags = "--no-sandbox --disable-gpu --no-first-run --disable-background-networking --disable-component-update"
    with sync_playwright() as playwright:
        try:
            browser = playwright.chromium.launch(executable_path=program, args=flags.split())
        except Error as error:
            raise ExportError(
                f"Chromium does not start: {str(error).splitlines()[0]} Install it: apt install chromium, or "
                "playwright install chromium."
            ) from error
        try:
            yield browser
        finally:
            browser.close()


@contextlib.contextmanager
def browser_form(path: Path | str, quantize: str) -> Iterator[Form]:
    """A model of a page in Chromium, in one thread; its seconds are those of the search alone.

    The page splits a text into sentences. So it translates a line of several sentences otherwise than the other forms.
    """
    from keras_transformer.export.web import model_folder, server

    folder = model_folder(quantize)
    with chromium() as browser, server(path) as site, contextlib.ExitStack() as stack:
        threading.Thread(target=site.serve_forever, daemon=True).start()
        stack.callback(site.shutdown)
        page = browser.new_page()
        page.goto("http://{}:{}/models.json".format(*site.server_address))  # Not the page: only its library.
        page.evaluate(_LOAD, folder)

        def translate(text, language=None):
            return tuple(page.evaluate(_TRANSLATE, [text, language]))

        size = bytes_in(Path(path, folder, "translator.tflite"))
        yield Form(translate, lambda texts, *language: [translate(text, *language)[0] for text in texts], size)


_LOAD = """async (folder) => {
    const { createTranslator } = await import("/translator.js");
    window.translator = await createTranslator(folder);
}"""
_TRANSLATE = """async ([text, targetLanguage]) => {
    const found = await translator.translate(text, { targetLanguage });
    return [found.text, (found.times.search ?? 0) / 1e3];
}"""


def _tokenizer_files(folder):
    return sorted(Path(folder).glob("*tokenizer.*"))


def _exported(run, kind, quantize, scratch):
    """The path of an export: the run's own, if it is up to date, else a new one in the folder `scratch`."""
    run, model = Run(run), "."
    export = run.export_folder(kind, quantize if kind == "tflite" else "none")
    if kind == "saved_model":
        versions = [int(path.name) for path in export.glob("*") if path.name.isdecimal()]
        export /= str(max(versions, default="none"))
    if kind == "web":  # A page may have one of the models only.
        from keras_transformer.export.web import export_web, model_folder

        model = model_folder(quantize)
    if (export / model).is_dir() and up_to_date(export, run):
        return str(export)
    from keras_transformer.translation.translator import Translator

    path = Path(tempfile.mkdtemp(dir=scratch), kind)  # Folders of two runs may have the same name.
    translator = Translator.load(run.folder)
    if kind == "saved_model":
        from keras_transformer.export.saved_model import export_saved_model

        return str(export_saved_model(translator, path))
    if kind == "web":
        return str(export_web(translator, path, [quantize])[0])
    from keras_transformer.export.tflite import export_tflite

    return str(export_tflite(translator, path, quantize)[0])


def up_to_date(export: Path, run: Run) -> bool:
    """Whether an export is newer than the model of its run, the settings of its search and its shortlist."""
    made_from = run.model_file, run.config_file, run.shortlist_file
    return export.stat().st_mtime >= max(file.stat().st_mtime for file in made_from if file.is_file())


def _tests(run, texts, data):
    """(name, pairs, target language, sacreBLEU's tokenizer) of texts for a run; no language if it has only one."""
    languages = Run(run.split(",")[0]).tokenizers()[0].languages
    first = next(iter(data.target_languages()), data.target_language)
    codes = [text.target_language or first for text in texts]
    rows = zip(texts, codes, strict=True)
    return [(str(x), x.pairs, code if code in languages else None, data.sacrebleu_tokenizer(code)) for x, code in rows]


def _measured(forms, tests):
    """Dictionaries of bytes, ms and texts of one form of several runs.

    `forms` has the arguments of `_open` for each run, and `tests` the results of `_tests`. The sentences of the first
    text are timed.
    """
    sources = [source for source, _ in tests[0][0][1][:TIMED]]
    languages = [texts[0][2] for texts in tests]
    with contextlib.ExitStack() as stack:
        pools = []
        for form, language in zip(forms, languages, strict=True):
            pools.append(stack.enter_context(own_process()))
            pools[-1].submit(_open, *form).result()
            stack.callback(lambda pool=pools[-1]: pool.submit(_close).result())
            pools[-1].submit(_seconds, sources, language).result()  # What is done for the first time is not timed.
        seconds = [[] for _ in pools]
        for start in range(0, len(sources), TURN):
            for pool, language, seconds_of_run in zip(pools, languages, seconds, strict=True):
                seconds_of_run += pool.submit(_seconds, sources[start : start + TURN], language).result()
        rows = [_latencies(times) for times in seconds]
        for row, pool, language, texts in zip(rows, pools, languages, tests, strict=True):
            row["per_second"] |= pool.submit(_per_second, sources, language).result()
            row |= pool.submit(_scored, texts).result()
    return rows


def _latencies(seconds):
    ms = {name: 1e3 * float(np.percentile(seconds, p)) for name, p in (("ms", 50), ("p95", 95), ("p99", 99))}
    return {**ms, "per_second": {"1": len(seconds) / sum(seconds)}}


# The form that this process has open, and what closes it.
_form = None
_opened = contextlib.ExitStack()


def _open(kind, quantize, path):
    global _form
    if kind == "python":
        _form = python_form(path.split(","), jit_compile=True)
    elif kind == "web":
        _form = _opened.enter_context(browser_form(path, quantize))
    else:
        _form = saved_model_form(path) if kind == "saved_model" else tflite_form(path)


def _close():
    _opened.close()


def _seconds(texts, language):
    """The seconds for each of some texts, one after the other."""
    return [_form.translate(text, language)[1] for text in texts]


def _per_second(texts, language):
    """Sentences a second by the number of clients, for those above 1, if the form can serve them."""
    rates = {}
    for count in CLIENTS[1:] if _form.serves_clients else ():
        with ThreadPoolExecutor(count) as clients:
            began = time.perf_counter()
            list(clients.map(lambda text: _form.translate(text, language), texts))
            rates[str(count)] = len(texts) / (time.perf_counter() - began)
    return rates


def _scored(tests):
    """The size of the form, and its scores on every text."""
    from keras_transformer.translation.evaluation import corpus_scores

    row = {"bytes": _form.bytes, "texts": {}}
    for name, pairs, language, tokenizer in tests:
        sources, references = zip(*pairs, strict=True)
        translations = _form.translate_all(list(sources), language)
        row["texts"][name] = corpus_scores(translations, references, tokenizer)._asdict()
    return row


def _line(row):
    scores = next(iter(row["texts"].values()))
    quality = f"BLEU {scores['bleu']:6.2f} ± {scores['bleu_interval']:.2f}  chrF {scores['chrf']:6.2f}"
    return f"{row['run']:30}{row['form']:18}{quality}{row['ms']:9.2f} ms{row['bytes'] / 1e6:8.2f} MB"


# What does not change the weights that a training gives, beside its seed.
_OF_NO_WEIGHT = {"seed", "cache_dir", "workers", "jit_compile", "checkpoint_steps"}


def of_seeds(rows_of_runs: dict[str, list[dict[str, Any]]]) -> list[str]:
    """Lines about runs that differ in their seeds alone: mean and standard deviation of their BLEU, by form."""
    groups = {}
    for run in rows_of_runs:
        if "," not in run:
            flat = Run(run).config().flat()
            fixed = [(name, repr(value)) for name, value in flat.items() if name not in _OF_NO_WEIGHT]
            groups.setdefault(tuple(fixed), {})[flat["seed"]] = run
    lines = []
    for runs in (list(group.values()) for group in groups.values()):
        for rows in zip(*(rows_of_runs[run] for run in runs), strict=True) if len(runs) > 1 else ():
            for name in rows[0]["texts"]:
                scores = [row["texts"][name]["bleu"] for row in rows]
                names = ", ".join(row["run"] for row in rows)
                lines.append(
                    f"{len(runs)} seeds ({names}), {rows[0]['form']}, {name}: BLEU {statistics.mean(scores):.2f}, "
                    f"standard deviation {statistics.stdev(scores):.2f}"
                )
    return lines


def as_markdown(rows: list[dict[str, Any]], command: Sequence[str | Path], seeds: Sequence[str] = ()) -> str:
    """The table of a report, the lines of `of_seeds`, and the command that makes it: a list of its words."""
    columns = ["ms", "p95", "p99", *(f"{count} clients" if count > 1 else "1 client" for count in CLIENTS), "MB"]
    head = ["run", "form", *(f"{name}, BLEU / chrF" for name in rows[0]["texts"]), *columns]
    table = [head, ["---"] * len(head)]
    for row in rows:
        scores = [
            f"{text['bleu']:.2f} ± {text['bleu_interval']:.2f} / {text['chrf']:.2f} ± {text['chrf_interval']:.2f}"
            for text in row["texts"].values()
        ]
        times = [f"{row[name]:.2f}" for name in ("ms", "p95", "p99")]
        # A browser's time is that of the search alone.
        rates = [None if "browser" in row["form"] else row["per_second"].get(str(count)) for count in CLIENTS]
        rates = [f"{rate:.1f}" if rate else "-" for rate in rates]
        table.append([row["run"], row["form"], *scores, *times, *rates, f"{row['bytes'] / 1e6:.2f}"])
    lines = ["# Quality, time and size", "", *(f"| {' | '.join(cells)} |" for cells in table), ""]
    lines += [*(f"- {line}" for line in seeds), *[""] * bool(seeds)]
    signatures = {}
    for name, scores in rows[0]["texts"].items():
        for metric in ("bleu", "chrf"):
            signatures.setdefault(scores[f"{metric}_signature"], []).append(name)
    lines += [*(f"- {', '.join(names)}: {signature}" for signature, names in signatures.items()), ""]
    lines += [
        f"`ms`, `p95`, `p99`: the median time for one of the first {TIMED} sentences of the first text, tokenization "
        "included, and the times that 95 % and 99 % of them do not exceed; `clients`: sentences a second for clients "
        f"that ask at the same time. On {os.cpu_count()} cores ({_processor()}); within a form, the runs take turns, "
        "except for several clients. In Python, XLA has compiled the search before; the SavedModel runs without XLA; "
        "TFLite and the browser use one thread, and the browser's time is that of the search alone. `MB`: model and "
        "tokenizers. Each form has the search settings of its run.",
        "",
    ]
    return "\n".join([*lines, f"    python -m keras_transformer report {shlex.join(map(str, command))}", ""])


def _processor():
    """The name of the processor."""
    with contextlib.suppress(OSError):
        if match := re.search(r"^model name\s*: *(.+)", Path("/proc/cpuinfo").read_text(), re.MULTILINE):
            return match[1]
    return "unknown processor"
