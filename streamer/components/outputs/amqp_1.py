"""`amqp_1`: "sends messages to an AMQP (1.0) server"."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final
from uuid import UUID

from streamer.bloblang import Interpolation, compile_interpolation, compile_mapping
from streamer.connectors.amqp_1.client_fields import (
    LOGIN_FIELDS,
    PACKAGES,
    URL_FIELDS,
    client_problems,
)
from streamer.connectors.amqp_1.connection import Amqp1Error, probe
from streamer.connectors.amqp_1.sender import OutgoingMessage, SharedSender
from streamer.core.errors import MessageError
from streamer.core.execution import Execution
from streamer.core.json.dump import dump_json
from streamer.core.message import Batch, Message
from streamer.core.value import DELETED
from streamer.sdk.mapping_query import interpolate, query_value
from streamer.sdk.metadata_filter import METADATA_EXCLUDE_FIELD, ExcludedMetadata
from streamer.sdk.output.protocols import (
    MAX_IN_FLIGHT,
    BulkOutput,
    NotConnectedError,
    SendError,
    max_in_flight_field,
)
from streamer.sdk.output.rejection import make_invalid_rejection
from streamer.sdk.spec import Access, BuildContext, Example, Field, Kind, ParsedFields, Spec

TARGET_ADDRESS: Final = "target_address"
APPLICATION_PROPERTIES: Final = "application_properties_map"
CONTENT_TYPE: Final = "content_type"
PERSISTENT: Final = "persistent"
TARGET_CAPABILITIES: Final = "target_capabilities"
TO: Final = "message_properties_to"

_STRING: Final = "string"
_PREFIX: Final = "message_properties_"
_GROUP_SEQUENCE: Final = "message_properties_group_sequence"
_PROPERTIES: Final = {
    TO: ("address", "The address of the message; needed without `target_address`."),
    f"{_PREFIX}message_id": (
        "id",
        "The id of the message. A UUID and a whole number are sent as such, others as texts.",
    ),
    f"{_PREFIX}correlation_id": ("correlation_id", "Ties an answer to its question; as the id."),
    f"{_PREFIX}subject": ("subject", "The subject."),
    f"{_PREFIX}reply_to": ("reply_to", "The address for an answer."),
    f"{_PREFIX}group_id": ("group_id", "The group of the message."),
    _GROUP_SEQUENCE: ("group_sequence", "Its number in the group, 0 to 4294967295."),
    f"{_PREFIX}reply_to_group_id": ("reply_to_group_id", "The group for an answer."),
    f"{_PREFIX}user_id": ("user_id", "The user that the message is from."),
    f"{_PREFIX}content_type": ("content_type", "Type of the payload, such as application/json."),
    f"{_PREFIX}content_encoding": ("content_encoding", "Encoding of the payload."),
}
"""Attributes of `proton.Message`, and descriptions, by the fields of the message's properties."""

_ID_ATTRIBUTES: Final = frozenset({"id", "correlation_id"})
_UUID_LENGTHS: Final = frozenset({32, 36, 38, 45})
_MAX_UINT: Final = (1 << 32) - 1
_MAX_ULONG: Final = (1 << 64) - 1
_LONG_RANGE: Final = range(-(1 << 63), 1 << 63)
_LINK: Final = "amqp_1"


def _problems(parsed: ParsedFields) -> Iterator[tuple[str, str]]:
    yield from client_problems(parsed)
    if not parsed[TARGET_ADDRESS] and not parsed[TO]:
        yield TARGET_ADDRESS, f"is empty; set it, or {TO} for the address of each message"


