"""The `socket_server` input: "receives a stream of messages over a TCP, UDP or Unix socket".

What comes is on disk, in the spool of the checkpoint, before it counts as received. Each connection
is cut into messages by itself.
"""

from __future__ import annotations

import socket
import ssl
import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from streamer.connectors.http_server.connections import (
    TLS_HANDSHAKE_TIMEOUT_S,
    ConnectionLimits,
    ConnectionSlot,
    process_limits,
)
from streamer.connectors.spool.scan_bytes import scan_into_spool
from streamer.connectors.spool.self_signed import load_self_signed
from streamer.connectors.spool.sockets import (
    TCP,
    TCP_FIELD,
    DatagramStream,
    SocketStream,
    address_problem,
    bind_socket,
    bound_address,
)
from streamer.connectors.spool.spool_source import SpoolSource
from streamer.connectors.spool.spool_writer import SpoolWriter, StreamStoppedError
from streamer.connectors.spool.store import SpoolStore
from streamer.core.errors import StreamerError
from streamer.core.execution import Execution
from streamer.core.throttled_log import ThrottledLog
from streamer.sdk.cache import Cache, CacheError
from streamer.sdk.input.input_context import InputContext
from streamer.sdk.spec import Access, BuildContext, Field, Kind, ParsedFields, Spec
from streamer.sdk.spec.scanner_fields import SCANNER_FIELDS, build_scanner

NETWORK: Final = "network"
ADDRESS: Final = "address"
ADDRESS_CACHE: Final = "address_cache"
TLS: Final = "tls"
_DATAGRAM_NETWORKS: Final = ("udp", "unixgram")


def _check(parsed: ParsedFields) -> Iterator[tuple[str, str]]:
    problem = address_problem(parsed[NETWORK], parsed[ADDRESS])
    if problem is not None:
        yield ADDRESS, problem
    if parsed[NETWORK] != "tls":
        return
    tls = parsed[TLS]
    files = tls is not None and tls["cert_file"] and tls["key_file"]
    if not files and not (tls is not None and tls["self_signed"]):
        yield TLS, "must have cert_file and key_file, or self_signed: true"
    if tls is not None and tls["client_auth"] == "require_any":
        yield (
            f"{TLS}.client_auth",
            "is require_any, but OpenSSL checks every certificate that it asks for; use "
            "require_valid, or no",
        )


SPEC: Final = Spec(
    Kind.INPUT,
    "socket_server",
    "Listens on a socket and cuts what is sent to it into messages.",
    description=(
        "Every connection is divided separately. Datagrams are divided like one stream, so a "
        "datagram without a final line break is joined with the next one. Received messages "
        "are on disk before they are processed. If too many messages wait, connections are "
        "not read until space is free. Senders over a socket get no answer: messages in "
        "transit when the program is killed are lost."
    ),
    fields=(
        Field(
            NETWORK,
            "string",
            "The kind of socket.",
            access=Access.NETWORK,
            options=("unix", "tcp", "udp", "tls", "unixgram"),
        ),
        Field(
            ADDRESS,
            "string",
            "Address of the server.",
            access=Access.ADDRESS,
            examples=("/tmp/benthos.sock", "0.0.0.0:6000"),
        ),
        Field(
            ADDRESS_CACHE,
            "string",
            "The label of a cache that is given the address it listens on, under the key "
            "`<label>_address`, or `socket_server_address` without a label.",
            optional=True,
            refers=Kind.CACHE,
        ),
        TCP_FIELD,
        Field(
            TLS,
            "object",
            "The server's side of TLS, for the network `tls`.",
            optional=True,
            children=(
                Field(
                    "cert_file", "string", "A certificate, PEM.", access=Access.FILE, optional=True
                ),
                Field(
                    "key_file",
                    "string",
                    "The certificate's key, PEM.",
                    access=Access.FILE,
                    optional=True,
                ),
                Field(
                    "self_signed",
                    "bool",
                    "Make a certificate, when no files are given.",
                    default=False,
                ),
                Field(
                    "client_auth",
                    "string",
                    "Client certificates: `no` and `request` ask for none, "
                    "`verify_if_given` and `require_valid` check them.",
                    default="no",
                    options=("no", "request", "require_any", "require_valid", "verify_if_given"),
                ),
            ),
        ),
        *SCANNER_FIELDS,
    ),
    check=_check,
    categories=("Network",),
    delivery="at most once until it is on the driver's disk, at least once from there on",
    limits="client_auth: require_any is refused",
)


