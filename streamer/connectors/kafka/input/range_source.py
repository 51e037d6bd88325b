"""A Kafka input as stage 1 reads it: a micro-batch is ranges of offsets, which tasks fetch."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import Any, ClassVar

from streamer.connectors.kafka.cluster.partition_ref import PartitionRef
from streamer.connectors.kafka.input.arrival_watch import ArrivalWatch
from streamer.connectors.kafka.input.data_loss import UnknownLossError
from streamer.connectors.kafka.input.fetch_ahead import GROUP_BYTES, FetchAhead
from streamer.connectors.kafka.input.fetcher_pool import FETCHERS
from streamer.connectors.kafka.input.kafka_source import MAX_BATCH_MESSAGES, KafkaSource
from streamer.connectors.kafka.input.message_metadata import NeededMetadata, make_chunk
from streamer.connectors.kafka.input.opened_input import Offsets
from streamer.connectors.kafka.input.partition_fetcher import FetchSettings, PartitionRange
from streamer.connectors.kafka.input.positions import (
    KafkaPiece,
    KafkaPosition,
    is_position,
    limit_ends,
    split_ranges,
)
from streamer.connectors.kafka.input.start_offsets import flatten_offsets, nest_offsets
from streamer.core.durations import SECOND
from streamer.core.errors import StreamerError
from streamer.core.execution import Execution
from streamer.sdk.input.replayable import POLL_INTERVAL, Chunk, LatestOffset, Limit, Offset


@dataclass(frozen=True)
class KafkaRangeSource:
    """A Kafka input whose ranges workers read. It can be pickled.

    Attributes:
        input: the opened input.
        needed: the metadata that is made.
        is_split: whether several tasks may have parts of one partition.
        max_messages: messages of a micro-batch at most.
        mean_size: the mean size of messages, bytes; 0 when it is not known.
        start_offsets: where a fresh checkpoint goes on from, by topic and partition.
    """

    has_partitions: ClassVar = True

    input: KafkaSource
    needed: NeededMetadata = NeededMetadata()
    is_split: bool = False
    max_messages: int = MAX_BATCH_MESSAGES
    mean_size: int = 0
    start_offsets: Offsets = field(default_factory=dict)
    _polled: _Polled = field(init=False, repr=False, compare=False)
    _ahead: list[FetchAhead] = field(init=False, repr=False, compare=False, default_factory=list)

    def __post_init__(self) -> None:
        watch = ArrivalWatch(self.input.connection, self.input.read_committed)
        object.__setattr__(self, "_polled", _Polled(watch))

    def __reduce__(self) -> Any:
        settings = (getattr(self, one.name) for one in fields(self) if one.init)
        return KafkaRangeSource, tuple(settings)

    def initial_offset(self) -> Offset:
        """Return the position at which a stream without a checkpoint starts."""
        begun = {**self.input.starting, **flatten_offsets(self.start_offsets)}
        return KafkaPosition(begun).to_offset()

    def latest_offset(self, start: Offset, now: int, limit: Limit) -> LatestOffset:
        """Return how far one micro-batch that begins at `start` may go; `now` in Unix ns.

        Raises:
            DataLostError: something that is to be read is gone.
            UnknownLossError: something may be.
            StreamerError: no broker answers in time, or it refuses.
        """
        position = self._position(start)
        known = {place: at for place, at in position.at.items() if at >= 0}
        ends = self._poll(known, now)
        unknown = [place for place in ends if place not in known]
        # Where a partition begins is asked once, and is in the offset from then on.
        begun = dict.fromkeys(unknown, 0)
        begun |= self.input.first_offsets([place for place in unknown if ends[place]])
        stands = {place: known[place] if place in known else begun[place] for place in ends}
        messages = self._limit_messages(limit)
        until = limit_ends(stands, ends, messages)
        # A partition that is not there now, and not known to be gone, stays where it is.
        lost = set(self.input.cluster_view.lost_partitions(known, ends))
        for place, at in known.items():
            if place not in lost and (place not in until or until[place] < at):
                if not self.input.fail_on_data_loss:
                    # What is left out is counted with the micro-batch that goes on behind it.
                    raise UnknownLossError(f"{place} ends before {at}")
                until[place] = at
        for place, at in position.at.items():
            if at < 0 and place not in until:
                until[place] = at
        waiting = sum(max(end - stands[place], 0) for place, end in ends.items())
        is_settling = any(place in lost for place in known)
        after = KafkaPosition(until, begun, ends if self.needed.needs("kafka_lag") else {})
        if not waiting and not is_settling and until.keys() <= position.at.keys():
            return LatestOffset(start, 0)
        return LatestOffset(
            after.to_offset(), max(waiting, int(is_settling)), has_more=waiting > messages
        )

    def _position(self, offset: Offset) -> KafkaPosition:
        """Return a position; where Spark's own reader was before, it is that of the start."""
        return KafkaPosition.from_offset(offset if is_position(offset) else self.initial_offset())

    def _limit_messages(self, limit: Limit) -> int:
        messages = min(limit.messages, self.input.bound or self.max_messages)
        if self.mean_size and self.input.bound is None:
            messages = min(messages, max(limit.size // self.mean_size, 1))
        return messages

    def _poll(self, known: Mapping[PartitionRef, int], now: int) -> dict[PartitionRef, int]:
        """Return where the partitions end; asked once for a time of the stream."""
        polled = self._polled
        if polled.known != known or polled.at != now:
            backlog = self.input.backlog(nest_offsets(known))
            # A broker of inputs asks twice in one poll.
            polled.known, polled.at = dict(known), now
            polled.ends = flatten_offsets(backlog.ends)
            polled.watch.note_poll(polled.ends)
        return polled.ends

    @property
    def newest_ends(self) -> Offsets:
        """The ends of the partitions in the newest poll of this process."""
        return nest_offsets(self._polled.ends)

    def split(self, start: Offset, end: Offset, parts: int) -> list[KafkaPiece]:
        """Cut what lies between two offsets into pieces: one or more of each partition."""
        return split_ranges(
            self._position(start),
            KafkaPosition.from_offset(end),
            parts if self.is_split else 0,
            self.input.min_partitions or 0,
        )

    def announce(self, pieces: Sequence[KafkaPiece]) -> None:
        """Note which pieces a task will read, one after the other: small ones come together."""
        self._ahead[:] = [FetchAhead(map(_range_of, pieces), self._most_bytes)]

    @property
    def _most_bytes(self) -> int:
        return int(self.input.consumer.get("fetch.max.bytes", GROUP_BYTES))

    def read(self, piece: KafkaPiece, ex: Execution) -> Iterator[Chunk]:
        """Fetch one piece, in arrival order.

        Raises:
            DataLostError: some of it is gone.
            KafkaError: no broker has answered for a minute, or it refuses.
        """
        settings, metadata = self._fetch_settings, self.input.metadata
        # Where only fields of JSON are read, values need not be cut.
        read_fields = replace(self.needed.fields, lines=self.needed.is_empty and ex.reads_columns)
        target = _range_of(piece)
        with FETCHERS.borrow(self.input.connection, settings) as fetcher:
            try:
                first = self._ahead[0].take(fetcher, target) if self._ahead else None
                for columns in fetcher.read(target, read_fields, first):
                    yield make_chunk(columns, piece, metadata, self.needed)
            except StreamerError as error:
                raise type(error)(f"input {self.input.name}: {error}") from None

    @property
    def _fetch_settings(self) -> FetchSettings:
        consumer, kafka = self.input.consumer, self.input
        wait_ms = int(consumer.get("fetch.max.wait.ms", 500))
        return FetchSettings(
            size=min(
                int(consumer.get("max.partition.fetch.bytes", FetchSettings().size)),
                self._most_bytes,
            ),
            wait_ms=min(wait_ms, FetchSettings().wait_ms),
            timeout_s=kafka.connection.answer_timeout_s,
            is_committed=kafka.read_committed,
            rack=consumer.get("client.rack", ""),
            skips_lost=not kafka.fail_on_data_loss,
        )

    def partition_of(self, piece: KafkaPiece) -> str:
        """Name the partition that a piece is from: within one, messages are in order."""
        return f"{piece.topic}/{piece.partition}"

    def watch(self, wake: Callable[[], None]) -> None:
        """Begin to wake the planner when messages come."""
        self._polled.watch.start(wake)

    def next_poll(self, start: Offset, now: int) -> int | None:
        """Return when the ends of partitions are asked again."""
        return now + (SECOND if self._polled.watch.is_working else POLL_INTERVAL)

    def on_committed(self, end: Offset) -> None:
        """Do nothing: the driver commits to the consumer group."""

    def on_finished(self) -> None:
        """Do nothing: there is no end."""


def _range_of(piece: KafkaPiece) -> PartitionRange:
    return PartitionRange(piece.topic, piece.partition, piece.begin, piece.end)


class _Polled:
    """The newest answer about ends, in one process."""

    def __init__(self, watch: ArrivalWatch) -> None:
        self.watch = watch
        self.at = -1
        self.known: dict[PartitionRef, int] = {}
        self.ends: dict[PartitionRef, int] = {}
