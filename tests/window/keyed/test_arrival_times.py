"""When waiting messages of a join were taken."""

from __future__ import annotations

import numpy as np

from streamer.window.keyed.arrival_times import MAX_ENTRIES, ArrivalTimes, IdleMessages


def test_messages_are_idle_once_their_time_is_up() -> None:
    known = ArrivalTimes([])
    known.add(0, 100, np.array([5, 9, 7]), 20)
    known.add(3, 120, np.array([1]), 12)
    assert known.oldest == 100
    assert known.pop_idle(129, 30, 4) is None
    assert known.pop_idle(130, 30, 4) == IdleMessages(3, 5, 9)
    again = ArrivalTimes(known.to_fields())
    assert again.pop_idle(200, 30, 4) == IdleMessages(4, 1, 1)
    assert again.oldest is None


def test_what_has_left_by_the_clock_is_forgotten() -> None:
    known = ArrivalTimes([[0, 100, 5, 9, 10], [3, 110, 20, 30, 31]])
    known.forget_expired(10)
    assert known.to_fields() == [[3, 110, 20, 30, 31]]


def test_many_micro_batches_share_entries_and_none_is_idle_too_early() -> None:
    known = ArrivalTimes([])
    for number in range(MAX_ENTRIES + 1):
        known.add(number, 10 * number, np.array([number]), number)
    fields = known.to_fields()
    assert len(fields) == MAX_ENTRIES // 2 + 1
    assert fields[:2] == [[0, 10, 0, 1, 1], [2, 30, 2, 3, 3]]
    assert fields[-1] == [MAX_ENTRIES, 10 * MAX_ENTRIES, *[MAX_ENTRIES] * 3]
