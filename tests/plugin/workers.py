"""How many processes a run takes, and which tests share one.

A worker process has its own session of Spark and its own servers: what shares them stays together.
"""

from __future__ import annotations

import os
from collections import Counter
from pathlib import Path
from typing import Final

import pytest
from xdist.scheduler import LoadScopeScheduling

from tests.plugin.tiers import DEFAULT

_MOST_WORKERS: Final = 8
_GB: Final = 1 << 30
_WORKER_BYTES: Final = {"fast": _GB // 2, DEFAULT: 2 * _GB}
"""What a worker may need, with the programs that it starts."""
_SPARK_BYTES: Final = 2 * _GB
_WAITING_PER_CORE: Final = 2
"""Workers for each core where tests wait most of their time, for what starts or was broken: one
alone keeps a third of a core busy."""
_FEW: Final = 150
"""A file with more tests than this is shared out by function."""
_OF_THE_IMAGE: Final = ("tests/deploy/test_image.py", "tests/deploy/test_container.py")
_CGROUP: Final = Path("/sys/fs/cgroup")


def number_of_workers(tier: str) -> int:
    """Return how many processes pay for a tier, as far as there is memory.

    That is one for each core where tests compute, and two where they wait.
    """
    per_core = 1 if tier in _WORKER_BYTES else _WAITING_PER_CORE
    by_memory = _free_bytes() // _WORKER_BYTES.get(tier, _SPARK_BYTES)
    return max(1, min(_cores() * per_core, by_memory, _MOST_WORKERS))


def _cores() -> int:
    if hasattr(os, "sched_getaffinity"):
        cores = len(os.sched_getaffinity(0))
    else:
        cores = os.cpu_count() or 1  # macOS
    quota, _, period = _read(_CGROUP / "cpu.max").partition(" ")
    return min(cores, max(1, int(quota) // int(period))) if quota.isdigit() else cores


def _free_bytes() -> int:
    """Return the memory that there is for this process, in bytes."""
    found = [64 * _GB]
    for line in _read(Path("/proc/meminfo")).splitlines():
        if line.startswith("MemAvailable:"):
            found.append(int(line.split()[1]) * 1024)
    limit = _read(_CGROUP / "memory.max")
    if limit.isdigit():
        found.append(int(limit))
    return min(found)


def _read(path: Path) -> str:
    try:
        return path.read_text().strip()
    except OSError:
        return ""


def scope_of(nodeid: str, tests_of_file: int, together: bool) -> str:
    """Return the name of what a test shares a worker with.

    Args:
        nodeid: the test's.
        tests_of_file: how many its file has.
        together: whether all tests of the shared session are for one worker, since another
            session costs more than it brings.
    """
    path, _, rest = nodeid.partition("::")
    if path.startswith("tests/proof/"):
        return nodeid  # a row has all that it needs to itself
    if path in _OF_THE_IMAGE:
        return "tests/deploy"  # who comes second would wait until the first has built it
    if together and path.startswith("tests/spark/"):
        return "tests/spark"
    return f"{path}::{rest.partition('[')[0]}" if tests_of_file > _FEW else path


class Scheduling(LoadScopeScheduling):
    """Gives scopes to workers in the order in which they were collected."""

    def __init__(self, config: pytest.Config, log: object, tier: str) -> None:
        super().__init__(config, log)  # type: ignore[arg-type]
        # The order is ours already: see `hooks.pytest_collection_modifyitems`.
        config.option.loadscopereorder = False
        self._together = tier == DEFAULT
        self._counts: Counter[str] = Counter()

    def _split_scope(self, nodeid: str) -> str:
        if not self._counts and self.collection:
            self._counts.update(name.partition("::")[0] for name in self.collection)
        return scope_of(nodeid, self._counts[nodeid.partition("::")[0]], self._together)
