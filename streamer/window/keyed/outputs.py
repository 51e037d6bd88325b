"""Batches that a micro-batch gives, before their messages are looked up."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Final

import numpy as np

from streamer.message import Batch
from streamer.window.emission import Emission, WindowReason
from streamer.window.ints import Ints
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
        gone = []
        for output in outputs:
            rows = chosen(found, output)
            if output.gone:
                gone.append(rows)
            if len(rows):
                yield self._emission(output, found, rows)
        if gone:
            places = np.concatenate(gone)
            found.give_back(places)
            self.given_back += len(places)

    def _emission(self, output: Output, found: Found, rows: Ints) -> Emission:
        key = output.key if self._keyed else None
        told = key and (self._spelling(found, rows) or key)
        if output.start is None or output.end is None:
            labels: Mapping[str, Any] = count_labels(len(rows), told)
        else:
            newest = int(found.times[rows].max())
            own = WindowLabels(output.start, output.end, output.reason)
            labels = own.of(newest - newest % self._unit, told)
        messages = self._messages(found, rows, Metas(labels, self._decoded))
        return Emission(output.end, messages, output.reason, key, output.start)

    def _spelling(self, found: Found, rows: Ints) -> bytes | None:
        """Return how the first message of a batch spells its key, if it does so otherwise."""
        pack = found.sheets[found.pages[rows[0]]].pack
        row = found.rows[rows[0]]
        return spelling_of(pack.metas[0 if pack.meta_ids is None else pack.meta_ids[row]])

    def _messages(self, found: Found, places: Ints, metas: Metas) -> Batch:
        messages: Batch = []
        pages, rows = found.pages[places], found.rows[places]
        turns = np.flatnonzero(np.diff(pages)) + 1
        bounds = [0, *turns.tolist(), len(pages)]
        for first, last in pairwise(bounds):
            sheet = found.sheets[pages[first]]
            payloads, pack = sheet.payloads, sheet.pack
            some = rows[first:last]
            ids = None if pack.meta_ids is None else pack.meta_ids[some]
            chosen = [payloads[row] for row in some.tolist()]
            messages += metas.messages(chosen, pack.metas, ids)
        return messages


def chosen(found: Found, output: Output) -> Ints:
    """Return the places of a batch's messages, in order of arrival."""
    first, last = found.starts.get(output.key, (0, 0))
    times, arrivals = found.times[first:last], found.arrivals[first:last]
    inside = (times >= output.low) & (times <= min(output.high, FOREVER))
    if output.until is not None:
        inside &= arrivals <= output.until
    if output.since is not None:
        inside &= arrivals >= output.since
    if output.excluded:
        inside &= ~np.isin(arrivals, list(output.excluded))
    return np.flatnonzero(inside) + first
