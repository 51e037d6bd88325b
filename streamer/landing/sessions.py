"""Receivers that ask: a thread that connects to a server, and lands what it gives.

A session lasts until the connection is lost or the stream stops; then there is another one, after a
pause that grows while there is no connection.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from streamer.backoff import RECONNECT
from streamer.durations import SECOND
from streamer.errors import StreamerError
from streamer.landing.blocks import Record
from streamer.landing.connecting import Connecting
from streamer.landing.lander import Lander, StoppedError
from streamer.landing.store import Store
from streamer.source.opening import Room


class LostError(StreamerError):
    """The connection is lost, or was never there."""


class Session:
    """What one session is given.

    Attributes:
        room: the input's.
        store: where messages land.
        connected: whether the session has said that it is.
    """

    def __init__(
        self, room: Room, store: Store, labels: Mapping[str, str], connecting: Connecting
    ) -> None:
        """Begin without a connection."""
        self._connecting = connecting
        self.room = room
        self.store = store
        self.connected = False
        self._labels = labels
        self._lander = Lander(room, store, labels)

    def up(self) -> None:
        """Say that there is a connection."""
        self.connected = True
        self._connecting.up()
        self.room.count("input_connection_up", 1, **self._labels)

    def land(self, records: Sequence[Record], mark: Any = None) -> bool:
        """Return True when records are safe; wait while the disk does not take them.

        It is False when the stream has stopped before: then nothing has landed.
        """
        try:
            self._lander.write(records, mark)
        except StoppedError:
            return False
        return True


def receive_in_sessions(
    room: Room,
    store: Store,
    name: str,
    labels: Mapping[str, str],
    session: Callable[[Session], None],
) -> None:
    """Have sessions in a thread, one after the other, until one returns or the stream stops.

    Args:
        room: the input's.
        store: where messages land; it is closed when a session has returned before the stop.
        name: the input's, for the log and the thread.
        labels: of its log lines and counts.
        session: connects, calls `up`, and lands what comes; it returns at the end of what there
            is, or when the stream stops, and raises a LostError when the connection is lost.
    """

    def run() -> None:
        pauses = RECONNECT.pauses()
        connecting = Connecting(room, name, labels)
        while not room.stopping:
            one = Session(room, store, labels, connecting)
            try:
                with connecting.attempt():
                    session(one)
                break
            except LostError as error:
                connecting.failed(error)
                if one.connected:
                    pauses = RECONNECT.pauses()
                    room.count("input_connection_lost", 1, **labels)
                    room.log("ERROR", f"Connection of {name} lost: {error}", labels)
                else:
                    room.count("input_connection_failed", 1, **labels)
                    room.log("ERROR", f"Failed to connect to {name}: {error}", labels)
            room.wait(next(pauses) / SECOND)
        if not room.stopping:
            store.close()

    room.start(name, run)
