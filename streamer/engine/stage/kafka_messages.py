"""Messages of Kafka as stage 1 reads them: from the columns that Spark's Kafka source gives.

A task of Spark's has one stretch of one partition, or several of these after one another.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, ClassVar, Final, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from streamer.connectors.kafka.input.opened_input import MetadataSettings
from streamer.connectors.merged_source import ChildPiece
from streamer.core.execution import Execution
from streamer.core.message import NO_META, Message
from streamer.engine.planner.kafka_inputs import KafkaInputRef
from streamer.engine.planner.offset_log import PlannedBatch
from streamer.sdk.input.replayable import Chunk, RawMessages
from streamer.window.contract import PIECE_BITS

FIRST_PIECE_NUMBER: Final = 1 << 22
"""The number of the first piece: those before it are our own source's."""

_ARRIVAL_MASK: Final = (1 << PIECE_BITS) - 1

RESERVED_METADATA: Final = (
    *("kafka_key", "kafka_topic", "kafka_partition", "kafka_offset", "kafka_lag"),
    *("kafka_timestamp_unix", "kafka_timestamp_ms", "kafka_tombstone_message"),
)
"""The metadata that every message has; all others are its headers."""


@dataclass(frozen=True)
class NeededColumns:
    """The metadata that any component can read, and the input's settings; the rest is skipped.

    Attributes:
        keys: by name; None for all, headers too.
        topic: the only topic of the input; None when there may be several.
        is_split: whether several tasks may have parts of one partition.
    """

    keys: frozenset[str] | None = None
    topic: str | None = None
    is_split: bool = True

    def needs(self, *names: str) -> bool:
        """Return whether one of these may be read."""
        return self.keys is None or not self.keys.isdisjoint(names)

    @property
    def headers(self) -> bool:
        """Whether a header may be read: any name may be one's."""
        return self.keys is None or bool(self.keys)

    @property
    def columns(self) -> list[str]:
        """The columns of Spark's source that are needed."""
        # Every column costs the JVM a tenth of the whole way of a small message.
        names = ["value", "partition"]
        if self.topic is None:
            names.append("topic")
        if self.is_split or self.needs("kafka_offset", "kafka_lag"):
            names.append("offset")
        if self.needs("kafka_key"):
            names.append("key")
        if self.needs("kafka_timestamp_unix", "kafka_timestamp_ms"):
            names.append("timestamp")
        if self.headers:
            names.append("headers")
        return names


class PartitionRun(NamedTuple):
    """Messages of one partition, which follow one another: a piece of a Kafka input.

    Attributes:
        topic: their topic.
        partition: the partition.
        offset: of the first; 0 when it does not matter.
        batches: the columns.
    """

    topic: str
    partition: int
    offset: int
    batches: Iterator[pa.RecordBatch]


def split_partition_runs(
    batches: Iterable[pa.RecordBatch], topic: str | None = None
) -> Iterator[PartitionRun]:
    """Cut a task's columns where another partition begins; take the next when one is done with.

    Args:
        batches: the columns.
        topic: of all messages; None when there is a column that tells.
    """
    cuts = _split_batches(batches)
    ahead = next(cuts, None)

    def place(batch: pa.RecordBatch) -> tuple[str, int]:
        topic_name = batch.column("topic")[0].as_py() if topic is None else topic
        return topic_name, batch.column("partition")[0].as_py()

    def of(here: tuple[str, int]) -> Iterator[pa.RecordBatch]:
        nonlocal ahead
        while ahead is not None and place(ahead) == here:
            current, ahead = ahead, None
            yield current
            ahead = next(cuts, None)

    while ahead is not None:
        here = place(ahead)
        offset = ahead.column("offset")[0].as_py() if "offset" in ahead.schema.names else 0
        batches_of = of(here)
        yield PartitionRun(*here, offset, batches_of)
        for _ in batches_of:  # what was not looked at
            continue


