"""The inside of a child process that runs queries: its requests, and its bounds.

A query may take more memory than DuckDB counts: texts that functions make are not in its limit. So
the process has a limit of the system's, and is of no use to anybody else when it ends by it.
"""

from __future__ import annotations

import os
import resource
import select
import socket
import threading
from collections.abc import Callable
from typing import Any, Final

from streamer.connectors.duckdb.frames import receive_frame, send_frame

Answer = Callable[[dict[str, Any], bytearray], tuple[dict[str, Any], Any]]
"""Returns the answer to a request: its header, and bytes."""

_MEMORY_FILE: Final = "/proc/self/statm"
_OOM_SCORE_FILE: Final = "/proc/self/oom_score_adj"
_FIRST_VICTIM: Final = "1000"


class MemoryBound:
    """Bounds the memory that this process may allocate, beyond what it has at first."""

    def __init__(self) -> None:
        """Measure what the process has."""
        self._own_bytes = _measure_own_bytes()

    def set(self, extra_bytes: int) -> None:
        """Let the process have so many bytes more, where the system can bound them."""
        if self._own_bytes is None:
            return
        limit = self._own_bytes + extra_bytes
        _, hard = resource.getrlimit(resource.RLIMIT_DATA)
        soft = limit if hard == resource.RLIM_INFINITY else min(limit, hard)
        resource.setrlimit(resource.RLIMIT_DATA, (soft, hard))


def serve_requests(answer: Answer) -> None:
    """Answer the frames on the standard input until the other side is gone."""
    connection = socket.socket(fileno=os.dup(0))
    threading.Thread(target=_end_with, args=(connection,), daemon=True).start()
    try:
        while True:
            header, body = receive_frame(connection)
            reply, content = answer(header, body)
            del body
            send_frame(connection, reply, content)
            del content
    except (EOFError, OSError):
        # The process that asks has ended.
        os._exit(0)


def renounce_rights(niceness: int) -> None:
    """Let this process write no file, leave no core, come last for a core, and go first.

    Args:
        niceness: how far others come before it, 0 to 19.
    """
    for limit in (resource.RLIMIT_FSIZE, resource.RLIMIT_CORE):
        resource.setrlimit(limit, (0, 0))
    os.nice(niceness)
    try:
        with open(_OOM_SCORE_FILE, "w") as file:
            # When the machine lacks memory the system ends this process before its streams.
            file.write(_FIRST_VICTIM)
    except OSError:
        pass  # Not this system's, or not allowed: the limits hold without it.


def _measure_own_bytes() -> int | None:
    """Return what the process has allocated; None where the system does not say."""
    try:
        with open(_MEMORY_FILE) as file:
            return int(file.read().split()[5]) * resource.getpagesize()
    except OSError:
        return None


def _end_with(connection: socket.socket) -> None:
    """End this process when the other side is gone, also in the middle of a query."""
    poll = select.poll()
    poll.register(connection, select.POLLHUP | getattr(select, "POLLRDHUP", 0))
    poll.poll()
    os._exit(0)
