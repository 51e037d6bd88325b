"""The lease of a checkpoint elsewhere: one program has it, and a dead one's is taken over."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterator

import pytest

from streamer.spark.checkpoint.lease import Lease, LeaseTakenError, LeaseTiming
from tests.slowness import is_within

PACE = LeaseTiming(beat_s=0.05, silence_s=0.4, validity_s=0.3)


class Files:
    """Files in memory that can be cut off from one of those who use them."""

    def __init__(self) -> None:
        self.kept: dict[str, bytes] = {}
        self._lock = threading.Lock()

    def list_names(self) -> list[str]:
        return list(self.kept)

    def read(self, name: str) -> bytes:
        try:
            return self.kept[name]
        except KeyError:
            raise FileNotFoundError(name) from None

    def create(self, name: str, body: bytes) -> None:
        with self._lock:
            if name in self.kept:
                raise FileExistsError(name)
            self.kept[name] = body

    def put(self, name: str, body: bytes) -> None:
        self.kept[name] = body

    def delete(self, name: str) -> None:
        self.kept.pop(name, None)


class Line(Files):
    """The way of one program to the files."""

    def __init__(self, files: Files) -> None:
        self._files, self.cut = files, False

    def __getattribute__(self, name: str):
        if name in ("list_names", "read", "create", "put", "delete"):
            if self.cut:
                raise OSError("no answer")
            return getattr(self._files, name)
        return object.__getattribute__(self, name)


@pytest.fixture
def files() -> Files:
    return Files()


@pytest.fixture
def leases(files: Files) -> Iterator:
    made = []

    def make(line: Files | None = None) -> Lease:
        made.append(Lease(line or files, PACE))
        return made[-1]

    yield make
    for lease in made:
        lease.stop_beating()


def never() -> bool:
    return False


def test_the_first_has_it_at_once_and_a_second_is_refused_by_name(leases) -> None:
    first = leases()
    began = time.monotonic()
    assert first.acquire() == ""
    assert is_within(0.2, time.monotonic() - began)
    with pytest.raises(LeaseTakenError, match=r".+:\d+"):
        leases().acquire()
    assert first.wait_valid(never) and not first.new_holder


def test_what_was_given_back_is_free_at_once(leases) -> None:
    first = leases()
    first.acquire()
    first.release()
    began = time.monotonic()
    assert leases().acquire() == first.mark
    assert is_within(0.2, time.monotonic() - began)


def test_one_that_is_silent_is_followed_and_its_mark_makes_that_quick(leases) -> None:
    dead = leases()
    dead.acquire()
    dead.stop_beating()
    waits: list[str] = []
    began = time.monotonic()
    second = leases()
    assert second.acquire(on_wait=waits.append) == dead.mark
    taken = time.monotonic() - began
    assert PACE.silence_s + PACE.validity_s <= taken and is_within(3, taken)
    assert len(waits) == 1
    second.stop_beating()
    began = time.monotonic()
    leases().acquire(ended_mark=second.mark)
    assert is_within(0.2, time.monotonic() - began)


def test_one_that_is_cut_off_may_not_go_on_when_another_has_begun(leases, files) -> None:
    line = Line(files)
    first = leases(line)
    first.acquire()
    line.cut = True
    second = leases()
    second.acquire()
    # Nobody has told it anything, and yet it may not.
    stop = time.monotonic() + 0.5
    assert not first.wait_valid(lambda: time.monotonic() > stop) and not first.new_holder
    line.cut = False
    assert not first.wait_valid(never)
    assert first.new_holder
    assert second.wait_valid(never) and not second.new_holder
    first.release()
    assert json.loads(files.kept[max(files.kept)])["mark"] == second.mark


def test_one_that_was_cut_off_goes_on_when_nobody_has_taken_it(leases, files) -> None:
    line = Line(files)
    first = leases(line)
    first.acquire()
    line.cut = True
    time.sleep(PACE.validity_s * 2)
    stop = time.monotonic() + 0.2
    assert not first.wait_valid(lambda: time.monotonic() > stop)
    line.cut = False
    assert first.wait_valid(never)


def test_of_many_who_want_it_one_gets_it(leases) -> None:
    dead = leases()
    dead.acquire()
    dead.stop_beating()
    outcomes: list[bool] = []

    def want(lease: Lease) -> None:
        try:
            lease.acquire()
            outcomes.append(True)
        except LeaseTakenError:
            outcomes.append(False)

    threads = [threading.Thread(target=want, args=(leases(),)) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(outcomes) == [False] * 5 + [True]


def test_a_program_that_is_stopped_for_a_while_finds_that_it_may_not_go_on(leases, files) -> None:
    ticks = [0.0]
    stopped = Lease(files, LeaseTiming(beat_s=1000, silence_s=12, validity_s=10), lambda: ticks[0])
    stopped.acquire()
    assert stopped.wait_valid(never)
    ticks[0] = 11.0
    assert not stopped.wait_valid(lambda: True)
    stopped.stop_beating()
