"""Tests of faults and of clusters take turns: the whole suite runs a quarter of their files,
another one each hour.

Each takes a minute or more, most of it waiting for what was broken to come back. By name
(`pytest tests/faults`), or with STREAMER_FAULTS=all, all of them run.
"""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

SHARES = 4
FOLDERS = ("faults", "cluster")
_TESTS = Path(__file__).parents[1]


def share(shares: int = SHARES) -> int | None:
    """Return which of so many shares runs; None for all."""
    # Kept for the suite's other processes, so that an hour that ends does not part them.
    text = os.environ.setdefault("STREAMER_FAULTS", str(int(time.time()) // 3600 % 24))
    return None if text == "all" else int(text) % shares


def take_turns(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out the files whose turn it is not."""
    turn = share()
    named = any(folder in argument for folder in FOLDERS for argument in config.args)
    if turn is None or named:
        return
    files = sorted(path for folder in FOLDERS for path in (_TESTS / folder).glob("test_*.py"))
    resting = {path for number, path in enumerate(files) if number % SHARES != turn}
    left = [item for item in items if item.path in resting]
    config.hook.pytest_deselected(items=left)
    items[:] = [item for item in items if item.path not in resting]
