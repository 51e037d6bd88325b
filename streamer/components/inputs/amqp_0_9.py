"""`amqp_0_9`: consumes a queue of AMQP 0.9.1.

It "connects to an AMQP (0.91) queue. AMQP is a messaging protocol used by various message brokers,
including RabbitMQ".
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import Any, Final

from streamer.connectors.amqp.client_fields import (
    CLIENT_TLS_FIELD,
    PACKAGES,
    URLS_FIELD,
    arguments_field,
    client_problems,
    read_arguments,
)
from streamer.connectors.amqp.connection import (
    AmqpError,
    Channel,
    SharedConnection,
    amqp_errors,
    close_quietly,
    connect,
)
from streamer.connectors.amqp.messages import make_record
from streamer.connectors.spool.message_queue import MessageQueue
from streamer.connectors.spool.reconnecting_receiver import (
    ConnectionLostError,
    Session,
    start_sessions,
)
from streamer.connectors.spool.spool_source import SpoolSource
from streamer.sdk.component_ref import ComponentRef
from streamer.sdk.input.input_context import InputContext
from streamer.sdk.spec import BuildContext, Example, Field, Kind, ParsedFields, Spec

QUEUE: Final = "queue"
QUEUE_DECLARE: Final = "queue_declare"
BINDINGS_DECLARE: Final = "bindings_declare"
CONSUMER_TAG: Final = "consumer_tag"
AUTO_ACK: Final = "auto_ack"
PREFETCH_COUNT: Final = "prefetch_count"
PREFETCH_SIZE: Final = "prefetch_size"

_MAX_PREFETCH: Final = 65_535

SPEC: Final = Spec(
    Kind.INPUT,
    "amqp_0_9",
    "Consumes a queue of AMQP 0.9.1, such as of RabbitMQ.",
    description=(
        "The driver consumes the queue, and acknowledges messages when they are on its disk. "
        "After a lost connection the broker delivers those again whose acknowledgement it has not "
        "got; then `amqp_redelivered` is `true`.\n"
        "\n"
        "The metadata are the headers, with `_` for `-` in their names, tables and lists part by "
        "part, and `amqp_content_type`, `amqp_content_encoding`, `amqp_delivery_mode`, "
        "`amqp_priority`, `amqp_correlation_id`, `amqp_reply_to`, `amqp_expiration`, "
        "`amqp_message_id`, `amqp_timestamp`, `amqp_type`, `amqp_user_id`, `amqp_app_id`, "
        "`amqp_consumer_tag`, `amqp_delivery_tag`, `amqp_redelivered`, `amqp_exchange` and "
        "`amqp_routing_key`, where they are set. All are texts."
    ),
    fields=(
        URLS_FIELD,
        Field(QUEUE, "string", "The queue."),
        Field(
            QUEUE_DECLARE,
            "object",
            "Declares the queue. If it is there, its settings must be these.",
            advanced=True,
            children=(
                Field("enabled", "bool", "True to declare it.", default=False),
                Field("durable", "bool", "True if it outlives the broker.", default=True),
                Field(
                    "auto_delete", "bool", "True if it ends with its last consumer.", default=False
                ),
                arguments_field("Further arguments.", {"x-queue-type": "quorum"}),
            ),
        ),
        Field(
            BINDINGS_DECLARE,
            "object",
            "Bindings of the queue that are declared.",
            default=(),
            shape="array",
            advanced=True,
            children=(
                Field("exchange", "string", "The exchange.", default=""),
                Field("key", "string", "The routing key.", default=""),
            ),
            examples=([{"exchange": "orders", "key": "orders.#"}],),
        ),
        Field(CONSUMER_TAG, "string", "The consumer's tag; empty for one of its own.", default=""),
        Field(
            AUTO_ACK,
            "bool",
            "True if a message counts as acknowledged when it is sent. It is lost if the driver "
            "ends before it is on the disk.",
            default=False,
            advanced=True,
        ),
        Field(
            "nack_reject_patterns",
            "string",
            "Must be empty: a message on the disk is acknowledged, and no longer the broker's.",
            default=(),
            shape="array",
            advanced=True,
            check=lambda patterns: (
                "is set, but messages are acknowledged before they are processed; let an output "
                "fallback send failed ones to the exchange for dead letters"
                if patterns
                else None
            ),
        ),
        Field(
            PREFETCH_COUNT,
            "int",
            "Maximum number of messages that wait for the disk; 0 for 65535. A larger number is "
            "faster: so many are written to the disk together.",
            default=10,
            check=lambda number: (
                None
                if 0 <= number <= _MAX_PREFETCH
                else f"is {number}; expected 0 to {_MAX_PREFETCH}"
            ),
        ),
        Field(
            PREFETCH_SIZE,
            "int",
            "Their maximum size in bytes; 0 for no limit. RabbitMQ does not have it.",
            default=0,
            advanced=True,
            check=lambda number: None if number >= 0 else f"is {number}; expected 0 or more",
        ),
        CLIENT_TLS_FIELD,
    ),
    check=client_problems,
    examples=(
        Example(
            "A queue for the orders of a topic",
            "input:\n"
            "  amqp_0_9:\n"
            "    urls: [amqp://guest:guest@127.0.0.1:5672/]\n"
            "    queue: billing\n"
            "    queue_declare:\n"
            "      enabled: true\n"
            "    bindings_declare:\n"
            "      - exchange: orders\n"
            "        key: orders.#\n"
            "    prefetch_count: 1000\n",
        ),
    ),
    categories=("Services",),
    requires=PACKAGES,
)


@dataclass(frozen=True)
class AmqpInput:
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
                with amqp_errors():
                    asyncio.run(self._run(one))
            except AmqpError as e:
                raise ConnectionLostError(str(e)) from None

        return start_sessions(context, "amqp_0_9", self.labels, session)

    async def _run(self, session: Session) -> None:
        queue = MessageQueue()
        connection = await connect(self.parsed)
        try:
            channel = await connection.channel()
            for ending in (connection.closing, channel.closing):
                ending.add_done_callback(lambda _: queue.close())
            channel.on_consumer_cancel_callbacks.add(lambda _: queue.close())
            await self._consume(channel, queue)
            session.set_connected()
            while not session.context.stopping:
                messages = await queue.take()
                if not messages:
                    continue
                if not session.write([make_record(message) for message in messages]):
                    return
                if not self.parsed[AUTO_ACK]:
                    # Messages of a channel come in the order of their tags.
                    await channel.basic_ack(messages[-1].delivery.delivery_tag, multiple=True)
        finally:
            await close_quietly(connection)

    async def _consume(self, channel: Channel, queue: MessageQueue) -> None:
        parsed = self.parsed
        name, declared = parsed[QUEUE], parsed[QUEUE_DECLARE]
        if declared["enabled"]:
            await channel.queue_declare(
                name,
                durable=declared["durable"],
                auto_delete=declared["auto_delete"],
                arguments=read_arguments(declared["arguments"]) or None,
            )
        for binding in parsed[BINDINGS_DECLARE]:
            await channel.queue_bind(name, binding["exchange"], binding["key"])
        await channel.basic_qos(
            prefetch_count=parsed[PREFETCH_COUNT] or _MAX_PREFETCH,
            prefetch_size=parsed[PREFETCH_SIZE],
        )
        await channel.basic_consume(
            name,
            queue.put_now,
            no_ack=parsed[AUTO_ACK],
            consumer_tag=parsed[CONSUMER_TAG] or None,
        )

    def probe(self) -> str:
        """Check that a broker answers."""
        return SharedConnection(self.parsed).probe()


def build(parsed: ParsedFields, context: BuildContext) -> Any:
    """Take the fields; it is connected once it is opened."""
    return AmqpInput(parsed, ComponentRef(context.component).fields)
