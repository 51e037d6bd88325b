"""Channels of the planner: the offset, which a replay reads again, and hints, which may be lost.

The offset of a micro-batch has all that a replay must see again, as Spark's log has it. Hints go
both ways between the driver and the process that plans micro-batches.

When a stream is started with another mapping, windows that are open were folded for the one before,
and finish on it. Until the driver knows how far these reach, messages are kept whole; those are
folded for the mapping of their window when it closes. From then on, later windows fold for the new
mapping. All this is in the offsets, so that a replay folds the same.

Every process that plans micro-batches imports this: it must stay free of what a mapping needs.
"""

from __future__ import annotations

import json
import threading
import uuid
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final, Generic, NamedTuple, Self, TypeVar

from streamer.connectors.kafka.input.opened_input import Offsets
from streamer.core.errors import StreamerError
from streamer.engine.planner.wake_ups import WakeUpReceiver, send_wake_up
from streamer.engine.report.batch_work import BatchWork
from streamer.sdk.input.replayable import FileExtent, Offset
from streamer.window import MicroBatchInfo
from streamer.window.settings.back_pressure import BackPressure

_VERSION: Final = 1
"""Of the JSON form; a version is never written again with another meaning of a key."""


class AggregatesFrom(NamedTuple):
    """The windows that aggregate for a mapping, by the mapping's identity.

    Attributes:
        identity: the mapping's; None when no window was ever folded, so that any may.
        after: event times, ns, up to this one belong to windows that were begun under another
            mapping; None when there are none.
    """

    identity: str | None
    after: int | None


FROM_THE_START: Final = AggregatesFrom(None, None)


def next_aggregates_from(
    before: AggregatesFrom, identity: str, newest_end: int | None, known: bool
) -> AggregatesFrom:
    """Return what the offset of the next micro-batch says.

    Args:
        before: what the one before says.
        identity: of the mapping of this start; empty when windows keep messages.
        newest_end: the end of the newest window that holds messages, ns; None when none does.
        known: whether `newest_end` was told by a micro-batch of this start.
    """
    if not identity or before.identity == identity:
        return before
    if before.identity is None:
        return AggregatesFrom(identity, None)
    return AggregatesFrom(identity, newest_end) if known else before


@dataclass(frozen=True, slots=True)
class MicroBatchOffset:
    """End of a micro-batch, and the decisions made when it was planned.

    Not to be confused with the position in one input (`streamer.sdk.input.replayable.Offset`),
    which is its `data`. It is planned before Spark writes it, and never decided again.

    Attributes:
        data: the position in the input.
        tick: how many due times of windows have passed, so that windows close without data.
        start_id: differs for every start of the program; empty before the first micro-batch.
        ended: the input is bounded, and this is its end.
        aggregates_from: the windows that aggregate for the mapping.
        lag: the input is behind.
        batch_time: the micro-batch's time, ns: when our source was polled; 0 before the first.
        pieces: how many tasks share the micro-batch; 0 for the plan's number.
        requested_at: when a micro-batch was requested last, Unix ns; 0 for never.
        pressure: what the micro-batch before took of the stream's own time, where that may be long.
        suspended: by how much time went on by itself since the micro-batch before, ns.
        backlog_ends: where Kafka ended at the start, until all before it is planned.
    """

    data: Offset
    tick: int = 0
    start_id: str = ""
    ended: bool = False
    aggregates_from: AggregatesFrom = FROM_THE_START
    lag: bool = False
    batch_time: int = 0
    pieces: int = 0
    requested_at: int = 0
    pressure: BackPressure | None = None
    suspended: int = 0
    backlog_ends: Sequence[Offsets] = ()

    def to_fields(self) -> dict[str, Any]:
        """Return the offset as a JSON object, without a check sum."""
        rare = {
            "woken": self.requested_at,
            "pressure": self.pressure and self.pressure.to_fields(),
            "stood": self.suspended,
            "backlog_ends": self.backlog_ends,
        }
        return {
            "version": _VERSION,
            "data": self.data,
            "tick": self.tick,
            "start": self.start_id,
            "ended": self.ended,
            "folded": self.aggregates_from,
            "lag": self.lag,
            "time": self.batch_time,
            "pieces": self.pieces,
            **{name: value for name, value in rare.items() if value},
        }

    @classmethod
    def from_fields(cls, fields: Mapping[str, Any]) -> Self:
        """Return the offset that a JSON object describes; what is not in it has its default.

        Offsets of 0.1 and 0.2 have no version.

        Raises:
            StreamerError: a later version has written it.
            ValueError: it is something else.
        """
        try:
            version, pressure = fields.get("version", 0), fields.get("pressure")
            if version <= _VERSION:
                return cls(
                    data=fields.get("data", {}),
                    tick=fields.get("tick", 0),
                    start_id=fields.get("start", ""),
                    ended=fields.get("ended", False),
                    aggregates_from=AggregatesFrom(*fields.get("folded", FROM_THE_START)),
                    lag=fields.get("lag", False),
                    # A micro-batch that a former version planned may come again.
                    batch_time=int(fields.get("time", fields.get("floor", 0))),
                    pieces=fields.get("pieces", 0),
                    requested_at=fields.get("woken", 0),
                    pressure=None if pressure is None else BackPressure.from_fields(pressure),
                    suspended=fields.get("stood", 0),
                    backlog_ends=fields.get("backlog_ends", ()),
                )
        except (AttributeError, TypeError) as e:
            raise ValueError(f"not the offset of a micro-batch: {e}") from None
        raise StreamerError(
            f"the checkpoint has an offset of version {version}, expected at most {_VERSION}: "
            "start the newer streamer that wrote it"
        )

    def to_json(self) -> str:
        """Return the offset as JSON, for tasks."""
        return json.dumps(self.to_fields())

    @classmethod
    def from_json(cls, text: str) -> Self:
        """Return the offset that JSON describes (see `from_fields`)."""
        return cls.from_fields(json.loads(text))

    def to_start_fields(self, has_same_state: bool) -> dict[str, Any]:
        """Return the part of the offset, as JSON, from which another generation goes on.

        Args:
            has_same_state: whether it goes on with the open windows too, and so with what these
                aggregate for. The clock does not run backwards in any case.
        """
        fields: dict[str, Any] = {"data": self.data}
        if self.batch_time:
            fields["time"] = self.batch_time
        if has_same_state:
            fields["folded"] = self.aggregates_from
        return fields

    def batch_info(
        self, ends: Sequence[Offsets] = (), sources: tuple[str, ...] = ()
    ) -> MicroBatchInfo:
        """Return the facts about the micro-batch for shards.

        Args:
            ends: where it ends in Kafka, for each of the inputs.
            sources: the partitions or inputs that the clock waits for.
        """
        return MicroBatchInfo(
            self.batch_time,
            self.start_id,
            backlog=is_before(ends, self.backlog_ends),
            ended=self.ended,
            lag=self.lag,
            pressure=self.pressure,
            suspended=self.suspended,
            sources=sources,
        )


