"""What is told of two long lists that should be the same."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

_LONG: Final = 200
_SHOWN: Final = 5
_WIDE: Final = 100
"""Characters of an item that are shown."""


def where_they_part(left: Sequence[object], right: Sequence[object]) -> list[str] | None:
    """Return lines for a failed comparison; None when both are short: pytest shows them whole."""
    if max(len(left), len(right)) <= _LONG:
        return None
    pairs = enumerate(zip(left, right, strict=False))
    same = next((at for at, (one, other) in pairs if one != other), min(len(left), len(right)))
    found = [f"{len(left):,} items == {len(right):,} items", f"the first {same:,} are the same"]
    for name, items in (("left", left), ("right", right)):
        shown = ", ".join(repr(item)[:_WIDE] for item in items[same : same + _SHOWN])
        found.append(f"then {name} has {shown or 'no more'}")
    return found
