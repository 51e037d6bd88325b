"""Methods that tell what changed between two values, and that apply such a change log."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from streamer.bloblang.declare import CONNECT, Example, Param, declare
from streamer.bloblang.errors import ArgumentError, QueryError
from streamer.bloblang.golib.text import go_text, go_type, to_text
from streamer.bloblang.runtime import changelog

_CATEGORY = "Object & Array Manipulation"
_TOO_DEEP_TEXT = "the value is nested too deep to be compared"


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
    """The changes that turn a value into another: creates, updates and deletes with their paths."""
    if value is None:
        return None
    try:
        return changelog.diff(value, other)
    except RecursionError:
        raise QueryError(_TOO_DEEP_TEXT) from None


def _get_field(change: dict[str, Any], name: str) -> Any:
    if name in change:
        return change[name]
    return next((item for key, item in change.items() if key.lower() == name.lower()), None)


def _decode_scalar(value: Any, place: str) -> str:
    if value is None:
        return ""
    if type(value) in (dict, list, bool):
        kind = go_type(value, of_document=True)
        raise _decoding_error(f"'{place}' expected type 'string', got unconvertible type '{kind}'")
    return to_text(value)


def _decoding_error(reason: str) -> ArgumentError:
    return ArgumentError(f"decoding failed due to the following error(s):\n\n{reason}")


def _describe_non_array(place: str, value: Any) -> str:
    kind = "map" if type(value) is dict else go_type(value)
    return f"'{place}' source data must be an array or slice, got {kind}"


def _decode_changes(changes: Any) -> list[changelog.Change]:
    if changes is None:
        return []
    if type(changes) is not list:
        raise ArgumentError(_describe_non_array("", changes))
    decoded = []
    for number, change in enumerate(changes):
        if type(change) is not dict:
            expected = f"expected a map or struct, got {go_text(go_type(change))}"
            raise _decoding_error(f"'[{number}]' {expected}")
        path = _get_field(change, "Path")
        if path is not None and type(path) is not list:
            raise _decoding_error(_describe_non_array(f"[{number}].Path", path))
        decoded.append(
            {
                "Type": _decode_scalar(_get_field(change, "Type"), f"[{number}].Type"),
                "Path": [
                    _decode_scalar(step, f"[{number}].Path[{at}]")
                    for at, step in enumerate(path or ())
                ],
                "To": _get_field(change, "To"),
            }
        )
    return decoded


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
    """The value with the changes of a result of `diff` applied."""
    decoded = _decode_changes(changes)

    def apply(value: Any) -> Any:
        if value is None:
            return None
        try:
            return changelog.patch(value, decoded)
        except RecursionError:
            raise QueryError(_TOO_DEEP_TEXT) from None

    return apply
