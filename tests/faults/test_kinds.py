"""What takes turns: each run has one of every kind, and each has its turn."""

from __future__ import annotations

from pathlib import Path

from tests.faults.kinds import KINDS, choose_one_of_each
from tests.proof.rows import ROWS

_TESTS = Path(__file__).parents[1]


def test_each_has_its_turn() -> None:
    runs = [choose_one_of_each(KINDS.values(), number) for number in range(24)]
    assert all(len(run) == len(KINDS) for run in runs)
    every = [one for kind in KINDS.values() for one in kind]
    assert all(any(one in run for run in runs) for one in every)
    assert all(every.count(one) == 1 for one in every)


def test_every_row_of_the_proof_is_of_a_kind() -> None:
    assert len({row.kind for row in ROWS}) == 7


def test_every_file_of_a_kind_is_there_and_every_other_one_runs_each_time() -> None:
    named = {_TESTS / name for kind in KINDS.values() for name in kind}
    assert [path for path in named if not path.is_file()] == []
    there = {path for folder in ("faults", "cluster") for path in (_TESTS / folder).glob("test_*")}
    # Those of hosts and of YARN are by hand.
    each_time = ["test_cluster_hosts.py", "test_kinds.py", "test_yarn.py"]
    assert sorted(path.name for path in there - named) == each_time
