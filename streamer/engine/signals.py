"""What the driver and the process that plans micro-batches tell each other."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from streamer.engine.work import BatchWork
from streamer.source.replayable import Extent


class Signals:
    """Small files by which the driver and the process that plans micro-batches talk.

    They are hints: what they make happen is written to Spark's log before it counts, so that a
    replay does not need them.
    """

    def __init__(self, directory: Path) -> None:
        """Take the directory; it is made by `clear`."""
        self._directory = directory

    def clear(self) -> None:
        """Forget what an earlier start said."""
        self._directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        for path in self._directory.iterdir():
            path.unlink()

    def set_due(self, due: int | None) -> None:
        """Say when the next window is due, ns; None when none is open."""
        self._say("due", due)

    def due(self) -> int | None:
        """Return when the next window is due, or None."""
        found: int | None = self._said("due")
        return found

    def set_newest(self, end: int | None) -> None:
        """Say once in a start how far its windows reach: the newest end, ns; None when none is."""
        self._say("newest", [end])

    def newest(self) -> tuple[bool, int | None]:
        """Return whether the newest end is known, and what it is."""
        found = self._said("newest")
        return (False, None) if found is None else (True, found[0])

    def set_known(self, ends: Sequence[Mapping[str, Any]]) -> None:
        """Say where the newest micro-batch that was planned ends in each Kafka input."""
        self._say("known", ends)

    def known(self) -> list[Mapping[str, Any]]:
        """Return where the newest micro-batch ends in each Kafka input; none before the first."""
        return self._said("known") or []

    def set_trouble(self, text: str, lost: bool = False) -> None:
        """Say why no micro-batch starts, or that all is well when `text` is empty.

        Args:
            text: one line.
            lost: whether it is for good.
        """
        if (text, lost) != self.trouble():
            self._say("trouble", [text, lost])

    def trouble(self) -> tuple[str, bool]:
        """Return why no micro-batch starts, and whether that is for good."""
        text, lost = self._said("trouble") or ("", False)
        return text, lost

    def set_backlog(self, messages: int) -> None:
        """Say how many messages waited when the source was looked at last."""
        if messages != self.backlog():
            self._say("backlog", messages)

    def backlog(self) -> int:
        """Return how many messages waited when the source was looked at last."""
        return self._said("backlog") or 0

    def set_extent(self, extent: Extent | None) -> None:
        """Say where in its files the micro-batch is that was planned last; None without files."""
        self._say("extent", extent)

    def extent(self) -> Extent | None:
        """Return where in its files the micro-batch is that was planned last, or None."""
        found = self._said("extent")
        return None if found is None else Extent(*found)

    def set_pace(self, seconds: float) -> None:
        """Say how long to rest between two looks that find nothing, s."""
        self._say("pace", seconds)

    def pace(self) -> float:
        """Return how long to rest between two looks that find nothing, s."""
        return float(self._said("pace") or 0.0)

    def set_patience(self, seconds: float) -> None:
        """Say how long data may wait at least, s: more than the config says where cores are few."""
        self._say("patience", seconds)

    def patience(self) -> float:
        """Return how long data may wait at least, s."""
        return float(self._said("patience") or 0.0)

    def set_woken(self, at: int) -> None:
        """Ask for a micro-batch though there may be no message; `at` grows, Unix ns."""
        self._say("woken", at)

    def woken(self) -> int:
        """Return when a micro-batch was asked for last, Unix ns; 0 for never."""
        return int(self._said("woken") or 0)

    def set_tasks(self, tasks: int) -> None:
        """Say how many tasks can run at once, which on a cluster changes with its workers."""
        if tasks != self.tasks():
            self._say("tasks", tasks)

    def tasks(self) -> int | None:
        """Return how many tasks can run at once; None when nobody has said it."""
        found: int | None = self._said("tasks")
        return found

    def set_work(self, work: BatchWork) -> None:
        """Say what the micro-batch that was delivered last took of the stream's own time."""
        self._say("work", work)

    def work(self) -> BatchWork | None:
        """Return it, of a micro-batch for which that was long; None when none was."""
        found = self._said("work")
        return None if found is None else BatchWork(*found)

    def stop(self) -> None:
        """Say that no further micro-batch is to be started."""
        (self._directory / "stop").touch()

    def stopping(self) -> bool:
        """Tell whether no further micro-batch is to be started."""
        return os.path.exists(self._directory / "stop")

    def _say(self, name: str, what: Any) -> None:
        draft = self._directory / f"{name}.tmp"
        draft.write_text(json.dumps(what))
        draft.replace(self._directory / name)

    def _said(self, name: str) -> Any:
        try:
            return json.loads((self._directory / name).read_text())
        except (FileNotFoundError, ValueError):
            return None
