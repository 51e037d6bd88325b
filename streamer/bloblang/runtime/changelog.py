"""Change logs: what differs between two values, and values changed by such a log.

The rules are those of Go's r3labs/diff, where they work. Elements of arrays are matched wherever
they stand; those without a match are compared by their place.
"""

from __future__ import annotations

from typing import Any, Final

from streamer.bloblang.errors import QueryError
from streamer.bloblang.runtime.operations import NUMBERS
from streamer.bloblang.runtime.text import to_text

_MISSING: Final = object()
Change = dict[str, Any]


def _mismatch() -> QueryError:
    return QueryError(" types do not match (cause count 0)\n")


def _kind(value: Any) -> str:
    kind = type(value)
    if kind in (dict, list, bool, bytes):
        return kind.__name__
    # A number may take the place of a text: numbers of documents are texts to Go.
    return "scalar" if kind in NUMBERS or kind is str else kind.__name__


def _change(kind: str, path: tuple[str, ...], before: Any, after: Any) -> Change:
    return {"Type": kind, "Path": list(path), "From": before, "To": after}


def _same_scalar(left: Any, right: Any) -> bool:
    if type(left) in NUMBERS and type(right) in NUMBERS:
        return to_text(left) == to_text(right)
    return type(left) is type(right) and bool(left == right)


def _compare(path: tuple[str, ...], left: Any, right: Any, found: list[Change]) -> None:
    if left is _MISSING:
        found.append(_change("create", path, None, right))
    elif right is _MISSING:
        found.append(_change("delete", path, left, None))
    elif left is None or right is None:
        if left is not right:
            found.append(_change("update", path, left, right))
    elif _kind(left) != _kind(right):
        raise _mismatch()
    elif type(left) is dict:
        _compare_objects(path, left, right, found)
    elif type(left) is list or type(left) is bytes:
        _compare_arrays(path, left, right, found)
    elif not _same_scalar(left, right):
        found.append(_change("update", path, left, right))


def _compare_objects(
    path: tuple[str, ...], left: dict[str, Any], right: dict[str, Any], found: list[Change]
) -> None:
    for key in left | right:
        _compare((*path, key), left.get(key, _MISSING), right.get(key, _MISSING), found)


def _unmatched(elements: Any, others: Any) -> dict[int, Any]:
    """Return the elements, by place, that no element of the other array is equal to."""
    free = list(others)
    left = {}
    for place, element in enumerate(elements):
        at = next((i for i, other in enumerate(free) if _equal(element, other)), -1)
        if at < 0:
            left[place] = element
        else:
            del free[at]
    return left


def _equal(left: Any, right: Any) -> bool:
    found: list[Change] = []
    try:
        _compare((), left, right, found)
    except QueryError:
        return False
    return not found


def _compare_arrays(path: tuple[str, ...], left: Any, right: Any, found: list[Change]) -> None:
    if left == right and type(left) is bytes:
        return
    gone, new = _unmatched(left, right), _unmatched(right, left)
    for place in gone | new:
        inner = (*path, str(place))
        _compare(inner, gone.get(place, _MISSING), new.get(place, _MISSING), found)


def diff(left: Any, right: Any) -> list[Change]:
    """Return what turns one value into another, in the order of the paths.

    Raises:
        QueryError: a value has another type in the other document, in r3labs/diff's words.
    """
    found: list[Change] = []
    if right is None and type(left) is dict:
        found = [_change("delete", (key,), left[key], None) for key in left]
    elif right is None:
        found = [_change("delete", (), left, None)]
    else:
        _compare((), left, right, found)
    return sorted(found, key=lambda change: ".".join(change["Path"]))


def _invalid_index(place: int) -> QueryError:
    cause = "scanning for Value index (cause count 0)\n"
    return QueryError(f" Value index {place} is invalid (cause count 1)\n {cause}")


def _place(step: str) -> int:
    try:
        return int(step)
    except ValueError:
        cause = f'strconv.Atoi: parsing "{step}": invalid syntax'
        reason = f"invalid index in path. {step} is not a number (cause count 1)\n{cause}"
        raise QueryError(f" {reason}") from None


def _inner(value: Any, path: list[str], depth: int, change: Change) -> Any:
    """Return a copy of a value with one change made; arrays get a hole where an element goes."""
    if depth == len(path):
        return value if change["Type"] == "delete" else change["To"]
    step, last = path[depth], depth + 1 == len(path)
    creates = change["Type"] in ("create", "update")
    if type(value) is dict:
        if step not in value and not (last and creates):
            if last or not creates:
                return value
            raise _no_target()
        if last and change["Type"] == "delete":
            return {key: item for key, item in value.items() if key != step}
        return value | {step: _inner(value.get(step), path, depth + 1, change)}
    if type(value) is not list:
        raise _no_target()
    return _in_array(value, path, depth, change)


def _in_array(value: list[Any], path: list[str], depth: int, change: Change) -> list[Any]:
    place, last = _place(path[depth]), depth + 1 == len(path)
    if last and change["Type"] == "create" and place >= len(value):
        return [*value, change["To"]]
    if not 0 <= place < len(value):
        raise _invalid_index(place)
    hole = last and change["Type"] == "delete"
    new = _MISSING if hole else _inner(value[place], path, depth + 1, change)
    return [*value[:place], new, *value[place + 1 :]]


def _no_target() -> QueryError:
    return QueryError(" reflect: reflect.Value.Set using unaddressable value (cause count 0)\n")


def _closed(value: Any) -> Any:
    """Return a value with the holes of its arrays closed."""
    if type(value) is dict:
        return {key: _closed(item) for key, item in value.items()}
    if type(value) is list:
        return [_closed(item) for item in value if item is not _MISSING]
    return value


def patch(value: Any, changes: list[Change]) -> Any:
    """Return a value with changes made one after the other; the value itself stays as it is.

    Deleted elements of arrays count as present until the end, so that places stay what they were
    when the log was made.

    Raises:
        QueryError: a path leads nowhere.
    """
    deletes = False
    for change in changes:
        if change["Type"] in ("create", "update", "delete"):
            value = _inner(value, change["Path"], 0, change)
            deletes = deletes or change["Type"] == "delete"
    return _closed(value) if deletes else value
