"""Values of an opened Kafka input that the engine knows without loading its clients."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

Offsets = Mapping[str, Mapping[str, int]]
"""Positions, `{"topic": {"0": 123}}`: the next to be read."""


class OpenKafkaInput:
    """Base of `KafkaSource`, by which the engine tells it from inputs that it reads itself."""


@dataclass(frozen=True, slots=True)
class Backlog:
    """Messages of the topics beyond the planned offsets.

    Attributes:
        waiting: messages beyond the offsets that were given; transactions' marks count with them.
        more: more wait than one micro-batch takes.
        ends: the ends of all partitions.
    """

    waiting: int
    more: bool
    ends: Offsets

    def lag_behind(self, position: Offsets) -> dict[tuple[str, str], int]:
        """Return, by topic and partition, how many messages the ends are ahead of a position."""
        return {
            (topic, partition): max(end - position[topic][partition], 0)
            for topic, ends in self.ends.items()
            for partition, end in ends.items()
            if partition in position.get(topic, {})
        }


@dataclass(frozen=True, slots=True)
class MetadataSettings:
    """Settings of the metadata of messages. They can be pickled.

    Attributes:
        key_bytes: `kafka_key` is bytes, not a string, as with `redpanda`.
        multi_header: a header's value is the list of all values of that name.
        named_first: a header cannot take the place of `kafka_key` and its like, as with `kafka`.
    """

    key_bytes: bool = False
    multi_header: bool = False
    named_first: bool = False
