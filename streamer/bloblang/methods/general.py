"""Methods on any value: fallbacks, perspectives, named maps, paths."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NoReturn

from streamer.bloblang.declare import Example, Param, declare
from streamer.bloblang.errors import QueryError, TypeMismatch
from streamer.bloblang.runtime.paths import MISSING, find_or_null, find_value, split_path
from streamer.core.value import type_name

_GENERAL = "General"
_COERCION = "Type Coercion"
_OBJECTS = "Object & Array Manipulation"


def _refuse_direct_call(*_: Any) -> NoReturn:
    raise AssertionError("the compiler writes this method out by itself")


@declare(
    "catch",
    _GENERAL,
    Param("fallback", "query", scalars=True),
    examples=(
        Example("root.age = this.age.number().catch(null)", '{"age":"n/a"}', '{"age":null}'),
        Example(
            'root.why = this.id.not_null().catch(e -> "no order: " + e)',
            "{}",
            '{"why":"no order: field `this.id`: value is null"}',
        ),
    ),
)
def catch(*_: Any) -> Any:
    """The target or, if it fails, the argument, in which `this` is the error's text."""
    _refuse_direct_call()


@declare(
    "or",
    _GENERAL,
    Param("fallback", "query", scalars=True),
    examples=(
        Example('root.city = this.city.or("unknown")', '{"name":"Ada"}', '{"city":"unknown"}'),
    ),
)
def or_(*_: Any) -> Any:
    """The target or, when it fails or is null, the argument."""
    _refuse_direct_call()


@declare(
    "from",
    _GENERAL,
    Param("index", "integer"),
    examples=(
        Example('root.first = json("page").from(0)', '{"page":"start"}', '{"first":"start"}'),
    ),
    uses=("batch",),
)
def from_(*_: Any) -> Any:
    """Evaluates functions such as `json`, `content`, `meta` for another message of the batch."""
    _refuse_direct_call()


@declare(
    "from_all",
    _GENERAL,
    examples=(
        Example('root.total = json("price").from_all().sum()', '{"price":4}', '{"total":4}'),
    ),
    uses=("batch",),
)
def from_all(*_: Any) -> Any:
    """An array of `json`, `content`, `meta` or a similar function for each message of the batch."""
    _refuse_direct_call()


@declare(
    "map",
    _GENERAL,
    Param("query", "query"),
    examples=(
        Example(
            'root.label = this.sensor.map("%s in %s".format(this.id, this.room))',
            '{"sensor":{"id":"s1","room":"hall"}}',
            '{"label":"s1 in hall"}',
        ),
    ),
)
def map_(*_: Any) -> Any:
    """Evaluates a query with `this` set to the target."""
    _refuse_direct_call()


@declare(
    "not",
    _GENERAL,
    examples=(Example("root.idle = this.running.not()", '{"running":false}', '{"idle":true}'),),
)
def not_(*_: Any) -> Any:
    """The opposite of a boolean."""
    _refuse_direct_call()


@declare(
    "apply",
    _GENERAL,
    Param("mapping", "string"),
    examples=(
        Example(
            'map address {\n  root = "%s, %s".format(this.city, this.country)\n}\n'
            'root.from = this.from.apply("address")',
            '{"from":{"city":"Lyon","country":"FR"}}',
            '{"from":"Lyon, FR"}',
        ),
    ),
)
def apply(maps: Mapping[str, Callable[..., Any]], name: str) -> Callable[..., Any]:
    """Applies a named map to the target."""
    if name not in maps:
        raise QueryError(f"map {name} was not found")
    return maps[name]


@declare(
    "get",
    _OBJECTS,
    Param("path", "string"),
    examples=(
        Example(
            "root.value = this.readings.get(this.sensor)",
            '{"sensor":"s1","readings":{"s1":21,"s2":19}}',
            '{"value":21}',
        ),
    ),
)
def get(value: Any, path: str) -> Any:
    """The value at a dot path; null if there is none."""
    return find_or_null(value, split_path(path))


@declare(
    "exists",
    _OBJECTS,
    Param("path", "string"),
    examples=(
        Example(
            'root.has_address = this.exists("user.address")',
            '{"user":{"name":"Ada"}}',
            '{"has_address":false}',
        ),
        Example(
            'root.has_address = this.exists("user.address")',
            '{"user":{"address":null}}',
            '{"has_address":true}',
        ),
    ),
)
def exists(value: Any, path: str) -> bool:
    """True if there is a value at a dot path, including null."""
    return find_value(value, split_path(path)) is not MISSING


@declare(
    "type",
    _COERCION,
    examples=(
        Example(
            "root.types = this.values().map_each(v -> v.type())",
            '{"a":1.5,"b":"x","c":null}',
            '{"types":["number","string","null"]}',
        ),
    ),
)
def type_(value: Any) -> str:
    """The name of the value's type."""
    return type_name(value)


@declare(
    "not_null",
    _COERCION,
    examples=(
        Example(
            "root.id = this.id.not_null().catch(e -> e)",
            '{"name":"Ada"}',
            '{"id":"field `this.id`: value is null"}',
        ),
    ),
)
def not_null(value: Any) -> Any:
    """The target, which must not be null."""
    if value is None:
        raise QueryError("value is null")
    return value


@declare(
    "not_empty",
    _COERCION,
    examples=(
        Example(
            'root.name = this.name.not_empty().catch("anonymous")',
            '{"name":""}',
            '{"name":"anonymous"}',
        ),
    ),
)
def not_empty(value: Any) -> Any:
    """The target, a text, array or object that must not be empty."""
    if type(value) not in (str, list, dict):
        raise TypeMismatch(value, "string", "array", "object")
    if not value:
        raise QueryError(f"{type_name(value)} value is empty")
    return value
