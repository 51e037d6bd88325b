"""Documents in Avro's JSON as the values that fastavro writes.

A value of a union stands under the name of its type; here it may stand without, and then takes the
first type that it fits. Bytes that a mapping has made are bytes, or the text that they spell.
Source: the JSON encoding of Avro's specification.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from streamer.bloblang.limits import check_depth

LOGICAL: Final = "logical"
"""Stands for `logicalType` in a schema whose values the reader leaves as they are stored."""

NOT_LOGICAL: Final = object()
"""Stands for a value that is of no logical type."""

LogicalReader = Callable[[Mapping[str, Any], Any], Any]
"""Makes of a type and a value of it another value, or `NOT_LOGICAL`."""

_MISSING: Final = object()


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _integer_check(bits: int) -> Callable[[Any], bool]:
    end = 1 << (bits - 1)
    return lambda value: (
        isinstance(value, int) and not isinstance(value, bool) and -end <= value < end
    )


_PRIMITIVES: Final[Mapping[str, Callable[[Any], bool]]] = {
    "null": lambda value: value is None,
    "boolean": lambda value: isinstance(value, bool),
    "int": _integer_check(32),
    "long": _integer_check(64),
    "float": _is_number,
    "double": _is_number,
    "string": lambda value: isinstance(value, str | bytes),
    "bytes": lambda value: isinstance(value, str | bytes),
}


class AvroDocumentConverter:
    """Reads documents of one schema."""

    def __init__(
        self,
        schema: Any,
        *,
        is_tagged: bool = True,
        read_logical: LogicalReader | None = None,
        parse_logical: LogicalReader | None = None,
    ) -> None:
        """Take a schema as fastavro has parsed it: every name is a full one.

        Args:
            schema: the schema.
            is_tagged: whether a value of a union stands under the name of its type in documents.
            read_logical: makes of a value, by its type, what stands in a document; returns
                `NOT_LOGICAL` for values of other types.
            parse_logical: the other way round.
        """
        self._schema = schema
        self._is_tagged = is_tagged
        self._read_logical = read_logical
        self._parse_logical = parse_logical
        self._named: dict[str, Any] = {}
        self._collect_names(schema)

    def to_value(self, document: Any) -> Any:
        """Return the value of a document; a record in a union is a pair of its name and itself.

        Raises:
            ValueError: it does not fit; the text says where.
        """
        return self._to_value(document, self._schema, "document")

    def to_document(self, value: Any) -> Any:
        """Return the document of a value as the binary reader gives it.

        There a record in a union is a pair of its name and itself.

        Raises:
            QueryError: it is nested deeper than `limits.depth`.
            ValueError: it is no value of the schema; the text says where.
        """
        return self._to_document(value, self._schema, 0)

    def _to_document(self, value: Any, schema: Any, depth: int) -> Any:
        schema = self._named.get(schema, schema) if isinstance(schema, str) else schema
        if isinstance(schema, list):
            return self._union_to_document(value, schema, depth)
        kind = schema["type"] if isinstance(schema, dict) else schema
        if isinstance(kind, dict | list):
            return self._to_document(value, kind, depth)
        if self._read_logical is not None and isinstance(schema, dict):
            read = self._read_logical(schema, value)
            if read is not NOT_LOGICAL:
                return read
        if kind in ("record", "error", "array", "map"):
            depth += 1
            check_depth(depth, "the Avro document")
        if kind in ("record", "error"):
            made = {}
            for field in schema["fields"]:
                name = field["name"]
                made[name] = self._to_document(value[name], field["type"], depth)
            return made
        if kind == "array":
            items = schema["items"]
            return [self._to_document(one, items, depth) for one in value]
        if kind == "map":
            values = schema["values"]
            return {key: self._to_document(one, values, depth) for key, one in value.items()}
        return value.decode("latin-1") if isinstance(value, bytes) else value

    def _union_to_document(self, value: Any, schemas: list[Any], depth: int) -> Any:
        if value is None:
            return None
        if isinstance(value, tuple):
            name, value = value
            document = self._to_document(value, name, depth)
            return {name: document} if self._is_tagged else document
        for schema in schemas:
            named = self._named.get(schema, schema) if isinstance(schema, str) else schema
            kind = named["type"] if isinstance(named, dict) else named
            if _fits(value, kind, named):
                document = self._to_document(value, named, depth)
                return {_union_name(schema): document} if self._is_tagged else document
        raise ValueError(
            f"{_format_short(value)} is none of {', '.join(map(_union_name, schemas))}"
        )

    def _collect_names(self, schema: Any) -> None:
        if isinstance(schema, list):
            for one in schema:
                self._collect_names(one)
        elif isinstance(schema, dict):
            if "name" in schema:
                self._named[schema["name"]] = schema
            for one in schema.get("fields", ()):
                self._collect_names(one["type"])
            for part in ("items", "values"):
                self._collect_names(schema.get(part))

    def _to_value(self, document: Any, schema: Any, at: str) -> Any:
        if isinstance(schema, list):
            return self._union_to_value(document, schema, at)
        schema = self._named.get(schema, schema) if isinstance(schema, str) else schema
        kind = schema["type"] if isinstance(schema, dict) else schema
        if isinstance(kind, dict | list):
            return self._to_value(document, kind, at)
        if self._parse_logical is not None and isinstance(schema, dict):
            parsed = self._parse_logical(schema, document)
            if parsed is not NOT_LOGICAL:
                return parsed
        if kind in _PRIMITIVES:
            return _check_primitive(document, kind, at)
        if kind in ("record", "error"):
            return self._record_to_value(document, schema, at)
        if kind == "array" and isinstance(document, list):
            items = schema["items"]
            return [
                self._to_value(one, items, f"{at}[{index}]") for index, one in enumerate(document)
            ]
        if kind == "map" and isinstance(document, dict):
            values = schema["values"]
            return {
                key: self._to_value(one, values, f"{at}.{key}") for key, one in document.items()
            }
        if kind == "enum" and isinstance(document, str | bytes):
            symbol = _check_primitive(document, "string", at)
            if symbol in schema["symbols"]:
                return symbol
        if kind == "fixed" and isinstance(document, str | bytes):
            raw = _check_primitive(document, "bytes", at)
            if len(raw) == schema["size"]:
                return raw
        raise ValueError(f"{at} is {_format_short(document)}; expected {_union_name(schema)}")

    def _record_to_value(self, document: Any, schema: Any, at: str) -> dict[str, Any]:
        if not isinstance(document, dict):
            raise ValueError(f"{at} is {_format_short(document)}; expected {_union_name(schema)}")
        made = {}
        for field in schema["fields"]:
            name, kind = field["name"], field["type"]
            value = document.get(name, field.get("default", _MISSING))
            if value is _MISSING:
                raise ValueError(f"{at} has no {name}, which has no default")
            if name not in document and isinstance(kind, list):
                kind = kind[0]  # a default is of the first type
            made[name] = self._to_value(value, kind, f"{at}.{name}")
        return made

    def _union_to_value(self, document: Any, schemas: list[Any], at: str) -> Any:
        if isinstance(document, dict) and len(document) == 1:
            [(name, value)] = document.items()
            for schema in schemas:
                if name in (_union_name(schema), _plain_name(schema)) and schema != "null":
                    return self._tag_record(value, schema, f"{at}.{name}")
        for schema in schemas:
            try:
                return self._tag_record(document, schema, at)
            except ValueError:
                continue
        names = ", ".join(map(_union_name, schemas))
        raise ValueError(f"{at} is {_format_short(document)}; expected one of {names}")

    def _tag_record(self, document: Any, schema: Any, at: str) -> Any:
        value = self._to_value(document, schema, at)
        named = self._named.get(schema, schema) if isinstance(schema, str) else schema
        is_record = isinstance(named, dict) and named["type"] in ("record", "error")
        return (named["name"], value) if is_record else value


def _fits(value: Any, kind: str, schema: Any) -> bool:
    """Whether a value that was read may be of a type that is no record."""
    if isinstance(value, bytes):
        return kind == "bytes" or (kind == "fixed" and len(value) == schema["size"])
    if kind == "enum":
        return isinstance(value, str) and value in schema["symbols"]
    if kind in ("array", "map"):
        return isinstance(value, list if kind == "array" else dict)
    return kind != "bytes" and kind in _PRIMITIVES and _PRIMITIVES[kind](value)


def _check_primitive(document: Any, kind: str, at: str) -> Any:
    if not _PRIMITIVES[kind](document):
        raise ValueError(f"{at} is {_format_short(document)}; expected {kind}")
    if isinstance(document, bytes):
        return document if kind == "bytes" else document.decode(errors="replace")
    if kind != "bytes":
        return document
    try:
        return document.encode("latin-1")
    except UnicodeEncodeError:
        raise ValueError(f"{at} has characters that stand for no byte") from None


def _union_name(schema: Any) -> str:
    """Return what a type is called in a union; one that is logical by both of its names."""
    name = _plain_name(schema)
    if isinstance(schema, dict) and LOGICAL in schema and "name" not in schema:
        return f"{name}.{schema[LOGICAL]}"
    return name


def _plain_name(schema: Any) -> str:
    if isinstance(schema, dict):
        return str(schema.get("name", schema["type"]))
    return str(schema)


def _format_short(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 40 else f"{text[:37]}..."
