"""Methods on objects."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from streamer.bloblang.declare import Example, Param, declare
from streamer.bloblang.errors import ArgumentError, QueryError, TypeMismatch
from streamer.bloblang.golib.convert import text_of
from streamer.bloblang.runtime.paths import assign as assign_path
from streamer.bloblang.runtime.paths import find_or_null, split_path
from streamer.core.value import NOTHING, type_name

_CATEGORY = "Object & Array Manipulation"
Path = Sequence[str]


def _require_object(value: Any) -> dict[str, Any]:
    if type(value) is dict:
        return value
    raise TypeMismatch(value, "object")


@declare(
    "keys",
    _CATEGORY,
    examples=(
        Example(
            "root.sensors = this.readings.keys()",
            '{"readings":{"s2":19,"s1":21}}',
            '{"sensors":["s1","s2"]}',
        ),
    ),
)
def keys(value: Any) -> list[str]:
    """The object's keys, sorted."""
    return sorted(_require_object(value))


@declare(
    "values",
    _CATEGORY,
    examples=(
        Example(
            "root.celsius = this.readings.values()",
            '{"readings":{"s1":21,"s2":19}}',
            '{"celsius":[21,19]}',
        ),
    ),
)
def values(value: Any) -> list[Any]:
    # Benthos gives them in no order; ours is the same every time.
    """The object's values, in the order of its keys."""
    return [item for _, item in sorted(_require_object(value).items())]


@declare(
    "key_values",
    _CATEGORY,
    examples=(
        Example(
            "root = this.stock.key_values()",
            '{"stock":{"tea":4,"cups":9}}',
            '[{"key":"cups","value":9},{"key":"tea","value":4}]',
        ),
    ),
)
def key_values(value: Any) -> list[Any]:
    """The object's entries as objects with `key` and `value`."""
    return [{"key": key, "value": item} for key, item in sorted(_require_object(value).items())]


@declare(
    "length",
    _CATEGORY,
    examples=(
        Example("root.items = this.cart.length()", '{"cart":["tea","cup"]}', '{"items":2}'),
        Example("root.bytes = this.name.length()", '{"name":"Zoë"}', '{"bytes":4}'),
    ),
)
def length(value: Any) -> int:
    """The number of elements, of entries, or of a text's bytes."""
    if type(value) is str:
        return len(value) if value.isascii() else len(value.encode("utf-8", "surrogateescape"))
    if type(value) in (bytes, list, dict):
        return len(value)
    raise TypeMismatch(value, "string", "array", "object")


@declare(
    "map_each_key",
    _CATEGORY,
    Param("query", "query"),
    examples=(
        Example(
            "root = this.map_each_key(key -> key.lowercase())",
            '{"Name":"Ada","City":"London"}',
            '{"city":"London","name":"Ada"}',
        ),
    ),
)
def map_each_key(value: Any, query: Callable[[Any], Any]) -> dict[str, Any]:
    """The object with the result of a query for each key."""
    result = {}
    for key, item in _require_object(value).items():
        new = query(key)
        if new is NOTHING:
            new = key
        elif type(new) is not str:
            mismatch = TypeMismatch(new, "string")
            raise QueryError(f"unexpected result from key mapping: {mismatch}")
        result[new] = item
    return result


def _merge_objects(left: Any, right: Any, collide: Callable[[Any, Any], Any]) -> Any:
    if type(left) is not dict or type(right) is not dict:
        return collide(left, right)
    result = dict(left)
    for key, item in right.items():
        if key not in result:
            result[key] = item
        elif type(item) is dict and type(result[key]) is dict:
            result[key] = _merge_objects(result[key], item, collide)
        else:
            result[key] = collide(result[key], item)
    return result


def _keep_both(left: Any, right: Any) -> Any:
    """Return both values of a key in one array."""
    items = left if type(left) is list else [left]
    return [*items, *right] if type(right) is list else [*items, right]


def _combine(value: Any, other: Any, collide: Callable[[Any, Any], Any]) -> Any:
    if type(value) is list:
        return [*value, *other] if type(other) is list else [*value, other]
    if type(value) is not dict:
        raise TypeMismatch(value, "object", "array")
    if type(other) is not dict:
        return value
    return _merge_objects(value, other, collide)


@declare(
    "merge",
    _CATEGORY,
    Param("with", "any"),
    examples=(
        Example(
            "root = this.old.merge(this.new)",
            '{"old":{"name":"Ada","tags":["a"]},"new":{"age":36,"tags":["b"]}}',
            '{"age":36,"name":"Ada","tags":["a","b"]}',
        ),
    ),
)
def merge(value: Any, other: Any) -> Any:
    """Two objects in one, with both values if keys collide; or two arrays."""
    return _combine(value, other, _keep_both)


@declare(
    "assign",
    _CATEGORY,
    Param("with", "any"),
    examples=(
        Example(
            "root = this.defaults.assign(this.settings)",
            '{"defaults":{"unit":"C","limit":90},"settings":{"limit":75}}',
            '{"limit":75,"unit":"C"}',
        ),
    ),
)
def assign(value: Any, other: Any) -> Any:
    """Two objects in one, with the second value if keys collide; or two arrays."""
    return _combine(value, other, lambda left, right: right)


