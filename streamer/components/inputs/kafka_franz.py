"""`kafka_franz`: reads topics of Kafka, in the fields of Redpanda Connect's Franz client."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from streamer.connectors.kafka.cluster.connection_fields import (
    SEED_READER_PACKAGES,
    seed_connection,
)
from streamer.connectors.kafka.input.explain import explain_input
from streamer.connectors.kafka.input.franz_input import (
    SEED_READING,
    SEED_TOPICS,
    lag_period_field,
    seed_problems,
    seed_source,
)
from streamer.connectors.kafka.input.input_docs import READING_DESCRIPTION
from streamer.connectors.kafka.input.input_fields import (
    MULTI,
    MULTI_HEADER,
    NACKS,
    OWN_FIELDS,
    checkpoint_limit_field,
    commit_period_field,
    group_field,
    read_limit,
)
from streamer.connectors.kafka.input.kafka_input import KafkaInput
from streamer.connectors.kafka.input.kafka_source import KafkaSource
from streamer.connectors.kafka.input.opened_input import MetadataSettings
from streamer.sdk.input.batch_chunks import (
    INPUT_BATCHING,
    input_batching,
    input_batching_problems,
)
from streamer.sdk.processing.batching import BATCHING
from streamer.sdk.spec import BuildContext, Example, Kind, ParsedFields, Spec

NAME: Final = "kafka_franz"


def _check(parsed: ParsedFields) -> Iterator[tuple[str, str]]:
    yield from seed_problems(parsed)
    yield from input_batching_problems(parsed[BATCHING], BATCHING)


SPEC: Final = Spec(
    Kind.INPUT,
    NAME,
    "Reads topics of Kafka; regular expressions may select topics.",
    description=READING_DESCRIPTION,
    fields=(
        *seed_connection("5m"),
        *SEED_TOPICS,
        *SEED_READING,
        group_field(),
        checkpoint_limit_field(),
        commit_period_field("5s"),
        MULTI,
        INPUT_BATCHING,
        lag_period_field(),
        *NACKS,
        *OWN_FIELDS,
    ),
    check=_check,
    batching=lambda parsed: input_batching(parsed[BATCHING]),
    explains=lambda parsed: explain_input(_make_source(parsed)),
    examples=(
        Example(
            "Topics by their names",
            "input:\n"
            "  kafka_franz:\n"
            "    seed_brokers: [localhost:9092]\n"
            "    regexp_topics_include: ['^logs_']\n"
            "    consumer_group: readers\n",
        ),
    ),
    categories=("Services",),
    begin={"topics": ["lights"]},
    runs="Spark",
    delivery="at least once: read again from the same offsets",
    limits="no member of its group",
    requires=SEED_READER_PACKAGES,
)


def _make_source(parsed: ParsedFields) -> KafkaSource:
    metadata = MetadataSettings(multi_header=parsed[MULTI_HEADER])
    return seed_source(parsed, NAME, metadata, "kafka_lag", read_limit(parsed))


def build(parsed: ParsedFields, context: BuildContext) -> KafkaInput:
    """Take the fields; brokers are asked once it is opened."""
    return KafkaInput(_make_source(parsed))
