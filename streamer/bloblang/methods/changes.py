"""Methods that tell what changed between two values, and that apply such a change log."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from streamer.bloblang.declare import CONNECT, Example, Param, declare
from streamer.bloblang.errors import ArgumentError, QueryError
from streamer.bloblang.runtime import changelog
from streamer.bloblang.runtime.text import go_text, go_type, to_text

_CATEGORY = "Object & Array Manipulation"
_TOO_DEEP = "the value is nested too deep to be compared"


@declare(
    "diff",
    _CATEGORY,
    Param("other", "any"),
    examples=(
        Example(
            "root = this.a.diff(this.b)",
            '{"a":{"x":1,"y":2},"b":{"x":3,"y":2}}',
            '[{"From":1,"Path":["x"],"To":3,"Type":"update"}]',
        ),
        Example(
            "root = this.a.diff(this.b)",
            '{"a":{"l":[1,2]},"b":{"l":[2,1,5]}}',
            '[{"From":null,"Path":["l","2"],"To":5,"Type":"create"}]',
        ),
    ),
    own_errors=True,
    origin=CONNECT,
)
def diff(value: Any, other: Any) -> list[changelog.Change] | None:
    """What turns a value into another: creates, updates and deletes with their paths."""
    if value is None:
        return None
    try:
        return changelog.diff(value, other)
    except RecursionError:
        raise QueryError(_TOO_DEEP) from None


def _field(change: dict[str, Any], name: str) -> Any:
    if name in change:
        return change[name]
    return next((item for key, item in change.items() if key.lower() == name.lower()), None)


def _scalar(value: Any, place: str) -> str:
    if value is None:
        return ""
    if type(value) in (dict, list, bool):
        found = go_type(value, of_document=True)
        raise _undecodable(f"'{place}' expected type 'string', got unconvertible type '{found}'")
    return to_text(value)


def _undecodable(reason: str) -> ArgumentError:
    return ArgumentError(f"decoding failed due to the following error(s):\n\n{reason}")


def _no_array(place: str, value: Any) -> str:
    kind = "map" if type(value) is dict else go_type(value)
    return f"'{place}' source data must be an array or slice, got {kind}"


def _read(changes: Any) -> list[changelog.Change]:
    if changes is None:
        return []
    if type(changes) is not list:
        raise ArgumentError(_no_array("", changes))
    read = []
    for number, change in enumerate(changes):
        if type(change) is not dict:
            found = f"expected a map or struct, got {go_text(go_type(change))}"
            raise _undecodable(f"'[{number}]' {found}")
        path = _field(change, "Path")
        if path is not None and type(path) is not list:
            raise _undecodable(_no_array(f"[{number}].Path", path))
        read.append(
            {
                "Type": _scalar(_field(change, "Type"), f"[{number}].Type"),
                "Path": [
                    _scalar(step, f"[{number}].Path[{at}]") for at, step in enumerate(path or ())
                ],
                "To": _field(change, "To"),
            }
        )
    return read


@declare(
    "patch",
    _CATEGORY,
    Param("changelog", "any"),
    examples=(
        Example(
            'root = this.a.patch([{"Type":"update","Path":["x"],"To":3}])',
            '{"a":{"x":1,"y":2}}',
            '{"x":3,"y":2}',
        ),
        Example(
            "root = this.a.patch(this.a.diff(this.b)) == this.b",
            '{"a":{"x":1,"y":[1,2]},"b":{"y":[2],"z":{"k":null}}}',
            "true",
        ),
    ),
    binds=True,
    own_errors=True,
    origin=CONNECT,
)
def patch(changes: Any) -> Callable[[Any], Any]:
    """The value with the changes of a log, as `diff` gives it, made to it."""
    read = _read(changes)

    def apply(value: Any) -> Any:
        if value is None:
            return None
        try:
            return changelog.patch(value, read)
        except RecursionError:
            raise QueryError(_TOO_DEEP) from None

    return apply