@declare(
    "squash",
    _CATEGORY,
    examples=(
        Example("root = this.squash()", '[{"name":"Ada"},{"age":36}]', '{"age":36,"name":"Ada"}'),
    ),
    own_errors=True,
)
def squash(value: Any) -> Any:
    """The objects of an array merged into one."""
    if type(value) is not list:
        raise TypeMismatch(value, "array")
    result: Any = {}
    for item in value:
        if type(item) is dict:
            result = _merge_objects(result, item, _keep_both)
    return result


def _parse_paths(args: Sequence[Any]) -> list[Path]:
    paths: list[Path] = []
    for i, arg in enumerate(args):
        if type(arg) not in (str, bytes):
            raise ArgumentError(f"argument {i}: {TypeMismatch(arg, 'string')}")
        paths.append(split_path(text_of(arg)))
    return paths


def _path_tails(paths: Sequence[Path], key: str) -> list[Path]:
    return [path[1:] for path in paths if path[0] == key]


def _remove_paths(value: dict[str, Any], paths: Sequence[Path]) -> dict[str, Any]:
    heads = {path[0] for path in paths}
    result = {}
    for key, item in value.items():
        if key in heads:
            tails = _path_tails(paths, key)
            if () in tails:
                continue
            if type(item) is dict:
                item = _remove_paths(item, tails)
        result[key] = item
    return result


@declare(
    "without",
    _CATEGORY,
    examples=(
        Example(
            'root = this.without("user.password")',
            '{"id":7,"user":{"name":"Ada","password":"x"}}',
            '{"id":7,"user":{"name":"Ada"}}',
        ),
    ),
    variadic=True,
    binds=True,
)
def without(*args: Any) -> Callable[[Any], Any]:
    """The object without the values at some dot paths."""
    paths = _parse_paths(args)
    if all(len(path) == 1 for path in paths):
        heads = frozenset(path[0] for path in paths)
        return lambda value: {k: v for k, v in _require_object(value).items() if k not in heads}
    return lambda value: _remove_paths(_require_object(value), paths)


def _keep_paths(value: dict[str, Any], paths: Sequence[Path]) -> dict[str, Any]:
    heads = {path[0] for path in paths}
    result = {}
    for key, item in value.items():
        if key in heads:
            tails = [tail for tail in _path_tails(paths, key) if tail]
            result[key] = _keep_paths(item, tails) if tails and type(item) is dict else item
    return result


@declare(
    "with",
    _CATEGORY,
    examples=(
        Example(
            'root = this.with("id", "user.name")',
            '{"id":7,"user":{"name":"Ada","password":"x"}}',
            '{"id":7,"user":{"name":"Ada"}}',
        ),
    ),
    variadic=True,
    binds=True,
    own_errors=True,
)
def with_(*args: Any) -> Callable[[Any], Any]:
    """The object with only the values at some dot paths."""
    paths = _parse_paths(args)
    return lambda value: _keep_paths(_require_object(value), paths)


@declare(
    "explode",
    _CATEGORY,
    Param("path", "string"),
    examples=(
        Example(
            'root = this.explode("items")',
            '{"order":7,"items":["tea","cup"]}',
            '[{"items":"tea","order":7},{"items":"cup","order":7}]',
        ),
    ),
)
def explode(value: Any, path: str) -> Any:
    """A copy of the object for each element of an array at a dot path, with it in its place."""
    segments = split_path(path)
    target = find_or_null(_require_object(value), segments)
    rest = _remove_paths(value, [segments])
    if type(target) is list:
        return [assign_path(rest, segments, item) for item in target]
    if type(target) is dict:
        return {key: assign_path(rest, segments, item) for key, item in target.items()}
    raise QueryError(f"expected array or object value at path '{path}', found: {type_name(target)}")


@declare(
    "collapse",
    _CATEGORY,
    Param("include_empty", "bool", default=False),
    examples=(
        Example(
            "root = this.collapse()",
            '{"order":{"id":7,"lines":[{"sku":"a1"}]}}',
            '{"order.id":7,"order.lines.0.sku":"a1"}',
        ),
    ),
)
def collapse(value: Any, include_empty: bool) -> dict[str, Any]:
    """The structure as one flat object whose keys are dot paths."""
    if type(value) not in (dict, list):
        raise QueryError("not an object or array")
    result: dict[str, Any] = {}
    _collapse(value, "", include_empty, result)
    return result


def _collapse(value: Any, path: str, include_empty: bool, result: dict[str, Any]) -> None:
    if type(value) is dict:
        items = [(str(key), item) for key, item in value.items()]
    elif type(value) is list:
        items = [(str(i), item) for i, item in enumerate(value)]
    else:
        result[path] = value
        return
    if not items and include_empty:
        result[path] = value
    for key, item in items:
        _collapse(item, f"{path}.{key}" if path else key, include_empty, result)
