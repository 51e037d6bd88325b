"""Runs the micro-batches of `system_window`'s oracle through both stages."""

from __future__ import annotations

import random

import orjson

from streamer.core.timestamps import format_rfc3339
from streamer.window import (
    DictStore,
    Emission,
    MicroBatchInfo,
    Packer,
    Shard,
    SystemWindow,
)
from streamer.window.evaluate.queries import BufferMappings
from streamer.window.settings.back_pressure import BackPressure
from tests.window import stages
from tests.window.fakes import NOW, FakeMapping, field_mapping, field_text, now_or
from tests.window.oracle.system import MicroBatch, Rules, Said

Batch = tuple[int, str, list[str]]
"""A window's end, the reason, and the names of its messages."""
Given = stages.Given[Batch]


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


class Stream(stages.Stages[Said, Batch]):
    """A stream of micro-batches."""

    name_field = "name"

    def __init__(
        self,
        rules: Rules,
        shards: int = 1,
        keyed: bool = False,
        chance: random.Random | None = None,
        says: str = "time",
    ) -> None:
        super().__init__(shards, chance)
        self.window = window_of(rules)
        self.now: int | None = None
        self.keyed = keyed
        mappings: dict[str, FakeMapping] = {
            "time": field_mapping("ts"),
            "now": NOW,
            "both": now_or("ts"),
        }
        self.mapping = mappings[says]

    def step(self, batch: MicroBatch) -> Given:
        before = batch.t if self.now is None else self.now
        self.now = max(before, batch.t)
        busy = ((before, self.now),) if batch.busy is None else batch.busy
        pressure = BackPressure(busy, 0, sum(b - a for a, b in busy))
        start, backlog, ended = batch.start, batch.backlog, batch.ended
        reading = MicroBatchInfo(batch.t, start, backlog, ended, pressure=pressure)
        return self.run([list(batch.messages)], batch.t, reading)

    def packer(self, piece: list[Said], group: list[Said], arrival: int) -> Packer:
        key = field_text("key", fast=self.chance.random() < 0.8) if self.keyed else None
        mappings = BufferMappings(self.mapping, key)
        return Packer(
            *(self.window, len(self.stores), mappings),
            keep_dropped=True,
            columns=stages.column_mode(arrival),
        )

    def raw(self, event: Said) -> bytes:
        time = format_rfc3339(event.time) if isinstance(event.time, int) else event.time
        return orjson.dumps({"name": event.name, "ts": time, "key": event.key})

    def error(self, event: Said) -> str | None:
        return "it failed" if event.failed else None

    def shard(self, store: DictStore) -> Shard:
        return Shard(self.window, store, keep_dropped=True)

    def told(self, emission: Emission) -> Batch:
        assert emission.end is not None
        return emission.end, emission.reason, self.names(emission)
