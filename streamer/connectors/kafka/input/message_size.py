"""Estimates the size of messages from a few of the newest."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

from streamer.connectors.kafka.cluster.connection import Connection
from streamer.connectors.kafka.cluster.partition_ref import PartitionRef
from streamer.connectors.kafka.input.partition_fetcher import PartitionRange
from streamer.connectors.kafka.input.record_batches import NeededFields, RecordColumns
from streamer.connectors.kafka.input.record_samples import sample_records

_SAMPLED_PARTITIONS: Final = 4
_SAMPLED_MESSAGES: Final = 50
_TIMEOUT_S: Final = 3.0
_NEEDED: Final = NeededFields(keys=True, headers=True)


def mean_message_size(
    connection: Connection, begins: Mapping[PartitionRef, int], ends: Mapping[PartitionRef, int]
) -> int | None:
    """Return the mean size of the last messages of the fullest partitions, in bytes.

    None when there are no messages, or none come in time.

    Args:
        connection: how the cluster is reached.
        begins: the offsets of the oldest messages.
        ends: the offsets after the newest ones.
    """
    ranges = choose_ranges(begins, ends)
    if not ranges:
        return None
    sampled = sample_records(connection, ranges, _NEEDED, _TIMEOUT_S)
    return compute_mean_size(columns for _, columns in sampled)


def choose_ranges(
    begins: Mapping[PartitionRef, int], ends: Mapping[PartitionRef, int]
) -> list[PartitionRange]:
    """Return where the last messages of the fullest partitions are."""
    counts = {place: end - begins.get(place, end) for place, end in ends.items()}
    fullest = [place for place in sorted(counts, key=lambda one: -counts[one]) if counts[place] > 0]
    return [
        PartitionRange(*place, max(ends[place] - _SAMPLED_MESSAGES, begins[place]), ends[place])
        for place in fullest[:_SAMPLED_PARTITIONS]
    ]


def compute_mean_size(samples: Iterable[RecordColumns]) -> int | None:
    """Return the mean size of records with their keys and headers, bytes; None for no records."""
    count = size = 0
    for columns in samples:
        count += len(columns.values)
        size += sum(map(len, columns.values)) + sum(map(len, columns.keys))
        size += sum(
            len(name) + len(value) for headers in columns.headers for name, value in headers
        )
    return max(size // count, 1) if count else None
