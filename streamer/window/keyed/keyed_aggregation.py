"""Folds the messages of a micro-batch into the windows of keys.

A window is folded for the mapping that it began with, from its first message to its end. Of a
message that is folded into all its windows, and is the first of none, nothing is kept.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from streamer.window.aggregate.accumulator import RowSpan
from streamer.window.aggregate.mapping_aggregation import (
    MappingAggregation,
    MessageValues,
    mapping_aggregation_for,
)
from streamer.window.keyed.loaded_pack import LoadedPack
from streamer.window.keyed.state import KeyState, Window
from streamer.window.keyed.window_aggregate import UnparsableMessage, WindowAggregate


class KeyedAggregation:
    """The folding of one shard in one micro-batch.

    Attributes:
        mappings: the mappings that windows are folded for; a window knows the number of its own.
        use_counts: by mapping, how many open windows are folded for it.
        held_count: how many messages are held that are not kept.
        freed_count: how many such were given back in this micro-batch.
    """

    def __init__(
        self,
        text: str | None,
        mappings: list[str],
        use_counts: list[int],
        held_count: int,
        mergeable: bool,
    ) -> None:
        """Prepare.

        Args:
            text: the mapping for which windows that begin are folded; None to keep them whole.
            mappings: what the head of the shard's state knows of mappings.
            use_counts: see above.
            held_count: see above.
            mergeable: whether windows of a key may become one.
        """
        self.mappings, self.use_counts = mappings[:], use_counts[:]
        if text is not None and text not in mappings:
            self._register_mapping(text)
        self.held_count = held_count
        self.freed_count = 0
        self._new_window_mapping = None if text is None else self.mappings.index(text)
        self._mergeable = mergeable
        self._kept_rows: list[tuple[LoadedPack, int]] = []
        self._values_cache: dict[tuple[int, int], MessageValues] = {}
        self._current_pack: LoadedPack | None = None
        self._current_mapping = -1
        self._current_values = MessageValues((), {})

    @property
    def is_needed(self) -> bool:
        """Whether there may be a window that is folded."""
        return bool(self.mappings)

    def mapping_number_of(self, text: str) -> int:
        """Return the number of a mapping that windows which come here are folded for."""
        if text not in self.mappings:
            self._register_mapping(text)
        return self.mappings.index(text)

    def count_open_windows(self, state: KeyState, by: int) -> None:
        """Count the open windows of a key, by mapping: 1 for each that there is, -1 to undo it."""
        for window in state.windows:
            if window.aggregate is not None:
                self.use_counts[window.aggregate.mapping_number] += by

    def forget_unused(self) -> None:
        """Forget the mappings that no window is folded for any more; others keep their numbers."""
        self.mappings = [
            text if uses else "" for text, uses in zip(self.mappings, self.use_counts, strict=True)
        ]
        while self.mappings and not self.mappings[-1]:
            self.mappings.pop()
        del self.use_counts[len(self.mappings) :]

    def load(self, state: KeyState) -> None:
        """Read what the windows of a key have come to."""
        for window in state.windows:
            if window.aggregate is not None:
                window.aggregate.load(self._aggregation_of(window.aggregate.mapping_number))

    def add(
        self,
        state: KeyState,
        changed: list[Window],
        time: int,
        arrival: int,
        loaded: LoadedPack,
        row: int,
    ) -> None:
        """Fold a message into the windows that it has changed.

        Args:
            state: of its key.
            changed: these windows; they have counted it.
            time: its event time, ns.
            arrival: its arrival number.
            loaded: where it is.
            row: and where there.
        """
        kept = False
        for window in changed:
            aggregate = window.aggregate
            if aggregate is None:
                number = self._mapping_for_new(state, window) if window.count == 1 else None
                kept = True
                if number is None:
                    continue
                aggregation = self._aggregation_of(number)
                aggregate = window.aggregate = WindowAggregate(
                    number, aggregation.new_states(), time, aggregation=aggregation
                )
            elif time > aggregate.max_event_time:
                aggregate.max_event_time = time
            if (
                loaded is not self._current_pack
                or aggregate.mapping_number != self._current_mapping
            ):
                self._load_values(loaded, aggregate)
            columns, broken = self._current_values
            assert aggregate.aggregation is not None
            place = window.count - 1
            aggregate.states = aggregate.aggregation.add(
                aggregate.states, columns, row, arrival, place
            )
            if broken and aggregate.unparsable is None and row in broken:
                aggregate.unparsable = UnparsableMessage(arrival, broken[row])
        if kept:
            self._kept_rows.append((loaded, row))
        elif (last := changed[0].aggregate) is not None:
            # Held until the last of its windows closes, which is the first that is named.
            last.absorbed_count += 1
            self.held_count += 1

    def add_stretch(
        self, window: Window, loaded: LoadedPack, first: int, last: int, max_time: int
    ) -> None:
        """Fold messages into the only window that they change, of which none is the first.

        Args:
            window: the window; it has not counted them yet.
            loaded: where they are.
            first: the first row.
            last: the one after the last.
            max_time: the largest of their event times, ns.
        """
        aggregate = window.aggregate
        if aggregate is None:
            self._kept_rows += [(loaded, row) for row in range(first, last)]
            return
        if loaded is not self._current_pack or aggregate.mapping_number != self._current_mapping:
            self._load_values(loaded, aggregate)
        columns, broken = self._current_values
        arrivals, _ = loaded.arrivals_and_times
        aggregation, span = aggregate.aggregation, RowSpan(first, last, arrivals)
        assert aggregation is not None
        if max_time > aggregate.max_event_time:
            aggregate.max_event_time = max_time
        aggregate.states = aggregation.add_all(aggregate.states, columns, span, window.count)
        aggregate.absorbed_count += last - first
        self.held_count += last - first
        if broken and aggregate.unparsable is None:
            bad = next((row for row in range(first, last) if row in broken), None)
            if bad is not None:
                aggregate.unparsable = UnparsableMessage(arrivals[bad], broken[bad])

    def free_closed(self, window: Window) -> None:
        """Count the messages of a window that has closed as given back."""
        if window.aggregate is not None:
            self.held_count -= window.aggregate.absorbed_count
            self.freed_count += window.aggregate.absorbed_count

    def drop_aggregated(self, loaded_packs: Iterable[LoadedPack]) -> None:
        """Let the pages of this micro-batch have no message that need not be kept."""
        if self.is_needed:
            rows: dict[int, list[int]] = {}
            for loaded, row in self._kept_rows:
                rows.setdefault(id(loaded), []).append(row)
            for loaded in loaded_packs:
                loaded.keep_only(np.array(rows.get(id(loaded), ()), np.int64))
        self._kept_rows.clear()
        self._values_cache.clear()
        self._current_pack = None

    def _register_mapping(self, text: str) -> None:
        """Give a mapping the number of one that is forgotten, or a new one."""
        if "" in self.mappings:
            self.mappings[self.mappings.index("")] = text
        else:
            self.mappings.append(text)
            self.use_counts.append(0)

    def _load_values(self, loaded: LoadedPack, aggregate: WindowAggregate) -> None:
        """Have at hand what the messages of a page bring to a fold."""
        place = (id(loaded), aggregate.mapping_number)
        values = self._values_cache.get(place)
        if values is None:
            assert aggregate.aggregation is not None
            values = self._values_cache[place] = aggregate.aggregation.read_messages(
                loaded.payloads
            )
        self._current_pack, self._current_mapping, self._current_values = (
            loaded,
            aggregate.mapping_number,
            values,
        )

    def _mapping_for_new(self, state: KeyState, window: Window) -> int | None:
        """Return the mapping that a window which begins is folded for; None to keep it whole.

        A session goes on with the mapping of the others that its key has open, for it may become
        one with them.
        """
        if self._mergeable and len(state.windows) > 1:
            other = next(one for one in state.windows if one is not window)
            return None if other.aggregate is None else other.aggregate.mapping_number
        return self._new_window_mapping

    def _aggregation_of(self, number: int) -> MappingAggregation:
        return mapping_aggregation_for(self.mappings[number])
