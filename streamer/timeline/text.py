"""A timeline as lines, in the order of the clock, for the terminal."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Final

from streamer.timeline.model import Emission, Event, Span, Timeline, numbers
from streamer.timeline.moments import Moments
from streamer.window import SystemWindow
from streamer.window.words import AnyWindow, brackets, phrase

Style = Callable[[str, str], str]
"""Takes a text and what it is (`head`, `time`, `taken`, `dropped`, `closed`, `payload`)."""

_SHOWN: Final = 60
_LEAST: Final = 8
_LONGEST_KEY: Final = 24
_REASONS: Final = {
    "changes": "has changed",
    "each": "grows",
    "event": "is given out",
    "forward": "passes on",
    "count": "is full",
    "idle": "closes as nothing comes any more",
}


def _plain(text: str, what: str) -> str:
    return text


def text_of(timeline: Timeline, style: Style = _plain, width: int = 180) -> str:
    """Return what happened, line by line; payloads are cut so that lines fit the width."""
    return "\n".join(_lines(timeline, style, width)) + "\n"


def _lines(timeline: Timeline, style: Style, width: int) -> Iterator[str]:
    moments, window = Moments.of(timeline), timeline.window
    yield style(f"{timeline.name}: {phrase(window)}", "head")
    if moments.date:
        yield f"{moments.date}, UTC"
    yield ""
    steps: list[tuple[int, int, Event | Emission]] = []
    steps += [(event.arrived, 1, event) for event in timeline.events]
    # A micro-batch takes in what has arrived before it closes what is due.
    steps += [(one.at, 2, one) for one in timeline.emissions]
    wide = max((len(str(event.number)) for event in timeline.events), default=1) + 1
    room = _room(timeline, moments, width - len(moments.text(timeline.ended)) - wide - 5)
    for at, _, one in sorted(steps, key=lambda step: step[:2]):
        clock = style(moments.text(at), "time")
        if isinstance(one, Emission):
            yield f"{clock}  {style(_emitted(one, window, moments), 'closed')}"
        else:
            payload = style(_cut(one.text, room).ljust(room), "payload")
            told = style(fate(one, window, moments), _tone(one))
            yield f"{clock}  {f'#{one.number}':{wide}} {payload}  {told}"
    for span in timeline.spans:
        if span.closed is None:
            pad = " " * len(moments.text(timeline.ended))
            yield f"{pad}  {style(f'{interval(span, window, moments)} stays open', 'closed')}"
    yield ""
    yield summary(timeline)
    yield from _hint(timeline, moments)


def _room(timeline: Timeline, moments: Moments, width: int) -> int:
    """Return how many columns payloads get: what is left beside the fates of those in windows."""
    taken = [event for event in timeline.events if not event.dropped and not event.failed]
    told = max((len(fate(event, timeline.window, moments)) for event in taken), default=0)
    longest = max((len(event.text) for event in timeline.events), default=0)
    return max(min(longest, _SHOWN, width - told), _LEAST)


def _emitted(emission: Emission, window: AnyWindow, moments: Moments) -> str:
    span, many = emission.span, len(emission.numbers)
    count = f"{many} message{'' if many == 1 else 's'}"
    text = f"▣ {interval(span, window, moments)} {_doing(emission)}"
    return f"{text}, {count}: {numbers(emission.numbers)}"


def _doing(emission: Emission) -> str:
    early = emission.span.due is not None and emission.at < emission.span.due
    if early or emission.reason == "flush":
        return "closes as the input ends"
    return _REASONS.get(emission.reason, "closes")


def interval(span: Span, window: AnyWindow, moments: Moments) -> str:
    """Return a window's bounds, and its key: `[10:00:00, 10:00:10) of a`."""
    key = "" if span.key is None else f" of {_cut(span.key, _LONGEST_KEY)}"
    if span.start is None or span.end is None:
        return f"window{key}"
    opened, closed = brackets(window)
    return f"{opened}{moments.short(span.start)}, {moments.short(span.end)}{closed}{key}"


def _tone(event: Event) -> str:
    return "dropped" if event.dropped or event.failed else "taken"


def fate(event: Event, window: AnyWindow, moments: Moments) -> str:
    """Return in words what became of a message."""
    if event.failed:
        return f"○ failed upstream, passes by: {event.failed}"
    at = "" if event.time is None else f"at {moments.short(event.time)} "
    if event.dropped:
        why = moments.within(event.why)
        return f"{at}✗ {event.dropped}: {why}"
    return f"{at}→ {_into([*event.windows, *event.waiting], window, moments)}"


def _into(spans: list[Span], window: AnyWindow, moments: Moments) -> str:
    """Return in words which windows a message is in."""
    if not spans:
        return "no window that was emitted"
    ends = sorted({span.end for span in spans if span.end is not None})
    if not ends:
        return f"{len(spans)} window{'' if len(spans) == 1 else 's'}{_of_key(spans[0])}"
    key = _of_key(spans[0])
    if len(ends) > 2:
        first, last = moments.short(ends[0]), moments.short(ends[-1])
        return f"{len(ends)} windows{key}, ending {first} to {last}"
    if isinstance(window, SystemWindow):
        said = " and ".join(map(moments.short, ends))
        return f"window{'s' if len(ends) > 1 else ''} ending {said}"
    named = " and ".join(interval(span, window, moments) for span in spans[:2])
    return f"window{'s' if len(spans) > 1 else ''} {named}"


def _of_key(span: Span) -> str:
    return "" if span.key is None else f" of {_cut(span.key, _LONGEST_KEY)}"


def _hint(timeline: Timeline, moments: Moments) -> Iterator[str]:
    """Say which message made windows expire: on a clock that follows events, it is an odd one."""
    expired = next((event for event in timeline.events if event.dropped == "expired"), None)
    if expired is not None:
        first = next(one for one in timeline.events if one.arrived == expired.arrived)
        yield (
            f"windows expired as message #{first.number} moved the clock to "
            f"{moments.short(first.arrived)}; to say when messages arrive, use --step or --arrival"
        )


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