SPEC: Final = Spec(
    Kind.OUTPUT,
    "amqp_1",
    "Sends messages to a broker of AMQP 1.0.",
    description=(
        "The messages of a batch are on their way together, as many as the broker gives credit "
        "for. A message counts as sent when the broker has accepted it. One that it rejects for "
        "itself, or that is larger than it takes, is rejected alone; one that it releases, for a "
        "full queue or for want of a queue, is sent again. After a lost connection a message may "
        "be sent twice.\n"
        "\n"
        "Metadata become annotations of the message. Each worker has one connection.\n"
        "\n"
        "The extra `amqp-1` is compiled when it is installed: see [Install](../../install.md)."
    ),
    fields=(
        *URL_FIELDS,
        Field(
            TARGET_ADDRESS,
            "string",
            "The address to send to; empty where each message has its own.",
            access=Access.REMOTE,
            default="",
            examples=("/queue/orders", "queue:/bar", "topic:/baz"),
        ),
        max_in_flight_field(),
        Field(
            APPLICATION_PROPERTIES,
            "string",
            "A mapping to an object, whose fields are application properties of the message.",
            mapping=True,
            optional=True,
            advanced=True,
            examples=("root.kind = this.kind",),
        ),
        *LOGIN_FIELDS,
        METADATA_EXCLUDE_FIELD,
        Field(
            CONTENT_TYPE,
            "string",
            "`string` sends the payload as a text, and `opaque_binary` as bytes.",
            default="opaque_binary",
            options=("opaque_binary", _STRING),
            advanced=True,
        ),
        Field(
            PERSISTENT,
            "bool",
            "True if messages outlive the broker, in durable queues.",
            default=False,
            advanced=True,
        ),
        Field(
            TARGET_CAPABILITIES,
            "string",
            "Capabilities that the target is to have.",
            shape="array",
            optional=True,
            advanced=True,
            examples=(["queue"], ["topic"]),
        ),
        *(
            Field(name, "string", text, interpolated=True, optional=True, advanced=True)
            for name, (_, text) in _PROPERTIES.items()
        ),
    ),
    check=_problems,
    begin={"urls": ["amqp://guest:guest@127.0.0.1:5672/"], "target_address": "/queue/orders"},
    examples=(
        Example(
            "A queue",
            "output:\n"
            "  amqp_1:\n"
            "    urls: [amqp://guest:guest@127.0.0.1:5672/]\n"
            "    target_address: /queue/orders\n"
            "    persistent: true\n"
            "    message_properties_content_type: application/json\n",
        ),
    ),
    categories=("Services",),
    limits="tested on RabbitMQ 3.10 with its plugin rabbitmq_amqp1_0",
    requires=PACKAGES,
)


