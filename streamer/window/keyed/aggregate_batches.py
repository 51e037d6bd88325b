"""Batches of aggregated windows: the first message, and the results of the aggregates."""

from __future__ import annotations

from contextlib import suppress
from functools import partial
from typing import NamedTuple

from streamer.core.errors import MessageError
from streamer.core.message import Message
from streamer.core.timestamps import format_rfc3339
from streamer.window.aggregate.fire_groups import AggregatedGroup
from streamer.window.aggregate.mapping_aggregation import States
from streamer.window.contract import Emission, WindowReason
from streamer.window.keyed.message_rows import MessageRows
from streamer.window.keyed.state import Window
from streamer.window.keyed.window_aggregate import WindowAggregate
from streamer.window.pack.message_columns import DecodedMetadata
from streamer.window.pack.window_metadata import (
    WINDOW_MAX_TIME,
    make_unbounded_metadata,
    make_window_metadata,
)

Bounds = tuple[int, int]
"""Start and end of a window, ns."""

_Place = tuple[bytes, int, Bounds | None, WindowReason]
"""Key, first arrival number and bounds of a window, and why it is emitted."""


class AggregateSnapshot(NamedTuple):
    """The aggregate of a window at the time when a batch of it was queued.

    Attributes:
        aggregate: the aggregate, which later messages may have changed since.
        states: its states at that time.
        first: the arrival number of the window's first message.
        max_event_time: the largest event time, ns.
        size: number of messages.
        until: the arrival number of the last message, or a larger one.
    """

    aggregate: WindowAggregate
    states: States
    first: int
    max_event_time: int
    size: int
    until: int

    @classmethod
    def from_window(cls, window: Window, until: int) -> AggregateSnapshot | None:
        """Return the aggregate of a window as it is now; None if it has none.

        Args:
            window: the window.
            until: its last arrival number, or a larger one.
        """
        aggregate = window.aggregate
        if aggregate is None:
            return None
        return cls(
            aggregate, aggregate.states, window.first, aggregate.max_event_time, window.count, until
        )


class AggregateBatches:
    """Builds the batches of aggregated windows."""

    def __init__(self, rows: MessageRows, keyed: bool, decoded: DecodedMetadata) -> None:
        """Create a builder.

        Args:
            rows: messages, among them the first of each window (of those without end, the last).
            keyed: whether windows have keys, which their messages then have as metadata.
            decoded: remembers decoded metadata.
        """
        self._rows = rows
        self._keyed = keyed
        self._decoded = decoded
        self._firsts: dict[_Place, tuple[int, Message]] = {}

    def build_emission(
        self,
        key: bytes,
        bounds: Bounds | None,
        reason: WindowReason,
        snapshot: AggregateSnapshot,
        index: int | None = None,
    ) -> Emission:
        """Build the batch of a window.

        Args:
            key: the window's key.
            bounds: the window's start and end, as in metadata, ns; None if it has none.
            reason: why the batch is emitted.
            snapshot: the window's aggregate.
            index: index of its first message in the rows, if this is the window's only batch.
        """
        aggregate, states, first, newest, size, until = snapshot
        if index is None:
            message = self._repeat_first_message(key, bounds, reason, first, newest)
        else:
            message = self._build_first_message(key, bounds, reason, index, newest)
        aggregation, broken = aggregate.aggregation, aggregate.unparsable
        assert aggregation is not None
        why = None if broken is None or broken.arrival > until else broken.text
        batch = AggregatedGroup(
            message, aggregation.text, partial(aggregation.result_of, states, why), size
        )
        start, end = bounds or (None, None)
        return Emission(end, batch, reason, key if self._keyed else None, start)

    def _build_first_message(
        self, key: bytes, bounds: Bounds | None, reason: WindowReason, index: int, max_time: int
    ) -> Message:
        """Build the first message of a window, with the window's metadata."""
        spelt_key = (self._rows.spelling_at(index) or key) if self._keyed else None
        if bounds is None:
            metadata = make_unbounded_metadata(reason, max_time, spelt_key)
        else:
            metadata = make_window_metadata(*bounds, reason, max_time, spelt_key)
        return self._rows.build_message(index, metadata, self._decoded)

    def _repeat_first_message(
        self, key: bytes, bounds: Bounds | None, reason: WindowReason, arrival: int, max_time: int
    ) -> Message:
        """Build the first message of a window that may be emitted several times."""
        place = (key, arrival, bounds, reason)
        known = self._firsts.get(place)
        if known is None:
            index = self._rows.find_index(key, arrival)
            message = self._build_first_message(key, bounds, reason, index, max_time)
        elif known[0] == max_time:
            return known[1]
        else:
            message = known[1]
            if not message.has_doc():
                with suppress(MessageError):  # it is emitted several times: parse it once
                    _ = message.doc
            message = message.with_metadata(
                {**message.meta, WINDOW_MAX_TIME: format_rfc3339(max_time)}
            )
        self._firsts[place] = max_time, message
        return message
