"""The method that looks a JSONPath up in a value."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from streamer.bloblang.declare import CONNECT, Example, Param, declare
from streamer.bloblang.errors import ArgumentError, QueryError
from streamer.bloblang.golib.gval import Evaluate

_MAX_CACHED_EXPRESSIONS = (
    256  # expressions that are kept when a mapping makes them from its documents
)


@functools.lru_cache(maxsize=_MAX_CACHED_EXPRESSIONS)
def _parse_cached(expression: str) -> Evaluate:
    from streamer.bloblang.runtime.jsonpath import JsonPathParser

    try:
        return JsonPathParser(expression).parse()
    except RecursionError:
        reason = "the expression is nested too deep"
        raise ArgumentError(f"evaluating json path expression: {reason}") from None


@declare(
    "json_path",
    "Object & Array Manipulation",
    Param("expression", "string"),
    examples=(
        Example(
            'root.titles = this.json_path("$.books[*].title")',
            '{"books":[{"title":"Emma"},{"title":"Dune"}]}',
            '{"titles":["Emma","Dune"]}',
        ),
        Example(
            'root.cheap = this.json_path("$.books[?(@.price < 10)].title")',
            '{"books":[{"title":"Emma","price":8},{"title":"Dune","price":12}]}',
            '{"cheap":["Emma"]}',
        ),
        Example(
            'root.first = this.json_path("$.books[0].title")',
            '{"books":[{"title":"Emma"}]}',
            '{"first":"Emma"}',
        ),
    ),
    binds=True,
    own_errors=True,
    origin=CONNECT,
)
def json_path(expression: str) -> Callable[[Any], Any]:
    """The matches of a JSONPath: an array if it can match several values, else the value itself."""
    from streamer.bloblang.runtime import jsonpath_steps

    evaluate = _parse_cached(expression)

    def evaluate_path(value: Any) -> Any:
        jsonpath_steps.reset_budget()
        try:
            return evaluate(value, None)
        except jsonpath_steps.TooManyValuesError as e:
            raise QueryError(str(e)) from None
        except RecursionError:
            raise QueryError("the expression is nested too deep") from None

    return evaluate_path
