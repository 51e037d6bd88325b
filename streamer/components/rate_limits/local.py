"""`local`: so many accesses in a time, for all workers of a machine together.

"The local rate limit is a simple X every Y type rate limit that can be shared across any number of
components within the pipeline but does not support distributed rate limits". A stream has several
worker processes; they count in a small file that they lock for it, so that the limit is theirs
together.
"""

from __future__ import annotations

import fcntl
import os
import struct
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Final

from streamer.core.durations import SECOND
from streamer.core.execution import Execution
from streamer.sdk.rate_limit import COUNT, INTERVAL, LIMIT_FIELDS
from streamer.sdk.spec import BuildContext, Example, Kind, ParsedFields, Spec

SPEC: Final = Spec(
    Kind.RATE_LIMIT,
    "local",
    "Allows a number of accesses in a time, for all workers of a machine together.",
    description=(
        "An interval begins with the first access, and the next one with the first access "
        "after its end. On a cluster each machine has its own limit; use `redis` for one "
        "limit of all machines."
    ),
    fields=(*LIMIT_FIELDS,),
    examples=(
        Example(
            "Ten messages a second",
            "pipeline:\n"
            "  processors:\n"
            "    - rate_limit:\n"
            "        resource: slow\n"
            "rate_limit_resources:\n"
            "  - label: slow\n"
            "    local:\n"
            "      count: 10\n"
            "      interval: 1s\n",
        ),
    ),
    categories=("Local",),
    limits="one for each machine",
)

_STATE: Final = struct.Struct("<qq")


class LocalRateLimit:
    """Counts in a file: what is left of the interval, and when it began."""

    def __init__(self, count: int, interval: int, path: Callable[[], Path]) -> None:
        """Take the limit.

        Args:
            count: how many accesses there may be in an interval.
            interval: nanoseconds.
            path: gives the file, which all who share the limit must know; asked at the first use.
        """
        self._count = count
        self._interval = interval
        self._path = path
        self._file: int | None = None
        # A lock on the file is one of the process: threads need one of their own.
        self._lock = threading.Lock()

    def access(self, ex: Execution) -> int:
        """Return 0, or for how many nanoseconds there is no access."""
        with self._lock:
            if self._file is None:
                self._file = os.open(self._path(), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
            fcntl.flock(self._file, fcntl.LOCK_EX)
            try:
                return self._take_access(self._file, ex.elapsed())
            finally:
                fcntl.flock(self._file, fcntl.LOCK_UN)

    def _take_access(self, file: int, now: int) -> int:
        state = os.pread(file, _STATE.size, 0)
        left, began = _STATE.unpack(state) if len(state) == _STATE.size else (self._count, now)
        if left <= 0:
            wait: int = began + self._interval - now
            if wait > 0:
                return wait
            left, began = self._count, now
        os.pwrite(file, _STATE.pack(left - 1, began), 0)
        return 0

    def __del__(self) -> None:
        if self._file is not None:
            os.close(self._file)


def build(parsed: ParsedFields, context: BuildContext) -> LocalRateLimit:
    """Take the limit; its file is named after where it stands in the config."""
    name = f"rate_limit.{context.component.label or context.component.path}"
    interval = SECOND if parsed[INTERVAL] is None else parsed[INTERVAL]
    return LocalRateLimit(parsed[COUNT], interval, lambda: context.shared_directory() / name)
