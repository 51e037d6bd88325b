"""`avro`: a message of each value of an Avro container file.

It will "consume a stream of Avro OCF datum". Source: Redpanda Connect's documentation of the
scanner.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from io import BytesIO
from typing import Any, Final

import orjson

from streamer.bloblang.errors import QueryError
from streamer.connectors.formats.avro_files import AvroBlock, AvroFileReader
from streamer.connectors.schema_registry.avro_schema import AvroMessageCodec
from streamer.core.errors import StreamerError
from streamer.core.message import Batch, Message
from streamer.sdk.input.scanning import (
    MAX_CUT_MESSAGES,
    START_MARK,
    ScanError,
    ScanInput,
    ScanMark,
    ScannedCut,
)
from streamer.sdk.spec import BuildContext, Example, Field, Kind, Package, ParsedFields, Spec

RAW_JSON: Final = "raw_json"

_FINGERPRINT: Final = "CRC-64-AVRO"

SPEC: Final = Spec(
    Kind.SCANNER,
    "avro",
    "Makes a message of each value of an Avro container file.",
    description=(
        "Blocks may be packed by deflate, snappy, bzip2, xz or zstandard. The metadata are "
        "`avro_schema`, the schema in its canonical form, and `avro_schema_fingerprint`, its "
        "CRC-64-AVRO as a number."
    ),
    fields=(
        Field(
            RAW_JSON,
            "bool",
            "True to write a value of a union as it is. Otherwise it stands under the name of its "
            'type, `{"string": "x"}`, unless it is null.',
            default=False,
            advanced=True,
        ),
    ),
    examples=(
        Example(
            "Files of Avro",
            "input:\n"
            "  file:\n"
            "    paths: [ ./data/*.avro ]\n"
            "    scanner:\n"
            "      avro: { raw_json: true }\n",
        ),
    ),
    requires=(Package("fastavro"),),
)


@dataclass(frozen=True, slots=True)
class AvroScanner:
    """Reads block by block; a mark is a block, and how many of its values are before it.

    Attributes:
        raw_json: whether values of unions stand without the names of their types.
    """

    raw_json: bool

    def scan_stream(
        self, source: ScanInput, since: ScanMark = START_MARK, max_messages: int = MAX_CUT_MESSAGES
    ) -> Iterator[ScannedCut]:
        """Cut a stream; see `Scanner`."""
        number, skipped = since.number, int(since.state or 0)
        try:
            reader = AvroFileReader(source.stream)
            codec = AvroMessageCodec(reader.schema, raw_unions=self.raw_json)
            head = Message(b"", {**source.meta, **_describe_schema(reader.schema)})
            for block in reader.read_blocks(since.position):
                for made, taken in _decode_block(codec, head, block, skipped, max_messages):
                    number += len(made)
                    is_done = taken == block.count
                    mark = (block.end, number) if is_done else (block.begin, number, taken)
                    yield ScannedCut([[message] for message in made], ScanMark(*mark))
                skipped = 0
        except (StreamerError, QueryError) as error:
            raise ScanError(f"{source.name}: {error}") from None


def _decode_block(
    codec: AvroMessageCodec, head: Message, block: AvroBlock, skipped: int, max_messages: int
) -> Iterator[tuple[Batch, int]]:
    """Return the messages of a block, but for those that are skipped, and where they end in it.

    Raises:
        MessageError: a value does not fit the schema; what is before it has been returned.
    """
    values, made = BytesIO(block.data), list[Message]()
    taken = 0
    try:
        while taken < block.count:
            message = codec.decode_next(head, values)
            taken += 1
            if taken > skipped:
                made.append(message)
            if len(made) == max_messages:
                yield made, taken
                made = []
    except StreamerError:
        if made:
            yield made, taken
        raise
    if made:
        yield made, taken


def _describe_schema(text: str) -> dict[str, Any]:
    """Return the metadata of a schema that has been read already."""
    from fastavro import schema as schemas

    canonical = schemas.to_parsing_canonical_form(schemas.parse_schema(orjson.loads(text)))
    fingerprint = bytes.fromhex(schemas.fingerprint(canonical, _FINGERPRINT))
    return {
        "avro_schema": canonical,
        "avro_schema_fingerprint": int.from_bytes(fingerprint, "little"),
    }


def build(parsed: ParsedFields, context: BuildContext) -> AvroScanner:
    """Take the field."""
    return AvroScanner(parsed[RAW_JSON])
