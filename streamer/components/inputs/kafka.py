"""`kafka`: reads topics of Kafka, in the fields of Redpanda Connect's oldest input for it.

It "connects to Kafka brokers and consumes one or more topics". Workers read the
messages; positions are in the checkpoint, and are committed to the consumer group.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from streamer.connectors.kafka.cluster.connection_fields import (
    ADDRESSED_READER_PACKAGES,
    KAFKA_CONNECTION,
    RACK_ID,
    connection_problems,
    read_connection,
)
from streamer.connectors.kafka.cluster.topic_selection import (
    TopicSelection,
    parse_topics,
    topics_problem,
)
from streamer.connectors.kafka.input.explain import explain_input
from streamer.connectors.kafka.input.input_docs import READING_DESCRIPTION
from streamer.connectors.kafka.input.input_fields import (
    COMMIT_PERIOD,
    GROUP,
    INSTANCE_ID,
    MULTI,
    MULTI_HEADER,
    NACKS,
    NO_MEMBER,
    OWN_FIELDS,
    RACK,
    START_FROM_OLDEST,
    TOPICS,
    TRACING,
    checkpoint_limit_field,
    commit_period_field,
    group_field,
    ineffective_duration_field,
    own_settings,
    read_limit,
    topics_field,
)
from streamer.connectors.kafka.input.kafka_input import KafkaInput
from streamer.connectors.kafka.input.kafka_source import KafkaSource
from streamer.connectors.kafka.input.opened_input import MetadataSettings
from streamer.connectors.kafka.input.start_offsets import StartRule
from streamer.connectors.kafka.security.sasl import sasl_references
from streamer.sdk.input.batch_chunks import (
    INPUT_BATCHING,
    input_batching,
    input_batching_problems,
)
from streamer.sdk.processing.batching import BATCHING
from streamer.sdk.spec import BuildContext, Example, Field, Kind, ParsedFields, Spec

NAME: Final = "kafka"


def _check(parsed: ParsedFields) -> Iterator[tuple[str, str]]:
    yield from connection_problems(parsed)
    yield from input_batching_problems(parsed[BATCHING], BATCHING)
    if problem := topics_problem(parsed[TOPICS], False):
        yield TOPICS, problem


SPEC: Final = Spec(
    Kind.INPUT,
    NAME,
    "Reads topics of Kafka.",
    description=READING_DESCRIPTION,
    fields=(
        *KAFKA_CONNECTION,
        topics_field(optional=False),
        group_field(),
        INSTANCE_ID,
        RACK,
        Field(
            START_FROM_OLDEST,
            "bool",
            "True if a partition that the group has not read begins with its oldest message; "
            "otherwise with the next that comes.",
            default=True,
            advanced=True,
        ),
        checkpoint_limit_field(),
        *NACKS,
        commit_period_field("1s"),
        ineffective_duration_field("max_processing_period", "100ms"),
        TRACING,
        Field(
            "group",
            "object",
            NO_MEMBER,
            children=(
                ineffective_duration_field("session_timeout", "10s"),
                ineffective_duration_field("heartbeat_interval", "3s"),
                ineffective_duration_field("rebalance_timeout", "60s"),
            ),
            advanced=True,
        ),
        Field(
            "fetch_buffer_cap",
            "int",
            "Has no effect: Spark reads a micro-batch's messages as it needs them.",
            default=256,
            advanced=True,
        ),
        MULTI,
        INPUT_BATCHING,
        *OWN_FIELDS,
    ),
    check=_check,
    references=sasl_references,
    batching=lambda parsed: input_batching(parsed[BATCHING]),
    explains=lambda parsed: explain_input(_make_source(parsed)),
    examples=(
        Example(
            "A topic, for a group",
            "input:\n"
            "  kafka:\n"
            "    addresses: [localhost:9092]\n"
            "    topics: [lights]\n"
            "    consumer_group: readers\n",
        ),
    ),
    categories=("Services",),
    runs="Spark",
    delivery="at least once: read again from the same offsets",
    limits="no member of its group",
    requires=ADDRESSED_READER_PACKAGES,
)


def _start_rule(parsed: ParsedFields) -> StartRule:
    return StartRule("earliest" if parsed[START_FROM_OLDEST] else "latest")


def _make_source(parsed: ParsedFields, context: BuildContext | None = None) -> KafkaSource:
    start = _start_rule(parsed)
    topics, partitions = parse_topics(parsed[TOPICS], start.number, False)
    settings: dict[str, Any] = own_settings(parsed, read_limit(parsed))
    return KafkaSource(
        name=NAME,
        connection=read_connection(parsed, context),
        selection=TopicSelection(topics=topics, partitions=partitions),
        start=start,
        group=parsed[GROUP],
        metadata=MetadataSettings(multi_header=parsed[MULTI_HEADER], named_first=True),
        lag_metric="kafka_lag",
        commit_period=parsed[COMMIT_PERIOD] or 0,
        consumer={"client.rack": parsed[RACK_ID]} if parsed[RACK_ID] else {},
        **settings,
    )


def build(parsed: ParsedFields, context: BuildContext) -> KafkaInput:
    """Take the fields; brokers are asked once it is opened."""
    return KafkaInput(_make_source(parsed, context))
