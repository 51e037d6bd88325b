"""Windows without messages: emitted for keys in the order of their windows, maybe filled.

Each key has a run of windows (`WindowRun`): from the first that has a message on, window after
window, until the key has been silent for so long that it is forgotten. What is emitted follows from
the times of messages and the clock alone, in whatever micro-batches they come.
"""

from __future__ import annotations

import hashlib
from bisect import bisect_right
from collections.abc import Sequence

from streamer.core.json.dump import dump_json
from streamer.core.json.parse import parse_json
from streamer.window.keyed.emit_queue import EmitQueue
from streamer.window.keyed.hopping import HoppingRules
from streamer.window.keyed.key_buckets import KeyBuckets
from streamer.window.keyed.session import SessionRules
from streamer.window.keyed.state import FOREVER, EdgeMessage, KeyState, Window, WindowRun


def listed_digest(keys: Sequence[bytes]) -> str:
    """Return a short text that is another one for other keys."""
    return hashlib.blake2b(b"\0".join(sorted(keys)), digest_size=8).hexdigest()


def begin_listed_runs(
    rules: HoppingRules | SessionRules, keys: Sequence[bytes], buckets: KeyBuckets, time: int
) -> None:
    """Begin the windows of keys that may never have a message.

    Args:
        rules: the rules of the windows.
        keys: the keys; those that have windows already keep them.
        buckets: the records of keys.
        time: the first window is the last one that holds this time, ns; a session is expected from
            then on.
    """
    if isinstance(rules, SessionRules):
        start, until = time, rules.expires_at(time)
        due = until
    else:
        assert rules.empty is not None
        start = rules.start_of(time)
        until = rules.end_of(start) + rules.empty.duration
        due = rules.close_time(Window(0, rules.end_of(start), 0, 0, 0))
    known = set(buckets.find_known(keys))
    dues = min(due, FOREVER), FOREVER, FOREVER
    buckets.insert(
        [(key, KeyState(run=WindowRun(start, until)), dues) for key in keys if key not in known]
    )


class MissingSessionCloser:
    """Emits the sessions of expected keys that have had no message in time."""

    def __init__(self, queue: EmitQueue, clock: int) -> None:
        """Take what gets them, and the watermark of all keys, ns."""
        self._queue = queue
        self._clock = clock

    def close_key(self, key: bytes, state: KeyState) -> None:
        """Emit the session of a key if it is due: it starts and ends when it was expected."""
        run = state.run
        if run is not None and self._clock >= run.until:
            self._queue.queue_empty(key, run.next_start, run.next_start, None)
            state.run = None

    def next_due(self, state: KeyState) -> int:
        """Return the clock at which a key is due for a session without messages, ns."""
        return FOREVER if state.run is None else state.run.until


StandIn = tuple[bytes, bytes]
"""Payload and encoded metadata of what stands in for the messages of a window."""


