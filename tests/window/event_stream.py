"""Runs the micro-batches of the oracles through both stages of event-time windows."""

from __future__ import annotations

import copy
import random
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import groupby

import orjson

from streamer.bloblang import compile_mapping
from streamer.bloblang.folding import Fold
from streamer.message import Message
from streamer.timestamps import format_rfc3339
from streamer.window import DictStore, Emission, Reading, Row, Shard, Status
from streamer.window.event import EventWindow
from streamer.window.event_packer import Asked, EventPacker
from streamer.window.kinds import EventTime, Tumbling
from streamer.window.queries import Query
from tests.window.fakes import execution
from tests.window.oracle.events import KEY_FAILS, Event, MicroBatch
from tests.window.oracle.hopping import Hopping
from tests.window.oracle.intake import Fields
from tests.window.stream import shown

TIMES = ('root = if this.ts == "now" { now() } else { this.ts }',)
FILTERS = ("root = this.keep",)


def window_of(rules: Hopping) -> EventWindow:
    kind = Tumbling(rules.size, rules.hop, rules.offset, rules.timezone)
    return EventWindow(kind, times_of(rules), rules.keyed)


def times_of(rules: Fields) -> EventTime:
    return EventTime(
        rules.clock,
        rules.clock_scope,
        rules.key_retention,
        rules.allowed_lateness,
        rules.max_ahead,
        rules.idle_timeout,
        rules.emit,
        None,
        rules.end_of_input,
    )


def raw_of(event: Event) -> bytes:
    """The message; a key that fails is one that is not there."""
    time = format_rfc3339(event.time) if isinstance(event.time, int) else event.time
    keep: object = "maybe" if event.filter == "error" else event.filter
    doc: dict[str, object] = {"id": event.id, "ts": time, "keep": keep, "key": event.key}
    if event.key is KEY_FAILS:
        doc["key"] = None
        return orjson.dumps(doc).replace(b'"key":null', b'"key":{"fails":true}')
    return orjson.dumps(doc)


@dataclass(frozen=True)
class Batch:
    """A batch of a window as it came out of a shard."""

    reason: str
    ids: tuple[str, ...]
    key: bytes | None
    start: int | None
    end: int | None
    meta: dict[str, object]
    messages: list[Message]


@dataclass
class Given:
    """What one micro-batch gave, over all shards."""

    failed: list[str] = field(default_factory=list)
    batches: dict[int, list[Batch]] = field(default_factory=dict)
    dropped: dict[str, str] = field(default_factory=dict)
    statuses: list[Status] = field(default_factory=list)


class EventStream:
    """A stream of micro-batches; `chance` decides what must not matter."""

    def __init__(
        self,
        window: EventWindow,
        filtered: bool = False,
        shards: int = 1,
        chance: random.Random | None = None,
        having: Query | None = None,
        fold: Fold | None = None,
    ) -> None:
        self.window = window
        self.stores = [DictStore() for _ in range(shards)]
        self.chance = chance or random.Random(1)
        self._having = having
        self._filtered = filtered
        self._fold = fold
        # What is folded cannot be handed on.
        self._keeps_dropped = fold is None
        self._t: int | None = None
        self._starts = 0

    def step(self, batch: MicroBatch) -> Given:
        # The engine gives stage 1 a time that does not run backwards.
        self._t = batch.t if self._t is None else max(self._t, batch.t)
        self._starts += batch.restarted
        rows = self._rows(batch, self._t)
        given = Given()
        for shard in range(len(self.stores)):
            mine = [row for row in rows if row.shard == shard]
            again = copy.deepcopy(self.stores[shard])
            emissions, status = self._shard(shard, mine)
            if self.chance.random() < 0.3:
                self._replay(shard, again, mine, emissions)
            sort_out(given, shard, emissions)
            given.statuses.append(status)
        return given

    def _rows(self, batch: MicroBatch, t: int) -> list[Row]:
        """Stage 1, in as many pieces as chance will have; each is of one partition."""
        rows = []
        number = 0
        for partition, events in groupby(batch.events, lambda event: event.partition):
            for piece in self._cut(list(events)):
                rows += self._piece(piece, number, partition, t)
                number += 1
        reading = Reading(batch.t, str(self._starts), batch.backlog, batch.ended)
        rows += [reading.row(shard) for shard in range(len(self.stores))]
        self.chance.shuffle(rows)
        return rows

    def _cut(self, events: list[Event]) -> list[list[Event]]:
        pieces: list[list[Event]] = [[]]
        for event in events:
            if self.chance.random() < 0.3:
                pieces.append([])
            pieces[-1].append(event)
        return pieces

    def _piece(self, events: Sequence[Event], number: int, partition: int, t: int) -> list[Row]:
        packer = self._packer(number << 40, partition)
        arrival = number << 40
        while events:
            count = self.chance.randint(1, len(events))
            some, events = events[:count], events[count:]
            raws = [raw_of(event) for event in some]
            if any(event.failed for event in some) or self.chance.random() < 0.2:
                messages = [
                    Message(raw, {"id": event.id}, "it failed" if event.failed else None)
                    for raw, event in zip(raws, some, strict=True)
                ]
                packer.add_messages(messages, arrival, t, execution(t))
            else:
                packer.add_raws(raws, {"count": count}, arrival, t, execution(t))
            arrival += count
        return [*packer.ready(), *packer.rows()]

    def _packer(self, arrival: int, partition: int) -> EventPacker:
        key = 'root = if this.key.type() == "object" && this.key.exists("fails") '
        key += '{ throw("no key") } else { this.key }'
        asked = Asked(
            compile_mapping(self.chance.choice(TIMES)),
            compile_mapping(key) if self.window.keyed else None,
            compile_mapping(self.chance.choice(FILTERS)) if self._filtered else None,
        )
        shards = len(self.stores)
        name = str(partition).encode()
        return EventPacker(
            self.window, shards, asked, arrival, name, self._keeps_dropped, self._fold
        )

    def _shard(self, shard: int, rows: list[Row]) -> tuple[list[Emission], Status]:
        step = self._of(self.stores[shard]).step(rows)
        return list(step), step.status

    def _of(self, store: DictStore) -> Shard:
        return Shard(self.window, store, self._keeps_dropped, self._having)

    def _replay(
        self, shard: int, before: DictStore, rows: list[Row], emissions: list[Emission]
    ) -> None:
        """A task that is tried again decides the same, whatever the order of its rows."""
        self.chance.shuffle(rows)
        again = list(self._of(before).step(rows))
        assert [shown(e) for e in again] == [shown(e) for e in emissions]
        assert before.values == self.stores[shard].values


def sort_out(given: Given, shard: int, emissions: list[Emission]) -> None:
    batches = given.batches.setdefault(shard, [])
    for emission in emissions:
        ids = [message.doc["id"] for message in emission.messages]
        if emission.reason == "failed":
            assert not batches, "what failed goes ahead of the windows"
            given.failed += ids
        elif emission.reason == "dropped":
            reasons = [message.meta["window_drop_reason"] for message in emission.messages]
            given.dropped.update(zip(ids, reasons, strict=True))
        else:
            told = [of_window(message) for message in emission.messages]
            assert all(meta == told[0] for meta in told)
            batches.append(
                Batch(
                    emission.reason,
                    tuple(ids),
                    emission.key,
                    emission.start,
                    emission.end,
                    told[0],
                    emission.messages,
                )
            )


def of_window(message: Message) -> dict[str, object]:
    return {key: value for key, value in message.meta.items() if key.startswith("window_")}
