"""Documents in Avro's JSON as the values that fastavro writes.

A value of a union stands under the name of its type; here it may stand without, and then takes the
first type that it fits. Bytes that a mapping has made are bytes, or the text that they spell.
Source: the JSON encoding of Avro's specification.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from streamer.bloblang.limits import check_depth

_MISSING: Final = object()


def _number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _within(bits: int) -> Callable[[Any], bool]:
    end = 1 << (bits - 1)
    return lambda value: (
        isinstance(value, int) and not isinstance(value, bool) and -end <= value < end
    )


_PRIMITIVES: Final[Mapping[str, Callable[[Any], bool]]] = {
    "null": lambda value: value is None,
    "boolean": lambda value: isinstance(value, bool),
    "int": _within(32),
    "long": _within(64),
    "float": _number,
    "double": _number,
    "string": lambda value: isinstance(value, str | bytes),
    "bytes": lambda value: isinstance(value, str | bytes),
}


class AvroDocuments:
    """Reads documents of one schema."""

    def __init__(self, schema: Any) -> None:
        """Take a schema as fastavro has parsed it: every name is a full one."""
        self._schema = schema
        self._named: dict[str, Any] = {}
        self._note(schema)

    def value(self, document: Any) -> Any:
        """Return the value of a document; a record in a union is a pair of its name and itself.

        Raises:
            ValueError: it does not fit; the text says where.
        """
        return self._of(document, self._schema, "document")

    def document(self, value: Any) -> Any:
        """Return the document of a value as the binary reader gives it.

        There a record in a union is a pair of its name and itself.

        Raises:
            QueryError: it is nested deeper than `limits.depth`.
            ValueError: it is no value of the schema; the text says where.
        """
        return self._document(value, self._schema, 0)

    def _document(self, value: Any, schema: Any, depth: int) -> Any:
        schema = self._named.get(schema, schema) if isinstance(schema, str) else schema
        if isinstance(schema, list):
            return self._document_of_union(value, schema, depth)
        kind = schema["type"] if isinstance(schema, dict) else schema
        if isinstance(kind, dict | list):
            return self._document(value, kind, depth)
        if kind in ("record", "error", "array", "map"):
            depth += 1
            check_depth(depth, "the Avro document")
        if kind in ("record", "error"):
            made = {}
            for field in schema["fields"]:
                name = field["name"]
                made[name] = self._document(value[name], field["type"], depth)
            return made
        if kind == "array":
            items = schema["items"]
            return [self._document(one, items, depth) for one in value]
        if kind == "map":
            values = schema["values"]
            return {key: self._document(one, values, depth) for key, one in value.items()}
        return value.decode("latin-1") if isinstance(value, bytes) else value

    def _document_of_union(self, value: Any, schemas: list[Any], depth: int) -> Any:
        if value is None:
            return None
        if isinstance(value, tuple):
            name, value = value
            return {name: self._document(value, name, depth)}
        for schema in schemas:
            named = self._named.get(schema, schema) if isinstance(schema, str) else schema
            kind = named["type"] if isinstance(named, dict) else named
            if _fits(value, kind, named):
                return {_name(schema): self._document(value, named, depth)}
        raise ValueError(f"{_shown(value)} is none of {', '.join(map(_name, schemas))}")

    def _note(self, schema: Any) -> None:
        if isinstance(schema, list):
            for one in schema:
                self._note(one)
        elif isinstance(schema, dict):
            if "name" in schema:
                self._named[schema["name"]] = schema
            for one in schema.get("fields", ()):
                self._note(one["type"])
            for part in ("items", "values"):
                self._note(schema.get(part))

    def _of(self, found: Any, schema: Any, at: str) -> Any:
        if isinstance(schema, list):
            return self._of_union(found, schema, at)
        schema = self._named.get(schema, schema) if isinstance(schema, str) else schema
        kind = schema["type"] if isinstance(schema, dict) else schema
        if isinstance(kind, dict | list):
            return self._of(found, kind, at)
        if kind in _PRIMITIVES:
            return _primitive(found, kind, at)
        if kind in ("record", "error"):
            return self._of_record(found, schema, at)
        if kind == "array" and isinstance(found, list):
            items = schema["items"]
            return [self._of(one, items, f"{at}[{index}]") for index, one in enumerate(found)]
        if kind == "map" and isinstance(found, dict):
            values = schema["values"]
            return {key: self._of(one, values, f"{at}.{key}") for key, one in found.items()}
        if kind == "enum" and isinstance(found, str | bytes):
            symbol = _primitive(found, "string", at)
            if symbol in schema["symbols"]:
                return symbol
        if kind == "fixed" and isinstance(found, str | bytes):
            raw = _primitive(found, "bytes", at)
            if len(raw) == schema["size"]:
                return raw
        raise ValueError(f"{at} is {_shown(found)}; expected {_name(schema)}")

    def _of_record(self, found: Any, schema: Any, at: str) -> dict[str, Any]:
        if not isinstance(found, dict):
            raise ValueError(f"{at} is {_shown(found)}; expected {_name(schema)}")
        made = {}
        for field in schema["fields"]:
            name, kind = field["name"], field["type"]
            value = found.get(name, field.get("default", _MISSING))
            if value is _MISSING:
                raise ValueError(f"{at} has no {name}, which has no default")
            if name not in found and isinstance(kind, list):
                kind = kind[0]  # a default is of the first type
            made[name] = self._of(value, kind, f"{at}.{name}")
        return made

    def _of_union(self, found: Any, schemas: list[Any], at: str) -> Any:
        if isinstance(found, dict) and len(found) == 1:
            [(name, value)] = found.items()
            for schema in schemas:
                if name == _name(schema) and schema != "null":
                    return self._chosen(value, schema, f"{at}.{name}")
        for schema in schemas:
            try:
                return self._chosen(found, schema, at)
            except ValueError:
                continue
        names = ", ".join(map(_name, schemas))
        raise ValueError(f"{at} is {_shown(found)}; expected one of {names}")

    def _chosen(self, found: Any, schema: Any, at: str) -> Any:
        value = self._of(found, schema, at)
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


def _primitive(found: Any, kind: str, at: str) -> Any:
    if not _PRIMITIVES[kind](found):
        raise ValueError(f"{at} is {_shown(found)}; expected {kind}")
    if isinstance(found, bytes):
        return found if kind == "bytes" else found.decode(errors="replace")
    if kind != "bytes":
        return found
    try:
        return found.encode("latin-1")
    except UnicodeEncodeError:
        raise ValueError(f"{at} has characters that stand for no byte") from None


def _name(schema: Any) -> str:
    """Return what a type is called in a union."""
    if isinstance(schema, dict):
        return str(schema.get("name", schema["type"]))
    return str(schema)


def _shown(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 40 else f"{text[:37]}..."
