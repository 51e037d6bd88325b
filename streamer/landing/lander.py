"""Landing what threads receive: each waits until its messages are safe, which is back pressure."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from streamer.errors import StreamerError
from streamer.landing.blocks import Record
from streamer.landing.connecting import Connecting
from streamer.landing.store import Store, StoreFullError
from streamer.source.opening import Room

FULL_WAIT: Final = 0.2
BROKEN_WAIT: Final = 1.0
FIRST_PAUSE: Final = 0.1
LONGEST_PAUSE: Final = 1.0
NO_LABELS: Final[Mapping[str, str]] = {}


class StoppedError(Exception):
    """The stream stops, and what was to land has not."""


class _Waiting:
    def __init__(self, record: Record) -> None:
        self.record = record
        self.safe = False


class Lander:
    """Lands records of several threads, as few syncs as can be; those of one thread in order."""

    def __init__(self, room: Room, store: Store, labels: Mapping[str, str] = NO_LABELS) -> None:
        """Take the store, to which others may write too, and the labels of log lines."""
        self._room = room
        self._store = store
        self._labels = labels
        self._waiting: list[_Waiting] = []
        self._lock = threading.Lock()
        self._writing = threading.Lock()

    def put(self, record: Record) -> None:
        """Return when a record is safe; while the store does not take it, it is tried again.

        Raises:
            StoppedError: the stream has stopped first.
        """
        mine = _Waiting(record)
        with self._lock:
            self._waiting.append(mine)
        with self._writing:
            # Whoever had the turn before has written what all had brought by then.
            if mine.safe:
                return
            with self._lock:
                group, self._waiting = self._waiting, []
            try:
                self.write([one.record for one in group])
            except StoppedError:
                with self._lock:
                    self._waiting = [one for one in group if one is not mine] + self._waiting
                raise
            for one in group:
                one.safe = True

    def write(self, records: Sequence[Record], mark: Any = None) -> None:
        """Write records as one block, with a mark; for who lands all by himself.

        Raises:
            StoppedError: the stream has stopped first.
        """
        told = False
        while True:
            try:
                return self._store.append(records, mark)
            except StoreFullError:
                wait = FULL_WAIT
            except OSError as e:
                wait = BROKEN_WAIT
                if not told:
                    text = f"Cannot write to the spool: {e.strerror or e}; trying again"
                    self._room.log("ERROR", text, self._labels)
                told = True
            if self._room.wait(wait):
                raise StoppedError


def connected(
    room: Room, what: str, attempt: Callable[[Callable[[], None]], None], retries: int = -1
) -> None:
    """Connect again and again, until the stream stops or there is no sense in it any more.

    Args:
        room: the input's.
        what: is connected to, for the log.
        attempt: connects, calls what it is given, and receives until the connection ends. An
            `OSError` or `StreamerError` before that is a connection that was not made.
        retries: how often in a row a connection that was not made is tried again; below 0 for ever.
    """
    pause, failures = FIRST_PAUSE, 0
    made = False
    connecting = Connecting(room, what)

    def up() -> None:
        nonlocal made
        made = True
        connecting.up()

    while not room.stopping:
        made = False
        try:
            with connecting.attempt():
                attempt(up)
        except StoppedError:
            return
        except (OSError, StreamerError) as e:
            if room.stopping:
                return
            done = "read message" if made else f"connect to {what}"
            room.log("ERROR", f"Failed to {done}: {e}", {})
            connecting.failed(e)
        if made:
            room.count("input_connection_lost")
            pause, failures = FIRST_PAUSE, 0
        else:
            room.count("input_connection_failed")
            failures += 1
            if 0 <= retries < failures:
                return
        if room.wait(pause):
            return
        pause = min(pause * 2, LONGEST_PAUSE)
