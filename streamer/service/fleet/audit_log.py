"""Log of deploys, with user and time: a line of JSON for each, synced to the disk."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import orjson

from streamer.core.disk import sync_data
from streamer.core.log_format import LogLine
from streamer.core.timestamps import format_rfc3339


class AuditLog:
    """The audit log. What is written never has a config in it, nor a secret."""

    def __init__(self, path: Path, log: LogLine, clock: Callable[[], int]) -> None:
        """Open the file.

        Args:
            path: the file, which is appended to.
            log: gets a line for each as well.
            clock: the wall clock, Unix ns.
        """
        self._file = os.open(path, os.O_CREAT | os.O_WRONLY | os.O_APPEND, 0o600)
        self._log = log
        self._clock = clock
        self._lock = threading.Lock()

    def record(self, author: str, action: str, **facts: Any) -> None:
        """Note what somebody has done."""
        line = {"time": format_rfc3339(self._clock()), "author": author, "action": action, **facts}
        with self._lock:
            os.write(self._file, orjson.dumps(line) + b"\n")
            sync_data(self._file)
        self._log("INFO", "Audit", {"author": author, "action": action, **facts})

    def close(self) -> None:
        """Close the file."""
        os.close(self._file)
