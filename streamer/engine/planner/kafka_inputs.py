"""Kafka inputs, and the rest of an input beside them.

Workers read their ranges, as they read files; or Spark reads them with its own source (`jvm`). Then
an empty source keeps the place of each in the input, so that the others have the numbers that the
config gives them.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Final, NamedTuple, cast

from streamer.connectors.kafka.input.opened_input import MetadataSettings, Offsets, OpenKafkaInput
from streamer.connectors.merged_source import MergedSource
from streamer.core.execution import Execution
from streamer.sdk.input.replayable import Chunk, LatestOffset, Limit, Offset, ReplayableSource

if TYPE_CHECKING:
    from streamer.connectors.kafka.input.kafka_source import KafkaSource
    from streamer.connectors.kafka.input.range_source import KafkaRangeSource


JVM_READER: Final = "jvm"
WORKER_READER: Final = "workers"


class KafkaInputRef(NamedTuple):
    """A Kafka input as tasks see it.

    Attributes:
        number: its number among the Kafka inputs of the stream, from 0.
        input_path: its numbers in the brokers that it is in, the outermost first; none for the only
            input.
        names: its names in them.
        metadata: how its messages are described.
    """

    number: int
    input_path: tuple[int, ...]
    names: tuple[str, ...]
    metadata: MetadataSettings


@dataclass(frozen=True)
class StreamKafkaInput:
    """A Kafka input of a stream.

    Attributes:
        ref: where it stands.
        input: the input.
        max_messages: messages that a micro-batch takes of it at most, unless the config says fewer.
        start_offsets: where a fresh checkpoint goes on from, by topic and partition; what is not in
            it begins where the config says.
    """

    ref: KafkaInputRef
    input: KafkaSource
    max_messages: int = Limit().messages
    start_offsets: Offsets = field(default_factory=dict)

    def options(self) -> dict[str, str]:
        """Return the options of Spark's source."""
        options = self.input.spark_options(self.max_messages)
        if self.start_offsets:
            starting_text = options.get("startingOffsets", "")
            known: dict[str, dict[str, int]] = (
                json.loads(starting_text) if starting_text.startswith("{") else {}
            )
            for topic, ends in self.start_offsets.items():
                known[topic] = {**known.get(topic, {}), **ends}
            options["startingOffsets"] = json.dumps(known)
        return options


class EmptySource:
    """Stands where an input is that Spark reads: it has nothing, and never ends."""

    def initial_offset(self) -> Offset:
        """Return the only position."""
        return {}

    def latest_offset(self, start: Offset, now: int, limit: Limit) -> LatestOffset:
        """Return that nothing waits; no position of another reader stays."""
        return LatestOffset({}, 0)

    def watch(self, wake: Callable[[], None]) -> None:
        """Do nothing: nothing ever comes."""

    def next_poll(self, start: Offset, now: int) -> int | None:
        """Return no time: nothing ever comes."""
        return None

    def split(self, start: Offset, end: Offset, parts: int) -> list[Any]:
        """Return no pieces."""
        return []

    def read(self, piece: Any, ex: Execution) -> Iterator[Chunk]:
        """Give nothing."""
        yield from ()

    def partition_of(self, piece: Any) -> str:
        """Return no name."""
        return ""

    def on_committed(self, end: Offset) -> None:
        """Do nothing: there is nothing to commit."""

    def on_finished(self) -> None:
        """Do nothing: there is no end."""


def split_kafka_inputs(
    source: Any, reader: str = JVM_READER
) -> tuple[ReplayableSource, list[StreamKafkaInput]]:
    """Return what our source reads of an opened input, and its Kafka inputs in their order.

    Args:
        source: the opened input.
        reader: who reads Kafka: `jvm` or `workers`.
    """
    kafka_inputs: list[StreamKafkaInput] = []

    def rest(source: Any, input_path: tuple[int, ...], names: tuple[str, ...]) -> ReplayableSource:
        if isinstance(source, OpenKafkaInput):
            kafka = cast("KafkaSource", source)
            place = KafkaInputRef(len(kafka_inputs), input_path, names, kafka.metadata)
            kafka_inputs.append(StreamKafkaInput(place, kafka))
            if reader == JVM_READER:
                return EmptySource()
            from streamer.connectors.kafka.input.range_source import KafkaRangeSource

            return KafkaRangeSource(kafka)
        if not isinstance(source, MergedSource):
            return cast("ReplayableSource", source)
        inside = {
            name: rest(child, (*input_path, number), (*names, name))
            for number, (name, child) in enumerate(source.sources.items())
        }
        return replace(source, sources=inside)

    ours = rest(source, (), ())
    return (ours, kafka_inputs) if kafka_inputs else (source, [])


def replace_range_sources(source: Any, sources: Sequence[ReplayableSource]) -> ReplayableSource:
    """Return an input whose Kafka inputs, which workers read, are replaced in their order."""
    left = iter(sources)

    def replaced(source: Any) -> Any:
        if isinstance(source, MergedSource):
            inside = {name: replaced(child) for name, child in source.sources.items()}
            return replace(source, sources=inside)
        return next(left) if is_range_source(source) else source

    result: ReplayableSource = replaced(source)
    return result


def list_range_sources(source: Any) -> list[KafkaRangeSource]:
    """Return the Kafka inputs of an input that workers read, in their order."""
    if isinstance(source, MergedSource):
        return [one for child in source.sources.values() for one in list_range_sources(child)]
    if isinstance(inner := getattr(source, "source", None), MergedSource) or is_range_source(inner):
        return list_range_sources(inner)  # what a drain reads
    return [source] if is_range_source(source) else []


def is_range_source(source: Any) -> bool:
    """Return whether a source is a Kafka input that workers read."""
    return bool(getattr(source, "has_partitions", False))
