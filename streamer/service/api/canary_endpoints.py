"""The endpoints of canaries: changes that run beside a stream before they are deployed."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from aiohttp import web

from streamer.core.durations import HOUR, MINUTE, format_duration, parse_duration
from streamer.service.api import schemas as s
from streamer.service.api.endpoint import ApiRequest, Endpoint, Parameter
from streamer.service.api.request_parsing import parse_number
from streamer.service.api.responses import json_response
from streamer.service.fleet.errors import BadRequestError
from streamer.service.fleet.manager import Manager
from streamer.service.run.canary_run import CanarySettings

DEFAULTS: Final = CanarySettings()
_MAX_WINDOWS: Final = 10_000_000
_PROMOTE: Final = ("auto", "manual")
_NO_CANARY: Final = {
    404: "There is no such stream.",
    409: "It has no canary that this could be done to; the text says why.",
}
_CANARY: Final = s.object_schema(
    **{name: s.STRING for name in ("state", "outcome", "reason", "author", "began_at")},
    base_revision=s.INTEGER,
    judgement=s.MAYBE_OBJECT,
    notes=s.list_schema(s.STRING),
    windows=s.INTEGER,
    max_differences=s.INTEGER,
    promote=s.STRING,
    within=s.STRING,
    ignored=s.list_schema(s.STRING),
    compared=s.INTEGER,
    different=s.INTEGER,
    changed=s.INTEGER,
    missing=s.INTEGER,
    added=s.INTEGER,
    waiting=s.INTEGER,
    behind=s.INTEGER,
    differences=s.list_schema(
        s.object_schema(
            buffer=s.STRING,
            key=s.MAYBE_STRING,
            start=s.STRING,
            end=s.STRING,
            emit=s.STRING,
            kind=s.STRING,
            fields=s.list_schema(
                s.object_schema(
                    path=s.STRING, old=s.MAYBE_STRING, new=s.MAYBE_STRING, row=s.INTEGER
                )
            ),
            field_count=s.INTEGER,
        )
    ),
)
_PARAMETERS: Final = (
    Parameter("windows", f"How many windows are compared ({DEFAULTS.windows}).", s.INTEGER),
    Parameter(
        "max_differences",
        f"How many of them may differ ({DEFAULTS.max_differences}).",
        s.INTEGER,
    ),
    Parameter(
        "promote",
        "`auto`: the canary is promoted when so many windows are compared and no more than that "
        "differ, and else dropped; `manual` (the default): somebody decides.",
        {"type": "string", "enum": list(_PROMOTE)},
    ),
    Parameter("within", f"How long it may run ({format_duration(DEFAULTS.timeout)}).", s.STRING),
    Parameter(
        "max_lag",
        "How long a micro-batch may wait for the canary before it is dropped "
        f"({format_duration(DEFAULTS.max_lag)}).",
        s.STRING,
    ),
    Parameter("ignore", "Paths of fields that do not matter, separated by commas.", s.STRING),
    Parameter(
        "allow_calls",
        "Names or labels of components whose calls may be made twice, separated by commas.",
        s.STRING,
    ),
)


class CanaryEndpoints:
    """`/streams/{id}/canary`."""

    def __init__(self, manager: Manager) -> None:
        """Take the streams."""
        self._canaries = manager.canaries
        self._registry = manager.registry

    def list_endpoints(self) -> Iterator[Endpoint]:
        """Return the endpoints."""
        path = "/streams/{id}/canary"
        yield Endpoint(
            *("POST", path, "begin_canary"),
            "Run a changed config beside a stream on a copy of its checkpoint, without outputs, "
            "and compare the windows of both.",
            *(self._begin, _CANARY),
            parameters=(s.CHILLED, *_PARAMETERS, s.ROLLBACK),
            body="The config, YAML or JSON.",
            codes={
                404: "There is no such stream.",
                409: "The stream belongs to a file, does not run, has a canary, or the change "
                "cannot be tried; the text says why.",
            },
            is_change=True,
            is_slow=True,
        )
        yield Endpoint(
            *("GET", path, "read_canary"),
            "Return the newest canary of a stream, how far it is, and the windows that differ; "
            "null without one.",
            *(self._read, s.object_schema(canary=s.MAYBE_OBJECT)),
            codes={404: "There is no such stream."},
        )
        yield Endpoint(
            *("POST", f"{path}/promote", "promote_canary"),
            "Deploy the revision of a canary, whatever is compared so far.",
            *(self._promote, s.CHANGE_RESULT),
            codes={**_NO_CANARY, 502: "It does not start; the former revision stays."},
            is_change=True,
            is_slow=True,
        )
        yield Endpoint(
            *("DELETE", path, "drop_canary"),
            "End a canary; the running revision stays, and nothing is left of the other.",
            *(self._drop, _CANARY),
            codes=_NO_CANARY,
            is_change=True,
            is_slow=True,
        )

    def _begin(self, request: ApiRequest) -> web.Response:
        settings = parse_canary_settings(request.query)
        canary = self._canaries.begin(request.path["id"], request.body, request.options, settings)
        return json_response(canary.to_document())

    def _read(self, request: ApiRequest) -> web.Response:
        canary = self._canaries.find(request.path["id"])
        return json_response({"canary": None if canary is None else canary.to_document()})

    def _promote(self, request: ApiRequest) -> web.Response:
        stream_id = request.path["id"]
        judgement = self._canaries.promote(stream_id, request.options.author)
        managed = self._registry.streams().get(stream_id)
        number = managed.revision.number if managed is not None else 0
        document: dict[str, Any] = {"revision": number, "judgement": judgement.as_dict()}
        return json_response(document)

    def _drop(self, request: ApiRequest) -> web.Response:
        canary = self._canaries.drop(request.path["id"], request.options.author)
        return json_response(canary.to_document())


def parse_canary_settings(query: Mapping[str, str]) -> CanarySettings:
    """Return how a canary is judged.

    Raises:
        BadRequestError: a parameter has a wrong value.
    """
    windows = parse_number(query.get("windows", str(DEFAULTS.windows)), "windows")
    if not 1 <= windows <= _MAX_WINDOWS:
        raise BadRequestError(f"windows is {windows}; expected 1 to {_MAX_WINDOWS}")
    promote = query.get("promote", "manual")
    if promote not in _PROMOTE:
        raise BadRequestError(f"promote is {promote[:20]!r}; expected auto or manual")
    most = query.get("max_differences", str(DEFAULTS.max_differences))
    return CanarySettings(
        windows,
        parse_number(most, "max_differences"),
        promote == "auto",
        _parse_time(query, "within", DEFAULTS.timeout, 24 * HOUR * 7),
        _parse_time(query, "max_lag", DEFAULTS.max_lag, 10 * MINUTE),
        _split_names(query.get("ignore", "")),
        _split_names(query.get("allow_calls", "")),
    )


def _parse_time(query: Mapping[str, str], name: str, default: int, longest: int) -> int:
    text = query.get(name)
    if text is None:
        return default
    try:
        time = parse_duration(text)
    except ValueError as e:
        raise BadRequestError(f"{name}: {e}") from None
    if not 0 < time <= longest:
        most = format_duration(longest)
        raise BadRequestError(f"{name} is {text[:20]!r}; expected more than 0s, at most {most}")
    return time


def _split_names(text: str) -> tuple[str, ...]:
    return tuple(name for part in text.split(",") if (name := part.strip()))
