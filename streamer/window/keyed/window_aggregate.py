"""The aggregate of one window, in the record of its key."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

from streamer.window.aggregate.mapping_aggregation import MappingAggregation, States


class UnparsableMessage(NamedTuple):
    """The first message of a window that is not JSON: its arrival number, and the error."""

    arrival: int
    text: str


@dataclass(slots=True, eq=False)
class WindowAggregate:
    """The aggregate of a window's messages for one mapping; its first message is kept as well.

    Attributes:
        mapping_number: index of the mapping in `KeyedAggregation.mappings`.
        states: the states of the mapping's aggregates; as they were stored, until `load`.
        max_event_time: the largest event time, ns.
        absorbed_count: number of messages that are held in this aggregate only.
        unparsable: the first message that is not JSON.
        aggregation: updates the states; None until `load`.
    """

    mapping_number: int
    states: States
    max_event_time: int
    absorbed_count: int = 0
    unparsable: UnparsableMessage | None = None
    aggregation: MappingAggregation | None = None

    def load(self, aggregation: MappingAggregation) -> None:
        """Decode the stored states."""
        if self.aggregation is None:
            self.aggregation, self.states = aggregation, aggregation.load(list(self.states))

    def to_fields(self) -> list[Any]:
        """Return the aggregate as plain values."""
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
        """Create an aggregate from what `to_fields` returned."""
        number, states, newest, absorbed, broken = fields
        known = None if broken is None else UnparsableMessage(*broken)
        return cls(number, states, newest, absorbed, known)


def merge_window_aggregates(
    one: WindowAggregate | None, other: WindowAggregate | None
) -> WindowAggregate | None:
    """Merge the aggregates of two windows that become one.

    Both are for the same mapping; None for a window that is not aggregated or has no messages yet.
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
