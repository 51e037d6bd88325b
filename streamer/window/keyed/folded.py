"""What the messages of one window come to, in the record of its key."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

from streamer.window.folds.running.fold import RunningFold, States


class Brokenness(NamedTuple):
    """The first message of a window that is no document: its arrival number, and why."""

    arrival: int
    text: str


@dataclass(slots=True, eq=False)
class Folded:
    """A window of which the first message is kept, and what a mapping asks of all.

    Attributes:
        number: the mapping's among those that the shard's windows are folded for.
        states: what its parts have come to; as they were written, until `fold` is there.
        newest: the largest event time, ns.
        absorbed: how many messages are counted as held that are not kept.
        broken: the first message that is no document.
        fold: keeps the parts up to date.
    """

    number: int
    states: States
    newest: int
    absorbed: int = 0
    broken: Brokenness | None = None
    fold: RunningFold | None = None

    def open(self, fold: RunningFold) -> None:
        """Read what was written."""
        if self.fold is None:
            self.fold, self.states = fold, fold.load(list(self.states))

    def as_fields(self) -> list[Any]:
        """Return it as plain values."""
        states = self.states if self.fold is None else self.fold.dump(self.states)
        return [self.number, states, self.newest, self.absorbed, self.broken]

    @classmethod
    def of_fields(cls, fields: list[Any]) -> Folded:
        """Read what `as_fields` wrote."""
        number, states, newest, absorbed, broken = fields
        known = None if broken is None else Brokenness(*broken)
        return cls(number, states, newest, absorbed, known)


def together(one: Folded | None, other: Folded | None) -> Folded | None:
    """Return what the messages of two windows come to that are one now.

    Both are folded for the same mapping, or neither is; None for a window that has no messages yet.
    """
    if one is None or other is None:
        return one or other
    assert one.fold is not None and one.number == other.number
    broken = [each.broken for each in (one, other) if each.broken is not None]
    return Folded(
        one.number,
        one.fold.joined(one.states, other.states),
        max(one.newest, other.newest),
        one.absorbed + other.absorbed,
        min(broken, default=None),
        one.fold,
    )
