"""The batches of folded windows: the first message, and what their mapping's parts have come to."""

from __future__ import annotations

from contextlib import suppress
from functools import partial
from typing import NamedTuple

from streamer.errors import MessageError
from streamer.message import Message
from streamer.timestamps import format_rfc3339
from streamer.window.emission import Emission, WindowReason
from streamer.window.folds.release import FoldedGroup
from streamer.window.folds.running.fold import States
from streamer.window.keyed.folded import Folded
from streamer.window.keyed.lines import Lines
from streamer.window.keyed.state import Window
from streamer.window.labels import NEWEST, window_labels
from streamer.window.metas import Decoded


class Snapshot(NamedTuple):
    """What a folded window had come to when a batch of it came out.

    Attributes:
        folded: the window, as it went on from there.
        states: what its parts had come to.
        first: the arrival of its first message.
        newest: the largest event time, ns.
        size: how many messages it had.
        until: the arrival of its last message.
    """

    folded: Folded
    states: States
    first: int
    newest: int
    size: int
    until: int

    @classmethod
    def of(cls, window: Window, until: int) -> Snapshot | None:
        """Return what a window has come to by now; `until` is at or after its last arrival."""
        folded = window.folded
        if folded is None:
            return None
        return cls(folded, folded.states, window.first, folded.newest, window.count, until)


class FoldedGroups:
    """Makes the batches of folded windows."""

    def __init__(self, lines: Lines, keyed: bool, decoded: Decoded) -> None:
        """Prepare.

        Args:
            lines: the messages, among them the first of each window.
            keyed: whether messages are told of a key.
            decoded: remembers metadata.
        """
        self._lines = lines
        self._keyed = keyed
        self._decoded = decoded
        self._firsts: dict[tuple[bytes, int, int, int], tuple[int, Message]] = {}

    def emission(
        self,
        key: bytes,
        bounds: tuple[int, int],
        reason: WindowReason,
        snapshot: Snapshot,
        place: int | None = None,
    ) -> Emission:
        """Return the batch of a window.

        Args:
            key: the window's.
            bounds: its start and end, as its messages are told.
            reason: why it comes out.
            snapshot: what it had come to.
            place: where its first message is, when no other batch of the window is asked for.
        """
        folded, states, first, newest, size, until = snapshot
        if place is None:
            message = self._again(key, bounds, reason, first, newest)
        else:
            message = self._first(key, bounds, reason, place, newest)
        fold, broken = folded.fold, folded.broken
        assert fold is not None
        why = None if broken is None or broken.arrival > until else broken.text
        batch = FoldedGroup(message, fold.text, partial(fold.value, states, why), size)
        return Emission(bounds[1], batch, reason, key if self._keyed else None, bounds[0])

    def _first(
        self, key: bytes, bounds: tuple[int, int], reason: WindowReason, place: int, newest: int
    ) -> Message:
        """Return the first message of a window with its metadata."""
        told = (self._lines.spelling(place) or key) if self._keyed else None
        labels = window_labels(*bounds, reason, newest, told)
        return self._lines.message(place, labels, self._decoded)

    def _again(
        self, key: bytes, bounds: tuple[int, int], reason: WindowReason, arrival: int, newest: int
    ) -> Message:
        """Return it of a window that may be asked for more than once."""
        place = (key, arrival, *bounds)
        known = self._firsts.get(place)
        if known is None:
            where = self._lines.place_of(key, arrival)
            message = self._first(key, bounds, reason, where, newest)
        elif known[0] == newest:
            return known[1]
        else:
            message = known[1]
            if not message.has_doc():
                with suppress(MessageError):  # it is asked for more than once: parse it once
                    _ = message.doc
            message = message.told({**message.meta, NEWEST: format_rfc3339(newest)})
        self._firsts[place] = newest, message
        return message
