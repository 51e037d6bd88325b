"""Batches that a micro-batch gives, before their messages are looked up."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from streamer.message import Batch
from streamer.window.emission import Emission, WindowReason
from streamer.window.keyed.ledger import Found, Ledger
from streamer.window.keyed.state import FOREVER
from streamer.window.labels import WindowLabels, count_labels
from streamer.window.metadata import spelling_of
from streamer.window.metas import Decoded, Metas

_AT_ONCE: Final = 200_000


@dataclass(slots=True)
class Output:
    """A batch to be.

    Attributes:
        key: of its window; empty without keys.
        low: between which times (or arrivals, where there is no time) its messages lie, inclusive.
        high: the other bound.
        start: the window's, as its messages are told; None where windows have no bounds.
        end: likewise.
        reason: why it comes out.
        place: by which batches are sorted.
        count: about how many messages it has.
        until: only messages that had arrived by then are in it.
        since: only messages that arrived from then on are in it.
        excluded: arrivals that are not in it although they lie inside.
        gone: whether its messages are in no other window, and are given back with it.
    """

    key: bytes
    low: int
    high: int
    start: int | None
    end: int | None
    reason: WindowReason
    place: tuple[int, ...]
    count: int
    until: int | None = None
    since: int | None = None
    excluded: set[int] | None = None
    gone: bool = False


class Released:
    """Looks the messages of batches up, many batches at a time.

    Attributes:
        given_back: how many messages were given back with their batches.
    """

    def __init__(self, ledger: Ledger, keyed: bool, unit: int) -> None:
        """Prepare.

        Args:
            ledger: where the messages are.
            keyed: whether messages are told of a key.
            unit: times are rounded down to multiples of it, ns.
        """
        self._ledger = ledger
        self._keyed = keyed
        self._unit = unit
        self._decoded: Decoded = {}
        self.given_back = 0

    def emissions(self, outputs: Sequence[Output]) -> Iterator[Emission]:
        """Give the batches, in the order of the outputs."""
        portion: list[Output] = []
        size = 0
        for output in outputs:
            portion.append(output)
            size += output.count
            if size >= _AT_ONCE:
                yield from self._portion(portion)
                portion, size = [], 0
        yield from self._portion(portion)

    def _portion(self, outputs: list[Output]) -> Iterator[Emission]:
        claims: dict[bytes, tuple[int, int]] = {}
        for output in outputs:
            low, high = claims.get(output.key, (output.low, output.high))
            claims[output.key] = (min(low, output.low), min(max(high, output.high), FOREVER))
        found = self._ledger.find(claims)
        lines = Lines(found)
        gone: list[int] = []
        for output in outputs:
            places = lines.of(output, claims[output.key])
            if output.gone:
                gone += places
            if places:
                yield self._emission(output, lines, places)
        if gone:
            found.give_back(np.array(gone, np.int64))
            self.given_back += len(gone)

    def _emission(self, output: Output, lines: Lines, places: Sequence[int]) -> Emission:
        key = output.key if self._keyed else None
        told = key and (lines.spelling(places[0]) or key)
        if output.start is None or output.end is None:
            labels: Mapping[str, Any] = count_labels(len(places), told)
        else:
            newest = max(lines.times[place] for place in places)
            own = WindowLabels(output.start, output.end, output.reason)
            labels = own.of(newest - newest % self._unit, told)
        messages = lines.messages(places, Metas(labels, self._decoded))
        return Emission(output.end, messages, output.reason, key, output.start)


class Lines:
    """Messages that were found, at hand one by one."""

    def __init__(self, found: Found) -> None:
        """Take them."""
        self._found = found
        self.times: list[int] = found.times.tolist()
        self._arrivals: list[int] = found.arrivals.tolist()
        self._pages: list[int] = found.pages.tolist()
        self._rows: list[int] = found.rows.tolist()

    def of(self, output: Output, claim: tuple[int, int]) -> Sequence[int]:
        """Return the places of a batch's messages, in order of arrival."""
        first, last = self._found.starts.get(output.key, (0, 0))
        places: Sequence[int] = range(first, last)
        low, high = output.low, output.high
        if claim != (low, high):
            times = self.times
            places = [place for place in places if low <= times[place] <= high]
        if output.until is not None or output.since is not None or output.excluded:
            places = [place for place in places if self._holds(output, self._arrivals[place])]
        return places

    def spelling(self, place: int) -> bytes | None:
        """Return how a message spells its key, if it does so otherwise than equal keys."""
        pack, row = self._found.sheets[self._pages[place]].pack, self._rows[place]
        return spelling_of(pack.metas[0 if pack.meta_ids is None else pack.meta_ids[row]])

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

    @staticmethod
    def _holds(output: Output, arrival: int) -> bool:
        if output.until is not None and arrival > output.until:
            return False
        if output.since is not None and arrival < output.since:
            return False
        return not output.excluded or arrival not in output.excluded
