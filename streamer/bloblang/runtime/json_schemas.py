"""JSON Schema, drafts 4 to 7, with the words in which Benthos tells what does not fit.

The jsonschema library reads and walks schemas; the keywords' checks and texts are those of
xeipuuv/gojsonschema: patterns are RE2's, formats are checked, `multipleOf` is exact. Schemas are
never fetched from elsewhere.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import lru_cache
from typing import Any, Final

import orjson

from streamer.bloblang.errors import ArgumentError, QueryError
from streamer.jsontext.fault import json_fault
from streamer.value import dump_json

_PREFIX: Final = "failed to parse json schema definition: "
# The order in which checks are made; what is not here comes last, among itself by name.
_ORDER: Final = [
    "$ref",
    "type",
    "anyOf",
    "oneOf",
    "allOf",
    "not",
    "dependencies",
    "if",
    "items",
    "minItems",
    "maxItems",
    "uniqueItems",
    "contains",
    "minProperties",
    "maxProperties",
    "required",
    "patternProperties",
    "additionalProperties",
    "propertyNames",
    "multipleOf",
    "maximum",
    "exclusiveMaximum",
    "minimum",
    "exclusiveMinimum",
    "const",
    "enum",
    "minLength",
    "maxLength",
    "pattern",
    "format",
    "properties",
]
_RANKS: Final = {keyword: rank for rank, keyword in enumerate(_ORDER)}
_NUMBERS: Final = frozenset(
    ["multipleOf", "maximum", "minimum", "exclusiveMaximum", "exclusiveMinimum"]
)
_DRAFTS: Final = {"draft-04": "Draft4Validator", "draft-06": "Draft6Validator"}

Check = Callable[[Any], Any]


@lru_cache(maxsize=64)
def compile_schema(text: str) -> Check:
    """Return a function that gives its argument back when it matches a schema.

    It raises a QueryError with a line for each thing that does not fit.

    Raises:
        ArgumentError: the text is no schema.
    """
    import jsonschema
    import referencing
    from jsonschema import validators

    from streamer.bloblang.runtime.json_schema_keywords import KEYWORDS, problems

    schema = _parsed(text)
    name = str(schema.get("$schema", "")) if isinstance(schema, dict) else ""
    draft = next((kind for mark, kind in _DRAFTS.items() if mark in name), "Draft7Validator")
    known = getattr(jsonschema, draft)
    _checked(known, schema)
    kept = {k: v for k, v in KEYWORDS.items() if k in known.VALIDATORS}
    extend: Any = validators.extend
    validator = extend(known, kept)(_ordered(schema), registry=referencing.Registry())

    def check(value: Any) -> Any:
        try:
            found = problems(validator, orjson.loads(dump_json(value)))
        except referencing.exceptions.Unresolvable as e:
            raise QueryError(f"the schema refers to {e.ref}, which is not in it") from None
        if found:
            raise QueryError("\n".join(found))
        return value

    return check


def _parsed(text: str) -> Any:
    fault = json_fault(text.encode(errors="replace"))
    if fault is not None:
        raise ArgumentError(_PREFIX + fault)
    schema = json.loads(text)
    if not isinstance(schema, dict | bool):
        raise ArgumentError(f"{_PREFIX}schema is invalid")
    return schema


def _ordered(schema: Any) -> Any:
    """Return a schema whose keywords stand in the order of their checks."""
    if isinstance(schema, list):
        return [_ordered(part) for part in schema]
    if not isinstance(schema, dict):
        return schema
    keys = sorted(schema, key=lambda key: (_RANKS.get(key, len(_ORDER)), key))
    return {key: _ordered(schema[key]) for key in keys}


_TYPES: Final = "[array boolean integer number null object string]"
_EXPECTED: Final = {
    **dict.fromkeys(_NUMBERS, "of a number"),
    **dict.fromkeys(("required", "enum", "anyOf", "oneOf", "allOf"), "of an array"),
    **dict.fromkeys(("properties", "patternProperties", "definitions"), "of type object"),
    **dict.fromkeys(
        ("minLength", "maxLength", "minItems", "maxItems", "minProperties", "maxProperties"),
        "of an integer",
    ),
    **dict.fromkeys(("pattern", "format", "$ref"), "of a string"),
}


def _checked(known: Any, schema: Any) -> None:
    import jsonschema

    from streamer.bloblang.runtime.json_schema_keywords import is_pattern

    try:
        known.check_schema(schema, format_checker=jsonschema.FormatChecker(formats=()))
    except jsonschema.SchemaError as e:
        if not (e.validator == "minItems" and e.path and e.path[-1] == "enum"):
            raise ArgumentError(_PREFIX + _refusal(e)) from None
    left = [schema]
    while left:
        part = left.pop()
        if isinstance(part, dict):
            pattern = part.get("pattern")
            if isinstance(pattern, str) and not is_pattern(pattern):
                raise ArgumentError(f"{_PREFIX}pattern must be a valid regex")
            _reference(schema, part.get("$ref"))
        if isinstance(part, dict | list):
            left.extend(part.values() if isinstance(part, dict) else part)


def _reference(schema: Any, reference: Any) -> None:
    if not isinstance(reference, str) or not reference.startswith("#/"):
        return
    place = schema
    for part in reference[2:].split("/"):
        key = part.replace("~1", "/").replace("~0", "~")
        if isinstance(place, dict) and key not in place:
            raise ArgumentError(f"{_PREFIX}Object has no key '{key}'")
        place = place[key] if isinstance(place, dict) else None


def _refusal(error: Any) -> str:
    """Return what is wrong with a schema."""
    path = [part for part in error.absolute_path if isinstance(part, str)]
    keyword = path[-1] if path else ""
    if keyword == "type" and isinstance(error.instance, str):
        return (
            f"has a primitive type that is NOT VALID -- given: /{error.instance}/ "
            f"Expected valid values are:{_TYPES}"
        )
    if keyword == "type":
        return "Invalid type. Expected: string/array of strings, given: type"
    if keyword == "required" and error.absolute_path[-1] != "required":
        return "required items must be string"
    if error.validator == "minimum":
        return f"{keyword} must be greater than or equal to 0"
    if keyword in _EXPECTED:
        return f"{keyword} must be {_EXPECTED[keyword]}"
    return f"{keyword or 'schema'} is invalid: {error.message}"
