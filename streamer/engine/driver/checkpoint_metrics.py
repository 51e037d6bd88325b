"""Size of a checkpoint, and free space of its disk, for metrics."""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Callable
from pathlib import Path
from typing import Final

_SIZE_INTERVAL_S: Final = 60.0
"""Adding up some hundreds of files takes milliseconds, and some ten thousands a second."""


class CheckpointMetrics:
    """Measures one checkpoint when it is asked. Several threads may ask."""

    def __init__(
        self, directory: Path, *, whole: bool, now: Callable[[], float] = time.monotonic
    ) -> None:
        """Take the directory.

        Args:
            directory: on this machine.
            whole: whether all of the checkpoint is in it.
            now: a clock that never runs backwards, seconds.
        """
        self._directory = directory
        self._whole = whole
        self._now = now
        self._size = 0
        self._measured_at = float("-inf")

    def read_gauges(self) -> dict[str, float]:
        """Return `checkpoint_bytes`, unless it is elsewhere, and `checkpoint_free_bytes`."""
        gauges: dict[str, float] = {}
        try:
            gauges["checkpoint_free_bytes"] = shutil.disk_usage(self._directory).free
        except OSError:
            return gauges
        if self._whole:
            if self._now() - self._measured_at >= _SIZE_INTERVAL_S:
                self._measured_at = self._now()
                self._size = _directory_bytes(str(self._directory))
            gauges["checkpoint_bytes"] = self._size
        return gauges


def _directory_bytes(directory: str) -> int:
    """Return the bytes of all files below a directory; one that goes meanwhile counts as none."""
    total, left = 0, [directory]
    while left:
        try:
            with os.scandir(left.pop()) as entries:
                for entry in entries:
                    if entry.is_dir(follow_symlinks=False):
                        left.append(entry.path)
                    else:
                        total += entry.stat(follow_symlinks=False).st_size
        except OSError:
            continue
    return total
