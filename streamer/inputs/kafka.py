"""`kafka`: reads topics of Kafka, in the fields of Redpanda Connect's oldest input for it.

It "connects to Kafka brokers and consumes one or more topics". Spark's own source reads the
messages; positions are in the checkpoint, and the consumer group hears of them.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from streamer.kafka.explained import explained
from streamer.kafka.fields import (
    KAFKA_CONNECTION,
    PACKAGES,
    RACK_ID,
    connection_problems,
    read_connection,
)
from streamer.kafka.input import KafkaInput
from streamer.kafka.input_fields import (
    BATCHES,
    COMMIT_PERIOD,
    GROUP,
    INSTANCE_ID,
    MULTI,
    MULTI_HEADER,
    NACKS,
    NO_MEMBER,
    OURS,
    RACK,
    START_FROM_OLDEST,
    TOPICS,
    TRACING,
    batching_refused,
    checkpoint_limit,
    commit_period,
    group_field,
    idle,
    limit_of,
    ours,
    topics_field,
)
from streamer.kafka.reading import Metadata
from streamer.kafka.reading_page import READING
from streamer.kafka.sasl import sasl_references, token_source
from streamer.kafka.source import KafkaSource
from streamer.kafka.starting import Start
from streamer.kafka.topics import Selection, parse_topics, topics_problem
from streamer.pipeline.batching import BATCHING
from streamer.spec import BuildContext, Example, Field, Kind, Parsed, Spec

NAME: Final = "kafka"


def _check(parsed: Parsed) -> Iterator[tuple[str, str]]:
    yield from connection_problems(parsed)
    yield from batching_refused(parsed[BATCHING], BATCHING)
    if problem := topics_problem(parsed[TOPICS], False):
        yield TOPICS, problem


SPEC: Final = Spec(
    Kind.INPUT,
    NAME,
    "Reads topics of Kafka.",
    description=READING,
    fields=(
        *KAFKA_CONNECTION,
        topics_field(optional=False),
        group_field(),
        INSTANCE_ID,
        RACK,
        Field(
            START_FROM_OLDEST,
            "bool",
            "Whether a partition that the group has not read begins with its oldest message; "
            "otherwise with the next that comes.",
            default=True,
            advanced=True,
        ),
        checkpoint_limit(),
        *NACKS,
        commit_period("1s"),
        idle("max_processing_period", "100ms"),
        TRACING,
        Field(
            "group",
            "object",
            NO_MEMBER,
            children=(
                idle("session_timeout", "10s"),
                idle("heartbeat_interval", "3s"),
                idle("rebalance_timeout", "60s"),
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
        BATCHES,
        *OURS,
    ),
    check=_check,
    references=sasl_references,
    explains=lambda parsed: explained(_source(parsed)),
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
    limits="batching is refused; no member of its group",
    requires=PACKAGES,
)


def _start(parsed: Parsed) -> Start:
    return Start("earliest" if parsed[START_FROM_OLDEST] else "latest")


def _source(parsed: Parsed) -> KafkaSource:
    start = _start(parsed)
    topics, partitions = parse_topics(parsed[TOPICS], start.number, False)
    settings: dict[str, Any] = ours(parsed, limit_of(parsed))
    return KafkaSource(
        name=NAME,
        connection=read_connection(parsed),
        selection=Selection(topics=topics, partitions=partitions),
        start=start,
        group=parsed[GROUP],
        metadata=Metadata(multi_header=parsed[MULTI_HEADER], named_first=True),
        lag_metric="kafka_lag",
        commit_period=parsed[COMMIT_PERIOD] or 0,
        consumer={"client.rack": parsed[RACK_ID]} if parsed[RACK_ID] else {},
        **settings,
    )


def build(parsed: Parsed, context: BuildContext) -> KafkaInput:
    """Take the fields; brokers are asked once it is opened."""
    return KafkaInput(_source(parsed), token_source(parsed, context))
