"""Open windows of a shard that keeps whole panes, and the keys in them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Final

from streamer.core.timestamps import format_rfc3339
from streamer.window.aggregate.aggregate_codec import decode_aggregates
from streamer.window.aggregate.fire_groups import CollectedGroups, PaneParts, fire_groups
from streamer.window.contract import Emission
from streamer.window.fire.fire_window import fire_window
from streamer.window.inspect.window_query import (
    WindowListing,
    WindowQuery,
    WindowRow,
)
from streamer.window.pack.message_columns import FiredGroup, GroupMetadata, SameMetadata
from streamer.window.pack.pack_codec import Pack, read_header
from streamer.window.pack.window_metadata import WINDOW_END, WindowMetadata, format_key, shorten_key
from streamer.window.panes.pane_step import EventWindowMetadata
from streamer.window.settings.system_window import SystemWindow
from streamer.window.settings.window import Window
from streamer.window.state.pane_store import Pane, PaneIndex, PaneStore
from streamer.window.state_store import StateStore

_MAX_BUCKETS: Final = 64
_MAX_WINDOWS: Final = 2_000
_NONE_CLOSED: Final = -(2**63) - 1
_LAST_PANE: Final = 2**63 - 1


class PaneWindows:
    """The open windows of one shard, as its state has them after a micro-batch."""

    def __init__(self, window: Window, store: StateStore) -> None:
        """Read the head of the shard's state; nothing is written."""
        self._window = window
        self._grid = window.grid
        self._index = PaneIndex(store, window)
        self._store = PaneStore(store, self._index)
        head = self._index.head
        self._closed_until = _NONE_CLOSED if head.horizon is None else head.horizon
        # The grid names windows [start, end) by the instants before.
        self._bound_offset = 0 if isinstance(window, SystemWindow) else 1

    @property
    def key_count(self) -> int:
        """Number of messages, which a listing looks through in the place of keys."""
        return self._index.summarise()[0]

    def list_windows(self, query: WindowQuery) -> WindowListing:
        """Return the windows that match a question, one for each key in them; in no order."""
        counts: dict[int, Counter[bytes | None]] = {}
        rows: list[WindowRow] = []
        total, is_complete = 0, True
        budget = query.max_keys
        for start, end, panes in self._open_windows():
            if query.start is not None and start + self._bound_offset != query.start:
                continue
            by_key: Counter[bytes | None] = Counter()
            for pane in panes:
                if pane.pane not in counts:
                    budget -= pane.count
                    if budget < 0 and counts:
                        is_complete = False
                        break
                    counts[pane.pane] = self._count_keys(pane)
                by_key.update(counts[pane.pane])
            matching = [
                self._row_of(text, start, end, count, panes)
                for key, count in by_key.items()
                if query.matches(text := self._key_text(key))
            ]
            total += len(matching)
            rows += matching
            if not is_complete:
                break
        return WindowListing(rows, total, is_complete)

    def emissions(self, query: WindowQuery) -> Iterator[Emission]:
        """Give what windows with exactly the question's key and start would emit now.

        All of a window is opened for that, so that those with very many messages are left out.
        """
        for start, end, panes in self._open_windows():
            first, last = start + self._bound_offset, end + self._bound_offset
            if query.start is not None and query.start != first:
                continue
            if sum(pane.count for pane in panes) > query.max_keys:
                continue
            for _, key, messages in self._fire(panes, first, last):
                if query.key is None or self._key_text(key) == shorten_key(query.key):
                    yield Emission(last, messages, "changes", key, first)

    def _open_windows(self) -> Iterator[tuple[int, int, list[Pane]]]:
        """Give start, end and panes of the open windows that hold messages, oldest first."""
        grid = self._grid
        panes, is_complete = self._index.first_panes(_MAX_BUCKETS)
        end = self._closed_until
        for _ in range(_MAX_WINDOWS):
            waiting = [pane for pane in panes if grid.last_end(pane.pane) > end]
            if not waiting:
                return
            end = grid.end_at_or_after(max(waiting[0].pane, end + 1))
            if not is_complete and end > panes[-1].pane:
                return
            for start in grid.starts_of(end):
                inside = [pane for pane in waiting if start < pane.pane <= min(end, _LAST_PANE)]
                if inside:
                    yield start, end, inside

    def _count_keys(self, pane: Pane) -> Counter[bytes | None]:
        """Return how many messages each key has in a pane."""
        counts: Counter[bytes | None] = Counter()
        for body, shift in self._store.load_packs(pane):
            header = read_header(body)
            if header.key_id is None:
                counts[None] += header.messages
            elif header.is_aggregated:
                groups = decode_aggregates(body, shift)
                for key, count in zip(groups.keys, groups.counts.tolist(), strict=True):
                    counts[key] += count
            else:
                pack = Pack(body, shift)
                for at, key in enumerate(pack.keys):
                    counts[key] += pack.starts[at + 1] - pack.starts[at]
        return counts

    def _row_of(
        self, key: str | None, start: int, end: int, count: int, panes: list[Pane]
    ) -> WindowRow:
        is_whole = count == sum(pane.count for pane in panes)
        return WindowRow(
            *(key, start + self._bound_offset, end + self._bound_offset, count),
            sum(pane.size for pane in panes) if is_whole else None,
            self._window.due_time(end),
            "event_time" if self._window.uses_event_time else "clock",
        )

    def _key_text(self, key: bytes | None) -> str | None:
        if key is None:
            return None
        # Keys of windows are values, those of a pipeline's groups are texts.
        text = format_key(key) if self._window.keyed else key.decode(errors="replace")
        return shorten_key(text)

    def _fire(self, panes: list[Pane], start: int, end: int) -> Iterator[FiredGroup]:
        stored = [entry for pane in panes for entry in self._store.load_packs(pane)]
        metadata: GroupMetadata = SameMetadata({WINDOW_END: format_rfc3339(end)})
        if not isinstance(self._window, SystemWindow):
            labels = WindowMetadata(start, end, "changes")
            metadata = EventWindowMetadata(labels, self._window.keyed, {})
        if any(pane.is_aggregated for pane in panes):
            parts = PaneParts(stored)
            return fire_groups(CollectedGroups(parts.aggregated, parts.message_packs), metadata)
        return fire_window(stored, metadata)
