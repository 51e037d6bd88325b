"""A timeline as an SVG drawing: windows above, messages below, time from left to right.

A window's bar reaches from its start to its end, and on, lighter, to the moment when it closes. A
message is a dot at its event time, with a line to when it arrived; a cross if it was dropped.
"""

from __future__ import annotations

from typing import Final

from streamer.core.durations import SECOND, format_duration
from streamer.tools.drawing import Drawing, fit_text, measure_width
from streamer.tools.timeline.axis import Axis, Stretch
from streamer.tools.timeline.model import Event, Timeline, WindowSpan, format_numbers
from streamer.tools.timeline.short_times import ShortTimes
from streamer.tools.timeline.text import describe_outcome, format_interval, format_summary

Bounds = tuple[int, int]

MAX_ROWS: Final = 300
"""Messages that are drawn; the others are counted."""

_MAX_CLOSING_LINES: Final = 16
"""Windows whose closing is marked through all rows; more would hide the messages."""

_LEFT: Final = 20.0
_LABEL_WIDTH: Final = 290.0
_PLOT_WIDTH: Final = 560.0
_OUTCOME_WIDTH: Final = 300.0
_TRACK_HEIGHT: Final = 24.0
_ROW_HEIGHT: Final = 22.0
_TOP: Final = 74.0
_TICK_STEPS_NS: Final = (
    *(SECOND * n // 1000 for n in (1, 2, 5, 10, 20, 50, 100, 200, 500)),
    *(SECOND * n for n in (1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600)),
    *(SECOND * 3600 * n for n in (2, 3, 6, 12, 24, 48, 168, 720, 8760)),
)


def draw_timeline(timeline: Timeline) -> str:
    """Return the drawing as a text of its own."""
    return _TimelineRenderer(timeline).render()


def assign_tracks(spans: list[WindowSpan], bounds: list[Bounds]) -> list[int]:
    """Return for each window the first track in which it overlaps no other, its wait included."""
    free: list[int] = []
    tracks = []
    for span, (start, end) in zip(spans, bounds, strict=True):
        track = next((n for n, until in enumerate(free) if until <= start), len(free))
        # One that lasts no time is seen as well.
        until = max(end, start + 1, span.due or end, span.closed or end)
        if track == len(free):
            free.append(until)
        free[track] = until
        tracks.append(track)
    return tracks


def _find_bounds(span: WindowSpan, timeline: Timeline) -> Bounds:
    """Return where a window's bar begins and ends; without bounds, with its messages."""
    if span.start is not None and span.end is not None:
        return span.start, span.end
    events = [timeline.events[number - 1] for number in span.numbers]
    times = [event.arrived if event.time is None else event.time for event in events]
    return min(times), max(times)


class _TimelineRenderer:
    def __init__(self, timeline: Timeline) -> None:
        self._timeline = timeline
        self._short_times = ShortTimes.for_timeline(timeline)
        self._drawing = Drawing(f"Messages and windows of the stream {timeline.name}")
        self._events = timeline.events[:MAX_ROWS]
        self._bounds = [_find_bounds(span, timeline) for span in timeline.spans]
        busy = [
            (start, max(span.due or end, span.closed or end))
            for span, (start, end) in zip(timeline.spans, self._bounds, strict=True)
        ]
        for event in self._events:
            time = event.arrived if event.time is None else event.time
            busy += [(time, time), (event.arrived, event.arrived)]
        busy = busy or [(timeline.ended, timeline.ended)]
        max_gap = 2 * timeline.window.spacing
        self._axis = Axis.build(busy, max_gap, _LEFT + _LABEL_WIDTH, _PLOT_WIDTH)
        self._labelled = 0.0
        self._tracks = assign_tracks(timeline.spans, self._bounds)

    def render(self) -> str:
        """Draw everything, what is behind first."""
        drawing, timeline = self._drawing, self._timeline
        track_count = max(self._tracks, default=0) + 1
        bars = _TOP + 22
        rows = bars + track_count * _TRACK_HEIGHT + 16
        bottom = rows + len(self._events) * _ROW_HEIGHT + 4
        right = self._axis.right + 20 + _OUTCOME_WIDTH
        title = fit_text(timeline.name, right - 40, 18, False)
        drawing.draw_text(_LEFT, 32, title, "head")
        subtitle = f"{timeline.window.describe()} · {format_summary(timeline)}"
        drawing.draw_text(_LEFT, 54, fit_text(subtitle, right - 40, 13, False), "muted")
        self._draw_grid(bars, bottom)
        placed = [*zip(timeline.spans, self._bounds, self._tracks, strict=True)]
        if len(placed) <= _MAX_CLOSING_LINES:
            for span, _, track in placed:
                self._draw_closing(span, bars + (track + 1) * _TRACK_HEIGHT - 3, bottom)
        for span, bound, track in placed:
            self._draw_bar(span, bound, bars + track * _TRACK_HEIGHT)
        drawing.draw_text(_LEFT, bars + 15, "windows", "strong small")
        for number, event in enumerate(self._events):
            self._draw_row(event, rows + number * _ROW_HEIGHT)
        return drawing.render(right + _LEFT, self._draw_legend(bottom + 12) + 20)

    def _draw_grid(self, top: float, bottom: float) -> None:
        """Draw the axis: ticks with their times, and where time is shortened."""
        drawing, axis = self._drawing, self._axis
        date = f"{self._short_times.date} UTC" if self._short_times.date else "UTC"
        drawing.draw_text(_LEFT, _TOP + 10, date, "mono muted")
        for number, one in enumerate(axis.stretches):
            drawing.draw_rect(one.left, top - 6, one.right - one.left, bottom - top + 6, "panel", 0)
            if number:
                drawing.draw_text(one.left - 13, (top + bottom) / 2, "⋯", "muted", "middle")
            self._draw_ticks(one, top, bottom)

    def _draw_ticks(self, one: Stretch, top: float, bottom: float) -> None:
        drawing = self._drawing
        wide = (
            measure_width(self._short_times.format_full(one.begin).partition(".")[0], 11.5, True)
            + 14
        )
        max_ticks = max(int((one.right - one.left) / wide), 1)
        step = next(
            (s for s in _TICK_STEPS_NS if (one.end - one.begin) / s <= max_ticks),
            _TICK_STEPS_NS[-1],
        )
        for at in range(-(-one.begin // step) * step, one.end + 1, step):
            x = self._axis.x(at)
            drawing.draw_line(x, top - 6, x, bottom, "grid")
            if x - self._labelled >= wide:
                drawing.draw_text(
                    x, _TOP + 10, self._short_times.format_short(at), "mono muted", "middle"
                )
                self._labelled = x

    def _draw_closing(self, span: WindowSpan, top: float, bottom: float) -> None:
        """Mark the moment when a window closed, through all messages."""
        if span.closed is not None and not span.is_cut:
            x = self._axis.x(span.closed)
            self._drawing.draw_line(x, top, x, bottom, "edge-amber faint")

    def _draw_bar(self, span: WindowSpan, bounds: Bounds, y: float) -> None:
        """Draw a window, its wait for late messages, and the moment when it closed."""
        drawing, x = self._drawing, self._axis.x
        left, right = map(x, bounds)
        wide = max(right - left - 2, 2)
        drawing.draw_rect(left + 1, y + 2, wide, _TRACK_HEIGHT - 6, "ground", 4)
        drawing.draw_rect(
            left + 1, y + 2, wide, _TRACK_HEIGHT - 6, "blue tint", 4, self._describe_window(span)
        )
        edge = "dashed" if span.is_cut or span.retracted is not None else "edge-blue"
        drawing.draw_rect(left + 1, y + 2, wide, _TRACK_HEIGHT - 6, edge, 4)
        many = len(span.numbers)
        count = f"{many} message{'' if many == 1 else 's'}"
        key = "" if span.key is None else f"{span.key}: "
        texts = (f"{key}{count}", f"{key}{many}", str(many))
        fits = (text for text in texts if measure_width(text, 11.5) <= right - left - 8)
        text = next(fits, "" if left == right else str(many))
        drawing.draw_text((left + right) / 2, y + 15, text, "small blue", "middle")
        if span.retracted is not None:
            middle = y + _TRACK_HEIGHT / 2 - 1
            drawing.draw_line(left + 1, middle, max(right - 1, left + 3), middle, "edge-red")
            drawing.draw_text(right + 4, y + 15, "taken back", "small muted")
            return
        if span.closed is None or span.is_cut:
            drawing.draw_text(right + 4, y + 15, "cut" if span.is_cut else "open", "small muted")
            return
        closed = x(span.closed)
        if closed > right:
            drawing.draw_rect(right, y + 6, closed - right, _TRACK_HEIGHT - 14, "amber tint", 0)
        drawing.draw_line(closed, y + 1, closed, y + _TRACK_HEIGHT - 3, "edge-amber")

    def _describe_window(self, span: WindowSpan) -> str:
        short_times = self._short_times
        closed = (
            "open" if span.closed is None else f"closed at {short_times.format_short(span.closed)}"
        )
        if span.retracted is not None:
            closed = f"result taken back at {short_times.format_short(span.retracted)}"
        if span.is_cut:
            closed = "cut: it may get more messages than the sample has"
        text = f"{format_interval(span, self._timeline.window, short_times)}, {closed}"
        return f"{text}: {format_numbers(span.numbers)}"

    def _draw_row(self, event: Event, y: float) -> None:
        drawing, x, middle = self._drawing, self._axis.x, y + _ROW_HEIGHT / 2
        label = f"#{event.number}"
        drawing.draw_text(_LEFT + 34, middle + 4, label, "mono muted", "end")
        payload = fit_text(" ".join(event.text.split()), _LABEL_WIDTH - 58)
        drawing.draw_text(_LEFT + 42, middle + 4, payload, "mono")
        time = event.arrived if event.time is None else event.time
        outcome = describe_outcome(event, self._timeline.window, self._short_times)
        if event.arrived != time:
            drawing.draw_line(x(time), middle, x(event.arrived), middle, "line")
            drawing.draw_line(x(event.arrived), middle - 5, x(event.arrived), middle + 5, "line")
        title = f"#{event.number} arrived {self._short_times.format_full(event.arrived)}, {outcome}"
        if event.dropped:
            drawing.draw_cross(x(time), middle, 4.5, title)
        else:
            drawing.draw_circle(x(time), middle, 4.5, "muted" if event.failed else "green", title)
        style = "small red" if event.dropped else "small muted" if event.failed else "small"
        text = outcome if event.failed else outcome.partition("✗ " if event.dropped else "→ ")[2]
        drawing.draw_text(
            self._axis.right + 16, middle + 4, fit_text(text, _OUTCOME_WIDTH, 11.5, False), style
        )

    def _draw_legend(self, y: float) -> float:
        drawing, x = self._drawing, _LEFT + _LABEL_WIDTH
        left_out = len(self._timeline.events) - len(self._events)
        if left_out:
            drawing.draw_text(_LEFT, y + 4, f"and {left_out:,} more messages", "muted small")
        drawing.draw_circle(x + 5, y, 4.5, "green")
        drawing.draw_text(x + 16, y + 4, "event time", "small muted")
        drawing.draw_line(x + 90, y, x + 110, y, "line")
        drawing.draw_line(x + 110, y - 5, x + 110, y + 5, "line")
        drawing.draw_text(x + 118, y + 4, "arrival", "small muted")
        drawing.draw_cross(x + 175, y, 4.5)
        drawing.draw_text(x + 186, y + 4, "dropped", "small muted")
        drawing.draw_rect(x + 246, y - 4, 20, 8, "amber tint", 0)
        drawing.draw_line(x + 266, y - 8, x + 266, y + 8, "edge-amber")
        wait = self._timeline.window.allowed_lateness
        waits = f"waits {format_duration(wait)} for late messages, then " if wait else ""
        text = f"{waits}closes"
        drawing.draw_text(x + 274, y + 4, text, "small muted")
        return y
