"""Tests of faults and of clusters take turns: the whole suite runs a part of their files.

Each takes a minute or more, most of it waiting for what was broken to come back. What they break
falls into kinds, and each run has one file of every kind, another one each hour; rows of the proof
take turns likewise. By name (`pytest tests/faults`), or with STREAMER_FAULTS=all, all of them run.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TypeVar

import pytest

KINDS: Mapping[str, Sequence[str]] = {
    "program": (
        "faults/test_running.py",
        "faults/test_kill.py",
        "faults/test_troubles.py",
        "faults/test_results.py",
        "faults/test_deploys.py",
        "faults/test_sending.py",
        "faults/test_full_disk.py",
        "faults/test_http_input.py",
        "faults/test_back_pressure.py",
    ),
    "kafka": (
        "faults/test_kafka_input.py",
        "faults/test_kafka_output.py",
        "faults/test_kafka_join.py",
        "faults/test_kafka_transactions.py",
        "faults/test_kafka_backlog.py",
        "faults/test_kafka_streams.py",
    ),
    "service": (
        "faults/test_many_streams.py",
        "faults/test_isolation.py",
        "faults/test_idle_streams.py",
        "faults/test_deploy_kills.py",
        "faults/test_standby.py",
        "faults/test_service_elsewhere.py",
    ),
    "cluster": (
        "faults/test_cluster.py",
        "cluster/test_recipes.py",
        "faults/test_submit.py",
        "cluster/test_spool.py",
        "faults/test_elsewhere.py",
        "cluster/test_deploys.py",
    ),
}
"""Files below `tests` by what they break. One that is in none runs each time."""
_TESTS = Path(__file__).parents[1]
_T = TypeVar("_T")


def share() -> int | None:
    """Return which share of the tests runs, by the hour of the day; None when all do."""
    # Kept for the suite's other processes, so that an hour that ends does not part them.
    text = os.environ.setdefault("STREAMER_FAULTS", str(int(time.time()) // 3600 % 24))
    return None if text == "all" else int(text)


def choose_one_of_each(kinds: Iterable[Sequence[_T]], number: int) -> list[_T]:
    """Return one of each kind, another one for the next number."""
    return [kind[number % len(kind)] for kind in kinds]


def take_turns(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out the files whose turn it is not."""
    number = share()
    folders = {name.partition("/")[0] for kind in KINDS.values() for name in kind}
    named = any(folder in argument for folder in folders for argument in config.args)
    if number is None or named:
        return
    chosen = choose_one_of_each(KINDS.values(), number)
    resting = {_TESTS / name for kind in KINDS.values() for name in kind if name not in chosen}
    left = [item for item in items if item.path in resting]
    config.hook.pytest_deselected(items=left)
    items[:] = [item for item in items if item.path not in resting]
