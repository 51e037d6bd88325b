"""Ranges of partitions, fetched from a real broker."""

from __future__ import annotations

import random
import time
from collections.abc import Iterator
from typing import Any

import pytest
from kafka.protocol.admin.client_quotas import AlterClientQuotasRequest

from streamer.connectors.kafka.cluster.broker_session import BrokerSession
from streamer.connectors.kafka.cluster.connection import Connection
from streamer.connectors.kafka.cluster.errors import KafkaError
from streamer.connectors.kafka.input.arrival_watch import ArrivalWatch
from streamer.connectors.kafka.input.data_loss import DataLostError
from streamer.connectors.kafka.input.fetch_ahead import FetchAhead
from streamer.connectors.kafka.input.message_size import mean_message_size
from streamer.connectors.kafka.input.message_times import read_message_times
from streamer.connectors.kafka.input.partition_fetcher import (
    BrokerAnswer,
    FetchSettings,
    PartitionFetcher,
    PartitionRange,
    _RangeRead,
)
from streamer.connectors.kafka.input.record_batches import NeededFields
from tests.servers.kafka import Broker, Kafka, Record

pytestmark = pytest.mark.slow

OFFSETS = NeededFields(offsets=True)


@pytest.fixture
def fetcher(kafka: Kafka) -> Iterator[Any]:
    sessions: list[BrokerSession] = []

    def made(**settings: Any) -> PartitionFetcher:
        sessions.append(BrokerSession(Connection((kafka.bootstrap,))))
        return PartitionFetcher(sessions[-1], FetchSettings(wait_ms=100)._replace(**settings))

    yield made
    for session in sessions:
        session.close()


def read(one: PartitionFetcher, topic: str, begin: int, end: int) -> list[tuple[int, bytes]]:
    chunks = one.read(PartitionRange(topic, 0, begin, end), OFFSETS)
    return [pair for chunk in chunks for pair in zip(chunk.offsets, chunk.values, strict=True)]


@pytest.mark.parametrize("codec", ["none", "gzip", "snappy", "lz4", "zstd"])
def test_records_of_every_compression_and_size(fetcher: Any, kafka: Kafka, codec: str) -> None:
    topic = kafka.create(f"fetched-{codec}")
    rng = random.Random(1)
    values = [rng.randbytes(rng.choice([0, 9, 1000, 100_000])) + b"x" * 500 for _ in range(60)]
    kafka.produce(topic, *values, compression_type=codec, linger_ms=20)
    one = fetcher(size=150_000)
    assert read(one, topic, 0, 60) == list(enumerate(values))
    for begin, end in ((59, 60), (0, 1), (17, 43), (5, 5)):
        assert read(one, topic, begin, end) == [(n, values[n]) for n in range(begin, end)]


def test_many_partitions_take_one_request(fetcher: Any, kafka: Kafka) -> None:
    topic, count = kafka.create("fetched-together", partitions=30), 5
    values = [f"{n % 30}-{n // 30}" for n in range(30 * count)]
    kafka.produce(topic, *(Record(v.encode(), partition=n % 30) for n, v in enumerate(values)))
    one = fetcher()
    single: list[PartitionRange] = []
    begin = one.begin
    one.begin = lambda target, at: single.append(target) or begin(target, at)
    # The first is gone, one is not there, and one goes on beyond what is there: others do not mind.
    kafka.delete_records(topic, {0: 3})
    ranges = [PartitionRange(topic, number, 1, count) for number in range(30)]
    ahead = FetchAhead([*ranges, PartitionRange(topic, 99, 0, 5)])
    with pytest.raises(DataLostError, match="fetched-together:0 was to be read from 1"):
        list(one.read(ranges[0], OFFSETS, ahead.take(one, ranges[0])))
    single.clear()
    for target in ranges[1:]:
        chunks = list(one.read(target, OFFSETS, ahead.take(one, target)))
        found = [value for chunk in chunks for value in chunk.values]
        assert found == [f"{target.partition}-{number}".encode() for number in range(1, count)]
    assert not single, "all came with one answer"


