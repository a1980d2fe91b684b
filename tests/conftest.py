"""How tests are spread over processes; trained runs and a browser for those that need them."""

import ast
import fcntl
import functools
import gc
import hashlib
import os
import re
import shutil
import signal
import subprocess
import sys
import threading
from contextlib import contextmanager
from importlib.metadata import version
from pathlib import Path
from typing import NamedTuple

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
# There is a test process for each core, so each computes in one thread. More threads only wait for work, and that
# took a fifth of the time.
os.environ.setdefault("TF_NUM_INTRAOP_THREADS", "1")
os.environ.setdefault("TF_NUM_INTEROP_THREADS", "1")

import pytest
import trainings
from trainings import files, phrases, side_by_side

# In a background job of a script, Python and its child processes ignore Ctrl-C. Tests that interrupt would hang.
signal.signal(signal.SIGINT, signal.default_int_handler)

ROOT = Path(__file__).parent.parent
RUNS = {"golden", "two_way"}
# Files that train the runs, unless an earlier session did. Each is the first one of its process.
TRAINING = ("integration/test_contracts.py", "integration/test_directions.py")
# They take longest, and begin first, so that no process works on one of them alone at the end.
LONGEST = (
    *("test_distribution", "test_model", "test_contracts", "test_importing", "test_docs", "test_examples"),
    *("test_command_line", "test_web", "test_distilling", "test_export_tflite", "test_translator", "test_pictures"),
)


@pytest.hookimpl(optionalhook=True)  # There may be no xdist.
def pytest_xdist_auto_num_workers(config):
    """One process for tests of one file, as each imports TensorFlow; else one for each core."""
    files = {argument.split("::")[0] for argument in config.args}
    return 0 if len(files) == 1 and files.pop().endswith(".py") else len(os.sched_getaffinity(0))


def pytest_collection_modifyitems(items):
    """The files that train runs begin; those that only use them come last, so that nobody waits for a training."""
    with_runs = {item.path for item in items if RUNS & set(item.fixturenames)}
    places = {name: place for place, name in enumerate(LONGEST)}

    def place(item):
        trains = item.path.relative_to(ROOT / "tests").as_posix() in TRAINING
        return not trains, item.path in with_runs, places.get(item.path.stem, len(LONGEST)), item.path

    items.sort(key=place)


def pytest_runtest_setup(item):
    if "tensorflow" in sys.modules:  # Tests of text, files and settings do not load it.
        quick_graphs()


@functools.cache
def quick_graphs():
    """Turns TensorFlow's graph optimizer off, because tests run most graphs once: a training takes a fifth less time.

    Commands that tests start in processes of their own run with it.
    """
    import tensorflow as tf

    tf.config.optimizer.set_experimental_options({"disable_meta_optimizer": True})
    config = tf.compat.v1.ConfigProto()
    config.graph_options.rewrite_options.disable_meta_optimizer = True
    tf.compat.v1.Session = functools.partial(tf.compat.v1.Session, config=config)
    gc.collect()
    gc.freeze()  # Collections need not look at the 400,000 objects of imported modules again and again.


@pytest.fixture
def messages(caplog):
    """A function that returns what the library has logged since the last call, as lines."""
    caplog.set_level("INFO", logger="keras_transformer")

    def lines():
        text = "".join(f"{record.getMessage()}\n" for record in caplog.records)
        caplog.clear()
        return text

    return lines


@pytest.fixture(scope="module", autouse=True)
def released_graphs():
    """Graphs of training steps are released after each file; else, a test process grows to 7 GB.

    TensorFlow keeps each function with a gradient of its own for ever, and with it the graph that it was traced in. So
    does plain Keras: `ReplicaContext.all_reduce`, which its optimizers call, has such a gradient.
    """
    yield
    if "tensorflow" in sys.modules:
        from tensorflow.python.framework.ops import gradient_registry

        for name in [name for name in gradient_registry.list() if name.startswith("CustomGradient-")]:
            del gradient_registry._registry[name]


# Runs. They are trained once per state of the code, in the folder that pytest keeps between sessions.


class Golden(NamedTuple):
    """A run folder and the objects loaded from it."""

    run_dir: object
    model: object
    tokenizer: object
    translator: object
    texts: list


@pytest.fixture(scope="session")
def session_folder(tmp_path_factory):
    """A temporary folder that all test processes share."""
    folder = tmp_path_factory.getbasetemp()
    return folder.parent if "PYTEST_XDIST_WORKER" in os.environ else folder


def sources(path):
    """A Python file, and the files of this repository that it imports, at any depth; exports are no part of a run."""
    found, todo = set(), [path]
    while todo:
        path = todo.pop()
        if path in found or not path.is_file():
            continue
        found.add(path)
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            if isinstance(node, ast.ImportFrom) and not node.level:
                names = [node.module, *(f"{node.module}.{alias.name}" for alias in node.names)]
            for name in names:
                if name.startswith("keras_transformer") and not name.startswith("keras_transformer.export"):
                    place = ROOT / name.replace(".", "/")
                    todo += [place.with_suffix(".py"), place / "__init__.py"]
    return sorted(found)


