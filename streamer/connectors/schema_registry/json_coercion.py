"""Values of a JSON document as their schema types them: whole numbers, numbers, times, defaults.

The rules are those of Redpanda Connect's field `json.coerce_data`.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final

from streamer.bloblang.errors import ArgumentError, QueryError
from streamer.bloblang.runtime.json_schemas import compile_schema
from streamer.core.errors import MessageError, StreamerError
from streamer.core.timestamps import Timestamp, parse_rfc3339

Schema = Mapping[str, Any]

_INT64: Final = range(-(1 << 63), 1 << 63)
_KEPT: Final = ("$schema", "definitions", "$defs")
"""Parts of a document to which a part of it may refer."""


class JsonCoercer:
    """Coerces documents of one schema. Threads may share it."""

    def __init__(self, text: str, references: Iterable[tuple[str, str]] = ()) -> None:
        """Read a schema.

        Args:
            text: the schema.
            references: names and texts of schemas that it refers to.

        Raises:
            StreamerError: one of them is no object.
        """
        self._references = tuple(references)
        self._root = _read_object(text)
        self._others = {name: _read_object(other) for name, other in self._references}
        self._branches: dict[str, Callable[[Any], Any]] = {}

    def coerce(self, document: Any) -> Any:
        """Return a document with the values that its schema wants.

        Raises:
            MessageError: one of them cannot be had.
        """
        try:
            return self._coerce(document, self._root, self._root)
        except RecursionError:
            raise MessageError("the schema refers to itself without an end") from None

    def _coerce(self, value: Any, node: Any, document: Schema) -> Any:
        if not isinstance(node, Mapping):
            return value
        if isinstance(reference := node.get("$ref"), str):
            return self._coerce(value, *self._resolve(reference, document))
        if isinstance(parts := node.get("allOf"), list):
            for part in parts:
                value = self._coerce(value, part, document)
            return value
        for keyword in ("oneOf", "anyOf"):
            if isinstance(parts := node.get(keyword), list):
                return self._coerce_branch(value, keyword, parts, document)
        if value is None:
            return None
        kind = _choose_type(value, node)
        if kind == "object":
            return self._coerce_object(value, node, document)
        if kind == "array":
            return self._coerce_array(value, node, document)
        return _coerce_scalar(value, kind, node)

    def _coerce_object(self, value: Any, node: Schema, document: Schema) -> Any:
        if not isinstance(value, Mapping):
            raise MessageError(f"cannot coerce {_type_name(value)} to object")
        properties, more = node.get("properties"), node.get("additionalProperties")
        properties = properties if isinstance(properties, Mapping) else {}
        coerced = {
            name: self._coerce(one, properties.get(name, more), document)
            for name, one in value.items()
        }
        for name, one in properties.items():
            if name not in value and isinstance(one, Mapping) and "default" in one:
                coerced[name] = self._coerce(one["default"], one, document)
        return coerced

    def _coerce_array(self, value: Any, node: Schema, document: Schema) -> Any:
        if not isinstance(value, list):
            raise MessageError(f"cannot coerce {_type_name(value)} to array")
        items = node.get("items")
        if not isinstance(items, list):
            return [self._coerce(one, items, document) for one in value]
        nodes = [*items, *[None] * (len(value) - len(items))]
        return [self._coerce(one, node, document) for one, node in zip(value, nodes, strict=False)]

    def _coerce_branch(
        self, value: Any, keyword: str, branches: list[Any], document: Schema
    ) -> Any:
        for branch in branches:
            if isinstance(branch, Mapping) and self._fits(value, branch, document):
                return self._coerce(value, branch, document)
        raise MessageError(f"value does not match any {keyword} branch")

    def _fits(self, value: Any, branch: Schema, document: Schema) -> bool:
        kept = {name: document[name] for name in _KEPT if name in document}
        text = json.dumps({**kept, **branch})
        if text not in self._branches:
            try:
                self._branches[text] = compile_schema(text, self._references)
            except ArgumentError as error:
                raise MessageError(str(error)) from None
        try:
            self._branches[text](value)
        except QueryError:
            return False
        return True

    def _resolve(self, reference: str, document: Schema) -> tuple[Any, Schema]:
        """Return what is referred to, and the document that it is in."""
        name, _, pointer = reference.partition("#")
        if name:
            if name not in self._others:
                raise MessageError(f"unresolved $ref {reference!r}")
            document = self._others[name]
        node: Any = document
        for token in pointer.strip("/").split("/") if pointer.strip("/") else ():
            token = token.replace("~1", "/").replace("~0", "~")
            if not isinstance(node, Mapping) or token not in node:
                raise MessageError(f"cannot resolve $ref {reference!r}: {token!r} is not there")
            node = node[token]
        return node, document


def _read_object(text: str) -> Schema:
    try:
        document = json.loads(text)
    except ValueError as error:
        raise StreamerError(f"parsing JSON schema: {error}") from None
    # `true` and `false` are schemas that type nothing.
    return document if isinstance(document, dict) else {}


def _choose_type(value: Any, node: Schema) -> str:
    """Return the type that a value is to have; empty where the schema says none."""
    given = node.get("type")
    if isinstance(given, str):
        return given
    types = [one for one in given or () if one != "null"]
    if len(types) == 1:
        return str(types[0])
    if types:
        own = _type_name(value)
        return own if own in types else "integer" if own == "number" and "integer" in types else ""
    if "properties" in node:
        return "object"
    return "array" if "items" in node else ""


def _type_name(value: Any) -> str:
    """Return the JSON type of a value."""
    if isinstance(value, bool):
        return "boolean"
    if isinstance(value, int | float):
        return "number"
    names = {str: "string", list: "array", dict: "object", type(None): "null"}
    return names.get(type(value), type(value).__name__)


def _coerce_scalar(value: Any, kind: str, node: Schema) -> Any:
    own = _type_name(value)
    if kind == "integer" and own == "number":
        if value != value // 1 or int(value) not in _INT64:
            raise MessageError(f"value {value} is not an integer of 64 bits")
        return int(value)
    if kind == "number" and own == "number":
        return float(value)
    if kind == "string" and own == "string" and node.get("format") == "date-time":
        try:
            return parse_rfc3339(value)
        except ValueError as error:
            raise MessageError(f"parsing date-time {value!r}: {error}") from None
    known = kind in ("integer", "number", "boolean", "string")
    # What another part of the schema has made a time of stays one.
    if known and own != kind and not (kind == "string" and isinstance(value, Timestamp)):
        raise MessageError(f"cannot coerce {own} to {kind}")
    return value
