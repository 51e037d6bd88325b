"""Values that an unset environment variable leaves unknown, while a config is linted.

In the place of such a variable stands a mark, so that exactly what is made of it goes unchecked:
the value itself, and not its neighbours. Where a config can't be read with marks, since a variable
holds a part of its structure, nothing is put in, as in Benthos.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, Final, TypeVar

from streamer.bloblang import BloblangError
from streamer.config.nodes import Mapping as MappingNode
from streamer.config.nodes import Node, Scalar, Sequence
from streamer.core.durations import SECOND, parse_duration
from streamer.sdk.spec import Field

UNSET_MARK: Final = "\ufdd0"
"""The mark: a character that Unicode keeps from being used in texts."""

# A code without its variable is read with each of these in its place.
_FILLING_NAME: Final = "unset_variable"
_FILLINGS: Final = ("", _FILLING_NAME, "null", "0")
_TYPES: Final[Mapping[str, tuple[type, ...]]] = {
    "string": (str,),
    "int": (int,),
    "float": (int, float),
    "bool": (bool,),
}
_DEFAULT_SAMPLES: Final[Mapping[str, Any]] = {"string": "x", "int": 1, "float": 1.0, "bool": False}

_T = TypeVar("_T")


def is_unset(node: Node) -> bool:
    """Return whether a scalar has a mark."""
    return isinstance(node, Scalar) and UNSET_MARK in node.text


def holds_unset(node: Node) -> bool:
    """Return whether there is a mark in a value, or in a key."""
    pending = [node]
    while pending:
        one = pending.pop()
        if is_unset(one):
            return True
        if isinstance(one, Sequence):
            pending += one.items
        elif isinstance(one, MappingNode):
            pending += [each for pair in one.entries.values() for each in pair]
    return False


def remove_marks(value: Any) -> Any:
    """Return a plain value whose texts have no marks."""
    if isinstance(value, str):
        return value.replace(UNSET_MARK, "")
    if isinstance(value, list):
        return [remove_marks(item) for item in value]
    if isinstance(value, dict):
        return {key: remove_marks(item) for key, item in value.items()}
    return value


def select_known(node: Node, value: Any) -> Any:
    """Return what is known of a list's or a map's value; None when nothing is."""
    if not holds_unset(node):
        return value
    if isinstance(node, Sequence) and isinstance(value, tuple) and len(value) == len(node.items):
        known = zip(value, node.items, strict=True)
        return tuple(one for one, item in known if not holds_unset(item)) or None
    return None


def make_stand_in(field: Field, text: str, other: bool = False) -> Any:
    """Return a value that may stand in the place of an unknown one, for checks of a component.

    Args:
        field: the value's field, of a plain type.
        text: what is known of a text.
        other: return another one, if there is.
    """
    is_text = field.type == "string" and not field.duration
    if is_text and (text or other) and not field.options and _passes_check(field, text):
        return text
    if is_text and other and "" in field.options:
        return ""
    sample = _choose_sample(field)
    return not sample if other and field.type == "bool" else sample


def _passes_check(field: Field, text: str) -> bool:
    """Return whether the field's own check takes a text: that of the component counts on it."""
    if field.check is None:
        return True
    shaped = {"scalar": text, "array": (text,), "map": {"x": text}, "2darray": ((text,),)}
    return not field.check(shaped[field.shape])


def _choose_sample(field: Field) -> Any:
    for one in _flatten_samples((field.default, field.examples, field.options)):
        if type(one) in _TYPES.get(field.type, ()) and one != "":
            if not field.duration:
                return float(one) if field.type == "float" else one
            return parse_duration(one)
    return SECOND if field.duration else _DEFAULT_SAMPLES.get(field.type)


def _flatten_samples(values: Any) -> Iterator[Any]:
    if isinstance(values, tuple | list):
        for value in values:
            yield from _flatten_samples(value)
    elif isinstance(values, dict):
        yield from _flatten_samples(list(values.values()))
    else:
        yield values


def compile_filled(text: str, compile_: Callable[[str], _T]) -> Iterator[tuple[_T, str]]:
    """Compile a code with something in the place of its marks.

    Yields:
        What can be compiled, and what stands in the place of the marks.

    Raises:
        BloblangError: nothing can, and not because of the marks; its place is that in `text`.
    """
    errors: list[tuple[int, int, BloblangError]] = []
    for filling in _FILLINGS:
        try:
            made = compile_(text.replace(UNSET_MARK, filling))
        except BloblangError as e:
            errors.append((*locate_unfilled(text, filling, e.line, e.column), e))
            continue
        yield made, filling
    if len(errors) < len(_FILLINGS):
        return
    # What was read furthest says most.
    line, column, error = max(errors, key=lambda entry: entry[:2])
    here = text.split("\n")[line - 1][max(column - 2, 0) : column]
    if UNSET_MARK in here or any(_FILLING_NAME in each.message for _, _, each in errors):
        return
    error.line, error.column = line, column
    raise error


def locate_unfilled(text: str, filling: str, line: int, column: int) -> tuple[int, int]:
    """Return the place in a text with marks that a place in the same text without them is."""
    lines = text.split("\n")
    if not 1 <= line <= len(lines):
        return line, column
    passed = 1
    for place, char in enumerate(lines[line - 1], 1):
        passed += len(filling) if char == UNSET_MARK else 1
        if passed > column:
            return line, place
    return line, len(lines[line - 1]) + 1 + max(0, column - passed)


def mentions_mark(message: str) -> bool:
    """Return whether a message is about what stands in the place of a mark."""
    return _FILLING_NAME in message


def intersect_groups(groups: Iterable[Iterable[_T]], key: Callable[[_T], Any]) -> list[_T]:
    """Return those of the first that are, by their keys, in all others too."""
    first, *others = [list(one) for one in groups]
    keys = [{key(one) for one in other} for other in others]
    return [one for one in first if all(key(one) in each for each in keys)]
