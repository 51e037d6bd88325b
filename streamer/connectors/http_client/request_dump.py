"""A request and its answer as a field of a log line, for `dump_request_log_level`."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import orjson

from streamer.connectors.http_client.request import HttpRequest
from streamer.core.redaction import SCRUBBED, names_credential, redact_urls


def dump_exchange(
    request: HttpRequest,
    sent: Sequence[tuple[str, str]],
    took: int,
    status: int | None,
    headers: Sequence[tuple[str, str]],
    body: bytes,
    failure: str,
) -> dict[str, Any]:
    """Return what was asked and answered; who asked is left out of it.

    Args:
        request: the request.
        sent: the headers that it was sent with.
        took: nanoseconds.
        status: the answer's code; None when there was none.
        headers: the answer's.
        body: the answer's.
        failure: what went wrong, or nothing.
    """
    document: dict[str, Any] = {
        "elapsed_ns": took,
        "request": {
            "url": redact_urls(request.url),
            "method": request.method,
            "header": _redact_headers(sent),
            "body": _parse_body(request.body or b""),
        },
    }
    if status is not None:
        document["response"] = {
            "status_code": status,
            "content_length": len(body),
            "header": _redact_headers(headers),
            "body": _parse_body(body),
        }
    if failure:
        document["error"] = failure
    return document


def _redact_headers(headers: Iterable[tuple[str, str]]) -> dict[str, str]:
    shown: dict[str, str] = {}
    for name, value in headers:
        value = SCRUBBED if names_credential(name) else value
        shown[name] = f"{shown[name]} {value}" if name in shown else value
    return shown


def _parse_body(body: bytes) -> Any:
    try:
        return orjson.loads(body) if body else None
    except ValueError:
        return body.decode(errors="replace")
