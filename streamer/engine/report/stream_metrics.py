"""The figures of a stream on the driver: what its workers counted and timed, and its snapshot."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import orjson

from streamer.core.component_stats import bucket_of
from streamer.engine.report.latency import LatencyHistogram, LatencySnapshot
from streamer.engine.report.result_frame import GAUGE_MARK, PEAK_MARK
from streamer.plan import Plan

SeriesKey = tuple[str, tuple[tuple[str, str], ...]]
"""A metric's name, and its labels with their values, sorted."""

EVENT_TIME: Final = "event_time"
"""The event time, Unix ns, of the newest of the last messages of a micro-batch's pieces."""

_DROPPED_FROM_WINDOWS: Final = frozenset({"expired", "incomplete"})
"""Why messages are dropped that windows had taken; all others never were in any."""


def series_key(name: str, labels: Mapping[str, str]) -> SeriesKey:
    """Return what a figure is kept under."""
    return name, tuple(sorted(labels.items()))


class StreamMetrics:
    """Counts and times since the start of the program. Others may ask while they are added to.

    Attributes:
        counts: counters and gauges, by name and labels.
        peaks: the largest values of the micro-batch in hand, by name and labels.
    """

    def __init__(self, now: Callable[[], float] = time.monotonic) -> None:
        """Begin at nothing; `now` is a clock that never runs backwards, seconds."""
        self.counts: Counter[SeriesKey] = Counter()
        self.peaks: dict[SeriesKey, int] = {}
        self._latencies: dict[SeriesKey, LatencyHistogram] = {}
        self._now = now

    def count(self, name: str, labels: Mapping[str, str], by: int = 1) -> None:
        """Add to a counter."""
        self.counts[series_key(name, labels)] += by

    def set(self, name: str, labels: Mapping[str, str], value: float | None) -> None:
        """Set a gauge; None removes it."""
        if value is None:
            self.counts.pop(series_key(name, labels), None)
        else:
            self.counts[series_key(name, labels)] = value  # type: ignore[assignment]

    def time(self, name: str, labels: Mapping[str, str], ns: int) -> None:
        """Add one time, ns."""
        self._latency_of(name, labels).add(ns, [(bucket_of(ns), 1)], self._now())

    def add_counts(self, body: bytes) -> dict[str, int]:
        """Add a frame of counts; return what has been added, by name alone."""
        added: Counter[str] = Counter()
        for name, by, labels, *how in orjson.loads(body):
            if how == [GAUGE_MARK]:
                self.counts[series_key(name, labels)] = by
                continue
            if how == [PEAK_MARK]:
                key = series_key(name, labels)
                self.peaks[key] = max(self.peaks.get(key, by), by)
                continue
            self.count(name, labels, by)
            added[name] += by
        return added

    def add_timings(self, body: bytes) -> None:
        """Add a frame of times."""
        for name, total, buckets, labels in orjson.loads(body):
            pairs = [(int(bucket), number) for bucket, number in buckets.items()]
            self._latency_of(name, labels).add(total, pairs, self._now())

    def times(self) -> dict[SeriesKey, LatencySnapshot]:
        """Return all times."""
        now = self._now()
        return {key: timing.times(now) for key, timing in dict(self._latencies).items()}

    def _latency_of(self, name: str, labels: Mapping[str, str]) -> LatencyHistogram:
        return self._latencies.setdefault(series_key(name, labels), LatencyHistogram())


Counts = Mapping[tuple[str, tuple[tuple[str, str], ...]], int]


