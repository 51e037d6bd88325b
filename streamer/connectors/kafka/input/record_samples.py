"""Samples of the records of some partitions, read within a limited time."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator
from typing import Final

from streamer.connectors.kafka.cluster.connection import Connection
from streamer.connectors.kafka.input.fetcher_pool import open_fetcher
from streamer.connectors.kafka.input.partition_fetcher import (
    FetchSettings,
    PartitionFetcher,
    PartitionRange,
)
from streamer.connectors.kafka.input.record_batches import NeededFields, RecordColumns
from streamer.core.errors import StreamerError

_FETCH_BYTES: Final = 65_536
_WAIT_MS: Final = 50


def sample_records(
    connection: Connection,
    ranges: Iterable[PartitionRange],
    needed: NeededFields,
    timeout_s: float,
    make: Callable[[Connection, FetchSettings], PartitionFetcher] = open_fetcher,
) -> Iterator[tuple[PartitionRange, RecordColumns]]:
    """Give the first records of ranges; those that do not come in time are left out.

    It needs no right but to read, and no consumer group.

    Args:
        connection: how the cluster is reached.
        ranges: the ranges.
        needed: the fields that are read.
        timeout_s: seconds for all of them.
        make: connects.
    """
    until = time.monotonic() + timeout_s
    settings = FetchSettings(
        size=_FETCH_BYTES,
        wait_ms=_WAIT_MS,
        timeout_s=timeout_s / 2,
        progress_timeout_s=timeout_s / 2,
        skips_lost=True,
    )
    try:
        fetcher = make(connection, settings)
    except StreamerError:
        return
    try:
        for target in ranges:
            if time.monotonic() >= until:
                return
            try:
                columns = next(fetcher.read(target, needed), None)
            except StreamerError:
                # One may be refused, or without a leader; the others are not.
                continue
            if columns is not None:
                yield target, columns
    finally:
        fetcher.close()
