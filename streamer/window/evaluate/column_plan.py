"""The fields that a buffer's mappings need, where these can be read as columns."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from streamer.bloblang.analysis.aggregates import AggregateKind
from streamer.bloblang.analysis.pre_aggregation import PreAggregation
from streamer.window.evaluate.queries import BufferMappings, field_name_of, is_now_mapping
from streamer.window.settings.window import Window

Path = tuple[str, ...]

_FIELD_KINDS: Final[frozenset[AggregateKind]] = frozenset(
    {
        *("sum", "min", "max", "distinct", "unique", "avg", "stddev_pop", "stddev_samp"),
        *("values", "histogram", "approximate distinct"),
    }
)


@dataclass(frozen=True, slots=True)
class ColumnPlan:
    """The fields that are needed of each message, and nothing else is.

    Attributes:
        time: the field with the event time; None where messages have the micro-batch's, or none.
        key: the field with the key; None without.
        aggregates: by aggregate, the field that it needs; None where it counts messages.
    """

    time: Path | None
    key: Path | None
    aggregates: tuple[Path | None, ...]

    @property
    def paths(self) -> tuple[Path, ...]:
        """Return the fields, each once."""
        some = (self.time, self.key, *self.aggregates)
        return tuple(dict.fromkeys(path for path in some if path is not None))


@dataclass(frozen=True, slots=True)
class ColumnObstacle:
    """The reason why messages are parsed one by one.

    Attributes:
        text: the reason, as a clause.
    """

    text: str

    def __str__(self) -> str:
        return self.text


def plan_columns(
    mappings: BufferMappings, aggregation: PreAggregation | None, window: Window
) -> ColumnPlan | ColumnObstacle:
    """Return the fields that are read of each message, or why they cannot be read as columns.

    Args:
        mappings: the buffer's.
        aggregation: the mapping that stage 1 aggregates for; None where it packs whole messages.
        window: the windows: those that go by the number of messages need no time.
    """
    if mappings.filter is not None:
        return ColumnObstacle("there is a filter")
    if mappings.gap is not None:
        return ColumnObstacle("there is a mapping for the gap")
    if mappings.has_conditions:
        return ColumnObstacle("there are conditions that begin or emit windows")
    time = key = None
    timestamp = None if window.count_based else mappings.timestamp
    if timestamp is not None and not is_now_mapping(timestamp):
        if (name := field_name_of(timestamp)) is None:
            return ColumnObstacle("timestamp_mapping does more than name a field")
        time = (name,)
    if mappings.key is not None:
        if (name := field_name_of(mappings.key)) is None:
            return ColumnObstacle("the key is more than the name of a field")
        key = (name,)
    aggregates: list[Path | None] = []
    for aggregate in () if aggregation is None else aggregation.aggregates:
        if aggregate.expression is not None:
            return ColumnObstacle(f"{aggregate} needs more than a field")
        if aggregate.kind == "count":
            aggregates.append(None)
        elif aggregate.kind not in _FIELD_KINDS or not aggregate.path:
            return ColumnObstacle(f"{aggregate} needs whole messages")
        else:
            aggregates.append(aggregate.path)
    return ColumnPlan(time, key, tuple(aggregates))
