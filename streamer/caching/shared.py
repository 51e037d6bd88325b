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

from streamer.caching import (
    Cache,
    CacheError,
    Call,
    Item,
    KeyAlreadyExistsError,
    KeyNotFoundError,
    Outcome,
    made,
)
from streamer.message import Execution

_SOCKET: Final = "caches"
_LONGEST_PATH: Final = 100
_LENGTH: Final = struct.Struct(">I")
_DONE, _NOT_FOUND, _EXISTS, _FAILED = range(4)
_PATIENCE: Final = 60.0


class Host:
    """Keeps caches, and answers who asks for them."""

    def __init__(self, directory: Path, find: Callable[[str], Cache]) -> None:
        """Begin to listen.

        Args:
            directory: what the processes of a run share; nobody else can read it.
            find: returns the cache of a label; called in several threads.

        Raises:
            OSError: there can be no socket.
        """
        self._find = find
        self._listening = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self._connected: set[socket.socket] = set()
        self._lock = threading.Lock()
        self._listening.bind(str(directory / _SOCKET))
        self._listening.listen(64)
        threading.Thread(target=self._accept, daemon=True, name="caches").start()

    def close(self) -> None:
        """End all conversations."""
        with suppress(OSError):
            self._listening.shutdown(socket.SHUT_RDWR)
        self._listening.close()
        with self._lock:
            for one in self._connected:
                with suppress(OSError):
                    one.shutdown(socket.SHUT_RDWR)

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                asking, _ = self._listening.accept()
                with self._lock:
                    self._connected.add(asking)
                threading.Thread(target=self._talk, args=(asking,), daemon=True).start()

    def _talk(self, asking: socket.socket) -> None:
        with asking, suppress(OSError, EOFError):
            while True:
                label, now, calls = _unpacked(_received(asking))
                ex = Execution(lambda now=now: now)  # type: ignore[misc]
                outcomes = [self._answered(label, Call(*call), ex) for call in calls]
                _send(asking, _packed(outcomes))
        with self._lock:
            self._connected.discard(asking)

    def _answered(self, label: str, call: Call, ex: Execution) -> tuple[int, bytes | str]:
        try:
            cache = self._find(label)
            return _DONE, made(cache, call, ex)
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
        self._host = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self._host.settimeout(_PATIENCE)
        try:
            self._host.connect(str(directory / _SOCKET))
        except OSError:
            self._host.close()
            raise

    def get(self, key: str, ex: Execution) -> bytes:
        """Return the value of a key."""
        return self._one(Call("get", key), ex)

    def set(self, key: str, value: bytes, ttl: int | None, ex: Execution) -> None:
        """Store a value."""
        self._one(Call("set", key, value, ttl), ex)

    def set_many(self, items: Mapping[str, Item], ex: Execution) -> None:
        """Store several values at once."""
        for outcome in self.ask([Call("set", key, *item) for key, item in items.items()], ex):
            if isinstance(outcome, CacheError):
                raise outcome

    def add(self, key: str, value: bytes, ttl: int | None, ex: Execution) -> None:
        """Store a value under a key that has none."""
        self._one(Call("add", key, value, ttl), ex)

    def delete(self, key: str, ex: Execution) -> None:
        """Forget a key."""
        self._one(Call("delete", key), ex)

    def ask(self, calls: Sequence[Call], ex: Execution) -> list[Outcome]:
        """Return what calls come to, which are made in order: they cost little more than one."""
        body = _packed((self._label, ex.now(), [tuple(call) for call in calls]))
        try:
            with self._lock:
                _send(self._host, body)
                found: Any = _unpacked(_received(self._host))
        except (OSError, EOFError) as error:
            away = CacheError(f"who keeps the cache does not answer: {error}")
            return [away for _ in calls]
        return [_outcome(*one) for one in found]

    def _one(self, call: Call, ex: Execution) -> bytes:
        (outcome,) = self.ask([call], ex)
        if isinstance(outcome, CacheError):
            raise outcome
        return outcome

    def __del__(self) -> None:
        self._host.close()


def _outcome(status: int, payload: bytes | str) -> Outcome:
    if status == _NOT_FOUND:
        return KeyNotFoundError()
    if status == _EXISTS:
        return KeyAlreadyExistsError()
    return CacheError(payload) if isinstance(payload, str) else payload


def host(directory: Path, find: Callable[[str], Cache]) -> Host | None:
    """Keep caches for all processes that share a directory; None where its path is too long."""
    if len(str(directory / _SOCKET)) > _LONGEST_PATH:
        return None
    return Host(directory, find)


def shared_cache(directory: Path, label: str) -> SharedCache | None:
    """Return a cache that is kept for all who share a directory; None when there is none."""
    if not (directory / _SOCKET).exists():
        return None
    try:
        return SharedCache(directory, label)
    except OSError:
        return None


def _packed(value: Any) -> bytes:
    import msgpack

    packed: bytes = msgpack.packb(value, unicode_errors="surrogateescape")
    return packed


def _unpacked(body: bytes) -> Any:
    import msgpack

    return msgpack.unpackb(body, use_list=False, unicode_errors="surrogateescape")


def _send(to: socket.socket, body: bytes) -> None:
    to.sendall(_LENGTH.pack(len(body)) + body)


def _received(of: socket.socket) -> bytes:
    (length,) = _LENGTH.unpack(_exactly(of, _LENGTH.size))
    return _exactly(of, length)


def _exactly(of: socket.socket, length: int) -> bytes:
    parts = []
    while length > 0:
        part = of.recv(min(length, 1 << 20))
        if not part:
            raise EOFError("the connection has ended")
        parts.append(part)
        length -= len(part)
    return b"".join(parts)
