"""Reports to the driver how much a running task has read of its input.

Counting costs an addition for each few dozen messages. Who sends is a thread of its own, which
begins when the task has run for half a second: a driver whose name is resolved slowly holds no
task up.
"""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from contextvars import ContextVar
from typing import Final

from streamer.engine.report.task_log_channel import encode_report

_REPORT_INTERVAL_S: Final = 0.5
_IDLE_REPORTS: Final = 6
"""Reports without anything new after which the thread ends: the task is done, or waits."""


class ReadingReporter:
    """Counts what one task reads, and reports it to an `TaskLogReceiver` at most twice a second.

    Attributes:
        messages: read so far.
    """

    def __init__(
        self,
        address: str,
        batch: int,
        task: int,
        now: Callable[[], float] = time.monotonic,
    ) -> None:
        """Begin with nothing.

        Args:
            address: an `TaskLogReceiver`'s.
            batch: the micro-batch's number.
            task: the task's number in it.
            now: a clock that never runs backwards, seconds.
        """
        self.messages = 0
        self._address = address
        self._batch = batch
        self._task = task
        self._now = now
        self._due = now() + _REPORT_INTERVAL_S
        self._is_sending = False
        self._before = 0
        self._block = 0
        self._block_messages = 0
        self._block_read = 0

    def begin_block(self, size: int, messages: int) -> None:
        """Begin the next block of a file; all before it is read.

        Args:
            size: bytes.
            messages: how many are in them.
        """
        self._before += self._block
        self._block, self._block_messages, self._block_read = size, messages, 0

    def add(self, messages: int) -> None:
        """Count messages that were read, and dealt with by the processors of the task."""
        self.messages += messages
        self._block_read += messages
        if not self._is_sending and self._now() >= self._due:
            self._is_sending = True
            threading.Thread(target=self._send, daemon=True, name="reading").start()

    @property
    def size(self) -> int:
        """Bytes of files that were read: of a block that is in hand the share of its messages."""
        if not self._block_messages:
            return self._before
        read = min(self._block_read, self._block_messages)
        return self._before + self._block * read // self._block_messages

    def _send(self) -> None:
        host, port, token = self._address.split(":")
        idle, sent = 0, -1
        with (
            suppress(OSError),
            socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sender,
        ):
            sender.connect((host, int(port)))
            while idle < _IDLE_REPORTS:
                if self.messages == sent:
                    idle += 1
                else:
                    idle, sent = 0, self.messages
                    body = encode_report(token, self._batch, self._task, sent, self.size)
                    # Nobody listens any more: the driver has gone on.
                    with suppress(ConnectionRefusedError):
                        sender.send(body)
                time.sleep(_REPORT_INTERVAL_S)
        self._due = self._now() + _REPORT_INTERVAL_S
        self._is_sending = False


REPORTER: Final[ContextVar[ReadingReporter | None]] = ContextVar("reporter", default=None)
"""Counts for the task in hand; None where nobody listens. It is set when each task begins."""
