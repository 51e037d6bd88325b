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

from streamer.caching import Cache, CacheError
from streamer.endpoints.connections import (
    TLS_HANDSHAKE_TIMEOUT_S,
    ConnectionLimits,
    Slot,
    process_limits,
)
from streamer.errors import StreamerError
from streamer.landing.cutting import pour
from streamer.landing.landed import Landed
from streamer.landing.lander import Lander, StoppedError
from streamer.landing.self_signed import self_signed
from streamer.landing.sockets import (
    TCP,
    TCP_FIELD,
    DatagramStream,
    SocketStream,
    address_problem,
    bound,
    shown,
)
from streamer.landing.store import Store
from streamer.logs.rare import RareLog
from streamer.message import Execution
from streamer.source.opening import Room
from streamer.spec import Access, BuildContext, Field, Kind, Parsed, Spec
from streamer.spec.scanned import SCANNED_FIELDS, build_scanner

NETWORK: Final = "network"
ADDRESS: Final = "address"
ADDRESS_CACHE: Final = "address_cache"
TLS: Final = "tls"
_PACKETS: Final = ("udp", "unixgram")


def _check(parsed: Parsed) -> Iterator[tuple[str, str]]:
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
        "Every connection is cut by itself; datagrams are cut as if they were one stream, so one "
        "that does not end with a line break is joined with the next. What was received is on disk "
        "before it is processed; when too much waits to be read, nothing is read from the "
        "connections until there is room again. Senders over a socket hear of nothing: what is on "
        "its way when the program is killed is lost."
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
            "Where it listens.",
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
                    "Whether clients show certificates: `no` and `request` ask for none, "
                    "`verify_if_given` and `require_valid` check them.",
                    default="no",
                    options=("no", "request", "require_any", "require_valid", "verify_if_given"),
                ),
            ),
        ),
        *SCANNED_FIELDS,
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

    parsed: Parsed
    scanner: Any
    cache: Cache | None
    label: str

    def opened(self, room: Room) -> Landed:
        """Begin to listen; return what has landed.

        Raises:
            StreamerError: the address cannot be listened on, or the certificate is of no use.
        """
        network, tls = self.parsed[NETWORK], self._tls()
        tcp = self.parsed[TCP]
        receiver = bound(
            network,
            self.parsed[ADDRESS],
            reuse_port=bool(tcp is not None and tcp["reuse_port"]),
            permissions=self.parsed.permissions,
        )
        address = shown(receiver, network)
        server = _Server(
            room, self.scanner, Lander(room, Store(room.directory, room.spool_limit)), address, tls
        )
        room.on_stop(lambda: server.stop(receiver, network))
        run = server.datagrams if network in _PACKETS else server.accept
        room.start("socket_server", lambda: run(receiver))
        text = f"Receiving {network} socket messages from address: {address}"
        room.log("INFO", text, {"address": address})
        if self.cache is not None:
            key = f"{self.label}_address" if self.label else "socket_server_address"
            try:
                self.cache.set(key, address.encode(), None, server.ex)
            except CacheError as e:
                room.log("ERROR", f"Failed to set address in cache: {e}", {})
        return Landed(room.directory, self.scanner, address, inside=not room.local)

    def probe(self) -> str:
        """Look whether the address can be listened on; see `Probing`."""
        network, address = self.parsed[NETWORK], self.parsed[ADDRESS]
        self._tls()
        bound(network, address, permissions=self.parsed.permissions).close()
        if network.startswith("unix"):
            Path(address).unlink(missing_ok=True)
        return f"{address} can be listened on"

    def _tls(self) -> ssl.SSLContext | None:
        tls = self.parsed[TLS]
        if self.parsed[NETWORK] != "tls" or tls is None:
            return None
        context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        try:
            if tls["cert_file"] and tls["key_file"]:
                files = map(tls.permissions.file, (tls["cert_file"], tls["key_file"]))
                context.load_cert_chain(*files)
            else:
                self_signed(context)
        except OSError as e:
            raise StreamerError(
                f"tls.cert_file {tls['cert_file']} with tls.key_file {tls['key_file']}: "
                f"{(e.strerror or str(e)).lower()}; expected a certificate and its key, both PEM"
            ) from None
        wanted = {"require_valid": ssl.CERT_REQUIRED, "verify_if_given": ssl.CERT_OPTIONAL}
        if tls["client_auth"] in wanted:
            context.load_default_certs(ssl.Purpose.CLIENT_AUTH)
            context.verify_mode = wanted[tls["client_auth"]]
        return context


class _Server:
    """Accepts connections, each of which is received in a thread of its own."""

    def __init__(
        self, room: Room, scanner: Any, lander: Lander, name: str, tls: ssl.SSLContext | None
    ) -> None:
        self.ex = Execution(time.time_ns, room.log, room.count)
        self._room = room
        self._scanner = scanner
        self._lander = lander
        self._name = name
        self._tls = tls
        self._rare = RareLog(room.log)
        self._open: set[socket.socket] = set()
        self._lock = threading.Lock()

    def accept(self, receiver: socket.socket) -> None:
        """Accept connections until the socket is closed."""
        limits = process_limits()
        while not self._room.stopping:
            try:
                connection, where = receiver.accept()
            except OSError as e:
                if self._room.stopping:
                    return
                self._rare("ERROR", "Failed to accept Socket connection", e)
                self._room.wait(1.0)
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

    def datagrams(self, receiver: socket.socket) -> None:
        """Receive datagrams until the socket is closed."""
        self._poured(DatagramStream(receiver))

    def stop(self, receiver: socket.socket, network: str) -> None:
        """Close everything, so that nobody waits for it."""
        with self._lock:
            for connection in (receiver, *self._open):
                with suppress(OSError):
                    connection.shutdown(socket.SHUT_RDWR)
        receiver.close()
        if network in ("unix", "unixgram"):
            Path(self._name).unlink(missing_ok=True)

    def _receive(self, connection: socket.socket, slot: Slot, limits: ConnectionLimits) -> None:
        with self._lock:
            self._open.add(connection)
        try:
            with connection:
                self._received(connection)
        finally:
            with self._lock:
                self._open.discard(connection)
            limits.release(slot)

    def _received(self, connection: socket.socket) -> None:
        if self._tls is None:
            self._poured(SocketStream(connection))
            return
        try:
            connection.settimeout(TLS_HANDSHAKE_TIMEOUT_S)
            secured = self._tls.wrap_socket(connection, server_side=True)
            secured.settimeout(None)
        except OSError as e:
            self._rare("ERROR", "Connection dropped due to", e)
            return
        with self._lock:
            self._open.add(secured)
        try:
            with secured:
                self._poured(SocketStream(secured))
        finally:
            with self._lock:
                self._open.discard(secured)

    def _poured(self, stream: SocketStream | DatagramStream) -> None:
        try:
            pour(stream, self._scanner, self._name, self.ex, self._lander.put)
        except StoppedError:
            return
        except (OSError, StreamerError) as e:
            if not self._room.stopping:
                self._rare("ERROR", "Connection dropped due to", e)


def build(parsed: Parsed, context: BuildContext) -> SocketServerInput:
    """Take the fields; it listens once it is opened."""
    label = parsed[ADDRESS_CACHE]
    cache = context.resource(Kind.CACHE, label) if label else None
    scanner = build_scanner(parsed, context)
    return SocketServerInput(parsed, scanner, cache, context.component.label)
