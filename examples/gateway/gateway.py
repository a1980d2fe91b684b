"""LibreTranslate's API in front of TensorFlow Serving, for the many clients that speak it.

    pip install -e . fastapi uvicorn requests prometheus-client limits babel
    python examples/gateway/gateway.py --directions en-de --serving http://127.0.0.1:8501 --model translator

The server must have a SavedModel of `export saved_model`. With several directions it gets `target_language` for each
request. Endpoints: /translate (text and HTML), /languages, /detect (refused), /health, /metrics, and /docs.
"""

import argparse
import asyncio
import dataclasses
import ipaddress
import json
import re
from typing import Annotated, Any, Literal
from urllib.parse import parse_qs

import babel
import limits
import prometheus_client
import pydantic
import uvicorn
from fastapi import Depends, FastAPI, HTTPException, Request, Response
from fastapi.responses import JSONResponse
from starlette.exceptions import HTTPException as StarletteHTTPException

from keras_transformer.export.serving.client import RestClient, ServingError, ServingTimeoutError
from keras_transformer.text.markup import translate_html
from keras_transformer.text.markup_alignment import Aligned


def setting(default, help):
    return dataclasses.field(default=default, metadata={"help": f"{help} (default: {default})"})


@dataclasses.dataclass(frozen=True)
class Settings:
    """What the gateway is told; `directions` are such as `("en-de", "de-en")`, the first one that of the export.

    Nothing else knows the directions: a model does not say what it reads, and of one direction not what it writes.
    """

    directions: tuple[str, ...]
    serving: str = setting("http://127.0.0.1:8501", "address of TensorFlow Serving's REST API")
    model: str = setting("translator", "name of the model there")
    timeout: float = setting(10.0, "seconds for a whole answer of TensorFlow Serving")
    rate: str = setting("120/minute", "requests of one client; '' for any number")
    max_characters: int = setting(20_000, "of all texts of a request")
    max_texts: int = setting(100, "of a request, at most `max_batch_size` of the server's batching")


class Translate(pydantic.BaseModel):
    """A request to /translate. Other fields of LibreTranslate, such as `api_key`, are ignored."""

    q: str | list[str]
    source: str = "auto"
    target: str
    format: Literal["text", "html"] = "text"


def make_app(settings: Settings) -> FastAPI:
    """The gateway, an ASGI application."""
    app = FastAPI(title="Translation", description="LibreTranslate's API in front of TensorFlow Serving.")
    client = RestClient(settings.serving, settings.model, timeout=settings.timeout)  # It checks every answer.
    probe = RestClient(settings.serving, settings.model, timeout=min(2.0, settings.timeout))
    registry = prometheus_client.CollectorRegistry()
    pairs = [tuple(direction.split("-", 1)) for direction in settings.directions]
    rate = limits.parse(settings.rate) if settings.rate else None
    limiter = limits.strategies.SlidingWindowCounterRateLimiter(limits.storage.MemoryStorage())
    labels = ["path", "status"]
    requests = prometheus_client.Counter("gateway_requests", "Requests", labels, registry=registry)
    seconds = prometheus_client.Histogram("gateway_seconds", "Time of /translate", registry=registry)
    characters = prometheus_client.Counter("gateway_characters", "Translated characters", registry=registry)

    @app.middleware("http")
    async def count(request: Request, answer):
        status = 500
        try:
            response = await answer(request)
            status = response.status_code
            return response
        finally:
            known = request.scope.get("route")  # Not the path that was asked for: strangers could fill the memory.
            requests.labels(known.path if known else "other", status).inc()

    @app.exception_handler(StarletteHTTPException)
    async def as_libretranslate(request: Request, error: HTTPException):
        return JSONResponse({"error": error.detail}, error.status_code, error.headers)

    async def parsed(request: Request) -> Translate:
        """The request, from JSON or from a form. No more of it is read than it may have."""
        host = request.client.host if request.client else ""
        if rate and not limiter.hit(rate, _network(host)):
            raise HTTPException(429, f"At most {settings.rate}.", {"Retry-After": str(rate.get_expiry())})
        body, most = bytearray(), 12 * settings.max_characters + 10_000  # A character of a form takes up to 12 bytes.
        try:
            async with asyncio.timeout(settings.timeout):
                async for part in request.stream():
                    body += part
                    if len(body) > most:
                        raise HTTPException(413, f"At most {settings.max_characters:,} characters.")
        except TimeoutError as error:
            raise HTTPException(408, f"The request took more than {settings.timeout} seconds.") from error
        try:
            if "json" in request.headers.get("content-type", ""):
                fields = json.loads(body)
            else:
                form = parse_qs(body.decode(), keep_blank_values=True, errors="strict", max_num_fields=1000)
                fields = {
                    name: values[0] if name != "q" or len(values) == 1 else values for name, values in form.items()
                }
            asked = Translate.model_validate(fields)
            asked.model_dump_json().encode()  # JSON can write half a character, which is no text.
            return asked
        except pydantic.ValidationError as error:
            first = error.errors()[0]
            raise HTTPException(400, f"{'.'.join(map(str, first['loc']))}: {first['msg']}") from error
        except (ValueError, RecursionError) as error:
            raise HTTPException(400, "The body must be JSON or a form, in UTF-8.") from error

    def served(texts: list[str], target: str) -> list[str]:
        """The translations of texts, by TensorFlow Serving."""
        found, several = [], len(pairs) > 1
        for begin in range(0, len(texts), settings.max_texts):
            inputs = {"text": texts[begin : begin + settings.max_texts]}
            languages = [target] * len(inputs["text"])
            try:
                name = "translate_document_to" if several else "translate_document"
                outputs = client.predict(name, inputs | {"target_language": languages} if several else inputs)
            except ServingTimeoutError as error:
                raise HTTPException(504, f"No translation within {settings.timeout} seconds.") from error
            except ServingError as error:  # Its message names addresses that are nobody's business.
                raise HTTPException(502, "TensorFlow Serving is not there, or has another model.") from error
            if outputs.get("target_language", languages) != languages:
                raise HTTPException(502, f"The model does not translate into {target}.")
            found += outputs["translation"]
        return found

    @app.post("/translate", openapi_extra={"requestBody": {"content": {
        kind: {"schema": Translate.model_json_schema()}
        for kind in ("application/json", "application/x-www-form-urlencoded")
    }}})  # fmt: skip
    def translate(asked: Annotated[Translate, Depends(parsed)]) -> dict[Literal["translatedText"], str | list[str]]:
        texts = asked.q if isinstance(asked.q, list) else [asked.q]
        if len(texts) > settings.max_texts or sum(map(len, texts)) > settings.max_characters:
            most = f"{settings.max_texts} texts and {settings.max_characters:,} characters"
            raise HTTPException(413, f"A request must have at most {most}.")
        sources = [source for source, target in pairs if target == asked.target]
        source = sources[0] if asked.source == "auto" and len(sources) == 1 else asked.source  # Nothing to detect.
        if source not in sources:
            raise HTTPException(400, f"{source} to {asked.target} is not one of {', '.join(settings.directions)}.")
        with seconds.time():
            if asked.format == "text":
                found = served(texts, asked.target)
            else:
                translate = lambda parts: list(map(aligned, parts, served(parts, asked.target)))  # noqa: E731
                found = [translate_html(text, translate, source, asked.target) for text in texts]
        characters.inc(sum(map(len, texts)))
        return {"translatedText": found if isinstance(asked.q, list) else found[0]}

    @app.get("/languages")
    def languages() -> list[dict[str, Any]]:
        codes = dict.fromkeys(code for pair in pairs for code in pair)
        targets = {code: [target for source, target in pairs if source == code] for code in codes}
        return [{"code": code, "name": _name(code), "targets": targets[code]} for code in codes]

    @app.post("/detect")
    def detect() -> None:
        raise HTTPException(501, "This server does not detect languages. Name the source of each request.")

    @app.get("/health")
    def health() -> JSONResponse:
        ready = probe.is_ready()
        return JSONResponse({"status": "ok" if ready else "TensorFlow Serving is not ready"}, 200 if ready else 503)

    @app.get("/metrics")
    def metrics() -> Response:
        return Response(prometheus_client.generate_latest(registry), media_type=prometheus_client.CONTENT_TYPE_LATEST)

    return app


