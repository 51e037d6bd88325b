"""A schema of Avro, and what it makes of bytes and of documents in Avro's JSON."""

from __future__ import annotations

import io
import json
import math
import re
from collections.abc import Mapping
from typing import Any, Final

from streamer.connectors.formats.avro_bounds import AvroBoundsChecker
from streamer.connectors.formats.avro_json import AvroDocumentConverter
from streamer.core.errors import StreamerError
from streamer.core.json.dump import dump_json
from streamer.core.json.parse import parse_json_int

# What a document in the single-object encoding begins with, before the schema's fingerprint.
_SINGLE_OBJECT_MARK: Final = b"\xc3\x01"


class AvroCodec:
    """A schema, and what it makes of documents and bytes."""

    def __init__(self, text: str) -> None:
        """Read a schema.

        Raises:
            StreamerError: it is none.
        """
        from fastavro import schema as schemas

        try:
            plain = _without_logical_types(json.loads(text))
            self._schema = schemas.parse_schema(plain)
            canonical = schemas.to_parsing_canonical_form(plain)
            digest = schemas.fingerprint(canonical, "CRC-64-AVRO")
        except MemoryError:
            raise
        except Exception as e:  # the library raises all kinds
            raise StreamerError(f"parsing schema: {avro_error_text(e)}") from None
        self._documents = AvroDocumentConverter(self._schema)
        try:
            self._bounds = AvroBoundsChecker(self._schema)
        except ValueError as e:
            raise StreamerError(f"parsing schema: {e}") from None
        # The text is of the bytes in the order in which the encoding has them.
        self._begin = _SINGLE_OBJECT_MARK + bytes.fromhex(digest)

    def from_text(self, raw: bytes) -> Any:
        """Return the value of a document in Avro's JSON."""
        return self._documents.to_value(json.loads(raw, parse_int=parse_json_int))

    def from_plain(self, value: Any) -> Any:
        """Return the value of a document that has been read; bytes in it stay what they are."""
        return self._documents.to_value(as_read_from_json(value))

    def from_bytes(self, raw: bytes) -> Any:
        """Return the value that bytes stand for; what follows it is not looked at.

        Raises:
            QueryError: it is beyond the limits of one message.
        """
        import fastavro

        self._bounds.check(raw)
        return fastavro.schemaless_reader(
            io.BytesIO(raw), self._schema, None, return_record_name=True
        )

    def from_single(self, raw: bytes) -> Any:
        """Return the value of bytes that begin with the schema's fingerprint."""
        if not raw.startswith(self._begin):
            raise ValueError("the document does not begin with the fingerprint of the schema")
        return self.from_bytes(raw[len(self._begin) :])

    def to_text(self, value: Any) -> bytes:
        """Return a value in Avro's JSON; a float that JSON has no form for is as goavro has it."""
        import fastavro

        if self._bounds.is_recursive:
            # The library's writer of JSON knows no types that contain themselves.
            written = json.dumps(self._documents.to_document(value))
        else:
            out = io.StringIO()
            fastavro.json_writer(out, self._schema, [value])
            written = out.getvalue()
        document = json.loads(written, parse_constant=_CONSTANTS.get)
        text = json.dumps(document, separators=(",", ":"))
        return (
            _INFINITY.sub(_replace_infinity, text).encode() if "Infinity" in text else text.encode()
        )

    def to_bytes(self, value: Any) -> bytes:
        """Return a value as bytes."""
        import fastavro

        out = io.BytesIO()
        fastavro.schemaless_writer(out, self._schema, value)
        return out.getvalue()

    def to_single(self, value: Any) -> bytes:
        """Return a value as bytes after the schema's fingerprint."""
        return self._begin + self.to_bytes(value)


_CONSTANTS: Final[Mapping[str, float | None]] = {
    "NaN": None,
    "Infinity": math.inf,
    "-Infinity": -math.inf,
}
_INFINITY: Final = re.compile(r'("(?:[^"\\]|\\.)*")|-?Infinity')


def _replace_infinity(match: re.Match[str]) -> str:
    return match[1] or match[0].replace("Infinity", "1e999")


_PLAIN: Final = frozenset((int, bool, bytes, type(None)))


def as_read_from_json(value: Any) -> Any:
    """Return a document as it would be read from its JSON, but for the bytes in it.

    JSON has them as Base64, which is no value of a schema's strings or bytes.
    """
    kind = type(value)
    if kind is dict:
        return {as_read_from_json(key): as_read_from_json(one) for key, one in value.items()}
    if kind is list:
        return [as_read_from_json(one) for one in value]
    if kind in _PLAIN or (kind is str and value.isascii()):
        return value
    return json.loads(dump_json(value), parse_int=parse_json_int)


def _without_logical_types(schema: Any) -> Any:
    if isinstance(schema, list):
        return [_without_logical_types(one) for one in schema]
    if not isinstance(schema, dict):
        return schema
    left_out = ("default", "doc")
    return {
        key: value if key in left_out else _without_logical_types(value)
        for key, value in schema.items()
        if key != "logicalType"
    }


def avro_error_text(error: Exception) -> str:
    """Return what a library says is wrong, in one line."""
    if isinstance(error, RecursionError):
        return "the document is nested too deep"
    return " ".join(str(error).split()) or type(error).__name__
