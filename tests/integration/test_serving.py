"""Clients and deployment files of TensorFlow Serving.

No `tensorflow_model_server` is needed: two small servers speak its protocols, its own messages over gRPC and its JSON
over HTTP, and answer from a session with the exported SavedModel. With the real one on the PATH, that is started, too.
"""

import contextlib
import json
import re
import shutil
import socket
import subprocess
import textwrap
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import grpc
import jsonschema
import kubernetes_validate
import openapi_spec_validator
import pytest
import requests
import tensorflow as tf
import yaml
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory, text_format, wrappers_pb2
from rest_servers import answering, body, drip, writing
from tensorflow_serving.apis import predict_pb2, prediction_service_pb2_grpc
from tensorflow_serving.config import model_server_config_pb2

from keras_transformer.export.serving import client as serving_client
from keras_transformer.export.serving import server_environment
from keras_transformer.export.serving.client import GrpcClient, RestClient, ServingError, main
from keras_transformer.search.decoder import NO_HYPOTHESIS
from keras_transformer.training.checkpoints import PREEMPTED

FOLDER = Path(__file__).parents[2] / "export" / "serving"


@pytest.fixture(scope="module")
def grpc_address(served):
    class Servicer(prediction_service_pb2_grpc.PredictionServiceServicer):
        def Predict(self, request, context):  # noqa: N802
            if request.model_spec.name != "translator":
                context.abort(grpc.StatusCode.NOT_FOUND, f"Servable not found for request: {request.model_spec.name}")
            inputs = {key: tf.make_ndarray(value) for key, value in request.inputs.items()}
            response = predict_pb2.PredictResponse()
            for key, array in served(request.model_spec.signature_name, **inputs).items():
                response.outputs[key].CopyFrom(tf.make_tensor_proto(array))
            return response

    server = grpc.server(ThreadPoolExecutor(2))
    prediction_service_pb2_grpc.add_PredictionServiceServicer_to_server(Servicer(), server)
    port = server.add_insecure_port("127.0.0.1:0")
    server.start()
    yield f"127.0.0.1:{port}"
    server.stop(None).wait()


@pytest.fixture(scope="module")
def rest_address(served):
    with answering(served) as address:
        yield address


@pytest.fixture
def stranger():
    """`stranger(write)`: the address of an HTTP server of which `write(handler)` writes the answers."""
    with contextlib.ExitStack() as stack:
        yield lambda write: stack.enter_context(writing(write))


def free_port():
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]


@pytest.fixture(params=["rest", "grpc"])
def client(request):
    """A function that makes a client of either kind."""
    if request.param == "rest":
        return lambda **kwargs: RestClient(request.getfixturevalue("rest_address"), **kwargs)
    return lambda **kwargs: GrpcClient(request.getfixturevalue("grpc_address"), **kwargs)


def test_the_client_knows_what_is_no_hypothesis():
    """By a number of its own: it is copied to where none of the package is."""
    assert serving_client.NO_HYPOTHESIS == NO_HYPOTHESIS


def assert_answers(client, origin):
    sources = [*origin.texts, "", "word " * 300]
    expected = origin.translator.translate(sources, return_scores=True)
    found = client.translate(sources)
    assert [one.translation for one in found] == [one.text for one in expected]
    assert [one.score for one in found] == pytest.approx([one.score for one in expected], rel=1e-3, abs=1e-4)
    assert [one.truncated for one in found] == [False] * (len(sources) - 1) + [True]
    nbest = client.translate_nbest(origin.texts[:2])
    assert [row[0][0] for row in nbest] == [one.text for one in expected[:2]]
    assert all(len(row) == 4 for row in nbest)
    document = f"- {sources[0]} {sources[1]}\n\n{sources[2]}\n"
    assert client.translate_document(document) == origin.translator.translate_text(document)
    ids = client.predict("tokenize", {"text": origin.texts[:1]})["token_ids"]
    assert ids == origin.translator.codec.source_ids(origin.texts[:1])


