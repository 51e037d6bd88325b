"""Messages of Kafka with the metadata that somebody reads."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from streamer.connectors.kafka.input.message_metadata import NeededMetadata, make_chunk
from streamer.connectors.kafka.input.opened_input import MetadataSettings
from streamer.connectors.kafka.input.positions import KafkaPiece
from streamer.connectors.kafka.input.record_batches import RecordColumns
from streamer.sdk.input.replayable import RawMessages

PIECE = KafkaPiece("a", 3, 10, 13, newest=13)
COLUMNS = RecordColumns(
    values=[b"", b"v"],
    keys=[b"", b"\xffkey"],
    timestamps=[10_000, 12_345],
    headers=[[("h", b"1"), ("h", b"2"), ("kafka_key", b"mine"), ("n", b"")], []],
    offsets=[10, 12],
    tombstones=[0],
)


def read(
    settings: MetadataSettings, needed: NeededMetadata, columns: RecordColumns = COLUMNS
) -> list[tuple[bytes, dict[str, Any]]]:
    chunk = make_chunk(columns, PIECE, settings, needed)
    if isinstance(chunk, RawMessages):
        return [(raw, {}) for raw in chunk.raws]
    return [(one.raw, dict(one.meta)) for [one] in chunk]


def test_metadata_are_those_of_redpanda_connect() -> None:
    first, second = read(MetadataSettings(named_first=True), NeededMetadata())
    assert first == (
        b"",
        {
            "kafka_key": "",
            "kafka_topic": "a",
            "kafka_partition": 3,
            "kafka_offset": 10,
            "kafka_lag": 2,
            "kafka_timestamp_ms": 10_000,
            "kafka_timestamp_unix": 10,
            "kafka_tombstone_message": True,
            "h": "2",
            "n": "",
        },
    )
    assert second[0] == b"v" and second[1]["kafka_key"] == "\udcffkey"
    assert (second[1]["kafka_lag"], second[1]["kafka_timestamp_unix"]) == (0, 12)


def test_keys_are_bytes_and_headers_lists_and_hide_names_where_connect_does_so() -> None:
    settings = MetadataSettings(key_bytes=True, multi_header=True)
    first, second = read(settings, NeededMetadata())
    assert first[1]["kafka_key"] == ["mine"] and first[1]["h"] == ["1", "2"]
    assert second[1]["kafka_key"] == b"\xffkey"


@given(
    keys=st.frozensets(
        st.sampled_from(
            ["kafka_key", "kafka_offset", "kafka_lag", "kafka_timestamp_ms", "kafka_topic", "h"]
        )
    ),
    named_first=st.booleans(),
    multi=st.booleans(),
)
def test_what_nobody_reads_is_missed_by_nobody(
    keys: frozenset[str], named_first: bool, multi: bool
) -> None:
    settings, needed = MetadataSettings(False, multi, named_first), NeededMetadata(keys)
    fields = needed.fields
    # Fields that are not needed are not decoded.
    some = COLUMNS._replace(
        keys=COLUMNS.keys if fields.keys else [],
        timestamps=COLUMNS.timestamps if fields.timestamps else [],
        headers=COLUMNS.headers if fields.headers else [],
        offsets=COLUMNS.offsets if fields.offsets else [],
    )
    expected = [
        (raw, {name: value for name, value in meta.items() if name in keys})
        for raw, meta in read(settings, NeededMetadata())
    ]
    assert read(settings, needed, some) == expected
