"""How often a micro-batch is tried again, and how long it is waited for."""

from __future__ import annotations

from streamer.spark.query.retries import (
    MAX_OVERLOAD_S,
    MAX_PAUSE_S,
    MAX_PERMANENT_ERROR_RETRIES,
    MAX_RETRIES,
    RetryCounter,
)


def test_pauses_grow_until_they_are_long_enough() -> None:
    retries, pauses = RetryCounter(), []
    for _ in range(8):
        retries.record_failure(7, is_excused=False)
        pauses.append(retries.pause)
    assert pauses == [1, 2, 4, 8, 16, MAX_PAUSE_S, MAX_PAUSE_S, MAX_PAUSE_S]


def test_a_micro_batch_that_is_delivered_begins_the_count_anew() -> None:
    retries = RetryCounter()
    for _ in range(MAX_RETRIES):
        retries.record_failure(7, is_excused=False)
    assert (
        not retries.is_exhausted
        and retries.failures_after(7) == MAX_RETRIES
        and retries.failures_after(8) == 0
    )
    retries.record_failure(8, is_excused=False)
    assert not retries.is_exhausted and retries.failures_after(8) == 1
    for _ in range(MAX_RETRIES):
        retries.record_failure(8, is_excused=False)
    assert retries.is_exhausted


def test_what_is_excused_is_tried_for_ever() -> None:
    retries = RetryCounter()
    for _ in range(100):
        retries.record_failure(7, is_excused=True)
    assert not retries.is_exhausted and retries.pause == 1


def test_what_is_damaged_is_tried_a_few_times_only() -> None:
    retries = RetryCounter()
    for _ in range(MAX_PERMANENT_ERROR_RETRIES):
        retries.record_failure(7, is_excused=False, is_permanent=True)
        assert not retries.is_exhausted
    retries.record_failure(7, is_excused=False, is_permanent=True)
    assert retries.is_exhausted
    retries.record_failure(7, is_excused=False)
    assert not retries.is_exhausted, "something else is wrong with it now"


def test_what_the_machine_s_load_has_made_is_not_counted_for_a_time() -> None:
    now = [1000.0]
    retries, pauses = RetryCounter(clock=lambda: now[0]), []
    while now[0] < 1000 + MAX_OVERLOAD_S:
        retries.record_failure(7, is_excused=False, is_overloaded=True)
        assert not retries.is_exhausted and retries.failures_after(7) == 0
        pauses.append(retries.pause)
        now[0] += retries.pause + 5
    assert pauses[:4] == [1, 2, 4, 8] and max(pauses) == MAX_PAUSE_S and len(pauses) > MAX_RETRIES
    for _ in range(MAX_RETRIES):
        retries.record_failure(7, is_excused=False, is_overloaded=True)
        assert not retries.is_exhausted
    retries.record_failure(7, is_excused=False, is_overloaded=True)
    assert retries.is_exhausted
    # The next micro-batch has a time of its own, and what else goes wrong counts at once.
    retries.record_failure(8, is_excused=False, is_overloaded=True)
    assert retries.failures_after(8) == 0 and retries.pause == 1
    retries.record_failure(8, is_excused=False)
    assert retries.failures_after(8) == 1
