"""What stage 1 holds of a task's messages: folded where that can be done, whole where not."""

from __future__ import annotations

from contextlib import suppress

import numpy as np
from numpy.typing import NDArray

from streamer.bloblang.folding import Fold
from streamer.errors import MessageError
from streamer.message import Message
from streamer.window.columns import Collector, Timed
from streamer.window.folds.folder import Folder
from streamer.window.folds.part import Column, selected
from streamer.window.ints import Ints
from streamer.window.pack import lengths_of
from streamer.window.row import Kind, Row
from streamer.window.stamps import GROUP_MASK, SLOT_BITS, Groups, Places


class Held:
    """Holds messages, and makes rows of them.

    Attributes:
        folder: folds messages; None when they are held whole.
    """

    def __init__(
        self,
        slots: Places,
        groups: Groups | None,
        key_id: int | None,
        fold: Fold | None,
        folds_after: int | None,
        only_newest: bool = False,
    ) -> None:
        """Prepare.

        Args:
            slots: where messages go.
            groups: their groups; None without a key.
            key_id: identifies the key's expression; None without one.
            fold: what is asked of a window's messages, when it folds.
            folds_after: an event time, ns: messages up to it are held whole; None for none.
            only_newest: keep of event times but the largest of each group.
        """
        self.folder = None if fold is None else Folder(fold, key_id)
        self._slots = slots
        self._groups = groups
        self._key_id = key_id or 0
        self._folds_after = folds_after
        self._only_newest = Kind.PACK if only_newest else None
        self._whole = Collector()
        self._ready: list[Row] = []

    def add(
        self,
        raws: list[bytes],
        lengths: Ints,
        codes: Ints,
        arrivals: Ints,
        metas: list[bytes],
        columns: list[Column] | None,
        timed: Timed | None = None,
    ) -> None:
        """Hold messages.

        Args:
            raws: payloads.
            lengths: by message, of its payload.
            codes: by message, slot and group (`stamps.SLOT_BITS`).
            arrivals: by message.
            metas: by message, as `encode_meta` writes it; or the one that all share.
            columns: what they bring to the fold; None when they are to be held whole.
            timed: their event times, for windows that follow them.
        """
        if self.folder is None or columns is None:
            self._whole.add(raws, lengths, codes, arrivals, metas, timed)
            return
        stays = self._stays_whole(codes)
        if stays is None:
            times = None if timed is None else timed.times
            self.folder.add(raws, codes, arrivals, metas, columns, times)
        else:
            chosen, folded = np.flatnonzero(stays), np.flatnonzero(~stays)
            some, of = _chosen(raws, metas, chosen)
            of_these = timed and timed.of(chosen)
            self._whole.add(some, lengths[chosen], codes[chosen], arrivals[chosen], of, of_these)
            some, of = _chosen(raws, metas, folded)
            brings = [selected(column, folded) for column in columns]
            times = None if timed is None else timed.times[folded]
            self.folder.add(some, codes[folded], arrivals[folded], of, brings, times)
        if not self.folder.worthwhile:
            self.flush()
            self.folder = None

    def add_one(
        self, message: Message, code: int, arrival: int, meta: bytes, timed: Timed | None = None
    ) -> None:
        """Hold a message that came by itself."""
        raw = message.raw
        if self.folder is not None:
            with suppress(MessageError):  # what is no document is held whole
                columns = self.folder.columns([message.doc])
                one = np.array([code], np.int64)
                lengths, arrivals = lengths_of([raw]), np.array([arrival])
                self.add([raw], lengths, one, arrivals, [meta], columns, timed)
                return
        self._whole.add_one(raw, code, arrival, meta, timed)

    def make_room(self, size: int, shards: int) -> None:
        """Make rows of what is held if so many more bytes would be too many."""
        rows = (len(self._slots.where) - 1) * (shards if self._groups is not None else 1)
        full = self.folder is not None and self.folder.full
        if full or not self._whole.has_room(size, rows):
            self.flush()

    def flush(self) -> None:
        """Make rows of all that is held."""
        where = self._slots.where
        rows = self._whole.rows(where, self._groups, self._key_id, self._only_newest)
        self._ready.extend(rows)
        self._whole = Collector()
        if self.folder is not None:
            self._ready.extend(self.folder.rows(where, self._groups))
        if self._groups is not None:
            self._groups.forget()

    def take(self) -> list[Row]:
        """Take the rows that were made."""
        rows, self._ready = self._ready, []
        return rows

    def _stays_whole(self, codes: Ints) -> NDArray[np.bool_] | None:
        """Return which messages are held whole; None when all are folded."""
        stays: NDArray[np.bool_] | None = None
        if self._groups is not None and self._groups.empty is not None:
            stays = (codes & GROUP_MASK) == self._groups.empty
        where = self._slots.where
        if any(kind == Kind.DISORDERED for kind, _ in where):
            # They may be in some windows of their pane only.
            apart = np.array([kind == Kind.DISORDERED for kind, _ in where])[codes >> SLOT_BITS]
            stays = apart | (False if stays is None else stays)
        if self._folds_after is not None:
            after = self._folds_after
            early = np.array([self._time_of(*place) <= after for place in where])
            stays = early[codes >> SLOT_BITS] | (False if stays is None else stays)
        return stays if stays is not None and stays.any() else None

    def _time_of(self, kind: Kind, pane: int) -> int:
        return pane if kind in (Kind.PACK, Kind.DISORDERED) else self._slots.t


def _chosen(raws: list[bytes], metas: list[bytes], chosen: Ints) -> tuple[list[bytes], list[bytes]]:
    indices = chosen.tolist()
    of = metas if len(metas) == 1 else [metas[index] for index in indices]
    return [raws[index] for index in indices], of
