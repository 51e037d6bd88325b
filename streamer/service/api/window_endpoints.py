"""The endpoints by which one looks at the open windows of a stream that runs."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any, Final

from aiohttp import web

from streamer.core.timestamps import format_rfc3339, parse_rfc3339
from streamer.service.api import schemas as s
from streamer.service.api.endpoint import ApiRequest, Endpoint, Parameter
from streamer.service.api.request_parsing import parse_number
from streamer.service.api.responses import json_response
from streamer.service.fleet.errors import BadRequestError
from streamer.service.fleet.managed_stream import ManagedStream
from streamer.service.fleet.manager import Manager
from streamer.service.monitoring.stream_view import shown_figures
from streamer.service.monitoring.window_rows import DEFAULT_QUERY
from streamer.window.inspect.window_query import MAX_ROWS, ORDERS, WindowQuery

MAX_QUERY_KEY_CHARS: Final = 1_000
"""Characters that a search for keys may have."""

_CODES: Final = {404: "There is no such stream.", 400: "A parameter has a wrong value."}
_PARAMETERS: Final = (
    Parameter("key", "Lists only windows whose key contains this text.", s.STRING),
    Parameter("exact", "Whether `key` is the whole key.", s.BOOLEAN),
    Parameter(
        "by",
        "Which windows come first: the oldest (`age`), those with the most messages (`size`), or "
        "those that close first (`close`).",
        {"type": "string", "enum": list(ORDERS)},
    ),
    Parameter("limit", f"How many windows, at most {MAX_ROWS}.", s.INTEGER),
    Parameter("keys", "Whether each key in windows that all keys share has a row.", s.BOOLEAN),
    Parameter("start", "Lists only windows that begin then, RFC 3339.", s.STRING),
    Parameter(
        "content",
        "Whether to look into the windows with just this key and start: their last messages, and "
        "the result of a pre-aggregated mapping so far.",
        s.BOOLEAN,
    ),
)
_NO_WINDOWS: Final = {"windows": [], "open": 0, "messages": 0, "bytes": 0}


class WindowEndpoints:
    """`/streams/{id}/windows`: a GET lists them, a POST has shards asked for more than they say.

    Shards say by themselves what they hold in few windows. To find a key among very many, or to
    look into a window, one asks by a POST, and gets the answer by a GET with the same parameters
    once a micro-batch has been run, which the POST causes.
    """

    def __init__(self, manager: Manager) -> None:
        """Take the streams."""
        self._manager = manager

    def list_endpoints(self) -> Iterator[Endpoint]:
        """Return the endpoints."""
        path = "/streams/{id}/windows"
        yield Endpoint(
            *("GET", path, "read_windows"),
            "Return the open windows of a stream, and those that closed a while ago.",
            *(self._read, s.WINDOWS),
            parameters=_PARAMETERS,
            codes=_CODES,
        )
        yield Endpoint(
            *("POST", path, "request_windows"),
            "Have the next micro-batch look for windows; a `GET` with the same parameters has the "
            "answer then.",
            *(self._request, s.object_schema(asked=s.BOOLEAN)),
            parameters=_PARAMETERS,
            codes=_CODES,
            is_change=True,
        )

    def _read(self, request: ApiRequest) -> web.Response:
        managed = self._find_stream(request)
        query = parse_window_query(request)
        windows = managed.run.list_windows(query) if managed.run is not None else _NO_WINDOWS
        figures = shown_figures(managed.view, managed.view.current_state())
        known: dict[str, Any] = {"checkpoint_as_of": figures.as_of_text}
        if figures.as_of is not None or managed.run is None:
            # No shard has said anything yet, or does so no more.
            known |= {"open": figures.open_windows, "messages": figures.held, "bytes": figures.size}
        # The clock of who asks may be another.
        document = {**windows, **known, "now": format_rfc3339(time.time_ns())}
        return json_response(managed.redact_value(document))

    def _request(self, request: ApiRequest) -> web.Response:
        managed = self._find_stream(request)
        query = parse_window_query(request)
        run = managed.run
        if run is not None and run.request_windows(query) and query.has_content:
            # Messages may hold what not everybody may see: it is known who has looked.
            fields: dict[str, Any] = {"by": request.options.author}
            managed.log("INFO", "Open windows are looked into for the API", fields)
        return json_response({"asked": run is not None})

    def _find_stream(self, request: ApiRequest) -> ManagedStream:
        return self._manager.registry.get(request.path["id"])


def parse_window_query(request: ApiRequest) -> WindowQuery:
    """Return the question that the parameters of a request ask.

    Raises:
        BadRequestError: one of them makes no sense.
    """
    given = request.query
    by = given.get("by", DEFAULT_QUERY.by)
    if by not in ORDERS:
        raise BadRequestError(f"by is {by[:20]!r}; expected one of {', '.join(ORDERS)}")
    limit = parse_number(given.get("limit", str(DEFAULT_QUERY.limit)), "limit")
    key = given.get("key") or None
    if key is not None and len(key) > MAX_QUERY_KEY_CHARS:
        raise BadRequestError(f"key has more than {MAX_QUERY_KEY_CHARS:,} characters")
    start: int | None = None
    if text := given.get("start"):
        try:
            start = parse_rfc3339(text).ns
        except ValueError:
            expected = "2026-03-01T10:15:00Z"
            raise BadRequestError(
                f"start is {text[:40]!r}; expected a time such as {expected}"
            ) from None
    return WindowQuery(
        by=by,
        limit=min(limit, MAX_ROWS),
        key=key,
        only_key=given.get("exact") == "true",
        start=start,
        has_content=given.get("content") == "true",
        lists_keys=given.get("keys") == "true",
    )
