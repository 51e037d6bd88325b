"""Kafka inputs of a stream, which workers read by ranges, as they read files."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, cast

from streamer.connectors.kafka.input.opened_input import Offsets, OpenKafkaInput
from streamer.connectors.merged_source import MergedSource
from streamer.sdk.input.replayable import Limit, ReplayableSource

if TYPE_CHECKING:
    from streamer.connectors.kafka.input.kafka_source import KafkaSource
    from streamer.connectors.kafka.input.range_source import KafkaRangeSource


@dataclass(frozen=True)
class StreamKafkaInput:
    """A Kafka input of a stream.

    Attributes:
        input: the input.
        max_messages: messages that a micro-batch takes of it at most, unless the config says fewer.
        start_offsets: where a fresh checkpoint goes on from, by topic and partition; what is not in
            it begins where the config says.
    """

    input: KafkaSource
    max_messages: int = Limit().messages
    start_offsets: Offsets = field(default_factory=dict)


def split_kafka_inputs(source: Any) -> tuple[ReplayableSource, list[StreamKafkaInput]]:
    """Return what our source reads of an opened input, and its Kafka inputs in their order.

    Args:
        source: the opened input.
    """
    kafka_inputs: list[StreamKafkaInput] = []

    def rest(source: Any) -> ReplayableSource:
        if isinstance(source, OpenKafkaInput):
            kafka = cast("KafkaSource", source)
            kafka_inputs.append(StreamKafkaInput(kafka))
            from streamer.connectors.kafka.input.range_source import KafkaRangeSource

            return KafkaRangeSource(kafka)
        if not isinstance(source, MergedSource):
            return cast("ReplayableSource", source)
        inside = {name: rest(child) for name, child in source.sources.items()}
        return replace(source, sources=inside)

    ours = rest(source)
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
