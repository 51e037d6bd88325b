"""Events that are not as they should be, and nothing else."""

from __future__ import annotations

from tests.proof.runner import Run, under_load
from tests.proof.verdict import ProofError


def plain(run: Run) -> str:
    """Let the events come."""

    def fault(run: Run) -> None:
        run.pause(*((60, 90) if run.long else (3, 5)))

    return under_load(run, fault)


def shuffled(run: Run) -> str:
    """Let the events come in another order."""
    return plain(run)


def poison(run: Run) -> str:
    """Let messages come among them that are none."""
    figures = plain(run)
    if "timestamp" not in figures:
        raise ProofError("no poison came")
    return figures


def idle(run: Run) -> str:
    """Let nothing come for a while; then all that is due comes at once."""

    def fault(run: Run) -> None:
        for _ in range(run.times):
            run.pause(0, 3)
            run.source.silent.set()
            run.pause(0.5, 0.5)  # what is being sent
            run.source.flush()
            run.wait_for_all()
            run.pause(2, 3)  # one more micro-batch lets out what the last events have closed
            before = run.size()
            run.pause(8, 12)
            if run.size() != before:
                raise ProofError("windows came out though nothing moved their clock")
            run.source.silent.clear()
            run.wait_for_output()
            run.wait_for_output()
        run.injected.append(f"{run.times} times silent")

    return under_load(run, fault)
