"""Clients of an exported translator in TensorFlow Serving, over REST and over gRPC.

    python -m keras_transformer.export.serving.client [--url URL | --grpc TARGET] TEXT...

    from keras_transformer.export.serving.client import RestClient
    print(RestClient("http://127.0.0.1:8501").translate(["A dog runs through the snow."]))

`RestClient` needs the package `requests`, and `GrpcClient` needs `tensorflow-serving-api`.
"""

import argparse
import contextlib
import json
import math
import re
import reprlib
import socket
import sys
import threading
from collections.abc import Iterable
from typing import Any, NamedTuple

# The outputs of every signature: the type of their values and the number of axes, the batch first.
_OUTPUTS = {
    "translate": {"translation": (str, 1), "score": (float, 1), "length": (int, 1), "truncated": (bool, 1)},
    "translate_document": {"translation": (str, 1)},
    "translate_nbest": {"hypotheses": (str, 2), "scores": (float, 2)},
    "translate_ids": {"translation_ids": (int, 2), "score": (float, 1), "length": (int, 1), "truncated": (bool, 1)},
    "tokenize": {"token_ids": (int, 2)},
    "detokenize": {"text": (str, 1)},
    "score": {"log_prob": (float, 1), "token_log_probs": (float, 2)},
}
# Those with a target language, of models of several directions. Those that translate say which one was used.
_OUTPUTS |= {
    f"{name}_to": _OUTPUTS[name] | {"target_language": (str, 1)}
    for name in ("translate", "translate_document", "translate_nbest")
}
_OUTPUTS |= {f"{name}_to": _OUTPUTS[name] for name in ("tokenize", "score")}
_TYPES = {  # The name of a type, and which of its values are right.
    str: ("Unicode strings", re.compile("[^\ud800-\udfff]*").fullmatch),  # JSON can write half a character.
    float: ("finite numbers", lambda number: abs(number) <= sys.float_info.max),
    int: ("integers in [0, 2^31)", lambda number: 0 <= number < 2**31),
    bool: ("booleans", lambda value: True),
}

# Lower scores of `translate_nbest` mean that there is no hypothesis; the same as in `keras_transformer.search.decoder`.
NO_HYPOTHESIS = -1e8
# For comparison: 10,000 sentences with four hypotheses each take some 5 MB.
MOST_BYTES = 64 * 2**20
_Codes = str | Iterable[str] | None


class ServingError(RuntimeError):
    """The server did not answer in time, answered with an error, or did not answer as a translator does."""


class ServingTimeoutError(ServingError):
    """The server did not answer in time."""


class ServedTranslation(NamedTuple):
    """The outputs of the signature `translate` for one text."""

    translation: str
    score: float  # The sum of log probabilities divided by the length penalty; 0 for an empty text.
    length: int  # Tokens of the translation, its end token included.
    truncated: bool  # Whether the text was too long, and only its beginning was translated.


