"""A web page that translates in the browser: static files that include TFLite models and the runtime.

The sources of the page lie beside this file. npm builds the page from them once, into the user's cache. Later exports
copy it from there and need neither npm nor a network.
"""

import contextlib
import functools
import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Sequence
from http import HTTPStatus
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import TYPE_CHECKING

from keras_transformer.export import ExportError
from keras_transformer.export.run_tflite import check_litert
from keras_transformer.files import MANIFEST, README, FileError, cache_folder, cached_folder, hashes, new_folder

if TYPE_CHECKING:  # A page is built without Keras.
    from keras_transformer.translation.translator import Translator

SOURCES = Path(__file__).parent  # Of the page: all files but those of Python, and the README of its library.
NODE_VERSION = 18  # The oldest Node.js that builds the page; Debian 12 and Ubuntu 24.04 have it.
# The build needs development tools, even if the user's npm is set to omit them. Scripts of packages are not run.
# Packages in npm's cache are not downloaded again. Without a network, three tries take seconds; with npm's default
# waits they would take more than a minute.
NPM_CI = ["npm", "ci", "--include=dev", "--include=optional", "--ignore-scripts", "--no-audit", "--no-fund"]
NPM_CI += ["--loglevel=error", "--prefer-offline"]
NPM_CI += ["--fetch-retries=2", "--fetch-retry-mintimeout=1000", "--fetch-retry-maxtimeout=5000"]
SERVICE_WORKER = "service-worker.js"
# The page may load files from its own address and run WebAssembly. `index.html` has the same policy, for other servers.
POLICY = (
    "default-src 'none'; script-src 'self' 'wasm-unsafe-eval'; worker-src 'self'; connect-src 'self'; "
    "style-src 'self'; img-src data:; base-uri 'none'; form-action 'none'"
)


def export_web(
    translator: "Translator",
    path: Path | str,
    quantizations: Sequence[str] = ("none", "int8"),
    overwrite: bool = False,
    **options,
) -> tuple[Path, dict[str, float]]:
    """Writes a folder that any web server can serve; `index.html` is the page.

    Args:
        translator: a translator on the TensorFlow backend with SentencePiece tokenizers.
        path: the folder to write.
        quantizations: the models to choose from on the page, the initial one first; see `quantize` of
            `keras_transformer.export.tflite.export_tflite`. Defaults to float32 and int8.
        overwrite: whether to replace the folder if it exists. Defaults to False.
        **options: `source_length`, `target_length` and search settings, for `export_tflite`.

    Returns:
        The path of the folder, and for each model the share of sentences that it translates as Python does.

    Raises:
        ExportError: `path` cannot be written to, the tokenizers are not of SentencePiece, the page cannot be built, or
            the answers differ from Python's.
        ImportError: LiteRT is not installed.
    """
    check_litert()  # Before the page is built.
    from keras_transformer.export.tflite import export_tflite

    path = Path(path)
    models, shares = [], {}
    with new_folder(path, overwrite) as temporary:
        if "wordpiece" in {tokenizer.kind for tokenizer in translator.codec.tokenizers}:
            raise ExportError(
                "The page has SentencePiece tokenizers only. Received: tokenizer wordpiece. "
                "Train with --tokenizer unigram."
            )
        shutil.copytree(built_page(), temporary, ignore=shutil.ignore_patterns(MANIFEST), dirs_exist_ok=True)
        for quantize in dict.fromkeys(quantizations):
            folder = model_folder(quantize)
            name = Path(folder).name
            _, shares[name] = export_tflite(translator, temporary / folder, quantize, explain=True, **options)
            size = (temporary / folder / "translator.tflite").stat().st_size
            models.append({"name": name, "folder": folder, "bytes": size})
        content = {"name": translator.run.name if translator.run else "untitled", "models": models}
        (temporary / "models.json").write_text(json.dumps(content, indent=2) + "\n", encoding="utf-8")
        _complete_service_worker(temporary / SERVICE_WORKER, models[0]["folder"])
    return path, shares


def _complete_service_worker(file, first_model):
    """Writes into the service worker of a page which files it keeps, and a hash of all files: the version."""
    digests = hashes(file.parent)
    kept = [name for name in digests if name.startswith(f"{first_model}/") or not name.startswith("models/")]
    names = ["./", *(name for name in kept if Path(name).name not in (MANIFEST, README, file.name))]
    version = hashlib.sha256(json.dumps(digests).encode()).hexdigest()
    constants = f"const VERSION = {json.dumps(version)};\nconst FILES = {json.dumps(names)};\n\n"
    file.write_text(constants + file.read_text(encoding="utf-8"), encoding="utf-8")


def model_folder(quantize: str) -> str:
    """The folder of a model in that of the page, a string; see `quantizations` of `export_web`."""
    return f"models/{'float32' if quantize == 'none' else quantize}"


def built_page() -> Path:
    """The folder of the page without models. The first call builds it with npm.

    The folder is in `page` of `keras_transformer.files.cache_folder`. Its name has a hash of the page's
    sources, so that another version of the package builds its own. The folder is the same on all machines and can be
    copied from one to another.

    Returns:
        The path of the folder.

    Raises:
        ExportError: npm is missing or fails, or the cache cannot be written to.
    """
    files = (path for path in SOURCES.rglob("*") if path.is_file() and path.suffix not in (".py", ".pyc", ".md"))
    names = sorted(path.relative_to(SOURCES) for path in files)
    sources = {str(name): (SOURCES / name).read_bytes() for name in names if "node_modules" not in name.parts}
    digest = hashlib.sha256()
    for name, content in sources.items():
        digest.update(f"{name}\n{len(content)}\n".encode() + content)
    folder = cache_folder("page", digest.hexdigest()[:16])
    try:
        return cached_folder(folder, lambda temporary: _build(sources, temporary, folder))
    except ExportError:
        raise
    except FileError as error:
        raise ExportError(
            f"The page is built once and kept in the user's cache. {error} "
            "KERAS_HOME can name another folder for the cache."
        ) from error


