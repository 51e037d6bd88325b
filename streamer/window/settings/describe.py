"""Texts about the settings of windows, for all that show them: plans, pictures, the status."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from streamer.core.durations import MINUTE, format_duration
from streamer.window.settings.window_types import (
    Count,
    EmptyWindows,
    EventTimeSettings,
    Global,
    Join,
    KeyedMessages,
    Session,
    Sliding,
    State,
    TableJoin,
    Tumbling,
    WindowType,
)

COUNT_END_TEXTS: Final = {
    "drop": "drops messages that do not fill a window (incomplete)",
    "flush": "emits the windows that have begun",
    "keep": "keeps messages of the next windows in the checkpoint",
}
END_OF_INPUT_TEXTS: Final = {
    "wait": "waits for open windows",
    "flush": "emits open windows at once",
    "keep": "keeps open windows in the checkpoint",
}
TABLE_END_TEXTS: Final = {
    "flush": "joins waiting messages; the table stays in the checkpoint",
    "keep": "keeps waiting messages and the table in the checkpoint",
}
_FILL_TEXTS: Final = {
    "none": "",
    "previous": ", with the message before in their place",
    "linear": ", with what lies between the messages around them, once the next one is there",
}
EMIT_TEXTS: Final = {
    "changes": "emitted whenever they change",
    "each": "emitted at every message",
    "forward": "messages forwarded at once",
}


ALSO_TEXTS: Final = {
    "on_time": "emitted when the clock passes their end",
    "close": "and at the close",
    "retractions": "and retracted when they no longer hold",
}


def describe_emissions(time: EventTimeSettings) -> list[str]:
    """Return in words when windows are emitted; nothing for once, at their close."""
    texts = [EMIT_TEXTS[time.emit]] if time.emit in EMIT_TEXTS else []
    return texts + [text for name, text in ALSO_TEXTS.items() if name in time.emit_also]


def emits_at_end(time: EventTimeSettings) -> bool:
    """Whether windows that the end of the input closes are emitted."""
    return time.emit not in EMIT_TEXTS or bool(time.emit_also - {"retractions"})


def headline_of(kind: WindowType) -> str:
    """Return the setting of a kind that matters most, in a word: `10s`, `100`."""
    match kind:
        case Tumbling() | Sliding():
            return format_duration(kind.size)
        case Session():
            return format_duration(kind.gap)
        case Count():
            return str(kind.count)
        case State():
            return "state"
        case Global():
            return "endless"
        case Join():
            return format_duration(max(kind.before, kind.after))
        case TableJoin():
            return kind.right
        case KeyedMessages():
            return "1"


def spacing_of(kind: WindowType) -> int:
    """Return the distance of windows, about, ns: a scale for pictures of them."""
    match kind:
        case Tumbling():
            return kind.every
        case Session():
            return kind.gap
        case Sliding():
            return kind.size
        case Count() | State() | Global() | Join() | TableJoin() | KeyedMessages():
            return MINUTE


def describe_grid(size: int, every: int, offset: int) -> str:
    """Return windows on a grid in words: `windows of 10s every 5s`."""
    text = f"windows of {format_duration(size)}"
    text += f" every {format_duration(every)}" if every != size else ""
    return f"{text}, moved by {format_duration(offset)}" if offset else text


def describe_type(kind: WindowType) -> str:
    """Return the windows of a kind in words, for one line."""
    match kind:
        case Tumbling():
            text = describe_grid(kind.size, kind.every, kind.offset)
            return f"{text}, days of {kind.timezone}" if kind.timezone else text
        case Session():
            gap = format_duration(kind.gap)
            gap = f"each message's own gap, or {gap}," if kind.by_message else gap
            limits = []
            if kind.max_duration:
                limits.append(f" or after {format_duration(kind.max_duration)}")
            if kind.max_count:
                limits.append(f" or by {_count_messages(kind.max_count)}")
            return f"sessions, ended by {gap} without a message{''.join(limits)}"
        case Sliding():
            size = format_duration(kind.size)
            if kind.mode == "event":
                return _describe_event_windows(kind, size)
            return f"windows of {size} that begin with a message"
        case Count():
            least = "" if kind.least_count == kind.count else f"{kind.least_count:,} to "
            text = f"windows of {least}{kind.count:,} messages"
            text += f" every {kind.every:,}" if kind.every != kind.count else ""
            text += ", with emit_when" if kind.conditional else ""
            begins = kind.align == "start" and kind.every != kind.count
            return f"{text}, from the first message on" if begins else text
        case State():
            return "windows from begin_when to " + ("the next" if kind.single else "emit_when")
        case Global():
            kept = " of the latest messages by id" if kind.latest_by else ""
            return f"one window{kept} without end"
        case Join():
            return f"pairs of {kind.left} and {kind.right}, {_describe_join_bounds(kind)}"
        case TableJoin():
            return f"{kind.left}, each with the row of its key in {kind.right}"
        case KeyedMessages():
            return "no windows, messages pass one by one"


def _describe_event_windows(kind: Sliding, size: str) -> str:
    which = "every message" if not kind.conditional else "every message with emit_when"
    after = f" and the {format_duration(kind.delay)} after it" if kind.delay else ""
    text = f"for {which}, those of the {size} before it{after}"
    if kind.emit_every is not None:
        text += f", {format_duration(kind.emit_every)} apart at least"
    return text


def _count_messages(count: int) -> str:
    return f"{count:,} message{'' if count == 1 else 's'}"


def _describe_join_bounds(kind: Join) -> str:
    before, after = format_duration(kind.before), format_duration(kind.after)
    if kind.before == kind.after:
        return f"at most {before} apart"
    return f"{kind.right} from {before} before {kind.left} to {after} after it"


def describe_shape(size: int, every: int, offset: int) -> str:
    """Return the settings of a grid: `size 10s, slide 5s`."""
    text = f"size {format_duration(size)}"
    text += f", slide {format_duration(every)}" if every != size else ", tumbling"
    return f"{text}, offset {format_duration(offset)}" if offset else text


def describe_bounds(kind: WindowType) -> str:
    """Return the settings of a kind, with the bounds of its windows."""
    match kind:
        case Tumbling():
            shape = describe_shape(kind.size, kind.every, kind.offset).replace("slide", "every")
            days = f", in days of {kind.timezone}" if kind.timezone else ""
            return f"{shape}{days}, [start, start + size)"
        case Session():
            cut = f", cut after {format_duration(kind.max_duration)}" if kind.max_duration else ""
            cut += " from its start" if cut and kind.max_duration_origin == "start" else ""
            cut += f", at most {_count_messages(kind.max_count)}" if kind.max_count else ""
            gap = format_duration(kind.gap)
            gap = f"by message, or else {gap}" if kind.by_message else gap
            return f"gap {gap}{cut}, [first, last]"
        case Sliding():
            bounds = {"event": "[t - size, t]", "forward": "[t, t + size]"}
            if kind.mode == "event":
                end = "t + delay" if kind.delay else "t"
                left, right = "(" if kind.is_open_left else "[", ")" if kind.is_open_right else "]"
                bounds["event"] = f"{left}t - size, {end}{right}"
            bound = bounds.get(kind.mode, "[t - size, t] and [t + 1ms, t + 1ms + size]")
            return f"size {format_duration(kind.size)}, {kind.mode}: {bound}"
        case Count():
            least = "" if kind.least_count == kind.count else f", from {kind.least_count:,} on"
            align = ", by starts" if kind.align == "start" else ""
            when = ", with emit_when" if kind.conditional else ""
            return f"count {kind.count:,}, every {kind.every:,}{align}{least}{when}"
        case State():
            until = "before the next begin_when" if kind.single else "with emit_when"
            return f"state, from the message with begin_when to the one {until}"
        case Global():
            if not kind.latest_by:
                return "one window without end"
            return f"one window without end, of the latest by {_shorten_mapping(kind.latest_by)}"
        case Join():
            return f"{kind.type}, {describe_type(kind)}"
        case TableJoin():
            return f"{kind.type}, {describe_type(kind)}"
        case KeyedMessages():
            return "no windows: each message is a batch by itself"


def _shorten_mapping(text: str) -> str:
    """Return a mapping in one line, without `root =`."""
    return " ".join(text.removeprefix("root =").split())


def describe_closing(kind: WindowType, time: EventTimeSettings) -> Iterator[str]:
    """Return in words what closes windows of a kind, line by line."""
    if isinstance(kind, Count):
        yield "closes by its number of messages"
        return
    if isinstance(kind, State):
        yield f"closes with a message for which {'begin' if kind.single else 'emit'}_when holds"
        return
    if isinstance(kind, Global):
        timeout = time.idle_timeout
        never = "never closes"
        yield (
            never if timeout is None else f"ends when nothing came for {format_duration(timeout)}"
        )
        yield from describe_emissions(time)
        return
    if isinstance(kind, KeyedMessages):
        if time.order == "arrival":
            yield "messages pass at once, those of a key in order of arrival"
            return
        wait = format_duration(time.allowed_lateness)
        yield (
            f"messages wait until the largest event time is {wait} beyond theirs, then pass in "
            "order of event time"
        )
        return
    if isinstance(kind, TableJoin):
        yield from _describe_table_join(kind, time)
        return
    clock = "system clock" if time.clock == "system" else "largest event time"
    clock += " of its key" if time.clock_scope == "key" else ""
    if time.waits_for_sources:
        clock += f" of the {time.clock_scope} that is the furthest behind"
    gap = ""
    if isinstance(kind, Session):
        gap = " + its gap" if kind.by_message else f" + {format_duration(kind.gap)}"
    wait = format_duration(time.allowed_lateness)
    if isinstance(kind, Join):
        yield "pairs are emitted with their second message"
        by = f" by {wait}" if time.allowed_lateness else ""
        yield f"messages wait until the {clock} has passed their last possible match{by}"
        yield from _describe_silent_sources(time)
        if time.idle_timeout is not None:
            yield f"messages wait for {format_duration(time.idle_timeout)} at most"
        return
    yield f"closes by the {clock} at its end{gap} + {wait}"
    yield from _describe_silent_sources(time)
    if time.idle_timeout is not None:
        yield f"closes when nothing came for {format_duration(time.idle_timeout)}"
    texts = describe_emissions(time)
    if texts:
        yield ", ".join(texts) + ("" if "close" in time.emit_also else ", not when they close")
    if isinstance(kind, Tumbling) and kind.empty is not None:
        yield _describe_empty(kind.empty)
    if isinstance(kind, Session) and kind.expected:
        yield f"without messages, for those of {len(kind.expected):,} listed keys that send none"


def _describe_table_join(kind: TableJoin, time: EventTimeSettings) -> Iterator[str]:
    if kind.history is None:
        yield "a message is joined at once, with the newest row that there is"
    else:
        kept = format_duration(kind.history)
        yield f"a message is joined with the row of its event time; replaced rows stay for {kept}"
        clock = "largest event time"
        if time.waits_for_sources:
            clock += f" of the {time.clock_scope} that is the furthest behind"
        else:
            clock += f" of {kind.left}"
        if time.allowed_lateness or time.waits_for_sources:
            by = f" by {format_duration(time.allowed_lateness)}" if time.allowed_lateness else ""
            yield f"it waits until the {clock} has passed its own{by}"
            yield from _describe_silent_sources(time)
    if kind.table_ttl is not None:
        yield f"a row goes {format_duration(kind.table_ttl)} after it came last"


def _describe_empty(empty: EmptyWindows) -> str:
    keys = ["keys that had a message"] if empty.seen else []
    keys += [f"{len(empty.keys):,} listed keys"] if empty.keys else []
    duration = format_duration(empty.duration)
    text = f"without messages too, for {' and '.join(keys)}, {duration} from the last one on"
    return f"{text}{_FILL_TEXTS[empty.fill]}"


def _describe_silent_sources(time: EventTimeSettings) -> Iterator[str]:
    if time.waits_for_sources:
        timeout = time.source_idle_timeout
        after = f" that is silent for {format_duration(timeout)}" if timeout else ""
        yield f"the clock {'goes on without' if timeout else 'waits for'} any{after}"