def test_clients_get_the_translators_answers(client, origin):
    assert_answers(client(), origin)
    assert client().translate([]) == [] and client().translate_nbest([]) == []


@pytest.mark.parametrize("flag", ["--url", "--grpc"])
def test_the_command_prints_translations(flag, rest_address, grpc_address, origin, capsys):
    address = rest_address if flag == "--url" else grpc_address
    assert main([flag, address, *origin.texts[:2]]) == 0
    assert capsys.readouterr().out.splitlines() == origin.translator.translate(origin.texts[:2])
    assert main([flag, address, "a", "word " * 300]) == 0
    assert capsys.readouterr().err == "text 2 is too long: only its beginning was translated.\n"
    document = "\n- ".join(origin.texts[:3])
    assert main([flag, address, "--format", "document", document]) == 0
    assert capsys.readouterr().out == origin.translator.translate_text(document) + "\n"
    assert main([flag, address, "--model", "other", "a"]) == 1
    assert "error: " in capsys.readouterr().err


def test_a_label_is_asked_for(rest_address, grpc_address, origin):
    assert RestClient(rest_address, label="stable").translate(origin.texts[:1])[0].translation
    request = GrpcClient(grpc_address, label="stable").request("translate", {"text": ["a"]})
    assert request.model_spec.version_label == "stable"
    assert GrpcClient(grpc_address, version=3).request("translate", {"text": ["a"]}).model_spec.version.value == 3
    with pytest.raises(ValueError, match="Give a version or a label"):
        RestClient(rest_address, version=1, label="stable")


def test_what_is_no_list_of_strings_is_an_error(client):
    for call in (client().translate, client().translate_nbest):
        for text in ("abc", b"abc"):
            with pytest.raises(TypeError, match=r"must be a list of strings\. Received: one string\. Pass \[text\]\."):
                call(text)
        with pytest.raises(TypeError, match=r"must be a list of Unicode strings\. Received: 7 in the list\."):
            call(["a", 7])
        with pytest.raises(TypeError, match=r"Unicode strings\. Received: '\\udcff' in the list\."):
            call(["a", "\udcff"])
    with pytest.raises(TypeError, match=r"`text` must be one Unicode string. Received: \['a'\]"):
        client().translate_document(["a"])


@pytest.mark.parametrize("timeout", [0, -1, float("nan"), float("inf"), "3", None, True])
def test_a_timeout_is_a_number_of_seconds(client, timeout):
    with pytest.raises(ValueError, match=r"`timeout` must be a number of seconds, more than 0\. Received: timeout="):
        client(timeout=timeout)


def test_the_command_refuses_a_timeout_that_is_none(capsys):
    assert main(["--timeout", "nan", "a"]) == 2
    assert "error: `timeout` must be a number of seconds" in capsys.readouterr().err


def test_a_model_that_is_not_there_is_an_error(client):
    with pytest.raises(ServingError, match="Servable not found for request"):
        client(model="other").translate(["a"])


def test_a_server_that_is_not_there_is_an_error():
    port = free_port()
    rest = RestClient(f"http://127.0.0.1:{port}")
    with pytest.raises(ServingError, match=r"No answer from .*Is TensorFlow Serving running there\?"):
        rest.translate(["a"])
    assert not rest.is_ready()
    with pytest.raises(ServingError, match="UNAVAILABLE"):
        GrpcClient(f"127.0.0.1:{port}").translate(["a"])


def test_a_slow_server_is_an_error(rest_address):
    with pytest.raises(ServingError, match=r"did not answer within 0\.2 seconds"):
        RestClient(rest_address, timeout=0.2).translate(["slow"])


