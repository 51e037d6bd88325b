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
