"""Pre-aggregation in stage 1: messages of a task become groups as they are read."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Final

import numpy as np
import orjson

from streamer.bloblang.analysis.pre_aggregation import PreAggregation
from streamer.core.json.bulk import choose_parser
from streamer.window.aggregate.accumulator import Accumulator, ValueColumn, select_values
from streamer.window.aggregate.aggregate_codec import encode_aggregates
from streamer.window.aggregate.fields import Docs, FieldReader
from streamer.window.aggregate.known_codes import KnownCodes
from streamer.window.aggregate.partial_aggregates import PartialAggregates
from streamer.window.contract import RowKind, ShuffleRow
from streamer.window.evaluate.message_slots import MessageEvaluator
from streamer.window.pack.message_columns import GROUP_MASK, SLOT_BITS, group_indices
from streamer.window.pack.message_columns import KeyGroups as Keys
from streamer.window.settings.int_codec import Ints

MAX_MESSAGES: Final = 1 << 20
"""Messages that are aggregated together at most; a few bytes of each are held."""

DOCUMENTS_PER_PARSE: Final = 1024
"""Messages whose documents are made together: so few that they stay in the processor's cache."""

_MAX_GROUPS: Final = 1 << 17
_MAX_BYTES: Final = 64 << 20
_MAX_TABLE_ENTRIES: Final = 1 << 22


