"""Rows take turns: the whole suite runs one of each kind of fault, and `pytest tests/proof` all.

Another one each hour, as of `tests/faults/turns.py`; STREAMER_FAULTS=all is for all.
"""

from __future__ import annotations

import pytest

from tests.faults.turns import choose_one_of_each, share
from tests.proof.rows import KINDS


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out the rows whose turn it is not."""
    number = share()
    if number is None or any("tests/proof" in argument for argument in config.args):
        return
    chosen = choose_one_of_each(KINDS.values(), number)
    left = [
        item
        for item in items
        if "tests/proof/test_rows.py" in item.nodeid
        and isinstance(item, pytest.Function)
        and item.callspec.params["row"] not in chosen
    ]
    config.hook.pytest_deselected(items=left)
    items[:] = [item for item in items if item not in left]
