"""Methods that check values against a schema, or find the schema of a value."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from typing import Any, Final

from streamer.bloblang.declare import Example, Param, declare
from streamer.bloblang.errors import QueryError
from streamer.bloblang.golib.text import go_type
from streamer.core.timestamps import Timestamp
from streamer.core.value import INT64_MAX, INT64_MIN, Number

_SCHEMA: Final = '{"type":"object","required":["a"]}'


@declare(
    "json_schema",
    "Object & Array Manipulation",
    Param("schema", "string"),
    examples=(
        Example(f'root = this.json_schema("""{_SCHEMA}""")', '{"a":1}', '{"a":1}'),
        Example(
            f'root = this.json_schema("""{_SCHEMA}""")',
            "{}",
            'Error("failed assignment (line 1): field `this`: (root) a is required")',
        ),
    ),
    binds=True,
)
def json_schema(schema: str) -> Callable[[Any], Any]:
    """The value itself if it matches a JSON schema in a text; otherwise an error."""
    from streamer.bloblang.runtime.json_schemas import compile_schema

    return compile_schema(schema)


# Names of common types, and the numbers that their fingerprints are made of.
_TYPES: Final = {
    "BOOLEAN": 1,
    "INT64": 3,
    "FLOAT64": 5,
    "STRING": 6,
    "BYTE_ARRAY": 7,
    "OBJECT": 8,
    "ARRAY": 10,
    "NULL": 11,
    "TIMESTAMP": 13,
}
_SCALARS: Final[dict[type, str]] = {
    bool: "BOOLEAN",
    int: "INT64",
    float: "FLOAT64",
    str: "STRING",
    bytes: "BYTE_ARRAY",
    Timestamp: "TIMESTAMP",
    type(None): "NULL",
}


@declare(
    "infer_schema",
    "Parsing",
    examples=(
        Example("root = this.a.infer_schema().type", '{"a":1.5}', "FLOAT64"),
        Example(
            'root = this.infer_schema().children.map_each(c -> c.without("fingerprint"))',
            '{"b":true,"a":[]}',
            '[{"name":"a","type":"ARRAY"},{"name":"b","type":"BOOLEAN"}]',
        ),
    ),
    own_errors=True,
)
def infer_schema(value: Any) -> dict[str, Any]:
    """The schema of a value as an object: its type, its children's, and a fingerprint."""
    return _infer_value(value, "", "")[0]


def _infer_value(value: Any, name: str, place: str) -> tuple[dict[str, Any], str]:
    """Return a schema, and the text that its fingerprint is made from."""
    children: list[tuple[dict[str, Any], str]] = []
    kind = type(value)
    if kind is dict:
        type_name = "OBJECT"
        children = [_infer_value(value[key], key, f"{place}.{key}") for key in sorted(value)]
    elif kind is list:
        type_name = "ARRAY"
        children = _infer_element(value, place)
    elif kind is Number:
        type_name = "INT64" if _is_int64(value.text) else "FLOAT64"
    elif kind in _SCALARS:
        type_name = _SCALARS[kind]
    else:
        raise QueryError(f"{place} unsupported data type: {go_type(value)}")
    parts = "".join(f"[{i}:{text}]" for i, (_, text) in enumerate(children))
    text = f"T:{_TYPES[type_name]}|N:{name}|O:0|C:{len(children)}|{parts}"
    schema = {"type": type_name, "fingerprint": hashlib.sha256(text.encode()).hexdigest()}
    if name:
        schema["name"] = name
    if children:
        return {**schema, "children": [child for child, _ in children]}, text
    return {**schema}, text


def _infer_element(items: list[Any], place: str) -> list[tuple[dict[str, Any], str]]:
    """Return the schema of a list's first item; the others must be of its type."""
    first: list[tuple[dict[str, Any], str]] = []
    for at, item in enumerate(items):
        inferred = _infer_value(item, "", f"{place}.{at}")
        if not first:
            first = [inferred]
        elif first[0][0]["type"] != inferred[0]["type"]:
            types = f"{first[0][0]['type']} and {inferred[0]['type']}"
            raise QueryError(f"{place}.{at} mismatched array types, found {types}")
    return first


def _is_int64(text: str) -> bool:
    try:
        return INT64_MIN <= int(text) <= INT64_MAX
    except ValueError:
        return False
