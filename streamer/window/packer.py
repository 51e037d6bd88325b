"""Stage 1 of `system_window`: every message to its pane and shard, by what its mappings say."""

from __future__ import annotations

import zlib
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from streamer.bloblang.folding import Fold
from streamer.message import Batch, Execution, Message
from streamer.timestamps import parse_event_time
from streamer.window.chunks import Chunks, Origin
from streamer.window.drops import Drops
from streamer.window.folds.part import Column, selected
from streamer.window.held import Held
from streamer.window.ints import Ints
from streamer.window.metadata import encode_meta
from streamer.window.queries import Interpolated, Query
from streamer.window.row import Kind, Row
from streamer.window.stamps import BAD, SLOT_BITS, Groups, Slots
from streamer.window.system import SystemWindow
from streamer.window.ways import Way, fast_ways

NO_TIME = "its timestamp_mapping gave no time"


class Coded(NamedTuple):
    """What was seen of messages.

    Attributes:
        codes: by message, slot and group (`stamps.SLOT_BITS`).
        columns: what they bring to a fold, if there is one.
        reasons: why messages of the slot `BAD` have no time, in their order.
    """

    codes: Ints
    columns: list[Column] | None
    reasons: list[str]


class Packer(Chunks[Coded]):
    """Packs the messages of one task; make one for every task of a micro-batch."""

    def __init__(
        self,
        window: SystemWindow,
        shards: int,
        timestamp: Query,
        key: Interpolated | Query | None = None,
        keep_dropped: bool = False,
        fold: Fold | None = None,
        folds_after: int | None = None,
    ) -> None:
        """Prepare.

        Args:
            window: the window's settings.
            shards: how many shards there are; without a key, shard 0 gets everything.
            timestamp: gives a message's event time.
            key: gives the group, and by it the shard, of a message: an interpolation its text, a
                mapping its value as JSON. A message whose key fails goes to the empty key.
            keep_dropped: hand dropped messages on, for `late_output`.
            fold: what is asked of a window's messages, when it folds.
            folds_after: an event time, ns: messages up to it are kept as they are, since windows
                that hold them were begun under another mapping; None for no such time.
        """
        super().__init__()
        self._window = window
        self._shards = shards
        self._timestamp = timestamp
        self._key = key
        key_id = None if key is None else zlib.crc32(key.text.encode())
        self._groups = None if key is None else Groups(shards, not hasattr(key, "text_of"))
        self._slots = Slots(window.grid, 0, timestamp.uses.now)
        self._drops = Drops(keep_dropped)
        self._fast = fast_ways(timestamp, key, self._slots, self._groups)
        self._held = Held(self._slots, self._groups, key_id, fold, folds_after)

    def ready(self) -> list[Row]:
        """Take the rows that are finished already, so that they need not be held any longer."""
        return self._held.take()

    def rows(self) -> Iterator[Row]:
        """Finish: give all rows that are left, and the counters."""
        self._held.flush()
        yield from self.ready()
        yield from self._drops.rows()
        if self._window.end_of_input == "flush" and self._shards > 1:
            yield from self._newest()

    @property
    def _ways(self) -> Sequence[Way]:
        return self._fast

    def _begin(self, t: int) -> None:
        super()._begin(t)
        self._slots.at(t)

    def _make_room(self, size: int) -> None:
        self._held.make_room(size, self._shards)

    def _of_raws(self, way: Way, raws: list[bytes]) -> Coded:
        self._slots.reasons.clear()
        folder = self._held.folder
        if folder is None:
            codes, columns = np.array(way.of_raws(raws), np.int64), None
        else:
            codes, columns = folder.seen(way, raws)
        return Coded(codes, columns, list(self._slots.reasons))

    def _of_messages(self, way: Way, raws: list[bytes], messages: list[Message]) -> Coded:
        self._slots.reasons.clear()
        folder = self._held.folder
        bare = way.loads is None and folder is None
        docs: list[Any] = raws if bare else [message.doc for message in messages]
        codes = np.array(way.codes(docs), np.int64)
        columns = None if folder is None else folder.columns(docs)
        return Coded(codes, columns, list(self._slots.reasons))

    def _take(
        self,
        raws: list[bytes],
        lengths: Ints,
        seen: Coded,
        arrivals: Ints,
        metas: list[bytes],
        origin: Origin,
        ex: Execution,
    ) -> None:
        codes, columns, reasons = seen
        if reasons:
            good = codes >> SLOT_BITS != BAD
            for index, reason in zip(np.flatnonzero(~good).tolist(), reasons, strict=True):
                self._drops.drop(
                    "timestamp", NO_TIME, reason, origin(index), int(arrivals[index]), ex
                )
            chosen = np.flatnonzero(good)
            raws = [raws[index] for index in chosen.tolist()]
            if len(metas) > 1:
                metas = [metas[index] for index in chosen.tolist()]
            lengths, codes, arrivals = lengths[good], codes[good], arrivals[good]
            columns = columns and [selected(column, chosen) for column in columns]
        if raws:
            self._held.add(raws, lengths, codes, arrivals, metas, columns)

    def _add_message(
        self, batch: Batch, index: int, message: Message, arrival: int, ex: Execution
    ) -> None:
        if message.error is not None:
            self._drops.failed(message, arrival)
            return
        try:
            time = parse_event_time(self._timestamp.query(batch, index, ex))
        except Exception as e:  # the message alone is dropped, whatever its mapping ran into
            self._drops.drop("timestamp", NO_TIME, str(e) or repr(e), message, arrival, ex)
            return
        raw, meta = message.raw, encode_meta(message.meta)
        self._make_room(len(raw) + len(meta))
        code = self._slots.of_time(time) + self._group(batch, index, ex)
        self._held.add_one(message, code, arrival, meta)

    def _group(self, batch: Batch, index: int, ex: Execution) -> int:
        if self._groups is None or self._key is None:
            return 0
        try:
            if hasattr(self._key, "text_of"):
                return self._groups.of_result(self._key.text_of(batch, index, ex))
            return self._groups.of_result(self._key.query(batch, index, ex))
        except Exception:  # the processor that groups by this key will meet it again and say so
            return self._groups.of_bytes(b"")

    def _newest(self) -> Iterator[Row]:
        """Tell every shard of the newest pane of each kind: a flush moves all horizons alike."""
        newest: dict[Kind, int] = {}
        for kind, pane in self._slots.where[1:]:
            newest[kind] = max(pane, newest.get(kind, pane))
        for kind, pane in newest.items():
            for shard in range(self._shards):
                yield Row(shard, Kind.NEWEST, pane, 0, bytes([kind]))
