"""`redpanda`: "sends message data to Kafka brokers and waits for acknowledgement".

Here records are sent by librdkafka, from the workers; the fields mean the same.
"""

from __future__ import annotations

from typing import Final

from streamer.kafka.fields import PACKAGES
from streamer.kafka.output import KafkaOutput
from streamer.kafka.page import DESCRIPTION, examples_of
from streamer.kafka.writing import franz_fields, franz_output, franz_problems
from streamer.spec import BuildContext, Kind, Parsed, Spec

SPEC: Final = Spec(
    Kind.OUTPUT,
    "redpanda",
    "Writes messages to topics of Redpanda or Kafka.",
    description=DESCRIPTION,
    fields=franz_fields(256, traced=True),
    check=franz_problems,
    examples=examples_of("redpanda"),
    categories=("Services",),
    requires=PACKAGES,
)


def build(parsed: Parsed, context: BuildContext) -> KafkaOutput:
    """Compile the fields; nothing is connected yet."""
    return franz_output(parsed, context)
