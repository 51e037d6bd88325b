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

from streamer.connectors.http_server.component_server import ServerSettings, serve_paths
from streamer.connectors.http_server.registry import Handler
from streamer.connectors.http_server.replies import ReplyTemplate, error_reply
from streamer.connectors.http_server.requests import (
    BadRequestError,
    BusyError,
    RequestBody,
    TooLargeError,
    read_payloads,
    request_metadata,
    sender_metadata,
)
from streamer.connectors.spool.async_receiver import ReceiverContext, start_receiver
from streamer.connectors.spool.blocks import Record, pack_batch, pack_each, pack_uncut
from streamer.connectors.spool.group_commit import GroupCommit
from streamer.connectors.spool.store import SpoolStore, StoreFullError
from streamer.core.durations import SECOND
from streamer.core.execution import Execution
from streamer.core.limits import stream_limits
from streamer.core.message import Batch, Message
from streamer.core.throttled_log import ThrottledLog
from streamer.sdk.input.input_context import InputContext
from streamer.sdk.rate_limit import RateLimit, RateLimitError
from streamer.sdk.sync_response import REQUEST, RefusedRequestError

_CLOSING_TEXT: Final = "Server closing"
_RETRY_AFTER_S: Final = "1"
_MAX_INLINE_MESSAGES: Final = 1000
"""Messages of a request that are packed in no time."""


