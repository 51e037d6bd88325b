"""Wake-ups of the planner: none is lost, however it falls between a poll and a wait."""

import pickle
import random
import threading
import time

from streamer.engine.planner.planner_channels import PlannerChannel
from streamer.engine.planner.wake_ups import WakeUpReceiver, send_wake_up

_TURNS = 4_000
_LONG_S = 30.0


def test_what_comes_between_a_poll_and_the_wait_is_not_waited_for(tmp_path):
    channel = PlannerChannel(tmp_path / "signals")
    channel.clear()
    receiver = pickle.loads(pickle.dumps(channel)).receive_wake_ups()
    written, polled, chance = 0, threading.Semaphore(0), random.Random(31)

    def write():
        nonlocal written
        for _ in range(_TURNS):
            polled.acquire()
            for _ in range(chance.randrange(300)):
                pass
            written += 1
            channel.wake_planner()

    writer = threading.Thread(target=write)
    writer.start()
    taken = longest = 0
    while taken < _TURNS:
        polled.release()
        began = time.monotonic()
        while taken == written:
            receiver.wait(_LONG_S)
        longest, taken = max(longest, time.monotonic() - began), written
    writer.join()
    receiver.close()
    assert longest < _LONG_S / 3, "a wake-up was lost"


def test_many_wake_ups_are_one_and_a_wait_without_any_ends():
    receiver = WakeUpReceiver(b"secret")
    for _ in range(5_000):
        receiver.wake()
    assert receiver.wait(_LONG_S) and not receiver.drain()
    began = time.monotonic()
    assert not receiver.wait(0.02)
    assert 0.02 <= time.monotonic() - began < _LONG_S / 3
    receiver.close()


def test_only_who_knows_the_secret_wakes():
    receiver = WakeUpReceiver(b"secret")
    for token in (b"", b"another", b"secretly"):
        send_wake_up(receiver.port, token)
    assert not receiver.wait(0.02)
    send_wake_up(receiver.port, b"secret")
    assert receiver.wait(_LONG_S)
    receiver.close()
    send_wake_up(receiver.port, b"secret")


def test_a_hint_of_the_driver_wakes_its_own_planner(tmp_path):
    channel = PlannerChannel(tmp_path / "signals")
    channel.clear()
    channel.driver.update(due=4)  # nobody receives yet
    former = pickle.loads(pickle.dumps(channel)).receive_wake_ups()
    channel.driver.update(due=5)
    assert former.wait(_LONG_S)
    channel.driver.update(due=5)
    assert not former.wait(0.01), "the same again"
    channel.clear()
    receiver = pickle.loads(pickle.dumps(channel)).receive_wake_ups()
    channel.stop()
    assert receiver.wait(_LONG_S) and not former.drain()
    for one in (receiver, former):
        one.close()
