"""The record of a key: its open windows, and the little else that its rules need to know."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any, Final

from streamer.window.contract.state_json import dump_state_json, load_state_json
from streamer.window.keyed.window_aggregate import WindowAggregate

NEVER: Final = -(1 << 66)
"""A clock that has seen nothing: it is before every time, and closes no window."""

FOREVER: Final = (1 << 63) - 1
"""A time that does not come."""


MessageRange = tuple[int, int, int, int]
"""Messages between two times and two arrival numbers, all inclusive."""


@dataclass(slots=True, eq=False)
class Window:
    """An open window of a key.

    Attributes:
        start: ns.
        end: ns, as the kind names it.
        first: the smallest arrival number in it.
        count: messages that were taken into it, as far as that is known.
        active: the running time at which the last one was taken, ns.
        cut: where a session is cut; None for nowhere, and for other kinds.
        changed: whether this micro-batch has changed it.
        fresh: the smallest arrival number of this micro-batch in it; `FOREVER` without any.
        excluded: arrivals of this micro-batch that lie in its bounds but found it closed.
        aggregate: what its messages come to; None when they are kept whole.
        last: the largest arrival number of this micro-batch in it; -1 without any.
    """

    start: int
    end: int
    first: int
    count: int
    active: int
    cut: int | None = None
    changed: bool = True
    fresh: int = FOREVER
    excluded: set[int] | None = None
    aggregate: WindowAggregate | None = None
    last: int = -1

    def add(self, arrival: int, active: int) -> None:
        """Take a message in, which is not before those of earlier micro-batches."""
        self.count += 1
        self.active = active
        self.changed = True
        self.last = arrival
        if arrival < self.fresh:
            self.fresh = arrival

    def last_arrival(self, since: int) -> int:
        """Return its largest arrival number; `since` is the micro-batch's first."""
        return self.last if self.last >= 0 else since - 1

    def exclude(self, arrival: int) -> None:
        """Leave a message out, which lies inside but came when the window had closed for it."""
        if self.excluded is None:
            self.excluded = set()
        self.excluded.add(arrival)


@dataclass(slots=True)
class FreshMessage:
    """A message of this micro-batch, as long as windows that are yet to open may hold it."""

    time: int
    arrival: int
    watermark: int


@dataclass(slots=True, eq=False)
class KeyState:
    """What is known of a key.

    Attributes:
        windows: the open ones, in no order.
        oldest: no message of the key that is held is older, ns; or an arrival number, where windows
            have no time.
        clock: its own clock, where each key has one; `NEVER` before its first event.
        clock_moved_at: T when its clock was last moved, ns.
        closed_bounds: bounds of windows that were closed before their clock closed them.
        marks: what a kind remembers of messages: time (or arrival) and smallest arrival.
        total: how many messages there were, where they are counted.
        fresh: messages of this micro-batch, where a kind asks for them.
    """

    windows: list[Window] = field(default_factory=list)
    oldest: int = FOREVER
    clock: int = NEVER
    clock_moved_at: int = 0
    closed_bounds: list[tuple[int, int]] = field(default_factory=list)
    marks: list[tuple[int, int]] = field(default_factory=list)
    total: int = 0
    fresh: list[FreshMessage] = field(default_factory=list)

    def excluded_ranges(self, window: Window, since: int) -> tuple[MessageRange, ...]:
        """Return where messages lie that are among a session's, and in another one.

        That one was closed to the session, which has reached over it afterwards.

        Args:
            window: the session.
            since: the micro-batch's first arrival number.
        """
        until = window.last_arrival(since)
        return tuple(
            (other.start, other.end, other.first, other.last_arrival(since))
            for other in self.windows
            if other.start <= window.end
            and window.start <= other.end
            and other.last_arrival(since) < until
        )

    def all_excluded_ranges(self, since: int) -> Mapping[Window, tuple[MessageRange, ...]]:
        """Return the same for all windows; nothing when none of them reaches over another.

        There may be thousands, which are not to be held against each other.
        """
        spans = sorted((window.start, window.end) for window in self.windows)
        if not any(start <= end for (_, end), (start, _) in pairwise(spans)):
            return {}
        return {window: self.excluded_ranges(window, since) for window in self.windows}

    @property
    def is_idle(self) -> bool:
        """Whether there is nothing to know of the key."""
        known = self.windows or self.closed_bounds or self.marks or self.total
        return not known and self.clock == NEVER

    def encode(self) -> bytes:
        """Write it down."""
        windows = [_window_to_fields(window) for window in self.windows]
        fields: list[Any] = [windows, self.oldest]
        if self.clock != NEVER or self.closed_bounds or self.marks or self.total:
            clock = None if self.clock == NEVER else self.clock
            fields += [clock, self.clock_moved_at, self.closed_bounds, self.marks, self.total]
        return dump_state_json(fields)

    @classmethod
    def decode(cls, data: bytes) -> KeyState:
        """Read what `encoded` wrote."""
        windows, oldest, *more = load_state_json(data)
        state = cls([_window_from_fields(*fields) for fields in windows], oldest)
        if more:
            clock, state.clock_moved_at, remembered, marks, state.total = more
            state.clock = NEVER if clock is None else clock
            state.closed_bounds = [(start, end) for start, end in remembered]
            state.marks = [(time, arrival) for time, arrival in marks]
        return state


def _window_to_fields(w: Window) -> list[Any]:
    fields = [w.start, w.end, w.first, w.count, w.active, w.cut]
    return fields if w.aggregate is None else [*fields, w.aggregate.to_fields()]


def _window_from_fields(
    start: int,
    end: int,
    first: int,
    count: int,
    active: int,
    cut: int | None,
    aggregate_fields: list[Any] | None = None,
) -> Window:
    known = None if aggregate_fields is None else WindowAggregate.from_fields(aggregate_fields)
    return Window(start, end, first, count, active, cut, changed=False, aggregate=known)
