"""`window_join`: pairs of a left and a right event, near each other and of one key."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from tests.window.oracle.events import NO_KEY, MicroBatch, Out
from tests.window.oracle.intake import Arrived, Fields, Intake


@dataclass(frozen=True, kw_only=True)
class Join(Fields):
    """How much earlier or later than the left event the right one may be.

    Of the common fields: keyed, filtered, clock, max_ahead, allowed_lateness, idle_timeout and
    end_of_input.
    """

    before: int
    after: int
    type: Literal["inner", "left", "outer"] = "inner"

    def reach(self, side: str) -> int:
        """How much later than an event of a side its match may be."""
        return self.after if side == "left" else self.before


@dataclass(frozen=True)
class Joined:
    """A joined message, by the ids of its sides; its time is the later of theirs."""

    reason: str
    left: str | None
    right: str | None
    time: int
    key: object = NO_KEY


@dataclass
class JoinOut(Out):
    """`passed_over`: what leaves without ever having been in a joined message."""

    joined: list[Joined] = field(default_factory=list)


@dataclass(eq=False)
class Waiting:
    arrived: Arrived
    matched: bool = False

    @property
    def side(self) -> str:
        return self.arrived.event.side


class JoinOracle:
    def __init__(self, rules: Join) -> None:
        self.rules = rules
        self.intake = Intake(rules)
        self.waiting: list[Waiting] = []

    def step(self, batch: MicroBatch) -> JoinOut:
        out = JoinOut()
        self.intake.begin(batch)
        for event in batch.events:
            arrived = self.intake.admit(event, out)
            if arrived is None:
                continue
            if self._is_late(arrived):
                out.dropped.append((event.id, "late"))
                continue
            self.intake.take(arrived)
            self._pair(Waiting(arrived), out)
        self.intake.clocks.end_of_intake(batch)
        self._leave(batch, out)
        return out

    def held(self) -> set[str]:
        """The messages that wait for a match."""
        return {waiting.arrived.event.id for waiting in self.waiting}

    def _is_late(self, arrived: Arrived) -> bool:
        # Decided: "late is judged per event" as in `sliding_window, mode: event`, by the event's
        # own time and not by how long a match of it would still be near enough.
        # Decided: the time of day is beyond every event, so that one is late by it only when all
        # that it could match would have left before it.
        rules = self.rules
        margin = rules.allowed_lateness
        if rules.clock == "system":
            margin += rules.before + rules.after
        return arrived.clock is not None and arrived.time < arrived.clock - margin

    def _pair(self, new: Waiting, out: JoinOut) -> None:
        """Join an event at once with all that wait for it, in the order they came.

        Decided: a pair comes out when its second event does, for the reason "event"; its key is
        spelled as on the left.
        """
        for old in self.waiting:
            left, right = (old, new) if old.side == "left" else (new, old)
            if old.side != new.side and self._match(left.arrived, right.arrived):
                old.matched = new.matched = True
                out.joined.append(
                    Joined(
                        "event",
                        left.arrived.event.id,
                        right.arrived.event.id,
                        max(left.arrived.time, right.arrived.time),
                        left.arrived.spelling,
                    )
                )
        self.waiting.append(new)

    def _match(self, left: Arrived, right: Arrived) -> bool:
        earliest, latest = left.time - self.rules.before, left.time + self.rules.after
        return left.key == right.key and earliest <= right.time <= latest

    def _leave(self, batch: MicroBatch, out: JoinOut) -> None:
        """Let go what no match can come for any more.

        Decided: by the latest time that a match could have, then by arrival; reason "final",
        "idle" once it has waited for idle_timeout, or "flush" at the end of the input.
        """
        rules = self.rules
        for waiting in sorted(self.waiting, key=self._deadline):
            reason = "flush" if batch.ended and rules.end_of_input == "flush" else None
            if self._is_idle(waiting, batch):
                reason = "idle"
            clock = self.intake.clocks.after(waiting.arrived.key)
            # The latest match would itself be late.
            if clock is not None and self._deadline(waiting)[0] < clock - rules.allowed_lateness:
                reason = "final"
            if reason is None:
                continue
            self.waiting.remove(waiting)
            if not waiting.matched:
                self._unmatched(waiting, reason, out)

    def _is_idle(self, waiting: Waiting, batch: MicroBatch) -> bool:
        timeout = self.rules.idle_timeout
        if timeout is None or batch.backlog or batch.lag:
            return False
        return self.intake.clocks.active - waiting.arrived.active >= timeout

    def _deadline(self, waiting: Waiting) -> tuple[int, int]:
        reach = self.rules.reach(waiting.side)
        return waiting.arrived.time + reach, waiting.arrived.number

    def _unmatched(self, waiting: Waiting, reason: str, out: JoinOut) -> None:
        name, arrived = waiting.arrived.event.id, waiting.arrived
        if waiting.side == "left" and self.rules.type in ("left", "outer"):
            out.joined.append(Joined(reason, name, None, arrived.time, arrived.spelling))
        elif waiting.side == "right" and self.rules.type == "outer":
            out.joined.append(Joined(reason, None, name, arrived.time, arrived.spelling))
        else:
            out.passed_over.append(name)


def within(time: int, **fields: object) -> Join:
    """The rules of a join whose sides may be apart by a time either way."""
    return Join(before=time, after=time, **fields)  # type: ignore[arg-type]
