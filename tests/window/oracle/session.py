"""`session_window`: sessions of a key, both bounds inclusive, cut at multiples of max_duration."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable
from dataclasses import dataclass

from tests.window.oracle.driver import Window, WindowOracle, in_order
from tests.window.oracle.events import Emitted, MicroBatch, Out
from tests.window.oracle.intake import Arrived, Fields


@dataclass(frozen=True, kw_only=True)
class Session(Fields):
    gap: int
    max_duration: int | None = None
    from_start: bool = False
    max_count: int | None = None
    by_message: bool = False

    def reach(self, arrived: Arrived) -> int:
        """The time up to which a message holds its session open."""
        own = arrived.event.gap if self.by_message else None
        assert own != "none"
        return arrived.time + (self.gap if own is None else own)


@dataclass(eq=False)
class OpenSession(Window):
    """A session; `cut` is c(start), or an older one that stayed."""

    cut: int | None = None
    is_full: bool = False


class SessionOracle(WindowOracle):
    # Of a session nothing is remembered, and what it closed gives nothing back.
    remembers = False

    def __init__(self, rules: Session) -> None:
        super().__init__(rules)
        self.rules = rules
        # The open ones of each key: a micro-batch may open thousands before any closes.
        self.of: defaultdict[Hashable, list[OpenSession]] = defaultdict(list)
        # Those that an event has just made full.
        self.full: list[OpenSession] = []

    def step(self, batch: MicroBatch) -> Out:
        self.of.clear()
        for session in self.open:
            assert isinstance(session, OpenSession)
            self.of[session.key].append(session)
        return super().step(batch)

    def take(self, arrived: Arrived) -> list[Window] | None:
        """Join the event to the sessions near it, the earliest first.

        Decided: a session is open or closed for an event by the clock before that event, and by
        how far the events listed before it have made the session reach.
        """
        near = sorted(self._near(arrived), key=lambda session: session.start)
        if not near and self._is_late(arrived):
            return None
        lone = OpenSession(
            arrived.key, arrived.time, arrived.time, [arrived], cut=self.cut(arrived.time)
        )
        limit = self.rules.max_count
        joined, parts = self._joined(near, lone, arrived.clock)
        while limit is not None and len(joined.inside) > limit:
            # Decided: what cannot become one session because it would be too large does not; the
            # earliest closes, and the event goes to the others.
            self.of[near[0].key].remove(near[0])
            self._close_full(near.pop(0))
            joined, parts = self._joined(near, lone, arrived.clock)
        for session in parts:
            self.open.remove(session)
            self.of[session.key].remove(session)
        self.open.append(joined)
        if len(joined.inside) == limit:
            self._close_full(joined)
        else:
            self.of[joined.key].append(joined)
        return [joined]

    def at_once(self, changed: list[Window]) -> list[Emitted]:
        """Besides what all windows give, the sessions that the event has made full."""
        out = super().at_once(changed)
        gone, self.full = self.full, []
        return out + [
            self.shown(one, "count")
            for one in in_order(gone)
            if self._comes_at_close(one, self.before)
        ]

    def _reason(self, window: Window, batch: MicroBatch) -> str | None:
        assert isinstance(window, OpenSession)
        return "count" if window.is_full else super()._reason(window, batch)

    def _close_full(self, session: OpenSession) -> None:
        session.is_full = True
        self.full.append(session)

    def _joined(
        self, near: list[OpenSession], lone: OpenSession, clock: int | None
    ) -> tuple[OpenSession, list[OpenSession]]:
        """The session of an event and of those near it, as far as no cut is between; and these."""
        joined, parts = lone, []
        for session in near:
            if not parts or joined.cut is None or session.start <= joined.cut:
                joined = self._taken_into(session, joined, clock)
                parts.append(session)
        return joined, parts

    def is_past(self, window: Window, clock: int) -> bool:
        assert isinstance(window, OpenSession)
        limit = max(map(self.rules.reach, window.inside))
        if window.cut is not None:
            limit = min(limit, window.cut)
        return clock > limit + self.rules.allowed_lateness

    def cut(self, start: int) -> int | None:
        """The first multiple of max_duration that is more than max_duration after a start.

        Tenzir's instead is max_duration after the start itself.
        """
        length = self.rules.max_duration
        if length is None:
            return None
        if self.rules.from_start:
            return start + length
        multiple = (start // length) * length
        while multiple - start <= length:
            multiple += length
        return multiple

    def _near(self, arrived: Arrived) -> list[OpenSession]:
        """The open sessions within the gap, on the event's side of their cut."""
        reach, time = self.rules.reach(arrived), arrived.time
        return [
            s
            for s in self.of[arrived.key]
            if s.start <= reach
            and time <= max(map(self.rules.reach, s.inside))
            and (s.cut is None or time <= s.cut)
            and not self.is_shut(s, arrived.clock)
        ]

    def _is_late(self, arrived: Arrived) -> bool:
        # Decided: so is an event that lies near no session at all.
        limit = self.rules.reach(arrived)
        # Decided: where a session of the event alone would be cut inside the gap, by that cut.
        if self.rules.from_start and (cut := self.cut(arrived.time)) is not None:
            limit = min(limit, cut)
        limit += self.rules.allowed_lateness
        return arrived.clock is not None and arrived.clock > limit

    def _taken_into(
        self, session: OpenSession, other: OpenSession, clock: int | None
    ) -> OpenSession:
        """The session with all that an event, or the session it has joined, brings.

        Where that moves the session's start, the cut becomes that of the new start, unless the
        clock before the event or the session's end lies past that: then the old one stays.

        Decided: when an event joins two sessions, the start that moves is the later one's, the new
        cut is the one that the earlier session has by then (with the event in it), and "the old
        cut" is the later session's. "Past" is > , and "the session's end" is that of the whole
        joined session.
        """
        start, end = min(session.start, other.start), max(session.end, other.end)
        cut = session.cut
        if other.start < session.start and other.cut is not None:
            latest = end if clock is None else max(end, clock)
            cut = session.cut if latest > other.cut else other.cut
        return OpenSession(session.key, start, end, session.inside + other.inside, cut=cut)