class _Client:
    _address: str  # Of the server; messages name it.

    def __init__(self, model, version, label, timeout):
        if version is not None and label is not None:
            raise ValueError(f"Give a version or a label, not both. Received: version={version}, label={label!r}.")
        if timeout is True or not isinstance(timeout, int | float) or not 0 < timeout <= threading.TIMEOUT_MAX:
            raise ValueError(f"`timeout` must be a number of seconds, more than 0. Received: timeout={timeout!r}.")
        self.model, self.version, self.label, self.timeout = model, version, label, timeout

    def translate(self, texts: Iterable[str], target_language: _Codes = None) -> list[ServedTranslation]:
        """One `ServedTranslation` for each of a list of strings.

        Args:
            texts: a list of strings.
            target_language: for a model of several directions: a code, such as `"de"`, or a list of one per text.
                Defaults to None: the one that was chosen at the export.

        Raises:
            ServingError: the server gave no right answer, or its model does not have the target language.
            TypeError: `texts` is not a list of Unicode strings.
        """
        outputs = self._translated("translate", texts, target_language)
        columns = (outputs[name] for name in ServedTranslation._fields)
        return [ServedTranslation(*row) for row in zip(*columns, strict=True)]

    def translate_document(self, text: str, target_language: str | None = None) -> str:
        """The translation of a whole text; line breaks and bullets are kept. Raises as `translate`."""
        if not _is_text(text):
            raise TypeError(f"`text` must be one Unicode string. Received: {reprlib.repr(text)}.")
        return self._translated("translate_document", [text], target_language)["translation"][0]

    def translate_nbest(self, texts: Iterable[str], target_language: _Codes = None) -> list[list[tuple[str, float]]]:
        """For each of a list of strings, pairs (translation, score), best first. Takes and raises as `translate`."""
        outputs = self._translated("translate_nbest", texts, target_language)
        rows = zip(outputs["hypotheses"], outputs["scores"], strict=True)
        return [[pair for pair in zip(*row, strict=True) if pair[1] > NO_HYPOTHESIS] for row in rows]

    def predict(self, signature: str, inputs: dict[str, Any]) -> dict[str, list]:
        """The outputs of any signature: lists by name.

        Raises:
            ServingError: the server gave no right answer. The outputs of this package's signatures are checked.
        """
        outputs = self._predict(signature, inputs)
        shapes = {}
        for name, (kind, axes) in _OUTPUTS.get(signature, {}).items():
            rows = len(next(iter(inputs.values())))
            if name not in outputs:
                raise self._wrong(f"`{signature}` returns `{name}`", sorted(outputs))
            shapes[name] = _shape(outputs[name], kind, axes)
            if shapes[name] is None or shapes[name][0] != rows:
                of_what = "lists of " * (axes - 1) + _TYPES[kind][0]
                raise self._wrong(f"`{name}` must be a list of {rows} {of_what}, one for each text", outputs[name])
        if shapes.get("hypotheses") != shapes.get("scores"):
            raise self._wrong("`hypotheses` and `scores` must have the same shape", shapes)
        return outputs

    def _translated(self, signature, texts, target_language):
        if isinstance(texts, (str, bytes)):
            raise TypeError("`texts` must be a list of strings. Received: one string. Pass [text].")
        texts = list(texts)
        for text in texts:
            if not _is_text(text):
                raise TypeError(f"`texts` must be a list of Unicode strings. Received: {text!r:.60} in the list.")
        if not texts:
            return {name: [] for name in _OUTPUTS[signature]}
        if target_language is None:
            return self.predict(signature, {"text": texts})
        languages = [target_language] * len(texts) if isinstance(target_language, str) else list(target_language)
        if len(languages) != len(texts):
            raise ValueError(f"Give one target language, or one per text. Received: {len(languages)} for {len(texts)}.")
        outputs = self.predict(f"{signature}_to", {"text": texts, "target_language": languages})
        for language, used in zip(languages, outputs["target_language"], strict=True):
            if language != used:
                raise ServingError(f"The served model does not translate into {language!r}.")
        return outputs

    def _wrong(self, rule, received):
        received = reprlib.repr(received)
        return ServingError(f"{self._address} did not answer as a translator does: {rule}. Received: {received}.")


def _is_text(value):
    return isinstance(value, str) and bool(_TYPES[str][1](value))


def _shape(value, kind, axes):
    """The shape of nested lists, or None if they are ragged, have fewer axes, or hold values of another type."""
    if axes == 0:
        kinds = (int, float) if kind is float else (kind,)  # JSON may write 0.0 as 0.
        return () if type(value) in kinds and _TYPES[kind][1](value) else None
    shapes = {_shape(x, kind, axes - 1) for x in value} if isinstance(value, list) else {None}
    if None in shapes or len(shapes) > 1:
        return None
    return (len(value), *(shapes.pop() if shapes else (0,) * (axes - 1)))


def _one_line(text):
    """The beginning of untrusted text, without line breaks and control characters."""
    return " ".join("".join(x if x.isprintable() else " " for x in str(text)[:300]).split())


