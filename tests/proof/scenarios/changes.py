"""Changes of a stream that runs."""

from __future__ import annotations

import json

from tests.proof.runner import Run, under_load
from tests.proof.verdict import ProofError

_RUNS = "The changed config runs"


def deploy(run: Run) -> str:
    """Change the mapping under load: windows that are open go on."""
    run.options = ("-w",)

    def fault(run: Run) -> None:
        for version in range(1, 2 * run.times + 1):
            run.pause(0, 3)
            deployed = _told(run)
            run.configure(version=version)
            run.wait_for(lambda before=deployed: _told(run) > before, "for the deploy")
            run.wait_for_output()
            run.wait_for_output()
        run.injected.append(f"{2 * run.times} deploys")

    figures = under_load(run, fault)
    _check_versions(run, 2 * run.times)
    return figures


def _told(run: Run) -> int:
    return run.program.messages().count(_RUNS)


def _check_versions(run: Run, newest: int) -> None:
    """Hold that windows are of one mapping after the other, and each had its time."""
    came = [json.loads(line)["version"] for line in run.sink.windows()]
    if came != sorted(came):
        raise ProofError("windows of an old mapping came after those of a new one")
    if set(came) != set(range(newest + 1)):
        raise ProofError(f"of {newest} deploys windows have {sorted(set(came))}")
