"""Steps of a JSONPath from a value to others; `jsonpath.py` reads the path."""

from __future__ import annotations

import itertools
import threading
from collections.abc import Callable, Iterator
from typing import Any, Final

from streamer.bloblang.errors import QueryError
from streamer.bloblang.golib import gval
from streamer.bloblang.golib.gval import Evaluate
from streamer.bloblang.golib.text import go_type

MAX_VALUES: Final = 2_000_000
"""How many values an expression may look at: with `..a..a` they multiply at every step."""

# Selects from (root, value): one value, or any number of them.
_SingleStep = Callable[[Any, Any], Any]
_MultipleStep = Callable[[Any, Any], Iterator[Any]]


class JsonPath:
    """Steps from a value to others.

    Attributes:
        steps: each with whether it gives many values.
    """

    def __init__(self) -> None:
        self.steps: list[tuple[bool, Any]] = []

    def add_single(self, step: _SingleStep) -> None:
        """Add a step that gives one value or fails."""
        self.steps.append((False, step))

    def add_multiple(self, step: _MultipleStep) -> None:
        """Add a step that gives any number of values."""
        self.steps.append((True, step))

    def evaluate(self, root: Any, start: Any) -> Any:
        """Return what the path leads to; an array once a step gives many."""
        if not any(many for many, _ in self.steps):
            for _, step in self.steps:
                start = step(root, start)
            return start
        values = [start]
        for many, step in self.steps:
            values = list(
                itertools.islice(
                    (item for value in values for item in _apply_step(step, many, root, value)),
                    _budget.remaining + 1,
                )
            )
            _budget.remaining -= len(values)
            if _budget.remaining < 0:
                raise TooManyValuesError(f"the expression leads past more than {MAX_VALUES} values")
        return values


class TooManyValuesError(Exception):
    """An expression finds too much."""


class _Budget(threading.local):
    """Count of values that this thread's evaluation of one expression may still read."""

    remaining = MAX_VALUES


_budget: Final = _Budget()


def reset_budget() -> None:
    """Begin to evaluate an expression: all paths in it share what it may look at."""
    _budget.remaining = MAX_VALUES


def _apply_step(step: Any, many: bool, root: Any, value: Any) -> Iterator[Any]:
    if many:
        yield from step(root, value)
        return
    try:
        result = step(root, value)
    except QueryError:
        return  # a place that this value does not have
    yield result


def select_child(key: Evaluate, root: Any, value: Any) -> Any:
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
    kind = go_type(value, of_document=True)
    expected = "expected map[string]interface{} or []interface{}"
    raise QueryError(f"unsupported value type {kind} for select, {expected}")


def list_children(value: Any) -> list[Any]:
    """Return the elements of an array or the values of an object."""
    if type(value) is list:
        return value
    # Go goes through an object in an order of its own; here it is that of the document.
    return list(value.values()) if type(value) is dict else []


def iterate_children(root: Any, value: Any) -> Iterator[Any]:
    """Go through the elements of an array or the values of an object."""
    return iter(list_children(value))


def iterate_descendants(root: Any, value: Any) -> Iterator[Any]:
    """Go through a value and all that it holds, each before what it holds itself."""
    waiting = [value]
    while waiting:
        value = waiting.pop()
        yield value
        waiting += reversed(list_children(value))


def make_filter(condition: Evaluate) -> _MultipleStep:
    """Return the step to the elements for which a condition holds."""

    def select_items(root: Any, value: Any) -> Iterator[Any]:
        for item in list_children(value):
            try:
                if gval.to_condition(condition(root, item)):
                    yield item
            except QueryError:
                continue

    return select_items


def make_list(keys: list[Evaluate]) -> _MultipleStep:
    """Return the step to the elements or fields of a list of keys, as far as they are there."""

    def select_items(root: Any, value: Any) -> Iterator[Any]:
        for key in keys:
            try:
                yield select_child(key, root, value)
            except QueryError:
                continue

    return select_items


def make_range(bounds: list[Evaluate]) -> _MultipleStep:
    """Return the step to the elements from a first to before a last place, in steps."""

    def select_items(root: Any, value: Any) -> Iterator[Any]:
        if type(value) is not list:
            return
        try:
            low, high, step = (gval.to_int(bound(root, value)) for bound in bounds)
        except QueryError:
            return
        if low > high:
            return
        low, high = _clamp_index(low, len(value)), _clamp_index(high, len(value))
        places = range(low, high, step or 1) if step >= 0 else range(high - 1, low - 1, step)
        yield from (value[place] for place in places)

    return select_items


def _clamp_index(place: int, size: int) -> int:
    return max(size + place, 0) if place < 0 else min(place, size)
