"""Since when messages wait at an input."""

from __future__ import annotations

from streamer.engine.arrivals import Arrivals


def test_a_source_at_its_end_has_nothing_that_waits() -> None:
    arrivals = Arrivals()
    assert arrivals.oldest(0) is None
    arrivals.see(10, 5.0)
    assert arrivals.oldest(10) is None


def test_the_oldest_is_what_was_seen_first_behind_the_position() -> None:
    arrivals = Arrivals()
    for end, at in ((10, 1.0), (10, 2.0), (14, 3.0), (20, 4.0)):
        arrivals.see(end, at)
    assert arrivals.oldest(3) == 1.0
    assert arrivals.oldest(10) == 3.0
    assert arrivals.oldest(13) == 3.0
    assert arrivals.oldest(14) == 4.0
    assert arrivals.oldest(20) is None


def test_a_source_that_was_made_anew_begins_again() -> None:
    arrivals = Arrivals()
    arrivals.see(100, 1.0)
    arrivals.see(4, 2.0)
    assert arrivals.oldest(0) == 2.0


def test_of_many_sightings_the_times_stay_about_right() -> None:
    arrivals = Arrivals()
    for number in range(1, 100_001):
        arrivals.see(number, float(number))
    assert arrivals.oldest(0) == 1.0
    assert len(arrivals._sightings) <= 512
    for position in (1_000, 50_000, 99_000, 99_999):
        at = arrivals.oldest(position)
        assert at is not None and abs(at - position) <= 1_000
    assert arrivals.oldest(100_000) is None
    arrivals.see(100_001, 200_000.0)
    arrivals.see(100_002, 200_001.0)
    assert arrivals.oldest(100_001) == 200_001.0
