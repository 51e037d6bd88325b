"""Since when messages wait at an input."""

from __future__ import annotations

from streamer.engine.driver.arrival_times import ArrivalTimes


def test_a_source_at_its_end_has_nothing_that_waits() -> None:
    arrivals = ArrivalTimes()
    assert arrivals.oldest_arrival(0) is None
    arrivals.record(10, 5.0)
    assert arrivals.oldest_arrival(10) is None


def test_the_oldest_is_what_was_seen_first_behind_the_position() -> None:
    arrivals = ArrivalTimes()
    for end, at in ((10, 1.0), (10, 2.0), (14, 3.0), (20, 4.0)):
        arrivals.record(end, at)
    assert arrivals.oldest_arrival(3) == 1.0
    assert arrivals.oldest_arrival(10) == 3.0
    assert arrivals.oldest_arrival(13) == 3.0
    assert arrivals.oldest_arrival(14) == 4.0
    assert arrivals.oldest_arrival(20) is None


def test_a_source_that_was_made_anew_begins_again() -> None:
    arrivals = ArrivalTimes()
    arrivals.record(100, 1.0)
    arrivals.record(4, 2.0)
    assert arrivals.oldest_arrival(0) == 2.0


def test_of_many_sightings_the_times_stay_about_right() -> None:
    arrivals = ArrivalTimes()
    for number in range(1, 100_001):
        arrivals.record(number, float(number))
    assert arrivals.oldest_arrival(0) == 1.0
    assert len(arrivals._sightings) <= 512
    for position in (1_000, 50_000, 99_000, 99_999):
        at = arrivals.oldest_arrival(position)
        assert at is not None and abs(at - position) <= 1_000
    assert arrivals.oldest_arrival(100_000) is None
    arrivals.record(100_001, 200_000.0)
    arrivals.record(100_002, 200_001.0)
    assert arrivals.oldest_arrival(100_001) == 200_001.0
