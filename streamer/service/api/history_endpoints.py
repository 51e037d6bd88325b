"""The endpoint of a stream's figures of the last hour."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final

from aiohttp import web

from streamer.service.api import schemas as s
from streamer.service.api.endpoint import ApiRequest, Endpoint, Parameter
from streamer.service.api.responses import json_response
from streamer.service.fleet.errors import BadRequestError
from streamer.service.fleet.manager import Manager
from streamer.service.monitoring.history_document import (
    FIGURE_NAMES,
    HistoryQuery,
    HistoryQueryError,
    describe_history,
)
from streamer.service.monitoring.history_file import load_history_at_rest

_VALUES: Final = s.list_schema(s.MAYBE_NUMBER)
_SLOTS: Final = {"now": s.STRING, "from": s.STRING, "step": s.INTEGER}
_HISTORY: Final = s.object_schema(
    **_SLOTS,
    figures=s.map_schema(_VALUES),
    nodes=s.map_schema(s.map_schema(_VALUES)),
    partitions=s.map_schema(_VALUES),
    markers=s.list_schema(
        s.object_schema(at=s.STRING, kind=s.STRING, text=s.STRING, times=s.INTEGER)
    ),
)
_FROM: Final = Parameter(
    "from",
    "Where to begin: a time, or how long ago, such as `5m` (15m). Up to a quarter of an hour has "
    "slots of 5 seconds, more of 20 seconds; no more than an hour is kept.",
    s.STRING,
)


class HistoryEndpoints:
    """The endpoints that tell what streams have done in the last hour."""

    def __init__(self, manager: Manager) -> None:
        """Take the streams."""
        self._manager = manager

    def list_endpoints(self) -> Iterator[Endpoint]:
        """Return the endpoints."""
        names = ", ".join(f"`{name}`" for name in FIGURE_NAMES)
        yield Endpoint(
            *("GET", "/streams/{id}/history", "read_history"),
            "Return the figures of a stream by time, with deploys, restarts and errors.",
            *(self._history, _HISTORY),
            parameters=(
                _FROM,
                Parameter("figures", f"Names, separated by commas (all): {names}.", s.STRING),
            ),
            codes={404: "There is no such stream.", 400: "A parameter has a wrong value."},
        )

    def _history(self, request: ApiRequest) -> web.Response:
        managed = self._manager.registry.get(request.path["id"])
        if managed.run is None:
            # It has not run since the service started.
            load_history_at_rest(Path(managed.directory), managed.figures)
        document = describe_history(managed.figures, parse_history_query(request.query))
        return json_response({**document, "markers": managed.redact_value(document["markers"])})


def parse_history_query(parameters: Mapping[str, str]) -> HistoryQuery:
    """Parse the parameters of a request.

    Raises:
        BadRequestError: a parameter is something else.
    """
    try:
        return HistoryQuery.parse(parameters, time.time())
    except HistoryQueryError as e:
        raise BadRequestError(str(e)) from None
