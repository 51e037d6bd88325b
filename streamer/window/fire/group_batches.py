"""The groups of an aggregated window that closes, some thousand at a time."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Final

import numpy as np

from streamer.window.aggregate.fire_groups import WindowGroups
from streamer.window.contract import WindowReason
from streamer.window.fire.emission_batch import EmissionBatch
from streamer.window.fire.group_columns import GroupColumns, LabelColumns
from streamer.window.pack.metadata_codec import decode_meta, read_key_spelling
from streamer.window.settings.int_codec import Ints

_GROUPS_PER_EMISSION: Final = 2_000

MakeLabels = Callable[[Ints | None, Sequence[bytes]], LabelColumns]
"""Gives the metadata of some groups by their largest event times, ns, and by their keys as their
first messages spell them; both are empty where windows do not have them."""


class GroupBatches:
    """All groups of a window, in order of first arrival.

    Attributes:
        messages: how many messages they stand for.
    """

    def __init__(self, window: WindowGroups) -> None:
        """Sort the groups."""
        self._window = window
        self._groups = groups = window.groups
        self._order = np.argsort(groups.arrivals, kind="stable")
        self.messages = int(groups.counts.sum())

    def __len__(self) -> int:
        return len(self._order)

    @property
    def max_time(self) -> int | None:
        """The largest event time of all, ns; None where it was not kept."""
        return self._window.max_event_time

    def iterate_batches(
        self, start: int | None, end: int, reason: WindowReason, make_labels: MakeLabels
    ) -> Iterator[EmissionBatch]:
        """Give the batches.

        Args:
            start: of the window, ns, where it is told.
            end: of the window, ns.
            reason: why it comes.
            make_labels: gives the metadata.
        """
        for first in range(0, len(self), _GROUPS_PER_EMISSION):
            some = self._order[first : first + _GROUPS_PER_EMISSION]
            count = len(some)
            columns, keys = self._make_columns(some, make_labels)
            yield EmissionBatch.from_columns(
                columns, [start] * count, [end] * count, [reason] * count, keys
            )

    def _make_columns(
        self, some: Ints, make_labels: MakeLabels
    ) -> tuple[GroupColumns, Sequence[bytes | None]]:
        """Return groups, and their keys."""
        groups, places = self._groups, some.tolist()
        keys = [groups.keys[place] for place in places]
        metas = [groups.metas[place] for place in places]
        number: dict[bytes, int] = {}
        numbers = [number.setdefault(meta, len(number)) for meta in metas]
        spelled: Sequence[bytes] = ()
        if groups.key_id is not None:
            spellings = list(map(read_key_spelling, number))
            spelled = keys
            if any(spellings):
                spelled = [spellings[at] or key for at, key in zip(numbers, keys, strict=True)]
        newest = None if groups.max_times is None else groups.max_times[some]
        columns = GroupColumns(
            groups.text,
            [groups.payloads[place] for place in places],
            groups.counts[some].tolist(),
            list(map(decode_meta, number)),
            None if len(number) == 1 else numbers,
            make_labels(newest, spelled),
            self._window.list_results(some),
            partial(self._read_result, places),
        )
        return columns, [None] * len(keys) if groups.key_id is None else keys

    def _read_result(self, places: list[int], group: int, part: int) -> object:
        return self._window.read_result(places[group], part)
