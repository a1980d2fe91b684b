"""The gateway of examples/gateway, by the client of LibreTranslate, before a server of TensorFlow Serving's answers."""

import contextlib
import importlib.util
import json
import socket
import threading
import time
import urllib.error
from pathlib import Path

import pytest
import requests
import uvicorn
from libretranslatepy import LibreTranslateAPI
from rest_servers import answering, body, drip, writing

FILE = Path(__file__).parents[2] / "examples" / "gateway" / "gateway.py"
DIRECTIONS = ("en-de", "de-en")


@pytest.fixture(scope="module")
def gateway():
    spec = importlib.util.spec_from_file_location("gateway", FILE)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def running(gateway):
    """`running(**settings)`: a context with the address of a gateway."""

    @contextlib.contextmanager
    def run(**settings):
        app = gateway.make_app(gateway.Settings(**{"directions": DIRECTIONS, "rate": ""} | settings))
        server = uvicorn.Server(uvicorn.Config(app, port=0, log_level="warning"))
        thread = threading.Thread(target=server.run, daemon=True)
        thread.start()
        while not server.started:
            time.sleep(0.01)
        try:
            yield f"http://127.0.0.1:{server.servers[0].sockets[0].getsockname()[1]}"
        finally:
            server.should_exit = True
            thread.join()

    return run


@pytest.fixture(scope="module")
def address(running, served):
    with answering(served) as serving, running(serving=serving, max_texts=20) as address:
        yield address


def post(address, **fields):
    answer = requests.post(f"{address}/translate", json={"source": "en", "target": "de"} | fields, timeout=60)
    return answer.status_code, answer.json()


def test_the_client_of_libretranslate_works_unchanged(address, two_way):
    client = LibreTranslateAPI(address)
    for english, german in two_way.texts[:3]:
        assert client.translate(english, "en", "de") == german
        assert client.translate(german, "auto", "en") == english
    assert client.languages() == [
        {"code": "en", "name": "English", "targets": ["de"]},
        {"code": "de", "name": "German", "targets": ["en"]},
    ]
    with pytest.raises(urllib.error.HTTPError, match="501"):
        client.detect("a")


def test_lists_texts_and_pages(address, two_way):
    (one, eins), (two, zwei) = two_way.texts[:2]
    assert post(address, q=[one, "", f"- {two}\n\n{one}"]) == (
        200,
        {"translatedText": [eins, "", f"- {zwei}\n\n{eins}"]},
    )
    assert post(address, q=[]) == (200, {"translatedText": []})
    page = f'<p class="a">{one}</p><!-- no --><ul><li><b>{two}</b></li><li><code>x = 1</code></li></ul>'
    assert post(address, q=page, format="html") == (
        200,
        {"translatedText": page.replace(one, eins).replace(two, zwei)},
    )
    many = "".join(f"<p>{one}</p>" for _ in range(50))  # More texts than a request may have.
    assert post(address, q=many, format="html")[1]["translatedText"] == many.replace(one, eins)
    first, rest = one.split(" ", 1)
    _, answer = post(address, q=f"<i>{first}</i> {rest}", format="html")
    assert answer["translatedText"] == f"<i>{eins.split(' ', 1)[0]}</i> {eins.split(' ', 1)[1]}"
    assert post(address, q="<3 & <b>", format="html")[0] == 200


@pytest.mark.parametrize(
    ("fields", "status", "message"),
    [
        ({"q": "a", "target": "fr"}, 400, "en to fr is not one of en-de, de-en."),
        ({"q": "a", "source": "xx"}, 400, "xx to de is not one of"),
        ({"q": 7}, 400, "q.str: Input should be a valid string"),
        ({"q": "a", "format": "pdf"}, 400, "format: Input should be 'text' or 'html'"),
        ({"q": ["a"] * 21}, 413, "at most 20 texts and 20,000 characters"),
        ({"q": "a" * 20_001}, 413, "at most 20 texts and 20,000 characters"),
        ({"q": "ü" * 300_000}, 413, "At most 20,000 characters"),
        ({"q": "\ud800"}, 400, "must be JSON or a form, in UTF-8"),
        ({"q": "a", "target": "\ud800"}, 400, "must be JSON or a form, in UTF-8"),
    ],
)
def test_a_request_that_cannot_be_answered_says_why(address, fields, status, message):
    found, answer = post(address, **fields)
    assert (found, list(answer)) == (status, ["error"]) and message in answer["error"]


