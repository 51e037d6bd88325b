"""How often a micro-batch is tried again, and how long it is waited for."""

from __future__ import annotations

from streamer.spark.retries import FEW, LONGEST_PAUSE, RETRIES, Retries


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
