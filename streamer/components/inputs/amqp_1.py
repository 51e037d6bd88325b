"""`amqp_1`: "reads messages from an AMQP (1.0) server"."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

from streamer.connectors.amqp_1.client_fields import (
    LOGIN_FIELDS,
    PACKAGES,
    URL_FIELDS,
    client_problems,
)
from streamer.connectors.amqp_1.connection import Amqp1Error, connect, probe
from streamer.connectors.amqp_1.receiver import MessageReceiver
from streamer.connectors.spool.reconnecting_receiver import (
    ConnectionLostError,
    Session,
    start_sessions,
)
from streamer.connectors.spool.spool_source import SpoolSource
from streamer.sdk.component_ref import ComponentRef
from streamer.sdk.input.input_context import InputContext
from streamer.sdk.spec import Access, BuildContext, Example, Field, Kind, ParsedFields, Spec

SOURCE_ADDRESS: Final = "source_address"
AZURE_RENEW_LOCK: Final = "azure_renew_lock"
READ_HEADER: Final = "read_header"
CREDIT: Final = "credit"

_MAX_CREDIT: Final = 100_000

SPEC: Final = Spec(
    Kind.INPUT,
    "amqp_1",
    "Receives messages from a broker of AMQP 1.0.",
    description=(
        "Many brokers speak it: ActiveMQ, Artemis, Qpid, Azure Service Bus, Solace, and RabbitMQ "
        "from 4.0 on, before that with a plugin. The driver receives messages, and accepts them "
        "when they are on its disk. After a lost connection the broker delivers those again that "
        "it does not know to be accepted. A message that cannot be decoded is rejected: the "
        "broker drops it, or keeps it with its dead letters.\n"
        "\n"
        "The first section of binary data is the payload, or a text as it is; another value "
        "becomes JSON. The metadata are `amqp_to`, `amqp_content_type`, `amqp_content_encoding`, "
        "`amqp_creation_time`, `amqp_message_id`, `amqp_correlation_id`, `amqp_subject`, "
        "`amqp_reply_to`, `amqp_group_id`, `amqp_group_sequence`, `amqp_reply_to_group_id`, "
        "`amqp_user_id` and `amqp_absolute_expiry_time`, where they are set. Annotations that are "
        "texts are metadata too, with `_` for `-` in their names. Application properties are not, "
        "as in Redpanda Connect.\n"
        "\n"
        "The extra `amqp-1` is compiled when it is installed: see [Install](../../install.md)."
    ),
    fields=(
        *URL_FIELDS,
        Field(
            SOURCE_ADDRESS,
            "string",
            "The address to receive from: a queue, a topic, a subscription.",
            access=Access.REMOTE,
            examples=("/queue/orders", "queue:/bar", "topic:/baz"),
        ),
        Field(
            AZURE_RENEW_LOCK,
            "bool",
            "No effect: a message is accepted when it is on the disk, long before its lock ends.",
            default=False,
            advanced=True,
        ),
        Field(
            READ_HEADER,
            "bool",
            "True for the metadata `amqp_durable`, `amqp_priority`, `amqp_ttl`, "
            "`amqp_first_acquirer` and `amqp_delivery_count`.",
            default=False,
            advanced=True,
        ),
        Field(
            CREDIT,
            "int",
            "Maximum number of messages that wait for the disk. A larger number is faster: so many "
            "are written to the disk together.",
            default=64,
            advanced=True,
            check=lambda number: (
                None if 1 <= number <= _MAX_CREDIT else f"is {number}; expected 1 to {_MAX_CREDIT}"
            ),
        ),
        *LOGIN_FIELDS,
    ),
    check=client_problems,
    begin={"urls": ["amqp://guest:guest@127.0.0.1:5672/"], "source_address": "/queue/orders"},
    examples=(
        Example(
            "A queue",
            "input:\n"
            "  amqp_1:\n"
            "    urls: [amqp://guest:guest@127.0.0.1:5672/]\n"
            "    source_address: /queue/orders\n"
            "    credit: 1000\n",
        ),
    ),
    categories=("Services",),
    limits="tested on RabbitMQ 3.10 with its plugin rabbitmq_amqp1_0",
    requires=PACKAGES,
)


@dataclass(frozen=True)
class Amqp1Input:
    """An input before it is opened.

    Attributes:
        parsed: its fields.
        labels: of its log lines and counts.
    """

    parsed: ParsedFields
    labels: dict[str, str]

    def open(self, context: InputContext) -> SpoolSource:
        """Begin to receive; return the source of what the spool holds."""

        def session(one: Session) -> None:
            try:
                self._run(one)
            except Amqp1Error as e:
                raise ConnectionLostError(str(e)) from None

        return start_sessions(context, "amqp_1", self.labels, session)

    def _run(self, session: Session) -> None:
        parsed, context = self.parsed, session.context
        connection = connect(parsed)
        try:
            receiver = MessageReceiver(
                connection, parsed[SOURCE_ADDRESS], parsed[CREDIT], parsed[READ_HEADER]
            )
            session.set_connected()
            while not context.stopping:
                received = receiver.receive()
                for error in received.errors:
                    context.log("ERROR", f"amqp_1 rejects a message: {error}", self.labels)
                if received.records and not session.write(received.records):
                    return
                receiver.acknowledge(received)
        finally:
            connection.close()

    def probe(self) -> str:
        """Check that a broker answers."""
        return probe(self.parsed)


def build(parsed: ParsedFields, context: BuildContext) -> Any:
    """Take the fields; it is connected once it is opened."""
    return Amqp1Input(parsed, ComponentRef(context.component).fields)
