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
from streamer.value import DELETED, NOTHING, bounded_int, type_name

MISSING: Final = object()
_INDEX: Final = re.compile(r"[+-]?[0-9]+")


def dot_path(path: Sequence[str]) -> str:
    """Write path segments as one dot path, `~` and `.` inside a segment escaped."""
    return ".".join(part.replace("~", "~0").replace(".", "~1") for part in path)


def split_path(text: str) -> tuple[str, ...]:
    """Split a dot path into its segments; the inverse of `dot_path`."""
    if "~" not in text:
        return tuple(text.split("."))
    return tuple(part.replace("~1", ".").replace("~0", "~") for part in text.split("."))


def find(value: Any, path: Sequence[str]) -> Any:
    """Return what a path leads to, or `MISSING`."""
    for at, segment in enumerate(path):
        if type(value) is dict:
            value = value.get(segment, MISSING)
            if value is MISSING:
                return MISSING
        elif type(value) is list:
            if segment == "*":
                return _every(value, path[at + 1 :])
            index = bounded_int(segment) if _INDEX.fullmatch(segment) else -1
            if not 0 <= index < len(value):
                return MISSING
            value = value[index]
        else:
            return MISSING
    return value


def _every(values: list[Any], path: Sequence[str]) -> Any:
    found = [find(value, path) for value in values] if path else values
    return [value for value in found if value is not MISSING] or MISSING


def search(value: Any, path: Sequence[str]) -> Any:
    """Return what a path leads to; null when nothing is there."""
    found = find(value, path)
    return None if found is MISSING else found


def step(value: Any, segment: str) -> Any:
    """Return what one segment leads to; null when nothing is there."""
    return search(value, (segment,))


def getter(value: Any) -> Callable[[str], Any]:
    """Return `step` for a value at hand."""
    return partial(step, value)


def assign(root: Any, path: Sequence[str], value: Any) -> Any:
    """Return the root with the value at the path; what is changed on the way is copied first.

    Raises:
        QueryError: something on the way is neither object nor array, or the index is not there.
    """
    if root is NOTHING or root is None:
        root = {}
    if type(root) is list and path[0] == "-":
        return [*root, _fresh(path[1:], value)]
    return _assign(root, root, path, 0, value)


def _fresh(path: Sequence[str], value: Any) -> Any:
    for segment in reversed(path):
        value = {segment: value}
    return value


def _assign(root: Any, target: Any, path: Sequence[str], at: int, value: Any) -> Any:
    if at == len(path):
        return value
    segment = path[at]
    if type(target) is dict:
        child = target.get(segment)
        if child is None:
            return {**target, segment: _fresh(path[at + 1 :], value)}
        return {**target, segment: _assign(root, child, path, at + 1, value)}
    if type(target) is list:
        if segment == "-":
            return [*target, _fresh(path[at + 1 :], value)]
        index = _index(target, path, at)
        copy = list(target)
        if target[index] is None and at + 1 < len(path):
            raise QueryError(
                f"unable to set target path {dot_path(path)}: "
                f"failed to resolve path segment '{at}': field '{segment}' was not found"
            )
        copy[index] = _assign(root, target[index], path, at + 1, value)
        return copy
    raise _collision(root, path)


def _collision(root: Any, path: Sequence[str]) -> QueryError:
    """Blame the first thing on the way that is no object, be it an array that would have done."""
    end = 0
    while type(root) is dict:
        root = root.get(path[end])
        end += 1
    where = dot_path(path[:end]) if end else "the root"
    return QueryError(
        f"unable to set target path {dot_path(path)} as the value of {where} "
        f"was a non-object type ({type_name(root)})"
    )


def _index(target: list[Any], path: Sequence[str], at: int) -> int:
    segment = path[at]
    if not _INDEX.fullmatch(segment):
        reason = (
            f"found array but segment value '{segment}' could not be parsed into array index: "
            f'strconv.Atoi: parsing "{segment}": invalid syntax'
        )
    elif bounded_int(segment) < 0:
        reason = f"found array but index '{segment}' is invalid"
    elif bounded_int(segment) >= len(target):
        reason = f"found array but index '{segment}' exceeded target array size of '{len(target)}'"
    else:
        return bounded_int(segment)
    raise QueryError(
        f"unable to set target path {dot_path(path)}: "
        f"failed to resolve path segment '{at}': {reason}"
    )


def remove(root: Any, path: Sequence[str]) -> Any:
    """Return the root without what is at the path.

    Nothing happens when it is not there, nor with an element of a root that is an array.
    """
    if root is NOTHING or root is None:
        return {}
    return root if type(root) is list and len(path) == 1 else _remove(root, path)


def _remove(target: Any, path: Sequence[str]) -> Any:
    head, *rest = path
    if type(target) is dict:
        if head not in target:
            return target
        if not rest:
            return {key: value for key, value in target.items() if key != head}
        return {**target, head: _remove(target[head], rest)}
    if type(target) is list and _INDEX.fullmatch(head) and 0 <= bounded_int(head) < len(target):
        index = bounded_int(head)
        if not rest:
            return target[:index] + target[index + 1 :]
        return [*target[:index], _remove(target[index], rest), *target[index + 1 :]]
    return target


def own(root: Any) -> Any:
    """Return a root that may be changed in place: a copy of an object, or a new one for nothing."""
    if type(root) is dict:
        return root.copy()
    return {} if root is NOTHING or root is None else root


def put(root: Any, path: Sequence[str], value: Any) -> Any:
    """Assign or, for `DELETED`, remove; `NOTHING` leaves the root as it is."""
    if value is NOTHING:
        return root
    return remove(root, path) if value is DELETED else assign(root, path, value)
