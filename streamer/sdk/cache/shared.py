"""Caches in memory that all workers of a machine share: one process keeps them, others ask it.

A stream has several worker processes, and in Benthos a cache in memory is one for all. On a local
master the driver keeps such caches (`host`), and the workers ask it over a socket in the directory
that they share (`SharedCache`); so a key that one has added is there for all. On a cluster there is
no such process, and every worker keeps its own, of which lint warns.
"""

from __future__ import annotations

import socket
import struct
import threading
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

from streamer.core.execution import Execution
from streamer.sdk.cache import (
    Cache,
    CacheCall,
    CacheError,
    CacheItem,
    CallOutcome,
    KeyAlreadyExistsError,
    KeyNotFoundError,
    make_call,
)

_SOCKET: Final = "caches"
_MAX_PATH_CHARS: Final = 100
_LENGTH: Final = struct.Struct(">I")
_DONE, _NOT_FOUND, _EXISTS, _FAILED = range(4)
_REPLY_TIMEOUT_S: Final = 60.0


class CacheServer:
    """Keeps caches, and answers who asks for them."""

    def __init__(self, directory: Path, find: Callable[[str], Cache]) -> None:
        """Begin to listen.

        Args:
            directory: what the processes of a run share; nobody else can read it.
            find: returns the cache of a label; called in several threads.

        Raises:
            OSError: there can be no socket.
        """
        self._find_cache = find
        self._listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self._connections: set[socket.socket] = set()
        self._lock = threading.Lock()
        self._listener.bind(str(directory / _SOCKET))
        self._listener.listen(64)
        threading.Thread(target=self._accept_clients, daemon=True, name="caches").start()

    def close(self) -> None:
        """End all conversations."""
        with suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        with self._lock:
            for one in self._connections:
                with suppress(OSError):
                    one.shutdown(socket.SHUT_RDWR)

    def _accept_clients(self) -> None:
        with suppress(OSError):
            while True:
                client, _ = self._listener.accept()
                with self._lock:
                    self._connections.add(client)
                threading.Thread(target=self._serve_client, args=(client,), daemon=True).start()

    def _serve_client(self, client: socket.socket) -> None:
        with client, suppress(OSError, EOFError):
            while True:
                label, now, calls = _unpack(_receive(client))
                ex = Execution(lambda now=now: now)  # type: ignore[misc]
                outcomes = [self._run_call(label, CacheCall(*call), ex) for call in calls]
                _send(client, _pack(outcomes))
        with self._lock:
            self._connections.discard(client)

    def _run_call(self, label: str, call: CacheCall, ex: Execution) -> tuple[int, bytes | str]:
        try:
            cache = self._find_cache(label)
            return _DONE, make_call(cache, call, ex)
        except KeyNotFoundError:
            return _NOT_FOUND, b""
        except KeyAlreadyExistsError:
            return _EXISTS, b""
        except Exception as error:  # told where it was asked for
            return _FAILED, str(error) or type(error).__name__


class SharedCache:
    """A cache that another process of the machine keeps. Threads may share it."""

    def __init__(self, directory: Path, label: str) -> None:
        """Connect.

        Raises:
            OSError: nobody keeps caches there.
        """
        self._label = label
        self._lock = threading.Lock()
        self._server = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self._server.settimeout(_REPLY_TIMEOUT_S)
        try:
            self._server.connect(str(directory / _SOCKET))
        except OSError:
            self._server.close()
            raise

    def get(self, key: str, ex: Execution) -> bytes:
        """Return the value of a key."""
        return self._call(CacheCall("get", key), ex)

    def set(self, key: str, value: bytes, ttl: int | None, ex: Execution) -> None:
        """Store a value."""
        self._call(CacheCall("set", key, value, ttl), ex)

    def set_many(self, items: Mapping[str, CacheItem], ex: Execution) -> None:
        """Store several values at once."""
        for outcome in self.call_many(
            [CacheCall("set", key, *item) for key, item in items.items()], ex
        ):
            if isinstance(outcome, CacheError):
                raise outcome

    def add(self, key: str, value: bytes, ttl: int | None, ex: Execution) -> None:
        """Store a value under a key that has none."""
        self._call(CacheCall("add", key, value, ttl), ex)

    def delete(self, key: str, ex: Execution) -> None:
        """Forget a key."""
        self._call(CacheCall("delete", key), ex)

    def call_many(self, calls: Sequence[CacheCall], ex: Execution) -> list[CallOutcome]:
        """Return the results of calls, which are made in order: they cost little more than one."""
        body = _pack((self._label, ex.now(), [tuple(call) for call in calls]))
        try:
            with self._lock:
                _send(self._server, body)
                replies: Any = _unpack(_receive(self._server))
        except (OSError, EOFError) as error:
            away = CacheError(f"who keeps the cache does not answer: {error}")
            return [away for _ in calls]
        return [_parse_outcome(*one) for one in replies]

    def _call(self, call: CacheCall, ex: Execution) -> bytes:
        (outcome,) = self.call_many([call], ex)
        if isinstance(outcome, CacheError):
            raise outcome
        return outcome

    def __del__(self) -> None:
        self._server.close()


def _parse_outcome(status: int, payload: bytes | str) -> CallOutcome:
    if status == _NOT_FOUND:
        return KeyNotFoundError()
    if status == _EXISTS:
        return KeyAlreadyExistsError()
    return CacheError(payload) if isinstance(payload, str) else payload


def start_server(directory: Path, find: Callable[[str], Cache]) -> CacheServer | None:
    """Keep caches for all processes that share a directory; None where its path is too long."""
    if len(str(directory / _SOCKET)) > _MAX_PATH_CHARS:
        return None
    return CacheServer(directory, find)


def connect_shared_cache(directory: Path, label: str) -> SharedCache | None:
    """Return a cache that is kept for all who share a directory; None when there is none."""
    if not (directory / _SOCKET).exists():
        return None
    try:
        return SharedCache(directory, label)
    except OSError:
        return None


def _pack(value: Any) -> bytes:
    import msgpack

    packed: bytes = msgpack.packb(value, unicode_errors="surrogateescape")
    return packed


def _unpack(body: bytes) -> Any:
    import msgpack

    return msgpack.unpackb(body, use_list=False, unicode_errors="surrogateescape")


def _send(connection: socket.socket, body: bytes) -> None:
    connection.sendall(_LENGTH.pack(len(body)) + body)


def _receive(connection: socket.socket) -> bytes:
    (length,) = _LENGTH.unpack(_receive_exactly(connection, _LENGTH.size))
    return _receive_exactly(connection, length)


def _receive_exactly(connection: socket.socket, length: int) -> bytes:
    parts = []
    while length > 0:
        part = connection.recv(min(length, 1 << 20))
        if not part:
            raise EOFError("the connection has ended")
        parts.append(part)
        length -= len(part)
    return b"".join(parts)
