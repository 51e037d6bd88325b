"""Fetching of ranges of partitions, in the process that reads them.

One request is under way while the answer before it is decoded and used, so that at most two answers
are in memory. Requests ask for no more than a range has left. The beginnings of many small ranges
come with one request (`fetch_ahead`).
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Final, NamedTuple

from streamer.connectors.kafka.cluster.errors import KafkaError
from streamer.connectors.kafka.cluster.partition_ref import PartitionRef
from streamer.connectors.kafka.input.data_loss import DataLostError
from streamer.connectors.kafka.input.fetch_requests import (
    BrokerAnswer,
    PendingAnswer,
    find_leaders,
    make_fetch_request,
    no_answer,
    parse_answers,
)
from streamer.connectors.kafka.input.record_batches import (
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

    def read(
        self, target: PartitionRange, needed: NeededFields, first: BrokerAnswer | None = None
    ) -> Iterator[RecordColumns]:
        """Fetch the records of a range, in order.

        Args:
            target: the range.
            needed: the fields that are read.
            first: what a broker has answered about its beginning; None for nothing yet.

        Raises:
            DataLostError: some of them are gone.
            KafkaError: no broker has answered for a minute, or it refuses.
            CorruptRecordsError: a batch is damaged.
        """
        return _RangeRead(self, target, needed).chunks(first)

    def begin(self, target: PartitionRange, at: int) -> PendingAnswer:
        """Request what is next in a range."""
        place = target.topic, target.partition
        node = self._replicas.get(place, self._leaders.get(place, -1))
        size = self.estimate_size(target._replace(begin=at))
        return self._submit(target, at, node, min(size, self._settings.size))

    def estimate_size(self, target: PartitionRange) -> int:
        """Return how many bytes a range may have, by what is known of its topic."""
        mean = self._record_bytes.get(target.topic, _FIRST_RECORD_BYTES)
        return max(int((target.end - target.begin) * mean * _SIZE_MARGIN), _LEAST_SIZE)

    def begin_together(self, ranges: Sequence[PartitionRange], size: int) -> PendingAnswer:
        """Request the beginnings of ranges of different partitions, by one request to each broker.

        Args:
            ranges: the ranges.
            size: the most bytes of an answer.

        Returns:
            The answers, by topic and partition; there is none where something is wrong.
        """

        async def query() -> dict[PartitionRef, BrokerAnswer]:
            settings, manager = self._settings, self._session.manager
            offsets = {(one.topic, one.partition): one.begin for one in ranges}
            if any(place not in self._leaders for place in offsets):
                topics = {topic for topic, _ in offsets}
                self._leaders |= await find_leaders(manager, topics, settings.timeout_s)
            by_node: dict[int, dict[PartitionRef, int]] = {}
            for place, at in offsets.items():
                node = self._replicas.get(place, self._leaders.get(place, -1))
                by_node.setdefault(node, {})[place] = at
            by_node.pop(-1, None)
            # What is there is answered at once: nobody has to wait for more.
            waiting = [
                manager.send(
                    make_fetch_request(some, size, 0, settings.is_committed, settings.rack),
                    node,
                    request_timeout_ms=settings.timeout_s * 1000,
                )
                for node, some in by_node.items()
            ]
            answers: dict[PartitionRef, BrokerAnswer] = {}
            for one in waiting:
                # Whoever reads the range asks again, and says what is wrong.
                with suppress(Exception):
                    answers |= parse_answers(await one, settings.is_committed)
            return answers

        return PendingAnswer(self._session.manager, query)

    def _submit(self, target: PartitionRange, at: int, node: int, size: int) -> PendingAnswer:
        async def query() -> BrokerAnswer:
            leader = node if node >= 0 else await self._find_leader(target)
            if leader < 0:
                return no_answer(_LEADER_CHANGES[1])
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
            if answer.throttle_time_ms and not answer.error_code and not answer.responses:
                # A broker that holds the client back by a quota gives nothing at first.
                return BrokerAnswer(_NONE, b"", -1, [], True, -1)
            if answer.error_code or not answer.responses:
                return no_answer(answer.error_code or _LEADER_CHANGES[0])
            part = answer.responses[0].partitions[0]
            return BrokerAnswer.parse(answer, part, settings.is_committed)

        return PendingAnswer(self._session.manager, query)

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

        offset: int = PendingAnswer(self._session.manager, query).result(
            self._settings.timeout_s + 1
        )
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
        self._progress_at = 0.0
        self._empty_answers = 0
        self._reason = ""

    def chunks(self, first: BrokerAnswer | None = None) -> Iterator[RecordColumns]:
        fetcher, target = self._fetcher, self._target
        # A broker leaves out of an answer to many what is too much: it shows nothing.
        if first is not None and not first.error:
            begun = self._decode(first)
            if begun.next_offset >= 0:
                self._at = max(begun.next_offset, self._at)
                if begun.columns.values:
                    yield begun.columns
        self._progress_at = fetcher.now()
        pending = fetcher.begin(target, self._at) if self._at < target.end else None
        while pending is not None:
            decoded = self._take(pending)
            if decoded is None:
                if (
                    self._at < target.end
                    and fetcher.now() - self._progress_at > self._progress_timeout_s
                ):
                    raise KafkaError(self._waited_text())
                pending = fetcher.begin(target, self._at) if self._at < target.end else None
                continue
            self._progress_at = fetcher.now()
            self._at = max(decoded.next_offset, self._at)
            pending = fetcher.begin(target, self._at) if self._at < target.end else None
            if decoded.columns.values:
                yield decoded.columns
                self._progress_at = fetcher.now()

    def _take(self, pending: PendingAnswer) -> Decoded | None:
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
        decoded = self._decode(answer)
        if decoded.next_offset < 0:
            if answer.replica < 0:
                self._note_empty(answer)
            return None
        self._pause, self._empty_answers = _RETRY_PAUSE_S, 0
        return decoded

    def _decode(self, answer: BrokerAnswer) -> Decoded:
        target = self._target
        try:
            decoded = decode_records(
                answer.records, self._at, target.end, self._needed, answer.aborted
            )
        except CorruptRecordsError as error:
            raise CorruptRecordsError(f"{target.topic}:{target.partition}: {error}") from None
        if decoded.next_offset >= 0:
            got = decoded.next_offset - self._at
            self._fetcher.note_size(target.topic, len(answer.records), got)
        return decoded

    def _note_empty(self, answer: BrokerAnswer) -> None:
        """Go on behind offsets that hold nothing up to the end of what may be read.

        The last records of a log may have been compacted away, or be marks of transactions.
        """
        if answer.is_throttled:
            # The session sends nothing more before the time is over; waiting longer is no fault.
            self._progress_at = self._fetcher.now()
            return
        if answer.stable_end < self._target.end:
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
