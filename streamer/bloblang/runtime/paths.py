"""Reading and writing by path, with the rules of the gabs library that Benthos uses.

A segment names a key of an object, or an index of an array; `*` takes every element of an array
when reading, `-` appends to it when writing. What is not there reads as null.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Final

from streamer.bloblang.errors import QueryError
from streamer.core.value import DELETED, NOTHING, parse_bounded_int, type_name

MISSING: Final = object()
_INDEX: Final = re.compile(r"[+-]?[0-9]+")


def join_path(path: Sequence[str]) -> str:
    """Write path segments as one dot path, `~` and `.` inside a segment escaped."""
    return ".".join(part.replace("~", "~0").replace(".", "~1") for part in path)


def split_path(text: str) -> tuple[str, ...]:
    """Split a dot path into its segments; the inverse of `join_path`."""
    if "~" not in text:
        return tuple(text.split("."))
    return tuple(part.replace("~1", ".").replace("~0", "~") for part in text.split("."))


def find_value(value: Any, path: Sequence[str]) -> Any:
    """Return what a path leads to, or `MISSING`."""
    for at, segment in enumerate(path):
        if type(value) is dict:
            value = value.get(segment, MISSING)
            if value is MISSING:
                return MISSING
        elif type(value) is list:
            if segment == "*":
                return _find_every(value, path[at + 1 :])
            index = parse_bounded_int(segment) if _INDEX.fullmatch(segment) else -1
            if not 0 <= index < len(value):
                return MISSING
            value = value[index]
        else:
            return MISSING
    return value


def _find_every(values: list[Any], path: Sequence[str]) -> Any:
    results = [find_value(value, path) for value in values] if path else values
    return [value for value in results if value is not MISSING] or MISSING


def find_or_null(value: Any, path: Sequence[str]) -> Any:
    """Return what a path leads to; null when nothing is there."""
    result = find_value(value, path)
    return None if result is MISSING else result


def find_step(value: Any, segment: str) -> Any:
    """Return what one segment leads to; null when nothing is there."""
    return find_or_null(value, (segment,))


def make_getter(value: Any) -> Callable[[str], Any]:
    """Return `find_step` for a value at hand."""
    return partial(find_step, value)


def assign(root: Any, path: Sequence[str], value: Any) -> Any:
    """Return the root with the value at the path; what is changed on the way is copied first.

    Raises:
        QueryError: something on the way is neither object nor array, or the index is not there.
    """
    if root is NOTHING or root is None:
        root = {}
    if type(root) is list and path[0] == "-":
        return [*root, _nest_value(path[1:], value)]
    return _assign_at(root, root, path, 0, value)


def _nest_value(path: Sequence[str], value: Any) -> Any:
    for segment in reversed(path):
        value = {segment: value}
    return value


def _assign_at(root: Any, target: Any, path: Sequence[str], at: int, value: Any) -> Any:
    if at == len(path):
        return value
    segment = path[at]
    if type(target) is dict:
        child = target.get(segment)
        if child is None:
            return {**target, segment: _nest_value(path[at + 1 :], value)}
        return {**target, segment: _assign_at(root, child, path, at + 1, value)}
    if type(target) is list:
        if segment == "-":
            return [*target, _nest_value(path[at + 1 :], value)]
        index = _parse_index(target, path, at)
        copy = list(target)
        if target[index] is None and at + 1 < len(path):
            raise QueryError(
                f"unable to set target path {join_path(path)}: "
                f"failed to resolve path segment '{at}': field '{segment}' was not found"
            )
        copy[index] = _assign_at(root, target[index], path, at + 1, value)
        return copy
    raise _collision_error(root, path)


def _collision_error(root: Any, path: Sequence[str]) -> QueryError:
    """Blame the first thing on the way that is no object, be it an array that would have done."""
    end = 0
    while type(root) is dict:
        root = root.get(path[end])
        end += 1
    where = join_path(path[:end]) if end else "the root"
    return QueryError(
        f"unable to set target path {join_path(path)} as the value of {where} "
        f"was a non-object type ({type_name(root)})"
    )


def _parse_index(target: list[Any], path: Sequence[str], at: int) -> int:
    segment = path[at]
    if not _INDEX.fullmatch(segment):
        reason = (
            f"found array but segment value '{segment}' could not be parsed into array index: "
            f'strconv.Atoi: parsing "{segment}": invalid syntax'
        )
    elif parse_bounded_int(segment) < 0:
        reason = f"found array but index '{segment}' is invalid"
    elif parse_bounded_int(segment) >= len(target):
        reason = f"found array but index '{segment}' exceeded target array size of '{len(target)}'"
    else:
        return parse_bounded_int(segment)
    raise QueryError(
        f"unable to set target path {join_path(path)}: "
        f"failed to resolve path segment '{at}': {reason}"
    )


def remove(root: Any, path: Sequence[str]) -> Any:
    """Return the root without what is at the path.

    Nothing happens when it is not there, nor with an element of a root that is an array.
    """
    if root is NOTHING or root is None:
        return {}
    return root if type(root) is list and len(path) == 1 else _remove_at(root, path)


def _remove_at(target: Any, path: Sequence[str]) -> Any:
    head, *rest = path
    if type(target) is dict:
        if head not in target:
            return target
        if not rest:
            return {key: value for key, value in target.items() if key != head}
        return {**target, head: _remove_at(target[head], rest)}
    if (
        type(target) is list
        and _INDEX.fullmatch(head)
        and 0 <= parse_bounded_int(head) < len(target)
    ):
        index = parse_bounded_int(head)
        if not rest:
            return target[:index] + target[index + 1 :]
        return [*target[:index], _remove_at(target[index], rest), *target[index + 1 :]]
    return target


def copy_root(root: Any) -> Any:
    """Return a root that may be changed in place: a copy of an object, or a new one for nothing."""
    if type(root) is dict:
        return root.copy()
    return {} if root is NOTHING or root is None else root


def put_value(root: Any, path: Sequence[str], value: Any) -> Any:
    """Assign or, for `DELETED`, remove; `NOTHING` leaves the root as it is."""
    if value is NOTHING:
        return root
    return remove(root, path) if value is DELETED else assign(root, path, value)
