"""A tiny trained model for all tests that need translations, and a browser."""

import fcntl
import functools
import gc
import os
import shutil
import signal
import threading
from typing import NamedTuple

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")

import pytest

# In a background job of a script, Python and its child processes ignore Ctrl-C. Tests that interrupt would hang.
signal.signal(signal.SIGINT, signal.default_int_handler)

# These tests take longest. They run first, so that no core works on one of them alone at the end. The second and third
# file do not wait for the golden run, which the first one trains.
LONGEST = (
    *("test_command_line", "test_distribution", "test_importing", "test_distilling", "test_web", "test_directions"),
    *("test_export_tflite", "test_training", "test_checkpoints", "test_model", "test_docs", "test_translator"),
)


def pytest_collection_modifyitems(items):
    places = {name: place for place, name in enumerate(LONGEST)}
    items.sort(key=lambda item: places.get(item.path.stem, len(LONGEST)))


@pytest.fixture(scope="session", autouse=True)
def quick_graphs():
    """TensorFlow's graph optimizer is off, because tests run most graphs once: the golden run takes a fifth less time.

    Commands that tests start in processes of their own run with it.
    """
    import keras

    with pytest.MonkeyPatch.context() as patch:
        if keras.backend.backend() == "tensorflow":
            import tensorflow as tf

            tf.config.optimizer.set_experimental_options({"disable_meta_optimizer": True})
            config = tf.compat.v1.ConfigProto()
            config.graph_options.rewrite_options.disable_meta_optimizer = True
            patch.setattr(tf.compat.v1, "Session", functools.partial(tf.compat.v1.Session, config=config))
        gc.collect()
        gc.freeze()  # Collections need not look at the 400,000 objects of imported modules again and again.
        yield


@pytest.fixture(scope="module", autouse=True)
def released_graphs():
    """Graphs of training steps are released after each file; else, a test process grows to 7 GB.

    TensorFlow keeps each function with a gradient of its own for ever, and with it the graph that it was traced in. So
    does plain Keras: `ReplicaContext.all_reduce`, which its optimizers call, has such a gradient.
    """
    import keras

    yield
    if keras.backend.backend() == "tensorflow":
        from tensorflow.python.framework.ops import gradient_registry

        for name in [name for name in gradient_registry.list() if name.startswith("CustomGradient-")]:
            del gradient_registry._registry[name]


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


@pytest.fixture(scope="session")
def golden(session_folder):
    """A run of the training script on a few sentences that it memorises; all test processes share it."""
    from keras_transformer.phrasebook import phrasebook
    from keras_transformer.translator import Translator

    folder, pairs = session_folder / "golden", phrasebook()["train"][:16]
    train_once(train_golden, folder, pairs)
    translator = Translator.load(folder / "run", jit_compile=False)  # Nothing is compiled while tests run.
    return Golden(folder / "run", translator.model, translator.source_tokenizer, translator, [en for en, _ in pairs])


def train_once(train, folder, pairs):
    """Calls `train(folder, pairs)` in the first test process that needs it; others wait for it."""
    folder.mkdir(exist_ok=True)
    with open(folder / "lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (folder / "trained").exists():
            train(folder, pairs)
            (folder / "trained").touch()


def train_golden(folder, pairs):
    import train_keras

    files = []
    for split, times in (("train", 60), ("val", 1)):  # Repeated sentences make few epochs with many steps each.
        for name, side in (("source", 0), ("target", 1)):
            path = folder / f"{split}.{name}"
            path.write_text("".join(pair[side] + "\n" for pair in pairs * times), encoding="utf-8")
            files += [f"--{split}-{name}", str(path)]
    sizes = "--num-layers 2 --num-heads 2 --hidden-dim 64 --intermediate-dim 96 --dropout 0 --normalize-first"
    recipe = "--epochs 6 --learning-rate 0.003 --warmup-steps 30 --tokens-per-batch 200 --label-smoothing 0.05"
    assert train_keras.main([*files, *sizes.split(), *recipe.split(), "--run-dir", str(folder / "run")]) == 0


@pytest.fixture(scope="session")
def two_way(session_folder):
    """A run of two directions, English to German and back, that knows a few sentences; `texts` are those pairs."""
    from keras_transformer.phrasebook import phrasebook
    from keras_transformer.translator import Translator

    folder, pairs = session_folder / "two_way", phrasebook()["train"][:12]
    train_once(train_two_way, folder, pairs)
    translator = Translator.load(folder / "run", jit_compile=False)
    english, german = map(list, zip(*pairs, strict=True))
    found = zip(translator.translate(german, target_language="en"), translator.translate(english), strict=True)
    known = [pair for pair, one in zip(pairs, found, strict=True) if pair == one]
    assert len(known) > 8  # Processors round differently, and a sentence may be wrong on one of them.
    return Golden(folder / "run", translator.model, translator.source_tokenizer, translator, known)


def train_two_way(folder, pairs):
    import train_keras

    sizes = "--num-layers 2 --num-heads 2 --hidden-dim 64 --intermediate-dim 96 --dropout 0 --normalize-first"
    recipe = "--epochs 8 --learning-rate 0.003 --warmup-steps 30 --tokens-per-batch 200 --no-export"
    flags = [*sizes.split(), *recipe.split()]
    for split, times in (("train", 60), ("val", 1)):
        paths = [folder / f"{split}.{language}" for language in ("en", "de")]
        for side, path in enumerate(paths):
            path.write_text("".join(pair[side] + "\n" for pair in pairs * times), encoding="utf-8")
        en, de = map(str, paths)
        flags += [f"--{split}", en, de, "direction=en-de", f"--{split}", de, en, "direction=de-en"]
    assert train_keras.main([*flags, "--run-dir", str(folder / "run")]) == 0


@pytest.fixture(scope="session")
def served(golden):
    """The SavedModel of the golden run, in a session."""
    from keras_transformer.export.verify import ServedModel

    with ServedModel(golden.run_dir / "export" / "saved_model" / "1") as served:
        yield served


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


@pytest.fixture(scope="module")
def cache(session_folder):
    """The cache that the page is built in, once for all test processes; what needs it is skipped without npm."""
    from keras_transformer.export import web

    unfit = web._unfit_node()
    if unfit:
        pytest.skip(f"the page cannot be built: {unfit}")
    return session_folder / "cache"


@pytest.fixture
def opened(browser):
    """`opened(folder, **context)` serves a folder and opens its page; what the page asks for is in `page.asked`."""
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