class RestClient(_Client):
    """The HTTP/JSON interface, port 8501 by default.

    Args:
        url: address of the server. Defaults to `"http://127.0.0.1:8501"`. Redirections are not followed.
        model: name of the model in the server's config. Defaults to `"translator"`.
        version: a version number. Defaults to the server's newest.
        label: a version label, such as `"stable"`, instead of a number.
        timeout: seconds within which the whole answer must arrive. Defaults to 30.

    An answer of more than `MOST_BYTES`, 64 MiB, raises a `ServingError`.
    """

    def __init__(
        self,
        url: str = "http://127.0.0.1:8501",
        model: str = "translator",
        version: int | None = None,
        label: str | None = None,
        timeout: float = 30.0,
    ):
        super().__init__(model, version, label, timeout)
        # A name and a password stay out of all messages.
        scheme, self._credentials, rest = re.fullmatch("(.*?://)?([^/]*@)?(.*)", url.rstrip("/"), re.DOTALL).groups("")
        self.url = scheme + rest
        part = f"/versions/{version}" if version is not None else f"/labels/{label}" if label else ""
        self._status_address = f"{self.url}/v1/models/{model}{part}"
        self._address = f"{self._status_address}:predict"

    def is_ready(self) -> bool:
        """Whether a version of the model is loaded; also False if no TensorFlow Serving answers."""
        try:
            states = self._answer("GET", self._status_address)["model_version_status"]
            return any(state.get("state") == "AVAILABLE" for state in states)
        except (ServingError, KeyError, TypeError, AttributeError):
            return False

    def _predict(self, signature, inputs):
        content = self._answer("POST", self._address, json={"signature_name": signature, "inputs": inputs})
        if "outputs" not in content:
            raise self._wrong("the answer must have `outputs`", sorted(content))
        outputs = content["outputs"]
        if isinstance(outputs, dict):
            return outputs
        names = list(_OUTPUTS.get(signature, ["output"]))  # The server sends a single output without its name.
        if len(names) > 1:
            raise self._wrong(f"`{signature}` returns {', '.join(names)}", outputs)
        return {names[0]: outputs}

    def _answer(self, method, address, **arguments):
        """The JSON object that the server answers with."""
        from requests import RequestException, Timeout
        from urllib3.exceptions import HTTPError

        url = address.replace("://", f"://{self._credentials}", 1)
        try:
            with _session(self.timeout) as http, http.request(method, url, timeout=self.timeout, **arguments) as answer:
                body = bytearray()
                for chunk in answer.iter_content(2**16):  # Unpacked piece by piece: a small answer may hold gigabytes.
                    body += chunk
                    if len(body) > MOST_BYTES:
                        break
        except Timeout as error:
            raise ServingTimeoutError(f"{address} did not answer within {self.timeout} seconds.") from error
        except (RequestException, HTTPError, ValueError) as error:
            raise ServingError(f"No answer from {address}. Is TensorFlow Serving running there?") from error
        if len(body) > MOST_BYTES:
            raise ServingError(f"{address} answered more than {MOST_BYTES >> 20} MiB. Send fewer texts.")
        try:
            content = json.loads(body)
        except (ValueError, RecursionError):
            content = {"error": body.decode("utf-8", errors="replace")}
        if not isinstance(content, dict):
            raise self._wrong("the answer must be a JSON object", content)
        if answer.status_code != 200 or "error" in content:
            message = _one_line(content.get("error", content))
            raise ServingError(f"{address} answered {answer.status_code}: {message}")
        return content


@contextlib.contextmanager
def _session(timeout):
    """A `requests.Session` without redirections; `timeout` seconds from now, its block ends with `requests.Timeout`.

    The timeout of `requests` is for a single read: a server that sends a byte now and then would block the call
    forever. So a timer closes all connections when the time is up.
    """
    from requests import Session, Timeout
    from requests.adapters import HTTPAdapter

    sockets, late = [], threading.Event()

    def cut():
        late.set()
        for connection in sockets:
            with contextlib.suppress(OSError):  # It may already be closed.
                connection.shutdown(socket.SHUT_RDWR)

    class Adapter(HTTPAdapter):
        def get_connection_with_tls_context(self, *args, **kwargs):
            pool = super().get_connection_with_tls_context(*args, **kwargs)

            class Connection(pool.ConnectionCls):
                def connect(self):
                    super().connect()
                    sockets.append(self.sock)
                    if late.is_set():
                        cut()

            pool.ConnectionCls = Connection
            return pool

    timer = threading.Timer(timeout, cut)
    timer.daemon = True
    timer.start()
    try:
        with Session() as session:
            session.stream = True  # The caller reads no more than it wants.
            session.get_redirect_target = lambda _: None  # A text is for the server that was named, and no other.
            session.mount("http://", Adapter())
            session.mount("https://", Adapter())
            yield session
    except Exception:
        if not late.is_set():
            raise
    finally:
        timer.cancel()
    if late.is_set():  # An answer without a length in its header looks complete when it is cut off.
        raise Timeout


