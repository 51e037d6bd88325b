"""Types of table columns, by the names that Spark SQL gives them.

A type is text such as `bigint`, `decimal(10,2)` or `array<struct<a:string>>`, and an Arrow type in
the program. Times have microseconds, as in Delta Lake and Iceberg.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

import pyarrow as pa

TIMESTAMP: Final = pa.timestamp("us", tz="UTC")
"""An instant."""

_SIMPLE_TYPES: Final[Mapping[str, pa.DataType]] = {
    "boolean": pa.bool_(),
    "int": pa.int32(),
    "bigint": pa.int64(),
    "float": pa.float32(),
    "double": pa.float64(),
    "string": pa.string(),
    "binary": pa.binary(),
    "date": pa.date32(),
    "timestamp": TIMESTAMP,
    "timestamp_ntz": pa.timestamp("us"),
}
_SYNONYMS: Final = {"bool": "boolean", "integer": "int", "long": "bigint"}
_NAMES: Final = {kind: name for name, kind in _SIMPLE_TYPES.items()}
_WORD: Final = re.compile(r"\s*([^\s<>,:()]+)\s*")
_DECIMAL: Final = re.compile(r"\s*decimal\s*\(\s*(\d{1,2})\s*,\s*(\d{1,2})\s*\)\s*")
_MAX_DECIMAL_DIGITS: Final = 38
_MAX_DEPTH: Final = 20


class _TypeReader:
    """Reads the text of one type from left to right."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._at = 0

    def read_whole(self) -> pa.DataType:
        kind = self._read(0)
        if self._at < len(self._text):
            raise ValueError(f"has {self._text[self._at :]!r} behind the type")
        return kind

    def _read(self, depth: int) -> pa.DataType:
        if depth > _MAX_DEPTH:
            raise ValueError(f"is nested deeper than {_MAX_DEPTH} levels")
        if match := _DECIMAL.match(self._text, self._at):
            self._at = match.end()
            digits, scale = int(match[1]), int(match[2])
            if not 1 <= digits <= _MAX_DECIMAL_DIGITS or scale > digits:
                raise ValueError(f"has {match[0].strip()}; expected 1 to 38 digits")
            return pa.decimal128(digits, scale)
        name = self._read_word().lower()
        name = _SYNONYMS.get(name, name)
        if name == "array":
            self._expect("<")
            kind = pa.list_(self._read(depth + 1))
            self._expect(">")
            return kind
        if name == "map":
            self._expect("<")
            key = self._read(depth + 1)
            self._expect(",")
            value = self._read(depth + 1)
            self._expect(">")
            if key != pa.string():
                raise ValueError("has a map whose keys are no strings")
            return pa.map_(key, value)
        if name == "struct":
            return self._read_struct(depth)
        if name not in _SIMPLE_TYPES:
            known = ", ".join([*_SIMPLE_TYPES, "decimal(p,s)", "array<…>", "map<…>", "struct<…>"])
            raise ValueError(f"has the type {name!r}; expected one of {known}")
        return _SIMPLE_TYPES[name]

    def _read_struct(self, depth: int) -> pa.DataType:
        fields = []
        self._expect("<")
        while True:
            name = self._read_word()
            self._expect(":")
            fields.append(pa.field(name, self._read(depth + 1)))
            if not self._skip(","):
                break
        self._expect(">")
        return pa.struct(fields)

    def _read_word(self) -> str:
        match = _WORD.match(self._text, self._at)
        if match is None:
            rest = self._text[self._at :]
            raise ValueError(f"ends in {rest!r}; expected a type" if rest else "ends too early")
        self._at = match.end()
        return match[1]

    def _skip(self, mark: str) -> bool:
        text = self._text[self._at :].lstrip()
        if not text.startswith(mark):
            return False
        self._at = len(self._text) - len(text) + 1
        while self._text[self._at :][:1].isspace():
            self._at += 1
        return True

    def _expect(self, mark: str) -> None:
        if not self._skip(mark):
            rest = self._text[self._at :] or "its end"
            raise ValueError(f"has {rest!r} where {mark!r} is expected")


def parse_column_type(text: str) -> pa.DataType:
    """Return the type that a text names.

    Raises:
        ValueError: it names none; the text continues "the type …".

    Example:
        >>> parse_column_type("array<struct<a:string, n: bigint>>")
        ListType(list<item: struct<a: string, n: int64>>)
    """
    return _TypeReader(text).read_whole()


def name_column_type(kind: pa.DataType) -> str:
    """Return the name of a type, which `parse_column_type` reads.

    Example:
        >>> name_column_type(pa.list_(pa.int64()))
        'array<bigint>'
    """
    if pa.types.is_decimal(kind):
        return f"decimal({kind.precision},{kind.scale})"
    if pa.types.is_struct(kind):
        fields = (f"{field.name}:{name_column_type(field.type)}" for field in kind)
        return f"struct<{','.join(fields)}>"
    if pa.types.is_map(kind):
        return f"map<{name_column_type(kind.key_type)},{name_column_type(kind.item_type)}>"
    if is_list_type(kind):
        return f"array<{name_column_type(kind.value_type)}>"
    return _NAMES.get(kind, str(kind))


def is_list_type(kind: pa.DataType) -> bool:
    """Return whether a type is that of an array, of any size."""
    return bool(pa.types.is_list(kind) or pa.types.is_large_list(kind))


def normalize_type(kind: pa.DataType) -> pa.DataType:
    """Return a type without what tells two forms of the same values apart in memory."""
    if pa.types.is_large_string(kind) or pa.types.is_string_view(kind):
        return pa.string()
    if pa.types.is_large_binary(kind) or pa.types.is_binary_view(kind):
        return pa.binary()
    if is_list_type(kind):
        return pa.list_(normalize_type(kind.value_type))
    if pa.types.is_map(kind):
        return pa.map_(normalize_type(kind.key_type), normalize_type(kind.item_type))
    if pa.types.is_struct(kind):
        return pa.struct([(one.name, normalize_type(one.type)) for one in kind])
    return kind


def normalize_schema(schema: pa.Schema) -> pa.Schema:
    """Return the columns of a table with types that compare; see `normalize_type`."""
    return pa.schema([pa.field(one.name, normalize_type(one.type), one.nullable) for one in schema])
