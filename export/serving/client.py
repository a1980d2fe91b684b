"""Clients of an exported translator in TensorFlow Serving, over REST and over gRPC.

    python -m keras_transformer.export.serving.client [--url URL | --grpc TARGET] TEXT...

    from keras_transformer.export.serving.client import RestClient
    print(RestClient("http://127.0.0.1:8501").translate(["A dog runs through the snow."]))

`RestClient` needs `requests`; `GrpcClient` needs `tensorflow-serving-api`: `pip install "keras_transformer[serving]"`.
"""

import argparse
import sys
from typing import NamedTuple


class ServingError(RuntimeError):
    """The server did not answer, or answered with an error."""


class ServedTranslation(NamedTuple):
    """What the signature `translate` says of one text.

    Attributes:
        translation: a string.
        score: sum of log probabilities divided by the length penalty; 0 for an empty text.
        length: tokens of the translation, its end token included.
        truncated: whether the text was too long, and only its beginning was translated.
    """

    translation: str
    score: float
    length: int
    truncated: bool


class _Client:
    def __init__(self, model, version, label, timeout):
        if version is not None and label is not None:
            raise ValueError(f"Give a version or a label. Received: version={version}, label={label!r}.")
        self.model, self.version, self.label, self.timeout = model, version, label, timeout

    def translate(self, texts):
        """One `ServedTranslation` for each of a list of strings."""
        if isinstance(texts, str):
            raise TypeError("`texts` must be a list of strings. Received: one string. Pass [text].")
        texts = list(texts)
        if not texts:
            return []
        outputs = self.predict("translate", {"text": texts})
        return [
            ServedTranslation(*row) for row in zip(*(outputs[name] for name in ServedTranslation._fields), strict=True)
        ]

    def translate_nbest(self, texts):
        """For each of a list of strings pairs (translation, score), best first."""
        if not texts:
            return []
        outputs = self.predict("translate_nbest", {"text": list(texts)})
        rows = zip(outputs["hypotheses"], outputs["scores"], strict=True)
        return [[pair for pair in zip(*row, strict=True) if pair[1] > -1e8] for row in rows]


class RestClient(_Client):
    """The HTTP/JSON interface, port 8501 by default.

    Args:
        url: address of the server. Defaults to `"http://127.0.0.1:8501"`.
        model: name of the model in the server's config. Defaults to `"translator"`.
        version: a version number. Defaults to the server's newest.
        label: a version label, such as `"stable"`, instead of a number.
        timeout: seconds to wait for an answer. Defaults to 30.
    """

    def __init__(self, url="http://127.0.0.1:8501", model="translator", version=None, label=None, timeout=30.0):
        super().__init__(model, version, label, timeout)
        self.url = url.rstrip("/")

    def _address(self):
        part = (
            f"/versions/{self.version}" if self.version is not None else f"/labels/{self.label}" if self.label else ""
        )
        return f"{self.url}/v1/models/{self.model}{part}"

    def _answer(self, method, address, **arguments):
        import requests

        try:
            response = requests.request(method, address, timeout=self.timeout, **arguments)
        except requests.Timeout as error:
            raise ServingError(f"{address} did not answer within {self.timeout} seconds.") from error
        except requests.RequestException as error:
            raise ServingError(f"No answer from {address}. Is TensorFlow Serving running there?") from error
        try:
            content = response.json()
        except ValueError:
            content = {"error": response.text[:300]}
        if response.status_code != 200 or "error" in content:
            raise ServingError(f"{address} answered {response.status_code}: {content.get('error', content)}")
        return content

    def predict(self, signature, inputs):
        """The outputs of any signature: lists by name."""
        body = {"signature_name": signature, "inputs": inputs}
        outputs = self._answer("POST", f"{self._address()}:predict", json=body)["outputs"]
        # A single output comes without its name.
        return outputs if isinstance(outputs, dict) else {_ONLY_OUTPUT.get(signature, "output"): outputs}

    def is_ready(self):
        """Whether a version of the model is loaded; False, too, where no server answers."""
        try:
            states = self._answer("GET", self._address())["model_version_status"]
        except ServingError:
            return False
        return any(state["state"] == "AVAILABLE" for state in states)


_ONLY_OUTPUT = {"tokenize": "token_ids", "detokenize": "text"}


class GrpcClient(_Client):
    """The gRPC interface, port 8500 by default.

    Args:
        target: address of the server. Defaults to `"127.0.0.1:8500"`.
        model, version, label, timeout: see `RestClient`.
        credentials: of `grpc.ssl_channel_credentials()`. Defaults to None, no encryption.
    """

    def __init__(
        self, target="127.0.0.1:8500", model="translator", version=None, label=None, timeout=30.0, credentials=None
    ):
        super().__init__(model, version, label, timeout)
        import grpc
        from tensorflow_serving.apis.prediction_service_pb2_grpc import PredictionServiceStub

        self.target = target
        channel = grpc.secure_channel(target, credentials) if credentials else grpc.insecure_channel(target)
        self._stub = PredictionServiceStub(channel)

    def request(self, signature, inputs):
        """A `PredictRequest`."""
        import tensorflow as tf
        from tensorflow_serving.apis.predict_pb2 import PredictRequest

        request = PredictRequest()
        request.model_spec.name = self.model
        request.model_spec.signature_name = signature
        if self.version is not None:
            request.model_spec.version.value = self.version
        if self.label is not None:
            request.model_spec.version_label = self.label
        for name, value in inputs.items():
            request.inputs[name].CopyFrom(tf.make_tensor_proto(value))
        return request

    def predict(self, signature, inputs):
        """The outputs of any signature: lists by name."""
        import grpc
        import tensorflow as tf

        try:
            response = self._stub.Predict(self.request(signature, inputs), timeout=self.timeout)
        except grpc.RpcError as error:
            raise ServingError(f"{self.target} answered {error.code().name}: {error.details()}") from error
        arrays = {name: tf.make_ndarray(value) for name, value in response.outputs.items()}
        return {name: _decoded(array.tolist()) for name, array in arrays.items()}


def _decoded(value):
    """Nested lists with bytes as strings."""
    if isinstance(value, list):
        return [_decoded(x) for x in value]
    return value.decode("utf-8", errors="replace") if isinstance(value, bytes) else value


def main(argv=None):
    parser = argparse.ArgumentParser(
        prog="python -m keras_transformer.export.serving.client",
        description="Translate with a translator in TensorFlow Serving.",
    )
    parser.add_argument("texts", nargs="+", metavar="TEXT")
    parser.add_argument("--url", default="http://127.0.0.1:8501", help="REST (default: http://127.0.0.1:8501)")
    parser.add_argument("--grpc", metavar="TARGET", help="gRPC instead, such as 127.0.0.1:8500")
    parser.add_argument("--model", default="translator", metavar="NAME", help="(default: translator)")
    parser.add_argument("--label", metavar="NAME", help="version label, such as stable (default: the newest version)")
    parser.add_argument("--timeout", type=float, default=30.0, metavar="SECONDS", help="(default: 30)")
    arguments = parser.parse_args(argv)
    kind, address = (GrpcClient, arguments.grpc) if arguments.grpc else (RestClient, arguments.url)
    try:
        found = kind(address, arguments.model, label=arguments.label, timeout=arguments.timeout).translate(
            arguments.texts
        )
    except ServingError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    for one in found:
        print(one.translation)
    return 0


if __name__ == "__main__":
    sys.exit(main())
