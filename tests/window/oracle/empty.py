"""Tumbling and hopping windows of which those without messages are emitted too.

By definition, of all messages: the clock says no more than how far they go.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from tests.window.oracle.events import Event
from tests.window.oracle.hopping import Hopping


@dataclass(frozen=True, kw_only=True)
class Empty:
    """Which windows without messages there are: see the settings of this name."""

    duration: int
    fill: str = "none"
    seen: bool = True
    listed: tuple[str, ...] = ()


Found = tuple[str, int, int, tuple[str, ...], str | None]
"""A window: key, start, end, its messages by arrival, and for one without what stands in."""


def windows(rules: Hopping, empty: Empty, events: Sequence[Event], clock: int) -> set[Found]:
    """All windows that come out of messages none of which is late, once the input has ended.

    Args:
        rules: the windows.
        empty: those without messages.
        events: the messages, in order of arrival.
        clock: the largest event time.
    """
    by_key: dict[str, list[tuple[int, int, str]]] = defaultdict(list)
    for number, event in enumerate(events):
        assert isinstance(event.time, int)
        by_key[str(event.key)].append((event.time, number, event.id))
    found: set[Found] = set()
    first = events[0].time if events else None
    for key in {*by_key, *empty.listed}:
        mine = by_key.get(key, [])
        full = {
            start: [one for one in mine if start <= one[0] < start + rules.size]
            for time, _, _ in mine
            for start in starts(rules, time)
        }
        for start, inside in full.items():
            ids = tuple(name for _, _, name in sorted(inside, key=lambda one: one[1]))
            found.add((key, start, start + rules.size, ids, None))
        if key in empty.listed or empty.seen:
            begun = [max(starts(rules, first))] if key in empty.listed and first is not None else []
            found |= set(_empty_ones(rules, empty, key, full, clock, begun))
    return found


def starts(rules: Hopping, time: int | str | None) -> list[int]:
    """The starts of the windows that hold a time."""
    assert isinstance(time, int)
    last = time - (time - rules.offset) % rules.hop
    return [s for s in range(last, last - rules.size, -rules.hop) if s <= time < s + rules.size]


def _empty_ones(
    rules: Hopping,
    empty: Empty,
    key: str,
    full: dict[int, list[tuple[int, int, str]]],
    clock: int,
    begun: Iterable[int],
) -> Iterable[Found]:
    at = min([*full, *begun], default=None)
    end_of_run = max((start + rules.size for start in begun), default=at or 0) + empty.duration
    end_of_run = end_of_run if begun else at or 0
    before: list[tuple[int, int, str]] = []
    newest = max(full, default=None)
    while at is not None:
        following = min((start for start in full if start > at), default=None)
        end = at + rules.size
        if at in full:
            before = full[at]
            end_of_run = max(end_of_run, end + empty.duration)
        elif at >= end_of_run:
            at = following
            continue
        elif empty.fill == "linear":
            if following is not None and following <= end_of_run:
                yield key, at, end, (), between(before, full[following], (at + end) // 2)
        elif end <= clock or (newest is not None and at < newest):
            stands_in = max(before)[2] if before and empty.fill == "previous" else None
            yield key, at, end, (), stands_in
        elif following is None:
            return
        if following is None and empty.fill == "linear":
            return
        at += rules.hop


def between(
    before: list[tuple[int, int, str]], after: list[tuple[int, int, str]], middle: int
) -> str | None:
    """The number that stands in: that of each message is its time, so that it is the middle."""
    if not before:
        return None
    low, high = max(before)[0], min(after)[0]
    return str(float(min(max(middle, low), high))) if low != high else str(float(low))
