"""Tests of one value: null, bounds, accepted values, a pattern; each gives the reason it fails."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

from streamer.bloblang.runtime.regex import compile_re2, searchable_text
from streamer.connectors.expectations.values import as_number, encode_key, show_value
from streamer.core.value import type_name

ValueTest = Callable[[Any], str | None]
"""Returns why a value fails, in a few words; None for one that passes."""

Number = int | float

_MAX_LISTED_VALUES: Final = 5


def make_bounds_test(minimum: Number | None, maximum: Number | None) -> ValueTest:
    """Return the test of a number by its bounds, which are inclusive; None leaves one out.

    What is no number fails, and so does NaN.

    >>> test = make_bounds_test(0, 200)
    >>> test(200), test(431), test("7")
    (None, '431 is above the maximum 200', '"7" is a string, not a number')
    """

    def test(value: Any) -> str | None:
        number = as_number(value)
        if number is None:
            return f"{show_value(value)} is a {type_name(value)}, not a number"
        if minimum is not None and not number >= minimum:
            return f"{show_value(value)} is {_relate(number, 'below')} the minimum {minimum}"
        if maximum is not None and not number <= maximum:
            return f"{show_value(value)} is {_relate(number, 'above')} the maximum {maximum}"
        return None

    return test


def _relate(number: Number, relation: str) -> str:
    return relation if number == number else "not comparable with"  # noqa: PLR0124 - NaN


def make_accepted_test(accepted: Sequence[Any]) -> ValueTest:
    """Return the test whether a value equals one of a list.

    >>> test = make_accepted_test(["red", "green"])
    >>> test("red"), test("blue")
    (None, '"blue" is none of the accepted values "red", "green"')
    """
    keys = {encode_key(value) for value in accepted}
    listed = ", ".join(map(show_value, accepted[:_MAX_LISTED_VALUES]))
    rest = len(accepted) - _MAX_LISTED_VALUES
    listed += f" and {rest} more" if rest > 0 else ""

    def test(value: Any) -> str | None:
        if encode_key(value) in keys:
            return None
        return f"{show_value(value)} is none of the accepted values {listed}"

    return test


def make_pattern_test(pattern: str) -> ValueTest:
    """Return the test whether a text matches an expression of RE2's somewhere; ^ and $ anchor it.

    What is no text fails.

    >>> test = make_pattern_test("^[A-Z]+$")
    >>> test("ABC"), test("abc")
    (None, '"abc" does not match ^[A-Z]+$')
    """
    expression = compile_re2(pattern)

    def test(value: Any) -> str | None:
        if not isinstance(value, (str, bytes)):
            return f"{show_value(value)} is a {type_name(value)}, not a string"
        raw = searchable_text(value).encode("utf-8", "surrogateescape")
        if expression.search(raw) is not None:
            return None
        return f"{show_value(value)} does not match {pattern}"

    return test