def _build(sources, output, folder):
    """Builds the page into `output`; `folder` is its final path, for messages."""
    remedy = f"copy {folder} from a machine where this version of keras_transformer has exported a page"
    if unfit := unfit_node():
        raise ExportError(
            f"The first export of a page builds it with npm and Node.js {NODE_VERSION} or newer. Received: {unfit}. "
            f"Install Node.js {NODE_VERSION} or newer, which brings npm, or {remedy}."
        )
    print(f"Building the page with npm, once, in {folder} ...", file=sys.stderr, flush=True)
    work = output / "build"
    for name, content in sources.items():
        (work / name).parent.mkdir(parents=True, exist_ok=True)
        (work / name).write_bytes(content)
    if problem := _problem(NPM_CI, work):
        raise ExportError(
            f"`npm ci` downloads the packages that the page is built from, and it failed. Received: {problem}. "
            f"Export again when npm's registry can be reached, or {remedy}."
        )
    if problem := _problem(["node", "build.js", ".."], work):
        raise ExportError(
            f"`node build.js` builds the page, and it failed. Received: {problem}. If it fails again, {remedy}."
        )
    shutil.rmtree(work)


def unfit_node() -> str:
    """What is wrong with this machine's npm and Node.js, or an empty string."""
    for name in ("node", "npm"):
        if not shutil.which(name):
            return f"no `{name}` on the PATH"
    version = subprocess.run(["node", "--version"], capture_output=True, text=True).stdout.strip()
    match = re.match(r"v(\d+)\.", version)
    return "" if match and int(match[1]) >= NODE_VERSION else f"Node.js {version or 'without a version'}"


def _problem(command, folder):
    """Runs a command in a folder; returns the most useful line of its errors, or an empty string."""
    text = {"encoding": "utf-8", "errors": "replace"}
    # `close_fds`: the command inherits the lock of the cache; see `cached_folder`.
    done = subprocess.run(command, cwd=folder, stdin=subprocess.DEVNULL, capture_output=True, close_fds=False, **text)
    if done.returncode == 0:
        return ""
    lines = [re.sub(r"^npm (error|ERR!) ?", "", line).strip() for line in done.stderr.splitlines()]
    telling = [line for line in lines if line and not re.match(r"(code|errno|syscall|path) ", line)]
    telling.sort(key=lambda line: "error" not in line.lower())  # Node.js writes the place of an error before the error.
    return telling[0].rstrip(".") if telling else f"exit status {done.returncode}"


def server(path: Path | str, port: int = 0) -> ThreadingHTTPServer:
    """An HTTP server of a folder on 127.0.0.1, not yet running; port 0 means any free port."""
    handler = functools.partial(_Handler, directory=str(path))
    try:
        return ThreadingHTTPServer(("127.0.0.1", port), handler)
    except (OSError, OverflowError) as error:
        reason = error.strerror if isinstance(error, OSError) else "a port is a number from 0 to 65535"
        raise ExportError(f"Cannot serve on port {port}: {reason}. Choose another --port.") from error


class _Handler(SimpleHTTPRequestHandler):
    # Set here, because the machine's own table may have other types.
    extensions_map = {
        ".css": "text/css; charset=utf-8",
        ".html": "text/html; charset=utf-8",
        ".js": "text/javascript; charset=utf-8",
        ".json": "application/json",
        ".wasm": "application/wasm",
        ".txt": "text/plain; charset=utf-8",
        ".tflite": "application/octet-stream",
    }

    def send_head(self):
        """Answers GET and HEAD: only for files of the folder, and only for this machine's own names."""
        # Against DNS rebinding: a foreign page could let its own name point to 127.0.0.1 and then read these files.
        hosts = self.headers.get_all("Host", [])
        if len(hosts) != 1 or not re.fullmatch(r"(127\.0\.0\.1|localhost)(:\d+)?", hosts[0], re.IGNORECASE):
            return self.send_error(HTTPStatus.MISDIRECTED_REQUEST, "Use 127.0.0.1 or localhost")
        path = self.translate_path(self.path)
        file = os.path.join(path, "index.html") if os.path.isdir(path) else path
        # Folders are not listed, and links out of the folder are not followed.
        if not os.path.isfile(file) or not Path(file).resolve().is_relative_to(Path(self.directory).resolve()):
            return self.send_error(HTTPStatus.NOT_FOUND)
        return super().send_head()

    def end_headers(self):
        self.send_header("Cache-Control", "no-cache")  # So that a new export is seen at once.
        self.send_header("Content-Security-Policy", f"{POLICY}; frame-ancestors 'none'")
        self.send_header("Referrer-Policy", "no-referrer")
        self.send_header("X-Content-Type-Options", "nosniff")
        super().end_headers()

    def copyfile(self, source, outputfile):
        with contextlib.suppress(ConnectionError):  # Browsers cancel downloads.
            super().copyfile(source, outputfile)

    def log_message(self, *args):
        pass
