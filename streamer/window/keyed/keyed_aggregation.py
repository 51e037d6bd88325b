"""Aggregates the messages of a micro-batch into the windows of keys.

A window is aggregated for the mapping that it opened with, from its first message to its end. A
message is not kept if all its windows are aggregated and it is the first message of none.
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
from streamer.window.keyed.message_rows import LoadedPack
from streamer.window.keyed.state import KeyState, Window
from streamer.window.keyed.window_aggregate import UnparsableMessage, WindowAggregate


class KeyedAggregation:
    """The aggregation of one shard in one micro-batch.

    Attributes:
        mappings: the mappings that windows aggregate by; `WindowAggregate` has the index of its
            own.
        use_counts: by mapping, the number of open windows that aggregate by it.
        held_count: number of messages that are held in aggregates only.
        freed_count: how many such messages were freed in this micro-batch.
    """

    def __init__(
        self,
        text: str | None,
        mappings: list[str],
        use_counts: list[int],
        held_count: int,
        mergeable: bool,
        unbounded: bool = False,
    ) -> None:
        """Start from the head of the shard's state.

        Args:
            text: the mapping that new windows aggregate by; None to keep their messages.
            mappings: the attribute, as the head has it.
            use_counts: the attribute, as the head has it.
            held_count: the attribute, as the head has it.
            mergeable: whether windows of a key may become one.
            unbounded: whether windows never end: then their messages are not counted as held.
        """
        self.mappings, self.use_counts = mappings[:], use_counts[:]
        if text is not None and text not in mappings:
            self._register_mapping(text)
        self.held_count = held_count
        self.freed_count = 0
        self._new_window_mapping = None if text is None else self.mappings.index(text)
        self._mergeable = mergeable
        self._unbounded = unbounded
        self._kept_rows: list[tuple[LoadedPack, int]] = []
        self._values_cache: dict[tuple[int, int], MessageValues] = {}
        self._current_pack: LoadedPack | None = None
        self._current_mapping = -1
        self._current_values = MessageValues((), {})

    @property
    def is_needed(self) -> bool:
        """Whether there may be an aggregated window."""
        return bool(self.mappings)

    def mapping_number_of(self, text: str) -> int:
        """Return the number of a mapping, a new one if it has none."""
        if text not in self.mappings:
            self._register_mapping(text)
        return self.mappings.index(text)

    def count_open_windows(self, state: KeyState, by: int) -> None:
        """Add the open windows of a key to `use_counts`; `by` is 1 to add, -1 to subtract."""
        for window in state.windows:
            if window.aggregate is not None:
                self.use_counts[window.aggregate.mapping_number] += by

    def forget_unused(self) -> None:
        """Forget mappings that no window aggregates by; the others keep their numbers."""
        self.mappings = [
            text if uses else "" for text, uses in zip(self.mappings, self.use_counts, strict=True)
        ]
        while self.mappings and not self.mappings[-1]:
            self.mappings.pop()
        del self.use_counts[len(self.mappings) :]

    def load(self, state: KeyState) -> None:
        """Decode the aggregates of a key's windows."""
        for window in state.windows:
            if window.aggregate is not None:
                if self._unbounded:
                    self._follow_mapping(window.aggregate)
                window.aggregate.load(self._aggregation_of(window.aggregate.mapping_number))

    def _follow_mapping(self, aggregate: WindowAggregate) -> None:
        """Let a window without end go on for another mapping that asks the same of messages."""
        old, new = aggregate.mapping_number, self._new_window_mapping
        if new is None or old == new:
            return
        if self._aggregation_of(old).parts == self._aggregation_of(new).parts:
            self.use_counts[old] -= 1
            self.use_counts[new] += 1
            aggregate.mapping_number = new

    def add(
        self,
        state: KeyState,
        changed: list[Window],
        time: int,
        arrival: int,
        loaded: LoadedPack,
        row: int,
    ) -> None:
        """Aggregate a message into the windows that it has changed.

        Args:
            state: the record of its key.
            changed: the windows, which have counted it.
            time: its event time, ns.
            arrival: its arrival number.
            loaded: its pack.
            row: its row there.
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
        if self._unbounded:
            return
        if kept:
            self._kept_rows.append((loaded, row))
        elif (last := changed[0].aggregate) is not None:
            # Held until the last of its windows closes, which is the first one of `changed`.
            last.absorbed_count += 1
            self.held_count += 1

    def add_stretch(
        self, window: Window, loaded: LoadedPack, first: int, last: int, max_time: int
    ) -> None:
        """Aggregate consecutive messages into the only window that they change, which has others.

        Args:
            window: the window, which has not counted them yet.
            loaded: their pack.
            first: their first row.
            last: the row after their last.
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
        if not self._unbounded:
            aggregate.absorbed_count += last - first
            self.held_count += last - first
        if broken and aggregate.unparsable is None:
            bad = next((row for row in range(first, last) if row in broken), None)
            if bad is not None:
                aggregate.unparsable = UnparsableMessage(arrivals[bad], broken[bad])

    def free_closed(self, window: Window) -> None:
        """Count the messages of a closed window as freed."""
        if window.aggregate is not None:
            self.held_count -= window.aggregate.absorbed_count
            self.freed_count += window.aggregate.absorbed_count

    def drop_aggregated(self, loaded_packs: Iterable[LoadedPack]) -> None:
        """Free the messages of fresh packs that are held in aggregates only."""
        if self.is_needed and not self._unbounded:
            rows: dict[int, list[int]] = {}
            for loaded, row in self._kept_rows:
                rows.setdefault(id(loaded), []).append(row)
            for loaded in loaded_packs:
                loaded.keep_only(np.array(rows.get(id(loaded), ()), np.int64))
        self._kept_rows.clear()
        self._values_cache.clear()
        self._current_pack = None

    def _register_mapping(self, text: str) -> None:
        """Give a mapping the number of a forgotten one, or a new one."""
        if "" in self.mappings:
            self.mappings[self.mappings.index("")] = text
        else:
            self.mappings.append(text)
            self.use_counts.append(0)

    def _load_values(self, loaded: LoadedPack, aggregate: WindowAggregate) -> None:
        """Load (and cache) the values of a pack's messages for one mapping's aggregates."""
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
        """Return the number of the mapping that a new window aggregates by; None to keep messages.

        A new session takes the mapping of the key's other open sessions, which it may merge with.
        """
        if self._mergeable and len(state.windows) > 1:
            other = next(one for one in state.windows if one is not window)
            return None if other.aggregate is None else other.aggregate.mapping_number
        return self._new_window_mapping

    def _aggregation_of(self, number: int) -> MappingAggregation:
        return mapping_aggregation_for(self.mappings[number])
