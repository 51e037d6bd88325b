"""Kafka goes on while the program is down: what waits then is not late."""

from __future__ import annotations

from tests.proof.runner import Run, under_load
from tests.proof.verdict import ProofError

_BOUND = 2000
"""Messages of a micro-batch at most: what waits takes several."""
_LEAST = 1
"""Micro-batches of a backlog, without its last: with fewer there is none."""


def down(run: Run) -> str:
    """Kill the driver, and start it when several micro-batches wait."""
    run.configure(bound=_BOUND)

    def fault(run: Run) -> None:
        for _ in range(run.times):
            run.pause(0, 4)
            run.kill()
            run.pause(8, 12)
            _work_off(run)
            run.wait_for_output()

    return under_load(run, fault)


def _work_off(run: Run) -> None:
    """Start the program, and let it take what waits."""
    # What was planned already comes again as it was, with the start that it was of.
    last, waits = run.chronicle.planned(), run.source.ends()
    run.start()
    run.wait_for_taken(waits)
    _check_told(run, last, waits)


def _check_told(run: Run, last: int, waits: dict[int, int]) -> None:
    """Hold that each micro-batch that does not reach what waited was told to be of the backlog."""
    behind = [
        one
        for one in run.chronicle.since(last)
        if any(one.ends.get(partition, 0) < end for partition, end in waits.items())
    ]
    if len(behind) < _LEAST:
        raise ProofError(f"too little has happened: {len(behind)} micro-batches before the last")
    if told := [one for one in behind if not one.backlog]:
        raise ProofError(f"{len(told)} of {len(behind)} micro-batches do not say they are behind")
    run.injected.append(f"{sum(waits.values()):,} events before the start in {len(behind) + 1}")
