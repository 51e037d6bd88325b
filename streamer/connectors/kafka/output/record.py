"""A message as a record of Kafka: topic, key, value, headers, timestamp, and a partition if given.

A record's time is what the fields say; without them it is the largest event time of the window that
made the message, or the time of the record that it was read as (ksqlDB's rules), or now. Windows by
the system's clock tell no event time; their end stands for it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final

from streamer.bloblang import Interpolation
from streamer.connectors.kafka.output.dedupe import DedupeHeaders
from streamer.connectors.kafka.output.headers import Header, Headers
from streamer.core.durations import MILLISECOND
from streamer.core.errors import MessageError
from streamer.core.execution import Execution
from streamer.core.message import Batch, Message
from streamer.core.timestamps import parse_rfc3339
from streamer.sdk.mapping_query import interpolate
from streamer.window.pack.window_metadata import WINDOW_END, WINDOW_MAX_TIME

TOMBSTONE: Final = "kafka_tombstone_message"
"""The metadata that tells an empty message that stands for null from one that is empty."""

READ_TIME: Final = "kafka_timestamp_ms"

_WHOLE: Final = re.compile(r"[+-]?[0-9]+")
_MAX_PARTITION: Final = 2**31 - 1
_MAX_TIME_MS: Final = 2**63 - 1


Record = tuple[str, bytes | None, bytes | None, int, int, list[Header]]
"""What a producer is given: the topic, the value (None for a tombstone), the key (None for none),
the partition (-1 to leave it to the partitioner), the time (Unix ms; 0 for now), and the headers in
order, where a name may be there several times. Plain, since there are very many."""

_NO_HEADERS: Final[list[Header]] = []


@dataclass(frozen=True)
class RecordMaker:
    """Makes records of messages.

    Attributes:
        topic: the topic.
        key: the key; None for none.
        headers: gives the headers of a message's metadata; None for none.
        static_headers: further ones, which all records have.
        partition: the partition, where it is said for each message.
        timestamp: the time, where it is said for each message.
        unit: what a time is counted in, ms.
        empty_key: whether a key that is empty is one.
        dedupe_headers: gives the headers by which repeats are known; None for none.
    """

    topic: Interpolation
    key: Interpolation | None
    headers: Headers | None
    static_headers: tuple[Header, ...] = ()
    partition: Interpolation | None = None
    timestamp: Interpolation | None = None
    unit: int = 1
    empty_key: bool = True
    dedupe_headers: DedupeHeaders | None = None

    def records_of(self, batch: Batch, ex: Execution) -> list[Record]:
        """Return the records of a batch, in order.

        Raises:
            MessageError: a field of one of them cannot be told; as in Redpanda Connect the whole
                batch has failed then.
        """
        [records], [error] = self.records_of_batches([batch], ex)
        if error is not None:
            raise MessageError(error)
        return records

    def records_of_batches(
        self, batches: Sequence[Batch], ex: Execution
    ) -> tuple[list[list[Record]], list[str | None]]:
        """Return the records of each batch; of one that has failed none, and why.

        Many batches have but one message, so nothing is done for each of them that can be done
        before.
        """
        topic, key, headers = self.topic.static, self._key_maker(), self._headers_maker()
        timed, partitioned = self.timestamp, self.partition
        record_lists: list[list[Record]] = []
        errors: list[str | None] = []
        for batch in batches:
            records: list[Record] = []
            error = None
            try:
                for index, message in enumerate(batch):
                    raw: bytes | None = message.raw
                    if not raw and _is_tombstone(message):
                        raw = None
                    records.append(
                        (
                            interpolate("topic", self.topic, batch, index, ex)
                            if topic is None
                            else topic,
                            raw,
                            None if key is None else key(batch, index, ex),
                            -1 if partitioned is None else self._partition_of(batch, index, ex),
                            record_time_of(message)
                            if timed is None
                            else self._time_of(timed, batch, index, ex),
                            _NO_HEADERS if headers is None else headers(message, ex),
                        )
                    )
            except MessageError as raised:
                records, error = [], str(raised)
            record_lists.append(records)
            errors.append(error)
        return record_lists, errors

    def _headers_maker(self) -> Callable[[Message, Execution], list[Header]] | None:
        """Return what makes the headers of a message; None when there are none."""
        of_meta, static, deduping = self.headers, list(self.static_headers), self.dedupe_headers
        if of_meta is None and not static and deduping is None:
            return None

        def make_headers(message: Message, ex: Execution) -> list[Header]:
            headers = of_meta(message.meta) if of_meta is not None and message.meta else []
            if static:
                headers += static
            if deduping is not None:
                headers += deduping.headers_of(message, ex)
            return headers

        return make_headers

    def _key_maker(self) -> Callable[[Batch, int, Execution], bytes | None] | None:
        key = self.key
        if key is None or (key.static == "" and not self.empty_key):
            return None

        def make_key(batch: Batch, index: int, ex: Execution) -> bytes | None:
            try:
                key_bytes = key.bytes_of(batch, index, ex)
            except MessageError as error:
                raise MessageError(f"key interpolation error: {error}") from None
            return key_bytes if key_bytes or self.empty_key else None

        return make_key

    def _partition_of(self, batch: Batch, index: int, ex: Execution) -> int:
        assert self.partition is not None
        text = interpolate("partition", self.partition, batch, index, ex)
        number = _parse_whole("partition", text)
        if not 0 <= number <= _MAX_PARTITION:
            raise MessageError(f"partition is {text}; expected 0 to {_MAX_PARTITION}")
        return number

    def _time_of(self, of: Interpolation, batch: Batch, index: int, ex: Execution) -> int:
        text = interpolate("timestamp", of, batch, index, ex)
        time = _parse_whole("timestamp", text) * self.unit
        if not 0 <= time <= _MAX_TIME_MS:
            raise MessageError(f"timestamp is {text}; expected a time from 1970 on")
        # librdkafka takes 0 for now; a millisecond is as near as can be.
        return time or 1


def record_time_of(message: Message) -> int:
    """Return the time that a record has when no field says it, Unix ms; 0 for now."""
    meta = message.meta
    if not meta:
        return 0
    for name in (WINDOW_MAX_TIME, WINDOW_END):
        text = meta.get(name)
        if type(text) is str:
            time_ms = _parse_ms(text)
            if time_ms > 0:
                return time_ms
    read = meta.get(READ_TIME)
    if read is None:
        return 0
    try:
        return max(int(read), 0)
    except (ValueError, TypeError, OverflowError):
        return 0


@lru_cache(maxsize=1024)
def _parse_ms(text: str) -> int:
    """Return a window's time, Unix ms, or 0; many messages have the same."""
    try:
        return parse_rfc3339(text).ns // MILLISECOND
    except ValueError:
        return 0


def _is_tombstone(message: Message) -> bool:
    mark: Any = message.meta.get(TOMBSTONE)
    return mark is True or mark == "true"


def _parse_whole(name: str, text: str) -> int:
    if not _WHOLE.fullmatch(text):
        raise MessageError(f"{name} is {text!r}; expected a whole number")
    return int(text)
