"""`schema_registry_encode`: encodes messages by the newest schema of a subject."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from streamer.bloblang import Interpolation, compile_interpolation
from streamer.connectors.schema_registry.avro_schema import AvroMessageCodec
from streamer.connectors.schema_registry.client import AVRO, JSON, PROTOBUF, RegistryClient, Schema
from streamer.connectors.schema_registry.codecs import CodecCache, MessageCodec
from streamer.connectors.schema_registry.fields import (
    CONNECTION_FIELDS,
    URL_FIELD,
    connection_problems,
)
from streamer.connectors.schema_registry.json_schema import JsonMessageCodec
from streamer.connectors.schema_registry.processor import RegistryProcessor
from streamer.connectors.schema_registry.protobuf_schema import ProtobufMessageCodec
from streamer.connectors.schema_registry.wire_format import add_header
from streamer.core.durations import SECOND
from streamer.core.errors import MessageError, StreamerError
from streamer.core.execution import Execution
from streamer.core.message import Batch, Message
from streamer.sdk.component_ref import ComponentRef
from streamer.sdk.spec import (
    Access,
    BuildContext,
    Example,
    Field,
    Kind,
    Package,
    ParsedFields,
    Spec,
    duration_field,
)

SUBJECT: Final = "subject"
REFRESH_PERIOD: Final = "refresh_period"
AVRO_RAW_JSON: Final = "avro_raw_json"
SCHEMA_METADATA: Final = "schema_metadata"
FORMAT: Final = "format"
AVRO_FIELDS: Final = "avro"

_NO_EFFECT: Final = "Has no effect without `schema_metadata`."
_BOTH_FORMS: Final = "values of unions may stand with or without the name of their type."


def _check(parsed: ParsedFields) -> Iterator[tuple[str, str]]:
    yield from connection_problems(parsed)
    if parsed[SCHEMA_METADATA]:
        yield (
            SCHEMA_METADATA,
            "is not available: no input here gives the schema of a message with it; register the "
            "schema, and leave it out",
        )
    elif parsed[FORMAT]:
        yield FORMAT, "is only used when schema_metadata is set"


SPEC: Final = Spec(
    Kind.PROCESSOR,
    "schema_registry_encode",
    "Encodes messages by schemas of a Confluent schema registry.",
    description=(
        "The message is encoded by the newest schema of the `subject`, and begins with a zero byte "
        "and the id of the schema then. A worker requests the schema once, and again after "
        "`refresh_period`. A micro-batch that is repeated after a crash may have a newer schema. "
        "Avro, Protobuf and JSON schemas may refer to others.\n"
        "\n"
        "A message that does not fit the schema stays as it is and is marked as failed, and so is "
        "one whose subject the registry does not know. A registry that does not answer is asked "
        "three times within five seconds; then the messages at hand fail, and so do those of the "
        "next two seconds. A schema that is at hand is used while the registry is away.\n"
        "\n"
        "Subjects follow the strategy of your producers: `${! @kafka_topic }-value` for one "
        "by the topic, the name of the record for one by the record.\n"
        "\n"
        "### Avro\n"
        'Values of unions may stand under the name of their type, `{"string": "x"}`, or without. '
        "Times may be texts in RFC 3339, and decimals numbers.\n"
        "\n"
        "### Protobuf\n"
        "Documents have the JSON form of Protobuf. Of several messages in a schema, the first one "
        "is taken that the document fits; that of the previous document is tried first. Messages "
        "within messages are not tried.\n"
        "\n"
        "### JSON Schema\n"
        "The document is checked and stays unchanged."
    ),
    fields=(
        URL_FIELD,
        Field(
            SUBJECT,
            "string",
            "The subject whose newest schema is used.",
            interpolated=True,
            examples=("foo", "${! @kafka_topic }-value"),
        ),
        duration_field(
            REFRESH_PERIOD,
            "Time after which the newest schema is requested again.",
            default="10m",
            check=lambda ns: None if ns > 0 else "must be longer than 0s",
            examples=("60s", "1h"),
        ),
        Field(
            AVRO_RAW_JSON,
            "bool",
            f"Has no effect: {_BOTH_FORMS}",
            default=False,
            deprecated=True,
            advanced=True,
        ),
        Field(SCHEMA_METADATA, "string", "Is not available.", default="", access=Access.NONE),
        Field(FORMAT, "string", _NO_EFFECT, optional=True, options=("avro", "json_schema")),
        Field("normalize", "bool", _NO_EFFECT, default=True, advanced=True),
        Field(
            AVRO_FIELDS,
            "object",
            "Settings of Avro schemas.",
            children=(
                Field("raw_json", "bool", f"Has no effect: {_BOTH_FORMS}", optional=True),
                Field("record_name", "string", _NO_EFFECT, default=""),
                Field("namespace", "string", _NO_EFFECT, default=""),
            ),
        ),
        *CONNECTION_FIELDS,
    ),
    check=_check,
    examples=(
        Example(
            "Avro to Kafka",
            "pipeline:\n"
            "  processors:\n"
            "    - schema_registry_encode:\n"
            "        url: http://localhost:8081\n"
            "        subject: totals-value\n"
            "\n"
            "output:\n"
            "  redpanda:\n"
            "    seed_brokers: [localhost:9092]\n"
            "    topic: totals\n",
        ),
    ),
    begin={"url": "http://localhost:8081", "subject": "totals-value"},
    categories=("Parsing", "Integration"),
    limits="no schema_metadata",
    requires=(Package("fastavro"), Package("grpc_tools")),
)


class SchemaRegistryEncoder:
    """Encodes messages; it is a worker's, and its tasks share it."""

    def __init__(self, parsed: ParsedFields) -> None:
        """Take the fields; nothing is asked yet."""
        self.client = RegistryClient(parsed)
        self._codecs = CodecCache(
            lambda key: self.client.latest_schema(str(key)),
            self._make,
            refresh_after=parsed[REFRESH_PERIOD] / SECOND,
        )

    def encode(self, message: Message, subject: str, origin: ComponentRef, ex: Execution) -> bytes:
        """Return a message as bytes with the header of its schema.

        Args:
            message: the message.
            subject: of its schema.
            origin: logs in whose name.
            ex: the run.

        Raises:
            MessageError: it cannot be encoded.
        """
        try:
            kept = self._codecs.find(subject, lambda text: origin.log(ex, "ERROR", text))
        except StreamerError as e:
            raise MessageError(str(e)) from None
        return add_header(kept.schema_id, kept.codec.encode(message))

    def _make(self, schema: Schema) -> MessageCodec:
        references = [(name, other.text) for name, other in self.client.referenced_schemas(schema)]
        if schema.kind == PROTOBUF:
            return ProtobufMessageCodec(schema.text, references)
        if schema.kind == JSON:
            return JsonMessageCodec(schema.text, references)
        if schema.kind != AVRO:
            raise StreamerError(
                f"schema {schema.id} is of the type {schema.kind}; expected {AVRO}, {JSON} or "
                f"{PROTOBUF}"
            )
        return AvroMessageCodec(schema.text, references)


