"""Methods on points in time and durations."""

from __future__ import annotations

from typing import Any

from streamer.bloblang.declare import Example, declare
from streamer.bloblang.errors import QueryError
from streamer.bloblang.runtime.convert import text_of

_CATEGORY = "Timestamp Manipulation"


@declare(
    "parse_duration",
    _CATEGORY,
    "A duration as Go writes it (`1h30m`), in nanoseconds.",
    examples=(Example("root = this.a.parse_duration()", '{"a":"50us"}', "50000"),),
    own_errors=True,
)
def parse_duration(value: Any) -> int:
    from streamer.durations import parse_duration as read

    try:
        return int(read(text_of(value)))
    except ValueError as e:
        raise QueryError(str(e)) from None
