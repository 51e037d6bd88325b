"""`global_window`: one window for each key, without end, of all messages or the latest by id."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass, field

from tests.window.oracle.events import Emitted, Event, MicroBatch, Out
from tests.window.oracle.intake import Arrived, Fields, Intake


@dataclass(frozen=True, kw_only=True)
class Unbounded(Fields):
    """With `latest` messages have an id, of which the latest is held; `deletes`: some free it."""

    latest: bool = False
    deletes: bool = False


def id_of(event: Event) -> int:
    """The id of a message: three of them for each key."""
    return int(event.id[1:]) % 3


def is_delete(event: Event) -> bool:
    return int(event.id[1:]) % 4 == 0


@dataclass
class Held:
    """What a key holds, and when it got its last message."""

    inside: list[Arrived] = field(default_factory=list)
    newest: int = 0
    active: int = 0
    last: Arrived | None = None


class UnboundedOracle:
    def __init__(self, rules: Unbounded) -> None:
        self.rules = rules
        self.intake = Intake(rules)
        self.held: dict[Hashable, Held] = {}

    def step(self, batch: MicroBatch) -> Out:
        out = Out()
        self.intake.begin(batch)
        changed: dict[Hashable, Arrived] = {}
        deleted: dict[Hashable, Arrived] = {}
        for event in batch.events:
            arrived = self.intake.admit(event, out)
            if arrived is None:
                continue
            self.intake.take(arrived)
            held = self.held.setdefault(arrived.key, Held())
            if not self._put(held, arrived):
                if not held.inside:
                    del self.held[arrived.key]
                continue
            held.active, held.last = arrived.active, arrived
            changed.pop(arrived.key, None)
            deleted.pop(arrived.key, None)
            (changed if held.inside else deleted)[arrived.key] = arrived
            if self.rules.emit == "each":
                out.batches.append(self._shown(held, arrived, "each"))
            if not held.inside:
                del self.held[arrived.key]
        self.intake.clocks.end_of_intake(batch)
        if self.rules.emit == "changes":
            last = sorted({**changed, **deleted}.values(), key=lambda arrived: arrived.number)
            for arrived in last:
                held = self.held.get(arrived.key, Held())
                out.batches.append(self._shown(held, arrived, "changes"))
        self._forget(batch)
        return out

    def _put(self, held: Held, arrived: Arrived) -> bool:
        """Return whether the message changes what is held."""
        held.newest = max(held.newest, arrived.time) if held.inside else arrived.time
        if not self.rules.latest:
            held.inside.append(arrived)
            return True
        same = [one for one in held.inside if id_of(one.event) == id_of(arrived.event)]
        if self.rules.order == "event_time" and same and arrived.time < same[0].time:
            return False
        for one in same:
            held.inside.remove(one)
        if self.rules.deletes and is_delete(arrived.event):
            return bool(same)
        held.inside.append(arrived)
        return True

    def _shown(self, held: Held, arrived: Arrived, reason: str) -> Emitted:
        inside = held.inside or [arrived]
        if self.rules.order == "event_time":
            inside = sorted(inside, key=lambda one: (one.time, one.number))
        first = inside[0] if self.rules.latest else arrived
        return Emitted(
            reason if held.inside else "deleted",
            tuple(one.event.id for one in inside),
            first.spelling,
            latest=max(one.time for one in inside),
        )

    def _forget(self, batch: MicroBatch) -> None:
        timeout = self.rules.idle_timeout
        if timeout is None or batch.backlog or batch.lag:
            return
        now = self.intake.clocks.active
        self.held = {key: one for key, one in self.held.items() if now - one.active < timeout}
