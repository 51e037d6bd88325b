"""A timeline as lines, in the order of the clock, for the terminal."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from streamer.tools.text_style import Style, keep_text
from streamer.tools.timeline.model import Emission, Event, Timeline, WindowSpan, format_numbers
from streamer.tools.timeline.short_times import ShortTimes
from streamer.window.settings.window import Window

_MAX_PAYLOAD_WIDTH: Final = 60
_MIN_PAYLOAD_WIDTH: Final = 8
_MAX_KEY_WIDTH: Final = 24
_EMIT_TEXTS: Final = {
    "changes": "has changed",
    "early": "has changed",
    "on_time": "is on time",
    "late": "has changed though its end has passed",
    "deleted": "ends",
    "each": "grows",
    "event": "is given out",
    "forward": "passes on",
    "count": "is full",
    "idle": "closes as nothing comes any more",
    "retracted": "is taken back",
}


def format_timeline(timeline: Timeline, style: Style = keep_text, width: int = 180) -> str:
    """Return what happened, line by line; payloads are cut so that lines fit the width."""
    return "\n".join(_format_lines(timeline, style, width)) + "\n"


def _format_lines(timeline: Timeline, style: Style, width: int) -> Iterator[str]:
    short_times, window = ShortTimes.for_timeline(timeline), timeline.window
    yield style(f"{timeline.name}: {window.describe()}", "head")
    if short_times.date:
        yield f"{short_times.date}, UTC"
    yield ""
    steps: list[tuple[int, int, Event | Emission]] = []
    steps += [(event.arrived, 1, event) for event in timeline.events]
    # A micro-batch takes in what has arrived before it closes what is due.
    steps += [(one.at, 2, one) for one in timeline.emissions]
    wide = max((len(str(event.number)) for event in timeline.events), default=1) + 1
    payload_width = _fit_payload_width(
        timeline, short_times, width - len(short_times.format_full(timeline.ended)) - wide - 5
    )
    for at, _, one in sorted(steps, key=lambda step: step[:2]):
        clock = style(short_times.format_full(at), "time")
        if isinstance(one, Emission):
            yield f"{clock}  {style(_format_emission(one, timeline, short_times), 'closed')}"
        else:
            payload = style(_shorten_text(one.text, payload_width).ljust(payload_width), "payload")
            outcome = style(describe_outcome(one, window, short_times), _choose_tone(one))
            yield f"{clock}  {f'#{one.number}':{wide}} {payload}  {outcome}"
    for span in timeline.spans:
        if span.closed is None:
            pad = " " * len(short_times.format_full(timeline.ended))
            interval = format_interval(span, window, short_times)
            yield f"{pad}  {style(f'{interval} stays open', 'closed')}"
    yield ""
    yield format_summary(timeline)
    yield from _explain_expiry(timeline, short_times)


def _fit_payload_width(timeline: Timeline, short_times: ShortTimes, width: int) -> int:
    """Return how many columns payloads get: what is left beside the fates of those in windows."""
    windowed = [event for event in timeline.events if not event.dropped and not event.failed]
    outcome_width = max(
        (len(describe_outcome(event, timeline.window, short_times)) for event in windowed),
        default=0,
    )
    max_payload = max((len(event.text) for event in timeline.events), default=0)
    return max(min(max_payload, _MAX_PAYLOAD_WIDTH, width - outcome_width), _MIN_PAYLOAD_WIDTH)


def _format_emission(emission: Emission, timeline: Timeline, short_times: ShortTimes) -> str:
    span, many = emission.span, len(emission.numbers)
    count = f"{many} message{'' if many == 1 else 's'}"
    interval = format_interval(span, timeline.window, short_times)
    if emission.reason == "retracted":
        return f"☒ {interval} {_EMIT_TEXTS[emission.reason]}"
    text = f"▣ {interval} {_describe_emission(emission)}"
    return f"{text}, {count}: {format_numbers(emission.numbers)}" if many else f"{text}, {count}"


def _describe_emission(emission: Emission) -> str:
    if emission.span.is_cut:
        return "closes as the sample ends"
    if emission.is_early:
        return "closes as the input ends"
    return _EMIT_TEXTS.get(emission.reason, "closes")


def format_interval(span: WindowSpan, window: Window, short_times: ShortTimes) -> str:
    """Return a window's bounds, and its key: `[10:00:00, 10:00:10) of a`."""
    key = "" if span.key is None else f" of {_shorten_text(span.key, _MAX_KEY_WIDTH)}"
    if span.start is None or span.end is None:
        return f"window{key}"
    opened, closed = window.brackets
    start, end = map(short_times.format_short, (span.start, span.end))
    return f"{opened}{start}, {end}{closed}{key}"


