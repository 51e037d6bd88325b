"""The batches of folded windows: the first message, and what their mapping's parts have come to."""

from __future__ import annotations

from contextlib import suppress
from functools import partial
from typing import NamedTuple

from streamer.core.errors import MessageError
from streamer.core.message import Message
from streamer.core.timestamps import format_rfc3339
from streamer.window.aggregate.fire_groups import AggregatedGroup
from streamer.window.aggregate.mapping_aggregation import States
from streamer.window.contract.emission import Emission, WindowReason
from streamer.window.keyed.message_rows import MessageRows
from streamer.window.keyed.state import Window
from streamer.window.keyed.window_aggregate import WindowAggregate
from streamer.window.pack.message_builder import DecodedMetadata
from streamer.window.pack.window_metadata import WINDOW_MAX_TIME, make_window_metadata


class AggregateSnapshot(NamedTuple):
    """What a folded window had come to when a batch of it came out.

    Attributes:
        aggregate: the window, as it went on from there.
        states: what its parts had come to.
        first: the arrival of its first message.
        max_event_time: the largest event time, ns.
        size: how many messages it had.
        until: the arrival of its last message.
    """

    aggregate: WindowAggregate
    states: States
    first: int
    max_event_time: int
    size: int
    until: int

    @classmethod
    def from_window(cls, window: Window, until: int) -> AggregateSnapshot | None:
        """Return what a window has come to by now; `until` is at or after its last arrival."""
        aggregate = window.aggregate
        if aggregate is None:
            return None
        return cls(
            aggregate, aggregate.states, window.first, aggregate.max_event_time, window.count, until
        )


class AggregateBatches:
    """Makes the batches of folded windows."""

    def __init__(self, rows: MessageRows, keyed: bool, decoded: DecodedMetadata) -> None:
        """Prepare.

        Args:
            rows: the messages, among them the first of each window.
            keyed: whether messages are told of a key.
            decoded: remembers metadata.
        """
        self._rows = rows
        self._keyed = keyed
        self._decoded = decoded
        self._firsts: dict[tuple[bytes, int, int, int], tuple[int, Message]] = {}

    def build_emission(
        self,
        key: bytes,
        bounds: tuple[int, int],
        reason: WindowReason,
        snapshot: AggregateSnapshot,
        place: int | None = None,
    ) -> Emission:
        """Return the batch of a window.

        Args:
            key: the window's.
            bounds: its start and end, as its messages are told.
            reason: why it comes out.
            snapshot: what it had come to.
            place: where its first message is, when no other batch of the window is asked for.
        """
        aggregate, states, first, newest, size, until = snapshot
        if place is None:
            message = self._repeat_first_message(key, bounds, reason, first, newest)
        else:
            message = self._build_first_message(key, bounds, reason, place, newest)
        aggregation, broken = aggregate.aggregation, aggregate.unparsable
        assert aggregation is not None
        why = None if broken is None or broken.arrival > until else broken.text
        batch = AggregatedGroup(
            message, aggregation.text, partial(aggregation.result_of, states, why), size
        )
        return Emission(bounds[1], batch, reason, key if self._keyed else None, bounds[0])

    def _build_first_message(
        self, key: bytes, bounds: tuple[int, int], reason: WindowReason, place: int, max_time: int
    ) -> Message:
        """Return the first message of a window with its metadata."""
        spelt_key = (self._rows.spelling_at(place) or key) if self._keyed else None
        metadata = make_window_metadata(*bounds, reason, max_time, spelt_key)
        return self._rows.build_message(place, metadata, self._decoded)

    def _repeat_first_message(
        self, key: bytes, bounds: tuple[int, int], reason: WindowReason, arrival: int, max_time: int
    ) -> Message:
        """Return it of a window that may be asked for more than once."""
        place = (key, arrival, *bounds)
        known = self._firsts.get(place)
        if known is None:
            where = self._rows.find_place(key, arrival)
            message = self._build_first_message(key, bounds, reason, where, max_time)
        elif known[0] == max_time:
            return known[1]
        else:
            message = known[1]
            if not message.has_doc():
                with suppress(MessageError):  # it is asked for more than once: parse it once
                    _ = message.doc
            message = message.with_metadata(
                {**message.meta, WINDOW_MAX_TIME: format_rfc3339(max_time)}
            )
        self._firsts[place] = max_time, message
        return message