class _SubjectProcessor:
    """Encodes messages of which each has a subject of its own, by its batch."""

    def __init__(
        self, encoder: SchemaRegistryEncoder, subject: Interpolation, origin: ComponentRef
    ) -> None:
        self._encoder = encoder
        self._subject = subject
        self._origin = origin

    def process(self, batch: Batch, ex: Execution) -> list[Batch]:
        """Return the batch with its messages encoded; those that fail are marked."""
        return [[self._encode(batch, index, ex) for index in range(len(batch))]]

    def probe(self) -> str:
        """Check that the registry answers."""
        return self._encoder.client.probe()

    def _encode(self, batch: Batch, index: int, ex: Execution) -> Message:
        message = batch[index]
        try:
            subject = self._subject.text_of(batch, index, ex)
        except MessageError as e:
            return self._origin.fail(message, f"subject interpolation error: {e}", ex)
        try:
            raw = self._encoder.encode(message, subject, self._origin, ex)
        except MessageError as e:
            return self._origin.fail(message, str(e), ex)
        return message.with_bytes(raw)


def build(parsed: ParsedFields, context: BuildContext) -> RegistryProcessor | _SubjectProcessor:
    """Make the client; nothing is connected yet."""
    encoder = context.worker_resource("schema_registry", lambda: SchemaRegistryEncoder(parsed))
    origin, subject = ComponentRef(context.component), compile_interpolation(parsed[SUBJECT])
    static = subject.static
    if static is None:
        return _SubjectProcessor(encoder, subject, origin)
    return RegistryProcessor(
        lambda message, ex: message.with_bytes(encoder.encode(message, static, origin, ex)),
        origin,
        encoder.client,
    )
