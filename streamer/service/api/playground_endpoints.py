"""The endpoint that tries a Bloblang mapping on a document, within bounds of time and memory."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Any, Final

import orjson
from aiohttp import web

from streamer.connectors.http_server.replies import error_reply
from streamer.service.api import schemas as s
from streamer.service.api.endpoint import ApiRequest, Endpoint
from streamer.service.api.responses import json_response
from streamer.service.fleet.errors import BadRequestError
from streamer.service.fleet.manager import Manager
from streamer.tools.playground.evaluator import BusyError, Evaluator
from streamer.tools.playground.trial import Request

MAPPING_TIMEOUT_S: Final = 2.0
"""How long a mapping may run."""

MAX_MEMORY_BYTES: Final = 512 << 20
"""Bytes of address space that the process of a trial may have."""

_PROCESSES: Final = 2
_MAX_WAITING: Final = 8
_IDLE_TIMEOUT_S: Final = 60.0
_BUSY_TEXT: Final = "Too many mappings run at the moment; try again."
_PROBLEM_SCHEMA: Final = s.object_schema(
    text=s.STRING, shown=s.STRING, line=s.INTEGER, column=s.INTEGER, length=s.INTEGER
)
_ANSWER_SCHEMA: Final = {
    "type": "object",
    "properties": {
        "problem": _PROBLEM_SCHEMA,
        "results": s.list_schema({"type": "object"}),
        "cut": s.BOOLEAN,
    },
}
_FIELD_TYPES: Final[dict[str, type]] = {
    **{"mapping": str, "input": str, "raw": bool, "metadata": dict},
    **{"batch": bool, "group_by": str},
}
_TYPE_TEXTS: Final = {str: "a string", bool: "a bool", dict: "an object"}


class PlaygroundEndpoints:
    """The endpoint `/bloblang`. Its processes are started when somebody asks, and rest again."""

    def __init__(self, manager: Manager) -> None:
        """Take the streams, which say whether mappings may see files and the environment."""
        self._manager = manager
        self._evaluator: Evaluator | None = None
        self._idle_timer: asyncio.TimerHandle | None = None

    def list_endpoints(self) -> Iterator[Endpoint]:
        """Return the endpoint."""
        yield Endpoint(
            *("POST", "/bloblang", "try_mapping"),
            "Apply a Bloblang mapping to documents: return results, or the error and its place.",
            *(self._try_mapping, _ANSWER_SCHEMA),
            body="An object: `mapping`, `input` (JSON documents, or a text where `raw` is true), "
            "`metadata` (an object), `batch` (whether the documents, a line each, are one batch), "
            "`group_by` (a mapping: documents with the same value are a batch).",
            codes={503: _BUSY_TEXT},
            is_change=True,
            is_awaited=True,
        )

    async def _try_mapping(self, api_request: ApiRequest) -> web.Response:
        request = _parse_request(api_request.body)
        if self._evaluator is None:
            impure = self._manager.registry.reader.permissions.local
            self._evaluator = Evaluator(
                impure, _PROCESSES, MAPPING_TIMEOUT_S, MAX_MEMORY_BYTES, _MAX_WAITING
            )
        if self._idle_timer is not None:
            self._idle_timer.cancel()
        try:
            return json_response(await self._evaluator.attempt(request))
        except BusyError:
            return error_reply(503, f"Error: {_BUSY_TEXT}")
        finally:
            loop = asyncio.get_running_loop()
            self._idle_timer = loop.call_later(_IDLE_TIMEOUT_S, self._evaluator.stop_idle)

    async def close(self, app: web.Application) -> None:
        """End the processes."""
        if self._idle_timer is not None:
            self._idle_timer.cancel()
        if self._evaluator is not None:
            await self._evaluator.close()


def _parse_request(body: str) -> Request:
    """Return what is to be tried; all that a page may not ask for is left out.

    Raises:
        BadRequestError: the body is something else.
    """
    try:
        document: Any = orjson.loads(body)
    except orjson.JSONDecodeError as e:
        raise BadRequestError(f"the body is not JSON: {e}") from None
    if not isinstance(document, dict) or not {"mapping", "input"} <= document.keys():
        raise BadRequestError("expected an object with the fields mapping and input")
    for name, kind in _FIELD_TYPES.items():
        if not isinstance(document.get(name, kind()), kind):
            raise BadRequestError(f"expected {_TYPE_TEXTS[kind]} in the field {name}")
    return Request(
        mapping=document["mapping"],
        input=document["input"],
        raw=document.get("raw", False),
        metadata=document.get("metadata", {}),
        batch=document.get("batch", False),
        group_by=document.get("group_by", ""),
    )
