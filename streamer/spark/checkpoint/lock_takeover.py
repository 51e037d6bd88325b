"""Taking over from another program: wait for its lock, and end what a kill has left of it."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Final

from streamer.spark.checkpoint.directory_lock import DirectoryLock

JVM_GRACE_S: Final = 5.0
"""Seconds for the JVM of a program that was killed to end by itself."""


class LockTakeover:
    """A wait for a lock. The lock is free only when the program and its JVM are both gone."""

    def __init__(self, lock: DirectoryLock, clock: Callable[[], float] = time.monotonic) -> None:
        """Wait for a lock.

        Args:
            lock: the lock.
            clock: gives seconds.
        """
        self._lock = lock
        self._clock = clock
        self._since: dict[int, float] = {}

    def attempt(self) -> tuple[bool, frozenset[int]]:
        """Take the lock if it is free; to be called again and again.

        A program that is stopped, or hangs, is not gone: it keeps the lock.

        Returns:
            Whether it was taken, and the processes that were ended because they had it still.
        """
        if self._lock.acquire():
            return True, frozenset()
        # The signature is younger than what is seen of others: whoever takes the lock signs it,
        # and has not had it for long enough to be ended before that.
        holders = self._lock.holder_pids() if self._lock.is_owner_dead() else frozenset()
        now = self._clock()
        self._since = {pid: self._since.get(pid, now) for pid in holders}
        late = [pid for pid, since in self._since.items() if now - since >= JVM_GRACE_S]
        return False, frozenset(pid for pid in late if self._lock.kill_holder(pid))
