"""The rules of `system_window` that need a stream, each as one story; the laws are elsewhere."""

from __future__ import annotations

from dataclasses import replace

import pytest

from streamer.core.durations import SECOND
from streamer.core.errors import StreamerError
from streamer.window import (
    DictStore,
    MicroBatchInfo,
    OpenWindow,
    Packer,
    Shard,
    SystemWindow,
)
from streamer.window.evaluate.queries import BufferMappings
from streamer.window.settings.back_pressure import BackPressure
from tests.window.fakes import NOW, execution, field_mapping, field_text
from tests.window.oracle.system import MicroBatch, Rules, Said
from tests.window.stream import Given, Stream

T = 1628330400 * SECOND  # 2021-08-07T10:00:00Z
TEN = Rules(10 * SECOND)


def at(seconds: float, *messages: Said, start: str = "first", **flags: bool) -> MicroBatch:
    return MicroBatch(T + int(seconds * SECOND), messages, start, **flags)


def said(name: str, seconds: float, key: str = "") -> Said:
    return Said(name, T + int(seconds * SECOND), key)


def windows(given: Given) -> list[tuple[float, list[str]]]:
    """The ends, in seconds after T, and the names of what was emitted."""
    return [((end - T) / SECOND, names) for end, _, names in given.batches.get(0, [])]