@pytest.mark.parametrize(
    "before",
    [b"HTTP/1.1 200 OK\r\nX-Header: ", b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n", b"HTTP/1.1 200 OK\r\n\r\n{"],
    ids=["header", "body", "body of unknown length"],
)
def test_a_server_that_drips_is_given_up(stranger, before):
    client = RestClient(stranger(drip(before)), timeout=0.5)
    began = time.monotonic()
    with pytest.raises(ServingError, match=r"did not answer within 0\.5 seconds"):
        client.translate(["a"])
    assert time.monotonic() - began < 8  # It drips for ten seconds.


def test_an_answer_without_end_is_an_error(stranger):
    def write(handler):
        handler.wfile.write(b"HTTP/1.1 200 OK\r\n\r\n")
        while True:
            handler.wfile.write(bytes(2**20))

    with pytest.raises(ServingError, match=r":predict answered more than 64 MiB\. Send fewer texts\."):
        RestClient(stranger(write)).translate(["a"])


def test_readiness(rest_address, stranger):
    assert RestClient(rest_address).is_ready()
    assert not RestClient(rest_address, model="other").is_ready()
    for content in (b"<html>", None, [], {}, {"model_version_status": 1}, {"model_version_status": [1, {"a": "b"}]}):
        assert not RestClient(stranger(body(content))).is_ready()


RIGHT = {"translation": ["a"], "score": [-0.5], "length": [2], "truncated": [False]}
NBEST = {"hypotheses": [["a", "b"]], "scores": [[-0.5, -1.5]]}
WRONG = [
    (
        RIGHT | {"translation": ["a", "b", "c"]},
        r"`translation` must be a list of 1 Unicode strings, .*Received: \['a', 'b', 'c'\]",
    ),
    (
        RIGHT | {"translation": []},
        r"`translation` must be a list of 1 Unicode strings, one for each text\. Received: \[\]\.",
    ),
    (
        RIGHT | {"translation": [1]},
        r"`translation` must be a list of 1 Unicode strings, one for each text\. Received: \[1\]\.",
    ),
    (
        RIGHT | {"translation": [["a"]]},
        r"`translation` must be a list of 1 Unicode strings, .*Received: \[\['a'\]\]\.",
    ),
    (RIGHT | {"score": [float("nan")]}, r"`score` must be a list of 1 finite numbers, .*Received: \[nan\]\."),
    (RIGHT | {"score": [float("-inf")]}, r"`score` must be a list of 1 finite numbers, .*Received: \[-inf\]\."),
    (RIGHT | {"score": ["a"]}, r"`score` must be a list of 1 finite numbers, .*Received: \['a'\]\."),
    (RIGHT | {"length": [0.5]}, r"`length` must be a list of 1 integers in \[0, 2\^31\), .*Received: \[0\.5\]\."),
    (RIGHT | {"length": [-5]}, r"`length` must be a list of 1 integers in .*Received: \[-5\]\."),
    (RIGHT | {"length": [2**31]}, r"`length` must be a list of 1 integers in .*Received: \[2147483648\]\."),
    (RIGHT | {"truncated": [0]}, r"`truncated` must be a list of 1 booleans, .*Received: \[0\]\."),
    ({"text": ["a"], "score": [1.0]}, r"`translate` returns `translation`\. Received: \['score', 'text'\]\."),
    ({"truncated": [False]}, r"`translate` returns `translation`\. Received: \['truncated'\]\."),
]
WRONG_NBEST = [
    (
        {"hypotheses": [["a"]], "scores": [[-0.5, -1.5]]},
        r"`hypotheses` and `scores` must have the same shape\. Received: ",
    ),
    (
        {"hypotheses": [["a"], ["b"]], "scores": [[-1.0], [-1.0]]},
        r"`hypotheses` must be a list of 1 lists of Unicode strings",
    ),
    (
        {"hypotheses": ["ab"], "scores": [[-1.0, -1.0]]},
        r"`hypotheses` must be a list of 1 lists of Unicode strings, .*\['ab'\]",
    ),
    ({"hypotheses": [["a"]], "scores": [-1.0]}, r"`scores` must be a list of 1 lists of finite numbers, .*\[-1\.0\]"),
]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ([1, 2], r"the answer must be a JSON object\. Received: \[1, 2\]\."),
        (None, r"the answer must be a JSON object\. Received: None\."),
        ("a", r"the answer must be a JSON object\. Received: 'a'\."),
        ({}, r"the answer must have `outputs`\. Received: \[\]\."),
        ({"predictions": []}, r"the answer must have `outputs`\. Received: \['predictions'\]\."),
        ({"outputs": None}, r"`translate` returns translation, score, length, truncated\. Received: None\."),
        ({"outputs": ["a"]}, r"`translate` returns translation, score, length, truncated\. Received: \['a'\]\."),
        ({"outputs": RIGHT | {"score": [None]}}, r"`score` must be a list of 1 finite numbers, .*Received: \[None\]\."),
        ({"outputs": RIGHT | {"score": None}}, r"`score` must be a list of 1 finite numbers, .*Received: None\."),
        ({"outputs": RIGHT | {"score": [10**400]}}, r"`score` must be a list of 1 finite numbers"),
        ({"outputs": RIGHT | {"translation": ["\ud800"]}}, r"Unicode strings, .*Received: \['\\ud800'\]\."),
        *(({"outputs": outputs}, message) for outputs, message in WRONG),
        (b"<html>\n<p>\x1b[2J", r"answered 200: <html> <p> \[2J$"),
        (b"[" * 100_000, r"answered 200: \[\["),
        (b"", r"answered 200: $"),
        ({"error": "two\nlines"}, r"answered 200: two lines$"),
    ],
)
def test_json_of_another_shape_is_an_error(stranger, capsys, content, message):
    address = stranger(body(content))
    with pytest.raises(ServingError, match=rf"^{address}/v1/models/translator:predict .*{message}"):
        RestClient(address).translate(["x"])
    assert main(["--url", address, "x"]) == 1
    assert len(capsys.readouterr().err.splitlines()) == 1


