"""`websocket`: "sends messages to an HTTP server via a websocket connection"."""

from __future__ import annotations

import contextlib
import threading
from typing import TYPE_CHECKING, Final
from urllib.parse import urlsplit

from streamer.connectors.http_client.auth import RequestSigner
from streamer.connectors.http_client.auth_fields import BASIC_AUTH_FIELD, JWT_FIELD, OAUTH_FIELD
from streamer.connectors.http_client.errors import HttpError
from streamer.connectors.http_client.fields import PROXY_FIELD, PROXY_URL
from streamer.connectors.tls import TLS, TLS_FIELD, tls_context, tls_problems
from streamer.core.execution import Execution
from streamer.core.message import Batch
from streamer.core.permissions import Permissions
from streamer.core.urls import url_problem
from streamer.sdk.output.protocols import NotConnectedError, Output, SendError
from streamer.sdk.spec import Access, BuildContext, Example, Field, Kind, ParsedFields, Spec

if TYPE_CHECKING:
    import socket

    from websockets.sync.client import ClientConnection

URL: Final = "url"
_CONNECT_TIMEOUT_S: Final = 10.0


SPEC: Final = Spec(
    Kind.OUTPUT,
    "websocket",
    "Sends messages over a WebSocket, each as a binary message.",
    description=(
        "Each worker has a connection of its own, which lasts. Messages from the server are "
        "ignored. A message counts as sent when it is written to the connection."
    ),
    fields=(
        Field(
            URL,
            "string",
            "URL of the server.",
            access=Access.ADDRESS,
            check=lambda url: (
                url_problem(url)
                if url.startswith(("ws://", "wss://"))
                else f"is {url!r}; expected a URL that begins with ws:// or wss://"
            ),
            examples=("ws://localhost:4195/get/ws",),
        ),
        PROXY_FIELD,
        TLS_FIELD,
        OAUTH_FIELD,
        BASIC_AUTH_FIELD,
        JWT_FIELD,
    ),
    check=tls_problems,
    examples=(
        Example("To a server", "output:\n  websocket: { url: 'ws://localhost:4195/post/ws' }\n"),
    ),
    categories=("Network",),
)


class WebsocketConnection:
    """A connection of one worker, which is made when it is needed."""

    def __init__(self, parsed: ParsedFields) -> None:
        self._parsed = parsed
        self._signer = RequestSigner(parsed)
        self._tls = tls_context(parsed[TLS])
        self._connection: ClientConnection | None = None
        # The library wants its connections to be left; ours is when it is closed.
        self._keep_alive = contextlib.ExitStack()

    def open(self) -> None:
        """Connect, unless it is connected.

        Raises:
            SendError: nobody is there, or it does not speak WebSocket.
        """
        from websockets.exceptions import WebSocketException
        from websockets.sync.client import connect

        if self._connection is not None:
            return
        url, proxy = self._parsed[URL], self._parsed[PROXY_URL] or None
        permissions = self._parsed.permissions
        try:
            # The library looks names up by itself: where not every address may be connected to, it
            # is given what is connected. A proxy connects by itself, to where it may.
            made = None if permissions.local or proxy else _connected(url, permissions)
            signed = self._signer.header("GET", url)
            self._connection = self._keep_alive.enter_context(
                connect(
                    url,
                    ssl=self._tls if url.startswith("wss:") else None,
                    additional_headers=None if signed is None else {"Authorization": signed},
                    proxy=proxy,
                    sock=made,
                    compression=None,
                )
            )
        except (OSError, WebSocketException, HttpError) as error:
            raise SendError(str(error) or type(error).__name__) from None
        threading.Thread(target=_discard_received, args=(self._connection,), daemon=True).start()

    def write(self, raw: bytes) -> None:
        """Send a message.

        Raises:
            NotConnectedError: it is not connected.
            SendError: the connection is lost.
        """
        from websockets.exceptions import ConnectionClosed

        if self._connection is None:
            raise NotConnectedError("not connected")
        try:
            self._connection.send(raw)
        except ConnectionClosed as error:
            self.close()
            raise SendError(str(error)) from None

    def close(self) -> None:
        """End the connection; the next `open` makes a new one."""
        self._connection = None
        self._keep_alive.close()

    def __del__(self) -> None:
        with contextlib.suppress(Exception):
            self.close()


def _connected(url: str, permissions: Permissions) -> socket.socket:
    parts = urlsplit(url)
    port = parts.port or (443 if parts.scheme in ("wss", "https") else 80)
    return permissions.connect(parts.hostname or "", port, _CONNECT_TIMEOUT_S)


def _discard_received(connection: ClientConnection) -> None:
    """Read what the server sends, or it would wait for it to be read."""
    from websockets.exceptions import ConnectionClosed

    with contextlib.suppress(ConnectionClosed, OSError):
        for _ in connection:
            pass


class WebsocketOutput(Output):
    """Writes messages to a connection."""

    def __init__(self, connection: WebsocketConnection) -> None:
        self._connection = connection

    def connect(self, ex: Execution) -> None:
        """Connect; it may be connected since an earlier task."""
        self._connection.open()

    def send(self, batch: Batch, ex: Execution) -> None:
        """Write a batch, message by message, as far as it goes."""
        for index, message in enumerate(batch):
            try:
                self._connection.write(message.raw)
            except NotConnectedError:
                raise
            except SendError as error:
                left = dict.fromkeys(range(index, len(batch)), error.text) if index else {}
                raise SendError(error.text, left) from None

    def probe(self) -> str:
        """Connect, and disconnect."""
        self._connection.open()
        self._connection.close()
        return "connected"


def build(parsed: ParsedFields, context: BuildContext) -> WebsocketOutput:
    """Take the worker's connection, which is not made yet."""
    return WebsocketOutput(
        context.worker_resource("connection", lambda: WebsocketConnection(parsed))
    )
