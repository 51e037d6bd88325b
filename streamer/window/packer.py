"""Stage 1 of a window: evaluate its mappings once per message, and pack messages by shard and pane.

Where the mappings need the parsed document alone, messages are taken by the thousand; a chunk with
a message that fails is taken again in smaller ones, and the few around it one by one.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterator, Mapping
from contextlib import suppress
from typing import Any, Final

import numpy as np

from streamer.bloblang.folding import Fold
from streamer.documents import payloads
from streamer.errors import StreamerError
from streamer.message import Batch, Execution, Message
from streamer.timestamps import parse_event_time
from streamer.window.drops import Drops
from streamer.window.folds.part import Column, selected
from streamer.window.held import Held
from streamer.window.ints import Ints
from streamer.window.metadata import encode_meta
from streamer.window.pack import lengths_of
from streamer.window.queries import Interpolated, Query
from streamer.window.row import Kind, Row
from streamer.window.stamps import BAD, SLOT_BITS, Groups, Slots
from streamer.window.system import SystemWindow
from streamer.window.ways import Way, fast_ways

CHUNK: Final = 4096
_SMALL: Final = 64


class Packer:
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
        self._window = window
        self._shards = shards
        self._timestamp = timestamp
        self._key = key
        key_id = None if key is None else zlib.crc32(key.text.encode())
        self._groups = None if key is None else Groups(shards, not hasattr(key, "text_of"))
        self._slots = Slots(window.grid, 0, timestamp.uses.now)
        self._t: int | None = None
        self._drops = Drops(keep_dropped)
        self._ways = fast_ways(timestamp, key, self._slots, self._groups)
        self._held = Held(self._slots, self._groups, key_id, fold, folds_after)

    def add_raws(
        self,
        raws: list[bytes],
        meta: Mapping[str, Any],
        arrival_start: int,
        t: int,
        ex: Execution,
    ) -> None:
        """Take messages that share their metadata, and of which each is a batch of its own.

        Args:
            raws: payloads, in order of arrival.
            meta: the metadata of all of them.
            arrival_start: the arrival number of the first; the others follow.
            t: the micro-batch's time, ns, which is what `ex.now()` gives.
            ex: for the mappings and for warnings.
        """
        self._begin(t)
        encoded = encode_meta(meta)
        for start in range(0, len(raws), CHUNK):
            chunk = raws[start : start + CHUNK]
            self._add_chunk(chunk, meta, encoded, arrival_start + start, ex)

    def add_messages(
        self, messages: list[Message], arrival_start: int, t: int, ex: Execution
    ) -> None:
        """Take messages of any kind; those that are marked as failed will pass by the windows.

        Args:
            messages: one batch, which is what the mappings see.
            arrival_start: the arrival number of the first; the others follow.
            t: the micro-batch's time, ns, which is what `ex.now()` gives.
            ex: for the mappings and for warnings.
        """
        self._begin(t)
        if self._ways and len(messages) > 1:
            for start in range(0, len(messages), CHUNK):
                chunk = messages[start : start + CHUNK]
                self._add_together(chunk, messages, start, arrival_start, ex)
            return
        for index, message in enumerate(messages):
            self._add_message(messages, index, message, arrival_start + index, ex)

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

    def _begin(self, t: int) -> None:
        if self._t is not None and self._t != t:
            raise StreamerError(
                f"a packer was given messages of two micro-batches, at {self._t} and {t} ns: this "
                "is a bug in the program"
            )
        self._t = t
        self._slots.at(t)

    def _add_chunk(
        self, raws: list[bytes], meta: Mapping[str, Any], encoded: bytes, start: int, ex: Execution
    ) -> None:
        lengths = lengths_of(raws)
        self._make_room(int(lengths.sum()))
        for way in self._ways:
            self._slots.reasons.clear()
            try:
                codes, columns = self._seen(way, raws)
            except Exception:  # whatever one message did: it is found below, and its reason told
                continue
            self._take(raws, lengths, codes, columns, meta, encoded, start, ex)
            return
        if self._ways and len(raws) > _SMALL:
            step = -(-len(raws) // 8)
            for i in range(0, len(raws), step):
                self._add_chunk(raws[i : i + step], meta, encoded, start + i, ex)
            return
        for i, raw in enumerate(raws):
            message = Message(raw, meta)
            self._add_message([message], 0, message, start + i, ex)

    def _seen(self, way: Way, raws: list[bytes]) -> tuple[Ints, list[Column] | None]:
        """Return the code of each payload, and what it brings to a fold if there is one."""
        if self._held.folder is None:
            return np.array(way.of_raws(raws), np.int64), None
        return self._held.folder.seen(way, raws)

    def _add_together(
        self, chunk: list[Message], batch: Batch, start: int, arrival_start: int, ex: Execution
    ) -> None:
        if self._take_together(chunk, arrival_start + start):
            return
        if len(chunk) > _SMALL:
            for i in range(0, len(chunk), _SMALL):
                self._add_together(chunk[i : i + _SMALL], batch, start + i, arrival_start, ex)
            return
        for i, message in enumerate(chunk, start):
            self._add_message(batch, i, message, arrival_start + i, ex)

    def _take_together(self, chunk: list[Message], first: int) -> bool:
        """Take messages if all of them are in order."""
        if any(message.error is not None for message in chunk):
            return False
        for way in self._ways:
            self._slots.reasons.clear()
            with suppress(Exception):  # it is met again, and told, message by message
                raws = payloads(chunk)
                lengths = lengths_of(raws)
                self._make_room(int(lengths.sum()))
                folder = self._held.folder
                bare = way.loads is None and folder is None
                docs: list[Any] = raws if bare else [message.doc for message in chunk]
                codes = np.array(way.codes(docs), np.int64)
                columns = None if folder is None else folder.columns(docs)
                metas = [encode_meta(message.meta) for message in chunk]
                if not self._slots.reasons:
                    arrivals = np.arange(first, first + len(chunk))
                    self._held.add(raws, lengths, codes, arrivals, metas, columns)
                    return True
        return False

    def _take(
        self,
        raws: list[bytes],
        lengths: Ints,
        codes: Ints,
        columns: list[Column] | None,
        meta: Mapping[str, Any],
        encoded: bytes,
        start: int,
        ex: Execution,
    ) -> None:
        arrivals = np.arange(start, start + len(raws))
        if self._slots.reasons:
            good = codes >> SLOT_BITS != BAD
            for index, reason in zip(
                np.flatnonzero(~good).tolist(), self._slots.reasons, strict=True
            ):
                message = Message(raws[index], meta)
                self._drops.timestamp(message, start + index, reason, ex)
            chosen = np.flatnonzero(good)
            raws = [raws[index] for index in chosen.tolist()]
            lengths, codes, arrivals = lengths[good], codes[good], arrivals[good]
            columns = columns and [selected(column, chosen) for column in columns]
        if raws:
            self._held.add(raws, lengths, codes, arrivals, [encoded], columns)

    def _add_message(
        self, batch: Batch, index: int, message: Message, arrival: int, ex: Execution
    ) -> None:
        if message.error is not None:
            self._drops.failed(message, arrival)
            return
        try:
            time = parse_event_time(self._timestamp.query(batch, index, ex))
        except Exception as e:  # the message alone is dropped, whatever its mapping ran into
            self._drops.timestamp(message, arrival, str(e) or repr(e), ex)
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

    def _make_room(self, size: int) -> None:
        """Finish rows if need be; to be called before codes are asked for, which it may change."""
        self._held.make_room(size, self._shards)

    def _newest(self) -> Iterator[Row]:
        """Tell every shard of the newest pane of each kind: a flush moves all horizons alike."""
        newest: dict[Kind, int] = {}
        for kind, pane in self._slots.where[1:]:
            newest[kind] = max(pane, newest.get(kind, pane))
        for kind, pane in newest.items():
            for shard in range(self._shards):
                yield Row(shard, Kind.NEWEST, pane, 0, bytes([kind]))
