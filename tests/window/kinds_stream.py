"""Runs the oracles' micro-batches through both stages, on stores in memory, for every kind."""

from __future__ import annotations

import random
from itertools import groupby
from typing import Any

import orjson

from streamer.core.timestamps import Timestamp, format_rfc3339
from streamer.window import DictStore, Emission, MicroBatchInfo, Shard
from streamer.window.assign.packer import Packer
from streamer.window.contract import RowKind
from streamer.window.evaluate.message_slots import PieceOrigin
from streamer.window.evaluate.queries import BufferMappings
from streamer.window.rescale.rescale_state import rescale
from streamer.window.settings.event_time_window import EventWindow
from streamer.window.settings.window_types import Count as CountKind
from streamer.window.settings.window_types import EventTimeSettings, Global, Tumbling
from streamer.window.settings.window_types import Join as JoinKind
from streamer.window.settings.window_types import Session as SessionKind
from streamer.window.settings.window_types import Sliding as SlidingKind
from streamer.window.settings.window_types import State as StateKind
from streamer.window.settings.window_types import TableJoin as TableJoinKind
from tests.window import stages
from tests.window.event_stream import times_of
from tests.window.fakes import FakeMapping, Uses
from tests.window.oracle.count import Count
from tests.window.oracle.events import KEY_FAILS, NO_KEY, Emitted, Event, MicroBatch
from tests.window.oracle.hopping import Hopping
from tests.window.oracle.intake import Fields, partition_of
from tests.window.oracle.join import Join, Joined
from tests.window.oracle.session import Session
from tests.window.oracle.sliding import Sliding
from tests.window.oracle.sliding_event import EventSliding
from tests.window.oracle.sliding_kafka import KafkaSliding
from tests.window.oracle.state import State
from tests.window.oracle.table_join import TableJoin
from tests.window.oracle.unbounded import Unbounded

Rules = Fields | Count | State

# What `oracle.unbounded` has as `id_of` and `is_delete`.
LATEST_BY = "root = this.id.slice(1).number() % 3"
DELETE_WHEN = "this.id.slice(1).number() % 4 == 0"


def window_of(rules: Rules, mode: str = "forward") -> EventWindow:
    """The settings as the product has them."""
    if isinstance(rules, Count):
        every, least = rules.every or rules.count, rules.min_count or 0
        kind = CountKind(
            *(rules.count, every, least, rules.align, rules.end_of_input, rules.conditional)
        )
        return EventWindow(kind, EventTimeSettings(), rules.keyed)
    if isinstance(rules, State):
        state = StateKind(rules.single, rules.end_of_input)
        return EventWindow(state, EventTimeSettings(), rules.keyed)
    return EventWindow(_kind(rules, mode), times_of(rules), rules.keyed)


def _kind(rules: Fields, mode: str) -> Any:
    if isinstance(rules, Hopping):
        return Tumbling(rules.size, rules.hop, rules.offset, rules.timezone)
    if isinstance(rules, Session):
        origin = "start" if rules.from_start else "epoch"
        return SessionKind(
            *(rules.gap, rules.max_duration, rules.by_message),
            max_count=rules.max_count,
            max_duration_origin=origin,
        )
    if isinstance(rules, Unbounded):
        return Global(LATEST_BY if rules.latest else "", DELETE_WHEN if rules.deletes else "")
    if isinstance(rules, KafkaSliding):
        return SlidingKind(rules.size, "kafka")
    if isinstance(rules, TableJoin):
        delete_when = DELETE_WHEN if rules.deletes else ""
        return TableJoinKind("left", "right", rules.type, rules.history, rules.ttl, delete_when)
    if isinstance(rules, Join):
        return JoinKind("left", "right", rules.before, rules.after, rules.type)
    if isinstance(rules, EventSliding):
        fields = (rules.size, "event", rules.delay, rules.waits, rules.conditional, rules.every)
        return SlidingKind(*fields, closed=rules.closed)  # type: ignore[arg-type]
    assert isinstance(rules, Sliding)
    return SlidingKind(rules.size, mode)  # type: ignore[arg-type]


def _time(doc: Any, now: int) -> Any:
    return Timestamp(now) if doc["time"] == "now" else doc["time"]


def _filter(doc: Any) -> Any:
    if doc["filter"] == "error":
        raise KeyError("filter")
    return doc["filter"]


def _condition(doc: Any, name: str) -> Any:
    if doc[name] == "error":
        raise KeyError(name)
    return doc[name]


TIME = FakeMapping("root = this.time or now()", _time, Uses(True))
PLAIN_TIME = FakeMapping(
    "root = this.time", lambda doc, now: doc["time"], doc_fn=lambda doc: doc["time"]
)
KEY = FakeMapping("root = this.key", lambda doc, now: doc["key"])
FAST_KEY = FakeMapping(
    "root = this.key", lambda doc, now: doc["key"], doc_fn=lambda doc: doc["key"]
)
GAP = FakeMapping("root = this.gap", lambda doc, now: doc.get("gap"))
FILTER = FakeMapping("root = this.filter", lambda doc, now: _filter(doc))
BEGIN = FakeMapping("this.begins", lambda doc, now: _condition(doc, "begins"))
EMIT = FakeMapping("this.emits", lambda doc, now: _condition(doc, "emits"))
FAST_FILTER = FakeMapping("root = this.filter", lambda doc, now: _filter(doc), doc_fn=_filter)