def aligned(source: str, translation: str) -> Aligned:
    """The words of a translation over those at the same place of the source: the server says nothing about them.

    So an element inside a sentence, such as a link, may get the wrong words. `Translator.translate_html` knows better.
    """
    words = [match.span() for match in re.finditer(r"\S+", source)]
    places = [match.span() for match in re.finditer(r"\S+", translation)]
    origins: list[int | None] = [None] * len(translation)
    for number, (begin, end) in enumerate(places):
        first, last = words[number * len(words) // len(places)] if words else (0, 0)
        for i in range(begin, end) if words else ():
            origins[i] = min(first + i - begin, last - 1)
    return Aligned(translation, origins)


def _network(host: str) -> str:
    """What counts as one client: an address of IPv4, or the 64 bits of IPv6 that a customer has."""
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        return host
    return str(ipaddress.ip_network((address, 64), strict=False)) if address.version == 6 else host


def _name(code: str) -> str:
    """The English name of a language, or its code if CLDR has none."""
    try:
        return babel.Locale.parse(code, sep="-").get_display_name("en") or code
    except (ValueError, babel.UnknownLocaleError):
        return code


def main() -> None:
    parser = argparse.ArgumentParser(description="LibreTranslate's API in front of TensorFlow Serving.")
    parser.add_argument(
        "--directions",
        nargs="+",
        required=True,
        metavar="CODE-CODE",
        help="such as en-de de-en, that of the export first",
    )
    for field in dataclasses.fields(Settings)[1:]:
        flag = "--" + field.name.replace("_", "-")
        parser.add_argument(flag, type=type(field.default), default=field.default, help=field.metadata["help"])
    parser.add_argument("--host", default="127.0.0.1", help="address to listen at (default: %(default)s)")
    parser.add_argument("--port", type=int, default=5000, help="port to listen at (default: %(default)s)")
    flags = vars(parser.parse_args())
    if wrong := [direction for direction in flags["directions"] if not re.fullmatch(r"[\w@]+-[\w@]+", direction)]:
        parser.error(f"--directions are such as en-de. Received: {wrong[0]}")
    host, port = flags.pop("host"), flags.pop("port")
    app = make_app(Settings(**flags | {"directions": tuple(flags["directions"])}))
    # More connections get 503.
    uvicorn.run(app, host=host, port=port, limit_concurrency=256, log_level="warning")


if __name__ == "__main__":
    main()
