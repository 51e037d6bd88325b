"""Times of the messages at some offsets."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from streamer.connectors.kafka.cluster.connection import Connection
from streamer.connectors.kafka.cluster.partition_ref import PartitionRef
from streamer.connectors.kafka.input.partition_fetcher import PartitionRange
from streamer.connectors.kafka.input.record_batches import NeededFields
from streamer.connectors.kafka.input.record_samples import sample_records

_TIMEOUT_S: Final = 5.0
_NEEDED: Final = NeededFields(timestamps=True)


def read_message_times(
    connection: Connection, ranges: Iterable[PartitionRange]
) -> dict[PartitionRef, int]:
    """Return the times of the first messages of ranges, Unix ms.

    Those that do not come in time are left out.

    Args:
        connection: how the cluster is reached.
        ranges: the ranges.
    """
    return {
        (target.topic, target.partition): columns.timestamps[0]
        for target, columns in sample_records(connection, ranges, _NEEDED, _TIMEOUT_S)
    }
