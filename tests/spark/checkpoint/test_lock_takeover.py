"""Taking over: who waits gets the lock when the other program and its JVM are gone, not before."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from streamer.spark.checkpoint.directory_lock import DirectoryLock
from streamer.spark.checkpoint.lock_takeover import JVM_GRACE_S, LockTakeover

# A program that has the lock, and a process that inherits it as the JVM does.
PROGRAM = """
import pathlib, subprocess, sys
from streamer.spark.checkpoint.directory_lock import DirectoryLock

lock = DirectoryLock(pathlib.Path(sys.argv[1]))
assert lock.acquire()
lock.sign("http://here:1")
jvm = subprocess.Popen(["sleep", "60"], pass_fds=[lock.file])
print(jvm.pid, flush=True)
sys.stdin.read()
"""


class Clock:
    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


@contextmanager
def program(directory: Path) -> Iterator[tuple[subprocess.Popen[str], int]]:
    """Run a program that has the lock; gives it, and its JVM's process."""
    running = subprocess.Popen(
        [sys.executable, "-c", PROGRAM, str(directory)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert running.stdout is not None
    jvm = int(running.stdout.readline())
    try:
        yield running, jvm
    finally:
        running.kill()
        with suppress(ProcessLookupError):
            os.kill(jvm, signal.SIGKILL)
        running.communicate()


@pytest.fixture
def lock(tmp_path: Path) -> Iterator[DirectoryLock]:
    found = DirectoryLock(tmp_path)
    yield found
    found.close()


def until_taken(waiting: LockTakeover) -> None:
    for _ in range(1000):
        if waiting.attempt()[0]:
            return
    raise AssertionError("the lock was never free")


def test_a_free_lock_is_taken_and_signed(lock: DirectoryLock) -> None:
    assert LockTakeover(lock).attempt() == (True, frozenset())
    holder = lock.holder()
    assert holder is not None and holder.pid == os.getpid()


def test_others_see_who_has_it_and_where(tmp_path: Path, lock: DirectoryLock) -> None:
    with program(tmp_path) as (running, _):
        assert not lock.acquire()
        assert str(lock.holder()).endswith(f":{running.pid} at http://here:1")
        assert not lock.is_owner_dead()


@pytest.mark.parametrize("number", [None, signal.SIGSTOP])
def test_a_program_that_lives_or_is_stopped_keeps_it(
    number: signal.Signals | None, tmp_path: Path, lock: DirectoryLock
) -> None:
    clock = Clock()
    waiting = LockTakeover(lock, clock)
    with program(tmp_path) as (running, jvm):
        if number is not None:
            running.send_signal(number)
        for _ in range(5):
            clock.now += JVM_GRACE_S
            assert waiting.attempt() == (False, frozenset())
        os.kill(jvm, 0)


def test_a_jvm_that_outlives_its_program_is_given_its_grace_and_then_killed(
    tmp_path: Path, lock: DirectoryLock
) -> None:
    clock = Clock()
    waiting = LockTakeover(lock, clock)
    with program(tmp_path) as (running, jvm):
        assert lock.holder_pids() == {running.pid, jvm}
        # It is not waited for: what is left of it is a number.
        running.kill()
        os.waitid(os.P_PID, running.pid, os.WEXITED | os.WNOWAIT)
        assert waiting.attempt() == (False, frozenset())
        clock.now += JVM_GRACE_S - 0.1
        assert waiting.attempt() == (False, frozenset())
        clock.now += 0.2
        assert waiting.attempt() == (False, frozenset({jvm}))
        until_taken(waiting)


def test_who_only_waits_is_not_taken_for_one_who_has_it(
    tmp_path: Path, lock: DirectoryLock
) -> None:
    with program(tmp_path) as (running, jvm):
        running.kill()
        running.wait()
        second = DirectoryLock(tmp_path)
        assert lock.holder_pids() == second.holder_pids() == {jvm}
        assert not lock.kill_holder(os.getpid())
        second.close()


def test_a_third_one_that_was_faster_is_left_alone(tmp_path: Path, lock: DirectoryLock) -> None:
    clock = Clock()
    waiting = LockTakeover(lock, clock)
    with program(tmp_path) as (running, jvm):
        running.kill()
        running.wait()
        assert waiting.attempt() == (False, frozenset())
        os.kill(jvm, signal.SIGKILL)
        third = DirectoryLock(tmp_path)
        until_taken(LockTakeover(third))
        clock.now += 2 * JVM_GRACE_S
        assert waiting.attempt() == (False, frozenset())
        third.close()
        assert waiting.attempt()[0]


def test_a_program_of_another_machine_is_never_killed(tmp_path: Path, lock: DirectoryLock) -> None:
    clock = Clock()
    waiting = LockTakeover(lock, clock)
    with program(tmp_path) as (running, _):
        running.kill()
        running.wait()
        (tmp_path / "lock").write_text('["elsewhere", 1, ""]')
        for _ in range(3):
            clock.now += JVM_GRACE_S
            assert waiting.attempt() == (False, frozenset())


_JVM = """
import fcntl, sys
with open(sys.argv[1], "w") as file:
    fcntl.lockf(file, fcntl.LOCK_EX)
    print("LOCKED", flush=True)
    sys.stdin.read()
"""


def test_a_jvm_that_has_only_its_own_lock_is_waited_for(
    tmp_path: Path, lock: DirectoryLock
) -> None:
    command = [sys.executable, "-c", _JVM, str(tmp_path / "jvm.lock")]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    with subprocess.Popen(command, **pipes) as jvm:  # type: ignore[call-overload]
        assert jvm.stdout.readline() == b"LOCKED\n"
        other = DirectoryLock(tmp_path)
        assert not other.acquire()
        # It was not left locked: the next try succeeds as soon as that process ends.
        jvm.stdin.close()
        jvm.wait(30)
    assert other.acquire()
    other.close()
