"""Joins: which events of two sides are near each other, told for a whole micro-batch at once.

Nothing is said of a pair before both of its events are there, so that no record of a key is kept:
the messages that wait are their own record. What a micro-batch brings is compared with what waits
as columns of numbers, since an event by itself is in too few pairs to pay for a look of its own.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from streamer.window.keyed.state import NEVER
from streamer.window.settings.int_codec import Ints
from streamer.window.settings.window_types import Join

Side = Literal["left", "right"]
SIDES: Final[tuple[Side, Side]] = ("left", "right")

_MIN_TIME_NS: Final = -(2**63)
_MAX_TIME_NS: Final = 2**63 - 1
_PAIRS_PER_PORTION: Final = 50_000


class JoinRules:
    """The rules of a join."""

    def __init__(self, kind: Join, lateness: int) -> None:
        self._kind = kind
        self._lateness = lateness

    def find_late(self, times: Ints, lags: Ints | None, watermark: int) -> NDArray[np.bool_]:
        """Tell which events are late: each by itself, however long a match could be waited for.

        Args:
            times: of the events of a pack, ns.
            lags: how far the clock of their piece was beyond them; None for nowhere.
            watermark: the clock before the piece.
        """
        is_late: NDArray[np.bool_] = times < _clamp_time(watermark - self._lateness)
        return is_late if lags is None else is_late | (lags > self._lateness)

    def match_after(self, side: Side) -> int:
        """Return how much later than an event of a side its match may be, ns."""
        return self._kind.after if side == "left" else self._kind.before

    def match_before(self, side: Side) -> int:
        """Return how much earlier than an event of a side its match may be, ns."""
        return self._kind.before if side == "left" else self._kind.after

    def match_bounds(self, side: Side, times: Ints) -> tuple[Ints, Ints]:
        """Return between which times the matches of events lie, both inclusive."""
        return _shift_times(times, -self.match_before(side)), _shift_times(
            times, self.match_after(side)
        )

    def expires_before(self, side: Side, clock: int) -> int:
        """Return from which time on events of a side wait: the match of an earlier one is late."""
        if clock == NEVER:
            return _MIN_TIME_NS
        return _clamp_time(clock - self._lateness - self.match_after(side))

    def emits_unmatched(self, side: Side) -> bool:
        """Tell whether an event of a side comes out, too, when it has found no match."""
        return self._kind.type == "outer" or (self._kind.type == "left" and side == "left")


@dataclass(slots=True)
class EventColumns:
    """Events of one side as columns.

    Attributes:
        keys: by event, the number of its key.
        times: ns.
        arrivals: numbers.
        pack_numbers: by event, which of the side's pages it is on.
        rows: and where there.
    """

    keys: Ints
    times: Ints
    arrivals: Ints
    pack_numbers: Ints
    rows: Ints

    def __len__(self) -> int:
        return len(self.keys)

    @classmethod
    def concat(cls, parts: Sequence[EventColumns]) -> EventColumns:
        """Return parts as one."""
        if not parts:
            return cls(*(np.empty(0, np.int64) for _ in range(5)))
        columns = zip(*(part._columns() for part in parts), strict=True)
        return cls(*map(np.concatenate, columns))

    def select(self, places: Ints) -> EventColumns:
        """Return some of them."""
        return EventColumns(*(column[places] for column in self._columns()))

    def _columns(self) -> tuple[Ints, Ints, Ints, Ints, Ints]:
        return self.keys, self.times, self.arrivals, self.pack_numbers, self.rows


class MatchedPairs(NamedTuple):
    """Pairs, in the order of the events that complete them; by pair, each of its events."""

    left: EventColumns
    right: EventColumns


class MatchFinder:
    """Finds, for events of one side, the events of the other that are near and of their key."""

    def __init__(self, events: EventColumns, low: Ints, high: Ints, others: EventColumns) -> None:
        """Sort the others.

        Args:
            events: those that are looked for a match for.
            low: by event, the least time of a match, ns.
            high: the largest.
            others: among them are the matches.
        """
        self._arrivals = events.arrivals
        times = np.sort(others.times)
        # A key's number and a time's rank are one number, so that one search finds both.
        width = len(times) + 1
        codes = others.keys * width + np.searchsorted(times, others.times, "left")
        self._order = np.argsort(codes, kind="stable")
        self._others = others.arrivals
        codes = codes[self._order]
        first = events.keys * width + np.searchsorted(times, low, "left")
        last = events.keys * width + np.searchsorted(times, high, "right")
        self._first = np.searchsorted(codes, first, "left")
        self._counts: Ints = np.maximum(np.searchsorted(codes, last, "left") - self._first, 0)

    @property
    def counts(self) -> Ints:
        """By event, how many there are near it, those included that came after it."""
        return self._counts

    def find_matches(self, places: Ints) -> tuple[Ints, Ints]:
        """Return, for some of the events, those that were there before: pairs of places."""
        counts = self._counts[places]
        ends = np.cumsum(counts)
        events = np.repeat(places, counts)
        steps = np.arange(len(events)) - np.repeat(ends - counts, counts)
        others = self._order[np.repeat(self._first[places], counts) + steps]
        before = self._others[others] < self._arrivals[events]
        return events[before], others[before]


def find_pairs(
    rules: JoinRules,
    new_left: EventColumns,
    old_left: EventColumns,
    new_right: EventColumns,
    old_right: EventColumns,
) -> Iterator[MatchedPairs]:
    """Find the pairs that a micro-batch completes, a portion at a time.

    Args:
        rules: the join's.
        new_left: what came in on the left.
        old_left: what waits there, and may be near what came in on the right.
        new_right: what came in on the right.
        old_right: what waits there, and may be near what came in on the left.
    """
    left, right = (
        EventColumns.concat([new_left, old_left]),
        EventColumns.concat([new_right, old_right]),
    )
    of_left = MatchFinder(new_left, *rules.match_bounds("left", new_left.times), right)
    of_right = MatchFinder(new_right, *rules.match_bounds("right", new_right.times), left)
    lefts = len(new_left)
    order = np.argsort(np.concatenate((new_left.arrivals, new_right.arrivals)), kind="stable")
    sums = np.cumsum(np.concatenate((of_left.counts, of_right.counts))[order])
    first = 0
    while first < len(order):
        until = int(sums[first - 1] if first else 0) + _PAIRS_PER_PORTION
        last = max(int(np.searchsorted(sums, until, "right")), first + 1)
        some, first = order[first:last], last
        ours, theirs = of_left.find_matches(some[some < lefts])
        backwards = of_right.find_matches(some[some >= lefts] - lefts)
        ours, theirs = np.concatenate((ours, backwards[1])), np.concatenate((theirs, backwards[0]))
        mine, others = left.arrivals[ours], right.arrivals[theirs]
        sequence = np.lexsort((np.minimum(mine, others), np.maximum(mine, others)))
        if len(sequence):
            yield MatchedPairs(left.select(ours[sequence]), right.select(theirs[sequence]))


def _clamp_time(time: int) -> int:
    """Return a time as one that there is."""
    return min(max(time, _MIN_TIME_NS), _MAX_TIME_NS)


def _shift_times(times: Ints, by: int) -> Ints:
    """Return times later, or earlier, but none beyond those that there are."""
    if by < 0:
        return np.maximum(times, _MIN_TIME_NS - by) + by
    return np.minimum(times, _MAX_TIME_NS - by) + by
