"""Where a JSONPath leads: steps from a value to others, see jsonpath.py."""

from __future__ import annotations

import itertools
import threading
from collections.abc import Callable, Iterator
from typing import Any, Final

from streamer.bloblang.errors import QueryError
from streamer.bloblang.runtime import gval
from streamer.bloblang.runtime.gval import Evaluate
from streamer.bloblang.runtime.text import go_type

MOST_VALUES: Final = 2_000_000
"""How many values an expression may look at: with `..a..a` they multiply at every step."""

# Selects from (root, value): one value, or any number of them.
_One = Callable[[Any, Any], Any]
_Many = Callable[[Any, Any], Iterator[Any]]


class Path:
    """Steps from a value to others.

    Attributes:
        steps: each with whether it gives many values.
    """

    def __init__(self) -> None:
        self.steps: list[tuple[bool, Any]] = []

    def one(self, step: _One) -> None:
        """Add a step that gives one value or fails."""
        self.steps.append((False, step))

    def many(self, step: _Many) -> None:
        """Add a step that gives any number of values."""
        self.steps.append((True, step))

    def value(self, root: Any, start: Any) -> Any:
        """Return what the path leads to; an array once a step gives many."""
        if not any(many for many, _ in self.steps):
            for _, step in self.steps:
                start = step(root, start)
            return start
        found = [start]
        for many, step in self.steps:
            found = list(
                itertools.islice(
                    (item for value in found for item in _each(step, many, root, value)),
                    _budget.left + 1,
                )
            )
            _budget.left -= len(found)
            if _budget.left < 0:
                raise TooMany(f"the expression leads past more than {MOST_VALUES} values")
        return found


class TooMany(Exception):
    """An expression finds too much."""


class _Budget(threading.local):
    """How many values may still be looked at, in this thread's evaluation of one expression."""

    left = MOST_VALUES


_budget: Final = _Budget()


def begin() -> None:
    """Begin to evaluate an expression: all paths in it share what it may look at."""
    _budget.left = MOST_VALUES


def _each(step: Any, many: bool, root: Any, value: Any) -> Iterator[Any]:
    if many:
        yield from step(root, value)
        return
    try:
        found = step(root, value)
    except QueryError:
        return  # a place that this value does not have
    yield found


def select(key: Evaluate, root: Any, value: Any) -> Any:
    """Return an element by its index or a field by its name.

    Raises:
        QueryError: there is none, or the value has neither elements nor fields.
    """
    if type(value) is list:
        try:
            index = gval.to_int(key(root, value))
        except QueryError as e:
            raise QueryError(f"could not select value, invalid key: {e}") from None
        if not 0 <= index < len(value):
            raise QueryError(f"index {index} out of bounds")
        return value[index]
    if type(value) is dict:
        name = gval.to_string(key(root, value))
        if name not in value:
            raise QueryError(f"unknown key {name}")
        return value[name]
    found = go_type(value, of_document=True)
    expected = "expected map[string]interface{} or []interface{}"
    raise QueryError(f"unsupported value type {found} for select, {expected}")


def children(value: Any) -> list[Any]:
    """Return the elements of an array or the values of an object."""
    if type(value) is list:
        return value
    # Go goes through an object in an order of its own; here it is that of the document.
    return list(value.values()) if type(value) is dict else []


def each(root: Any, value: Any) -> Iterator[Any]:
    """Go through the elements of an array or the values of an object."""
    return iter(children(value))


def everything(root: Any, value: Any) -> Iterator[Any]:
    """Go through a value and all that it holds, each before what it holds itself."""
    waiting = [value]
    while waiting:
        value = waiting.pop()
        yield value
        waiting += reversed(children(value))


def filtered(condition: Evaluate) -> _Many:
    """Return the step to the elements for which a condition holds."""

    def found(root: Any, value: Any) -> Iterator[Any]:
        for item in children(value):
            try:
                if gval.to_condition(condition(root, item)):
                    yield item
            except QueryError:
                continue

    return found


def listed(keys: list[Evaluate]) -> _Many:
    """Return the step to the elements or fields of a list of keys, as far as they are there."""

    def found(root: Any, value: Any) -> Iterator[Any]:
        for key in keys:
            try:
                yield select(key, root, value)
            except QueryError:
                continue

    return found


def ranged(bounds: list[Evaluate]) -> _Many:
    """Return the step to the elements from a first to before a last place, in steps."""

    def found(root: Any, value: Any) -> Iterator[Any]:
        if type(value) is not list:
            return
        try:
            low, high, step = (gval.to_int(bound(root, value)) for bound in bounds)
        except QueryError:
            return
        if low > high:
            return
        low, high = _bounded(low, len(value)), _bounded(high, len(value))
        places = range(low, high, step or 1) if step >= 0 else range(high - 1, low - 1, step)
        yield from (value[place] for place in places)

    return found


def _bounded(place: int, size: int) -> int:
    return max(size + place, 0) if place < 0 else min(place, size)