def test_a_range_ends_behind_marks_of_transactions(fetcher: Any, kafka: Kafka) -> None:
    topic = kafka.create("fetched-transactions")
    kafka.produce(topic, "a", "b", transaction="t1")  # 0, 1, mark 2
    producer = kafka.producer("t2", linger_ms=0)
    producer.begin_transaction()
    kafka.produce(topic, "plain")
    producer.produce(topic, b"aborted")
    producer.flush(30)
    producer.abort_transaction(30)  # 4, mark 5
    committed, whole = fetcher(is_committed=True), fetcher()
    assert read(committed, topic, 0, 6) == [(0, b"a"), (1, b"b"), (3, b"plain")]
    assert read(committed, topic, 4, 6) == [] == read(committed, topic, 2, 3)
    assert [value for _, value in read(whole, topic, 0, 6)] == [b"a", b"b", b"plain", b"aborted"]


def test_what_compaction_has_left(fetcher: Any, kafka: Kafka) -> None:
    topic = kafka.create(
        *("fetched-compacted", 1),
        cleanup_policy="compact",
        segment_ms=100,
        min_cleanable_dirty_ratio=0.01,
        max_compaction_lag_ms=100,
    )
    for n in range(20):
        kafka.produce(topic, Record(b"%d" % n, b"k%d" % (n % 2)))
    until = time.monotonic() + 60
    while len(kafka.consume(topic)) > 10:
        assert time.monotonic() < until, "nothing is compacted"
        time.sleep(0.3)
        kafka.produce(topic, Record(b"new", b"k2"))
    end = kafka.end_offsets(topic)[0]
    left = [(one.offset, one.value) for one in kafka.consume(topic)]
    one = fetcher()
    assert read(one, topic, 0, end) == left
    assert read(one, topic, 1, left[0][0]) == []


def test_what_is_gone_is_an_error_or_left_out(fetcher: Any, kafka: Kafka) -> None:
    topic = kafka.create("fetched-gone")
    kafka.produce(topic, *map(str, range(10)))
    kafka.delete_records(topic, {0: 6})
    with pytest.raises(DataLostError) as caught:
        read(fetcher(), topic, 2, 9)
    assert "fetched-gone:0 was to be read from 2 to 9, and it begins at 6" in str(caught.value)
    lenient = fetcher(skips_lost=True)
    assert [offset for offset, _ in read(lenient, topic, 2, 9)] == [6, 7, 8]
    assert read(lenient, topic, 2, 5) == [] == read(lenient, topic, 20, 30)
    with pytest.raises(DataLostError, match="ends before 20"):
        read(fetcher(), topic, 20, 30)


def test_a_topic_that_is_not_there_is_waited_for_and_not_made(fetcher: Any, kafka: Kafka) -> None:
    with pytest.raises(KafkaError, match="never-made:0 has given nothing from offset 0 on"):
        read(fetcher(progress_timeout_s=1.0), "never-made", 0, 1)
    assert "never-made" not in kafka.topics()


def test_a_broker_that_comes_back_is_read_on(tmp_path: Any) -> None:
    with Broker(tmp_path / "broker") as broker:
        client = broker.client()
        client.create("back")
        client.produce("back", *map(str, range(50)), batch_num_messages=1)
        session = BrokerSession(Connection((broker.address(),)))
        one = PartitionFetcher(session, FetchSettings(size=1, wait_ms=100, timeout_s=2))
        chunks = one.read(PartitionRange("back", 0, 0, 50), OFFSETS)
        found = next(chunks).offsets
        broker.kill()
        broker.start()
        found += [offset for chunk in chunks for offset in chunk.offsets]
        assert found == list(range(50))
        session.close()


