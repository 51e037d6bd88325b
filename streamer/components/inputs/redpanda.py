"""`redpanda`: reads topics of Kafka or Redpanda, in the fields of Redpanda Connect's newest input.

Connect reads it in the order of each partition unless told otherwise; here partitions are always
read in order, but for `min_partitions`.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from streamer.connectors.kafka.cluster.connection_fields import (
    SEED_PACKAGES,
    TCP_FIELD,
    seed_connection,
)
from streamer.connectors.kafka.input.explain import explain_input
from streamer.connectors.kafka.input.franz_input import (
    SEED_READING,
    SEED_TOPICS,
    buffer_field,
    lag_period_field,
    seed_problems,
    seed_source,
)
from streamer.connectors.kafka.input.input_docs import READING_DESCRIPTION
from streamer.connectors.kafka.input.input_fields import (
    CHECKPOINT_LIMIT,
    NACKS,
    OWN_FIELDS,
    TRACING,
    checkpoint_limit_field,
    commit_period_field,
    group_field,
    read_limit,
)
from streamer.connectors.kafka.input.kafka_input import KafkaInput
from streamer.connectors.kafka.input.kafka_source import KafkaSource
from streamer.connectors.kafka.input.opened_input import MetadataSettings
from streamer.connectors.kafka.redpanda_section import SHARED_CONNECTION
from streamer.sdk.input.batch_chunks import (
    INPUT_BATCHING,
    input_batching,
    input_batching_problems,
)
from streamer.sdk.processing.batching import BATCHING
from streamer.sdk.spec import BuildContext, Example, Field, Kind, ParsedFields, Spec

NAME: Final = "redpanda"
UNORDERED: Final = "unordered_processing"
ENABLED: Final = "enabled"


def _check(parsed: ParsedFields) -> Iterator[tuple[str, str]]:
    yield from seed_problems(parsed)
    yield from input_batching_problems(parsed[UNORDERED][BATCHING], f"{UNORDERED}.{BATCHING}")


def _batching(parsed: ParsedFields) -> ParsedFields | None:
    unordered: ParsedFields = parsed[UNORDERED]
    return input_batching(unordered[BATCHING]) if unordered[ENABLED] else None


SPEC: Final = Spec(
    Kind.INPUT,
    NAME,
    "Reads topics of Kafka or Redpanda; regular expressions may select topics.",
    description=f"{READING_DESCRIPTION} `kafka_key` is bytes here, as in Redpanda Connect.",
    fields=(
        *seed_connection("1m", shared=True),
        TCP_FIELD,
        *SEED_TOPICS,
        *SEED_READING,
        group_field(),
        commit_period_field("5s"),
        buffer_field("partition_buffer_bytes", "1MB"),
        lag_period_field(),
        buffer_field("max_yield_batch_bytes", "32KB"),
        Field(
            UNORDERED,
            "object",
            "Messages of a partition stay in their order in any case.",
            advanced=True,
            children=(
                Field(
                    ENABLED,
                    "bool",
                    f"True if `{CHECKPOINT_LIMIT}` and `{BATCHING}` are used.",
                    default=False,
                ),
                checkpoint_limit_field(),
                INPUT_BATCHING,
            ),
        ),
        *NACKS,
        TRACING,
        *OWN_FIELDS,
    ),
    check=_check,
    batching=_batching,
    shared=SHARED_CONNECTION,
    explains=lambda parsed: explain_input(_make_source(parsed)),
    examples=(
        Example(
            "With a password",
            "input:\n"
            "  redpanda:\n"
            "    seed_brokers: [localhost:9093]\n"
            "    topics: [lights]\n"
            "    consumer_group: readers\n"
            "    tls: {enabled: true, root_cas_file: ./ca.pem}\n"
            "    sasl:\n"
            "      - mechanism: SCRAM-SHA-512\n"
            "        username: reader\n"
            "        password: ${PASSWORD}\n",
        ),
    ),
    categories=("Services",),
    begin={"seed_brokers": ["localhost:9092"], "topics": ["lights"]},
    runs="Spark",
    delivery="at least once: read again from the same offsets",
    limits="no member of its group",
    requires=SEED_PACKAGES,
)


def _make_source(parsed: ParsedFields) -> KafkaSource:
    unordered: ParsedFields = parsed[UNORDERED]
    limit = read_limit(unordered) if unordered[ENABLED] else None
    return seed_source(parsed, NAME, MetadataSettings(key_bytes=True), "redpanda_lag", limit)


def build(parsed: ParsedFields, context: BuildContext) -> KafkaInput:
    """Take the fields; brokers are asked once it is opened."""
    return KafkaInput(_make_source(parsed))
