"""Messages that the ledger has found, at hand one by one."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from streamer.core.message import Batch, Message
from streamer.window.keyed.located_rows import LocatedRows
from streamer.window.keyed.state import MessageRange
from streamer.window.pack.message_builder import DecodedMetadata, MessageBuilder
from streamer.window.pack.metadata_codec import decode_meta, read_key_spelling


class BatchRequest(Protocol):
    """Which messages a batch has; see `outputs.Output`."""

    key: bytes
    low: int
    high: int
    until: int | None
    since: int | None
    excluded: set[int] | None
    count: int
    arrivals: tuple[int, int] | None
    excluded_ranges: tuple[MessageRange, ...]


class MessageRows:
    """Messages that were found, at hand one by one."""

    def __init__(self, located: LocatedRows) -> None:
        """Take them."""
        self._located = located
        self.times: list[int] = located.times.tolist()
        self._arrivals: list[int] = located.arrivals.tolist()
        self._pack_numbers: list[int] = located.pack_numbers.tolist()
        self._rows: list[int] = located.rows.tolist()

    def select(self, request: BatchRequest, claim: tuple[int, int]) -> Sequence[int]:
        """Return the places of a batch's messages, in order of arrival."""
        first, last = self._located.starts.get(request.key, (0, 0))
        if request.since is not None:
            first = bisect_left(self._arrivals, request.since, first, last)
        if request.until is not None:
            last = bisect_right(self._arrivals, request.until, first, last)
        places: Sequence[int] = range(first, last)
        low, high = request.low, request.high
        if claim != (low, high):
            times = self.times
            places = [place for place in places if low <= times[place] <= high]
        if request.excluded:
            places = self.exclude(places, request.excluded)
        if request.arrivals is not None and len(places) > request.count:
            first, last = request.arrivals
            places = [place for place in places if first <= self._arrivals[place] <= last]
        for excluded_range in request.excluded_ranges:
            places = [place for place in places if not self._is_in(place, excluded_range)]
        return places

    def _is_in(self, place: int, part: MessageRange) -> bool:
        low, high, first, last = part
        return low <= self.times[place] <= high and first <= self._arrivals[place] <= last

    def exclude(self, places: Sequence[int], spared: set[int]) -> Sequence[int]:
        """Return places without those of some messages, given by their arrival numbers."""
        return [place for place in places if self._arrivals[place] not in spared]

    def find_place(self, key: bytes, arrival: int) -> int:
        """Return the place of a key's message by its arrival number.

        Messages of other keys may have the same, where a shard has been put together from several.
        """
        return bisect_left(self._arrivals, arrival, *self._located.starts[key])

    def spelling_at(self, place: int) -> bytes | None:
        """Return how a message spells its key, if it does so otherwise than equal keys."""
        pack, row = self._located.loaded_packs[self._pack_numbers[place]].pack, self._rows[place]
        return read_key_spelling(pack.metas[0 if pack.meta_ids is None else pack.meta_ids[row]])

    def arrival_at(self, place: int) -> int:
        """Return the arrival number of the message at a place."""
        return self._arrivals[place]

    def build_message(
        self, place: int, metadata: Mapping[str, Any], decoded: DecodedMetadata
    ) -> Message:
        """Make one message, with labels besides its own metadata; `decoded` remembers these."""
        loaded, row = self._located.loaded_packs[self._pack_numbers[place]], self._rows[place]
        pack = loaded.pack
        encoded = pack.metas[0 if pack.meta_ids is None else pack.meta_ids[row]]
        known = decoded.get(encoded)
        if known is None:
            known = decoded[encoded] = decode_meta(encoded)
        return Message(loaded.payloads[row], {**known[0], **metadata}, known[1])

    def build_messages(self, places: Sequence[int], metas: MessageBuilder) -> Batch:
        """Make the messages of a batch."""
        messages: Batch = []
        pack_numbers, rows = self._pack_numbers, self._rows
        first = 0
        while first < len(places):
            pack_number = pack_numbers[places[first]]
            last = first + 1
            while last < len(places) and pack_numbers[places[last]] == pack_number:
                last += 1
            loaded = self._located.loaded_packs[pack_number]
            payloads, pack = loaded.payloads, loaded.pack
            some = [rows[place] for place in places[first:last]]
            ids = None if pack.meta_ids is None else pack.meta_ids[some]
            messages += metas.build_messages([payloads[row] for row in some], pack.metas, ids)
            first = last
        return messages
