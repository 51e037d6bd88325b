"""Databases for tests: a file of SQLite, and a real PostgreSQL, which is slow to start."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from streamer.connectors.sql.database import Database
from streamer.connectors.sql.drivers import find_driver
from streamer.connectors.sql.pool_bounds import PoolBounds

BOTH = [
    pytest.param("sqlite"),
    pytest.param("postgres", marks=pytest.mark.slow),
    pytest.param("mysql", marks=pytest.mark.slow),
]
_NUMBERS = itertools.count()


@dataclass
class Place:
    """A database, asked by the drivers themselves.

    Attributes:
        driver: as configs name it.
        dsn: where it is.
        table: the name of a table that no other test uses; it is not there yet.
    """

    driver: str
    dsn: str
    table: str

    @property
    def target(self) -> str:
        """The fields of a config that name it."""
        return f"driver: {self.driver}, dsn: '{self.dsn}'"

    def mark(self, number: int) -> str:
        """A placeholder."""
        return f"${number}" if self.driver == "postgres" else "?"

    def run(self, statement: str, *arguments: Any) -> list[Sequence[Any]]:
        database = Database(find_driver(self.driver), self.dsn, PoolBounds())
        try:
            rows = database.run(statement, arguments)
            return [] if rows is None else list(rows.values)
        finally:
            database.close()

    @property
    def skipping(self) -> str:
        """The end of an INSERT that leaves rows as they are whose id is there."""
        return (
            "ON DUPLICATE KEY UPDATE id = id"
            if self.driver == "mysql"
            else "ON CONFLICT (id) DO NOTHING"
        )

    def rows(self) -> list[Sequence[Any]]:
        return self.run(f"SELECT * FROM {self.table} ORDER BY 1")


def place(name: str, request: pytest.FixtureRequest, directory: Path) -> Place:
    if name == "sqlite":
        return Place(name, f"file:{directory}/test.db", "things")
    dsn = request.getfixturevalue(f"{name}_dsn")
    return Place(name, dsn, f"things_{next(_NUMBERS)}")
