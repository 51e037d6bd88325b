"""How deep a value in Avro's binary form is, and how many elements it claims, before it is read.

The reader recurses in C, where a value of some thousands of levels ends the process; and elements
that take no bytes (nulls, empty records) may be claimed by the thousand million in six bytes. Only
schemas that contain themselves, or arrays of such elements, are looked at, so that others cost
nothing. Source: the binary encoding of Avro's specification.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from streamer.bloblang.limits import check_depth, check_elements
from streamer.limits import used_limits

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

_NEVER: Final = float("inf")


class AvroBounds:
    """Looks at values of one schema."""

    def __init__(self, schema: Any) -> None:
        """Take a schema as fastavro has parsed it: every name is a full one.

        Raises:
            ValueError: a type contains itself in such a way that no value of it ends.
        """
        self._schema = schema
        self._named: dict[str, Any] = {}
        self._note(schema)
        self._fewest = dict.fromkeys(self._named, _NEVER)
        while self._smaller():
            pass
        for name, size in self._fewest.items():
            if size == _NEVER:
                raise ValueError(f"{name} contains itself without an end")
        self._is_recursive = any(self._reaches(name) for name in self._named)
        self._has_empty_items = any(self._size(items) == 0 for items in self._items(schema))

    @property
    def is_recursive(self) -> bool:
        """Whether a type contains itself."""
        return self._is_recursive

    def check(self, raw: bytes) -> None:
        """Refuse a value that is nested too deep, or claims too many elements.

        What is cut short or otherwise wrong is left to the reader.

        Raises:
            QueryError: it is beyond `limits.depth` or `limits.elements`.
        """
        # Each level of a recursive type takes a byte at least, and that of each type in between.
        deep = self._is_recursive and len(raw) * len(self._named) > used_limits().depth
        if deep or self._has_empty_items:
            try:
                _Walk(self, raw).over(self._schema, 0, 0)
            except (IndexError, KeyError, TypeError):
                return

    def named(self, schema: Any) -> Any:
        """Return the type that a name stands for, anything else as it is."""
        return self._named.get(schema, schema) if isinstance(schema, str) else schema

    def is_empty(self, schema: Any) -> bool:
        """Whether values of a type take no bytes."""
        return self._size(schema) == 0

    def _note(self, schema: Any) -> None:
        if isinstance(schema, dict) and "name" in schema:
            self._named[schema["name"]] = schema
        for part in _parts(schema):
            self._note(part)

    def _smaller(self) -> bool:
        """Work out the smallest sizes once more; return whether there was a smaller one."""
        found = {name: self._size_inside(schema) for name, schema in self._named.items()}
        changed = found != self._fewest
        self._fewest = found
        return changed

    def _size(self, schema: Any) -> float:
        name = schema.get("name") if isinstance(schema, dict) else schema
        if isinstance(name, str) and name in self._fewest:
            return self._fewest[name]
        return self._size_inside(schema)

    def _size_inside(self, schema: Any) -> float:
        if isinstance(schema, list):
            return 1 + min(map(self._size, schema), default=0)
        kind = schema["type"] if isinstance(schema, dict) else schema
        if isinstance(kind, dict | list):
            return self._size(kind)
        if kind in ("record", "error"):
            return sum(self._size(field["type"]) for field in schema["fields"])
        return float(schema["size"]) if kind == "fixed" else _SIZES.get(kind, 1)

    def _reaches(self, name: str) -> bool:
        """Whether a type contains itself."""
        seen: set[str] = set()
        left = [*_parts(self._named[name])]
        while left:
            schema = left.pop()
            found = schema.get("name") if isinstance(schema, dict) else schema
            if isinstance(found, str) and found in self._named:
                if found == name:
                    return True
                if found in seen:
                    continue
                seen.add(found)
            left += _parts(self.named(schema))
        return False

    def _items(self, schema: Any) -> Iterator[Any]:
        if isinstance(schema, dict) and "items" in schema:
            yield schema["items"]
        for part in _parts(schema):
            yield from self._items(part)


def _parts(schema: Any) -> Iterator[Any]:
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


class _Walk:
    """The way over one value."""

    def __init__(self, bounds: AvroBounds, raw: bytes) -> None:
        self._bounds = bounds
        self._raw = raw
        self._elements = 0

    def over(self, schema: Any, at: int, depth: int) -> int:
        """Return where a value ends that begins at a place.

        Raises:
            IndexError: the bytes end, or a union has no such type.
            QueryError: it is nested too deep, or has too many elements.
        """
        schema = self._bounds.named(schema)
        if isinstance(schema, list):
            number, at = self._long(at)
            return self.over(schema[number], at, depth)
        kind = schema["type"] if isinstance(schema, dict) else schema
        if isinstance(kind, dict | list):
            return self.over(kind, at, depth)
        if kind in ("record", "error", "array", "map"):
            check_depth(depth + 1, "the Avro document")
        if kind in ("record", "error"):
            for field in schema["fields"]:
                at = self.over(field["type"], at, depth + 1)
            return at
        if kind in ("array", "map"):
            return self._blocks(schema, kind, at, depth + 1)
        if kind in ("string", "bytes"):
            size, at = self._long(at)
            return self._within(at + size if size >= 0 else len(self._raw))
        if kind in ("int", "long", "enum"):
            return self._long(at)[1]
        return self._within(at + int(schema["size"] if kind == "fixed" else _SIZES[kind]))

    def _blocks(self, schema: Any, kind: str, at: int, depth: int) -> int:
        of = schema["items" if kind == "array" else "values"]
        is_empty = kind == "array" and self._bounds.is_empty(of)
        count, at = self._long(at)
        while count:
            if count < 0:
                count, at = -count, self._long(at)[1]
            self._elements += count
            if is_empty:
                check_elements(self._elements, "an Avro document")
            for _ in range(0 if is_empty else count):
                if kind == "map":
                    at = self.over("string", at, depth)
                at = self.over(of, at, depth)
            count, at = self._long(at)
        return at

    def _within(self, at: int) -> int:
        if at > len(self._raw):
            raise IndexError
        return at

    def _long(self, at: int) -> tuple[int, int]:
        raw, shift = self._raw, 7
        byte = raw[at]
        value = byte & 0x7F
        while byte & 0x80:
            at += 1
            byte = raw[at]
            value |= (byte & 0x7F) << shift
            shift += 7
        return (value >> 1) ^ -(value & 1), at + 1
