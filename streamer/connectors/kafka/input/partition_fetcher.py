"""Fetching of ranges of partitions, in the process that reads them.

One request is under way while the answer before it is decoded and used, so that at most two answers
are in memory. Requests ask for no more than a range has left.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from streamer.connectors.kafka.cluster.errors import KafkaError
from streamer.connectors.kafka.cluster.partition_ref import PartitionRef
from streamer.connectors.kafka.input.data_loss import DataLostError
from streamer.connectors.kafka.input.record_batches import (
    AbortedTransaction,
    CorruptRecordsError,
    Decoded,
    NeededFields,
    RecordColumns,
    decode_records,
)

if TYPE_CHECKING:
    from streamer.connectors.kafka.cluster.broker_session import BrokerSession

_READ_TIMEOUT_S: Final = 60.0
"""Seconds without a record or an empty answer after which a task gives up."""

_RETRY_PAUSE_S: Final = 0.1
_MAX_RETRY_PAUSE_S: Final = 1.0
_SIZE_MARGIN: Final = 1.1
_LEAST_SIZE: Final = 4096
_FIRST_RECORD_BYTES: Final = 256
"""The size of a record, with what is around it, before one was seen."""

_NONE, _OUT_OF_RANGE, _CORRUPT = 0, 1, 2
_LEADER_CHANGES: Final = (3, 5, 6, 7, 9, 56, 74, 75, 76, 78, 103)
"""Kafka's errors that pass: no leader, another one, one that does not know it is, timeouts."""
_REFUSED: Final = 29


class FetchSettings(NamedTuple):
    """The settings of fetches.

    Attributes:
        size: the most bytes of an answer, unless the first batch is larger.
        wait_ms: how long a broker waits for records.
        min_bytes: the fewest bytes that it answers with before.
        timeout_s: how long an answer may take beyond that.
        is_committed: whether records of open and aborted transactions are left out.
        rack: where the client is; empty for nowhere.
        skips_lost: whether records that are gone are left out, rather than an error.
        progress_timeout_s: seconds without a record or an empty answer after which reading ends.
    """

    size: int = 1 << 20
    wait_ms: int = 500
    min_bytes: int = 1
    timeout_s: float = 10.0
    is_committed: bool = False
    rack: str = ""
    skips_lost: bool = False
    progress_timeout_s: float = _READ_TIMEOUT_S


class PartitionRange(NamedTuple):
    """Offsets of a partition.

    Attributes:
        topic: its topic.
        partition: its number.
        begin: the first offset.
        end: the offset behind the last.
    """

    topic: str
    partition: int
    begin: int
    end: int


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


def _no_answer(error: int) -> BrokerAnswer:
    return BrokerAnswer(error, b"", -1, [], False, -1)


