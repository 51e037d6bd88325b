"""`nats_jetstream`: it will "write messages to a NATS JetStream subject"."""

from __future__ import annotations

from typing import Any, Final

from streamer.connectors.nats.client_fields import (
    CLIENT_FIELDS,
    CONNECTION_FIELDS,
    HEADER_FIELDS,
    PACKAGES,
    client_problems,
    subject_field,
    tracing_field,
)
from streamer.connectors.nats.connection import REQUEST_TIMEOUT_S, Client
from streamer.connectors.nats.output_base import NatsOutput, OutgoingMessage
from streamer.sdk.output.protocols import max_in_flight_field
from streamer.sdk.spec import BuildContext, Example, Kind, ParsedFields, Spec

SPEC: Final = Spec(
    Kind.OUTPUT,
    "nats_jetstream",
    "Stores messages in a stream of NATS JetStream.",
    description=(
        "A message counts as sent when the stream has stored it. A header `Nats-Msg-Id` that is "
        "made of the message, such as its key, lets the server drop what is sent twice within "
        "its window of duplicates."
    ),
    fields=(
        *CLIENT_FIELDS,
        subject_field("The subject, which a stream must take.", interpolated=True),
        *HEADER_FIELDS,
        max_in_flight_field(1024),
        *CONNECTION_FIELDS,
        tracing_field("inject_tracing_map"),
    ),
    check=client_problems,
    examples=(
        Example(
            "Stored once",
            "output:\n"
            "  nats_jetstream:\n"
            "    urls: [nats://127.0.0.1:4222]\n"
            "    subject: windows.${! this.light }\n"
            "    headers:\n"
            "      Nats-Msg-Id: ${! this.light }-${! @window_start_timestamp }\n",
        ),
    ),
    categories=("Services",),
    requires=PACKAGES,
)


async def _publish(client: Client, message: OutgoingMessage) -> Any:
    return await client.jetstream().publish(
        message.subject, message.payload, timeout=REQUEST_TIMEOUT_S, headers=message.headers
    )


def build(parsed: ParsedFields, context: BuildContext) -> NatsOutput:
    """Compile the fields; it is connected when something is sent."""
    return NatsOutput(parsed, context, _publish)
