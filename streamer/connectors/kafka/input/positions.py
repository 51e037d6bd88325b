"""Positions of a stream in a Kafka input: the end of a micro-batch, as the checkpoint has it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple

from streamer.connectors.kafka.cluster.partition_ref import PartitionRef
from streamer.connectors.kafka.input.opened_input import Offsets
from streamer.connectors.kafka.input.start_offsets import flatten_offsets, nest_offsets

# An input's name has no colon, so that these are not taken for an input within a broker.
_AT: Final = "kafka:at"
_BEGUN: Final = "kafka:begun"
_NEWEST_ENDS: Final = "kafka:newest"

_LEAST_PIECE: Final = 20_000
"""Messages for which another piece of a partition is worth its cost."""


class KafkaPiece(NamedTuple):
    """Offsets of a partition that one task reads.

    Attributes:
        topic: its topic.
        partition: its number.
        begin: the first offset.
        end: the offset behind the last.
        newest: where the partition ended when the micro-batch was planned; 0 where nobody asks.
    """

    topic: str
    partition: int
    begin: int
    end: int
    newest: int = 0


@dataclass(frozen=True)
class KafkaPosition:
    """The end of a micro-batch in one input.

    Attributes:
        at: the next offset of each partition; `EARLIEST` before it is begun.
        begun: where partitions begin that the micro-batch is the first to read.
        newest: where the partitions ended when it was planned; empty where nobody asks.
    """

    at: Mapping[PartitionRef, int]
    begun: Mapping[PartitionRef, int] = field(default_factory=dict)
    newest: Mapping[PartitionRef, int] = field(default_factory=dict)

    def to_offset(self) -> dict[str, Any]:
        """Return the position as JSON."""
        rare = {_BEGUN: self.begun, _NEWEST_ENDS: self.newest}
        return {
            _AT: nest_offsets(self.at),
            **{name: nest_offsets(value) for name, value in rare.items() if value},
        }

    @classmethod
    def from_offset(cls, offset: Mapping[str, Any]) -> KafkaPosition:
        """Return the position that JSON describes; an empty object has none."""
        return cls(
            flatten_offsets(offset.get(_AT, {})),
            flatten_offsets(offset.get(_BEGUN, {})),
            flatten_offsets(offset.get(_NEWEST_ENDS, {})),
        )


def is_position(offset: Mapping[str, Any]) -> bool:
    """Return whether an object is the position of a Kafka input."""
    return _AT in offset


def list_kafka_ends(data: Any) -> list[Offsets]:
    """Return the next offsets of each Kafka input in the position of a stream, in their order.

    Args:
        data: the position, as JSON; where there are several inputs, of each by its name.
    """
    if not isinstance(data, Mapping):
        return []
    if is_position(data):
        at = KafkaPosition.from_offset(data).at
        return [nest_offsets({place: offset for place, offset in at.items() if offset >= 0})]
    return [ends for child in data.values() for ends in list_kafka_ends(child)]


def replace_kafka_ends(data: Any, ends: Iterable[Offsets]) -> Any:
    """Return the position of a stream with other next offsets of its Kafka inputs.

    Args:
        data: the position, as JSON; see `list_kafka_ends`. One without Kafka is returned as it is.
        ends: the next offsets of each Kafka input, in their order.
    """
    left = iter(ends)

    def replace_inside(data: Any) -> Any:
        if not isinstance(data, Mapping):
            return data
        if is_position(data):
            return KafkaPosition(flatten_offsets(next(left))).to_offset()
        return {name: replace_inside(child) for name, child in data.items()}

    return replace_inside(data)


def limit_ends(
    stands: Mapping[PartitionRef, int], ends: Mapping[PartitionRef, int], messages: int
) -> dict[PartitionRef, int]:
    """Return how far a micro-batch goes that takes so many messages at most.

    Each partition gives a part as large as its part of what waits, and one message at least.

    Args:
        stands: where the partitions stand.
        ends: where they end.
        messages: how many messages.
    """
    waiting = {place: end - stands[place] for place, end in ends.items()}
    total = sum(count for count in waiting.values() if count > 0)
    if total <= messages:
        return dict(ends)
    return {
        place: stands[place] + max(waiting[place] * messages // total, 1)
        if waiting[place] > 0
        else end
        for place, end in ends.items()
    }


def split_ranges(
    begin: KafkaPosition, end: KafkaPosition, parts: int, least_parts: int = 0
) -> list[KafkaPiece]:
    """Return the pieces of a micro-batch, in an order that is the same whenever it comes again.

    Args:
        begin: the end of the micro-batch before.
        end: its own.
        parts: into how many parts it is cut where it is large; 0 for a piece for each partition.
        least_parts: into how many however small it is.
    """
    ranges = []
    for place, until in sorted(end.at.items()):
        since = begin.at.get(place, -1)
        since = end.begun.get(place, 0) if since < 0 else since
        if since < until:
            ranges.append(KafkaPiece(*place, since, until, end.newest.get(place, 0)))
    total = sum(one.end - one.begin for one in ranges)
    size = max(total // parts, _LEAST_PIECE) if parts else total
    if least_parts:
        size = min(size, max(total // least_parts, 1))
    return [piece for one in ranges for piece in _cut(one, size)]


def _cut(piece: KafkaPiece, size: int) -> list[KafkaPiece]:
    """Cut a piece into equal ones of about a size."""
    length = piece.end - piece.begin
    count = max(round(length / size), 1) if size else 1
    edges = [piece.begin + length * number // count for number in range(count + 1)]
    return [
        piece._replace(begin=since, end=until)
        for since, until in zip(edges[:-1], edges[1:], strict=True)
    ]