class PartitionFetcher:
    """Fetches records by one session with a cluster; it is kept from task to task.

    Not for several threads at once.
    """

    def __init__(
        self,
        session: BrokerSession,
        settings: FetchSettings,
        now: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        """Take the session.

        Args:
            session: connections to the cluster.
            settings: how records are fetched.
            now: a clock that never runs backwards, s.
            sleep: waits, s.
        """
        self._session = session
        self._settings = settings
        self._now = now
        self._sleep = sleep
        self._leaders: dict[tuple[str, int], int] = {}
        self._replicas: dict[tuple[str, int], int] = {}
        self._record_bytes: dict[str, float] = {}

    def read(self, target: PartitionRange, needed: NeededFields) -> Iterator[RecordColumns]:
        """Fetch the records of a range, in order.

        Raises:
            DataLostError: some of them are gone.
            KafkaError: no broker has answered for a minute, or it refuses.
            CorruptRecordsError: a batch is damaged.
        """
        return _RangeRead(self, target, needed).chunks()

    def begin(self, target: PartitionRange, at: int) -> _Pending:
        """Request what is next in a range."""
        place = target.topic, target.partition
        node = self._replicas.get(place, self._leaders.get(place, -1))
        mean = self._record_bytes.get(target.topic, _FIRST_RECORD_BYTES)
        size = max(int((target.end - at) * mean * _SIZE_MARGIN), _LEAST_SIZE)
        return self._submit(target, at, node, min(size, self._settings.size))

    def _submit(self, target: PartitionRange, at: int, node: int, size: int) -> _Pending:
        async def query() -> BrokerAnswer:
            leader = node if node >= 0 else await self._find_leader(target)
            if leader < 0:
                return _no_answer(_LEADER_CHANGES[1])
            settings = self._settings
            request = make_fetch_request(
                {(target.topic, target.partition): at},
                *(size, settings.wait_ms, settings.is_committed, settings.rack),
                settings.min_bytes,
            )
            timeout_s = settings.timeout_s + settings.wait_ms / 1000
            answer = await self._session.manager.send(
                request, leader, request_timeout_ms=timeout_s * 1000
            )
            if answer.error_code or not answer.responses:
                return _no_answer(answer.error_code or _LEADER_CHANGES[0])
            part = answer.responses[0].partitions[0]
            return BrokerAnswer.parse(answer, part, settings.is_committed)

        return _Pending(self._session.manager, query)

    async def _find_leader(self, target: PartitionRange) -> int:
        """Return the leader of a partition now; -1 for nobody."""
        manager = self._session.manager
        self._leaders |= await find_leaders(manager, [target.topic], self._settings.timeout_s)
        return self._leaders.get((target.topic, target.partition), -1)

    def first_offset(self, target: PartitionRange) -> int:
        """Return where a partition begins now; -1 when that is not known."""
        return self._session_offset(target, -2)

    def _session_offset(self, target: PartitionRange, time_ms: int) -> int:
        from kafka.protocol.consumer import ListOffsetsRequest

        async def query() -> int:
            leader = await self._find_leader(target)
            if leader < 0:
                return -1
            topic = ListOffsetsRequest.ListOffsetsTopic
            partition = topic.ListOffsetsPartition(
                partition_index=target.partition, current_leader_epoch=-1, timestamp=time_ms
            )
            answer = await self._session.manager.send(
                ListOffsetsRequest(
                    replica_id=-1,
                    isolation_level=0,
                    topics=[topic(name=target.topic, partitions=[partition])],
                    timeout_ms=round(self._settings.timeout_s * 1000),
                    max_version=6,
                ),
                leader,
            )
            listed = answer.topics[0].partitions[0]
            return -1 if listed.error_code else int(listed.offset)

        offset: int = _Pending(self._session.manager, query).result(self._settings.timeout_s + 1)
        return offset

    def close(self) -> None:
        """Disconnect."""
        self._session.close()

    def note_size(self, topic: str, size: int, offsets: int) -> None:
        """Note how many bytes so many offsets of a topic took."""
        if offsets > 0:
            self._record_bytes[topic] = size / offsets

    def note_replica(self, target: PartitionRange, node: int) -> None:
        """Note which broker is the closest that has a partition; -1 for the leader."""
        place = target.topic, target.partition
        if node >= 0:
            self._replicas[place] = node
        else:
            self._replicas.pop(place, None)

    def forget_leader(self, target: PartitionRange) -> None:
        """Forget the leader of a partition, so that it is requested again."""
        place = target.topic, target.partition
        self._leaders.pop(place, None)
        self._replicas.pop(place, None)

    def is_at_replica(self, target: PartitionRange) -> bool:
        """Return whether another broker than the leader is asked."""
        return (target.topic, target.partition) in self._replicas

    @property
    def settings(self) -> FetchSettings:
        """The settings of fetches."""
        return self._settings

    def now(self) -> float:
        """Return the time, s."""
        return self._now()

    def sleep(self, seconds: float) -> None:
        """Wait."""
        self._sleep(seconds)


class _RangeRead:
    """One range that is being read."""

    def __init__(
        self, fetcher: PartitionFetcher, target: PartitionRange, needed: NeededFields
    ) -> None:
        self._fetcher = fetcher
        self._target = target
        self._needed = needed
        self._at = target.begin
        self._pause = _RETRY_PAUSE_S
        self._progress_timeout_s = fetcher.settings.progress_timeout_s
        self._empty_answers = 0
        self._reason = ""

    def chunks(self) -> Iterator[RecordColumns]:
        fetcher, target = self._fetcher, self._target
        progress_at = fetcher.now()
        pending = fetcher.begin(target, self._at) if self._at < target.end else None
        while pending is not None:
            decoded = self._take(pending)
            if decoded is None:
                if self._at < target.end and fetcher.now() - progress_at > self._progress_timeout_s:
                    raise KafkaError(self._waited_text())
                pending = fetcher.begin(target, self._at) if self._at < target.end else None
                continue
            progress_at = fetcher.now()
            self._at = max(decoded.next_offset, self._at)
            pending = fetcher.begin(target, self._at) if self._at < target.end else None
            if decoded.columns.values:
                yield decoded.columns
                progress_at = fetcher.now()

    def _take(self, pending: _Pending) -> Decoded | None:
        """Return the records of an answer; None when there are none, after a pause."""
        fetcher, target, settings = self._fetcher, self._target, self._fetcher.settings
        try:
            answer: BrokerAnswer = pending.result(2 * settings.timeout_s + settings.wait_ms / 1000)
        except Exception as error:
            self._retry(f"{type(error).__name__}: {error}".rstrip(": "))
            return None
        if answer.error:
            self._handle_error(answer.error)
            return None
        fetcher.note_replica(target, answer.replica)
        try:
            decoded = decode_records(
                answer.records, self._at, target.end, self._needed, answer.aborted
            )
        except CorruptRecordsError as error:
            raise CorruptRecordsError(f"{target.topic}:{target.partition}: {error}") from None
        if decoded.next_offset < 0:
            if answer.replica < 0:
                self._note_empty(answer)
            return None
        self._pause, self._empty_answers = _RETRY_PAUSE_S, 0
        fetcher.note_size(target.topic, len(answer.records), decoded.next_offset - self._at)
        return decoded

    def _note_empty(self, answer: BrokerAnswer) -> None:
        """Go on behind offsets that hold nothing up to the end of what may be read.

        The last records of a log may have been compacted away, or be marks of transactions.
        """
        if answer.is_throttled or answer.stable_end < self._target.end:
            self._reason = f"the partition ends at {answer.stable_end}"
            self._fetcher.forget_leader(self._target)
            return
        self._empty_answers += 1
        if self._empty_answers > 1:
            self._at = self._target.end

    def _handle_error(self, code: int) -> None:
        target = self._target
        place = f"{target.topic}:{target.partition}"
        if code == _REFUSED:
            raise KafkaError(
                f"reading {place} is refused; grant READ on the topic {target.topic!r}",
                is_final=True,
            )
        if code == _OUT_OF_RANGE and not self._fetcher.is_at_replica(target):
            self._skip_lost(place)
            return
        if code == _CORRUPT:
            self._reason = "a broker finds a damaged batch in its log"
        elif code not in (*_LEADER_CHANGES, _OUT_OF_RANGE):
            self._reason = f"a broker answers with Kafka's error {code}"
        self._retry(self._reason or "its leader is changing")

    def _skip_lost(self, place: str) -> None:
        """Go on where a partition begins, when what was to be read is gone."""
        fetcher, target = self._fetcher, self._target
        begin = fetcher.first_offset(target)
        if begin < 0:
            self._retry("its leader is changing")
            return
        if fetcher.settings.skips_lost:
            # A topic that was made anew may be shorter: then there is nothing.
            self._at = min(begin, target.end) if begin > self._at else target.end
            return
        what = f"it begins at {begin}" if begin > self._at else f"it ends before {self._at}"
        raise DataLostError(
            f"unread messages are gone: {place} was to be read from {self._at} to {target.end}, "
            f"and {what}; use another checkpoint, or set fail_on_data_loss: false to continue "
            "with the remaining messages"
        )

    def _retry(self, reason: str) -> None:
        self._reason = reason
        self._fetcher.forget_leader(self._target)
        self._fetcher.sleep(self._pause)
        self._pause = min(self._pause * 2, _MAX_RETRY_PAUSE_S)

    def _waited_text(self) -> str:
        target = self._target
        return (
            f"{target.topic}:{target.partition} has given nothing from offset {self._at} on for "
            f"{self._progress_timeout_s:.0f} s, though it is to be read up to {target.end}"
            f"{f': {self._reason}' if self._reason else ''}; check the brokers of the topic"
        )


class _Pending:
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
