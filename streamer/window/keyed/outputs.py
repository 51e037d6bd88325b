"""Batches that a micro-batch gives, before their messages are looked up."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from streamer.window.emission import Emission, WindowReason
from streamer.window.keyed.groups import FoldedGroups, Snapshot
from streamer.window.keyed.ledger import Ledger
from streamer.window.keyed.lines import Lines
from streamer.window.keyed.state import FOREVER, Part
from streamer.window.labels import count_labels, window_labels
from streamer.window.metas import Decoded, Metas

_TOGETHER: Final = 200_000

AT_ONCE, AS_THEY_STAND, CLOSED = 0, 1, 2
"""What the places of batches begin with: those of single events, of a micro-batch, of a close."""


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
        arrivals: the smallest and the largest arrival number in it, where messages of another
            window, which was closed to them, may lie among its own.
        apart: messages that are not in it although they lie inside, see `KeyState.apart`.
        folded: what its messages come to; None when they are kept whole.
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
    arrivals: tuple[int, int] | None = None
    apart: tuple[Part, ...] = ()
    folded: Snapshot | None = None


class Released:
    """Looks the messages of batches up, many batches at a time.

    Attributes:
        ledger: where the messages are.
        keyed: whether messages are told of a key.
        given_back: how many messages were given back with their batches.
    """

    def __init__(
        self,
        ledger: Ledger,
        keyed: bool,
        unit: int,
        spared: Mapping[bytes, set[int]],
    ) -> None:
        """Prepare.

        Args:
            ledger: where the messages are.
            keyed: whether messages are told of a key.
            unit: times are rounded down to multiples of it, ns.
            spared: by key, the arrival numbers of messages that are not given back.
        """
        self.ledger = ledger
        self.keyed = keyed
        self._unit = unit
        self._spared = spared
        self._decoded: Decoded = {}
        self.given_back = 0

    def emissions(self, outputs: Sequence[Output]) -> Iterator[Emission]:
        """Give the batches, in the order of the outputs."""
        return (emission for _, emission in self.placed(outputs))

    def placed(self, outputs: Sequence[Output]) -> Iterator[tuple[tuple[int, ...], Emission]]:
        """Give the same, each with the place of its output."""
        portion: list[Output] = []
        size = 0
        for output in outputs:
            portion.append(output)
            size += output.count if output.folded is None else 1
            if size >= _TOGETHER:
                yield from self._portion(portion)
                portion, size = [], 0
        yield from self._portion(portion)

    def _portion(self, outputs: list[Output]) -> Iterator[tuple[tuple[int, ...], Emission]]:
        claims: dict[bytes, tuple[int, int]] = {}
        for output in outputs:
            low, high = claims.get(output.key, (output.low, output.high))
            claims[output.key] = (min(low, output.low), min(max(high, output.high), FOREVER))
        found = self.ledger.find(claims)
        lines = Lines(found)
        groups = FoldedGroups(lines, self.keyed, self._decoded)
        gone: list[int] = []
        for output in outputs:
            folded = output.folded
            if folded is not None:
                place = None
                if output.gone:
                    places = lines.of(output, claims[output.key])
                    gone += self._let_go(output, lines, places)
                    if lines.arrived(places[0]) == folded.first:
                        place = places[0]
                assert output.start is not None and output.end is not None
                bounds = (output.start, output.end)
                emission = groups.emission(output.key, bounds, output.reason, folded, place)
                yield output.place, emission
                continue
            places = lines.of(output, claims[output.key])
            if output.gone:
                gone += self._let_go(output, lines, places)
            if places:
                yield output.place, self._emission(output, lines, places)
        if gone:
            found.give_back(np.array(gone, np.int64))
            self.given_back += len(gone)

    def _let_go(self, output: Output, lines: Lines, places: Sequence[int]) -> Sequence[int]:
        spared = self._spared.get(output.key)
        return places if spared is None else lines.but(places, spared)

    def _emission(self, output: Output, lines: Lines, places: Sequence[int]) -> Emission:
        key = output.key if self.keyed else None
        told = key and (lines.spelling(places[0]) or key)
        if output.start is None or output.end is None:
            labels: Mapping[str, Any] = count_labels(len(places), told)
        else:
            newest = max(lines.times[place] for place in places)
            newest -= newest % self._unit
            labels = window_labels(output.start, output.end, output.reason, newest, told)
        messages = lines.messages(places, Metas(labels, self._decoded))
        return Emission(output.end, messages, output.reason, key, output.start)
