"""Channels between the streams of one program: what an output gives, an input keeps in its spool.

A channel has a name. Its receivers are the inputs with this name, wherever in the program they
are. A receiver notes, in the same block of its spool as the messages, how much of which micro-batch
of a sender it has. So a micro-batch that is sent again after a crash adds only what is missing.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from typing import Any, Final

from streamer.connectors.spool.blocks import Record
from streamer.connectors.spool.store import SpoolStore

_SENDERS: Final = "inproc_senders"
_MAX_SENDERS: Final = 64
"""Senders that a receiver remembers. A sender is a checkpoint, and one that is gone stays gone."""


class ReceiverClosedError(OSError):
    """Raised when the stream of a receiver has stopped taking messages."""


class ChannelReceiver:
    """The end of a channel at which messages become safe. Threads may share it."""

    def __init__(self, store: SpoolStore) -> None:
        """Take the store, which nobody else writes."""
        self._store = store
        self._lock = threading.Lock()
        self._closed = False

    def count_received(self, sender: str, batch: int) -> int | None:
        """Return how many records of a micro-batch are here already.

        Args:
            sender: what no other sender is called.
            batch: number of the micro-batch.

        Returns:
            None when nothing of it is here, as far as that is remembered.
        """
        newest, records = self._senders().get(sender, (None, 0))
        return int(records) if newest == batch else None

    def append(self, records: Sequence[Record], sender: str, batch: int, received: int) -> None:
        """Take records of a micro-batch; when this returns they are safe.

        Args:
            records: the next ones.
            sender: what no other sender is called.
            batch: number of the micro-batch.
            received: how many records of it are here with these.

        Raises:
            StoreFullError: too much waits to be read.
            ReceiverClosedError: the stream stops.
            OSError: the disk is full or broken; nothing was taken.
        """
        with self._lock:
            if self._closed:
                raise ReceiverClosedError("the stream of the input inproc has stopped")
            senders = self._senders()
            senders.pop(sender, None)
            senders[sender] = [batch, received]
            for oldest in list(senders)[:-_MAX_SENDERS]:
                del senders[oldest]
            self._store.append(records, {_SENDERS: senders})

    def close(self) -> None:
        """Take no more; return when nothing is being written."""
        with self._lock:
            self._closed = True

    def _senders(self) -> dict[str, Any]:
        mark = self._store.mark
        return dict(mark[_SENDERS]) if isinstance(mark, dict) else {}


class Channels:
    """The channels of a program, by name."""

    def __init__(self) -> None:
        self._receivers: dict[str, list[ChannelReceiver]] = {}
        self._changed = threading.Condition()

    def add(self, name: str, receiver: ChannelReceiver) -> None:
        """Let a receiver take its turn in a channel."""
        with self._changed:
            self._receivers.setdefault(name, []).append(receiver)
            self._changed.notify_all()

    def remove(self, name: str, receiver: ChannelReceiver) -> None:
        """Leave a receiver out from now on."""
        with self._changed:
            left = [one for one in self._receivers.get(name, ()) if one is not receiver]
            if left:
                self._receivers[name] = left
            else:
                self._receivers.pop(name, None)

    def find_receiver(self, name: str, sender: str, batch: int) -> ChannelReceiver | None:
        """Return the receiver of a micro-batch: the one that has some of it, else whose turn it is.

        Args:
            name: the channel's.
            sender: what no other sender is called.
            batch: number of the micro-batch.

        Returns:
            None when the channel has no receiver now.
        """
        with self._changed:
            there = list(self._receivers.get(name, ()))
        for receiver in there:
            if receiver.count_received(sender, batch) is not None:
                return receiver
        return there[batch % len(there)] if there else None

    def wait_for_receiver(self, name: str, seconds: float, stopping: Callable[[], bool]) -> None:
        """Wait until a channel has a receiver, but no longer than so many seconds.

        Args:
            name: the channel's.
            seconds: the longest wait.
            stopping: whether to give up.
        """
        end = time.monotonic() + seconds
        with self._changed:
            while not self._receivers.get(name) and not stopping():
                left = end - time.monotonic()
                if left <= 0:
                    return
                self._changed.wait(min(left, 0.2))


CHANNELS: Final = Channels()
"""Those of this program: its streams do not know one another otherwise."""
