"""A timeline as lines, in the order of the clock, for the terminal."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Final

from streamer.durations import format_duration
from streamer.timeline.model import Event, Span, Timeline, numbers
from streamer.timeline.moments import Moments

Style = Callable[[str, str], str]
"""Takes a text and what it is (`head`, `time`, `taken`, `dropped`, `closed`, `payload`)."""

_SHOWN: Final = 60


def _plain(text: str, what: str) -> str:
    return text


def text_of(timeline: Timeline, style: Style = _plain, width: int = 180) -> str:
    """Return what happened, line by line; payloads are cut so that lines fit the width."""
    return "\n".join(_lines(timeline, style, width)) + "\n"


def _lines(timeline: Timeline, style: Style, width: int) -> Iterator[str]:
    moments = Moments.of(timeline)
    yield style(f"{timeline.name}: {settings(timeline)}", "head")
    if moments.date:
        yield f"{moments.date}, UTC"
    yield ""
    steps: list[tuple[int, int, Event | Span]] = []
    steps += [(event.arrived, 1, event) for event in timeline.events]
    # A micro-batch takes in what has arrived before it closes what is due.
    steps += [(s.closed, 2, s) for s in timeline.spans if s.closed is not None]
    wide = max((len(str(event.number)) for event in timeline.events), default=1) + 1
    room = min(max(max((len(e.text) for e in timeline.events), default=0), 8), _SHOWN, width // 3)
    for at, _, one in sorted(steps, key=lambda step: step[:2]):
        clock = style(moments.text(at), "time")
        if isinstance(one, Span):
            yield f"{clock}  {style(_closing(one, moments), 'closed')}"
        else:
            payload = style(_cut(one.text, room).ljust(room), "payload")
            yield f"{clock}  {f'#{one.number}':{wide}} {payload}  {_fate(one, moments, style)}"
    for span in timeline.spans:
        if span.closed is None:
            pad = " " * len(moments.text(timeline.ended))
            yield f"{pad}  {style(f'{_window(span, moments)} stays open', 'closed')}"
    yield ""
    yield summary(timeline)


def _closing(span: Span, moments: Moments) -> str:
    many = len(span.numbers)
    count = f"{many} message{'' if many == 1 else 's'}: {numbers(span.numbers)}"
    early = span.closed is not None and span.closed < span.due
    return f"▣ {_window(span, moments)} closes{' as the input ends' if early else ''}, {count}"


def _window(span: Span, moments: Moments) -> str:
    return f"({moments.short(span.start)}, {moments.short(span.end)}]"


def _fate(event: Event, moments: Moments, style: Style) -> str:
    return style(fate(event, moments), "dropped" if event.dropped or event.failed else "taken")


def fate(event: Event, moments: Moments) -> str:
    """Return in words what became of a message."""
    if event.failed:
        return f"○ failed upstream, passes by: {event.failed}"
    if event.dropped:
        at = "" if event.time is None else f"at {moments.short(event.time)} "
        why = moments.within(event.why)
        return f"{at}✗ {event.dropped}: {why}"
    assert event.time is not None
    ends = sorted({*event.windows, *event.waiting})
    shown = [moments.short(end) for end in ends]
    if len(shown) > 2:
        into = f"{len(shown)} windows, ending {shown[0]} to {shown[-1]}"
    else:
        into = f"window{'s' if len(shown) > 1 else ''} ending {' and '.join(shown)}"
    return f"at {moments.short(event.time)} → {into}"


def settings(timeline: Timeline) -> str:
    """Return the windows' settings in words."""
    window = timeline.window
    text = f"windows of {format_duration(window.size)}"
    if window.slide:
        text += f" every {format_duration(window.slide)}"
    if window.offset:
        text += f", moved by {format_duration(window.offset)}"
    if window.allowed_lateness:
        text += f", {format_duration(window.allowed_lateness)} for late messages"
    return text


def summary(timeline: Timeline) -> str:
    """Return how many messages and windows there were, and what was dropped."""
    dropped: dict[str, int] = {}
    for event in timeline.events:
        if event.dropped:
            dropped[event.dropped] = dropped.get(event.dropped, 0) + 1
    many, windows = len(timeline.events), len(timeline.spans)
    parts = [f"{many} message{'' if many == 1 else 's'}"]
    parts.append(f"{windows} window{'' if windows == 1 else 's'}")
    reasons = ", ".join(f"{reason} {count}" for reason, count in sorted(dropped.items()))
    parts.append(f"dropped: {reasons}" if reasons else "none dropped")
    return " · ".join(parts)


def _cut(text: str, width: int) -> str:
    line = " ".join(text.split())
    return line if len(line) <= width else f"{line[: width - 1]}…"
