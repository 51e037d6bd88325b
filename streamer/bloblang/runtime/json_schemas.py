"""JSON Schema, drafts 4 to 7, with the words in which Benthos tells what does not fit.

The jsonschema library judges, but for what `json_schema_keywords` names; the texts are those of
xeipuuv/gojsonschema. Schemas are never fetched from elsewhere.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import lru_cache
from typing import Any, Final
from urllib.parse import urljoin

import orjson

from streamer.bloblang.errors import ArgumentError, QueryError
from streamer.core.json.dump import dump_json
from streamer.core.json.json_fault import find_json_fault
from streamer.core.json.parse import parse_json_int

_PREFIX: Final = "failed to parse json schema definition: "
# The order in which checks are made; what is not here comes last, among itself by name.
_KEYWORD_ORDER: Final = [
    "$ref",
    "type",
    "anyOf",
    "oneOf",
    "allOf",
    "not",
    "dependencies",
    "if",
    "items",
    "additionalItems",
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
_KEYWORD_RANKS: Final = {keyword: rank for rank, keyword in enumerate(_KEYWORD_ORDER)}
_NUMBER_KEYWORDS: Final = frozenset(
    ["multipleOf", "maximum", "minimum", "exclusiveMaximum", "exclusiveMinimum"]
)
_DRAFTS: Final = {"draft-04": "Draft4Validator", "draft-06": "Draft6Validator"}

SchemaCheck = Callable[[Any], Any]


@lru_cache(maxsize=64)
def compile_schema(text: str, others: tuple[tuple[str, str], ...] = ()) -> SchemaCheck:
    """Return a function that gives its argument back when it matches a schema.

    It raises a QueryError with a line for each thing that does not fit.

    Args:
        text: the schema.
        others: names and texts of schemas that it may refer to.

    Raises:
        ArgumentError: a text is no schema.
    """
    import jsonschema
    import referencing
    from jsonschema import validators

    from streamer.bloblang.runtime.json_schema_keywords import KEYWORDS, make_format_checker
    from streamer.bloblang.runtime.json_schema_messages import describe_errors

    schema = _parse_schema(text)
    name = str(schema.get("$schema", "")) if isinstance(schema, dict) else ""
    draft = next((kind for mark, kind in _DRAFTS.items() if mark in name), "Draft7Validator")
    known = getattr(jsonschema, draft)
    _check_schema(known, schema)
    keywords = {k: v for k, v in KEYWORDS.items() if k in known.VALIDATORS}
    extend: Any = validators.extend
    # In draft 4 the library takes 1.0 for no integer, gojsonschema does.
    validator_class = extend(known, keywords, type_checker=jsonschema.Draft7Validator.TYPE_CHECKER)
    validator = validator_class(
        _prepare_schema(schema),
        registry=_make_registry(known, schema, others),
        format_checker=make_format_checker(),
    )

    def check(value: Any) -> Any:
        try:
            errors = list(validator.iter_errors(orjson.loads(dump_json(value))))
        except referencing.exceptions.Unresolvable as e:
            raise QueryError(f"the schema refers to {e.ref}, which is not in it") from None
        if errors:
            raise QueryError("\n".join(describe_errors(errors)))
        return value

    return check


def _make_registry(known: Any, schema: Any, others: tuple[tuple[str, str], ...]) -> Any:
    """Return the schemas that a schema may refer to: by name, relative to its own, and by id."""
    import referencing
    from referencing.jsonschema import DRAFT7

    resources: dict[str, Any] = {}
    base = str(schema.get("$id", schema.get("id", ""))) if isinstance(schema, dict) else ""
    for name, text in others:
        other = _parse_schema(text)
        _check_schema(known, other)
        resource = DRAFT7.create_resource(_prepare_schema(other))
        own = other.get("$id", other.get("id")) if isinstance(other, dict) else None
        names = {name, urljoin(base, name), *([str(own)] if own else [])}
        resources |= dict.fromkeys(names, resource)
    return referencing.Registry().with_resources(resources.items())


def _parse_schema(text: str) -> Any:
    fault = find_json_fault(text.encode(errors="replace"))
    if fault is not None:
        raise ArgumentError(_PREFIX + fault)
    try:
        schema = json.loads(text, parse_int=parse_json_int)
    except ValueError as e:
        raise ArgumentError(f"{_PREFIX}{e}") from None
    if not isinstance(schema, dict | bool):
        raise ArgumentError(f"{_PREFIX}schema is invalid")
    return schema


_SCHEMAS_BY_NAME: Final = frozenset(
    ("properties", "patternProperties", "definitions", "dependencies")
)
_DATA_KEYWORDS: Final = frozenset(("const", "default", "enum", "examples"))


def _prepare_schema(schema: Any) -> Any:
    """Return a schema for the library: keywords in the order of their checks, some left out.

    Left out is what means nothing to gojsonschema and something to the library: `$schema`, by which
    it would check a part with its own keywords, an empty `enum`, and `additionalItems` beside
    `items` that are no array.
    """
    if isinstance(schema, list):
        return [_prepare_schema(part) for part in schema]
    if not isinstance(schema, dict):
        return schema
    prepared: dict[str, Any] = {}
    for key in sorted(schema, key=lambda key: (_KEYWORD_RANKS.get(key, len(_KEYWORD_ORDER)), key)):
        part = schema[key]
        if key == "$schema" or (key == "enum" and part == []):
            continue
        if key == "additionalItems" and not isinstance(schema.get("items"), list):
            continue
        if key in _SCHEMAS_BY_NAME and isinstance(part, dict):
            prepared[key] = {name: _prepare_schema(part[name]) for name in sorted(part)}
        else:
            prepared[key] = part if key in _DATA_KEYWORDS else _prepare_schema(part)
    return prepared


_TYPES: Final = "[array boolean integer number null object string]"
_EXPECTED: Final = {
    **dict.fromkeys(_NUMBER_KEYWORDS, "of a number"),
    **dict.fromkeys(("required", "enum", "anyOf", "oneOf", "allOf"), "of an array"),
    **dict.fromkeys(("properties", "patternProperties", "definitions"), "of type object"),
    **dict.fromkeys(
        ("minLength", "maxLength", "minItems", "maxItems", "minProperties", "maxProperties"),
        "of an integer",
    ),
    **dict.fromkeys(("pattern", "format", "$ref"), "of a string"),
}


def _check_schema(known: Any, schema: Any) -> None:
    import jsonschema

    from streamer.bloblang.runtime.json_schema_keywords import is_pattern

    try:
        known.check_schema(schema, format_checker=jsonschema.FormatChecker(formats=()))
    except jsonschema.SchemaError as e:
        if not (e.validator == "minItems" and e.path and e.path[-1] == "enum"):
            raise ArgumentError(_PREFIX + _describe_schema_error(e)) from None
    pending = [schema]
    while pending:
        part = pending.pop()
        if isinstance(part, dict):
            pattern = part.get("pattern")
            if isinstance(pattern, str) and not is_pattern(pattern):
                raise ArgumentError(f"{_PREFIX}pattern must be a valid regex")
            _check_reference(schema, part.get("$ref"))
        if isinstance(part, dict | list):
            pending.extend(part.values() if isinstance(part, dict) else part)


def _check_reference(schema: Any, reference: Any) -> None:
    if not isinstance(reference, str) or not reference.startswith("#/"):
        return
    place = schema
    for part in reference[2:].split("/"):
        key = part.replace("~1", "/").replace("~0", "~")
        if isinstance(place, dict) and key not in place:
            raise ArgumentError(f"{_PREFIX}Object has no key '{key}'")
        place = place[key] if isinstance(place, dict) else None


def _describe_schema_error(error: Any) -> str:
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
