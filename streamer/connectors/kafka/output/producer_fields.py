"""Fields of producers for `kafka_franz` and `redpanda`, and librdkafka's settings for them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from streamer.connectors.kafka.cluster.sizes import parse_size, size_check
from streamer.connectors.kafka.output.delivery_fields import TRANSACTIONAL
from streamer.connectors.kafka.output.partitioning import LEAST_BACKUP, MANUAL, MURMUR2, ROUND_ROBIN
from streamer.core.durations import MILLISECOND
from streamer.sdk.spec import Field, ParsedFields, duration_field

PARTITIONER: Final = "partitioner"
IDEMPOTENT: Final = "idempotent_write"
ACKS: Final = "acks"
COMPRESSION: Final = "compression"
ALLOW_CREATION: Final = "allow_auto_topic_creation"
TIMEOUT: Final = "timeout"
MAX_MESSAGE: Final = "max_message_bytes"
MAX_WRITE: Final = "broker_write_max_bytes"
MAX_RECORDS: Final = "max_buffered_records"
MAX_BYTES: Final = "max_buffered_bytes"
MAX_REQUESTS: Final = "max_in_flight_requests"
RECORD_RETRIES: Final = "record_retries"
DELIVERY_TIMEOUT: Final = "record_delivery_timeout"

COMPRESSIONS: Final = ("lz4", "snappy", "gzip", "none", "zstd")
_ACKS: Final = {"all": "all", "leader": "1", "none": "0"}

_MESSAGE_BYTES: Final = (1_000, 1_000_000_000)
_WRITE_BYTES: Final = (1_000, 1 << 30)
_BUFFER_BYTES: Final = (0, (2**31 - 1) * 1024)
_MAX_BUFFERED_RECORDS: Final = 2**31 - 1
_MAX_REQUESTS: Final = 1_000_000
_TIMEOUT_MS: Final = (1, 900_000)
_MAX_RETRIES: Final = 2**31 - 1
_IDEMPOTENT_REQUESTS: Final = 5


def _range_check(minimum: int, maximum: int) -> Any:
    def check(number: int) -> str | None:
        return (
            None
            if minimum <= number <= maximum
            else f"is {number}; expected {minimum} to {maximum}"
        )

    return check


PRODUCER_FIELDS: Final = (
    Field(
        PARTITIONER,
        "string",
        "Choice of the partition of a record. `murmur2_hash`: by its key as Java's client "
        "does, and without one any that is kept for a while, which is the default; "
        "`round_robin`: one after the other; `least_backup`: the one for which the fewest "
        "records are on their way; `manual`: by the field `partition`.",
        optional=True,
        options=(MURMUR2, ROUND_ROBIN, LEAST_BACKUP, MANUAL),
        advanced=True,
    ),
    Field(
        IDEMPOTENT,
        "bool",
        "True if brokers leave out what a producer sends again. It takes the right "
        "IDEMPOTENT_WRITE of brokers before Kafka 3.0.",
        default=True,
        advanced=True,
    ),
    Field(
        ACKS,
        "string",
        "Replicas that must have a record before it counts as sent: `all` in-sync replicas, "
        "the `leader` alone, or `none`, with which records may be lost silently.",
        default="all",
        options=tuple(_ACKS),
        advanced=True,
    ),
    Field(
        COMPRESSION,
        "string",
        "Compression of records; default `snappy`.",
        optional=True,
        options=COMPRESSIONS,
        advanced=True,
    ),
    Field(
        ALLOW_CREATION,
        "bool",
        "True if brokers may create a topic that is not there, if they are set to.",
        default=True,
        advanced=True,
    ),
    duration_field(
        TIMEOUT,
        "Maximum time until replicas have stored a record before it is sent again.",
        default="10s",
        advanced=True,
        check=lambda ns: None if ns > 0 else "must be longer than 0s",
    ),
    Field(
        MAX_MESSAGE,
        "string",
        "The largest record, and the largest batch of records that is sent in one.",
        default="1MiB",
        advanced=True,
        check=size_check(*_MESSAGE_BYTES),
        examples=("100MB", "50mib"),
    ),
    Field(
        MAX_WRITE,
        "string",
        "Has no effect: what is sent to a broker in one is never more than one batch of records. "
        "It must not be below `max_message_bytes`.",
        default="100MiB",
        advanced=True,
        check=size_check(*_WRITE_BYTES),
        examples=("128MB", "50mib"),
    ),
    Field(
        MAX_RECORDS,
        "int",
        "Maximum number of records in flight per worker.",
        default=10000,
        advanced=True,
        check=_range_check(1, _MAX_BUFFERED_RECORDS),
    ),
    Field(
        MAX_BYTES,
        "string",
        "Maximum number of bytes in flight per worker; `0` for 1 GiB.",
        default="0",
        advanced=True,
        check=size_check(*_BUFFER_BYTES),
        examples=("256MB", "50mib"),
    ),
    Field(
        MAX_REQUESTS,
        "int",
        "Maximum number of requests in flight to a broker. With `idempotent_write` it must be "
        "1, as in Redpanda Connect; up to five requests are then in flight and keep their "
        "order.",
        default=1,
        advanced=True,
        check=_range_check(1, _MAX_REQUESTS),
    ),
    Field(
        RECORD_RETRIES,
        "int",
        "Maximum number of repetitions of a record before it has failed; 0 for no limit.",
        default=0,
        advanced=True,
        check=_range_check(0, _MAX_RETRIES),
    ),
    duration_field(
        DELIVERY_TIMEOUT,
        "Maximum time of a record before it has failed; 0s for no limit: messages then wait "
        "while brokers are unavailable.",
        default="0s",
        advanced=True,
        check=lambda ns: None if ns >= 0 else "must not be negative",
    ),
)


def producer_problems(parsed: ParsedFields) -> Iterator[tuple[str, str]]:
    """Return what is wrong with these fields together, for a spec's `check`."""
    if parsed[IDEMPOTENT] and parsed[ACKS] != "all":
        yield ACKS, f"is {parsed[ACKS]}; idempotent_write requires all, or set it to false"
    if parsed[IDEMPOTENT] and parsed[MAX_REQUESTS] != 1:
        yield (
            MAX_REQUESTS,
            f"is {parsed[MAX_REQUESTS]}; idempotent_write requires 1, or set it to false",
        )
    # The section `redpanda` has these fields without the guarantees of an output.
    if parsed.get(TRANSACTIONAL) and not parsed[IDEMPOTENT]:
        yield IDEMPOTENT, "is false; transactional requires it, leave it at true"
    if parse_size(parsed[MAX_WRITE]) < parse_size(parsed[MAX_MESSAGE]):
        yield MAX_WRITE, f"is less than {MAX_MESSAGE}; a batch is sent in one, so raise it"


