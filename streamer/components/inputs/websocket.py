"""The `websocket` input: "Connects to a websocket server and continuously receives messages".

What comes is on disk, in the spool of the checkpoint, before it counts as received. A connection
that ends is made again.
"""

from __future__ import annotations

import asyncio
import errno
import socket
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from streamer.connectors.http_client.auth import AUTHORIZATION, RequestSigner
from streamer.connectors.http_client.auth_fields import BASIC_AUTH_FIELD, JWT_FIELD, OAUTH_FIELD
from streamer.connectors.spool.async_receiver import ReceiverContext, start_receiver
from streamer.connectors.spool.blocks import pack_each
from streamer.connectors.spool.connection_state import GREETING_TIMEOUT_S, ConnectionState
from streamer.connectors.spool.group_commit import GroupCommit
from streamer.connectors.spool.spool_source import SpoolSource
from streamer.connectors.spool.spool_writer import FIRST_BACKOFF_S, MAX_BACKOFF_S
from streamer.connectors.spool.store import SpoolStore
from streamer.connectors.tls import TLS, TLS_FIELD, tls_context, tls_problems
from streamer.core.message import NO_META
from streamer.core.permissions import NotPermittedError
from streamer.core.redaction import redact_urls
from streamer.core.urls import url_problem
from streamer.sdk.input.input_context import InputContext
from streamer.sdk.spec import Access, BuildContext, Field, Kind, ParsedFields, Spec
from streamer.sdk.spec.nacks import AUTO_REPLAY_NACKS_FIELD

if TYPE_CHECKING:
    import aiohttp

URL: Final = "url"
PROXY_URL: Final = "proxy_url"
OPEN_MESSAGE: Final = "open_message"
OPEN_MESSAGE_TYPE: Final = "open_message_type"
CONNECTION: Final = "connection"
MAX_MESSAGE_SIZE: Final = "max_message_size"


def _url_problem(text: str) -> str | None:
    if text.startswith(("ws://", "wss://", "http://", "https://")):
        return url_problem(text)
    return f"is {text!r}; expected a URL such as ws://localhost:4195/get/ws"


SPEC: Final = Spec(
    Kind.INPUT,
    "websocket",
    "Connects to a WebSocket and takes each message that it sends.",
    description=(
        "A lost or failed connection is retried after a short pause. Received messages are on "
        "disk before they are processed. Messages in transit during a crash are lost, because "
        "a WebSocket cannot repeat them."
    ),
    fields=(
        Field(
            URL,
            "string",
            "The URL to connect to.",
            access=Access.ADDRESS,
            check=_url_problem,
            examples=("ws://localhost:4195/get/ws",),
        ),
        Field(
            PROXY_URL,
            "string",
            "The URL of an HTTP proxy.",
            access=Access.ADDRESS,
            optional=True,
            advanced=True,
            check=url_problem,
        ),
        Field(
            OPEN_MESSAGE,
            "string",
            "Message that is sent on a new connection.",
            optional=True,
            advanced=True,
        ),
        Field(
            OPEN_MESSAGE_TYPE,
            "string",
            "Type of this message: `binary` or `text`.",
            default="binary",
            options=("binary", "text"),
            advanced=True,
        ),
        Field(
            MAX_MESSAGE_SIZE,
            "int",
            "Maximum size of a decompressed message in bytes. For a larger one the connection "
            "is closed with 1009 and opened again. Not in Benthos.",
            default=64 << 20,
            check=lambda size: None if size > 0 else f"is {size}; expected 1 or more",
            advanced=True,
        ),
        AUTO_REPLAY_NACKS_FIELD,
        TLS_FIELD,
        Field(
            CONNECTION,
            "object",
            "Settings of connections.",
            optional=True,
            advanced=True,
            children=(
                Field(
                    "max_retries",
                    "int",
                    "Maximum number of consecutive failed connections before the input ends; "
                    "without it, or below zero, no limit.",
                    optional=True,
                    advanced=True,
                    examples=(-1, 10),
                ),
            ),
        ),
        OAUTH_FIELD,
        BASIC_AUTH_FIELD,
        JWT_FIELD,
    ),
    check=tls_problems,
    categories=("Network",),
    delivery="at most once until it is on the driver's disk, at least once from there on",
)


