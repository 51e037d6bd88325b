"""Limits the connections of all servers of this process, so that streams keep their descriptors.

A descriptor that a stranger holds by an open connection is one that a stream lacks for its files.
So there is a bound on connections in all, which leaves a reserve below `ulimit -n`, and one for
each address. At the bound, a connection without a request in hand makes room for a newcomer, the
one that has been still for longest; where all are busy, the newcomer is closed.

A server of HTTP has limits of time besides: for the first request's head, and for an answer that
nobody reads.
"""

from __future__ import annotations

import asyncio
import errno
import logging
import resource
import socket
import threading
import time
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from typing import Any, Final

_log: Final = logging.getLogger(__name__)

MAX_CONNECTIONS: Final = 10_000
HEAD_TIMEOUT_S: Final = 10.0
TLS_HANDSHAKE_TIMEOUT_S: Final = 10.0
WRITE_TIMEOUT_S: Final = 60.0
"""For so long an answer waits for its reader, who takes nothing of it."""

_RESERVED_DESCRIPTORS: Final = 256
_MAX_CLOSING: Final = 32
"""So many connections are on their way out at a time; each still has its descriptor."""


def default_limit(descriptors: int) -> int:
    """Return how many connections a process may have that may open so many descriptors."""
    reserve = max(min(_RESERVED_DESCRIPTORS, descriptors // 2), descriptors // 4)
    return max(min(descriptors - reserve, MAX_CONNECTIONS), 1)


class ConnectionSlot:
    """The place of one open connection.

    Attributes:
        address: the other side's, without its port; empty for a socket in the file system.
        active_at: when bytes came last, on a clock that never runs backwards, s.
        is_busy: tells whether it has a request in hand; such a one is not closed for another.
    """

    __slots__ = ("_close", "active_at", "address", "is_busy", "is_closing", "is_open")

    def __init__(self, address: str, close: Callable[[], None], is_busy: Callable[[], bool]):
        self.address = address
        self.active_at = time.monotonic()
        self.is_busy = is_busy
        self.is_open = True
        self.is_closing = False
        self._close = close

    def close(self) -> None:
        """Make the connection end, from any thread."""
        self.is_closing = True
        with suppress(OSError):
            self._close()


class ConnectionLimits:
    """The open connections of a process. Threads may share it.

    Attributes:
        total: how many there may be.
        per_address: how many of them from one address.
    """

    def __init__(self, total: int, per_address: int) -> None:
        """Begin with none."""
        self.total = total
        self.per_address = per_address
        self._slots: dict[ConnectionSlot, None] = {}
        self._by_address: Counter[str] = Counter()
        self._closing = 0
        self._lock = threading.Lock()

    def __len__(self) -> int:
        """Return how many connections are open."""
        return len(self._slots)

    def admit(
        self,
        address: str,
        close: Callable[[], None],
        is_busy: Callable[[], bool] = lambda: False,
    ) -> ConnectionSlot | None:
        """Take a newcomer, closing another connection for it if need be.

        Args:
            address: the newcomer's; empty for none.
            close: makes its connection end soon, from any thread.
            is_busy: tells whether it may not be closed for another one.

        Returns:
            Its place, which `release` frees; None when there is none.
        """
        with self._lock:
            full = len(self._slots) >= self.total
            of_address = self._by_address[address] if address else 0
            if full or (address and of_address >= self.per_address):
                victim = self._find_idlest(None if full else address)
                counts = len(self._slots), of_address
                if victim is None:
                    _log.warning(
                        "A connection was refused: %d are open, %d of them from %s, and all are "
                        "busy; raise http.max_connections or ulimit -n if they are wanted",
                        *(*counts, address or "a socket"),
                    )
                    return None
                _log.warning(
                    "A connection without a request was closed for another one: %d are open, %d "
                    "of them from %s",
                    *(*counts, address or "a socket"),
                )
                self._drop(victim)
                self._closing += 1
                victim.close()
            slot = ConnectionSlot(address, close, is_busy)
            self._slots[slot] = None
            if address:
                self._by_address[address] += 1
            return slot

    @property
    def is_clearing(self) -> bool:
        """Whether newcomers should wait until connections that end have ended."""
        return self._closing >= _MAX_CLOSING

    def release(self, slot: ConnectionSlot) -> None:
        """Give a place back: its connection is closed. It may be called more than once."""
        with self._lock:
            if not slot.is_open:
                return
            slot.is_open = False
            if slot.is_closing and slot not in self._slots:
                self._closing -= 1
            else:
                self._drop(slot)

    def _drop(self, slot: ConnectionSlot) -> None:
        del self._slots[slot]
        if slot.address:
            self._by_address[slot.address] -= 1
            if not self._by_address[slot.address]:
                del self._by_address[slot.address]

    def _find_idlest(self, address: str | None) -> ConnectionSlot | None:
        """Return what is closed first: of an address, else of the one with most connections."""
        idle = [one for one in self._slots if not one.is_busy()]
        if address is None and idle:
            # Who has most of all makes room, not the one probe of an orchestrator.
            busiest_address = max(
                {one.address for one in idle}, key=lambda one: self._by_address[one]
            )
            address = busiest_address
        return min(
            (one for one in idle if one.address == address),
            key=lambda one: one.active_at,
            default=None,
        )


_limits: ConnectionLimits | None = None
_limits_lock: Final = threading.Lock()


def process_limits() -> ConnectionLimits:
    """Return the limits of this process, which all its servers share."""
    global _limits
    with _limits_lock:
        if _limits is None:
            total = default_limit(resource.getrlimit(resource.RLIMIT_NOFILE)[0])
            _limits = ConnectionLimits(total, max(total // 2, 1))
        return _limits


def configure_limits(total: int | None, per_address: int | None) -> None:
    """Set the limits of this process.

    Args:
        total: connections in all; None for what the process's descriptors allow.
        per_address: of one address; None for half of all.
    """
    limits = process_limits()
    if total is not None:
        limits.total = total
    limits.per_address = per_address or max(limits.total // 2, 1)


class _Connection(socket.socket):
    """A connection that gives its place back when it is closed."""

    slot: ConnectionSlot
    limits: ConnectionLimits

    def close(self) -> None:
        self.limits.release(self.slot)
        super().close()


class Listener(socket.socket):
    """A socket that listens, and accepts no more connections than there may be."""

    limits: ConnectionLimits

    def accept(self) -> tuple[socket.socket, Any]:
        """Accept a connection; see `socket.accept`.

        Raises:
            BlockingIOError: there is none now.
        """
        while True:
            if self.limits.is_clearing:
                raise BlockingIOError(errno.EAGAIN, "connections are being closed")
            plain, where = super().accept()
            made = _Connection(plain.family, plain.type, plain.proto, fileno=plain.detach())
            slot = self.limits.admit(
                where[0] if isinstance(where, tuple) else "",
                lambda made=made: made.shutdown(socket.SHUT_RDWR),  # type: ignore[misc]
            )
            if slot is None:
                socket.socket.close(made)
                continue
            made.slot, made.limits = slot, self.limits
            return made, where


def make_listeners(
    host: str | None, port: int, limits: ConnectionLimits, *, reuse_port: bool = False
) -> list[Listener]:
    """Return sockets that are bound to all addresses of a host, for an event loop.

    Args:
        host: the host; None for all of the machine's addresses.
        port: the port; 0 for one that is free.
        limits: what connections are counted by.
        reuse_port: whether others may listen on the port as well.

    Raises:
        OSError: there is no such address, or it is taken.
    """
    addresses = socket.getaddrinfo(
        host or None, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
    )
    made: list[Listener] = []
    try:
        for family, _, _, _, where in dict.fromkeys(addresses):
            try:
                one = Listener(family, socket.SOCK_STREAM)
            except OSError:
                continue  # The machine has no addresses of this family.
            made.append(one)
            one.limits = limits
            one.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            if reuse_port:
                one.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
            if family == socket.AF_INET6:
                one.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
            try:
                one.bind(where)
            except OSError as error:
                if error.errno != errno.EADDRNOTAVAIL or len(addresses) == 1:
                    raise
                made.pop().close()
                continue
            one.setblocking(False)
    except OSError:
        for one in made:
            one.close()
        raise
    if not made:
        raise OSError(errno.EADDRNOTAVAIL, "Cannot assign requested address")
    return made


class ConnectionGuard(asyncio.Protocol):
    """Stands before aiohttp's handler of one connection, and ends it when its time is over."""

    def __init__(self, handler: Any) -> None:
        """Take the handler, a `RequestHandler`."""
        self._handler = handler
        self._slot: ConnectionSlot | None = None
        self._transport: asyncio.Transport | None = None
        self._head_timer: asyncio.TimerHandle | None = None
        self._write_timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Begin to wait for the first request's head."""
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        connection = getattr(transport.get_extra_info("socket"), "_sock", None)
        self._slot = getattr(connection, "slot", None)
        if self._slot is not None:
            self._slot.is_busy = self._is_busy
        self._head_timer = asyncio.get_running_loop().call_later(
            HEAD_TIMEOUT_S, self._on_head_timeout
        )
        self._handler.connection_made(transport)

    def data_received(self, data: bytes) -> None:
        """Pass bytes on, but for those that came before the end of a connection that was closed.

        A request among them would be taken, and nobody would hear that it was.
        """
        if self._slot is not None:
            if self._slot.is_closing:
                return
            self._slot.active_at = time.monotonic()
        self._handler.data_received(data)

    def eof_received(self) -> bool | None:
        """Pass the event on."""
        return self._handler.eof_received()  # type: ignore[no-any-return]

    def connection_lost(self, exc: Exception | None) -> None:
        """Pass the event on, and forget the timers."""
        for timer in (self._head_timer, self._write_timer):
            if timer is not None:
                timer.cancel()
        self._handler.connection_lost(exc)

    def pause_writing(self) -> None:
        """Begin to wait for a reader that reads nothing."""
        self._write_timer = asyncio.get_running_loop().call_later(WRITE_TIMEOUT_S, self._abort)
        self._handler.pause_writing()

    def resume_writing(self) -> None:
        """Stop waiting: it reads."""
        if self._write_timer is not None:
            self._write_timer.cancel()
        self._handler.resume_writing()

    def _is_busy(self) -> bool:
        """Return whether a request is in hand, also one that was read and has no task yet."""
        # aiohttp has no public words for it. Without a request yet, it only has not begun to wait.
        waiter = self._handler._waiter
        return bool(self._handler._request_count) and (waiter is None or waiter.done())

    def _on_head_timeout(self) -> None:
        if not self._handler._request_count:
            self._abort()

    def _abort(self) -> None:
        if self._transport is not None:
            self._transport.abort()
