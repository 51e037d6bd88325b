"""Rows take minutes: they run when they are asked for, by `pytest tests/proof`."""

from __future__ import annotations

import pytest


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out the rows when the whole suite runs."""
    if any("tests/proof" in argument for argument in config.args):
        return
    rows = [item for item in items if "tests/proof/test_rows.py" in item.nodeid]
    config.hook.pytest_deselected(items=rows)
    items[:] = [item for item in items if item not in rows]
