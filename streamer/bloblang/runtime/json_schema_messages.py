"""The words in which gojsonschema tells what does not fit, made of the library's errors.

A text is made of an error's keyword (`validator`), its value, the instance and the schema; never of
the library's own message.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from itertools import groupby
from typing import Any, Final

from jsonschema import ValidationError

from streamer.bloblang.runtime.json_schema_keywords import PropertyError, to_canonical_json
from streamer.core.value import format_float


def describe_errors(errors: list[ValidationError]) -> list[str]:
    """Return a line for each thing that does not fit: the field, and what is wrong with it."""
    lines: list[str] = []
    numbers: defaultdict[tuple[str, int, int], int] = defaultdict(int)
    for error in _drop_mismatched(list(_flatten_errors(errors))):
        field = ".".join(str(part) for part in error.absolute_path) or "(root)"
        # Of the errors that a keyword has for one instance, this is the nth.
        key = str(error.validator), id(error.validator_value), id(error.instance)
        for name, text in _describe_error(error, field, numbers[key]):
            lines.append(f"{field} {name}{text.lower().removeprefix(name.lower())}")
        numbers[key] += 1
    return lines


def _flatten_errors(errors: Iterable[ValidationError]) -> Iterator[ValidationError]:
    """Return errors, and behind one of several attempts those of the one that was meant."""
    for error in errors:
        yield error
        if error.context:
            tries = [
                list(_flatten_errors(of_one)) for _, of_one in groupby(error.context, _attempt_key)
            ]
            if error.validator != "contains":
                tries = [_drop_mismatched(of_one) for of_one in tries]
            yield from _pick_closest(tries, len(error.absolute_schema_path))


def _attempt_key(error: ValidationError) -> object:
    """Return which item or schema of several an error is from; `false` has neither path."""
    parent = error.parent
    of_item = parent is not None and parent.validator == "contains"
    path = error.relative_path if of_item else error.relative_schema_path
    return path[0] if path else id(error)


def _pick_closest(tries: list[list[ValidationError]], depth: int) -> list[ValidationError]:
    """Return the errors of the attempt that was probably meant: its type fits, and little else.

    Args:
        tries: the errors of each.
        depth: how deep in the schema the keyword stands whose attempts they are.
    """

    def distance(errors: list[ValidationError]) -> tuple[bool, int]:
        steps = [len(e.absolute_schema_path) - depth for e in errors if e.validator == "type"]
        return (bool(steps) and min(steps) <= 2, len(errors))

    return min(tries, key=distance, default=[])


def _drop_mismatched(errors: list[ValidationError]) -> list[ValidationError]:
    """Return errors without those of parts of a schema whose type did not fit."""
    places = [(tuple(e.absolute_schema_path), tuple(e.absolute_path)) for e in errors]
    # Where in the schema, and in the instance, a type does not fit.
    typed = {
        (steps[:-1], path)
        for error, (steps, path) in zip(errors, places, strict=True)
        if error.validator == "type"
    }
    if not typed:
        return errors
    depths = sorted({(len(above), len(path)) for above, path in typed})

    def is_relevant(error: ValidationError, steps: tuple[Any, ...], path: tuple[Any, ...]) -> bool:
        level = max(len(steps) - 1, 0)
        if error.validator != "type" and (steps[:level], path) in typed:
            return False
        return not any(
            (steps[:above], path[:place]) in typed
            for above, place in depths
            if above != level and above <= len(steps) and place <= len(path)
        )

    return [e for e, place in zip(errors, places, strict=True) if is_relevant(e, *place)]


def _describe_error(error: ValidationError, field: str, number: int) -> Iterator[tuple[str, str]]:
    """Return the property that an error concerns, or "", and what is wrong."""
    value: Any = error.validator_value
    instance: Any = error.instance
    match error.validator:
        case None:
            # Only the schema `false` has no keyword.
            yield "", "false always fails validation"
        case "required":
            absent = [name for name in value if name not in instance]
            # Two references to one schema have each all errors of it.
            name = absent[number % len(absent)]
            yield name, f"{name} is required"
        case "additionalProperties" if isinstance(error, PropertyError):
            yield error.name, f"additional property {error.name} is not allowed"
        case "propertyNames" if isinstance(error, PropertyError):
            yield error.name, f'property name of "{error.name}" does not match'
        case "dependencies":
            lists = [names for key, names in value.items() if key in instance]
            missing = [
                name
                for names in lists
                if isinstance(names, list)
                for name in names
                if name not in instance
            ]
            yield "", f"has a dependency on {missing[number % len(missing)]}"
        case "uniqueItems":
            for first, second in _find_repeated(instance):
                yield "", f"array items[{first},{second}] must be unique"
        case "const":
            yield "", f"{field} does not match: {to_canonical_json(value)}"
        case "enum":
            allowed = ", ".join(map(to_canonical_json, value))
            yield "", f"{field} must be one of the following: {allowed}"
        case "minimum" | "maximum" as keyword:
            # Draft 4 says by a boolean that the limit itself is not allowed.
            strict = f"exclusive{keyword.capitalize()}"
            exclusive = isinstance(error.schema, dict) and error.schema.get(strict) is True
            yield "", _MESSAGES[strict if exclusive else keyword](value, instance)
        case str() as keyword if keyword in _MESSAGES:
            yield "", _MESSAGES[keyword](value, instance)
        case _:
            yield "", error.message


def _find_repeated(items: list[Any]) -> Iterator[tuple[int, int]]:
    seen: dict[str, int] = {}
    for at, item in enumerate(items):
        text = to_canonical_json(item)
        if text in seen:
            yield seen[text], at
        seen[text] = at


def _format_number(value: Any) -> str:
    exact = isinstance(value, int) and abs(value) >= 1 << 53
    return str(value) if exact else format_float(float(value))


def _describe_type(types: Any, instance: Any) -> str:
    expected = types if isinstance(types, str) else f"[{','.join(types)}]"
    return f"invalid type. expected: {expected}, given: {_json_type(instance)}"


def _json_type(value: Any) -> str:
    if value is None or isinstance(value, bool):
        return "null" if value is None else "boolean"
    if isinstance(value, int | float):
        return "integer" if isinstance(value, int) or value.is_integer() else "number"
    return "string" if isinstance(value, str) else "array" if isinstance(value, list) else "object"


_MESSAGES: Final[dict[str, Callable[[Any, Any], str]]] = {
    "type": _describe_type,
    "multipleOf": lambda step, _: f"must be a multiple of {_format_number(step)}",
    "minimum": lambda limit, _: f"must be greater than or equal to {_format_number(limit)}",
    "maximum": lambda limit, _: f"must be less than or equal to {_format_number(limit)}",
    "exclusiveMinimum": lambda limit, _: f"must be greater than {_format_number(limit)}",
    "exclusiveMaximum": lambda limit, _: f"must be less than {_format_number(limit)}",
    "minLength": lambda n, _: f"string length must be greater than or equal to {int(n)}",
    "maxLength": lambda n, _: f"string length must be less than or equal to {int(n)}",
    "minItems": lambda n, _: f"array must have at least {int(n)} items",
    "maxItems": lambda n, _: f"array must have at most {int(n)} items",
    "minProperties": lambda n, _: f"must have at least {int(n)} properties",
    "maxProperties": lambda n, _: f"must have at most {int(n)} properties",
    "pattern": lambda pattern, _: f"does not match pattern '{pattern}'",
    "format": lambda name, _: f"does not match format '{name}'",
    "additionalItems": lambda *_: "no additional items allowed on array",
    "contains": lambda *_: "at least one of the items must match",
    "anyOf": lambda *_: "must validate at least one schema (anyof)",
    "oneOf": lambda *_: "must validate one and only one schema (oneof)",
    "allOf": lambda *_: "must validate all the schemas (allof)",
    "not": lambda *_: "must not validate the schema (not)",
}
