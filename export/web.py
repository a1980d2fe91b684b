"""A web page that translates in the browser: static files, with TFLite models, the runtime and the tokenizer in them.

The page is `site/`; its worker is built from `web/` and part of the package, so making a site needs no Node.js.
"""

import functools
import json
import os
import re
import shutil
from http import HTTPStatus
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

from keras_transformer.export import ExportError
from keras_transformer.files import new_folder

PAGE = Path(__file__).parent / "site"
# What the page may do: load from its own address, and run WebAssembly. `index.html` says it, too, for other servers.
POLICY = (
    "default-src 'none'; script-src 'self' 'wasm-unsafe-eval'; worker-src 'self'; connect-src 'self'; "
    "style-src 'self'; img-src data:; base-uri 'none'; form-action 'none'"
)


def export_web(translator, path, quantizations=("none", "int8"), overwrite=False, **options):
    """Writes a folder that any web server can serve; `index.html` is the page.

    Args:
        translator: a `keras_transformer.translator.Translator` on the TensorFlow backend with SentencePiece tokenizers.
        path: the folder to write.
        quantizations: the models to choose from on the page, the first one at the start; see
            `keras_transformer.export.tflite.export_tflite`. Defaults to float32 and int8.
        overwrite: whether to replace the folder if it exists. Defaults to False.
        **options: `source_length`, `target_length` and search settings, for `export_tflite`.

    Returns:
        The path of the folder, and for each model the share of sentences that it translates as Python does.

    Raises:
        ExportError: the place cannot be written to, the tokenizer has no JavaScript form, or the answers differ.
    """
    from keras_transformer.export.tflite import export_tflite

    path = Path(path)
    models, shares = [], {}
    with new_folder(path, overwrite) as temporary:
        if "wordpiece" in {tokenizer.kind for tokenizer in translator.tokenizers}:
            raise ExportError(
                "The page has SentencePiece tokenizers only. Received: tokenizer wordpiece. "
                "Train with --tokenizer unigram."
            )
        shutil.copytree(PAGE, temporary, dirs_exist_ok=True)
        for quantize in dict.fromkeys(quantizations):
            name = "float32" if quantize == "none" else quantize
            folder = temporary / "models" / name
            _, shares[name] = export_tflite(translator, folder, quantize, text_file=False, **options)
            size = (folder / "translator.tflite").stat().st_size
            models.append({"name": name, "folder": f"models/{name}", "bytes": size})
        content = {"name": translator.run.folder.name if translator.run else "untitled", "models": models}
        (temporary / "models.json").write_text(json.dumps(content, indent=2) + "\n", encoding="utf-8")
    return path, shares


def server(path, port=0):
    """An HTTP server of a folder on 127.0.0.1, not yet running; port 0 takes a free one."""
    handler = functools.partial(_Handler, directory=str(path))
    try:
        return ThreadingHTTPServer(("127.0.0.1", port), handler)
    except OSError as error:
        raise ExportError(f"Cannot serve on port {port}: {error.strerror}. Choose another --port.") from error


class _Handler(SimpleHTTPRequestHandler):
    # Said here, since the machine's own table may say otherwise.
    extensions_map = {
        ".css": "text/css; charset=utf-8",
        ".html": "text/html; charset=utf-8",
        ".js": "text/javascript; charset=utf-8",
        ".json": "application/json",
        ".wasm": "application/wasm",
        ".tflite": "application/octet-stream",
        ".spm": "application/octet-stream",
    }

    def send_head(self):
        """Of GET and HEAD: files of the folder alone, and only to this machine's own names."""
        # A page from elsewhere can let its own name point to 127.0.0.1, and then read what is here: DNS rebinding.
        hosts = self.headers.get_all("Host", [])
        if len(hosts) != 1 or not re.fullmatch(r"(127\.0\.0\.1|localhost)(:\d+)?", hosts[0], re.IGNORECASE):
            return self.send_error(HTTPStatus.MISDIRECTED_REQUEST, "Ask for 127.0.0.1 or localhost")
        path = self.translate_path(self.path)
        file = os.path.join(path, "index.html") if os.path.isdir(path) else path
        # Folders are not listed, and links do not lead out.
        if not os.path.isfile(file) or not Path(file).resolve().is_relative_to(Path(self.directory).resolve()):
            return self.send_error(HTTPStatus.NOT_FOUND)
        return super().send_head()

    def end_headers(self):
        self.send_header("Cache-Control", "no-cache")  # What was exported anew is seen at once.
        self.send_header("Content-Security-Policy", f"{POLICY}; frame-ancestors 'none'")
        self.send_header("Referrer-Policy", "no-referrer")
        self.send_header("X-Content-Type-Options", "nosniff")
        super().end_headers()

    def log_message(self, *args):
        pass
