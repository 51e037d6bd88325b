"""Date-times in UTC as programs write them, read many at a time."""

from __future__ import annotations

from typing import Any, Final, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

_SECOND_NS: Final = 1_000_000_000
_LENGTHS: Final = frozenset((20, *range(22, 31)))
"""Of `2026-01-01T00:00:05Z`, and with one to nine digits of a fraction."""

_FIELDS: Final = ((0, 4), (5, 7), (8, 10), (11, 13), (14, 16), (17, 19))
_SEPARATORS: Final = ((4, "-"), (7, "-"), (10, "T"), (13, ":"), (16, ":"))
_YEARS: Final = (1700, 2200)
"""Years of which all times fit into int64 nanoseconds, and more."""

_MONTH_DAYS: Final = np.array((0, 31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31), np.int64)


class TimesOfTexts(NamedTuple):
    """Times of some texts.

    Attributes:
        times: by text, ns since the Unix epoch; meaningless where it could not be read.
        are_read: by text, whether its time could be read.
    """

    times: NDArray[np.int64]
    are_read: NDArray[np.bool_]


def read_utc_times(texts: pa.StringArray) -> TimesOfTexts:
    """Read texts as `2026-01-01T00:00:05.123Z`, if all are of one length, and nothing else.

    Example:
        >>> read_utc_times(pa.array(["1970-01-01T00:00:01.5Z"])).times.tolist()
        [1500000000]
    """
    count = len(texts)
    unread = TimesOfTexts(np.zeros(count, np.int64), np.zeros(count, np.bool_))
    _, offsets, data = texts.buffers()
    ends = np.frombuffer(offsets, np.int32)[texts.offset : texts.offset + count + 1]
    length = int(ends[1] - ends[0]) if count else 0
    if length not in _LENGTHS or not (np.diff(ends) == length).all():
        return unread
    codes = np.frombuffer(data, np.uint8)[ends[0] : ends[-1]].reshape(count, length)
    digits = codes - np.uint8(ord("0"))
    good = codes[:, -1] == ord("Z")
    for place, separator in _SEPARATORS:
        good &= codes[:, place] == ord(separator)
    fields = [_read_number(digits, first, last, good) for first, last in _FIELDS]
    fraction = np.zeros(count, np.int64)
    if length > 20:
        good &= codes[:, 19] == ord(".")
        size = length - 21
        fraction = _read_number(digits, 20, length - 1, good) * 10 ** (9 - size)
    year, month, day, hour, minute, second = fields
    good &= (year >= _YEARS[0]) & (year < _YEARS[1]) & (month >= 1) & (month <= 12)
    good &= (hour < 24) & (minute < 60) & (second < 60)
    is_leap = (year % 4 == 0) & ((year % 100 != 0) | (year % 400 == 0))
    days_of_month = _MONTH_DAYS[np.minimum(month, 12)] + (is_leap & (month == 2))
    good &= (day >= 1) & (day <= days_of_month)
    seconds = ((_count_days(year, month, day) * 24 + hour) * 60 + minute) * 60 + second
    return TimesOfTexts(np.where(good, seconds, 0) * _SECOND_NS + fraction, good)


def _read_number(
    digits: NDArray[np.uint8], first: int, last: int, good: NDArray[np.bool_]
) -> NDArray[np.int64]:
    """Read digits of each row, and take out of `good` what is none."""
    number = np.zeros(len(digits), np.int64)
    for place in range(first, last):
        good &= digits[:, place] < 10
        number = number * 10 + digits[:, place]
    return number


def _count_days(year: Any, month: Any, day: Any) -> Any:
    """Return the days since 1970 of dates in the Gregorian calendar."""
    # Years that begin with March have the leap day at their end.
    year = year - (month <= 2)
    of_year = (153 * ((month + 9) % 12) + 2) // 5 + day - 1
    return year * 365 + year // 4 - year // 100 + year // 400 + of_year - 719_468
