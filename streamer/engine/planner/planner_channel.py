"""Channel of hints between the driver and the process that plans micro-batches."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from streamer.engine.report.batch_work import BatchWork
from streamer.sdk.input.replayable import FileExtent


class PlannerChannel:
    """Small files by which the driver and the process that plans micro-batches talk.

    They are hints: what they make happen is written to Spark's log before it counts, so that a
    replay does not need them.
    """

    def __init__(self, directory: Path) -> None:
        """Take the directory; it is made by `clear`."""
        self._directory = directory

    def clear(self) -> None:
        """Forget the hints of an earlier start."""
        self._directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        for path in self._directory.iterdir():
            path.unlink()

    def set_due(self, due: int | None) -> None:
        """Publish when the next window is due, ns; None when none is open."""
        self._write("due", due)

    def due(self) -> int | None:
        """Return when the next window is due, or None."""
        due: int | None = self._read("due")
        return due

    def set_newest_end(self, end: int | None) -> None:
        """Publish once in a start the newest end of its windows, ns; None when there is none."""
        self._write("newest", [end])

    def newest_end(self) -> tuple[bool, int | None]:
        """Return whether the newest end is known, and what it is."""
        entry = self._read("newest")
        return (False, None) if entry is None else (True, entry[0])

    def set_planned_ends(self, ends: Sequence[Mapping[str, Any]]) -> None:
        """Publish where the newest planned micro-batch ends in each Kafka input."""
        self._write("known", ends)

    def planned_ends(self) -> list[Mapping[str, Any]]:
        """Return where the newest micro-batch ends in each Kafka input; none before the first."""
        return self._read("known") or []

    def set_trouble(self, text: str, lost: bool = False) -> None:
        """Publish why no micro-batch starts, or that all is well when `text` is empty.

        Args:
            text: one line.
            lost: whether it is for good.
        """
        if (text, lost) != self.trouble():
            self._write("trouble", [text, lost])

    def trouble(self) -> tuple[str, bool]:
        """Return why no micro-batch starts, and whether that is for good."""
        text, lost = self._read("trouble") or ("", False)
        return text, lost

    def set_backlog(self, messages: int) -> None:
        """Publish how many messages waited when the source was polled last."""
        if messages != self.backlog():
            self._write("backlog", messages)

    def backlog(self) -> int:
        """Return how many messages waited when the source was looked at last."""
        return self._read("backlog") or 0

    def set_extent(self, extent: FileExtent | None) -> None:
        """Publish the place in its files of the micro-batch planned last; None without files."""
        self._write("extent", extent)

    def extent(self) -> FileExtent | None:
        """Return where in its files the micro-batch is that was planned last, or None."""
        entry = self._read("extent")
        return None if entry is None else FileExtent(*entry)

    def set_poll_interval(self, seconds: float) -> None:
        """Publish the pause between two polls without data, s."""
        self._write("pace", seconds)

    def poll_interval(self) -> float:
        """Return how long to rest between two looks that find nothing, s."""
        return float(self._read("pace") or 0.0)

    def set_min_wait(self, seconds: float) -> None:
        """Publish how long data waits at least, s: longer than configured where cores are few."""
        self._write("patience", seconds)

    def min_wait(self) -> float:
        """Return how long data may wait at least, s."""
        return float(self._read("patience") or 0.0)

    def request_batch(self, at: int) -> None:
        """Request a micro-batch though there may be no message; `at` grows, Unix ns."""
        self._write("woken", at)

    def requested_at(self) -> int:
        """Return when a micro-batch was asked for last, Unix ns; 0 for never."""
        return int(self._read("woken") or 0)

    def set_tasks(self, tasks: int) -> None:
        """Publish how many tasks can run at once, which on a cluster changes with its workers."""
        if tasks != self.tasks():
            self._write("tasks", tasks)

    def tasks(self) -> int | None:
        """Return how many tasks can run at once; None before the driver has published it."""
        tasks: int | None = self._read("tasks")
        return tasks

    def set_work(self, work: BatchWork) -> None:
        """Publish the stream's own time in the micro-batch delivered last."""
        self._write("work", work)

    def work(self) -> BatchWork | None:
        """Return the work of a micro-batch for which it took long; None when none did."""
        entry = self._read("work")
        return None if entry is None else BatchWork(*entry)

    def stop(self) -> None:
        """Request that no further micro-batch is started."""
        (self._directory / "stop").touch()

    def is_stopping(self) -> bool:
        """Return whether no further micro-batch is to be started."""
        return os.path.exists(self._directory / "stop")

    def _write(self, name: str, what: Any) -> None:
        draft = self._directory / f"{name}.tmp"
        draft.write_text(json.dumps(what))
        draft.replace(self._directory / name)

    def _read(self, name: str) -> Any:
        try:
            return json.loads((self._directory / name).read_text())
        except (FileNotFoundError, ValueError):
            return None
