"""Results with retractions, applied as upserts and deletes, are the windows that there are."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from streamer.bloblang import compile_mapping
from streamer.core.timestamps import format_rfc3339
from streamer.window import DictStore, Emission, Shard
from tests.examples import examples
from tests.window.keyed.test_folded_stages import FOLD
from tests.window.kinds_stream import EventStream
from tests.window.oracle import streams
from tests.window.oracle.events import Event, MicroBatch
from tests.window.oracle.hopping import HoppingOracle
from tests.window.oracle.session import Session, SessionOracle

KINDS: dict[str, Any] = {
    "tumbling": (streams.hoppings(tumbling=True), HoppingOracle),
    "hopping": (streams.hoppings(), HoppingOracle),
    "session": (streams.sessions(), SessionOracle),
    "gaps": (streams.message_gaps(), SessionOracle),
    "limited": (streams.limited_sessions(), SessionOracle),
}
HAVING = compile_mapping("batch_size() % 3 != 0")
Row = tuple[Any, Any, Any]
"""Key, start and end of a result."""


@dataclass
class Told:
    """A result or a retraction, by its metadata."""

    row: Row
    ids: frozenset[str] | None


class RetractedStream(EventStream):
    """A stream whose shards judge windows by their sizes."""

    has_having = True
    folds = False

    def shard(self, store: DictStore) -> Shard:
        having = HAVING if self.has_having else None
        text = FOLD if self.folds else None
        return Shard(self.window, store, keep_dropped=True, having=having, aggregated_mapping=text)

    def told(self, emission: Emission) -> Any:
        meta = emission.messages[0].meta
        names = ("window_key", "window_start_timestamp", "window_end_timestamp")
        row = tuple(meta.get(name) for name in names)
        if meta.get("window_retracted") is not None:
            assert meta["window_retracted"] is True and meta["window_emit"] == "retracted"
            assert [message.raw for message in emission.messages] == [b"null"]
            return Told(row, None)
        if self.folds:
            return Told(row, frozenset())
        return Told(row, frozenset(self.names(emission)))


@st.composite
def cases(draw: st.DrawFn, kind: str) -> Any:
    also = draw(st.sampled_from([(), ("close",), ("on_time",)]))
    emit = draw(st.sampled_from(["changes", "each"]))
    rules = replace(draw(KINDS[kind][0]), emit=emit, emit_also=frozenset(("retractions", *also)))
    # Keys that are spelt alike, so that a row is known by its text.
    return rules, draw(streams.streams(rules, keys=("a", "b")))


def given_in_order(stream: RetractedStream, batch: Any) -> Iterator[Told]:
    for of_shard in stream.step(batch).batches.values():
        yield from of_shard


@pytest.mark.parametrize("kind", KINDS)
@settings(
    max_examples=examples(12, 200),
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
@given(data=st.data(), shards=st.integers(1, 3), seed=st.integers(0, 1000), has=st.booleans())
def test_what_is_left_after_retractions_is_what_holds(
    kind: str, data: st.DataObject, shards: int, seed: int, has: bool
) -> None:
    rules, batches = data.draw(cases(kind))
    plain = replace(rules, emit_also=rules.emit_also - {"retractions"})
    oracle = KINDS[kind][1](plain)
    stream = RetractedStream(rules, shards=shards, chance=random.Random(seed))
    stream.has_having = has
    rows: dict[Row, frozenset[str]] = {}
    expected: dict[Row, frozenset[str]] = {}
    for batch in batches:
        for told in given_in_order(stream, batch):
            if told.ids is None:
                assert told.row in rows, "what is retracted was there"
                del rows[told.row]
            else:
                rows[told.row] = told.ids
        for emitted in oracle.step(batch).batches:
            apply(expected, emitted, has, kind in ("session", "gaps", "limited"))
        assert rows == expected


def apply(expected: dict[Row, frozenset[str]], emitted: Any, has: bool, moves: bool) -> None:
    """Apply an oracle's result: it takes the place of those that hold some of its messages."""
    ids = frozenset(emitted.ids)
    row = (emitted.window_key, format_rfc3339(emitted.start), format_rfc3339(emitted.end))
    gone = [one for one, inside in expected.items() if moves and inside & ids]
    for one in [*gone, row]:
        expected.pop(one, None)
    if not has or len(ids) % 3:
        expected[row] = ids


@settings(max_examples=examples(10, 100), deadline=None)
@given(data=st.data(), seed=st.integers(0, 1000))
def test_aggregated_windows_retract_the_same(data: st.DataObject, seed: int) -> None:
    rules, batches = data.draw(cases(data.draw(st.sampled_from(["session", "limited"]))))
    rules = replace(rules, order="arrival")
    whole, folded = (RetractedStream(rules, chance=random.Random(seed)) for _ in "ab")
    whole.has_having = folded.has_having = False
    folded.folds = True
    for batch in batches:
        told = [
            [(one.row, one.ids is None) for one in given_in_order(stream, batch)]
            for stream in (whole, folded)
        ]
        assert told[0] == told[1]


def test_the_status_lists_what_is_retracted_with_its_own_bounds() -> None:
    also = frozenset(["retractions"])
    rules = Session(keyed=True, gap=5, allowed_lateness=99, emit="each", emit_also=also)  # type: ignore[arg-type]
    stream = RetractedStream(rules)
    stream.has_having = False
    events = [Event("a", 0, "k"), Event("b", 9, "k"), Event("c", 4, "k")]
    [status] = stream.step(MicroBatch(0, tuple(events))).statuses
    shown = [(one.start, one.end, one.messages, one.reason) for one in status.closed]
    assert shown == [
        (0, 0, 1, "each"),
        (9, 9, 1, "each"),
        (0, 0, 0, "retracted"),
        (9, 9, 0, "retracted"),
        (0, 9, 3, "each"),
    ]
    assert {one.key for one in status.closed} == {status.closed[0].key}
