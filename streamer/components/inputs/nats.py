"""`nats`: subscribes to a subject of NATS.

It will "subscribe to a NATS subject". NATS without JetStream keeps nothing: what is published while
nobody listens is gone.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from streamer.connectors.nats.client_fields import (
    CLIENT_FIELDS,
    CONNECTION_FIELDS,
    PACKAGES,
    SUBJECT,
    client_problems,
    subject_field,
    tracing_field,
)
from streamer.connectors.nats.connection import Client
from streamer.connectors.nats.messages import make_record
from streamer.connectors.nats.session import NatsInput
from streamer.connectors.spool.message_queue import MessageQueue
from streamer.connectors.spool.reconnecting_receiver import Session
from streamer.sdk.component_ref import ComponentRef
from streamer.sdk.spec import BuildContext, Example, Field, Kind, ParsedFields, Spec
from streamer.sdk.spec.nacks import AUTO_REPLAY_NACKS_FIELD

QUEUE: Final = "queue"
SEND_ACK: Final = "send_ack"
PREFETCH_COUNT: Final = "prefetch_count"

_ACK: Final = b"+ACK"

SPEC: Final = Spec(
    Kind.INPUT,
    "nats",
    "Subscribes to a subject of NATS.",
    description=(
        "The driver listens, and writes messages to its disk. NATS keeps nothing: messages that "
        "are published while the stream is away are lost; use `nats_jetstream` to get them. The "
        "metadata are `nats_subject`, `nats_reply_subject` where there is one, and the headers."
    ),
    fields=(
        *CLIENT_FIELDS,
        subject_field("The subject; `*` and `>` may be used."),
        Field(
            QUEUE,
            "string",
            "The queue group: each message goes to one of its members.",
            optional=True,
        ),
        AUTO_REPLAY_NACKS_FIELD,
        Field(
            SEND_ACK,
            "bool",
            "True to answer a message that has a reply subject when it is on the disk.",
            default=True,
        ),
        Field(
            "nak_delay",
            "string",
            "Has no effect: a message on the disk is never given back.",
            optional=True,
            advanced=True,
            examples=("1m",),
        ),
        Field(
            PREFETCH_COUNT,
            "int",
            "Maximum number of messages that wait for the disk. Further ones are lost, as NATS "
            "has it.",
            default=500_000,
            advanced=True,
            check=lambda number: None if number > 0 else f"is {number}; expected 1 or more",
        ),
        *CONNECTION_FIELDS,
        tracing_field("extract_tracing_map"),
    ),
    check=client_problems,
    examples=(
        Example(
            "All orders",
            "input:\n"
            "  nats:\n"
            "    urls: [nats://127.0.0.1:4222]\n"
            "    subject: orders.>\n"
            "    queue: readers\n",
        ),
    ),
    categories=("Services",),
    delivery="at most once until a message is on the driver's disk, at least once from there on",
    requires=PACKAGES,
)


def build(parsed: ParsedFields, context: BuildContext) -> NatsInput:
    """Take the fields; it is connected once it is opened."""

    async def subscribe(client: Client, queue: MessageQueue, session: Session) -> None:
        await client.subscribe(
            parsed[SUBJECT],
            parsed[QUEUE] or "",
            cb=queue.put,
            pending_msgs_limit=parsed[PREFETCH_COUNT],
        )

    async def store(client: Client, messages: Sequence[Any], session: Session) -> bool:
        if not session.write([_make_record(message) for message in messages]):
            return False
        if parsed[SEND_ACK]:
            for message in messages:
                if message.reply:
                    await client.publish(message.reply, _ACK)
        return True

    labels = ComponentRef(context.component).fields
    return NatsInput(parsed, "nats", labels, subscribe, store)


def _make_record(message: Any) -> Any:
    metadata = {"nats_subject": message.subject}
    if message.reply:
        metadata["nats_reply_subject"] = message.reply
    return make_record(message, metadata)
