"""Records of `kafka_franz` and `redpanda`, and the output that their fields describe."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from streamer.bloblang import Interpolation, compile_interpolation
from streamer.connectors.kafka.cluster.connection_fields import (
    TCP_FIELD,
    connection_problems,
    read_connection,
    seed_connection,
)
from streamer.connectors.kafka.output.delivery_fields import (
    GUARANTEE_FIELDS,
    TOPIC,
    guarantee_problems,
)
from streamer.connectors.kafka.output.headers import select_headers
from streamer.connectors.kafka.output.kafka_output import KafkaOutput
from streamer.connectors.kafka.output.kerberos import writer_kerberos_problems
from streamer.connectors.kafka.output.output_factory import OutputSettings, make_output
from streamer.connectors.kafka.output.partitioning import MANUAL, MURMUR2
from streamer.connectors.kafka.output.producer_fields import (
    ALLOW_CREATION,
    PARTITIONER,
    PRODUCER_FIELDS,
    producer_problems,
    producer_settings,
)
from streamer.connectors.kafka.output.record import RecordMaker
from streamer.sdk.metadata_filter import MetadataFilter, metadata_filter_field
from streamer.sdk.output.protocols import max_in_flight_field
from streamer.sdk.processing.batching import BATCHING_FIELD, batching_problems
from streamer.sdk.spec import BuildContext, Field, ParsedFields
from streamer.sdk.spec.checks import join_checks

KEY: Final = "key"
PARTITION: Final = "partition"
METADATA: Final = "metadata"
TIMESTAMP: Final = "timestamp"
TIMESTAMP_MS: Final = "timestamp_ms"
TRACING: Final = "inject_tracing_map"

TOPIC_FIELD: Final = Field(
    TOPIC, "string", "The topic.", interpolated=True, examples=("events", "${! @kind }-events")
)

TIME_FIELDS: Final = (
    Field(
        TIMESTAMP,
        "string",
        "The record's time, Unix seconds; see `timestamp_ms`.",
        optional=True,
        interpolated=True,
        deprecated=True,
        advanced=True,
        examples=("${! timestamp_unix() }", '${! metadata("kafka_timestamp_unix") }'),
    ),
    Field(
        TIMESTAMP_MS,
        "string",
        "The record's time, Unix ms. Without it the largest event time of the window that the "
        "message comes from (metadata `window_max_timestamp`; of a `system_window` its end), or "
        "the time of the record that it was read as (`kafka_timestamp_ms`), or the time at which "
        "it is sent.",
        optional=True,
        interpolated=True,
        advanced=True,
        examples=("${! timestamp_unix_milli() }", '${! metadata("kafka_timestamp_ms") }'),
    ),
)

TRACING_FIELD: Final = Field(
    TRACING,
    "string",
    "Has no effect: there are no tracing spans.",
    optional=True,
    mapping=True,
    advanced=True,
    examples=("meta = @.merge(this)", "root.meta.span = this"),
)


def time_problems(parsed: ParsedFields) -> Iterator[tuple[str, str]]:
    """Return what is wrong with the fields of time together."""
    if parsed[TIMESTAMP] is not None and parsed[TIMESTAMP_MS] is not None:
        yield TIMESTAMP, "both timestamp and timestamp_ms cannot be specified simultaneously"


def partition_problems(parsed: ParsedFields) -> Iterator[tuple[str, str]]:
    """Return what is wrong with `partitioner` and `partition` together."""
    manual = parsed[PARTITIONER] == MANUAL
    if manual and not parsed[PARTITION]:
        yield PARTITION, "a partition must be specified when the partitioner is set to manual"
    if parsed[PARTITION] and not manual:
        yield PARTITION, "a partition cannot be specified unless the partitioner is set to manual"


def read_time_field(parsed: ParsedFields) -> tuple[Interpolation | None, int]:
    """Return what gives a record's time, and what it is counted in, ms."""
    text = parsed[TIMESTAMP_MS]
    if text is not None:
        return compile_interpolation(text), 1
    text = parsed[TIMESTAMP]
    return (None, 1) if text is None else (compile_interpolation(text), 1000)


def franz_fields(max_in_flight: int, *, traced: bool, shared: bool = False) -> tuple[Field, ...]:
    """Return the fields of an output.

    Args:
        max_in_flight: the default of that field.
        traced: whether it has `inject_tracing_map`.
        shared: whether the section `redpanda` stands in for brokers that are left out.
    """
    return (
        *seed_connection("1m", shared=shared),
        TCP_FIELD,
        *record_fields(max_in_flight, traced=traced),
        *PRODUCER_FIELDS,
        *GUARANTEE_FIELDS,
    )


def record_fields(max_in_flight: int, *, traced: bool) -> tuple[Field, ...]:
    """Return the fields of records and batches; see `franz_fields`."""
    return (
        TOPIC_FIELD,
        Field(
            KEY,
            "string",
            "The key; records have none when it is left out.",
            optional=True,
            interpolated=True,
            examples=("${! @kafka_key }", "${! this.id }"),
        ),
        Field(
            PARTITION,
            "string",
            "The partition, a whole number; only with the partitioner `manual`.",
            optional=True,
            interpolated=True,
            examples=('${! meta("partition") }',),
        ),
        metadata_filter_field(METADATA, "Which metadata become headers; none by default."),
        *TIME_FIELDS,
        max_in_flight_field(max_in_flight),
        BATCHING_FIELD,
        *([TRACING_FIELD] if traced else []),
    )


franz_problems: Final = join_checks(
    connection_problems,
    writer_kerberos_problems,
    batching_problems,
    partition_problems,
    time_problems,
    producer_problems,
    guarantee_problems,
)


def franz_output(parsed: ParsedFields, context: BuildContext) -> KafkaOutput:
    """Make the output that these fields describe."""
    timestamp, unit = read_time_field(parsed)
    key, partition = parsed[KEY], parsed[PARTITION]
    maker = RecordMaker(
        topic=compile_interpolation(parsed[TOPIC]),
        key=None if key is None else compile_interpolation(key),
        headers=select_headers(MetadataFilter(parsed[METADATA])),
        partition=compile_interpolation(partition) if partition else None,
        timestamp=timestamp,
        unit=unit,
    )
    settings = OutputSettings(
        producer_settings(parsed),
        parsed[PARTITIONER] or MURMUR2,
        creates_topics=parsed[ALLOW_CREATION],
    )
    return make_output(parsed, context, read_connection(parsed, context), maker, settings)
