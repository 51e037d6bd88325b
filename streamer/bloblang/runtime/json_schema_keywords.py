"""The keywords of JSON Schema in which gojsonschema differs from the library jsonschema.

All others are the library's own. The first group judges otherwise: patterns are RE2's, `multipleOf`
is exact for decimals, and `uniqueItems` takes time in proportion to the array. The second group
only adds errors: gojsonschema has a line for the whole besides those of the parts.

Functions have the form that the library asks for: validator, the keyword's value, the instance, the
schema; they yield errors. An error whose message is empty gets its text from
`json_schema_messages`.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from fractions import Fraction
from functools import lru_cache
from itertools import chain, groupby
from typing import Any, Final

import re2
from jsonschema import Draft7Validator, FormatChecker, ValidationError

from streamer.bloblang.runtime.json_schema_formats import FORMATS

Errors = Iterator[ValidationError]
Keyword = Callable[[Any, Any, Any, Any], Errors]

_LIBRARY_KEYWORDS: Final[dict[str, Keyword]] = dict(Draft7Validator.VALIDATORS)


class PropertyError(ValidationError):
    """An error that concerns one property of the instance.

    Attributes:
        name: the property's.
    """

    name = ""


def _property_error(name: str) -> PropertyError:
    error = PropertyError("")
    error.name = name
    return error


@lru_cache(maxsize=256)
def _compile_pattern(text: str) -> Any:
    options = re2.Options()
    options.log_errors = False
    return re2.compile(text, options)


def is_pattern(text: str) -> bool:
    """Whether RE2 takes a pattern."""
    try:
        _compile_pattern(text)
    except re2.error:
        return False
    return True


def _check_pattern(validator: Any, pattern: Any, instance: Any, schema: Any) -> Errors:
    if isinstance(instance, str) and not _compile_pattern(pattern).search(instance):
        yield ValidationError("")


def _check_pattern_properties(validator: Any, patterns: Any, instance: Any, schema: Any) -> Errors:
    for key in sorted(instance) if isinstance(instance, dict) else ():
        for pattern, part in patterns.items():
            if _compile_pattern(pattern).search(key):
                yield from validator.descend(instance[key], part, path=key, schema_path=pattern)


def _check_additional_properties(validator: Any, rule: Any, instance: Any, schema: Any) -> Errors:
    if rule is True or not isinstance(instance, dict):
        return
    known, patterns = schema.get("properties", {}), schema.get("patternProperties", {})
    extra = [key for key in instance if key not in known]
    for key in sorted(extra):
        if any(_compile_pattern(pattern).search(key) for pattern in patterns):
            continue
        if rule is False:
            yield _property_error(key)
        else:
            yield from validator.descend(instance[key], rule, path=key)


def _to_fraction(value: Any) -> Fraction:
    return Fraction(repr(value)) if isinstance(value, float) else Fraction(value)


def _check_multiple_of(validator: Any, step: Any, instance: Any, schema: Any) -> Errors:
    if not validator.is_type(instance, "number"):
        return
    if isinstance(instance, int) and isinstance(step, int):
        fits = instance % step == 0
    else:
        # 0.3 is a multiple of 0.1, as the texts say; their floats are not.
        fits = _to_fraction(instance) % _to_fraction(step) == 0
    if not fits:
        yield ValidationError("")


def _check_unique_items(validator: Any, required: Any, instance: Any, schema: Any) -> Errors:
    # The library compares each item with each when they cannot be sorted.
    if (
        required
        and isinstance(instance, list)
        and len(set(map(to_canonical_json, instance))) < len(instance)
    ):
        yield ValidationError("")


def to_canonical_json(value: Any) -> str:
    """Return a value's JSON, which is the same for all that JSON Schema takes for equal."""
    return json.dumps(
        _normalize_numbers(value), ensure_ascii=False, sort_keys=True, separators=(",", ":")
    )


def _normalize_numbers(value: Any) -> Any:
    """Return a value in which equal numbers look the same."""
    if isinstance(value, dict):
        return {key: _normalize_numbers(part) for key, part in value.items()}
    if isinstance(value, list):
        return [_normalize_numbers(part) for part in value]
    return int(value) if isinstance(value, float) and value.is_integer() else value


def _check_contains(validator: Any, rule: Any, instance: Any, schema: Any) -> Errors:
    for _ in _LIBRARY_KEYWORDS["contains"](validator, rule, instance, schema):
        tries = (validator.descend(item, rule, path=at) for at, item in enumerate(instance))
        yield ValidationError("", context=list(chain.from_iterable(tries)))


def _check_all_of(validator: Any, rules: Any, instance: Any, schema: Any) -> Errors:
    errors = list(_LIBRARY_KEYWORDS["allOf"](validator, rules, instance, schema))
    yield from errors
    if errors:
        yield ValidationError("")


def _check_if(validator: Any, rule: Any, instance: Any, schema: Any) -> Errors:
    errors = list(_LIBRARY_KEYWORDS["if"](validator, rule, instance, schema))
    if errors:
        holds = validator.evolve(schema=rule).is_valid(instance)
        branch, was = ("then", "was valid") if holds else ("else", "was not valid")
        yield ValidationError(f'must validate "{branch}" as "if" {was}')
        yield from errors


def _check_property_names(validator: Any, rule: Any, instance: Any, schema: Any) -> Errors:
    errors = list(_LIBRARY_KEYWORDS["propertyNames"](validator, rule, instance, schema))
    errors.sort(key=_error_instance)
    for name, of_one in groupby(errors, _error_instance):
        yield _property_error(name)
        yield from of_one


def _error_instance(error: ValidationError) -> Any:
    return error.instance


KEYWORDS: Final[dict[str, Keyword]] = {
    "pattern": _check_pattern,
    "patternProperties": _check_pattern_properties,
    "additionalProperties": _check_additional_properties,
    "multipleOf": _check_multiple_of,
    "uniqueItems": _check_unique_items,
    "contains": _check_contains,
    "allOf": _check_all_of,
    "if": _check_if,
    "propertyNames": _check_property_names,
}
"""What stands in the place of the library's functions."""


def make_format_checker() -> FormatChecker:
    """Return what checks `format` as gojsonschema does: a number has none of the known ones."""
    checker = FormatChecker(formats=())
    for name, fits in FORMATS.items():
        checker.checks(name)(_make_text_check(fits))
    return checker


def _make_text_check(fits: Callable[[str], bool]) -> Callable[[object], bool]:
    def check(instance: object) -> bool:
        if isinstance(instance, str):
            return fits(instance)
        return isinstance(instance, bool) or not isinstance(instance, int | float)

    return check
