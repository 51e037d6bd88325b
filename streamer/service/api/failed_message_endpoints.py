"""The endpoint that shows a sample of a stream's failed messages."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from typing import Any, Final

from aiohttp import web

from streamer.core.timestamps import format_rfc3339
from streamer.service.api import schemas as s
from streamer.service.api.endpoint import ApiRequest, Endpoint, Parameter
from streamer.service.api.request_parsing import parse_number
from streamer.service.api.responses import json_response
from streamer.service.fleet.managed_stream import ManagedStream
from streamer.service.fleet.manager import Manager
from streamer.service.monitoring.stream_summary import (
    summarise_components,
    summarise_expectations,
)

MAX_MESSAGES: Final = 200
"""Messages that an answer has at most."""

_LOG_INTERVAL_S: Final = 600.0
_MAX_READERS: Final = 1_000
_COUNTERS: Final = ("error", "rejected")
_SCHEMA: Final = s.object_schema(
    messages=s.list_schema(
        s.object_schema(
            number=s.INTEGER,
            time=s.STRING,
            micro_batch=s.INTEGER,
            label=s.STRING,
            path=s.STRING,
            fate=s.STRING,
            content=s.STRING,
            error=s.STRING,
            messages=s.INTEGER,
            source=s.MAYBE_OBJECT,
        )
    ),
    components=s.list_schema(s.object_schema(kind=s.STRING, label=s.STRING, path=s.STRING)),
    expectations=s.EXPECTATIONS,
)


class FailedMessageEndpoints:
    """The endpoint `/streams/{id}/failed-messages`."""

    def __init__(self, manager: Manager) -> None:
        """Take the streams."""
        self._manager = manager
        self._lock = threading.Lock()
        self._read_at: dict[tuple[str, str], float] = {}

    def list_endpoints(self) -> Iterator[Endpoint]:
        """Return the endpoint."""
        yield Endpoint(
            *("GET", "/streams/{id}/failed-messages", "read_failed_messages"),
            "Return a sample of the messages that have failed, newest first, without secrets, and "
            "how many have failed in each component since the start of the program, and how many "
            "have passed and failed each expectation. A few of each component, expectation and "
            "micro-batch are taken, and the newest kept in memory.",
            *(self._read, _SCHEMA),
            parameters=(
                Parameter("node", "The path of a component, such as `root.output`.", s.STRING),
                Parameter("expectation", "The name of an expectation: only its samples.", s.STRING),
                Parameter("limit", f"How many messages at most, 1 to {MAX_MESSAGES}.", s.INTEGER),
            ),
            codes={400: "A parameter is no number.", 404: "There is no such stream."},
        )

    def _read(self, request: ApiRequest) -> web.Response:
        managed = self._manager.registry.get(request.path["id"])
        limit = parse_number(request.query.get("limit", str(MAX_MESSAGES)), "limit")
        raw = managed.view.failed_messages.newest_samples(
            request.query.get("node"), min(limit, MAX_MESSAGES), request.query.get("expectation")
        )
        messages = [{**one, "time": format_rfc3339(one["time"])} for one in raw]
        self._log_reader(managed, request.options.author)
        return json_response(
            {
                "messages": managed.redact_value(messages),
                "components": [*_count_failures(managed)],
                "expectations": summarise_expectations(managed.view),
            }
        )

    def _log_reader(self, managed: ManagedStream, author: str) -> None:
        """Log now and then who reads: messages may hold what not everybody may see."""
        key, now = (managed.stream_id, author), time.monotonic()
        with self._lock:
            if now - self._read_at.get(key, -_LOG_INTERVAL_S) < _LOG_INTERVAL_S:
                return
            if len(self._read_at) >= _MAX_READERS:
                self._read_at.clear()
            self._read_at[key] = now
        managed.log("INFO", "Failed messages are read by the API", {"by": author})


def _count_failures(managed: ManagedStream) -> Iterator[dict[str, Any]]:
    """Return the components in which messages have failed, with their counters."""
    for one in summarise_components(managed.view):
        if any(one.get(name) for name in _COUNTERS):
            names = ("kind", "label", "path", *_COUNTERS)
            yield {name: one[name] for name in names if name in one}
