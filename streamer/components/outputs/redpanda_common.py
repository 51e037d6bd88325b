"""`redpanda_common`: writes records by the connection of the section `redpanda`.

Connect calls it deprecated: its output `redpanda` does the same when it names no brokers.
"""

from __future__ import annotations

from typing import Final

from streamer.connectors.kafka.cluster.connection_fields import PACKAGES
from streamer.connectors.kafka.output.delivery_fields import GUARANTEE_FIELDS
from streamer.connectors.kafka.output.franz_output import (
    franz_output,
    franz_problems,
    record_fields,
)
from streamer.connectors.kafka.output.kafka_output import KafkaOutput
from streamer.connectors.kafka.redpanda_section import SHARED_PRODUCER
from streamer.sdk.spec import BuildContext, Example, Kind, ParsedFields, Spec

SPEC: Final = Spec(
    Kind.OUTPUT,
    "redpanda_common",
    "Writes messages to topics of Redpanda or Kafka by the connection of the section `redpanda`.",
    description=(
        "The output `redpanda` without `seed_brokers` does the same; its page describes records, "
        "batches and exactly-once delivery. The producer has the settings of the section."
    ),
    status="deprecated",
    fields=(*record_fields(10, traced=False), *GUARANTEE_FIELDS),
    check=franz_problems,
    shared=SHARED_PRODUCER,
    examples=(
        Example(
            "The brokers of the section",
            "output:\n"
            "  redpanda_common:\n"
            "    topic: lights\n"
            "    key: ${! @id }\n"
            "\n"
            "redpanda:\n"
            "  seed_brokers: [localhost:9092]\n",
        ),
    ),
    categories=("Services",),
    requires=PACKAGES,
)


def build(parsed: ParsedFields, context: BuildContext) -> KafkaOutput:
    """Compile the fields; nothing is connected yet."""
    return franz_output(parsed, context)
