"""`table_join`: each message of the left side with the row that the right side has for its key.

Brute force: every version of every row is kept for ever, with its arrival and the clock before it.
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from typing import Literal

from tests.window.oracle.events import MicroBatch, same
from tests.window.oracle.intake import Arrived, Fields, Intake
from tests.window.oracle.join import Joined, JoinOut

FAR = 1 << 70


@dataclass(frozen=True, kw_only=True)
class TableJoin(Fields):
    """Of the common fields: keyed, filtered, max_ahead, allowed_lateness, idle_timeout,
    end_of_input.

    `deletes`: rows with ids whose number is a multiple of four are tombstones.
    """

    type: Literal["inner", "left"] = "inner"
    history: int | None = None
    ttl: int | None = None
    deletes: bool = False


@dataclass(frozen=True)
class Version:
    """A row as it came: `due` is the last time of messages that did not wait for it any more."""

    arrived: Arrived
    due: int
    received: int
    deleted: bool

    @property
    def order(self) -> tuple[int, int]:
        return self.arrived.time, self.arrived.number


@dataclass(eq=False)
class Waiting:
    arrived: Arrived
    too_old: bool


class TableJoinOracle:
    def __init__(self, rules: TableJoin) -> None:
        self.rules = rules
        self.intake = Intake(rules)
        self.waiting: list[Waiting] = []
        self.table: dict[Hashable, list[Version]] = {}
        self.now = -FAR

    def step(self, batch: MicroBatch) -> JoinOut:
        out, rules = JoinOut(), self.rules
        self.intake.begin(batch)
        self.now = max(self.now, batch.t)
        arrived = [one for event in batch.events if (one := self.intake_one(event, out))]
        for one in arrived:
            is_row, key_is_null = one.event.side == "right", one.event.key is None
            if is_row and key_is_null:
                out.dropped.append((one.event.id, "key"))
            elif is_row:
                self._put(one, out)
            else:
                self._take(one, out)
        self.intake.clocks.end_of_intake(batch)
        clock = self.intake.clocks.after(None)
        until = self._due(clock)
        for waiting in sorted(self.waiting, key=lambda w: (w.arrived.time, w.arrived.number)):
            if waiting.arrived.time <= until:
                self._release(waiting, "final", out)
            elif self._is_idle(waiting, batch):
                self._release(waiting, "idle", out)
            elif batch.ended and rules.end_of_input == "flush":
                self._release(waiting, "flush", out)
        return out

    def intake_one(self, event: object, out: JoinOut) -> Arrived | None:
        arrived = self.intake.admit(event, out)  # type: ignore[arg-type]
        if arrived is not None and arrived.event.side == "left":
            self.intake.take(arrived)
        return arrived

    def held(self) -> set[str]:
        return {waiting.arrived.event.id for waiting in self.waiting}

    @property
    def _waits(self) -> bool:
        return self.rules.history is not None and self.rules.allowed_lateness > 0

    def _due(self, clock: int | None) -> int:
        if not self._waits:
            return FAR
        return -FAR if clock is None else clock - self.rules.allowed_lateness

    def _is_idle(self, waiting: Waiting, batch: MicroBatch) -> bool:
        timeout = self.rules.idle_timeout
        if timeout is None or batch.backlog or batch.lag:
            return False
        return self.intake.clocks.active - waiting.arrived.active >= timeout

    def _put(self, row: Arrived, out: JoinOut) -> None:
        due = self._due(row.clock)
        if self._waits:
            # Decided: what need not wait any more when the row comes does not see it.
            for waiting in [w for w in self.waiting if w.arrived.key == row.key]:
                if waiting.arrived.time <= due:
                    self._release(waiting, "final", out)
        deleted = self.rules.deletes and int(row.event.id[1:]) % 4 == 0
        version = Version(row, due, self.now, deleted)
        self.table.setdefault(row.key, []).append(version)

    def _take(self, one: Arrived, out: JoinOut) -> None:
        history = self.rules.history
        too_old = history is not None and one.clock is not None and one.time < one.clock - history
        waiting = Waiting(one, too_old)
        self.waiting.append(waiting)
        if not self._waits or one.time <= self._due(one.clock):
            self._release(waiting, "event", out)

    def _release(self, waiting: Waiting, reason: str, out: JoinOut) -> None:
        self.waiting.remove(waiting)
        one = waiting.arrived
        row = self._find(one.key, one.time, waiting.too_old)
        if row is None and self.rules.type == "inner":
            out.passed_over.append(one.event.id)
            return
        name = None if row is None else row.arrived.event.id
        out.joined.append(Joined(reason, one.event.id, name, one.time, one.spelling))

    def _find(self, key: Hashable, time: int, too_old: bool) -> Version | None:
        if key == same(None):
            return None
        versions, ttl = self.table.get(key, []), self.rules.ttl
        # Decided: a row that has expired takes its versions with it.
        for place in range(len(versions) - 1, -1, -1):
            after = versions[place + 1].received if place + 1 < len(versions) else self.now
            if ttl is not None and after - versions[place].received >= ttl:
                versions = versions[place + 1 :]
                break
        if not versions:
            return None
        if self.rules.history is None:
            found = versions[-1]
        else:
            found = max(versions, key=lambda version: version.order)
            if found.arrived.time > time:
                valid = [version for version in versions if version.arrived.time <= time]
                if too_old or not valid:
                    return None
                found = max(valid, key=lambda version: version.order)
        return None if found.deleted else found
