"""The pool: how many connections are open and kept, and for how long, on a scripted clock."""

from __future__ import annotations

import threading

from streamer.sql.drivers import Rows
from streamer.sql.pool import Bounds, Pool


class Fake:
    def __init__(self, opened: list[Fake]) -> None:
        opened.append(self)
        self.closed = False
        self.broken = False

    def run(self, statement: str, arguments: object) -> Rows | None:
        return None

    def script(self, text: str) -> None:
        return None

    def alive(self) -> bool:
        return not self.broken

    def close(self) -> None:
        self.closed = True


class Clock:
    now = 0


def pool(clock: Clock, **bounds: int) -> tuple[Pool, list[Fake]]:
    opened: list[Fake] = []
    return Pool(lambda: Fake(opened), Bounds(**bounds), lambda: clock.now), opened


def test_as_many_are_kept_as_may_be_idle() -> None:
    made, opened = pool(Clock(), idle=2)
    with made.connection(), made.connection(), made.connection():
        assert len(opened) == 3
    assert sorted(one.closed for one in opened) == [False, False, True]
    with made.connection():
        assert len(opened) == 3
    made.close()
    assert all(one.closed for one in opened)


def test_none_is_kept_when_none_may_be_idle() -> None:
    made, opened = pool(Clock(), idle=0)
    for _ in range(2):
        with made.connection():
            pass
    assert [one.closed for one in opened] == [True, True]


def test_they_end_after_their_time() -> None:
    clock = Clock()
    made, opened = pool(clock, idle_time=5, life_time=8)
    for now, expected in ((0, 1), (4, 1), (7, 1), (8, 2), (12, 2), (17, 3)):
        clock.now = now
        with made.connection():
            pass
        assert len(opened) == expected, now
    assert [one.closed for one in opened] == [True, True, False]


def test_a_broken_one_is_not_lent_again() -> None:
    made, opened = pool(Clock())
    with made.connection():
        opened[0].broken = True
    with made.connection() as again:
        assert again is opened[1]
    assert opened[0].closed


def test_no_more_are_open_than_may_be() -> None:
    made, opened = pool(Clock(), open=2)
    most = 0
    lock = threading.Lock()
    lent = 0

    def use() -> None:
        nonlocal most, lent
        for _ in range(50):
            with made.connection():
                with lock:
                    lent += 1
                    most = max(most, lent)
                with lock:
                    lent -= 1

    with made.connection():
        threads = [threading.Thread(target=use) for _ in range(3)]
        for thread in threads:
            thread.start()
    for thread in threads:
        thread.join(60)
        assert not thread.is_alive()
    assert 1 <= most <= 2 and len(opened) <= 2