@dataclass(frozen=True)
class Snapshot:
    """The state of a stream after a micro-batch.

    Attributes:
        messages: messages taken in: since the checkpoint's beginning with windows, else since
            the start of the program.
        open_windows: how many windows are open.
        held: messages in open windows.
        next_close: when the next one closes, Unix ns, or None.
        dropped: messages dropped, by reason.
        ended: the input has ended.
        batch: number of the newest micro-batch; -1 before the first.
        size: bytes of the payloads in open windows, and of the state by key.
        closed: windows that each key has of its own and that came out, since the checkpoint's
            beginning.
        closed_until: every window that ends at or before it has closed, Unix ns; None before the
            first.
        clock_source: the partition or input that the clock waits for; empty where it waits for
            none.
        clock_ahead: how far the source that is the furthest is beyond the clock, ns.
        state_keys: keys of which the pipeline keeps something, and rows of a joined table.
        by_buffer: of several buffers, the state of each by its label; empty for one buffer.
    """

    messages: int = 0
    open_windows: int = 0
    held: int = 0
    next_close: int | None = None
    dropped: Mapping[str, int] = field(default_factory=dict)
    ended: bool = False
    batch: int = -1
    size: int = 0
    closed: int = 0
    closed_until: int | None = None
    clock_source: str = ""
    clock_ahead: int = 0
    state_keys: int = 0
    by_buffer: Mapping[str, Snapshot] = field(default_factory=dict)

    @classmethod
    def of(cls, statuses: Iterable[Mapping[str, Any]], counts: Counts, batch: int) -> Snapshot:
        """Add up the shards' statuses and the counts that no shard keeps."""
        statuses = list(statuses)
        dropped: Counter[str] = Counter()
        messages = 0
        for (name, labels), number in counts.items():
            if name == "input_received" and not labels:
                messages += number
            elif name == "input_dropped":
                reason = dict(labels).get("reason", "")
                dropped[reason] += number
                messages += number if reason not in _DROPPED_FROM_WINDOWS else 0
        for status in statuses:
            counters = status.get("counters", {})
            lost = counters.get("dropped", {})
            dropped.update(lost)
            # Each of several buffers behind the input takes all of its messages.
            if status.get("takes_input", True):
                messages += sum(counters.get(name, 0) for name in ("taken", "failed", "filtered"))
                messages += sum(
                    number for reason, number in lost.items() if reason not in _DROPPED_FROM_WINDOWS
                )
        closed_until = [status.get("closed_until") for status in statuses]
        known = [end for end in closed_until if end is not None]
        due = [s["next_due"] for s in statuses if s.get("next_due") is not None]
        # All shards see the same clocks.
        holder = next((one for s in statuses if (one := s.get("clock_holder"))), None) or {}
        return cls(
            messages=messages,
            open_windows=_open_windows(statuses),
            held=sum(status.get("held", 0) for status in statuses),
            next_close=min(due) if due else None,
            dropped=dict(dropped),
            ended=bool(statuses) and all(status["ended"] for status in statuses),
            batch=batch,
            size=sum(
                (status.get("held_bytes") or 0) + status.get("state_bytes", 0)
                for status in statuses
            ),
            closed=sum(map(_closed_key_windows, statuses)),
            closed_until=min(known) if known and len(known) == len(closed_until) else None,
            clock_source=holder.get("source", ""),
            clock_ahead=holder.get("ahead", 0),
            state_keys=sum(
                status.get("state_keys", 0) + (status.get("table_rows") or 0) for status in statuses
            ),
            by_buffer=_split_by_buffer(statuses, batch),
        )


def _split_by_buffer(statuses: list[Mapping[str, Any]], batch: int) -> dict[str, Snapshot]:
    """Return the state of each of several buffers, by its label."""
    by_label: dict[str, list[Mapping[str, Any]]] = {}
    for status in statuses:
        if label := status.get("buffer"):
            unlabelled = {name: status[name] for name in status if name != "buffer"}
            by_label.setdefault(label, []).append(unlabelled)
    return {label: Snapshot.of(mine, {}, batch) for label, mine in by_label.items()}


def _open_windows(statuses: Iterable[Mapping[str, Any]]) -> int:
    """Add up the windows: those of a grid are the same in all shards, those of keys are not."""
    statuses = list(statuses)
    ends = {
        (status.get("buffer"), window["end"])
        for status in statuses
        for window in status.get("open", ())
    }
    return len(ends) + sum(status.get("open_windows") or 0 for status in statuses)


def _closed_key_windows(status: Mapping[str, Any]) -> int:
    """Return how many windows of keys a shard has emitted."""
    if status.get("open_windows") is None:
        return 0
    counters: Mapping[str, int] = status.get("counters", {})
    return counters.get("emitted_windows", 0)


Status = Mapping[str, Any]
"""What a shard says after a micro-batch, see `engine.release`."""


def has_ended(plan: Plan, statuses: Sequence[Status]) -> bool:
    """Return whether the input has ended and all windows that are to come out have done so."""
    if len(statuses) < max(plan.shard_count, 1) or not all(one["ended"] for one in statuses):
        return False
    if plan.buffers:
        return not any(one.get("open", 0) for one in statuses if not one["keeps"])
    keeps = plan.window is not None and plan.window.end_of_input == "keep"
    return keeps or not any(status.get("open", 0) for status in statuses)


def newest_window_end(statuses: Sequence[Status]) -> int | None:
    """Return the end of the newest window that any shard knows, Unix ns; None without one."""
    ends = [status.get("newest_end") for status in statuses]
    return max((end for end in ends if end is not None), default=None)
