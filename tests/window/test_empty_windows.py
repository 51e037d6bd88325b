"""Windows without messages, on random streams, against what they are by definition."""

from __future__ import annotations

import random
from dataclasses import replace
from typing import Any
from zlib import crc32

import orjson
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from streamer.window import DictStore, Emission, Shard
from streamer.window.contract import EmptyWindow
from streamer.window.rescale.rescale_state import rescale
from streamer.window.settings.event_time_window import EventWindow
from streamer.window.settings.window_types import EmptyWindows, Tumbling
from streamer.window.settings.window_types import Session as SessionKind
from tests.examples import examples
from tests.window.event_stream import times_of
from tests.window.kinds_stream import EventStream
from tests.window.oracle import streams
from tests.window.oracle.empty import Empty, windows
from tests.window.oracle.events import Event, MicroBatch
from tests.window.oracle.hopping import Hopping
from tests.window.oracle.session import Session

CALM = settings(
    max_examples=examples(60, 600), deadline=None, suppress_health_check=list(HealthCheck)
)


class EmptyStream(EventStream):
    """A stream of windows with and without messages."""

    def __init__(self, rules: Hopping, empty: Empty, shards: int, chance: random.Random) -> None:
        super().__init__(rules, "", shards, chance)
        listed = tuple(orjson.dumps(key) for key in empty.listed)
        self.own = EmptyWindows(empty.duration, empty.fill, empty.seen, listed)  # type: ignore[arg-type]
        kind = Tumbling(rules.size, rules.hop, rules.offset, None, self.own)
        self.window = EventWindow(kind, times_of(rules), keyed=True)
        self._number = 0

    def raw(self, event: Event) -> bytes:
        return orjson.dumps({**orjson.loads(super().raw(event)), "n": event.time})

    def shard(self, store: DictStore) -> Shard:
        for number, mine in enumerate(self.stores):
            if mine is store:
                self._number = number
        count = len(self.stores)
        listed = [key for key in self.own.keys if crc32(key) % count == self._number]
        return Shard(self.window, store, keep_dropped=True, listed_keys=listed)

    def names(self, emission: Emission) -> list[str]:
        return [] if emission.reason == "empty" else super().names(emission)

    def told(self, emission: Emission) -> Any:
        stands_in = None
        if emission.reason == "empty" and not isinstance(emission.messages, EmptyWindow):
            (message,) = emission.messages
            fills = self.own.fill == "linear"
            stands_in = str(float(message.doc["n"])) if fills else message.doc["id"]
        key = orjson.loads(emission.key or b"")
        return key, emission.start, emission.end, tuple(self.names(emission)), stands_in


@st.composite
def cases(draw: st.DrawFn) -> tuple[Hopping, Empty, list[Event]]:
    size = draw(st.integers(1, 6))
    lateness = draw(st.sampled_from([0, 1, 5]))
    rules = Hopping(
        keyed=True,
        size=size,
        every=draw(st.none() | st.integers(1, size)),
        allowed_lateness=lateness,
    )
    empty = Empty(
        duration=draw(st.sampled_from([1, 4, 9, 40])),
        fill=draw(st.sampled_from(["none", "previous", "linear"])),
        seen=draw(st.booleans()),
        listed=draw(st.sampled_from([(), ("a",), ("b", "never")])),
    )
    events, clock = [], draw(st.integers(-20, 20))
    for number in range(draw(st.integers(0, 12))):
        clock += draw(st.sampled_from([0, 1, 2, 7, 25]))
        time = clock - draw(st.integers(0, lateness))
        events.append(Event(f"m{number}", time, draw(st.sampled_from("abc"))))
    return rules, empty, events


@CALM
@given(case=cases(), data=st.data(), seed=st.integers(0, 1000))
def test_they_are_what_the_times_of_messages_say_however_the_stream_is_cut(
    case: tuple[Hopping, Empty, list[Event]], data: st.DataObject, seed: int
) -> None:
    rules, empty, events = case
    clock = max((event.time for event in events), default=0)
    expected = windows(rules, empty, events, clock)  # type: ignore[arg-type]
    shards = data.draw(st.integers(1, 3))
    stream = EmptyStream(rules, empty, shards, random.Random(seed))
    found = []
    for batch in data.draw(streams.recut(events)):
        given = stream.step(batch)
        assert not given.dropped
        found += [one for of_shard in given.batches.values() for one in of_shard]
        if data.draw(st.integers(0, 5)) == 0:
            into = [DictStore() for _ in range(data.draw(st.integers(1, 3)))]
            rescale(stream.window, True, stream.stores, into)
            stream.stores = into
    assert sorted(map(repr, found)) == sorted(map(repr, expected))


@CALM
@given(case=cases(), data=st.data())
def test_a_key_that_is_silent_is_forgotten_and_wakes_nobody(
    case: tuple[Hopping, Empty, list[Event]], data: st.DataObject
) -> None:
    rules, empty, events = case
    rules = replace(rules, clock="system")
    stream = EmptyStream(rules, empty, 1, random.Random(1))
    t = max((event.time for event in events), default=0)
    status = stream.step(MicroBatch(t, tuple(events))).statuses[0]  # type: ignore[arg-type]
    for _ in range(500):
        if status.next_due is None:
            break
        assert stream.now is not None
        assert status.next_due > stream.now
        before = status.next_due
        status = stream.step(MicroBatch(before)).statuses[0]
    assert (status.next_due, status.held, status.open_windows) == (None, 0, 0)
    assert set(stream.stores[0].values) == {(0, -1)}


class ExpectedStream(EmptyStream):
    """A stream of sessions, of which some keys are expected."""

    def __init__(self, rules: Session, shards: int, chance: random.Random) -> None:
        EventStream.__init__(self, rules, "", shards, chance)
        self.own = EmptyWindows(1, keys=(b'"a"', b'"never"'))
        kind = SessionKind(rules.gap, expected=self.own.keys)
        self.window = EventWindow(kind, times_of(rules), keyed=True)
        self._number = 0


@CALM
@given(case=cases(), data=st.data(), seed=st.integers(0, 1000))
def test_an_expected_key_is_missed_once_where_it_sends_nothing_in_time(
    case: tuple[Hopping, Empty, list[Event]], data: st.DataObject, seed: int
) -> None:
    grid, _, events = case
    lateness = grid.allowed_lateness
    rules = Session(keyed=True, gap=grid.size, allowed_lateness=lateness)
    times: list[int] = [event.time for event in events]  # type: ignore[misc]
    deadline = times[0] + rules.gap + lateness if times else 0
    # No message is out of order by more than the lateness, so that its own time decides.
    in_time = {event.key for event in events if event.time <= times[0] + rules.gap}
    expected = [
        (key, times[0], times[0], (), None)
        for key in ("a", "never")
        if times and key not in in_time and max(times) > deadline
    ]
    stream = ExpectedStream(rules, data.draw(st.integers(1, 3)), random.Random(seed))
    found = [
        one
        for batch in data.draw(streams.recut(events))
        for of_shard in stream.step(batch).batches.values()
        for one in of_shard
    ]
    assert sorted(one for one in found if not one[3]) == expected
    assert sum(len(one[3]) for one in found) == len(events)