@dataclass
class HttpReceiver:
    """Takes requests for one input.

    Attributes:
        store: the spool's.
        context: the input's.
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

    store: SpoolStore
    context: InputContext
    verbs: frozenset[str]
    timeout: float
    limit: RateLimit | None
    reply: ReplyTemplate
    welcome: bytes
    refusal: bytes
    max_body_size: int
    max_parts: int
    delimiter: bytes | None
    _commit: GroupCommit = field(init=False)
    _ex: Execution = field(init=False)
    _rare_log: ThrottledLog = field(init=False)

    def __post_init__(self) -> None:
        """Make what all requests share."""
        self._commit = GroupCommit(self.store)
        self._rare_log = ThrottledLog(self.context.log)
        self._ex = Execution(time.time_ns, self.context.log, self.context.count)

    async def post(self, request: web.BaseRequest, parameters: Mapping[str, str]) -> web.Response:
        """Take the messages of a request."""
        if self.context.stopping:
            return error_reply(503, _CLOSING_TEXT)
        if request.method not in self.verbs:
            return error_reply(405, "Incorrect method")
        refused = await self._rate_limit_response()
        if refused is not None:
            return refused
        try:
            with RequestBody() as body:
                async with asyncio.timeout(self.timeout):
                    return await self._receive(request, parameters, body)
        except BusyError:
            self._rare_log("WARN", "A request was refused, others hold the memory for bodies")
            return error_reply(503, "Service unavailable", {"Retry-After": _RETRY_AFTER_S})
        except TooLargeError as e:
            self._rare_log("WARN", "A request was refused", e)
            return error_reply(413, "Request Entity Too Large")
        except BadRequestError as e:
            self._rare_log("WARN", "Request read failed", e)
            return error_reply(400, "Bad request")
        except RefusedRequestError as e:
            return error_reply(502, str(e))
        except TimeoutError:
            return error_reply(408, "Request timed out")
        except StoreFullError as e:
            self._rare_log("WARN", "A request was refused", e)
            return error_reply(429, "Too Many Requests", {"Retry-After": _RETRY_AFTER_S})
        except OSError as e:
            self._rare_log("ERROR", "Cannot write to the spool", e.strerror or e)
            return error_reply(503, "Service unavailable")

    async def _receive(
        self, request: web.BaseRequest, parameters: Mapping[str, str], body: RequestBody
    ) -> web.Response:
        raws = await read_payloads(request, body, self.max_body_size, self.max_parts)
        meta = request_metadata(request, parameters)
        answers = await self._store(raws, meta, should_wait=True)
        with stream_limits(self.context.limits):
            response = self.reply.to_response(answers, self._ex)
        if answers and "gzip" in request.headers.get(hdrs.ACCEPT_ENCODING, ""):
            response.enable_compression(web.ContentCoding.gzip)
        return response

    async def _store(self, raws: list[bytes], meta: dict[str, Any], *, should_wait: bool) -> Batch:
        """Return when messages are safe, or what answers them when something does.

        Args:
            raws: the payloads.
            meta: the metadata of each of them.
            should_wait: whether an answer is of use to who has sent them.

        Raises:
            RefusedRequestError: an output has rejected one of them.
        """
        pending = self.context.pending_requests
        if pending is None or not should_wait:
            await self._commit.put(await self._pack(raws, meta, ""))
            return []
        loop = asyncio.get_running_loop()
        answered: asyncio.Future[Batch] = loop.create_future()

        def on_reply(outcome: Batch | RefusedRequestError) -> None:
            with suppress(RuntimeError):  # the server has stopped meanwhile
                loop.call_soon_threadsafe(_resolve, answered, outcome)

        request = pending.register(on_reply)
        try:
            record = await self._pack(raws, {**meta, REQUEST: request}, request)
            await self._commit.put(record)
            task = asyncio.current_task()
            if task is not None and task.cancelling():
                # Its time was over while it was written, and it is processed now: who waits for an
                # answer gets none.
                raise asyncio.CancelledError
            return await answered
        finally:
            pending.forget(request)

    async def _pack(self, raws: list[bytes], meta: Mapping[str, Any], request: str) -> Record:
        if len(raws) <= _MAX_INLINE_MESSAGES:
            return self._record(raws, meta, request)
        # Other requests, and probes, are answered meanwhile.
        return await asyncio.to_thread(self._record, raws, meta, request)

    def _record(self, raws: list[bytes], meta: Mapping[str, Any], request: str) -> Record:
        if len(raws) != 1:
            return pack_batch([Message(raw, meta) for raw in raws], request)
        if self.delimiter is None:
            return pack_each(raws, meta, request)
        return pack_uncut(raws[0], meta, raws[0].count(self.delimiter) + 1, request)

    async def _rate_limit_response(self) -> web.Response | None:
        if self.limit is None:
            return None
        try:
            wait = await asyncio.to_thread(self.limit.access, self._ex)
        except RateLimitError as e:
            self._rare_log("WARN", "Failed to access rate limit", e)
            return error_reply(502, "Server error")
        if wait > 0:
            headers = {"Retry-After": str(wait // SECOND)}
            return error_reply(429, "Too Many Requests", headers)
        return None

    async def websocket(
        self, request: web.BaseRequest, parameters: Mapping[str, str]
    ) -> web.StreamResponse:
        """Take each message of a WebSocket, until it is closed."""
        if self.context.stopping:
            return error_reply(503, _CLOSING_TEXT)
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
        meta = agent | sender_metadata(request, parameters)
        with suppress(ConnectionError):
            async for message in ws:
                if message.type not in (WSMsgType.TEXT, WSMsgType.BINARY):
                    break
                data = message.data
                await self._receive_websocket(
                    ws, data.encode() if isinstance(data, str) else data, meta
                )
                if self.context.stopping:
                    await ws.close()
        return ws

    async def _receive_websocket(
        self, ws: web.WebSocketResponse, raw: bytes, meta: dict[str, Any]
    ) -> None:
        if await self._rate_limit_response() is not None:
            if self.refusal:
                await ws.send_bytes(self.refusal)
            return
        is_reported = False
        # Nobody is told over a WebSocket that a message is rejected.
        waits = (
            self.context.pending_requests is not None
            and self.context.pending_requests.needs_replies
        )
        while not self.context.stopping:
            try:
                answers = await self._store([raw], meta, should_wait=waits)
            except RefusedRequestError:
                # Once more, as a message that nobody waits for: so it is kept and sent again.
                waits = False
                continue
            except (OSError, StoreFullError) as e:
                # Nobody is told over a WebSocket: not reading on is the back pressure.
                if not is_reported:
                    self._rare_log("WARN", "A message of a WebSocket has to wait", e)
                is_reported = True
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


def serve_on_stream_server(
    context: InputContext, paths: Mapping[str, Handler], file: str = ""
) -> None:
    """Serve paths on the stream's own server; after the stop they answer that it is closing.

    Args:
        context: the input's.
        paths: who answers at each path.
        file: the file that the input stands in.

    Raises:
        StreamerError: another component has one of the paths.
    """
    about = "Send messages to the input http_server."
    served = {path: (about, handler) for path, handler in paths.items()}
    context.on_stop(context.endpoints.add("the input http_server", served, file=file))
    for path in paths:
        shown = {"path": path}
        context.log("INFO", "Receiving messages on the stream's HTTP server", shown)


def serve_alone(context: InputContext, paths: Mapping[str, Handler], **own: Any) -> None:
    """Serve paths at an address of the input's own, until the stream stops.

    Args:
        context: the input's.
        paths: who answers at each path.
        own: the attributes of an `ServerSettings`.

    Raises:
        StreamerError: it cannot be listened on.
    """
    where = ServerSettings(**own)

    async def run(reception: ReceiverContext) -> None:
        async def on_listening(url: str) -> None:
            context.log("INFO", "Receiving messages over HTTP", {"url": url})
            reception.set_ready()
            await reception.stop.wait()

        await serve_paths(where, paths, on_listening)

    start_receiver(context, "http_server", run)