@dataclass(frozen=True)
class WebsocketInput:
    """The input before it is opened.

    Attributes:
        parsed: its fields.
    """

    parsed: ParsedFields

    def open(self, context: InputContext) -> SpoolSource:
        """Begin to connect; return the source of what the spool holds."""
        connection = self.parsed[CONNECTION]
        retries = connection["max_retries"] if connection is not None else None
        store = SpoolStore.for_input(context)

        async def run(reception: ReceiverContext) -> None:
            reception.set_ready()
            await self._connect_with_retry(
                context, GroupCommit(store), -1 if retries is None else retries
            )
            if not context.stopping:
                store.close()

        start_receiver(context, "websocket", run)
        return SpoolSource.for_input(context, None, "websocket")

    async def _connect_with_retry(
        self, context: InputContext, commit: GroupCommit, retries: int
    ) -> None:
        """Connect again and again; return when that is given up."""
        import aiohttp

        signer, tls = RequestSigner(self.parsed), tls_context(self.parsed[TLS])
        pause, failures = FIRST_BACKOFF_S, 0
        connecting = ConnectionState(context, "websocket")
        # Called with each address, also that of a proxy, before it is connected to.
        connector = aiohttp.TCPConnector(socket_factory=self._socket)
        async with aiohttp.ClientSession(connector=connector) as session:
            while True:
                try:
                    await self._receive(context, session, signer, tls, commit, connecting)
                    pause, failures = FIRST_BACKOFF_S, 0
                    context.count("input_connection_lost")
                except (aiohttp.ClientError, OSError) as e:
                    context.log("ERROR", f"Failed to connect to websocket: {e}", {})
                    connecting.set_failed(e)
                    context.count("input_connection_failed")
                    failures += 1
                    if 0 <= retries < failures:
                        return
                await asyncio.sleep(pause)
                pause = min(pause * 2, MAX_BACKOFF_S)

    def _socket(self, address: Any) -> socket.socket:
        family, kind, protocol, _, place = address
        try:
            self.parsed.permissions.address(str(place[0]))
        except NotPermittedError as error:
            raise PermissionError(errno.EACCES, str(error)) from None
        return socket.socket(family, kind, protocol)

    async def _receive(
        self,
        context: InputContext,
        session: aiohttp.ClientSession,
        signer: RequestSigner,
        tls: Any,
        commit: GroupCommit,
        state: ConnectionState,
    ) -> None:
        """Receive from one connection until it ends."""
        url = self.parsed[URL]
        import aiohttp

        header = await asyncio.to_thread(signer.header, "GET", url)

        def trouble(text: str) -> None:
            context.log("ERROR", text, {})

        try:
            async with asyncio.timeout(GREETING_TIMEOUT_S):
                made = await session.ws_connect(
                    url,
                    proxy=self.parsed[PROXY_URL] or None,
                    headers={AUTHORIZATION: header} if header else None,
                    ssl=True if tls is None else tls,
                    max_msg_size=self.parsed[MAX_MESSAGE_SIZE],
                )
        except TimeoutError:
            raise OSError(
                f"{redact_urls(url)} has not answered the handshake within {GREETING_TIMEOUT_S:g} s"
            ) from None
        async with made as ws:
            state.set_connected()
            greeting = (self.parsed[OPEN_MESSAGE] or "").encode()
            if greeting and self.parsed[OPEN_MESSAGE_TYPE] == "text":
                await ws.send_str(greeting.decode())
            elif greeting:
                await ws.send_bytes(greeting)
            async for message in ws:
                if message.type is aiohttp.WSMsgType.ERROR:
                    raise OSError(f"the connection was closed: {message.data}")
                data = message.data
                raw = data.encode() if isinstance(data, str) else data
                await commit.put_with_retry(pack_each([raw], NO_META), trouble)


def build(parsed: ParsedFields, context: BuildContext) -> WebsocketInput:
    """Take the fields; it connects once it is opened."""
    return WebsocketInput(parsed)
