"""The tasks of a backfill, by the clocks of its segments and the division of its windows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from streamer.plan import Plan
from streamer.service.backfill.division import Division, measure_closing_delay
from streamer.service.backfill.window_run import WindowTask


@dataclass(frozen=True, slots=True)
class SegmentClocks:
    """The clock of a stream before and after each segment.

    Attributes:
        before: by segment, ns; None before the first event.
        after: by segment, ns; None before the first event.
    """

    before: tuple[int | None, ...]
    after: tuple[int | None, ...]

    @classmethod
    def of(cls, clocks: Sequence[int | None]) -> SegmentClocks:
        """Follow the largest event times of segments, in order."""
        before: list[int | None] = []
        after: list[int | None] = []
        now: int | None = None
        for clock in clocks:
            before.append(now)
            known = [one for one in (now, clock) if one is not None]
            now = max(known, default=None)
            after.append(now)
        return cls(tuple(before), tuple(after))

    def first_after(self, time: int) -> int | None:
        """Return the first segment behind which the clock is later than a time; None for none."""
        reached = (n for n, at in enumerate(self.after) if at is not None and at > time)
        return next(reached, None)


@dataclass(frozen=True, slots=True)
class Bounds:
    """The bounds of a backfill.

    Attributes:
        from_time: windows that end at or before it are left out, Unix ns; None for none.
        to_time: windows that end after it are left out, or go to the live stream, Unix ns; None for
            the end of the input.
        hands_over: whether a live stream goes on behind it.
    """

    from_time: int | None = None
    to_time: int | None = None
    hands_over: bool = False

    def last_clock(self, plan: Plan) -> int | None:
        """Return the clock behind which no more of the input is needed, ns; None for all of it."""
        if self.to_time is None:
            return None
        if self.hands_over:
            return self.to_time
        delay = measure_closing_delay(plan)
        return None if delay is None else self.to_time + delay


def make_tasks(
    plan: Plan,
    division: Division,
    clocks: SegmentClocks,
    bounds: Bounds,
    ranges: int,
    is_ended: bool,
) -> list[WindowTask]:
    """Return the tasks of stage 2, in the order of their results.

    Args:
        plan: the stream's plan.
        division: how its windows are divided.
        clocks: of all segments that were scanned.
        bounds: of the backfill.
        ranges: how many ranges there are at most.
        is_ended: whether the input ends with the last one of these segments.
    """
    first = 0
    if bounds.from_time is not None:
        reached = clocks.first_after(bounds.from_time)
        first = len(clocks.after) if reached is None else reached
    end = len(clocks.after)
    if first >= end and not (end and bounds.hands_over):
        return []
    first = min(first, end - 1)
    whole = WindowTask(0, 0, first, end, ends_input=is_ended, keeps_state=bounds.hands_over)
    if division.kind == "whole":
        return [whole]
    if division.kind == "keys":
        return [replace(whole, number=n, shards=(n,)) for n in range(max(plan.shards, 1))]
    count = min(max(ranges, 1), end - first)
    cuts = [first + (end - first) * n // count for n in range(count + 1)]
    tasks = []
    for number in range(count):
        start, stop = cuts[number], cuts[number + 1]
        lead_in = find_lead_in(clocks, start, division.reach)
        is_last = number == count - 1
        tasks.append(
            WindowTask(
                *(number, lead_in, start, stop),
                clock=clocks.before[lead_in],
                ends_input=is_last and is_ended,
                keeps_state=is_last and bounds.hands_over,
            )
        )
    return tasks


def find_lead_in(clocks: SegmentClocks, first: int, reach: int) -> int:
    """Return the segment at which a task begins to read, for the windows open at its own first one.

    It is the last one before which no event was later than the clock less the reach.
    """
    clock = clocks.before[first]
    if clock is None:
        return first
    for number in range(first, 0, -1):
        before = clocks.before[number]
        if before is None or before <= clock - reach:
            return number
    return 0
