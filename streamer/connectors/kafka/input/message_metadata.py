"""Metadata of messages of Kafka, as Redpanda Connect names them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from streamer.connectors.kafka.input.opened_input import MetadataSettings
from streamer.connectors.kafka.input.positions import KafkaPiece
from streamer.connectors.kafka.input.record_batches import Header, NeededFields, RecordColumns
from streamer.core.message import NO_META, Message
from streamer.sdk.input.replayable import Chunk, LineMessages, RawMessages

RESERVED_METADATA: Final = (
    *("kafka_key", "kafka_topic", "kafka_partition", "kafka_offset", "kafka_lag"),
    *("kafka_timestamp_unix", "kafka_timestamp_ms", "kafka_tombstone_message"),
)
"""The metadata that every message has; all others are its headers."""

_TIMES: Final = ("kafka_timestamp_unix", "kafka_timestamp_ms")


@dataclass(frozen=True)
class NeededMetadata:
    """The metadata that any component of a stream can read; the rest is not made.

    Attributes:
        keys: by name; None for all, headers too.
    """

    keys: frozenset[str] | None = None

    def needs(self, *names: str) -> bool:
        """Return whether one of these may be read."""
        return self.keys is None or not self.keys.isdisjoint(names)

    @property
    def is_empty(self) -> bool:
        """Whether none is read."""
        return self.keys is not None and not self.keys

    @property
    def fields(self) -> NeededFields:
        """The fields of records that it takes."""
        return NeededFields(
            keys=self.needs("kafka_key"),
            timestamps=self.needs(*_TIMES),
            # Any name may be a header's.
            headers=not self.is_empty,
            offsets=self.needs("kafka_offset", "kafka_lag"),
        )


def make_chunk(
    columns: RecordColumns, piece: KafkaPiece, settings: MetadataSettings, needed: NeededMetadata
) -> Chunk:
    """Return records as messages.

    Args:
        columns: the records.
        piece: what they are of.
        settings: how they are described.
        needed: the metadata that is made.
    """
    values = columns.values
    if not isinstance(values, list):
        return LineMessages(values, NO_META)
    if needed.is_empty:
        return RawMessages(values, NO_META)
    metas = _make_metadata(columns, piece, settings, needed)
    return [[Message(raw, meta)] for raw, meta in zip(values, metas, strict=True)]


def _make_metadata(
    columns: RecordColumns, piece: KafkaPiece, settings: MetadataSettings, needed: NeededMetadata
) -> list[dict[str, Any]]:
    count = len(columns.values)
    by_name: dict[str, list[Any]] = {}
    if needed.needs("kafka_key"):
        keys: list[Any] = columns.keys
        by_name["kafka_key"] = keys if settings.key_bytes else [_decode_text(key) for key in keys]
    if needed.needs("kafka_topic"):
        by_name["kafka_topic"] = [piece.topic] * count
    if needed.needs("kafka_partition"):
        by_name["kafka_partition"] = [piece.partition] * count
    if needed.needs("kafka_offset"):
        by_name["kafka_offset"] = columns.offsets
    if needed.needs("kafka_lag"):
        by_name["kafka_lag"] = [max(piece.newest - offset - 1, 0) for offset in columns.offsets]
    if needed.needs("kafka_timestamp_ms"):
        by_name["kafka_timestamp_ms"] = columns.timestamps
    if needed.needs("kafka_timestamp_unix"):
        by_name["kafka_timestamp_unix"] = [ms // 1000 for ms in columns.timestamps]
    if needed.needs("kafka_tombstone_message"):
        tombstones = [False] * count
        for place in columns.tombstones:
            tombstones[place] = True
        by_name["kafka_tombstone_message"] = tombstones
    metas: list[dict[str, Any]] = [
        dict(zip(by_name, values, strict=True)) for values in zip(*by_name.values(), strict=True)
    ] or [{} for _ in range(count)]
    for meta, headers in zip(metas, columns.headers, strict=False):
        if headers:
            meta.update(_read_headers(headers, settings, needed))
    return metas


def _read_headers(
    headers: Iterable[Header], settings: MetadataSettings, needed: NeededMetadata
) -> Mapping[str, Any]:
    """Return the headers that become metadata."""
    values: dict[str, Any] = {}
    for name, value in headers:
        if settings.multi_header:
            values.setdefault(name, []).append(_decode_text(value))
        else:
            values[name] = _decode_text(value)
    return {
        name: value
        for name, value in values.items()
        if needed.needs(name) and not (settings.named_first and name in RESERVED_METADATA)
    }


def _decode_text(data: bytes) -> str:
    return data.decode("utf-8", "surrogateescape")
