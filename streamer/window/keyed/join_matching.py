"""Matches events of two sides by key and time, for a whole micro-batch at once.

A pair is emitted when both of its events are there, so that no record of a key is kept: the
messages that wait are the only state. Incoming events are compared with waiting ones as columns of
numbers, since one event is in too few pairs to pay for a search of its own.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final, Literal, NamedTuple

import numpy as np

from streamer.window.keyed.state import FOREVER, MIN_TIME_NS, NEVER
from streamer.window.settings.int_codec import Bools, Ints
from streamer.window.settings.window_types import Join

Side = Literal["left", "right"]
SIDES: Final[tuple[Side, Side]] = ("left", "right")

_PAIRS_PER_PORTION: Final = 50_000


class JoinRules:
    """The rules of a join: how far apart in time a pair may be, and how long events wait."""

    def __init__(self, kind: Join, lateness: int, is_system_clock: bool = False) -> None:
        """Take the settings.

        Args:
            kind: the join's.
            lateness: for how long matches wait for late messages, ns.
            is_system_clock: whether the clock is the time of day.
        """
        self._kind = kind
        self._lateness = lateness
        # The time of day is beyond every message that comes in: one is late once no message that
        # it could match can be waiting.
        self._margin = lateness + kind.before + kind.after if is_system_clock else lateness

    def find_late(self, times: Ints, lags: Ints | None, watermark: int) -> Bools:
        """Return which events are late, whether a match could still come or not.

        Args:
            times: event times of a pack, ns.
            lags: by event, how far the watermark within its piece was beyond its time, ns; None
                if it never was.
            watermark: the watermark before the piece, ns.
        """
        is_late: Bools = times < _clamp_time(watermark - self._margin)
        return is_late if lags is None else is_late | (lags > self._lateness)

    def match_after(self, side: Side) -> int:
        """Return how much later than an event of a side its match may be, ns."""
        return self._kind.after if side == "left" else self._kind.before

    def match_before(self, side: Side) -> int:
        """Return how much earlier than an event of a side its match may be, ns."""
        return self._kind.before if side == "left" else self._kind.after

    def match_bounds(self, side: Side, times: Ints) -> tuple[Ints, Ints]:
        """Return by event the least and the largest time of a match, both inclusive."""
        return _shift_times(times, -self.match_before(side)), _shift_times(
            times, self.match_after(side)
        )

    def expires_before(self, side: Side, clock: int) -> int:
        """Return the time before which events of a side are freed, since a match would be late."""
        if clock == NEVER:
            return MIN_TIME_NS
        return _clamp_time(clock - self._lateness - self.match_after(side))

    def expires_at(self, side: Side, time: int) -> int:
        """Return the clock at which an event of a side is freed, ns."""
        return min(time + self._lateness + self.match_after(side) + 1, FOREVER)

    def emits_unmatched(self, side: Side) -> bool:
        """Return whether events of a side are emitted if they find no match."""
        return self._kind.type == "outer" or (self._kind.type == "left" and side == "left")


@dataclass(slots=True)
class EventColumns:
    """Events of one side as columns.

    Attributes:
        keys: key ids, see `KeyIds`.
        times: event times, ns.
        arrivals: arrival numbers.
        pack_numbers: indices into `JoinSide.loaded_packs`.
        rows: rows in these packs.
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
        """Concatenate the events of several parts."""
        if not parts:
            return cls(*(np.empty(0, np.int64) for _ in range(5)))
        columns = zip(*(part._columns() for part in parts), strict=True)
        return cls(*map(np.concatenate, columns))

    def select(self, indices: Ints) -> EventColumns:
        """Return some events, by index."""
        return EventColumns(*(column[indices] for column in self._columns()))

    def _columns(self) -> tuple[Ints, Ints, Ints, Ints, Ints]:
        return self.keys, self.times, self.arrivals, self.pack_numbers, self.rows


class MatchedPairs(NamedTuple):
    """Pairs, in the order of the events that complete them.

    Attributes:
        left: by pair, its left event.
        right: by pair, its right event.
    """

    left: EventColumns
    right: EventColumns


class MatchFinder:
    """Finds matches of one side's events among the other side's: same key, and near in time."""

    def __init__(self, events: EventColumns, low: Ints, high: Ints, others: EventColumns) -> None:
        """Sort the other side's events.

        Args:
            events: the events to find matches of.
            low: by event, the least time of a match, ns.
            high: by event, the largest.
            others: the other side's events.
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
        """Return the matches of some events that arrived before them, as pairs of indices."""
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
        rules: the join's rules.
        new_left: incoming left events.
        old_left: waiting left events that may match incoming right ones.
        new_right: incoming right events.
        old_right: waiting right events that may match incoming left ones.
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
    """Clamp a time to 64 bits."""
    return min(max(time, MIN_TIME_NS), FOREVER)


def _shift_times(times: Ints, by: int) -> Ints:
    """Shift times by a number of ns, clamped to 64 bits."""
    if by < 0:
        return np.maximum(times, MIN_TIME_NS - by) + by
    return np.minimum(times, FOREVER - by) + by
