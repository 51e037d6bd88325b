"""Where two values or two texts differ."""

from __future__ import annotations

import difflib
from decimal import Decimal
from typing import Any, NamedTuple

from streamer.unit_tests.failure import Line, as_json, pair, quoted
from streamer.value import Number, type_name

_MOST = 20
_MOST_LINES = 100


class Difference(NamedTuple):
    """One place in which two values differ; a side that has nothing there says so."""

    place: str
    expected: str
    received: str


def differences(expected: Any, received: Any, superset: bool, place: str = "") -> list[Difference]:
    """Return where a value is not what is expected.

    Args:
        expected: a JSON value.
        received: another.
        superset: `received` may have more: fields of objects, items at the end of lists.
        place: the dotted path of both.
    """
    found = []
    # No recursion: a message may be nested deeper than Python's stack is.
    pending = [(place, expected, received)]
    while pending:
        here, wanted, got = pending.pop()
        pairs = _pairs(wanted, got, superset)
        if pairs is None:
            if not _same(wanted, got):
                found.append(Difference(here or "root", _text(wanted), _text(got)))
            continue
        below = [(f"{here}.{name}" if here else name, a, b) for name, a, b in pairs]
        pending += reversed(below)
    return found


def _pairs(expected: Any, received: Any, superset: bool) -> list[tuple[str, Any, Any]] | None:
    """Return what two objects or two lists hold, by name; None for anything else."""
    if isinstance(expected, dict) and isinstance(received, dict):
        names = sorted(expected) if superset else sorted({*expected, *received})
        return [
            (name, expected.get(name, _NOTHING), received.get(name, _NOTHING)) for name in names
        ]
    if isinstance(expected, list) and isinstance(received, list):
        count = len(expected) if superset else max(len(expected), len(received))
        return [(str(i), _item(expected, i), _item(received, i)) for i in range(count)]
    return None


def difference_lines(found: list[Difference]) -> list[Line]:
    """Show differences."""
    lines = []
    for place, expected, received in found[:_MOST]:
        lines.append(Line(f"  at {place}:"))
        lines += pair(expected, received, "    ")
    if len(found) > _MOST:
        lines.append(Line(f"  … and {len(found) - _MOST} more differences"))
    return lines


def text_lines(expected: str, received: str) -> list[Line]:
    """Show how two texts differ: line by line where one has several."""
    several = "\n" in expected or "\n" in received
    if expected.strip() == received.strip() or not (several or expected and received):
        # Nobody can see white space around a text, nor an empty one.
        return pair(quoted(expected), quoted(received))
    if not several:
        return pair(expected, received)
    wanted, found = expected.split("\n"), received.split("\n")
    lines = []
    for line in difflib.unified_diff(wanted, found, "expected", "received", lineterm="", n=2):
        tone = {"-": "expected", "+": "received"}.get(line[:1], "plain")
        lines.append(Line(f"  {line}", tone))  # type: ignore[arg-type]
    if len(lines) > _MOST_LINES:
        lines = [*lines[:_MOST_LINES], Line(f"  … and {len(lines) - _MOST_LINES} more lines")]
    return lines


class _Nothing:
    pass


_NOTHING = _Nothing()


def _item(value: list[Any], index: int) -> Any:
    return value[index] if index < len(value) else _NOTHING


def _same(left: Any, right: Any) -> bool:
    if left is _NOTHING or right is _NOTHING:
        return False
    if type_name(left) != type_name(right):
        return False
    if isinstance(left, float) or isinstance(right, float):
        # Beyond 2**53, a float's digits in JSON are not those of the integer that it is.
        return _decimal(left) == _decimal(right)
    return bool(left == right)


def _decimal(value: Any) -> Decimal:
    return Decimal(value.text) if isinstance(value, Number) else Decimal(repr(value))


def _text(value: Any) -> str:
    return "nothing" if value is _NOTHING else as_json(value)
