"""`schema_registry_decode`: decodes messages by the schema whose id they begin with."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from streamer.bloblang import Mapping, compile_mapping
from streamer.connectors.protobuf.messages import ProtobufOptions
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
from streamer.connectors.schema_registry.wire_format import BAD_HEADER, split_header
from streamer.core.durations import SECOND
from streamer.core.errors import MessageError, StreamerError
from streamer.core.execution import Execution
from streamer.core.message import Message
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

AVRO_RAW_JSON: Final = "avro_raw_json"
AVRO_FIELDS: Final = "avro"
RAW_UNIONS: Final = "raw_unions"
PRESERVE: Final = "preserve_logical_types"
TRANSLATE: Final = "translate_kafka_connect_types"
MAPPING: Final = "mapping"
STORE_SCHEMA: Final = "store_schema_metadata"
PROTOBUF_FIELDS: Final = "protobuf"
JSON_FIELDS: Final = "json"
COERCE: Final = "coerce_data"
CACHE_DURATION: Final = "cache_duration"
DEFAULT_ID: Final = "default_schema_id"
SCHEMA_ID: Final = "schema_id"


def _check(parsed: ParsedFields) -> Iterator[tuple[str, str]]:
    yield from connection_problems(parsed)
    avro = parsed[AVRO_FIELDS]
    if avro[TRANSLATE] and not avro[PRESERVE]:
        yield f"{AVRO_FIELDS}.{TRANSLATE}", f"is true; it needs {PRESERVE}: true"
    if avro[STORE_SCHEMA]:
        yield (
            f"{AVRO_FIELDS}.{STORE_SCHEMA}",
            "is not available: no component here takes the schema of a message from its metadata; "
            "leave it out",
        )


SPEC: Final = Spec(
    Kind.PROCESSOR,
    "schema_registry_decode",
    "Decodes messages by schemas of a Confluent schema registry.",
    description=(
        "A message begins with a zero byte and the id of its schema, four bytes. The schema is "
        "requested once for each worker and kept while it is used. The message becomes a JSON "
        "document, and gets the metadata `schema_id`. Avro, Protobuf and JSON schemas may refer to "
        "others.\n"
        "\n"
        "A message that does not fit its schema, or whose schema the registry does not know, stays "
        "as it is and is marked as failed. A registry that does not answer is asked three times "
        "within five seconds; then the messages at hand fail, and so do those of the next two "
        "seconds.\n"
        "\n"
        "### Avro\n"
        'A value of a union stands under the name of its type, `{"string": "x"}`, without that '
        "with `raw_unions`. Logical types are numbers and bytes as they are stored, unless "
        "`preserve_logical_types` makes times and numbers of them.\n"
        "\n"
        "### Protobuf\n"
        "Documents have the JSON form of Protobuf. The schema is compiled by `protoc`.\n"
        "\n"
        "### JSON Schema\n"
        "The document is checked, and stays unchanged without `json.coerce_data`."
    ),
    fields=(
        URL_FIELD,
        Field(
            AVRO_RAW_JSON,
            "bool",
            "The old way to say `avro.raw_unions`.",
            default=False,
            deprecated=True,
            advanced=True,
        ),
        Field(
            AVRO_FIELDS,
            "object",
            "Settings of Avro schemas.",
            children=(
                Field(
                    RAW_UNIONS,
                    "bool",
                    "True if values of unions stand without the name of their type.",
                    optional=True,
                ),
                Field(
                    PRESERVE,
                    "bool",
                    "True if logical types become times and numbers; otherwise values are as they "
                    "are stored. Decimals are numbers of 64 bits then.",
                    default=False,
                ),
                Field(
                    TRANSLATE,
                    "bool",
                    "True if the temporal types of Debezium (`io.debezium.time…`) become times as "
                    "well.",
                    default=False,
                ),
                Field(
                    MAPPING,
                    "string",
                    "A mapping of each schema, as JSON, before it is used.",
                    optional=True,
                    mapping=True,
                    advanced=True,
                    examples=("root = this",),
                ),
                Field(
                    STORE_SCHEMA,
                    "string",
                    "Is not available.",
                    optional=True,
                    access=Access.NONE,
                ),
            ),
        ),
        Field(
            PROTOBUF_FIELDS,
            "object",
            "Settings of Protobuf schemas.",
            children=(
                Field(
                    "use_proto_names",
                    "bool",
                    "True for the names of the schema instead of lowerCamelCase.",
                    default=False,
                ),
                Field("use_enum_numbers", "bool", "True for enums as numbers.", default=False),
                Field(
                    "emit_unpopulated",
                    "bool",
                    "True to write fields without a value too, messages as null; not those of a "
                    "oneof.",
                    default=False,
                ),
                Field(
                    "emit_default_values",
                    "bool",
                    "True to write default values, empty lists and maps.",
                    default=False,
                ),
                Field(
                    "serialize_to_json",
                    "bool",
                    "True for JSON, in which whole numbers of 64 bits, bytes and times are texts; "
                    "otherwise they keep their types.",
                    default=True,
                ),
            ),
        ),
        Field(
            JSON_FIELDS,
            "object",
            "Settings of JSON schemas.",
            children=(
                Field(
                    COERCE,
                    "bool",
                    "True if values become those that the schema types: `integer` a whole number, "
                    "`number` a number with a point, a text with the format `date-time` a time. "
                    "Properties that are missing get their `default`.",
                    default=False,
                ),
            ),
        ),
        duration_field(
            CACHE_DURATION,
            "Time without a message after which a schema is no longer kept.",
            default="10m",
            check=lambda ns: None if ns > 0 else "must be longer than 0s",
            examples=("1h", "5m"),
        ),
        Field(
            DEFAULT_ID,
            "int",
            "The id of the schema of messages that begin with none. Not for Protobuf.",
            optional=True,
        ),
        *CONNECTION_FIELDS,
    ),
    check=_check,
    examples=(
        Example(
            "Avro from Kafka",
            "input:\n"
            "  redpanda:\n"
            "    seed_brokers: [localhost:9092]\n"
            "    topics: [orders]\n"
            "    consumer_group: readers\n"
            "\n"
            "pipeline:\n"
            "  processors:\n"
            "    - schema_registry_decode:\n"
            "        url: http://localhost:8081\n"
            "        avro:\n"
            "          raw_unions: true\n",
        ),
    ),
    begin={"url": "http://localhost:8081"},
    categories=("Parsing", "Integration"),
    limits="no store_schema_metadata",
    requires=(Package("fastavro"), Package("grpc_tools")),
)


class _DecoderMaker:
    """Makes a codec of a schema, with those that it refers to."""

    def __init__(self, parsed: ParsedFields, client: RegistryClient) -> None:
        self._parsed = parsed
        self._client = client
        text = parsed[AVRO_FIELDS][MAPPING]
        self._mapping: Mapping | None = compile_mapping(text) if text else None

    def make(self, schema: Schema) -> MessageCodec:
        references = [(name, other.text) for name, other in self._client.referenced_schemas(schema)]
        if schema.kind == PROTOBUF:
            options = ProtobufOptions(**self._parsed[PROTOBUF_FIELDS])
            return ProtobufMessageCodec(schema.text, references, options)
        if schema.kind == JSON:
            coerces = self._parsed[JSON_FIELDS][COERCE]
            return JsonMessageCodec(schema.text, references, coerces=coerces)
        if schema.kind != AVRO:
            raise StreamerError(
                f"schema {schema.id} is of the type {schema.kind}; expected {AVRO}, {JSON} or "
                f"{PROTOBUF}"
            )
        avro = self._parsed[AVRO_FIELDS]
        raw = avro[RAW_UNIONS]
        return AvroMessageCodec(
            self._map(schema.text),
            [(name, self._map(text)) for name, text in references],
            raw_unions=self._parsed[AVRO_RAW_JSON] if raw is None else raw,
            preserves_logical_types=avro[PRESERVE],
            translates_connect=avro[TRANSLATE],
        )

    def _map(self, text: str) -> str:
        if self._mapping is None:
            return text
        try:
            made = self._mapping.query([Message(text.encode())], 0, Execution(lambda: 0))
        except MessageError as e:
            raise StreamerError(f"unable to apply avro schema mapping: {e}") from None
        return Message.from_value(made).raw.decode()


class SchemaRegistryDecoder:
    """Decodes messages; it is a worker's, and its tasks share it."""

    def __init__(self, parsed: ParsedFields) -> None:
        """Take the fields; nothing is asked yet."""
        self.client = RegistryClient(parsed)
        self._default: int | None = parsed[DEFAULT_ID]
        self._codecs = CodecCache(
            lambda key: self.client.schema_by_id(int(key)),
            _DecoderMaker(parsed, self.client).make,
            stale_after=parsed[CACHE_DURATION] / SECOND,
        )

    def decode(self, message: Message, ex: Execution) -> Message:
        """Return a message as a document.

        Raises:
            MessageError: it cannot be decoded.
        """
        split = split_header(message.raw)
        if split is None:
            if not self._default:
                raise MessageError(BAD_HEADER)
            split = self._default, message.raw
        schema_id, rest = split
        try:
            codec = self._codecs.find(schema_id, lambda text: None).codec
        except StreamerError as e:
            raise MessageError(str(e)) from None
        return codec.decode(message, rest).with_added_metadata(**{SCHEMA_ID: schema_id})


def build(parsed: ParsedFields, context: BuildContext) -> RegistryProcessor:
    """Make the client; nothing is connected yet."""
    decoder = context.worker_resource("schema_registry", lambda: SchemaRegistryDecoder(parsed))
    return RegistryProcessor(decoder.decode, ComponentRef(context.component), decoder.client)
