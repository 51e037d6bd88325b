"""`kafka_franz`: "a Kafka output using the franz-go client library".

Here records are sent by librdkafka, from the workers; the fields mean the same.
"""

from __future__ import annotations

from typing import Final

from streamer.connectors.kafka.cluster.connection_fields import SEED_PACKAGES
from streamer.connectors.kafka.output.franz_output import franz_fields, franz_output, franz_problems
from streamer.connectors.kafka.output.kafka_output import KafkaOutput
from streamer.connectors.kafka.output.output_docs import DESCRIPTION, output_examples
from streamer.sdk.spec import BuildContext, Kind, ParsedFields, Spec

SPEC: Final = Spec(
    Kind.OUTPUT,
    "kafka_franz",
    "Writes messages to topics of Kafka.",
    description=DESCRIPTION,
    fields=franz_fields(10, traced=False),
    check=franz_problems,
    examples=output_examples("kafka_franz"),
    categories=("Services",),
    requires=SEED_PACKAGES,
)


def build(parsed: ParsedFields, context: BuildContext) -> KafkaOutput:
    """Compile the fields; nothing is connected yet."""
    return franz_output(parsed, context)
