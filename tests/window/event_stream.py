"""Runs the micro-batches of the oracles through both stages of event-time windows."""

from __future__ import annotations

import random
from dataclasses import dataclass
from itertools import groupby

import orjson

from streamer.bloblang import compile_mapping
from streamer.bloblang.analysis.pre_aggregation import PreAggregation
from streamer.core.message import Message
from streamer.core.timestamps import format_rfc3339
from streamer.window import DictStore, Emission, MicroBatchInfo, Shard
from streamer.window.assign.packer import Packer
from streamer.window.evaluate.message_slots import PieceOrigin
from streamer.window.evaluate.queries import BufferMappings, CompiledMapping
from streamer.window.settings.event_time_window import EventWindow
from streamer.window.settings.window_types import EventTimeSettings, Tumbling
from tests.window import stages
from tests.window.oracle.events import KEY_FAILS, Event, MicroBatch
from tests.window.oracle.hopping import Hopping
from tests.window.oracle.intake import Fields

TIMES = ('root = if this.ts == "now" { now() } else { this.ts }',)
FILTERS = ("root = this.keep",)


def window_of(rules: Hopping) -> EventWindow:
    kind = Tumbling(rules.size, rules.hop, rules.offset, rules.timezone)
    return EventWindow(kind, times_of(rules), rules.keyed)


def times_of(rules: Fields) -> EventTimeSettings:
    return EventTimeSettings(
        rules.clock,
        rules.clock_scope,
        rules.key_retention,
        rules.allowed_lateness,
        rules.max_ahead,
        rules.idle_timeout,
        rules.emit,
        None,
        rules.end_of_input,
        order=rules.order,
        emit_also=rules.emit_also,
    )


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


Given = stages.Given[Batch]


class EventStream(stages.Stages[Event, Batch]):
    """A stream of micro-batches."""

    def __init__(
        self,
        window: EventWindow,
        filtered: bool = False,
        shards: int = 1,
        chance: random.Random | None = None,
        having: CompiledMapping | None = None,
        fold: PreAggregation | None = None,
    ) -> None:
        super().__init__(shards, chance)
        self.window = window
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
        groups = [list(same) for _, same in groupby(batch.events, lambda event: event.partition)]
        start, stood = str(self._starts), batch.stood
        reading = MicroBatchInfo(batch.t, start, batch.backlog, batch.ended, suspended=stood)
        return self.run(groups, self._t, reading)

    def packer(self, piece: list[Event], group: list[Event], arrival: int) -> Packer:
        key = 'root = if this.key.type() == "object" && this.key.exists("fails") '
        key += '{ throw("no key") } else { this.key }'
        asked = BufferMappings(
            compile_mapping(self.chance.choice(TIMES)),
            compile_mapping(key) if self.window.keyed else None,
            compile_mapping(self.chance.choice(FILTERS)) if self._filtered else None,
        )
        origin = PieceOrigin(arrival, self.partition_name(group[0]))
        return Packer(
            *(self.window, len(self.stores), asked, origin, self._keeps_dropped, self._fold),
            columns=stages.column_mode(arrival),
        )

    def partition_name(self, event: Event) -> bytes:
        return str(event.partition).encode()

    def raw(self, event: Event) -> bytes:
        """The message; a key that fails is one that is not there."""
        time = format_rfc3339(event.time) if isinstance(event.time, int) else event.time
        keep: object = "maybe" if event.filter == "error" else event.filter
        doc: dict[str, object] = {"id": event.id, "ts": time, "keep": keep, "key": event.key}
        if event.key is KEY_FAILS:
            doc["key"] = None
            return orjson.dumps(doc).replace(b'"key":null', b'"key":{"fails":true}')
        return orjson.dumps(doc)

    def error(self, event: Event) -> str | None:
        return "it failed" if event.failed else None

    def shard(self, store: DictStore) -> Shard:
        return Shard(self.window, store, self._keeps_dropped, self._having)

    def told(self, emission: Emission) -> Batch:
        return Batch(
            emission.reason,
            tuple(self.names(emission)),
            emission.key,
            emission.start,
            emission.end,
            stages.of_window(emission),
            emission.messages,
        )