def is_before(ends: Sequence[Offsets], later: Sequence[Offsets]) -> bool:
    """Return whether anything lies between two positions in the Kafka inputs of a stream.

    What only one of them knows does not count: a partition has come meanwhile, or is gone.

    Args:
        ends: the one, for each of the inputs.
        later: the other.
    """
    return any(
        at < beyond.get(topic, {}).get(partition, at)
        for known, beyond in zip(ends, later, strict=False)
        for topic, partitions in known.items()
        for partition, at in partitions.items()
    )


@dataclass(frozen=True)
class DriverHints:
    """Hints of the driver to the planner.

    Attributes:
        due: when the next window is due, ns; None when none is open.
        has_newest_end: whether the newest end of the windows is known in this start.
        newest_end: the newest end of the windows when this start began, ns; None when there is
            none.
        min_interval: the shortest time between two micro-batches where cores are few, ns.
        event_lag: how far event times are behind the time of micro-batches, ns.
        requested_at: when a micro-batch was requested last though there may be no message, Unix
            ns; it grows, and is 0 for never.
        tasks: how many tasks can run at once, which on a cluster changes with its workers; None
            where the plan knows it.
        work: the stream's own time in the micro-batch delivered last; None when none took long.
        is_stopping: whether no further micro-batch is to be started.
        follower: Spark's checkpoint of a stream that reads the same input, which keeps what that
            one still needs; empty for none.
    """

    due: int | None = None
    has_newest_end: bool = False
    newest_end: int | None = None
    min_interval: int = 0
    event_lag: int = 0
    requested_at: int = 0
    tasks: int | None = None
    work: BatchWork | None = None
    is_stopping: bool = False
    follower: str = ""

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
        is_behind: whether more waited then than one micro-batch takes.
        extent: the place in its files of the micro-batch planned last; None without files.
        wake_port: the port of this machine at which the planner receives wake-ups; 0 before.
    """

    trouble: str = ""
    is_lost: bool = False
    backlog: int = 0
    is_behind: bool = False
    extent: FileExtent | None = None
    wake_port: int = 0

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

    def __init__(
        self,
        path: Path,
        kind: type[Hints],
        start_id: str = "",
        on_change: Callable[[], None] = lambda: None,
    ) -> None:
        """Take the file and the kind of its hints; without a start it is closed until `begin`.

        Args:
            path: the file.
            kind: the class of the hints.
            start_id: the start whose hints these are.
            on_change: called when other hints are written; a pickled copy calls nothing.
        """
        self._path = path
        self._on_change = on_change
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
        self._on_change()

    @property
    def start_id(self) -> str:
        """The start whose hints these are; empty before the first."""
        return self._start_id

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
    replay does not need them. The planner has a pickled copy, which is of the same start. A hint of
    the driver wakes the planner (`streamer.engine.planner.wake_ups`).

    Attributes:
        driver: the hints that the driver writes.
        planner: the hints that the planner writes.
    """

    def __init__(self, directory: Path) -> None:
        """Take the directory; it is made by `clear`."""
        self._directory = directory
        self.driver = HintDocument(
            directory / "driver.json", DriverHints, on_change=self.wake_planner
        )
        self.planner = HintDocument(directory / "planner.json", PlannerHints)

    def clear(self) -> None:
        """Begin a start of the query: forget the hints of an earlier one."""
        self._directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        for path in self._directory.iterdir():
            path.unlink()
        start_id = uuid.uuid4().hex
        self.driver.begin(start_id)
        self.planner.begin(start_id)

    def receive_wake_ups(self) -> WakeUpReceiver:
        """Begin to receive wake-ups, in the planner; until then there is nothing to wake."""
        receiver = WakeUpReceiver(self._token)
        self.planner.update(wake_port=receiver.port)
        return receiver

    def wake_planner(self) -> None:
        """Have the planner poll now: data has come, or a hint has changed."""
        send_wake_up(self.planner.read().wake_port, self._token)

    @property
    def _token(self) -> bytes:
        return self.planner.start_id.encode()

    def stop(self) -> None:
        """Request that no further micro-batch is started; the driver has no other hint then."""
        self.driver.update(is_stopping=True)
        self.driver.close()