def test_a_window_is_emitted_once_with_its_end_in_the_metadata() -> None:
    stream = Stream(Rules(10 * SECOND, 2 * SECOND + SECOND // 2))
    stream.step(at(1, said("a", 1)))
    given = stream.step(at(5))
    assert windows(given) == [(2.5, ["a"]), (5.0, ["a"])]
    ends = [message.meta["window_end_timestamp"] for message in given.messages]
    assert ends == ["2021-08-07T10:00:02.5Z", "2021-08-07T10:00:05Z"]
    assert windows(stream.step(at(5))) == []


def test_messages_with_equal_metadata_share_one_dict() -> None:
    store = DictStore()
    for t in (T + 1, T + 2):
        packer = Packer(SystemWindow(10 * SECOND), 1, BufferMappings(NOW))
        packer.add_raws([b"a", b"b"], {"k": "v"}, 0, t, execution(t))
        list(
            Shard(SystemWindow(10 * SECOND), store).step(
                [*packer.flush_rows(), MicroBatchInfo(t, "x").to_row(0)]
            )
        )
    window = SystemWindow(10 * SECOND)
    (emission,) = Shard(window, store).step([MicroBatchInfo(T + 10 * SECOND, "x").to_row(0)])
    assert [message.raw for message in emission.messages] == [b"a", b"b", b"a", b"b"]
    assert len({id(message.meta) for message in emission.messages}) == 1
    assert emission.messages[0].meta == {
        "k": "v",
        "window_end_timestamp": "2021-08-07T10:00:10Z",
    }


def test_the_first_micro_batch_takes_the_previous_window_and_no_older_one() -> None:
    given = Stream(TEN).step(
        at(5, said("old", -10), said("previous", -9.999999999), said("now", 5))
    )
    assert given.dropped == {"old": "late"}
    assert windows(given) == [(0, ["previous"])]


def test_an_event_is_late_only_when_all_its_windows_have_closed() -> None:
    stream = Stream(Rules(10 * SECOND, 5 * SECOND))
    stream.step(at(5))
    given = stream.step(at(6, said("one left", 0.000000001), said("late", 0)))
    assert given.dropped == {"late": "late"}
    assert windows(stream.step(at(10))) == [(10, ["one left"])]


def test_lateness_is_judged_by_the_horizon_before_the_micro_batch() -> None:
    stream = Stream(TEN)
    stream.step(at(9))
    assert windows(stream.step(at(10, said("just in time", 1)))) == [(10, ["just in time"])]
    assert stream.step(at(11, said("too late", 10))).dropped == {"too late": "late"}


def test_what_says_now_is_never_late() -> None:
    stream = Stream(TEN, says="now")
    stream.step(at(10))
    given = stream.step(at(10, Said("now", "now")))
    assert given.dropped == {}
    assert windows(stream.step(at(20))) == [(20, ["now"])]


def test_a_clock_that_falls_back_stands_still() -> None:
    stream = Stream(TEN, says="both")
    stream.step(at(9))
    given = stream.step(at(-500, Said("now", "now"), said("old", -501)))
    assert [status.now for status in given.statuses] == [T + 9 * SECOND]
    assert given.dropped == {"old": "late"}
    assert windows(stream.step(at(10))) == [(10, ["now"])]


def test_under_back_pressure_the_previous_and_the_current_window_survive() -> None:
    stream = Stream(TEN)
    stream.step(at(5, said("a", 5), said("b", 15), said("c", 25), said("d", 35)))
    given = stream.step(at(35))
    assert given.dropped == {"a": "expired", "b": "expired"}
    assert windows(given) == [(30, ["c"])]
    texts = [line.text for line in given.statuses[0].log]
    assert texts == [
        "the window (2021-08-07T10:00:00Z, 2021-08-07T10:00:10Z] with messages: 1 expired, it was "
        "not emitted within 25s of its end since the output was blocked for 30s",
        "the window (2021-08-07T10:00:10Z, 2021-08-07T10:00:20Z] with messages: 1 expired, it was "
        "not emitted within 15s of its end since the output was blocked for 30s",
    ]
    assert {line.level for line in given.statuses[0].log} == {"ERROR"}
    assert {line.fields["cause"] for line in given.statuses[0].log} == {"output"}
    assert given.statuses[0].counters.expired_windows == 2


@pytest.mark.parametrize(
    ("busy", "expired"),
    [
        ((), ""),  # the machine stood still, or waited for a core, or the clock was set forward
        (((5, 15),), ""),  # it was at work before the windows were due
        (((5, 15), (50, 60)), "a"),
        (((5, 15), (50, 61)), "abc"),
        (((12, 22), (50, 60)), "ab"),  # since "b" was due it was at work for 12 s, and 10 since "c"
    ],
)
def test_only_time_in_which_the_stream_itself_was_at_work_is_back_pressure(
    busy: tuple[tuple[int, int], ...], expired: str
) -> None:
    stream = Stream(TEN)
    stream.step(at(5, said("a", 5), said("b", 15), said("c", 25)))
    times = tuple((T + a * SECOND, T + b * SECOND) for a, b in busy)
    given = stream.step(replace(at(3600), busy=times))
    assert "".join(sorted(given.dropped)) == expired
    kept = [name for name in "abc" if name not in expired]
    assert [name for _, names in windows(given) for name in names] == kept


def test_an_expired_window_says_whether_the_processors_were_slow() -> None:
    store = DictStore()
    packer = Packer(SystemWindow(10 * SECOND), 1, BufferMappings(field_mapping("ts")))
    packer.add_raws([b'{"ts":"2021-08-07T10:00:05Z"}'], {}, 0, T, execution(T))
    window = SystemWindow(10 * SECOND)
    list(
        Shard(window, store).step([*packer.flush_rows(), MicroBatchInfo(T + SECOND, "x").to_row(0)])
    )
    busy = ((T + 5 * SECOND, T + 65 * SECOND),)
    pressure = BackPressure(busy, 40 * SECOND + 7, 20 * SECOND)
    step = Shard(window, store).step(
        [MicroBatchInfo(T + 70 * SECOND, "x", pressure=pressure).to_row(0)]
    )
    assert list(step) == []
    (line,) = step.status.log
    assert line.text.endswith("of its end since the processors took 40s")
    assert (line.level, line.fields["cause"], line.fields["messages"]) == ("ERROR", "processors", 1)


def test_expired_windows_are_emitted_late_when_they_are_to_be_kept() -> None:
    stream = Stream(Rules(10 * SECOND, on_expired="keep"))
    stream.step(at(5, said("a", 5), said("b", 15), said("c", 25)))
    assert windows(stream.step(at(35))) == [(10, ["a"]), (20, ["b"]), (30, ["c"])]


def test_what_fell_due_while_the_program_was_down_is_emitted() -> None:
    stream = Stream(TEN)
    stream.step(at(5, said("a", 5), said("b", 15)))
    given = stream.step(at(3600, start="second"))
    assert windows(given) == [(10, ["a"]), (20, ["b"])]


def test_a_backlog_closes_nothing_and_what_waited_in_it_is_not_late() -> None:
    stream = Stream(TEN)
    stream.step(at(5, said("a", 5)))
    given = stream.step(at(3600, said("b", 15), start="second", backlog=True))
    assert (windows(given), given.dropped) == ([], {})
    given = stream.step(at(3700, said("c", 5), start="second", backlog=True))
    assert (windows(given), given.dropped) == ([], {})
    given = stream.step(at(3800, start="second"))
    assert windows(given) == [(10, ["a", "c"]), (20, ["b"])]


def test_future_events_wait_for_their_window() -> None:
    stream = Stream(TEN)
    given = stream.step(at(5, said("far", 1000)))
    assert given.statuses[0].next_due == T + 1000 * SECOND
    assert windows(stream.step(at(999, start="second"))) == []
    assert windows(stream.step(at(1000, start="second"))) == [(1000, ["far"])]


@pytest.mark.parametrize("rule", ["wait", "keep"])
def test_open_windows_outlast_the_end_of_the_input(rule: str) -> None:
    stream = Stream(Rules(10 * SECOND, end_of_input=rule))
    given = stream.step(at(5, said("a", 5), ended=True))
    assert windows(given) == []
    assert given.statuses[0].held == 1
    assert windows(stream.step(at(10, ended=True))) == [(10, ["a"])]


def test_a_flush_emits_partial_windows_and_closes_all_earlier_ones() -> None:
    stream = Stream(Rules(10 * SECOND, end_of_input="flush"))
    given = stream.step(at(5, said("a", 25), ended=True))
    assert given.batches[0] == [(T + 30 * SECOND, "flush", ["a"])]
    given = stream.step(at(6, said("b", 5.5), said("c", 30), said("d", 31), start="second"))
    assert given.dropped == {"b": "late", "c": "late"}


def test_a_flush_moves_the_horizon_of_every_shard_alike() -> None:
    stream = Stream(Rules(10 * SECOND, end_of_input="flush"), shards=4, keyed=True)
    given = stream.step(at(5, said("a", 25, "x"), said("b", 5, "y"), ended=True))
    assert {status.closed_until for status in given.statuses} == {T + 30 * SECOND}


def test_windows_are_emitted_group_by_group_in_order_of_arrival() -> None:
    stream = Stream(TEN, keyed=True)
    stream.step(at(5, said("1", 5, "b"), said("2", 6, "a"), said("3", 4, "b")))
    stream.step(at(6, said("4", 5, "c"), said("5", 6, "a")))
    assert windows(stream.step(at(10))) == [(10, ["1", "3"]), (10, ["2", "5"]), (10, ["4"])]


def test_open_windows_are_listed_with_their_bounds() -> None:
    given = Stream(Rules(10 * SECOND, 5 * SECOND)).step(at(1, said("a", 1), said("b", 6)))
    size = given.statuses[0].held_bytes // 2
    assert given.statuses[0].open == (
        OpenWindow(T - 5 * SECOND, T + 5 * SECOND, 1, size),
        OpenWindow(T, T + 10 * SECOND, 2, 2 * size),
        OpenWindow(T + 5 * SECOND, T + 15 * SECOND, 1, size),
    )
    assert given.statuses[0].as_dict()["open"][1]["messages"] == 2
    assert given.statuses[0].newest_end == T + 15 * SECOND


def test_log_lines_of_many_expired_windows_are_summed_up() -> None:
    stream = Stream(TEN)
    stream.step(at(5, *[said(f"m{n}", 5 + 10 * n) for n in range(30)]))
    log = stream.step(at(500)).statuses[0].log
    assert len(log) == 11
    assert log[-1].text == "20 more windows with messages: 20 expired"


def test_late_messages_are_told_of_in_one_line() -> None:
    stream = Stream(TEN)
    stream.step(at(50))
    log = stream.step(at(51, *[said(f"m{n}", n) for n in range(20)])).statuses[0].log
    assert [line.text for line in log] == [
        "late messages were dropped: 20; the newest of their windows ended at "
        "2021-08-07T10:00:20Z, and all up to 2021-08-07T10:00:50Z have closed"
    ]


def test_state_of_other_windows_is_refused() -> None:
    store = DictStore()
    list(Shard(SystemWindow(10 * SECOND), store).step([MicroBatchInfo(T, "x").to_row(0)]))
    other = Shard(SystemWindow(20 * SECOND), store).step([MicroBatchInfo(T, "x").to_row(0)])
    with pytest.raises(StreamerError, match=r"system_window\(10s,10s,0s\).*system_window\(20s"):
        list(other)


def test_lateness_may_change_between_starts() -> None:
    store = DictStore()
    list(Shard(SystemWindow(10 * SECOND), store).step([MicroBatchInfo(T, "x").to_row(0)]))
    patient = SystemWindow(10 * SECOND, allowed_lateness=5 * SECOND)
    step = Shard(patient, store).step([MicroBatchInfo(T + SECOND, "y").to_row(0)])
    assert list(step) == []
    assert step.status.closed_until == T


@pytest.mark.parametrize("index", [b"", b"{", b"[]", b"{}", b'{"version":2}'])
def test_an_index_that_cannot_be_read_is_refused(index: bytes) -> None:
    store = DictStore()
    store.put(0, -1, index)
    with pytest.raises(StreamerError, match="cannot be read|format 2, which a newer"):
        list(Shard(SystemWindow(10), store).step([MicroBatchInfo(T, "x").to_row(0)]))


def test_a_micro_batch_without_a_clock_is_refused() -> None:
    with pytest.raises(StreamerError, match="without a clock row"):
        list(Shard(SystemWindow(10), DictStore()).step([]))


def test_a_pack_that_is_missing_is_told() -> None:
    stream = Stream(TEN)
    stream.step(at(5, said("a", 5)))
    stream.stores[0].delete(T + 10 * SECOND, 0)
    with pytest.raises(StreamerError, match="the checkpoint lacks pack 0"):
        stream.step(at(10))


def test_the_status_is_there_when_all_emissions_are_taken() -> None:
    step = Shard(SystemWindow(10), DictStore()).step([MicroBatchInfo(T, "x").to_row(0)])
    with pytest.raises(RuntimeError, match="take all emissions"):
        _ = step.status
    list(step)
    assert step.status.now == T


def test_packs_of_different_keys_are_emitted_as_one_batch_in_order_of_arrival() -> None:
    window, store = SystemWindow(10 * SECOND), DictStore()
    keys = [field_text("a"), field_text("b"), None]
    for number, key in enumerate(keys):
        packer = Packer(window, 1, BufferMappings(NOW, key))
        raws = [b'{"a": "%d", "b": "%d", "n": %d}' % (n % 2, n % 3, number) for n in range(6)]
        packer.add_raws(raws, {}, 0, T + 1, execution(T + 1))
        list(
            Shard(window, store).step([*packer.flush_rows(), MicroBatchInfo(T + 1, "x").to_row(0)])
        )
    (emission,) = Shard(window, store).step([MicroBatchInfo(T + 10 * SECOND, "x").to_row(0)])
    assert emission.key is None
    seen = [(message.doc["n"], message.doc["a"], message.doc["b"]) for message in emission.messages]
    assert seen == [(number, str(n % 2), str(n % 3)) for number in range(3) for n in range(6)]
