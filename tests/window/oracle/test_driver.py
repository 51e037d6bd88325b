"""What all kinds have in common, on tumbling windows: decisions, clocks, idleness, emission."""

from __future__ import annotations

from tests.window.oracle.events import KEY_FAILS, Event, MicroBatch
from tests.window.oracle.play import at_once, brief, ends, events, tumbling

# Order of decisions


def test_the_first_reason_wins() -> None:
    oracle = tumbling(filtered=True, keyed=True, max_ahead=10)
    stream = [
        Event("ok", 30, "k"),
        Event("a", None, KEY_FAILS, failed=True, filter=False),
        Event("b", None, KEY_FAILS, filter=False),
        Event("c", None, KEY_FAILS),
        Event("d", 31, KEY_FAILS),
        Event("e", 5, KEY_FAILS),
        Event("f", 5, "k"),
    ]
    out = at_once(oracle, stream, t=20)
    assert (out.failed, out.filtered) == (["a"], ["b"])
    assert out.dropped == [("c", "timestamp"), ("d", "future"), ("e", "key"), ("f", "late")]


def test_what_is_too_far_ahead_moves_no_clock() -> None:
    oracle = tumbling(max_ahead=10)
    out = at_once(oracle, events("a5 b31 c6 d30"), t=20)
    assert out.dropped == [("b", "future")]
    assert brief(out.batches) == ["final [0, 10] ac"]


def test_keys_are_equal_as_json_values_and_shown_as_first_spelled() -> None:
    keys: list[object] = [1.0, "1", 1, True, None, {"a": 1, "b": [2]}, {"b": [2.0], "a": 1}]
    oracle = tumbling(keyed=True)
    at_once(oracle, [Event(f"{n}", 3, key) for n, key in enumerate(keys)])
    out = oracle.step(MicroBatch(0, ended=True))
    assert [(b.ids, b.window_key) for b in out.batches] == [
        (("0", "2"), "1.0"),
        (("1",), "1"),
        (("3",), "true"),
        (("4",), "null"),
        (("5", "6"), '{"a":1,"b":[2]}'),
    ]


# Clocks


def test_the_clock_before_an_event_is_of_earlier_micro_batches_and_its_own_partition() -> None:
    oracle = tumbling()
    stream = [Event("a", 3), Event("b", 12), Event("c", 4, partition=1), Event("d", 5)]
    out = at_once(oracle, stream)
    assert out.dropped == [("d", "late")]
    assert brief(out.batches) == ["final [0, 10] ac"]
    assert at_once(oracle, [Event("e", 6, partition=2)]).dropped == [("e", "late")]


def test_a_dropped_event_moves_no_clock() -> None:
    oracle = tumbling(keyed=True)
    out = at_once(oracle, [Event("a", 50, KEY_FAILS), Event("b", 3, "k")])
    assert out.dropped == [("a", "key")]
    assert out.batches == []


def test_with_the_system_clock_nothing_is_late_in_the_first_micro_batch() -> None:
    oracle = tumbling(clock="system")
    first = oracle.step(MicroBatch(100, events("a3 b95 c105 d200")))
    assert first.dropped == []
    assert brief(first.batches) == ["final [0, 10] a", "final [90, 100] b"]
    second = oracle.step(MicroBatch(120, events("e98 f109")))
    assert second.dropped == [("e", "late")]
    assert brief(second.batches) == ["final [100, 110] cf"]


def test_the_system_clock_closes_nothing_while_the_first_backlog_is_worked_off() -> None:
    oracle = tumbling(clock="system")
    oracle.step(MicroBatch(10, events("a13")))
    out = oracle.step(MicroBatch(100, events("b14 c55"), restarted=True, backlog=True))
    assert (out.dropped, out.batches) == ([], [])
    out = oracle.step(MicroBatch(101, events("d15 e9"), backlog=True))
    assert (out.dropped, out.batches) == ([("e", "late")], [])
    out = oracle.step(MicroBatch(102, events("f16")))
    assert brief(out.batches) == ["final [10, 20] abdf", "final [50, 60] c"]
    assert oracle.step(MicroBatch(103, events("g17"))).dropped == [("g", "late")]


def test_the_stream_clock_closes_in_a_backlog_too() -> None:
    oracle = tumbling()
    out = oracle.step(MicroBatch(0, events("a3 b10"), backlog=True))
    assert brief(out.batches) == ["final [0, 10] a"]


def test_a_recorded_time_that_runs_back_is_held() -> None:
    oracle = tumbling(clock="system")
    oracle.step(MicroBatch(30))
    out = oracle.step(MicroBatch(12, (Event("a", "now"), Event("b", 15))))
    assert out.dropped == [("b", "late")]
    assert ends(oracle, 12) == ["flush [30, 40] a"]


def test_a_keys_clock_is_forgotten_after_key_retention() -> None:
    oracle = tumbling(keyed=True, clock_scope="key", key_retention=100)
    oracle.step(MicroBatch(0, (Event("a", 50, "x"), Event("b", 50, "y"))))
    oracle.step(MicroBatch(50, (Event("c", 51, "y"),)))
    out = oracle.step(MicroBatch(99, (Event("d", 5, "x"),)))
    assert out.dropped == [("d", "late")]  # and does not keep the clock
    out = oracle.step(MicroBatch(100, (Event("e", 5, "x"), Event("f", 5, "y"))))
    assert out.dropped == [("f", "late")]
    assert ends(oracle) == ["flush [0, 10] e", "flush [50, 60] a", "flush [50, 60] bc"]


# Idle windows


