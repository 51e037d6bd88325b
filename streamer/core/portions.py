"""Cut a stream of items into lists of a bounded size, between two items."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator
from typing import TypeVar

T = TypeVar("T")


def cut_portions(
    items: Iterable[T],
    max_size: int,
    size_of: Callable[[T], int] = len,  # type: ignore[assignment]
    max_items: int = sys.maxsize,
) -> Iterator[list[T]]:
    """Return lists of items, in order; only one item alone is larger than a list may be.

    Args:
        items: what is cut, read as it is asked for.
        max_size: the size at which a list ends.
        size_of: tells the size of an item; its length when it is left out.
        max_items: the number of items at which a list ends.
    """
    portion: list[T] = []
    size = 0
    for item in items:
        portion.append(item)
        size += size_of(item)
        if size >= max_size or len(portion) >= max_items:
            yield portion
            portion, size = [], 0
    if portion:
        yield portion
