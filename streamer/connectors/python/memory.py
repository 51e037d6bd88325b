"""Memory that users' code leaves behind in a worker, and the limit of it."""

from __future__ import annotations

import gc
import os
import sys
from typing import Final

_STATM: Final = "/proc/self/statm"


def read_resident_bytes() -> int:
    """Return how much memory this process has, bytes; 0 where the system does not tell."""
    if sys.platform != "linux":
        return 0
    with open(_STATM) as statm:
        return int(statm.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


class MemoryGuard:
    """Measures the growth of this process since code was loaded.

    Attributes:
        limit: the most growth, bytes.
    """

    def __init__(self, limit: int) -> None:
        """Take the limit; 0 for none."""
        self.limit = limit
        self._before = 0

    def measure_growth(self) -> int:
        """Return how much the process has grown, bytes; 0 where there is no limit."""
        if not self.limit:
            return 0
        now = read_resident_bytes()
        if not self._before:
            self._before = now
        return now - self._before

    def reset(self) -> int:
        """Collect garbage, and return by how much the process is still larger than before.

        It is measured anew from here.
        """
        gc.collect()
        now = read_resident_bytes()
        kept, self._before = now - self._before, now
        return kept
