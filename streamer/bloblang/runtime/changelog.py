"""Change logs: what differs between two values, and values changed by such a log.

The rules are those of Go's r3labs/diff, where they work. Elements of arrays are matched wherever
they stand; those without a match are compared by their place.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable
from typing import Any, Final

from streamer.bloblang.errors import QueryError
from streamer.bloblang.golib.operations import NUMBER_TYPES
from streamer.bloblang.golib.text import to_text

_MISSING: Final = object()
Change = dict[str, Any]


def _mismatch_error() -> QueryError:
    return QueryError(" types do not match (cause count 0)\n")


def _comparison_kind(value: Any) -> str:
    kind = type(value)
    if kind in (dict, list, bool, bytes):
        return kind.__name__
    # A number may take the place of a text: numbers of documents are texts to Go.
    return "scalar" if kind in NUMBER_TYPES or kind is str else kind.__name__


def _make_change(kind: str, path: tuple[str, ...], before: Any, after: Any) -> Change:
    return {"Type": kind, "Path": list(path), "From": before, "To": after}


def _are_same_scalars(left: Any, right: Any) -> bool:
    if type(left) in NUMBER_TYPES and type(right) in NUMBER_TYPES:
        return to_text(left) == to_text(right)
    return type(left) is type(right) and bool(left == right)


def _compare(path: tuple[str, ...], left: Any, right: Any, changes: list[Change]) -> None:
    if left is _MISSING:
        changes.append(_make_change("create", path, None, right))
    elif right is _MISSING:
        changes.append(_make_change("delete", path, left, None))
    elif left is None or right is None:
        if left is not right:
            changes.append(_make_change("update", path, left, right))
    elif _comparison_kind(left) != _comparison_kind(right):
        raise _mismatch_error()
    elif type(left) is dict:
        _compare_objects(path, left, right, changes)
    elif type(left) is list or type(left) is bytes:
        _compare_arrays(path, left, right, changes)
    elif not _are_same_scalars(left, right):
        changes.append(_make_change("update", path, left, right))


def _compare_objects(
    path: tuple[str, ...], left: dict[str, Any], right: dict[str, Any], changes: list[Change]
) -> None:
    for key in left | right:
        _compare((*path, key), left.get(key, _MISSING), right.get(key, _MISSING), changes)


def _find_unmatched(elements: Any, others: Any) -> dict[int, Any]:
    """Return the elements, by place, that no element of the other array is equal to."""
    free = Counter(map(_comparison_key, others))
    unmatched = {}
    for place, element in enumerate(elements):
        identity = _comparison_key(element)
        if free[identity]:
            free[identity] -= 1
        else:
            unmatched[place] = element
    return unmatched


def _comparison_key(value: Any) -> Hashable:
    """Return what is the same for two values just when nothing differs between them.

    Elements of arrays may stand anywhere, as they may in `_compare`.
    """
    kind = type(value)
    if kind is dict:
        return dict, frozenset((key, _comparison_key(item)) for key, item in value.items())
    if kind is list or kind is bytes:
        return kind, frozenset(Counter(map(_comparison_key, value)).items())
    return ("number", to_text(value)) if kind in NUMBER_TYPES else (kind, value)


def _compare_arrays(path: tuple[str, ...], left: Any, right: Any, changes: list[Change]) -> None:
    if left == right and type(left) is bytes:
        return
    gone, new = _find_unmatched(left, right), _find_unmatched(right, left)
    for place in gone | new:
        inner = (*path, str(place))
        _compare(inner, gone.get(place, _MISSING), new.get(place, _MISSING), changes)


def diff(left: Any, right: Any) -> list[Change]:
    """Return what turns one value into another, in the order of the paths.

    Raises:
        QueryError: a value has another type in the other document, in r3labs/diff's words.
    """
    changes: list[Change] = []
    if right is None and type(left) is dict:
        changes = [_make_change("delete", (key,), left[key], None) for key in left]
    elif right is None:
        changes = [_make_change("delete", (), left, None)]
    else:
        _compare((), left, right, changes)
    return sorted(changes, key=lambda change: ".".join(change["Path"]))


def _invalid_index_error(place: int) -> QueryError:
    cause = "scanning for Value index (cause count 0)\n"
    return QueryError(f" Value index {place} is invalid (cause count 1)\n {cause}")


def _parse_index(step: str) -> int:
    try:
        return int(step)
    except ValueError:
        cause = f'strconv.Atoi: parsing "{step}": invalid syntax'
        reason = f"invalid index in path. {step} is not a number (cause count 1)\n{cause}"
        raise QueryError(f" {reason}") from None


class _EditedArray(list[Any]):
    """An array that is being changed: its elements keep their places until all is done.

    Attributes:
        new: elements that are put in at the end, by the place they shall have then.
    """

    def __init__(self, array: list[Any]) -> None:
        super().__init__(array)
        self.new: dict[int, Any] = dict(array.new) if isinstance(array, _EditedArray) else {}

    def finish(self) -> list[Any]:
        """Return the array without what was deleted and with what was created."""
        array = [_finish_value(item) for item in self if item is not _MISSING]
        for place in sorted(self.new):
            if self.new[place] is not _MISSING:
                array.insert(place, _finish_value(self.new[place]))
        return array


def _finish_value(value: Any) -> Any:
    if type(value) is dict:
        return {key: _finish_value(item) for key, item in value.items()}
    if type(value) is _EditedArray:
        return value.finish()
    return [_finish_value(item) for item in value] if type(value) is list else value


def _apply_change(value: Any, path: list[str], change: Change) -> Any:
    """Return a copy of a value with one change made, `path` being what is left of its path."""
    if not path:
        return value if change["Type"] == "delete" else change["To"]
    if isinstance(value, list):
        return _apply_array_change(value, path, change)
    if type(value) is not dict:
        raise _no_target_error()
    step, *rest = path
    if step in value:
        if not rest and change["Type"] == "delete":
            return {key: item for key, item in value.items() if key != step}
        return value | {step: _apply_change(value[step], rest, change)}
    if change["Type"] == "delete":
        return value
    if rest:
        raise _no_target_error()
    return value | {step: change["To"]}


def _apply_array_change(value: list[Any], path: list[str], change: Change) -> list[Any]:
    place, rest, array = _parse_index(path[0]), path[1:], _EditedArray(value)
    if not rest and change["Type"] == "create" and place >= 0:
        array.new[place] = change["To"]
        return array
    holder: Any = array if 0 <= place < len(array) else array.new
    if holder is array.new and place not in array.new:
        raise _invalid_index_error(place)
    deleted = not rest and change["Type"] == "delete"
    holder[place] = _MISSING if deleted else _apply_change(holder[place], rest, change)
    return array


def _no_target_error() -> QueryError:
    return QueryError(" reflect: reflect.Value.Set using unaddressable value (cause count 0)\n")


def patch(value: Any, changes: list[Change]) -> Any:
    """Return a value with changes made one after the other; the value itself stays as it is.

    Elements of arrays keep their places until the end, so that those in the log stay what they
    were when it was made; then deleted ones go, and created ones come in.

    Raises:
        QueryError: a path leads nowhere.
    """
    for change in changes:
        if change["Type"] in ("create", "update", "delete"):
            value = _apply_change(value, change["Path"], change)
    return _finish_value(value) if changes else value
