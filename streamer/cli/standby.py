"""The time before a service has the lock of its streams: it is refused, or it stands by."""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Final
from urllib.parse import urlsplit

from streamer.config import Config
from streamer.core.errors import StreamerError
from streamer.core.log_format import LogLine

if TYPE_CHECKING:
    from streamer.spark.checkpoint.directory_lock import DirectoryLock

_LOCK_TIMEOUT_S: Final = 10.0
_POLL_INTERVAL_S: Final = 0.25
_WILDCARD_HOSTS: Final = frozenset({"0.0.0.0", "::"})


def open_lock(directory: Path) -> DirectoryLock:
    """Open the lock of all streams, in a directory that only the program's user can read.

    Raises:
        StreamerError: it cannot be written.
    """
    from streamer.spark.checkpoint.directory_lock import DirectoryLock

    try:
        lock = DirectoryLock(directory)
        directory.chmod(0o700)
    except OSError as e:
        raise StreamerError(
            f"the directory {directory} cannot be written: {e}; name another one with "
            "--checkpoints (where that is a URL: by XDG_STATE_HOME)"
        ) from None
    return lock


def take_lock(lock: DirectoryLock, checkpoints: str) -> None:
    """Take the lock, from a program that is about to end at the most.

    Args:
        lock: of all streams.
        checkpoints: where theirs are.

    Raises:
        StreamerError: another service runs these streams.
    """
    from streamer.spark.checkpoint.directory_lock import acquire_within

    if not acquire_within(lock, _LOCK_TIMEOUT_S):
        raise StreamerError(
            f"another service runs the streams of {checkpoints}: "
            f"{lock.holder() or 'it has no name'}; stop it, wait for its end with --standby, or "
            "name another directory with --checkpoints"
        )


class Standby:
    """A service that waits until it is the active one, and answers meanwhile."""

    def __init__(self, root: Config, lock: DirectoryLock, log: LogLine) -> None:
        """Take what it needs.

        Args:
            root: the service's config.
            lock: what the active one has.
            log: takes log lines.
        """
        from streamer.spark.checkpoint.lock_takeover import LockTakeover

        self._root = root
        self._lock = lock
        self._log = log
        self._takeover = LockTakeover(lock)
        self._serving = ExitStack()
        self._has_lock = False

    def wait(
        self, stop_requested: threading.Event, warm: Callable[[], None] = lambda: None
    ) -> bool:
        """Wait for the lock.

        Args:
            stop_requested: set when the program is to stop.
            warm: does what a takeover is not to wait for; not called when the lock is free.

        Returns:
            Whether it has the lock; False when the program is to stop.

        Raises:
            StreamerError: the server cannot listen.
        """
        if self._try_lock():
            return True
        self._serve()
        self._log("INFO", "Standing by", {"active": self._describe_active()})
        warm()
        self._log("INFO", "Ready to take over", {})
        while not stop_requested.wait(_POLL_INTERVAL_S):
            before = self._describe_active()
            if self._try_lock():
                self._log("WARN", "Taking over", {"from": before})
                return True
        return False

    def close(self) -> None:
        """Answer no more; the service listens at the same address from now on."""
        self._serving.close()

    def _try_lock(self) -> bool:
        self._has_lock, ended = self._takeover.attempt()
        for pid in ended:
            text = "Killed a process that a service which is gone had left behind"
            self._log("WARN", text, {"pid": pid, "service": self._describe_active()})
        return self._has_lock

    def _describe_active(self) -> str:
        if self._has_lock:
            return "nobody yet: this one is taking over"
        return str(self._lock.holder() or "another one, which has left no name")

    def _serve(self) -> None:
        if not self._root.http["enabled"]:
            return
        from streamer.service.api.server import HttpServer
        from streamer.service.api.standby_application import make_standby_application

        server = HttpServer(
            self._root.http, make_standby_application(self._root, self._describe_active)
        )
        self._serving.callback(server.stop)
        self._log("INFO", "Listening for HTTP requests", {"url": server.url})


def resolve_public_url(url: str) -> str:
    """Return the address of a server as others may know it: with this machine's name."""
    parts = urlsplit(url)
    if parts.hostname not in _WILDCARD_HOSTS:
        return url
    return f"{parts.scheme}://{socket.gethostname()}:{parts.port}"