class PreAggregator:
    """Pre-aggregates the messages of one task.

    Attributes:
        messages: how many are held.
    """

    def __init__(self, aggregation: PreAggregation, key_id: int | None) -> None:
        """Begin.

        Args:
            aggregation: the mapping's aggregates.
            key_id: identifies the expression that gives the groups; None without one.
        """
        self._aggregation = aggregation
        self._key_id = key_id
        self._fields = FieldReader(aggregation)
        self._reset()

    def _reset(self) -> None:
        self._codes: list[Ints] = []
        self._arrivals: list[Ints] = []
        self._times: list[Ints] = []
        self._columns: list[list[ValueColumn]] = [[] for _ in self._fields.accumulators]
        self._firsts: dict[int, tuple[int, bytes, bytes]] = {}
        self._known_codes = KnownCodes()
        self._size = 0
        self.messages = 0

    @property
    def accumulators(self) -> list[Accumulator]:
        """By aggregate, its accumulator."""
        return self._fields.accumulators

    @property
    def is_full(self) -> bool:
        """Whether the held messages must be flushed."""
        many = self.messages >= MAX_MESSAGES or len(self._firsts) >= _MAX_GROUPS
        return many or self._size >= _MAX_BYTES

    def make_columns(self, docs: Docs) -> list[ValueColumn]:
        """Return by aggregate the column of messages' values, for `add`."""
        return self._fields.make_columns(self._fields.read_values(docs))

    def evaluate(
        self, evaluator: MessageEvaluator, raws: list[bytes]
    ) -> tuple[Ints, list[ValueColumn]]:
        """Return the codes of payloads, and their columns; raises whatever one makes it raise."""
        codes: list[int] = []
        values: list[list[Any]] = [[] for _ in self._columns]
        quick = None if self._fields.exact else evaluator.parser or orjson.loads
        for start in range(0, len(raws), DOCUMENTS_PER_PARSE):
            some = raws[start : start + DOCUMENTS_PER_PARSE]
            docs = list(map(quick or choose_parser(some), some))
            codes += evaluator.evaluate(docs)
            for column_values, new_values in zip(
                values, self._fields.read_values(docs), strict=True
            ):
                column_values += new_values
        return np.array(codes, np.int64), self._fields.make_columns(values)

    def add(
        self,
        raws: Sequence[bytes],
        codes: Ints,
        arrivals: Ints,
        metas: list[bytes],
        columns: list[ValueColumn],
        times: Ints | None = None,
    ) -> None:
        """Add messages that follow those before.

        Args:
            raws: payloads.
            codes: by message, slot and group (`SLOT_BITS`).
            arrivals: by message.
            metas: by message, as `encode_meta` writes it; or the one that all share.
            columns: their values, by aggregate.
            times: by message, its event time; where windows follow them, for all messages.
        """
        if not raws:
            return
        self._codes.append(codes)
        self._arrivals.append(arrivals)
        if times is not None:
            self._times.append(times)
        for part_columns, column in zip(self._columns, columns, strict=True):
            part_columns.append(column)
            self._size += column.size
        self.messages += len(raws)
        for place in self._known_codes.find_new(codes):
            raw, meta = raws[place], metas[0 if len(metas) == 1 else place]
            self._firsts[int(codes[place])] = (int(arrivals[place]), raw, meta)
            self._size += len(raw)

    def flush_rows(
        self, targets: list[tuple[RowKind, int]], keys: Keys | None
    ) -> Iterator[ShuffleRow]:
        """Return all that is held, as a pack for each shard and pane, and hold nothing.

        Args:
            targets: by slot, kind and pane.
            keys: by group, key and shard; None when there is no key.
        """
        shards = None if keys is None else keys.shard_of
        names = None if keys is None else keys.key_of
        for shard, slot, groups in self.flush_groups(len(targets), names, shards):
            yield ShuffleRow(
                shard, *targets[slot], groups.first_arrival, encode_aggregates(groups)[0]
            )

    def flush_groups(
        self, slots: int, keys: list[bytes] | None, shards: list[int] | None
    ) -> Iterator[tuple[int, int, PartialAggregates]]:
        """Return all that is held, by shard and slot, and hold nothing.

        Args:
            slots: how many there are.
            keys: by group; None when there is no key, and one group.
            shards: by group; None for one shard.
        """
        if not self.messages:
            return
        codes = np.sort(np.fromiter(self._firsts, np.int64, len(self._firsts)))
        groups = _find_places(codes, np.concatenate(self._codes))
        accumulators = self._fields.accumulators
        arrivals = np.concatenate(self._arrivals)
        columns = [
            a.concat_columns(part_columns)
            for a, part_columns in zip(accumulators, self._columns, strict=True)
        ]
        newest = self._find_max_times(groups, len(codes))
        rows = codes >> SLOT_BITS
        if shards is not None:
            rows = rows + slots * np.array(shards, np.int64)[codes & GROUP_MASK]
        row_of = rows[groups]
        for messages in group_indices(row_of):
            row = int(row_of[messages[0]])
            shard, slot = divmod(row, slots)
            mine = np.flatnonzero(rows == row)
            number = np.empty(len(codes), np.int64)
            number[mine] = np.arange(len(mine))
            local = number[groups[messages]]
            brought = [select_values(column, messages) for column in columns]
            listed = codes[mine].tolist()
            made = self._make_groups(listed, keys, local, arrivals[messages], brought)
            made.max_times = None if newest is None else newest[mine]
            yield shard, slot, made
        self._reset()

    def _find_max_times(self, groups: Ints, count: int) -> Ints | None:
        if not self._times:
            return None
        newest = np.full(count, np.iinfo(np.int64).min)
        np.maximum.at(newest, groups, np.concatenate(self._times))
        return newest

    def _make_groups(
        self,
        codes: list[int],
        keys: list[bytes] | None,
        groups: Ints,
        arrivals: Ints,
        columns: list[ValueColumn],
    ) -> PartialAggregates:
        firsts = [self._firsts[code] for code in codes]
        count = len(codes)
        return PartialAggregates(
            text=self._aggregation.text,
            key_id=self._key_id,
            keys=[b"" if keys is None else keys[code & GROUP_MASK] for code in codes],
            counts=np.bincount(groups, minlength=count),
            arrivals=np.array([first[0] for first in firsts], np.int64),
            payloads=[first[1] for first in firsts],
            metas=[first[2] for first in firsts],
            last_arrival=int(arrivals.max()),
            states=[
                accumulator.make_state(column, groups, count, arrivals)
                for accumulator, column in zip(self._fields.accumulators, columns, strict=True)
            ],
        )


def _find_places(codes: Ints, values: Ints) -> Ints:
    """Return where each value stands among sorted codes, of which it is one."""
    slots, groups = codes >> SLOT_BITS, codes & GROUP_MASK
    width = int(groups.max()) + 1
    if (int(slots.max()) + 1) * width > _MAX_TABLE_ENTRIES:
        return np.searchsorted(codes, values)
    # A table is several times as fast as a search.
    table = np.empty((int(slots.max()) + 1) * width, np.int64)
    table[slots * width + groups] = np.arange(len(codes))
    return table[(values >> SLOT_BITS) * width + (values & GROUP_MASK)]
