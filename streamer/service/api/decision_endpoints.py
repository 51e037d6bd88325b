"""The endpoint that answers why a window is open, and why a message was dropped."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

from aiohttp import web

from streamer.engine.driver.decision_journal import read_decisions
from streamer.plan import make_plan
from streamer.service.api import schemas as s
from streamer.service.api.endpoint import ApiRequest, Endpoint, Parameter
from streamer.service.api.responses import json_response
from streamer.service.fleet.errors import BadRequestError
from streamer.service.fleet.manager import Manager
from streamer.service.monitoring.decision_answers import (
    DecisionQuery,
    DecisionQueryError,
    answer_query,
    windows_by_label,
)
from streamer.window.inspect.window_query import MAX_ROWS, WindowQuery

_PARAMETERS: Final = (
    Parameter("window", "The start or the end of a window, RFC 3339.", s.STRING),
    Parameter("key", "The key of a window or a message.", s.STRING),
    Parameter("at", "The event time of a message, RFC 3339.", s.STRING),
    Parameter("message", "A part of a message's payload.", s.STRING),
)
_CODES: Final = {404: "There is no such stream.", 400: "A parameter has a wrong value."}
_SCHEMA: Final = s.object_schema(
    journal=s.object_schema(micro_batches=s.INTEGER),
    clocks=s.list_schema(s.object_schema(buffer=s.STRING, clock=s.MAYBE_STRING)),
    windows=s.list_schema(s.object_schema(state=s.STRING, why=s.STRING)),
    messages=s.list_schema(s.object_schema(reason=s.STRING, rule=s.STRING)),
)


class DecisionEndpoints:
    """`/streams/{id}/why`: answers from the journal of decisions, while the stream runs or not."""

    def __init__(self, manager: Manager) -> None:
        """Take the streams."""
        self._manager = manager

    def list_endpoints(self) -> Iterator[Endpoint]:
        """Return the endpoints."""
        yield Endpoint(
            *("GET", "/streams/{id}/why", "read_decisions"),
            "Return who holds the clock of the windows back. With parameters, also why a window "
            "is open or closed, or why a message was dropped.",
            *(self._read, _SCHEMA),
            parameters=_PARAMETERS,
            codes=_CODES,
        )

    def _read(self, request: ApiRequest) -> web.Response:
        managed = self._manager.registry.get(request.path["id"])
        try:
            query = DecisionQuery.parse(request.query)
        except DecisionQueryError as e:
            raise BadRequestError(str(e)) from None
        records = [*read_decisions(Path(managed.directory))]
        listed: Any = ()
        if query.lists_windows and managed.run is not None:
            usual = WindowQuery(limit=MAX_ROWS, key=query.key, only_key=query.key is not None)
            listed = managed.run.list_windows(usual).get("windows", ())
        windows = windows_by_label(make_plan(managed.config, name=managed.stream_id))
        return json_response(managed.redact_value(answer_query(records, windows, query, listed)))
