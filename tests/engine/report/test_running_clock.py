"""How long work took, less the time in which the process was stopped or got no core."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from dataclasses import dataclass

from streamer.core.durations import SECOND
from streamer.engine.report.running_clock import MAX_GAP_NS, RunningClock, Stopwatch


@dataclass
class Process:
    """What a process sees of its time."""

    at: int = 0
    used: int = 0

    def clock(self) -> RunningClock:
        return RunningClock(lambda: self.at, lambda: self.used, beats=False)


def test_time_that_is_looked_at_counts_and_a_gap_does_not() -> None:
    process = Process()
    clock = process.clock()
    with clock.measure():
        began = clock.mark()
        for _ in range(20):
            process.at += SECOND
            clock.check()
        assert clock.since(began) == 20 * SECOND, "blocked, but running"
        process.at += 45 * SECOND
        assert clock.since(began) == 20 * SECOND, "stopped"
        clock.check()
        process.at += SECOND
        assert clock.since(began) == 21 * SECOND


def test_a_processor_that_lets_no_thread_run_was_at_work_all_the_same() -> None:
    process = Process()
    clock = process.clock()
    with clock.measure():
        began = clock.mark()
        process.at += 30 * SECOND
        process.used += 29 * SECOND
        assert clock.since(began) == 29 * SECOND
        process.at += MAX_GAP_NS
        assert clock.since(began) == 29 * SECOND + MAX_GAP_NS


def test_what_passed_before_it_was_timed_is_no_gap() -> None:
    process = Process()
    clock = process.clock()
    for _ in range(3):
        process.at += 60 * SECOND
        with clock.measure():
            began = clock.mark()
            process.at += SECOND
            clock.check()
            assert clock.since(began) == SECOND


def test_a_stopwatch_times_the_work_and_not_what_is_around_it() -> None:
    process = Process()
    clock = process.clock()
    watch = Stopwatch(clock)

    def windows() -> list[int]:
        return [1, 2, 3]

    def given():
        for window in windows():
            process.at += 100
            yield window

    def work(items):
        for item in items:
            process.at += 7
            yield item
        process.at += 1

    with clock.measure():
        for _ in watch.time_items(work(watch.exclude_items(given()))):
            process.at += 10_000
        with watch.time_block():
            process.at += 30
    assert watch.work == 3 * 7 + 1 + 30


_BLOCKED = """
import sys, time
from streamer.engine.report.running_clock import RunningClock
clock = RunningClock()
with clock.measure():
    began = clock.mark()
    print("ready", flush=True)
    sys.stdin.readline()
    print(clock.since(began), flush=True)
"""


def test_a_process_that_is_stopped_measures_nothing_meanwhile() -> None:
    command = [sys.executable, "-c", _BLOCKED]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True) as process:
        assert process.stdout is not None and process.stdin is not None
        assert process.stdout.readline() == "ready\n"
        began = time.monotonic()
        time.sleep(1)
        os.kill(process.pid, signal.SIGSTOP)
        time.sleep(4)
        os.kill(process.pid, signal.SIGCONT)
        time.sleep(1)
        process.stdin.write("\n")
        process.stdin.flush()
        measured = int(process.stdout.readline()) / SECOND
    passed = time.monotonic() - began
    assert measured >= 0.9, "blocked is at work"
    assert measured <= passed - 3, f"{measured} s of {passed} s"
