"""Messages that the ledger has found, at hand one by one."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from streamer.message import Batch, Message
from streamer.window.keyed.found import Found
from streamer.window.keyed.state import Part
from streamer.window.metadata import decode_meta, spelling_of
from streamer.window.metas import Decoded, Metas


class Wanted(Protocol):
    """Which messages a batch has; see `outputs.Output`."""

    key: bytes
    low: int
    high: int
    until: int | None
    since: int | None
    excluded: set[int] | None
    count: int
    arrivals: tuple[int, int] | None
    apart: tuple[Part, ...]


class Lines:
    """Messages that were found, at hand one by one."""

    def __init__(self, found: Found) -> None:
        """Take them."""
        self._found = found
        self.times: list[int] = found.times.tolist()
        self._arrivals: list[int] = found.arrivals.tolist()
        self._pages: list[int] = found.pages.tolist()
        self._rows: list[int] = found.rows.tolist()

    def of(self, output: Wanted, claim: tuple[int, int]) -> Sequence[int]:
        """Return the places of a batch's messages, in order of arrival."""
        first, last = self._found.starts.get(output.key, (0, 0))
        if output.since is not None:
            first = bisect_left(self._arrivals, output.since, first, last)
        if output.until is not None:
            last = bisect_right(self._arrivals, output.until, first, last)
        places: Sequence[int] = range(first, last)
        low, high = output.low, output.high
        if claim != (low, high):
            times = self.times
            places = [place for place in places if low <= times[place] <= high]
        if output.excluded:
            places = self.but(places, output.excluded)
        if output.arrivals is not None and len(places) > output.count:
            first, last = output.arrivals
            places = [place for place in places if first <= self._arrivals[place] <= last]
        for apart in output.apart:
            places = [place for place in places if not self._is_in(place, apart)]
        return places

    def _is_in(self, place: int, part: Part) -> bool:
        low, high, first, last = part
        return low <= self.times[place] <= high and first <= self._arrivals[place] <= last

    def but(self, places: Sequence[int], spared: set[int]) -> Sequence[int]:
        """Return places without those of some messages, given by their arrival numbers."""
        return [place for place in places if self._arrivals[place] not in spared]

    def place_of(self, key: bytes, arrival: int) -> int:
        """Return the place of a key's message by its arrival number.

        Messages of other keys may have the same, where a shard has been put together from several.
        """
        return bisect_left(self._arrivals, arrival, *self._found.starts[key])

    def spelling(self, place: int) -> bytes | None:
        """Return how a message spells its key, if it does so otherwise than equal keys."""
        pack, row = self._found.sheets[self._pages[place]].pack, self._rows[place]
        return spelling_of(pack.metas[0 if pack.meta_ids is None else pack.meta_ids[row]])

    def arrived(self, place: int) -> int:
        """Return the arrival number of the message at a place."""
        return self._arrivals[place]

    def message(self, place: int, labels: Mapping[str, Any], decoded: Decoded) -> Message:
        """Make one message, with labels besides its own metadata; `decoded` remembers these."""
        sheet, row = self._found.sheets[self._pages[place]], self._rows[place]
        pack = sheet.pack
        encoded = pack.metas[0 if pack.meta_ids is None else pack.meta_ids[row]]
        known = decoded.get(encoded)
        if known is None:
            known = decoded[encoded] = decode_meta(encoded)
        return Message(sheet.payloads[row], {**known[0], **labels}, known[1])

    def messages(self, places: Sequence[int], metas: Metas) -> Batch:
        """Make the messages of a batch."""
        messages: Batch = []
        pages, rows = self._pages, self._rows
        first = 0
        while first < len(places):
            page = pages[places[first]]
            last = first + 1
            while last < len(places) and pages[places[last]] == page:
                last += 1
            sheet = self._found.sheets[page]
            payloads, pack = sheet.payloads, sheet.pack
            some = [rows[place] for place in places[first:last]]
            ids = None if pack.meta_ids is None else pack.meta_ids[some]
            messages += metas.messages([payloads[row] for row in some], pack.metas, ids)
            first = last
        return messages
