"""Connections to a broker: made by the fields of a component, and used from threads."""

from __future__ import annotations

import asyncio
import struct
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from typing import Any, Final, TypeVar
from urllib.parse import parse_qsl

from streamer.connectors.amqp.client_fields import HEARTBEAT, SECURE_SCHEME, URLS, split_urls
from streamer.connectors.loop_thread import LoopThread
from streamer.connectors.tls import TLS, tls_context
from streamer.core.errors import StreamerError
from streamer.core.redaction import redact_urls
from streamer.core.urls import split_url
from streamer.sdk.spec import ParsedFields

T = TypeVar("T")

Connection = Any
"""An `aiormq.Connection`."""
Channel = Any
"""An `aiormq.Channel`."""

CONNECT_TIMEOUT_S: Final = 10.0
_CLOSE_TIMEOUT_S: Final = 2.0
_ACCESS_REFUSED: Final = "the broker refuses the user, the password or the virtual host"


class AmqpError(StreamerError):
    """There is no connection, or the broker has closed it or one of its channels.

    Attributes:
        is_connection_lost: whether the same may succeed over another connection.
    """

    def __init__(self, text: str, is_connection_lost: bool = True) -> None:
        super().__init__(text)
        self.is_connection_lost = is_connection_lost


def is_connection_lost(error: BaseException) -> bool:
    """Return whether an error tells of a lost connection, and not of a fault of the requests."""
    from aiormq.connection import EXCEPTION_MAPPING
    from aiormq.exceptions import ChannelInvalidStateError

    lost = (OSError, ChannelInvalidStateError, asyncio.CancelledError)
    faults = (TimeoutError, *EXCEPTION_MAPPING.values())
    return isinstance(error, lost) and not isinstance(error, faults)


def describe_error(error: BaseException) -> str:
    """Return the words of an error of the client."""
    from aiormq import exceptions

    if isinstance(error, exceptions.ProbableAuthenticationError | exceptions.AuthenticationError):
        return _ACCESS_REFUSED
    if isinstance(error, TimeoutError | asyncio.CancelledError):
        return "timeout" if isinstance(error, TimeoutError) else "the connection is closed"
    if isinstance(error, exceptions.InvalidFrameError) and "Connection.OpenOk" in str(error):
        # The client does not say why the broker has closed the connection instead.
        return "the broker has no such virtual host, or the user has no access to it"
    words = [str(part) for part in error.args if part not in (None, "")]
    return redact_urls(": ".join(words)) or type(error).__name__


def value_errors() -> tuple[type[Exception], ...]:
    """Return the errors of values that no frame can hold."""
    from pamqp.exceptions import PAMQPException

    return (TypeError, ValueError, struct.error, PAMQPException)


@contextmanager
def amqp_errors() -> Iterator[None]:
    """Turn the errors of the client into `AmqpError`s.

    Raises:
        AmqpError: for each error of the client or the socket.
    """
    from aiormq.exceptions import AMQPError, ChannelInvalidStateError

    try:
        yield
    except (AMQPError, ChannelInvalidStateError, OSError, asyncio.CancelledError) as e:
        # The client cancels what waits when its connection is lost; a thread is never cancelled.
        raise AmqpError(describe_error(e), is_connection_lost(e)) from None


async def connect(parsed: ParsedFields) -> Connection:
    """Connect to the first broker that answers.

    Raises:
        AmqpError: none answers, or it refuses.
    """
    failure: AmqpError | None = None
    for text in split_urls(parsed[URLS]):
        try:
            with amqp_errors():
                return await asyncio.wait_for(_connect_to(text, parsed), CONNECT_TIMEOUT_S)
        except AmqpError as error:
            failure = failure or error
    assert failure is not None
    raise failure


async def _connect_to(text: str, parsed: ParsedFields) -> Connection:
    import logging

    import aiormq
    from yarl import URL

    # Its errors are raised too, and logged by who gets them.
    logging.getLogger("aiormq").setLevel(logging.CRITICAL)
    given = split_url(text)
    # Of the client's own parameters some name files, which only the field `tls` may.
    parameters = {name: value for name, value in parse_qsl(given.query) if name == HEARTBEAT}
    context = None
    if given.scheme == SECURE_SCHEME:
        import ssl

        context = tls_context(parsed[TLS]) or ssl.create_default_context()
        if given.username is None:
            parameters["auth"] = "external"
    connection = aiormq.Connection(
        URL(given._replace(query="", fragment="").geturl()).with_query(parameters),
        context=context,
        client_properties={"connection_name": "streamer"},
    )
    await connection.connect()
    return connection


class SharedConnection:
    """A connection in an event loop of its own, with channels; threads may share it.

    It is made at its first use, and made again when it is lost. Each piece of work has a channel
    for itself: a broker answers a fault by closing the channel, with all that is on its way there.
    """

    def __init__(self, parsed: ParsedFields) -> None:
        """Take the fields of the component."""
        self.known_exchanges: set[str] = set()
        """Those that this connection has found or declared."""
        self._parsed = parsed
        self._thread = LoopThread("amqp")
        self._connection: Connection | None = None
        self._connecting: asyncio.Lock | None = None
        self._idle: list[Channel] = []

    def run(self, work: Callable[[SharedConnection], Awaitable[T]], seconds: float) -> T:
        """Return what work on the connection's loop returns.

        Args:
            work: takes this connection.
            seconds: how long it may take beside connecting.

        Raises:
            AmqpError: there is no connection, or the work fails.
        """

        async def run_connected() -> T:
            await self._ensure_connected()
            return await asyncio.wait_for(work(self), seconds)

        limit = seconds + CONNECT_TIMEOUT_S * (1 + len(split_urls(self._parsed[URLS])))
        try:
            with amqp_errors():
                return self._thread.run(run_connected(), limit)
        except AmqpError:
            self.drop()
            raise

    async def _ensure_connected(self) -> None:
        if self._connecting is None:
            self._connecting = asyncio.Lock()
        async with self._connecting:
            if self._connection is None or self._connection.is_closed:
                self._idle.clear()
                self.known_exchanges.clear()
                self._connection = await connect(self._parsed)

    async def take_channel(self) -> Channel:
        """Return a channel that nobody else uses, until `release`."""
        while self._idle:
            channel = self._idle.pop()
            if not channel.is_closed:
                return channel
        assert self._connection is not None
        return await self._connection.channel(timeout=CONNECT_TIMEOUT_S)

    def release(self, channel: Channel) -> None:
        """Take a channel back, on which nothing is on its way any more."""
        if not channel.is_closed:
            self._idle.append(channel)

    def drop(self) -> None:
        """Give the connection up: it is made again at the next use."""
        connection, self._connection = self._connection, None
        if connection is not None:
            self._thread.start(close_quietly(connection))

    def probe(self) -> str:
        """Return that a broker answers, and end the connection.

        Raises:
            AmqpError: none does.
        """

        async def open_channel(shared: SharedConnection) -> None:
            await shared.take_channel()

        try:
            self.run(open_channel, CONNECT_TIMEOUT_S)
            connection, self._connection = self._connection, None
            if connection is not None:
                self._thread.run(close_quietly(connection), CONNECT_TIMEOUT_S)
        finally:
            self._thread.close()
        return "the broker answers"


async def close_quietly(connection: Connection) -> None:
    """Close a connection, which may be of no use any more."""
    try:
        await asyncio.wait_for(connection.close(), _CLOSE_TIMEOUT_S)
    except (Exception, asyncio.CancelledError):
        return
