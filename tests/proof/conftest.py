"""In the whole suite one row runs, another one each hour; by `pytest tests/proof`, all of them."""

from __future__ import annotations

import os
import time

import pytest


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out the rows whose turn it is not; STREAMER_PROOF_TURN says another turn, or `all`."""
    turn = os.environ.setdefault("STREAMER_PROOF_TURN", str(int(time.time()) // 3600))
    if turn == "all" or any("tests/proof" in argument for argument in config.args):
        return
    rows = [item for item in items if "tests/proof/test_rows.py" in item.nodeid]
    left = [item for at, item in enumerate(rows) if at != int(turn) % len(rows)]
    config.hook.pytest_deselected(items=left)
    items[:] = [item for item in items if item not in left]