@pytest.mark.parametrize("content", [b"", b"{", b"[" * 5000, b"[]", b'"a"', b"q=%ff", b"\xff", b"&" * 5000])
@pytest.mark.parametrize("kind", ["application/json", "application/x-www-form-urlencoded", "text/plain"])
def test_any_body_gets_an_answer(address, content, kind):
    answer = requests.post(f"{address}/translate", data=content, headers={"Content-Type": kind}, timeout=60)
    assert answer.status_code == 400 and list(answer.json()) == ["error"]


def test_health_metrics_and_documentation(address):
    assert requests.get(f"{address}/health", timeout=60).json() == {"status": "ok"}
    for path in ("/nothing", "/nothing/else"):
        assert requests.get(address + path, timeout=60).json() == {"error": "Not Found"}
    metrics = requests.get(f"{address}/metrics", timeout=60).text
    assert 'gateway_requests_total{path="/health",status="200"}' in metrics
    assert 'gateway_requests_total{path="other",status="404"} 2.0' in metrics
    paths = requests.get(f"{address}/openapi.json", timeout=60).json()["paths"]
    assert set(paths) == {"/translate", "/languages", "/detect", "/health", "/metrics"}
    content = paths["/translate"]["post"]["requestBody"]["content"]
    assert content["application/json"]["schema"]["required"] == ["q", "target"]


def test_a_client_that_asks_too_often_has_to_wait(running, served):
    with answering(served) as serving, running(serving=serving, rate="3/minute") as address:
        assert [post(address, q="a")[0] for _ in range(5)] == [200, 200, 200, 429, 429]
        answer = requests.post(f"{address}/translate", json={}, timeout=60)
        assert answer.headers["Retry-After"] == "60"


WRONG = {
    "no model": body({"error": "Servable not found"}, 404),
    "html": body(b"<html>"),
    "too few": body({"outputs": {"translation": [], "target_language": []}}),
    "numbers": body({"outputs": {"translation": [1], "target_language": ["de"]}}),
    "another language": body({"outputs": {"translation": ["a"], "target_language": ["fr"]}}),
    "nothing": lambda handler: None,
}


@pytest.mark.parametrize("write", WRONG.values(), ids=WRONG.keys())
def test_a_wrong_server_is_a_502(running, write):
    with writing(write) as serving, running(serving=serving) as address:
        status, answer = post(address, q="a")
        assert status == 502 and serving not in json.dumps(answer)
        assert requests.get(f"{address}/health", timeout=60).status_code == 503


@pytest.mark.parametrize("before", [b"HTTP/1.1 200 OK\r\nX-Header: ", b"HTTP/1.1 200 OK\r\n\r\n{"])
def test_a_slow_server_is_a_504_in_time(running, before):
    with writing(drip(before)) as serving, running(serving=serving, timeout=0.5) as address:
        began = time.monotonic()
        assert post(address, q="a") == (504, {"error": "No translation within 0.5 seconds."})
        assert time.monotonic() - began < 8  # It drips for ten seconds.


def test_a_request_that_never_ends_is_given_up(running):
    with running(timeout=0.5) as address:
        host, port = address.removeprefix("http://").split(":")
        with socket.create_connection((host, int(port)), timeout=60) as connection:
            connection.sendall(b"POST /translate HTTP/1.1\r\nHost: a\r\nContent-Length: 9\r\n\r\n{")
            assert connection.recv(1000).startswith(b"HTTP/1.1 408 ")


def test_a_dead_server_is_a_502(running):
    with running(serving="http://127.0.0.1:9") as address:
        assert post(address, q="a")[0] == 502


def test_the_example_is_short():
    assert len(FILE.read_text(encoding="utf-8").splitlines()) <= 250
