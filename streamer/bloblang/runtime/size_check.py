"""Sizes of values as JSON, without writing them.

A mapping that puts a value into an array twice, and does the same with that array, sixty times,
makes a small thing that is 2^60 values long when it is written. Generated code weighs what is
built from many copies of something before it is used.
"""

from __future__ import annotations

from typing import Any

from streamer.bloblang.errors import QueryError
from streamer.core.limits import current_limits


def check_json_size(value: Any) -> None:
    """Refuse a value that takes too much space as JSON.

    It takes time in proportion to the different arrays and objects in the value.

    Raises:
        QueryError: it would be about `limits.bytes` or more.
    """
    if type(value) is not list and type(value) is not dict:
        return
    most = current_limits().bytes
    sizes: dict[int, int] = {}
    pending: list[Any] = [value]
    while pending:
        item = pending[-1]
        if id(item) in sizes:
            pending.pop()
            continue
        size, unknown = _json_size(item, sizes)
        if unknown:
            pending += unknown
            continue
        if size > most:
            raise QueryError(
                f"the value takes more than the {most} bytes as JSON that limits.bytes allows"
            )
        sizes[id(item)] = size
        pending.pop()


def _json_size(item: Any, sizes: dict[int, int]) -> tuple[int, list[Any]]:
    """Return about how long an array or object is, and what is in it whose size is not known."""
    size, unknown = 2 + len(item), []
    if type(item) is dict:
        size += sum(map(len, item)) + 3 * len(item)
        item = item.values()
    for part in item:
        kind = type(part)
        if kind is list or kind is dict:
            known = sizes.get(id(part))
            if known is None:
                unknown.append(part)
            else:
                size += known
        else:
            size += len(part) + 2 if kind is str or kind is bytes else 4
    return size, unknown
