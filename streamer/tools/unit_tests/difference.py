"""Finds the place where two values or two texts differ."""

from __future__ import annotations

import difflib
from decimal import Decimal
from typing import Any, NamedTuple

from streamer.core.value import Number, type_name
from streamer.tools.unit_tests.failure import Line, format_pair, quote_text, to_json_text

_MAX_DIFFERENCES = 20
_MAX_LINES = 100


class Difference(NamedTuple):
    """One place in which two values differ; a side that has nothing there says so."""

    place: str
    expected: str
    received: str


def find_differences(
    expected: Any, received: Any, superset: bool, place: str = ""
) -> list[Difference]:
    """Return where a value is not what is expected.

    Args:
        expected: a JSON value.
        received: another.
        superset: `received` may have more: fields of objects, items at the end of lists.
        place: the dotted path of both.
    """
    result = []
    # No recursion: a message may be nested deeper than Python's stack is.
    pending = [(place, expected, received)]
    while pending:
        here, expected_value, received_value = pending.pop()
        pairs = _pair_items(expected_value, received_value, superset)
        if pairs is None:
            if not _is_same(expected_value, received_value):
                result.append(
                    Difference(
                        here or "root", _format_value(expected_value), _format_value(received_value)
                    )
                )
            continue
        below = [(f"{here}.{name}" if here else name, a, b) for name, a, b in pairs]
        pending += reversed(below)
    return result


def _pair_items(expected: Any, received: Any, superset: bool) -> list[tuple[str, Any, Any]] | None:
    """Return what two objects or two lists hold, by name; None for anything else."""
    if isinstance(expected, dict) and isinstance(received, dict):
        names = sorted(expected) if superset else sorted({*expected, *received})
        return [
            (name, expected.get(name, _MISSING), received.get(name, _MISSING)) for name in names
        ]
    if isinstance(expected, list) and isinstance(received, list):
        count = len(expected) if superset else max(len(expected), len(received))
        return [(str(i), _get_item(expected, i), _get_item(received, i)) for i in range(count)]
    return None


def format_differences(items: list[Difference]) -> list[Line]:
    """Show differences."""
    lines = []
    for place, expected, received in items[:_MAX_DIFFERENCES]:
        lines.append(Line(f"  at {place}:"))
        lines += format_pair(expected, received, "    ")
    if len(items) > _MAX_DIFFERENCES:
        lines.append(Line(f"  … and {len(items) - _MAX_DIFFERENCES} more differences"))
    return lines


def format_text_difference(expected: str, received: str) -> list[Line]:
    """Show how two texts differ: line by line where one has several."""
    several = "\n" in expected or "\n" in received
    if expected.strip() == received.strip() or not (several or expected and received):
        # Nobody can see white space around a text, nor an empty one.
        return format_pair(quote_text(expected), quote_text(received))
    if not several:
        return format_pair(expected, received)
    expected_lines, received_lines = expected.split("\n"), received.split("\n")
    lines = []
    for line in difflib.unified_diff(
        expected_lines, received_lines, "expected", "received", lineterm="", n=2
    ):
        tone = {"-": "expected", "+": "received"}.get(line[:1], "plain")
        lines.append(Line(f"  {line}", tone))  # type: ignore[arg-type]
    if len(lines) > _MAX_LINES:
        lines = [*lines[:_MAX_LINES], Line(f"  … and {len(lines) - _MAX_LINES} more lines")]
    return lines


class _Missing:
    pass


_MISSING = _Missing()


def _get_item(value: list[Any], index: int) -> Any:
    return value[index] if index < len(value) else _MISSING


def _is_same(left: Any, right: Any) -> bool:
    if left is _MISSING or right is _MISSING:
        return False
    if type_name(left) != type_name(right):
        return False
    if isinstance(left, float) or isinstance(right, float):
        # Beyond 2**53, a float's digits in JSON are not those of the integer that it is.
        return _to_decimal(left) == _to_decimal(right)
    return bool(left == right)


def _to_decimal(value: Any) -> Decimal:
    return Decimal(value.text) if isinstance(value, Number) else Decimal(repr(value))


def _format_value(value: Any) -> str:
    return "nothing" if value is _MISSING else to_json_text(value)
