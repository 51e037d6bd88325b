"""`redpanda_common`: reads topics by the connection of the section `redpanda`.

Connect calls it deprecated: its input `redpanda` does the same when it names no brokers.
"""

from __future__ import annotations

from typing import Final

from streamer.connectors.kafka.cluster.connection_fields import PACKAGES
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
    NACKS,
    OWN_FIELDS,
    commit_period_field,
    group_field,
)
from streamer.connectors.kafka.input.kafka_input import KafkaInput
from streamer.connectors.kafka.input.kafka_source import KafkaSource
from streamer.connectors.kafka.input.opened_input import MetadataSettings
from streamer.connectors.kafka.redpanda_section import SHARED_CONNECTION
from streamer.sdk.spec import BuildContext, Example, Kind, ParsedFields, Spec

NAME: Final = "redpanda_common"

SPEC: Final = Spec(
    Kind.INPUT,
    NAME,
    "Reads topics of Kafka or Redpanda by the connection of the section `redpanda`.",
    description=(
        f"The input `redpanda` without `seed_brokers` does the same.\n\n{READING_DESCRIPTION} "
        "`kafka_key` is bytes here, as in Redpanda Connect."
    ),
    status="deprecated",
    fields=(
        *SEED_TOPICS,
        *SEED_READING,
        group_field(),
        commit_period_field("5s"),
        buffer_field("partition_buffer_bytes", "1MB"),
        lag_period_field(),
        buffer_field("max_yield_batch_bytes", "32KB"),
        *NACKS,
        *OWN_FIELDS,
    ),
    check=seed_problems,
    shared=SHARED_CONNECTION,
    explains=lambda parsed: explain_input(_make_source(parsed)),
    examples=(
        Example(
            "The brokers of the section",
            "input:\n"
            "  redpanda_common:\n"
            "    topics: [lights]\n"
            "    consumer_group: readers\n"
            "\n"
            "redpanda:\n"
            "  seed_brokers: [localhost:9092]\n",
        ),
    ),
    categories=("Services",),
    begin={"topics": ["lights"]},
    runs="Spark",
    delivery="at least once: read again from the same offsets",
    limits="no member of its group",
    requires=PACKAGES,
)


def _make_source(parsed: ParsedFields) -> KafkaSource:
    return seed_source(parsed, NAME, MetadataSettings(key_bytes=True), "redpanda_lag", None)


def build(parsed: ParsedFields, context: BuildContext) -> KafkaInput:
    """Take the fields; brokers are asked once it is opened."""
    return KafkaInput(_make_source(parsed))
