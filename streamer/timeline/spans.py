"""The windows that batches are of, by the metadata that their messages carry."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from streamer.timeline.model import Emission, Span
from streamer.timestamps import parse_rfc3339
from streamer.window import SystemWindow
from streamer.window.labels import EMIT, END, KEY, START
from streamer.window.words import AnyWindow


class Spans:
    """Finds the window of a batch."""

    def __init__(self, window: AnyWindow) -> None:
        """Take the settings of the windows."""
        self._window = window
        self._known: dict[tuple[int, int, str | None], Span] = {}
        self._unbounded: list[Span] = []

    def emitted(self, meta: Mapping[str, Any], numbers: list[int], at: int) -> Emission | None:
        """Note a batch.

        Args:
            meta: the metadata of its first message.
            numbers: its messages.
            at: the clock, ns.

        Returns:
            The batch with its window; None when it is of no window.
        """
        reason = str(meta.get(EMIT, ""))
        if END in meta:
            span = self._bounded(meta)
        elif reason:
            span = Span(None, None, key=meta.get(KEY))
            self._unbounded.append(span)
        else:
            return None
        span.closed = at
        span.numbers = [*dict.fromkeys((*span.numbers, *numbers))]
        return Emission(at, span, numbers, reason)

    def all(self) -> list[Span]:
        """Return the windows, oldest first."""
        found = [*self._known.values(), *self._unbounded]
        return sorted(found, key=lambda span: (span.closed if span.end is None else span.end) or 0)

    def _bounded(self, meta: Mapping[str, Any]) -> Span:
        # A window of the last event times that there are may end after them.
        end, key = parse_rfc3339(meta[END]).ns, meta.get(KEY)
        due = None
        if isinstance(self._window, SystemWindow):
            start, due = end - self._window.size, self._window.due(end)
        else:
            start = parse_rfc3339(meta[START]).ns
        return self._known.setdefault((start, end, key), Span(start, end, due, key=key))
