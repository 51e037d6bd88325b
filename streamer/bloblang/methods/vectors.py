"""The method that makes vectors of arrays."""

from __future__ import annotations

from typing import Any

from streamer.bloblang.declare import CONNECT, Example, declare
from streamer.bloblang.errors import QueryError
from streamer.bloblang.golib.text import go_type
from streamer.core.value import Number
from streamer.core.vector import Vector


@declare(
    "vector",
    "Type Coercion",
    examples=(
        Example("root.v = this.v.vector()", '{"v":[1,2.5]}', '{"v":[1,2.5]}'),
        Example(
            'root = this.v.vector().catch("none")',
            '{"v":["x"]}',
            "none",
        ),
    ),
    origin=CONNECT,
)
def vector(value: Any) -> Vector:
    """An array of numbers as a vector, for columns of embeddings such as those of pgvector."""
    if not isinstance(value, list):
        raise QueryError(f"expected array value, got {go_type(value)}")
    for one in value:
        if isinstance(one, bool) or not isinstance(one, int | float | Number):
            raise QueryError(f"expected number value, got {go_type(one)}")
    return Vector(float(one) if isinstance(one, Number) else one for one in value)
