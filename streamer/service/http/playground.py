"""The endpoint that tries a Bloblang mapping on a document, within bounds of time and memory."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Any, Final

import orjson
from aiohttp import web

from streamer.endpoints.replies import error_reply
from streamer.service.http import schemas as s
from streamer.service.http.answers import as_json
from streamer.service.http.endpoint import Asked, Endpoint
from streamer.service.streams.faults import BadRequestError
from streamer.service.streams.manager import Manager
from streamer.trials.evaluator import Busy, Evaluator
from streamer.trials.trial import Request

SECONDS: Final = 2.0
"""How long a mapping may run."""

MEMORY: Final = 512 << 20
"""Bytes of address space that the process of a trial may have."""

_PROCESSES: Final = 2
_WAITING: Final = 8
_REST_SECONDS: Final = 60.0
_BUSY: Final = "Too many mappings are tried at the moment; ask again."
_PROBLEM: Final = s.obj(
    text=s.STRING, shown=s.STRING, line=s.INTEGER, column=s.INTEGER, length=s.INTEGER
)
_ANSWER: Final = {
    "type": "object",
    "properties": {"problem": _PROBLEM, "results": s.listed({"type": "object"}), "cut": s.BOOLEAN},
}
_KINDS: Final[dict[str, type]] = {"mapping": str, "input": str, "raw": bool, "metadata": dict}
_WORDS: Final = {str: "a string", bool: "a bool", dict: "an object"}


class PlaygroundEndpoints:
    """The endpoint `/bloblang`. Its processes are started when somebody asks, and rest again."""

    def __init__(self, manager: Manager) -> None:
        """Take the streams, which say whether mappings may see files and the environment."""
        self._manager = manager
        self._evaluator: Evaluator | None = None
        self._resting: asyncio.TimerHandle | None = None

    def all(self) -> Iterator[Endpoint]:
        """Return it."""
        yield Endpoint(
            *("POST", "/bloblang", "try_mapping"),
            "Apply a Bloblang mapping to documents: what comes out, or what is wrong and where.",
            *(self._tried, _ANSWER),
            body="An object: `mapping`, `input` (JSON documents, or a text where `raw` is true), "
            "`metadata` (an object).",
            codes={503: _BUSY},
            changes=True,
            awaited=True,
        )

    async def _tried(self, asked: Asked) -> web.Response:
        request = _request(asked.body)
        if self._evaluator is None:
            impure = self._manager.registry.reader.allowance.local
            self._evaluator = Evaluator(impure, _PROCESSES, SECONDS, MEMORY, _WAITING)
        if self._resting is not None:
            self._resting.cancel()
        try:
            return as_json(await self._evaluator.attempt(request))
        except Busy:
            return error_reply(503, f"Error: {_BUSY}")
        finally:
            loop = asyncio.get_running_loop()
            self._resting = loop.call_later(_REST_SECONDS, self._evaluator.rest)

    async def close(self, app: web.Application) -> None:
        """End the processes."""
        if self._resting is not None:
            self._resting.cancel()
        if self._evaluator is not None:
            await self._evaluator.close()


def _request(body: str) -> Request:
    """Return what is to be tried; all that a page may not ask for is left out.

    Raises:
        BadRequestError: the body is something else.
    """
    try:
        found: Any = orjson.loads(body)
    except orjson.JSONDecodeError as e:
        raise BadRequestError(f"the body is not JSON: {e}") from None
    if not isinstance(found, dict) or not {"mapping", "input"} <= found.keys():
        raise BadRequestError("expected an object with the fields mapping and input")
    for name, kind in _KINDS.items():
        if not isinstance(found.get(name, kind()), kind):
            raise BadRequestError(f"expected {_WORDS[kind]} in the field {name}")
    return Request(
        mapping=found["mapping"],
        input=found["input"],
        raw=found.get("raw", False),
        metadata=found.get("metadata", {}),
    )
