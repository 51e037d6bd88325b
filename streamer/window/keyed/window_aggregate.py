"""What the messages of one window come to, in the record of its key."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

from streamer.window.aggregate.mapping_aggregation import MappingAggregation, States


class UnparsableMessage(NamedTuple):
    """The first message of a window that is no document: its arrival number, and why."""

    arrival: int
    text: str


@dataclass(slots=True, eq=False)
class WindowAggregate:
    """A window of which the first message is kept, and what a mapping asks of all.

    Attributes:
        mapping_number: the mapping's among those that the shard's windows are folded for.
        states: what its parts have come to; as they were written, until `fold` is there.
        max_event_time: the largest event time, ns.
        absorbed_count: how many messages are counted as held that are not kept.
        unparsable: the first message that is no document.
        aggregation: keeps the parts up to date.
    """

    mapping_number: int
    states: States
    max_event_time: int
    absorbed_count: int = 0
    unparsable: UnparsableMessage | None = None
    aggregation: MappingAggregation | None = None

    def load(self, aggregation: MappingAggregation) -> None:
        """Read what was written."""
        if self.aggregation is None:
            self.aggregation, self.states = aggregation, aggregation.load(list(self.states))

    def to_fields(self) -> list[Any]:
        """Return it as plain values."""
        states = self.states if self.aggregation is None else self.aggregation.dump(self.states)
        return [
            self.mapping_number,
            states,
            self.max_event_time,
            self.absorbed_count,
            self.unparsable,
        ]

    @classmethod
    def from_fields(cls, fields: list[Any]) -> WindowAggregate:
        """Read what `to_fields` wrote."""
        number, states, newest, absorbed, broken = fields
        known = None if broken is None else UnparsableMessage(*broken)
        return cls(number, states, newest, absorbed, known)


def merge_window_aggregates(
    one: WindowAggregate | None, other: WindowAggregate | None
) -> WindowAggregate | None:
    """Return what the messages of two windows come to that are one now.

    Both are folded for the same mapping, or neither is; None for a window that has no messages yet.
    """
    if one is None or other is None:
        return one or other
    assert one.aggregation is not None and one.mapping_number == other.mapping_number
    broken = [each.unparsable for each in (one, other) if each.unparsable is not None]
    return WindowAggregate(
        one.mapping_number,
        one.aggregation.merge(one.states, other.states),
        max(one.max_event_time, other.max_event_time),
        one.absorbed_count + other.absorbed_count,
        min(broken, default=None),
        one.aggregation,
    )
