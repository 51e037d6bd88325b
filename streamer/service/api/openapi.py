"""The API as an OpenAPI 3.1 document, made of the table that its routes are made of."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any, Final

from streamer import __version__
from streamer.service.access.middlewares import PING_PATH, READY_PATH
from streamer.service.api.endpoint import Endpoint
from streamer.service.api.responses import STATUS_MEANINGS
from streamer.service.fleet.stream_ids import STREAM_ID_PATTERN

_PARAMETER: Final = re.compile(r"\{(\w+)\}")
_JSON: Final = "application/json"
_TEXT: Final = "text/plain"
_SCHEMAS: Final = {
    "id": {"type": "string", "pattern": f"^{STREAM_ID_PATTERN}$"},
    "number": {"type": "integer", "minimum": 0},
    "type": {"type": "string"},
    "page": {"type": "string", "pattern": r"^[A-Za-z0-9_.-]+$"},
}
_LINTS: Final = {
    "type": "object",
    "properties": {"lint_errors": {"type": "array", "items": {"type": "string"}}},
    "required": ["lint_errors"],
}
_ANY_CONTENT: Final[dict[str, Any]] = {_JSON: {"schema": {}}, _TEXT: {"schema": {"type": "string"}}}


def make_openapi(endpoints: Iterable[Endpoint], access: Any) -> dict[str, Any]:
    """Return the document.

    Args:
        endpoints: the table.
        access: the `http` section, which says how somebody says who they are.
    """
    paths: dict[str, dict[str, Any]] = {}
    for endpoint in endpoints:
        paths.setdefault(endpoint.path, {})[endpoint.method.lower()] = _make_operation(endpoint)
    schemes: dict[str, Any] = {}
    if access["basic_auth"]["enabled"]:
        schemes["basic"] = {"type": "http", "scheme": "basic"}
    if access["bearer_auth"]["enabled"]:
        schemes["bearer"] = {"type": "http", "scheme": "bearer"}
    document: dict[str, Any] = {
        "openapi": "3.1.0",
        "info": {"title": "streamer", "version": __version__},
        "paths": paths,
    }
    if schemes:
        document["components"] = {"securitySchemes": schemes}
        document["security"] = [{name: []} for name in schemes]
        paths[PING_PATH]["get"]["security"] = []
        # Without credentials there is an answer too, a shorter one.
        paths[READY_PATH]["get"]["security"] = [{}, *document["security"]]
    return document


def _make_operation(endpoint: Endpoint) -> dict[str, Any]:
    parameters: list[dict[str, Any]] = [
        {"name": name, "in": "path", "required": True, "schema": _SCHEMAS[name]}
        for name in _PARAMETER.findall(endpoint.path)
    ]
    parameters += [
        {"name": one.name, "in": "query", "description": one.about, "schema": one.schema}
        for one in endpoint.parameters
    ]
    operation: dict[str, Any] = {
        "operationId": endpoint.name,
        "summary": endpoint.about,
        "parameters": parameters,
        "responses": {str(code): what for code, what in _make_responses(endpoint).items()},
    }
    if endpoint.body is not None:
        kinds = (_JSON, "application/yaml")
        content: dict[str, Any] = {kind: {"schema": {}} for kind in kinds}
        operation["requestBody"] = {
            "description": endpoint.body,
            "required": True,
            "content": content,
        }
    return operation


def _make_responses(endpoint: Endpoint) -> dict[int, dict[str, Any]]:
    good: dict[str, Any] = {"description": "It is done."}
    if endpoint.ok_schema is not None:
        good["content"] = {_JSON: {"schema": endpoint.ok_schema}}
    elif endpoint.media_types:
        binary = {"type": "string", "format": "binary"}
        good["content"] = {kind: {"schema": binary} for kind in endpoint.media_types}
    elif endpoint.method == "GET":
        good["content"] = {_TEXT: {"schema": {"type": "string"}}}
    codes: dict[int, str] = {**endpoint.codes}
    if endpoint.is_change:
        for code in (400, 403, 409, 415):
            codes.setdefault(code, STATUS_MEANINGS[code])
    if endpoint.body is not None:
        codes[413] = STATUS_MEANINGS[413]
    responses = {200: good}
    for code, about in sorted(codes.items()):
        content: dict[str, Any] = {**_ANY_CONTENT}
        if code == 400:
            content[_JSON] = {"schema": _LINTS}
        responses[code] = {"description": about, "content": content}
    return responses
