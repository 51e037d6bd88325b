"""Runs the oracles' micro-batches through both stages, on stores in memory, for every kind."""

from __future__ import annotations

import copy
import random
from dataclasses import dataclass, field
from itertools import groupby
from typing import Any

import orjson

from streamer.message import Message
from streamer.timestamps import Timestamp, format_rfc3339
from streamer.window import DictStore, Emission, Reading, Row, Shard, Status
from streamer.window.event import EventWindow
from streamer.window.event_packer import Asked, EventPacker
from streamer.window.kinds import Count as CountKind
from streamer.window.kinds import EventTime, Tumbling
from streamer.window.kinds import Join as JoinKind
from streamer.window.kinds import Session as SessionKind
from streamer.window.kinds import Sliding as SlidingKind
from streamer.window.row import Kind
from tests.window.event_stream import times_of
from tests.window.fakes import FakeMapping, Uses, execution
from tests.window.oracle.count import Count
from tests.window.oracle.events import KEY_FAILS, NO_KEY, Emitted, Event, MicroBatch
from tests.window.oracle.hopping import Hopping
from tests.window.oracle.intake import Fields, partition_of
from tests.window.oracle.join import Join, Joined
from tests.window.oracle.session import Session
from tests.window.oracle.sliding import Sliding
from tests.window.oracle.sliding_kafka import KafkaSliding

Rules = Fields | Count


def window_of(rules: Rules, mode: str = "forward") -> EventWindow:
    """The settings as the product has them."""
    if isinstance(rules, Count):
        kind = CountKind(rules.count, rules.every or rules.count)
        return EventWindow(kind, EventTime(), rules.keyed)
    return EventWindow(_kind(rules, mode), times_of(rules), rules.keyed)


def _kind(rules: Fields, mode: str) -> Any:
    if isinstance(rules, Hopping):
        return Tumbling(rules.size, rules.hop, rules.offset, rules.timezone)
    if isinstance(rules, Session):
        return SessionKind(rules.gap, rules.max_duration)
    if isinstance(rules, KafkaSliding):
        return SlidingKind(rules.size, "kafka")
    if isinstance(rules, Join):
        return JoinKind("left", "right", rules.before, rules.after, rules.type)
    assert isinstance(rules, Sliding)
    return SlidingKind(rules.size, mode)  # type: ignore[arg-type]


def _time(doc: Any, now: int) -> Any:
    return Timestamp(now) if doc["time"] == "now" else doc["time"]


def _filter(doc: Any) -> Any:
    if doc["filter"] == "error":
        raise KeyError("filter")
    return doc["filter"]


TIME = FakeMapping("root = this.time or now()", _time, Uses(True))
PLAIN_TIME = FakeMapping(
    "root = this.time", lambda doc, now: doc["time"], doc_fn=lambda doc: doc["time"]
)
KEY = FakeMapping("root = this.key", lambda doc, now: doc["key"])
FAST_KEY = FakeMapping(
    "root = this.key", lambda doc, now: doc["key"], doc_fn=lambda doc: doc["key"]
)
FILTER = FakeMapping("root = this.filter", lambda doc, now: _filter(doc))
FAST_FILTER = FakeMapping("root = this.filter", lambda doc, now: _filter(doc), doc_fn=_filter)


def raw_of(event: Event) -> bytes:
    time = format_rfc3339(event.time) if isinstance(event.time, int) else event.time
    doc = {"id": event.id, "time": time, "filter": event.filter}
    if event.key is not KEY_FAILS:
        doc["key"] = event.key
    return orjson.dumps(doc)


@dataclass
class Given:
    """What one micro-batch gave, over all shards."""

    failed: list[str] = field(default_factory=list)
    batches: dict[int, list[Any]] = field(default_factory=dict)
    dropped: list[tuple[str, str]] = field(default_factory=list)
    statuses: list[Status] = field(default_factory=list)
    keys: dict[str, int] = field(default_factory=dict)