@pytest.mark.parametrize("target", ["http://[::bad", "/elsewhere"])
def test_a_redirection_is_an_error(stranger, target):
    """`requests` would follow it, with the text, and reads its target even if it must not follow it."""

    def write(handler):
        handler.send_response(307)
        handler.send_header("Location", target)
        handler.end_headers()
        handler.wfile.write(handler.path.encode())

    with pytest.raises(ServingError, match=r" answered 307: /v1/models/translator:predict$"):
        RestClient(stranger(write)).translate(["x"])


def test_messages_have_no_password(stranger):
    def write(handler):
        body({"error": handler.headers["Authorization"]}, 401)(handler)

    address = stranger(write).removeprefix("http://")
    with pytest.raises(ServingError, match=rf"^http://{address}/v1/models/translator:predict answered 401: Basic dTpz"):
        RestClient(f"http://u:s@{address}").translate(["x"])  # "u:s" in Base64 is "dTpz".
    port = free_port()
    with pytest.raises(ServingError, match=rf"^No answer from http://127.0.0.1:{port}/v1"):
        RestClient(f"http://u:s@127.0.0.1:{port}").translate(["x"])


def test_the_command_keeps_the_terminal_as_it_is(stranger, capsys):
    answer = body({"outputs": RIGHT | {"translation": ["\x1b[2JA\tb\r\nc\rd\u200d\x9b"]}})
    assert main(["--url", stranger(answer), "x"]) == 0
    assert capsys.readouterr().out == " [2JA\tb\r\nc d\u200d \n"


@pytest.mark.parametrize("flag", ["--url", "--grpc"])
def test_the_command_refuses_text_that_is_not_unicode(flag, capsys):
    assert main([flag, "127.0.0.1:1", "\udcff cat"]) == 2  # What Python makes of the byte 0xff in an argument.
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith("error: `texts` must be a list of Unicode strings.")


@pytest.mark.parametrize(("outputs", "message"), WRONG_NBEST)
def test_hypotheses_of_another_shape_are_an_error(stranger, outputs, message):
    with pytest.raises(ServingError, match=message):
        RestClient(stranger(body({"outputs": outputs}))).translate_nbest(["x"])


