"""Giving messages over HTTP: batches that wait, and those who ask for them."""

from __future__ import annotations

import asyncio
import threading
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from contextlib import suppress
from typing import Any, Final

from aiohttp import hdrs, web

from streamer.connectors.http_client.multipart import write_multipart
from streamer.connectors.http_server.replies import error_reply

_OCTETS: Final = "application/octet-stream"
_CLOSED_TEXT: Final = "Server closed"
_STOP_CHECK_INTERVAL_S: Final = 0.25

RawMessages = Sequence[bytes]
"""A batch: the payloads of its messages."""

_Delivery = tuple[RawMessages, "Future[bool]"]
"""A batch, and the function that is called with whether it has arrived."""


class PublisherClosedError(OSError):
    """The stream stops, and nobody has fetched the batch."""


class HttpPublisher:
    """A place where each batch is given to one who asks. It can be used from several threads.

    Nothing waits here but the one batch that is to be fetched next.
    """

    def __init__(self, verbs: frozenset[str], timeout: float | None) -> None:
        """Begin with nobody who asks.

        Args:
            verbs: methods that are taken.
            timeout: seconds that a request waits for a batch; None for ever.
        """
        self._verbs = verbs
        self._timeout = timeout
        self._changed = threading.Condition()
        self._requests: deque[
            tuple[asyncio.AbstractEventLoop, asyncio.Future[_Delivery | None]]
        ] = deque()
        self._closed = False

    def publish(self, raws: RawMessages, stopping: Callable[[], bool] = lambda: False) -> None:
        """Return when a batch has been fetched.

        Raises:
            ClosedError: the stream stops before.
        """
        while True:
            loop, request = self._next_request(stopping)
            arrived: Future[bool] = Future()
            with suppress(RuntimeError):  # the server has stopped meanwhile
                loop.call_soon_threadsafe(_resolve_request, request, (raws, arrived))
                while not arrived.done() and not (self._closed or stopping()):
                    with suppress(TimeoutError):
                        arrived.result(_STOP_CHECK_INTERVAL_S)
                if arrived.done() and arrived.result():
                    return

    def close(self) -> None:
        """Answer all waiting requests that there is no more; it must not wait."""
        with self._changed:
            self._closed = True
            requests, self._requests = self._requests, deque()
            self._changed.notify_all()
        for loop, request in requests:
            with suppress(RuntimeError):
                loop.call_soon_threadsafe(_resolve_request, request, None)

    def _next_request(
        self, stopping: Callable[[], bool]
    ) -> tuple[asyncio.AbstractEventLoop, asyncio.Future[_Delivery | None]]:
        with self._changed:
            while not self._requests:
                if self._closed or stopping():
                    raise PublisherClosedError(
                        "the program stops, and no client has fetched the messages"
                    )
                self._changed.wait(_STOP_CHECK_INTERVAL_S)
            return self._requests.popleft()

    async def _wait_batch(self, timeout: float | None = None) -> _Delivery | None:
        """Wait for a batch; None when the stream stops.

        Raises:
            TimeoutError: there is none for so long.
        """
        loop = asyncio.get_running_loop()
        request: asyncio.Future[_Delivery | None] = loop.create_future()
        with self._changed:
            if self._closed:
                return None
            self._requests.append((loop, request))
            self._changed.notify_all()
        try:
            return await asyncio.wait_for(request, timeout)
        except BaseException:
            # Who asked has gone in the moment in which the batch came: nobody else could tell.
            if (
                request.done()
                and not request.cancelled()
                and (delivery := request.result()) is not None
            ):
                delivery[1].set_result(False)
            raise

    async def get(
        self, request: web.BaseRequest, parameters: Mapping[str, str]
    ) -> web.StreamResponse:
        """Answer with the next batch."""
        if request.method not in self._verbs:
            return error_reply(405, "Incorrect method")
        try:
            delivery = await self._wait_batch(self._timeout)
        except TimeoutError:
            return error_reply(408, "Timed out waiting for message")
        if delivery is None:
            return error_reply(503, _CLOSED_TEXT)
        raws, arrived = delivery
        body, kind = raws[0], _OCTETS
        if len(raws) > 1:
            body, kind = write_multipart([([(hdrs.CONTENT_TYPE, _OCTETS)], raw) for raw in raws])
        response = web.Response(body=body, headers={hdrs.CONTENT_TYPE: kind})
        with _ArrivalReport(arrived) as arrival:
            await response.prepare(request)
            await response.write_eof()
            arrival.happened = True
        return response

    async def stream(
        self, request: web.BaseRequest, parameters: Mapping[str, str]
    ) -> web.StreamResponse:
        """Answer with all batches, line by line, until the asker or the stream ends it."""
        if request.method not in self._verbs:
            return error_reply(405, "Incorrect method")
        response = web.StreamResponse(headers={hdrs.CONTENT_TYPE: _OCTETS})
        await response.prepare(request)
        while (delivery := await self._wait_batch()) is not None:
            raws, arrived = delivery
            # An empty line ends a batch of several messages, as in Benthos.
            lines = raws[0] + b"\n" if len(raws) == 1 else b"\n".join([*raws, b"", b""])
            with _ArrivalReport(arrived) as arrival:
                await response.write(lines)
                arrival.happened = True
        return response

    async def websocket(
        self, request: web.BaseRequest, parameters: Mapping[str, str]
    ) -> web.StreamResponse:
        """Send all messages, until the asker or the stream ends it."""
        socket = web.WebSocketResponse()
        if not socket.can_prepare(request):
            return error_reply(400, "Bad request")
        await socket.prepare(request)
        reading = asyncio.ensure_future(_discard_received(socket))
        try:
            while True:
                taking = asyncio.ensure_future(self._wait_batch())
                await asyncio.wait({reading, taking}, return_when=asyncio.FIRST_COMPLETED)
                if not taking.done():
                    taking.cancel()
                    return socket
                delivery = taking.result()
                if delivery is None:
                    return socket
                raws, arrived = delivery
                with _ArrivalReport(arrived) as arrival:
                    for raw in raws:
                        await socket.send_bytes(raw)
                    arrival.happened = not reading.done()
        finally:
            reading.cancel()
            await socket.close()


class _ArrivalReport:
    """Reports at its end whether a batch has arrived, even when its requester has gone."""

    def __init__(self, arrived: Future[bool]) -> None:
        self._arrived = arrived
        self.happened = False

    def __enter__(self) -> _ArrivalReport:
        return self

    def __exit__(self, *raised: Any) -> None:
        if not self._arrived.done():
            self._arrived.set_result(self.happened)


def _resolve_request(request: asyncio.Future[_Delivery | None], delivery: _Delivery | None) -> None:
    """Give a batch to who has asked; one who has gone meanwhile does not get it."""
    if not request.done():
        request.set_result(delivery)
    elif delivery is not None:
        delivery[1].set_result(False)


async def _discard_received(socket: web.WebSocketResponse) -> None:
    """Read what is sent, which nobody wants, until the other side closes."""
    async for _ in socket:
        pass
