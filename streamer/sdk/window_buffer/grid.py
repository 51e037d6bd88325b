"""Rules that tumbling and hopping windows share: both lie on a grid, maybe one of local days."""

from __future__ import annotations

import difflib
from functools import cache
from typing import Final
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError, available_timezones

from streamer.core.durations import DAY, format_duration
from streamer.sdk.spec import Field, ParsedFields, duration_field
from streamer.sdk.window_buffer import fields as f
from streamer.sdk.window_buffer.event_time import (
    FieldProblems,
    encode_keys,
    find_event_time_problems,
    find_size_problems,
)
from streamer.sdk.window_buffer.fields import EVERY, OFFSET, SIZE, TIMEZONE
from streamer.window.settings.window_types import EmptyWindows, Tumbling

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


EMPTY_WINDOWS_FIELD: Final = Field(
    f.EMPTY_WINDOWS,
    "object",
    "Windows without messages, which are not emitted otherwise (zero rows, gap filling). Each is a "
    "batch with `window_emit` `empty` and the metadata of the window. A mapping that comes first "
    "in the pipeline is run once for it and sees no messages: `batch_size()` is 0, `from_all()` is "
    "empty, `this` is null. They close by the clock as others do, so that minutes in which all "
    "keys are silent come only with `clock: system`, or once a message is past them.",
    advanced=True,
    children=(
        Field(
            f.EMIT,
            "string",
            "Which keys have them: `none`; `keys_seen`, each key from its first message on; "
            "`keys`, only those that are listed.",
            default="none",
            options=("none", "keys_seen", "keys"),
        ),
        Field(
            f.KEYS,
            "unknown",
            "Keys that have them from the first message of the stream on, though they may never "
            "send one.",
            default=[],
            shape="array",
            examples=(["pump-1", "pump-2"],),
        ),
        Field(
            f.FILL,
            "string",
            "Replacement for the messages: `none`; `previous`, the key's last message before "
            "the window (last observation carried forward); `linear`, that message with each "
            "number between its own and that of the next message, as of the window's middle, "
            "which comes out once the next message is there. It is the only message of the "
            "batch.",
            default="none",
            options=("none", "previous", "linear"),
        ),
        duration_field(
            f.FOR,
            "Time for which a silent key has windows, from the end of the window with its "
            "last message. Then the key is forgotten until its next message. A thousand "
            "windows by default, and a hundred thousand at most.",
            default="",
            examples=("24h",),
        ),
    ),
)
EMPTY_HINT: Final = "windows without messages are emitted by `empty_windows: {emit: keys_seen}`"
_DEFAULT_EMPTY_WINDOWS: Final = 1_000
_MAX_EMPTY_WINDOWS: Final = 100_000


def _read_empty_windows(parsed: ParsedFields, every: int) -> EmptyWindows | None:
    """Return which windows without messages are emitted."""
    group = parsed[f.EMPTY_WINDOWS]
    emit = group[f.EMIT].lower()
    if emit == "none":
        return None
    return EmptyWindows(
        duration=group[f.FOR] or _DEFAULT_EMPTY_WINDOWS * every,
        fill=group[f.FILL].lower(),
        seen=emit == "keys_seen",
        keys=encode_keys(group[f.KEYS]),
    )


def _find_empty_windows_problems(parsed: ParsedFields, every: int) -> FieldProblems:
    """Return what is wrong with windows without messages."""
    group = parsed[f.EMPTY_WINDOWS]
    emit, duration, keys = group[f.EMIT].lower(), group[f.FOR], group[f.KEYS]
    name = f.EMPTY_WINDOWS
    if emit == "none":
        for field in (f.KEYS, f.FOR):
            if group[field]:
                text = "has no meaning without windows that are emitted without messages"
                yield f"{name}.{field}", f"{text}; set emit to keys_seen or keys"
        return
    if emit == "keys" and not keys:
        yield f"{name}.{f.EMIT}", "is keys, but keys is empty; list them, or take keys_seen"
    if keys and not (parsed[f.KEY_MAPPING] or "").strip():
        yield f"{name}.{f.KEYS}", "are listed, but messages have no keys; add key_mapping"
    if duration is not None and duration <= 0:
        text = f"is {format_duration(duration)}, but it must be longer than 0s"
        yield f"{name}.{f.FOR}", f"{text}; leave it out for {_DEFAULT_EMPTY_WINDOWS:,} windows"
    elif duration is not None and duration > _MAX_EMPTY_WINDOWS * every:
        text = f"is {format_duration(duration)}, which are {duration // every:,} windows of a key"
        yield f"{name}.{f.FOR}", f"{text} that is silent; {_MAX_EMPTY_WINDOWS:,} are the most"
    if parsed[f.EMIT].lower() != "final":
        yield (
            f.EMIT,
            f"is {parsed[f.EMIT]}, but {name} are known to be empty only when they close; leave it "
            "out",
        )
    if parsed[f.IDLE_TIMEOUT] is not None:
        yield f.IDLE_TIMEOUT, f"cannot stand beside {name}, which need a clock; use clock: system"
    if parsed[f.CLOCK_SCOPE].lower() == "key":
        text = "is key, by which the windows of a silent key never close"
        yield f.CLOCK_SCOPE, f"{text}; leave it out beside {name}"


def read_grid(parsed: ParsedFields) -> Tumbling:
    """Return the settings of the grid; a window starts every `size` unless `every` says more."""
    size = parsed[SIZE]
    return Tumbling(
        size=size,
        every=parsed.get(EVERY) or size,
        offset=parsed[OFFSET] or 0,
        timezone=parsed[TIMEZONE] or None,
        empty=_read_empty_windows(parsed, parsed.get(EVERY) or size),
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
    yield from _find_empty_windows_problems(parsed, every or size)
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
