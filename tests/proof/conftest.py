"""Rows take turns: the whole suite runs one of each kind of fault, and `pytest tests/proof` all.

Another one each hour, as of `tests/faults/turns.py`; STREAMER_FAULTS=all is for all.
"""

from __future__ import annotations

from collections import defaultdict

import pytest

from tests.faults.kinds import choose_one_of_each
from tests.faults.turns import share
from tests.proof.rows import ROWS, Row


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out the rows whose turn it is not."""
    number = share()
    if number is None or any("tests/proof" in argument for argument in config.args):
        return
    kinds: defaultdict[str, list[Row]] = defaultdict(list)
    for row in ROWS:
        kinds[row.kind].append(row)
    chosen = choose_one_of_each(kinds.values(), number)
    left = [
        item
        for item in items
        if "tests/proof/test_rows.py" in item.nodeid
        and isinstance(item, pytest.Function)
        and item.callspec.params["row"] not in chosen
    ]
    config.hook.pytest_deselected(items=left)
    items[:] = [item for item in items if item not in left]
