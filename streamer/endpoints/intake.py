"""Taking messages over HTTP: requests and WebSockets, each answered when what it sent is safe."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, Final
from urllib.parse import urlsplit

from aiohttp import WSMsgType, hdrs, web

from streamer.answering import REQUEST, RefusedRequestError
from streamer.durations import SECOND
from streamer.endpoints.own import Own, serve
from streamer.endpoints.registry import Handler
from streamer.endpoints.replies import Reply, error_reply
from streamer.endpoints.requests import (
    BadRequestError,
    Body,
    BusyError,
    TooLargeError,
    bodies,
    metadata,
    sent,
)
from streamer.landing.blocks import Record, batch, each, uncut
from streamer.landing.commit import GroupCommit
from streamer.landing.receiver import Reception, receive
from streamer.landing.store import Store, StoreFullError
from streamer.limits import stream_limits
from streamer.logs.rare import RareLog
from streamer.message import Batch, Execution, Message
from streamer.rate_limiting import RateLimit, RateLimitError
from streamer.source.opening import Room

_CLOSING: Final = "Server closing"
_FULL_SECONDS: Final = "1"
_PACKED_AT_ONCE: Final = 1000
"""Messages of a request that are packed in no time."""


@dataclass
class Intake:
    """Takes requests for one input.

    Attributes:
        store: where messages land.
        room: the input's.
        verbs: methods that are taken.
        timeout: seconds that a request may take.
        limit: of requests, or None.
        reply: writes the messages that answer a request.
        welcome: what a WebSocket is sent first; nothing when empty.
        refusal: what it is sent for a message that the limit does not let in.
        max_body_size: bytes of a body, and of a WebSocket's message.
        max_parts: parts of a multipart body.
        delimiter: ends a message where bodies are cut; None when they are not.
    """

    store: Store
    room: Room
    verbs: frozenset[str]
    timeout: float
    limit: RateLimit | None
    reply: Reply
    welcome: bytes
    refusal: bytes
    max_body_size: int
    max_parts: int
    delimiter: bytes | None
    _commit: GroupCommit = field(init=False)
    _ex: Execution = field(init=False)
    _rare: RareLog = field(init=False)

    def __post_init__(self) -> None:
        """Make what all requests share."""
        self._commit = GroupCommit(self.store)
        self._rare = RareLog(self.room.log)
        self._ex = Execution(time.time_ns, self.room.log, self.room.count)

    async def post(self, request: web.BaseRequest, parameters: Mapping[str, str]) -> web.Response:
        """Take the messages of a request."""
        if self.room.stopping:
            return error_reply(503, _CLOSING)
        if request.method not in self.verbs:
            return error_reply(405, "Incorrect method")
        refused = await self._refused()
        if refused is not None:
            return refused
        try:
            with Body() as body:
                async with asyncio.timeout(self.timeout):
                    return await self._taken(request, parameters, body)
        except BusyError:
            self._rare("WARN", "A request was refused, others hold the memory for bodies")
            return error_reply(503, "Service unavailable", {"Retry-After": _FULL_SECONDS})
        except TooLargeError as e:
            self._rare("WARN", "A request was refused", e)
            return error_reply(413, "Request Entity Too Large")
        except BadRequestError as e:
            self._rare("WARN", "Request read failed", e)
            return error_reply(400, "Bad request")
        except RefusedRequestError as e:
            return error_reply(502, str(e))
        except TimeoutError:
            return error_reply(408, "Request timed out")
        except StoreFullError as e:
            self._rare("WARN", "A request was refused", e)
            return error_reply(429, "Too Many Requests", {"Retry-After": _FULL_SECONDS})
        except OSError as e:
            self._rare("ERROR", "Cannot write to the spool", e.strerror or e)
            return error_reply(503, "Service unavailable")

    async def _taken(
        self, request: web.BaseRequest, parameters: Mapping[str, str], body: Body
    ) -> web.Response:
        raws = await bodies(request, body, self.max_body_size, self.max_parts)
        meta = metadata(request, parameters)
        answers = await self._store(raws, meta, waits=True)
        with stream_limits(self.room.limits):
            response = self.reply.of(answers, self._ex)
        if answers and "gzip" in request.headers.get(hdrs.ACCEPT_ENCODING, ""):
            response.enable_compression(web.ContentCoding.gzip)
        return response

    async def _store(self, raws: list[bytes], meta: dict[str, Any], *, waits: bool) -> Batch:
        """Return when messages are safe, or what answers them when something does.

        Args:
            raws: the payloads.
            meta: the metadata of each of them.
            waits: whether an answer is of use to who has sent them.

        Raises:
            RefusedRequestError: an output has rejected one of them.
        """
        asks = self.room.answers
        if asks is None or not waits:
            await self._commit.put(await self._packed(raws, meta, ""))
            return []
        loop = asyncio.get_running_loop()
        answered: asyncio.Future[Batch] = loop.create_future()

        def hear(outcome: Batch | RefusedRequestError) -> None:
            with suppress(RuntimeError):  # the server has stopped meanwhile
                loop.call_soon_threadsafe(_resolve, answered, outcome)

        request = asks.ask(hear)
        try:
            record = await self._packed(raws, {**meta, REQUEST: request}, request)
            await self._commit.put(record)
            task = asyncio.current_task()
            if task is not None and task.cancelling():
                # Its time was over while it was written, and it is processed now: who waits for an
                # answer gets none.
                raise asyncio.CancelledError
            return await answered
        finally:
            asks.forget(request)

    async def _packed(self, raws: list[bytes], meta: Mapping[str, Any], request: str) -> Record:
        if len(raws) <= _PACKED_AT_ONCE:
            return self._record(raws, meta, request)
        # Other requests, and probes, are answered meanwhile.
        return await asyncio.to_thread(self._record, raws, meta, request)

    def _record(self, raws: list[bytes], meta: Mapping[str, Any], request: str) -> Record:
        if len(raws) != 1:
            return batch([Message(raw, meta) for raw in raws], request)
        if self.delimiter is None:
            return each(raws, meta, request)
        return uncut(raws[0], meta, raws[0].count(self.delimiter) + 1, request)

    async def _refused(self) -> web.Response | None:
        if self.limit is None:
            return None
        try:
            wait = await asyncio.to_thread(self.limit.access, self._ex)
        except RateLimitError as e:
            self._rare("WARN", "Failed to access rate limit", e)
            return error_reply(502, "Server error")
        if wait > 0:
            headers = {"Retry-After": str(wait // SECOND)}
            return error_reply(429, "Too Many Requests", headers)
        return None

    async def websocket(
        self, request: web.BaseRequest, parameters: Mapping[str, str]
    ) -> web.StreamResponse:
        """Take each message of a WebSocket, until it is closed."""
        if self.room.stopping:
            return error_reply(503, _CLOSING)
        origin = request.headers.get(hdrs.ORIGIN)
        if origin is not None and urlsplit(origin).netloc != request.headers.get(hdrs.HOST):
            return error_reply(403, "Forbidden")
        ws = web.WebSocketResponse(max_msg_size=self.max_body_size)
        if not ws.can_prepare(request):
            return error_reply(400, "Bad Request")
        await ws.prepare(request)
        if self.welcome:
            await ws.send_bytes(self.welcome)
        agent = {"http_server_user_agent": request.headers.get(hdrs.USER_AGENT, "")}
        meta = agent | sent(request, parameters)
        with suppress(ConnectionError):
            async for message in ws:
                if message.type not in (WSMsgType.TEXT, WSMsgType.BINARY):
                    break
                data = message.data
                await self._taken_from(ws, data.encode() if isinstance(data, str) else data, meta)
                if self.room.stopping:
                    await ws.close()
        return ws

    async def _taken_from(
        self, ws: web.WebSocketResponse, raw: bytes, meta: dict[str, Any]
    ) -> None:
        if await self._refused() is not None:
            if self.refusal:
                await ws.send_bytes(self.refusal)
            return
        told = False
        # Nobody is told over a WebSocket that a message is rejected.
        waits = self.room.answers is not None and self.room.answers.replies
        while not self.room.stopping:
            try:
                answers = await self._store([raw], meta, waits=waits)
            except RefusedRequestError:
                # Once more, as a message that nobody waits for: so it is kept and sent again.
                waits = False
                continue
            except (OSError, StoreFullError) as e:
                # Nobody is told over a WebSocket: not reading on is the back pressure.
                if not told:
                    self._rare("WARN", "A message of a WebSocket has to wait", e)
                told = True
                await asyncio.sleep(0.2)
                continue
            for answer in answers:
                await ws.send_str(answer.raw.decode(errors="replace"))
            return


def _resolve(answered: asyncio.Future[Batch], outcome: Batch | RefusedRequestError) -> None:
    if answered.done():
        return
    if isinstance(outcome, RefusedRequestError):
        answered.set_exception(outcome)
    else:
        answered.set_result(outcome)


def listen_with(room: Room, paths: Mapping[str, Handler], file: str = "") -> None:
    """Serve paths on the stream's own server; after the stop they answer that it is closing.

    Args:
        room: the input's.
        paths: who answers at each path.
        file: the file that the input stands in.

    Raises:
        StreamerError: another component has one of the paths.
    """
    about = "Send messages to the input http_server."
    served = {path: (about, handler) for path, handler in paths.items()}
    room.on_stop(room.endpoints.add("the input http_server", served, file=file))
    for path in paths:
        shown = {"path": path}
        room.log("INFO", "Receiving messages on the stream's HTTP server", shown)


def listen_alone(room: Room, paths: Mapping[str, Handler], **own: Any) -> None:
    """Serve paths at an address of the input's own, until the stream stops.

    Args:
        room: the input's.
        paths: who answers at each path.
        own: the attributes of an `Own`.

    Raises:
        StreamerError: it cannot be listened on.
    """
    where = Own(**own)

    async def run(reception: Reception) -> None:
        async def listening(url: str) -> None:
            room.log("INFO", "Receiving messages over HTTP", {"url": url})
            reception.ready()
            await reception.stop.wait()

        await serve(where, paths, listening)

    receive(room, "http_server", run)
