"""Values as a JSON schema types them."""

from __future__ import annotations

import json
from typing import Any

import pytest

from streamer.connectors.schema_registry.json_coercion import JsonCoercer
from streamer.connectors.schema_registry.json_schema import JsonMessageCodec
from streamer.core.errors import MessageError
from streamer.core.message import Message
from streamer.core.timestamps import Timestamp

TIME = {"type": "string", "format": "date-time"}


def coerced(schema: Any, value: Any, **others: Any) -> Any:
    references = [(name, json.dumps(other)) for name, other in others.items()]
    return JsonCoercer(json.dumps(schema), references).coerce(value)


@pytest.mark.parametrize(
    ("schema", "value", "expected"),
    [
        ({"type": "integer"}, 5.0, 5),
        ({"type": "integer"}, 2**62 + 1, 2**62 + 1),
        ({"type": "number"}, 5, 5.0),
        ({"type": ["integer", "null"]}, None, None),
        ({"type": ["integer", "null"]}, 3.0, 3),
        ({"type": ["integer", "string"]}, "3", "3"),
        ({"type": ["integer", "string"]}, 3.0, 3),
        ({"properties": {"a": {"type": "integer"}}}, {"a": 1.0, "b": 2.0}, {"a": 1, "b": 2.0}),
        ({"type": "object", "additionalProperties": {"type": "number"}}, {"a": 1}, {"a": 1.0}),
        ({"properties": {"a": {"type": "integer", "default": 7}}}, {}, {"a": 7}),
        ({"type": "array", "items": {"type": "number"}}, [1, 2.5], [1.0, 2.5]),
        ({"items": [{"type": "integer"}]}, [1.0, 2.0], [1, 2.0]),
        ({"allOf": [{"type": "number"}, {"type": "integer"}]}, 4, 4),
        ({"oneOf": [{"type": "string"}, {"type": "integer"}]}, 4.0, 4),
        (
            {"definitions": {"n": {"type": "integer"}}, "anyOf": [{"$ref": "#/definitions/n"}]},
            4.0,
            4,
        ),
        ({"$ref": "other#/definitions/n"}, 6.0, 6),
        (True, 6.5, 6.5),
    ],
)
def test_values_get_the_types_of_their_schema(schema: Any, value: Any, expected: Any) -> None:
    found = coerced(schema, value, other={"definitions": {"n": {"type": "integer"}}})
    assert found == expected and repr(found) == repr(expected)


def test_a_date_time_becomes_a_time() -> None:
    found = coerced({"properties": {"at": TIME}}, {"at": "2026-11-26T12:00:00.5Z"})["at"]
    assert isinstance(found, Timestamp) and found.ns == 1_795_694_400_500_000_000
    twice = {"allOf": [TIME, {"type": "string"}]}
    assert isinstance(coerced(twice, "2026-11-26T12:00:00Z"), Timestamp)


@pytest.mark.parametrize(
    ("schema", "value", "wrong"),
    [
        ({"type": "integer"}, 5.5, "value 5.5 is not an integer of 64 bits"),
        ({"type": "integer"}, 1e300, "is not an integer of 64 bits"),
        ({"type": "integer"}, "5", "cannot coerce string to integer"),
        ({"type": "string"}, 5, "cannot coerce number to string"),
        ({"type": "object"}, [], "cannot coerce array to object"),
        (TIME, "yesterday", "parsing date-time 'yesterday'"),
        ({"oneOf": [{"type": "string"}]}, 5, "does not match any oneOf branch"),
        ({"$ref": "#/nowhere"}, 5, "cannot resolve"),
        ({"$ref": "unknown"}, 5, "unresolved"),
        ({"$ref": "#"}, 5, "refers to itself without an end"),
    ],
)
def test_what_cannot_be_had_fails_the_message(schema: Any, value: Any, wrong: str) -> None:
    with pytest.raises(MessageError, match=wrong):
        coerced(schema, value)


def test_a_decoder_coerces_when_it_is_told_to() -> None:
    text = json.dumps({"type": "object", "properties": {"n": {"type": "integer"}, "at": TIME}})
    raw = b'{"n": 5.0, "at": "2026-11-26T12:00:00Z"}'
    assert JsonMessageCodec(text).decode(Message(b""), raw).raw == raw
    found = JsonMessageCodec(text, coerces=True).decode(Message(b""), raw)
    assert found.raw == b'{"at":"2026-11-26T12:00:00Z","n":5}'
    assert isinstance(found.doc["at"], Timestamp)
