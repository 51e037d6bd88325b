"""What every kind has in common: its fields, its clocks, and the decisions before "late"."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from typing import Literal

from tests.window.oracle.events import KEY_FAILS, NO_KEY, Event, MicroBatch, Out, same

DAY = 86_400 * 10**9


@dataclass(frozen=True, kw_only=True)
class Fields:
    """The common fields; `keyed` and `filtered` say that there is such a mapping."""

    keyed: bool = False
    filtered: bool = False
    clock: Literal["stream", "system"] = "stream"
    clock_scope: Literal["stream", "key"] = "stream"
    key_retention: int = 7 * DAY
    allowed_lateness: int = 0
    max_ahead: int | None = None
    idle_timeout: int | None = None
    emit: Literal["final", "changes", "each", "forward"] = "final"
    emit_also: frozenset[Literal["on_time", "close"]] = frozenset()
    order: Literal["arrival", "event_time"] = "arrival"
    end_of_input: Literal["flush", "keep"] = "flush"

    @property
    def unit(self) -> int:
        """Times are rounded down to multiples of it."""
        return 1


@dataclass(frozen=True)
class Arrived:
    """An event on its way to its windows.

    Attributes:
        event: the event.
        number: its place in the order of arrival, over all micro-batches.
        time: the event time.
        key: what equal keys have in common.
        clock: the clock before it; None when there is none yet.
        batch: the number of its micro-batch.
        active: the running time by which idleness is told.
    """

    event: Event
    number: int
    time: int
    key: Hashable
    clock: int | None
    batch: int
    active: int

    @property
    def spelling(self) -> object:
        """The key as the message spells it."""
        return NO_KEY if self.key is NO_KEY else self.event.key


class Clocks:
    """The clock before each event and after each micro-batch, and the time that counts as idle."""

    def __init__(self, fields: Fields) -> None:
        self.fields = fields
        self.now: int | None = None
        self.active = 0
        self._behind = False
        self._closing: int | None = None
        self._largest: dict[Hashable, int] = {}
        self._last_taken: dict[Hashable, int] = {}
        self._here: dict[Hashable, dict[Hashable, int]] = {}

    def begin(self, batch: MicroBatch) -> list[Hashable]:
        """Begin a micro-batch; return the keys that now begin afresh."""
        # A T that runs back is held at the largest so far, for max_ahead and now() too.
        now = batch.t if self.now is None else max(self.now, batch.t)
        behind = batch.backlog or batch.lag
        # Decided: the time between two micro-batches counts as idle if the program was not down in
        # between and neither of the two works off a backlog: the earlier one's is what took the
        # time, the later one's has waited meanwhile. Later lag (`lag`) counts as backlog here,
        # but does not keep the system clock from closing: the page suspends that for the first
        # backlog after a start only.
        if self.now is not None and not (batch.restarted or behind or self._behind):
            # Decided: nor was it awake while the machine was suspended, and a clock that is set
            # forward makes nothing idle.
            self.active += max(now - self.now - batch.stood, 0)
        self.now, self._behind = now, behind
        return self._lapse(now)

    def _lapse(self, now: int) -> list[Hashable]:
        # Decided: a key's clock is kept for less than key_retention after the T at which its last
        # event was taken (dropped ones are not taken), and is gone from exactly then on, before
        # the events of that micro-batch; time when the program is down counts, being system time.
        if self.fields.clock_scope == "stream" or self.fields.clock == "system":
            return []
        gone = [k for k, t in self._last_taken.items() if now - t >= self.fields.key_retention]
        for key in gone:
            del self._largest[key], self._last_taken[key]
        return gone

    def before(self, partition: Hashable, key: Hashable) -> int | None:
        """The clock before an event."""
        # Decided: clock_scope is about the stream clock alone; the system clock is everybody's.
        if self.fields.clock == "system":
            return self._closing
        scope = self._scope(key)
        seen = [self._largest.get(scope), self._here.get(partition, {}).get(scope)]
        return max((time for time in seen if time is not None), default=None)

    def move(self, partition: Hashable, key: Hashable, time: int) -> None:
        """An event has been taken: it moves the clock of what comes after it."""
        assert self.now is not None
        scope, here = self._scope(key), self._here.setdefault(partition, {})
        here[scope] = max(time, here.get(scope, time))
        self._last_taken[scope] = self.now

    def end_of_intake(self, batch: MicroBatch) -> None:
        """All events are taken: from now on all partitions see them."""
        for here in self._here.values():
            for scope, time in here.items():
                self._largest[scope] = max(time, self._largest.get(scope, time))
        self._here = {}
        # While the first backlog after a start is worked off no window closes by the system clock,
        # and so none that is not closed makes an event late.
        if not batch.backlog:
            assert self.now is not None
            self._closing = self.now // self.fields.unit * self.fields.unit

    def after(self, key: Hashable) -> int | None:
        """The clock once all events of the micro-batch are taken."""
        if self.fields.clock == "system":
            return self._closing
        return self._largest.get(self._scope(key))

    def _scope(self, key: Hashable) -> Hashable:
        return key if self.fields.clock_scope == "key" else None


class Intake:
    """Decides on messages: failed, filter, event time, max_ahead, key. Late is the kind's."""

    def __init__(self, fields: Fields) -> None:
        self.fields = fields
        self.clocks = Clocks(fields)
        self.batch = 0
        self._arrivals = 0

    def begin(self, batch: MicroBatch) -> list[Hashable]:
        self.batch += 1
        return self.clocks.begin(batch)

    def admit(self, event: Event, out: Out) -> Arrived | None:
        """Return the event on its way, or None when something before "late" stops it."""
        fields, now = self.fields, self.clocks.now
        assert now is not None
        self._arrivals += 1
        time = now if event.time == "now" else event.time
        if event.failed:
            out.failed.append(event.id)
        elif fields.filtered and event.filter is not True:
            out.filtered.append(event.id)
        elif time is None:
            out.dropped.append((event.id, "timestamp"))
        # Decided: the system clock that an event may not be ahead of is the T of its own
        # micro-batch, and an event just max_ahead ahead of it is taken.
        elif fields.max_ahead is not None and time > now + fields.max_ahead:
            out.dropped.append((event.id, "future"))
        elif fields.keyed and event.key is KEY_FAILS:
            out.dropped.append((event.id, "key"))
        elif getattr(fields, "by_message", False) and event.gap == "none":
            out.dropped.append((event.id, "gap"))
        else:
            key = same(event.key) if fields.keyed else NO_KEY
            return Arrived(
                event,
                self._arrivals,
                time // fields.unit * fields.unit,
                key,
                self.clocks.before(partition_of(event), key),
                self.batch,
                self.clocks.active,
            )
        return None

    def take(self, arrived: Arrived) -> None:
        """It is not late: the clock moves."""
        self.clocks.move(partition_of(arrived.event), arrived.key, arrived.time)


def partition_of(event: Event) -> Hashable:
    """The two inputs of a join have no partition in common."""
    return event.side, event.partition
