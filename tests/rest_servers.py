"""Small HTTP servers: one that answers as TensorFlow Serving does, and others that do not."""

import contextlib
import json
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import numpy as np


@contextlib.contextmanager
def _running(handler):
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    server.daemon_threads = True
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()


def answering(served):
    """The columns of https://www.tensorflow.org/tfx/serving/api_rest: `inputs` in, `outputs` out."""

    class Handler(BaseHTTPRequestHandler):
        def answer(self, status, content):
            body = json.dumps(content).encode()
            self.send_response(status)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def do_GET(self):
            if self.path != "/v1/models/translator":
                return self.answer(404, {"error": "Could not find any versions of model other"})
            state = {"version": "1", "state": "AVAILABLE", "status": {"error_code": "OK", "error_message": ""}}
            return self.answer(200, {"model_version_status": [state]})

        def do_POST(self):
            request = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            if self.path not in ("/v1/models/translator:predict", "/v1/models/translator/labels/stable:predict"):
                return self.answer(404, {"error": "Servable not found for request: Latest(other)"})
            if request["inputs"].get("text") == ["slow"]:
                return time.sleep(1.0)  # The client is gone by then.
            inputs = {
                key: np.array(value, object if isinstance(value[0], str) else np.int32)
                for key, value in request["inputs"].items()
            }
            outputs = {
                key: [x.decode() for x in array] if array.ndim == 1 and array.dtype == object else array.tolist()
                for key, array in served(request["signature_name"], **inputs).items()
            }
            for key, value in outputs.items():
                if key == "hypotheses":
                    outputs[key] = [[x.decode() for x in row] for row in value]
            return self.answer(200, {"outputs": outputs if len(outputs) > 1 else next(iter(outputs.values()))})

        def log_message(self, *arguments):
            pass

    return _running(Handler)


def writing(write):
    """A server of which `write(handler)` writes the answers."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self):
            self.rfile.read(int(self.headers.get("Content-Length", 0)))
            with contextlib.suppress(OSError):  # The client may hang up.
                write(self)

        def do_GET(self):
            self.do_POST()

        def log_message(self, *arguments):
            pass

    return _running(Handler)


def body(content, status=200):
    """Writes one body, as it is, or as JSON."""

    def write(handler):
        data = content if isinstance(content, bytes) else json.dumps(content).encode()
        handler.send_response(status)
        handler.send_header("Content-Length", str(len(data)))
        handler.end_headers()
        handler.wfile.write(data)

    return write


def drip(before):
    """Writes the beginning of an answer, and then a byte now and then, for ten seconds."""

    def write(handler):
        handler.wfile.write(before)
        for _ in range(100):
            handler.wfile.write(b"a")
            time.sleep(0.1)

    return write
