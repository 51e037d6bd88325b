"""Requests for records, and what brokers answer; used by what fetches and by what watches."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple

from streamer.connectors.kafka.cluster.partition_ref import PartitionRef
from streamer.connectors.kafka.input.record_batches import AbortedTransaction


class BrokerAnswer(NamedTuple):
    """The answer of a broker about one partition.

    Attributes:
        error: the number of Kafka's error, 0 for none.
        records: batches.
        stable_end: where what may be read ends.
        aborted: transactions that were aborted among the records.
        is_throttled: whether the broker holds something back.
        replica: the broker that should be asked next; -1 for the leader.
    """

    error: int
    records: bytes
    stable_end: int
    aborted: list[AbortedTransaction]
    is_throttled: bool
    replica: int

    @classmethod
    def parse(cls, answer: Any, part: Any, is_committed: bool) -> BrokerAnswer:
        """Return what kafka-python's answer says of a partition.

        Args:
            answer: the answer.
            part: its part about the partition.
            is_committed: whether records of open transactions are left out.
        """
        aborted = [
            AbortedTransaction(one.first_offset, one.producer_id)
            for one in (part.aborted_transactions or ())
        ]
        return cls(
            part.error_code,
            part.records or b"",
            part.last_stable_offset if is_committed else part.high_watermark,
            aborted,
            bool(answer.throttle_time_ms),
            part.preferred_read_replica,
        )


def no_answer(error: int) -> BrokerAnswer:
    """Return an answer without records."""
    return BrokerAnswer(error, b"", -1, [], False, -1)


def parse_answers(answer: Any, is_committed: bool) -> dict[PartitionRef, BrokerAnswer]:
    """Return what kafka-python's answer says of each partition."""
    return {
        (topic.topic, part.partition_index): BrokerAnswer.parse(answer, part, is_committed)
        for topic in answer.responses
        for part in topic.partitions
    }


class PendingAnswer:
    """An answer that a session waits for in its own thread."""

    def __init__(self, manager: Any, query: Callable[[], Any]) -> None:
        self._done = threading.Event()
        self._future = manager.call_soon(query)
        self._future.add_both(lambda _: self._done.set())

    def result(self, timeout_s: float) -> Any:
        """Return the answer, or raise why there is none."""
        if not self._done.wait(timeout_s):
            raise TimeoutError("it does not answer in time")
        if self._future.exception is not None:
            raise self._future.exception
        return self._future.value


async def find_leaders(
    manager: Any, topics: Iterable[str], timeout_s: float
) -> dict[PartitionRef, int]:
    """Return the leaders of the partitions of topics now; -1 stands for nobody.

    Args:
        manager: kafka-python's connections.
        topics: their names.
        timeout_s: seconds for the first connection.
    """
    from kafka.protocol.metadata import MetadataRequest

    if not manager.bootstrapped:
        await manager.bootstrap_async(timeout_s * 1000, False)
    named = MetadataRequest.MetadataRequestTopic
    listed = await manager.send(
        MetadataRequest(
            topics=[named(topic_id=None, name=topic) for topic in topics],
            # A reader must not make the topic that it misses.
            allow_auto_topic_creation=False,
            include_cluster_authorized_operations=False,
            include_topic_authorized_operations=False,
        )
    )
    manager.cluster.update_metadata(listed)
    return {
        (topic.name, one.partition_index): one.leader_id
        for topic in listed.topics
        for one in topic.partitions
    }


def make_fetch_request(
    offsets: Mapping[PartitionRef, int],
    size: int,
    wait_ms: int,
    is_committed: bool,
    rack: str = "",
    min_bytes: int = 1,
) -> Any:
    """Return a request for what is in partitions from offsets on.

    Args:
        offsets: the offsets.
        size: the most bytes of the answer, unless the first batch is larger.
        wait_ms: how long the broker waits for what is not there yet.
        is_committed: whether records of open transactions are left out.
        rack: where the client is; empty for nowhere.
        min_bytes: the fewest bytes that the broker answers with before.
    """
    from kafka.protocol.consumer import FetchRequest

    fetched = FetchRequest.FetchTopic
    by_topic: dict[str, list[Any]] = {}
    for (topic, number), offset in offsets.items():
        partition = fetched.FetchPartition(
            partition=number,
            current_leader_epoch=-1,
            fetch_offset=offset,
            last_fetched_epoch=-1,
            log_start_offset=-1,
            partition_max_bytes=size,
        )
        by_topic.setdefault(topic, []).append(partition)
    return FetchRequest(
        replica_id=-1,
        max_wait_ms=wait_ms,
        min_bytes=min_bytes,
        max_bytes=size,
        isolation_level=int(is_committed),
        session_id=0,
        session_epoch=-1,
        topics=[fetched(topic=topic, partitions=parts) for topic, parts in by_topic.items()],
        forgotten_topics_data=[],
        rack_id=rack,
        # Later versions name topics by their ids.
        max_version=12,
    )