class EventStream:
    """A stream of micro-batches; `chance` decides what must not matter."""

    def __init__(
        self,
        rules: Rules,
        mode: str = "forward",
        shards: int = 1,
        chance: random.Random | None = None,
    ) -> None:
        self.rules = rules
        self.window = window_of(rules, mode)
        self.stores = [DictStore() for _ in range(shards)]
        self.chance = chance or random.Random(1)
        self.now: int | None = None
        self.starts = 0

    def step(self, batch: MicroBatch) -> Given:
        self.now = batch.t if self.now is None else max(self.now, batch.t)
        self.starts += batch.restarted
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

    def _asked(self) -> Asked:
        fast = self.chance.random() < 0.7
        time = PLAIN_TIME if fast else TIME
        key = (FAST_KEY if fast else KEY) if self.rules.keyed else None
        keep = (FAST_FILTER if fast else FILTER) if self.rules.filtered else None
        return Asked(None if isinstance(self.rules, Count) else time, key, keep)

    def _rows(self, batch: MicroBatch) -> list[Row]:
        """Stage 1, in as many tasks as chance will have."""
        assert self.now is not None
        rows: list[Row] = []
        pieces = [list(same) for _, same in groupby(batch.events, partition_of)]
        number = 0
        for piece in pieces:
            for part in self._cut(piece):
                first = number << 40
                asked = self._asked()
                if any(event.time == "now" for event in part) and asked.timestamp is not None:
                    asked = Asked(TIME, asked.key, asked.filter)
                partition = repr(partition_of(part[0])).encode()
                packer = EventPacker(
                    self.window,
                    len(self.stores),
                    asked,
                    first,
                    partition,
                    keep_dropped=True,
                    kind=Kind.RIGHT if part[0].side == "right" else Kind.PACK,
                )
                self._pack(packer, part, first, self.now)
                rows += [*packer.ready(), *packer.rows()]
                number += 1
        start = f"start{self.starts}"
        reading = Reading(batch.t, start, batch.backlog, batch.ended, batch.lag)
        rows += [reading.row(shard) for shard in range(len(self.stores))]
        self.chance.shuffle(rows)
        return rows

    def _cut(self, events: list[Event]) -> list[list[Event]]:
        parts = [[events[0]]]
        for event in events[1:]:
            if self.chance.random() < 0.2:
                parts.append([])
            parts[-1].append(event)
        return parts

    def _pack(self, packer: EventPacker, events: list[Event], arrival: int, t: int) -> None:
        if any(event.failed for event in events) or self.chance.random() < 0.3:
            messages = [
                Message(raw_of(event), {"n": event.id}, "it failed" if event.failed else None)
                for event in events
            ]
            packer.add_messages(messages, arrival, t, execution(t))
            return
        while events:
            count = self.chance.randint(1, len(events))
            raws = [raw_of(event) for event in events[:count]]
            packer.add_raws(raws, {"count": count}, arrival, t, execution(t))
            events, arrival = events[count:], arrival + count

    def _shard(self, shard: int, rows: list[Row]) -> tuple[list[Emission], Status]:
        step = Shard(self.window, self.stores[shard], keep_dropped=True).step(rows)
        return list(step), step.status

    def _replay(
        self, shard: int, before: DictStore, rows: list[Row], emissions: list[Emission]
    ) -> None:
        """A task that is tried again decides the same, whatever the order of its rows."""
        self.chance.shuffle(rows)
        again = list(Shard(self.window, before, keep_dropped=True).step(rows))
        assert [_shown(e) for e in again] == [_shown(e) for e in emissions]
        assert before.values == self.stores[shard].values

    def _sort_out(self, given: Given, shard: int, emissions: list[Emission]) -> None:
        batches = given.batches.setdefault(shard, [])
        for emission in emissions:
            if isinstance(self.rules, Join) and emission.reason not in ("failed", "dropped"):
                batches.append(_joined(emission))
                continue
            ids = [message.doc["id"] for message in emission.messages]
            if emission.reason == "failed":
                assert not batches, "what failed goes ahead of the windows"
                given.failed += ids
            elif emission.reason == "dropped":
                reasons = [message.meta["window_drop_reason"] for message in emission.messages]
                given.dropped += zip(ids, reasons, strict=True)
            else:
                batches.append(_emitted(emission, tuple(ids)))


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
    metas = [message.meta for message in emission.messages]
    names = [name for name in metas[0] if name.startswith("window_")]
    assert all(meta[name] == metas[0][name] for meta in metas for name in names)
    meta = metas[0]
    front = (meta["window_emit"], ids, meta.get("window_key"))
    if "window_count" in meta:
        return (*front, meta["window_count"])
    bounds = ("start", "end", "max")
    return (*front, *(meta[f"window_{name}_timestamp"] for name in bounds))


def _shown(emission: Emission) -> tuple[object, ...]:
    messages = [(m.raw, dict(m.meta), m.error) for m in emission.messages]
    return emission.end, emission.reason, emission.key, messages
