"""Receivers that connect: a thread that connects to a server, and spools what it gives.

A session lasts until the connection is lost or the stream stops; then there is another one, after a
pause that grows while there is no connection.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from streamer.connectors.spool.blocks import Record
from streamer.connectors.spool.connection_state import ConnectionState
from streamer.connectors.spool.spool_source import SpoolSource
from streamer.connectors.spool.spool_writer import SpoolWriter, StreamStoppedError
from streamer.connectors.spool.store import SpoolStore
from streamer.core.durations import SECOND
from streamer.core.errors import StreamerError
from streamer.sdk.backoff import RECONNECT
from streamer.sdk.input.input_context import InputContext


class ConnectionLostError(StreamerError):
    """The connection is lost, or was never there."""


class Session:
    """The context of one session.

    Attributes:
        context: the input's.
        store: the spool's.
        is_connected: whether the session has said that it is.
    """

    def __init__(
        self,
        context: InputContext,
        store: SpoolStore,
        labels: Mapping[str, str],
        state: ConnectionState,
    ) -> None:
        """Begin without a connection."""
        self._state = state
        self.context = context
        self.store = store
        self.is_connected = False
        self._labels = labels
        self._spool_writer = SpoolWriter(context, store, labels)

    def set_connected(self) -> None:
        """Note that there is a connection."""
        self.is_connected = True
        self._state.set_connected()
        self.context.count("input_connection_up", 1, **self._labels)

    def write(self, records: Sequence[Record], mark: Any = None) -> bool:
        """Return True when records are safe; wait while the disk does not take them.

        It is False when the stream has stopped before: then nothing was spooled.
        """
        try:
            self._spool_writer.write(records, mark)
        except StreamStoppedError:
            return False
        return True


def start_sessions(
    context: InputContext,
    name: str,
    labels: Mapping[str, str],
    session: Callable[[Session], None],
) -> SpoolSource:
    """Have sessions in a thread, one after the other, until one returns or the stream stops.

    The spool's store is closed when a session has returned before the stop.

    Args:
        context: the input's.
        name: the input's, for the log and the thread.
        labels: of its log lines and counts.
        session: connects, calls `set_connected`, and spools what comes; it returns at the end of
            what there is, or when the stream stops, and raises a LostError when the connection is
            lost.

    Returns:
        The source of what the spool holds.
    """
    store = SpoolStore.for_input(context)

    def run() -> None:
        pauses = RECONNECT.pauses()
        state = ConnectionState(context, name, labels)
        while not context.stopping:
            current = Session(context, store, labels, state)
            try:
                with state.connecting():
                    session(current)
                break
            except ConnectionLostError as error:
                state.set_failed(error)
                if current.is_connected:
                    pauses = RECONNECT.pauses()
                    context.count("input_connection_lost", 1, **labels)
                    context.log("ERROR", f"Connection of {name} lost: {error}", labels)
                else:
                    context.count("input_connection_failed", 1, **labels)
                    context.log("ERROR", f"Failed to connect to {name}: {error}", labels)
            context.wait(next(pauses) / SECOND)
        if not context.stopping:
            store.close()

    context.start(name, run)
    return SpoolSource.for_input(context)
