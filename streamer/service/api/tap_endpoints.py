"""The endpoints by which one watches the messages of a stream that runs."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from aiohttp import web

from streamer.core.timestamps import format_rfc3339
from streamer.engine.report.message_samples import MAX_OPEN_S, MessageSamples
from streamer.service.api import schemas as s
from streamer.service.api.endpoint import ApiRequest, Endpoint, Parameter
from streamer.service.api.request_parsing import parse_number
from streamer.service.api.responses import json_response
from streamer.service.fleet.managed_stream import ManagedStream
from streamer.service.fleet.manager import Manager

_UNKNOWN_STREAM_CODES: Final = {404: "There is no such stream."}
_DEFAULT_SECONDS: Final = 15
_TAP_SCHEMA: Final = s.object_schema(open=s.BOOLEAN, samples=s.list_schema(s.ANYTHING))


class TapEndpoints:
    """`/streams/{id}/tap`: a POST has samples taken for a while, a GET returns them."""

    def __init__(self, manager: Manager) -> None:
        """Take the streams."""
        self._manager = manager

    def list_endpoints(self) -> Iterator[Endpoint]:
        """Return the endpoints."""
        path = "/streams/{id}/tap"
        yield Endpoint(
            *("POST", path, "open_tap"),
            "Take samples of a stream's messages, before and after each component, for a while.",
            *(self._open, s.object_schema(open=s.BOOLEAN)),
            parameters=(
                Parameter("seconds", f"For how long, at most {MAX_OPEN_S:.0f}.", s.INTEGER),
            ),
            codes={**_UNKNOWN_STREAM_CODES, 400: "A parameter is no number."},
            is_change=True,
        )
        yield Endpoint(
            *("GET", path, "read_tap"),
            "Return the samples that were taken, oldest first, without secrets.",
            *(self._read, _TAP_SCHEMA),
            parameters=(
                Parameter("node", "The path of a component, such as `root.input`.", s.STRING),
                Parameter("after", "The number of a sample: only those after it.", s.INTEGER),
            ),
            codes={**_UNKNOWN_STREAM_CODES, 400: "A parameter is no number."},
        )

    def _open(self, request: ApiRequest) -> web.Response:
        managed, tap = self._find_tap(request)
        seconds = parse_number(request.query.get("seconds", str(_DEFAULT_SECONDS)), "seconds")
        if tap is not None and tap.open(min(seconds, MAX_OPEN_S)):
            # Messages may hold what not everybody may see: it is known who has looked.
            managed.log("INFO", "Messages are sampled for the API", {"by": request.options.author})
        return json_response({"open": tap is not None})

    def _read(self, request: ApiRequest) -> web.Response:
        managed, tap = self._find_tap(request)
        after = parse_number(request.query.get("after", "0"), "after")
        raw_samples: list[dict[str, Any]] = []
        if tap is not None:
            raw_samples = tap.samples(request.query.get("node"), after)
        formatted = [{**one, "at": format_rfc3339(one["at"])} for one in raw_samples]
        samples = managed.redact_value(formatted)
        return json_response({"open": tap is not None and tap.per_task > 0, "samples": samples})

    def _find_tap(self, request: ApiRequest) -> tuple[ManagedStream, MessageSamples | None]:
        managed = self._manager.registry.get(request.path["id"])
        return managed, managed.run.tap() if managed.run is not None else None
