"""A request and its answer as a field of a log line, for `dump_request_log_level`."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import orjson

from streamer.http.request import Request
from streamer.redaction import SCRUBBED, names_credential, scrub_urls


def dumped(
    request: Request,
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
    found: dict[str, Any] = {
        "elapsed_ns": took,
        "request": {
            "url": scrub_urls(request.url),
            "method": request.method,
            "header": _shown(sent),
            "body": _document(request.body or b""),
        },
    }
    if status is not None:
        found["response"] = {
            "status_code": status,
            "content_length": len(body),
            "header": _shown(headers),
            "body": _document(body),
        }
    if failure:
        found["error"] = failure
    return found


def _shown(headers: Iterable[tuple[str, str]]) -> dict[str, str]:
    shown: dict[str, str] = {}
    for name, value in headers:
        value = SCRUBBED if names_credential(name) else value
        shown[name] = f"{shown[name]} {value}" if name in shown else value
    return shown


def _document(body: bytes) -> Any:
    try:
        return orjson.loads(body) if body else None
    except ValueError:
        return body.decode(errors="replace")
