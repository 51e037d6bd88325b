"""Tests of faults and of clusters take turns: the whole suite runs a part of their files.

Each takes a minute or more, most of it waiting for what was broken to come back. What they break
falls into kinds, and each run has one file of every kind, another one each hour; rows of the proof
take turns likewise. By name (`pytest tests/faults`), or with STREAMER_FAULTS=all, all of them run.
"""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from tests.faults.kinds import KINDS, choose_one_of_each

_TESTS = Path(__file__).parents[1]


def share() -> int | None:
    """Return which share of the tests runs, by the hour of the day; None when all do."""
    # Kept for the suite's other processes, so that an hour that ends does not part them.
    text = os.environ.setdefault("STREAMER_FAULTS", str(int(time.time()) // 3600 % 24))
    return None if text == "all" else int(text)


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
