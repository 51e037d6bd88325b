"""A clock that waits for the slowest source: one that lags loses nothing, however it is cut."""

from __future__ import annotations

import random
from collections import Counter, defaultdict
from dataclasses import dataclass, field, replace
from itertools import groupby
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from streamer.window import DictStore, MicroBatchInfo
from streamer.window.rescale.rescale_state import rescale
from streamer.window.settings.event_time_window import EventWindow
from streamer.window.settings.window_types import (
    EventTimeSettings,
    Session,
    Sliding,
    Tumbling,
    WindowType,
)
from tests.examples import examples
from tests.window.event_stream import EventStream, Given
from tests.window.oracle.events import Event, MicroBatch

SOURCES = ("orders/0", "orders/1", "clicks/0")


class SourceStream(EventStream):
    """A stream whose partitions are sources that the clock may wait for."""

    known: tuple[str, ...] = SOURCES

    def step(self, batch: MicroBatch) -> Given:
        self._t = batch.t if self._t is None else max(self._t, batch.t)
        self._starts += batch.restarted
        groups = [list(same) for _, same in groupby(batch.events, lambda event: event.partition)]
        info = MicroBatchInfo(
            batch.t, str(self._starts), batch.backlog, batch.ended, sources=self.known
        )
        return self.run(groups, self._t, info)

    def partition_name(self, event: Event) -> bytes:
        return b"%d\0%s" % (event.partition, SOURCES[event.partition].encode())


@dataclass
class Oracle:
    """Tumbling windows by the definition, one event after another."""

    size: int
    lateness: int
    timeout: int
    known: tuple[str, ...]
    now: int | None = None
    start: int = 0
    active: int = 0
    behind: bool = False
    clock: int | None = None
    times: dict[str, int | None] = field(default_factory=dict)
    heard: dict[str, int] = field(default_factory=dict)
    windows: dict[int, list[str]] = field(default_factory=dict)

    def live(self) -> list[str]:
        return [
            name
            for name in self.times
            if not self.timeout or self.active - self.heard[name] < self.timeout
        ]

    def step(self, batch: MicroBatch) -> tuple[dict[int, list[str]], set[str]]:
        """Return the windows that close, by start, and the events that are late."""
        now = batch.t if self.now is None else max(self.now, batch.t)
        if self.now is not None and not (batch.restarted or self.behind or batch.backlog):
            self.active += now - self.now
        self.now, self.behind = now, batch.backlog
        for name in self.known:
            if name not in self.times:
                self.times[name], self.heard[name] = None, self.active
        for event in batch.events:
            self.times.setdefault(SOURCES[event.partition], None)
            self.heard[SOURCES[event.partition]] = self.active
        before = {name: self.times[name] for name in self.live()}
        late = set()
        for event in batch.events:
            name = SOURCES[event.partition]
            own = self.times[name]
            limits = [own, *(time for other, time in before.items() if other != name)]
            known = [time for time in limits if time is not None]
            reached = min(known) if len(known) == len(limits) else None
            clock = max((t for t in (self.clock, reached) if t is not None), default=None)
            assert isinstance(event.time, int)
            begin = event.time // self.size * self.size
            if clock is not None and begin + self.size + self.lateness <= clock:
                late.add(event.id)
            else:
                self.windows.setdefault(begin, []).append(event.id)
            self.times[name] = event.time if own is None else max(own, event.time)
        live = [self.times[name] for name in self.live()]
        all_known = [time for time in self.times.values() if time is not None]
        reached = min(t for t in live if t is not None) if live and None not in live else None
        if not live:
            reached = max(all_known, default=None)
        self.clock = max((t for t in (self.clock, reached) if t is not None), default=None)
        for name in set(self.times) - set(self.live()) - set(self.known):
            del self.times[name]
        due = [
            begin
            for begin in self.windows
            if self.clock is not None and begin + self.size + self.lateness <= self.clock
        ]
        return {begin: self.windows.pop(begin) for begin in due}, late


@st.composite
def streams(draw: st.DrawFn) -> list[MicroBatch]:
    """Sources that come to different times, are silent for a while, and start late."""
    batches, t, number = [], 0, 0
    ahead = draw(st.lists(st.integers(0, 60), min_size=3, max_size=3))
    for _ in range(draw(st.integers(1, 8))):
        t += draw(st.sampled_from([0, 1, 5, 20]))
        speaking = draw(st.lists(st.integers(0, 2), max_size=5))
        events = []
        for source in sorted(speaking):
            ahead[source] += draw(st.integers(-4, 12))
            events.append(Event(f"m{number}", ahead[source], partition=source))
            number += 1
        flags = draw(st.sampled_from(["", "", "", "restarted", "backlog"]))
        batches.append(MicroBatch(t, tuple(events), **({flags: True} if flags else {})))
    return batches


@pytest.mark.parametrize("emit", ["final", "by key"])
@settings(
    max_examples=examples(60, 400), deadline=None, suppress_health_check=[HealthCheck.too_slow]
)
@given(
    batches=streams(),
    timeout=st.sampled_from([0, 3, 15]),
    lateness=st.sampled_from([0, 5]),
    known=st.sets(st.sampled_from(SOURCES)),
    shards=st.integers(1, 2),
    seed=st.integers(0, 99),
)
def test_every_micro_batch_does_what_the_definition_says(
    emit: str,
    batches: list[MicroBatch],
    timeout: int,
    lateness: int,
    known: set[str],
    shards: int,
    seed: int,
) -> None:
    names = tuple(sorted(known))
    time = EventTimeSettings(
        clock_scope="partition",
        allowed_lateness=lateness,
        source_idle_timeout=timeout,
        # Windows that are decided key by key follow the same clock.
        idle_timeout=10**15 if emit == "by key" else None,
    )
    stream = SourceStream(EventWindow(Tumbling(10, 10), time), shards=shards, chance=chance(seed))
    stream.known = names
    oracle = Oracle(10, lateness, timeout, names)
    for batch in batches:
        closed, late = oracle.step(batch)
        found = stream.step(batch)
        got: dict[int, list[str]] = defaultdict(list)
        for batches_of_shard in found.batches.values():
            for one in batches_of_shard:
                assert one.start is not None
                got[one.start] += one.ids
        assert {k: sorted(v) for k, v in got.items()} == {k: sorted(v) for k, v in closed.items()}
        assert set(found.dropped) == late


