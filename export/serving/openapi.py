"""A description of an exported translator's REST API in TensorFlow Serving, in OpenAPI 3.1."""

from collections.abc import Callable, Mapping
from typing import Any

import keras_transformer

_TYPES = {"string": "string", "float32": "number", "int32": "integer", "bool": "boolean"}
_STATUS = {
    "version": {"type": "string"},
    "state": {"enum": ["UNKNOWN", "START", "LOADING", "AVAILABLE", "UNLOADING", "END"]},
}


def openapi(signatures: Mapping[str, Callable]) -> dict[str, Any]:
    """The description, as a JSON object.

    Args:
        signatures: TensorFlow functions with an input signature, by name. Inputs and outputs have the batch first.
    """
    requests, answers = [], []
    for name, function in signatures.items():
        graph = function.get_concrete_function()
        inputs = {spec.name: _schema(spec) for spec in graph.structured_input_signature[0] if spec is not None}
        outputs = {output: _schema(tensor) for output, tensor in graph.structured_outputs.items()}
        requests.append(_object(name, signature_name={"const": name}, inputs=_object(None, **inputs)))
        # The server sends a single output without its name.
        answers.append(
            _object(name, outputs=_object(None, **outputs) if len(outputs) > 1 else next(iter(outputs.values())))
        )
    model = {"name": "model", "in": "path", "required": True, "schema": {"type": "string", "default": "translator"}}
    error = {"description": "An error", **_json(_object(None, error={"type": "string"}))}
    state = _object(None, model_version_status={"type": "array", "items": _object(None, **_STATUS)})
    return {
        "openapi": "3.1.0",
        "info": {"title": "Translator in TensorFlow Serving", "version": keras_transformer.__version__},
        "servers": [{"url": "http://127.0.0.1:8501"}],
        "paths": {
            "/v1/models/{model}:predict": {
                "parameters": [model],
                "post": {
                    "operationId": "predict",
                    "requestBody": {"required": True, **_json({"oneOf": requests})},
                    "responses": {"200": {"description": "Answers", **_json({"anyOf": answers})}, "default": error},
                },
            },
            "/v1/models/{model}": {
                "parameters": [model],
                "get": {
                    "operationId": "status",
                    "responses": {"200": {"description": "State of the versions", **_json(state)}, "default": error},
                },
            },
        },
    }


def _schema(spec):
    """The schema of a tensor: lists in lists."""
    schema = {"type": _TYPES[spec.dtype.name]}
    for _ in spec.shape:
        schema = {"type": "array", "items": schema}
    return schema


def _object(title, **properties):
    named = {"title": title} if title else {}
    return {**named, "type": "object", "properties": properties, "required": list(properties)}


def _json(schema):
    return {"content": {"application/json": {"schema": schema}}}
