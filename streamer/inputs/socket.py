"""The `socket` input: "Connects to a tcp or unix socket and consumes a continuous stream".

What comes is on disk, in the spool of the checkpoint, before it counts as received. A connection
that ends is made again.
"""

from __future__ import annotations

import socket
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Final

from streamer.bloblang import Mapping, compile_mapping
from streamer.errors import MessageError, StreamerError
from streamer.landing.connecting import GREETING_TIMEOUT_S
from streamer.landing.cutting import pour
from streamer.landing.landed import Landed
from streamer.landing.lander import Lander, connected
from streamer.landing.sockets import SocketStream, split_host
from streamer.landing.store import Store
from streamer.message import Execution, Message
from streamer.source.opening import Room
from streamer.spec import Access, BuildContext, Field, Kind, Parsed, Spec
from streamer.spec.scanned import SCANNED_FIELDS, build_scanner
from streamer.tls import TLS, TLS_FIELD, tls_context, tls_problems

NETWORK: Final = "network"
ADDRESS: Final = "address"
OPEN_MESSAGE_MAPPING: Final = "open_message_mapping"

SPEC: Final = Spec(
    Kind.INPUT,
    "socket",
    "Connects to a socket and cuts what comes from it into messages.",
    description=(
        "A connection that ends or cannot be made is made again after a short pause. What was "
        "received is on disk before it is processed; what the other side has sent and a crash kept "
        "from being received is lost, since a socket cannot be asked again."
    ),
    fields=(
        Field(
            NETWORK, "string", "The kind of socket.", access=Access.NETWORK, options=("unix", "tcp")
        ),
        Field(
            ADDRESS,
            "string",
            "What to connect to.",
            access=Access.ADDRESS,
            examples=("/tmp/benthos.sock", "127.0.0.1:6000"),
        ),
        Field(
            OPEN_MESSAGE_MAPPING,
            "string",
            "Makes a text that is sent when a connection is made.",
            optional=True,
            mapping=True,
            examples=('root = "username,password"',),
        ),
        TLS_FIELD,
        *SCANNED_FIELDS,
    ),
    check=tls_problems,
    categories=("Network",),
    delivery="at most once until it is on the driver's disk, at least once from there on",
)


@dataclass(frozen=True)
class SocketInput:
    """The input before it is opened.

    Attributes:
        parsed: its fields.
        scanner: cuts the stream.
        greeting: makes what is sent first, or None.
    """

    parsed: Parsed
    scanner: Any
    greeting: Mapping | None

    def opened(self, room: Room) -> Landed:
        """Begin to connect; return what has landed."""
        lander = Lander(room, Store(room.directory, room.spool_limit))
        ex = Execution(time.time_ns, room.log, room.count)

        now: list[socket.socket] = []

        def hang_up() -> None:
            for connection in now:
                with suppress(OSError):
                    connection.shutdown(socket.SHUT_RDWR)

        def attempt(up: Callable[[], None]) -> None:
            now[:] = [self._connection()]
            with now[0] as connection:
                if self.greeting is not None:
                    connection.sendall(_greeting(self.greeting, ex))
                up()
                name = self.parsed[ADDRESS]
                pour(SocketStream(connection), self.scanner, name, ex, lander.put)

        room.on_stop(hang_up)
        room.start("socket", lambda: connected(room, "socket", attempt))
        return Landed(room.directory, self.scanner, self.parsed[ADDRESS], inside=not room.local)

    def probe(self) -> str:
        """Connect; see `Probing`."""
        self._connection().close()
        return f"{self.parsed[ADDRESS]} takes connections"

    def _connection(self) -> socket.socket:
        address, tls = self.parsed[ADDRESS], tls_context(self.parsed[TLS])
        if self.parsed[NETWORK] == "unix":
            made = self.parsed.permissions.unix_socket(address)
            host = ""
            try:
                made.connect(address)
            except OSError:
                made.close()
                raise
        else:
            host, port = split_host(address)
            made = self.parsed.permissions.connect(host, port, GREETING_TIMEOUT_S)
        if tls is not None:
            made = tls.wrap_socket(made, server_hostname=host or None)
        # What it sends may take its time.
        made.settimeout(None)
        return made


def _greeting(mapping: Mapping, ex: Execution) -> bytes:
    try:
        value = mapping.query([Message(b"")], 0, ex)
    except MessageError as e:
        raise StreamerError(f"open message mapping failed: {e}") from None
    if not isinstance(value, str):
        raise StreamerError(
            f"open message mapping returned non-string result: {type(value).__name__}"
        )
    if not value:
        raise StreamerError("open message mapping returned empty string")
    return value.encode()


def build(parsed: Parsed, context: BuildContext) -> SocketInput:
    """Take the fields; it connects once it is opened."""
    text = parsed[OPEN_MESSAGE_MAPPING]
    greeting = compile_mapping(text) if text else None
    return SocketInput(parsed, build_scanner(parsed, context), greeting)
