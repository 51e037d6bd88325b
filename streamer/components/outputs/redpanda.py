"""`redpanda`: "sends message data to Kafka brokers and waits for acknowledgement".

Here records are sent by librdkafka, from the workers; the fields mean the same.
"""

from __future__ import annotations

from typing import Final

from streamer.connectors.kafka.cluster.connection_fields import SEED_PACKAGES
from streamer.connectors.kafka.output.franz_output import franz_fields, franz_output, franz_problems
from streamer.connectors.kafka.output.kafka_output import KafkaOutput
from streamer.connectors.kafka.output.output_docs import DESCRIPTION, output_examples
from streamer.connectors.kafka.redpanda_section import SHARED_PRODUCER
from streamer.sdk.spec import BuildContext, Example, Kind, ParsedFields, Spec

SPEC: Final = Spec(
    Kind.OUTPUT,
    "redpanda",
    "Writes messages to topics of Redpanda or Kafka.",
    description=DESCRIPTION,
    fields=franz_fields(256, traced=True, shared=True),
    check=franz_problems,
    shared=SHARED_PRODUCER,
    examples=(
        *output_examples("redpanda"),
        Example(
            "The brokers of the section",
            "output:\n"
            "  redpanda:\n"
            "    topic: lights\n"
            "    key: ${! @id }\n"
            "\n"
            "redpanda:\n"
            "  seed_brokers: [localhost:9092]\n"
            "  tls: {enabled: true}\n",
            "Several inputs and outputs share a connection.",
        ),
    ),
    begin={"seed_brokers": ["localhost:9092"]},
    categories=("Services",),
    requires=SEED_PACKAGES,
)


def build(parsed: ParsedFields, context: BuildContext) -> KafkaOutput:
    """Compile the fields; nothing is connected yet."""
    return franz_output(parsed, context)
