"""Processes of the stream that are ended, by force or in order."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable
from contextlib import suppress

from tests.processes import command, descendants, parent, python_workers
from tests.proof.runner import PATIENCE, Run, under_load
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


def worker(run: Run) -> str:
    """Kill all Python workers at any moment; the program goes on by itself."""

    def fault(run: Run) -> None:
        killed = 0
        for _ in range(2 * run.times):
            run.pause(0, 4)
            workers = python_workers(run.program.process.pid)
            if not workers:
                raise ProofError("there is no Python worker to kill")
            for pid in workers:
                with suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
            killed += len(workers)
            run.wait_for_output()
            run.wait_for_output()
        failed = sum("micro-batch failed" in text for text in run.program.messages())
        run.injected.append(f"{killed} workers killed, {failed} micro-batches failed")

    return under_load(run, fault)


def jvm(run: Run) -> str:
    """Kill Spark's JVM at any moment; the program ends and says so, and is started again."""

    def fault(run: Run) -> None:
        for _ in range(run.times):
            run.pause(0, 4)
            (java,) = (pid for pid in _of(run, "java") if parent(pid) == run.program.process.pid)
            os.kill(java, signal.SIGKILL)
            if run.program.finish(PATIENCE) == 0:
                raise ProofError("the program ended as if all were well")
            said = run.program.messages()
            if not any("JVM ended unexpectedly" in text for text in said):
                raise ProofError(f"the program does not say what ended: {said[-3:]}")
            run.start()
            run.wait_for_output()
        run.injected.append(f"{run.times} kill -9")

    return under_load(run, fault)


def sigterm(run: Run) -> str:
    """End the program in order while events come, and start it again."""

    def fault(run: Run) -> None:
        longest = 0.0
        for _ in range(run.times):
            run.pause(0, 4)
            last, began = run.program, time.monotonic()
            if run.stop() != 0:
                raise ProofError(f"SIGTERM: exit code is not 0: {last.messages()[-5:]}")
            longest = max(longest, time.monotonic() - began)
            run.start()
            run.wait_for_output()
        run.injected.append(f"{run.times} SIGTERM, {longest:.0f} s the longest")

    return under_load(run, fault)


def _of(run: Run, word: str) -> list[int]:
    """Return the processes of the program that have a word in their command."""
    return sorted(pid for pid in descendants(run.program.process.pid) if word in command(pid))
