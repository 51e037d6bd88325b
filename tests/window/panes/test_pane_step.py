"""Tumbling and hopping windows of event times, each rule as one story; the laws are elsewhere."""

from __future__ import annotations

import pytest

from streamer.bloblang import compile_mapping
from streamer.core.durations import HOUR, SECOND
from streamer.core.errors import StreamerError
from streamer.window import MicroBatchInfo, OpenWindow, RowKind, Shard, ShuffleRow
from streamer.window.aggregate.fire_groups import AggregatedGroup
from streamer.window.aggregate.partial_aggregates import aggregation_for
from streamer.window.assign.packer import Packer
from streamer.window.evaluate.message_slots import PieceOrigin
from streamer.window.evaluate.queries import BufferMappings
from tests.window.event_stream import EventStream, Given, window_of
from tests.window.fakes import execution
from tests.window.oracle.events import Event, MicroBatch
from tests.window.oracle.hopping import Hopping

T = 1628330400 * SECOND  # 2021-08-07T10:00:00Z
TEN = Hopping(size=10 * SECOND)
HOP = Hopping(size=10 * SECOND, every=5 * SECOND)
KEYED = Hopping(size=10 * SECOND, keyed=True)


def event(name: str, seconds: float, key: object = None, partition: int = 0) -> Event:
    return Event(name, T + int(seconds * SECOND), key, partition)


def batch(*events: Event, t: float = 0, **flags: bool) -> MicroBatch:
    return MicroBatch(T + int(t * SECOND), events, **flags)


def windows(given: Given, shard: int = 0) -> list[tuple[float, float, str, str]]:
    """Start and end in seconds after T, why, and the ids in a row."""
    found = []
    for each in given.batches[shard]:
        assert each.start is not None and each.end is not None
        bounds = (each.start - T) / SECOND, (each.end - T) / SECOND
        found.append((*bounds, each.reason, "".join(each.ids)))
    return found


def test_a_window_closes_when_an_event_at_its_end_has_come() -> None:
    stream = EventStream(window_of(TEN))
    assert windows(stream.step(batch(event("a", 1), event("b", 9.999999999)))) == []
    assert windows(stream.step(batch(event("c", 10)))) == [(0, 10, "final", "ab")]


def test_allowed_lateness_keeps_a_window_open() -> None:
    stream = EventStream(window_of(Hopping(size=10 * SECOND, allowed_lateness=2 * SECOND)))
    assert windows(stream.step(batch(event("a", 1), event("b", 11.999)))) == []
    given = stream.step(batch(event("c", 2), event("d", 12), event("e", 3)))
    assert windows(given) == [(0, 10, "final", "ac")]
    assert given.dropped == {"e": "late"}


def test_an_event_joins_those_of_its_windows_that_are_open() -> None:
    stream = EventStream(window_of(HOP))
    given = stream.step(batch(event("a", 1), event("b", 6), event("c", 2), event("d", 11)))
    # c is behind b: the window up to 5 had closed before it came.
    assert windows(given) == [(-5, 5, "final", "a"), (0, 10, "final", "abc")]
    assert given.dropped == {}
    given = stream.step(batch(event("e", 4), event("f", 9)))
    assert given.dropped == {"e": "late"}
    assert windows(stream.step(batch(ended=True))) == [
        (5, 15, "flush", "bdf"),
        (10, 20, "flush", "d"),
    ]


def test_other_partitions_have_no_order_within_a_micro_batch() -> None:
    stream = EventStream(window_of(TEN))
    given = stream.step(batch(event("a", 25, partition=0), event("b", 1, partition=1)))
    assert given.dropped == {}
    assert windows(given) == [(0, 10, "final", "b")]
    given = stream.step(batch(event("c", 1, partition=1)))
    assert given.dropped == {"c": "late"}


