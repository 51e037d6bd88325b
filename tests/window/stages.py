"""Runs micro-batches through both stages, as the engine does, on stores in memory."""

from __future__ import annotations

import copy
import os
import random
from abc import ABC, abstractmethod
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from itertools import chain
from typing import Any, Generic, TypeVar

from streamer.core.json.columns.column_reader import ColumnMode
from streamer.core.message import Message
from streamer.window import (
    DictStore,
    Emission,
    MicroBatchInfo,
    Packer,
    Shard,
    ShuffleRow,
    Status,
)
from tests.window.fakes import execution

E = TypeVar("E")
B = TypeVar("B")


def column_mode(arrival: int) -> ColumnMode:
    """Return whether a piece is read as columns: every other one, or as `STREAMER_COLUMNS` says."""
    modes: tuple[ColumnMode, ...] = ("always", "never")
    return next(
        (one for one in modes if one == os.environ.get("STREAMER_COLUMNS")),
        modes[(arrival >> 40) % 2],
    )


@dataclass
class Given(Generic[B]):
    """What one micro-batch gave, over all shards."""

    failed: list[str] = field(default_factory=list)
    batches: dict[int, list[B]] = field(default_factory=dict)
    dropped: dict[str, str] = field(default_factory=dict)
    statuses: list[Status] = field(default_factory=list)
    messages: list[Message] = field(default_factory=list)


class Stages(ABC, Generic[E, B]):
    """A stream of micro-batches; `chance` decides what must not matter.

    That is how a partition's messages are cut into tasks, whether they come as payloads or as
    messages, the order of rows, and whether a task is tried again.
    """

    name_field = "id"

    def __init__(self, shards: int, chance: random.Random | None) -> None:
        self.stores = [DictStore() for _ in range(shards)]
        self.chance = chance or random.Random(1)

    @abstractmethod
    def packer(self, piece: list[E], group: list[E], arrival: int) -> Packer:
        """What packs a piece of a group, which is of one partition."""

    @abstractmethod
    def raw(self, event: E) -> bytes:
        """The payload of an event, with its name."""

    @abstractmethod
    def error(self, event: E) -> str | None:
        """What marks the event as failed."""

    @abstractmethod
    def shard(self, store: DictStore) -> Shard:
        """What runs stage 2 on a store."""

    @abstractmethod
    def told(self, emission: Emission) -> B:
        """A batch of a window as the test wants it."""

    def run(self, groups: Iterable[list[E]], t: int, reading: MicroBatchInfo) -> Given[B]:
        """Run a micro-batch: groups of events, each of one partition, and the clock's row."""
        pieces = chain.from_iterable(self._cut(group) for group in groups)
        rows = [
            row
            for number, (piece, group) in enumerate(pieces)
            for row in self._packed(piece, group, number << 40, t)
        ]
        rows += [reading.to_row(shard) for shard in range(len(self.stores))]
        self.chance.shuffle(rows)
        given: Given[B] = Given()
        for number, store in enumerate(self.stores):
            mine = [row for row in rows if row.shard == number]
            before = copy.deepcopy(store)
            step = self.shard(store).step(mine)
            emissions = list(step)
            if self.chance.random() < 0.3:
                self._again(before, store, mine, emissions)
            self._sort_out(given, number, emissions)
            given.statuses.append(step.status)
        return given

    def names(self, emission: Emission) -> list[str]:
        return [message.doc[self.name_field] for message in emission.messages]

    def _cut(self, group: list[E]) -> list[tuple[list[E], list[E]]]:
        pieces: list[list[E]] = [[]]
        for event in group:
            if self.chance.random() < 0.3:
                pieces.append([])
            pieces[-1].append(event)
        return [(piece, group) for piece in pieces]

    def _packed(self, piece: list[E], group: list[E], arrival: int, t: int) -> list[ShuffleRow]:
        packer, ex = self.packer(piece, group, arrival), execution(t)
        while piece:
            count = self.chance.randint(1, len(piece))
            some, piece = piece[:count], piece[count:]
            errors = [self.error(event) for event in some]
            if any(errors) or self.chance.random() < 0.2:
                packer.add_messages(
                    [
                        Message(self.raw(event), {"place": place}, error)
                        for place, (event, error) in enumerate(zip(some, errors, strict=True))
                    ],
                    arrival,
                    t,
                    ex,
                )
            else:
                raws = [self.raw(event) for event in some]
                packer.add_raws(raws, {"count": count}, arrival, t, ex)
            arrival += count
        return [*packer.take_rows(), *packer.flush_rows()]

    def _again(
        self, before: DictStore, after: DictStore, rows: list[ShuffleRow], emissions: list[Emission]
    ) -> None:
        """A task that is tried again decides the same, whatever the order of its rows."""
        self.chance.shuffle(rows)
        again = list(self.shard(before).step(rows))
        assert [shown(e) for e in again] == [shown(e) for e in emissions]
        assert before.values == after.values

    def _sort_out(self, given: Given[B], shard: int, emissions: list[Emission]) -> None:
        batches = given.batches.setdefault(shard, [])
        for emission in emissions:
            given.messages += emission.messages
            if emission.reason == "failed":
                assert not batches, "what failed goes ahead of the windows"
                given.failed += self.names(emission)
            elif emission.reason == "dropped":
                for name, message in zip(self.names(emission), emission.messages, strict=True):
                    assert name not in given.dropped, "a message is dropped once"
                    given.dropped[name] = str(message.meta["window_drop_reason"])
            else:
                batches += map(self.told, parted(emission))


def parted(emission: Emission) -> list[Emission]:
    """Return batches that came together one by one."""
    if not emission.is_per_message:
        return [emission]
    return [replace(emission, messages=[one], is_per_message=False) for one in emission.messages]


def shown(emission: Emission) -> tuple[object, ...]:
    """All that can be seen of a batch."""
    messages = [(m.raw, dict(m.meta), m.error) for m in emission.messages]
    return emission.end, emission.reason, emission.key, messages


def of_window(emission: Emission) -> dict[str, Any]:
    """What the messages of a batch are told of their window, all the same."""
    told = [
        {name: value for name, value in message.meta.items() if name.startswith("window_")}
        for message in emission.messages
    ]
    assert all(meta == told[0] for meta in told)
    return told[0]
