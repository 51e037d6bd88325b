"""Processes of the stream that are killed."""

from __future__ import annotations

import time

from tests.proof.runner import Run, under_load


def at_write(run: Run) -> str:
    """Kill the driver when the output has just grown."""

    def fault(run: Run) -> None:
        between = 0
        for _ in range(run.times):
            before = run.size()
            until = time.monotonic() + 60
            while run.size() == before and time.monotonic() < until:
                time.sleep(0.0005)
            run.kill()
            between += run.chronicle.planned() > run.chronicle.committed()
            run.start()
            run.wait_for_output()
        run.injected.append(f"{run.times} kills, {between} before the commit")

    return under_load(run, fault)
