"""Types of new columns that are not inferred: from the schema of messages, or by a mapping."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

import pyarrow as pa

from streamer.connectors.tables.column_types import TIMESTAMP, is_list_type, parse_column_type
from streamer.core.errors import MessageError
from streamer.core.message import Message

ChooseType = Callable[[str, pa.DataType, Mapping[str, Any]], pa.DataType]
"""Returns the type of a new column by its name, the type so far and a message that has it. It
raises MessageError where there is none."""

_COMMON_TYPES: Final = {
    "BOOLEAN": pa.bool_(),
    "INT32": pa.int32(),
    "INT64": pa.int64(),
    "FLOAT32": pa.float32(),
    "FLOAT64": pa.float64(),
    "STRING": pa.string(),
    "BYTE_ARRAY": pa.binary(),
    "TIMESTAMP": TIMESTAMP,
    "DATE": pa.date32(),
}
"""Types of columns by those of schemas. Source: `public/schema/common.go` of Benthos."""

_ICEBERG_NAMES: Final = {
    "boolean": "boolean",
    "int": "int",
    "long": "bigint",
    "float": "float",
    "double": "double",
    "string": "string",
    "binary": "binary",
    "date": "date",
    "timestamp": "timestamp_ntz",
    "timestamptz": "timestamp",
}
"""Names of types as a config writes them, by those of Iceberg."""


def read_common_schema(document: Any) -> dict[str, pa.DataType]:
    """Return the types of the fields of messages; those that a schema leaves open are not in it.

    Args:
        document: the schema, whose type is `OBJECT`.

    Raises:
        ValueError: it is none; the text continues "the schema …".

    Example:
        >>> read_common_schema({"type": "OBJECT", "children": [{"name": "n", "type": "INT32"}]})
        {'n': DataType(int32)}
    """
    if not isinstance(document, dict) or document.get("type") != "OBJECT":
        raise ValueError("is no object with the type OBJECT")
    return {
        str(child["name"]): kind
        for child in _children_of(document)
        if "name" in child and (kind := _read_type(child)) is not None
    }


def _children_of(document: Mapping[str, Any]) -> list[dict[str, Any]]:
    children = document.get("children") or []
    if not isinstance(children, list) or not all(isinstance(one, dict) for one in children):
        raise ValueError("has children that are no list of objects")
    return children


def _read_type(document: Mapping[str, Any]) -> pa.DataType | None:
    name = document.get("type")
    if not isinstance(name, str):
        raise ValueError(f"has the type {name!r}; expected a name such as INT64")
    if name == "OBJECT":
        fields = read_common_schema(document)
        return pa.struct(list(fields.items())) if fields else None
    if name in ("ARRAY", "MAP"):
        children = _children_of(document)
        item = _read_type(children[0]) if children else None
        if item is None:
            return None
        return pa.list_(item) if name == "ARRAY" else pa.map_(pa.string(), item)
    return _COMMON_TYPES.get(name)


def choose_by_schema(types: Mapping[str, pa.DataType]) -> ChooseType:
    """Return what chooses the types of a schema, as far as messages have its fields."""

    def choose(name: str, inferred: pa.DataType, document: Mapping[str, Any]) -> pa.DataType:
        return _restrict_type(types[name], inferred) if name in types else inferred

    return choose


def _restrict_type(kind: pa.DataType, inferred: pa.DataType) -> pa.DataType:
    """Return a type without the fields of objects that no message has."""
    if pa.types.is_struct(kind) and pa.types.is_struct(inferred):
        of_schema = {field.name: field.type for field in kind}
        fields = {
            field.name: _restrict_type(of_schema.get(field.name, field.type), field.type)
            for field in inferred
        }
        order = [name for name in of_schema if name in fields]
        order += [name for name in fields if name not in of_schema]
        return pa.struct([(name, fields[name]) for name in order])
    if is_list_type(kind) and is_list_type(inferred):
        return pa.list_(_restrict_type(kind.value_type, inferred.value_type))
    return kind


def parse_iceberg_type(text: str) -> pa.DataType:
    """Return the type of a column that Iceberg's name means.

    Raises:
        ValueError: it means none; the text continues "the type …".

    Example:
        >>> parse_iceberg_type("long"), parse_iceberg_type("decimal(10, 2)")
        (DataType(int64), Decimal128Type(decimal128(10, 2)))
    """
    name = text.strip().lower()
    if name in _ICEBERG_NAMES:
        return parse_column_type(_ICEBERG_NAMES[name])
    if name.startswith("decimal("):
        return parse_column_type(name)
    raise ValueError(f"is {text!r}; expected {', '.join(_ICEBERG_NAMES)} or decimal(p,s)")


def name_iceberg_type(kind: pa.DataType) -> str:
    """Return Iceberg's name of a type."""
    names = {parse_column_type(mine): name for name, mine in _ICEBERG_NAMES.items()}
    if pa.types.is_decimal(kind):
        return f"decimal({kind.precision},{kind.scale})"
    if is_list_type(kind):
        return "list"
    return names.get(kind, "map" if pa.types.is_map(kind) else "struct")


def choose_by_mapping(
    query: Callable[[Message], Any], constants: Mapping[str, str], before: ChooseType | None
) -> ChooseType:
    """Return what chooses the types that a mapping names.

    Args:
        query: runs the mapping; what is no text keeps the type of before.
        constants: what it gets beside the column: `namespace` and `table`.
        before: chooses the type that the mapping gets; None for the inferred one.
    """

    def choose(name: str, inferred: pa.DataType, document: Mapping[str, Any]) -> pa.DataType:
        if before is not None:
            inferred = before(name, inferred, document)
        message = Message.from_value(
            {
                "name": name,
                "path": name,
                "value": document.get(name),
                "inferred_type": name_iceberg_type(inferred),
                "message": dict(document),
                **constants,
            }
        )
        made = query(message)
        if not isinstance(made, str):
            return inferred
        try:
            return parse_iceberg_type(made)
        except ValueError as error:
            raise MessageError(f"the mapping of types returned a type that {error}") from None

    return choose
