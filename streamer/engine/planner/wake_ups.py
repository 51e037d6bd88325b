"""Wake-ups of the planner: datagrams on the loopback interface, for which it waits in the kernel.

A wake-up says nothing but "poll now". It is sent after what it is about was written, and the
planner takes all that have come before it polls: what is written during a poll is a wake-up that
the next wait finds. One that is lost costs no more than the longest wait (`MAX_WAIT_S`).

Datagrams, since a pipe or a socket in a directory is in the way of whoever copies a checkpoint,
cannot be made on every file system, and stays behind after a crash. They carry the start's secret:
nobody else's ends a wait.
"""

from __future__ import annotations

import select
import socket
import time
import weakref
from collections.abc import Callable
from contextlib import suppress
from typing import Final

MAX_WAIT_S: Final = 1.0
"""Seconds of a wait at most: the wall clock may be set, or the machine be suspended, meanwhile."""

_LOOPBACK: Final = "127.0.0.1"
_MAX_TOKEN_BYTES: Final = 64


def send_wake_up(port: int, token: bytes) -> None:
    """Wake who receives on a port of this machine; nobody may be there.

    Args:
        port: the receiver's; 0 for none.
        token: the secret of both.
    """
    if not port:
        return
    # A buffer that is full has a wake-up in it already.
    with suppress(OSError), socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sender:
        sender.setblocking(False)
        sender.sendto(token, (_LOOPBACK, port))


class WakeUpReceiver:
    """Receives the wake-ups of one planner.

    Attributes:
        port: where they are to be sent.
    """

    def __init__(self, token: bytes, now: Callable[[], float] = time.monotonic) -> None:
        """Listen on a free port.

        Args:
            token: a secret; what comes without it is no wake-up.
            now: a clock that never runs backwards, s.

        Raises:
            OSError: there is no loopback interface.
        """
        self._token, self._now = token, now
        self._socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self._socket.setblocking(False)
        self._socket.bind((_LOOPBACK, 0))
        self.port: int = self._socket.getsockname()[1]
        # Spark forgets the planner's reader without a word.
        weakref.finalize(self, self._socket.close)
        self._poll = select.poll()
        self._poll.register(self._socket, select.POLLIN)

    def close(self) -> None:
        """Free the port."""
        self._socket.close()

    def wake(self) -> None:
        """End the wait that lasts, or the next one; from any thread of this process."""
        send_wake_up(self.port, self._token)

    def drain(self) -> bool:
        """Take the wake-ups that have come; return whether there was one."""
        is_woken = False
        with suppress(BlockingIOError):
            while True:
                is_woken |= self._socket.recv(_MAX_TOKEN_BYTES) == self._token
        return is_woken

    def wait(self, seconds: float) -> bool:
        """Wait for a wake-up; take all there are, and return whether there was one."""
        until = self._now() + seconds
        while not (is_woken := self.drain()) and (left := until - self._now()) > 0:
            # In whole ms, rounded up: what is due is due when it returns.
            self._poll.poll(int(left * 1000) + 1)
        return is_woken
