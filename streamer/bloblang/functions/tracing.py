"""Functions that tell the trace a message belongs to.

A message carries its trace in metadata, as the W3C Trace Context headers `traceparent` and
`tracestate`, whatever their letters' case (HTTP inputs put headers there). Source: Benthos
`internal/tracing/otel.go`, where inputs read the same two headers.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final

from streamer.bloblang.declare import Example, declare

_CATEGORY: Final = "Message Info"
_TRACEPARENT: Final = re.compile(r"([0-9a-f]{2})-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})(-.*)?")
_NO_TRACE: Final = "0" * 32


def _find_header(original: Mapping[str, Any], name: str) -> str | None:
    value = original.get(name)
    if value is None:
        value = next((v for k, v in original.items() if k.lower() == name), None)
    return value if isinstance(value, str) else None


def _parse_traceparent(original: Mapping[str, Any]) -> tuple[str, str, int] | None:
    """Return trace id, span id and flags; None without a valid `traceparent`."""
    if not original or (header := _find_header(original, "traceparent")) is None:
        return None
    match = _TRACEPARENT.fullmatch(header.strip())
    if match is None:
        return None
    version, trace, span, flags, more = match.groups()
    known = version == "00" and (more or int(flags, 16) > 2)
    if version == "ff" or known or not int(trace, 16) or not int(span, 16):
        return None
    return trace, span, int(flags, 16)


@declare(
    "tracing_span",
    _CATEGORY,
    examples=(Example("root = tracing_span()", "{}", "{}"),),
    needs=("original",),
    uses=("meta",),
)
def tracing_span(original: Mapping[str, Any]) -> dict[str, str]:
    """The trace context of the message as an object of headers, empty when it has none."""
    parent = _parse_traceparent(original)
    if parent is None:
        return {}
    trace, span, flags = parent
    headers = {"traceparent": f"00-{trace}-{span}-{flags & 1:02x}"}
    state = _find_header(original, "tracestate")
    return {**headers, "tracestate": state} if state else headers


@declare(
    "tracing_id",
    _CATEGORY,
    examples=(Example("root = tracing_id()", "{}", _NO_TRACE),),
    needs=("original",),
    uses=("meta",),
)
def tracing_id(original: Mapping[str, Any]) -> str:
    """The id of the trace that the message belongs to, 32 zeros when there is none."""
    parent = _parse_traceparent(original)
    return parent[0] if parent else _NO_TRACE
