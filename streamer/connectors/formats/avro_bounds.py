"""Bounds of a value in Avro's binary form, depth and number of elements, before it is read.

The reader recurses in C, where a value of some thousands of levels ends the process; and elements
that take no bytes (nulls, empty records) may be claimed by the thousand million in six bytes. Only
schemas that contain themselves, or arrays of such elements, are looked at, so that others cost
nothing. Source: the binary encoding of Avro's specification.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from streamer.bloblang.limits import check_depth, check_elements
from streamer.core.limits import current_limits

_SIZES: Final[Mapping[str, float]] = {
    "null": 0,
    "boolean": 1,
    "int": 1,
    "long": 1,
    "float": 4,
    "double": 8,
    "string": 1,
    "bytes": 1,
    "enum": 1,
    "array": 1,
    "map": 1,
}
"""The fewest bytes of a value."""

_UNBOUNDED: Final = float("inf")


class AvroBoundsChecker:
    """Checks that numbers in values of one schema are within the bounds of their types."""

    def __init__(self, schema: Any) -> None:
        """Take a schema as fastavro has parsed it: every name is a full one.

        Raises:
            ValueError: a type contains itself in such a way that no value of it ends.
        """
        self._schema = schema
        self._named: dict[str, Any] = {}
        self._collect_names(schema)
        self._min_sizes = dict.fromkeys(self._named, _UNBOUNDED)
        while self._shrink_sizes():
            pass
        for name, size in self._min_sizes.items():
            if size == _UNBOUNDED:
                raise ValueError(f"{name} contains itself without an end")
        self._is_recursive = any(self._contains_itself(name) for name in self._named)
        self._has_empty_items = any(
            self._min_size(items) == 0 for items in self._item_schemas(schema)
        )

    @property
    def is_recursive(self) -> bool:
        """Whether a type contains itself."""
        return self._is_recursive

    def check(self, raw: bytes | memoryview, begin: int = 0) -> None:
        """Refuse a value that is nested too deep, or claims too many elements.

        What is cut short or otherwise wrong is left to the reader.

        Args:
            raw: the bytes, and what may come before and after them.
            begin: where the value begins.

        Raises:
            QueryError: it is beyond `limits.depth` or `limits.elements`.
        """
        # Each level of a recursive type takes a byte at least, and that of each type in between.
        deep = self._is_recursive and (len(raw) - begin) * len(self._named) > current_limits().depth
        if deep or self._has_empty_items:
            try:
                _ValueWalk(self, raw).skip_value(self._schema, begin, 0)
            except (IndexError, KeyError, TypeError):
                return

    def resolve_name(self, schema: Any) -> Any:
        """Return the type that a name stands for, anything else as it is."""
        return self._named.get(schema, schema) if isinstance(schema, str) else schema

    def is_empty(self, schema: Any) -> bool:
        """Whether values of a type take no bytes."""
        return self._min_size(schema) == 0

    def _collect_names(self, schema: Any) -> None:
        if isinstance(schema, dict) and "name" in schema:
            self._named[schema["name"]] = schema
        for part in _component_schemas(schema):
            self._collect_names(part)

    def _shrink_sizes(self) -> bool:
        """Work out the smallest sizes once more; return whether there was a smaller one."""
        sizes = {name: self._min_size_inside(schema) for name, schema in self._named.items()}
        changed = sizes != self._min_sizes
        self._min_sizes = sizes
        return changed

    def _min_size(self, schema: Any) -> float:
        name = schema.get("name") if isinstance(schema, dict) else schema
        if isinstance(name, str) and name in self._min_sizes:
            return self._min_sizes[name]
        return self._min_size_inside(schema)

    def _min_size_inside(self, schema: Any) -> float:
        if isinstance(schema, list):
            return 1 + min(map(self._min_size, schema), default=0)
        kind = schema["type"] if isinstance(schema, dict) else schema
        if isinstance(kind, dict | list):
            return self._min_size(kind)
        if kind in ("record", "error"):
            return sum(self._min_size(field["type"]) for field in schema["fields"])
        return float(schema["size"]) if kind == "fixed" else _SIZES.get(kind, 1)

    def _contains_itself(self, name: str) -> bool:
        """Whether a type contains itself."""
        seen: set[str] = set()
        left = [*_component_schemas(self._named[name])]
        while left:
            schema = left.pop()
            reached_name = schema.get("name") if isinstance(schema, dict) else schema
            if isinstance(reached_name, str) and reached_name in self._named:
                if reached_name == name:
                    return True
                if reached_name in seen:
                    continue
                seen.add(reached_name)
            left += _component_schemas(self.resolve_name(schema))
        return False

    def _item_schemas(self, schema: Any) -> Iterator[Any]:
        if isinstance(schema, dict) and "items" in schema:
            yield schema["items"]
        for part in _component_schemas(schema):
            yield from self._item_schemas(part)


def _component_schemas(schema: Any) -> Iterator[Any]:
    """Return the types that a type is written with."""
    if isinstance(schema, list):
        yield from schema
    elif isinstance(schema, dict):
        for field in schema.get("fields", ()):
            yield field["type"]
        for name in ("items", "values", "type"):
            part = schema.get(name)
            if isinstance(part, dict | list) or (name != "type" and part is not None):
                yield part


class _ValueWalk:
    """The way over one value."""

    def __init__(self, bounds: AvroBoundsChecker, raw: bytes | memoryview) -> None:
        self._bounds = bounds
        self._raw = raw
        self._elements = 0

    def skip_value(self, schema: Any, at: int, depth: int) -> int:
        """Return where a value ends that begins at a place.

        Raises:
            IndexError: the bytes end, or a union has no such type.
            QueryError: it is nested too deep, or has too many elements.
        """
        schema = self._bounds.resolve_name(schema)
        if isinstance(schema, list):
            number, at = self._read_long(at)
            return self.skip_value(schema[number], at, depth)
        kind = schema["type"] if isinstance(schema, dict) else schema
        if isinstance(kind, dict | list):
            return self.skip_value(kind, at, depth)
        if kind in ("record", "error", "array", "map"):
            check_depth(depth + 1, "the Avro document")
        if kind in ("record", "error"):
            for field in schema["fields"]:
                at = self.skip_value(field["type"], at, depth + 1)
            return at
        if kind in ("array", "map"):
            return self._skip_blocks(schema, kind, at, depth + 1)
        if kind in ("string", "bytes"):
            size, at = self._read_long(at)
            return self._check_end(at + size if size >= 0 else len(self._raw))
        if kind in ("int", "long", "enum"):
            return self._read_long(at)[1]
        return self._check_end(at + int(schema["size"] if kind == "fixed" else _SIZES[kind]))

    def _skip_blocks(self, schema: Any, kind: str, at: int, depth: int) -> int:
        of = schema["items" if kind == "array" else "values"]
        is_empty = kind == "array" and self._bounds.is_empty(of)
        count, at = self._read_long(at)
        while count:
            if count < 0:
                count, at = -count, self._read_long(at)[1]
            self._elements += count
            if is_empty:
                check_elements(self._elements, "an Avro document")
            for _ in range(0 if is_empty else count):
                if kind == "map":
                    at = self.skip_value("string", at, depth)
                at = self.skip_value(of, at, depth)
            count, at = self._read_long(at)
        return at

    def _check_end(self, at: int) -> int:
        if at > len(self._raw):
            raise IndexError
        return at

    def _read_long(self, at: int) -> tuple[int, int]:
        raw, shift = self._raw, 7
        byte = raw[at]
        value = byte & 0x7F
        while byte & 0x80:
            at += 1
            byte = raw[at]
            value |= (byte & 0x7F) << shift
            shift += 7
        return (value >> 1) ^ -(value & 1), at + 1