def test_what_json_writes_differently_is_right(stranger):
    outputs = RIGHT | {"score": [0], "other": None}  # A newer server may say more.
    assert RestClient(stranger(body({"outputs": outputs}))).translate(["x"]) == [("a", 0, 2, False)]
    assert RestClient(stranger(body({"outputs": NBEST}))).translate_nbest(["x"]) == [[("a", -0.5), ("b", -1.5)]]
    client = RestClient(stranger(body({"outputs": [[3, 4]]})))
    assert client.predict("tokenize", {"text": ["x"]}) == {"token_ids": [[3, 4]]}
    assert client.predict("another", {"x": 1}) == {"output": [[3, 4]]}


@pytest.fixture
def grpc_stranger():
    """`grpc_stranger(response)`: the address of a server that always answers the same."""
    servers = []

    def start(response):
        class Servicer(prediction_service_pb2_grpc.PredictionServiceServicer):
            def Predict(self, request, context):  # noqa: N802
                return response

        servers.append(grpc.server(ThreadPoolExecutor(1)))
        prediction_service_pb2_grpc.add_PredictionServiceServicer_to_server(Servicer(), servers[-1])
        port = servers[-1].add_insecure_port("127.0.0.1:0")
        servers[-1].start()
        return f"127.0.0.1:{port}"

    yield start
    for server in servers:
        server.stop(None).wait()


def tensors(outputs):
    response = predict_pb2.PredictResponse()
    for name, value in outputs.items():
        response.outputs[name].CopyFrom(tf.make_tensor_proto(value))
    return response


@pytest.mark.parametrize(("signature", "outputs", "message"), [
    *(("translate", *one) for one in WRONG), *(("translate_nbest", *one) for one in WRONG_NBEST)
])  # fmt: skip
def test_tensors_of_another_shape_are_an_error(grpc_stranger, signature, outputs, message):
    address = grpc_stranger(tensors(outputs))
    with pytest.raises(ServingError, match=rf"^{address} did not answer as a translator does: .*{message}"):
        getattr(GrpcClient(address), signature)(["x"])


def test_tensors_that_are_none_are_an_error(grpc_stranger):
    large = tensors(RIGHT)  # One value stands for all: a terabyte of them in a small message.
    large.outputs["score"].tensor_shape.dim[0].size = 10**12
    with pytest.raises(ServingError, match=r"`score` has more than 67,108,864 values\. Received: \[1000000000000\]"):
        GrpcClient(grpc_stranger(large)).translate(["x"])
    odd = tensors(RIGHT)
    odd.outputs["score"].dtype = 99
    with pytest.raises(ServingError, match=r"`score` must be a tensor\. Received: "):
        GrpcClient(grpc_stranger(odd)).translate(["x"])
    cut = tensors(RIGHT)
    cut.outputs["score"].tensor_shape.dim[0].size = -1
    with pytest.raises(ServingError, match=r"did not answer as a translator does: `score` must be "):
        GrpcClient(grpc_stranger(cut)).translate(["x"])


@pytest.mark.skipif(shutil.which("tensorflow_model_server") is None, reason="no tensorflow_model_server on the PATH")
def test_the_real_server_answers(origin, servable):
    grpc_port, rest_port = free_port(), free_port()
    command = [
        "tensorflow_model_server", f"--port={grpc_port}", f"--rest_api_port={rest_port}", "--model_name=translator",
        f"--model_base_path={servable.parent}",
    ]  # fmt: skip
    with subprocess.Popen(command) as server:
        try:
            rest = RestClient(f"http://127.0.0.1:{rest_port}")
            for _ in range(120):
                if rest.is_ready():
                    break
                time.sleep(0.5)
            assert_answers(rest, origin)
            assert_answers(GrpcClient(f"127.0.0.1:{grpc_port}"), origin)
        finally:
            server.terminate()


