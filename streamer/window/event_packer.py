"""Stage 1 of windows that follow event times, and of count windows, which have none.

A message's filter, event time and key are found here, and what its piece knows of the clock before
it. What earlier micro-batches and other pieces did to the clock is added by the shards.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from streamer.bloblang.folding import Fold
from streamer.message import Batch, Execution, Message
from streamer.timestamps import format_rfc3339, parse_event_time
from streamer.value import DELETED, NOTHING
from streamer.window.chunks import Chunks, Origin
from streamer.window.columns import Timed
from streamer.window.drops import Drops
from streamer.window.event import OWN_KEY, EventWindow
from streamer.window.folds.part import Column, selected
from streamer.window.held import Held
from streamer.window.ints import Ints
from streamer.window.kinds import Count
from streamer.window.looks import NO_TIME, Look, LookWay, Times, look_ways
from streamer.window.metadata import encode_meta, with_spelling
from streamer.window.panes import panes_of_times
from streamer.window.queries import Interpolated, Query, is_now
from streamer.window.row import Kind, Row
from streamer.window.stamps import SLOT_BITS, Groups

_NO_TIME: Final = "its timestamp_mapping gave no time"
_NO_KEY: Final = "its key_mapping gave no key"
_FUTURE: Final = "its time is further ahead than max_ahead allows"
_FIRST: Final = -(2**63)


@dataclass(frozen=True, slots=True)
class Asked:
    """The compiled mappings of a buffer.

    Attributes:
        timestamp: gives a message's event time; None where windows have none.
        key: gives the window's key, a mapping; or the group by which the pipeline goes on, an
            interpolation or a mapping; None without.
        filter: true keeps a message; None without.
    """

    timestamp: Query | None
    key: Interpolated | Query | None = None
    filter: Query | None = None


class Looked(NamedTuple):
    """What was seen of a chunk: of each message, and what it brings to a fold if there is one."""

    look: Look
    columns: list[Column] | None


class EventPacker(Chunks[Looked]):
    """Packs the messages of one piece; make one for every piece of a micro-batch.

    Attributes:
        where: by slot, the kind and pane of its row; slot 0 is none.
        t: the micro-batch's time, ns.
    """

    def __init__(
        self,
        window: EventWindow,
        shards: int,
        asked: Asked,
        piece: int = 0,
        partition: bytes = b"",
        keep_dropped: bool = False,
        fold: Fold | None = None,
        folds_after: int | None = None,
        kind: Kind = Kind.PACK,
    ) -> None:
        """Prepare.

        Args:
            window: the window's settings.
            shards: how many shards there are; without a key, shard 0 gets everything.
            asked: the buffer's mappings.
            piece: the smallest arrival number of the piece.
            partition: names the source's partition that the piece is from.
            keep_dropped: hand dropped messages on, for `late_output`.
            fold: what is asked of a window's messages, when it folds.
            folds_after: an event time, ns: messages up to it are kept as they are; None for none.
            kind: of the rows: of which side of a join the piece is.
        """
        super().__init__()
        self._window = window
        self._kind = kind
        self._shards = shards
        self._asked = asked
        self._piece = piece
        self._partition = partition
        self.where: list[tuple[Kind, int]] = [(Kind.DROPPED, 0)]
        self.t = 0
        self._slot_of: dict[tuple[Kind, int], int] = {}
        self._dues: dict[int, int] = {}
        key = asked.key
        key_id = None if key is None else zlib.crc32(key.text.encode())
        if window.keyed:
            key_id = OWN_KEY
        # Without a window key there is one window for all, and so one shard.
        spread = shards if window.keyed else 1
        self._groups = None if key is None else Groups(spread, not hasattr(key, "text_of"))
        self._times = Times()
        self._timeless = isinstance(window.kind, Count)
        timestamp = None if self._timeless else asked.timestamp
        self._fast = look_ways(timestamp, key, asked.filter, self._times, self._groups)
        self._drops = Drops(keep_dropped)
        by_panes = window.way == "panes"
        self._held = Held(self, self._groups, key_id, fold, folds_after, only_newest=by_panes)
        self._panes = window.panes
        # Whether the piece's own clock matters: a key's own is known by the shards alone.
        self._follows = window.time.clock == "stream" and window.time.clock_scope == "stream"
        self._clock = _FIRST
        self._newest: int | None = None

    def ready(self) -> list[Row]:
        """Take the rows that are finished already, so that they need not be held any longer."""
        return self._held.take()

    def rows(self) -> Iterator[Row]:
        """Finish: give all rows that are left, the counters, and what became of the clock."""
        self._held.flush()
        yield from self.ready()
        yield from self._drops.rows()
        if self._newest is not None:
            for shard in range(self._shards):
                yield Row(shard, Kind.PIECE, self._newest, self._piece, self._partition)

    @property
    def _ways(self) -> Sequence[LookWay]:
        return self._fast

    def _begin(self, t: int) -> None:
        super()._begin(t)
        self.t = t

    def _make_room(self, size: int) -> None:
        self._held.make_room(size, self._shards)

    def _of_raws(self, way: LookWay, raws: list[bytes]) -> Looked:
        way.begin()
        folder = self._held.folder
        if folder is not None:
            _, columns = folder.seen(way, raws)
            return Looked(way.look, columns)
        way.codes(raws if way.loads is None else list(map(way.loads, raws)))
        return Looked(way.look, None)

    def _of_messages(self, way: LookWay, raws: list[bytes], messages: list[Message]) -> Looked:
        way.begin()
        folder = self._held.folder
        bare = way.loads is None and folder is None
        docs: list[Any] = raws if bare else [message.doc for message in messages]
        way.codes(docs)
        return Looked(way.look, None if folder is None else folder.columns(docs))

    def _take(
        self,
        raws: list[bytes],
        lengths: Ints,
        seen: Looked,
        arrivals: Ints,
        metas: list[bytes],
        origin: Origin,
        ex: Execution,
    ) -> None:
        look, columns = seen
        count = len(raws)
        times = np.array(look.times, np.int64) if look.times else np.full(count, self._now())
        groups = np.array(look.groups, np.int64) if look.groups else np.zeros(count, np.int64)
        if look.spelt:
            metas = [
                with_spelling(meta, look.spelt[index]) if index in look.spelt else meta
                for index, meta in enumerate(metas if len(metas) > 1 else metas * count)
            ]
        good = self._sorted_out(look, times, groups, arrivals, origin, ex)
        if good is not None:
            chosen = np.flatnonzero(good)
            raws = [raws[index] for index in chosen.tolist()]
            if len(metas) > 1:
                metas = [metas[index] for index in chosen.tolist()]
            lengths, times, groups, arrivals = (
                lengths[good],
                times[good],
                groups[good],
                arrivals[good],
            )
            columns = columns and [selected(column, chosen) for column in columns]
        if raws:
            slots, timed = self._placed(times)
            self._held.add(raws, lengths, slots + groups, arrivals, metas, columns, timed)

    def _sorted_out(
        self,
        look: Look,
        times: Ints,
        groups: Ints,
        arrivals: Ints,
        origin: Origin,
        ex: Execution,
    ) -> NDArray[np.bool_] | None:
        """Drop messages, each for the first reason that there is; return which are left."""
        good: NDArray[np.bool_] | None = None
        if look.kept and not all(look.kept):
            good = np.array(look.kept, np.bool_)
            self._drops.filtered(int((~good).sum()))
        if look.reasons:
            bad = times == NO_TIME
            if int(bad.sum()) != len(look.reasons):
                raise ValueError("a time is the first that there is: look at it alone")
            reasons = iter(look.reasons)
            for index in np.flatnonzero(bad).tolist():
                why = next(reasons)
                if good is None or good[index]:
                    message = origin(index)
                    self._drops.drop("timestamp", _NO_TIME, why, message, int(arrivals[index]), ex)
            good = ~bad if good is None else good & ~bad
        limit = self._limit()
        if limit is not None and int(times.max()) > limit:
            ahead = times > limit
            for index in np.flatnonzero(ahead if good is None else ahead & good).tolist():
                self._future(int(times[index]), origin(index), int(arrivals[index]), ex)
            good = ~ahead if good is None else good & ~ahead
        keyless = self._groups.empty if self._groups is not None and self._window.keyed else None
        if keyless is not None:
            without = groups == keyless
            for index in np.flatnonzero(without if good is None else without & good).tolist():
                self._keyless("it was deleted", origin(index), int(arrivals[index]), ex)
            good = ~without if good is None else good & ~without
        return good

    def _placed(self, times: Ints) -> tuple[Ints, Timed]:
        """Give messages their slots and their lags, and move the piece's clock."""
        count = len(times)
        lags = np.zeros(count, np.int64)
        newest = int(times.max())
        self._newest = newest if self._newest is None else max(self._newest, newest)
        before: Ints | None = None
        if self._follows:
            before = np.maximum.accumulate(np.concatenate((np.array([self._clock]), times)))[:-1]
            self._clock = max(self._clock, newest)
            late = before > times
            if late.any():
                lags[late] = before[late] - times[late]
        panes = np.zeros_like(times) if self._timeless else panes_of_times(self._panes, times)
        least, most = int(panes.min()), int(panes.max())
        if least == most:
            distinct, places = [least], np.zeros(count, np.int64)
        else:
            found, places = np.unique(panes, return_inverse=True)
            distinct = found.tolist()
        slots = np.array([self._slot(self._kind, pane) for pane in distinct], np.int64)[places]
        if before is not None and self._window.way == "panes" and lags.any():
            self._set_apart(slots, before, distinct, places)
        return slots, Timed(times, lags)

    def _set_apart(self, slots: Ints, before: Ints, panes: list[int], places: Ints) -> None:
        """Give other slots to messages of which a window had closed before they came."""
        dues = np.array([self._due(pane) for pane in panes], np.int64)[places]
        apart = before >= dues
        for place in np.unique(places[apart]).tolist():
            slots[apart & (places == place)] = self._slot(Kind.DISORDERED, panes[place])

    def _due(self, pane: int) -> int:
        """Return when the first window of a pane closes."""
        found = self._dues.get(pane)
        if found is None:
            first = self._window.first_close(pane)
            found = self._dues[pane] = min(first, 2**63 - 1)
        return found

    def _slot(self, kind: Kind, pane: int) -> int:
        place = (kind, pane)
        slot = self._slot_of.get(place)
        if slot is None:
            slot = self._slot_of[place] = len(self.where) << SLOT_BITS
            self.where.append(place)
        return slot

    def _now(self) -> int:
        return 0 if self._timeless else self.t

    def _limit(self) -> int | None:
        ahead = self._window.time.max_ahead
        return None if ahead is None or self._timeless else self.t + ahead

    def _future(self, time: int, message: Message, arrival: int, ex: Execution) -> None:
        self._drops.drop("future", _FUTURE, format_rfc3339(time), message, arrival, ex)

    def _keyless(self, why: str, message: Message, arrival: int, ex: Execution) -> None:
        self._drops.drop("key", _NO_KEY, why, message, arrival, ex)

    def _add_message(
        self, batch: Batch, index: int, message: Message, arrival: int, ex: Execution
    ) -> None:
        if message.error is not None:
            self._drops.failed(message, arrival)
            return
        # Before a group is asked for, since it may forget them.
        self._make_room(len(message.raw))
        if not self._keeps(batch, index, ex):
            return
        time = self._time_of(batch, index, message, arrival, ex)
        if time is None:
            return
        limit = self._limit()
        if limit is not None and time > limit:
            self._future(time, message, arrival, ex)
            return
        group = self._group(batch, index, message, arrival, ex)
        if group is None:
            return
        slots, timed = self._placed(np.array([time], np.int64))
        meta = encode_meta(message.meta)
        if self._groups is not None and self._groups.spelt:
            meta = with_spelling(meta, self._groups.spelt.pop())
        self._held.add_one(message, int(slots[0]) + group, arrival, meta, timed)

    def _keeps(self, batch: Batch, index: int, ex: Execution) -> bool:
        if self._asked.filter is None:
            return True
        try:
            found = self._asked.filter.query(batch, index, ex)
        except Exception as e:  # what the filter ran into does not matter: it is not true
            found, why = None, str(e) or repr(e)
        else:
            why = f"got {type(found).__name__}"
        if found is True:
            return True
        if found is not False:
            self._drops.filter_failed(why, ex)
        self._drops.filtered(1)
        return False

    def _time_of(
        self, batch: Batch, index: int, message: Message, arrival: int, ex: Execution
    ) -> int | None:
        timestamp = self._asked.timestamp
        if timestamp is None or self._timeless or is_now(timestamp):
            return self._now()
        try:
            return parse_event_time(timestamp.query(batch, index, ex))
        except Exception as e:  # the message alone is dropped, whatever its mapping ran into
            self._drops.drop("timestamp", _NO_TIME, str(e) or repr(e), message, arrival, ex)
            return None

    def _group(
        self, batch: Batch, index: int, message: Message, arrival: int, ex: Execution
    ) -> int | None:
        """Return the group of a message's key; None when it was dropped since it has none."""
        key, groups = self._asked.key, self._groups
        if groups is None or key is None:
            return 0
        groups.spelt.clear()
        try:
            if hasattr(key, "text_of"):
                return groups.of_result(key.text_of(batch, index, ex))
            found = key.query(batch, index, ex)
            if found is DELETED or found is NOTHING:
                raise ValueError("it was deleted")
            return groups.of_result(found)
        except Exception as e:
            if self._window.keyed:
                self._keyless(str(e) or repr(e), message, arrival, ex)
                return None
            # The processor that groups by this key will meet it again and say so.
            return groups.of_bytes(b"")
