"""Batches that a micro-batch gives, before their messages are looked up."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from streamer.window.contract.emission import Emission, WindowReason
from streamer.window.keyed.aggregate_batches import AggregateBatches, AggregateSnapshot
from streamer.window.keyed.message_rows import MessageRows
from streamer.window.keyed.message_store import MessageStore
from streamer.window.keyed.state import FOREVER, MessageRange
from streamer.window.pack.message_builder import DecodedMetadata, MessageBuilder
from streamer.window.pack.window_metadata import make_count_metadata, make_window_metadata

_MESSAGES_PER_PORTION: Final = 200_000

PER_EVENT, ON_CHANGE, ON_CLOSE = 0, 1, 2
"""What the places of batches begin with: those of single events, of a micro-batch, of a close."""


@dataclass(slots=True)
class PendingBatch:
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
        frees_messages: whether its messages are in no other window, and are given back with it.
        arrivals: the smallest and the largest arrival number in it, where messages of another
            window, which was closed to them, may lie among its own.
        excluded_ranges: messages that are not in it although they lie inside, see `KeyState.apart`.
        snapshot: what its messages come to; None when they are kept whole.
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
    frees_messages: bool = False
    arrivals: tuple[int, int] | None = None
    excluded_ranges: tuple[MessageRange, ...] = ()
    snapshot: AggregateSnapshot | None = None


class BatchReader:
    """Looks the messages of batches up, many batches at a time.

    Attributes:
        store: where the messages are.
        keyed: whether messages are told of a key.
        freed: how many messages were given back with their batches.
    """

    def __init__(
        self,
        store: MessageStore,
        keyed: bool,
        unit: int,
        spared: Mapping[bytes, set[int]],
    ) -> None:
        """Prepare.

        Args:
            store: where the messages are.
            keyed: whether messages are told of a key.
            unit: times are rounded down to multiples of it, ns.
            spared: by key, the arrival numbers of messages that are not given back.
        """
        self.store = store
        self.keyed = keyed
        self._unit = unit
        self._spared = spared
        self._decoded: DecodedMetadata = {}
        self.freed = 0

    def iterate_emissions(self, batches: Sequence[PendingBatch]) -> Iterator[Emission]:
        """Give the batches, in the order of the outputs."""
        return (emission for _, emission in self.iterate_placed(batches))

    def iterate_placed(
        self, batches: Sequence[PendingBatch]
    ) -> Iterator[tuple[tuple[int, ...], Emission]]:
        """Give the same, each with the place of its output."""
        portion: list[PendingBatch] = []
        size = 0
        for output in batches:
            portion.append(output)
            size += output.count if output.snapshot is None else 1
            if size >= _MESSAGES_PER_PORTION:
                yield from self._emit_portion(portion)
                portion, size = [], 0
        yield from self._emit_portion(portion)

    def _emit_portion(
        self, batches: list[PendingBatch]
    ) -> Iterator[tuple[tuple[int, ...], Emission]]:
        claims: dict[bytes, tuple[int, int]] = {}
        for output in batches:
            low, high = claims.get(output.key, (output.low, output.high))
            claims[output.key] = (min(low, output.low), min(max(high, output.high), FOREVER))
        located = self.store.find(claims)
        lines = MessageRows(located)
        groups = AggregateBatches(lines, self.keyed, self._decoded)
        gone: list[int] = []
        for output in batches:
            snapshot = output.snapshot
            if snapshot is not None:
                place = None
                if output.frees_messages:
                    places = lines.select(output, claims[output.key])
                    gone += self._select_freeable(output, lines, places)
                    if lines.arrival_at(places[0]) == snapshot.first:
                        place = places[0]
                assert output.start is not None and output.end is not None
                bounds = (output.start, output.end)
                emission = groups.build_emission(output.key, bounds, output.reason, snapshot, place)
                yield output.place, emission
                continue
            places = lines.select(output, claims[output.key])
            if output.frees_messages:
                gone += self._select_freeable(output, lines, places)
            if places:
                yield output.place, self._build_emission(output, lines, places)
        if gone:
            located.free(np.array(gone, np.int64))
            self.freed += len(gone)

    def _select_freeable(
        self, batch: PendingBatch, lines: MessageRows, places: Sequence[int]
    ) -> Sequence[int]:
        spared = self._spared.get(batch.key)
        return places if spared is None else lines.exclude(places, spared)

    def _build_emission(
        self, batch: PendingBatch, lines: MessageRows, places: Sequence[int]
    ) -> Emission:
        key = batch.key if self.keyed else None
        spelt_key = key and (lines.spelling_at(places[0]) or key)
        if batch.start is None or batch.end is None:
            metadata: Mapping[str, Any] = make_count_metadata(len(places), spelt_key)
        else:
            newest = max(lines.times[place] for place in places)
            newest -= newest % self._unit
            metadata = make_window_metadata(batch.start, batch.end, batch.reason, newest, spelt_key)
        messages = lines.build_messages(places, MessageBuilder(metadata, self._decoded))
        return Emission(batch.end, messages, batch.reason, key, batch.start)