# Deployment files


def test_the_model_config_is_the_servers_own_message():
    config = text_format.Parse(
        (FOLDER / "config" / "models.config").read_text(), model_server_config_pb2.ModelServerConfig()
    )
    (model,) = config.model_config_list.config
    assert (model.name, model.base_path, model.model_platform) == ("translator", "/models/translator", "tensorflow")
    assert model.model_version_policy.latest.num_versions == 2
    assert dict(model.version_labels) == {"stable": 1, "canary": 2}


def message(name, **fields):
    """A message that the server's API package leaves out, by its fields: name=(number, type)."""
    file = descriptor_pb2.FileDescriptorProto(name=f"{name}.proto", package="kt", syntax="proto3")
    file.dependency.append("google/protobuf/wrappers.proto")
    one = file.message_type.add(name=name)
    for field, (number, kind) in fields.items():
        one.field.add(name=field, number=number, label=1, type=11 if isinstance(kind, str) else kind)
        if isinstance(kind, str):
            one.field[-1].type_name = kind
    pool = descriptor_pool.DescriptorPool()
    pool.Add(descriptor_pb2.FileDescriptorProto.FromString(wrappers_pb2.DESCRIPTOR.serialized_pb))
    pool.Add(file)
    return message_factory.GetMessageClass(pool.FindMessageTypeByName(f"kt.{name}"))()


def test_the_batching_and_monitoring_parameters_are_the_servers_fields():
    number, boolean, string = ".google.protobuf.Int64Value", 8, 9
    batching = message(
        "BatchingParameters",
        max_batch_size=(1, number),
        batch_timeout_micros=(2, number),
        max_enqueued_batches=(3, number),
        num_batch_threads=(4, number),
        pad_variable_length_inputs=(7, boolean),
    )
    text_format.Parse((FOLDER / "config" / "batching.config").read_text(), batching)
    assert batching.max_batch_size.value == 1024 and batching.pad_variable_length_inputs
    prometheus = message("PrometheusConfig", enable=(1, boolean), path=(2, string))
    inner = (FOLDER / "config" / "monitoring.config").read_text().split("prometheus_config {")[1].rsplit("}", 1)[0]
    text_format.Parse(inner, prometheus)
    scrape = yaml.safe_load((FOLDER / "config" / "prometheus.yaml").read_text())["scrape_configs"][0]
    assert prometheus.enable and scrape["metrics_path"] == prometheus.path


def test_kubernetes_manifests_are_valid():
    documents = list(yaml.safe_load_all((FOLDER / "kubernetes.yaml").read_text()))
    assert [one["kind"] for one in documents] == [
        "PersistentVolumeClaim", "Deployment", "Service", "HorizontalPodAutoscaler", "PodDisruptionBudget",
    ]  # fmt: skip
    for one in documents:
        kubernetes_validate.validate(one, kubernetes_validate.latest_version(), strict=True)


def test_kserve_has_the_same_server_and_memory():
    """The file was compared with KServe's definition of the resource once, which no package has."""
    model = yaml.safe_load((FOLDER / "kserve.yaml").read_text())["spec"]["predictor"]["model"]
    _, container = containers()
    assert container["image"] == f"tensorflow/serving:{model['runtimeVersion']}"
    assert container["resources"] == model["resources"] and set(model["args"]) < set(container["args"])


