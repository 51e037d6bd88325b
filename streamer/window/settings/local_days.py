"""Local days: where each begins on the clocks of a time zone, and which one an instant belongs to.

Windows of whole days in a timezone are counted in these days, and all else about them is arithmetic
on the days' numbers: a window of `size` days starts with every `every`-th day, and ends where day
`start + size` begins. Day 0 is 1970-01-01 as a date of the zone. A day begins at its midnight plus
an offset on the wall clock. A beginning that the clocks jump over is the first instant after the
jump; one that they show twice is the first of both. A date that never was (2011-12-30 in Apia) is a
day without a single instant.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from typing import TYPE_CHECKING, Final
from zoneinfo import ZoneInfo

from streamer.core.durations import DAY, SECOND

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Int64s = NDArray[np.int64]

_MIN_TIME_NS, _MAX_TIME_NS = -(2**63), 2**63 - 1
# Days whose beginnings are found together: few enough to be quick for a single event.
_DAYS_PER_BLOCK: Final = 64
_MAX_CACHED_BLOCKS: Final = 2 * _MAX_TIME_NS // DAY // _DAYS_PER_BLOCK
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class LocalDays:
    """The days of a time zone.

    Attributes:
        timezone: an IANA name that `zoneinfo` knows.
        offset: ns from midnight to a day's beginning on the wall clock; may be negative, and
            longer than a day.
    """

    timezone: str
    offset: int = 0

    def begin_of(self, day: int) -> int:
        """Return the first instant of a day, Unix ns; those of far days are beyond int64."""
        dates, time = divmod(self.offset, DAY)
        block, place = divmod(day + dates, _DAYS_PER_BLOCK)
        return _compute_block_begins(self.timezone, time, block)[place]

    def day_of(self, t: int) -> int:
        """Return the day that an instant belongs to: the last one that has begun by then."""
        # With a time of day from 0 h to 24 h, and zones less than 24 h from UTC, it is no later.
        day = t // DAY + 1 - self.offset // DAY
        while self.begin_of(day) > t:
            day -= 1
        return day

    def days_of(self, times: Int64s) -> Int64s:
        """Return the days that many instants belong to.

        Args:
            times: Unix ns, in any order.

        Returns:
            As many numbers of days.
        """
        import numpy as np

        if not len(times):
            return times
        dates, time = divmod(self.offset, DAY)
        days, begins = self._nearby_days(times, time)
        place = np.searchsorted(begins, times, side="right") - 1
        return np.asarray(days[place] - dates, np.int64)

    def _nearby_days(self, times: Int64s, time: int) -> tuple[Int64s, Int64s]:
        """Return dates around some instants, ascending, and where they begin, within int64."""
        import numpy as np

        blocks = times // (DAY * _DAYS_PER_BLOCK)
        least = int(blocks.min())
        met = np.flatnonzero(np.bincount(blocks - least)) + least
        # A date begins less than two days from where it would in UTC: maybe in the next block.
        needed_blocks = np.unique(np.concatenate([met - 1, met, met + 1])).tolist()
        day_begins = [
            (block * _DAYS_PER_BLOCK + place, max(at, _MIN_TIME_NS))
            for block in needed_blocks
            for place, at in enumerate(_compute_block_begins(self.timezone, time, block))
            if at <= _MAX_TIME_NS
        ]
        table = np.array(day_begins, np.int64)
        return table[:, 0], table[:, 1]


@lru_cache(maxsize=_MAX_CACHED_BLOCKS)
def _compute_block_begins(timezone: str, time: int, block: int) -> tuple[int, ...]:
    """Return when the wall clock first shows a time of day, for each date of a block."""
    zone = ZoneInfo(timezone)
    seconds, below = divmod(time, SECOND)
    midnight = datetime(1970, 1, 1, tzinfo=zone) + timedelta(days=block * _DAYS_PER_BLOCK)
    first = midnight + timedelta(seconds=seconds)
    return tuple(
        _find_first_instant(first + timedelta(days=n), below) for n in range(_DAYS_PER_BLOCK)
    )


def _find_first_instant(wall_time: datetime, below_second: int) -> int:
    """Return when a wall clock first shows a date and time, or jumps over it, Unix ns.

    Args:
        wall_time: whole seconds, with a zone.
        below_second: ns within the second.
    """
    before, after = _utc_offset_s(wall_time), _utc_offset_s(wall_time.replace(fold=1))
    wall = (wall_time.replace(tzinfo=UTC) - _EPOCH) // timedelta(seconds=1)
    if before >= after:
        return (wall - before) * SECOND + below_second
    # The clocks jump from `before` to `after`, at an instant in between.
    early, late = wall - after, wall - before
    while late - early > 1:
        middle = (early + late) // 2
        if (
            _utc_offset_s((_EPOCH + timedelta(seconds=middle)).astimezone(wall_time.tzinfo))
            == before
        ):
            early = middle
        else:
            late = middle
    return late * SECOND


def _utc_offset_s(instant: datetime) -> int:
    """Return how many seconds a zone is ahead of UTC."""
    ahead = instant.utcoffset()
    assert ahead is not None
    return ahead // timedelta(seconds=1)
