"""Avro schemas of a registry: messages to JSON and back, by a schema and those it refers to."""

from __future__ import annotations

import io
import json
import math
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final

import orjson

from streamer.connectors.formats.avro_bounds import AvroBoundsChecker
from streamer.connectors.formats.avro_codec import as_read_from_json, avro_error_text
from streamer.connectors.formats.avro_json import LOGICAL, AvroDocumentConverter
from streamer.connectors.formats.avro_logical import make_logical_reader, parse_logical
from streamer.core.errors import MessageError, StreamerError
from streamer.core.message import Message

_LEFT_OUT: Final = ("default", "doc")
_LIBRARY_KEYS: Final = ("__fastavro_parsed", "__named_schemas")
_UNPLAIN: Final = frozenset(("bytes", "fixed", "float", "double"))
"""Types of which a value may be one that JSON writes another way."""

SchemaMapping = Callable[[str], str]
"""Makes of a schema's text another one."""


class AvroMessageCodec:
    """Reads and writes messages of one schema."""

    def __init__(
        self,
        text: str,
        references: Iterable[tuple[str, str]] = (),
        *,
        raw_unions: bool = False,
        preserves_logical_types: bool = False,
        translates_connect: bool = False,
    ) -> None:
        """Read a schema.

        Args:
            text: the schema.
            references: names and texts of schemas that it refers to, what is referred to first.
            raw_unions: whether a value of a union stands in JSON without the name of its type.
            preserves_logical_types: whether times and decimals are values of their own.
            translates_connect: whether those of Kafka Connect are, too.

        Raises:
            StreamerError: one of them is no schema.
        """
        from fastavro import schema as schemas

        try:
            self._schema = schemas.parse_schema(_resolve(text, references))
            self._bounds = AvroBoundsChecker(self._schema)
        except MemoryError:
            raise
        except Exception as e:  # the library raises all kinds
            raise StreamerError(f"parsing Avro schema: {avro_error_text(e)}") from None
        self._raw_unions = raw_unions
        self._preserves = preserves_logical_types
        reader = make_logical_reader(translates_connect) if preserves_logical_types else None
        self._documents = AvroDocumentConverter(
            self._schema,
            is_tagged=not raw_unions,
            read_logical=reader,
            parse_logical=parse_logical,
        )
        kinds = set(_iter_kinds(self._schema))
        self._is_plain = raw_unions and reader is None and not kinds & _UNPLAIN
        self._has_floats = bool(kinds & {"float", "double"})

    def decode(self, message: Message, raw: bytes) -> Message:
        """Return a message with the document that bytes stand for.

        Raises:
            MessageError: they fit the schema in no way.
        """
        return self.decode_next(message, io.BytesIO(raw))

    def decode_next(self, message: Message, values: io.BytesIO) -> Message:
        """Return a message with the document of the next one of several values.

        Args:
            message: gives the metadata.
            values: their bytes; is at the end of the value afterwards.

        Raises:
            MessageError: it fits the schema in no way.
        """
        import fastavro

        try:
            self._bounds.check(values.getbuffer(), values.tell())
            value = fastavro.schemaless_reader(
                values, self._schema, None, return_record_name=not self._is_plain
            )
            if self._is_plain:
                return message.with_bytes(orjson.dumps(value))
            document = self._documents.to_document(value)
        except MemoryError:
            raise
        except Exception as e:  # the library raises all kinds
            raise MessageError(f"decoding Avro: {avro_error_text(e)}") from None
        if self._preserves:
            return message.with_doc(document)
        return message.with_bytes(_write_json(document, self._has_floats))

    def encode(self, message: Message) -> bytes:
        """Return a message's document as bytes.

        Raises:
            MessageError: it is no JSON, or does not fit the schema.
        """
        import fastavro

        try:
            document = message.doc
        except MessageError as e:
            raise MessageError(f"extracting structured data: {e}") from None
        out = io.BytesIO()
        try:
            value = self._documents.to_value(as_read_from_json(document))
            fastavro.schemaless_writer(out, self._schema, value)
        except MemoryError:
            raise
        except Exception as e:  # the library raises all kinds
            raise MessageError(f"encoding Avro: {avro_error_text(e)}") from None
        return out.getvalue()


