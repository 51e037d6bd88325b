"""When a revision that was just deployed has failed."""

from __future__ import annotations

import pytest

from streamer.service.run.probation import MAX_FAILURES, Probation, RevisionHealth

PROBATION = Probation(until=100.0)


@pytest.mark.parametrize(
    ("standing", "now", "fails"),
    [
        (RevisionHealth(MAX_FAILURES, 0, "no"), 1.0, True),
        (RevisionHealth(MAX_FAILURES, 9, "no"), 1.0, True),
        (RevisionHealth(MAX_FAILURES - 1, 0, "no"), 1.0, False),
        (RevisionHealth(0, 9, "", MAX_FAILURES, "no"), 1.0, True),
        (RevisionHealth(0, 9, "", MAX_FAILURES - 1, "no"), 1.0, False),
        (RevisionHealth(0, 0, "the output is away"), 99.0, False),
        (RevisionHealth(0, 0, "the output is away"), 100.0, True),
        (RevisionHealth(0, 1, "the output is away"), 100.0, False),
        (RevisionHealth(0, 0, ""), 100.0, False),
    ],
)
def test_a_revision_fails(standing: RevisionHealth, now: float, fails: bool) -> None:
    why = PROBATION.failure_reason(standing, now)
    assert bool(why) == fails
    assert standing.problem in why or not fails


def test_probation_ends() -> None:
    assert not PROBATION.has_ended(99.9) and PROBATION.has_ended(100.0)
