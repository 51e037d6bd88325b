"""Kafka inputs, which Spark reads with its own source, and the rest of an input beside them.

The rest (ticks, files, spools) is read by our source. Where an input of a broker is Kafka's, an
empty one keeps its place there, so that the others have the numbers that the config gives them.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final, NamedTuple, cast

from streamer.engine.location import Location, numbers_in
from streamer.errors import StreamerError
from streamer.kafka.reading import KafkaReading, Metadata, Offsets
from streamer.message import Execution
from streamer.source.replayable import Chunk, Latest, Limit, Offset, Replayable
from streamer.source.several import Several

_VERSION: Final = "v1"
"""Of Spark's log of offsets."""


class KafkaPlace(NamedTuple):
    """What tasks know of a Kafka input.

    Attributes:
        number: its number among the Kafka inputs of the stream, from 0.
        way: its numbers in the brokers that it is in, the outermost first; none for the only input.
        names: its names in them.
        metadata: how its messages are described.
    """

    number: int
    way: tuple[int, ...]
    names: tuple[str, ...]
    metadata: Metadata


@dataclass(frozen=True)
class KafkaChild:
    """A Kafka input of a stream.

    Attributes:
        place: where it stands.
        reading: the input.
        most: messages that a micro-batch takes of it at most, unless the config says fewer.
        begins: where a fresh checkpoint goes on from, by topic and partition; what is not in it
            begins where the config says.
    """

    place: KafkaPlace
    reading: KafkaReading
    most: int = Limit().messages
    begins: Offsets = field(default_factory=dict)

    def options(self) -> dict[str, str]:
        """Return the options of Spark's source."""
        found = self.reading.options(self.most)
        if self.begins:
            said = found.get("startingOffsets", "")
            known: dict[str, dict[str, int]] = json.loads(said) if said.startswith("{") else {}
            for topic, ends in self.begins.items():
                known[topic] = {**known.get(topic, {}), **ends}
            found["startingOffsets"] = json.dumps(known)
        return found


class Nothing:
    """Stands where an input is that Spark reads: it has nothing, and never ends."""

    def initial(self) -> Offset:
        """Return the only position."""
        return {}

    def latest(self, start: Offset, now: int, limit: Limit) -> Latest:
        """Return that nothing waits."""
        return Latest(start, 0)

    def split(self, start: Offset, end: Offset, parts: int) -> list[Any]:
        """Return no pieces."""
        return []

    def read(self, piece: Any, ex: Execution) -> Iterator[Chunk]:
        """Give nothing."""
        yield from ()

    def partition(self, piece: Any) -> str:
        """Return no name."""
        return ""

    def committed(self, end: Offset) -> None:
        """Hear nothing new."""

    def finished(self) -> None:
        """Never hear it: there is no end."""


def apart(source: Any) -> tuple[Replayable, list[KafkaChild]]:
    """Return what our source reads of an opened input, and its Kafka inputs in their order."""
    found: list[KafkaChild] = []

    def rest(source: Any, way: tuple[int, ...], names: tuple[str, ...]) -> Replayable:
        if isinstance(source, KafkaReading):
            place = KafkaPlace(len(found), way, names, source.metadata)
            found.append(KafkaChild(place, source))
            return Nothing()
        if not isinstance(source, Several):
            return cast("Replayable", source)
        inside = {
            name: rest(child, (*way, number), (*names, name))
            for number, (name, child) in enumerate(source.sources.items())
        }
        return replace(source, sources=inside)

    ours = rest(source, (), ())
    return (ours, found) if found else (source, [])


class Planned(NamedTuple):
    """What Spark's log says of a micro-batch.

    Attributes:
        number: the micro-batch's.
        offset: where our source's part of it ends.
        ends: where it ends in Kafka, for each of the inputs.
    """

    number: int
    offset: Mapping[str, Any]
    ends: Sequence[Offsets]

    def told(self) -> str:
        """Return it as tasks are told."""
        return json.dumps(self)

    @classmethod
    def heard(cls, text: str) -> Planned:
        """Return what `told` has written."""
        return cls(*json.loads(text))


def is_before(ends: Sequence[Offsets], later: Sequence[Offsets]) -> bool:
    """Tell whether anything lies between two positions in the Kafka inputs of a stream.

    What only one of them knows does not count: a partition has come meanwhile, or is gone.

    Args:
        ends: the one, for each of the inputs.
        later: the other.
    """
    return any(
        at < beyond.get(topic, {}).get(partition, at)
        for known, beyond in zip(ends, later, strict=False)
        for topic, partitions in known.items()
        for partition, at in partitions.items()
    )


def planned(spark: Location, number: int) -> Planned:
    """Read where a micro-batch ends from Spark's checkpoint.

    Args:
        spark: Spark's checkpoint directory.
        number: the micro-batch's.

    Raises:
        StreamerError: the log has another form than it is known to have.
    """
    path = spark / "offsets" / str(number)
    content = path.read_bytes()
    try:
        version, settings, *offsets = content.decode().split("\n")
        if version == _VERSION and len(offsets) > 1 and "batchTimestampMs" in json.loads(settings):
            ours, *kafka = [{} if text == "-" else json.loads(text) for text in offsets]
            return Planned(number, ours, kafka)
    except (ValueError, TypeError):
        version = ""
    if re.fullmatch(r"v\d+", version) and version != _VERSION:
        raise StreamerError(
            f"{path} has the form {version}, expected {_VERSION}: another version of Spark wrote "
            "it; run the streamer that did, or start anew with another checkpoint"
        )
    how = "is empty" if not content else f"ends too soon or was written over ({len(content)} bytes)"
    raise StreamerError(
        f"{path} {how}: expected {_VERSION}, the micro-batch's settings and a line of offsets for "
        "each input; restore the checkpoint from a backup, or start anew with another one"
    )


def newest_planned(spark: Location) -> Planned | None:
    """Read where the newest micro-batch of a checkpoint ends; None before there is any."""
    newest = max(numbers_in(spark / "offsets"), default=None)
    return None if newest is None else planned(spark, newest)


def is_committed(spark: Location, number: int) -> bool:
    """Tell whether all of a micro-batch is done, as Spark's checkpoint has it."""
    return (spark / "commits" / str(number)).exists()
