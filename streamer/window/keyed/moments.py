"""What folded windows come to at every event, when each of these goes on as a batch."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from streamer.window.emission import Emission
from streamer.window.folds.running.fold import States
from streamer.window.keyed.folded import Folded
from streamer.window.keyed.groups import FoldedGroups, Snapshot
from streamer.window.keyed.ledger import Ledger
from streamer.window.keyed.lines import Lines
from streamer.window.keyed.outputs import AT_ONCE, Output
from streamer.window.keyed.state import FOREVER
from streamer.window.metas import Decoded

Moment = tuple[int, int, int, int, bytes, Folded, States, int, int]
"""A window at an event: the event's arrival; the window's end, first arrival, start and key; what
it is folded to, its parts' states, the largest event time, and the number of messages by then.

It is a plain tuple, and in this order, since there is one for every event, and they are sorted."""

_TOGETHER: Final = 200_000
_LEAST: Final = -(1 << 63)


def emissions_of(moments: list[Moment], ledger: Ledger, keyed: bool) -> Iterator[Emission]:
    """Give the batches, in the order of the events; the list is sorted on the way."""
    moments.sort()
    decoded: Decoded = {}
    for start in range(0, len(moments), _TOGETHER):
        yield from _portion(moments[start : start + _TOGETHER], ledger, keyed, decoded)


def output_of(moment: Moment) -> Output:
    """Return the same as a batch to be, to be put in its place among others."""
    arrival, end, first, start, key, folded, states, newest, size = moment
    snapshot = Snapshot(folded, states, first, newest, size, arrival)
    place = (AT_ONCE, arrival, end, first, start)
    bounds = (start, min(end, FOREVER), start, end)
    return Output(key, *bounds, "each", place, 1, folded=snapshot)


def _portion(
    moments: Sequence[Moment], ledger: Ledger, keyed: bool, decoded: Decoded
) -> Iterator[Emission]:
    claims: dict[bytes, tuple[int, int]] = {}
    for end, _, start, key in {moment[1:5] for moment in moments}:
        low, high = claims.get(key, (start, end))
        claims[key] = (max(min(low, start), _LEAST), min(max(high, end), FOREVER))
    groups = FoldedGroups(Lines(ledger.find(claims)), keyed, decoded)
    emission = groups.emission
    for arrival, end, first, start, key, folded, states, newest, size in moments:
        snapshot = Snapshot(folded, states, first, newest, size, arrival)
        yield emission(key, (start, end), "each", snapshot)
