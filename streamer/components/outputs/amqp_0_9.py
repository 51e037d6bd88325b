"""`amqp_0_9`: publishes messages in an exchange of AMQP 0.9.1.

It "sends messages to an AMQP (0.91) exchange. AMQP is a messaging protocol used by various message
brokers, including RabbitMQ".
"""

from __future__ import annotations

from typing import Any, Final

from streamer.bloblang import compile_interpolation
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
    SharedConnection,
    describe_error,
    is_connection_lost,
)
from streamer.connectors.amqp.publisher import ExchangeSettings, OutgoingMessage, Publisher
from streamer.core.durations import SECOND
from streamer.core.errors import MessageError
from streamer.core.execution import Execution
from streamer.core.message import Batch
from streamer.sdk.mapping_query import interpolate
from streamer.sdk.metadata_filter import METADATA_EXCLUDE_FIELD, ExcludedMetadata
from streamer.sdk.output.protocols import (
    MAX_IN_FLIGHT,
    NotConnectedError,
    Output,
    SendError,
    max_in_flight_field,
)
from streamer.sdk.output.rejection import make_invalid_rejection
from streamer.sdk.spec import BuildContext, Example, Field, Kind, ParsedFields, Spec, duration_field

EXCHANGE: Final = "exchange"
EXCHANGE_DECLARE: Final = "exchange_declare"
KEY: Final = "key"
TYPE: Final = "type"
PRIORITY: Final = "priority"
PERSISTENT: Final = "persistent"
MANDATORY: Final = "mandatory"
IMMEDIATE: Final = "immediate"
TIMEOUT: Final = "timeout"

_EXCHANGE_TYPES: Final = ("direct", "fanout", "topic", "headers", "x-custom")
_CONFIRM_TIMEOUT: Final = 60 * SECOND
_MAX_PRIORITY: Final = 9

_PROPERTIES: Final = {
    "content_encoding": "Encoding of the payload.",
    "correlation_id": "Ties an answer to its question.",
    "reply_to": "The queue for an answer.",
    "expiration": "Milliseconds after which the broker drops a message that nobody has taken.",
    "message_id": "The id of the message. Without one it gets a random one.",
    "user_id": "The user, which the broker compares with that of the connection.",
    "app_id": "The program that the message is from.",
}


def _template_field(name: str, description: str, default: str = "", **more: Any) -> Field:
    return Field(name, "string", description, default=default, interpolated=True, **more)


def _flag_field(name: str, description: str) -> Field:
    return Field(name, "bool", description, default=False, advanced=True)


SPEC: Final = Spec(
    Kind.OUTPUT,
    "amqp_0_9",
    "Publishes messages in an exchange of AMQP 0.9.1, such as of RabbitMQ.",
    description=(
        "The messages of a batch are on their way together. A message counts as sent when the "
        "broker has confirmed it. Without `mandatory` a message for which there is no queue is "
        "gone, as AMQP has it. A persistent message in a durable queue is on the broker's disk "
        "when it is confirmed.\n"
        "\n"
        "Metadata become headers, in whose names `-` stands for `_`. A message that the broker "
        "refuses for itself is rejected alone. After a lost connection a message may be sent twice."
    ),
    fields=(
        URLS_FIELD,
        Field(
            EXCHANGE,
            "string",
            "The exchange; an empty text is the default one, whose keys are names of queues.",
            interpolated=True,
        ),
        Field(
            EXCHANGE_DECLARE,
            "object",
            "Declares the exchange before it is used first.",
            advanced=True,
            children=(
                Field("enabled", "bool", "True to declare it.", default=False),
                Field("type", "string", "Its type.", default="direct", options=_EXCHANGE_TYPES),
                Field("durable", "bool", "True if it outlives the broker.", default=True),
                arguments_field("Further arguments.", {"alternate-exchange": "others"}),
            ),
        ),
        _template_field(KEY, "The routing key; `/` becomes `.`."),
        _template_field(TYPE, "The type of the message; `/` becomes `.`."),
        _template_field(
            "content_type", "Type of the payload.", "application/octet-stream", advanced=True
        ),
        *(_template_field(name, text, advanced=True) for name, text in _PROPERTIES.items()),
        METADATA_EXCLUDE_FIELD,
        _template_field(
            PRIORITY,
            "The priority, 0 to 9.",
            advanced=True,
            examples=("0", "${! @amqp_priority }"),
        ),
        max_in_flight_field(),
        _flag_field(PERSISTENT, "True if messages outlive the broker, in durable queues."),
        _flag_field(
            MANDATORY, "True if a message that is routed to no queue fails; else it is gone."
        ),
        _flag_field(
            IMMEDIATE,
            "True if a message that no consumer takes at once fails. RabbitMQ does not know it, "
            "and closes the connection.",
        ),
        duration_field(
            TIMEOUT,
            "How long to wait for the confirmations of a batch; empty for 60 seconds.",
            default="",
            advanced=True,
        ),
        CLIENT_TLS_FIELD,
    ),
    check=client_problems,
    examples=(
        Example(
            "A topic for each kind",
            "output:\n"
            "  amqp_0_9:\n"
            "    urls: [amqp://guest:guest@127.0.0.1:5672/]\n"
            "    exchange: orders\n"
            "    exchange_declare:\n"
            "      enabled: true\n"
            "      type: topic\n"
            "    key: orders.${! this.kind }\n"
            "    persistent: true\n",
        ),
    ),
    categories=("Services",),
    requires=PACKAGES,
)


