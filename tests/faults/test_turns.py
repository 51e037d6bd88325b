"""What takes turns: each run has one of every kind, and each has its turn."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.faults.turns import KINDS, choose_one_of_each, share
from tests.proof import rows


def test_every_row_and_every_file_of_a_kind_has_its_turn() -> None:
    for kinds in (KINDS, rows.KINDS):
        runs = [choose_one_of_each(kinds.values(), number) for number in range(24)]
        assert all(len(run) == len(kinds) for run in runs)
        every = [one for kind in kinds.values() for one in kind]
        assert all(any(one in run for run in runs) for one in every)
        assert all(every.count(one) == 1 for one in every)


def test_every_row_is_of_a_kind() -> None:
    assert [row for row in rows.ROWS if not any(row in kind for kind in rows.KINDS.values())] == []


def test_a_run_that_is_to_have_all_has_no_share(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("STREAMER_FAULTS", "all")
    assert share() is None
    monkeypatch.setenv("STREAMER_FAULTS", "7")
    assert share() == 7


def test_every_file_of_a_kind_is_there_and_every_other_one_runs_each_time() -> None:
    tests = Path(__file__).parents[1]
    named = {tests / name for kind in KINDS.values() for name in kind}
    assert [path for path in named if not path.is_file()] == []
    there = {path for folder in ("faults", "cluster") for path in (tests / folder).glob("test_*")}
    each_time = ["test_cluster_hosts.py", "test_turns.py", "test_yarn.py"]
    # The first and the last are by hand.
    assert sorted(path.name for path in there - named) == each_time
