"""How large messages are: which of them are looked at, and what counts."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, cast

from streamer.connectors.kafka.cluster.connection import Connection
from streamer.connectors.kafka.cluster.errors import KafkaError
from streamer.connectors.kafka.input.message_size import choose_ranges, compute_mean_size
from streamer.connectors.kafka.input.partition_fetcher import PartitionFetcher, PartitionRange
from streamer.connectors.kafka.input.record_batches import NeededFields, RecordColumns
from streamer.connectors.kafka.input.record_samples import sample_records


def columns(*values: bytes) -> RecordColumns:
    headers = [[("h", b"12")] for _ in values]
    return RecordColumns([*values], [], [], [b"k" for _ in values], [], headers)


def test_the_newest_of_the_fullest_partitions_are_looked_at() -> None:
    ends = {("t", number): number * 100 for number in range(7)}
    begins = {place: 90 for place in ends}
    assert choose_ranges(begins, ends) == [
        PartitionRange("t", number, number * 100 - 50, number * 100) for number in (6, 5, 4, 3)
    ]
    assert choose_ranges({("t", 1): 95}, {("t", 1): 100}) == [PartitionRange("t", 1, 95, 100)]
    assert choose_ranges({("t", 1): 5}, {("t", 1): 5, ("gone", 0): 9}) == []


def test_keys_and_headers_count_and_of_nothing_there_is_no_mean() -> None:
    # Value, key, and the header's name and value.
    assert compute_mean_size([columns(b"1234"), columns(b"12345678", b"1234")]) == (8 + 12 + 8) // 3
    assert compute_mean_size([]) is None


def test_a_partition_that_is_refused_leaves_the_others_and_time_is_bounded() -> None:
    class Fetcher:
        closed = False

        def read(self, target: PartitionRange, needed: Any) -> Iterator[RecordColumns]:
            if target.partition == 1:
                raise KafkaError("no leader")
            if target.partition != 2:
                yield columns(b"v")

        def close(self) -> None:
            self.closed = True

    fetcher = Fetcher()
    targets = [PartitionRange("t", number, 0, 9) for number in range(4)]

    def sampled(timeout_s: float) -> list[int]:
        found = sample_records(
            Connection(("a",)),
            targets,
            NeededFields(),
            timeout_s,
            lambda *_: cast("PartitionFetcher", fetcher),
        )
        return [target.partition for target, _ in found]

    assert sampled(30) == [0, 3] and fetcher.closed
    assert sampled(0) == []