@dataclass(frozen=True)
class SocketServerInput:
    """The input before it is opened.

    Attributes:
        parsed: its fields.
        scanner: cuts connections.
        cache: is given the address, or None.
        label: the input's.
    """

    parsed: ParsedFields
    scanner: Any
    cache: Cache | None
    label: str

    def open(self, context: InputContext) -> SpoolSource:
        """Begin to listen; return the source of what the spool holds.

        Raises:
            StreamerError: the address cannot be listened on, or the certificate is of no use.
        """
        network, tls = self.parsed[NETWORK], self._make_tls()
        tcp = self.parsed[TCP]
        receiver = bind_socket(
            network,
            self.parsed[ADDRESS],
            reuse_port=bool(tcp is not None and tcp["reuse_port"]),
            permissions=self.parsed.permissions,
        )
        address = bound_address(receiver, network)
        server = _Server(
            context,
            self.scanner,
            SpoolWriter(context, SpoolStore.for_input(context)),
            address,
            tls,
        )
        context.on_stop(lambda: server.stop(receiver, network))
        run = server.receive_datagrams if network in _DATAGRAM_NETWORKS else server.accept
        context.start("socket_server", lambda: run(receiver))
        text = f"Receiving {network} socket messages from address: {address}"
        context.log("INFO", text, {"address": address})
        if self.cache is not None:
            key = f"{self.label}_address" if self.label else "socket_server_address"
            try:
                self.cache.set(key, address.encode(), None, server.ex)
            except CacheError as e:
                context.log("ERROR", f"Failed to set address in cache: {e}", {})
        return SpoolSource.for_input(context, self.scanner, address)

    def probe(self) -> str:
        """Check that the address can be listened on; see `SupportsProbe`."""
        network, address = self.parsed[NETWORK], self.parsed[ADDRESS]
        self._make_tls()
        bind_socket(network, address, permissions=self.parsed.permissions).close()
        if network.startswith("unix"):
            Path(address).unlink(missing_ok=True)
        return f"{address} can be listened on"

    def _make_tls(self) -> ssl.SSLContext | None:
        tls = self.parsed[TLS]
        if self.parsed[NETWORK] != "tls" or tls is None:
            return None
        context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        try:
            if tls["cert_file"] and tls["key_file"]:
                files = map(tls.permissions.file, (tls["cert_file"], tls["key_file"]))
                context.load_cert_chain(*files)
            else:
                load_self_signed(context)
        except OSError as e:
            raise StreamerError(
                f"tls.cert_file {tls['cert_file']} with tls.key_file {tls['key_file']}: "
                f"{(e.strerror or str(e)).lower()}; expected a certificate and its key, both PEM"
            ) from None
        verify_modes = {"require_valid": ssl.CERT_REQUIRED, "verify_if_given": ssl.CERT_OPTIONAL}
        if tls["client_auth"] in verify_modes:
            context.load_default_certs(ssl.Purpose.CLIENT_AUTH)
            context.verify_mode = verify_modes[tls["client_auth"]]
        return context


class _Server:
    """Accepts connections, each of which is received in a thread of its own."""

    def __init__(
        self,
        context: InputContext,
        scanner: Any,
        spool_writer: SpoolWriter,
        name: str,
        tls: ssl.SSLContext | None,
    ) -> None:
        self.ex = Execution(time.time_ns, context.log, context.count)
        self._context = context
        self._scanner = scanner
        self._spool_writer = spool_writer
        self._name = name
        self._tls = tls
        self._rare_log = ThrottledLog(context.log)
        self._open: set[socket.socket] = set()
        self._lock = threading.Lock()

    def accept(self, receiver: socket.socket) -> None:
        """Accept connections until the socket is closed."""
        limits = process_limits()
        while not self._context.stopping:
            try:
                connection, where = receiver.accept()
            except OSError as e:
                if self._context.stopping:
                    return
                self._rare_log("ERROR", "Failed to accept Socket connection", e)
                self._context.wait(1.0)
                continue
            # Senders may be still for long, so that none is closed for another one.
            slot = limits.admit(
                where[0] if isinstance(where, tuple) else "", connection.close, lambda: True
            )
            if slot is None:
                connection.close()
                continue
            threading.Thread(
                target=self._receive,
                args=(connection, slot, limits),
                daemon=True,
                name="socket_server",
            ).start()

    def receive_datagrams(self, receiver: socket.socket) -> None:
        """Receive datagrams until the socket is closed."""
        self._receive_stream(DatagramStream(receiver))

    def stop(self, receiver: socket.socket, network: str) -> None:
        """Close everything, so that nobody waits for it."""
        with self._lock:
            for connection in (receiver, *self._open):
                with suppress(OSError):
                    connection.shutdown(socket.SHUT_RDWR)
        receiver.close()
        if network in ("unix", "unixgram"):
            Path(self._name).unlink(missing_ok=True)

    def _receive(
        self, connection: socket.socket, slot: ConnectionSlot, limits: ConnectionLimits
    ) -> None:
        with self._lock:
            self._open.add(connection)
        try:
            with connection:
                self._receive_secured(connection)
        finally:
            with self._lock:
                self._open.discard(connection)
            limits.release(slot)

    def _receive_secured(self, connection: socket.socket) -> None:
        if self._tls is None:
            self._receive_stream(SocketStream(connection))
            return
        try:
            connection.settimeout(TLS_HANDSHAKE_TIMEOUT_S)
            secured = self._tls.wrap_socket(connection, server_side=True)
            secured.settimeout(None)
        except OSError as e:
            self._rare_log("ERROR", "Connection dropped due to", e)
            return
        with self._lock:
            self._open.add(secured)
        try:
            with secured:
                self._receive_stream(SocketStream(secured))
        finally:
            with self._lock:
                self._open.discard(secured)

    def _receive_stream(self, stream: SocketStream | DatagramStream) -> None:
        try:
            scan_into_spool(stream, self._scanner, self._name, self.ex, self._spool_writer.put)
        except StreamStoppedError:
            return
        except (OSError, StreamerError) as e:
            if not self._context.stopping:
                self._rare_log("ERROR", "Connection dropped due to", e)


def build(parsed: ParsedFields, context: BuildContext) -> SocketServerInput:
    """Take the fields; it listens once it is opened."""
    label = parsed[ADDRESS_CACHE]
    cache = context.resource(Kind.CACHE, label) if label else None
    scanner = build_scanner(parsed, context)
    return SocketServerInput(parsed, scanner, cache, context.component.label)