class EmptyWindowCloser:
    """Emits the windows without messages of one micro-batch, key by key."""

    def __init__(
        self, rules: HoppingRules, queue: EmitQueue, clock: int, is_flushing: bool
    ) -> None:
        """Prepare.

        Args:
            rules: the rules of the windows, which are emitted without messages, too.
            queue: gets what is emitted.
            clock: the watermark of all keys, ns.
            is_flushing: whether all windows close, since the input has ended.
        """
        assert rules.empty is not None
        self._rules = rules
        self._settings = rules.empty
        self._listed = frozenset(rules.empty.keys)
        self._queue = queue
        self._clock = clock
        self._is_flushing = is_flushing

    def close_key(self, key: bytes, state: KeyState) -> None:
        """Emit the due windows of a key that have no messages; those that have any still are open.

        Args:
            key: the key.
            state: its record; its run moves on behind the windows that close now.
        """
        run = self._begin_run(key, state)
        if run is None:
            return
        open_windows = {window.start: window for window in state.windows}
        starts = sorted(open_windows)
        while True:
            window = open_windows.get(run.next_start)
            if window is not None:
                if not self._closes(window):
                    return
                run.last = window.edges and window.edges[1]
                run.until = max(run.until, window.end + self._settings.duration)
            else:
                later = bisect_right(starts, run.next_start)
                following = open_windows[starts[later]] if later < len(starts) else None
                if run.next_start >= run.until:
                    if following is None:
                        state.run = None if self._has_ended(run) else run
                        return
                    run.next_start = following.start
                    continue
                if not self._emit_empty(key, state, run, following):
                    return
            run.next_start = self._rules.next_start(run.next_start)

    def next_due(self, state: KeyState) -> int:
        """Return the clock at which a key is due for a window without messages, ns."""
        run = state.run
        if run is None or any(window.start == run.next_start for window in state.windows):
            return FOREVER
        if self._settings.fill == "linear":
            # A window that may end the gap has a due time of its own.
            ends = any(run.next_start < window.start <= run.until for window in state.windows)
            return FOREVER if ends else self._end_due_at(run)
        if run.next_start >= run.until:
            return self._end_due_at(run)
        return self._due_at(self._rules.end_of(run.next_start))

    def _begin_run(self, key: bytes, state: KeyState) -> WindowRun | None:
        """Return the run of a key, begun where it has none, or moved back to an earlier window."""
        starts = [window.start for window in state.windows]
        if state.run is None and starts and (self._settings.seen or key in self._listed):
            state.run = WindowRun(min(starts), min(starts))
        elif state.run is not None and starts:
            state.run.next_start = min(state.run.next_start, *starts)
        return state.run

    def _due_at(self, end: int) -> int:
        return self._rules.close_time(Window(0, end, 0, 0, 0))

    def _closes(self, window: Window) -> bool:
        return self._is_flushing or self._clock >= self._rules.close_time(window)

    def _has_ended(self, run: WindowRun) -> bool:
        """Whether no message can come any more for a window that belongs to a run."""
        return self._clock >= self._end_due_at(run)

    def _end_due_at(self, run: WindowRun) -> int:
        """Return the clock at which no message can come any more for a run, ns."""
        if self._settings.fill != "linear":
            return self._due_at(run.until)
        # The window that begins where the run ends has a value to fill up to.
        return self._due_at(self._rules.end_of(self._rules.start_of(run.until)))

    def _emit_empty(
        self, key: bytes, state: KeyState, run: WindowRun, following: Window | None
    ) -> bool:
        """Emit the next window of a run, which has no messages, if it is due; return whether it is.

        Args:
            key: the key.
            state: its record.
            run: the run.
            following: the next window that has messages; None without one.
        """
        start, end = run.next_start, self._rules.end_of(run.next_start)
        stand_in = None
        if self._settings.fill == "linear":
            if following is None:
                if self._has_ended(run):
                    state.run = None
                return False
            if following.start > run.until:
                # One that is earlier may still come.
                return self._is_flushing or self._has_ended(run)
            if not self._closes(following):
                return False
            stand_in = _interpolate(run.last, following.edges and following.edges[0], start, end)
        elif not self._is_due(end, following):
            return False
        elif run.last is not None:
            stand_in = run.last.payload, run.last.meta
        self._queue.queue_empty(key, start, end, stand_in)
        if self._clock < self._due_at(end):
            state.closed_bounds.append((start, end))
        return True

    def _is_due(self, end: int, following: Window | None) -> bool:
        if self._clock >= self._due_at(end):
            return True
        # Of a window that has not ended nobody knows that it stays empty.
        return self._is_flushing and (end <= self._clock or following is not None)


def _interpolate(
    before: EdgeMessage | None, after: EdgeMessage | None, start: int, end: int
) -> StandIn | None:
    """Return a message between two others, as of the middle of a window."""
    if before is None or after is None:
        return None
    middle = (start + end) // 2
    span = max(after.time - before.time, 1)
    part = min(max(middle - before.time, 0), span), span
    try:
        between = _mix(parse_json(before.payload), parse_json(after.payload), part)
    except ValueError:  # what is no JSON has no numbers
        return before.payload, before.meta
    return dump_json(between), before.meta


def _mix(before: object, after: object, part: tuple[int, int]) -> object:
    """Return a value whose numbers lie between those of two others, and all else is the first's.

    Args:
        before: the first.
        after: the second.
        part: how far from the first to the second, as numerator and denominator: whole numbers
            that lie between whole numbers come out exactly.
    """
    if isinstance(before, dict) and isinstance(after, dict):
        return {
            name: _mix(value, after[name], part) if name in after else value
            for name, value in before.items()
        }
    if _is_number(before) and _is_number(after):
        low, high = float(before), float(after)  # type: ignore[arg-type]
        return before if low == high else low + (high - low) * part[0] / part[1]
    return before


def _is_number(value: object) -> bool:
    return not isinstance(value, bool | str | bytes) and hasattr(value, "__float__")
