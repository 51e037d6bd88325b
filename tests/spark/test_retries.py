"""How often a micro-batch is tried again, and how long it is waited for."""

from __future__ import annotations

from streamer.spark.retries import FEW, LONGEST_PAUSE, OVERLOAD_S, RETRIES, Retries


def test_pauses_grow_until_they_are_long_enough() -> None:
    retries, pauses = Retries(), []
    for _ in range(8):
        retries.failed(7, excused=False)
        pauses.append(retries.pause)
    assert pauses == [1, 2, 4, 8, 16, LONGEST_PAUSE, LONGEST_PAUSE, LONGEST_PAUSE]


def test_a_micro_batch_that_is_delivered_begins_the_count_anew() -> None:
    retries = Retries()
    for _ in range(RETRIES):
        retries.failed(7, excused=False)
    assert not retries.exhausted and retries.of(7) == RETRIES and retries.of(8) == 0
    retries.failed(8, excused=False)
    assert not retries.exhausted and retries.of(8) == 1
    for _ in range(RETRIES):
        retries.failed(8, excused=False)
    assert retries.exhausted


def test_what_is_excused_is_tried_for_ever() -> None:
    retries = Retries()
    for _ in range(100):
        retries.failed(7, excused=True)
    assert not retries.exhausted and retries.pause == 1


def test_what_is_damaged_is_tried_a_few_times_only() -> None:
    retries = Retries()
    for _ in range(FEW):
        retries.failed(7, excused=False, lasts=True)
        assert not retries.exhausted
    retries.failed(7, excused=False, lasts=True)
    assert retries.exhausted
    retries.failed(7, excused=False)
    assert not retries.exhausted, "something else is wrong with it now"


def test_what_the_machine_s_load_has_made_is_not_counted_for_a_time() -> None:
    now = [1000.0]
    retries, pauses = Retries(clock=lambda: now[0]), []
    while now[0] < 1000 + OVERLOAD_S:
        retries.failed(7, excused=False, overloaded=True)
        assert not retries.exhausted and retries.of(7) == 0
        pauses.append(retries.pause)
        now[0] += retries.pause + 5
    assert pauses[:4] == [1, 2, 4, 8] and max(pauses) == LONGEST_PAUSE and len(pauses) > RETRIES
    for _ in range(RETRIES):
        retries.failed(7, excused=False, overloaded=True)
        assert not retries.exhausted
    retries.failed(7, excused=False, overloaded=True)
    assert retries.exhausted
    # The next micro-batch has a time of its own, and what else goes wrong counts at once.
    retries.failed(8, excused=False, overloaded=True)
    assert retries.of(8) == 0 and retries.pause == 1
    retries.failed(8, excused=False)
    assert retries.of(8) == 1