def _write_json(document: Any, has_floats: bool) -> bytes:
    """Write a document, with null for what is no number, and infinity as a number too large."""
    if has_floats and not _is_finite(document):
        return (
            json.dumps(_replace_floats(document), separators=(",", ":"))
            .replace('"\\u0000inf\\u0000"', "1e999")
            .replace('"\\u0000-inf\\u0000"', "-1e999")
            .encode()
        )
    return orjson.dumps(document)


def _is_finite(document: Any) -> bool:
    if isinstance(document, dict):
        return all(map(_is_finite, document.values()))
    if isinstance(document, list):
        return all(map(_is_finite, document))
    return not isinstance(document, float) or math.isfinite(document)


def _replace_floats(document: Any) -> Any:
    if isinstance(document, dict):
        return {key: _replace_floats(one) for key, one in document.items()}
    if isinstance(document, list):
        return [_replace_floats(one) for one in document]
    if isinstance(document, float) and not math.isfinite(document):
        return None if math.isnan(document) else f"\0{document}\0"
    return document


def _resolve(text: str, references: Iterable[tuple[str, str]]) -> Any:
    """Return a schema with the definitions of the named types that it refers to in their places."""
    from fastavro import schema as schemas

    named: dict[str, Any] = {}
    definitions: dict[str, Any] = {}
    for _, other in references:
        parsed = schemas.parse_schema(_mark_logical(json.loads(other)), named_schemas=named)
        for one in parsed if isinstance(parsed, list) else [parsed]:
            if isinstance(one, dict) and "name" in one:
                definitions[one["name"]] = _without_library_keys(one)
    root = _mark_logical(json.loads(text))
    if not definitions:
        return root
    parsed = schemas.parse_schema(root, named_schemas=named)
    return _put_in(_without_library_keys(parsed), definitions)


def _put_in(schema: Any, definitions: dict[str, Any]) -> Any:
    """Put each definition where its name stands first; later it may be named again."""
    if isinstance(schema, str):
        definition = definitions.pop(schema, None)
        return schema if definition is None else _put_in(definition, definitions)
    if isinstance(schema, list):
        return [_put_in(one, definitions) for one in schema]
    if not isinstance(schema, dict):
        return schema
    made = dict(schema)
    if "fields" in made:
        made["fields"] = [
            {**field, "type": _put_in(field["type"], definitions)} for field in made["fields"]
        ]
    for part in ("items", "values"):
        if part in made:
            made[part] = _put_in(made[part], definitions)
    if isinstance(made.get("type"), dict | list):
        made["type"] = _put_in(made["type"], definitions)
    return made


def _without_library_keys(schema: Any) -> Any:
    if isinstance(schema, dict):
        return {key: value for key, value in schema.items() if key not in _LIBRARY_KEYS}
    return schema


def _mark_logical(schema: Any) -> Any:
    """Return a schema whose logical types the library does not know, so that values stay stored."""
    if isinstance(schema, list):
        return [_mark_logical(one) for one in schema]
    if not isinstance(schema, dict):
        return schema
    return {
        LOGICAL if key == "logicalType" else key: (
            value if key in _LEFT_OUT else _mark_logical(value)
        )
        for key, value in schema.items()
    }


def _iter_kinds(schema: Any) -> Iterable[str]:
    if isinstance(schema, str):
        yield schema
    elif isinstance(schema, list):
        for one in schema:
            yield from _iter_kinds(one)
    elif isinstance(schema, Mapping):
        for field in schema.get("fields", ()):
            yield from _iter_kinds(field["type"])
        for part in ("type", "items", "values"):
            yield from _iter_kinds(schema.get(part))
