"""Rules that tumbling and hopping windows share: both lie on a grid, maybe one of local days."""

from __future__ import annotations

import difflib
from functools import cache
from typing import Final
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError, available_timezones

from streamer.core.durations import DAY, format_duration
from streamer.sdk.spec import Field, ParsedFields, duration_field
from streamer.sdk.window_buffer.event_time import (
    FieldProblems,
    find_event_time_problems,
    find_size_problems,
)
from streamer.sdk.window_buffer.fields import EVERY, OFFSET, SIZE, TIMEZONE
from streamer.window.settings.window_types import Tumbling

# Names that stand for another zone on each machine.
_MACHINE_ZONES: Final = frozenset({"localtime", "Factory"})


def _find_timezone_problem(name: str) -> str | None:
    if not name or _is_zone(name):
        return None
    zones = {zone.lower(): zone for zone in available_timezones()}
    close = difflib.get_close_matches(name.lower(), zones, n=1)
    meant = f"did you mean {zones[close[0]]}?" if close else "expected one such as Europe/Berlin"
    return f"is {name[:40]!r}, which is no time zone of the IANA database; {meant}"


@cache
def _is_zone(name: str) -> bool:
    if name in _MACHINE_ZONES:
        return False
    try:
        ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        return False
    return True


OFFSET_FIELD: Final = duration_field(
    OFFSET,
    "Moves the starts of all windows by this much, which may be negative, and must be less than "
    "the time from one start to the next. With `timezone` it is a time on the wall clock: `6h` is "
    "06:00 on every day.",
    default="",
    examples=("15m", "-6h"),
)
TIMEZONE_FIELD: Final = Field(
    TIMEZONE,
    "string",
    "The time zone of windows of whole days: `1d` is then a date of that zone, 23 or 25 hours "
    "long when the clocks change. Without it, windows are aligned to the Unix epoch, in UTC.",
    default="",
    check=_find_timezone_problem,
    examples=("Europe/Berlin", "America/New_York"),
)


def read_grid(parsed: ParsedFields) -> Tumbling:
    """Return the settings of the grid; a window starts every `size` unless `every` says more."""
    size = parsed[SIZE]
    return Tumbling(
        size=size,
        every=parsed.get(EVERY) or size,
        offset=parsed[OFFSET] or 0,
        timezone=parsed[TIMEZONE] or None,
    )


def find_grid_problems(parsed: ParsedFields) -> FieldProblems:
    """Return everything that is wrong with a tumbling or hopping window."""
    yield from find_event_time_problems(parsed)
    wrong = list(find_size_problems(parsed))
    yield from wrong
    if wrong:
        return
    size, every = parsed[SIZE], parsed.get(EVERY)
    if every is not None and every <= 0:
        text = f"is {format_duration(every)}, but it must be longer than 0s"
        yield EVERY, f"{text}; leave it out for windows that follow one another"
        return
    if every is not None and every > size:
        text = f"is {format_duration(every)}, but it must not be longer than the window's size"
        yield EVERY, f"{text}, {format_duration(size)}: messages in between would be in no window"
    yield from _find_offset_problems(parsed, size, every)
    if parsed[TIMEZONE]:
        for name in (SIZE, EVERY):
            length = parsed.get(name)
            if length is not None and length % DAY:
                text = f"is {format_duration(length)}, but with a timezone it must be whole days"
                yield name, f"{text}, such as 1d; leave timezone out for other lengths"


def _find_offset_problems(parsed: ParsedFields, size: int, every: int | None) -> FieldProblems:
    offset, step = parsed[OFFSET], every or size
    if offset is not None and abs(offset) >= step:
        of = "the window's size" if every is None else "every"
        text = f"is {format_duration(offset)}, but it must be within {of}, {format_duration(step)}"
        yield OFFSET, f"{text}: windows are the same after each"
