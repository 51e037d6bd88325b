"""A database of each kind for a test."""

from __future__ import annotations

from pathlib import Path

import pytest

from .databases import BOTH, Place, place


@pytest.fixture(params=BOTH)
def db(request: pytest.FixtureRequest, tmp_path: Path) -> Place:
    found = place(request.param, request, tmp_path)
    found.run(f"CREATE TABLE {found.table} (id integer PRIMARY KEY, name text)")
    return found
