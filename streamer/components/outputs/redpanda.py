"""`redpanda`: "sends message data to Kafka brokers and waits for acknowledgement".

Here records are sent by librdkafka, from the workers; the fields mean the same.
"""

from __future__ import annotations

from typing import Final

from streamer.connectors.kafka.cluster.connection_fields import PACKAGES
from streamer.connectors.kafka.output.franz_output import franz_fields, franz_output, franz_problems
from streamer.connectors.kafka.output.kafka_output import KafkaOutput
from streamer.connectors.kafka.output.output_docs import DESCRIPTION, output_examples
from streamer.sdk.spec import BuildContext, Kind, ParsedFields, Spec

SPEC: Final = Spec(
    Kind.OUTPUT,
    "redpanda",
    "Writes messages to topics of Redpanda or Kafka.",
    description=DESCRIPTION,
    fields=franz_fields(256, traced=True),
    check=franz_problems,
    examples=output_examples("redpanda"),
    categories=("Services",),
    requires=PACKAGES,
)


def build(parsed: ParsedFields, context: BuildContext) -> KafkaOutput:
    """Compile the fields; nothing is connected yet."""
    return franz_output(parsed, context)
