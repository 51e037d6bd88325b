"""The door to a child process that runs queries: frames go in, frames come out, in bounded time."""

from __future__ import annotations

import os
import select
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from typing import Any, Final

from streamer.connectors.duckdb.errors import QueryError
from streamer.connectors.duckdb.frames import receive_frame, send_frame

_END_TIMEOUT_S: Final = 5.0
_POLL_INTERVAL_S: Final = 0.1


class ChildTimeoutError(Exception):
    """The process has not answered in time, and was ended."""


class ChildAbandonedError(Exception):
    """Nobody waits for the answer any more; the process was ended."""


class ChildEndedError(Exception):
    """The process has ended in the middle of a request.

    Attributes:
        how: its signal or its exit code, in words.
    """

    def __init__(self, how: str) -> None:
        """Take how it has ended."""
        super().__init__(how)
        self.how = how


class ChildProcess:
    """A process of this program that answers one request at a time; its caller has the lock."""

    def __init__(self, module: str) -> None:
        """Take the module that the process runs; nothing is started yet."""
        self._module = module
        self._process: subprocess.Popen[bytes] | None = None
        self._connection: socket.socket | None = None
        self._owner = 0

    @property
    def process_id(self) -> int | None:
        """The id of the process, as long as it runs."""
        return None if self._process is None else self._process.pid

    def start(self) -> bool:
        """Start the process unless it runs; return whether it was started.

        Raises:
            QueryError: it cannot be started.
        """
        if self._owner != os.getpid():
            # Of the process that this one was forked from.
            self._process = self._connection = None
        if self._process is not None and self._process.poll() is not None:
            self.end()
        if self._process is not None:
            return False
        ours, theirs = socket.socketpair()
        try:
            self._process = subprocess.Popen(
                # -P: a file of the working directory is no module of the process.
                [sys.executable, "-P", "-m", self._module],
                stdin=theirs.fileno(),
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                env=_make_environment(),
            )
        except OSError as error:
            ours.close()
            raise QueryError(f"the process of the query cannot be started: {error}") from None
        finally:
            theirs.close()
        self._connection, self._owner = ours, os.getpid()
        return True

    def request(
        self,
        header: dict[str, Any],
        body: Any = b"",
        *,
        seconds: float,
        max_bytes: int | None = None,
        is_abandoned: Callable[[], bool] | None = None,
    ) -> tuple[dict[str, Any], bytearray]:
        """Return the answer to a request: its header, and bytes.

        Args:
            header: what JSON has.
            body: bytes, or what has a buffer of them.
            seconds: how long the answer may take.
            max_bytes: bytes that the answer has at most; None for any number.
            is_abandoned: returns whether the answer is of no use any more.

        Raises:
            ChildTimeoutError: it took longer; the process was ended.
            ChildAbandonedError: the answer is of no use any more; the process was ended.
            ChildEndedError: the process has ended by itself, or its answer is too large.
        """
        connection = self._connection
        assert connection is not None
        deadline = time.monotonic() + seconds
        connection.settimeout(seconds)
        try:
            send_frame(connection, header, body)
            if is_abandoned is not None:
                _wait_for_answer(connection, deadline, is_abandoned)
                connection.settimeout(max(deadline - time.monotonic(), _POLL_INTERVAL_S))
            return receive_frame(connection, max_bytes)
        except TimeoutError:
            self.end()
            raise ChildTimeoutError from None
        except (EOFError, OSError):
            raise ChildEndedError(self._end_early()) from None
        except BaseException:
            # What is still to be read would be taken for the next answer.
            self.end()
            raise

    def end(self) -> None:
        """End the process, if it runs and is this process's own."""
        process, connection = self._process, self._connection
        self._process = self._connection = None
        if connection is not None:
            connection.close()
        if process is not None and self._owner == os.getpid():
            process.kill()
            process.wait(_END_TIMEOUT_S)

    def _end_early(self) -> str:
        """Return how the process has ended, in words."""
        process = self._process
        assert process is not None
        try:
            code = process.wait(_END_TIMEOUT_S)
        except subprocess.TimeoutExpired:
            code = 0
        self.end()
        return f"signal {-code}" if code < 0 else f"exit code {code}"

    def __del__(self) -> None:
        self.end()


def _make_environment() -> dict[str, str]:
    """Return the environment of a process: that of this one may hold secrets."""
    paths = [path or os.getcwd() for path in sys.path]
    environment = {"PYTHONPATH": os.pathsep.join(paths), "LANG": "C.UTF-8"}
    if libraries := os.environ.get("LD_LIBRARY_PATH"):
        environment["LD_LIBRARY_PATH"] = libraries
    return environment


def _wait_for_answer(
    connection: socket.socket, deadline: float, is_abandoned: Callable[[], bool]
) -> None:
    poll = select.poll()
    poll.register(connection, select.POLLIN)
    while not poll.poll(_POLL_INTERVAL_S * 1000):
        if is_abandoned():
            raise ChildAbandonedError
        if time.monotonic() > deadline:
            raise TimeoutError
