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
    keyed: bool = False
    filtered: bool = False


@dataclass
class Counted:
    """All events of a key since its first, and the numbers of those that came out."""

    events: list[Event] = field(default_factory=list)
    emitted: set[int] = field(default_factory=set)


class CountOracle:
    def __init__(self, rules: Count) -> None:
        self.rules = rules
        self.keys: dict[Hashable, Counted] = {}

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
            if number >= self._oldest_of_next(len(counted.events))
        }

    def _count(self, event: Event, out: Out) -> None:
        key = same(event.key) if self.rules.keyed else NO_KEY
        counted = self.keys.setdefault(key, Counted())
        counted.events.append(event)
        total = len(counted.events)
        # Decided: a message is dropped when it comes, since how many come before the first
        # output, and so which of them it leaves out, depends on nothing else.
        if total < self._oldest_of_next(0):
            out.dropped.append((event.id, "incomplete"))
        if self._is_output(total):
            latest = range(total - self.rules.count + 1, total + 1)
            counted.emitted.update(latest)
            out.batches.append(self._shown([counted.events[number - 1] for number in latest]))

    def _is_output(self, total: int) -> bool:
        """After each `every` events, once at least `count` have come."""
        every = self.rules.count if self.rules.every is None else self.rules.every
        return total % every == 0 and total >= self.rules.count

    def _oldest_of_next(self, total: int) -> int:
        """The number of the first event that the next output holds, when `total` have come."""
        total += 1
        while not self._is_output(total):
            total += 1
        return total - self.rules.count + 1

    def _shown(self, inside: list[Event]) -> Emitted:
        key = inside[0].key if self.rules.keyed else NO_KEY
        return Emitted("count", tuple(event.id for event in inside), key)

    def _end(self, out: Out) -> None:
        # Decided: only what never came out is dropped as incomplete, key by key in the order of
        # their first events; then every key begins afresh, should the input grow after all.
        for counted in self.keys.values():
            oldest = self._oldest_of_next(len(counted.events))
            for number, event in enumerate(counted.events, 1):
                if number not in counted.emitted and number >= oldest:
                    out.dropped.append((event.id, "incomplete"))
        self.keys = {}
