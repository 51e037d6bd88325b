"""Log lines and progress of running tasks, which reach the driver at once.

All else that a task says travels with its results, when it is done. A task whose output fails is
not done, however long that takes; it sends what it waits for to the driver over UDP, which may
lose a line, but holds nobody up. In the same way a task sends how much it has read so far.
"""

from __future__ import annotations

import hmac
import secrets
import socket
import threading
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any, Final

import orjson

from streamer.core.json.dump import dump_json
from streamer.core.log_format import LogLine

_MAX_DATAGRAM_BYTES: Final = 8 << 10
_FIRST_LINE_DELAY_S: Final = 1.0
_MAX_SILENCE_S: Final = 60.0

_READ_REPORT: Final = "read"
"""Stands where a line has its level."""

ReportProgress = Callable[[int, int, int, int], None]
"""Takes a micro-batch's number, a task's number in it, and messages and bytes that it has read."""


def encode_report(token: str, batch: int, task: int, messages: int, size: int) -> bytes:
    """Return what an `TaskLogReceiver` takes for a report of what a task has read."""
    return orjson.dumps([token, _READ_REPORT, batch, task, messages, size])


class TaskLogReceiver:
    """Receives, on the driver, log lines and progress of a stream's tasks.

    Attributes:
        address: where tasks say it, for `TaskLogSender`.
    """

    def __init__(
        self,
        on_line: LogLine,
        on_report: ReportProgress = lambda batch, task, messages, size: None,
        *,
        local: bool = True,
    ) -> None:
        """Begin to listen.

        Args:
            on_line: is given level, text and fields, in a thread of its own.
            on_report: is given what tasks have read, in the same thread.
            local: whether all tasks run on this machine.
        """
        self._token = secrets.token_hex(16)
        self._on_line = on_line
        self._on_report = on_report
        self._socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self._socket.bind(("127.0.0.1" if local else "", 0))
        host = "127.0.0.1" if local else socket.gethostname()
        self.address = f"{host}:{self._socket.getsockname()[1]}:{self._token}"
        threading.Thread(target=self._listen, daemon=True, name="live").start()

    def close(self) -> None:
        """Listen no more."""
        with suppress(OSError):
            # A thread that waits would not hear that the socket is closed.
            self._socket.shutdown(socket.SHUT_RD)
        self._socket.close()

    def _listen(self) -> None:
        with suppress(OSError):
            while data := self._socket.recv(_MAX_DATAGRAM_BYTES):
                # Anybody may send something here.
                with suppress(ValueError, TypeError):
                    token, level, *values = orjson.loads(data)
                    if not hmac.compare_digest(token, self._token):
                        continue
                    if level == _READ_REPORT:
                        self._on_report(*values)
                    else:
                        self._on_line(level, *values)


class TaskLogSender:
    """Sends, in a task, a line about what it waits for: not at once, and then ever more seldom."""

    def __init__(self, address: str, now: Callable[[], float]) -> None:
        """Take a `TaskLogReceiver`'s address, empty for none, and a monotonic clock."""
        self._address = address
        self._now = now
        self._next: float | None = None
        self._wait = _FIRST_LINE_DELAY_S

    def send(self, level: str, text: str, fields: Mapping[str, Any]) -> None:
        """Send a line, if it is time for one."""
        now = self._now()
        if self._next is None:
            self._next = now + self._wait
        if not self._address or now < self._next:
            return
        self._wait = min(self._wait * 2, _MAX_SILENCE_S)
        self._next = now + self._wait
        self.send_now(level, text, fields)

    def send_now(self, level: str, text: str, fields: Mapping[str, Any]) -> None:
        """Send a line at once: the next step may end the process that would report it otherwise."""
        if not self._address:
            return
        host, port, token = self._address.split(":")
        body = dump_json([token, level, text[: _MAX_DATAGRAM_BYTES // 8], dict(fields)])
        with suppress(OSError), socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as made:
            made.sendto(body, (host, int(port)))
