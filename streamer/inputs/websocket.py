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

from streamer.http.auth import AUTHORIZATION, Signer
from streamer.http.auth_fields import BASIC_AUTH_FIELD, JWT_FIELD, OAUTH_FIELD
from streamer.landing.blocks import each
from streamer.landing.commit import GroupCommit
from streamer.landing.connecting import GREETING_TIMEOUT_S, Connecting
from streamer.landing.landed import Landed
from streamer.landing.lander import FIRST_PAUSE, LONGEST_PAUSE
from streamer.landing.receiver import Reception, receive
from streamer.landing.store import Store
from streamer.message import NO_META
from streamer.permissions import NotPermittedError
from streamer.redaction import scrub_urls
from streamer.source.opening import Room
from streamer.spec import Access, BuildContext, Field, Kind, Parsed, Spec
from streamer.spec.nacks import AUTO_REPLAY_NACKS_FIELD
from streamer.tls import TLS, TLS_FIELD, tls_context, tls_problems
from streamer.urls import url_problem

if TYPE_CHECKING:
    import aiohttp

URL: Final = "url"
PROXY_URL: Final = "proxy_url"
OPEN_MESSAGE: Final = "open_message"
OPEN_MESSAGE_TYPE: Final = "open_message_type"
CONNECTION: Final = "connection"
MAX_MESSAGE_SIZE: Final = "max_message_size"


def _url(text: str) -> str | None:
    if text.startswith(("ws://", "wss://", "http://", "https://")):
        return url_problem(text)
    return f"is {text!r}; expected a URL such as ws://localhost:4195/get/ws"


SPEC: Final = Spec(
    Kind.INPUT,
    "websocket",
    "Connects to a WebSocket and takes each message that it sends.",
    description=(
        "A connection that ends or cannot be made is made again after a short pause. What was "
        "received is on disk before it is processed; what the server has sent and a crash kept "
        "from being received is lost, since a WebSocket cannot be asked again."
    ),
    fields=(
        Field(
            URL,
            "string",
            "The URL to connect to.",
            access=Access.ADDRESS,
            check=_url,
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
            "What is sent when a connection is made.",
            optional=True,
            advanced=True,
        ),
        Field(
            OPEN_MESSAGE_TYPE,
            "string",
            "Whether that is sent as bytes or as text.",
            default="binary",
            options=("binary", "text"),
            advanced=True,
        ),
        Field(
            MAX_MESSAGE_SIZE,
            "int",
            "How many bytes a message may have, with what it inflates to. For a larger one the "
            "connection is closed with 1009, and made again. Ours, not in Benthos.",
            default=64 << 20,
            check=lambda size: None if size > 0 else f"is {size}; expected 1 or more",
            advanced=True,
        ),
        AUTO_REPLAY_NACKS_FIELD,
        TLS_FIELD,
        Field(
            CONNECTION,
            "object",
            "How connections are made.",
            optional=True,
            advanced=True,
            children=(
                Field(
                    "max_retries",
                    "int",
                    "How often in a row a connection that cannot be made is tried again before the "
                    "input ends; without it, or below zero, for ever.",
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

    parsed: Parsed

    def opened(self, room: Room) -> Landed:
        """Begin to connect; return what has landed."""
        connection = self.parsed[CONNECTION]
        retries = connection["max_retries"] if connection is not None else None
        store = Store(room.directory, room.spool_limit)

        async def run(reception: Reception) -> None:
            reception.ready()
            await self._connected(room, GroupCommit(store), -1 if retries is None else retries)
            if not room.stopping:
                store.close()

        receive(room, "websocket", run)
        return Landed(room.directory, None, "websocket", inside=not room.local)

    async def _connected(self, room: Room, commit: GroupCommit, retries: int) -> None:
        """Connect again and again; return when that is given up."""
        import aiohttp

        signer, tls = Signer(self.parsed), tls_context(self.parsed[TLS])
        pause, failures = FIRST_PAUSE, 0
        connecting = Connecting(room, "websocket")
        # Called with each address, also that of a proxy, before it is connected to.
        connector = aiohttp.TCPConnector(socket_factory=self._socket)
        async with aiohttp.ClientSession(connector=connector) as session:
            while True:
                try:
                    await self._received(room, session, signer, tls, commit, connecting)
                    pause, failures = FIRST_PAUSE, 0
                    room.count("input_connection_lost")
                except (aiohttp.ClientError, OSError) as e:
                    room.log("ERROR", f"Failed to connect to websocket: {e}", {})
                    connecting.failed(e)
                    room.count("input_connection_failed")
                    failures += 1
                    if 0 <= retries < failures:
                        return
                await asyncio.sleep(pause)
                pause = min(pause * 2, LONGEST_PAUSE)

    def _socket(self, address: Any) -> socket.socket:
        family, kind, protocol, _, place = address
        try:
            self.parsed.permissions.address(str(place[0]))
        except NotPermittedError as error:
            raise PermissionError(errno.EACCES, str(error)) from None
        return socket.socket(family, kind, protocol)

    async def _received(
        self,
        room: Room,
        session: aiohttp.ClientSession,
        signer: Signer,
        tls: Any,
        commit: GroupCommit,
        connecting: Connecting,
    ) -> None:
        """Receive from one connection until it ends."""
        url = self.parsed[URL]
        import aiohttp

        header = await asyncio.to_thread(signer.header, "GET", url)

        def trouble(text: str) -> None:
            room.log("ERROR", text, {})

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
                f"{scrub_urls(url)} has not answered the handshake within {GREETING_TIMEOUT_S:g} s"
            ) from None
        async with made as ws:
            connecting.up()
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
                await commit.put_surely(each([raw], NO_META), trouble)


def build(parsed: Parsed, context: BuildContext) -> WebsocketInput:
    """Take the fields; it connects once it is opened."""
    return WebsocketInput(parsed)
