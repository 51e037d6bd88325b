"""The latest message of each id of a key: a later one replaces it, or takes it out.

Of a window without end that has a `latest_by`, the record of a key lists the ids, each with its
message; those that are replaced are freed at the end of the micro-batch.
"""

from __future__ import annotations

from collections.abc import Iterable

from streamer.bloblang import compile_mapping
from streamer.core.execution import Execution
from streamer.core.message import Message
from streamer.window.contract import LogLine
from streamer.window.keyed.delete_query import DeleteQuery
from streamer.window.keyed.emit_queue import ON_CHANGE, PER_EVENT, EmitQueue
from streamer.window.keyed.late_messages import DroppedRow, KeylessMessages
from streamer.window.keyed.message_rows import FreshPack, MessageRow
from streamer.window.keyed.state import KeyState, Window
from streamer.window.pack.message_columns import DecodedMetadata, encode_key
from streamer.window.pack.metadata_codec import decode_meta
from streamer.window.settings.event_time_window import EventWindow
from streamer.window.settings.window_types import Global

TimedArrival = tuple[int, int]
"""A message: its time, ns, and its arrival number."""


class LatestMessages:
    """Keeps of each id the latest message, in one micro-batch.

    Attributes:
        taken: how many messages were taken.
        replaced: by key, messages that no window needs any more.
        without_id: messages that are dropped, since they have no id.
    """

    def __init__(self, window: EventWindow, queue: EmitQueue, now: int, active: int) -> None:
        """Compile the mappings.

        Args:
            window: the window's settings; its kind has a `latest_by`.
            queue: gets the batches that events emit at once, and those of keys that end.
            now: batch time, ns.
            active: the running time of the stream, ns.
        """
        kind = window.kind
        assert isinstance(kind, Global)
        self._id_query = compile_mapping(kind.latest_by)
        self._by_time = window.sorts_by_time
        self._per_event = window.time.emit == "each"
        self._queue = queue
        self._active = active
        self._ex = Execution(lambda: now)
        self._decoded: DecodedMetadata = {}
        deletes = compile_mapping(kind.delete_when) if kind.delete_when else None
        self._delete_query = DeleteQuery(deletes, "messages", self._ex)
        self.taken = 0
        self.replaced: dict[bytes, list[TimedArrival]] = {}
        self.without_id = KeylessMessages("messages", "their latest_by gave no id")

    def assign(self, key: bytes, state: KeyState, rows: Iterable[MessageRow]) -> None:
        """Take the messages of a key, in order of arrival."""
        deleted: TimedArrival | None = None
        for arrival, time, _, loaded, row in rows:
            message = self._build_message(loaded, row)
            id_text = self._id_of(message)
            if id_text is None:
                self.without_id.append(DroppedRow(arrival, loaded, row))
                continue
            self.taken += 1
            before = state.latest.get(id_text)
            if self._by_time and before is not None and time < before[0]:
                self._replace(key, (time, arrival))
                continue
            if before is not None:
                self._replace(key, before)
            if self._delete_query.holds(message):
                self._replace(key, (time, arrival))
                if before is None:
                    continue
                del state.latest[id_text]
                deleted = None if state.latest else (time, arrival)
            else:
                state.latest[id_text] = time, arrival
                deleted = None
            self._change_window(state, arrival)
            if self._per_event:
                self._emit(key, state, deleted, arrival)
                deleted = None
        if deleted is not None:
            self._queue.queue_deleted(key, *deleted, ON_CHANGE)
        if state.latest and state.windows and state.windows[0].changed:
            _set_bounds(state.windows[0], state)

    def log_lines(self) -> tuple[LogLine, ...]:
        """Return the log lines of the micro-batch."""
        return self.without_id.log_lines() + self._delete_query.log_lines()

    def _change_window(self, state: KeyState, arrival: int) -> None:
        """Count a change of the window, which begins with the first id and ends with the last."""
        if not state.latest:
            state.windows = []
            return
        if not state.windows:
            state.windows = [Window(0, 0, arrival, 0, self._active)]
        window = state.windows[0]
        window.add(arrival, self._active)
        window.first = arrival
        window.count = len(state.latest)

    def _emit(
        self, key: bytes, state: KeyState, deleted: TimedArrival | None, arrival: int
    ) -> None:
        if deleted is not None:
            self._queue.queue_deleted(key, *deleted, PER_EVENT)
            return
        window = state.windows[0]
        _set_bounds(window, state)
        self._queue.emit_for_event(key, state, [window], "each", arrival)

    def _replace(self, key: bytes, message: TimedArrival) -> None:
        self.replaced.setdefault(key, []).append(message)

    def _build_message(self, loaded: FreshPack, row: int) -> Message:
        encoded = loaded.encoded_metadata(row)
        known = self._decoded.get(encoded)
        if known is None:
            known = self._decoded[encoded] = decode_meta(encoded)
        return Message(loaded.payloads[row], *known)

    def _id_of(self, message: Message) -> str | None:
        """Return the id of a message, as JSON; None if there is none."""
        try:
            key = encode_key(self._id_query.query([message], 0, self._ex))
        except Exception:  # whatever it ran into: there is no id
            return None
        return key.decode() if key else None


def _set_bounds(window: Window, state: KeyState) -> None:
    """Set the bounds of a window, and which messages it holds."""
    times = [time for time, _ in state.latest.values()]
    window.start, window.end = min(times), max(times)
    window.only = frozenset(arrival for _, arrival in state.latest.values())
