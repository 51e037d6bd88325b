"""The sample: of what takes a minute or more, a run without names takes a part, as its seed says.

Files of `tests/faults` and `tests/cluster` and rows of the proof wait most of their time for what
was broken to come back. The seed counts the hours, so that runs of some hours have had them all.
"""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import Final

import pytest

from tests.plugin.tiers import is_chosen, kind_of

SEED_VARIABLE: Final = "STREAMER_SEED"
FILE_SHARES: Final = 4
ROW_SHARES: Final = 3
_TESTS: Final = Path(__file__).parents[1]
_FOLDERS: Final = (_TESTS / "faults", _TESTS / "cluster")
_ROWS: Final = _TESTS / "proof" / "test_rows.py"
LATE: Final = "no time left"


def default_seed() -> int:
    """Return the seed of the environment, or the number of this hour."""
    return int(os.environ.get(SEED_VARIABLE) or time.time() // 3600)


def is_sampled(item: pytest.Item) -> bool:
    """Tell whether a run takes a test only as its seed says."""
    return (
        (item.path.parent in _FOLDERS or item.path == _ROWS)
        and kind_of(item) != "fast"
        and not is_chosen(item)
    )


def rests(items: list[pytest.Item], seed: int) -> set[pytest.Item]:
    """Return the tests that this seed leaves out.

    Args:
        items: all that were collected.
        seed: any number; equal remainders by 12 take the same tests.
    """
    sampled = [item for item in items if is_sampled(item)]
    files = sorted({item.path for item in sampled if item.path != _ROWS})
    rows = [item for item in sampled if item.path == _ROWS]
    turn = {file for number, file in enumerate(files) if number % FILE_SHARES == seed % FILE_SHARES}
    out = {item for item in sampled if item.path != _ROWS and item.path not in turn}
    out |= {row for number, row in enumerate(rows) if number % ROW_SHARES != seed % ROW_SHARES}
    return out


def skip_when_late(item: pytest.Item, deadline: float | None) -> None:
    """Skip a test of the sample that would begin after the deadline, a time of `time.time()`."""
    if deadline is not None and time.time() > deadline and is_sampled(item):
        pytest.skip(LATE)
