"""`socket`: "connects to a (tcp/udp/unix) server and sends a continuous stream of data"."""

from __future__ import annotations

import socket
import ssl
from collections.abc import Iterable
from typing import Any, Final

from streamer.connectors.formats.codec import CODEC, CODEC_FIELD, WriterCodec, read_codec
from streamer.connectors.http_server.address import address_problem, split_address
from streamer.connectors.tls import TLS, TLS_FIELD, tls_context, tls_problems
from streamer.core.execution import Execution
from streamer.core.message import Batch
from streamer.core.permissions import ALL, Permissions
from streamer.sdk.output.protocols import NotConnectedError, Output, SendError
from streamer.sdk.spec import Access, BuildContext, Example, Field, Kind, ParsedFields, Spec

NETWORK: Final = "network"
ADDRESS: Final = "address"

_CONNECT_TIMEOUT_S: Final = 30.0
"""Seconds that a connection may take to be made."""


def _problems(parsed: Any) -> Iterable[tuple[str, str]]:
    yield from tls_problems(parsed)
    if parsed[NETWORK].lower() != "unix":
        problem = address_problem(parsed[ADDRESS])
        if problem is not None:
            yield ADDRESS, problem
    if parsed[NETWORK].lower() == "udp" and parsed[TLS]["enabled"]:
        yield TLS, "is for tcp and unix sockets; leave it out with udp"


SPEC: Final = Spec(
    Kind.OUTPUT,
    "socket",
    "Connects to a tcp, udp or unix socket and sends messages as a stream of bytes.",
    description=(
        "Each worker has a connection of its own, which lasts; with the codec `all-bytes` "
        "each message has one. Over udp each message is a datagram, its delimiter included. "
        "Messages that a server has not read when it ends are lost, because a socket does not "
        "report them."
    ),
    fields=(
        Field(
            NETWORK,
            "string",
            "The kind of socket.",
            access=Access.NETWORK,
            options=("unix", "tcp", "udp"),
        ),
        Field(
            ADDRESS,
            "string",
            "Address: host and port, or the path of a unix socket.",
            access=Access.ADDRESS,
            examples=("/tmp/benthos.sock", "127.0.0.1:6000"),
        ),
        CODEC_FIELD,
        TLS_FIELD,
    ),
    check=_problems,
    examples=(
        Example(
            "Lines over TCP", "output:\n  socket: { network: tcp, address: 'localhost:6000' }\n"
        ),
    ),
    categories=("Network",),
)


class SocketConnection:
    """A connection of one worker, which is made when it is needed."""

    def __init__(
        self,
        network: str,
        address: str,
        tls: ssl.SSLContext | None,
        permissions: Permissions = ALL,
    ) -> None:
        self._network = network
        self._address = address
        self._tls = tls
        self._permissions = permissions
        self._socket: socket.socket | None = None

    def open(self) -> None:
        """Connect, unless it is connected.

        Raises:
            OSError: nobody is there.
        """
        if self._socket is not None:
            return
        if self._network == "unix":
            made = self._permissions.unix_socket(self._address)
            made.connect(self._address)
            host = ""
        else:
            named, port = split_address(self._address)
            host = named or "localhost"
            if self._network == "udp":
                made = self._permissions.connect(host, port, kind=socket.SOCK_DGRAM)
            else:
                made = self._permissions.connect(host, port, _CONNECT_TIMEOUT_S)
                made.settimeout(None)
        if self._tls is not None:
            made = self._tls.wrap_socket(made, server_hostname=host or None)
        self._socket = made

    def write(self, data: bytes) -> None:
        """Send bytes.

        Raises:
            NotConnectedError: it is not connected, or the server has gone away.
            OSError: they could not be sent.
        """
        if self._socket is None:
            raise NotConnectedError("not connected")
        if self._network != "udp" and self._is_closed_by_peer(self._socket):
            self.close()
            raise NotConnectedError("the server has closed the connection")
        try:
            self._socket.sendall(data)
        except OSError:
            self.close()
            raise

    def close(self) -> None:
        """End the connection; the next `open` makes a new one."""
        if self._socket is not None:
            self._socket.close()
            self._socket = None

    def __del__(self) -> None:
        self.close()

    def _is_closed_by_peer(self, connection: socket.socket) -> bool:
        """Check whether the other side has closed it, which writing alone would not show."""
        if self._tls is not None:
            return False
        try:
            return connection.recv(1, socket.MSG_PEEK | socket.MSG_DONTWAIT) == b""
        except BlockingIOError:
            return False
        except OSError:
            return True


class SocketOutput(Output):
    """Writes messages to a connection."""

    def __init__(self, connection: SocketConnection, codec: WriterCodec) -> None:
        self._connection = connection
        self._codec = codec

    def connect(self, ex: Execution) -> None:
        """Connect; it may be connected since an earlier task."""
        try:
            self._connection.open()
        except OSError as error:
            raise SendError(str(error)) from None

    def send(self, batch: Batch, ex: Execution) -> None:
        """Write a batch, message by message, as far as it goes."""
        connection = self._connection
        for index, message in enumerate(batch):
            try:
                if not self._codec.append:
                    connection.open()
                connection.write(self._codec.encode_one(message.raw))
            except NotConnectedError:
                if index == 0:
                    raise
                raise SendError("the connection is lost", _errors_from(index, batch)) from None
            except OSError as error:
                raise SendError(str(error), _errors_from(index, batch, str(error))) from None
            if not self._codec.append:
                connection.close()

    def probe(self) -> str:
        """Connect, and disconnect."""
        self._connection.open()
        self._connection.close()
        return "connected"


def _errors_from(index: int, batch: Batch, text: str = "the connection is lost") -> dict[int, str]:
    """Return the errors of all messages from one on; none means all of them."""
    return dict.fromkeys(range(index, len(batch)), text) if index else {}


def build(parsed: ParsedFields, context: BuildContext) -> SocketOutput:
    """Take the worker's connection, which is not made yet."""

    def make() -> SocketConnection:
        network, tls = parsed[NETWORK].lower(), tls_context(parsed[TLS])
        return SocketConnection(network, parsed[ADDRESS], tls, parsed.permissions)

    return SocketOutput(context.worker_resource("connection", make), read_codec(parsed[CODEC]))