def test_a_window_closes_when_its_last_event_was_taken_idle_timeout_ago() -> None:
    oracle = tumbling(idle_timeout=30)
    oracle.step(MicroBatch(0, events("a3")))
    oracle.step(MicroBatch(20, events("b4")))
    assert oracle.step(MicroBatch(49)).batches == []
    assert brief(oracle.step(MicroBatch(50)).batches) == ["idle [0, 10] ab"]
    late = oracle.step(MicroBatch(51, events("c5 d15")))
    assert late.dropped == [("c", "late")]
    assert brief(oracle.step(MicroBatch(60, events("e25"))).batches) == ["final [10, 20] d"]


def test_due_by_the_clock_and_by_idleness_at_once_is_final() -> None:
    oracle = tumbling(idle_timeout=30)
    oracle.step(MicroBatch(0, events("a3")))
    out = oracle.step(MicroBatch(40, events("b10")))
    assert brief(out.batches) == ["final [0, 10] a"]


def test_only_the_windows_an_event_is_taken_into_are_no_longer_idle() -> None:
    oracle = tumbling(every=5, idle_timeout=30)
    oracle.step(MicroBatch(0, events("a7")))
    out = oracle.step(MicroBatch(30, events("b3")))
    assert brief(out.batches) == ["idle [5, 15] a"]
    assert oracle.held() == {"a", "b"}


def test_time_while_the_program_is_down_or_behind_is_not_idle() -> None:
    oracle = tumbling(idle_timeout=30)
    oracle.step(MicroBatch(0, events("a3")))
    oracle.step(MicroBatch(20))  # 20
    oracle.step(MicroBatch(500, restarted=True, backlog=True))
    oracle.step(MicroBatch(600, backlog=True))
    oracle.step(MicroBatch(700))
    oracle.step(MicroBatch(705))  # 25
    oracle.step(MicroBatch(800, lag=True))
    assert oracle.step(MicroBatch(900)).batches == []
    assert oracle.step(MicroBatch(904)).batches == []  # 29
    assert brief(oracle.step(MicroBatch(905)).batches) == ["idle [0, 10] a"]


def test_a_suspended_machine_and_a_clock_that_is_set_forward_make_nothing_idle() -> None:
    oracle = tumbling(idle_timeout=30)
    oracle.step(MicroBatch(0, events("a3")))
    assert oracle.step(MicroBatch(3620, stood=3600)).batches == []  # 20
    assert oracle.step(MicroBatch(3629)).batches == []
    assert brief(oracle.step(MicroBatch(3630)).batches) == ["idle [0, 10] a"]


def test_a_dropped_event_does_not_keep_a_window_awake() -> None:
    oracle = tumbling(idle_timeout=30, max_ahead=0, clock="stream")
    oracle.step(MicroBatch(5, events("a3")))
    out = oracle.step(MicroBatch(35, events("b36")))
    assert (out.dropped, brief(out.batches)) == ([("b", "future")], ["idle [0, 10] a"])


# What is emitted


def test_changes_emits_what_changed_once_a_micro_batch_and_not_again_at_the_close() -> None:
    oracle = tumbling(every=5, emit="changes")
    assert brief(at_once(oracle, events("a7 b8")).batches) == [
        "changes [0, 10] ab",
        "changes [5, 15] ab",
    ]
    assert brief(at_once(oracle, events("c12")).batches) == [
        "changes [5, 15] abc",
        "changes [10, 20] c",
    ]
    assert brief(at_once(oracle, events("d40")).batches) == [
        "changes [35, 45] d",
        "changes [40, 50] d",
    ]
    assert ends(oracle) == []


def test_a_window_that_changes_and_closes_in_one_micro_batch_is_emitted_as_changed() -> None:
    out = at_once(tumbling(emit="changes"), events("a3 b10"))
    assert brief(out.batches) == ["changes [0, 10] a", "changes [10, 20] b"]


def test_each_emits_after_every_event_by_end() -> None:
    out = at_once(tumbling(every=5, emit="each", allowed_lateness=5), events("a7 b3"))
    assert brief(out.batches) == [
        "each [0, 10] a",
        "each [5, 15] a",
        "each [-5, 5] b",
        "each [0, 10] ab",
    ]


def test_forward_sends_messages_on_once_a_window_and_micro_batch_and_keeps_none() -> None:
    oracle = tumbling(every=5, emit="forward")
    assert brief(at_once(oracle, events("a7 b8")).batches) == [
        "forward [0, 10] ab",
        "forward [5, 15] ab",
    ]
    out = at_once(oracle, events("c8"))
    assert brief(out.batches) == ["forward [0, 10] c", "forward [5, 15] c"]
    assert oracle.held() == set()
    assert at_once(oracle, events("d30 e2")).dropped == [("e", "late")]
    assert ends(oracle) == []


def test_the_end_of_input_flushes_or_keeps_and_what_is_due_is_final() -> None:
    oracle = tumbling()
    out = oracle.step(MicroBatch(0, events("a3 b10"), ended=True))
    assert brief(out.batches) == ["final [0, 10] a", "flush [10, 20] b"]
    oracle = tumbling(end_of_input="keep")
    out = oracle.step(MicroBatch(0, events("a3 b10"), ended=True))
    assert brief(out.batches) == ["final [0, 10] a"]
    assert oracle.held() == {"b"}


def test_messages_of_a_window_keep_the_order_they_arrived_in() -> None:
    out = at_once(tumbling(), events("a9 b3 c5 d10"))
    assert brief(out.batches) == ["final [0, 10] abc"]
    assert out.batches[0].latest == 9
