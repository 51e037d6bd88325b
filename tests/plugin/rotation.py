"""The sample: of what takes a minute or more, a run without names takes a part, as its seed says.

Files of `tests/faults` and `tests/cluster` and rows of the proof wait most of their time for what
was broken to come back. What they break falls into kinds: a run has one of each kind, and the next
seed another one. The seed counts the hours, so that runs of a day have had them all.
"""

from __future__ import annotations

import os
import time
from collections import defaultdict
from pathlib import Path
from typing import Final

import pytest

from tests.faults.kinds import KINDS, choose_one_of_each
from tests.plugin.tiers import is_chosen, kind_of

SEED_VARIABLE: Final = "STREAMER_SEED"
LATE: Final = "no time left"
_TESTS: Final = Path(__file__).parents[1]
_ROWS: Final = _TESTS / "proof" / "test_rows.py"
_TURNS: Final = {_TESTS / name: len(names) for names in KINDS.values() for name in names}
_FILES: Final = frozenset(_TURNS)


def default_seed() -> int:
    """Return the seed of the environment, or the number of this hour."""
    return int(os.environ.get(SEED_VARIABLE) or time.time() // 3600)


def is_sampled(item: pytest.Item) -> bool:
    """Tell whether a run takes a test only when it is its turn."""
    if is_chosen(item) or kind_of(item) == "fast":
        return False
    return _kind(item) is not None or item.path in _FILES


def _kind(item: pytest.Item) -> str | None:
    """Return the kind of which a run takes one test: of a row, or as the marker `sample` says."""
    if item.path == _ROWS and isinstance(item, pytest.Function):
        kind: str = item.callspec.params["row"].kind
        return kind
    mark = item.get_closest_marker("sample")
    return f"{item.path} {mark.args[0]}" if mark else None


def rests(items: list[pytest.Item], seed: int) -> set[pytest.Item]:
    """Return the tests that this seed leaves out; a kind whose files were not collected has none.

    Args:
        items: all that were collected.
        seed: any number; the next one takes others.
    """
    turn = {_TESTS / name for name in choose_one_of_each(KINDS.values(), seed)}
    out = set[pytest.Item]()
    kinds: defaultdict[tuple[str, int], list[pytest.Item]] = defaultdict(list)
    for item in items:
        if not is_sampled(item):
            continue
        kind = _kind(item)
        if item.path in _FILES - turn:
            out.add(item)
        elif kind is not None:
            # A file that has its turn each twelfth time would always show the same of two samples.
            kinds[kind, _TURNS.get(item.path, 1)].append(item)
    chosen = [some[seed // turns % len(some)] for (_, turns), some in kinds.items()]
    return out.union(*kinds.values()).difference(chosen)


def skip_when_late(deadline: float | None) -> None:
    """Skip the test that would begin after the deadline, a time of `time.time()`."""
    if deadline is not None and time.time() > deadline:
        pytest.skip(LATE)
