"""How many processes run tests, and what shares one."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.plugin import workers
from tests.plugin.workers import number_of_workers, scope_of

GB = 1 << 30


@pytest.mark.parametrize(
    ("tier", "cores", "memory", "expected"),
    [
        ("fast", 2, 24 * GB, 2),
        ("default", 2, 4 * GB, 2),
        ("default", 4, 4 * GB, 2),
        ("spark", 2, 24 * GB, 4),
        ("proof", 2, 7 * GB, 3),
        ("spark", 2, 3 * GB, 1),
        ("fast", 64, 256 * GB, 8),
        ("default", 2, GB, 1),
    ],
)
def test_there_is_one_for_each_core_or_two_as_far_as_memory_lasts(
    tier: str, cores: int, memory: int, expected: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(workers, "_cores", lambda: cores)
    monkeypatch.setattr(workers, "_free_bytes", lambda: memory)
    assert number_of_workers(tier) == expected


def test_limits_of_a_container_are_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "cpu.max").write_text("100000 100000\n")
    (tmp_path / "memory.max").write_text(f"{GB}\n")
    monkeypatch.setattr(workers, "_CGROUP", tmp_path)
    assert (workers._cores(), workers._free_bytes()) == (1, GB)


def test_no_limit_is_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "cpu.max").write_text("max 100000\n")
    (tmp_path / "memory.max").write_text("max\n")
    monkeypatch.setattr(workers, "_CGROUP", tmp_path)
    cores, memory = workers._cores(), workers._free_bytes()
    monkeypatch.setattr(workers, "_CGROUP", tmp_path / "none")
    assert workers._cores() == cores
    assert memory > GB // 8


@pytest.mark.parametrize(
    ("nodeid", "tests", "together", "expected"),
    [
        ("tests/spark/query/test_stream.py::test_a", 9, True, "tests/spark"),
        ("tests/spark/query/test_stream.py::test_a", 9, False, "tests/spark/query/test_stream.py"),
        ("tests/faults/test_kill.py::test_a[x]", 3, True, "tests/faults/test_kill.py"),
        ("tests/deploy/test_image.py::test_a", 8, False, "tests/deploy"),
        ("tests/cli/test_x.py::test_a[b]", 150, True, "tests/cli/test_x.py"),
        ("tests/cli/test_x.py::test_a[b::c]", 151, True, "tests/cli/test_x.py::test_a"),
        ("tests/proof/test_rows.py::test_a[b]", 7, False, "tests/proof/test_rows.py::test_a[b]"),
    ],
)
def test_what_shares_a_session_or_a_server_shares_a_worker(
    nodeid: str, tests: int, together: bool, expected: str
) -> None:
    assert scope_of(nodeid, tests, together) == expected
