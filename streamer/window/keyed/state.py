"""The record of a key: its open windows, and the clock and marks that its rules need."""

from __future__ import annotations

import base64
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from operator import attrgetter
from typing import Any, Final, NamedTuple

from streamer.window.keyed.window_aggregate import WindowAggregate
from streamer.window.state_store import dump_state_json, load_state_json

NEVER: Final = -(1 << 66)
"""A clock before the first event: it is before every time, and closes no window."""

FOREVER: Final = (1 << 63) - 1
"""The largest time in 64 bits: one that is never reached."""

MIN_TIME_NS: Final = -(1 << 63)
"""The least time in 64 bits."""

MessageRange = tuple[int, int, int, int]
"""Messages in a range of times and a range of arrival numbers: (low, high, first, last), all
inclusive."""


class EdgeMessage(NamedTuple):
    """The first or the last message of a window by event time.

    Attributes:
        time: its event time, ns.
        arrival: its arrival number.
        payload: its payload.
        meta: its metadata, as `encode_meta` wrote it.
    """

    time: int
    arrival: int
    payload: bytes
    meta: bytes

    def to_fields(self) -> list[Any]:
        """Return the message as plain values."""
        time, arrival, *texts = self
        return [time, arrival, *(base64.b64encode(text).decode() for text in texts)]

    @classmethod
    def from_fields(cls, fields: list[Any]) -> EdgeMessage:
        """Create the message from what `to_fields` returned."""
        time, arrival, *texts = fields
        return cls(time, arrival, *map(base64.b64decode, texts))


@dataclass(slots=True)
class WindowRun:
    """The windows of a key that are emitted one after another, with messages and without.

    Of a session, it is that of a key that is expected, until its first message comes.

    Attributes:
        next_start: start of the next window, ns.
        until: windows without messages that start at this time or later are not emitted, ns; of a
            session, the clock by which the first message must have come.
        last: the last message of the window before; None without one, or where none is needed.
    """

    next_start: int
    until: int
    last: EdgeMessage | None = None


