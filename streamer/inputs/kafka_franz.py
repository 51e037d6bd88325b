"""`kafka_franz`: reads topics of Kafka, in the fields of Redpanda Connect's Franz client."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from streamer.kafka.explained import explained
from streamer.kafka.fields import PACKAGES, seed_connection
from streamer.kafka.input import KafkaInput
from streamer.kafka.input_fields import (
    BATCHES,
    MULTI,
    MULTI_HEADER,
    NACKS,
    OURS,
    batching_refused,
    checkpoint_limit,
    commit_period,
    group_field,
    limit_of,
)
from streamer.kafka.reading import Metadata
from streamer.kafka.reading_page import READING
from streamer.kafka.seed_input import (
    SEED_READING,
    SEED_TOPICS,
    lag_period,
    seed_problems,
    seed_source,
)
from streamer.kafka.source import KafkaSource
from streamer.pipeline.batching import BATCHING
from streamer.spec import BuildContext, Example, Kind, Parsed, Spec

NAME: Final = "kafka_franz"


def _check(parsed: Parsed) -> Iterator[tuple[str, str]]:
    yield from seed_problems(parsed)
    yield from batching_refused(parsed[BATCHING], BATCHING)


SPEC: Final = Spec(
    Kind.INPUT,
    NAME,
    "Reads topics of Kafka; topics may be found by regular expressions.",
    description=READING,
    fields=(
        *seed_connection("5m"),
        *SEED_TOPICS,
        *SEED_READING,
        group_field(),
        checkpoint_limit(),
        commit_period("5s"),
        MULTI,
        BATCHES,
        lag_period(),
        *NACKS,
        *OURS,
    ),
    check=_check,
    explains=lambda parsed: explained(_source(parsed)),
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
    limits="batching is refused; no member of its group",
    requires=PACKAGES,
)


def _source(parsed: Parsed) -> KafkaSource:
    metadata = Metadata(multi_header=parsed[MULTI_HEADER])
    return seed_source(parsed, NAME, metadata, "kafka_lag", limit_of(parsed))


def build(parsed: Parsed, context: BuildContext) -> KafkaInput:
    """Take the fields; brokers are asked once it is opened."""
    return KafkaInput(_source(parsed))
