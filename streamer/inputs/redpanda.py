"""`redpanda`: reads topics of Kafka or Redpanda, in the fields of Redpanda Connect's newest input.

Connect reads it in the order of each partition unless told otherwise; here partitions are always
read in order, but for `min_partitions`.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from streamer.kafka.explained import explained
from streamer.kafka.fields import PACKAGES, TCP_FIELD, seed_connection
from streamer.kafka.input import KafkaInput
from streamer.kafka.input_fields import (
    BATCHES,
    CHECKPOINT_LIMIT,
    NACKS,
    OURS,
    TRACING,
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
from streamer.kafka.sizes import size_check
from streamer.kafka.source import KafkaSource
from streamer.pipeline.batching import BATCHING
from streamer.spec import BuildContext, Example, Field, Kind, Parsed, Spec

NAME: Final = "redpanda"
UNORDERED: Final = "unordered_processing"
ENABLED: Final = "enabled"

_BUFFERS: Final = "Has no effect: Spark reads a micro-batch's messages as it needs them."


def _check(parsed: Parsed) -> Iterator[tuple[str, str]]:
    yield from seed_problems(parsed)
    yield from batching_refused(parsed[UNORDERED][BATCHING], f"{UNORDERED}.{BATCHING}")


def _buffer(name: str, default: str) -> Field:
    return Field(
        name,
        "string",
        _BUFFERS,
        default=default,
        advanced=True,
        check=size_check(0, 2**63 - 1),
    )


SPEC: Final = Spec(
    Kind.INPUT,
    NAME,
    "Reads topics of Kafka or Redpanda; topics may be found by regular expressions.",
    description=f"{READING} `kafka_key` is bytes here, as in Redpanda Connect.",
    fields=(
        *seed_connection("1m"),
        TCP_FIELD,
        *SEED_TOPICS,
        *SEED_READING,
        group_field(),
        commit_period("5s"),
        _buffer("partition_buffer_bytes", "1MB"),
        lag_period(),
        _buffer("max_yield_batch_bytes", "32KB"),
        Field(
            UNORDERED,
            "object",
            "Messages of a partition stay in their order in any case.",
            advanced=True,
            children=(
                Field(
                    ENABLED,
                    "bool",
                    f"Whether `{CHECKPOINT_LIMIT}` is looked at.",
                    default=False,
                ),
                checkpoint_limit(),
                BATCHES,
            ),
        ),
        *NACKS,
        TRACING,
        *OURS,
    ),
    check=_check,
    explains=lambda parsed: explained(_source(parsed)),
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
    begin={"topics": ["lights"]},
    runs="Spark",
    delivery="at least once: read again from the same offsets",
    limits="batching is refused; no member of its group; no section redpanda",
    requires=PACKAGES,
)


def _source(parsed: Parsed) -> KafkaSource:
    unordered: Parsed = parsed[UNORDERED]
    limit = limit_of(unordered) if unordered[ENABLED] else None
    return seed_source(parsed, NAME, Metadata(key_bytes=True), "redpanda_lag", limit)


def build(parsed: Parsed, context: BuildContext) -> KafkaInput:
    """Take the fields; brokers are asked once it is opened."""
    return KafkaInput(_source(parsed))