class Amqp1Output(BulkOutput):
    """Sends messages."""

    def __init__(self, parsed: ParsedFields, context: BuildContext) -> None:
        """Compile the fields; it is connected when something is sent."""
        self.max_in_flight = parsed[MAX_IN_FLIGHT]
        self._parsed = parsed
        self._texts: dict[str, Interpolation] = {
            name: compile_interpolation(parsed[name])
            for name in _PROPERTIES
            if parsed[name] is not None
        }
        mapping = parsed[APPLICATION_PROPERTIES]
        self._application_properties = compile_mapping(mapping) if mapping else None
        self._metadata = ExcludedMetadata(parsed)
        address, capabilities = parsed[TARGET_ADDRESS], parsed[TARGET_CAPABILITIES] or ()
        self._sender = context.worker_resource(
            _LINK, lambda: SharedSender(parsed, address, capabilities)
        )

    def connect(self, ex: Execution) -> None:
        """Connect to a broker."""
        try:
            self._sender.connect()
        except Amqp1Error as error:
            raise SendError(str(error)) from None

    def send_all(self, batches: Sequence[Batch], ex: Execution) -> list[SendError | None]:
        """Send the messages of batches, and wait for the outcome of each."""
        failed: list[dict[int, str]] = [{} for _ in batches]
        places: list[tuple[int, int]] = []
        outgoing: dict[int, OutgoingMessage] = {}
        for number, batch in enumerate(batches):
            for index in range(len(batch)):
                try:
                    outgoing[len(places)] = self._encode(batch, index, ex)
                except MessageError as error:
                    failed[number][index] = make_invalid_rejection(str(error))
                places.append((number, index))
        result = self._sender.send(outgoing)
        if result.error is not None and len(result.failed) == len(outgoing):
            raise NotConnectedError(str(result.error))
        for place, text in result.failed.items():
            number, index = places[place]
            failed[number][index] = text
        return [
            SendError(next(iter(texts.values())), dict(sorted(texts.items()))) if texts else None
            for texts in failed
        ]

    def _encode(self, batch: Batch, index: int, ex: Execution) -> OutgoingMessage:
        import proton

        # As in Connect, the output sees one message at a time.
        one = batch[index : index + 1]
        message = proton.Message(body=self._make_body(one[0]), durable=self._parsed[PERSISTENT])
        message.inferred = self._parsed[CONTENT_TYPE] != _STRING
        for name, template in self._texts.items():
            if text := interpolate(name, template, one, 0, ex):
                attribute = _PROPERTIES[name][0]
                setattr(message, attribute, _make_property(name, attribute, text))
        if self._application_properties is not None:
            message.properties = self._map_properties(one, ex)
        annotations = {name: _to_amqp(value) for name, value in self._metadata.select(one[0].meta)}
        message.annotations = annotations or None
        try:
            return OutgoingMessage(message.encode(), bool(message.address))
        except (proton.ProtonException, ValueError, TypeError, OverflowError) as error:
            raise MessageError(f"no message of AMQP can be made of it: {error}") from None

    def _make_body(self, message: Message) -> bytes | str:
        if self._parsed[CONTENT_TYPE] != _STRING:
            return message.raw
        try:
            return message.raw.decode()
        except UnicodeDecodeError:
            raise MessageError(
                "the payload is no UTF-8, which content_type string needs; use opaque_binary"
            ) from None

    def _map_properties(self, one: Batch, ex: Execution) -> Mapping[str, Any] | None:
        assert self._application_properties is not None
        value = query_value(self._application_properties, one, 0, ex)
        if value is None or value is DELETED:
            return None
        if not isinstance(value, Mapping):
            raise MessageError(f"{APPLICATION_PROPERTIES} gives no object: {type(value).__name__}")
        return {name: _to_amqp(inner) for name, inner in value.items()}

    def probe(self) -> str:
        """Check that a broker answers."""
        return probe(self._parsed)


def _make_property(name: str, attribute: str, text: str) -> Any:
    if attribute in _ID_ATTRIBUTES:
        return _read_id(text)
    if attribute == "user_id":
        return text.encode()
    if name != _GROUP_SEQUENCE:
        return text
    if not (text.isascii() and text.isdecimal() and int(text[:11]) <= _MAX_UINT):
        raise MessageError(f"{name} is {text!r}; expected a number from 0 to {_MAX_UINT}")
    return int(text)


def _read_id(text: str) -> UUID | int | str:
    """Return an id as Connect sends it."""
    if len(text) in _UUID_LENGTHS:
        try:
            return UUID(text)
        except ValueError:
            pass
    if text.isascii() and text.isdecimal() and int(text[:21]) <= _MAX_ULONG:
        return int(text)
    return text


def _to_amqp(value: Any) -> Any:
    """Return a value as Proton sends it; types that AMQP has not are texts of JSON."""
    if value is None or isinstance(value, bool | float | str | bytes):
        return value
    if isinstance(value, int):
        return value if value in _LONG_RANGE else str(value)
    if isinstance(value, Mapping):
        return {name: _to_amqp(inner) for name, inner in value.items()}
    if isinstance(value, list | tuple):
        return [_to_amqp(inner) for inner in value]
    return dump_json(value).decode().strip('"')


def build(parsed: ParsedFields, context: BuildContext) -> Amqp1Output:
    """Compile the fields; it is connected when something is sent."""
    return Amqp1Output(parsed, context)
