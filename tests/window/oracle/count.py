"""`count_window`: no time at all, every event of a key counts."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass, field

from tests.window.oracle.events import KEY_FAILS, NO_KEY, Emitted, Event, MicroBatch, Out, same


@dataclass(frozen=True, kw_only=True)
class Count:
    """`every` is None where it is absent: then windows do not overlap."""

    count: int
    every: int | None = None
    min_count: int | None = None
    align: str = "end"
    end_of_input: str = "drop"
    keyed: bool = False
    filtered: bool = False
    conditional: bool = False


@dataclass
class Counted:
    """All events of a key since its first, their places among those of all keys, and the numbers
    of those that came out; the numbers of the last of each window, and of those dropped."""

    events: list[Event] = field(default_factory=list)
    places: list[int] = field(default_factory=list)
    emitted: set[int] = field(default_factory=set)
    windows: list[int] = field(default_factory=list)
    dropped: set[int] = field(default_factory=set)


class CountOracle:
    def __init__(self, rules: Count) -> None:
        self.rules = rules
        self.keys: dict[Hashable, Counted] = {}
        self.seen = 0

    def step(self, batch: MicroBatch) -> Out:
        out = Out()
        for event in batch.events:
            if event.failed:
                out.failed.append(event.id)
            elif self.rules.filtered and event.filter is not True:
                out.filtered.append(event.id)
            elif self.rules.keyed and event.key is KEY_FAILS:
                out.dropped.append((event.id, "key"))
            else:
                self._count(event, out)
        if batch.ended:
            self._end(out)
        return out

    def held(self) -> set[str]:
        """The messages that a later output will hold, if enough events come."""
        return {
            event.id
            for counted in self.keys.values()
            for number, event in enumerate(counted.events, 1)
            if number > self._next_of(counted) - self.rules.count
        }

    def _count(self, event: Event, out: Out) -> None:
        key = same(event.key) if self.rules.keyed else NO_KEY
        counted = self.keys.setdefault(key, Counted())
        counted.events.append(event)
        counted.places.append(self.seen)
        self.seen += 1
        total = len(counted.events)
        if self.rules.conditional:
            self._count_conditional(counted, out)
            return
        # Decided: a message is dropped when it comes, since how many come before the next
        # output, and so which of them it leaves out, depends on nothing else.
        if total <= self._next(total - 1) - self.rules.count:
            out.dropped.append((event.id, "incomplete"))
        if self._is_output(total):
            self._put_out("count", counted, total, out)

    def _count_conditional(self, counted: Counted, out: Out) -> None:
        """A window ends with the first event with the condition, once one is due."""
        total = len(counted.events)
        due = self._next_of(counted, total - 1)
        if total >= due and counted.events[-1].emits is True:
            self._put_out("count", counted, total, out)
            counted.windows.append(total)
        # Decided: an event is dropped when no later window can hold it, and none has.
        for number in range(1, self._next_of(counted) - self.rules.count + 1):
            if number <= total and number not in counted.emitted | counted.dropped:
                counted.dropped.add(number)
                out.dropped.append((counted.events[number - 1].id, "incomplete"))

    def _next_of(self, counted: Counted, total: int | None = None) -> int:
        """The number of the event that completes the next window of a key, at the earliest."""
        rules = self.rules
        total = len(counted.events) if total is None else total
        if not rules.conditional:
            return self._next(total)
        every = rules.count if rules.every is None else rules.every
        least = rules.count if rules.min_count is None else rules.min_count
        return max(total + 1, max(counted.windows, default=0) + every, least)

    def _put_out(self, reason: str, counted: Counted, end: int, out: Out) -> None:
        """Emit what there is of the window that the event of a number completes."""
        inside = [
            number
            for number in range(1, len(counted.events) + 1)
            if end - self.rules.count < number <= end
        ]
        counted.emitted.update(inside)
        events = [counted.events[number - 1] for number in inside]
        key = events[0].key if self.rules.keyed else NO_KEY
        out.batches.append(Emitted(reason, tuple(event.id for event in events), key))

    def _is_output(self, total: int) -> bool:
        """After each `every` events, once enough have come; or each that begins so is full."""
        rules = self.rules
        every = rules.count if rules.every is None else rules.every
        if rules.align == "start":
            return total >= rules.count and (total - rules.count) % every == 0
        least = rules.count if rules.min_count is None else rules.min_count
        return total % every == 0 and total >= least

    def _next(self, total: int) -> int:
        """The number of the event that completes the next window, when `total` have come."""
        total += 1
        while not self._is_output(total):
            total += 1
        return total

    def _end(self, out: Out) -> None:
        # Decided: only what never came out is dropped as incomplete, key by key in the order of
        # their first events; then every key begins afresh, should the input grow after all.
        if self.rules.end_of_input == "keep":
            return
        if self.rules.end_of_input == "flush":
            self._flush(out)
        for counted in self.keys.values():
            oldest = self._next_of(counted) - self.rules.count + 1
            for number, event in enumerate(counted.events, 1):
                if number not in counted.emitted and number >= oldest:
                    out.dropped.append((event.id, "incomplete"))
        self.keys = {}

    def _flush(self, out: Out) -> None:
        """Emit windows that have begun, by the arrival of their first message."""
        begun = [
            (counted.places[max(end - self.rules.count, 0)], end, counted)
            for counted in self.keys.values()
            for end in self._begun(counted)
        ]
        for _, end, counted in sorted(begun, key=lambda one: one[:2]):
            self._put_out("flush", counted, end, out)

    def _begun(self, counted: Counted) -> list[int]:
        total = len(counted.events)
        ends = [self._next_of(counted)]
        if self.rules.align == "start":
            while (end := self._next(ends[-1])) - self.rules.count < total:
                ends.append(end)
            return [end for end in ends if end - self.rules.count < total]
        left = range(max(ends[0] - self.rules.count, 0) + 1, total + 1)
        return ends if set(left) - counted.emitted else []
