"""Landing what threads receive: each waits until its messages are safe, which is back pressure."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from streamer.connectors.spool.blocks import Record
from streamer.connectors.spool.connection_state import ConnectionState
from streamer.connectors.spool.store import SpoolStore, StoreFullError
from streamer.core.errors import StreamerError
from streamer.sdk.input.input_context import InputContext

FULL_RETRY_S: Final = 0.2
BROKEN_RETRY_S: Final = 1.0
FIRST_BACKOFF_S: Final = 0.1
MAX_BACKOFF_S: Final = 1.0
NO_LABELS: Final[Mapping[str, str]] = {}


class StreamStoppedError(Exception):
    """The stream stops, and messages that were to be spooled are not safe."""


class _PendingRecord:
    def __init__(self, record: Record) -> None:
        self.record = record
        self.is_safe = False


class SpoolWriter:
    """Writes records of several threads with few syncs; those of one thread in order."""

    def __init__(
        self, context: InputContext, store: SpoolStore, labels: Mapping[str, str] = NO_LABELS
    ) -> None:
        """Take the store, to which others may write too, and the labels of log lines."""
        self._context = context
        self._store = store
        self._labels = labels
        self._pending: list[_PendingRecord] = []
        self._lock = threading.Lock()
        self._write_lock = threading.Lock()

    def put(self, record: Record) -> None:
        """Return when a record is safe; while the store does not take it, it is tried again.

        Raises:
            StoppedError: the stream has stopped first.
        """
        mine = _PendingRecord(record)
        with self._lock:
            self._pending.append(mine)
        with self._write_lock:
            # Whoever had the turn before has written what all had brought by then.
            if mine.is_safe:
                return
            with self._lock:
                group, self._pending = self._pending, []
            try:
                self.write([one.record for one in group])
            except StreamStoppedError:
                with self._lock:
                    self._pending = [one for one in group if one is not mine] + self._pending
                raise
            for one in group:
                one.is_safe = True

    def write(self, records: Sequence[Record], mark: Any = None) -> None:
        """Write records as one block, with a mark; for a writer that is alone.

        Raises:
            StoppedError: the stream has stopped first.
        """
        is_reported = False
        while True:
            try:
                return self._store.append(records, mark)
            except StoreFullError:
                wait = FULL_RETRY_S
            except OSError as e:
                wait = BROKEN_RETRY_S
                if not is_reported:
                    text = f"Cannot write to the spool: {e.strerror or e}; trying again"
                    self._context.log("ERROR", text, self._labels)
                is_reported = True
            if self._context.wait(wait):
                raise StreamStoppedError


def connect_with_retry(
    context: InputContext,
    what: str,
    attempt: Callable[[Callable[[], None]], None],
    retries: int = -1,
) -> None:
    """Connect again and again, until the stream stops or there is no sense in it any more.

    Args:
        context: the input's.
        what: is connected to, for the log.
        attempt: connects, calls what it is given, and receives until the connection ends. An
            `OSError` or `StreamerError` before that is a connection that was not made.
        retries: how often in a row a connection that was not made is tried again; below 0 for ever.
    """
    pause, failures = FIRST_BACKOFF_S, 0
    is_connected = False
    state = ConnectionState(context, what)

    def set_connected() -> None:
        nonlocal is_connected
        is_connected = True
        state.set_connected()

    while not context.stopping:
        is_connected = False
        try:
            with state.connecting():
                attempt(set_connected)
        except StreamStoppedError:
            return
        except (OSError, StreamerError) as e:
            if context.stopping:
                return
            done = "read message" if is_connected else f"connect to {what}"
            context.log("ERROR", f"Failed to {done}: {e}", {})
            state.set_failed(e)
        if is_connected:
            context.count("input_connection_lost")
            pause, failures = FIRST_BACKOFF_S, 0
        else:
            context.count("input_connection_failed")
            failures += 1
            if 0 <= retries < failures:
                return
        if context.wait(pause):
            return
        pause = min(pause * 2, MAX_BACKOFF_S)
