"""Tries of blocked streams take turns, in the order in which they came, with a rest after each."""

from __future__ import annotations

import threading
import time

import pytest

from streamer.engine.driver.delivery import DeliveryStoppedError
from streamer.spark.query.redelivery import TurnQueue


def test_turns_are_had_one_at_a_time_and_in_order() -> None:
    turns, had, at_once = TurnQueue(), [], []
    lock = threading.Lock()

    def have(number: int) -> None:
        with turns.turn(1, lambda: False):
            with lock:
                at_once.append(number)
                assert len(at_once) == 1
            had.append(number)
            time.sleep(0.02)
            with lock:
                at_once.remove(number)

    threads = []
    for number in range(5):
        threads.append(threading.Thread(target=have, args=(number,)))
        threads[-1].start()
        time.sleep(0.005)
    for thread in threads:
        thread.join(30)
    assert had == list(range(5))


def test_after_a_turn_there_is_a_rest_as_long_as_it() -> None:
    turns = TurnQueue()
    with turns.turn(1, lambda: False):
        time.sleep(0.3)
    began = time.monotonic()
    with turns.turn(1, lambda: False):
        assert time.monotonic() - began > 0.25


def test_who_is_to_stop_does_not_wait() -> None:
    turns = TurnQueue()
    with (
        turns.turn(1, lambda: False),
        pytest.raises(DeliveryStoppedError),
        turns.turn(1, lambda: True),
    ):
        raise AssertionError("it is somebody else's turn")
    # Whoever has gone holds nobody up.
    with turns.turn(1, lambda: False):
        pass