def producer_settings(parsed: ParsedFields) -> dict[str, Any]:
    """Return librdkafka's settings."""
    largest = parse_size(parsed[MAX_MESSAGE])
    buffered = parse_size(parsed[MAX_BYTES])
    requests = _IDEMPOTENT_REQUESTS if parsed[IDEMPOTENT] else parsed[MAX_REQUESTS]
    low, high = _TIMEOUT_MS
    settings: dict[str, Any] = {
        "enable.idempotence": parsed[IDEMPOTENT],
        "acks": _ACKS[parsed[ACKS]],
        "compression.type": parsed[COMPRESSION] or "snappy",
        "request.timeout.ms": max(low, min(high, parsed[TIMEOUT] // MILLISECOND)),
        "message.max.bytes": largest,
        "queue.buffering.max.messages": parsed[MAX_RECORDS],
        "max.in.flight.requests.per.connection": requests,
        "retries": parsed[RECORD_RETRIES] or _MAX_RETRIES,
        # 0 is no limit for librdkafka, too.
        "message.timeout.ms": min((parsed[DELIVERY_TIMEOUT] or 0) // MILLISECOND, _MAX_RETRIES),
    }
    if buffered:
        settings["queue.buffering.max.kbytes"] = max(buffered // 1024, 1)
    return settings
