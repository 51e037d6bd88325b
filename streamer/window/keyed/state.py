"""The record of a key: its open windows, and the little else that its rules need to know."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any, Final

from streamer.window.keyed.folded import Folded
from streamer.window.plain import dump_plain, load_plain

NEVER: Final = -(1 << 66)
"""A clock that has seen nothing: it is before every time, and closes no window."""

FOREVER: Final = (1 << 63) - 1
"""A time that does not come."""


Part = tuple[int, int, int, int]
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
        folded: what its messages come to; None when they are kept whole.
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
    folded: Folded | None = None
    last: int = -1

    def take(self, arrival: int, active: int) -> None:
        """Take a message in, which is not before those of earlier micro-batches."""
        self.count += 1
        self.active = active
        self.changed = True
        self.last = arrival
        if arrival < self.fresh:
            self.fresh = arrival

    def until(self, since: int) -> int:
        """Return its largest arrival number; `since` is the micro-batch's first."""
        return self.last if self.last >= 0 else since - 1

    def exclude(self, arrival: int) -> None:
        """Leave a message out, which lies inside but came when the window had closed for it."""
        if self.excluded is None:
            self.excluded = set()
        self.excluded.add(arrival)


@dataclass(slots=True)
class Fresh:
    """A message of this micro-batch, as long as windows that are yet to open may hold it."""

    time: int
    arrival: int
    before: int


@dataclass(slots=True, eq=False)
class KeyState:
    """What is known of a key.

    Attributes:
        windows: the open ones, in no order.
        oldest: no message of the key that is held is older, ns; or an arrival number, where windows
            have no time.
        clock: its own clock, where each key has one; `NEVER` before its first event.
        seen: T when its clock was last moved, ns.
        remembered: bounds of windows that were closed before their clock closed them.
        marks: what a kind remembers of messages: time (or arrival) and smallest arrival.
        total: how many messages there were, where they are counted.
        fresh: messages of this micro-batch, where a kind asks for them.
    """

    windows: list[Window] = field(default_factory=list)
    oldest: int = FOREVER
    clock: int = NEVER
    seen: int = 0
    remembered: list[tuple[int, int]] = field(default_factory=list)
    marks: list[tuple[int, int]] = field(default_factory=list)
    total: int = 0
    fresh: list[Fresh] = field(default_factory=list)

    def apart(self, window: Window, since: int) -> tuple[Part, ...]:
        """Return where messages lie that are among a session's, and in another one.

        That one was closed to the session, which has reached over it afterwards.

        Args:
            window: the session.
            since: the micro-batch's first arrival number.
        """
        until = window.until(since)
        return tuple(
            (other.start, other.end, other.first, other.until(since))
            for other in self.windows
            if other.start <= window.end
            and window.start <= other.end
            and other.until(since) < until
        )

    def all_apart(self, since: int) -> Mapping[Window, tuple[Part, ...]]:
        """Return the same for all windows; nothing when none of them reaches over another.

        There may be thousands, which are not to be held against each other.
        """
        spans = sorted((window.start, window.end) for window in self.windows)
        if not any(start <= end for (_, end), (start, _) in pairwise(spans)):
            return {}
        return {window: self.apart(window, since) for window in self.windows}

    @property
    def idle(self) -> bool:
        """Whether there is nothing to know of the key."""
        known = self.windows or self.remembered or self.marks or self.total
        return not known and self.clock == NEVER

    def encoded(self) -> bytes:
        """Write it down."""
        windows = [_fields(window) for window in self.windows]
        fields: list[Any] = [windows, self.oldest]
        if self.clock != NEVER or self.remembered or self.marks or self.total:
            clock = None if self.clock == NEVER else self.clock
            fields += [clock, self.seen, self.remembered, self.marks, self.total]
        return dump_plain(fields)

    @classmethod
    def decoded(cls, data: bytes) -> KeyState:
        """Read what `encoded` wrote."""
        windows, oldest, *more = load_plain(data)
        found = cls([_window(*fields) for fields in windows], oldest)
        if more:
            clock, found.seen, remembered, marks, found.total = more
            found.clock = NEVER if clock is None else clock
            found.remembered = [(start, end) for start, end in remembered]
            found.marks = [(time, arrival) for time, arrival in marks]
        return found


def _fields(w: Window) -> list[Any]:
    fields = [w.start, w.end, w.first, w.count, w.active, w.cut]
    return fields if w.folded is None else [*fields, w.folded.as_fields()]


def _window(
    start: int,
    end: int,
    first: int,
    count: int,
    active: int,
    cut: int | None,
    folded: list[Any] | None = None,
) -> Window:
    known = None if folded is None else Folded.of_fields(folded)
    return Window(start, end, first, count, active, cut, changed=False, folded=known)
