"""When a revision that was just deployed has failed."""

from __future__ import annotations

import pytest

from streamer.service.probation import FAILURES, Probation, Standing

PROBATION = Probation(until=100.0)


@pytest.mark.parametrize(
    ("standing", "now", "fails"),
    [
        (Standing(FAILURES, 0, "no"), 1.0, True),
        (Standing(FAILURES, 9, "no"), 1.0, True),
        (Standing(FAILURES - 1, 0, "no"), 1.0, False),
        (Standing(0, 9, "", FAILURES, "no"), 1.0, True),
        (Standing(0, 9, "", FAILURES - 1, "no"), 1.0, False),
        (Standing(0, 0, "the output is away"), 99.0, False),
        (Standing(0, 0, "the output is away"), 100.0, True),
        (Standing(0, 1, "the output is away"), 100.0, False),
        (Standing(0, 0, ""), 100.0, False),
    ],
)
def test_a_revision_fails(standing: Standing, now: float, fails: bool) -> None:
    why = PROBATION.failed(standing, now)
    assert bool(why) == fails
    assert standing.problem in why or not fails


def test_probation_ends() -> None:
    assert not PROBATION.over(99.9) and PROBATION.over(100.0)