def exporting():
    """The files that training and exporting a run import."""
    return [*sources(ROOT / "train_keras.py"), *sorted((ROOT / "export").glob("*.py"))]


def key(paths):
    """A name for the content of files and the versions of what they build on."""
    found = hashlib.sha256()
    for name in ("keras", "keras-nlp", "numpy", "sentencepiece", "tensorflow", "tensorflow-text"):
        found.update(f"{name} {version(name)}\n".encode())
    for path in paths:
        found.update(path.read_bytes())
    return found.hexdigest()[:16]


@contextmanager
def alone(folder):
    """Other test processes that ask for this folder wait."""
    folder.mkdir(parents=True, exist_ok=True)
    with open(folder / ".lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def made_once(request, name, paths, make):
    """A folder that `make(folder)` fills, once for each content of the files `paths`; older ones are removed."""
    cache = getattr(request.config, "cache", None)  # None with `-p no:cacheprovider`.
    base = (cache.mkdir("runs") if cache else request.getfixturevalue("session_folder")) / name
    with alone(base):
        folder = base / key([*paths, Path(__file__), Path(trainings.__file__)])
        if not (folder / "whole").exists():
            for old in base.iterdir():
                shutil.rmtree(old, ignore_errors=True)
            folder.mkdir()
            make(folder)
            (folder / "whole").touch()
    return folder


def run_of(request, name, pairs, flags):
    """A run of the training script on `pairs`, which it memorises. Each session has a copy, which tests may change."""
    from keras_transformer.translation.translator import Translator

    def train(folder):
        import train_keras

        sizes = "--num-layers 2 --num-heads 2 --hidden-dim 64 --intermediate-dim 96 --dropout 0"
        recipe = "--learning-rate 0.003 --tokens-per-batch 200"
        argv = [*flags(folder), *sizes.split(), *recipe.split(), "--run-dir", str(folder / "run")]
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(train_keras, "finish", lambda *rest: 0)  # Few tests need scores, and fewer an export.
            assert train_keras.main(argv) == 0

    folder = made_once(request, name, sources(ROOT / "train_keras.py"), train)
    copy = request.getfixturevalue("session_folder") / name
    with alone(copy):
        if not (copy / "run").exists():
            shutil.copytree(folder / "run", copy / "run")
    translator = Translator.load(copy / "run", jit_compile=False)  # Nothing is compiled while tests run.
    return Golden(copy / "run", translator.model, translator.source_tokenizer, translator, [en for en, _ in pairs])


@pytest.fixture(scope="session")
def golden(request):
    """A run of one direction, English to German, that knows 16 sentences; `texts` are their sources."""
    pairs = phrases()[:16]

    def flags(folder):  # Repeated sentences make few epochs with many steps each.
        return ["--epochs", "6", "--label-smoothing", "0.05", *files(folder, train=pairs * 60, val=pairs)]

    return run_of(request, "golden", pairs, flags)


@pytest.fixture(scope="module")
def loaded_once(golden):
    """Commands that load the golden run with equal settings share a translator. To trace its search takes a second."""
    from keras_transformer.translation.translator import Translator

    load, kept = Translator.load, {repr({}): golden.translator}

    def once(folders, **settings):
        if not isinstance(folders, list) or [*map(Path, folders)] != [golden.run_dir]:
            return load(folders, **settings)
        name = repr(settings)
        if name not in kept:
            kept[name] = load(folders, **settings)
        return kept[name]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Translator, "load", once)
        yield


@pytest.fixture(scope="session")
def two_way(request):
    """A run of two directions, English to German and back, that knows a few sentences; `texts` are those pairs."""
    pairs = phrases()[:12]

    def flags(folder):
        found = ["--epochs", "8"]
        for split, times in (("train", 60), ("val", 1)):
            en, de = side_by_side(folder, split, pairs * times, ("en", "de"))
            found += [f"--{split}", en, de, "direction=en-de", f"--{split}", de, en, "direction=de-en"]
        return found

    run = run_of(request, "two_way", pairs, flags)
    english, german = map(list, zip(*pairs, strict=True))
    found = zip(run.translator.translate(german, target_language="en"), run.translator.translate(english), strict=True)
    known = [pair for pair, one in zip(pairs, found, strict=True) if pair == one]
    assert len(known) > 8  # Processors round differently, and a sentence may be wrong on one of them.
    return run._replace(texts=known)


@pytest.fixture(scope="session")
def finished(request, two_way):
    """The run of two directions, scored and exported: its folder, not to be changed."""

    def finish(folder):
        import train_keras

        shutil.copytree(two_way.run_dir, folder / "run")
        assert train_keras.main(["--resume", "--run-dir", str(folder / "run")]) == 0

    return made_once(request, "finished", exporting(), finish) / "run"


@pytest.fixture(scope="session")
def origin(two_way):
    """The run that `servable` was exported from; its texts are English."""
    return two_way._replace(texts=[english for english, _ in two_way.texts])


@pytest.fixture(scope="session")
def servable(finished):
    """The SavedModel of the run of two directions: the folder of its version."""
    return finished / "export" / "saved_model" / "1"