def _split_batches(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Give batches of which each has messages of one partition."""
    for batch in batches:
        if not batch.num_rows:
            continue
        other = _find_changes(batch.column("partition"))
        if "topic" in batch.schema.names:
            other |= _find_changes(pc.dictionary_encode(batch.column("topic")).indices)
        edges = [0, *(np.flatnonzero(other) + 1).tolist(), batch.num_rows]
        for start, end in pairwise(edges):
            yield batch if len(edges) == 2 else batch.slice(start, end - start)


def _find_changes(column: pa.Array) -> NDArray[np.bool_]:
    """Return for each value but the first whether it differs from the one before."""
    values = column.to_numpy(zero_copy_only=False)
    changed: NDArray[np.bool_] = values[1:] != values[:-1]
    return changed


class KafkaMessageReader:
    """Reads the stretches of one Kafka input in one micro-batch.

    Numbers of pieces and of arrivals are the same whenever the micro-batch is run again.

    Attributes:
        has_partitions: its partitions come side by side, so that a clock may wait for each.
    """

    has_partitions: ClassVar = True

    def __init__(
        self, input_place: KafkaInputRef, micro_batch: PlannedBatch, needed: NeededColumns
    ) -> None:
        """Take what is read.

        Args:
            input_place: the input.
            micro_batch: what Spark's log says of the micro-batch.
            needed: the metadata that is needed.
        """
        self._place = input_place
        self._needed = needed
        places = [
            (number, topic, int(partition))
            for number, ends in enumerate(micro_batch.ends)
            for topic, partitions in ends.items()
            for partition in partitions
        ]
        self._numbers = {
            place[1:]: FIRST_PIECE_NUMBER + rank
            for rank, place in enumerate(sorted(places))
            if place[0] == input_place.number
        }
        newest = micro_batch.offset.ends or micro_batch.ends
        self._newest: Mapping[str, Mapping[str, int]] = newest[input_place.number] if newest else {}

    def number(self, run: PartitionRun) -> int:
        """Return a piece's place among those of the micro-batch."""
        return self._numbers[run.topic, run.partition]

    def arrival(self, run: PartitionRun) -> int:
        """Return the arrival number of a piece's first message."""
        return self.number(run) << PIECE_BITS | run.offset & _ARRIVAL_MASK

    def piece(self, run: PartitionRun) -> Any:
        """Return a stretch as a piece of the stream's input, which knows the way to its own."""
        piece: Any = run
        for number in reversed(self._place.input_path):
            piece = ChildPiece(number, piece)
        return piece

    def partition_of(self, piece: Any) -> str:
        """Name the partition that a piece is from."""
        run = _partition_run_of(piece)
        return ":".join((*self._place.names, f"{run.topic}/{run.partition}"))

    def read(self, piece: Any, ex: Execution) -> Iterator[Chunk]:
        """Give the messages of a piece."""
        run = _partition_run_of(piece)
        kept = self._needed
        newest = self._newest.get(run.topic, {}).get(str(run.partition), 0)
        for batch in run.batches:
            if kept.keys is not None and not kept.keys:
                yield RawMessages(_payloads(batch), NO_META)
                continue
            metas = _make_metadata(batch, run, newest, self._place.metadata, kept)
            yield [[Message(raw, meta)] for raw, meta in zip(_payloads(batch), metas, strict=True)]


def _partition_run_of(piece: Any) -> PartitionRun:
    while isinstance(piece, ChildPiece):
        piece = piece.piece
    run: PartitionRun = piece
    return run


def _payloads(batch: pa.RecordBatch) -> list[bytes]:
    values = batch.column("value")
    # A tombstone is a message without bytes.
    return (values.fill_null(b"") if values.null_count else values).to_pylist()  # type: ignore[no-any-return]


def _make_metadata(
    batch: pa.RecordBatch,
    run: PartitionRun,
    newest: int,
    settings: MetadataSettings,
    needed: NeededColumns,
) -> list[Mapping[str, Any]]:
    """Return the metadata of each message, as Redpanda Connect names them."""
    columns: dict[str, Any] = {}
    count = batch.num_rows
    offsets: list[int] = []
    if needed.needs("kafka_offset", "kafka_lag"):
        offsets = batch.column("offset").to_pylist()
    if needed.needs("kafka_key"):
        keys = batch.column("key")
        columns["kafka_key"] = (keys.fill_null(b"") if keys.null_count else keys).to_pylist()
        if not settings.key_bytes:
            columns["kafka_key"] = [_decode_text(key) for key in columns["kafka_key"]]
    columns["kafka_topic"] = [run.topic] * count
    columns["kafka_partition"] = [run.partition] * count
    columns["kafka_offset"] = offsets
    if needed.needs("kafka_lag"):
        columns["kafka_lag"] = [max(newest - offset - 1, 0) for offset in offsets]
    if needed.needs("kafka_timestamp_unix", "kafka_timestamp_ms"):
        ms = pc.divide(batch.column("timestamp").cast(pa.int64()), 1000).to_pylist()
        columns["kafka_timestamp_ms"] = ms
        columns["kafka_timestamp_unix"] = [one // 1000 for one in ms]
    if needed.needs("kafka_tombstone_message"):
        columns["kafka_tombstone_message"] = batch.column("value").is_null().to_pylist()
    names = [name for name in columns if needed.needs(name)]
    metas = [
        dict(zip(names, values, strict=True))
        for values in zip(*(columns[name] for name in names), strict=True)
    ] or [{} for _ in range(count)]
    if needed.headers:
        headers = batch.column("headers")
        if headers.null_count < count:
            for meta, message_headers in zip(metas, headers.to_pylist(), strict=True):
                if message_headers:
                    _add_headers(meta, message_headers, settings, needed)
    return metas  # type: ignore[return-value]


def _add_headers(
    meta: dict[str, Any],
    headers: list[dict[str, Any]],
    settings: MetadataSettings,
    needed: NeededColumns,
) -> None:
    """Add headers to the metadata of a message."""
    values: dict[str, Any] = {}
    for header in headers:
        name, text = header["key"], _decode_text(header["value"] or b"")
        if settings.multi_header:
            values.setdefault(name, []).append(text)
        else:
            values[name] = text
    for name, value in values.items():
        if needed.needs(name) and not (settings.named_first and name in RESERVED_METADATA):
            meta[name] = value


def _decode_text(data: bytes) -> str:
    return data.decode("utf-8", "surrogateescape")
