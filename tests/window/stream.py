"""Runs micro-batches through both stages, as the engine does, on stores in memory."""

from __future__ import annotations

import copy
import random
from dataclasses import dataclass, field

import orjson

from streamer.message import Message
from streamer.timestamps import format_rfc3339
from streamer.window import DictStore, Emission, Packer, Reading, Row, Shard, Status, SystemWindow
from tests.window.fakes import NOW, FakeMapping, execution, field_mapping, field_text, now_or
from tests.window.oracle.system import MicroBatch, Rules, Said


def window_of(rules: Rules) -> SystemWindow:
    return SystemWindow(
        rules.size,
        rules.slide,
        rules.offset,
        rules.lateness,
        rules.expire_after,
        rules.on_expired,  # type: ignore[arg-type]
        rules.end_of_input,  # type: ignore[arg-type]
    )


def raw_of(said: Said) -> bytes:
    time = format_rfc3339(said.time) if isinstance(said.time, int) else said.time
    return orjson.dumps({"name": said.name, "ts": time, "key": said.key})


@dataclass
class Given:
    """What one micro-batch gave, over all shards."""

    failed: list[str] = field(default_factory=list)
    batches: dict[int, list[tuple[int, str, list[str]]]] = field(default_factory=dict)
    dropped: dict[str, str] = field(default_factory=dict)
    statuses: list[Status] = field(default_factory=list)
    messages: list[Message] = field(default_factory=list)


class Stream:
    """A stream of micro-batches; `chance` decides what must not matter."""

    def __init__(
        self,
        rules: Rules,
        shards: int = 1,
        keyed: bool = False,
        chance: random.Random | None = None,
        says: str = "time",
    ) -> None:
        self.window = window_of(rules)
        self.stores = [DictStore() for _ in range(shards)]
        self.keyed = keyed
        self.chance = chance or random.Random(1)
        self.mapping: FakeMapping = {"time": field_mapping("ts"), "now": NOW, "both": now_or("ts")}[
            says
        ]

    def step(self, batch: MicroBatch) -> Given:
        rows = self._rows(batch)
        given = Given()
        for shard in range(len(self.stores)):
            mine = [row for row in rows if row.shard == shard]
            again = copy.deepcopy(self.stores[shard])
            emissions, status = self._shard(shard, mine)
            if self.chance.random() < 0.3:
                self._replay(shard, again, mine, emissions)
            self._sort_out(given, shard, emissions)
            given.statuses.append(status)
        return given

    def _rows(self, batch: MicroBatch) -> list[Row]:
        """Stage 1, in as many tasks as chance will have."""
        rows = []
        pieces = self._cut(list(batch.messages))
        for number, piece in enumerate(pieces):
            key = field_text("key", fast=self.chance.random() < 0.8) if self.keyed else None
            packer = Packer(self.window, len(self.stores), self.mapping, key, keep_dropped=True)
            self._pack(packer, piece, number << 40, batch.t)
            rows += [*packer.ready(), *packer.rows()]
        reading = Reading(batch.t, batch.start, batch.backlog, batch.ended)
        rows += [reading.row(shard) for shard in range(len(self.stores))]
        self.chance.shuffle(rows)
        return rows

    def _cut(self, messages: list[Said]) -> list[list[Said]]:
        pieces: list[list[Said]] = [[]]
        for said in messages:
            if self.chance.random() < 0.3:
                pieces.append([])
            pieces[-1].append(said)
        return pieces

    def _pack(self, packer: Packer, piece: list[Said], arrival: int, t: int) -> None:
        if any(said.failed for said in piece) or self.chance.random() < 0.2:
            messages = [
                Message(raw_of(said), {"n": said.name}, "it failed" if said.failed else None)
                for said in piece
            ]
            packer.add_messages(messages, arrival, t, execution(t))
            return
        while piece:
            count = self.chance.randint(1, len(piece))
            raws = [raw_of(said) for said in piece[:count]]
            packer.add_raws(raws, {"count": count}, arrival, t, execution(t))
            piece, arrival = piece[count:], arrival + count

    def _shard(self, shard: int, rows: list[Row]) -> tuple[list[Emission], Status]:
        step = Shard(self.window, self.stores[shard], keep_dropped=True).step(rows)
        return list(step), step.status

    def _replay(
        self, shard: int, before: DictStore, rows: list[Row], emissions: list[Emission]
    ) -> None:
        """A task that is tried again decides the same, whatever the order of its rows."""
        self.chance.shuffle(rows)
        again = list(Shard(self.window, before, keep_dropped=True).step(rows))
        assert [shown(e) for e in again] == [shown(e) for e in emissions]
        assert before.values == self.stores[shard].values

    def _sort_out(self, given: Given, shard: int, emissions: list[Emission]) -> None:
        ended = given.batches.setdefault(shard, [])
        for emission in emissions:
            given.messages += emission.messages
            names = [message.doc["name"] for message in emission.messages]
            if emission.reason == "failed":
                assert not ended, "what failed goes ahead of the windows"
                given.failed += names
            elif emission.reason == "dropped":
                reasons = [message.meta["window_drop_reason"] for message in emission.messages]
                given.dropped.update(zip(names, reasons, strict=True))
            else:
                assert emission.end is not None
                ended.append((emission.end, emission.reason, names))


def shown(emission: Emission) -> tuple[object, ...]:
    messages = [(m.raw, dict(m.meta), m.error) for m in emission.messages]
    return emission.end, emission.reason, emission.key, messages
