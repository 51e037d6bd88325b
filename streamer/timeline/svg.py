"""A timeline as an SVG drawing: windows above, messages below, time from left to right.

A window's bar reaches from its start to its end, and on, lighter, to the moment when it closes. A
message is a dot at its event time, with a line to when it arrived; a cross if it was dropped.
"""

from __future__ import annotations

from typing import Final

from streamer.durations import SECOND, format_duration
from streamer.svg import Drawing, fitted, width_of
from streamer.timeline.axis import Axis, Stretch
from streamer.timeline.model import Event, Span, Timeline, numbers
from streamer.timeline.moments import Moments
from streamer.timeline.text import fate, interval, summary
from streamer.window.words import lateness, phrase, step

Bounds = tuple[int, int]

MOST_ROWS: Final = 300
"""Messages that are drawn; the others are counted."""

_MOST_LINES: Final = 16
"""Windows whose closing is marked through all rows; more would hide the messages."""

_LEFT: Final = 20.0
_LABEL: Final = 290.0
_PLOT: Final = 560.0
_FATE: Final = 300.0
_LANE: Final = 24.0
_ROW: Final = 22.0
_TOP: Final = 74.0
_STEPS: Final = (
    *(SECOND * n // 1000 for n in (1, 2, 5, 10, 20, 50, 100, 200, 500)),
    *(SECOND * n for n in (1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600)),
    *(SECOND * 3600 * n for n in (2, 3, 6, 12, 24, 48, 168, 720, 8760)),
)


def svg_of(timeline: Timeline) -> str:
    """Return the drawing as a text of its own."""
    return _Writer(timeline).render()


def lanes(spans: list[Span], bounds: list[Bounds]) -> list[int]:
    """Return for each window the first lane in which it overlaps no other, its wait included."""
    free: list[int] = []
    found = []
    for span, (start, end) in zip(spans, bounds, strict=True):
        lane = next((n for n, until in enumerate(free) if until <= start), len(free))
        # One that lasts no time is seen as well.
        until = max(end, start + 1, span.due or end, span.closed or end)
        if lane == len(free):
            free.append(until)
        free[lane] = until
        found.append(lane)
    return found


def _bounds(span: Span, timeline: Timeline) -> Bounds:
    """Return where a window's bar begins and ends; without bounds, with its messages."""
    if span.start is not None and span.end is not None:
        return span.start, span.end
    events = [timeline.events[number - 1] for number in span.numbers]
    times = [event.arrived if event.time is None else event.time for event in events]
    return min(times), max(times)


class _Writer:
    def __init__(self, timeline: Timeline) -> None:
        self._timeline = timeline
        self._moments = Moments.of(timeline)
        self._drawing = Drawing(f"Messages and windows of the stream {timeline.name}")
        self._events = timeline.events[:MOST_ROWS]
        self._bounds = [_bounds(span, timeline) for span in timeline.spans]
        busy = [
            (start, max(span.due or end, span.closed or end))
            for span, (start, end) in zip(timeline.spans, self._bounds, strict=True)
        ]
        for event in self._events:
            time = event.arrived if event.time is None else event.time
            busy += [(time, time), (event.arrived, event.arrived)]
        busy = busy or [(timeline.ended, timeline.ended)]
        folded = 2 * step(timeline.window)
        self._axis = Axis.of(busy, folded, _LEFT + _LABEL, _PLOT)
        self._labelled = 0.0
        self._lanes = lanes(timeline.spans, self._bounds)

    def render(self) -> str:
        """Draw everything, what is behind first."""
        drawing, timeline = self._drawing, self._timeline
        lane_count = max(self._lanes, default=0) + 1
        bars = _TOP + 22
        rows = bars + lane_count * _LANE + 16
        bottom = rows + len(self._events) * _ROW + 4
        right = self._axis.right + 20 + _FATE
        title = fitted(timeline.name, right - 40, 18, False)
        drawing.text(_LEFT, 32, title, "head")
        said = f"{phrase(timeline.window)} · {summary(timeline)}"
        drawing.text(_LEFT, 54, fitted(said, right - 40, 13, False), "muted")
        self._grid(bars, bottom)
        placed = [*zip(timeline.spans, self._bounds, self._lanes, strict=True)]
        if len(placed) <= _MOST_LINES:
            for span, _, lane in placed:
                self._closing(span, bars + (lane + 1) * _LANE - 3, bottom)
        for span, bound, lane in placed:
            self._bar(span, bound, bars + lane * _LANE)
        drawing.text(_LEFT, bars + 15, "windows", "strong small")
        for number, event in enumerate(self._events):
            self._row(event, rows + number * _ROW)
        return drawing.render(right + _LEFT, self._legend(bottom + 12) + 20)

    def _grid(self, top: float, bottom: float) -> None:
        """Draw the axis: ticks with their times, and where time is folded."""
        drawing, axis = self._drawing, self._axis
        date = f"{self._moments.date} UTC" if self._moments.date else "UTC"
        drawing.text(_LEFT, _TOP + 10, date, "mono muted")
        for number, one in enumerate(axis.stretches):
            drawing.rect(one.left, top - 6, one.right - one.left, bottom - top + 6, "panel", 0)
            if number:
                drawing.text(one.left - 13, (top + bottom) / 2, "⋯", "muted", "middle")
            self._ticks(one, top, bottom)

    def _ticks(self, one: Stretch, top: float, bottom: float) -> None:
        drawing = self._drawing
        wide = width_of(self._moments.text(one.begin).partition(".")[0], 11.5, True) + 14
        most = max(int((one.right - one.left) / wide), 1)
        step = next((s for s in _STEPS if (one.end - one.begin) / s <= most), _STEPS[-1])
        for at in range(-(-one.begin // step) * step, one.end + 1, step):
            x = self._axis.x(at)
            drawing.line(x, top - 6, x, bottom, "grid")
            if x - self._labelled >= wide:
                drawing.text(x, _TOP + 10, self._moments.short(at), "mono muted", "middle")
                self._labelled = x

    def _closing(self, span: Span, top: float, bottom: float) -> None:
        """Mark the moment when a window closed, through all messages."""
        if span.closed is not None:
            x = self._axis.x(span.closed)
            self._drawing.line(x, top, x, bottom, "edge-amber faint")

    def _bar(self, span: Span, bounds: Bounds, y: float) -> None:
        """Draw a window, its wait for late messages, and the moment when it closed."""
        drawing, x = self._drawing, self._axis.x
        left, right = map(x, bounds)
        wide = max(right - left - 2, 2)
        drawing.rect(left + 1, y + 2, wide, _LANE - 6, "ground", 4)
        drawing.rect(left + 1, y + 2, wide, _LANE - 6, "blue tint", 4, self._told(span))
        drawing.rect(left + 1, y + 2, wide, _LANE - 6, "edge-blue", 4)
        many = len(span.numbers)
        count = f"{many} message{'' if many == 1 else 's'}"
        key = "" if span.key is None else f"{span.key}: "
        texts = (f"{key}{count}", f"{key}{many}", str(many))
        fits = (text for text in texts if width_of(text, 11.5) <= right - left - 8)
        text = next(fits, "" if left == right else str(many))
        drawing.text((left + right) / 2, y + 15, text, "small blue", "middle")
        if span.closed is None:
            drawing.text(right + 4, y + 15, "open", "small muted")
            return
        closed = x(span.closed)
        if closed > right:
            drawing.rect(right, y + 6, closed - right, _LANE - 14, "amber tint", 0)
        drawing.line(closed, y + 1, closed, y + _LANE - 3, "edge-amber")

    def _told(self, span: Span) -> str:
        moments = self._moments
        closed = "open" if span.closed is None else f"closed at {moments.short(span.closed)}"
        text = f"{interval(span, self._timeline.window, moments)}, {closed}"
        return f"{text}: {numbers(span.numbers)}"

    def _row(self, event: Event, y: float) -> None:
        drawing, x, middle = self._drawing, self._axis.x, y + _ROW / 2
        label = f"#{event.number}"
        drawing.text(_LEFT + 34, middle + 4, label, "mono muted", "end")
        payload = fitted(" ".join(event.text.split()), _LABEL - 58)
        drawing.text(_LEFT + 42, middle + 4, payload, "mono")
        time = event.arrived if event.time is None else event.time
        told = fate(event, self._timeline.window, self._moments)
        if event.arrived != time:
            drawing.line(x(time), middle, x(event.arrived), middle, "line")
            drawing.line(x(event.arrived), middle - 5, x(event.arrived), middle + 5, "line")
        title = f"#{event.number} arrived {self._moments.text(event.arrived)}, {told}"
        if event.dropped:
            drawing.cross(x(time), middle, 4.5, title)
        else:
            drawing.circle(x(time), middle, 4.5, "muted" if event.failed else "green", title)
        style = "small red" if event.dropped else "small muted" if event.failed else "small"
        said = told if event.failed else told.partition("✗ " if event.dropped else "→ ")[2]
        drawing.text(self._axis.right + 16, middle + 4, fitted(said, _FATE, 11.5, False), style)

    def _legend(self, y: float) -> float:
        drawing, x = self._drawing, _LEFT + _LABEL
        left_out = len(self._timeline.events) - len(self._events)
        if left_out:
            drawing.text(_LEFT, y + 4, f"and {left_out:,} more messages", "muted small")
        drawing.circle(x + 5, y, 4.5, "green")
        drawing.text(x + 16, y + 4, "event time", "small muted")
        drawing.line(x + 90, y, x + 110, y, "line")
        drawing.line(x + 110, y - 5, x + 110, y + 5, "line")
        drawing.text(x + 118, y + 4, "arrival", "small muted")
        drawing.cross(x + 175, y, 4.5)
        drawing.text(x + 186, y + 4, "dropped", "small muted")
        drawing.rect(x + 246, y - 4, 20, 8, "amber tint", 0)
        drawing.line(x + 266, y - 8, x + 266, y + 8, "edge-amber")
        wait = lateness(self._timeline.window)
        waits = f"waits {format_duration(wait)} for late messages, then " if wait else ""
        text = f"{waits}closes"
        drawing.text(x + 274, y + 4, text, "small muted")
        return y
