"""The checks of JSON Schema's keywords, each with gojsonschema's text.

Functions have the form that the jsonschema library asks for: validator, the keyword's value, the
instance, the schema; they yield errors.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterator, Sized
from fractions import Fraction
from functools import lru_cache
from typing import Any, Final

import re2
from jsonschema import ValidationError

from streamer.bloblang.runtime.json_schema_formats import FORMATS
from streamer.value import format_float

Errors = Iterator[ValidationError]
Keyword = Callable[[Any, Any, Any, Any], Errors]


def problems(validator: Any, instance: Any) -> list[str]:
    """Return a line for each thing that does not fit: the field, and what is wrong with it."""
    found = []
    for error in _kept(list(validator.iter_errors(instance))):
        field = ".".join(str(part) for part in error.absolute_path) or "(root)"
        # Only the schema `false` has no keyword.
        text = error.message if error.validator else "false always fails validation"
        text = text.replace("\0", field).lower()
        name = error.name if isinstance(error, _Named) else ""
        if name:
            text = name + text.removeprefix(name.lower())
        found.append(f"{field} {text}")
    return found


def _kept(errors: list[ValidationError]) -> list[ValidationError]:
    """Return errors without those of parts of a schema whose type did not fit."""
    typed = [
        (tuple(e.absolute_schema_path)[:-1], tuple(e.absolute_path))
        for e in errors
        if e.validator == "type"
    ]

    def stays(error: ValidationError) -> bool:
        steps, path = tuple(error.absolute_schema_path), tuple(error.absolute_path)
        return not any(
            steps[: len(above)] == above
            and path[: len(place)] == place
            and steps[:-1] != above
            or (steps[:-1] == above and path == place and error.validator != "type")
            for above, place in typed
        )

    return [error for error in errors if stays(error)] if typed else errors


class _Named(ValidationError):
    """An error that concerns a property, whose name keeps its capitals."""

    name = ""


def _told(text: str, name: str = "") -> ValidationError:
    error = _Named(text)
    error.name = name
    return error


@lru_cache(maxsize=256)
def _pattern(text: str) -> Any:
    options = re2.Options()
    options.log_errors = False
    return re2.compile(text, options)


def is_pattern(text: str) -> bool:
    """Whether RE2 takes a pattern."""
    try:
        _pattern(text)
    except re2.error:
        return False
    return True


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _given(value: Any) -> str:
    if value is None or isinstance(value, bool):
        return "null" if value is None else "boolean"
    if _is_number(value):
        whole = isinstance(value, int) or (math.isfinite(value) and value.is_integer())
        return "integer" if whole else "number"
    return "string" if isinstance(value, str) else "array" if isinstance(value, list) else "object"


def _type(validator: Any, types: Any, instance: Any, schema: Any) -> Errors:
    wanted = [types] if isinstance(types, str) else types
    given = _given(instance)
    if given in wanted or (given == "integer" and "number" in wanted):
        return
    expected = types if isinstance(types, str) else f"[{','.join(types)}]"
    yield _told(f"invalid type. expected: {expected}, given: {given}")


def _exact(value: Any) -> Fraction:
    return Fraction(repr(value)) if isinstance(value, float) else Fraction(value)


def _number(text: str, fails: Callable[[Fraction, Fraction], bool]) -> Keyword:
    def check(validator: Any, limit: Any, instance: Any, schema: Any) -> Errors:
        if _is_number(instance) and _is_number(limit) and fails(_exact(instance), _exact(limit)):
            shown = format_float(float(limit)) if isinstance(limit, float) else _whole(limit)
            yield _told(f"{text} {shown}")

    return check


def _whole(value: int) -> str:
    return format_float(float(value)) if abs(value) < 1 << 53 else str(value)


_GREATER: Final = _number("must be greater than", lambda a, b: a <= b)
_LESS: Final = _number("must be less than", lambda a, b: a >= b)


def _bounded(text: str, strict: str, fails: Any, at_limit: Keyword) -> Keyword:
    """Make `minimum` or `maximum`, to which draft 4 says by a boolean that it is strict."""
    plain = _number(text, fails)

    def check(validator: Any, limit: Any, instance: Any, schema: Any) -> Errors:
        run = at_limit if schema.get(strict) is True else plain
        yield from run(validator, limit, instance, schema)

    return check


def _size(
    kind: type[Sized], text: str, fails: Callable[[int, int], bool], unit: str = ""
) -> Keyword:
    def check(validator: Any, limit: Any, instance: Any, schema: Any) -> Errors:
        if isinstance(instance, kind) and fails(len(instance), limit):
            yield _told(f"{text} {int(limit)}{unit}")

    return check


def _matches(validator: Any, pattern: Any, instance: Any, schema: Any) -> Errors:
    if isinstance(instance, str) and not _pattern(pattern).search(instance):
        yield _told(f"does not match pattern '{pattern}'")


def _format(validator: Any, name: Any, instance: Any, schema: Any) -> Errors:
    fits = FORMATS.get(name)
    if fits is None or not (isinstance(instance, str) or _is_number(instance)):
        return
    if not (isinstance(instance, str) and fits(instance)):
        yield _told(f"does not match format '{name}'")


def _json(value: Any) -> str:
    return json.dumps(_even(value), ensure_ascii=False, sort_keys=True, separators=(",", ":"))


def _even(value: Any) -> Any:
    """Return a value in which equal numbers look the same."""
    if isinstance(value, dict):
        return {key: _even(part) for key, part in value.items()}
    if isinstance(value, list):
        return [_even(part) for part in value]
    return int(value) if isinstance(value, float) and value.is_integer() else value


def _const(validator: Any, wanted: Any, instance: Any, schema: Any) -> Errors:
    if _json(instance) != _json(wanted):
        yield _told(f"\0 does not match: {_json(wanted)}")


def _enum(validator: Any, wanted: Any, instance: Any, schema: Any) -> Errors:
    allowed = [_json(value) for value in wanted]
    if allowed and _json(instance) not in allowed:
        yield _told(f"\0 must be one of the following: {', '.join(allowed)}")


def _required(validator: Any, names: Any, instance: Any, schema: Any) -> Errors:
    for name in names if isinstance(instance, dict) else ():
        if name not in instance:
            yield _told(f"{name} is required", name)


def _patterns(validator: Any, patterns: Any, instance: Any, schema: Any) -> Errors:
    for key in sorted(instance) if isinstance(instance, dict) else ():
        for pattern, part in patterns.items():
            if _pattern(pattern).search(key):
                yield from validator.descend(instance[key], part, path=key, schema_path=pattern)


def _additional(validator: Any, rule: Any, instance: Any, schema: Any) -> Errors:
    known, patterns = schema.get("properties", {}), schema.get("patternProperties", {})
    for key in sorted(instance) if isinstance(instance, dict) else ():
        if key in known or any(_pattern(pattern).search(key) for pattern in patterns):
            continue
        if rule is False:
            yield _told(f"additional property {key} is not allowed", key)
        elif isinstance(rule, dict):
            yield from validator.descend(instance[key], rule, path=key)


def _property_names(validator: Any, rule: Any, instance: Any, schema: Any) -> Errors:
    for key in sorted(instance) if isinstance(instance, dict) else ():
        errors = list(validator.descend(key, rule))
        if errors:
            yield _told(f'property name of "{key}" does not match', key)
            yield from errors


def _dependencies(validator: Any, rules: Any, instance: Any, schema: Any) -> Errors:
    for key, rule in rules.items() if isinstance(instance, dict) else ():
        if key not in instance:
            continue
        if isinstance(rule, list):
            for other in rule:
                if other not in instance:
                    yield _told(f"has a dependency on {other}")
        else:
            yield from validator.descend(instance, rule, schema_path=key)


def _unique(validator: Any, wanted: Any, instance: Any, schema: Any) -> Errors:
    seen: dict[str, int] = {}
    for at, item in enumerate(instance if wanted and isinstance(instance, list) else ()):
        text = _json(item)
        if text in seen:
            yield _told(f"array items[{seen[text]},{at}] must be unique")
        seen[text] = at


def _items(validator: Any, rule: Any, instance: Any, schema: Any) -> Errors:
    if not isinstance(instance, list):
        return
    rules = rule if isinstance(rule, list) else [rule] * len(instance)
    for at, (item, part) in enumerate(zip(instance, rules, strict=False)):
        step = at if isinstance(rule, list) else None
        yield from validator.descend(item, part, path=at, schema_path=step)
    more = schema.get("additionalItems") if isinstance(rule, list) else None
    if more is False and len(instance) > len(rules):
        yield _told("no additional items allowed on array")
    elif isinstance(more, dict):
        for at in range(len(rules), len(instance)):
            yield from validator.descend(instance[at], more, path=at)


def _nothing(validator: Any, rule: Any, instance: Any, schema: Any) -> Errors:
    """Check nothing: another keyword sees to it."""
    yield from ()


def _contains(validator: Any, rule: Any, instance: Any, schema: Any) -> Errors:
    if not isinstance(instance, list):
        return
    tries = [list(validator.descend(item, rule, path=at)) for at, item in enumerate(instance)]
    if not tries or all(tries):
        yield _told("at least one of the items must match")
        yield from _closest(tries)


def _closest(tries: list[list[ValidationError]]) -> list[ValidationError]:
    """Return the errors of the attempt that was probably meant: its type fits, and little else."""

    def distance(errors: list[ValidationError]) -> tuple[bool, int]:
        steps = [len(e.relative_schema_path) for e in errors if e.validator == "type"]
        return (bool(steps) and min(steps) <= 2, len(errors))

    return min(tries, key=distance, default=[])


def _any_of(validator: Any, rules: Any, instance: Any, schema: Any) -> Errors:
    tries = [_try(validator, rule, instance, at) for at, rule in enumerate(rules)]
    if all(tries):
        yield _told("must validate at least one schema (anyof)")
        yield from _closest(tries)


def _one_of(validator: Any, rules: Any, instance: Any, schema: Any) -> Errors:
    tries = [_try(validator, rule, instance, at) for at, rule in enumerate(rules)]
    if tries.count([]) != 1:
        yield _told("must validate one and only one schema (oneof)")
        if [] not in tries:
            yield from _closest(tries)


def _all_of(validator: Any, rules: Any, instance: Any, schema: Any) -> Errors:
    tries = [_try(validator, rule, instance, at) for at, rule in enumerate(rules)]
    for errors in tries:
        yield from errors
    if any(tries):
        yield _told("must validate all the schemas (allof)")


def _try(validator: Any, rule: Any, instance: Any, at: int) -> list[ValidationError]:
    return _kept(list(validator.descend(instance, rule, schema_path=at)))


def _not(validator: Any, rule: Any, instance: Any, schema: Any) -> Errors:
    if not list(validator.descend(instance, rule)):
        yield _told("must not validate the schema (not)")


def _if(validator: Any, rule: Any, instance: Any, schema: Any) -> Errors:
    holds = not list(validator.descend(instance, rule))
    branch = "then" if holds else "else"
    errors = []
    if branch in schema:
        errors = list(validator.descend(instance, schema[branch], schema_path=branch))
    if errors:
        was = "was valid" if holds else "was not valid"
        yield _told(f'must validate "{branch}" as "if" {was}')
        yield from errors


KEYWORDS: Final[dict[str, Keyword]] = {
    "type": _type,
    "multipleOf": _number("must be a multiple of", lambda a, b: a % b != 0),
    "minimum": _bounded(
        "must be greater than or equal to", "exclusiveMinimum", lambda a, b: a < b, _GREATER
    ),
    "maximum": _bounded(
        "must be less than or equal to", "exclusiveMaximum", lambda a, b: a > b, _LESS
    ),
    "exclusiveMinimum": _GREATER,
    "exclusiveMaximum": _LESS,
    "minLength": _size(str, "string length must be greater than or equal to", lambda n, m: n < m),
    "maxLength": _size(str, "string length must be less than or equal to", lambda n, m: n > m),
    "minItems": _size(list, "array must have at least", lambda n, m: n < m, " items"),
    "maxItems": _size(list, "array must have at most", lambda n, m: n > m, " items"),
    "minProperties": _size(dict, "must have at least", lambda n, m: n < m, " properties"),
    "maxProperties": _size(dict, "must have at most", lambda n, m: n > m, " properties"),
    "pattern": _matches,
    "format": _format,
    "const": _const,
    "enum": _enum,
    "required": _required,
    "patternProperties": _patterns,
    "additionalProperties": _additional,
    "propertyNames": _property_names,
    "dependencies": _dependencies,
    "uniqueItems": _unique,
    "items": _items,
    "additionalItems": _nothing,
    "contains": _contains,
    "anyOf": _any_of,
    "oneOf": _one_of,
    "allOf": _all_of,
    "not": _not,
    "if": _if,
}
