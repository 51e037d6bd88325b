"""`nats`: it will "publish to a NATS subject"."""

from __future__ import annotations

from typing import Final

from streamer.connectors.nats.client_fields import (
    CLIENT_FIELDS,
    CONNECTION_FIELDS,
    HEADER_FIELDS,
    PACKAGES,
    client_problems,
    subject_field,
    tracing_field,
)
from streamer.connectors.nats.connection import Client
from streamer.connectors.nats.output_base import NatsOutput, OutgoingMessage
from streamer.sdk.output.protocols import max_in_flight_field
from streamer.sdk.spec import BuildContext, Example, Kind, ParsedFields, Spec

SPEC: Final = Spec(
    Kind.OUTPUT,
    "nats",
    "Publishes messages in a subject of NATS.",
    description=(
        "A batch counts as sent when the server has all of its messages. NATS keeps nothing: a "
        "message that nobody listens to is gone; `nats_jetstream` stores messages."
    ),
    fields=(
        *CLIENT_FIELDS,
        subject_field("The subject.", interpolated=True),
        *HEADER_FIELDS,
        max_in_flight_field(),
        *CONNECTION_FIELDS,
        tracing_field("inject_tracing_map"),
    ),
    check=client_problems,
    examples=(
        Example(
            "A subject for each kind",
            "output:\n"
            "  nats:\n"
            "    urls: [nats://127.0.0.1:4222]\n"
            "    subject: orders.${! this.kind }\n"
            "    metadata:\n"
            "      include_patterns: ['.*']\n",
        ),
    ),
    categories=("Services",),
    requires=PACKAGES,
)


async def _publish(client: Client, message: OutgoingMessage) -> None:
    await client.publish(message.subject, message.payload, headers=message.headers)


def build(parsed: ParsedFields, context: BuildContext) -> NatsOutput:
    """Compile the fields; it is connected when something is sent."""
    return NatsOutput(parsed, context, _publish)