class GrpcClient(_Client):
    """The gRPC interface, port 8500 by default.

    Args:
        target: address of the server. Defaults to `"127.0.0.1:8500"`.
        model, version, label, timeout: see `RestClient`, also for the limit of an answer.
        credentials: the result of `grpc.ssl_channel_credentials()`. Defaults to None, no encryption.
    """

    def __init__(
        self,
        target: str = "127.0.0.1:8500",
        model: str = "translator",
        version: int | None = None,
        label: str | None = None,
        timeout: float = 30.0,
        credentials: Any = None,
    ):
        super().__init__(model, version, label, timeout)
        import grpc
        from tensorflow_serving.apis.prediction_service_pb2_grpc import PredictionServiceStub

        self.target = self._address = target.rpartition("@")[2]  # A password stays out of messages.
        limit = [("grpc.max_receive_message_length", MOST_BYTES)]
        secure, insecure = grpc.secure_channel, grpc.insecure_channel
        channel = secure(target, credentials, limit) if credentials else insecure(target, limit)
        self._stub = PredictionServiceStub(channel)

    def request(self, signature: str, inputs: dict[str, Any]) -> Any:
        """A `PredictRequest`."""
        import tensorflow as tf
        from tensorflow_serving.apis.predict_pb2 import PredictRequest

        request = PredictRequest(inputs={name: tf.make_tensor_proto(value) for name, value in inputs.items()})
        request.model_spec.name, request.model_spec.signature_name = self.model, signature
        if self.version is not None:
            request.model_spec.version.value = self.version
        if self.label is not None:
            request.model_spec.version_label = self.label
        return request

    def _predict(self, signature, inputs):
        import grpc
        import tensorflow as tf

        try:
            response = self._stub.Predict(self.request(signature, inputs), timeout=self.timeout)
        except grpc.RpcError as error:
            status, details = error.code().name, _one_line(error.details())
            raise ServingError(f"{self.target} answered {status}: {details}") from error
        outputs = {}
        for name, value in response.outputs.items():
            shape = [dim.size for dim in value.tensor_shape.dim]
            # A tensor may be sent as one value and a shape, so a small answer could become too large here.
            if math.prod(shape) > MOST_BYTES:
                raise self._wrong(f"`{_one_line(name)}` has more than {MOST_BYTES:,} values", shape)
            try:
                outputs[name] = _decoded(tf.make_ndarray(value).tolist())
            except (TypeError, ValueError) as error:
                raise self._wrong(f"`{_one_line(name)}` must be a tensor", _one_line(error)) from error
        return outputs


def _decoded(value):
    """Nested lists with bytes as strings."""
    if isinstance(value, list):
        return [_decoded(x) for x in value]
    return value.decode("utf-8", errors="replace") if isinstance(value, bytes) else value


def main(argv: list[str] | None = None) -> int:
    """Prints translations; the exit status is 1 if the server does not answer as it should, and 2 for wrong flags."""
    parser = argparse.ArgumentParser(
        prog="python -m keras_transformer.export.serving.client",
        description="Translate with a translator in TensorFlow Serving.",
    )
    flag = parser.add_argument
    flag("texts", nargs="+", metavar="TEXT")
    flag("--url", default="http://127.0.0.1:8501", help="REST (default: http://127.0.0.1:8501)")
    flag("--grpc", metavar="TARGET", help="gRPC instead, such as 127.0.0.1:8500")
    flag("--model", default="translator", metavar="NAME", help="(default: translator)")
    flag("--label", metavar="NAME", help="version label, such as stable (default: the newest version)")
    help = "what each TEXT is: a sentence (default), or a document, whose line breaks stay"
    flag("--format", choices=("sentences", "document"), default="sentences", help=help)
    flag("--target-language", metavar="CODE", help="for a model of several directions, such as de")
    flag("--timeout", type=float, default=30.0, metavar="SECONDS", help="(default: 30)")
    arguments = parser.parse_args(argv)
    kind, address = (GrpcClient, arguments.grpc) if arguments.grpc else (RestClient, arguments.url)
    try:
        client = kind(address, arguments.model, label=arguments.label, timeout=arguments.timeout)
        if arguments.format == "document":
            for text in arguments.texts:
                _print(client.translate_document(text, arguments.target_language))
            return 0
        for number, translation in enumerate(client.translate(arguments.texts, arguments.target_language), 1):
            _print(translation.translation)
            if translation.truncated:
                print(f"text {number} is too long: only its beginning was translated.", file=sys.stderr)
    except (ImportError, ServingError, TypeError, ValueError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 1 if isinstance(error, ServingError) else 2
    return 0


def _print(text):
    """Prints untrusted text. Of the control characters, which move a terminal's cursor, tabs and line breaks stay."""
    print(re.sub(r"(?!\t|\r?\n)[\x00-\x1f\x7f-\x9f]", " ", text))


if __name__ == "__main__":
    sys.exit(main())