def chance(seed: int) -> random.Random:
    return random.Random(seed)


KINDS: dict[str, tuple[WindowType, dict[str, Any]]] = {
    "tumbling": (Tumbling(10, 10), {}),
    "hopping": (Tumbling(10, 5), {}),
    "tumbling by key": (Tumbling(10, 10), {"idle_timeout": 10**15}),
    "session": (Session(7), {}),
    "session, long": (Session(7, 30), {}),
    "sliding": (Sliding(6, "forward"), {}),
}


@pytest.mark.parametrize("kind", KINDS)
@settings(max_examples=examples(25, 200), deadline=None)
@given(lateness=st.sampled_from([0, 4]), seed=st.integers(0, 10**6))
def test_sources_hours_apart_lose_nothing_however_they_are_cut(
    kind: str, lateness: int, seed: int
) -> None:
    window_type, more = KINDS[kind]
    by_chance = chance(seed)
    # Each source is out of order by no more than the allowed lateness.
    events: list[Event] = []
    for source in range(3):
        at = by_chance.randint(0, 40)
        for number in range(by_chance.randint(1, 8)):
            at += by_chance.randint(0, 9)
            time = max(at - by_chance.randint(0, lateness), 0)
            events.append(Event(f"{source}.{number}", time, by_chance.choice("ab"), source))
    waits = EventTimeSettings(
        clock_scope="partition", allowed_lateness=lateness, source_idle_timeout=0, **more
    )
    window = EventWindow(window_type, waits, keyed=True)
    batches, stream = cut(events, by_chance), SourceStream(window, shards=2, chance=by_chance)
    part = by_chance.randint(0, len(batches))
    found = run(stream, batches[:part])
    # The clocks of sources go along when the state is cut anew.
    stores = [DictStore() for _ in range(by_chance.randint(1, 3))]
    if part:
        rescale(window, True, stream.stores, stores)
    stream.stores = stores
    found += run(stream, batches[part:])
    in_order = sorted((replace(one, partition=0) for one in events), key=lambda one: one.time)
    plain = replace(window, time=replace(waits, clock_scope="stream"))
    assert found == run(EventStream(plain), [MicroBatch(0, tuple(in_order), ended=True)])


def run(stream: EventStream, batches: list[MicroBatch]) -> Counter[Any]:
    windows: Counter[Any] = Counter()
    for batch in batches:
        given_ = stream.step(batch)
        assert given_.dropped == {}
        for of_shard in given_.batches.values():
            windows.update(
                (one.key, one.start, one.end, tuple(sorted(one.ids))) for one in of_shard
            )
    return windows


def cut(events: list[Event], by_chance: random.Random) -> list[MicroBatch]:
    """Cut sources into micro-batches, some of them far ahead of the others."""
    waiting = {source: [one for one in events if one.partition == source] for source in range(3)}
    batches = []
    while any(waiting.values()):
        taken: list[Event] = []
        for source in range(3):
            count = by_chance.randint(0, 4)
            taken += waiting[source][:count]
            waiting[source] = waiting[source][count:]
        batches.append(MicroBatch(len(batches), tuple(taken)))
    return [*batches, MicroBatch(len(batches), ended=True)]


def test_the_source_that_holds_the_clock_is_named_until_it_is_left_out() -> None:
    time = EventTimeSettings(clock_scope="partition", source_idle_timeout=60)
    stream = SourceStream(EventWindow(Tumbling(10, 10), time), chance=chance(1))
    stream.known = SOURCES[:2]
    [status] = stream.step(MicroBatch(0, (Event("a", 500),))).statuses
    holder = status.clock_holder
    assert holder is not None
    assert (holder.source, holder.time, holder.ahead) == ("orders/1", None, 0)
    assert status.next_due == 60
    [status] = stream.step(MicroBatch(5, (Event("b", 100, partition=1),))).statuses
    holder = status.clock_holder
    assert holder is not None
    assert (holder.source, holder.time, holder.ahead) == ("orders/1", 100, 400)
    # Nothing comes any more: after a minute of silence each is left out in its turn.
    assert status.next_due == 65
    found = stream.step(MicroBatch(60))
    assert [one.ids for of in found.batches.values() for one in of] == []
    found = stream.step(MicroBatch(65))
    assert [one.ids for of in found.batches.values() for one in of] == [("b",)]
    assert found.statuses[0].clock_holder is None and found.statuses[0].held == 1


def test_the_state_has_no_more_sources_than_speak_or_are_known() -> None:
    time = EventTimeSettings(clock_scope="partition", source_idle_timeout=10)
    stream = SourceStream(EventWindow(Tumbling(10, 10), time), chance=chance(1))
    stream.known = ()
    stream.step(MicroBatch(0, tuple(Event(f"{n}", n, partition=n) for n in range(3))))
    stream.step(MicroBatch(9, (Event("x", 5, partition=1),)))
    stream.step(MicroBatch(12))
    head = stream.stores[0].values[0, -1]
    assert b"orders/1" in head and b"orders/0" not in head and b"clicks/0" not in head
