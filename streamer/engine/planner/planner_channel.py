"""Channel of hints between the driver and the process that plans micro-batches."""

from __future__ import annotations

import json
import threading
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Generic, Self, TypeVar

from streamer.engine.report.batch_work import BatchWork
from streamer.sdk.input.replayable import FileExtent


@dataclass(frozen=True)
class DriverHints:
    """Hints of the driver to the planner.

    Attributes:
        due: when the next window is due, ns; None when none is open.
        has_newest_end: whether the newest end of the windows is known in this start.
        newest_end: the newest end of the windows when this start began, ns; None when there is
            none.
        planned_ends: where the newest planned micro-batch ends in each Kafka input; none before the
            first.
        poll_interval: the pause between two polls without data, s.
        min_wait: how long data waits at least, s: longer than configured where cores are few.
        requested_at: when a micro-batch was requested last though there may be no message, Unix
            ns; it grows, and is 0 for never.
        tasks: how many tasks can run at once, which on a cluster changes with its workers; None
            where the plan knows it.
        work: the stream's own time in the micro-batch delivered last; None when none took long.
        is_stopping: whether no further micro-batch is to be started.
    """

    due: int | None = None
    has_newest_end: bool = False
    newest_end: int | None = None
    planned_ends: Sequence[Mapping[str, Any]] = field(default_factory=list)
    poll_interval: float = 0.0
    min_wait: float = 0.0
    requested_at: int = 0
    tasks: int | None = None
    work: BatchWork | None = None
    is_stopping: bool = False

    @classmethod
    def from_fields(cls, fields: Mapping[str, Any]) -> Self:
        """Return the hints that have these attributes in JSON."""
        work = fields["work"]
        return cls(**{**fields, "work": work and BatchWork(*work)})


@dataclass(frozen=True)
class PlannerHints:
    """Hints of the planner to the driver.

    Attributes:
        trouble: why no micro-batch starts, in one line; empty when all is well.
        is_lost: whether that is for good: something that is to be read is gone.
        backlog: how many messages waited when the source was polled last.
        extent: the place in its files of the micro-batch planned last; None without files.
    """

    trouble: str = ""
    is_lost: bool = False
    backlog: int = 0
    extent: FileExtent | None = None

    @classmethod
    def from_fields(cls, fields: Mapping[str, Any]) -> Self:
        """Return the hints that have these attributes in JSON."""
        extent = fields["extent"]
        return cls(**{**fields, "extent": extent and FileExtent(*extent)})


Hints = TypeVar("Hints", DriverHints, PlannerHints)


class HintDocument(Generic[Hints]):
    """Hints of one process, which alone writes them; a JSON file that is replaced as a whole.

    Each start of a query has hints of its own: those of another start are not read.
    """

    def __init__(self, path: Path, kind: type[Hints], start_id: str = "") -> None:
        """Take the file and the kind of its hints; without a start it is closed until `begin`."""
        self._path = path
        self._kind: type[Hints] = kind
        self._lock = threading.Lock()
        self.begin(start_id)

    def __reduce__(self) -> tuple[Any, ...]:
        return HintDocument, (self._path, self._kind, self._start_id)

    def begin(self, start_id: str) -> None:
        """Begin the hints of a start; none of them is set yet."""
        with self._lock:
            self._start_id = start_id
            self._is_open = bool(start_id)
            self._hints: Hints = self._kind()

    def update(self, **changes: Any) -> None:
        """Change some hints, from any thread; a closed document stays as it is.

        Raises:
            OSError: the file cannot be written.
        """
        with self._lock:
            hints = replace(self._hints, **changes)
            if not self._is_open or hints == self._hints:
                return
            draft = self._path.with_suffix(".tmp")
            draft.write_text(json.dumps({"start": self._start_id, "hints": vars(hints)}))
            draft.replace(self._path)
            self._hints = hints

    def close(self) -> None:
        """Ignore every later update: another query may go on with the file."""
        with self._lock:
            self._is_open = False

    def read(self) -> Hints:
        """Return the newest hints of this start; all have their defaults before the first."""
        try:
            document = json.loads(self._path.read_bytes())
        except (FileNotFoundError, ValueError):
            return self._kind()
        if document["start"] != self._start_id:
            return self._kind()
        return self._kind.from_fields(document["hints"])


class PlannerChannel:
    """Two files by which the driver and the process that plans micro-batches talk.

    They are hints: what they make happen is written to Spark's log before it counts, so that a
    replay does not need them. The planner has a pickled copy, which is of the same start.

    Attributes:
        driver: the hints that the driver writes.
        planner: the hints that the planner writes.
    """

    def __init__(self, directory: Path) -> None:
        """Take the directory; it is made by `clear`."""
        self._directory = directory
        self.driver = HintDocument(directory / "driver.json", DriverHints)
        self.planner = HintDocument(directory / "planner.json", PlannerHints)

    def clear(self) -> None:
        """Begin a start of the query: forget the hints of an earlier one."""
        self._directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        for path in self._directory.iterdir():
            path.unlink()
        start_id = uuid.uuid4().hex
        self.driver.begin(start_id)
        self.planner.begin(start_id)

    def stop(self) -> None:
        """Request that no further micro-batch is started; the driver has no other hint then."""
        self.driver.update(is_stopping=True)
        self.driver.close()
