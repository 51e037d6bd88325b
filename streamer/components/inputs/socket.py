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
from streamer.connectors.spool.connection_state import GREETING_TIMEOUT_S
from streamer.connectors.spool.scan_bytes import scan_into_spool
from streamer.connectors.spool.sockets import SocketStream, split_host
from streamer.connectors.spool.spool_source import SpoolSource
from streamer.connectors.spool.spool_writer import SpoolWriter, connect_with_retry
from streamer.connectors.spool.store import SpoolStore
from streamer.connectors.tls import TLS, TLS_FIELD, tls_context, tls_problems
from streamer.core.errors import MessageError, StreamerError
from streamer.core.execution import Execution
from streamer.core.message import Message
from streamer.sdk.input.input_context import InputContext
from streamer.sdk.spec import Access, BuildContext, Field, Kind, ParsedFields, Spec
from streamer.sdk.spec.scanner_fields import SCANNER_FIELDS, build_scanner

NETWORK: Final = "network"
ADDRESS: Final = "address"
OPEN_MESSAGE_MAPPING: Final = "open_message_mapping"

SPEC: Final = Spec(
    Kind.INPUT,
    "socket",
    "Connects to a socket and cuts what comes from it into messages.",
    description=(
        "A lost or failed connection is retried after a short pause. Received messages are on "
        "disk before they are processed. Messages in transit during a crash are lost, because "
        "a socket cannot repeat them."
    ),
    fields=(
        Field(
            NETWORK, "string", "The kind of socket.", access=Access.NETWORK, options=("unix", "tcp")
        ),
        Field(
            ADDRESS,
            "string",
            "Address of the server.",
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
        *SCANNER_FIELDS,
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

    parsed: ParsedFields
    scanner: Any
    greeting: Mapping | None

    def open(self, context: InputContext) -> SpoolSource:
        """Begin to connect; return the source of what the spool holds."""
        writer = SpoolWriter(context, SpoolStore.for_input(context))
        ex = Execution(time.time_ns, context.log, context.count)

        now: list[socket.socket] = []

        def hang_up() -> None:
            for connection in now:
                with suppress(OSError):
                    connection.shutdown(socket.SHUT_RDWR)

        def attempt(up: Callable[[], None]) -> None:
            now[:] = [self._connect()]
            with now[0] as connection:
                if self.greeting is not None:
                    connection.sendall(_make_greeting(self.greeting, ex))
                up()
                name = self.parsed[ADDRESS]
                scan_into_spool(SocketStream(connection), self.scanner, name, ex, writer.put)

        context.on_stop(hang_up)
        context.start("socket", lambda: connect_with_retry(context, "socket", attempt))
        return SpoolSource(
            context.directory, self.scanner, self.parsed[ADDRESS], inline=not context.is_local
        )

    def probe(self) -> str:
        """Connect; see `SupportsProbe`."""
        self._connect().close()
        return f"{self.parsed[ADDRESS]} takes connections"

    def _connect(self) -> socket.socket:
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


def _make_greeting(mapping: Mapping, ex: Execution) -> bytes:
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


def build(parsed: ParsedFields, context: BuildContext) -> SocketInput:
    """Take the fields; it connects once it is opened."""
    text = parsed[OPEN_MESSAGE_MAPPING]
    greeting = compile_mapping(text) if text else None
    return SocketInput(parsed, build_scanner(parsed, context), greeting)
