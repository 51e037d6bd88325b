"""Batches of closed sessions: here, and not before, columns become objects."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import chain
from typing import Any, Final

import numpy as np

from streamer.window.contract import Emission, WindowReason
from streamer.window.fire.emission_batch import EmissionBatch
from streamer.window.fire.group_columns import GroupColumns
from streamer.window.fire.group_labels import make_label_columns
from streamer.window.keyed.columns.numeric_aggregates import NumericAggregates
from streamer.window.keyed.columns.open_sessions import OpenSessions
from streamer.window.keyed.emit_queue import ON_CLOSE
from streamer.window.pack.metadata_codec import decode_meta, read_key_spelling
from streamer.window.settings.int_codec import Bools

BATCHES_PER_EMISSION: Final = 1_000
"""Number of batches that are built at a time."""

DecodedFirstMetadata = tuple[Mapping[str, Any], str | None, bytes | None]
"""A message's metadata, the error that marks it, and its own spelling of the key, if any."""


class ClosedSessions:
    """Closed sessions, in the order in which they are emitted."""

    def __init__(
        self, sessions: OpenSessions, due: Bools, aggregates: NumericAggregates | None, keyed: bool
    ) -> None:
        """Sort the sessions.

        Args:
            sessions: the sessions, in any order.
            due: which of them the watermark has closed; the others close at the end of the input.
            aggregates: the aggregates of their mapping; None if there are no sessions.
            keyed: whether windows have keys, which their messages then have as metadata.
        """
        order = np.lexsort((sessions.firsts, sessions.ends))
        self._sessions = sessions.take(order)
        self._due = due[order]
        self._aggregates = aggregates
        self._keyed = keyed

    def __len__(self) -> int:
        return len(self._sessions)

    def iterate_orders(self) -> Iterator[tuple[int, ...]]:
        """Give the order of each batch among others, see `PendingBatch.order`."""
        some = self._sessions
        ends, firsts, starts = some.ends.tolist(), some.firsts.tolist(), some.starts.tolist()
        return ((ON_CLOSE, *order) for order in zip(ends, firsts, starts, strict=True))

    def iterate_batches(self) -> Iterator[EmissionBatch]:
        """Give the batches, many at a time."""
        decoded = [(*decode_meta(meta), read_key_spelling(meta)) for meta in self._sessions.metas]
        for first in range(0, len(self), BATCHES_PER_EMISSION):
            indices = np.arange(first, min(first + BATCHES_PER_EMISSION, len(self)))
            yield self._build_batch(self._sessions.take(indices), self._due[indices], decoded)

    def _build_batch(
        self, some: OpenSessions, due: Bools, decoded: list[DecodedFirstMetadata]
    ) -> EmissionBatch:
        assert self._aggregates is not None
        text, which = self._aggregates.text, some.meta_ids.tolist()
        reasons: list[WindowReason] = ["final" if closed else "flush" for closed in due.tolist()]
        spelt = some.keys
        if any(spelling for _, _, spelling in decoded):
            spelt = [decoded[n][2] or key for n, key in zip(which, some.keys, strict=True)]
        # A session ends with the latest of its events.
        labels = make_label_columns(
            some.starts, some.ends, reasons, some.ends, spelt if self._keyed else ()
        )
        columns = GroupColumns(
            text,
            some.payloads,
            some.counts.tolist(),
            [(own, error) for own, error, _ in decoded],
            which,
            labels,
            self._aggregates.list_results(some.numbers, some.counts),
        )
        keys = some.keys if self._keyed else [None] * len(which)
        return EmissionBatch.from_columns(
            columns, some.starts.tolist(), some.ends.tolist(), reasons, keys
        )

    def iterate_emissions(self) -> Iterator[Emission]:
        """Give the batches one by one."""
        return chain.from_iterable(run.iterate_emissions() for run in self.iterate_batches())
