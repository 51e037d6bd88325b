"""What a stream is doing, put together from its shards."""

from streamer.engine.report.stream_metrics import Snapshot


def status(ended=False, held=0, due=None, ends=(), taken=0, failed=0, **dropped):
    return {
        "ended": ended,
        "held": held,
        "next_due": due,
        "open": [{"end": end} for end in ends],
        "counters": {"taken": taken, "failed": failed, "dropped": dropped},
    }


def test_before_the_first_micro_batch_nothing_is_known():
    assert Snapshot.of([], {}, -1) == Snapshot()
    assert not Snapshot().ended


def test_shards_are_added_up():
    shot = Snapshot.of(
        [
            status(held=3, due=20, ends=(20, 30), taken=5, late=1, incomplete=2),
            status(held=4, due=30, ends=(30,), taken=6, failed=2, late=2, expired=1),
        ],
        {},
        9,
    )
    # Messages that expire or fill no window were taken before, late ones were not.
    assert shot.messages == 5 + 6 + 2 + 3
    assert (shot.held, shot.next_close, shot.batch) == (7, 20, 9)
    assert shot.dropped == {"late": 3, "expired": 1, "incomplete": 2}


def test_a_window_that_two_shards_hold_is_one():
    assert Snapshot.of([status(ends=(10, 20)), status(ends=(20,))], {}, 0).open_windows == 2


def test_nothing_open_has_no_next_close():
    assert Snapshot.of([status(), status()], {}, 0).next_close is None


def test_the_input_has_ended_when_all_shards_have_heard_so():
    assert not Snapshot.of([status(ended=True), status()], {}, 0).ended
    assert Snapshot.of([status(ended=True), status(ended=True)], {}, 0).ended


def test_counts_that_no_shard_keeps_are_added():
    counts = {
        ("input_received", ()): 10,
        ("input_dropped", (("reason", "too_long"),)): 2,
        ("processor_error", (("path", "x"),)): 99,
    }
    shot = Snapshot.of([{"ended": True}], counts, 0)
    assert shot.messages == 12
    assert shot.dropped == {"too_long": 2}