def test_the_description_of_the_rest_api_is_that_of_the_answers(servable, rest_address, origin):
    description = json.loads((servable / "openapi.json").read_text())
    openapi_spec_validator.validate(description)
    post = description["paths"]["/v1/models/{model}:predict"]["post"]
    schemas = {one["title"]: one for one in content_of(post["requestBody"])["oneOf"]}
    answers = {one["title"]: one for one in content_of(post["responses"]["200"])["anyOf"]}
    assert len(schemas) == len(answers) == 12
    values = {
        "text": origin.texts[:2],
        "source": origin.texts[:2],
        "target": ["a", "b"],
        "target_language": ["en", "de"],
    }
    for name, schema in schemas.items():
        inputs = {key: values.get(key, [[5, 3]]) for key in schema["properties"]["inputs"]["properties"]}
        request = {"signature_name": name, "inputs": inputs}
        assert [title for title in schemas if jsonschema.Draft202012Validator(schemas[title]).is_valid(request)] == [
            name
        ]
        answer = requests.post(f"{rest_address}/v1/models/translator:predict", json=request, timeout=60).json()
        jsonschema.validate(answer, answers[name])
        (key, *_) = answer["outputs"] if isinstance(answer["outputs"], dict) else ["all"]
        with pytest.raises(jsonschema.ValidationError):
            jsonschema.validate({"outputs": {key: "text"}}, answers[name])
    status = content_of(description["paths"]["/v1/models/{model}"]["get"]["responses"]["200"])
    jsonschema.validate(requests.get(f"{rest_address}/v1/models/translator", timeout=60).json(), status)


def content_of(part):
    return part["content"]["application/json"]["schema"]


def test_the_jobs_of_the_documentation_are_valid():
    page = (FOLDER.parents[1] / "docs" / "training.md").read_text(encoding="utf-8")
    found = re.findall(r"^(    apiVersion: .*\n(?:(?:    .*)?\n)*)", page, re.MULTILINE)
    documents = [one for text in found for one in yaml.safe_load_all(textwrap.dedent(text))]
    assert [one["kind"] for one in documents] == ["Job", "Service", "Job"]
    for one in documents:
        kubernetes_validate.validate(one, kubernetes_validate.latest_version(), strict=True)
    (status,) = documents[0]["spec"]["podFailurePolicy"]["rules"][0]["onExitCodes"]["values"]
    assert status == PREEMPTED and f"in {status}|143)" in page


def containers():
    """The container of TensorFlow Serving, in the compose file and in the Kubernetes manifests."""
    compose = yaml.safe_load((FOLDER / "docker-compose.yaml").read_text())["services"]["translator"]
    documents = yaml.safe_load_all((FOLDER / "kubernetes.yaml").read_text())
    deployment = next(one for one in documents if one["kind"] == "Deployment")
    (container,) = deployment["spec"]["template"]["spec"]["containers"]
    return compose, container


def test_the_containers_have_no_rights_that_they_do_not_need():
    """Those of Kubernetes' security level "restricted", and a root file system that cannot be written."""
    compose, container = containers()
    documents = yaml.safe_load_all((FOLDER / "kubernetes.yaml").read_text())
    pod = next(one for one in documents if one["kind"] == "Deployment")["spec"]["template"]["spec"]
    assert pod["securityContext"]["runAsNonRoot"] and pod["securityContext"]["runAsUser"]
    assert pod["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
    rights = {"allowPrivilegeEscalation": False, "readOnlyRootFilesystem": True, "capabilities": {"drop": ["ALL"]}}
    assert container["securityContext"] == rights
    writable = [mount["mountPath"] for mount in container["volumeMounts"] if not mount.get("readOnly")]
    assert writable == compose["tmpfs"] == ["/tmp"] and compose["read_only"]
    assert compose["cap_drop"] == ["ALL"] and not compose["user"].startswith("0")


def test_the_containers_read_files_that_exist():
    compose, container = containers()
    for flags in (compose["command"], container["args"]):
        files = [flag.split("=/config/")[1] for flag in flags if "=/config/" in flag]
        assert len(files) == 3
        assert all((FOLDER / "config" / name).is_file() for name in files)


def test_the_containers_get_the_environment_that_the_export_wrote():
    compose, container = containers()
    assert compose["environment"] == {name: f"${{{name}:-1}}" for name in server_environment(128)}
    (source,) = container["envFrom"]
    command = f"create configmap {source['configMapRef']['name']} --from-env-file"
    assert command in (FOLDER / "kubernetes.yaml").read_text()