class AmqpOutput(Output):
    """Publishes messages."""

    def __init__(self, parsed: ParsedFields, context: BuildContext) -> None:
        """Compile the fields; it is connected when something is sent."""
        self.max_in_flight = parsed[MAX_IN_FLIGHT]
        self._parsed = parsed
        self._texts = {
            name: compile_interpolation(parsed[name])
            for name in (EXCHANGE, KEY, TYPE, PRIORITY, "content_type", *_PROPERTIES)
        }
        self._metadata = ExcludedMetadata(parsed)
        self._seconds = (parsed[TIMEOUT] or _CONFIRM_TIMEOUT) / SECOND
        self._shared = context.worker_resource("amqp", lambda: SharedConnection(parsed))
        declared = parsed[EXCHANGE_DECLARE]
        self._publisher = Publisher(
            self._shared,
            ExchangeSettings(
                declared["enabled"],
                declared["type"],
                declared["durable"],
                read_arguments(declared["arguments"]),
            ),
            is_own=any(self._texts[name].static is None for name in (EXCHANGE, KEY)),
            mandatory=parsed[MANDATORY],
            immediate=parsed[IMMEDIATE],
        )

    def connect(self, ex: Execution) -> None:
        """Connect to a broker."""

        async def nothing(shared: SharedConnection) -> None:
            return None

        try:
            self._shared.run(nothing, self._seconds)
        except AmqpError as error:
            raise SendError(str(error)) from None

    def send(self, batch: Batch, ex: Execution) -> None:
        """Publish the messages of a batch, and wait until the broker has them."""
        failed: dict[int, str] = {}
        outgoing: dict[int, OutgoingMessage] = {}
        for index in range(len(batch)):
            try:
                outgoing[index] = self._make_message(batch, index, ex)
            except MessageError as error:
                failed[index] = make_invalid_rejection(str(error))
        try:
            result = self._shared.run(lambda _: self._publisher.publish(outgoing), self._seconds)
        except AmqpError as error:
            raise _as_send_error(str(error), error.is_connection_lost) from None
        if result.error is not None:
            self._shared.drop()
            if len(result.failed) == len(batch):
                lost = is_connection_lost(result.error)
                raise _as_send_error(describe_error(result.error), lost)
        failed |= result.failed
        if failed:
            raise SendError(next(iter(failed.values())), failed)

    def _make_message(self, batch: Batch, index: int, ex: Execution) -> OutgoingMessage:
        from pamqp.commands import Basic

        # As in Connect, the output sees one message at a time.
        one = batch[index : index + 1]
        values = {name: interpolate(name, text, one, 0, ex) for name, text in self._texts.items()}
        exchange, key = values.pop(EXCHANGE), values.pop(KEY).replace("/", ".")
        priority = _read_priority(values.pop(PRIORITY))
        kind = values.pop(TYPE).replace("/", ".")
        headers = {
            name.replace("_", "-"): value for name, value in self._metadata.select(one[0].meta)
        }
        properties = Basic.Properties(
            headers=headers,
            delivery_mode=2 if self._parsed[PERSISTENT] else 1,
            priority=priority,
            message_type=kind or None,
            **{name: text or None for name, text in values.items()},
        )
        return OutgoingMessage(exchange, key, properties, one[0].raw)

    def probe(self) -> str:
        """Check that a broker answers."""
        return SharedConnection(self._parsed).probe()


def _as_send_error(text: str, is_lost: bool) -> SendError:
    # What comes again with each connection waits longer than for a connection.
    return NotConnectedError(text) if is_lost else SendError(text)


def _read_priority(text: str) -> int | None:
    if not text:
        return None
    if not (text.isascii() and text.isdecimal() and int(text[:9]) <= _MAX_PRIORITY):
        raise MessageError(f"priority is {text!r}; expected a number from 0 to {_MAX_PRIORITY}")
    return int(text)


def build(parsed: ParsedFields, context: BuildContext) -> AmqpOutput:
    """Compile the fields; it is connected when something is sent."""
    return AmqpOutput(parsed, context)
