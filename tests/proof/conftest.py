"""Rows take turns: the whole suite runs a third of them, and `pytest tests/proof` all.

Another one each hour, as of `tests/faults/turns.py`; STREAMER_FAULTS=all is for all.
"""

from __future__ import annotations

import pytest

from tests.faults.turns import share
from tests.proof.rows import ROWS

SHARES = 3


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out the rows whose turn it is not."""
    turn = share(SHARES)
    if turn is None or any("tests/proof" in argument for argument in config.args):
        return
    resting = {row.name for number, row in enumerate(ROWS) if number % SHARES != turn}
    left = [
        item
        for item in items
        if "tests/proof/test_rows.py" in item.nodeid
        and isinstance(item, pytest.Function)
        and item.callspec.params["row"].name in resting
    ]
    config.hook.pytest_deselected(items=left)
    items[:] = [item for item in items if item not in left]
