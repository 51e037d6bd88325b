"""`kafka`: "writes a batch of messages to Kafka brokers and waits for acknowledgement".

In Redpanda Connect by the client Sarama, here by librdkafka, from the workers; the fields mean the
same.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from streamer.bloblang import compile_interpolation
from streamer.connectors.kafka.cluster.connection_fields import (
    ADDRESSED_PACKAGES,
    KAFKA_CONNECTION,
    RACK_ID,
    connection_problems,
    read_connection,
)
from streamer.connectors.kafka.output.delivery_fields import (
    GUARANTEE_FIELDS,
    TOPIC,
    TRANSACTIONAL,
    guarantee_problems,
)
from streamer.connectors.kafka.output.franz_output import (
    KEY,
    METADATA,
    PARTITION,
    TIME_FIELDS,
    TOPIC_FIELD,
    TRACING_FIELD,
    partition_problems,
    read_time_field,
    time_problems,
)
from streamer.connectors.kafka.output.headers import headers_without
from streamer.connectors.kafka.output.kafka_output import KafkaOutput, RetrySettings
from streamer.connectors.kafka.output.kerberos import writer_kerberos_problems
from streamer.connectors.kafka.output.output_docs import DESCRIPTION, output_examples
from streamer.connectors.kafka.output.output_factory import OutputSettings, make_output
from streamer.connectors.kafka.output.partitioning import (
    FNV1A,
    MANUAL,
    MURMUR2,
    RANDOM,
    ROUND_ROBIN,
)
from streamer.connectors.kafka.output.producer_fields import (
    COMPRESSION,
    IDEMPOTENT,
    PARTITIONER,
    TIMEOUT,
)
from streamer.connectors.kafka.output.record import RecordMaker
from streamer.connectors.kafka.security.sasl import sasl_references
from streamer.core.durations import MILLISECOND
from streamer.sdk.backoff import backoff_fields, read_backoff
from streamer.sdk.output.protocols import MAX_IN_FLIGHT, max_in_flight_field
from streamer.sdk.processing.batching import BATCHING_FIELD, batching_problems
from streamer.sdk.spec import BuildContext, Field, Kind, ParsedFields, Spec, duration_field

NEW_TOPICS: Final = "custom_topic_creation"
STATIC_HEADERS: Final = "static_headers"
EXCLUDE_PREFIXES: Final = "exclude_prefixes"
ACK_REPLICAS: Final = "ack_replicas"
MAX_MESSAGE: Final = "max_msg_bytes"
RETRY_AS_BATCH: Final = "retry_as_batch"

_MESSAGE_BYTES: Final = (1_000, 1_000_000_000)
_MAX_TIMEOUT_MS: Final = 900_000
# As often does Sarama send a message before it gives it up.
_MAX_TRIES: Final = 4
# As many requests may be on their way to a broker with Sarama.
_MAX_REQUESTS: Final = 5


def _message_problem(size: int) -> str | None:
    low, high = _MESSAGE_BYTES
    return None if low <= size <= high else f"is {size}; expected {low} to {high} bytes"


def _problems(parsed: ParsedFields) -> Iterator[tuple[str, str]]:
    yield from connection_problems(parsed)
    yield from writer_kerberos_problems(parsed)
    yield from batching_problems(parsed)
    yield from partition_problems(parsed)
    yield from time_problems(parsed)
    yield from guarantee_problems(parsed)
    if parsed[IDEMPOTENT] and not parsed[ACK_REPLICAS]:
        yield ACK_REPLICAS, "is false; idempotent_write requires true"
    new = parsed[NEW_TOPICS]
    if new["enabled"]:
        partitions, copies = new["partitions"], new["replication_factor"]
        if partitions != -1 and partitions < 1:
            yield f"{NEW_TOPICS}.partitions", f"is {partitions}; expected 1 or more, or -1"
        if copies != -1 and (copies < 1 or copies % 2 == 0):
            yield f"{NEW_TOPICS}.replication_factor", f"is {copies}; expected an odd number, or -1"


SPEC: Final = Spec(
    Kind.OUTPUT,
    "kafka",
    "Writes messages to topics of Kafka.",
    description=DESCRIPTION,
    fields=(
        *KAFKA_CONNECTION,
        TOPIC_FIELD,
        Field(
            RACK_ID,
            "string",
            "Has no effect: records go to the leader of their partition, wherever it is.",
            default="",
            advanced=True,
        ),
        Field(
            KEY,
            "string",
            "The key; a record has none when it is empty.",
            default="",
            interpolated=True,
            examples=("${! @kafka_key }", "${! this.id }"),
        ),
        Field(
            PARTITIONER,
            "string",
            "Choice of the partition of a record: by a hash of its key, FNV-1a as the client "
            "Sarama or murmur2 as Java's client, and without a key at random; at `random` in "
            "any case; one after the other (`round_robin`); or by the field `partition` "
            "(`manual`).",
            default=FNV1A,
            options=(FNV1A, MURMUR2, RANDOM, ROUND_ROBIN, MANUAL),
        ),
        Field(
            PARTITION,
            "string",
            "The partition, a whole number; only with the partitioner `manual`.",
            default="",
            interpolated=True,
            advanced=True,
        ),
        Field(
            NEW_TOPICS,
            "object",
            "Settings of created topics.",
            advanced=True,
            children=(
                Field("enabled", "bool", "True to create missing topics.", default=False),
                Field(
                    "partitions",
                    "int",
                    "Number of partitions; -1 for the broker's default.",
                    default=-1,
                ),
                Field(
                    "replication_factor",
                    "int",
                    "Number of replicas, an odd number; -1 for the broker's default.",
                    default=-1,
                ),
            ),
        ),
        Field(
            COMPRESSION,
            "string",
            "Compression of records.",
            default="none",
            options=("none", "snappy", "lz4", "gzip", "zstd"),
        ),
        Field(
            STATIC_HEADERS,
            "string",
            "Headers that all records have, after those of the metadata.",
            optional=True,
            shape="map",
            credentials=True,
            examples=({"first-static-header": "value-1"},),
        ),
        Field(
            METADATA,
            "object",
            "Which metadata become headers: all that are not left out.",
            children=(
                Field(
                    EXCLUDE_PREFIXES,
                    "string",
                    "Keys that begin with one of these are left out.",
                    default=(),
                    shape="array",
                ),
            ),
        ),
        TRACING_FIELD,
        max_in_flight_field(),
        Field(
            IDEMPOTENT,
            "bool",
            "True if brokers leave out what a producer sends again; with `ack_replicas`. It takes "
            "the right IDEMPOTENT_WRITE of brokers before Kafka 3.0.",
            default=False,
            advanced=True,
        ),
        Field(
            ACK_REPLICAS,
            "bool",
            "True if all replicas that are in sync must have a record before it counts as sent, "
            "and not the leader alone.",
            default=False,
            advanced=True,
        ),
        Field(
            MAX_MESSAGE,
            "int",
            "The largest record in bytes, and the largest batch of records that is sent in one.",
            default=1_000_000,
            advanced=True,
            check=_message_problem,
        ),
        duration_field(
            TIMEOUT,
            "Maximum time until a broker has stored a record. A record has failed after four "
            "times that.",
            default="5s",
            advanced=True,
            check=lambda ns: None if ns > 0 else "must be longer than 0s",
        ),
        Field(
            RETRY_AS_BATCH,
            "bool",
            "True if the whole batch is sent again when some of its messages fail, what keeps "
            "their order with a `max_in_flight` of 1, and writes others twice.",
            default=False,
            advanced=True,
        ),
        BATCHING_FIELD,
        *backoff_fields(0, "3s", "10s", "30s"),
        *TIME_FIELDS,
        *GUARANTEE_FIELDS,
    ),
    check=_problems,
    references=sasl_references,
    examples=output_examples("kafka"),
    categories=("Services",),
    requires=ADDRESSED_PACKAGES,
)


def _settings(parsed: ParsedFields) -> dict[str, Any]:
    timeout = max((parsed[TIMEOUT] or 0) // MILLISECOND, 1)
    return {
        "enable.idempotence": parsed[IDEMPOTENT],
        "acks": "all" if parsed[ACK_REPLICAS] or parsed[TRANSACTIONAL] else "1",
        "compression.type": parsed[COMPRESSION],
        "message.max.bytes": parsed[MAX_MESSAGE],
        "request.timeout.ms": min(timeout, _MAX_TIMEOUT_MS),
        "message.timeout.ms": min(_MAX_TRIES * timeout, _MAX_TIMEOUT_MS),
        # What is sent again may come after what was sent later, where that may be on its way.
        "max.in.flight.requests.per.connection": 1 if parsed[MAX_IN_FLIGHT] == 1 else _MAX_REQUESTS,
        # Each record without a key goes its own way.
        "sticky.partitioning.linger.ms": 0,
    }


def build(parsed: ParsedFields, context: BuildContext) -> KafkaOutput:
    """Compile the fields; nothing is connected yet."""
    timestamp, unit = read_time_field(parsed)
    static = sorted((parsed[STATIC_HEADERS] or {}).items())
    new = parsed[NEW_TOPICS]
    maker = RecordMaker(
        topic=compile_interpolation(parsed[TOPIC]),
        key=compile_interpolation(parsed[KEY]),
        headers=headers_without(tuple(parsed[METADATA][EXCLUDE_PREFIXES])),
        static_headers=tuple((name, value.encode()) for name, value in static),
        partition=compile_interpolation(parsed[PARTITION]) if parsed[PARTITION] else None,
        timestamp=timestamp,
        unit=unit,
        empty_key=False,
    )
    settings = OutputSettings(
        _settings(parsed),
        parsed[PARTITIONER],
        retries=RetrySettings(read_backoff(parsed), parsed[RETRY_AS_BATCH]),
        new_topics=(new["partitions"], new["replication_factor"]) if new["enabled"] else None,
    )
    return make_output(parsed, context, read_connection(parsed, context), maker, settings)
