"""The rows without processes hold, and find bugs in the windows' own code."""

from __future__ import annotations

import os

import pytest

from tests.proof.kernel import CASES, Kernel
from tests.proof.mutants import Mutant, is_found, mutants, verdict_on

QUICK = ("count-forgotten", "pack-of-eight")
"""Each takes seconds: the others are looked for when there is time for them."""

LONG = os.environ.get("STREAMER_PROOF") == "long"
WINDOWS = [mutant for mutant in mutants() if mutant.in_windows and (LONG or mutant.name in QUICK)]


@pytest.mark.parametrize(
    "name",
    [
        *("shuffled", "poison", "backlog", "sessions", "counted", "joined-packs"),
        *("behind", "behind-grid", "kept", "latest", "emptied"),
    ],
)
def test_a_row_without_processes_holds(name: str) -> None:
    Kernel(*CASES[name], seed=3, most=1200 if LONG else 400).run()


@pytest.mark.parametrize("mutant", WINDOWS, ids=lambda mutant: mutant.name)
def test_a_bug_in_windows_is_found_without_processes(mutant: Mutant) -> None:
    verdict = verdict_on(mutant, seed=3, kernel=True)
    assert is_found(verdict), verdict