def test_the_planner_is_woken_for_what_comes_and_for_nothing_else(kafka: Kafka) -> None:
    topic = kafka.create("watched", 2)
    kafka.produce(topic, Record(b"known", partition=1))
    woken: list[float] = []
    watch = ArrivalWatch(Connection((kafka.bootstrap,)), is_committed=False)
    watch.start(lambda: woken.append(time.monotonic()))
    watch.note_poll({(topic, 0): 0, (topic, 1): 1})
    time.sleep(1)
    assert not woken
    for number in (0, 1):
        kafka.produce(topic, Record(b"new", partition=number))
        until = time.monotonic() + 30
        while len(woken) <= number and time.monotonic() < until:
            time.sleep(0.01)
        assert watch.is_working and len(woken) == number + 1
        watch.note_poll({(topic, 0): 1, (topic, 1): 1 + number})
    time.sleep(0.3)
    assert len(woken) == 2


@pytest.mark.parametrize("codec", ["snappy", "zstd"])
def test_sizes_and_times_are_sampled(kafka: Kafka, codec: str) -> None:
    topic = kafka.create(f"sampled-{codec}", partitions=2)
    records = [Record(b"v" * 90, b"key", (("h", b"123456"),), 0, timestamp=n) for n in range(80)]
    kafka.produce(topic, *records, compression_type=codec)
    kafka.produce(topic, Record(b"", None, (), 1), transaction=f"sampling-{codec}")  # 0, mark 1
    kafka.produce(topic, Record(b"", None, (), 1, timestamp=7_000))
    connection = Connection((kafka.bootstrap,))
    begins = {(topic, 0): 0, (topic, 1): 0}
    assert mean_message_size(connection, begins, {(topic, 0): 80}) == 100
    assert mean_message_size(connection, begins, {(topic, 0): 0}) is None
    ranges = [
        PartitionRange(topic, 0, 41, 80),
        PartitionRange(topic, 1, 1, 3),
        # What is not there is not waited for.
        PartitionRange("nowhere", 0, 0, 9),
    ]
    began = time.monotonic()
    assert read_message_times(connection, ranges) == {(topic, 0): 41, (topic, 1): 7_000}
    assert time.monotonic() - began < 30


def test_a_quota_is_respected_and_all_is_read(
    kafka: Kafka, monkeypatch: pytest.MonkeyPatch
) -> None:
    empty_answers: list[bool] = []
    note_empty = _RangeRead._note_empty

    def note(read: _RangeRead, answer: BrokerAnswer) -> None:
        empty_answers.append(answer.is_throttled)
        note_empty(read, answer)

    monkeypatch.setattr(_RangeRead, "_note_empty", note)
    topic, rate = kafka.create("held-back"), 300_000
    values = [bytes([65 + n % 20]) * 60_000 for n in range(20)]
    kafka.produce(topic, *values, batch_num_messages=1)
    entry = AlterClientQuotasRequest.EntryData
    entity = entry.EntityData(entity_type="client-id", entity_name="held-back")
    quota = entry.OpData(key="consumer_byte_rate", value=float(rate), remove=False)
    session = BrokerSession(Connection((kafka.bootstrap,), client_id="held-back"))
    try:
        answer = session.query(
            lambda requests: requests.send(
                lambda: AlterClientQuotasRequest(
                    entries=[entry(entity=[entity], ops=[quota])], validate_only=False
                )
            ),
            30,
        )
        assert [one.error_code for one in answer.entries] == [0]
        one = PartitionFetcher(session, FetchSettings(size=200_000, wait_ms=100))
        until, is_held_back = time.monotonic() + 60, False
        while not is_held_back:  # the broker hears of the quota a moment later
            assert time.monotonic() < until
            began, found = time.monotonic(), list[bytes]()
            for chunk in one.read(PartitionRange(topic, 0, 0, 20), OFFSETS):
                found += chunk.values
            took = time.monotonic() - began
            assert found == values
            is_held_back = any(empty_answers)
        # A second's worth may go out before the broker holds anything back.
        assert took > 1.0
    finally:
        session.close()
