"""Joins of joins: each with the results of the one before on its left side.

Brute force: every event of a join is compared with every other one, one by one. The clock of a join
behind another one is the least time of what that one may yet give, and is told by its rules alone.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple

Side = Literal["left", "right"]


@dataclass(frozen=True)
class JoinRules:
    """One join; `key` and `right_key` are the places of the keys in an event's."""

    before: int
    after: int
    type: Literal["inner", "left", "outer"] = "inner"
    lateness: int = 0
    waits: bool = False
    """Whether its clock waits for all of its inputs."""


class Event(NamedTuple):
    """An event, or a joined one: its time, its key, and what it is made of."""

    time: int
    key: str
    names: tuple[str | None, ...]


@dataclass
class Waiting:
    side: Side
    event: Event
    matched: bool = False


class ChainedJoin:
    """One join of a chain."""

    def __init__(self, rules: JoinRules, width: int) -> None:
        """Take the rules, and of how many events one of the left side is made."""
        self.rules = rules
        self.width = width
        self.waiting: list[Waiting] = []
        self.clock: int | None = None
        self.newest: dict[str, int] = {}
        self.late: list[str | None] = []

    def take(self, side: Side, event: Event, clock: int | None) -> list[Event]:
        """Take an event at a clock; give its pairs."""
        if clock is not None and event.time < clock - self.rules.lateness:
            self.late += event.names
            return []
        mine = Waiting(side, event)
        pairs = []
        for other in self.waiting:
            left, right = (other, mine) if other.side == "left" else (mine, other)
            apart = right.event.time - left.event.time
            is_near = -self.rules.before <= apart <= self.rules.after
            if other.side != side and other.event.key == event.key and is_near:
                mine.matched = other.matched = True
                time = max(left.event.time, right.event.time)
                pairs.append(Event(time, event.key, left.event.names + right.event.names))
        self.waiting.append(mine)
        return pairs

    def leave(self, ended: bool) -> list[Event]:
        """Give what has found no partner and will find none."""
        alone = []
        for one in list(self.waiting):
            reach = self.rules.after if one.side == "left" else self.rules.before
            until = one.event.time + reach + self.rules.lateness
            if not ended and (self.clock is None or until >= self.clock):
                continue
            self.waiting.remove(one)
            if one.matched:
                continue
            if one.side == "left" and self.rules.type != "inner":
                alone.append(one.event._replace(names=(*one.event.names, None)))
            elif one.side == "right" and self.rules.type == "outer":
                alone.append(one.event._replace(names=(None,) * self.width + one.event.names))
        return alone

    def least_to_come(self) -> int | None:
        """Return the least time of a result that is yet to come, None for any."""
        if self.clock is None:
            return None
        least = self.clock - self.rules.lateness
        # What comes out alone has waited for a partner, and its time is as long ago.
        waits = {"inner": 0, "left": self.rules.after}
        return least - waits.get(self.rules.type, max(self.rules.after, self.rules.before))


class JoinChainOracle:
    """A chain of joins of inputs: the first join has two, each one behind it another one."""

    def __init__(self, rules: Sequence[JoinRules], inputs: Sequence[str]) -> None:
        self.joins = [ChainedJoin(one, place + 1) for place, one in enumerate(rules)]
        self.inputs = list(inputs)

    def step(self, batch: Iterable[tuple[str, Event]], ended: bool) -> list[list[Event]]:
        """Run a micro-batch of events by their inputs; give what comes out of each join."""
        events = list(batch)
        made: list[list[Event]] = []
        first = self.joins[0]
        made.append(self._run_first(first, events))
        first.clock = self._clock_of(first, self.inputs[:2], first.clock)
        made[0] += first.leave(ended)
        for number, join in enumerate(self.joins[1:], 1):
            name = self.inputs[number + 1]
            given: list[Event] = []
            for source, event in events:
                if source == name:
                    given += join.take("right", event, join.clock)
                    join.newest[name] = max(event.time, join.newest.get(name, event.time))
            for result in made[-1]:
                given += join.take("left", result, join.clock)
            join.clock = self._later_clock(join, self.joins[number - 1].least_to_come(), name)
            given += join.leave(ended)
            made.append(given)
        return made

    def _run_first(self, join: ChainedJoin, events: list[tuple[str, Event]]) -> list[Event]:
        made: list[Event] = []
        before, here = join.clock, dict[str, int]()
        for source, event in events:
            if source not in self.inputs[:2]:
                continue
            side: Side = "left" if source == self.inputs[0] else "right"
            clock = before
            if not join.rules.waits and source in here:
                clock = here[source] if clock is None else max(clock, here[source])
            pairs = join.take(side, event, clock)
            made += pairs
            here[source] = max(event.time, here.get(source, event.time))
            join.newest[source] = max(event.time, join.newest.get(source, event.time))
        return made

    def _clock_of(self, join: ChainedJoin, names: list[str], clock: int | None) -> int | None:
        times = [join.newest[name] for name in names if name in join.newest]
        if not times or (join.rules.waits and len(times) < len(names)):
            return clock
        reached = min(times) if join.rules.waits else max(times)
        return reached if clock is None else max(clock, reached)

    def _later_clock(self, join: ChainedJoin, least: int | None, name: str) -> int | None:
        if least is not None and join.rules.waits:
            least = min(least, join.newest[name]) if name in join.newest else None
        if least is None:
            return join.clock
        return least if join.clock is None else max(join.clock, least)