def test_later_pieces_of_a_partition_see_the_clock_of_the_earlier_ones() -> None:
    window = window_of(TEN)
    rows: list[ShuffleRow] = []
    for number, (name, seconds) in enumerate([("a", 25), ("b", 1)]):
        asked = BufferMappings(compile_mapping("root = this.ts"))
        packer = Packer(window, 1, asked, PieceOrigin(number << 40, b"p"), keep_dropped=True)
        raw = b'{"id":"%s","ts":%d}' % (name.encode(), T // SECOND + seconds)
        packer.add_raws([raw], {}, number << 40, T, execution(T))
        rows += packer.flush_rows()
    step = Shard(window, EventStream(window).stores[0]).step(
        [*rows, MicroBatchInfo(T, "x").to_row(0)]
    )
    assert list(step) == []
    assert step.status.counters.dropped == {"late": 1}
    assert step.status.held == 1


def test_keys_are_emitted_by_end_and_then_by_their_first_message() -> None:
    stream = EventStream(window_of(KEYED))
    events = [event("1", 5, "b"), event("2", 6, "a"), event("3", 4, "b"), event("4", 12, "c")]
    given = stream.step(batch(*events))
    assert windows(given) == [(0, 10, "final", "13"), (0, 10, "final", "2")]
    assert [each.meta["window_key"] for each in given.batches[0]] == ["b", "a"]
    maxima = [each.meta["window_max_timestamp"] for each in given.batches[0]]
    assert maxima == ["2021-08-07T10:00:05Z", "2021-08-07T10:00:06Z"]
    assert given.statuses[0].counters.emitted_windows == 2
    assert given.statuses[0].counters.emitted_messages == 3


def test_windows_that_are_open_go_on_when_the_key_mapping_is_said_otherwise() -> None:
    window, store = window_of(KEYED), EventStream(window_of(KEYED)).stores[0]
    for number, key in enumerate(["root = this.key", "root = this.key.string()"]):
        asked = BufferMappings(compile_mapping("root = this.ts"), compile_mapping(key))
        packer = Packer(window, 1, asked)
        raw = b'{"n":%d,"ts":%d,"key":"k"}' % (number, T // SECOND + 1)
        packer.add_raws([raw], {}, 0, T, execution(T))
        list(
            Shard(window, store).step(
                [*packer.flush_rows(), MicroBatchInfo(T, str(number)).to_row(0)]
            )
        )
    (emission,) = Shard(window, store).step([MicroBatchInfo(T, "x", ended=True).to_row(0)])
    assert [message.doc["n"] for message in emission.messages] == [0, 1]
    assert emission.key == b'"k"'


def test_the_system_clock_closes_without_an_event() -> None:
    stream = EventStream(window_of(Hopping(size=10 * SECOND, clock="system")))
    given = stream.step(batch(event("old", -100), event("a", 1), t=5))
    assert given.dropped == {}
    assert windows(given) == [(-100, -90, "final", "old")]
    assert given.statuses[0].next_due == T + 10 * SECOND
    assert windows(stream.step(batch(t=9.999))) == []
    given = stream.step(batch(event("b", 2), t=10))
    assert windows(given) == [(0, 10, "final", "ab")]
    assert given.statuses[0].next_due is None
    assert stream.step(batch(event("c", 3), t=11)).dropped == {"c": "late"}


def test_the_system_clock_closes_nothing_in_a_backlog() -> None:
    stream = EventStream(window_of(Hopping(size=10 * SECOND, clock="system")))
    stream.step(batch(event("a", 1), t=5))
    given = stream.step(batch(event("b", 2), t=3600, restarted=True, backlog=True))
    assert (windows(given), given.dropped) == ([], {})
    assert windows(stream.step(batch(event("c", 3), t=3601))) == [(0, 10, "final", "abc")]


def test_a_flush_closes_what_is_open_on_all_shards_alike() -> None:
    stream = EventStream(window_of(KEYED), shards=4)
    given = stream.step(batch(event("a", 25, "x"), event("b", 26, "y"), ended=True))
    assert {status.closed_until for status in given.statuses} == {T + 30 * SECOND}
    assert sum(status.held for status in given.statuses) == 0
    assert stream.step(batch(event("c", 29, "z"))).dropped == {"c": "late"}


def test_open_windows_are_kept_at_the_end_of_the_input_when_they_shall_be() -> None:
    stream = EventStream(window_of(Hopping(size=10 * SECOND, end_of_input="keep")))
    given = stream.step(batch(event("a", 1), ended=True))
    assert windows(given) == []
    size = given.statuses[0].held_bytes
    assert given.statuses[0].open == (OpenWindow(T, T + 10 * SECOND, 1, size),)
    assert given.statuses[0].newest_end == T + 10 * SECOND - 1
    assert given.statuses[0].next_due is None


def test_late_messages_are_told_of_in_one_line() -> None:
    stream = EventStream(window_of(TEN))
    given = stream.step(batch(event("a", 50), event("b", 1), event("c", 12)))
    assert [line.text for line in given.statuses[0].log] == [
        "late messages were dropped: 2; the newest of their windows ended at "
        "2021-08-07T10:00:20Z, and all up to 2021-08-07T10:00:50Z have closed"
    ]


def test_what_having_is_not_true_for_is_suppressed_and_counted() -> None:
    having = compile_mapping('root = this.id == "a"')
    stream = EventStream(window_of(TEN), having=having)
    stream.step(batch(event("a", 1), event("b", 2), event("c", 11)))
    given = stream.step(batch(event("d", 12), event("e", 21)))
    assert windows(given) == []
    assert given.statuses[0].counters.suppressed == 2
    assert given.statuses[0].counters.emitted_windows == 1
    assert given.statuses[0].log == ()


@pytest.mark.parametrize(
    ("having", "why"),
    [("root = 1", "expected a boolean, got int"), ('root = throw("oh")', "oh")],
)
def test_a_having_that_gives_no_boolean_is_told_of(having: str, why: str) -> None:
    stream = EventStream(window_of(TEN), having=compile_mapping(having))
    events = [event(f"m{n}", 10 * n) for n in range(30)]
    given = stream.step(batch(*events, ended=True))
    assert windows(given) == []
    assert given.statuses[0].counters.suppressed == 30
    log = given.statuses[0].log
    assert len(log) == 11
    assert why in log[0].text
    assert log[-1].text == "20 more windows were suppressed whose having gave no boolean"


def test_windows_fold() -> None:
    fold = aggregation_for(
        'root = if batch_index() == 0 { json("id").from_all().unique() } else { deleted() }'
    )
    hopping = Hopping(size=10 * SECOND, every=5 * SECOND, keyed=True)
    stream = EventStream(window_of(hopping), fold=fold)
    events = [event("a", 1, "x"), event("b", 2, "x"), event("c", 2, "y")]
    given = stream.step(batch(*events, ended=True))
    found = [each.messages for each in given.batches[0]]
    assert all(isinstance(messages, AggregatedGroup) for messages in found)
    said = [fold.mapping.query(messages, 0, execution(T)) for messages in found]
    assert said == [["a", "b"], ["c"], ["a", "b"], ["c"]]
    assert given.statuses[0].counters.emitted_messages == 6
    maxima = [each.meta["window_max_timestamp"] for each in given.batches[0]]
    assert maxima == ["2021-08-07T10:00:02Z"] * 4


@pytest.mark.parametrize("time", [-(2**63), -1, 0, 2**63 - 1])
def test_the_first_and_the_last_instants_have_windows(time: int) -> None:
    stream = EventStream(window_of(Hopping(size=HOUR, every=HOUR // 4)))
    given = stream.step(MicroBatch(0, (Event("a", time),), ended=True))
    assert ["".join(each.ids) for each in given.batches[0]] == ["a"] * 4
    assert given.statuses[0].as_dict()["held"] == 0


def test_a_pack_of_a_piece_that_was_not_told_of_is_refused() -> None:
    stream = EventStream(window_of(TEN))
    packer = Packer(stream.window, 1, BufferMappings(compile_mapping("root = now()")))
    packer.add_raws([b"{}"], {}, 0, T, execution(T))
    rows = [row for row in packer.flush_rows() if row.kind != RowKind.PIECE]
    with pytest.raises(StreamerError, match="did not get the clock of piece 0"):
        list(Shard(stream.window, stream.stores[0]).step([*rows, MicroBatchInfo(T, "x").to_row(0)]))
