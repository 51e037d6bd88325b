"""Says of every event in which windows it must be, or why it must have been dropped.

Written from the rules of windows by event time alone; nothing of the product is imported. What it
is told besides the events is how the stream was cut into micro-batches, since in several
partitions that decides what is late: T and the offsets, as Spark has written them down.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field

from tests.proof.generator import Event

Window = tuple[int, int, str]
"""Start and end in Unix ns, and key; 0 for a bound that windows of a kind do not have."""


@dataclass(frozen=True)
class MicroBatch:
    """One micro-batch.

    Attributes:
        time: T, Unix ns.
        ends: by partition, the offset before which everything was taken in.
        start: differs for every start of the program.
        backlog: what waited when the program was started is not all taken in yet.
        recorded: what the machine's clock showed, Unix ns; it may run backwards.
        busy: from when to when the stream itself was at work since the one before, in parts, Unix
            ns; nothing where that was too short to matter.
    """

    time: int
    ends: Mapping[int, int]
    start: str = ""
    backlog: bool = False
    recorded: int = 0
    busy: tuple[tuple[int, int], ...] = ()


@dataclass(frozen=True)
class Rules:
    """Of the windows, all in ns: `every` is `size` for tumbling ones."""

    size: int
    every: int
    lateness: int
    max_ahead: int | None = None

    def windows(self, at: int, key: str) -> list[Window]:
        """Return the windows that hold a time: all starts s with s <= at < s + size."""
        start = at - at % self.every
        found = []
        while start + self.size > at:
            found.append((start, start + self.size, key))
            start -= self.every
        return found


@dataclass
class Expected:
    """What must have come of the events.

    Attributes:
        closed: the ids in each window that has closed, by partition in arrival order.
        open: the same of windows that are still open.
        dropped: the reason by id.
        taken: how many were put into at least one window.
    """

    closed: dict[Window, list[list[int]]] = field(default_factory=dict)
    open: dict[Window, dict[int, list[int]]] = field(default_factory=dict)
    dropped: dict[int, str] = field(default_factory=dict)
    taken: int = 0


def replay(
    sent: Mapping[tuple[int, int], Event],
    cuts: Sequence[MicroBatch],
    rules: Rules,
    gone: Collection[tuple[int, int]] = (),
) -> Expected:
    """Replay the events.

    Args:
        sent: by partition and offset.
        cuts: the micro-batches, in order.
        rules: of the windows.
        gone: partitions and offsets that there is nothing at.
    """
    found = Expected()
    clock: int | None = None
    at_offset: dict[int, int] = {}
    now = 0
    for cut in cuts:
        now = max(now, cut.time)
        newest = clock
        for partition in sorted(cut.ends):
            # The stream clock before an event: earlier micro-batches, and its own partition.
            before = clock
            for offset in range(at_offset.get(partition, 0), cut.ends[partition]):
                if (partition, offset) not in gone:
                    before = _take(found, sent[partition, offset], partition, before, now, rules)
            at_offset[partition] = max(at_offset.get(partition, 0), cut.ends[partition])
            if before is not None:
                newest = before if newest is None else max(newest, before)
        clock = newest
        for window in [w for w in found.open if _is_closed(w, clock, rules)]:
            if window in found.closed:
                raise AssertionError(f"the oracle itself opened {window} again")
            found.closed[window] = list(found.open.pop(window).values())
    return found


def _is_closed(window: Window, clock: int | None, rules: Rules) -> bool:
    return clock is not None and clock >= window[1] + rules.lateness


def _take(
    found: Expected, one: Event, partition: int, clock: int | None, now: int, rules: Rules
) -> int | None:
    """Put an event where it belongs; return the clock after it."""
    if one.at is None:
        found.dropped[one.id] = "timestamp"
        return clock
    if rules.max_ahead is not None and one.at > now + rules.max_ahead:
        found.dropped[one.id] = "future"
        return clock
    windows = [w for w in rules.windows(one.at, one.key) if not _is_closed(w, clock, rules)]
    if not windows:
        found.dropped[one.id] = "late"
        return clock
    for window in windows:
        found.open.setdefault(window, {}).setdefault(partition, []).append(one.id)
    found.taken += 1
    return one.at if clock is None else max(clock, one.at)