def raw_of(event: Event) -> bytes:
    time = format_rfc3339(event.time) if isinstance(event.time, int) else event.time
    doc: dict[str, Any] = {"id": event.id, "time": time, "filter": event.filter}
    doc |= {"begins": event.begins, "emits": event.emits}
    if event.gap is not None:
        doc["gap"] = event.gap if event.gap == "none" else f"{event.gap}ns"
    if event.key is not KEY_FAILS:
        doc["key"] = event.key
    return orjson.dumps(doc)


Given = stages.Given[Any]


class EventStream(stages.Stages[Event, Any]):
    """A stream of micro-batches."""

    def __init__(
        self,
        rules: Rules,
        mode: str = "forward",
        shards: int = 1,
        chance: random.Random | None = None,
    ) -> None:
        super().__init__(shards, chance)
        self.rules = rules
        self.window = window_of(rules, mode)
        self.now: int | None = None
        self.starts = 0
        self.sources: tuple[str, ...] = ()

    def step(self, batch: MicroBatch) -> Given:
        self.now = batch.t if self.now is None else max(self.now, batch.t)
        self.starts += batch.restarted
        groups = [list(same) for _, same in groupby(batch.events, partition_of)]
        start = f"start{self.starts}"
        reading = MicroBatchInfo(
            *(batch.t, start, batch.backlog, batch.ended, batch.lag),
            suspended=batch.stood,
            sources=self.sources,
        )
        return self.run(groups, self.now, reading)

    def cut_anew(self, shards: int | None) -> None:
        """Give the stream another number of shards; None for the same."""
        if shards is not None:
            into = [DictStore() for _ in range(shards)]
            rescale(self.window, True, self.stores, into)
            self.stores = into

    def packer(self, piece: list[Event], group: list[Event], arrival: int) -> Packer:
        kind = RowKind.RIGHT if group[0].side == "right" else RowKind.PACK
        origin = PieceOrigin(arrival, repr(partition_of(group[0])).encode(), kind)
        return Packer(
            *(self.window, len(self.stores), self._asked(piece), origin),
            keep_dropped=True,
            columns=stages.column_mode(arrival),
        )

    def _asked(self, piece: list[Event]) -> BufferMappings:
        fast = self.chance.random() < 0.7
        plain = fast and not any(event.time == "now" for event in piece)
        time = PLAIN_TIME if plain else TIME
        key = (FAST_KEY if fast else KEY) if self.rules.keyed else None
        keep = (FAST_FILTER if fast else FILTER) if self.rules.filtered else None
        gap = GAP if getattr(self.rules, "by_message", False) else None
        emit = EMIT if getattr(self.rules, "conditional", False) else None
        begin = BEGIN if isinstance(self.rules, State) else None
        times = None if isinstance(self.rules, Count | State) else time
        return BufferMappings(times, key, keep, gap, begin, emit)

    def raw(self, event: Event) -> bytes:
        return raw_of(event)

    def error(self, event: Event) -> str | None:
        return "it failed" if event.failed else None

    def shard(self, store: DictStore) -> Shard:
        return Shard(self.window, store, keep_dropped=True)

    def told(self, emission: Emission) -> Any:
        if isinstance(self.rules, Join | TableJoin):
            return _joined(emission)
        return _emitted(emission, tuple(self.names(emission)))


def told(emitted: Emitted) -> tuple[object, ...]:
    """What messages are told of an oracle's batch, as their metadata say it."""
    key = emitted.window_key
    if emitted.start is None or emitted.end is None or emitted.latest is None:
        return emitted.reason, emitted.ids, key, len(emitted.ids)
    bounds = (emitted.start, emitted.end, emitted.latest)
    return emitted.reason, emitted.ids, key, *map(format_rfc3339, bounds)


def told_of(joined: Joined) -> tuple[object, ...]:
    """What a joined message says, by an oracle's."""
    key = None if joined.key is NO_KEY else Emitted("", (), joined.key).window_key
    time = format_rfc3339(joined.time)
    return joined.reason, joined.left, joined.right, key, time


def _joined(emission: Emission) -> Any:
    (message,) = emission.messages
    left, right = (message.doc[side] and message.doc[side]["id"] for side in ("left", "right"))
    meta = message.meta
    assert meta["window_emit"] == emission.reason
    time = meta["window_max_timestamp"]
    assert meta["window_start_unix_ms"] <= meta["window_end_unix_ms"]
    return emission.reason, left, right, meta.get("window_key"), time


def _emitted(emission: Emission, ids: tuple[str, ...]) -> Any:
    meta = stages.of_window(emission)
    front = (meta["window_emit"], ids, meta.get("window_key"))
    if "window_count" in meta:
        return (*front, meta["window_count"])
    bounds = ("start", "end", "max")
    return (*front, *(meta[f"window_{name}_timestamp"] for name in bounds))
