"""Sums of the counters of shards, and the error text for shards that do not agree."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import fields
from typing import Final

from streamer.window.contract import Counters

CLOCKS_DISAGREE_TEXT: Final = (
    "the shards' clocks do not agree, so this is not the state of one micro-batch: restore the "
    "checkpoint from a copy, or start from another one"
)


def sum_counters(counters: Iterable[Counters]) -> Counters:
    """Return what several shards have counted."""
    total = Counters()
    dropped: Counter[str] = Counter()
    for one in counters:
        dropped.update(one.dropped)
        for each in fields(Counters):
            if each.name != "dropped":
                value = getattr(total, each.name) + getattr(one, each.name)
                setattr(total, each.name, value)
    total.dropped = dict(dropped)
    return total
