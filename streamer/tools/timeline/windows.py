"""The windows that batches are of, by the metadata that their messages carry."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from streamer.core.timestamps import parse_rfc3339
from streamer.tools.timeline.model import Emission, WindowSpan
from streamer.window.pack.window_metadata import WINDOW_EMIT, WINDOW_END, WINDOW_KEY, WINDOW_START
from streamer.window.settings.window import Window


class WindowIndex:
    """Finds the window of a batch."""

    def __init__(self, window: Window) -> None:
        """Take the settings of the windows."""
        self._window = window
        self._known: dict[tuple[int, int, str | None], WindowSpan] = {}
        self._unbounded: list[WindowSpan] = []

    def record_emission(
        self, meta: Mapping[str, Any], numbers: list[int], at: int
    ) -> Emission | None:
        """Note a batch.

        Args:
            meta: the metadata of its first message.
            numbers: its messages.
            at: the clock, ns.

        Returns:
            The batch with its window; None when it is of no window.
        """
        reason = str(meta.get(WINDOW_EMIT, ""))
        if WINDOW_END in meta:
            span = self._find_bounded(meta)
        elif reason:
            span = WindowSpan(None, None, key=meta.get(WINDOW_KEY))
            self._unbounded.append(span)
        else:
            return None
        span.closed = at
        span.retracted = at if reason == "retracted" else None
        span.numbers = [*dict.fromkeys((*span.numbers, *numbers))]
        return Emission(at, span, numbers, reason)

    def list_windows(self) -> list[WindowSpan]:
        """Return the windows, oldest first."""
        spans = [*self._known.values(), *self._unbounded]
        return sorted(spans, key=lambda span: (span.closed if span.end is None else span.end) or 0)

    def _find_bounded(self, meta: Mapping[str, Any]) -> WindowSpan:
        # A window of the last event times that there are may end after them.
        end, key = parse_rfc3339(meta[WINDOW_END]).ns, meta.get(WINDOW_KEY)
        due = None
        if (size := self._window.implicit_size) is not None:
            start, due = end - size, self._window.due_time(end)
        else:
            start = parse_rfc3339(meta[WINDOW_START]).ns
        return self._known.setdefault((start, end, key), WindowSpan(start, end, due, key=key))
