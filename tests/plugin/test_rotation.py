"""Which tests of a sample rest, by the seed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.faults.kinds import KINDS
from tests.plugin.rotation import rests

TESTS = Path(__file__).parents[1]


class Item:
    """What the rotation asks of a slow test."""

    def __init__(self, path: str, sample: str | None = None) -> None:
        self.path = TESTS / path
        self._marks = {"slow": pytest.mark.slow}
        if sample is not None:
            self._marks["sample"] = pytest.mark.sample(sample)

    def get_closest_marker(self, name: str) -> Any:
        return self._marks.get(name)


def test_a_file_whose_turn_it_is_not_rests_with_all_of_its_samples() -> None:
    first, second = KINDS["program"][:2]
    turns = len(KINDS["program"])
    whole, other = Item(first), Item(second)
    samples = [Item(second, "alike"), Item(second, "alike")]
    items: Any = [whole, other, *samples]
    assert rests(items, 0) == {other, *samples}
    assert rests(items, 1) == {whole, samples[1]}
    assert rests(items, 1 + turns) == {whole, samples[0]}


def test_what_is_in_no_kind_never_rests() -> None:
    items: Any = [Item("faults/test_yarn.py"), Item("sql/test_pool.py")]
    assert rests(items, 3) == set()
