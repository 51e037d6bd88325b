"""The endpoints that try a config before a deploy: its tests, a timeline, a tap, a dry run.

Configs are read by the rules for those that come by API, and run in processes of their own. A
config of a file is tried by the same rules: whoever asks could change it.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, Final, NamedTuple

import orjson
from aiohttp import web

from streamer.config.placeholders import find_variables
from streamer.config.references import variable_name
from streamer.config.resources import ResourceText
from streamer.config.unit_tests.definitions import find_definitions
from streamer.connectors.http_server.replies import error_reply
from streamer.connectors.secrets.lookup import current_lookup
from streamer.core.durations import parse_duration
from streamer.core.timestamps import parse_event_time
from streamer.service.api import schemas as s
from streamer.service.api.endpoint import ApiRequest, AsyncHandler, Endpoint
from streamer.service.api.responses import json_response
from streamer.service.fleet import redacted_text
from streamer.service.fleet.errors import BadRequestError
from streamer.service.fleet.managed_stream import ManagedStream
from streamer.service.fleet.manager import Manager
from streamer.tools.config_trial.process import ConfigTrials, TrialOutcome, TrialsBusyError
from streamer.tools.config_trial.request import MAX_MESSAGES, TrialKind, TrialRequest, UnitTestTexts
from streamer.tools.playground.split_documents import split_text

_BUSY_TEXT: Final = "Too many configs are tried at the moment; try again in a few seconds."
_UNNAMED: Final = "config.yaml"
_KNOWN_VARIABLE: Final = "PATH"
"""It is always there: a text without any variable may read no files either."""
_FIELD_TYPES: Final[dict[str, type]] = {
    "config": str,
    "stream": str,
    "messages": str,
    "clock": str,
    "step": str,
    "buffer": str,
}
_TESTS_SCHEMA: Final = s.list_schema(
    s.object_schema(name=s.STRING, file=s.STRING, line=s.INTEGER, passed=s.BOOLEAN, error=s.BOOLEAN)
)
_CHECKS_SCHEMA: Final = s.list_schema(
    {
        "type": "object",
        "properties": {
            "name": s.STRING,
            "ok": {"type": ["boolean", "null"]},
            "detail": s.STRING,
        },
    }
)
_STAGES_SCHEMA: Final = s.list_schema(
    s.object_schema(path=s.STRING, component=s.STRING, label=s.STRING, messages=s.INTEGER)
)
_COMMON: Final = {"problem": s.STRING, "cut": s.BOOLEAN, "left_out": s.INTEGER}


class _TrialRoute(NamedTuple):
    """An endpoint of trials.

    Attributes:
        kind: what is run.
        about: what it does.
        body: the fields of its body beside `config` and `stream`.
        results: the schemas of what it answers, by name.
    """

    kind: TrialKind
    about: str
    body: str
    results: dict[str, Any]


_ROUTES: Final = (
    _TrialRoute(
        "tests",
        "Run the unit tests of a config, those of its section `tests` and of files beside it.",
        "",
        {"tests": _TESTS_SCHEMA, "lints": s.list_schema({"type": "object"})},
    ),
    _TrialRoute(
        "timeline",
        "Return the windows that messages fall into, when each closes, and what is dropped.",
        "`messages` (a text, a message a line), `clock` (when the first one arrives), `step` (a "
        "duration from one to the next), `buffer` (a label)",
        {
            "messages": s.list_schema({"type": "object"}),
            "windows": s.list_schema({"type": "object"}),
            "svg": s.STRING,
        },
    ),
    _TrialRoute(
        "tap",
        "Return the messages before and after each component; the output is given nothing.",
        "`messages` (a text, a message a line; without any a `generate` input makes some)",
        {"stages": _STAGES_SCHEMA},
    ),
    _TrialRoute(
        "dry-run",
        "Connect every input and output of a config without moving a message.",
        "",
        {"checks": _CHECKS_SCHEMA},
    ),
)


class TrialEndpoints:
    """The endpoints below `/console/trial`. Each trial has a process of its own."""

    def __init__(self, manager: Manager, trials: ConfigTrials | None = None) -> None:
        """Take the streams, whose reader says what a config may do, and what runs trials."""
        self._manager = manager
        self._trials = trials

    def list_endpoints(self) -> Iterator[Endpoint]:
        """Return the endpoints."""
        for route in _ROUTES:
            more = f", {route.body}" if route.body else ""
            yield Endpoint(
                *("POST", f"/console/trial/{route.kind}", f"try_{route.kind.replace('-', '_')}"),
                *(route.about, self._make_handler(route.kind)),
                {"type": "object", "properties": {**route.results, **_COMMON}},
                body=f"An object: `config` (YAML), `stream` (whose secrets marks stand for){more}.",
                codes={404: "There is no such stream.", 503: _BUSY_TEXT},
                is_change=True,
                is_awaited=True,
            )

    def _make_handler(self, kind: TrialKind) -> AsyncHandler:
        async def try_config(api_request: ApiRequest) -> web.Response:
            return await self._try_config(kind, api_request.body)

        return try_config

    async def _try_config(self, kind: TrialKind, body: str) -> web.Response:
        fields = _parse_fields(body)
        # Read in a thread: a config may be large, and other requests go on meanwhile.
        request, left_out = await asyncio.to_thread(self._make_request, kind, fields)
        if self._trials is None:
            self._trials = ConfigTrials()
        try:
            outcome = await self._trials.run(request)
        except TrialsBusyError:
            return error_reply(503, f"Error: {_BUSY_TEXT}")
        return json_response({**_gather_pieces(kind, outcome), "left_out": left_out})

    async def close(self, app: web.Application) -> None:
        """End the processes."""
        if self._trials is not None:
            await self._trials.close()

    def _make_request(self, kind: TrialKind, fields: dict[str, str]) -> tuple[TrialRequest, int]:
        """Return the trial that is asked for, and how many messages were too many.

        Raises:
            BadRequestError: a field is not right.
            BadConfigError: there is something wrong with the config.
            UnknownStreamError: there is no such stream.
        """
        registry = self._manager.registry
        stream_id = fields.get("stream", "")
        managed = registry.get(stream_id) if stream_id else None
        text = fields.get("config", "")
        if managed is not None:
            text = redacted_text.restore_secrets(text, managed.revision.text)
        config = registry.reader.read_api_config(text, stream_id, chilled=True)
        permissions = registry.reader.permissions.component_permissions
        messages = _split_messages(fields.get("messages", "")) if kind in MAX_MESSAGES else []
        limit = MAX_MESSAGES.get(kind, 0)
        request = TrialRequest(
            kind,
            replace(config, tests=()),
            permissions,
            tuple(messages[:limit]),
            _parse_optional(fields, "clock", parse_event_time),
            _parse_optional(fields, "step", parse_duration),
            fields.get("buffer", ""),
            self._find_tests(managed, text) if kind == "tests" else None,
        )
        return request, max(len(messages) - limit, 0)

    def _find_tests(self, managed: ManagedStream | None, text: str) -> UnitTestTexts:
        reader = self._manager.registry.reader
        resources = tuple(
            ResourceText(one.name, one.text, _pick_variables(one), one.permissions)
            for one in reader.resource_texts()
            if isinstance(one, ResourceText)
        )
        templates = tuple(map(os.path.abspath, reader.templates))
        path = managed.config.path if managed is not None and not managed.is_of_api else ""
        if not path:
            return UnitTestTexts(_UNNAMED, text, resources=resources, templates=templates)
        return UnitTestTexts(
            os.path.basename(path),
            text,
            {os.path.basename(one): Path(one).read_text() for one in find_definitions(path)},
            os.path.dirname(os.path.abspath(path)),
            resources,
            templates,
        )


def _pick_variables(resource: ResourceText) -> dict[str, str]:
    """Return the variables that a text refers to; no others reach the process."""
    if not resource.env:
        return {}
    values: dict[str, str] = {_KNOWN_VARIABLE: resource.env.get(_KNOWN_VARIABLE, "")}
    for variable in find_variables(resource.text):
        name = variable_name(variable)
        value = current_lookup().find(name, resource.env).value if name else None
        if value is not None:
            values[name] = value
    return values


def _parse_fields(body: str) -> dict[str, str]:
    """Return the fields of a body.

    Raises:
        BadRequestError: it is something else.
    """
    try:
        document: Any = orjson.loads(body)
    except orjson.JSONDecodeError as e:
        raise BadRequestError(f"the body is not JSON: {e}") from None
    if not isinstance(document, dict) or "config" not in document:
        raise BadRequestError("expected an object with the field config")
    for name, kind in _FIELD_TYPES.items():
        if not isinstance(document.get(name, ""), kind):
            raise BadRequestError(f"expected a string in the field {name}")
    return {name: document[name] for name in _FIELD_TYPES if name in document}


def _parse_optional(fields: dict[str, str], name: str, parse: Any) -> int | None:
    text = fields.get(name, "").strip()
    if not text:
        return None
    try:
        value: int = parse(text)
    except ValueError as e:
        raise BadRequestError(f"{name} {text[:100]!r}: {e}") from None
    if value < 0 and name == "step":
        raise BadRequestError(f"step {text!r}: time does not run backwards; expected 0s or more")
    return value


def _split_messages(text: str) -> list[bytes]:
    """Return messages, a line each; JSON that is written over several lines is one."""
    return [one for one in split_text(text.encode(errors="replace"), "auto") if one.strip()]


def _gather_pieces(kind: TrialKind, outcome: TrialOutcome) -> dict[str, Any]:
    """Return the findings of a trial by what they are of."""
    names = {
        "tests": {"test": "tests", "lint": "lints"},
        "timeline": {"message": "messages", "window": "windows"},
        "tap": {"stage": "stages"},
        "dry-run": {"check": "checks"},
    }[kind]
    answer: dict[str, Any] = {plural: [] for plural in names.values()}
    answer |= {"problem": outcome.stopped, "cut": outcome.is_cut}
    for piece in outcome.pieces:
        for name, value in piece.items():
            if name in names:
                answer[names[name]].append(value)
            elif name == "svg" or not answer.get(name):
                answer[name] = value
    return answer
