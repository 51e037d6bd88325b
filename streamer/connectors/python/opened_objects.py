"""Objects of users' classes: opened once for each worker process, closed with it or by a deploy."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, Final

from streamer.connectors.python.target import LoadedCode
from streamer.core.process_end import run_at_process_end

_CLOSE_WAIT_S: Final = 2.0

Key = tuple[str, str]
"""The stream, and the path of the component."""


@dataclass(slots=True)
class OpenObject:
    """An object that is open.

    Attributes:
        identity: tells objects apart that are not alike: the digest of the code, and args.
        process: its method.
        lock: held while it is called, by one thread at a time.
    """

    identity: tuple[str, str]
    process: Callable[..., Any]
    lock: threading.Lock = field(default_factory=threading.Lock)

    def close(self) -> None:
        """Close the object, if it can be closed; what it raises is of no use to anybody."""
        close = getattr(getattr(self.process, "__self__", None), "close", None)
        if close is None:
            return
        # It is closed in spite of a call that does not end.
        is_free = self.lock.acquire(timeout=_CLOSE_WAIT_S)
        with suppress(Exception):
            close()
        if is_free:
            self.lock.release()


class _OpenObjects:
    """The objects of this process."""

    def __init__(self) -> None:
        self._lock = threading.RLock()
        self._objects: dict[Key, OpenObject] = {}

    def get(self, key: Key, loaded: LoadedCode) -> OpenObject:
        source = loaded.source
        args = repr(sorted(source.args.items(), key=lambda item: item[0]))
        identity = (source.text.digest, f"{source.function}{args}")
        with self._lock:
            existing = self._objects.get(key)
            if existing is not None and existing.identity == identity:
                return existing
            if existing is not None:
                self.close(key)
            if not self._objects:
                run_at_process_end(self.close_all)
            made = self._objects[key] = OpenObject(identity, loaded.make())
            return made

    def close(self, key: Key) -> None:
        with self._lock:
            existing = self._objects.pop(key, None)
        if existing is not None:
            existing.close()

    def close_all(self) -> None:
        for key in list(self._objects):
            self.close(key)

    def reset_after_fork(self) -> None:
        """Forget objects that belong to the process that was forked from."""
        self._lock = threading.RLock()
        self._objects = {}


_OBJECTS: Final = _OpenObjects()
os.register_at_fork(after_in_child=_OBJECTS.reset_after_fork)


def open_object(key: Key, loaded: LoadedCode) -> OpenObject:
    """Return the open object of a component of a stream; it is opened the first time.

    One whose code or args have changed is closed, and another one opened.

    Raises:
        CodeError: it cannot be opened.
    """
    return _OBJECTS.get(key, loaded)


def close_object(key: Key) -> None:
    """Close the object of a component, if there is one; the next call opens another one."""
    _OBJECTS.close(key)
