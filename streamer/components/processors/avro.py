"""`avro`: converts messages between Avro and JSON by a schema.

It "performs Avro based operations on messages based on a schema". In JSON a value of a union stands
under the name of its type (`{"string": "x"}`), and bytes are a text with a character for each.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Final

from streamer.connectors.formats.avro_codec import AvroCodec, avro_error_text
from streamer.connectors.formats.schema_text import (
    SCHEMA,
    SCHEMA_PATH,
    read_schema_text,
    schema_fields,
)
from streamer.connectors.locations.stores import location_packages
from streamer.core.errors import MessageError, StreamerError
from streamer.core.execution import Execution
from streamer.core.json.parse import parse_json
from streamer.core.message import Message
from streamer.sdk.component_ref import ComponentRef
from streamer.sdk.processing.per_message import Change, PerMessageProcessor, parse_document
from streamer.sdk.spec import BuildContext, Example, Field, Kind, Package, ParsedFields, Spec

OPERATOR: Final = "operator"
ENCODING: Final = "encoding"

TEXTUAL: Final = "textual"
BINARY: Final = "binary"
SINGLE: Final = "single"


def _schema_problem(text: str) -> str | None:
    if not text:
        return None
    try:
        AvroCodec(text)
    except StreamerError as e:
        return str(e)
    return None


def _problems(parsed: ParsedFields) -> Iterator[tuple[str, str]]:
    if not parsed[SCHEMA] and not parsed[SCHEMA_PATH]:
        yield "", "a schema must be specified with either the `schema` or `schema_path` fields"


SPEC: Final = Spec(
    Kind.PROCESSOR,
    "avro",
    "Converts messages between Avro and JSON.",
    description=(
        "`to_json` reads Avro in the encoding, and makes JSON of it; `from_json` the other way "
        "round. In JSON, a value of a union other than null stands under the name of its type, "
        '`{"string": "x"}`; without the name it is of the first type that it fits. '
        "Values of logical types are what they are stored as."
    ),
    fields=(
        Field(OPERATOR, "string", "Operation.", options=("to_json", "from_json")),
        Field(
            ENCODING,
            "string",
            "Encoding of Avro: as JSON (`textual`), as bytes (`binary`), or as bytes after "
            "the schema's fingerprint (`single`).",
            default=TEXTUAL,
            options=(TEXTUAL, BINARY, SINGLE),
        ),
        *schema_fields(_schema_problem, "file:///etc/schemas/person.avsc", default=""),
    ),
    check=_problems,
    examples=(
        Example(
            "Read Avro",
            "pipeline:\n"
            "  processors:\n"
            "    - avro:\n"
            "        operator: to_json\n"
            "        encoding: binary\n"
            '        schema: \'{"type":"record","name":"Point","fields":['
            '{"name":"x","type":"long"}]}\'\n',
        ),
    ),
    begin={"schema": '{"type": "string"}'},
    categories=("Parsing",),
    limits="values of logical types are what they are stored as",
    requires=(Package("fastavro"), *location_packages(SCHEMA_PATH)),
)


def _to_json(codec: AvroCodec, read: Callable[[bytes], Any]) -> Change:
    def change(message: Message, ex: Execution) -> Message:
        try:
            return message.with_doc(parse_json(codec.to_text(read(message.raw))))
        except MemoryError:
            raise
        except Exception as e:  # the library raises all kinds
            raise MessageError(f"converting Avro document to JSON: {avro_error_text(e)}") from None

    return change


def _from_json(codec: AvroCodec, write: Callable[[Any], bytes]) -> Change:
    def change(message: Message, ex: Execution) -> Message:
        try:
            value = parse_document(message)
        except MessageError as e:
            raise MessageError(f"parsing message as JSON: {e}") from None
        try:
            return message.with_bytes(write(codec.from_plain(value)))
        except MemoryError:
            raise
        except Exception as e:  # the library raises all kinds
            raise MessageError(f"converting JSON to Avro schema: {avro_error_text(e)}") from None

    return change


def build(parsed: ParsedFields, context: BuildContext) -> PerMessageProcessor:
    """Read the schema, and choose what is done."""
    codec = AvroCodec(read_schema_text(parsed, context, "loading Avro schema definition: "))
    encoding = parsed[ENCODING]
    if parsed[OPERATOR] == "to_json":
        readers = {TEXTUAL: codec.from_text, BINARY: codec.from_bytes, SINGLE: codec.from_single}
        change = _to_json(codec, readers[encoding])
    else:
        writers = {TEXTUAL: codec.to_text, BINARY: codec.to_bytes, SINGLE: codec.to_single}
        change = _from_json(codec, writers[encoding])
    return PerMessageProcessor(change, ComponentRef(context.component))
