"""Connections to NATS: made by the fields of a component, and used from threads."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from typing import Any, Final, TypeVar

from streamer.connectors.loop_thread import LoopThread
from streamer.connectors.nats.client_fields import AUTH, TLS_HANDSHAKE_FIRST, URLS, split_urls
from streamer.connectors.tls import TLS, tls_context
from streamer.core.errors import StreamerError
from streamer.core.redaction import redact_urls
from streamer.sdk.spec import BuildContext, ParsedFields

T = TypeVar("T")

Client = Any
"""A `nats.aio.client.Client`."""

CONNECT_TIMEOUT_S: Final = 5.0
REQUEST_TIMEOUT_S: Final = 10.0


class NatsError(StreamerError):
    """There is no connection, or the server refuses.

    Attributes:
        is_connection_lost: whether the connection is of no use any more.
    """

    def __init__(self, text: str, is_connection_lost: bool = True) -> None:
        super().__init__(text)
        self.is_connection_lost = is_connection_lost


async def connect(
    parsed: ParsedFields, on_closed: Callable[[], None] = lambda: None, inbox_prefix: str = ""
) -> Client:
    """Connect to the first server that answers.

    Args:
        parsed: the fields of the component.
        on_closed: called when the connection is lost or closed.
        inbox_prefix: what the subjects of replies begin with; empty for the client's.

    Raises:
        NatsError: none answers, or it refuses.
    """
    import nats

    errors: list[str] = []

    async def note_error(error: Exception) -> None:
        errors.append(str(error) or type(error).__name__)

    async def note_closed() -> None:
        on_closed()

    more: dict[str, Any] = {"inbox_prefix": inbox_prefix} if inbox_prefix else {}
    try:
        return await nats.connect(
            split_urls(parsed[URLS]),
            name="streamer",
            # Whoever uses it connects again by itself, and says so.
            allow_reconnect=False,
            max_reconnect_attempts=1,
            reconnect_time_wait=0,
            connect_timeout=round(CONNECT_TIMEOUT_S),
            error_cb=note_error,
            closed_cb=note_closed,
            tls=tls_context(parsed[TLS]),
            tls_handshake_first=parsed[TLS_HANDSHAKE_FIRST],
            **_credentials(parsed),
            **more,
        )
    except Exception as e:  # the library and the socket raise all kinds
        # The first one is the reason; what follows is that no server is left.
        reason = errors[0] if errors else describe_error(e)
        raise NatsError(redact_urls(reason)) from None


def _credentials(parsed: ParsedFields) -> dict[str, Any]:
    auth, permissions = parsed[AUTH], parsed.permissions
    given: dict[str, Any] = {}
    if auth["nkey_file"]:
        given["nkeys_seed"] = permissions.file(auth["nkey_file"])
    if auth["nkey"]:
        given["nkeys_seed_str"] = auth["nkey"]
    if auth["user_credentials_file"]:
        given["user_credentials"] = permissions.file(auth["user_credentials_file"])
    if auth["user_jwt"]:
        given |= _jwt_callbacks(auth["user_jwt"], auth["user_nkey_seed"])
    for name in ("user", "password", "token"):
        if auth[name]:
            given[name] = auth[name]
    return given


def _jwt_callbacks(jwt: str, seed: str) -> dict[str, Any]:
    import base64

    import nkeys

    def sign(nonce: str) -> bytes:
        pair = nkeys.from_seed(seed.encode())
        return base64.b64encode(pair.sign(nonce.encode()))

    return {"user_jwt_cb": lambda: jwt.encode(), "signature_cb": sign}


def describe_error(error: BaseException) -> str:
    """Return the words of an error of the client, without its name where it has words."""
    text = str(error).removeprefix("nats: ").strip()
    if isinstance(error, asyncio.TimeoutError) and not text:
        return "timeout"
    return text or type(error).__name__


@contextmanager
def nats_errors() -> Iterator[None]:
    """Turn the errors of the client into `NatsError`s.

    Raises:
        NatsError: for each error of the client or the socket.
    """
    import nats.errors

    try:
        yield
    except NatsError:
        raise
    except (TimeoutError, nats.errors.Error, OSError) as e:
        lost = not isinstance(e, nats.errors.Error) or isinstance(
            e,
            nats.errors.ConnectionClosedError
            | nats.errors.ConnectionReconnectingError
            | nats.errors.StaleConnectionError
            | nats.errors.NoServersError
            | nats.errors.FlushTimeoutError,
        )
        raise NatsError(redact_urls(describe_error(e)), lost) from None


class NatsConnection:
    """A connection in an event loop of its own; threads may share it.

    It is made at its first use, and made again when it is lost.
    """

    def __init__(self, parsed: ParsedFields, inbox_prefix: str = "") -> None:
        """Take the fields of the component."""
        self._parsed = parsed
        self._inbox_prefix = inbox_prefix
        self._thread = LoopThread("nats")
        self._client: Client | None = None

    def run(self, work: Callable[[Client], Awaitable[T]], seconds: float = REQUEST_TIMEOUT_S) -> T:
        """Return what work with the client returns.

        Args:
            work: takes the client, which is connected.
            seconds: how long it may take beside connecting.

        Raises:
            NatsError: there is no connection, or the work fails.
        """

        async def run_connected() -> T:
            client = await self._connected_client()
            return await asyncio.wait_for(work(client), seconds)

        try:
            with nats_errors():
                return self._thread.run(run_connected(), seconds + 2 * CONNECT_TIMEOUT_S)
        except NatsError as e:
            if e.is_connection_lost:
                self.drop()
            raise

    async def _connected_client(self) -> Client:
        client = self._client
        if client is None or not client.is_connected:
            client = self._client = await connect(self._parsed, inbox_prefix=self._inbox_prefix)
        return client

    def drop(self) -> None:
        """Give the client up: it is made again at the next use."""
        client, self._client = self._client, None
        if client is not None:
            self._thread.start(_close(client))

    def close(self) -> None:
        """Close the connection, and end its thread."""
        client, self._client = self._client, None
        if client is not None:
            self._thread.run(_close(client), CONNECT_TIMEOUT_S)
        self._thread.close()

    def probe(self) -> str:
        """Return that a server answers.

        Raises:
            NatsError: none does.
        """
        try:
            self.run(lambda client: client.flush())
        finally:
            self.close()
        return "the server answers"


async def _close(client: Client) -> None:
    try:
        await client.close()
    except Exception:  # it was of no use before
        return


def shared_connection(parsed: ParsedFields, context: BuildContext) -> NatsConnection:
    """Return the connection of a component that lasts as long as its worker."""
    return context.worker_resource("nats", lambda: NatsConnection(parsed))