@pytest.fixture(scope="session")
def served(servable):
    """The SavedModel of the run of two directions, in a session."""
    from keras_transformer.export.verify import ServedModel

    with ServedModel(servable) as served:
        yield served


@pytest.fixture(scope="session")
def tflite(request, golden):
    """The golden run as models of a page: folders `float32`, with a calibration, and `int8`; not to be changed."""

    def export(folder):
        from keras_transformer.export.tflite import export_tflite
        from keras_transformer.text.confidence import Calibration

        # Room for all that the search may write, twice the source: Python cuts no hypothesis, either.
        lengths = {"source_length": 40, "target_length": 80}
        with pytest.MonkeyPatch.context() as patch:
            calibration = Calibration(a=0.7, b=1.0, d=-3.0, num_words=1, right=0.5)
            patch.setattr(golden.translator, "calibration", calibration)
            _, same = export_tflite(golden.translator, folder / "float32", explain=True, **lengths)
            assert same == 1.0
            export_tflite(golden.translator, folder / "int8", "int8", explain=True, num_beams=1, **lengths)

    return made_once(request, "tflite", exporting(), export)


# The browser.


@pytest.fixture(scope="session")
def has_chromium():
    """Tests that need Chromium are skipped if it is not installed."""
    if not shutil.which("chromium"):
        pytest.skip("no `chromium` on the PATH")


@pytest.fixture(scope="module")
def browser(has_chromium):
    """Chromium."""
    from keras_transformer.export.report import chromium

    with chromium() as browser:
        yield browser


@pytest.fixture(scope="session")
def cache(request):
    """The cache that the page is built in, once for each content of its sources; skips without npm."""
    from keras_transformer.export import web

    unfit = web.unfit_node()
    if unfit:
        pytest.skip(f"the page cannot be built: {unfit}")

    def build(folder):
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv("KERAS_HOME", str(folder))
            web.built_page()

    left_out = {"node_modules", "__pycache__"}
    files = sorted(path for path in web.SOURCES.rglob("*") if path.is_file() and not left_out & set(path.parts))
    return made_once(request, "page", files, build)


@pytest.fixture(scope="session")
def site(golden, cache, tflite, tmp_path_factory):
    """The page of the golden run, with its models `float32` and `int8`: a folder, not to be changed."""
    from exports import export_page

    folder, shares = export_page(golden, cache, tflite, tmp_path_factory.mktemp("web") / "site")
    assert shares == {"float32": 1.0, "int8": 0.9}
    return folder


@pytest.fixture(scope="session")
def npm_package(request):
    """A function that returns `node_modules` with a package, such as "axe-core@4.14.1", which tests alone need.

    The test is skipped if npm or its registry cannot be reached.
    """

    def node_modules(package):
        if not shutil.which("npm"):
            pytest.skip("no `npm` on the PATH")

        def install(folder):
            command = ["npm", "install", "--ignore-scripts", "--no-audit", "--no-fund", "--fetch-retries=1", package]
            done = subprocess.run(command, cwd=folder, stdin=subprocess.DEVNULL, capture_output=True, text=True)
            if re.search(r"ENOTFOUND|EAI_AGAIN|ECONN|ENETUNREACH|ETIMEDOUT", done.stderr):
                pytest.skip("npm's registry cannot be reached")
            assert done.returncode == 0, done.stderr

        return made_once(request, package, [], install) / "node_modules"

    return node_modules


@pytest.fixture(scope="session")
def axe(npm_package):
    """The script of axe-core."""
    return (npm_package("axe-core@4.14.1") / "axe-core" / "axe.min.js").read_text()


@pytest.fixture
def opened(browser):
    """`opened(folder, **context)` serves a folder and opens its page; what the page asks for is in `page.asked`."""
    with pages(browser) as open_page:
        yield open_page


@pytest.fixture(scope="module")
def opened_for_all(browser):
    """`opened` for pages that the tests of a file share."""
    with pages(browser) as open_page:
        yield open_page


@contextmanager
def pages(browser):
    """The function of `opened`."""
    from keras_transformer.export.web import server

    closing = []

    def open_page(folder, address="", **context):
        site = server(folder)
        threading.Thread(target=site.serve_forever, daemon=True).start()
        inside = browser.new_context(**{"service_workers": "block"} | context)  # They would keep 20 MB of each page.
        closing.extend([inside.close, site.shutdown, site.server_close])
        page = inside.new_page()
        page.set_default_timeout(60_000)
        page.asked, page.errors = [], []
        page.on("request", lambda request: page.asked.append(request.url))
        page.on("pageerror", lambda error: page.errors.append(error))
        page.origin = "http://{}:{}".format(*site.server_address)
        page.goto(address or page.origin)
        return page

    yield open_page
    for close in closing:
        close()


@pytest.fixture(scope="module")
def shared(site, opened_for_all):
    """The page of `site`, opened once for all tests of a file, with its model."""
    page = opened_for_all(site)
    page.wait_for_selector("#translate:enabled")
    return page
