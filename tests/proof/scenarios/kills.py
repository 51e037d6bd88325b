"""Processes of the stream that are ended, by force or in order."""

from __future__ import annotations

import time
from collections.abc import Callable

from tests.proof.runner import Run, under_load
from tests.proof.verdict import ProofError


def at_write(run: Run) -> str:
    """Kill the driver when the output has just grown."""
    return under_load(run, lambda run: _kill_when(run, run.sink.written))


def at_commit(run: Run) -> str:
    """Kill the driver when something was just written, and when readers have just seen more."""
    return under_load(run, lambda run: _kill_when(run, run.sink.written, run.sink.size))


def _kill_when(run: Run, *looks: Callable[[], int]) -> None:
    between = 0
    for number in range(run.times * len(looks)):
        grows = looks[number % len(looks)]
        before = grows()
        until = time.monotonic() + 60
        while grows() == before and time.monotonic() < until:
            time.sleep(0.0005)
        run.kill()
        between += run.chronicle.planned() > run.chronicle.committed()
        run.start()
        run.wait_for_output()
    run.injected.append(f"{run.times * len(looks)} kill -9, {between} before the commit")


def driver(run: Run) -> str:
    """Kill the driver at any moment, the start too."""

    def fault(run: Run) -> None:
        for _ in range(run.times):
            run.pause(0, 4)
            run.kill()
            run.start()
            run.pause(0, 12)
            run.kill()
            run.start()
            run.wait_for_output()
        run.injected.append(f"{2 * run.times} kill -9")

    return under_load(run, fault)


def sigterm(run: Run) -> str:
    """End the program in order while events come, and start it again."""

    def fault(run: Run) -> None:
        longest = 0.0
        for _ in range(2 * run.times):
            run.pause(0, 4)
            last, began = run.program, time.monotonic()
            if run.stop() != 0:
                raise ProofError(f"SIGTERM: exit code is not 0: {last.messages()[-5:]}")
            longest = max(longest, time.monotonic() - began)
            run.start()
            run.wait_for_output()
        run.injected.append(f"{2 * run.times} SIGTERMs, {longest:.0f} s the longest")

    return under_load(run, fault)