@dataclass(slots=True, eq=False)
class Window:
    """An open window of a key.

    Attributes:
        start: ns; the first arrival number for count windows.
        end: ns, inclusive or not by the kind; the last arrival number for count windows.
        first: the smallest arrival number in it.
        count: number of its messages.
        active: the running time at which it got its last message, ns.
        cut: the time at which a session is cut, ns; None for no cut, and for other kinds.
        changed: whether this micro-batch has changed it.
        fresh: the smallest arrival number of this micro-batch in it; `FOREVER` without any.
        excluded: arrival numbers of this micro-batch in its bounds that were late for it.
        aggregate: the aggregate of its messages; None if they are kept.
        last: the largest arrival number of this micro-batch in it; -1 without any.
        edges: its first and last message by event time, where they stand in for others; else None.
        only: the arrival numbers of its messages, where not all in its bounds are; else None.
        reach: of a session whose messages bring their gaps, the time up to which another belongs
            to it, ns; None for others.
        offsets: of a count window, how many messages of its key were before its first one, and
            are when it is full; None for others.
        full_at: arrival number of the message that has closed a session by its number of messages;
            None for others.
        opener: of a window that an event has and that waits for the clock, the event's arrival
            number; None for others.
        is_muted: whether such a window is not emitted, but may begin a cadence.
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
    only: frozenset[int] | None = None
    reach: int | None = None
    edges: tuple[EdgeMessage, EdgeMessage] | None = None
    offsets: tuple[int, int] | None = None
    full_at: int | None = None
    opener: int | None = None
    is_muted: bool = False

    def add_edge(self, message: EdgeMessage) -> None:
        """Keep a message if it is the first or the last one by event time."""
        first, last = self.edges or (message, message)
        if message[:2] < first[:2]:
            self.edges = message, last
        elif message[:2] > last[:2]:
            self.edges = first, message
        elif self.edges is None:
            self.edges = message, message

    def add(self, arrival: int, active: int) -> None:
        """Add a message of this micro-batch."""
        self.count += 1
        self.active = active
        self.changed = True
        self.last = arrival
        if arrival < self.fresh:
            self.fresh = arrival

    def last_arrival(self, since: int) -> int:
        """Return its largest arrival number, or an upper bound if this micro-batch added none.

        Args:
            since: the first arrival number of the micro-batch.
        """
        return self.last if self.last >= 0 else since - 1

    def exclude(self, arrival: int) -> None:
        """Exclude a message in its bounds that was late for it."""
        if self.excluded is None:
            self.excluded = set()
        self.excluded.add(arrival)


@dataclass(slots=True)
class FreshMessage:
    """A message of this micro-batch that windows yet to open may hold.

    Attributes:
        time: the event time, ns.
        arrival: the arrival number.
        watermark: the watermark before it, ns.
    """

    time: int
    arrival: int
    watermark: int


@dataclass(slots=True, eq=False)
class KeyState:
    """The record of a key.

    Attributes:
        windows: the open windows, in no order.
        oldest: the least time of the key's messages that are held, ns; `FOREVER` without any.
        clock: the key's own watermark, if each key has one, ns; `NEVER` before its first event.
        clock_before: its clock before this micro-batch.
        clock_moved_at: batch time at which its clock was last moved, ns.
        closed_bounds: bounds of windows that closed early (idle, flush), until their clock passes.
        marks: messages that rules remember: time and arrival number.
        total: number of messages so far, for count windows.
        fresh: messages of this micro-batch, for sliding windows.
        run: its windows that are emitted with messages and without; None for none of these.
        latest: by id, as JSON, time and arrival number of its latest message, for windows without
            end that hold these.
        cadence_start: event time of the last window of a cadence, or of the first event, ns; of
            count windows with a condition, the number of the message of the last one. None without.
        full: sessions that this micro-batch has closed by their numbers of messages.
        full_until: the latest end of these, ns; `NEVER` without any.
    """

    windows: list[Window] = field(default_factory=list)
    oldest: int = FOREVER
    clock: int = NEVER
    clock_moved_at: int = 0
    closed_bounds: list[tuple[int, int]] = field(default_factory=list)
    marks: list[tuple[int, int]] = field(default_factory=list)
    total: int = 0
    fresh: list[FreshMessage] = field(default_factory=list)
    run: WindowRun | None = None
    latest: dict[str, tuple[int, int]] = field(default_factory=dict)
    clock_before: int = NEVER
    cadence_start: int | None = None
    full: list[Window] = field(default_factory=list)
    full_until: int = NEVER

    def close_full(self, session: Window, arrival: int) -> None:
        """Close a session by its number of messages, with the message of an arrival number."""
        session.full_at = arrival
        self.full.append(session)
        self.full_until = max(self.full_until, session.end)

    def readmit_full(self) -> None:
        """Count the sessions that are full among the open windows, to emit and to close them."""
        self.windows = [*self.windows, *self.full]
        self.full, self.full_until = [], NEVER

    def excluded_ranges(self, window: Window, since: int) -> tuple[MessageRange, ...]:
        """Return the messages in the bounds of a session that are in other sessions of the key.

        Such a session had closed for an event, and the later one has grown over it afterwards.

        Args:
            window: the session.
            since: the first arrival number of the micro-batch.
        """
        others = self.windows
        if window.start <= self.full_until:
            others = [*others, *self.full]
        return _select_excluded(window, others, since)

    def all_excluded_ranges(self, since: int) -> Mapping[Window, tuple[MessageRange, ...]]:
        """Return `excluded_ranges` of all windows; nothing if no two of them overlap.

        Windows are sorted for that, since a key may have thousands.
        """
        ordered = sorted(self.windows, key=attrgetter("start", "end"))
        if not any(one.end >= other.start for one, other in pairwise(ordered)):
            return {}
        overlapping: dict[Window, list[Window]] = {}
        reaching: list[Window] = []
        for window in ordered:
            reaching = [other for other in reaching if other.end >= window.start]
            overlapping[window] = list(reaching)
            for other in reaching:
                overlapping[other].append(window)
            reaching.append(window)
        return {
            window: _select_excluded(window, others, since)
            for window, others in overlapping.items()
        }

    @property
    def is_idle(self) -> bool:
        """Whether the record holds nothing, so that it can be removed."""
        known = self.windows or self.closed_bounds or self.marks or self.total
        known = known or self.latest or self.run or self.cadence_start is not None
        return not known and self.clock == NEVER

    def encode(self) -> bytes:
        """Encode the record as JSON."""
        windows = [_window_to_fields(window) for window in self.windows]
        fields: list[Any] = [windows, self.oldest]
        timed = self.clock != NEVER or self.closed_bounds or self.marks or self.total
        has_cadence = self.cadence_start is not None
        if timed or self.latest or self.run or has_cadence:
            clock = None if self.clock == NEVER else self.clock
            fields += [clock, self.clock_moved_at, self.closed_bounds, self.marks, self.total]
        if self.latest or self.run or has_cadence:
            fields.append([[name, *latest] for name, latest in self.latest.items()])
        if self.run is not None:
            last = self.run.last
            fields += [self.run.next_start, self.run.until, last and last.to_fields()]
        elif has_cadence:
            fields += [None, None, None]
        if has_cadence:
            fields.append(self.cadence_start)
        return dump_state_json(fields)

    @classmethod
    def decode(cls, data: bytes) -> KeyState:
        """Decode a record that `encode` wrote."""
        windows, oldest, *more = load_state_json(data)
        state = cls([_window_from_fields(fields) for fields in windows], oldest)
        if more:
            clock, state.clock_moved_at, remembered, marks, state.total, *more = more
            ids, *run = more or [()]
            state.latest = {name: (time, arrival) for name, time, arrival in ids}
            if run:
                next_start, until, last, *cadence = run
                state.cadence_start = cadence[0] if cadence else None
                message = None if last is None else EdgeMessage.from_fields(last)
                if next_start is not None:
                    state.run = WindowRun(next_start, until, message)
            state.clock = state.clock_before = NEVER if clock is None else clock
            state.closed_bounds = [(start, end) for start, end in remembered]
            state.marks = [(time, arrival) for time, arrival in marks]
        return state


def _select_excluded(
    window: Window, others: Sequence[Window], since: int
) -> tuple[MessageRange, ...]:
    """Return `KeyState.excluded_ranges` of a session, among some others."""
    until = window.last_arrival(since)
    return tuple(
        (other.start, other.end, other.first, other.last_arrival(since))
        for other in others
        if other.start <= window.end
        and window.start <= other.end
        and other.last_arrival(since) < until
    )


def _window_to_fields(w: Window) -> list[Any]:
    fields = [w.start, w.end, w.first, w.count, w.active, w.cut]
    if w.opener is not None:
        return [*fields, None, None, None, w.opener, int(w.is_muted)]
    if w.reach is not None or w.edges is not None:
        more = [] if w.edges is None else [[edge.to_fields() for edge in w.edges]]
        return [*fields, w.aggregate and w.aggregate.to_fields(), w.reach, *more]
    return fields if w.aggregate is None else [*fields, w.aggregate.to_fields()]


def _window_from_fields(fields: list[Any]) -> Window:
    start, end, first, count, active, cut, *more = fields
    aggregate_fields, reach, edge_fields, opener, muted = [*more, *[None] * 5][:5]
    known = None if aggregate_fields is None else WindowAggregate.from_fields(aggregate_fields)
    window = Window(
        start, end, first, count, active, cut, changed=False, aggregate=known, reach=reach
    )
    window.opener, window.is_muted = opener, bool(muted)
    if edge_fields is not None:
        left, right = map(EdgeMessage.from_fields, edge_fields)
        window.edges = left, right
    return window