def _choose_tone(event: Event) -> str:
    return "dropped" if event.dropped or event.failed else "taken"


def describe_outcome(event: Event, window: Window, short_times: ShortTimes) -> str:
    """Return in words what became of a message."""
    if event.failed:
        return f"○ failed upstream, passes by: {event.failed}"
    at = "" if event.time is None else f"at {short_times.format_short(event.time)} "
    if event.dropped:
        why = short_times.strip_date(event.why)
        return f"{at}✗ {event.dropped}: {why}"
    if window.passes_messages:
        return f"{at}→ goes on"
    spans = [*event.windows, *event.waiting]
    # Of a window whose result was taken back, the message is not; but it may be in no other.
    spans = [span for span in spans if span.retracted is None] or spans
    return f"{at}→ {_describe_windows(spans, window, short_times)}"


def _describe_windows(spans: list[WindowSpan], window: Window, short_times: ShortTimes) -> str:
    """Return in words which windows a message is in."""
    if not spans:
        return "no window that was emitted"
    ends = sorted({span.end for span in spans if span.end is not None})
    if not ends:
        return f"{len(spans)} window{'' if len(spans) == 1 else 's'}{_format_key(spans[0])}"
    key = _format_key(spans[0])
    if len(ends) > 2:
        first, last = short_times.format_short(ends[0]), short_times.format_short(ends[-1])
        return f"{len(ends)} windows{key}, ending {first} to {last}"
    if window.implicit_size is not None:
        end_times = " and ".join(map(short_times.format_short, ends))
        return f"window{'s' if len(ends) > 1 else ''} ending {end_times}"
    named = " and ".join(format_interval(span, window, short_times) for span in spans[:2])
    return f"window{'s' if len(spans) > 1 else ''} {named}"


def _format_key(span: WindowSpan) -> str:
    return "" if span.key is None else f" of {_shorten_text(span.key, _MAX_KEY_WIDTH)}"


def _explain_expiry(timeline: Timeline, short_times: ShortTimes) -> Iterator[str]:
    """Describe the message that made windows expire: on a clock that follows events, an odd one."""
    expired = next((event for event in timeline.events if event.dropped == "expired"), None)
    if expired is not None:
        first = next(one for one in timeline.events if one.arrived == expired.arrived)
        yield (
            f"windows expired as message #{first.number} moved the clock to "
            f"{short_times.format_short(first.arrived)}; to say when messages arrive, use --step "
            "or --arrival"
        )


def format_summary(timeline: Timeline) -> str:
    """Return how many messages and windows there were, and what was dropped."""
    dropped: dict[str, int] = {}
    for event in timeline.events:
        if event.dropped:
            dropped[event.dropped] = dropped.get(event.dropped, 0) + 1
    many, windows = len(timeline.events), len(timeline.spans)
    parts = [f"{many} message{'' if many == 1 else 's'}"]
    if timeline.is_cut:
        parts = [f"only the first {parts[0]}: windows at the end would hold more"]
    retracted = sum(span.retracted is not None for span in timeline.spans)
    taken_back = f", {retracted} taken back" if retracted else ""
    parts.append(f"{windows} window{'' if windows == 1 else 's'}{taken_back}")
    reasons = ", ".join(f"{reason} {count}" for reason, count in sorted(dropped.items()))
    parts.append(f"dropped: {reasons}" if reasons else "none dropped")
    return " · ".join(parts)


def _shorten_text(text: str, width: int) -> str:
    line = " ".join(text.split())
    return line if len(line) <= width else f"{line[: width - 1]}…"
